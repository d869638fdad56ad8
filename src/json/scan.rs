//! A validating JSON scanner that leaves values where they are.
//!
//! One pass over a line checks every byte against RFC 8259 and notes where values begin and end. Nothing is
//! decoded and nothing copied: stages look at a few short fields and splice long strings from line to line
//! as the escaped bytes they are. A general parser costs two to three times as much on session lines,
//! because it decodes text that nobody looks at (see benches/README.md).
//!
//! Grammar only: numbers keep their spelling, duplicate keys are kept (see [`Value::duplicate_key`]), and
//! there is no limit of depth, because nothing here recurses.

use super::{escape, simd};
use std::borrow::Cow;
use std::collections::HashSet;

/// What stands at a place of the line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// `{…}`
    Object,
    /// `[…]`
    Array,
    /// `"…"`
    String,
    /// A number.
    Number,
    /// `true`
    True,
    /// `false`
    False,
    /// `null`
    Null,
}

#[derive(Debug, Clone, Copy)]
struct Node {
    start: u32,
    end: u32,
    /// Index of the node behind this value and all it holds.
    next: u32,
    kind: Kind,
    flags: u8,
}

/// Why a line is no JSON value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A byte that cannot stand here; the offset is in bytes from the start of the line.
    #[error("no JSON at byte {0}")]
    Syntax(usize),
    /// A whole value, then more bytes from this offset on.
    #[error("more than one value: the second begins at byte {0}")]
    Trailing(usize),
    /// The bytes are not UTF-8 from this offset on.
    #[error("no UTF-8 at byte {0}")]
    Utf8(usize),
    /// Longer than 4 GiB.
    #[error("a line of over 4 GiB")]
    TooLong,
}

/// The places of the values of one line; keep one and use it for every line.
#[derive(Debug, Default)]
pub struct Tape {
    nodes: Vec<Node>,
    open: Vec<Open>,
    lone: bool,
}

#[derive(Debug, Clone, Copy)]
struct Open {
    node: u32,
    object: bool,
}

/// Node number of containers whose inside is checked but not noted.
const UNNOTED: u32 = u32::MAX;

impl Tape {
    /// An empty tape.
    pub fn new() -> Tape {
        Tape::default()
    }

    /// Scans a line that holds exactly one value.
    pub fn parse<'a>(&'a mut self, line: &'a [u8]) -> Result<Value<'a>, Error> {
        self.parse_opaque(line, &[])
    }

    /// Like [`Tape::parse`], but containers that are values of a key in `opaque` are only checked: their
    /// inside cannot be looked at, which saves the notes where it may be large and nobody looks.
    pub fn parse_opaque<'a>(&'a mut self, line: &'a [u8], opaque: &[&str]) -> Result<Value<'a>, Error> {
        let end = self.scan(line, opaque)?;
        match skip_space(line, end) {
            rest if rest < line.len() => Err(Error::Trailing(rest)),
            _ => Ok(Value { tape: self, line, at: 0 }),
        }
    }

    /// Like [`Tape::parse`] for a line that was scanned before: its encoding is not checked again. Nothing
    /// relies on the encoding for safety; a line that did change meanwhile reads as text with U+FFFD.
    pub fn parse_again<'a>(&'a mut self, line: &'a [u8]) -> Result<Value<'a>, Error> {
        let end = self.scan_text(line, &[])?;
        match skip_space(line, end) {
            rest if rest < line.len() => Err(Error::Trailing(rest)),
            _ => Ok(Value { tape: self, line, at: 0 }),
        }
    }

