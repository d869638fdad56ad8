//! What in a record has to go: hits of the detector, known values, texts that look like placeholders.

use super::allow::Allow;
use super::book;
use super::detect::{Confidence, Detector, Hit, RuleId};
use super::key::Key;
use super::known::{Known, Match};
use super::seen::{self, Seen};
use super::text::{Places, decode};
use super::walk::{Part, Spot, Walk};
use crate::json::Value;
use memchr::memmem::Finder;
use std::borrow::Cow;
use std::ops::Range;

/// Strings shorter than this hold nothing worth a look.
const SHORTEST: usize = 6;
/// A secret around a placeholder is one only when so much of it is left outside; else it is what an earlier run left.
const AROUND: usize = 40;

/// Why a piece goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Why {
    /// A rule found it.
    Found(RuleId),
    /// It is a form of the known value of this number, and all of it.
    Known(u32),
    /// A known value and more.
    Around(u32),
    /// It looks like a placeholder.
    Met,
    /// It is a number under the name of a secret.
    Number(RuleId),
}

/// A piece of a line that has to go.
#[derive(Debug, Clone)]
pub(super) struct Piece {
    /// Where it stands: in the line, or in the bytes of `base64`.
    pub(super) range: Range<usize>,
    pub(super) why: Why,
    /// The value is a secret, to be looked for everywhere.
    pub(super) follow: bool,
    /// Its shape alone told it to be one.
    pub(super) sure: bool,
    /// Index of the bytes that it stands in, when the line holds them in base64.
    pub(super) base64: Option<usize>,
    /// Index of its pointer.
    pub(super) pointer: usize,
}

/// Bytes that stand in the line in base64.
#[derive(Debug)]
pub(super) struct Coded {
    /// The base64 in the line.
    pub(super) range: Range<usize>,
    pub(super) bytes: Vec<u8>,
}

/// All that was found in one record.
#[derive(Debug, Default)]
pub(super) struct Catch {
    /// In the order of the line.
    pub(super) pieces: Vec<Piece>,
    pub(super) coded: Vec<Coded>,
    pub(super) pointers: Vec<String>,
    /// Bytes of pictures and ciphers that were not looked at.
    pub(super) skipped: u64,
}

impl Catch {
    fn clear(&mut self) {
        self.pieces.clear();
        self.coded.clear();
        self.pointers.clear();
        self.skipped = 0;
    }
}

/// Finds what has to go.
pub(super) struct Hunt {
    pub(super) detector: Detector,
    pub(super) known: Known,
    pub(super) allow: Allow,
    pub(super) key: Key,
    /// Whether pointers are wanted.
    pub(super) pointers: bool,
    placeholder: Finder<'static>,
    truncated: Finder<'static>,
    /// The ends of a text are places where a client has cut it.
    cut: bool,
    decoded: Vec<u8>,
    hits: Vec<Hit>,
    matches: Vec<Match>,
    pieces: Vec<Piece>,
}

/// Bytes that a buffer keeps from one record to the next.
const KEPT: usize = 4 << 20;

impl Hunt {
    pub(super) fn new(detector: Detector, allow: Allow, key: Key) -> Hunt {
        Hunt {
            detector,
            known: Known::default(),
            allow,
            key,
            pointers: false,
            placeholder: Finder::new(book::BEGINNING),
            truncated: Finder::new(b"tokens truncated"),
            cut: false,
            decoded: Vec::new(),
            hits: Vec::new(),
            matches: Vec::new(),
            pieces: Vec::new(),
        }
    }

    /// Goes through a record.
    pub(super) fn record(&mut self, line: &[u8], record: Value<'_>, native: bool, catch: &mut Catch) {
        loop {
            let known = self.known.len();
            self.pass(line, record, native, catch);
            // a value that was found in a later string may stand in an earlier one
            if self.known.len() == known {
                break;
            }
        }
        if self.decoded.capacity() > KEPT {
            self.decoded = Vec::new();
        }
        if self.hits.capacity() > KEPT / 32 {
            self.hits = Vec::new();
        }
    }

