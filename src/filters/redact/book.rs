//! Which placeholder stands for which value.
//!
//! `<REDACTED:rule:N>`: `N` counts the values of a rule in the order in which they come; with a salt it is the first
//! 8 hexadecimal digits of HMAC-SHA256(salt, value), so that many files agree without a map. `N.2`, `N.3` … are other
//! spellings of value `N` (its base64, a part of it, other escapes), so that each can be put back as it was.
//!
//! A text of the input may already look like a placeholder, from an earlier run or by chance:
//!
//! - it is in the map of earlier runs: it is one of them and stays;
//! - its number is still free: it stays, and the number is never given away;
//! - its number was given to a value in this run: it is replaced by a `<REDACTED:literal:N>`, and so comes back.
//!
//! So a second run changes nothing, and restoring is exact.
//!
//! Held: about 60 bytes for each value. Two values of the same 128-bit hash would share a placeholder; with a
//! million values the chance is below 10^-26.

use super::Key;
use crate::json::{Kind, Tape, write_string};
use crate::record::{Error, Result};
use crate::stream::Sink;
use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hasher};
use std::rc::Rc;

/// The mark before the digits of a number: no body of a JSON string holds such a byte.
const NUMBER: u8 = 0;

/// How a number is spelled in a [`Book`], which knows bodies of strings else.
pub(super) fn as_number(digits: &[u8]) -> Vec<u8> {
    [&[NUMBER], digits].concat()
}

/// The digits of a spelling that is a number's.
pub(super) fn digits(spelling: &[u8]) -> Option<&[u8]> {
    spelling.strip_prefix(&[NUMBER])
}

/// How every placeholder begins.
pub(super) const BEGINNING: &[u8] = b"<REDACTED:";

/// The rule of texts that only looked like placeholders.
const LITERAL: &str = "literal";

/// The parts of a placeholder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Placeholder<'a> {
    pub(super) rule: &'a str,
    /// The number, in decimal or hexadecimal digits.
    number: &'a str,
    /// Bytes of the whole.
    pub(super) len: usize,
}

/// Reads the placeholder at the start of `text`.
pub(super) fn read(text: &[u8]) -> Option<Placeholder<'_>> {
    let head = text.get(..text.len().min(120))?;
    let body = head.strip_prefix(BEGINNING)?;
    let end = body.iter().position(|&b| b == b'>')?;
    let words = std::str::from_utf8(body.get(..end)?).ok()?;
    let (rule, number) = words.split_once(':')?;
    let named = !rule.is_empty()
        && rule
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'-' | b'_' | b'.'));
    let (whole, part) = number.split_once('.').unwrap_or((number, "2"));
    let numbered = !whole.is_empty()
        && whole.len() <= 10
        && whole.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
        && !part.is_empty()
        && part.len() <= 10
        && part.bytes().all(|b| b.is_ascii_digit());
    (named && numbered).then_some(Placeholder { rule, number: whole, len: BEGINNING.len() + end + 1 })
}

/// Where in `text` placeholders stand.
pub(super) fn all(text: &[u8]) -> impl Iterator<Item = (usize, Placeholder<'_>)> {
    memchr::memmem::find_iter(text, BEGINNING).filter_map(|at| Some((at, read(text.get(at..)?)?)))
}

#[derive(Debug, Clone, Copy)]
struct Given {
    number: u32,
    rule: u16,
    /// How many spellings have a placeholder of their own.
    spellings: u16,
    /// The spelling that the placeholder without a part stands for.
    first: u64,
}

#[derive(Debug, Default)]
struct Numbers {
    /// The last number given.
    last: u32,
    /// The last number of earlier runs.
    loaded: u32,
    /// Free numbers that the input already uses.
    reserved: HashSet<u32>,
}

/// Gives each value its placeholder.
pub(super) struct Book<'a> {
    salt: Option<Key>,
    journal: Option<&'a mut dyn Sink>,
    rules: Vec<Rc<str>>,
    numbers: HashMap<String, Numbers>,
    values: HashMap<u128, Given>,
    spellings: HashMap<u128, u16>,
}

/// 128 bits of two hashes with fixed keys.
fn hash(parts: &[&[u8]]) -> u128 {
    let half = |seed: u8| {
        let mut hasher = DefaultHasher::new();
        hasher.write_u8(seed);
        for part in parts {
            hasher.write_usize(part.len());
            hasher.write(part);
        }
        hasher.finish()
    };
    u128::from(half(1)) << 64 | u128::from(half(2))
}

