//! What the user said: every prompt, and which of them a later one took back.

use super::findings::{self, is_heading, plain};
use super::terms;
use super::words::{is_offer, is_reversal, is_rule, is_wide, without_reversals};
use super::work::one_line;
use crate::filters::redact::detect::{cut_after, cut_before};
use crate::filters::typed::{CUT, Lines};
use std::collections::{HashMap, HashSet};

/// Of an ordinary prompt, so many bytes at the beginning and at the end are kept.
const HEAD: usize = 480;
const TAIL: usize = 180;

/// The task and the newest prompt are kept up to this many bytes.
const WHOLE: usize = 6_000;

/// A sentence up to this length can be taken back by a later one.
const SHORT: usize = 300;

/// Most lines of a prompt of which sentences can be taken back.
const LINES: usize = 4;

/// Prompts compared with each other: the newest ones.
const COMPARED: usize = 400;

/// One prompt.
#[derive(Debug)]
pub(super) struct Prompt {
    /// Its number in the session.
    pub(super) seq: u64,
    /// Its text, cut.
    pub(super) text: String,
    /// Whether it stays in the conversation as it is.
    pub(super) kept: bool,
    /// Whether it followed an interruption or a refused call.
    pub(super) after_stop: bool,
    /// What of the model's it answers, where its own words say too little: a question, an offer, a choice.
    pub(super) asked: Option<String>,
}

/// Longest prompt that may say too little by itself, in bytes, and in words.
const ANSWER: usize = 60;
const ANSWER_WORDS: usize = 7;

/// Of a template without words of the user, so many bytes are kept.
const TEMPLATE: usize = 500;

/// Longest question that is told with its answer, in bytes.
const ASKED: usize = 260;

/// What `text` answers of the message before it, in one line; `None` where it speaks for itself.
pub(super) fn asked(text: &str, before: Option<&str>) -> Option<String> {
    let text = text.trim();
    let first = text.split(|c: char| !c.is_alphanumeric()).next().unwrap_or("").to_lowercase();
    let agreeing = [
        "yes", "yeah", "yep", "ok", "okay", "sure", "no", "go", "do", "please", "both", "好", "好的", "是",
        "可以", "对", "行",
    ];
    let short = text.len() <= ANSWER && text.split_whitespace().count() <= ANSWER_WORDS;
    let choice = first.len() == 1 && text.len() <= 12;
    if !(short && (agreeing.contains(&first.as_str()) || choice || text.chars().count() <= 4))
        || text.ends_with(['?', '？'])
    {
        return None;
    }
    let before = before?;
    let lines: Vec<String> =
        before.lines().filter(|l| !is_heading(l)).map(plain).filter(|l| !l.is_empty()).collect();
    let asks = |s: &&str| s.ends_with(['?', '？']) || is_offer(s);
    let chosen = if choice { option(before, &first) } else { None };
    // what asks nothing is not answered
    let found = lines.iter().enumerate().rev().find_map(|(n, line)| {
        Some((n, findings::split(line).into_iter().rev().map(str::trim).find(asks)?.to_owned()))
    });
    let Some((n, question)) = found else { return chosen };
    let mut told = clipped(&one_line(&question), ASKED * 2 / 3, ASKED / 3);
    if told.ends_with([':', '：', ')']) {
        let listed = lines.iter().skip(n + 1).take(4).cloned().collect::<Vec<_>>().join("; ");
        told = clipped(&format!("{told} {listed}"), ASKED, 0);
    }
    if let Some(option) = chosen {
        told.push_str(" — ");
        told.push_str(&option);
    }
    Some(told)
}

/// The line that offers this choice: "A: …", "2. …", "Option B - …".
fn option(before: &str, mark: &str) -> Option<String> {
    before.lines().map(str::trim).find_map(|line| {
        let bare = line.trim_start_matches(|c: char| !c.is_alphanumeric()).replace("**", "");
        let bare = bare.strip_prefix("Option ").unwrap_or(&bare);
        let rest = bare.get(mark.len()..)?;
        let named = bare.get(..mark.len()).is_some_and(|m| m.eq_ignore_ascii_case(mark));
        (named && rest.starts_with([':', '.', ')', '：', '、', '-', '|', ' ']) && rest.len() > 3)
            .then(|| clipped(&one_line(bare), ASKED * 2 / 3, ASKED / 3))
    })
}

