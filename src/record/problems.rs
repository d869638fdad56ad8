//! Everything odd that a session held, counted by kind. Nothing is repaired silently.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// How many places of one kind are kept; the count goes on.
const KEPT: usize = 20;

/// The documented kinds of problems. Other spellings may occur in streams of newer versions.
pub mod problem {
    /// A line that is no JSON.
    pub const BAD_LINE: &str = "bad_line";
    /// A lone surrogate escape, replaced by U+FFFD.
    pub const SURROGATE: &str = "surrogate";
    /// Bytes that are not UTF-8, replaced by U+FFFD.
    pub const UTF8: &str = "utf8";
    /// A run of NUL bytes.
    pub const NUL: &str = "nul";
    /// Several records on one line, or a cut record with another one glued to it.
    pub const GLUED: &str = "glued";
    /// A line type that this version does not know; kept as `native`.
    pub const UNKNOWN_TYPE: &str = "unknown_type";
    /// A record shape or format version that this version does not know.
    pub const UNKNOWN_VERSION: &str = "unknown_version";
    /// A key that occurs twice in one object.
    pub const DUPLICATE_KEY: &str = "duplicate_key";
    /// Two lines with one id.
    pub const DUPLICATE_ID: &str = "duplicate_id";
    /// A parent that is not in the file.
    pub const DANGLING_PARENT: &str = "dangling_parent";
    /// Lines that are their own ancestors.
    pub const CYCLE: &str = "cycle";
    /// A tool call without result.
    pub const ORPHAN_CALL: &str = "orphan_call";
    /// A tool result without call.
    pub const ORPHAN_RESULT: &str = "orphan_result";
    /// A tool result that stood behind later messages.
    pub const LATE_RESULT: &str = "late_result";
    /// A second result for one call.
    pub const DUPLICATE_RESULT: &str = "duplicate_result";
    /// Something the source's own client loses, kept.
    pub const RESCUED: &str = "rescued";
    /// Client-made text that was left out.
    pub const NOISE: &str = "noise";
    /// Content that only the source's vendor can read.
    pub const UNREADABLE: &str = "unreadable";
    /// The last line has no end: the file was cut or is being written.
    pub const TRUNCATED_TAIL: &str = "truncated_tail";
    /// A file that this one continues is missing.
    pub const MISSING_BASE: &str = "missing_base";
    /// An id that had to be renamed.
    pub const RENAMED_ID: &str = "renamed_id";
    /// Something that could not be carried.
    pub const LOST: &str = "lost";
}

/// One place of a problem.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// 1-based line of the source, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    /// What it was, in words; empty when the kind says it all.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
}

/// All problems of one kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// See [`problem`].
    pub kind: String,
    /// How many there were.
    pub count: u64,
    /// The first twenty places.
    #[serde(default)]
    pub first: Vec<Place>,
}

/// The problems of a session, gathered while it is read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Problems(BTreeMap<String, Problem>);

impl Problems {
    /// Counts one problem; `line` is the 1-based line of the source.
    pub fn add(&mut self, kind: &str, line: Option<u64>, note: impl Into<String>) {
        let entry = match self.0.get_mut(kind) {
            Some(entry) => entry,
            None => self.0.entry(kind.to_owned()).or_insert_with(|| Problem {
                kind: kind.to_owned(),
                count: 0,
                first: Vec::new(),
            }),
        };
        entry.count += 1;
        if entry.first.len() < KEPT {
            entry.first.push(Place { line, note: note.into() });
        }
    }

    /// Adds what an earlier stage had counted.
    pub fn merge(&mut self, earlier: Vec<Problem>) {
        for found in earlier {
            match self.0.get_mut(&found.kind) {
                None => {
                    self.0.insert(found.kind.clone(), found);
                }
                Some(entry) => {
                    entry.count += found.count;
                    entry.first.extend(found.first);
                    entry.first.truncate(KEPT);
                }
            }
        }
    }

    /// How many problems of this kind were counted.
    pub fn count(&self, kind: &str) -> u64 {
        self.0.get(kind).map_or(0, |p| p.count)
    }

    /// Whether nothing odd was seen.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The problems by kind, in a stable order.
    pub fn into_vec(self) -> Vec<Problem> {
        self.0.into_values().collect()
    }

    /// The problems by kind, in a stable order.
    pub fn iter(&self) -> impl Iterator<Item = &Problem> {
        self.0.values()
    }
}