    fn pass(&mut self, line: &[u8], record: Value<'_>, native: bool, catch: &mut Catch) {
        catch.clear();
        let marked = self.placeholder.find(line).is_some();
        // some clients put the two ends of a prompt and what it says of the middle into texts of their own
        self.cut = self.known.len() > 0 && self.truncated.find(line).is_some();
        let mut walk = Walk::new(record, native);
        while let Some(spot) = walk.next_spot() {
            let raw = spot.raw;
            if spot.part == Part::Opaque {
                catch.skipped += raw.len() as u64;
                continue;
            }
            if raw.len() < SHORTEST && spot.part != Part::Number {
                continue;
            }
            let before = catch.pieces.len();
            if spot.part != Part::Base64 || !self.coded(line, raw, catch) {
                match spot.part {
                    Part::Number => self.number(&spot),
                    _ => self.string(&spot, marked),
                }
                let start = offset(line, raw);
                catch.pieces.extend(self.pieces.drain(..).map(|piece| {
                    let range = start + piece.range.start..start + piece.range.end;
                    Piece { range, ..piece }
                }));
            }
            if catch.pieces.len() > before {
                let pointer = if self.pointers { walk.pointer() } else { String::new() };
                let at = catch.pointers.len();
                catch.pointers.push(pointer);
                for piece in catch.pieces.iter_mut().skip(before) {
                    piece.pointer = at;
                }
            }
        }
    }

    /// Bytes in base64 that are no text of the line; false when they are no base64.
    fn coded(&mut self, line: &[u8], raw: &[u8], catch: &mut Catch) -> bool {
        use base64::Engine as _;
        let Ok(bytes) = base64::engine::general_purpose::STANDARD.decode(raw) else { return false };
        self.text(None, &bytes, &bytes, false, true);
        if self.pieces.is_empty() {
            return true;
        }
        let at = catch.coded.len();
        catch.pieces.extend(self.pieces.drain(..).map(|piece| Piece { base64: Some(at), ..piece }));
        let start = offset(line, raw);
        catch.coded.push(Coded { range: start..start + raw.len(), bytes });
        true
    }

    /// A number that its key says to be secret. It becomes a string, quotes and all.
    fn number(&mut self, spot: &Spot<'_>) {
        self.pieces.clear();
        let name = spot.name.map(|name| name.decode().into_owned()).unwrap_or_default();
        if let Some(rule) = self.detector.number(name.as_bytes(), spot.raw)
            && !self.allow.holds(spot.raw, &self.key)
        {
            let range = 0..spot.raw.len();
            self.pieces.push(Piece {
                range,
                why: Why::Number(rule),
                follow: false,
                sure: false,
                base64: None,
                pointer: 0,
            });
        }
    }

    fn string(&mut self, spot: &Spot<'_>, marked: bool) {
        let name = spot.name.map(|name| name.decode());
        let name = name.as_deref().map(str::as_bytes);
        if spot.plain {
            return self.text(name, spot.raw, spot.raw, false, marked);
        }
        let mut decoded = std::mem::take(&mut self.decoded);
        decoded.clear();
        decode(spot.raw, &mut decoded);
        self.text(name, &decoded, spot.raw, true, marked);
        self.decoded = decoded;
    }

    /// Fills `pieces` with what has to go of one text; their ranges are places of `raw`.
    fn text(&mut self, name: Option<&[u8]>, text: &[u8], raw: &[u8], escaped: bool, marked: bool) {
        self.pieces.clear();
        self.hits.clear();
        // the words of a placeholder must not tell anything of what stands beside it
        let masked = if marked { masked(text) } else { text.into() };
        let text = masked.as_ref();
        let mut hits = std::mem::take(&mut self.hits);
        self.matches.clear();
        let seen = Seen::of(text);
        self.look(name, text, &mut hits);
        self.known.search(text, &mut self.matches);
        self.known.search_cut(text, self.cut, &mut self.matches);
        if let Some(seen) = seen {
            let (as_it_stands, matched) = (hits.len(), self.matches.len());
            self.look(name, &seen.text, &mut hits);
            self.known.search(&seen.text, &mut self.matches);
            for hit in hits.iter_mut().skip(as_it_stands) {
                (hit.start, hit.end) = seen.place(hit.start, hit.end);
            }
            for found in self.matches.iter_mut().skip(matched) {
                (found.start, found.end) = seen.place(found.start, found.end);
            }
        }
        if !hits.is_empty() || !self.matches.is_empty() || marked {
            self.merge(&hits, raw, escaped, marked);
        }
        self.hits = hits;
    }

