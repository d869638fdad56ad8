//! Text that a client wrote down as it was streamed, a few letters a record: a secret begins in one record and ends
//! in another. Records of that kind that follow one another are held and looked at together.
//!
//! They are native records, for no agent's history is made of them: the `…_delta` events of Codex (`payload.delta`),
//! and the stream events of Claude Code (`event.delta.text`, `.partial_json`, `.thinking`, of
//! `--include-partial-messages`), each with or without the layer around it.
//!
//! Held: at most 256 KiB of text, and the records that it stands in.

use super::detect::RuleId;
use super::hunt::{Hunt, Piece, Why};
use super::text::{Places, decode};
use crate::json::{Text, Value};
use std::ops::Range;

/// Bytes of text that are held.
const MOST: usize = 256 << 10;
/// Bytes at the end that a secret may go on from.
const OPEN: usize = 8 << 10;

/// The piece of streamed text in a native record.
pub(super) fn delta<'a>(record: Value<'a>) -> Option<Text<'a>> {
    let value = record.get("value")?;
    let layers = ["payload", "event", "msg", "params"].iter().filter_map(|key| value.get(key)).chain([value]);
    let found = layers.filter_map(|layer| layer.get("delta")).find_map(|delta| match delta.text() {
        Some(text) => Some(text),
        None => ["text", "partial_json", "thinking"].iter().find_map(|key| delta.get(key)?.text()),
    })?;
    (!found.is_empty()).then_some(found)
}

/// A record that waits for the next one.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) line: Vec<u8>,
    /// The string's body in the line.
    raw: Range<usize>,
    /// Its text in that of all.
    text: Range<usize>,
    /// What of a secret stands in it, as places of the line.
    pub(super) parts: Vec<(Range<usize>, RuleId)>,
}

impl Held {
    /// Puts the parts among the pieces that were found in the record by itself.
    pub(super) fn merge(&self, pieces: &mut Vec<Piece>) {
        for (range, rule) in &self.parts {
            pieces.retain(|p| p.base64.is_some() || p.range.end <= range.start || range.end <= p.range.start);
            let at = pieces.partition_point(|p| p.base64.is_none() && p.range.start < range.start);
            let why = Why::Found(*rule);
            pieces.insert(
                at,
                Piece { range: range.clone(), why, follow: false, sure: false, base64: None, pointer: 0 },
            );
        }
    }
}

/// The records held, and their text.
#[derive(Debug, Default)]
pub(super) struct Deltas {
    held: Vec<Held>,
    text: Vec<u8>,
}

impl Deltas {
    /// Whether none is held.
    pub(super) fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// Holds a record.
    pub(super) fn push(&mut self, line: &[u8], piece: Text<'_>) {
        let raw = piece.raw();
        let start = (raw.as_ptr() as usize).saturating_sub(line.as_ptr() as usize);
        let from = self.text.len();
        decode(raw, &mut self.text);
        self.held.push(Held {
            line: line.to_vec(),
            raw: start..start + raw.len(),
            text: from..self.text.len(),
            parts: Vec::new(),
        });
    }

    /// Whether so much is held that some has to go.
    pub(super) fn is_full(&self) -> bool {
        self.text.len() >= MOST || self.held.len() >= MOST / 8
    }

    /// The records that may go now, with the parts of secrets in them; all of them when `all`.
    pub(super) fn take(&mut self, hunt: &mut Hunt, all: bool) -> Vec<Held> {
        let crossing: Vec<(Range<usize>, RuleId)> = hunt.joined(&self.text, |hit| {
            let first = self.held.partition_point(|h| h.text.end <= hit.start);
            self.held.get(first).is_some_and(|h| h.text.end < hit.end)
        });
        let mut go = self.held.len();
        if !all {
            let open = self.text.len().saturating_sub(OPEN);
            go = self.held.partition_point(|h| h.text.end <= open);
            // a secret that goes on behind that place goes with its end
            for (range, _) in crossing.iter().rev() {
                let end = self.held.get(go).map_or(self.text.len(), |h| h.text.start);
                if range.start < end && end < range.end {
                    go = self.held.partition_point(|h| h.text.end <= range.start);
                }
            }
            if go == 0 {
                go = self.held.len();
            }
        }
        let mut kept = self.held.split_off(go);
        let mut gone = std::mem::take(&mut self.held);
        for held in &mut gone {
            let raw = held.line.get(held.raw.clone()).unwrap_or_default();
            let escaped = raw.contains(&b'\\');
            let mut places = Places::new(raw, escaped);
            let first = crossing.partition_point(|(range, _)| range.end <= held.text.start);
            for (range, rule) in crossing.iter().skip(first).take_while(|(r, _)| r.start < held.text.end) {
                let start = range.start.max(held.text.start) - held.text.start;
                let end = range.end.min(held.text.end) - held.text.start;
                let (start, end) = (places.find(start, false), places.find(end, true));
                held.parts.push((held.raw.start + start..held.raw.start + end, *rule));
            }
        }
        let from = kept.first().map_or(self.text.len(), |h| h.text.start);
        self.text.drain(..from);
        for held in &mut kept {
            held.text = held.text.start - from..held.text.end - from;
        }
        self.held = kept;
        gone
    }
}
