//! Puts placeholders in the place of secrets: `<REDACTED:rule:N>`, the same for the same value over a whole stream.
//!
//! Every text of every record is looked at: content, arguments, results and their copies in `extra`, native lines,
//! titles, paths. Ids, signatures, ciphers and pictures are not (`walk`). A line in which nothing is found passes
//! as the very bytes that were read; in another one only the bytes of the found values change.
//!
//! | file | what |
//! |---|---|
//! | `detect`, `rules` | what a secret looks like |
//! | `walk` | where text stands in a record |
//! | `text` | decoded text, and the way back to the bytes of the line |
//! | `seen` | a text without colours and characters that are not shown |
//! | `known` | values found once, looked for everywhere after, in the forms in which tools print them |
//! | `hunt` | all that was found in one record |
//! | `book` | which placeholder stands for which value; the map |
//! | `deltas` | texts that were streamed in pieces |
//! | `restore` | the way back |
//! | `stamp` | what the session says of it |
//! | `allow`, `key` | values that may stay; fingerprints |
//!
//! Held: one record, and streamed text as `deltas` says; at most 32 MB of known values and their forms, about 60 bytes for each value that has a
//! placeholder; with `two_pass` the stream, in a temporary file beyond 8 MiB.

mod allow;
mod book;
mod deltas;
pub mod detect;
mod hunt;
mod key;
mod known;
mod restore;
pub mod rules;
mod seen;
mod stamp;
mod text;
mod walk;

#[cfg(test)]
mod tests;

pub use allow::Allow;
pub use book::{map_key, map_key_line};
pub use key::Key;
pub use restore::Restore;

use super::Filter;
use crate::json::Tape;
use crate::record::{Abort, Error, Kind, Record, Redacted, Result};
use crate::stream::{Queue, Sink};
use book::{Book, Name};
use deltas::{Deltas, delta};
use detect::Detector;
use hunt::{Catch, Hunt, Piece, Why};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Hears of findings, one by one.
pub type Tell<'a> = dyn FnMut(&Finding<'_>) -> Result<()> + 'a;

/// What the filter works with. Files are opened by the caller.
pub struct Setup<'a> {
    /// What to look for.
    pub detector: Detector,
    /// What to leave.
    pub allow: Allow,
    /// The key of fingerprints, and of numbers when `salted`.
    pub key: Key,
    /// Placeholders are numbered by `key`, so that streams agree without a map.
    pub salted: bool,
    /// The map of earlier runs; empty when there is none.
    pub map: &'a [u8],
    /// Takes new lines of the map.
    pub journal: Option<&'a mut dyn Sink>,
    /// Hears of every value found.
    pub findings: Option<&'a mut Tell<'a>>,
    /// Reads the whole stream before the first record is handed on, so that a value is replaced also where it
    /// stands before the place that told it to be a secret.
    pub two_pass: bool,
    /// Only look: no record is handed on.
    pub check: bool,
}

/// A value that was found, told without it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Finding<'a> {
    /// Id of the session.
    pub session_id: &'a str,
    /// Which record of the stream it is in, from 1.
    pub record: u64,
    /// Line of the source, where the record has one.
    pub line: Option<u64>,
    /// JSON pointer of the string that it stands in.
    pub pointer: &'a str,
    /// The rule, or class of personal data, that found it.
    pub rule: &'a str,
    /// What takes its place.
    pub placeholder: &'a str,
    /// Bytes of it, escapes decoded.
    pub length: usize,
    /// Its fingerprint under [`Setup::key`].
    pub fingerprint: &'a str,
}

/// What was done, in numbers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tally {
    /// For each rule: places, and different values.
    pub rules: BTreeMap<String, (u64, u64)>,
    /// Bytes of pictures and ciphers that were not looked at.
    pub skipped: u64,
    /// Secrets that could not be looked for elsewhere, for want of memory.
    pub unfollowed: u64,
}