    /// Scans the value at the start of `line` and says where it ends; what follows is not looked at.
    pub fn parse_prefix<'a>(&'a mut self, line: &'a [u8]) -> Result<(Value<'a>, usize), Error> {
        let end = self.scan(line, &[])?;
        Ok((Value { tape: self, line, at: 0 }, end))
    }

    fn scan(&mut self, line: &[u8], opaque: &[&str]) -> Result<usize, Error> {
        if simdutf8::basic::from_utf8(line).is_err() {
            // the fast check names no place; the slow one does
            let at = std::str::from_utf8(line).map_or_else(|e| e.valid_up_to(), |_| 0);
            return Err(Error::Utf8(at));
        }
        self.scan_text(line, opaque)
    }

    fn scan_text(&mut self, line: &[u8], opaque: &[&str]) -> Result<usize, Error> {
        self.nodes.clear();
        self.open.clear();
        self.lone = false;
        if u32::try_from(line.len()).is_err() {
            return Err(Error::TooLong);
        }
        let mut i = skip_space(line, 0);
        // whether the next value's inside is to be noted
        let mut hide_next = false;
        loop {
            // a value begins at i
            let hidden = matches!(self.open.last(), Some(o) if o.node == UNNOTED);
            let start = i;
            let (kind, mut flags) = match line.get(i) {
                Some(b'"') => {
                    let (end, flags) = simd::string_end(line, i + 1).map_err(Error::Syntax)?;
                    self.lone |= flags & simd::LONE != 0;
                    i = end + 1;
                    (Kind::String, flags)
                }
                Some(b'{') => (Kind::Object, 0),
                Some(b'[') => (Kind::Array, 0),
                Some(b't') => (literal(line, &mut i, b"true", Kind::True)?, 0),
                Some(b'f') => (literal(line, &mut i, b"false", Kind::False)?, 0),
                Some(b'n') => (literal(line, &mut i, b"null", Kind::Null)?, 0),
                Some(b'-' | b'0'..=b'9') => {
                    i = number(line, i)?;
                    (Kind::Number, 0)
                }
                _ => return Err(Error::Syntax(i)),
            };
            if matches!(kind, Kind::Object | Kind::Array) {
                let hide = hidden || std::mem::take(&mut hide_next);
                let mut node = UNNOTED;
                if !hidden {
                    if hide {
                        flags |= OPAQUE;
                    }
                    let at = self.note(start, kind, flags);
                    if !hide {
                        node = at;
                    } else {
                        // remembered by its place: the node is the last one when the container closes
                        self.open.push(Open { node: UNNOTED - 1, object: false });
                    }
                }
                self.open.push(Open { node, object: kind == Kind::Object });
                i = skip_space(line, i + 1);
                let close = if kind == Kind::Object { b'}' } else { b']' };
                if line.get(i) != Some(&close) {
                    if kind == Kind::Object {
                        i = self.key(line, i, opaque, &mut hide_next)?;
                    }
                    continue;
                }
            } else {
                hide_next = false;
                if !hidden {
                    let at = self.note(start, kind, flags);
                    self.finish(at, i);
                }
                i = skip_space(line, i);
            }
            // values end here, as many as close
            loop {
                let Some(&Open { node, object }) = self.open.last() else { return Ok(i) };
                match line.get(i) {
                    Some(b',') => {
                        i = skip_space(line, i + 1);
                        if object {
                            i = self.key(line, i, opaque, &mut hide_next)?;
                        }
                        break;
                    }
                    Some(b'}') if object => {}
                    Some(b']') if !object => {}
                    _ => return Err(Error::Syntax(i)),
                }
                self.open.pop();
                i += 1;
                if node != UNNOTED {
                    self.finish(node, i);
                } else if matches!(self.open.last(), Some(o) if o.node == UNNOTED - 1) {
                    self.open.pop();
                    let last = self.nodes.len().saturating_sub(1);
                    self.finish(u32::try_from(last).unwrap_or(0), i);
                }
                if self.open.is_empty() {
                    return Ok(i);
                }
                i = skip_space(line, i);
            }
        }
    }

    /// Reads `"key" :` and gives the index of the value.
    fn key(&mut self, line: &[u8], at: usize, opaque: &[&str], hide: &mut bool) -> Result<usize, Error> {
        if line.get(at) != Some(&b'"') {
            return Err(Error::Syntax(at));
        }
        let (end, flags) = simd::string_end(line, at + 1).map_err(Error::Syntax)?;
        self.lone |= flags & simd::LONE != 0;
        if !matches!(self.open.last(), Some(o) if o.node == UNNOTED) {
            let node = self.note(at, Kind::String, flags);
            self.finish(node, end + 1);
            let name = line.get(at + 1..end).unwrap_or_default();
            *hide = opaque.iter().any(|k| k.as_bytes() == name);
        }
        let colon = skip_space(line, end + 1);
        if line.get(colon) != Some(&b':') {
            return Err(Error::Syntax(colon));
        }
        Ok(skip_space(line, colon + 1))
    }

    fn note(&mut self, start: usize, kind: Kind, flags: u8) -> u32 {
        let at = u32::try_from(self.nodes.len()).unwrap_or(UNNOTED);
        // offsets fit: the length of the line was checked
        self.nodes.push(Node { start: start as u32, end: start as u32, next: at + 1, kind, flags });
        at
    }

    fn finish(&mut self, at: u32, end: usize) {
        let next = u32::try_from(self.nodes.len()).unwrap_or(UNNOTED);
        if let Some(node) = self.nodes.get_mut(at as usize) {
            node.end = end as u32;
            node.next = next;
        }
    }
}

