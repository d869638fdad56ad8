//! The first pass: which lines make the history, and what the header needs.
//!
//! Lines that cannot change the history leave nothing behind; the others leave 32 bytes, and the replay adds
//! five more.

use super::chain::Segment;
use super::events;
use super::files::Files;
use super::line::{self, Checks, Compacted, Item, Line, Mark, Sort, Standing, What, field, id_hash, text};
use crate::agents::{History, ReadOptions};
use crate::json::{Tape, Value};
use crate::record::{Context, Error, Git, Lineage, Problems, Result, problem};
use crate::stream::{Lines, Row, Table};
use std::io::Read;

/// What an entry is to the replay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Item,
    /// An item of the replacement history of the compaction before it.
    Replaced,
    Compacted,
    /// `aux` turns are taken back.
    RolledBack,
    /// `aux` is the hash of the turn's id, or 0.
    Started,
    Ended,
    Context,
    Aborted,
    Prompt,
}

/// Properties of an entry.
pub(super) mod flag {
    /// A rollback counts it.
    pub(in super::super) const BOUNDARY: u16 = 1;
    /// The client's own text.
    pub(in super::super) const CONTEXTUAL: u16 = 2;
    /// The client cannot read it.
    pub(in super::super) const LOST: u16 = 4;
    /// A call; `aux` is the hash of its id.
    pub(in super::super) const CALL: u16 = 8;
    /// An output; `aux` is the hash of its call's id.
    pub(in super::super) const OUTPUT: u16 = 16;
    /// Of a custom tool, and of a tool search: kinds must match to pair.
    pub(in super::super) const CUSTOM: u16 = 32;
    pub(in super::super) const SEARCH: u16 = 64;
    /// Only the vendor can read it. On a compaction: its history has no other summary.
    pub(in super::super) const ENCRYPTED: u16 = 128;
    /// A compaction with a replacement history.
    pub(in super::super) const REPLACES: u16 = 256;
    /// An item of a replacement history that the client leaves out.
    pub(in super::super) const LEFT_OUT: u16 = 512;
    /// A message of the user, not of another agent.
    pub(in super::super) const USER: u16 = 1024;
}

/// One thing that the replay must know of.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry {
    /// Where the line begins in its segment, in bytes.
    pub(super) offset: u64,
    pub(super) aux: u64,
    /// 1-based line of its segment.
    pub(super) line: u32,
    /// Index of the segment.
    pub(super) segment: u16,
    pub(super) flags: u16,
    pub(super) kind: Kind,
}

const KINDS: [Kind; 9] = [
    Kind::Item,
    Kind::Replaced,
    Kind::Compacted,
    Kind::RolledBack,
    Kind::Started,
    Kind::Ended,
    Kind::Context,
    Kind::Aborted,
    Kind::Prompt,
];

impl Row for Entry {
    const SIZE: usize = 25;

    fn write(self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.offset.to_le_bytes());
        out.extend_from_slice(&self.aux.to_le_bytes());
        out.extend_from_slice(&self.line.to_le_bytes());
        out.extend_from_slice(&self.segment.to_le_bytes());
        out.extend_from_slice(&self.flags.to_le_bytes());
        out.push(self.kind as u8);
    }

    fn read(bytes: &[u8]) -> Option<Entry> {
        let (offset, rest) = bytes.split_first_chunk()?;
        let (aux, rest) = rest.split_first_chunk()?;
        let (line, rest) = rest.split_first_chunk()?;
        let (segment, rest) = rest.split_first_chunk()?;
        let (flags, rest) = rest.split_first_chunk()?;
        Some(Entry {
            offset: u64::from_le_bytes(*offset),
            aux: u64::from_le_bytes(*aux),
            line: u32::from_le_bytes(*line),
            segment: u16::from_le_bytes(*segment),
            flags: u16::from_le_bytes(*flags),
            kind: KINDS.get(usize::from(*rest.first()?)).copied()?,
        })
    }
}

impl Entry {
    pub(super) fn is(&self, flags: u16) -> bool {
        self.flags & flags != 0
    }
}

/// What the header needs.
#[derive(Debug, Default)]
pub(super) struct Facts {
    pub(super) id: Option<String>,
    pub(super) created: Option<String>,
    pub(super) updated: Option<String>,
    /// Where the session began: the header's directory, else the first that a turn names.
    pub(super) directory: Option<String>,
    /// Where it runs at this point.
    turn_directory: Option<String>,
    pub(super) title: Option<String>,
    pub(super) model: Option<String>,
    pub(super) version: Option<String>,
    pub(super) git: Option<Git>,
    pub(super) parent: Option<String>,
    pub(super) context: Option<Context>,
    pub(super) lineage: Vec<Lineage>,
    pub(super) files: Files,
    meta_seen: bool,
}

