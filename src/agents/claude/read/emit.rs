//! Second pass: lines become records.
//!
//! A live line is followed by the lines behind it in the file that are not live, so the file is read in
//! nearly its own order. Text goes from line to record as the escaped bytes that it is.

use super::attached;
use super::index::{Entry, Index, Kind, bit};
use super::line::{Block, Fields};
use super::plan::{self, Part, Plan};
use super::text;
use crate::agents::{History, ReadOptions, speech};
use crate::json::{self, Tape, Text, Value, write_string};
use crate::record::{By, Draft, End, Error, Harness, Reason, Result, Role, Status, number, problem};
use crate::stream::{Native, Sink};
use base64::Engine as _;
use std::borrow::Cow;
use std::collections::HashMap;
use std::fs::File;
use std::io::Read;
use std::ops::Range;
use std::path::Path;

/// Bytes read at a time.
const BLOCK: usize = 1 << 20;

/// Parts of the second of several records on one line are numbered from here on, of the third from twice this.
const PARTS: u64 = 1000;

/// Spilled tool output is read back up to this size, in bytes.
const SPILL: u64 = 4 << 20;

/// A piece of the file in memory.
#[derive(Default)]
pub(super) struct Window {
    buffer: Vec<u8>,
    start: u64,
}

impl Window {
    /// The bytes of an entry's line, without line feed.
    pub(super) fn line(&mut self, index: &Index, native: &Native, at: u32) -> Result<&[u8]> {
        let (offset, length) = index.place(at);
        let end = offset + length as u64;
        if offset < self.start || end > self.start + self.buffer.len() as u64 {
            let size = index.size().saturating_sub(offset);
            let want = usize::try_from(size).unwrap_or(BLOCK).min(BLOCK).max(length);
            if self.buffer.len() > 16 * BLOCK && want <= BLOCK {
                self.buffer = Vec::new();
            }
            self.buffer.resize(want, 0);
            native.read_at(&mut self.buffer, offset)?;
            self.start = offset;
        }
        let from = usize::try_from(offset - self.start).unwrap_or(usize::MAX);
        let line = self.buffer.get(from..from + length).unwrap_or_default();
        Ok(line.strip_suffix(b"\n").unwrap_or(line))
    }

    /// The record of an entry: its line, or what a repair made of it.
    pub(super) fn record(&mut self, index: &Index, native: &Native, at: u32) -> Result<Cow<'_, [u8]>> {
        let Some(patch) = index.patches.get(&at) else {
            return Ok(Cow::Borrowed(self.line(index, native, at)?));
        };
        let line = self.line(index, native, patch.owner)?;
        let mut body = String::from_utf8_lossy(line).into_owned().into_bytes();
        if patch.nul {
            body.retain(|&b| b != 0);
        }
        Ok(Cow::Owned(json::without_lone_surrogates(body.get(patch.range.clone()).unwrap_or_default())))
    }
}

/// One record of a line.
pub(super) struct Piece<'a> {
    pub(super) role: Role,
    pub(super) by: By,
    pub(super) key: &'static str,
    /// The value of `key`, as JSON.
    pub(super) raw: Cow<'a, [u8]>,
    /// Where in the line the value stood.
    pub(super) holes: Vec<Range<usize>>,
    pub(super) tool_call_id: Option<Text<'a>>,
    pub(super) tool_name: Option<Cow<'a, [u8]>>,
    pub(super) status: Option<Status>,
    exit_code: Option<i64>,
    /// The server ran it; there is no result by design.
    server: bool,
    /// The client does not send it.
    noise: bool,
    /// Which of the line's tool blocks this is.
    tool: Option<u32>,
    spill: Option<String>,
    /// What kind of call another agent says it was.
    pub(super) kind: Option<Text<'a>>,
}