/// Flag of containers whose inside was not noted.
const OPAQUE: u8 = 4;

#[inline]
fn skip_space(line: &[u8], mut i: usize) -> usize {
    while matches!(line.get(i), Some(b' ' | b'\t' | b'\r' | b'\n')) {
        i += 1;
    }
    i
}

/// Where the value of the first field begins whose key is one of `keys`. `at` is where the key of some field of
/// the outermost object begins; fields before it are not looked at. What stands behind the value is not
/// looked at either, so that a long line costs little. `None`: there is no such field, or the line is no JSON.
pub fn field_from(line: &[u8], mut at: usize, keys: &[&str]) -> Option<usize> {
    loop {
        if line.get(at) != Some(&b'"') {
            return None;
        }
        let (end, flags) = simd::string_end(line, at + 1).ok()?;
        let key = Text { raw: line.get(at + 1..end)?, escaped: flags & simd::ESCAPED != 0 };
        let colon = skip_space(line, end + 1);
        if line.get(colon) != Some(&b':') {
            return None;
        }
        let value = skip_space(line, colon + 1);
        if keys.iter().any(|k| key == **k) {
            return Some(value);
        }
        let comma = skip_space(line, value_end(line, value)?);
        if line.get(comma) != Some(&b',') {
            return None;
        }
        at = skip_space(line, comma + 1);
    }
}

/// Where the value that begins at `at` ends, in bytes. Only strings and brackets are looked at, so this holds
/// for lines that are JSON. `None`: the line ends before the value does.
pub fn value_end(line: &[u8], at: usize) -> Option<usize> {
    let (mut i, mut depth) = (at, 0usize);
    loop {
        match line.get(i)? {
            b'"' => i = simd::string_end(line, i + 1).ok()?.0 + 1,
            b'{' | b'[' => {
                depth += 1;
                i += 1;
                continue;
            }
            b'}' | b']' => {
                depth = depth.checked_sub(1)?;
                i += 1;
            }
            b',' | b':' | b' ' | b'\t' | b'\r' | b'\n' => {
                i += 1;
                continue;
            }
            _ => {
                let rest = line.get(i..)?;
                i += rest
                    .iter()
                    .position(|b| matches!(b, b',' | b'}' | b']' | b' ' | b'\t' | b'\r' | b'\n'))?;
            }
        }
        if depth == 0 {
            return Some(i);
        }
    }
}

fn literal(line: &[u8], i: &mut usize, word: &[u8], kind: Kind) -> Result<Kind, Error> {
    if line.get(*i..).is_some_and(|rest| rest.starts_with(word)) {
        *i += word.len();
        return Ok(kind);
    }
    Err(Error::Syntax(*i))
}

fn number(line: &[u8], at: usize) -> Result<usize, Error> {
    let digits = |mut i: usize| {
        let from = i;
        while matches!(line.get(i), Some(b'0'..=b'9')) {
            i += 1;
        }
        if i == from { Err(Error::Syntax(i)) } else { Ok(i) }
    };
    let mut i = at + usize::from(line.get(at) == Some(&b'-'));
    i = if line.get(i) == Some(&b'0') { i + 1 } else { digits(i)? };
    if line.get(i) == Some(&b'.') {
        i = digits(i + 1)?;
    }
    if matches!(line.get(i), Some(b'e' | b'E')) {
        i += 1;
        i += usize::from(matches!(line.get(i), Some(b'+' | b'-')));
        i = digits(i)?;
    }
    Ok(i)
}

/// A value of a scanned line.
#[derive(Debug, Clone, Copy)]
pub struct Value<'a> {
    tape: &'a Tape,
    line: &'a [u8],
    at: u32,
}

impl<'a> Value<'a> {
    fn node(&self) -> Node {
        self.tape.nodes.get(self.at as usize).copied().unwrap_or(Node {
            start: 0,
            end: 0,
            next: 0,
            kind: Kind::Null,
            flags: 0,
        })
    }

