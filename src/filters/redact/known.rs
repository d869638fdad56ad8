//! Values that were found once, looked for everywhere after.
//!
//! A pattern of a token sees `export KEY=…`; it does not see what `echo $KEY` prints, nor the same bytes in base64.
//! So the value of every secret is searched for, in the forms in which tools print it.
//!
//! The search looks at every third place of a text: of each form, the three windows of six bytes near its end are
//! in a table, so one of them stands at a place that is looked at. A bit field in front of the table keeps a text
//! without secrets at well over a gigabyte a second.

use super::book;
use base64::Engine as _;
use memchr::memmem::Finder;
use std::collections::{HashMap, HashSet};
use std::hash::BuildHasher;

/// Bytes of a window.
const WINDOW: usize = 6;
/// A text is looked at every so many bytes; a form has as many windows.
const STEP: usize = 3;
/// The shortest form that is followed.
const SHORTEST: usize = WINDOW + STEP - 1;
/// The longest value that is followed whole, in bytes.
const LONGEST: usize = 4096;
/// The longest value whose lines are followed.
const LONGEST_OF_LINES: usize = 64 << 10;
/// Bytes that all forms may take together.
const ROOM: usize = 6 << 20;
/// Values of which it is remembered that they were offered.
const MOST_SEEN: usize = 400_000;
/// The shortest piece of a form that a bound has left.
const PIECE: usize = 8;
/// The longest word at a cut that is looked at.
const LONGEST_WORD: usize = 2048;
/// Forms that may share a window; more would make a hostile text slow.
const SHARED: usize = 8;

/// A place of a text where a known value stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Match {
    pub(super) start: usize,
    pub(super) end: usize,
    /// Number of the value, from 0 in the order in which values came.
    pub(super) value: u32,
}

#[derive(Debug, Clone, Copy)]
struct Form {
    /// Where its bytes stand in `bytes`.
    start: u32,
    len: u32,
    value: u32,
}

#[derive(Debug, Clone, Copy)]
struct Value {
    start: u32,
    len: u32,
    rule: u16,
    /// Its hash in the book.
    key: u128,
}

#[derive(Debug, Clone, Copy)]
struct Window {
    form: u32,
    /// Where the window stands in the form.
    at: u32,
    /// The next window with the same bytes, counted from 1.
    next: u32,
}

/// The values known by now.
#[derive(Debug)]
pub(super) struct Known {
    bytes: Vec<u8>,
    forms: Vec<Form>,
    windows: Vec<Window>,
    table: HashMap<u64, u32, foldhash::fast::FixedState>,
    bits: Vec<u64>,
    values: Vec<Value>,
    rules: Vec<String>,
    /// Hashes of the values that were offered.
    seen: HashSet<u64, foldhash::fast::FixedState>,
    limit: usize,
    /// Forms by their first and by their last eight bytes, as far as they were asked for.
    heads: HashMap<[u8; PIECE], Vec<u32>, foldhash::fast::FixedState>,
    tails: HashMap<[u8; PIECE], Vec<u32>, foldhash::fast::FixedState>,
    /// Forms that are in `heads` and `tails`.
    cut_forms: usize,
    dots: Finder<'static>,
    ellipsis: Finder<'static>,
    /// Values that were not taken for want of room.
    pub(super) refused: u64,
}

const fn low48(word: u64) -> u64 {
    word & 0xffff_ffff_ffff
}

impl Default for Known {
    fn default() -> Known {
        Known::with_room(ROOM)
    }
}

impl Known {
    fn with_room(limit: usize) -> Known {
        Known {
            bytes: Vec::new(),
            forms: Vec::new(),
            windows: Vec::new(),
            table: HashMap::default(),
            bits: vec![0; 1 << 10],
            values: Vec::new(),
            rules: Vec::new(),
            seen: HashSet::default(),
            limit,
            heads: HashMap::default(),
            tails: HashMap::default(),
            cut_forms: 0,
            dots: Finder::new(b"..."),
            ellipsis: Finder::new("…".as_bytes()),
            refused: 0,
        }
    }

    /// How many values are followed.
    pub(super) fn len(&self) -> usize {
        self.values.len()
    }