impl<'a> Piece<'a> {
    fn text(role: Role, by: By, value: Value<'a>) -> Piece<'a> {
        Piece {
            role,
            by,
            key: "content",
            raw: Cow::Borrowed(value.raw()),
            holes: vec![value.span()],
            tool_call_id: None,
            tool_name: None,
            status: None,
            exit_code: None,
            server: false,
            noise: false,
            tool: None,
            spill: None,
            kind: None,
        }
    }

    fn is_result(&self) -> bool {
        self.role == Role::ToolResult
    }

    fn is_prompt(&self) -> bool {
        self.role == Role::User && self.by == By::Conversation
    }

    /// Puts blocks before or behind what the record holds.
    fn join(&mut self, before: &[Vec<u8>], behind: Option<&[u8]>) {
        let mut blocks: Vec<&[u8]> = before.iter().map(Vec::as_slice).collect();
        let mut text = Vec::new();
        match self.raw.first() {
            Some(b'[') => blocks.push(self.raw.get(1..self.raw.len() - 1).unwrap_or_default()),
            _ => {
                // the whole text block moves into the content
                text.extend_from_slice(b"{\"type\":\"text\",\"text\":");
                text.extend_from_slice(&self.raw);
                text.push(b'}');
                self.key = "content";
                blocks.push(&text);
            }
        }
        blocks.extend(behind);
        let mut joined = vec![b'['];
        joined.extend_from_slice(&blocks.join(&b','));
        joined.push(b']');
        self.raw = Cow::Owned(joined);
    }
}

/// Names of the tools that were called last, by the hash of the call's id. A file may hold millions of calls
/// without result, so only the newest ones are known: at least [`NAMES`] of them.
#[derive(Default)]
struct Names {
    newer: HashMap<u64, Vec<u8>>,
    older: HashMap<u64, Vec<u8>>,
}

const NAMES: usize = 8192;

impl Names {
    fn keep(&mut self, id: u64, name: &[u8]) {
        if self.newer.len() >= NAMES {
            self.older = std::mem::take(&mut self.newer);
        }
        self.newer.insert(id, name.to_vec());
    }

    fn of(&self, id: u64) -> Option<Vec<u8>> {
        self.newer.get(&id).or_else(|| self.older.get(&id)).cloned()
    }
}

/// What is emitted, and what was counted.
pub(super) struct Emitter<'a> {
    index: &'a mut Index,
    native: &'a Native,
    options: &'a ReadOptions,
    out: &'a mut dyn Sink,
    window: Window,
    buffer: Vec<u8>,
    names: Names,
    seq: u64,
    turn: u64,
    live: u64,
    group: u32,
    /// Pictures on attachments before this entry have joined their prompt.
    joined: u32,
}

/// Emits every record of the session between its first and its last.
pub(super) fn emit(
    index: &mut Index,
    native: &Native,
    plan: &Plan,
    options: &ReadOptions,
    out: &mut dyn Sink,
) -> Result<End> {
    let mut emitter = Emitter {
        index,
        native,
        options,
        out,
        window: Window::default(),
        buffer: Vec::new(),
        names: Names::default(),
        seq: 0,
        turn: 0,
        live: 0,
        group: u32::MAX,
        joined: 0,
    };
    emitter.behind(None)?;
    for unit in &plan.units {
        emitter.entry(unit.entry, Some(unit.part), plan)?;
        if unit.part != Part::Results {
            emitter.behind(Some(unit.entry))?;
        }
    }
    let (messages, live) = (emitter.seq, emitter.live);
    Ok(End {
        session_id: None,
        messages: Some(messages),
        live: Some(live),
        problems: Vec::new(),
        budget: None,
        failed: None,
    })
}

/// Who speaks in a line of the user.
#[derive(Clone, Copy)]
struct Speaker<'f, 'v> {
    line: &'f Fields<'v>,
    bits: u32,
    /// The kind of harness text that all of it is.
    harness: Option<Harness>,
}

impl<'f, 'v> Speaker<'f, 'v> {
    fn of(bits: u32, line: &'f Fields<'v>) -> Speaker<'f, 'v> {
        Speaker { line, bits, harness: text::of_line(line) }
    }

    /// In a prompt that waited in the queue.
    fn queued(attachment: Value<'v>, line: &'f Fields<'v>) -> Speaker<'f, 'v> {
        let mode = attachment.get("commandMode").and_then(|v| v.text());
        let prompt = mode.is_none_or(|m| m == "prompt" || m == "bash");
        let harness = match text::of_line(&Fields::of(attachment)) {
            Some(_) => Some(Harness::Notice),
            None => (!prompt).then_some(Harness::Notice),
        };
        Speaker { line, bits: 0, harness }
    }