    /// What kind of value this is.
    pub fn kind(&self) -> Kind {
        self.node().kind
    }

    /// Whether this is `null`.
    pub fn is_null(&self) -> bool {
        self.kind() == Kind::Null
    }

    /// Whether this is an object.
    pub fn is_object(&self) -> bool {
        self.kind() == Kind::Object
    }

    /// The value as the bytes of the line.
    pub fn raw(&self) -> &'a [u8] {
        let n = self.node();
        self.line.get(n.start as usize..n.end as usize).unwrap_or_default()
    }

    /// Whether any string of the line holds an escape of a lone surrogate.
    pub fn has_lone_surrogate(&self) -> bool {
        self.tape.lone
    }

    /// Where the value stands in the line, in bytes.
    pub fn span(&self) -> std::ops::Range<usize> {
        let n = self.node();
        n.start as usize..n.end as usize
    }

    /// The string, when this is one.
    pub fn text(&self) -> Option<Text<'a>> {
        let n = self.node();
        if n.kind != Kind::String {
            return None;
        }
        let raw = self.line.get(n.start as usize + 1..(n.end as usize).saturating_sub(1))?;
        Some(Text { raw, escaped: n.flags & simd::ESCAPED != 0 })
    }

    /// The truth value, when this is one.
    pub fn bool(&self) -> Option<bool> {
        match self.kind() {
            Kind::True => Some(true),
            Kind::False => Some(false),
            _ => None,
        }
    }

    /// The number, when this is one that fits.
    pub fn u64(&self) -> Option<u64> {
        (self.kind() == Kind::Number).then(|| std::str::from_utf8(self.raw()).ok()?.parse().ok()).flatten()
    }

    /// The value of the first entry with this key, when this is an object that has it.
    pub fn get(&self, key: &str) -> Option<Value<'a>> {
        self.entries().find(|(k, _)| *k == key).map(|(_, v)| v)
    }

    /// The entries of an object in order; none for anything else.
    pub fn entries(&self) -> Entries<'a> {
        let n = self.node();
        let none = n.kind != Kind::Object || n.flags & OPAQUE != 0;
        Entries { tape: self.tape, line: self.line, at: self.at + 1, end: if none { 0 } else { n.next } }
    }

    /// The items of an array in order; none for anything else.
    pub fn items(&self) -> Items<'a> {
        let n = self.node();
        let none = n.kind != Kind::Array || n.flags & OPAQUE != 0;
        Items { tape: self.tape, line: self.line, at: self.at + 1, end: if none { 0 } else { n.next } }
    }

    /// A key that this object holds twice, if any.
    pub fn duplicate_key(&self) -> Option<Text<'a>> {
        // a 64-bit sieve answers "no" for nearly every object without comparing anything
        let mut seen = 0u64;
        for (n, (key, _)) in self.entries().enumerate() {
            if n == FEW_KEYS {
                return self.duplicate_among_many();
            }
            let raw = key.raw;
            let mix = raw.len() * 7
                + raw.first().copied().unwrap_or(0) as usize
                + 3 * raw.last().copied().unwrap_or(0) as usize
                + 5 * raw.get(raw.len() / 2).copied().unwrap_or(0) as usize;
            let bit = 1u64 << (mix & 63);
            if (seen & bit != 0 || key.escaped)
                && self.entries().take(n).any(|(k, _)| k.decode() == key.decode())
            {
                return Some(key);
            }
            // an escaped key may equal an unescaped one with another mix
            seen |= if key.escaped { u64::MAX } else { bit };
        }
        None
    }

    /// The same for an object of many keys, in time linear in their number whatever the keys are.
    fn duplicate_among_many(&self) -> Option<Text<'a>> {
        let mut seen = HashSet::new();
        self.entries().map(|(key, _)| key).find(|key| !seen.insert(key.decode()))
    }
}

/// Objects of fewer keys are searched for duplicates without memory.
const FEW_KEYS: usize = 64;

/// The entries of an object.
#[derive(Debug, Clone)]
pub struct Entries<'a> {
    tape: &'a Tape,
    line: &'a [u8],
    at: u32,
    end: u32,
}

