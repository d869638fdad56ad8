//! First pass: what each line is, and the facts of the header.
//!
//! A line takes 40 bytes of a table, most of which lies in a temporary file when there are many, and about 10
//! bytes of memory in the list of ids. Ids are kept as 64-bit hashes; with 2^22 lines the chance
//! that two different ids of one session meet is one in two million.

use crate::agents::ledger::Ledger;
use crate::agents::{History, ReadOptions};
use crate::json::{self, Tape, Text, Value};
use crate::record::{Error, Lineage, Problems, Result, path::joined, problem};
use crate::stream::{Lines, Native, Row, Table};
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::hash::BuildHasher;

use super::attached;
use super::line::{Block, Fields};
use super::slots::Slots;
use foldhash::quality::RandomState;

/// No line.
pub(super) const NONE: u32 = u32::MAX;
/// A parent that is named but not in the file.
pub(super) const DANGLING: u32 = u32::MAX - 1;

/// What a line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Kind {
    /// No record at all: blank, or not JSON.
    Nothing,
    /// A state line, a journal line, or of a type that this version does not know.
    State,
    User,
    Assistant,
    Attachment,
    System,
    /// A link of the chain only.
    Progress,
}

/// Facts of a line, as bits.
pub(super) mod bit {
    pub(in super::super) const SIDECHAIN: u32 = 1 << 3;
    pub(in super::super) const META: u32 = 1 << 4;
    pub(in super::super) const API_ERROR: u32 = 1 << 5;
    /// Holds tool results.
    pub(in super::super) const RESULT: u32 = 1 << 6;
    /// Holds tool calls.
    pub(in super::super) const CALL: u32 = 1 << 7;
    /// Holds blocks that are neither.
    pub(in super::super) const OTHER: u32 = 1 << 8;
    /// Nothing but blank text.
    pub(in super::super) const BLANK: u32 = 1 << 9;
    pub(in super::super) const BOUNDARY: u32 = 1 << 10;
    pub(in super::super) const SUMMARY: u32 = 1 << 11;
    pub(in super::super) const LOCAL_COMMAND: u32 = 1 << 12;
    pub(in super::super) const QUEUED: u32 = 1 << 13;
    /// Only readable with a repair that the client does not make.
    pub(in super::super) const RESCUED: u32 = 1 << 14;
    /// The record is not the plain line: see [`super::Index::patches`].
    pub(in super::super) const PATCHED: u32 = 1 << 15;
    /// What decides where the content of a line stands: its kind, and the bits that find content elsewhere.
    pub(in super::super) const FORM: u32 = 7 | LOCAL_COMMAND | QUEUED | SUMMARY | NOTE;
    /// A later line has the same id and stands in this one's place, or an earlier one does.
    pub(in super::super) const SUPERSEDED: u32 = 1 << 16;
    /// The client's own "No response requested.".
    pub(in super::super) const SYNTHETIC: u32 = 1 << 17;
    /// More than one tool id: see [`super::Index::more_tools`].
    pub(in super::super) const MANY: u32 = 1 << 18;
    /// Of a prompt: it only warms the client up.
    pub(in super::super) const WARMUP: u32 = 1 << 19;
    /// Of an attachment: the human named it.
    pub(in super::super) const SHOWN: u32 = WARMUP;
    /// Of an answer: nothing but the client's own word for no content.
    pub(in super::super) const EMPTY: u32 = WARMUP;
    /// Of a boundary, which is never a prompt: it says which lines the compaction keeps.
    pub(in super::super) const KEEPS: u32 = WARMUP;
    /// Has no id of its own.
    pub(in super::super) const NO_ID: u32 = 1 << 20;
    /// Set by the plan: part of the live conversation.
    pub(in super::super) const LIVE: u32 = 1 << 21;
    /// Set by the plan: on the path from the leaf.
    pub(in super::super) const PATH: u32 = 1 << 22;
    /// Set by the plan, three bits: why the line is not live.
    pub(in super::super) const REASON: u32 = 23;
    /// Five bits: which session id the line names.
    pub(in super::super) const SESSION: u32 = 26;
    /// The note that an earlier relay wrote.
    pub(in super::super) const NOTE: u32 = 1 << 31;
}

/// One line, or one of several records that were found on one line.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry {
    /// Hash of the line's id.
    pub id: u64,
    /// Hash of its first tool id, of calls or results.
    pub tool: u64,
    /// Hash of the id of its model message.
    message: u64,
    /// Number of the entry that its parent is, [`NONE`] or [`DANGLING`].
    pub parent: u32,
    /// Number of the first entry of its model message, or [`NONE`].
    pub group: u32,
    /// Bytes that the line takes in the file, line feed included; 0 for further records of a line.
    pub length: u32,
    pub bits: u32,
}

impl Row for Entry {
    const SIZE: usize = 40;

    fn write(self, out: &mut Vec<u8>) {
        for long in [self.id, self.tool, self.message] {
            out.extend_from_slice(&long.to_le_bytes());
        }
        for word in [self.parent, self.group, self.length, self.bits] {
            out.extend_from_slice(&word.to_le_bytes());
        }
    }