    /// The records of one text, which stands in this block of the content; several where the human and the
    /// client speak in it. The exact view leaves a text whole, and then it is the human's if any of it is.
    fn speak(
        self,
        pieces: &mut Vec<Piece<'v>>,
        odd: &mut bool,
        value: Value<'v>,
        text: Text<'v>,
        block: usize,
        exact: bool,
    ) {
        let mut one = |role, by| pieces.push(Piece::text(role, by, value));
        if let Some((role, by)) = self.line.relay.and_then(|relay| super::relayed::text(relay, block)) {
            return one(role, by);
        }
        if self.bits & bit::NOTE != 0 {
            return one(Role::User, By::Relay);
        }
        if self.bits & bit::SUMMARY != 0 || self.harness.is_none() && text::is_continued(text) {
            return one(Role::Summary, By::Conversation);
        }
        if let Some(line) = self.harness {
            return one(Role::User, By::Harness(text::within(line, text)));
        }
        if !speech::may_be_mixed(text.raw()) {
            return one(Role::User, By::Conversation);
        }
        let whole = text.decode();
        let said = speech::said(&whole);
        let by = |kind: Option<Harness>| kind.map_or(By::Conversation, By::Harness);
        match said.as_slice() {
            // the client sends the words of others as the user's, but for its own word of a task
            [only] if exact && only.by == Some(Harness::Notice) && !whole.starts_with("<task-") => {
                one(Role::User, By::Conversation);
            }
            [only] if matches!(only.text, Cow::Borrowed(_)) => one(Role::User, by(only.by)),
            _ if exact => one(Role::User, by(speech::kind(&whole))),
            several => {
                // the records hold the text in other pieces than the line
                *odd = true;
                for said in several {
                    let mut raw = Vec::new();
                    write_string(&mut raw, &said.text);
                    let piece = Piece::text(Role::User, by(said.by), value);
                    pieces.push(Piece { raw: Cow::Owned(raw), holes: Vec::new(), ..piece });
                }
            }
        }
    }

    /// Whether a picture or document behind a record is part of it. Behind a text of the client it is the
    /// human's, unless all of the line is the client's.
    fn is_joined(self, piece: &Piece<'_>) -> bool {
        piece.role != Role::ToolResult
            && match piece.by {
                By::Harness(kind) => self.harness == Some(kind) && kind != Harness::Environment,
                _ => true,
            }
    }
}