    /// Takes a secret into the known values, also what it is made of.
    pub(super) fn learn(&mut self, value: &[u8], rule: &str, sure: bool) {
        use base64::Engine as _;
        if self.known.is_old(value) {
            return;
        }
        self.known.add(value, rule, sure);
        if value.len() > 512 {
            return;
        }
        let mut add = |part: &[u8]| {
            if !self.allow.holds(part, &self.key) && !self.known.is_old(part) {
                self.known.add(part, rule, false);
            }
        };
        // user:password in base64, as the Basic scheme (RFC 7617) and Docker's configuration have it
        if value.len() >= 12
            && let Ok(plain) = base64::engine::general_purpose::STANDARD.decode(value)
            && plain.iter().all(|b| b.is_ascii_graphic())
            && let Some(at) = memchr::memchr(b':', &plain)
        {
            add(plain.get(at + 1..).unwrap_or_default());
        }
        if value.contains(&b'%') {
            add(&percent_decoded(value));
        }
        if value.contains(&b'\\') {
            let mut plain = Vec::new();
            decode(value, &mut plain);
            add(&plain);
        }
    }

    /// Appends the hits of a text that do not stay, and learns their values.
    fn look(&mut self, name: Option<&[u8]>, text: &[u8], hits: &mut Vec<Hit>) {
        let before = hits.len();
        self.detector.find(name, text, hits);
        let mut at = 0;
        hits.retain(|hit| {
            at += 1;
            let value = text.get(hit.start..hit.end).unwrap_or_default();
            at <= before || (!value.is_empty() && !self.allow.holds(value, &self.key))
        });
        for hit in hits.iter().skip(before).filter(|hit| hit.propagate) {
            let value = text.get(hit.start..hit.end).unwrap_or_default();
            self.learn(&seen::plain(value.into()), hit.rule.name(), hit.confidence == Confidence::High);
        }
    }

    /// What is found in a text of several records; `wanted` says which hits count. Their values become known.
    pub(super) fn joined(
        &mut self,
        text: &[u8],
        wanted: impl Fn(&Hit) -> bool,
    ) -> Vec<(Range<usize>, RuleId)> {
        let mut hits = Vec::new();
        self.look(None, text, &mut hits);
        if let Some(seen) = Seen::of(text) {
            let before = hits.len();
            self.look(None, &seen.text, &mut hits);
            for hit in hits.iter_mut().skip(before) {
                (hit.start, hit.end) = seen.place(hit.start, hit.end);
            }
            hits.sort_by_key(|hit| (hit.start, hit.end));
            let mut end = 0;
            hits.retain_mut(|hit| {
                hit.start = hit.start.max(end);
                end = end.max(hit.end);
                hit.start < hit.end
            });
        }
        hits.retain(wanted);
        hits.iter().map(|hit| (hit.start..hit.end, hit.rule)).collect()
    }