impl Tally {
    /// Places in which something was found.
    pub fn places(&self) -> u64 {
        self.rules.values().map(|(places, _)| places).sum()
    }
}

/// The filter.
pub struct Redact<'a> {
    hunt: Hunt,
    writer: Writer<'a>,
    tape: Tape,
    catch: Catch,
    deltas: Deltas,
    /// The key of streamed text.
    mark: memchr::memmem::Finder<'static>,
    /// Lines that wait for the second pass.
    queue: Option<Queue>,
    /// What sessions say of it; nothing when not all rules run.
    stamp: Option<Redacted>,
}

/// Gives names to what was found, and writes the line anew.
struct Writer<'a> {
    book: Book<'a>,
    key: Key,
    findings: Option<&'a mut Tell<'a>>,
    check: bool,
    session: String,
    record: u64,
    tally: Tally,
}

impl<'a> Redact<'a> {
    /// A filter that has seen nothing yet.
    ///
    /// # Errors
    /// A line of the map is none.
    pub fn new(setup: Setup<'a>) -> Result<Redact<'a>> {
        let Setup { detector, allow, key, salted, map, journal, findings, two_pass, check } = setup;
        let mut hunt = Hunt::new(detector, allow, key.clone());
        hunt.pointers = findings.is_some();
        let mut book = Book::new(salted.then(|| key.clone()), journal);
        book::entries(map, |entry| {
            book.load(entry)?;
            let follow = entry.follow && !hunt.allow.holds(entry.of, &hunt.key);
            if let (true, Some(placeholder)) = (follow, book::read(entry.placeholder.as_bytes())) {
                hunt.learn(entry.of, placeholder.rule, true);
            }
            Ok(())
        })?;
        let stamp = hunt.detector.level().map(stamp::of);
        let tally = Tally::default();
        let writer = Writer { book, key, findings, check, session: String::new(), record: 0, tally };
        Ok(Redact {
            hunt,
            writer,
            tape: Tape::new(),
            catch: Catch::default(),
            deltas: Deltas::default(),
            mark: memchr::memmem::Finder::new(b"\"delta\""),
            queue: two_pass.then(Queue::default),
            stamp,
        })
    }

    /// What was done by now.
    pub fn tally(&self) -> Tally {
        Tally { unfollowed: self.hunt.known.refused, ..self.writer.tally.clone() }
    }

    /// Finds what has to go of one line.
    fn look(&mut self, line: &[u8], native: bool) -> Result<()> {
        let record = self.tape.parse(line).map_err(|e| Error::shape(e.to_string()))?;
        self.hunt.record(line, record, native, &mut self.catch);
        if line.len() > LONG {
            self.tape = Tape::new();
        }
        Ok(())
    }

    /// Holds a record of streamed text; false when it is none.
    fn hold(&mut self, record: &Record<'_>) -> Result<bool> {
        let line = record.line();
        if record.head().kind != Kind::Native || line.len() > LONG || self.mark.find(line).is_none() {
            return Ok(false);
        }
        let value = record.parse(&mut self.tape)?;
        let Some(piece) = delta(value) else { return Ok(false) };
        self.deltas.push(line, piece);
        Ok(true)
    }

    fn pass(&mut self, record: &Record<'_>, out: &mut dyn Sink) -> Result<()> {
        if self.hold(record)? {
            return if self.deltas.is_full() { self.release(false, out) } else { Ok(()) };
        }
        self.release(true, out)?;
        if record.head().kind == Kind::Session
            && let Some(stamp) = &self.stamp
        {
            let value = record.parse(&mut self.tape)?;
            if let Some(line) = stamp::added(record.line(), value, stamp)? {
                let mut tape = Tape::new();
                return self.one(&Record::new(&line, &mut tape)?, out);
            }
        }
        self.one(record, out)
    }

    fn one(&mut self, record: &Record<'_>, out: &mut dyn Sink) -> Result<()> {
        self.writer.begin(record)?;
        self.look(record.line(), record.head().kind == Kind::Native)?;
        self.writer.write(record, &self.hunt, &self.catch, out)
    }

    /// What an earlier stage said when it died, for the stages behind this one.
    ///
    /// # Errors
    /// The map cannot be written.
    pub fn abort(&mut self, abort: &Abort) -> Result<Abort> {
        let line = abort.to_line().map_err(|e| Error::failed(e.to_string()))?;
        let mut tape = Tape::new();
        let mut out: Vec<Vec<u8>> = Vec::new();
        self.writer.check = false;
        self.one(&Record::new(&line, &mut tape)?, &mut out)?;
        let line = out.pop().unwrap_or_default();
        Record::new(&line, &mut tape)?.decode()
    }

    /// Lets held records go.
    fn release(&mut self, all: bool, out: &mut dyn Sink) -> Result<()> {
        if self.deltas.is_empty() {
            return Ok(());
        }
        let mut tape = Tape::new();
        for held in self.deltas.take(&mut self.hunt, all) {
            let record = Record::new(&held.line, &mut tape)?;
            self.writer.begin(&record)?;
            self.look(&held.line, true)?;
            held.merge(&mut self.catch.pieces);
            self.writer.write(&record, &self.hunt, &self.catch, out)?;
        }
        Ok(())
    }

    /// Only learns what a record tells.
    fn learn(&mut self, record: &Record<'_>) -> Result<()> {
        let held = self.hold(record)?;
        if !self.deltas.is_empty() && (!held || self.deltas.is_full()) {
            self.deltas.take(&mut self.hunt, !held);
        }
        self.look(record.line(), record.head().kind == Kind::Native)
    }
}

/// A line so long that what it left in memory is given back.
const LONG: usize = 8 << 20;

#[derive(serde::Deserialize)]
struct Start {
    session_id: String,
}

impl Writer<'_> {
    fn begin(&mut self, record: &Record<'_>) -> Result<()> {
        self.record += 1;
        if record.head().kind == Kind::Session {
            self.session = record.decode::<Start>()?.session_id;
        }
        Ok(())
    }