impl Emitter<'_> {
    /// The lines that stand behind a live one and are not live; those of the file's beginning for `None`.
    fn behind(&mut self, live: Option<u32>) -> Result<()> {
        let from = live.map_or(0, |l| l + 1);
        for at in from..self.index.entries.len() as u32 {
            let e = self.index.entry(at);
            if e.has(bit::LIVE) {
                break;
            }
            if !self.options.lean || is_shown(e) {
                self.entry(at, None, &Plan::default())?;
            }
        }
        Ok(())
    }

    /// The pictures that were named with `@` in the prompt on this entry: the client sends them with it.
    fn pictures_behind(&mut self, prompt: u32) -> Result<Vec<Vec<u8>>> {
        let mut pictures = Vec::new();
        let mut window = Window::default();
        let mut at = prompt + 1;
        while at < self.index.entries.len() as u32 {
            let e = self.index.entry(at);
            if e.kind() != Kind::Attachment || e.has(bit::QUEUED) {
                break;
            }
            if is_shown(e) && plan::is_on_live_path(self.index, at) {
                let line = window.record(self.index, self.native, at)?;
                let mut tape = Tape::new();
                let attachment = tape.parse_again(&line).ok().and_then(|line| Fields::of(line).attachment);
                pictures.extend(attachment.and_then(attached::picture));
            }
            at += 1;
        }
        self.joined = at;
        Ok(pictures)
    }

    /// One line; `part` says which records of it are live now, none of them when absent.
    fn entry(&mut self, at: u32, part: Option<Part>, plan: &Plan) -> Result<()> {
        let e = self.index.entry(at);
        let number = self.index.line_of(at);
        let extra_record = e.length == 0;
        let unread = self.options.history == History::Exact && e.has(bit::RESCUED);
        if e.kind() == Kind::Nothing || unread {
            return if extra_record { Ok(()) } else { self.raw(at, number) };
        }
        let mut window = std::mem::take(&mut self.window);
        let mut tape = Tape::new();
        let result = self.parsed(&mut window, &mut tape, at, number, part, plan);
        self.window = window;
        result
    }

    fn parsed(
        &mut self,
        window: &mut Window,
        tape: &mut Tape,
        at: u32,
        number: u64,
        part: Option<Part>,
        plan: &Plan,
    ) -> Result<()> {
        let e = self.index.entry(at);
        let line = window.record(self.index, self.native, at)?;
        let changed =
            || Error::input(format!("{}:{number}", self.native.name()), "the line changed while it was read");
        let value = tape.parse_again(&line).map_err(|_| changed())?;
        let fields = Fields::of(value);
        let (mut pieces, mut odd) = self.pieces(at, e, &fields, part.is_some());
        if part.is_some()
            && let Some(prompt) = pieces.iter().rposition(|piece| piece.is_prompt())
        {
            let pictures = self.pictures_behind(at)?;
            // the line does not hold them
            odd |= !pictures.is_empty();
            // the client sends them before the text
            if self.options.history == History::Exact {
                for picture in pictures.into_iter().rev() {
                    let picture = Piece {
                        raw: Cow::Owned([b"[", &*picture, b"]"].concat()),
                        holes: Vec::new(),
                        ..Piece::text(Role::User, By::Conversation, value)
                    };
                    pieces.insert(prompt, picture);
                }
            } else if let Some(prompt) = pieces.get_mut(prompt).filter(|_| !pictures.is_empty()) {
                prompt.join(&pictures, None);
            }
        }
        odd |= e.has(bit::PATCHED) || value.duplicate_key().is_some();
        odd |= line.trim_ascii().len() != line.len();
        if odd && e.length > 0 && part != Some(Part::Others) {
            // the value alone would not give the line back
            self.raw(at, number)?;
        }
        if pieces.is_empty() {
            return if odd { Ok(()) } else { self.native_value(&line, number) };
        }
        // reminders that hang on the live path are sent with it
        let reminder = e.kind() == Kind::Attachment && plan::is_on_live_path(self.index, at);
        let dropped = if part.is_some() || reminder { None } else { Some(plan::reason(self.index, at)) };
        self.messages(at, number, value, &fields, &pieces, part, dropped, plan, !odd)
    }

    #[expect(clippy::too_many_arguments, reason = "the facts of one line, used once")]
    fn messages(
        &mut self,
        at: u32,
        number: u64,
        line: Value<'_>,
        fields: &Fields<'_>,
        pieces: &[Piece<'_>],
        part: Option<Part>,
        dropped: Option<Reason>,
        plan: &Plan,
        whole: bool,
    ) -> Result<()> {
        let e = self.index.entry(at);
        let (utc, raw_time) = fields.timestamp.map_or((None, None), normal_time);
        let message = fields.message;
        let group =
            message.and_then(|m| m.get("id")).and_then(|v| v.text()).filter(|_| e.kind() == Kind::Assistant);
        let mut prompted = false;
        for (n, piece) in pieces.iter().enumerate() {
            match part {
                Some(Part::Results) if !piece.is_result() => continue,
                Some(Part::Others) if piece.is_result() => continue,
                _ => {}
            }
            let gone = piece.noise || piece.tool.is_some_and(|t| plan.dropped_blocks.contains(&(at, t)));
            let dropped = dropped.or(gone.then_some(Reason::Noise));
            if dropped.is_some() && self.options.lean {
                continue;
            }
            self.seq += 1;
            if dropped.is_none() {
                self.live += 1;
                if piece.is_prompt() && !prompted {
                    prompted = true;
                    self.turn += 1;
                }
            }
            let name = match (piece.role, piece.tool_call_id) {
                (Role::ToolCall, Some(id)) => {
                    if let Some(name) = &piece.tool_name {
                        self.names.keep(self.index.hash(id), name);
                    }
                    None
                }
                (Role::ToolResult, Some(id)) => self.names.of(self.index.hash(id)),
                _ => None,
            };
            let draft = Draft {
                dropped,
                by: piece.by,
                seq: Some(self.seq),
                turn: Some(self.turn.max(1)),
                line: Some(number),
                part: match self.index.record_of_line(at) {
                    (0, false) => (pieces.len() > 1).then_some(n as u64),
                    // several records on one line
                    (record, _) => Some(record * PARTS + n as u64),
                },
                group: group.map(|g| g.raw()),
                tool_call_id: piece.tool_call_id.map(|t| t.raw()),
                tool_name: piece.tool_name.as_deref().or(name.as_deref()),
                status: piece.status,
                timestamp: utc.as_deref(),
                ..Draft::new(piece.role)
            };
            let mut buffer = std::mem::take(&mut self.buffer);
            buffer.clear();
            if buffer.capacity() > 16 * BLOCK {
                buffer = Vec::new();
            }
            buffer.reserve_exact(piece.raw.len() + line.raw().len().min(4 * piece.raw.len() + BLOCK) + 1024);
            draft.begin(&mut buffer);
            if let Some(raw) = raw_time {
                buffer.extend_from_slice(b",\"raw_timestamp\":\"");
                buffer.extend_from_slice(raw);
                buffer.push(b'"');
            }
            if let Some(code) = piece.exit_code {
                buffer.extend_from_slice(format!(",\"exit_code\":{code}").as_bytes());
            }
            self.metadata(&mut buffer, e.group, message, piece);
            let spilled =
                piece.spill.as_ref().filter(|_| dropped.is_none()).and_then(|p| self.spilled(p, number));
            buffer.extend_from_slice(b",\"");
            buffer.extend_from_slice(piece.key.as_bytes());
            buffer.extend_from_slice(b"\":");
            match &spilled {
                Some(text) => write_string(&mut buffer, text),
                None => buffer.extend_from_slice(&piece.raw),
            }
            if n == 0 && whole && !self.options.lean {
                buffer.extend_from_slice(b",\"extra\":");
                // what was read back from elsewhere is not what the line holds
                let kept = if spilled.is_some() { &[][..] } else { &piece.holes };
                let rest = pieces.iter().skip(1).flat_map(|p| p.holes.iter());
                skeleton(&mut buffer, line, kept.iter().chain(rest));
            }
            buffer.push(b'}');
            self.out.put(&buffer)?;
            self.buffer = buffer;
        }
        Ok(())
    }

    /// Facts of a model message, on its first record.
    fn metadata(&mut self, buffer: &mut Vec<u8>, group: u32, message: Option<Value<'_>>, piece: &Piece<'_>) {
        let mut kind = Vec::new();
        let mut fields: Vec<(&str, &[u8])> = Vec::new();
        if matches!(piece.role, Role::Assistant | Role::Reasoning | Role::ToolCall) && group != self.group {
            self.group = group;
            for key in ["model", "usage"] {
                if let Some(v) = message.and_then(|m| m.get(key)).filter(|v| !v.is_null()) {
                    fields.push((key, v.raw()));
                }
            }
        }
        if piece.server {
            fields.push(("server", b"true"));
        }
        if let Some(text) = piece.kind {
            write_string(&mut kind, &text.decode());
            fields.push(("kind", &kind));
        }
        if fields.is_empty() {
            return;
        }
        buffer.extend_from_slice(b",\"metadata\":{");
        for (n, (key, value)) in fields.into_iter().enumerate() {
            if n > 0 {
                buffer.push(b',');
            }
            buffer.push(b'"');
            buffer.extend_from_slice(key.as_bytes());
            buffer.extend_from_slice(b"\":");
            buffer.extend_from_slice(value);
        }
        buffer.push(b'}');
    }

    /// The records that a line holds, and whether it has a shape that its records would not give back.
    fn pieces<'v>(&self, at: u32, e: Entry, line: &Fields<'v>, live: bool) -> (Vec<Piece<'v>>, bool) {
        let mut pieces = Vec::new();
        let mut odd = false;
        let bits = e.bits;
        match e.kind() {
            Kind::User => {
                if let Some(content) = line.message.and_then(|m| m.get("content")) {
                    odd |= line.message.is_some_and(|m| m.duplicate_key().is_some());
                    self.user(&mut pieces, &mut odd, Speaker::of(bits, line), content, live);
                }
            }
            Kind::Assistant => {
                if let Some(content) = line.message.and_then(|m| m.get("content")) {
                    odd |= line.message.is_some_and(|m| m.duplicate_key().is_some());
                    self.assistant(&mut pieces, &mut odd, content, line.relay);
                }
            }
            Kind::Attachment => {
                let Some(a) = line.attachment else { return (pieces, odd) };
                if bits & bit::QUEUED != 0 {
                    if let Some(prompt) = a.get("prompt") {
                        self.user(&mut pieces, &mut odd, Speaker::queued(a, line), prompt, live);
                    }
                } else if let Some(content) = attached::content(a, line.rendered, at >= self.joined) {
                    pieces.push(Piece {
                        raw: Cow::Owned(content),
                        holes: Vec::new(),
                        ..Piece::text(Role::User, By::Harness(Harness::Expansion), a)
                    });
                } else if let Some(rendered) = line.rendered
                    && let (Some(one), 1) = (rendered.items().next(), rendered.items().count())
                    && let Some(content) = one.get("content").filter(|c| c.text().is_some())
                {
                    pieces.push(Piece::text(Role::System, By::Harness(Harness::Environment), content));
                }
            }
            Kind::System => {
                if bits & bit::LOCAL_COMMAND != 0
                    && let Some(content) = line.content.filter(|c| c.text().is_some())
                {
                    pieces.push(Piece::text(Role::User, By::Harness(Harness::Command), content));
                }
            }
            Kind::Nothing | Kind::State | Kind::Progress => {}
        }
        (pieces, odd)
    }

    fn user<'v>(
        &self,
        pieces: &mut Vec<Piece<'v>>,
        odd: &mut bool,
        speaker: Speaker<'_, 'v>,
        content: Value<'v>,
        live: bool,
    ) {
        let line = speaker.line;
        let exact = self.options.history == History::Exact;
        if let Some(text) = content.text() {
            // the client sends no empty text (case 32 of the bug reports)
            if !text.is_empty() {
                speaker.speak(pieces, odd, content, text, 0, exact);
            }
            return;
        }
        let mut tool = 0;
        // whether a block may join the record before it
        let mut open = false;
        for (n, block) in content.items().enumerate() {
            if let Some(text) = block.text() {
                // a bare string in a list: the client passes it over
                if !exact {
                    speaker.speak(pieces, odd, block, text, n, exact);
                    open = true;
                } else {
                    *odd = true;
                }
                continue;
            }
            if !block.is_object() {
                *odd = true;
                continue;
            }
            *odd |= block.duplicate_key().is_some();
            let b = Block::of(block);
            if b.kind.is_some_and(|k| k == "tool_result") {
                pieces.push(self.result(odd, block, line, live, tool));
                tool += 1;
                open = false;
                continue;
            }
            if b.kind.is_some_and(|k| k == "text")
                && let Some(value) = b.text
                && let Some(text) = value.text()
            {
                let heading = line.relay.is_some_and(|r| super::relayed::is_heading(r, text, n));
                if !text.is_empty() && !heading {
                    speaker.speak(pieces, odd, value, text, n, exact);
                    open = true;
                }
                continue;
            }
            let hole = block.span();
            match pieces.last_mut().filter(|p| open && speaker.is_joined(p)) {
                // images and documents stay with the text of their speaker before them
                Some(piece) => {
                    piece.join(&[], Some(block.raw()));
                    piece.holes.push(hole);
                }
                None => {
                    let mut raw = vec![b'['];
                    raw.extend_from_slice(block.raw());
                    raw.push(b']');
                    let by = speaker.harness.map_or(By::Conversation, By::Harness);
                    pieces.push(Piece {
                        raw: Cow::Owned(raw),
                        holes: vec![hole],
                        ..Piece::text(Role::User, by, block)
                    });
                    open = true;
                }
            }
        }
    }

    fn result<'v>(
        &self,
        odd: &mut bool,
        value: Value<'v>,
        line: &Fields<'v>,
        live: bool,
        tool: u32,
    ) -> Piece<'v> {
        let block = Block::of(value);
        let failed = block.is_error;
        let content = block.content.filter(|_| !line.relay.is_some_and(super::relayed::was_empty));
        let mut piece = Piece::text(Role::ToolResult, By::Conversation, value);
        piece.tool = Some(tool);
        piece.tool_call_id = block.result_of;
        if piece.tool_call_id.is_none() {
            *odd = true;
            piece.tool_call_id = Some(Text::empty());
        }
        piece.status = Some(if failed { Status::Error } else { Status::Ok });
        if let Some(relay) = line.relay {
            super::relayed::result(&mut piece, relay);
        }
        match content {
            Some(c) if c.text().is_some() || c.kind() == json::Kind::Array => {
                piece.raw = Cow::Borrowed(c.raw());
                piece.holes = vec![c.span()];
            }
            None => {
                piece.raw = Cow::Borrowed(b"\"\"");
                piece.holes = Vec::new();
            }
            Some(c) => {
                // the client sends any other value as its JSON text
                *odd = true;
                let mut text = Vec::new();
                let body =
                    if c.is_null() { String::new() } else { String::from_utf8_lossy(c.raw()).into_owned() };
                write_string(&mut text, &body);
                piece.raw = Cow::Owned(text);
                piece.holes = Vec::new();
            }
        }
        let text = content.and_then(|c| c.text().or_else(|| c.items().find_map(|b| b.get("text")?.text())));
        if failed && let Some(text) = text.filter(|t| t.starts_with("Exit code ")) {
            piece.exit_code = exit_code(&text.head(64));
        }
        if live
            && self.options.history != History::Exact
            && let Some(text) = text.filter(|t| t.starts_with("<persisted-output>"))
        {
            piece.spill = line
                .result
                .and_then(|r| r.get("persistedOutputPath"))
                .and_then(|v| v.text())
                .map(|t| t.decode().into_owned())
                .or_else(|| {
                    let head = text.head(4096);
                    let rest = head.split("Full output saved to: ").nth(1)?;
                    Some(rest.lines().next()?.trim().to_owned())
                });
        }
        piece
    }

    fn assistant<'v>(
        &self,
        pieces: &mut Vec<Piece<'v>>,
        odd: &mut bool,
        content: Value<'v>,
        relay: Option<Value<'v>>,
    ) {
        if let Some(text) = content.text() {
            if !text.is_empty() {
                pieces.push(Piece::text(Role::Assistant, By::Conversation, content));
            }
            return;
        }
        let exact = self.options.history == History::Exact;
        let mut tool = 0;
        for block in content.items() {
            if block.text().is_some() && self.options.history != History::Exact {
                pieces.push(Piece::text(Role::Assistant, By::Conversation, block));
                continue;
            }
            if !block.is_object() {
                *odd = true;
                continue;
            }
            *odd |= block.duplicate_key().is_some();
            let b = Block::of(block);
            let kind = b.kind.map(|t| t.decode()).unwrap_or_default();
            let (said, thought) = (b.text.and_then(|v| v.text()), b.thinking.and_then(|v| v.text()));
            match &*kind {
                "text" if said.is_some_and(|t| t.is_empty()) => {}
                "text" if said.is_some() => {
                    pieces.extend(b.text.map(|v| Piece::text(Role::Assistant, By::Conversation, v)));
                }
                "thinking" if thought.is_some() => {
                    pieces.extend(b.thinking.map(|v| Piece::text(Role::Reasoning, By::Conversation, v)));
                }
                "redacted_thinking" => pieces.push(Piece {
                    raw: Cow::Borrowed(b"\"\""),
                    holes: Vec::new(),
                    ..Piece::text(Role::Reasoning, By::Conversation, block)
                }),
                "tool_use" | "server_tool_use" | "mcp_tool_use" => {
                    let server = &*kind != "tool_use";
                    let mut piece = Piece::text(Role::ToolCall, By::Conversation, block);
                    piece.noise = exact && server && b.name.is_some_and(|name| name == "advisor");
                    piece.key = "input";
                    piece.server = server;
                    if !server {
                        piece.tool = Some(tool);
                        tool += 1;
                    }
                    piece.tool_call_id = b.id.or_else(|| {
                        *odd = true;
                        Some(Text::empty())
                    });
                    piece.tool_name = match b.name {
                        Some(name) => Some(Cow::Borrowed(name.raw())),
                        None => {
                            *odd = true;
                            None
                        }
                    };
                    match b.input {
                        Some(input) => {
                            piece.raw = Cow::Borrowed(input.raw());
                            piece.holes = vec![input.span()];
                        }
                        None => {
                            piece.raw = Cow::Borrowed(b"null");
                            piece.holes = Vec::new();
                        }
                    }
                    if let Some(relay) = relay.filter(|_| !server) {
                        super::relayed::call(&mut piece, relay, b.input);
                    }
                    pieces.push(piece);
                }
                _ => {
                    let mut raw = vec![b'['];
                    raw.extend_from_slice(block.raw());
                    raw.push(b']');
                    pieces.push(Piece {
                        raw: Cow::Owned(raw),
                        // 2.1.332 sends no word of another model that answered, and advice only where it has
                        // an advisor; what the advice says is worth handing over
                        noise: kind == "fallback" || exact && kind == "advisor_tool_result",
                        ..Piece::text(Role::Assistant, By::Conversation, block)
                    });
                }
            }
        }
    }

    /// Tool output that the client moved into a file of the session's own folder. Only a plain file with a
    /// plain name, right where the client puts it, is read; no link below the session's file is followed.
    fn spilled(&mut self, named: &str, number: u64) -> Option<String> {
        let read = || -> std::result::Result<String, String> {
            let session = self.native.path().ok_or("the session came through a pipe")?;
            let name =
                Path::new(named).file_name().and_then(|n| n.to_str()).ok_or("its name is no file name")?;
            let plain = name.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b))
                && !name.starts_with('.');
            let parent = Path::new(named).parent().and_then(|p| p.file_name());
            if !plain || parent != Some("tool-results".as_ref()) {
                return Err("its path is not where the client puts such files".into());
            }
            let own = session.with_extension("");
            let results = own.join("tool-results");
            for folder in [&own, &results] {
                if !std::fs::symlink_metadata(folder).map_err(|e| e.to_string())?.is_dir() {
                    return Err("its folder is no plain folder".into());
                }
            }
            let path = results.join(name);
            let kind = std::fs::symlink_metadata(&path).map_err(|e| e.to_string())?;
            if !kind.is_file() {
                return Err("it is no plain file".into());
            }
            if kind.len() > SPILL {
                return Err(format!("it is larger than {} MiB", SPILL >> 20));
            }
            let mut bytes = Vec::new();
            let file = File::open(&path).map_err(|e| e.to_string())?;
            file.take(SPILL).read_to_end(&mut bytes).map_err(|e| e.to_string())?;
            Ok(String::from_utf8_lossy(&bytes).into_owned())
        };
        match read() {
            Ok(text) => {
                self.index.problems.add(
                    problem::RESCUED,
                    Some(number),
                    "tool output that the client keeps in a file of its own, read back",
                );
                Some(text)
            }
            Err(why) => {
                let note = format!("full tool output not read, the preview stays: {why}");
                self.index.problems.add(problem::LOST, Some(number), note);
                None
            }
        }
    }

    fn native_value(&mut self, line: &[u8], number: u64) -> Result<()> {
        if self.options.lean {
            return Ok(());
        }
        self.begin_native(number);
        self.buffer.extend_from_slice(b",\"value\":");
        self.buffer.extend_from_slice(line.trim_ascii());
        self.buffer.push(b'}');
        self.out.put(&self.buffer)
    }

    /// The line as it stands in the file.
    fn raw(&mut self, at: u32, number: u64) -> Result<()> {
        if self.options.lean {
            return Ok(());
        }
        let mut window = Window::default();
        let line = window.line(self.index, self.native, at)?;
        self.begin_native(number);
        match std::str::from_utf8(line) {
            Ok(text) => {
                self.buffer.extend_from_slice(b",\"raw\":");
                write_string(&mut self.buffer, text);
            }
            Err(_) => {
                self.buffer.extend_from_slice(b",\"raw_base64\":\"");
                let text = base64::engine::general_purpose::STANDARD.encode(line);
                self.buffer.extend_from_slice(text.as_bytes());
                self.buffer.push(b'"');
            }
        }
        self.buffer.push(b'}');
        self.out.put(&self.buffer)
    }

    fn begin_native(&mut self, line: u64) {
        self.buffer.clear();
        self.buffer.extend_from_slice(b"{\"type\":\"native\",\"source_agent\":\"claude\",\"line\":");
        number(&mut self.buffer, line);
    }
}