    /// One list of pieces that do not overlap out of hits, matches and placeholders.
    fn merge(&mut self, hits: &[Hit], raw: &[u8], escaped: bool, marked: bool) {
        let sure = |h: &Hit| h.confidence == Confidence::High;
        let found = hits.iter().map(|h| (h.start, h.end, Why::Found(h.rule), (h.propagate, sure(h))));
        let known = self.matches.iter().map(|m| (m.start, m.end, Why::Known(m.value), (true, true)));
        // of two that are the same, the known value has the name already
        let mut all: Vec<_> = known.chain(found).collect();
        all.sort_by_key(|&(start, end, ..)| (start, std::cmp::Reverse(end)));
        let mut merged: Vec<(usize, usize, Why, (bool, bool))> = Vec::with_capacity(all.len());
        for next in all {
            match merged.last_mut() {
                Some(last) if next.0 < last.1 => {
                    if next.1 > last.1 {
                        let longer = if next.1 - next.0 > last.1 - last.0 { next } else { *last };
                        last.1 = next.1;
                        last.2 = match longer.2 {
                            Why::Known(n) => Why::Around(n),
                            other => other,
                        };
                        last.3 = (false, false);
                    }
                }
                _ => merged.push(next),
            }
        }
        let mut places = Places::new(raw, escaped);
        let mut pieces: Vec<Piece> = merged
            .into_iter()
            .map(|(start, end, why, (follow, sure))| {
                let start = places.find(start, false);
                let end = places.find(end, true);
                Piece { range: start..end, why, follow, sure, base64: None, pointer: 0 }
            })
            .collect();
        if marked {
            pieces = spare(pieces, raw);
        }
        self.pieces = pieces;
    }
}

/// Sets the placeholders of an earlier run apart from what was found around them.
fn spare(found: Vec<Piece>, raw: &[u8]) -> Vec<Piece> {
    let mut marks = book::all(raw).map(|(at, p)| at..at + p.len).peekable();
    let met = |range: Range<usize>| Piece {
        range,
        why: Why::Met,
        follow: false,
        sure: false,
        base64: None,
        pointer: 0,
    };
    let mut pieces: Vec<Piece> = Vec::with_capacity(found.len());
    for mut piece in found {
        if let Some(last) = pieces.last()
            && piece.range.start < last.range.end
        {
            // swallowed with the placeholder at the end of the one before
            continue;
        }
        while let Some(mark) = marks.next_if(|mark| mark.end <= piece.range.start) {
            pieces.push(met(mark));
        }
        let mut inside = Vec::new();
        let mut covered = 0;
        while let Some(mark) = marks.next_if(|mark| mark.start < piece.range.end) {
            covered += mark.end.min(piece.range.end) - mark.start.max(piece.range.start);
            inside.push(mark);
        }
        if inside.is_empty() {
            pieces.push(piece);
        } else if piece.range.len() - covered >= AROUND {
            if let (Some(first), Some(last)) = (inside.first(), inside.last()) {
                piece.range = piece.range.start.min(first.start)..piece.range.end.max(last.end);
            }
            if let Why::Known(n) = piece.why {
                piece.why = Why::Around(n);
            }
            pieces.push(piece);
        } else {
            pieces.extend(inside.into_iter().map(met));
        }
    }
    pieces.extend(marks.map(met));
    pieces
}

/// The text with stars in the place of its placeholders.
fn masked(text: &[u8]) -> Cow<'_, [u8]> {
    let mut masked = Cow::Borrowed(text);
    for (at, placeholder) in book::all(text) {
        if let Some(part) = masked.to_mut().get_mut(at..at + placeholder.len) {
            part.fill(b'*');
        }
    }
    masked
}

/// Where a part of the line begins in it.
fn offset(line: &[u8], part: &[u8]) -> usize {
    (part.as_ptr() as usize).saturating_sub(line.as_ptr() as usize)
}

fn percent_decoded(text: &[u8]) -> Vec<u8> {
    let digit = |b: Option<&u8>| b.and_then(|&b| (b as char).to_digit(16)).and_then(|d| u8::try_from(d).ok());
    let mut out = Vec::with_capacity(text.len());
    let mut at = 0;
    while let Some(&b) = text.get(at) {
        match (b, digit(text.get(at + 1)), digit(text.get(at + 2))) {
            (b'%', Some(high), Some(low)) => {
                out.push(high << 4 | low);
                at += 3;
            }
            _ => {
                out.push(b);
                at += 1;
            }
        }
    }
    out
}