    /// A value by its number.
    pub(super) fn value(&self, number: u32) -> book::Value<'_> {
        let value = self.values.get(number as usize);
        let bytes = value.and_then(|v| self.bytes.get(v.start as usize..(v.start + v.len) as usize));
        book::Value { bytes: bytes.unwrap_or_default(), key: value.map_or(0, |v| v.key) }
    }

    /// The rule that found a value.
    pub(super) fn rule(&self, number: u32) -> &str {
        let rule = self.values.get(number as usize).and_then(|v| self.rules.get(usize::from(v.rule)));
        rule.map_or("", String::as_str)
    }

    fn bit(&self, window: u64) -> (usize, u64) {
        // the length of the bit field is a power of two
        let hash = window.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
        let at = hash as usize & (self.bits.len() * 64 - 1);
        (at / 64, 1 << (at % 64))
    }

    /// Whether the value was offered before; from now on it was.
    pub(super) fn is_old(&mut self, value: &[u8]) -> bool {
        let hash = self.seen.hasher().hash_one(value);
        if self.seen.len() >= MOST_SEEN {
            return self.seen.contains(&hash);
        }
        !self.seen.insert(hash)
    }

    /// Takes the value of a secret, which [`Known::is_old`] has not seen before. One that could stand somewhere by
    /// chance is left.
    /// `sure`: its shape alone told it to be a secret, so that it is no word however plain its letters.
    pub(super) fn add(&mut self, value: &[u8], rule: &str, sure: bool) {
        if !is_random(value, sure) {
            return;
        }
        let number = self.values.len() as u32;
        let rule_at = self.rules.iter().position(|r| r == rule).unwrap_or(self.rules.len());
        let fits = value.len() <= LONGEST_OF_LINES && self.bytes.len() + value.len() <= self.limit;
        let (true, Ok(rule_at)) = (fits, u16::try_from(rule_at)) else {
            self.refused += 1;
            return;
        };
        if usize::from(rule_at) == self.rules.len() {
            self.rules.push(rule.to_owned());
        }
        let key = book::Value::new(value).key;
        self.values.push(Value {
            start: self.bytes.len() as u32,
            len: value.len() as u32,
            rule: rule_at,
            key,
        });
        self.bytes.extend_from_slice(value);
        let mut taken = false;
        if value.len() <= LONGEST {
            for form in forms(value) {
                taken |= self.add_form(&form, number);
            }
        }
        // of a key of many lines each line by itself: other programs print it with other things around
        if value.contains(&b'\n') || memchr::memmem::find(value, b"\\n").is_some() {
            let lines = value.split(|b| matches!(b, b'\n' | b'\\')).map(core_of_line);
            for line in lines.filter(|l| l.len() >= 40 && is_random(l, true)).take(128) {
                taken |= self.add_form(line, number);
            }
        }
        self.refused += u64::from(!taken);
    }

    fn add_form(&mut self, form: &[u8], value: u32) -> bool {
        if form.len() < SHORTEST || form.len() > 2 * LONGEST || self.bytes.len() + form.len() > self.limit {
            return false;
        }
        // near the end first: beginnings are often the same, and what is the same is slow to tell apart
        let last = form.len() - SHORTEST;
        let Some(base) = [last, last / 2, last / 4, 0].into_iter().find(|&base| self.is_rare(form, base))
        else {
            return false;
        };
        let number = self.forms.len() as u32;
        self.forms.push(Form { start: self.bytes.len() as u32, len: form.len() as u32, value });
        self.bytes.extend_from_slice(form);
        for at in base..base + STEP {
            let Some(window) = window_at(form, at) else { continue };
            let head = self.table.entry(window).or_insert(0);
            self.windows.push(Window { form: number, at: at as u32, next: *head });
            *head = self.windows.len() as u32;
            let (word, bit) = self.bit(window);
            if let Some(word) = self.bits.get_mut(word) {
                *word |= bit;
            }
        }
        // at most one bit in sixteen is set, up to 128 KiB, which stay in a cache
        if self.windows.len() * 16 > self.bits.len() * 64 && self.bits.len() < 1 << 14 {
            self.bits = vec![0; self.bits.len() * 4];
            let windows: Vec<u64> = self.table.keys().copied().collect();
            for window in windows {
                let (word, bit) = self.bit(window);
                if let Some(word) = self.bits.get_mut(word) {
                    *word |= bit;
                }
            }
        }
        true
    }

    /// Whether few forms share the windows at `base`, and the form itself is not among them.
    fn is_rare(&self, form: &[u8], base: usize) -> bool {
        (base..base + STEP).all(|at| {
            let Some(window) = window_at(form, at) else { return false };
            let mut next = self.table.get(&window).copied().unwrap_or(0);
            let mut count = 0;
            while let Some(found) = (next as usize).checked_sub(1).and_then(|n| self.windows.get(n)) {
                count += 1;
                next = found.next;
            }
            count < SHARED
        })
    }

    /// Appends where known values stand in `text`, in rising order of their ends' windows; they may overlap.
    pub(super) fn search(&self, text: &[u8], found: &mut Vec<Match>) {
        if self.forms.is_empty() || text.len() < SHORTEST {
            return;
        }
        let mut at = 0;
        while let Some(chunk) = text.get(at..at + 8).and_then(|c| <[u8; 8]>::try_from(c).ok()) {
            let window = low48(u64::from_le_bytes(chunk));
            let (word, bit) = self.bit(window);
            if self.bits.get(word).is_some_and(|w| w & bit != 0) {
                self.look(text, at, window, found);
            }
            at += STEP;
        }
        while let Some(window) = window_at(text, at) {
            self.look(text, at, window, found);
            at += STEP;
        }
    }

    /// Appends what of known values is left at the places where another program has cut a text: the beginning of
    /// one before an ellipsis, the end of one behind it; `ends`: the same at the ends of the text.
    pub(super) fn search_cut(&mut self, text: &[u8], ends: bool, found: &mut Vec<Match>) {
        if self.forms.is_empty() {
            return;
        }
        let mut places: Vec<(usize, usize)> = self.dots.find_iter(text).map(|at| (at, at + 3)).collect();
        places.extend(self.ellipsis.find_iter(text).map(|at| (at, at + "…".len())));
        if ends {
            places.extend([(0, 0), (text.len(), text.len())]);
        }
        if places.is_empty() {
            return;
        }
        self.index_cut();
        for (start, end) in places {
            self.cut_before(text, start, found);
            self.cut_behind(text, end, found);
        }
    }

    fn index_cut(&mut self) {
        for (number, form) in self.forms.iter().enumerate().skip(self.cut_forms) {
            let bytes =
                self.bytes.get(form.start as usize..(form.start + form.len) as usize).unwrap_or_default();
            if let (Some(head), Some(tail)) = (bytes.first_chunk(), bytes.last_chunk()) {
                for (map, piece) in [(&mut self.heads, head), (&mut self.tails, tail)] {
                    let forms = map.entry(*piece).or_default();
                    if forms.len() < SHARED {
                        forms.push(number as u32);
                    }
                }
            }
        }
        self.cut_forms = self.forms.len();
    }

    fn form(&self, number: u32) -> Option<(&[u8], u32)> {
        let form = self.forms.get(number as usize)?;
        Some((self.bytes.get(form.start as usize..(form.start + form.len) as usize)?, form.value))
    }

    fn cut_before(&self, text: &[u8], mark: usize, found: &mut Vec<Match>) {
        let blank = |byte: &u8| byte.is_ascii_whitespace() || *byte == b'[';
        let head = text.get(..mark).unwrap_or_default();
        let end = mark - head.iter().rev().take(4).take_while(|byte| blank(byte)).count();
        let head = text.get(end.saturating_sub(LONGEST_WORD)..end).unwrap_or_default();
        let word = head.iter().rev().take_while(|byte| !byte.is_ascii_whitespace()).count();
        let from = end - word;
        for start in from..(end + 1).saturating_sub(PIECE) {
            let Some(piece) = text.get(start..).and_then(|rest| rest.first_chunk()) else { return };
            for (form, value) in self.heads.get(piece).into_iter().flatten().filter_map(|&n| self.form(n)) {
                if text.get(start..end).is_some_and(|left| form.starts_with(left)) {
                    found.push(Match { start, end, value });
                    return;
                }
            }
        }
    }

    fn cut_behind(&self, text: &[u8], mark: usize, found: &mut Vec<Match>) {
        let blank = |byte: &u8| byte.is_ascii_whitespace() || *byte == b']';
        let rest = text.get(mark..).unwrap_or_default();
        let start = mark + rest.iter().take(4).take_while(|byte| blank(byte)).count();
        let rest = text.get(start..text.len().min(start + LONGEST_WORD)).unwrap_or_default();
        let word = rest.iter().take_while(|byte| !byte.is_ascii_whitespace()).count();
        for end in (start + PIECE..=start + word).rev() {
            let Some(piece) = text.get(..end).and_then(|head| head.last_chunk()) else { return };
            for (form, value) in self.tails.get(piece).into_iter().flatten().filter_map(|&n| self.form(n)) {
                if text.get(start..end).is_some_and(|left| form.ends_with(left)) {
                    found.push(Match { start, end, value });
                    return;
                }
            }
        }
    }

    #[cold]
    fn look(&self, text: &[u8], at: usize, window: u64, found: &mut Vec<Match>) {
        let mut next = self.table.get(&window).copied().unwrap_or(0);
        while let Some(entry) = (next as usize).checked_sub(1).and_then(|n| self.windows.get(n)) {
            next = entry.next;
            let Some(form) = self.forms.get(entry.form as usize) else { continue };
            let Some(start) = at.checked_sub(entry.at as usize) else { continue };
            let end = start + form.len as usize;
            let bytes = self.bytes.get(form.start as usize..(form.start + form.len) as usize);
            if text.get(start..end).is_some_and(|t| Some(t) == bytes) {
                found.push(Match { start, end, value: form.value });
            }
        }
    }
}