    fn write(&mut self, record: &Record<'_>, hunt: &Hunt, catch: &Catch, out: &mut dyn Sink) -> Result<()> {
        let line = record.line();
        self.tally.skipped += catch.skipped;
        let mut edited = Vec::new();
        let mut from = 0;
        let mut pieces = catch.pieces.as_slice();
        while let Some(piece) = pieces.first() {
            let (range, new) = match piece.base64.and_then(|at| catch.coded.get(at)) {
                None => {
                    pieces = pieces.get(1..).unwrap_or_default();
                    match self.name(line, piece, record, hunt, catch)? {
                        Some(name) if matches!(piece.why, Why::Number(_)) => {
                            (piece.range.clone(), format!("\"{}\"", name.text).into_bytes())
                        }
                        Some(name) => (piece.range.clone(), name.text.into_bytes()),
                        None => continue,
                    }
                }
                Some(coded) => {
                    let count = pieces.iter().take_while(|p| p.base64 == piece.base64).count();
                    let (inside, rest) = pieces.split_at(count);
                    pieces = rest;
                    match self.coded(&coded.bytes, inside, record, hunt, catch)? {
                        Some(new) => (coded.range.clone(), new),
                        None => continue,
                    }
                }
            };
            if edited.is_empty() {
                edited.reserve(line.len());
            }
            edited.extend_from_slice(line.get(from..range.start).unwrap_or_default());
            edited.extend_from_slice(&new);
            from = range.end;
        }
        if self.check {
            return Ok(());
        }
        if from == 0 {
            return out.put(line);
        }
        edited.extend_from_slice(line.get(from..).unwrap_or_default());
        out.put(&edited)
    }