impl<'a> Iterator for Entries<'a> {
    type Item = (Text<'a>, Value<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        if self.at >= self.end {
            return None;
        }
        let key = Value { tape: self.tape, line: self.line, at: self.at };
        let value = Value { tape: self.tape, line: self.line, at: self.at + 1 };
        self.at = value.node().next;
        Some((key.text()?, value))
    }
}

/// The items of an array.
#[derive(Debug, Clone)]
pub struct Items<'a> {
    tape: &'a Tape,
    line: &'a [u8],
    at: u32,
    end: u32,
}

impl<'a> Iterator for Items<'a> {
    type Item = Value<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.at >= self.end {
            return None;
        }
        let value = Value { tape: self.tape, line: self.line, at: self.at };
        self.at = value.node().next;
        Some(value)
    }
}

/// A string of a line, still escaped.
#[derive(Debug, Clone, Copy)]
pub struct Text<'a> {
    raw: &'a [u8],
    escaped: bool,
}

impl<'a> Text<'a> {
    /// A text whose bytes hold no escapes, quotes or control characters.
    pub(crate) fn unescaped(raw: &'a [u8]) -> Text<'a> {
        Text { raw, escaped: false }
    }

    /// The empty text.
    pub const fn empty() -> Text<'a> {
        Text { raw: b"", escaped: false }
    }

    /// The bytes between the quotes.
    pub fn raw(&self) -> &'a [u8] {
        self.raw
    }

    /// The bytes of the string itself, when it holds no escapes.
    pub fn plain(&self) -> Option<&'a [u8]> {
        (!self.escaped).then_some(self.raw)
    }

    /// Whether the string is empty.
    pub fn is_empty(&self) -> bool {
        self.raw.is_empty()
    }

    /// Whether nothing but white space stands in the string.
    pub fn is_blank(&self) -> bool {
        if !self.escaped {
            return std::str::from_utf8(self.raw).is_ok_and(|t| t.trim().is_empty());
        }
        // long texts show in their first few bytes that they are not blank
        match self.raw.first() {
            Some(b) if b.is_ascii_graphic() && *b != b'\\' => false,
            _ => self.decode().trim().is_empty(),
        }
    }

    /// The string itself; a lone surrogate becomes U+FFFD.
    pub fn decode(&self) -> Cow<'a, str> {
        let plain = || Cow::Borrowed(std::str::from_utf8(self.raw).unwrap_or_default());
        if self.escaped { Cow::Owned(escape::decode(self.raw)) } else { plain() }
    }

    /// Up to `max` bytes of the string's beginning, decoded.
    pub fn head(&self, max: usize) -> Cow<'a, str> {
        if self.raw.len() <= max {
            return self.decode();
        }
        let mut end = max;
        // no cut inside a character or an escape: an escape is at most 12 bytes long
        if self.escaped {
            let mut i = 0;
            while i < max {
                let step = match (self.raw.get(i), self.raw.get(i + 1)) {
                    (Some(b'\\'), Some(b'u')) => 6,
                    (Some(b'\\'), _) => 2,
                    _ => 1,
                };
                if i + step > max {
                    break;
                }
                i += step;
            }
            end = i;
        }
        while end > 0 && self.raw.get(end).is_some_and(|b| b & 0xc0 == 0x80) {
            end -= 1;
        }
        Text { raw: self.raw.get(..end).unwrap_or_default(), escaped: self.escaped }.decode()
    }

    /// What stands from this byte of [`Text::raw`] on, which must not be inside an escape or a character.
    pub fn rest(&self, from: usize) -> Text<'a> {
        Text { raw: self.raw.get(from..).unwrap_or_default(), escaped: self.escaped }
    }

    /// Whether the decoded string begins with `prefix` (plain ASCII without escapes).
    pub fn starts_with(&self, prefix: &str) -> bool {
        if self.raw.starts_with(prefix.as_bytes()) {
            return true;
        }
        self.escaped && self.head(prefix.len() * 6 + 12).starts_with(prefix)
    }
}

impl PartialEq<str> for Text<'_> {
    fn eq(&self, other: &str) -> bool {
        if self.escaped { self.decode() == other } else { self.raw == other.as_bytes() }
    }
}