/// The prompts of a session, bounded in bytes.
#[derive(Debug, Default)]
pub(super) struct Prompts {
    list: Vec<Prompt>,
    lines: Lines,
    bytes: usize,
    limit: usize,
}

impl Prompts {
    /// Keeps at most about `limit` bytes of text.
    pub(super) fn new(limit: usize) -> Prompts {
        Prompts { limit, ..Prompts::default() }
    }

    pub(super) fn push(&mut self, mut prompt: Prompt) {
        // the one before is no longer the newest
        if self.list.len() > 1
            && let Some(last) = self.list.last_mut()
        {
            let before = last.text.len();
            last.text = clipped(&last.text, HEAD, TAIL);
            self.bytes -= before - last.text.len().min(before);
        }
        // of a template what the user typed, else what no earlier prompt holds
        let typed = self.lines.apart(&prompt.text, 1);
        self.lines.note(&prompt.text);
        prompt.text = match (typed.words.is_empty(), typed.template) {
            (false, _) => typed.words,
            (true, true) => format!("[template] {}", clipped(&typed.rest, TEMPLATE, 0)),
            (true, false) => typed.rest,
        };
        prompt.text = clipped(&prompt.text.replace(CUT, "[…]"), WHOLE * 3 / 4, WHOLE / 4);
        self.bytes += prompt.text.len();
        self.list.push(prompt);
        if self.bytes > self.limit && self.list.len() > 8 {
            self.forget();
        }
    }

    /// Lets go of old long prompts, then of old ones; never of the first and the newest.
    fn forget(&mut self) {
        let count = self.list.len();
        let mut order: Vec<usize> = (1..count.saturating_sub(4)).collect();
        order.sort_by_key(|i| {
            let p = self.list.get(*i);
            let (len, rule) = p.map_or((0, false), |p| (p.text.len(), is_rule(&p.text)));
            (rule && len <= SHORT, len <= SHORT, *i)
        });
        let mut gone = HashSet::new();
        for i in order {
            if self.bytes <= self.limit / 4 * 3 {
                break;
            }
            self.bytes -= self.list.get(i).map_or(0, |p| p.text.len());
            gone.insert(i);
        }
        let mut at = 0;
        self.list.retain(|_| {
            at += 1;
            !gone.contains(&(at - 1))
        });
    }

    pub(super) fn all(&self) -> &[Prompt] {
        &self.list
    }

    /// The share of wide characters among the letters of all prompts, in percent.
    pub(super) fn wide(&self) -> usize {
        let (mut wide, mut letters) = (0, 0);
        for c in self.list.iter().flat_map(|p| p.text.chars()).filter(|c| c.is_alphabetic()) {
            letters += 1;
            wide += usize::from(is_wide(c));
        }
        // a Chinese word has about two characters, an English one five
        wide * 250 / (letters + wide * 3 / 2).max(1)
    }

    /// For each prompt of which a later one took something back, by its place in the list: what is left of it.
    pub(super) fn superseded(&self) -> HashMap<usize, String> {
        let from = self.list.len().saturating_sub(COMPARED);
        let mut parts: Vec<Part<'_>> = Vec::new();
        for (prompt, found) in self.list.iter().enumerate().skip(from) {
            // what is pasted, logs and lists, is no ruling
            if found.text.len() > 2 * SHORT || found.text.lines().nth(LINES).is_some() {
                continue;
            }
            for text in sentences(&found.text) {
                let terms = Terms::of(text);
                parts.push(Part { prompt, text, gone: false, terms });
            }
        }
        let mut frequency: HashMap<u64, u32> = HashMap::new();
        for word in parts.iter().flat_map(|part| &part.terms.all) {
            *frequency.entry(*word).or_default() += 1;
        }
        let count = parts.len().max(1) as f64;
        let weight = |word: &u64| (count / f64::from(frequency.get(word).copied().unwrap_or(1))).ln() + 0.1;
        // only what sets something can take back or be taken back
        let sets: Vec<usize> = (0..parts.len())
            .filter(|at| parts.get(*at).is_some_and(|p| !p.terms.values.is_empty() && p.text.len() <= SHORT))
            .collect();
        let mut touched: HashMap<usize, String> = HashMap::new();
        for (n, old) in sets.iter().enumerate() {
            let Some(before) = parts.get(*old) else { continue };
            let later = sets.iter().skip(n + 1).filter_map(|new| parts.get(*new));
            let mut later = later.filter(|new| new.prompt > before.prompt);
            if later.any(|new| new.terms.replaces(&before.terms, weight, is_reversal(new.text))) {
                touched.insert(before.prompt, String::new());
                if let Some(before) = parts.get_mut(*old) {
                    before.gone = true;
                }
            }
        }
        for part in parts.iter().filter(|part| !part.gone) {
            if let Some(left) = touched.get_mut(&part.prompt) {
                left.push_str(part.text);
            }
        }
        touched
    }
}

