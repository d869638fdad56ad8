//! The second pass: every line of the file becomes its records.

use super::chain::Segment;
use super::events;
use super::index::{Index, Kind, flag, is_summary};
use super::line::{self, Checks, Compacted, Sort};
use super::pieces::{Block, Body, Form, Hole, Piece, Pieces, pieces, split};
use super::replay::{Fate, Replay};
use super::time;
use crate::agents::{History, ReadOptions};
use crate::json::{Tape, Text, Value, write_escaped, write_string};
use crate::record::{By, Draft, Error, Problems, Reason, Result, Role, number, problem};
use crate::stream::{Lines, Sink};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::borrow::Cow;
use std::collections::HashMap;
use std::io::Read;

/// Calls whose result has not come and whose name is remembered for it.
const OPEN_CALLS: usize = 4096;

/// A record longer than this keeps no memory behind it, in bytes.
const LONG: usize = 8 << 20;

/// Writes the records between `session` and `end`.
pub(super) struct Emitter<'e> {
    index: &'e Index,
    replay: &'e Replay,
    options: &'e ReadOptions,
    out: &'e mut dyn Sink,
    record: Vec<u8>,
    /// The next entry.
    at: usize,
    seq: u64,
    turn: u64,
    group: u64,
    /// Whether the last record was of the assistant's side.
    in_group: bool,
    /// The id given to a tool search that has none, until its output comes.
    search: Option<Vec<u8>>,
    /// Names of calls by raw id.
    names: HashMap<Vec<u8>, Vec<u8>>,
    pub(super) messages: u64,
    pub(super) live: u64,
    pub(super) problems: Problems,
}

/// Where records come from, and what else of their line they carry.
struct Origin<'a> {
    /// 1-based line; `None` in a file before this one.
    line: Option<u64>,
    /// Id of the file before this one, and the line there.
    segment: Option<(&'a str, u64)>,
    timestamp: Option<Text<'a>>,
    extra: Extra<'a>,
    /// The number of the first part; `None` when the line gives one record.
    part: Option<u64>,
}