/// Whether a line is an attachment that a human named.
fn is_shown(e: Entry) -> bool {
    e.kind() == Kind::Attachment && e.has(bit::SHOWN)
}

/// The line with what its records hold replaced by `null`.
fn skeleton<'h>(buffer: &mut Vec<u8>, line: Value<'_>, holes: impl Iterator<Item = &'h Range<usize>>) {
    let raw = line.raw();
    let base = line.span().start;
    let mut from = 0;
    for hole in holes {
        buffer.extend_from_slice(raw.get(from..hole.start - base).unwrap_or_default());
        buffer.extend_from_slice(b"null");
        from = hole.end - base;
    }
    buffer.extend_from_slice(raw.get(from..).unwrap_or_default());
}

/// A time as RFC 3339 UTC, and the raw text where that differs.
fn normal_time(time: Text<'_>) -> (Option<Cow<'_, str>>, Option<&[u8]>) {
    let raw = time.raw();
    if text::is_utc_time(raw) {
        return (Some(time.decode()), None);
    }
    match time.decode().parse::<jiff::Timestamp>() {
        Ok(t) => (Some(Cow::Owned(t.to_string())), Some(raw)),
        Err(_) => (None, Some(raw)),
    }
}

/// `Exit code N` at the beginning of a failed command's output (clients 2.0 and 2.1).
fn exit_code(text: &str) -> Option<i64> {
    let rest = text.strip_prefix("Exit code ")?;
    rest.split(|c: char| !c.is_ascii_digit() && c != '-').next()?.parse().ok()
}