    fn read(bytes: &[u8]) -> Option<Entry> {
        let long = |at: usize| bytes.get(at..)?.first_chunk().map(|b| u64::from_le_bytes(*b));
        let word = |at: usize| bytes.get(at..)?.first_chunk().map(|b| u32::from_le_bytes(*b));
        Some(Entry {
            id: long(0)?,
            tool: long(8)?,
            message: long(16)?,
            parent: word(24)?,
            group: word(28)?,
            length: word(32)?,
            bits: word(36)?,
        })
    }
}

impl Entry {
    /// A line of which nothing is known but its length.
    fn of_length(length: usize) -> Entry {
        Entry { id: 0, tool: 0, message: 0, parent: NONE, group: NONE, length: length as u32, bits: 0 }
    }

    pub(super) fn kind(&self) -> Kind {
        match self.bits & 7 {
            1 => Kind::State,
            2 => Kind::User,
            3 => Kind::Assistant,
            4 => Kind::Attachment,
            5 => Kind::System,
            6 => Kind::Progress,
            _ => Kind::Nothing,
        }
    }

    pub(super) fn has(&self, bit: u32) -> bool {
        self.bits & bit != 0
    }

    /// A line that can stand in the tree.
    pub(super) fn is_node(&self) -> bool {
        matches!(self.kind(), Kind::User | Kind::Assistant | Kind::Attachment | Kind::System)
            && !self.has(bit::SUPERSEDED)
    }

    /// A prompt, an answer, a call or a result.
    pub(super) fn is_conversation(&self) -> bool {
        matches!(self.kind(), Kind::User | Kind::Assistant)
    }
}

/// How the record of a patched line is got from its bytes.
#[derive(Debug, Clone)]
pub(super) struct Patch {
    /// Entry whose bytes hold it (the first of its line).
    pub owner: u32,
    /// Which of those bytes, NUL bytes left out first when `nul`.
    pub range: std::ops::Range<usize>,
    /// NUL bytes are taken out before anything else.
    pub nul: bool,
}

/// All that the first pass finds.
pub(super) struct Index {
    pub entries: Table<Entry>,
    /// Offsets of every 256th entry.
    marks: Vec<u64>,
    /// Entries that are further records of the line before them.
    pub extras: Vec<u32>,
    pub patches: HashMap<u32, Patch>,
    /// The newest line with the id of this one, where it is not the line itself.
    pub newest: HashMap<u32, u32>,
    pub more_tools: HashMap<u32, Vec<u64>>,
    /// Entries by their own id.
    ids: Slots,
    /// First entries of model messages by the message's id.
    groups: Slots,
    hasher: RandomState,
    sessions: Vec<u64>,
    pending: Vec<(u32, u64)>,
    /// What the newest `last-prompt` says that no compaction came after.
    pub leaf: Option<Named>,
    /// Whether any line is a compaction's boundary.
    pub boundaries: bool,
    /// The first line that the client reads: see [`WHOLE`].
    pub from: u32,
    /// Parents that are not in the file: the line and the hash of the id.
    pub missing: Vec<(u32, u64)>,
    /// Lines whose last copy names no parent, while an earlier one does.
    pub cut: HashSet<u32>,
    pub facts: Facts,
    pub problems: Problems,
    lenient: bool,
    previous: u32,
    /// Whether the file is larger than [`WHOLE`].
    large: bool,
}

/// A `last-prompt` line that names where the conversation ends.
#[derive(Debug, Clone, Copy)]
pub(super) struct Named {
    /// Hash of the id.
    pub id: u64,
    /// The user chose this end (a rewind).
    pub explicit: bool,
    /// No line of the tree stands behind it.
    pub newest: bool,
}

/// Up to this size, in bytes, the client reads a file whole. Of a larger one it reads nothing that stands before
/// the last boundary without a list of kept lines (tried with 5,242,880 and 5,242,881 bytes on 2.1.332).
const WHOLE: u64 = 5 << 20;

/// What becomes the session record.
#[derive(Debug, Default)]
pub(super) struct Facts {
    pub session_ids: Vec<String>,
    pub first_time: Option<String>,
    pub last_time: Option<String>,
    pub directories: Vec<String>,
    pub custom_title: Option<String>,
    pub generated_title: Option<String>,
    /// Titles with the hash of the line that they name.
    pub summaries: Vec<(u64, String)>,
    pub model: Option<String>,
    pub version: Option<String>,
    pub branch: Option<String>,
    pub used_tokens: Option<u64>,
    pub agent_id: Option<String>,
    pub files: Ledger,
    pub relay: Option<Vec<Lineage>>,
    /// Lines of Qwen Code, which has the same envelope.
    pub qwen: u64,
    /// Lines of a type that Claude Code writes.
    pub claude: u64,
}