/// What the first pass found.
#[derive(Debug)]
pub(super) struct Index {
    pub(super) entries: Table<Entry>,
    pub(super) facts: Facts,
    /// Bytes of each segment that were read, so that the second pass stops at the same place.
    pub(super) ends: Vec<u64>,
    /// Whether a segment is of the bare format.
    pub(super) bare: Vec<bool>,
    /// No response item at all: the conversation is rescued from events.
    pub(super) from_events: Option<events::Dialect>,
    /// Lines that are records of a rollout.
    pub(super) known_lines: u64,
    /// Whether every line is UTF-8.
    pub(super) utf8: bool,
    pub(super) problems: Problems,
}

/// Reads all segments once. The last one is the file itself.
pub(super) fn index(segments: &[Segment<'_>], options: &ReadOptions) -> Result<Index> {
    let mut index = Index {
        entries: Table::new(),
        facts: Facts::default(),
        ends: Vec::new(),
        bare: Vec::new(),
        from_events: None,
        known_lines: 0,
        utf8: true,
        problems: Problems::default(),
    };
    let mut events = events::Finder::default();
    for (n, segment) in segments.iter().enumerate() {
        let own = n + 1 == segments.len();
        read_segment(&mut index, &mut events, n, segment, own, options)?;
    }
    if options.history != History::Exact {
        let items = index.entries.iter().any(|e| matches!(e.kind, Kind::Item | Kind::Compacted));
        if let (false, Some((dialect, found))) = (items, events.finish()) {
            index.from_events = Some(dialect);
            // without items there are only marks, which are few
            let mut all: Vec<Entry> = index.entries.iter().chain(found).collect();
            all.sort_by_key(|e| (e.segment, e.line));
            index.entries.check()?;
            index.entries = Table::new();
            for entry in all {
                index.entries.push(entry);
            }
        }
    }
    index.entries.check()?;
    Ok(index)
}

fn read_segment(
    index: &mut Index,
    events: &mut events::Finder,
    number: usize,
    segment: &Segment<'_>,
    own: bool,
    options: &ReadOptions,
) -> Result<()> {
    let native = segment.native();
    let rescue = options.history != History::Exact;
    let too_many = || Error::input(native.name(), "more lines or segments than can be counted");
    let mut lines = Lines::new(native.reader_at(0)?.take(segment.upto));
    let mut tape = Tape::new();
    let mut pass = Pass { index, events, bare: None, own, rescue };
    let mut line_number = 0u64;
    let mut end = 0;
    while let Some(found) = lines.next_line().map_err(Error::io(native.name()))? {
        line_number += 1;
        end = found.offset + found.bytes.len() as u64 + u64::from(found.terminated);
        if found.bytes.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        let entry = Entry {
            offset: found.offset,
            aux: 0,
            line: u32::try_from(line_number).map_err(|_| too_many())?,
            segment: u16::try_from(number).map_err(|_| too_many())?,
            flags: 0,
            kind: Kind::Item,
        };
        let scanned = tape.parse(found.bytes);
        let damage = line::damage(found.bytes, scanned);
        if let (Ok(value), None) = (scanned, damage) {
            pass.record(value, entry);
            continue;
        }
        let damage = damage.unwrap_or(problem::BAD_LINE);
        pass.index.utf8 &= damage != problem::UTF8;
        let cut = damage == problem::BAD_LINE && !found.terminated;
        let kind = if cut { problem::TRUNCATED_TAIL } else { damage };
        if options.strict {
            let place = format!("{}:{line_number}", native.name());
            return Err(Error::input(place, format!("a line that cannot be read ({kind})")));
        }
        if own {
            pass.index.problems.add(kind, Some(line_number), "");
        }
        if rescue {
            let repaired = line::repair(found.bytes, damage, &mut tape, pass.bare.unwrap_or(false));
            for range in repaired.records {
                if let Ok(value) = tape.parse(repaired.bytes.get(range).unwrap_or_default()) {
                    pass.record(value, entry);
                }
            }
        }
    }
    let bare = pass.bare.unwrap_or(false);
    index.ends.push(end);
    index.bare.push(bare);
    Ok(())
}

/// The first pass over one segment.
struct Pass<'p> {
    index: &'p mut Index,
    events: &'p mut events::Finder,
    /// Whether it is of the bare format, which its first record tells.
    bare: Option<bool>,
    own: bool,
    rescue: bool,
}