fn window_at(bytes: &[u8], at: usize) -> Option<u64> {
    let six = bytes.get(at..at + WINDOW)?;
    let mut word = [0; 8];
    for (to, from) in word.iter_mut().zip(six) {
        *to = *from;
    }
    Some(u64::from_le_bytes(word))
}

/// The base64 letters of a line, without a diff's sign, line numbers and arrows before them.
fn core_of_line(line: &[u8]) -> &[u8] {
    let letter = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/' | b'=');
    let end = line.iter().rposition(letter).map_or(0, |n| n + 1);
    let line = line.get(..end).unwrap_or_default();
    let start = line.iter().rposition(|b| !letter(b)).map_or(0, |n| n + 1);
    let core = line.get(start..).unwrap_or_default();
    // `n` of an escaped line feed, and the `+` of a diff, are no part of it: full lines have 64 or 76 letters
    match core.len() {
        65 | 77 => core.get(1..).unwrap_or_default(),
        _ => core,
    }
}

/// The value in the forms in which it is likely to be printed, each once.
fn forms(value: &[u8]) -> Vec<Vec<u8>> {
    let mut all = vec![value.to_vec()];
    let mut push = |form: Vec<u8>| {
        if !all.contains(&form) {
            all.push(form);
        }
    };
    let mut escaped = Vec::new();
    if super::text::escape(value, &mut escaped).is_some() {
        let mut twice = Vec::new();
        super::text::escape(&escaped, &mut twice);
        push(escaped);
        push(twice);
    }
    for (keep, upper) in [(b"".as_slice(), true), (b"", false), (b"/", true)] {
        push(percent(value, keep, upper));
    }
    push(hex(value, false));
    push(hex(value, true));
    for text in in_base64(value) {
        let url: Vec<u8> = text
            .iter()
            .map(|&b| match b {
                b'+' => b'-',
                b'/' => b'_',
                other => other,
            })
            .collect();
        push(text);
        push(url);
    }
    all
}