/// A value and its hash, which is made once for a value that is met often.
#[derive(Debug, Clone, Copy)]
pub(super) struct Value<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) key: u128,
}

impl<'a> Value<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Value<'a> {
        Value { bytes, key: hash(&[bytes]) }
    }
}

/// A placeholder that was given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Name {
    /// The whole placeholder.
    pub(super) text: String,
    pub(super) rule: Rc<str>,
    /// The value had none before.
    pub(super) new: bool,
}

impl<'a> Book<'a> {
    /// An empty book. New entries are handed to `journal`.
    pub(super) fn new(salt: Option<Key>, journal: Option<&'a mut dyn Sink>) -> Book<'a> {
        Book {
            salt,
            journal,
            rules: Vec::new(),
            numbers: HashMap::new(),
            values: HashMap::new(),
            spellings: HashMap::new(),
        }
    }

    /// Takes an entry of an earlier run.
    ///
    /// # Errors
    /// It is of another form, or there are too many rules.
    pub(super) fn load(&mut self, entry: &Entry<'_>) -> Result<()> {
        let placeholder = read(entry.placeholder.as_bytes())
            .filter(|p| p.len == entry.placeholder.len())
            .ok_or_else(|| Error::shape("no placeholder"))?;
        let number: u32 =
            placeholder.number.parse().map_err(|_| Error::shape("a placeholder without number"))?;
        let numbers = self.numbers.entry(placeholder.rule.to_owned()).or_default();
        numbers.last = numbers.last.max(number);
        numbers.loaded = numbers.loaded.max(number);
        let Some(spelling) = entry.spelling else { return Ok(()) };
        let rule = self.rule(placeholder.rule)?;
        let text = entry.placeholder.trim_end_matches('>');
        let part = text.rsplit_once(':').and_then(|(_, n)| n.split_once('.')).map(|(_, part)| part);
        match part {
            None => {
                let first = hash(&[spelling]) as u64;
                self.values.insert(hash(&[entry.of]), Given { number, rule, spellings: 1, first });
            }
            Some(part) => {
                let part: u16 = part.parse().map_err(|_| Error::shape("a placeholder without part"))?;
                self.spellings.insert(hash(&[&hash(&[entry.of]).to_le_bytes(), spelling]), part);
                if let Some(given) = self.values.get_mut(&hash(&[entry.of])) {
                    given.spellings = given.spellings.max(part);
                }
            }
        }
        Ok(())
    }

    fn rule(&mut self, name: &str) -> Result<u16> {
        let at = self.rules.iter().position(|r| **r == *name).unwrap_or(self.rules.len());
        if at == self.rules.len() {
            self.rules.push(name.into());
        }
        u16::try_from(at).map_err(|_| Error::failed("more than 65536 rules"))
    }

    /// The placeholder for `spelling`, the body of a JSON string as it stands in the line, which is `value` or a
    /// form of it. `follow`: the value is a secret, to be looked for in later runs, too.
    ///
    /// # Errors
    /// The map cannot be written.
    pub(super) fn name(
        &mut self,
        rule: &str,
        value: Value<'_>,
        spelling: &[u8],
        follow: impl FnOnce() -> bool,
    ) -> Result<Name> {
        let Value { bytes: value, key } = value;
        let first = if spelling == value { key } else { hash(&[spelling]) } as u64;
        let known = self.values.get(&key).copied();
        let given = match known {
            Some(given) => given,
            None => {
                let number = match &self.salt {
                    Some(salt) => u32::from_be_bytes(salt.mac4(value)),
                    None => {
                        let numbers = self.numbers.entry(rule.to_owned()).or_default();
                        numbers.last = numbers.last.checked_add(1).ok_or_else(too_many)?;
                        while numbers.reserved.contains(&numbers.last) {
                            numbers.last = numbers.last.checked_add(1).ok_or_else(too_many)?;
                        }
                        numbers.last
                    }
                };
                let given = Given { number, rule: self.rule(rule)?, spellings: 1, first };
                self.values.insert(key, given);
                given
            }
        };
        let rule = self.rules.get(usize::from(given.rule)).cloned().unwrap_or_else(|| "".into());
        let new = known.is_none();
        if self.salt.is_some() {
            return Ok(Name { text: format!("<REDACTED:{rule}:{:08x}>", given.number), rule, new });
        }
        let whole = format!("<REDACTED:{rule}:{}>", given.number);
        if given.first == first {
            if new {
                self.note(&whole, value, spelling, follow())?;
            }
            return Ok(Name { text: whole, rule, new });
        }
        let spelled = hash(&[&key.to_le_bytes(), spelling]);
        if let Some(part) = self.spellings.get(&spelled) {
            return Ok(Name { text: format!("<REDACTED:{rule}:{}.{part}>", given.number), rule, new });
        }
        let part = given.spellings.checked_add(1).ok_or_else(too_many)?;
        if let Some(given) = self.values.get_mut(&key) {
            given.spellings = part;
        }
        self.spellings.insert(spelled, part);
        let text = format!("<REDACTED:{rule}:{}.{part}>", given.number);
        self.note(&text, value, spelling, false)?;
        Ok(Name { text, rule, new })
    }

    fn note(&mut self, placeholder: &str, value: &[u8], spelling: &[u8], follow: bool) -> Result<()> {
        let Some(journal) = &mut self.journal else { return Ok(()) };
        journal.put(&Entry { placeholder, spelling: Some(spelling), of: value, follow }.to_line())
    }

    /// What becomes of a text of the input that looks like a placeholder: `Some` is what takes its place.
    ///
    /// # Errors
    /// The map cannot be written.
    pub(super) fn met(&mut self, text: &[u8]) -> Result<Option<Name>> {
        if self.salt.is_some() {
            return Ok(None);
        }
        let Some(placeholder) = read(text) else { return Ok(None) };
        // hexadecimal numbers are of a salt, and stand in no map
        let Ok(number) = placeholder.number.parse::<u32>() else { return Ok(None) };
        let whole = text.get(..placeholder.len).unwrap_or_default();
        if !self.numbers.contains_key(placeholder.rule) {
            self.numbers.insert(placeholder.rule.to_owned(), Numbers::default());
        }
        let Some(numbers) = self.numbers.get_mut(placeholder.rule) else { return Ok(None) };
        if number <= numbers.loaded || numbers.reserved.contains(&number) {
            return Ok(None);
        }
        if number > numbers.last {
            numbers.reserved.insert(number);
            if let Some(journal) = &mut self.journal {
                let whole = String::from_utf8_lossy(whole);
                journal
                    .put(&Entry { placeholder: &whole, spelling: None, of: b"", follow: false }.to_line())?;
            }
            return Ok(None);
        }
        self.name(LITERAL, Value::new(whole), whole, || false).map(Some)
    }
}

fn too_many() -> Error {
    Error::failed("more values than there are numbers")
}

/// A line of the map.
///
/// `{"placeholder":…,"value":…,"of":…,"follow":true}`: `value` is the text that the placeholder stands for, spelled
/// as in the line it came from; `of` is the value that it is a form of, where it is not the value itself. Without
/// `value`, the placeholder stood in an input and means itself. Bytes that are no text stand in `base64` and
/// `of_base64`, a number that a string took the place of in `number`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Entry<'a> {
    pub(super) placeholder: &'a str,
    /// The body of a JSON string; bytes as they are when they are no UTF-8.
    pub(super) spelling: Option<&'a [u8]>,
    /// The value, decoded.
    pub(super) of: &'a [u8],
    pub(super) follow: bool,
}