impl Pass<'_> {
    fn record(&mut self, value: Value<'_>, entry: Entry) {
        let bare = *self.bare.get_or_insert_with(|| line::is_bare_meta(value) || line::is_bare_line(value));
        let line = line::sort(value, bare, Checks::Shapes);
        self.index.known_lines += u64::from(!matches!(line.sort, Sort::Unknown(_) | Sort::Broken("no type")));
        if self.own {
            problems(&mut self.index.problems, &line, u64::from(entry.line), self.rescue);
        }
        self.index.facts.line(&line, self.own);
        if self.rescue {
            self.events.line(&line, entry);
        }
        push(&mut self.index.entries, &line, entry, self.rescue);
    }
}

/// Adds what a line is to the replay. The second pass counts on the same number of entries a line.
fn push(entries: &mut Table<Entry>, line: &Line<'_>, entry: Entry, rescue: bool) {
    match line.sort {
        Sort::Item(item) if item.lost.is_none() || rescue => entries.push(of_item(&item, entry)),
        Sort::Compacted(compacted) => of_compacted(entries, &compacted, entry),
        Sort::Mark(mark) => {
            let (kind, aux) = match mark {
                Mark::Started(id) => (Kind::Started, id.unwrap_or(0)),
                Mark::Ended(id) => (Kind::Ended, id.unwrap_or(0)),
                Mark::Context(id) => (Kind::Context, id.unwrap_or(0)),
                Mark::Aborted(id) => (Kind::Aborted, id.unwrap_or(0)),
                Mark::Prompt => (Kind::Prompt, 0),
                Mark::RolledBack(turns) => (Kind::RolledBack, u64::from(turns)),
            };
            // a turn has one context a request: only the first of a run tells anything
            let again = kind == Kind::Context
                && (entries.len().checked_sub(1).and_then(|last| entries.get(last)))
                    .is_some_and(|e| e.kind == kind && e.aux == aux && e.segment == entry.segment);
            if !again {
                entries.push(Entry { kind, aux, ..entry });
            }
        }
        _ => {}
    }
}

fn of_item(item: &Item<'_>, entry: Entry) -> Entry {
    let mut flags = match line::standing(item) {
        Standing::Boundary => flag::BOUNDARY,
        Standing::Contextual => flag::CONTEXTUAL,
        Standing::Plain => 0,
    };
    if item.lost.is_some() {
        flags |= flag::LOST;
    }
    flags |= match item.what {
        What::Message if text(item.payload, "role").is_some_and(|r| r == "user") => flag::USER,
        What::FunctionCall | What::LocalShell => flag::CALL,
        What::CustomCall => flag::CALL | flag::CUSTOM,
        What::ToolSearch => flag::CALL | flag::SEARCH,
        What::FunctionOutput => flag::OUTPUT,
        What::CustomOutput => flag::OUTPUT | flag::CUSTOM,
        What::ToolSearchOutput => flag::OUTPUT | flag::SEARCH,
        What::Compaction => flag::ENCRYPTED,
        _ => 0,
    };
    let id = text(item.payload, "call_id").map(id_hash);
    if id.is_none() {
        // a shell call without id pairs with nothing (rule 6)
        flags &= !(flag::CALL | flag::OUTPUT);
    }
    Entry { aux: id.unwrap_or(0), flags, ..entry }
}

fn of_compacted(entries: &mut Table<Entry>, compacted: &Compacted<'_>, entry: Entry) {
    let message = compacted.message.decode();
    let at = entries.len();
    let mut flags = 0;
    if line::standing_of_text(&[&*message]) == Standing::Boundary {
        // to the client it is a prompt like any other, and the next such compaction keeps it
        flags |= flag::BOUNDARY | flag::USER;
    }
    entries.push(Entry { kind: Kind::Compacted, flags, ..entry });
    let Some(items) = compacted.replacement else { return };
    let (mut encrypted, mut readable) = (false, false);
    for value in items.items() {
        let replaced = Entry { kind: Kind::Replaced, ..entry };
        match line::replaced(value) {
            None => entries.push(Entry { flags: flag::LEFT_OUT, ..replaced }),
            Some(item) => {
                encrypted |= item.what == What::Compaction;
                readable |= is_summary(&item, compacted);
                entries.push(of_item(&item, replaced));
            }
        }
    }
    let count = (entries.len() - at - 1) as u64;
    entries.update(at, |entry| {
        entry.aux = count;
        entry.flags |= flag::REPLACES;
        if encrypted && !readable {
            entry.flags |= flag::ENCRYPTED;
        }
    });
}

/// Whether an item of a replacement history is the summary that it was made for.
pub(super) fn is_summary(item: &Item<'_>, compacted: &Compacted<'_>) -> bool {
    if item.what != What::Message || text(item.payload, "role").is_none_or(|r| r != "user") {
        return false;
    }
    let first =
        field(item.payload, "content").into_iter().flat_map(|c| c.items()).find_map(|p| text(p, "text"));
    first.is_some_and(|t| {
        super::harness::is_summary(t)
            || (!compacted.message.is_blank() && t.decode() == compacted.message.decode())
    })
}