/// A sentence of a prompt.
#[derive(Debug)]
struct Part<'a> {
    prompt: usize,
    text: &'a str,
    /// Whether a later one took it back.
    gone: bool,
    terms: Terms<'a>,
}

/// The sentences of a text; together they are the text.
fn sentences(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut start = 0;
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let next = chars.peek().map(|(_, c)| *c);
        let ends = match c {
            '.' | '!' | '?' | ';' => next.is_some_and(char::is_whitespace),
            '\n' | '。' | '！' | '？' | '；' => true,
            _ => false,
        };
        if ends {
            let end = at + c.len_utf8();
            found.extend(text.get(start..end));
            start = end;
        }
    }
    found.extend(text.get(start..).filter(|rest| !rest.is_empty()));
    found
}

/// The words of a sentence.
#[derive(Debug)]
struct Terms<'a> {
    all: HashSet<u64>,
    /// Of them, the shortest ones, which mostly carry little meaning.
    small: HashSet<u64>,
    /// Numbers, codes, names, and what stands in quotes: what a setting can be set to.
    values: HashSet<&'a str>,
    /// How many of them are pairs of wide characters, which overlap.
    pairs: usize,
}

/// The words of a text that are not of wide characters.
fn split(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !(c.is_alphanumeric() || "_-./@:".contains(c)) || is_wide(c))
        .map(|word| word.trim_matches(|c| "-.:/".contains(c) && !word.starts_with("--")))
        .filter(|word| !word.is_empty())
}