enum Extra<'a> {
    None,
    /// The line as a value, with its holes.
    Skeleton(&'a [u8]),
    /// The line as it is.
    Raw(&'a [u8]),
}

impl<'e> Emitter<'e> {
    pub(super) fn new(
        index: &'e Index,
        replay: &'e Replay,
        options: &'e ReadOptions,
        out: &'e mut dyn Sink,
    ) -> Emitter<'e> {
        Emitter {
            index,
            replay,
            options,
            out,
            record: Vec::new(),
            at: 0,
            seq: 0,
            turn: 0,
            group: 0,
            in_group: false,
            search: None,
            names: HashMap::new(),
            messages: 0,
            live: 0,
            problems: Problems::default(),
        }
    }

    /// Writes all segments in order.
    pub(super) fn run(&mut self, segments: &[Segment<'_>]) -> Result<()> {
        for (n, segment) in segments.iter().enumerate() {
            self.segment(n, segment)?;
        }
        Ok(())
    }

    fn segment(&mut self, n: usize, segment: &Segment<'_>) -> Result<()> {
        let native = segment.native();
        let end = self.index.ends.get(n).copied().unwrap_or(0);
        let bare = self.index.bare.get(n).copied().unwrap_or(false);
        let mut lines = Lines::new(native.reader_at(0)?.take(end));
        let mut tape = Tape::new();
        let mut place = Place { segment: segment.id.as_deref(), number: 0, segment_number: n, bare };
        while let Some(found) = lines.next_line().map_err(Error::io(native.name()))? {
            place.number += 1;
            self.line(&place, found.bytes, &mut tape)?;
        }
        Ok(())
    }

    fn line(&mut self, place: &Place<'_>, bytes: &[u8], tape: &mut Tape) -> Result<()> {
        if bytes.iter().all(u8::is_ascii_whitespace) {
            return self.native_raw(place, bytes);
        }
        // the first pass has checked the encoding of most files, and where it is broken says so
        let scanned = if self.index.utf8 { tape.parse_again(bytes) } else { tape.parse(bytes) };
        let damage = line::damage(bytes, scanned);
        if let (Ok(value), None) = (scanned, damage) {
            let fragile = line::is_fragile(value);
            let extra = if fragile { Extra::Raw(bytes) } else { Extra::Skeleton(bytes) };
            return match self.record(place, value, extra, None)? {
                0 if fragile => self.native_raw(place, bytes),
                0 => self.native(place, value),
                _ => Ok(()),
            };
        }
        let mut emitted = 0;
        if self.options.history != History::Exact {
            let repaired = line::repair(bytes, damage.unwrap_or(problem::BAD_LINE), tape, place.bare);
            for range in repaired.records {
                let Ok(value) = tape.parse(repaired.bytes.get(range).unwrap_or_default()) else { continue };
                let extra = if emitted == 0 { Extra::Raw(bytes) } else { Extra::None };
                emitted += self.record(place, value, extra, Some(emitted))?;
            }
        }
        if emitted == 0 { self.native_raw(place, bytes) } else { Ok(()) }
    }

    /// The records of a line, or of a piece of a damaged one; gives their number. `part` is the number of the
    /// first one where the line has pieces.
    fn record(
        &mut self,
        place: &Place<'_>,
        value: Value<'_>,
        extra: Extra<'_>,
        part: Option<u64>,
    ) -> Result<u64> {
        let line = line::sort(value, place.bare, Checks::Nothing);
        let entry = self.entry_of(place);
        let mut origin = Origin {
            line: place.segment.is_none().then_some(place.number),
            segment: place.segment.map(|id| (id, place.number)),
            timestamp: line.timestamp,
            // lines of a file before this one are that file's to restore
            extra: if place.segment.is_some() { Extra::None } else { extra },
            part,
        };
        let found = match (line.sort, entry) {
            (Sort::Compacted(compacted), Some(entry)) => {
                match &origin.extra {
                    // a later piece of a line whose bytes are carried already
                    Extra::None => {}
                    Extra::Raw(bytes) => self.native_raw(place, bytes)?,
                    Extra::Skeleton(_) => self.native(place, value)?,
                }
                origin.extra = Extra::None;
                let records = self.compacted(&compacted, entry, origin)?;
                self.skip_replaced(place);
                return Ok(records.max(1));
            }
            (Sort::Item(item), Some(entry)) => {
                let lost = self.index.entries.get(entry).is_some_and(|e| e.is(flag::LOST));
                if let (Extra::Skeleton(bytes), true) = (&origin.extra, lost) {
                    origin.extra = Extra::Raw(bytes);
                }
                Some((pieces(&item, place.number, line.relay, self.form()), entry))
            }
            (_, Some(entry)) => {
                if let Extra::Skeleton(bytes) = &origin.extra {
                    origin.extra = Extra::Raw(bytes);
                }
                let event = self.index.from_events.and_then(|d| events::event(&line, d));
                event.map(|mut event| {
                    split(&mut event.pieces);
                    (event, entry)
                })
            }
            (_, None) => None,
        };
        match found {
            Some((pieces, entry)) => self.pieces(pieces, entry, &origin),
            None => {
                // the response of the model is complete
                self.in_group &= !line.kind.is_some_and(|k| k == "token_usage_record");
                Ok(0)
            }
        }
    }

    /// The next item or compaction of this line.
    fn entry_of(&mut self, place: &Place<'_>) -> Option<usize> {
        while let Some(entry) = self.index.entries.get(self.at) {
            let here =
                usize::from(entry.segment) == place.segment_number && u64::from(entry.line) == place.number;
            let before =
                (usize::from(entry.segment), u64::from(entry.line)) < (place.segment_number, place.number);
            if !here && !before {
                return None;
            }
            let at = self.at;
            self.at += 1;
            if here && matches!(entry.kind, Kind::Item | Kind::Compacted) {
                return Some(at);
            }
        }
        None
    }

    fn skip_replaced(&mut self, place: &Place<'_>) {
        while self.index.entries.get(self.at).is_some_and(|e| {
            e.kind == Kind::Replaced
                && usize::from(e.segment) == place.segment_number
                && u64::from(e.line) == place.number
        }) {
            self.at += 1;
        }
    }

    fn form(&self) -> Form {
        if self.options.history == History::Exact { Form::Exact } else { Form::Shared }
    }

    fn fate(&self, entry: usize) -> Fate {
        self.replay.fates.get(entry).copied().unwrap_or(Fate::Unused)
    }

    /// The records of one item; gives their number.
    fn pieces(&mut self, mut found: Pieces<'_>, entry: usize, origin: &Origin<'_>) -> Result<u64> {
        let fate = self.fate(entry);
        if found.unreadable {
            self.problems.add(problem::UNREADABLE, origin.line, "words that only its vendor can read");
        }
        self.searched(&mut found.pieces);
        if fate == Fate::Orphan {
            self.problems.add(problem::ORPHAN_RESULT, origin.line, "the client does not send it");
        }
        if fate.reason() == Some(Reason::Unreadable) {
            self.problems.add(problem::UNREADABLE, origin.line, "a summary that only its vendor can read");
        }
        let many = found.pieces.len() > 1;
        let mut count = 0;
        // what a client put before a prompt is of its turn
        let mut prompt = !self.begins(&found.pieces);
        let unanswered = fate == Fate::Unanswered;
        let mut call_id = None;
        for piece in &found.pieces {
            let part = match origin.part {
                Some(first) => Some(first + count),
                None => many.then_some(count),
            };
            let extra = if count == 0 { Some((&origin.extra, &found.holes[..])) } else { None };
            self.piece(piece, fate.reason(), origin, part, extra, &mut prompt)?;
            call_id = piece.call_id.as_deref();
            count += 1;
        }
        if unanswered && let Some(id) = call_id {
            let mut answer =
                Piece::new(Role::ToolResult, Body::Content(vec![Block::Text(Cow::Borrowed(b"aborted"))]));
            answer.call_id = Some(Cow::Borrowed(id));
            answer.status = Some(crate::record::Status::Error);
            let made = Origin { extra: Extra::None, ..*origin };
            self.made(&answer, None, &made, None)?;
        }
        Ok(count)
    }

    /// Begins the turn of a prompt whose first words are a client's; whether it is one.
    fn begins(&mut self, pieces: &[Piece<'_>]) -> bool {
        let own = |p: &Piece<'_>| p.role == Role::User && p.by == By::Conversation;
        let found = pieces.len() > 1
            && pieces.first().is_some_and(|p| matches!(p.by, By::Harness(_)))
            && pieces.iter().any(own);
        self.turn += u64::from(found);
        found
    }

    /// A tool search that the server ran may have no id: its output is the next one without.
    fn searched(&mut self, pieces: &mut [Piece<'_>]) {
        let Some(piece) = pieces.first_mut() else { return };
        let search = piece.metadata.iter().any(|(key, kind)| *key == "kind" && **kind == *b"\"tool_search\"");
        if !search {
            return;
        }
        if piece.role == Role::ToolCall {
            self.search = piece.call_id.as_deref().filter(|_| piece.nameless).map(<[u8]>::to_vec);
        } else if piece.nameless
            && let Some(id) = self.search.take()
        {
            piece.call_id = Some(Cow::Owned(id));
        }
    }

    /// A record that the client makes when it sends the history.
    fn made(
        &mut self,
        piece: &Piece<'_>,
        dropped: Option<Reason>,
        origin: &Origin<'_>,
        part: Option<u64>,
    ) -> Result<()> {
        self.begin(piece, dropped, origin, part, true, &mut true);
        self.body(piece, origin);
        self.finish(dropped.is_none(), true)
    }

    fn piece(
        &mut self,
        piece: &Piece<'_>,
        dropped: Option<Reason>,
        origin: &Origin<'_>,
        part: Option<u64>,
        extra: Option<(&Extra<'_>, &[Hole])>,
        prompt: &mut bool,
    ) -> Result<()> {
        self.begin(piece, dropped, origin, part, false, prompt);
        if self.options.lean && dropped.is_some() {
            return self.finish(false, false);
        }
        self.body(piece, origin);
        if let (Some((extra, holes)), false) = (extra, self.options.lean) {
            match extra {
                Extra::None => {}
                Extra::Raw(line) => {
                    self.record.extend_from_slice(b",\"extra\":{");
                    raw_member(&mut self.record, line);
                    self.record.push(b'}');
                }
                Extra::Skeleton(line) => {
                    self.record.extend_from_slice(b",\"extra\":");
                    skeleton(&mut self.record, line, holes);
                }
            }
        }
        self.finish(dropped.is_none(), true)
    }

    fn begin(
        &mut self,
        piece: &Piece<'_>,
        dropped: Option<Reason>,
        origin: &Origin<'_>,
        part: Option<u64>,
        synthetic: bool,
        prompt: &mut bool,
    ) {
        self.seq += 1;
        let assistant = matches!(piece.role, Role::Assistant | Role::ToolCall | Role::Reasoning);
        if assistant && !self.in_group {
            self.group += 1;
        }
        self.in_group = assistant;
        // the images and texts of one prompt are one turn
        if piece.role == Role::User && piece.by == By::Conversation && std::mem::replace(prompt, false) {
            self.turn += 1;
        }
        if piece.role == Role::ToolCall
            && let (Some(id), Some(name)) = (piece.call_id.as_deref(), piece.tool_name.as_deref())
        {
            if self.names.len() >= OPEN_CALLS {
                self.names.clear();
            }
            self.names.insert(id.to_vec(), name.to_vec());
        }
        let name = match (piece.role, piece.call_id.as_deref()) {
            (Role::ToolResult, Some(id)) => self.names.remove(id),
            _ => piece.tool_name.as_deref().map(<[u8]>::to_vec),
        };
        let raw_time = origin.timestamp;
        let utc = raw_time.and_then(time::utc);
        let group = format!("g{}", self.group);
        self.record.clear();
        Draft {
            role: piece.role,
            dropped,
            by: piece.by,
            seq: Some(self.seq),
            turn: Some(self.turn.max(1)),
            line: origin.line,
            part,
            group: assistant.then_some(group.as_bytes()),
            tool_call_id: piece.call_id.as_deref(),
            tool_name: name.as_deref(),
            status: piece.status,
            timestamp: utc.as_deref(),
            synthetic,
        }
        .begin(&mut self.record);
        if let Some(raw) = raw_time
            && utc.as_deref().is_none_or(|t| raw != t)
        {
            self.record.extend_from_slice(b",\"raw_timestamp\":\"");
            self.record.extend_from_slice(raw.raw());
            self.record.push(b'"');
        }
    }

    fn body(&mut self, piece: &Piece<'_>, origin: &Origin<'_>) {
        if let Some(code) = piece.exit_code {
            self.record.extend_from_slice(b",\"exit_code\":");
            self.record.extend_from_slice(code.to_string().as_bytes());
        }
        if !piece.metadata.is_empty() || origin.segment.is_some() {
            self.record.extend_from_slice(b",\"metadata\":{");
            let mut first = true;
            let mut key = |record: &mut Vec<u8>, name: &str| {
                if !std::mem::replace(&mut first, false) {
                    record.push(b',');
                }
                write_string(record, name);
                record.push(b':');
            };
            for (name, value) in &piece.metadata {
                key(&mut self.record, name);
                self.record.extend_from_slice(value);
            }
            if let Some((id, line)) = origin.segment {
                key(&mut self.record, "segment");
                write_string(&mut self.record, id);
                key(&mut self.record, "segment_line");
                number(&mut self.record, line);
            }
            self.record.push(b'}');
        }
        match &piece.body {
            Body::Input(input) => {
                self.record.extend_from_slice(b",\"input\":");
                self.record.extend_from_slice(input);
            }
            Body::Content(blocks) => {
                self.record.extend_from_slice(b",\"content\":");
                content(&mut self.record, blocks);
            }
        }
    }

    fn finish(&mut self, live: bool, wanted: bool) -> Result<()> {
        self.messages += 1;
        self.live += u64::from(live);
        if !wanted || (self.options.lean && !live) {
            return Ok(());
        }
        self.record.push(b'}');
        self.hand_on()
    }

    fn hand_on(&mut self) -> Result<()> {
        self.out.put(&self.record)?;
        // the memory of a very long line is given back
        if self.record.capacity() > LONG {
            self.record = Vec::new();
        }
        Ok(())
    }

    /// The records of a compaction: what it made of the history, where that is live.
    fn compacted(&mut self, compacted: &Compacted<'_>, entry: usize, origin: Origin<'_>) -> Result<u64> {
        let Some(found) = self.index.entries.get(entry) else { return Ok(0) };
        let mut number = origin.part.unwrap_or(0);
        let fate = self.fate(entry);
        let mut items = compacted.replacement.into_iter().flat_map(|r| r.items());
        let count = if found.is(flag::REPLACES) { usize::try_from(found.aux).unwrap_or(0) } else { 0 };
        let mut effective = false;
        for at in entry + 1..=entry + count {
            let Some(value) = items.next() else { break };
            let fate = self.fate(at);
            let encrypted = self.index.entries.get(at).is_some_and(|e| e.is(flag::ENCRYPTED));
            if fate == Fate::Unused && !encrypted {
                continue;
            }
            let Some(item) = line::replaced(value) else { continue };
            effective |= fate != Fate::Unused;
            let mut found = pieces(&item, origin.line.unwrap_or(0), None, self.form());
            if is_summary(&item, compacted) {
                for piece in found.pieces.iter_mut().filter(|p| p.role == Role::User) {
                    piece.role = Role::Summary;
                }
            }
            let reason = match fate {
                Fate::Unused if self.options.history == History::Active => Some(Reason::Unreadable),
                other => other.reason(),
            };
            if reason == Some(Reason::Unreadable) {
                self.problems.add(
                    problem::UNREADABLE,
                    origin.line,
                    "a summary that only its vendor can read",
                );
            }
            self.searched(&mut found.pieces);
            let mut prompt = !self.begins(&found.pieces);
            for piece in &found.pieces {
                self.piece(piece, reason, &origin, Some(number), None, &mut prompt)?;
                number += 1;
            }
            if fate == Fate::Unanswered
                && let Some(call) = found.pieces.first()
            {
                let mut answer =
                    Piece::new(Role::ToolResult, Body::Content(vec![Block::Text(Cow::Borrowed(b"aborted"))]));
                answer.call_id.clone_from(&call.call_id);
                self.made(&answer, None, &origin, None)?;
            }
        }
        let made = self.replay.made.iter().filter(|m| m.live && m.at == entry);
        for made in made.collect::<Vec<_>>() {
            let blocks = made.parts.iter().map(|text| {
                let mut body = Vec::new();
                write_escaped(&mut body, text);
                Block::Text(Cow::Owned(body))
            });
            let role = if made.summary { Role::Summary } else { Role::User };
            let mut pieces = vec![Piece::new(role, Body::Content(blocks.collect()))];
            if self.form() == Form::Shared {
                split(&mut pieces);
            }
            let mut prompt = !self.begins(&pieces);
            for piece in &pieces {
                self.piece(piece, None, &origin, Some(number), None, &mut prompt)?;
                number += 1;
            }
        }
        let message = compacted.message;
        let live = fate.reason().is_none();
        if live || (!message.is_blank() && !effective) {
            let words: &[u8] = if message.is_empty() { b"(no summary available)" } else { message.raw() };
            let piece = Piece::new(Role::Summary, Body::Content(vec![Block::Text(Cow::Borrowed(words))]));
            self.piece(&piece, fate.reason(), &origin, Some(number), None, &mut true)?;
            number += 1;
        }
        Ok(number - origin.part.unwrap_or(0))
    }

    fn begin_native(&mut self, place: &Place<'_>) -> bool {
        // lines of a file before this one belong to that file
        if self.options.lean || place.segment.is_some() {
            return false;
        }
        self.record.clear();
        self.record.extend_from_slice(b"{\"type\":\"native\",\"source_agent\":\"codex\",\"line\":");
        number(&mut self.record, place.number);
        self.record.push(b',');
        true
    }

    fn native(&mut self, place: &Place<'_>, value: Value<'_>) -> Result<()> {
        if !self.begin_native(place) {
            return Ok(());
        }
        self.record.extend_from_slice(b"\"value\":");
        self.record.extend_from_slice(value.raw());
        self.record.push(b'}');
        self.hand_on()
    }

    fn native_raw(&mut self, place: &Place<'_>, line: &[u8]) -> Result<()> {
        if !self.begin_native(place) {
            return Ok(());
        }
        raw_member(&mut self.record, line);
        self.record.push(b'}');
        self.hand_on()
    }
}

/// A line of a file.
struct Place<'a> {
    /// Id of a file before this one.
    segment: Option<&'a str>,
    number: u64,
    segment_number: usize,
    bare: bool,
}

fn raw_member(out: &mut Vec<u8>, line: &[u8]) {
    match std::str::from_utf8(line) {
        Ok(text) => {
            out.extend_from_slice(b"\"raw\":");
            write_string(out, text);
        }
        Err(_) => {
            out.extend_from_slice(b"\"raw_base64\":\"");
            out.extend_from_slice(STANDARD.encode(line).as_bytes());
            out.push(b'"');
        }
    }
}

/// The line with its holes.
fn skeleton(out: &mut Vec<u8>, line: &[u8], holes: &[Hole]) {
    // carriage returns and the like around the value
    let line = line.trim_ascii_end();
    let mut from = line.len() - line.trim_ascii_start().len();
    for (range, instead) in holes {
        out.extend_from_slice(line.get(from..range.start).unwrap_or_default());
        out.extend_from_slice(instead);
        from = range.end;
    }
    out.extend_from_slice(line.get(from..).unwrap_or_default());
}

fn content(out: &mut Vec<u8>, blocks: &[Block<'_>]) {
    if let [Block::Text(text)] = blocks {
        out.push(b'"');
        out.extend_from_slice(text);
        out.push(b'"');
        return;
    }
    out.push(b'[');
    for (n, block) in blocks.iter().enumerate() {
        if n > 0 {
            out.push(b',');
        }
        match block {
            Block::Text(text) => {
                out.extend_from_slice(b"{\"type\":\"text\",\"text\":\"");
                out.extend_from_slice(text);
                out.extend_from_slice(b"\"}");
            }
            Block::Image { media_type, data } => {
                out.extend_from_slice(
                    b"{\"type\":\"image\",\"source\":{\"type\":\"base64\",\"media_type\":\"",
                );
                out.extend_from_slice(media_type);
                out.extend_from_slice(b"\",\"data\":\"");
                out.extend_from_slice(data);
                out.extend_from_slice(b"\"}}");
            }
            Block::Url(url) => {
                out.extend_from_slice(b"{\"type\":\"image\",\"source\":{\"type\":\"url\",\"url\":\"");
                out.extend_from_slice(url);
                out.extend_from_slice(b"\"}}");
            }
            Block::Other(json) => out.extend_from_slice(json),
        }
    }
    out.push(b']');
}