impl PartialEq<&str> for Text<'_> {
    fn eq(&self, other: &&str) -> bool {
        *self == **other
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::{without_lone_surrogates, write_string};
    use proptest::prelude::*;

    fn same(v: Value<'_>, s: &serde_json::Value) -> bool {
        match s {
            serde_json::Value::Null => v.is_null(),
            serde_json::Value::Bool(b) => v.bool() == Some(*b),
            serde_json::Value::Number(_) => v.kind() == Kind::Number,
            serde_json::Value::String(t) => v.text().is_some_and(|x| x.decode() == *t),
            serde_json::Value::Array(a) => {
                v.kind() == Kind::Array
                    && v.items().count() == a.len()
                    && v.items().zip(a).all(|(x, y)| same(x, y))
            }
            serde_json::Value::Object(o) => {
                v.is_object()
                    && o.iter().all(|(k, y)| {
                        v.entries().filter(|(n, _)| *n == **k).last().is_some_and(|(_, x)| same(x, y))
                    })
            }
        }
    }

    /// The scanner, serde_json and simd-json must agree on what is JSON, and on its value.
    fn agree(line: &[u8]) -> Result<(), String> {
        let mut tape = Tape::new();
        let ours = tape.parse(line);
        let lone = ours.is_ok_and(|v| v.has_lone_surrogate());
        let serde = serde_json::from_slice::<serde_json::Value>(line);
        if lone {
            // serde_json refuses lone surrogates, simd-json reads U+0000: here only the repair must hold
            let fixed = without_lone_surrogates(line);
            let again = tape.parse(&fixed).map_err(|e| format!("repair broke the line: {e}"))?;
            let value = serde_json::from_slice(&fixed).map_err(|e| e.to_string())?;
            if again.has_lone_surrogate() {
                return Err("a lone surrogate is left".into());
            }
            return if same(again, &value) { Ok(()) } else { Err("another value after repair".into()) };
        }
        let again = tape.parse(line);
        match (again, serde) {
            (Ok(v), Ok(s)) if same(v, &s) => Ok(()),
            (Ok(_), Ok(_)) => Err("another value".into()),
            // the spec of relay has no limit of depth or magnitude
            (Ok(_), Err(e)) if e.to_string().contains("recursion") || e.to_string().contains("range") => {
                Ok(())
            }
            (Err(_), Err(_)) => Ok(()),
            (a, b) => Err(format!("scanner {:?}, serde_json {:?}", a.map(|_| ()), b.map(|_| ()))),
        }?;
        let mut copy = line.to_vec();
        let simd = simd_json::to_owned_value(&mut copy).is_ok();
        let serde = serde_json::from_slice::<serde_json::Value>(line).is_ok();
        if serde && !simd {
            return Err("simd-json refuses it".into());
        }
        Ok(())
    }

    fn json() -> impl Strategy<Value = String> {
        let leaf = prop_oneof![
            Just("null".to_owned()),
            Just("true".to_owned()),
            Just("false".to_owned()),
            "-?(0|[1-9][0-9]{0,5})(\\.[0-9]{1,3})?([eE][+-]?[0-9]{1,2})?",
            "\"([a-z \\[\\]{}:,é漢]|\\\\[nrtbf/\"\\\\]|\\\\u00[0-9a-f]{2}|\\\\ud83d\\\\ude0[0-9]|\\\\ud8[0-9]{2}){0,40}\"",
        ];
        leaf.prop_recursive(5, 40, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(|v| format!("[{}]", v.join(" ,"))),
                prop::collection::vec(("[a-c]{1,3}", inner), 0..6).prop_map(|v| format!(
                    "{{{}}}",
                    v.iter().map(|(k, x)| format!("\"{k}\" : {x}")).collect::<Vec<_>>().join(",")
                )),
            ]
        })
    }

    proptest! {
        #[test]
        fn differential_on_json(line in json()) {
            prop_assert_eq!(agree(line.as_bytes()), Ok(()));
        }

        #[test]
        fn differential_on_damaged_json(line in json(), at in any::<prop::sample::Index>(), byte in any::<u8>(), cut in any::<bool>()) {
            let mut bytes = line.into_bytes();
            let i = at.index(bytes.len());
            if cut { bytes.truncate(i); } else { bytes[i] = byte; }
            prop_assert_eq!(agree(&bytes), Ok(()));
        }

        #[test]
        fn differential_on_noise(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            prop_assert_eq!(agree(&bytes), Ok(()));
        }

        #[test]
        fn opaque_values_keep_their_places(line in json(), tail in json()) {
            let whole = format!("{{\"x\":{line},\"y\":{tail}}}");
            let (mut plain, mut opaque) = (Tape::new(), Tape::new());
            let a = plain.parse(whole.as_bytes()).unwrap();
            let b = opaque.parse_opaque(whole.as_bytes(), &["x"]).unwrap();
            for key in ["x", "y"] {
                prop_assert_eq!(a.get(key).unwrap().raw(), b.get(key).unwrap().raw());
            }
            prop_assert_eq!(b.get("x").unwrap().items().count(), 0);
        }

        #[test]
        fn written_strings_read_back(text in any::<String>(), max in 0usize..40) {
            let mut out = Vec::new();
            write_string(&mut out, &text);
            let mut tape = Tape::new();
            let read = tape.parse(&out).unwrap().text().unwrap();
            prop_assert_eq!(read.decode(), text.as_str());
            prop_assert!(text.starts_with(&*read.head(max)));
            prop_assert_eq!(read.is_blank(), text.trim().is_empty());
        }
    }

    #[test]
    fn depth_has_no_limit() {
        let line = format!("{}1{}", "[".repeat(200_000), "]".repeat(200_000));
        assert_eq!(Tape::new().parse(line.as_bytes()).unwrap().raw().len(), line.len());
    }

    #[test]
    fn duplicate_keys_are_found_whatever_their_spelling() {
        let mut tape = Tape::new();
        let dup = |tape: &mut Tape, s: &str| tape.parse(s.as_bytes()).unwrap().duplicate_key().is_some();
        assert!(dup(&mut tape, r#"{"a":1,"b":2,"a":3}"#));
        assert!(dup(&mut tape, r#"{"a":1,"\u0061":3}"#));
        assert!(dup(&mut tape, r#"{"\u0061":1,"a":3}"#));
        assert!(!dup(&mut tape, r#"{"a":1,"b":{"a":3},"c":4}"#));
    }

    /// An object of a hundred thousand keys took minutes (every key was compared with every other).
    #[test]
    fn duplicate_keys_are_found_among_many_in_linear_time() {
        let keys: Vec<String> = (0..100_000).map(|n| format!("\"key{n}\":0")).collect();
        let none = format!("{{{}}}", keys.join(","));
        assert_eq!(Tape::new().parse(none.as_bytes()).unwrap().duplicate_key().map(|k| k.decode()), None);
        let one = format!("{{{},\"key9\\u0037\":1}}", keys.join(","));
        let mut tape = Tape::new();
        let found = tape.parse(one.as_bytes()).unwrap().duplicate_key();
        assert_eq!(found.map(|k| k.decode()).as_deref(), Some("key97"));
    }

    #[test]
    fn a_second_value_is_named_by_its_place() {
        assert_eq!(Tape::new().parse(b"{} {}").unwrap_err(), Error::Trailing(3));
    }

    #[test]
    fn a_field_is_found_from_a_place_on() {
        let line = br#"{"a":1,"metadata":{"content":[{"x":"}"}]},"n":-1e3 , "content":"x\"y","input":{}}"#;
        let at = |key: &str| field_from(line, 7, &[key]).map(|at| &line[at..value_end(line, at).unwrap()]);
        assert_eq!(at("content"), Some(&br#""x\"y""#[..]));
        assert_eq!(at("input"), Some(&b"{}"[..]));
        assert_eq!(at("n"), Some(&b"-1e3"[..]));
        assert_eq!((at("a"), at("y")), (None, None));
        assert_eq!(field_from(line, 7, &["n", "content"]), field_from(line, 7, &["n"]));
        assert_eq!(field_from(b"{\"a\" 1}", 1, &["a"]), None);
        assert_eq!(value_end(b"[1,2", 0), None);
        assert_eq!(value_end(b"\"ab", 0), None);
    }

    proptest! {
        #[test]
        fn looking_for_a_field_never_fails(line in prop::collection::vec(prop_oneof![Just(b'"'), Just(b'{'), Just(b'}'), Just(b':'), Just(b','), Just(b'['), Just(b'\\'), any::<u8>()], 0..60), at in 0usize..70) {
            if let Some(found) = field_from(&line, at, &["a", ""]) {
                prop_assert!(found > at && found <= line.len());
            }
            prop_assert!(value_end(&line, at).is_none_or(|end| end > at && end <= line.len()));
        }
    }
}