/// What base64 of any text that holds the value holds, for each of the three places at which it can begin: only the
/// letters that the value alone decides.
pub(super) fn in_base64(value: &[u8]) -> [Vec<u8>; 3] {
    [0usize, 1, 2].map(|lead| {
        let mut shifted = vec![0; lead];
        shifted.extend_from_slice(value);
        let head = (lead * 8).div_ceil(6);
        let tail = match shifted.len() % 3 {
            0 => 0,
            1 => 3,
            _ => 2,
        };
        let text = base64::engine::general_purpose::STANDARD.encode(&shifted);
        text.as_bytes().get(head..text.len() - tail).unwrap_or_default().to_vec()
    })
}

fn percent(value: &[u8], keep: &[u8], upper: bool) -> Vec<u8> {
    let mut out = Vec::with_capacity(value.len());
    for &b in value {
        if b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_' | b'~') || keep.contains(&b) {
            out.push(b);
        } else {
            out.push(b'%');
            out.extend_from_slice(&hex(&[b], upper));
        }
    }
    out
}

pub(super) fn hex(value: &[u8], upper: bool) -> Vec<u8> {
    let digits = if upper { b"0123456789ABCDEF" } else { b"0123456789abcdef" };
    let digit = |n: u8| digits.get(usize::from(n)).copied().unwrap_or(b'0');
    value.iter().flat_map(|&b| [digit(b >> 4), digit(b & 15)]).collect()
}