impl Entry<'_> {
    fn to_line(self) -> Vec<u8> {
        use base64::Engine as _;
        use base64::engine::general_purpose::STANDARD;
        let mut line = b"{\"placeholder\":".to_vec();
        write_string(&mut line, self.placeholder);
        if let Some(digits) = self.spelling.and_then(digits) {
            line.extend_from_slice(b",\"number\":");
            line.extend_from_slice(digits);
        } else if let Some(spelling) = self.spelling {
            if std::str::from_utf8(spelling).is_ok() {
                line.extend_from_slice(b",\"value\":\"");
                line.extend_from_slice(spelling);
                line.push(b'"');
            } else {
                line.extend_from_slice(b",\"base64\":\"");
                line.extend_from_slice(STANDARD.encode(spelling).as_bytes());
                line.push(b'"');
            }
            let mut plain = Vec::new();
            super::text::decode(spelling, &mut plain);
            if plain != self.of {
                match std::str::from_utf8(self.of) {
                    Ok(of) => {
                        line.extend_from_slice(b",\"of\":");
                        write_string(&mut line, of);
                    }
                    Err(_) => {
                        line.extend_from_slice(b",\"of_base64\":\"");
                        line.extend_from_slice(STANDARD.encode(self.of).as_bytes());
                        line.push(b'"');
                    }
                }
            }
        }
        if self.follow {
            line.extend_from_slice(b",\"follow\":true");
        }
        line.push(b'}');
        line
    }
}

