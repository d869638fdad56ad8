//! The way back: placeholders become the values that the map has for them.

use super::book::{self, BEGINNING};
use super::stamp;
use super::walk::{Part, Walk};
use crate::filters::Filter;
use crate::json::Tape;
use crate::record::{Error, Kind, Record, Result};
use crate::stream::Sink;
use memchr::memmem::Finder;
use std::collections::HashMap;

/// Puts the values of a map back. What the map does not have stays as it is.
///
/// With the map that a run has begun, its output becomes its input byte by byte. With
/// a map of several runs the placeholders of all of them are put back. The session's `redacted` goes.
///
/// Held: the map.
#[derive(Debug)]
pub struct Restore {
    values: HashMap<Vec<u8>, Vec<u8>>,
    tape: Tape,
    /// What placeholders in base64 hold.
    coded: Vec<Finder<'static>>,
    /// Placeholders that became values.
    restored: u64,
    /// Placeholders that the map does not have.
    unknown: u64,
}

impl Restore {
    /// A filter with this map.
    ///
    /// # Errors
    /// A line of the map is none.
    pub fn new(map: &[u8]) -> Result<Restore> {
        let mut values = HashMap::new();
        book::entries(map, |entry| {
            let spelling = entry.spelling.unwrap_or(entry.placeholder.as_bytes());
            values.insert(entry.placeholder.as_bytes().to_vec(), spelling.to_vec());
            Ok(())
        })?;
        let coded =
            super::known::in_base64(BEGINNING).iter().map(|text| Finder::new(text).into_owned()).collect();
        Ok(Restore { values, tape: Tape::new(), coded, restored: 0, unknown: 0 })
    }

    /// How many placeholders became values, and how many the map does not have.
    pub fn counts(&self) -> (u64, u64) {
        (self.restored, self.unknown)
    }

    /// The text with values in the place of placeholders; `decode` when it is no body of a JSON string.
    fn text(&mut self, text: &[u8], decode: bool) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        let mut from = 0;
        for (at, placeholder) in book::all(text) {
            let name = text.get(at..at + placeholder.len).unwrap_or_default();
            // bytes that are no text can only go back to where they came from
            let value = self.values.get(name).filter(|v| decode || std::str::from_utf8(v).is_ok());
            let Some(value) = value else {
                self.unknown += 1;
                continue;
            };
            self.restored += u64::from(value != name);
            let end = at + placeholder.len;
            if let Some(digits) = book::digits(value) {
                // a number stood without the quotes of its placeholder
                let quoted = !decode && text.get(..at).is_some_and(|t| t.ends_with(b"\""));
                let quoted = usize::from(quoted && text.get(end) == Some(&b'"'));
                out.extend_from_slice(text.get(from..at - quoted).unwrap_or_default());
                out.extend_from_slice(digits);
                from = end + quoted;
                continue;
            }
            out.extend_from_slice(text.get(from..at).unwrap_or_default());
            match decode && std::str::from_utf8(value).is_ok() {
                true => super::text::decode(value, &mut out),
                false => out.extend_from_slice(value),
            }
            from = end;
        }
        if from == 0 {
            return None;
        }
        out.extend_from_slice(text.get(from..).unwrap_or_default());
        Some(out)
    }

    /// A line with texts in base64.
    fn coded(&mut self, record: &Record<'_>) -> Result<Option<Vec<u8>>> {
        use base64::Engine as _;
        use base64::engine::general_purpose::STANDARD;
        let line = record.line();
        if !self.coded.iter().any(|coded| coded.find(line).is_some()) {
            return Ok(None);
        }
        let mut tape = std::mem::take(&mut self.tape);
        let value = tape.parse(line).map_err(|e| Error::shape(e.to_string()))?;
        let mut walk = Walk::new(value, record.head().kind == Kind::Native);
        let mut edits = Vec::new();
        while let Some(spot) = walk.next_spot() {
            if spot.part == Part::Base64
                && let Ok(bytes) = STANDARD.decode(spot.raw)
                && let Some(new) = self.text(&bytes, true)
            {
                let start = (spot.raw.as_ptr() as usize).saturating_sub(line.as_ptr() as usize);
                edits.push((start..start + spot.raw.len(), STANDARD.encode(new).into_bytes()));
            }
        }
        let line = (!edits.is_empty()).then(|| crate::record::splice(line, edits));
        self.tape = tape;
        Ok(line)
    }
}

impl Filter for Restore {
    fn record(&mut self, record: &Record<'_>, out: &mut dyn Sink) -> Result<()> {
        let mut line = std::borrow::Cow::Borrowed(record.line());
        if let Some(new) = self.coded(record)? {
            line = new.into();
        }
        if record.head().kind == Kind::Session
            && let Some(new) = stamp::removed(&line, &mut self.tape)?
        {
            line = new.into();
        }
        // a placeholder was written as it is read here: in the body of a string, without an escape
        if memchr::memmem::find(&line, BEGINNING).is_some()
            && let Some(new) = self.text(&line, false)
        {
            line = new.into();
        }
        out.put(&line)
    }

    fn end(&mut self, _: &mut dyn Sink) -> Result<()> {
        Ok(())
    }
}