/// State lines of the clients 1.0 to 2.1.332 and those that public reports name.
const STATE_TYPES: &[&str] = &[
    "summary",
    "queue-operation",
    "last-prompt",
    "custom-title",
    "agent-name",
    "ai-title",
    "mode",
    "permission-mode",
    "file-history-snapshot",
    "file-history-delta",
    "tools-used",
    "cost-state",
    "atis-latch",
    "api-request",
    "api-request-shape",
    "api-request-blob",
    "pr-link",
    "worktree-state",
    "agent-setting",
    "agent-color",
    "tag",
    "continued-in",
    "started",
    "result",
];

/// Keys whose value is large and never looked into in the first pass.
const OPAQUE: &[&str] = &["snapshot", "usage_by_model", "trackedFileBackups"];

impl Index {
    /// Reads the whole file once.
    pub(super) fn build(native: &Native, options: &ReadOptions) -> Result<Index> {
        let mut index = Index {
            entries: Table::new(),
            marks: Vec::new(),
            extras: Vec::new(),
            patches: HashMap::new(),
            newest: HashMap::new(),
            more_tools: HashMap::new(),
            ids: Slots::default(),
            groups: Slots::default(),
            hasher: RandomState::default(),
            sessions: Vec::new(),
            pending: Vec::new(),
            leaf: None,
            boundaries: false,
            from: 0,
            missing: Vec::new(),
            cut: HashSet::new(),
            facts: Facts::default(),
            problems: Problems::default(),
            lenient: options.history != History::Exact,
            previous: NONE,
            large: false,
        };
        let file = native.reader_at(0)?;
        index.large = file.metadata().map_err(Error::io(native.name()))?.len() > WHOLE;
        let mut lines = Lines::new(file);
        let mut tape = Tape::new();
        let mut offset = 0u64;
        loop {
            let place = native.name();
            let Some(line) = lines.next_line().map_err(Error::io(place))? else { break };
            let length = line.bytes.len() + usize::from(line.terminated);
            index.line(line.bytes, line.terminated, length, offset, &mut tape);
            offset += length as u64;
            if options.strict
                && let Some(bad) = index.problems.iter().find(|p| {
                    [
                        problem::BAD_LINE,
                        problem::TRUNCATED_TAIL,
                        problem::NUL,
                        problem::GLUED,
                        problem::UTF8,
                        problem::SURROGATE,
                    ]
                    .contains(&p.kind.as_str())
                })
            {
                let at = bad.first.first().and_then(|p| p.line).unwrap_or(0);
                let note = bad.first.first().map_or("", |p| &p.note);
                return Err(Error::input(format!("{place}:{at}"), format!("{}: {note}", bad.kind)));
            }
        }
        index.resolve();
        index.entries.check()?;
        Ok(index)
    }

    /// 1-based line number of an entry.
    pub(super) fn line_of(&self, entry: u32) -> u64 {
        let before = self.extras.partition_point(|&x| x <= entry);
        u64::from(entry) + 1 - before as u64
    }

    /// Which record of its line an entry is, and whether it has others beside it.
    pub(super) fn record_of_line(&self, entry: u32) -> (u64, bool) {
        if self.extras.is_empty() {
            return (0, false);
        }
        let is_extra = |e: u32| self.extras.binary_search(&e).is_ok();
        let mut before = 0;
        while is_extra(entry.saturating_sub(before)) {
            before += 1;
        }
        (u64::from(before), before > 0 || is_extra(entry + 1))
    }

    /// Where the line of an entry begins and how long it is without its line feed.
    pub(super) fn place(&self, entry: u32) -> (u64, usize) {
        let mark = entry as usize / 256;
        let mut offset = self.marks.get(mark).copied().unwrap_or(0);
        for before in mark as u32 * 256..entry {
            offset += u64::from(self.entry(before).length);
        }
        (offset, self.entry(entry).length as usize)
    }

    /// Bytes of the file up to the last line that was seen.
    pub(super) fn size(&self) -> u64 {
        match self.entries.len().checked_sub(1) {
            Some(last) => {
                let (offset, length) = self.place(last as u32);
                offset + length as u64
            }
            None => 0,
        }
    }

    pub(super) fn entry(&self, at: u32) -> Entry {
        self.entries.get(at as usize).unwrap_or(Entry::of_length(0))
    }

    pub(super) fn change(&mut self, at: u32, change: impl FnOnce(&mut Entry)) {
        self.entries.update(at as usize, change);
    }

    pub(super) fn set(&mut self, at: u32, bits: u32) {
        self.change(at, |e| e.bits |= bits);
    }

    pub(super) fn hash(&self, text: Text<'_>) -> u64 {
        // one id may be spelled with and without escapes
        match text.plain() {
            Some(bytes) => self.hasher.hash_one(bytes),
            None => self.hasher.hash_one(text.decode().as_bytes()),
        }
    }

    /// The entry with this id, links and state lines too.
    pub(super) fn find(&self, id: u64) -> Option<u32> {
        self.ids.find(id, |entry| self.entry(entry).id)
    }

    fn push(&mut self, entry: Entry, offset: u64) -> u32 {
        let at = self.entries.len() as u32;
        if at.is_multiple_of(256) {
            self.marks.push(offset);
        }
        self.entries.push(entry);
        at
    }

