//! Every rule hits its examples and misses its counter-examples.
//!
//! No text of this folder looks like a key: the letters of examples are made up when the test runs.

use super::made::Maker;
use super::{Rule, Shape, list, table};
use crate::filters::redact::detect::{Choice, Class, Confidence, Detector};
use std::collections::HashSet;

fn all() -> Detector {
    let classes = Class::ALL.to_vec();
    Detector::new(&Choice { classes, ..Choice::default() }).unwrap()
}

/// Whether the example's secret is hit whole by the rule, and what else was.
fn hits(detector: &mut Detector, text: &str) -> Vec<(usize, usize, &'static str)> {
    let mut hits = Vec::new();
    detector.find(None, text.as_bytes(), &mut hits);
    hits.iter().map(|hit| (hit.start, hit.end, hit.rule.name())).collect()
}

#[test]
fn every_rule_hits_its_examples_and_only_them() {
    const SEEDS: u64 = 40;
    let mut detector = all();
    let mut faults = Vec::new();
    for rule in table() {
        for (template, wanted) in rule.yes.iter().map(|t| (t, true)).chain(rule.no.iter().map(|t| (t, false)))
        {
            let mut wrong = Vec::new();
            for seed in 0..SEEDS {
                let (text, start, end) = Maker(seed * 7919 + rule.id.len() as u64).example(template);
                let found = hits(&mut detector, &text);
                let hit = |hit: &(usize, usize, &str)| {
                    hit.2 == rule.id && (!wanted || (hit.0 == start && hit.1 == end))
                };
                if found.iter().any(hit) != wanted {
                    wrong.push(format!("{text:?}: {found:?}"));
                }
                let possible = detector.may_hit(text.as_bytes());
                assert!(possible || found.is_empty(), "{}: the prefilter misses {template}", rule.id);
            }
            // Made-up letters happen to be words or a placeholder: one of forty may.
            if wrong.len() > 1 {
                faults.push(format!(
                    "{}: {template}: {} of {SEEDS} wrong: {}",
                    rule.id,
                    wrong.len(),
                    wrong[0]
                ));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn the_table_is_whole() {
    let table = table();
    let mut ids = HashSet::new();
    for Rule { id, words, shape, source, yes, no, confidence, .. } in &table {
        assert!(ids.insert(*id), "{id} stands twice");
        assert!(id.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-'), "{id}");
        assert!(Class::named(id).is_none() || Class::ALL.iter().any(|class| class.name() == *id), "{id}");
        assert!(!source.is_empty() && !yes.is_empty() && !no.is_empty(), "{id} has no source or example");
        let keyed = matches!(shape, Shape::Parts(_) | Shape::Hand(_));
        assert_eq!(keyed, !words.is_empty(), "{id}: keywords");
        assert!(words.iter().all(|word| word.len() == 1 || word.len() >= 3), "{id}: a keyword of two bytes");
        assert!(*confidence >= Confidence::Medium, "{id} would never run by default");
    }
    assert!(table.len() >= 100);
}

#[test]
fn the_list_shows_every_rule_with_an_example() {
    let lines = list();
    assert_eq!(lines.len(), table().len());
    for (line, rule) in lines.iter().zip(table()) {
        let fields: Vec<&str> = line.split('\t').collect();
        assert_eq!((fields.len(), fields[0], fields[3]), (4, rule.id, rule.source), "{line}");
        assert!(!line.contains(['\n', '«']) && fields[2].len() >= 4, "{line}");
    }
}

/// The README lists every rule.
#[test]
fn the_readme_names_every_rule() {
    let readme = include_str!("README.md");
    for rule in table() {
        assert!(readme.contains(&format!("`{}`", rule.id)), "{} is missing", rule.id);
    }
}

/// The lines of a list of texts, with its escapes undone.
fn lines(list: &str) -> impl Iterator<Item = String> {
    list.lines()
        .filter(|line| !line.starts_with("# "))
        .map(|line| line.replace("\\n", "\n").replace("\\r", "\r").replace("\\t", "\t"))
}

/// Of all the ways in which secrets are written down nearly all are found, and nearly nothing else.
#[test]
fn hard_secrets_are_found_and_look_alikes_are_not() {
    const SEEDS: u64 = 3;
    let mut detector = Detector::new(&Choice::default()).unwrap();
    let (mut secrets, mut hit, mut wrong) = (0, 0, 0);
    let (mut missed, mut faults) = (Vec::new(), Vec::new());
    for template in lines(include_str!("hard.txt")) {
        let mut found = 0;
        for seed in 0..SEEDS {
            let (text, start, end) = Maker(seed * 7919 + template.len() as u64).example(&template);
            let hits = hits(&mut detector, &text);
            let mut at = start;
            let mut left = 0;
            for (from, to, _) in hits.iter().filter(|hit| hit.0 < end && hit.1 > start) {
                left = left.max(from.saturating_sub(at));
                at = *to;
            }
            left = left.max(end.saturating_sub(at));
            found += u64::from(left < 6.min(end - start));
            let outside = hits.iter().filter(|hit| hit.0 >= end || hit.1 <= start).count();
            if outside > 0 {
                faults.push(format!("{text:?}: {hits:?}"));
            }
            wrong += outside;
        }
        secrets += SEEDS;
        hit += found;
        if found < SEEDS {
            missed.push(format!("{found} of {SEEDS}: {template:?}"));
        }
    }
    for template in lines(include_str!("alike.txt")) {
        for seed in 0..SEEDS {
            let (text, ..) = Maker(seed * 7919 + template.len() as u64).example(&template);
            let hits = hits(&mut detector, &text);
            wrong += hits.len();
            if !hits.is_empty() {
                faults.push(format!("{text:?}: {hits:?}"));
            }
        }
    }
    let recall = hit as f64 / secrets as f64;
    let precision = hit as f64 / (hit as f64 + wrong as f64);
    let told = format!(
        "{secrets} secrets, recall {recall:.3}, precision {precision:.3}\nmissed:\n{}\nwrong:\n{}",
        missed.join("\n"),
        faults.join("\n")
    );
    println!("{told}");
    assert!(secrets >= 300 && recall >= 0.95 && precision >= 0.985, "{told}");
}