fn problems(problems: &mut Problems, line: &Line<'_>, number: u64, rescue: bool) {
    let number = Some(number);
    match line.sort {
        Sort::Item(Item { lost: Some(why), .. }) if rescue => {
            problems.add(problem::RESCUED, number, format!("the client loses it: {why}"));
        }
        Sort::Item(Item { lost: Some(why), .. }) | Sort::Broken(why) => {
            problems.add(problem::LOST, number, why);
        }
        Sort::Unknown(kind) => problems.add(problem::UNKNOWN_TYPE, number, kind.head(80)),
        _ => {}
    }
}

impl Facts {
    fn line(&mut self, line: &Line<'_>, own: bool) {
        let owned = |value: Value<'_>, key: &str| text(value, key).map(|t| t.decode().into_owned());
        let when = line.timestamp.map(|t| t.decode()).filter(|t| super::time::is_time(t));
        if own && let Some(when) = &when {
            if self.created.is_none() {
                self.created = Some((**when).to_owned());
            }
            let updated = self.updated.get_or_insert_default();
            updated.clear();
            updated.push_str(when);
        }
        match line.sort {
            Sort::Meta(meta) if own => self.meta(meta),
            Sort::Item(item) => {
                let directory = self.turn_directory.as_deref().or(self.directory.as_deref());
                self.files.item(&item, when.as_deref(), directory);
                if self.directory.is_none() && item.what == What::Message {
                    self.directory = directory_of_context(item.payload);
                }
            }
            _ => {}
        }
        let (Some(payload), Some(kind)) = (line.payload, line.kind) else { return };
        if kind == "turn_context" {
            if let Some(model) = owned(payload, "model") {
                self.model = Some(model);
            }
            if let Some(cwd) = owned(payload, "cwd") {
                if self.directory.is_none() {
                    self.directory = Some(cwd.clone());
                }
                self.turn_directory = Some(cwd);
            }
        } else if kind == "event_msg"
            && let Some(event) = text(payload, "type")
        {
            if event == "token_count"
                && let Some(info) = field(payload, "info").filter(Value::is_object)
            {
                let used = field(info, "last_token_usage").and_then(|u| field(u, "total_tokens")?.u64());
                let window = field(info, "model_context_window").and_then(|w| w.u64());
                if used.is_some() || window.is_some() {
                    self.context = Some(Context { used_tokens: used, window });
                }
            } else if event == "thread_name_updated" && own {
                self.title = owned(payload, "thread_name").filter(|t| !t.trim().is_empty());
            }
        }
    }

    fn meta(&mut self, meta: Value<'_>) {
        // the first header is this session's; later ones come along with a fork (rule 4)
        if std::mem::replace(&mut self.meta_seen, true) {
            return;
        }
        let owned = |value: Value<'_>, key: &str| text(value, key).map(|t| t.decode().into_owned());
        self.id = owned(meta, "id");
        self.version = owned(meta, "cli_version");
        if let Some(cwd) = owned(meta, "cwd") {
            self.directory = Some(cwd);
        }
        if self.model.is_none() {
            self.model = owned(meta, "model");
        }
        if let Some(git) = field(meta, "git").filter(Value::is_object) {
            let git = Git { branch: owned(git, "branch"), commit: owned(git, "commit_hash") };
            self.git = (git.branch.is_some() || git.commit.is_some()).then_some(git);
        }
        let spawned = field(meta, "source")
            .and_then(|s| field(s, "subagent"))
            .and_then(|s| field(s, "thread_spawn"))
            .and_then(|s| owned(s, "parent_thread_id"));
        self.parent =
            spawned.or_else(|| owned(meta, "forked_from_id")).or_else(|| owned(meta, "parent_thread_id"));
        if let Some(lineage) = field(meta, "relay").and_then(|r| field(r, "lineage")) {
            // a note by hand that does not fit is no reason to refuse the session
            self.lineage = serde_json::from_slice(lineage.raw()).unwrap_or_default();
        }
    }
}

/// The directory that an environment context names, in its two spellings (0.20 and later).
fn directory_of_context(message: Value<'_>) -> Option<String> {
    let first = field(message, "content")?.items().next()?;
    let part = text(first, "text").filter(|t| t.starts_with("<environment_context>"))?;
    let words = part.decode();
    let between = |from: &str, to: &str| Some(words.split_once(from)?.1.split_once(to)?.0.trim().to_owned());
    between("<cwd>", "</cwd>")
        .or_else(|| between("Current working directory:", "\n"))
        .filter(|d| crate::record::path::is_absolute(d))
}