    /// Takes one line: finds out what it is, whatever its state.
    fn line(&mut self, bytes: &[u8], terminated: bool, length: usize, offset: u64, tape: &mut Tape) {
        let number = self.entries.len() as u64 + 1 - self.extras.len() as u64;
        let owner = self.push(Entry::of_length(length), offset);
        if bytes.iter().all(u8::is_ascii_whitespace) {
            return;
        }
        // a byte order mark is no part of the first record
        let bom = if number == 1 && bytes.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 };
        let body = bytes.get(bom..).unwrap_or_default();
        match tape.parse_opaque(body, OPAQUE) {
            Ok(value) if value.is_object() => {
                if let Some(key) = value.duplicate_key() {
                    self.problems.add(problem::DUPLICATE_KEY, Some(number), key.decode());
                }
                if value.has_lone_surrogate() {
                    self.problems.add(problem::SURROGATE, Some(number), "replaced by U+FFFD");
                    let fixed = json::without_lone_surrogates(body);
                    self.patch(owner, Patch { owner, range: bom..bytes.len(), nul: false }, 0, &fixed, tape);
                } else if bom > 0 {
                    self.patch(owner, Patch { owner, range: bom..bytes.len(), nul: false }, 0, body, tape);
                } else {
                    self.record(owner, value, 0);
                }
                return;
            }
            Ok(_) => {
                self.problems.add(problem::BAD_LINE, Some(number), "JSON, but no object");
                return;
            }
            Err(_) => {}
        }
        self.damaged(owner, number, bytes, bom, terminated, tape);
    }

    /// A line that is no JSON as it stands. The client reads the first of several glued values and lossy
    /// UTF-8 (READING.md rule 5); the rest is a rescue.
    fn damaged(
        &mut self,
        owner: u32,
        number: u64,
        bytes: &[u8],
        bom: usize,
        terminated: bool,
        tape: &mut Tape,
    ) {
        let mut body = bytes.get(bom..).unwrap_or_default().to_vec();
        let mut nul = None;
        if let Err(json::Error::Utf8(_)) = tape.parse(&body) {
            self.problems.add(problem::UTF8, Some(number), "bytes that are no UTF-8 replaced by U+FFFD");
            body = String::from_utf8_lossy(&body).into_owned().into_bytes();
        }
        if let Some(first) = memchr::memchr(0, &body) {
            nul = Some(first);
            let all = body.len();
            body.retain(|&b| b != 0);
            self.problems.add(problem::NUL, Some(number), format!("{} NUL bytes", all - body.len()));
            if body.iter().all(u8::is_ascii_whitespace) {
                return;
            }
        }
        let mut start = 0;
        let mut found = 0u32;
        let mut lost = false;
        while let Some(rest) = body.get(start..) {
            let lead = rest.iter().take_while(|b| b.is_ascii_whitespace()).count();
            start += lead;
            let Some(rest) = body.get(start..).filter(|r| !r.is_empty()) else { break };
            match tape.parse_prefix(rest) {
                Ok((value, end)) if value.is_object() => {
                    let range = start + bom..start + bom + end;
                    let record = if value.has_lone_surrogate() {
                        json::without_lone_surrogates(rest.get(..end).unwrap_or_default())
                    } else {
                        rest.get(..end).unwrap_or_default().to_vec()
                    };
                    let at = if found == 0 {
                        owner
                    } else {
                        let none = Entry::of_length(0);
                        let offset = self.place(owner).0 + u64::from(self.entry(owner).length);
                        let at = self.push(none, offset);
                        self.extras.push(at);
                        at
                    };
                    // the client reads a whole value at the start of a line, whatever stands behind it
                    let reached = nul.is_some_and(|first| first < start + end);
                    let bits = if found > 0 || lost || reached { bit::RESCUED } else { 0 };
                    if bits != 0 && self.lenient {
                        self.problems.add(
                            problem::RESCUED,
                            Some(number),
                            "a record that the client loses with its damaged line",
                        );
                    }
                    found += 1;
                    self.patch(at, Patch { owner, range, nul: nul.is_some() }, bits, &record, tape);
                    start += end;
                }
                _ => {
                    lost = true;
                    // a record cut short, and perhaps a whole one behind it
                    match next_record(rest) {
                        Some(skip) => start += skip,
                        None => break,
                    }
                }
            }
        }
        if found > 1 || (found > 0 && lost) {
            self.problems.add(problem::GLUED, Some(number), format!("{found} records found on one line"));
        }
        if found == 0 || lost {
            if terminated {
                self.problems.add(problem::BAD_LINE, Some(number), "no JSON");
            } else {
                self.problems.add(
                    problem::TRUNCATED_TAIL,
                    Some(number),
                    "the last line is cut or still being written",
                );
            }
        }
    }

    fn patch(&mut self, at: u32, patch: Patch, bits: u32, record: &[u8], tape: &mut Tape) {
        self.patches.insert(at, patch);
        if let Ok(value) = tape.parse_opaque(record, OPAQUE) {
            self.record(at, value, bits | bit::PATCHED);
        }
    }

    /// Takes one record.
    fn record(&mut self, at: u32, value: Value<'_>, mut bits: u32) {
        let line = self.line_of(at);
        let fields = Fields::of(value);
        let decoded = fields.kind.map(|t| {
            t.plain().map_or_else(|| Cow::Owned(t.decode().into_owned().into_bytes()), Cow::Borrowed)
        });
        let kind = match decoded.as_deref() {
            Some(b"user") => Kind::User,
            Some(b"assistant") => Kind::Assistant,
            Some(b"attachment") => Kind::Attachment,
            Some(b"system") => Kind::System,
            Some(b"progress") => Kind::Progress,
            Some(other) => {
                if STATE_TYPES.iter().any(|t| t.as_bytes() == other) {
                    self.facts.claude += 1;
                } else {
                    let name = String::from_utf8_lossy(other).chars().take(60).collect::<String>();
                    self.problems.add(problem::UNKNOWN_TYPE, Some(line), name);
                }
                Kind::State
            }
            None => {
                self.problems.add(problem::UNKNOWN_TYPE, Some(line), "a line without type");
                Kind::State
            }
        };
        let message = fields.message;
        if message.is_some_and(|m| m.get("parts").is_some()) {
            self.facts.qwen += 1;
            self.bits(at, Kind::State as u32 | bits);
            return;
        }
        if kind != Kind::State {
            self.facts.claude += 1;
        }
        for (is, bit) in [
            (fields.sidechain, bit::SIDECHAIN),
            (fields.meta, bit::META),
            (fields.api_error, bit::API_ERROR),
            (fields.summary, bit::SUMMARY),
        ] {
            if is {
                bits |= bit;
            }
        }
        if fields.relay.and_then(|r| r.get("note")).and_then(|v| v.bool()) == Some(true) {
            bits |= bit::NOTE;
        }
        let is_tree = matches!(kind, Kind::User | Kind::Assistant | Kind::Attachment | Kind::System);
        bits |= self.session_bits(fields.session);
        self.header(&fields, kind);
        match kind {
            Kind::User | Kind::Assistant => {
                if let Some(message) = message {
                    bits |= self.message(at, kind, message, &fields);
                }
            }
            Kind::Attachment => {
                let a = fields.attachment;
                let queued = a.and_then(|a| a.get("type")).and_then(|t| t.text());
                let prompt = a.and_then(|a| a.get("prompt"));
                if queued.is_some_and(|t| t == "queued_command") && prompt.is_some_and(|p| !is_empty(p)) {
                    bits |= bit::QUEUED | bit::OTHER;
                }
                if let Some(path) = a.and_then(attached::path).and_then(|path| path.text()) {
                    bits |= bit::SHOWN;
                    self.facts.files.shown(path.decode().into_owned());
                }
            }
            Kind::System => match fields.subtype.map(|t| t.decode()).as_deref() {
                Some("compact_boundary") => bits |= bit::BOUNDARY | keeps(fields.compaction),
                Some("local_command") => bits |= bit::LOCAL_COMMAND | bit::OTHER,
                _ => {}
            },
            Kind::State => self.state(value, self.lenient || bits & bit::RESCUED == 0),
            Kind::Nothing | Kind::Progress => {}
        }
        self.bits(at, kind as u32 | bits);
        if is_tree && (self.lenient || bits & bit::RESCUED == 0) {
            self.behind_a_name(at, &fields, bits);
        }
        self.connect(at, &fields, is_tree, kind);
    }

    /// What a line of the tree does to the lines before it: a `last-prompt` is no longer the newest, a
    /// boundary takes it back, and may be where the client begins to read.
    fn behind_a_name(&mut self, at: u32, fields: &Fields<'_>, bits: u32) {
        if bits & bit::BOUNDARY == 0 {
            if let Some(named) = &mut self.leaf {
                named.newest = false;
            }
            return;
        }
        self.boundaries = true;
        self.leaf = None;
        let list = |key| fields.compaction.and_then(|m| m.get(key)).is_some_and(|v| v.is_object());
        if self.large && !list("preservedMessages") && !list("preservedSegment") {
            self.from = at;
            if !self.lenient {
                self.ids = Slots::default();
                self.pending.clear();
            }
        }
    }

    fn bits(&mut self, at: u32, bits: u32) {
        self.change(at, |e| e.bits = bits);
    }

    /// Enters a line into the tree.
    fn connect(&mut self, at: u32, fields: &Fields<'_>, is_tree: bool, kind: Kind) {
        let own = fields.id;
        let id = match own {
            Some(own) => self.hash(own),
            // lines without id share one place, the last one wins (READING.md rule 2)
            None if is_tree && !self.lenient => self.hasher.hash_one("undefined".as_bytes()),
            None if is_tree => {
                self.set(at, bit::NO_ID);
                let named = fields.parent.filter(|id| !id.is_empty()).map(|id| self.hash(id));
                let parent = named.and_then(|id| self.find(id)).unwrap_or(self.previous);
                self.change(at, |e| e.parent = parent);
                if !self.entry(at).has(bit::SIDECHAIN) {
                    self.previous = at;
                }
                let line = self.line_of(at);
                self.problems.add(problem::RESCUED, Some(line), "a line without id, read in file order");
                return;
            }
            None => return,
        };
        let line = self.line_of(at);
        self.change(at, |e| e.id = id);
        let parent = match fields.parent {
            None => NONE,
            Some(text) if text.is_empty() => NONE,
            Some(text) => {
                let hash = self.hash(text);
                self.find(hash).unwrap_or_else(|| {
                    self.pending.push((at, hash));
                    DANGLING
                })
            }
        };
        self.change(at, |e| e.parent = parent);
        match self.find(id) {
            None => self.ids.insert(id, at),
            Some(first) => {
                if own.is_some() {
                    self.problems.add(
                        problem::DUPLICATE_ID,
                        Some(line),
                        format!("also line {}", self.line_of(first)),
                    );
                }
                self.supersede(first, at, kind, parent);
            }
        }
        if is_tree && !self.entry(at).has(bit::SIDECHAIN) && !self.entry(at).has(bit::SUPERSEDED) {
            self.previous = at;
        }
    }

    /// Two lines with one id: the position of the first, the content of the last (READING.md rule 3).
    fn supersede(&mut self, first: u32, last: u32, kind: Kind, parent: u32) {
        let was = self.entry(first);
        if self.entry(last).has(bit::RESCUED)
            || !matches!(kind, Kind::User | Kind::Assistant | Kind::Attachment | Kind::System)
        {
            self.set(last, bit::SUPERSEDED);
            return;
        }
        let new = self.entry(last);
        self.set(last, bit::SUPERSEDED);
        if let Some(more) = self.more_tools.get(&last).cloned() {
            self.more_tools.insert(first, more);
        }
        if let Some(old) = self.newest.insert(first, last) {
            self.set(old, bit::SUPERSEDED);
        }
        self.change(first, |e| {
            // what it is found by stays
            let (id, message, length) = (was.id, was.message, e.length);
            // how its bytes are read is a matter of the place too
            let mut bits = new.bits & !bit::PATCHED | was.bits & bit::PATCHED;
            if (was.bits ^ new.bits) & bit::FORM != 0 {
                // records made as for the last line would not give the first one back
                bits |= bit::PATCHED;
            }
            *e = Entry { id, message, length, parent, bits, ..new };
        });
        if self.lenient && parent == NONE && was.parent != NONE && was.is_node() {
            // the client loses what stands before; the plan says so when it matters
            self.cut.insert(first);
            self.change(first, |e| e.parent = was.parent);
            return;
        }
        self.cut.remove(&first);
        // what waits for the place's older parent is passed over when it is resolved
        if let Some(newest) = self.pending.last_mut().filter(|(at, _)| *at == last) {
            newest.0 = first;
        }
    }

    /// Parents that stand behind their children.
    fn resolve(&mut self) {
        let mut pending = std::mem::take(&mut self.pending);
        // stable, so that the last one of a line is its newest
        pending.sort_by_key(|(at, _)| *at);
        for of_line in pending.chunk_by(|a, b| a.0 == b.0) {
            let Some(&(at, hash)) = of_line.last().filter(|(at, _)| self.entry(*at).parent == DANGLING)
            else {
                continue;
            };
            let parent = self.find(hash).unwrap_or(DANGLING);
            self.change(at, |e| e.parent = parent);
            if parent == DANGLING {
                self.missing.push((at, hash));
            }
        }
    }

    fn session_bits(&mut self, id: Option<Text<'_>>) -> u32 {
        let Some(id) = id else { return 31 << bit::SESSION };
        let hash = self.hash(id);
        let n = match self.sessions.iter().position(|&h| h == hash) {
            Some(n) => n,
            None => {
                self.sessions.push(hash);
                if self.facts.session_ids.len() < 32 {
                    self.facts.session_ids.push(id.decode().into_owned());
                }
                self.sessions.len() - 1
            }
        };
        (n.min(30) as u32) << bit::SESSION
    }

    /// Blocks and ids of a message.
    fn message(&mut self, at: u32, kind: Kind, message: Value<'_>, line: &Fields<'_>) -> u32 {
        let mut bits = 0;
        if kind == Kind::Assistant {
            if let Some(id) = message.get("id").and_then(|v| v.text()).filter(|t| !t.is_empty()) {
                let hash = self.hash(id);
                let group = match self.groups.find(hash, |entry| self.entry(entry).message) {
                    Some(group) => group,
                    None => {
                        self.groups.insert(hash, at);
                        at
                    }
                };
                self.change(at, |e| (e.message, e.group) = (hash, group));
            }
            self.assistant_facts(message, line);
        }
        let Some(content) = message.get("content") else { return bits };
        let mut tools: Vec<u64> = Vec::new();
        if let Some(text) = content.text() {
            bits |= bit::OTHER;
            if text.is_blank() {
                bits |= bit::BLANK;
            }
            if kind == Kind::User && text == "Warmup" || kind == Kind::Assistant && is_no_content(text) {
                bits |= bit::WARMUP;
            }
            if kind == Kind::Assistant && self.is_synthetic(message) && text == "No response requested." {
                bits |= bit::SYNTHETIC;
            }
        }
        let mut blank = content.items().next().is_some();
        let alone = content.items().nth(1).is_none();
        for block in content.items() {
            if !block.is_object() {
                if self.lenient && block.text().is_some() {
                    bits |= bit::OTHER;
                    blank = false;
                }
                continue;
            }
            let block = Block::of(block);
            if block.kind.is_some_and(|t| t == "tool_use") && kind == Kind::Assistant {
                bits |= bit::CALL;
                self.call(&block, line);
                tools.push(block.id.map_or(0, |id| self.hash(id)));
            } else if block.kind.is_some_and(|t| t == "tool_result") && kind == Kind::User {
                bits |= bit::RESULT;
                self.result(&block, line);
                tools.push(block.result_of.map_or(0, |id| self.hash(id)));
            } else {
                bits |= bit::OTHER;
            }
            let text = block.text.and_then(|v| v.text());
            let is_text = block.kind.is_some_and(|t| t == "text");
            blank &= is_text && text.is_none_or(|t| t.is_blank());
            if is_text && kind == Kind::User && text.is_some_and(|t| t == "Warmup") {
                bits |= bit::WARMUP;
            }
            if is_text && kind == Kind::Assistant && alone && text.is_some_and(is_no_content) {
                bits |= bit::EMPTY;
            }
            if is_text
                && kind == Kind::Assistant
                && text.is_some_and(|t| t == "No response requested.")
                && self.is_synthetic(message)
            {
                bits |= bit::SYNTHETIC;
            }
        }
        if blank {
            bits |= bit::BLANK;
        }
        if let Some(&first) = tools.first() {
            self.change(at, |e| e.tool = first);
        }
        if tools.len() > 1 {
            bits |= bit::MANY;
            self.more_tools.insert(at, tools);
        }
        bits
    }

    fn is_synthetic(&self, message: Value<'_>) -> bool {
        message.get("model").and_then(|v| v.text()).is_some_and(|t| t == "<synthetic>")
    }

    fn assistant_facts(&mut self, message: Value<'_>, line: &Fields<'_>) {
        if line.sidechain {
            return;
        }
        if let Some(model) = message.get("model").and_then(|v| v.text()).filter(|t| *t != "<synthetic>") {
            replace(&mut self.facts.model, model);
            if let Some(usage) = message.get("usage") {
                let n = |key| usage.get(key).and_then(|v| v.u64()).unwrap_or(0);
                let used = n("input_tokens")
                    .saturating_add(n("cache_creation_input_tokens"))
                    .saturating_add(n("cache_read_input_tokens"))
                    .saturating_add(n("output_tokens"));
                if used > 0 {
                    self.facts.used_tokens = Some(used);
                }
            }
        }
    }

    fn call(&mut self, block: &Block<'_>, line: &Fields<'_>) {
        let (Some(id), Some(name), Some(input)) = (block.id, block.name, block.input) else { return };
        let path = |key| input.get(key).and_then(|v| v.text()).map(|t| t.decode().into_owned());
        let directory = || line.cwd.map(|t| t.decode());
        let file = |key| path(key).map(|p| joined(directory().as_deref(), &p));
        let key = self.hash(id);
        match &*name.decode() {
            "Write" => self.facts.files.write(key, file("file_path")),
            "Edit" | "MultiEdit" | "Update" => self.facts.files.edit(key, file("file_path")),
            "NotebookEdit" => self.facts.files.edit(key, file("notebook_path")),
            "Read" | "NotebookRead" => {
                self.facts.files.read(key, file("file_path").or_else(|| file("notebook_path")))
            }
            "Bash" => {
                if let Some(command) = path("command") {
                    self.facts.files.shell(key, &command, directory().as_deref());
                }
            }
            _ => {}
        }
    }

    fn result(&mut self, block: &Block<'_>, line: &Fields<'_>) {
        let Some(id) = block.result_of else { return };
        let key = self.hash(id);
        if self.facts.files.is_open(key) {
            let created =
                line.result.and_then(|v| v.get("type")).and_then(|v| v.text()).map(|t| t == "create");
            let when = line.timestamp.map(|t| t.decode().into_owned());
            self.facts.files.settle(key, !block.is_error, created, when);
        }
    }

    /// Facts that any line may tell.
    fn header(&mut self, line: &Fields<'_>, kind: Kind) {
        if let Some(time) = line.timestamp
            && super::text::is_time(time)
        {
            if self.facts.first_time.is_none() {
                self.facts.first_time = Some(time.decode().into_owned());
            }
            replace(&mut self.facts.last_time, time);
        }
        if let Some(relay) = line.relay {
            self.relay_facts(relay);
        }
        if kind == Kind::State || kind == Kind::Progress {
            return;
        }
        if let Some(id) = line.agent.filter(|_| line.sidechain) {
            replace(&mut self.facts.agent_id, id);
        }
        if let Some(cwd) = line.cwd.filter(|t| !t.is_empty()) {
            let known = self.facts.directories.iter().rev().any(|d| cwd == d.as_str());
            if !known && self.facts.directories.len() < 64 {
                self.facts.directories.push(cwd.decode().into_owned());
            }
        }
        if let Some(version) = line.version {
            replace(&mut self.facts.version, version);
        }
        if let Some(branch) = line.branch.filter(|t| !t.is_empty() && *t != "HEAD") {
            replace(&mut self.facts.branch, branch);
        }
    }

    /// A session that relay wrote says so on its first line.
    fn relay_facts(&mut self, relay: Value<'_>) {
        if relay.get("relay_id").is_none() || self.facts.relay.is_some() {
            return;
        }
        let mut lineage: Vec<Lineage> =
            relay.get("lineage").and_then(|v| serde_json::from_slice(v.raw()).ok()).unwrap_or_default();
        if let Ok(own) = serde_json::from_slice::<Lineage>(relay.raw())
            && lineage.last().is_none_or(|l| l.relay_id != own.relay_id)
        {
            lineage.push(own);
        }
        self.facts.relay = Some(lineage);
    }

    /// A state line; `read` when the client reads it too.
    fn state(&mut self, value: Value<'_>, read: bool) {
        let text = |key| value.get(key).and_then(|v: Value<'_>| v.text()).filter(|t| !t.is_empty());
        match value.get("type").and_then(|v| v.text()).map(|t| t.decode()).as_deref() {
            Some("custom-title") => {
                if let Some(t) = text("customTitle") {
                    replace(&mut self.facts.custom_title, t);
                }
            }
            Some("ai-title") => {
                if let Some(t) = text("aiTitle") {
                    replace(&mut self.facts.generated_title, t);
                }
            }
            Some("summary") => {
                if let (Some(title), Some(leaf)) = (text("summary"), text("leafUuid")) {
                    let hash = self.hash(leaf);
                    self.facts.summaries.retain(|(h, _)| *h != hash);
                    if self.facts.summaries.len() < 256 {
                        self.facts.summaries.push((hash, title.decode().into_owned()));
                    }
                }
            }
            Some("last-prompt") if read => {
                // also one that names no line of the file takes back the ones before
                if let Some(leaf) = text("leafUuid") {
                    let explicit = value.get("explicit").and_then(|v| v.bool()) == Some(true);
                    self.leaf = Some(Named { id: self.hash(leaf), explicit, newest: true });
                }
            }
            _ => {}
        }
    }

    /// Tool ids of an entry, calls or results.
    pub(super) fn tools(&self, at: u32) -> ToolIds<'_> {
        let e = self.entry(at);
        if e.has(bit::MANY)
            && let Some(more) = self.more_tools.get(&at)
        {
            return ToolIds::Many(more.iter());
        }
        let any = e.has(bit::CALL | bit::RESULT);
        ToolIds::One(any.then_some(e.tool))
    }
}