/// Whether a value is so unlikely to stand anywhere by chance that it may be replaced wherever it stands. A password
/// that is a word is not: `production` is a word of half the lines of a session. `sure`: it is known to be no word.
pub(super) fn is_random(value: &[u8], sure: bool) -> bool {
    if value.len() < SHORTEST {
        return false;
    }
    let head = value.get(..value.len().min(256)).unwrap_or_default();
    let mut counts = [0u32; 256];
    for &b in head {
        if let Some(count) = counts.get_mut(usize::from(b)) {
            *count += 1;
        }
    }
    let len = head.len() as f64;
    let entropy: f64 = counts
        .iter()
        .filter(|&&n| n > 0)
        .map(|&n| {
            let share = f64::from(n) / len;
            -share * share.log2()
        })
        .sum();
    // changes between small letters, capitals and digits; a capital before small letters is a word's beginning
    let class = |b: &u8| match b {
        b'a'..=b'z' => 1,
        b'A'..=b'Z' => 2,
        b'0'..=b'9' => 3,
        _ => 0,
    };
    let (mut last, mut changes, mut marks) = (0, 0, 0);
    for b in head {
        let now = class(b);
        if now == 0 {
            marks += u32::from(matches!(
                b,
                b'!' | b'#' | b'$' | b'%' | b'&' | b'*' | b'+' | b'@' | b'^' | b'~' | b'?'
            ));
            continue;
        }
        changes += u32::from(last != 0 && last != now && (last, now) != (2, 1));
        last = now;
    }
    let bits = entropy * len;
    (bits >= 22.0 && changes + marks >= 3) || (sure && value.len() >= 16 && bits >= 44.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use base64::engine::general_purpose::STANDARD;
    use proptest::prelude::*;

    fn found(known: &Known, text: &[u8]) -> Vec<(usize, usize, u32)> {
        let mut all = Vec::new();
        known.search(text, &mut all);
        let mut all: Vec<_> = all.into_iter().map(|m| (m.start, m.end, m.value)).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    #[test]
    fn what_a_bound_left_is_found() {
        let secret = b"p4ssW0rd9xQzT7vLk2";
        let mut known = Known::default();
        known.add(secret, "r", false);
        let mut left = |text: &str| {
            let mut found = Vec::new();
            known.search_cut(text.as_bytes(), text.ends_with(' '), &mut found);
            found.iter().map(|m| text[m.start..m.end].to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(left("X=p4ssW0rd9xQ[… 9 of 99 bytes left out …]\nzT7vLk2 and"), ["p4ssW0rd9xQ"]);
        assert_eq!(left("X=p4ssW0rd9\n[…]\n9xQzT7vLk2\" and"), ["p4ssW0rd9", "9xQzT7vLk2"]);
        assert_eq!(left("p4ssW0rd..."), ["p4ssW0rd"]);
        assert_eq!(left("W0rd9xQzT7vLk2 and X=p4ssW0rd9xQ "), ["W0rd9xQzT7vLk2", "p4ssW0rd9xQ"]);
        for text in ["X=p4ssW0rd9 and …", "p4ssW0r…", "…ssW0rd9x", "p4ssW0rd9"] {
            assert!(left(text).is_empty(), "{text}");
        }
    }

    #[test]
    fn every_form_at_every_offset() {
        let secret = b"p4ss/W0rd+9x\"Q";
        let mut known = Known::default();
        known.add(secret, "r", false);
        for pad in 0..7 {
            let before = "é.".repeat(pad) + &"x".repeat(pad);
            for form in
                ["p4ss/W0rd+9x\"Q", "p4ss/W0rd+9x\\\"Q", "p4ss%2FW0rd%2B9x%22Q", "p4ss%2fW0rd%2b9x%22Q"]
            {
                let text = format!("{before}{form} end");
                let at = before.len();
                assert_eq!(found(&known, text.as_bytes()), [(at, at + form.len(), 0)], "{text}");
            }
            let coded = STANDARD.encode([&vec![b'u'; pad], secret.as_slice(), b"tail"].concat());
            assert_eq!(found(&known, coded.as_bytes()).len(), 1, "{coded}");
            let text = format!("{before}{}", String::from_utf8_lossy(&hex(secret, true)));
            assert_eq!(found(&known, text.as_bytes()).len(), 1);
        }
    }

    #[test]
    fn words_are_not_followed() {
        for word in [
            "production",
            "admin1234",
            "my-secret-2024",
            "aaaaaaaaaaaaaaaaaaaa",
            "x7",
            "Hunter-Two",
            "MyCompanyName",
        ] {
            assert!(!is_random(word.as_bytes(), false), "{word}");
        }
        for value in ["x7Kp9mQ2", "q8#vT!2mZr4w", "0f3a9c7be1d24a6f", "dGhpcyBpcyBhIHRlc3Q0Zg=="] {
            assert!(is_random(value.as_bytes(), false), "{value}");
        }
    }

    #[test]
    fn what_has_the_shape_of_a_secret_is_followed_though_its_letters_are_plain() {
        let value = ["ASIA", "KSTYOGRQGVJTRWF3"].concat();
        assert!(!is_random(value.as_bytes(), false) && is_random(value.as_bytes(), true));
        assert!(!is_random(b"aaaaaaaaaaaaaaaaaaaaaaaa", true) && !is_random(b"short", true));
    }

    #[test]
    fn room_is_bounded_and_what_is_refused_is_counted() {
        let mut known = Known::with_room(10_000);
        for n in 0..1000u32 {
            known.add(format!("a{n:07}Zq9-Kx{}", n.wrapping_mul(2_654_435_761)).as_bytes(), "r", false);
        }
        assert!(known.bytes.len() <= 10_000 && known.refused > 0 && known.len() > 10);
        assert_eq!(known.value(3).bytes, b"a0000003Zq9-Kx3668339987");
        assert_eq!(known.rule(3), "r");
    }

    #[test]
    fn many_with_one_end_stay_fast_and_are_still_found() {
        let mut known = Known::default();
        let value = |n: u32| format!("{n:08x}-x1y2z3-the-very-same-end-of-all");
        for n in 0..100u32 {
            known.add(value(n.wrapping_mul(0x9e37_79b9)).as_bytes(), "r", false);
        }
        for n in 0..100u32 {
            assert!(!found(&known, value(n.wrapping_mul(0x9e37_79b9)).as_bytes()).is_empty());
        }
        assert!(known.table.len() > 10);
    }

    #[test]
    fn lines_of_a_key_are_found_alone() {
        let line = |n: u8| {
            (0..64)
                .map(|i| char::from(if i % 3 == n { b'4' } else { b'A' + (i % 26 + n) % 26 }))
                .collect::<String>()
        };
        let key = format!("-----BEGIN X-----\\n{}\\n{}\\n-----END X-----", line(1), line(2));
        let mut known = Known::default();
        known.add(key.as_bytes(), "r", false);
        assert_eq!(known.len(), 1);
        assert_eq!(found(&known, format!("  7\u{2192}{}\r", line(2)).as_bytes()).len(), 1);
    }

    proptest! {
        #[test]
        fn nothing_is_missed_that_a_plain_search_finds(
            values in prop::collection::vec("[a-f0-9]{8,12}", 1..20),
            text in "[a-f0-9]{0,60}",
            pick in 0usize..20,
        ) {
            let mut known = Known::default();
            for value in &values {
                known.add(value.as_bytes(), "r", false);
            }
            let text = format!("{text}{}{text}", values[pick % values.len()]);
            for value in values.iter().filter(|v| is_random(v.as_bytes(), false)) {
                for (at, _) in text.match_indices(value.as_str()) {
                    prop_assert!(found(&known, text.as_bytes()).iter().any(|&(s, e, _)| s <= at && e >= at + value.len()));
                }
            }
        }
    }
}
