//! Every rule hits its examples and misses its counter-examples.
//!
//! No text of this folder looks like a key: the letters of examples are made up when the test runs.

use super::{Rule, Shape, table};
use crate::filters::redact::detect::{Choice, Class, Confidence, Detector};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use std::collections::HashSet;

/// Placeholders without a number of letters.
const MADE: &[&str] = &[
    "crc",
    "u",
    "name",
    "basic",
    "jwt",
    "pem",
    "pem-openssh",
    "pem-escaped",
    "pem-twice",
    "pem-crlf",
    "pem-numbered",
    "pem-diff",
    "pem-cut",
    "pem-tail",
    "pem-base64",
];

/// Makes up letters; the same seed gives the same ones.
struct Maker(u64);

impl Maker {
    fn next(&mut self) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize
    }

    fn of(&mut self, letters: &str, count: usize) -> String {
        let letters: Vec<char> = letters.chars().collect();
        (0..count).map(|_| letters[self.next() % letters.len()]).collect()
    }

    fn base64(&mut self, count: usize) -> String {
        self.of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", count)
    }

    fn alnum(&mut self, count: usize) -> String {
        self.of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789", count)
    }

    /// 30 letters and the checksum of GitHub and npm.
    fn summed(&mut self) -> String {
        let body = self.alnum(30);
        let mut sum = u32::MAX;
        for byte in body.bytes() {
            sum ^= u32::from(byte);
            for _ in 0..8 {
                sum = if sum & 1 == 1 { (sum >> 1) ^ 0xedb8_8320 } else { sum >> 1 };
            }
        }
        let mut rest = !sum;
        let mut tail = Vec::new();
        for _ in 0..6 {
            tail.push(
                b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"[(rest % 62) as usize],
            );
            rest /= 62;
        }
        tail.reverse();
        body + std::str::from_utf8(&tail).unwrap()
    }

    /// A private key of a kind, with something before each line and something between lines.
    fn key(&mut self, kind: &str, before: impl Fn(usize) -> String, between: &str, whole: bool) -> String {
        let edge = |word: &str| format!("-----{word} {kind}PRIVATE KEY-----");
        let mut lines = vec![edge("BEGIN")];
        lines.extend((0..12).map(|_| self.base64(64)));
        lines.push(self.base64(22) + "==");
        if whole {
            lines.push(edge("END"));
        }
        let lines: Vec<String> = lines
            .iter()
            .enumerate()
            .map(|(n, line)| if n == 0 { line.clone() } else { before(n) + line })
            .collect();
        lines.join(between)
    }

    /// What a placeholder of an example stands for.
    fn make(&mut self, what: &str) -> String {
        let (kind, count) =
            what.split_once(':').map_or((what, 0), |(kind, count)| (kind, count.parse().unwrap()));
        let none = |_: usize| String::new();
        match kind {
            "an" => self.alnum(count),
            "al" => self.of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz", count),
            "w" => {
                self.of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_", count - 2)
                    + &self.alnum(2)
            }
            "lo" => self.of("abcdefghijklmnopqrstuvwxyz0123456789", count),
            "hx" => self.of("0123456789abcdef", count),
            "UPHEX" => self.of("0123456789ABCDEF", count),
            "UP" => self.of("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789", count),
            "b32" => self.of("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", count),
            "bech" => self.of("QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L", count),
            "d" | "n" => self.of("123456789", count),
            "b64" => self.base64(count),
            "pw" => {
                self.of("abcdefghijkmnpqrstuvwxyz", count - 6)
                    + &self.of("23456789", 2)
                    + "#"
                    + &self.of("ABCDEFGHJK", 2)
                    + &self.of("xyz", 1)
            }
            "crc" => self.summed(),
            "u" => [8, 4, 4, 4, 12].map(|n| self.of("0123456789abcdef", n)).join("-"),
            "name" => {
                self.of("bcdfgklmnprst", 1)
                    + &self.of("aeiou", 1)
                    + &self.of("bdfgklmnprst", 2)
                    + &self.of("aeio", 1)
                    + &self.of("lnrs", 1)
            }
            "words" => (0..count).map(|_| self.make("name")).collect::<Vec<_>>().join(" "),
            "basic" => {
                let login = format!("svc:{}", self.alnum(18));
                STANDARD.encode(login)
            }
            "jwt" => {
                let head = URL_SAFE_NO_PAD.encode("{\"alg\":\"HS256\",\"typ\":\"JWT\"}");
                let body = URL_SAFE_NO_PAD.encode(format!("{{\"sub\":\"{}\"}}", self.of("123456789", 10)));
                format!("{head}.{body}.{}", self.make("w:43"))
            }
            "pem" => self.key("RSA ", none, "\n", true),
            "pem-openssh" => self.key("OPENSSH ", none, "\n", true),
            "pem-escaped" => self.key("EC ", none, "\\n", true),
            "pem-twice" => self.key("", none, "\\\\n", true),
            "pem-crlf" => self.key("", none, "\r\n", true),
            "pem-numbered" => self.key("", |n| format!("{n:6}→"), "\n", true),
            "pem-diff" => self.key("", |_| "+".to_owned(), "\n", true),
            "pem-tail" => {
                let key = self.key("", none, "\n", true);
                key.lines().skip(5).collect::<Vec<_>>().join("\n")
            }
            "pem-cut" => self.key("", none, "\n", false),
            "pem-base64" => {
                let key = self.key("", none, "\n", true);
                STANDARD.encode(key)
            }
            _ => panic!("an example asks for {what:?}"),
        }
    }

    /// An example with its placeholders made up, and where the secret in it stands.
    fn example(&mut self, template: &str) -> (String, usize, usize) {
        let (mut text, mut marks) = (String::new(), Vec::new());
        let mut rest = template;
        while let Some(c) = rest.chars().next() {
            rest = &rest[c.len_utf8()..];
            match c {
                '«' | '»' => marks.push(text.len()),
                '{' => match rest.split_once('}') {
                    Some((what, tail))
                        if what.contains(':') && !what.contains(['\"', ' ', '\''])
                            || MADE.contains(&what) =>
                    {
                        text += &self.make(what);
                        rest = tail;
                    }
                    _ => text.push(c),
                },
                _ => text.push(c),
            }
        }
        match marks[..] {
            [start, end] => (text, start, end),
            _ => (text.clone(), 0, text.len()),
        }
    }
}

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

/// The README lists every rule.
#[test]
fn the_readme_names_every_rule() {
    let readme = include_str!("README.md");
    for rule in table() {
        assert!(readme.contains(&format!("`{}`", rule.id)), "{} is missing", rule.id);
    }
}