/// Tool ids of one line.
pub(super) enum ToolIds<'a> {
    One(Option<u64>),
    Many(std::slice::Iter<'a, u64>),
}

impl Iterator for ToolIds<'_> {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        match self {
            ToolIds::One(one) => one.take(),
            ToolIds::Many(many) => many.next().copied(),
        }
    }
}

/// Whether a text is what the client writes for an answer without content.
fn is_no_content(text: Text<'_>) -> bool {
    text.raw().len() < 64 && text.decode().trim() == "(no content)"
}

/// Whether a boundary says what the compaction keeps: [`bit::KEEPS`] or nothing.
fn keeps(metadata: Option<Value<'_>>) -> u32 {
    let of = |key| metadata.and_then(|m| m.get(key)).filter(Value::is_object);
    let list = of("preservedMessages").and_then(|m| m.get("uuids")).filter(|v| v.kind() == json::Kind::Array);
    if list.is_some() || of("preservedSegment").is_some() { bit::KEEPS } else { 0 }
}

fn is_empty(value: Value<'_>) -> bool {
    match value.text() {
        Some(text) => text.is_empty(),
        None => value.items().next().is_none(),
    }
}

fn replace(to: &mut Option<String>, text: Text<'_>) {
    match to {
        Some(old) if text == old.as_str() => {}
        _ => *to = Some(text.decode().into_owned()),
    }
}

/// Where the next record begins in a line that starts with a cut one: the clients write these keys first.
fn next_record(rest: &[u8]) -> Option<usize> {
    let mut from = 1;
    while let Some(n) = rest.get(from..).and_then(|r| memchr::memchr(b'{', r)) {
        let at = from + n;
        let tail = rest.get(at + 1..)?;
        if [&b"\"parentUuid\""[..], b"\"type\"", b"\"timestamp\""].iter().any(|k| tail.starts_with(k)) {
            return Some(at);
        }
        from = at + 1;
    }
    None
}
