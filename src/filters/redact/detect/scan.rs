//! One text while it is looked at.

use super::Confidence;
use super::assign::Names;
use super::bytes::{Runs, Set, begins, byte, ends, part, run_end, starts};
use super::lines;
use super::value;
use crate::filters::redact::rules::{Part, Rule, Shape, Test};
use memchr::memmem;

/// A hit before overlapping ones are joined.
#[derive(Debug, Clone, Copy)]
pub(super) struct Found {
    pub(super) start: usize,
    pub(super) end: usize,
    /// Its rule's place in the table; rules of the user follow.
    pub(super) rule: usize,
    pub(super) confidence: Confidence,
}

/// The next place of a mark that is looked for again and again, kept so that a text is searched once.
#[derive(Debug, Default, Clone, Copy)]
struct Next {
    from: usize,
    /// Where it stands; `None` when there is no more.
    at: Option<usize>,
    known: bool,
}

/// What the matchers of all rules see and say.
pub(crate) struct Scan<'t> {
    /// The text.
    pub(crate) text: &'t [u8],
    table: &'t [Rule],
    active: &'t [bool],
    runs: Runs,
    found: &'t mut Vec<Found>,
    /// Keywords before this offset stand inside a secret of a known shape.
    pub(super) covered: usize,
    pem_end: Next,
    /// The end of the last values that were judged, and how many ended there.
    judged: (usize, u32),
    /// Where the head of the table begins that was looked at last, and where its rows end.
    pub(super) columns: (usize, usize),
    /// The rule that looked far last, and how far.
    looked: (usize, usize),
    /// What words in names say.
    pub(super) names: &'t Names,
}

impl<'t> Scan<'t> {
    pub(super) fn new(
        text: &'t [u8],
        table: &'t [Rule],
        active: &'t [bool],
        names: &'t Names,
        found: &'t mut Vec<Found>,
    ) -> Scan<'t> {
        Scan {
            text,
            table,
            active,
            runs: Runs::default(),
            found,
            covered: 0,
            pem_end: Next::default(),
            judged: (0, 0),
            columns: (usize::MAX, 0),
            looked: (usize::MAX, 0),
            names,
        }
    }

    /// Where the run of a set that covers `at` ends.
    pub(crate) fn run(&mut self, set: Set, at: usize) -> usize {
        self.runs.end(self.text, set, at)
    }

    /// Whether a rule runs.
    pub(super) fn runs_rule(&self, rule: usize) -> bool {
        self.active.get(rule).copied().unwrap_or(false)
    }

    /// A rule by its place.
    pub(super) fn rule(&self, place: usize) -> Option<&'t Rule> {
        self.table.get(place)
    }

    /// Whether a rule has looked at what stands here before, from an earlier keyword.
    pub(super) fn seen(&self, rule: usize, at: usize) -> bool {
        self.looked.0 == rule && at < self.looked.1
    }

    /// A rule has looked at all before `until`.
    pub(super) fn looked(&mut self, rule: usize, until: usize) {
        self.looked = (rule, until);
    }

    /// A secret of a known shape: keywords inside it need no look.
    pub(crate) fn hit(&mut self, rule: usize, start: usize, end: usize, confidence: Confidence) {
        if self.loose(rule, start, end, confidence) {
            self.covered = self.covered.max(end);
        }
    }

    /// A secret that another rule may name better.
    pub(crate) fn loose(&mut self, rule: usize, start: usize, end: usize, confidence: Confidence) -> bool {
        let runs = start < end && end <= self.text.len() && self.runs_rule(rule);
        if runs {
            self.found.push(Found { start, end, rule, confidence });
        }
        runs
    }

    /// The same for a rule by its id.
    pub(crate) fn named(&mut self, id: &str, start: usize, end: usize, confidence: Confidence) {
        if let Some(rule) = self.table.iter().position(|rule| rule.id == id) {
            self.loose(rule, start, end, confidence);
        }
    }

    /// Whether one more value that ends here may be judged: hostile texts put a keyword before every byte.
    pub(super) fn may_judge(&mut self, end: usize) -> bool {
        if self.judged.0 != end {
            self.judged = (end, 0);
        }
        self.judged.1 += 1;
        self.judged.1 <= 4
    }

    /// Where the next `-----END` from `at` on stands.
    pub(super) fn next_end(&mut self, at: usize) -> Option<usize> {
        let next = self.pem_end;
        let valid = next.known && at >= next.from && next.at.is_none_or(|end| end >= at);
        if !valid {
            let rest = self.text.get(at..).unwrap_or_default();
            self.pem_end =
                Next { from: at, at: memmem::find(rest, b"-----END").map(|n| n + at), known: true };
        }
        self.pem_end.at
    }

    /// A token of parts, the first of which is the keyword that stands at `at..end`.
    pub(super) fn parts(&mut self, rule: usize, at: usize, end: usize) {
        let Some(&Rule { shape: Shape::Parts(parts), test, confidence, .. }) = self.table.get(rule) else {
            return;
        };
        if !begins(self.text, at) {
            return;
        }
        let text = self.text;
        let whole = fit(text, parts, end, |set, from| self.run(set, from));
        let to = match whole {
            Ok(to) => to,
            Err(stop) => stop,
        };
        if let Some(further) = lines::further(text, at, to, whole.is_ok(), |joined| {
            let stop = fit(joined, parts, end - at, |set, from| run_end(joined, set, from)).ok()?;
            let body = part(joined, end - at, stop);
            (ends(joined, stop) && tested(test, confidence, body).is_some()).then_some(stop)
        }) {
            return self.hit(rule, at, further, confidence);
        }
        if whole.is_err() {
            // what a bound left of it
            let body = part(text, end, to);
            if confidence == Confidence::High && end - at >= 4 && lines::is_cut(text, to) && looks_cut(body) {
                self.loose(rule, at, to, Confidence::Medium);
            }
            return;
        }
        if !ends(text, to) {
            return;
        }
        if let Some(confidence) = tested(test, confidence, part(self.text, end, to)) {
            // A shape that others have, too, may be named better by a keyword inside.
            match confidence {
                Confidence::High => self.hit(rule, at, to, confidence),
                _ => _ = self.loose(rule, at, to, confidence),
            }
        }
    }
}