/// The line of a map that holds the key of its fingerprints.
pub fn map_key_line(key: &str) -> Vec<u8> {
    let mut line = b"{\"key\":".to_vec();
    write_string(&mut line, key);
    line.push(b'}');
    line
}

/// The key that a map holds.
///
/// # Errors
/// It is too short.
pub fn map_key(map: &[u8]) -> Result<Option<Key>> {
    let first = map.split(|&b| b == b'\n').next().unwrap_or_default();
    let mut tape = Tape::new();
    let key = tape.parse(first).ok().and_then(|line| line.get("key")?.text());
    key.map(|key| Key::new(key.decode().as_bytes())).transpose()
}

/// Reads a map, entry by entry.
///
/// # Errors
/// A line that is no entry; it is named by its number, never by what it holds.
pub(super) fn entries(map: &[u8], mut take: impl FnMut(&Entry<'_>) -> Result<()>) -> Result<()> {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    let mut tape = Tape::new();
    let mut room = Vec::new();
    for (number, line) in map.split(|&b| b == b'\n').enumerate() {
        if line.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        let wrong = |_| Error::input(format!("map:{}", number + 1), "this is no line of a map");
        let value = tape.parse(line).map_err(|_| wrong(()))?;
        if number == 0 && value.get("key").is_some() {
            continue;
        }
        let Some(placeholder) = value.get("placeholder").and_then(|p| p.text()) else {
            return Err(wrong(()));
        };
        let coded = |key: &str| -> Result<Option<Vec<u8>>> {
            let Some(text) = value.get(key).and_then(|v| v.text()) else { return Ok(None) };
            STANDARD.decode(text.raw()).map(Some).map_err(|_| wrong(()))
        };
        let counted = value.get("number").filter(|v| v.kind() == Kind::Number).map(|v| as_number(v.raw()));
        let (bytes, of_bytes) = (coded("base64")?.or(counted), coded("of_base64")?);
        let spelling = match &bytes {
            Some(bytes) => Some(bytes.as_slice()),
            None => value.get("value").and_then(|v| v.text()).map(|t| t.raw()),
        };
        room.clear();
        match (&of_bytes, value.get("of").and_then(|v| v.text()), spelling) {
            (Some(of), ..) => room.extend_from_slice(of),
            (None, Some(of), _) => super::text::decode(of.raw(), &mut room),
            (None, None, Some(spelling)) => match digits(spelling) {
                Some(digits) => room.extend_from_slice(digits),
                None => super::text::decode(spelling, &mut room),
            },
            (None, None, None) => {}
        }
        let follow = value.get("follow").and_then(|v| v.bool()).unwrap_or(false);
        take(&Entry { placeholder: &placeholder.decode(), spelling, of: &room, follow })
            .map_err(|_| wrong(()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(book: &mut Book<'_>, rule: &str, value: &str) -> String {
        book.name(rule, Value::new(value.as_bytes()), value.as_bytes(), || true).unwrap().text
    }

    #[test]
    fn the_same_value_has_the_same_placeholder() {
        let mut book = Book::new(None, None);
        assert_eq!(name(&mut book, "a", "x"), "<REDACTED:a:1>");
        assert_eq!(name(&mut book, "b", "y"), "<REDACTED:b:1>");
        assert_eq!(name(&mut book, "b", "x"), "<REDACTED:a:1>");
        assert_eq!(name(&mut book, "a", "z"), "<REDACTED:a:2>");
        let other = |book: &mut Book<'_>, spelling: &[u8]| {
            book.name("a", Value::new(b"x"), spelling, || true).unwrap().text
        };
        assert_eq!(other(&mut book, b"\\u0078"), "<REDACTED:a:1.2>");
        assert_eq!(other(&mut book, b"eA=="), "<REDACTED:a:1.3>");
        assert_eq!(other(&mut book, b"\\u0078"), "<REDACTED:a:1.2>");
    }

    #[test]
    fn a_salt_makes_runs_agree() {
        let key = Key::new(b"0123456789abcdef").unwrap();
        let mut one = Book::new(Some(key.clone()), None);
        let mut two = Book::new(Some(key), None);
        name(&mut two, "a", "other");
        let first = name(&mut one, "a", "x");
        assert_eq!(first, name(&mut two, "a", "x"));
        assert_eq!(read(first.as_bytes()).unwrap().len, first.len());
        let other = Key::new(b"another-key-0123").unwrap();
        assert_ne!(first, name(&mut Book::new(Some(other), None), "a", "x"));
    }

    #[test]
    fn look_alikes_keep_their_numbers_or_become_literals() {
        let mut lines: Vec<Vec<u8>> = Vec::new();
        let mut book = Book::new(None, Some(&mut lines));
        assert_eq!(book.met(b"<REDACTED:a:1>").unwrap(), None);
        assert_eq!(name(&mut book, "a", "x"), "<REDACTED:a:2>");
        assert_eq!(book.met(b"<REDACTED:a:2>").unwrap().unwrap().text, "<REDACTED:literal:1>");
        assert_eq!(book.met(b"<REDACTED:a:1>").unwrap(), None);
        let map = lines.join(&b'\n');
        let mut next = Book::new(None, None);
        entries(&map, |entry| next.load(entry)).unwrap();
        // all of them are now placeholders of an earlier run
        for text in ["<REDACTED:a:1>", "<REDACTED:a:2>", "<REDACTED:literal:1>"] {
            assert_eq!(next.met(text.as_bytes()).unwrap(), None, "{text}");
        }
        assert_eq!(name(&mut next, "a", "x"), "<REDACTED:a:2>");
        assert_eq!(name(&mut next, "a", "y"), "<REDACTED:a:3>");
    }

    #[test]
    fn entries_come_back_as_they_were() {
        type Line = (&'static str, Option<&'static [u8]>, &'static [u8], bool);
        let all: [Line; 5] = [
            ("<REDACTED:a:1>", Some(b"a\\n\\u0041\\/"), b"a\nA/", true),
            ("<REDACTED:a:1.2>", Some(b"eA=="), b"x", false),
            ("<REDACTED:a:2>", Some(b"\xff\xfe"), b"\xff\xfe", false),
            ("<REDACTED:a:2.2>", Some(b"ok"), b"\xff", false),
            ("<REDACTED:b:7>", None, b"", false),
        ];
        let mut map = Vec::new();
        for (placeholder, spelling, of, follow) in all {
            map.extend(Entry { placeholder, spelling, of, follow }.to_line());
            map.push(b'\n');
        }
        let mut seen = 0;
        entries(&map, |entry| {
            let (placeholder, spelling, of, follow) = all[seen];
            assert_eq!(*entry, Entry { placeholder, spelling, of, follow });
            seen += 1;
            Ok(())
        })
        .unwrap();
        assert_eq!(seen, 5);
        for wrong in ["x", "{}", "[1]", "{\"placeholder\":\"x\",\"value\":\"SECRET\"}"] {
            let mut book = Book::new(None, None);
            let error = entries(wrong.as_bytes(), |e| book.load(e)).unwrap_err().to_string();
            assert!(error.contains("map:1") && !error.contains("SECRET"), "{error}");
        }
    }

    #[test]
    fn only_whole_placeholders_are_read() {
        for text in ["<REDACTED:a:1>", "<REDACTED:a-b_c.d2:0af3>", "<REDACTED:a:1.2>"] {
            assert_eq!(read(text.as_bytes()).map(|p| p.len), Some(text.len()));
        }
        for text in [
            "<REDACTED:a:>",
            "<REDACTED::1>",
            "<REDACTED:a:1",
            "<REDACTED:A:1>",
            "<REDACTED:a:1.>",
            "<redacted:a:1>",
        ] {
            assert_eq!(read(text.as_bytes()), None, "{text}");
        }
        assert_eq!(
            all(b"<REDACTED:<REDACTED:a:1>>").map(|(at, p)| (at, p.len)).collect::<Vec<_>>(),
            [(10, 14)]
        );
    }
}