    /// Bytes in base64, written anew.
    fn coded(
        &mut self,
        bytes: &[u8],
        pieces: &[Piece],
        record: &Record<'_>,
        hunt: &Hunt,
        catch: &Catch,
    ) -> Result<Option<Vec<u8>>> {
        use base64::Engine as _;
        let mut edited = Vec::with_capacity(bytes.len());
        let mut from = 0;
        for piece in pieces {
            if let Some(name) = self.name(bytes, piece, record, hunt, catch)? {
                edited.extend_from_slice(bytes.get(from..piece.range.start).unwrap_or_default());
                edited.extend_from_slice(name.text.as_bytes());
                from = piece.range.end;
            }
        }
        if from == 0 {
            return Ok(None);
        }
        edited.extend_from_slice(bytes.get(from..).unwrap_or_default());
        Ok(Some(base64::engine::general_purpose::STANDARD.encode(edited).into_bytes()))
    }

    /// What takes the place of a piece; `None` when it stays.
    fn name(
        &mut self,
        text: &[u8],
        piece: &Piece,
        record: &Record<'_>,
        hunt: &Hunt,
        catch: &Catch,
    ) -> Result<Option<Name>> {
        let raw = text.get(piece.range.clone()).unwrap_or_default();
        if piece.why == Why::Met {
            return self.book.met(raw);
        }
        // inside base64 the bytes are no body of a JSON string, which is how the map has them
        let mut escaped = Vec::new();
        let spelling = match piece.base64 {
            Some(_) if text::escape(raw, &mut escaped).is_some() => escaped.as_slice(),
            _ => raw,
        };
        let value: Cow<'_, [u8]> = match piece.base64.is_none() && raw.contains(&b'\\') {
            true => {
                let mut value = Vec::new();
                text::decode(raw, &mut value);
                value.into()
            }
            false => raw.into(),
        };
        // the same value, however it was coloured
        let value = match piece.why {
            Why::Found(_) => seen::plain(value),
            _ => value,
        };
        let name = match piece.why {
            Why::Known(n) => self.book.name(hunt.known.rule(n), hunt.known.value(n), spelling, || true)?,
            Why::Around(n) => {
                self.book.name(hunt.known.rule(n), book::Value::new(&value), spelling, || false)?
            }
            Why::Found(rule) => {
                // as the known values themselves decide, for the runs that go on with the map
                let follow = || piece.follow && known::is_random(&value, piece.sure);
                self.book.name(rule.name(), book::Value::new(&value), spelling, follow)?
            }
            Why::Number(rule) => {
                self.book.name(rule.name(), book::Value::new(raw), &book::as_number(raw), || false)?
            }
            Why::Met => return Ok(None),
        };
        if !self.tally.rules.contains_key(&*name.rule) {
            self.tally.rules.insert(name.rule.to_string(), (0, 0));
        }
        if let Some((places, values)) = self.tally.rules.get_mut(&*name.rule) {
            *places += 1;
            *values += u64::from(name.new);
        }
        if let Some(tell) = &mut self.findings {
            tell(&Finding {
                session_id: &self.session,
                record: self.record,
                line: record.head().line,
                pointer: catch.pointers.get(piece.pointer).map_or("", String::as_str),
                rule: &name.rule,
                placeholder: &name.text,
                length: value.len(),
                fingerprint: &self.key.fingerprint(&value),
            })?;
        }
        Ok(Some(name))
    }
}

impl Filter for Redact<'_> {
    fn record(&mut self, record: &Record<'_>, out: &mut dyn Sink) -> Result<()> {
        let Some(mut queue) = self.queue.take() else { return self.pass(record, out) };
        self.learn(record)?;
        queue.push(&[record.line()])?;
        self.queue = Some(queue);
        Ok(())
    }

    fn end(&mut self, out: &mut dyn Sink) -> Result<()> {
        if let Some(queue) = self.queue.take() {
            if !self.deltas.is_empty() {
                self.deltas.take(&mut self.hunt, true);
            }
            let mut tape = Tape::new();
            queue.lines(|line| self.pass(&Record::new(line, &mut tape)?, out))?;
        }
        self.release(true, out)
    }
}