/// Where a token ends whose parts begin at `from`; else where what there is of it does.
fn fit(
    text: &[u8],
    parts: &[Part],
    from: usize,
    mut run: impl FnMut(Set, usize) -> usize,
) -> Result<usize, usize> {
    let mut to = from;
    for part in parts {
        match *part {
            Part::Text(word) => {
                if !starts(text, to, word.as_bytes()) {
                    return Err(to);
                }
                to += word.len();
            }
            Part::Maybe(word) => {
                if starts(text, to, word.as_bytes()) {
                    to += word.len();
                }
            }
            Part::Run(set, least, most) => {
                let stop = run(set, to);
                if stop - to < least || stop - to > most {
                    return Err(stop);
                }
                to = stop;
            }
        }
    }
    while matches!(byte(text, to.wrapping_sub(1)), b'.') && to > from {
        to -= 1;
    }
    Ok(to)
}

/// Whether the beginning of a token is more than what a manual shows of one.
fn looks_cut(body: &[u8]) -> bool {
    let mix = value::Mix::of(body);
    (8..=512).contains(&body.len()) && mix.kinds() >= 2 && !value::words(body) && !value::placeholder(body)
}

/// What a test leaves of a rule's confidence in a token without its prefix.
pub(super) fn tested(test: Test, confidence: Confidence, body: &[u8]) -> Option<Confidence> {
    match test {
        Test::Nothing => Some(confidence),
        Test::Entropy(least) => {
            let good = value::entropy(body) >= least && !value::placeholder(body) && !value::plain(body);
            good.then_some(confidence)
        }
        Test::Mixed => {
            let mix = value::Mix::of(body);
            let good = mix.upper > 0
                && mix.lower > 0
                && value::entropy(body) >= 3.0
                && !value::placeholder(body)
                && !value::surely_words(body);
            good.then_some(confidence)
        }
        Test::Checksum => {
            if value::entropy(body) < 3.0 || value::placeholder(body) || value::plain(body) {
                return None;
            }
            Some(if checksum_holds(body) { confidence } else { confidence.min(Confidence::Medium) })
        }
    }
}

/// Whether the last six bytes are the CRC-32 of those before, in base 62: GitHub and npm write tokens so
/// (GitHub's engineering blog, April 2021).
fn checksum_holds(body: &[u8]) -> bool {
    const DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    let Some(split) = body.len().checked_sub(6) else { return false };
    let (random, sum) = body.split_at(split);
    let mut rest = !random.iter().fold(u32::MAX, |sum, &byte| {
        (0..8).fold(sum ^ u32::from(byte), |sum, _| (sum >> 1) ^ (0xedb8_8320 & (sum & 1).wrapping_neg()))
    });
    sum.iter().rev().all(|&byte| {
        let digit = DIGITS.get((rest % 62) as usize);
        rest /= 62;
        digit == Some(&byte)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums() {
        // CRC-32 of "123456789" is 0xcbf43926 = 3421780262, "3JZE7W" in this base: worked out by hand.
        let mut digits = Vec::new();
        let mut rest = 0xcbf4_3926u32;
        for _ in 0..6 {
            let digit = (rest % 62) as u8;
            digits.push(match digit {
                0..=9 => b'0' + digit,
                10..=35 => b'A' + digit - 10,
                _ => b'a' + digit - 36,
            });
            rest /= 62;
        }
        digits.reverse();
        let body = [b"123456789".as_slice(), &digits].concat();
        assert!(checksum_holds(&body));
        let mut wrong = body.clone();
        wrong[0] = b'2';
        assert!(!checksum_holds(&wrong) && !checksum_holds(b"abc"));
    }
}