impl<'a> Terms<'a> {
    fn of(text: &'a str) -> Terms<'a> {
        let mut terms =
            Terms { all: HashSet::new(), small: HashSet::new(), values: HashSet::new(), pairs: 0 };
        let is_value = |word: &str| {
            word.bytes().any(|b| b.is_ascii_digit() || matches!(b, b'_' | b'/'))
                || word.bytes().skip(1).any(|b| b.is_ascii_uppercase())
                || word.starts_with("--")
        };
        terms.values.extend(split(text).filter(|word| is_value(word)));
        let plain = without_reversals(text);
        for word in split(&plain) {
            let key = terms::key(word);
            terms.all.insert(key);
            if word.len() <= 3 && !is_value(word) {
                terms.small.insert(key);
            }
        }
        let mut quoted = text.split(['`', '"', '“', '”', '「', '」']);
        quoted.next();
        while let (Some(inside), outside) = (quoted.next(), quoted.next()) {
            if outside.is_some() && !inside.is_empty() && inside.len() <= 60 {
                terms.values.insert(inside);
                terms.all.insert(terms::key(&inside.to_lowercase()));
            }
        }
        let mut before: Option<char> = None;
        for c in plain.chars() {
            let wide = is_wide(c) && c.is_alphabetic();
            if let (Some(b), true) = (before, wide) {
                terms.all.insert(terms::key(&format!("{b}{c}")));
                terms.pairs += 1;
            }
            before = wide.then_some(c);
        }
        terms
    }

    /// Whether this says of the same thing something else than `old` did: most of the words that carry meaning are
    /// there again, with a new value beside the old one, or, where a word takes something back, in its place.
    /// (Without such a word "never touch a" and "never touch b" would be one.)
    fn replaces(&self, old: &Terms<'_>, weight: impl Fn(&u64) -> f64, reversal: bool) -> bool {
        let gone = old.values.difference(&self.values).count();
        let came = self.values.difference(&old.values).count();
        let named = old.values.intersection(&self.values).count();
        if came == 0 || came > 2 || gone > 1 || (gone == 0 && named == 0) || (gone == 1 && !reversal) {
            return false;
        }
        let values: HashSet<u64> =
            old.values.difference(&self.values).map(|v| terms::key(&v.to_lowercase())).collect();
        let (mut shared, mut all) = (0.0, 0.0);
        for word in old.all.iter().filter(|word| !values.contains(word)) {
            let weight = weight(word) * if old.small.contains(word) { 0.3 } else { 1.0 };
            all += weight;
            if self.all.contains(word) {
                shared += weight;
            }
        }
        // one more character beside a pair makes two others
        let needed = match (reversal, old.pairs > 0) {
            (true, true) => 0.35,
            (true, false) => 0.5,
            (false, _) => 0.6,
        };
        all > 0.0 && shared / all >= needed && (gone == 1 || shared > 0.0)
    }
}

/// A text with its middle left out where it is longer than `head` and `tail` bytes together; never through a secret.
pub(super) fn clipped(text: &str, head: usize, tail: usize) -> String {
    let text = text.trim();
    if text.len() <= head + tail + 8 {
        return text.to_owned();
    }
    let start = cut_before(None, text, head);
    let head = text.get(..start).unwrap_or("").trim_end();
    if tail == 0 {
        return format!("{head} […]");
    }
    let end = cut_after(None, text, text.len() - tail).max(start);
    format!("{head} […] {}", text.get(end..).unwrap_or("").trim_start())
}

/// The last place at or before `at` where a character begins.
pub(super) fn floor(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|i| text.is_char_boundary(*i)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prompts(texts: &[&str]) -> Prompts {
        let mut all = Prompts::new(100_000);
        for (n, text) in texts.iter().enumerate() {
            let text = (*text).to_owned();
            all.push(Prompt { seq: n as u64 + 1, text, kept: false, after_stop: false, asked: None });
        }
        all
    }

    fn superseded(texts: &[&str]) -> Vec<(usize, String)> {
        let mut found: Vec<_> = prompts(texts).superseded().into_iter().collect();
        found.sort_unstable();
        found
    }

    #[test]
    fn a_later_value_takes_the_earlier_ones_place() {
        let filler = ["please look at the parser", "go on", "run the tests again", "thanks, and the docs?"];
        let with = |pair: [&'static str; 2]| {
            let mut texts = filler.to_vec();
            texts.extend(pair);
            superseded(&texts)
        };
        let gone = [(4, String::new())];
        assert_eq!(with(["The port of the server is 8080.", "Change the port of the server to 9090."]), gone);
        assert_eq!(
            with(["Use `redis_one` as the cache.", "No, not `redis_one`: the cache is `redis_two`."]),
            gone
        );
        assert_eq!(with(["端口用 8080。", "计划有变，端口改成 9090。"]), gone);
        assert_eq!(
            with(["Set the retry limit to 5_a, please.", "For the retry limit take 9_b from now on."]),
            gone
        );
        assert_eq!(
            with(["Correction, the cache folder is a_1.", "Correction, the preview port is b_2."]),
            []
        );
        assert_eq!(
            with(["For the cache folder take a_1 from now on.", "For the branch take b_2 from now on."]),
            []
        );
        // a sentence goes, the others stay
        assert_eq!(
            with([
                "Look at src/a_b.rs first. The port is p_8080.internal.\nNever touch c_d.",
                "Run it again. I changed my mind: the port is 9090, not p_8080.internal."
            ]),
            [(4, "Look at src/a_b.rs first.\nNever touch c_d.".to_owned())]
        );
        // other things with other values stay
        assert_eq!(
            with(["Never touch vendor/a_one.", "Never touch vendor/b_two and write tests for it."]),
            []
        );
        assert_eq!(with(["The port of the server is 8080.", "The name of the queue is jobs_2."]), []);
    }

    #[test]
    fn the_first_and_the_newest_stay_when_there_are_too_many() {
        let mut all = Prompts::new(20_000);
        for seq in 1..=10_000 {
            let text = format!("prompt {seq} {}", "x".repeat(100));
            all.push(Prompt { seq, text, kept: false, after_stop: false, asked: None });
        }
        let seqs: Vec<u64> = all.all().iter().map(|p| p.seq).collect();
        assert_eq!((seqs.first(), seqs.last()), (Some(&1), Some(&10_000)));
        assert!(all.bytes <= 20_000 && seqs.len() > 50);
    }

    #[test]
    fn a_long_text_loses_its_middle() {
        assert_eq!(clipped("漢字漢字漢字漢字", 4, 4), "漢 […] 字");
        assert_eq!(clipped(" short ", 2, 2), "short");
        assert_eq!(clipped("one two three four five", 12, 0), "one two […]");
        // a part of a key is no key that a later stage could find
        let key = ["gh", "p_", "k3Vt9QbX1mZr7LwYc5Hs", "2DfJ8NaPu4Ee6GiT"].concat();
        assert_eq!(clipped(&format!("use {key} for the ponds of the whole county"), 20, 0), "use […]");
    }
}
