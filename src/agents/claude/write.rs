//! Writing a session that Claude Code resumes.
//!
//! One linear chain of lines, as the client reads it back on `--resume` (seen in 1.0.128, 2.0.77 and
//! 2.1.332). Memory: one record. The body goes to an unlinked temporary file, because the note before it
//! tells of what the last record counts. Texts are spliced from line to line as the escaped bytes they are.

#[cfg(test)]
mod tests;

use super::locate::folder_name;
use crate::agents::body::Body;
use crate::agents::content::{Block, Image, Part, Takes, call_id, parts, size, tool_name};
use crate::agents::handover::{Begun, Handover, Lost, Step, To, rfc3339, scanned};
use crate::agents::image::ANTHROPIC;
use crate::agents::tools::counterpart;
use crate::agents::{WriteOptions, Writer, Written, note, shell, speech};
use crate::json::{self, Kind as Json, Tape, Text, Value, write_escaped, write_string};
use crate::record::{Error, Harness, Head, Origin, Record, Result, Role, Session, Status, problem};
use crate::stream::World;
use crate::tokens::Family;
use crate::tokens::image::Base64;
use jiff::Timestamp;
use std::borrow::Cow;
use std::path::Path;

/// Whose sessions these are.
pub(super) const CLAUDE: To = To {
    agent: "claude",
    title: "Claude Code",
    family: Family::Anthropic,
    home: "CLAUDE_CONFIG_DIR",
    usual: ".claude",
    sessions: "projects",
    resume: "claude --resume",
};

/// The client whose lines are written.
const VERSION: &str = "2.1.332";

/// Ids of any length are taken; longer ones than any client makes are cut all the same.
const CALL_ID: usize = 200;

/// What one image costs, in tokens: about the most that the API charges for one.
const IMAGE: u64 = 1_500;

/// Longest title of a document that the API takes, in bytes.
const TITLED: usize = 500;

/// Longest title and longest last prompt, in bytes of text.
const TITLE: usize = 120;

/// How the block of an image begins.
const HEAD_OF_DATA: &[u8] = b"{\"type\":\"image\",\"source\":{\"type\":\"base64\",\"media_type\":\"";
const HEAD_OF_URL: &[u8] = b"{\"type\":\"image\",\"source\":{\"type\":\"url\",\"url\":\"";

/// What stands for the output of a failed call whose pictures stand elsewhere.
const NO_OUTPUT: &str = "[no output]";

/// What stands above instructions that were neither the user's nor the model's.
pub(super) const SYSTEM: &str = "[system context]";

/// Begins a new session.
pub(super) fn writer<'w>(options: &'w WriteOptions, world: &'w World) -> Result<Box<dyn Writer + 'w>> {
    if options.restore {
        return super::restore::writer(options, world);
    }
    Ok(Box::new(Chain {
        hand: Handover::new(CLAUDE, options, world),
        tape: Tape::new(),
        body: Body::new(options.dry_run)?,
        ids: Ids([world.random(), world.random()]),
        envelope: Vec::new(),
        time: Timestamp::UNIX_EPOCH,
        clock: Timestamp::UNIX_EPOCH,
        opening: None,
        last: None,
        called: None,
        message: None,
        moved: Vec::new(),
        prompts: Prompts::default(),
    }))
}

struct Chain<'w> {
    hand: Handover<'w>,
    tape: Tape,
    body: Body,
    ids: Ids,
    /// The fields of every line between its parent and its type.
    envelope: Vec<u8>,
    /// When the next line was said, if that is later than [`Chain::clock`].
    time: Timestamp,
    /// Date of the last line.
    clock: Timestamp,
    /// Id of the line that the note will be; settled before the first line of the body.
    opening: Option<String>,
    /// Id of the last line.
    last: Option<String>,
    /// Id of the line with the call that results speak of.
    called: Option<String>,
    /// The message of the model that is still growing.
    message: Option<Message>,
    /// Images and documents that the API does not take in their place; they wait for the end of the model's message
    /// and its results.
    moved: Vec<Part<'static>>,
    prompts: Prompts,
}

/// A message of the model: lines that share an id.
struct Message {
    id: String,
    group: Option<Vec<u8>>,
    /// Whether it holds a call.
    calls: bool,
    /// Whether a result came: then nothing may join it.
    answered: bool,
}

#[derive(Default)]
struct Prompts {
    first: Option<String>,
    last: Option<String>,
}

/// Random ids: one call of the system for all of them.
struct Ids([u64; 2]);

impl Ids {
    fn bytes(&mut self) -> [u8; 16] {
        let mut out = [0u8; 16];
        for (half, state) in out.chunks_mut(8).zip(&mut self.0) {
            // splitmix64 never gives one number twice
            *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = *state;
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            half.copy_from_slice(&(z ^ (z >> 31)).to_le_bytes());
        }
        out
    }

    fn line(&mut self) -> String {
        uuid::Builder::from_random_bytes(self.bytes()).into_uuid().to_string()
    }

    fn message(&mut self) -> String {
        format!("msg_{:024x}", u128::from_le_bytes(self.bytes()) >> 32)
    }
}

impl Writer for Chain<'_> {
    fn record(&mut self, record: &Record<'_>) -> Result<()> {
        match self.hand.step(record)? {
            Step::Begin(session) => self.begin(*session),
            Step::Live(role) => self.live(role, record),
            Step::Pass => Ok(()),
        }
    }

    fn finish(mut self: Box<Self>) -> Result<Written> {
        self.close_message()?;
        let taken = self.body.settle(&ANTHROPIC, |text| {
            let mut block = b"{\"type\":\"text\",\"text\":".to_vec();
            write_string(&mut block, text);
            block.push(b'}');
            block
        });
        self.hand.lose_taken_out(&taken);
        let begun = self.hand.settled()?;
        let head = self.head(&begun)?;
        self.tail(&begun)?;
        if let Some(file) = self.body.finish()? {
            begun.target.place(&head, file)?;
        }
        Ok(self.hand.written(begun))
    }
}

impl Chain<'_> {
    fn begin(&mut self, session: Session) -> Result<()> {
        let (options, world) = (self.hand.options, self.hand.world);
        let id = world.uuid_v4().to_string();
        let named = id.clone();
        let begun = self.hand.begin(session, id, |directory, _| {
            let folder =
                CLAUDE.home(options, world)?.join("projects").join(folder_name(Path::new(directory)));
            Ok(folder.join(format!("{named}.jsonl")))
        })?;
        let mut envelope =
            b",\"isSidechain\":false,\"userType\":\"external\",\"entrypoint\":\"cli\"".to_vec();
        let branch = begun.session.git.as_ref().and_then(|g| g.branch.as_deref()).unwrap_or_default();
        for (key, text) in [
            ("cwd", begun.directory.as_str()),
            ("sessionId", &begun.id),
            ("version", VERSION),
            ("gitBranch", branch),
        ] {
            envelope.extend_from_slice(format!(",\"{key}\":").as_bytes());
            write_string(&mut envelope, text);
        }
        let created = begun.session.created_at.as_deref().and_then(|at| at.parse().ok());
        self.time = created.unwrap_or(begun.now);
        // the note stands before everything, also in time
        self.clock = moved(self.time, -1);
        self.envelope = envelope;
        Ok(())
    }

    /// Takes a message of the live conversation.
    fn live(&mut self, role: Role, record: &Record<'_>) -> Result<()> {
        let mut tape = std::mem::take(&mut self.tape);
        let done = scanned(record, &mut tape, |value, lone| {
            let head = record.head();
            if lone {
                self.hand.problems.add(problem::SURROGATE, head.line, "");
            }
            if let Some(time) = head.timestamp.and_then(|t| t.decode().parse().ok()) {
                self.time = time;
            }
            match role {
                Role::ToolCall => self.call(head, value),
                Role::ToolResult => self.result(head, value),
                _ => self.text(role, head, value),
            }
        });
        self.tape = tape;
        done
    }

    /// A message of texts, images and documents.
    fn text(&mut self, role: Role, head: &Head<'_>, value: Value<'_>) -> Result<()> {
        let takes: &Block = match role {
            Role::Assistant => &|_, _| None,
            _ => &document,
        };
        let takes = Takes { images: &ANTHROPIC, block: takes };
        let content = value.get("content").map(|c| parts(c, takes)).unwrap_or_default();
        self.hand.lose_of(&content);
        let mut content: Vec<Part<'_>> = content.into_iter().filter(|p| !p.is_blank()).collect();
        if self.hand.options.dialogue_only {
            let all = content.len();
            content.retain(Part::is_text);
            self.hand.lose(Lost::Images, (all - content.len()) as u64);
        }
        let texts = || content.iter().filter(|p| p.is_text()).cloned().collect::<Vec<_>>();
        let harness = head.harness.filter(|_| head.origin == Some(Origin::Harness));
        let ours = role == Role::Summary && head.origin == Some(Origin::Relay);
        // a summary that comes behind other lines cannot join the note
        if ours && (self.last.is_none() || self.opening.is_some()) && self.hand.keeps_summary(&texts()) {
            // the note's message is text alone
            let others = content.iter().filter(|p| !p.is_text()).count();
            self.hand.lose(Lost::Images, others as u64);
            return Ok(());
        }
        if content.is_empty() {
            return Ok(());
        }
        self.hand.messages += 1;
        self.hand.conversation |= harness.is_none() && role != Role::System;
        match role {
            Role::Assistant => self.answer(head, &content),
            Role::System if harness.is_none() => {
                content.insert(0, Part::made(SYSTEM));
                self.say(&content, b"\"role\":\"system\"", false)
            }
            _ => {
                if head.is_prompt() {
                    self.prompts.take(&content);
                }
                let relay = match (role, harness) {
                    (Role::Summary, _) if ours => "\"role\":\"summary\",\"origin\":\"relay\"".to_owned(),
                    (Role::Summary, _) => "\"role\":\"summary\"".to_owned(),
                    (_, Some(kind)) => format!("\"harness\":\"{kind}\""),
                    _ => String::new(),
                };
                self.say(&content, relay.as_bytes(), harness == Some(Harness::Expansion))
            }
        }
    }

    /// A line of the user: texts, images and documents.
    fn say(&mut self, content: &[Part<'_>], relay: &[u8], meta: bool) -> Result<()> {
        self.close_message()?;
        self.open("user")?;
        self.body.put(b"{\"role\":\"user\",\"content\":")?;
        self.content(content)?;
        self.body.put(if meta { b"},\"isMeta\":true" } else { b"}" })?;
        self.close(relay)
    }

    /// Text of the model, a line for each block.
    fn answer(&mut self, head: &Head<'_>, content: &[Part<'_>]) -> Result<()> {
        self.open_message(head, false)?;
        for part in content {
            match part {
                Part::Text(_) | Part::Made(..) => {
                    let mut block = b"{\"type\":\"text\",\"text\":\"".to_vec();
                    let before = self.hand.tokens;
                    let text = part.body();
                    self.hand.tokens += size(&text);
                    block.extend_from_slice(&text);
                    block.extend_from_slice(b"\"}");
                    self.assistant(&block, "end_turn", before, b"")?;
                }
                // the API takes these from the user alone
                Part::Image(_) | Part::Block(_) => {
                    self.moved.push(part.clone().into_owned());
                    self.hand.lose(Lost::Moved, 1);
                }
            }
        }
        Ok(())
    }

    /// A line of the model that holds this block. `message.model` stays away: the client would try to go on
    /// with that model, and says so when it cannot (2.1.332).
    fn assistant(&mut self, block: &[u8], stop: &str, before: u64, relay: &[u8]) -> Result<()> {
        let Some(id) = self.message.as_ref().map(|m| m.id.clone()) else { return Ok(()) };
        self.open("assistant")?;
        self.body.put(
            format!("{{\"id\":\"{id}\",\"type\":\"message\",\"role\":\"assistant\",\"content\":[").as_bytes(),
        )?;
        self.body.put(block)?;
        // what the client goes by to know how full the window is
        let usage = format!(
            "],\"stop_reason\":\"{stop}\",\"stop_sequence\":null,\"usage\":{{\"input_tokens\":{},\"cache_creation_input_tokens\":0,\"cache_read_input_tokens\":0,\"output_tokens\":{}}}}}",
            before.max(1),
            (self.hand.tokens - before).max(1)
        );
        self.body.put(usage.as_bytes())?;
        self.close(relay)
    }

    fn content(&mut self, content: &[Part<'_>]) -> Result<()> {
        if let [text] = content
            && text.is_text()
        {
            let text = text.body();
            self.hand.tokens += size(&text);
            self.body.put(b"\"")?;
            self.body.put(&text)?;
            return self.body.put(b"\"");
        }
        let mut block = Vec::new();
        for (n, part) in content.iter().enumerate() {
            block.clear();
            block.push(if n == 0 { b'[' } else { b',' });
            match part {
                Part::Image(image) => {
                    self.hand.tokens += IMAGE;
                    self.body.put(&block)?;
                    block.clear();
                    let [head, media_type, middle, data] = match image {
                        Image::Data { media_type, data } => {
                            [HEAD_OF_DATA, media_type.as_bytes(), b"\",\"data\":\"", data]
                        }
                        Image::Url(url) => [HEAD_OF_URL, url, b"", b""],
                    };
                    self.body.image(image, &[head, media_type, middle, data, b"\"}}"])?;
                }
                Part::Block(raw) => {
                    self.hand.tokens += IMAGE;
                    self.body.put(&block)?;
                    block.clear();
                    self.body.document(raw)?;
                }
                Part::Text(_) | Part::Made(..) => {
                    let text = part.body();
                    self.hand.tokens += size(&text);
                    block.extend_from_slice(b"{\"type\":\"text\",\"text\":\"");
                    block.extend_from_slice(&text);
                    block.extend_from_slice(b"\"}");
                }
            }
            self.body.put(&block)?;
        }
        self.body.put(if content.is_empty() { b"\"\"" } else { b"]" })
    }

    fn call(&mut self, head: &Head<'_>, value: Value<'_>) -> Result<()> {
        let (Some(id), Some(input)) = (head.tool_call_id, value.get("input")) else {
            return Err(Error::shape("a tool_call message needs `tool_call_id` and `input`"));
        };
        // some sources have calls without a name; the API takes none without
        let (id, name) = (id.decode(), head.tool_name.map_or("unknown".into(), |n| n.decode()));
        let metadata = value.get("metadata");
        self.hand.messages += 1;
        self.hand.conversation = true;
        if metadata.and_then(|m| m.get("server")?.bool()) == Some(true) {
            let mut text = format!("[tool run by the server: {name} ").into_bytes();
            text.extend_from_slice(input.raw());
            text.push(b']');
            return self.answer(head, &[Part::made(&String::from_utf8_lossy(&text))]);
        }
        self.open_message(head, true)?;
        let source = self.hand.begun.as_ref().map_or("", |b| &b.session.source_agent);
        let twin = match self.hand.options.keep_tool_names || source == CLAUDE.agent {
            true => None,
            false => counterpart(source, CLAUDE.agent, &name, input),
        };
        let written_id = call_id(&id, CALL_ID);
        let written_name = twin.as_ref().map_or_else(|| tool_name(&name), |t| t.name.to_owned());
        let mut renamed = |was: &str, is: &str, what: &str| {
            if was != is {
                let note = format!("{what} {was} is now {is}");
                self.hand.problems.add(problem::RENAMED_ID, head.line, note);
            }
        };
        renamed(&id, &written_id, "tool call id");
        if twin.is_none() {
            renamed(&name, &written_name, "tool name");
        }
        let mut block = b"{\"type\":\"tool_use\",\"id\":\"".to_vec();
        block.extend_from_slice(written_id.as_bytes());
        block.extend_from_slice(b"\",\"name\":\"");
        block.extend_from_slice(written_name.as_bytes());
        block.extend_from_slice(b"\",\"input\":");
        let at = block.len();
        let mut wrapped = false;
        match &twin {
            Some(twin) => block.extend_from_slice(&twin.input),
            None if input.kind() == Json::Object => block.extend_from_slice(input.raw()),
            None if input.is_null() => block.extend_from_slice(b"{}"),
            None => {
                // the API takes objects alone
                wrapped = true;
                block.extend_from_slice(b"{\"input\":");
                block.extend_from_slice(input.raw());
                block.push(b'}');
            }
        }
        let before = self.hand.tokens;
        self.hand.tokens += size(block.get(at..).unwrap_or_default()) + size(written_name.as_bytes());
        block.push(b'}');
        // for the way back; the client ignores it
        let mut relay = Fields::default();
        if written_name != *name {
            relay.string("tool_name", &name);
        }
        if written_id != *id {
            relay.string("tool_call_id", &id);
        }
        if let Some(kind) = metadata.and_then(|m| m.get("kind")?.text()) {
            relay.string("kind", &kind.decode());
        }
        if wrapped {
            relay.raw("wrapped", b"true");
        }
        if twin.as_ref().is_some_and(|t| !t.exact) || (twin.is_none() && input.is_null()) {
            relay.raw("input", input.raw());
        }
        self.assistant(&block, "tool_use", before, &relay.0)?;
        self.called.clone_from(&self.last);
        Ok(())
    }

    fn result(&mut self, head: &Head<'_>, value: Value<'_>) -> Result<()> {
        let Some(id) = head.tool_call_id else {
            return Err(Error::shape("a tool_result message needs `tool_call_id`"));
        };
        self.hand.messages += 1;
        self.hand.conversation = true;
        let own = self.hand.begun.as_ref().is_some_and(|b| b.session.source_agent == CLAUDE.agent);
        let failed = head.status == Some(Status::Error);
        let takes: &Block = match own && !failed {
            true => &document_or_own,
            false => &document,
        };
        let takes = Takes { images: &ANTHROPIC, block: takes };
        let content = value.get("content").map(|c| parts(c, takes)).unwrap_or_default();
        self.hand.lose_of(&content);
        if value.get("metadata").and_then(|m| m.get("server")?.bool()) == Some(true) {
            return self.answer(head, &content);
        }
        if let Some(message) = &mut self.message {
            message.answered = true;
        }
        // the API takes no empty text but the whole content
        let several = content.len() > 1;
        let mut content: Vec<_> = content.into_iter().filter(|p| !(several && p.is_blank())).collect();
        let written_id = call_id(&id.decode(), CALL_ID);
        let mut relay = Fields::default();
        if written_id != *id.decode() {
            relay.string("tool_call_id", &id.decode());
        }
        if matches!(head.status, None | Some(Status::Unknown)) {
            relay.string("status", "unknown");
        }
        let mut marked = failed;
        if failed {
            // of a call that is marked as failed the API takes text alone, and some there must be
            let (texts, others): (Vec<_>, Vec<_>) = content.into_iter().partition(Part::is_text);
            let moved = others.len();
            self.hand.lose(Lost::Moved, moved as u64);
            self.moved.extend(others.into_iter().map(Part::into_owned));
            content = texts;
            if content.iter().all(Part::is_blank) {
                match moved {
                    // it said nothing, and goes as that
                    0 => {
                        marked = false;
                        relay.string("status", "error");
                    }
                    _ => {
                        content = vec![Part::made(NO_OUTPUT)];
                        relay.raw("empty", b"true");
                    }
                }
            }
        }
        self.open("user")?;
        self.body.put(b"{\"role\":\"user\",\"content\":[{\"type\":\"tool_result\",\"tool_use_id\":\"")?;
        self.body.put(written_id.as_bytes())?;
        self.body.put(b"\",\"content\":")?;
        self.content(&content)?;
        self.body.put(if marked { b",\"is_error\":true}]}" } else { b"}]}" })?;
        if let Some(called) = &self.called {
            self.body.put(format!(",\"sourceToolAssistantUUID\":\"{called}\"").as_bytes())?;
        }
        self.close(&relay.0)
    }

    /// Sees to it that the next line of the model is part of the right message. Calls whose results come
    /// behind all of them must be of one message: of two messages the client keeps the last one's results
    /// alone (2.1.332).
    fn open_message(&mut self, head: &Head<'_>, call: bool) -> Result<()> {
        let group = head.group.map(|g| g.raw());
        let joins = self
            .message
            .as_ref()
            .is_some_and(|m| !m.answered && (m.group.as_deref() == group || call && m.calls));
        if !joins {
            self.close_message()?;
            let id = self.ids.message();
            let group = group.map(<[u8]>::to_vec);
            self.message = Some(Message { id, group, calls: false, answered: false });
        }
        if let Some(message) = &mut self.message {
            message.calls |= call;
        }
        Ok(())
    }

    /// Ends the model's message; what had to be moved follows it and its results.
    fn close_message(&mut self) -> Result<()> {
        self.message = None;
        if self.moved.is_empty() {
            return Ok(());
        }
        let moved = std::mem::take(&mut self.moved);
        self.say(&moved, b"", false)
    }

    /// Begins a line up to its message.
    fn open(&mut self, kind: &str) -> Result<()> {
        if self.last.is_none() && self.opening.is_none() {
            // a session begins with the user, whatever it is told
            let note = self.hand.options.note || !self.hand.summary.is_empty() || kind == "assistant";
            self.opening = note.then(|| self.ids.line());
            self.last.clone_from(&self.opening);
            self.hand.tokens += self.expected();
        }
        let parent = self.last.as_deref();
        self.body.put(b"{\"parentUuid\":")?;
        match parent {
            Some(parent) => self.body.put(format!("\"{parent}\"").as_bytes())?,
            None => self.body.put(b"null")?,
        }
        self.body.put(&self.envelope)?;
        self.body.put(format!(",\"type\":\"{kind}\",\"message\":").as_bytes())
    }

    /// Ends a line; `relay` are the fields of an object that the client ignores.
    fn close(&mut self, relay: &[u8]) -> Result<()> {
        if !relay.is_empty() {
            self.body.put(b",\"relay\":{")?;
            self.body.put(relay)?;
            self.body.put(b"}")?;
        }
        let id = self.ids.line();
        // 2.0.77 goes on from the line with the latest date, the first one of several: dates must rise
        self.clock = match self.time.as_millisecond() > self.clock.as_millisecond() {
            true => self.time,
            false => moved(self.clock, 1),
        };
        let time = rfc3339(self.clock);
        self.body.put(format!(",\"uuid\":\"{id}\",\"timestamp\":\"{time}\"}}\n").as_bytes())?;
        self.last = Some(id);
        Ok(())
    }

    /// Size of the opening in tokens, as far as it is known before the conversation.
    fn expected(&self) -> u64 {
        self.hand.begun.as_ref().map_or(0, |b| self.texts(b).iter().map(|(_, text)| size(text)).sum())
    }

    /// The texts of the first line.
    fn texts(&self, begun: &Begun) -> Vec<(&'static str, Vec<u8>)> {
        let mut texts = self.hand.opening(begun);
        if texts.is_empty() {
            let mut text = Vec::new();
            write_escaped(&mut text, &format!("{}{}]", note::OPENING, begun.relay_id));
            texts.push(("note", text));
        }
        texts
    }

    /// The first line of the file: the note, or the title where there is none.
    fn head(&mut self, begun: &Begun) -> Result<Vec<u8>> {
        let failed = |e: serde_json::Error| Error::failed(e.to_string());
        let provenance = self.hand.provenance(begun);
        let mut relay = serde_json::to_vec(&provenance).map_err(failed)?;
        relay.pop();
        if self.opening.is_none() && self.last.is_none() {
            // nothing but a summary
            self.opening = Some(self.ids.line());
            self.last.clone_from(&self.opening);
        }
        let Some(id) = &self.opening else {
            let mut line = self.title(begun);
            line.pop();
            line.extend_from_slice(b",\"relay\":");
            line.extend_from_slice(&relay);
            line.extend_from_slice(b"}}\n");
            return Ok(line);
        };
        let texts = self.texts(begun);
        let mut line = b"{\"parentUuid\":null".to_vec();
        line.extend_from_slice(&self.envelope);
        line.extend_from_slice(b",\"type\":\"user\",\"message\":{\"role\":\"user\",\"content\":[");
        let mut kinds = Vec::new();
        for (n, (kind, text)) in texts.iter().enumerate() {
            kinds.push(format!("\"{kind}\""));
            line.extend_from_slice(if n == 0 { b"" } else { b"," });
            line.extend_from_slice(b"{\"type\":\"text\",\"text\":\"");
            line.extend_from_slice(text);
            line.extend_from_slice(b"\"}");
        }
        line.extend_from_slice(b"]},\"relay\":");
        line.extend_from_slice(&relay);
        if kinds.iter().any(|k| k == "\"note\"") {
            line.extend_from_slice(b",\"note\":true");
        }
        line.extend_from_slice(
            format!(",\"parts\":[{}]}},\"uuid\":\"{id}\",\"timestamp\":", kinds.join(",")).as_bytes(),
        );
        let created = begun.session.created_at.as_deref().and_then(|at| at.parse().ok());
        let at = rfc3339(moved(created.unwrap_or(begun.now), -1));
        write_string(&mut line, &at);
        line.extend_from_slice(b"}\n");
        Ok(line)
    }

    /// The lines that the picker looks at.
    fn tail(&mut self, begun: &Begun) -> Result<()> {
        let mut lines = self.title(begun);
        lines.push(b'\n');
        let mut last = Fields::default();
        last.string("type", "last-prompt");
        if let Some(prompt) = &self.prompts.last {
            last.string("lastPrompt", prompt);
        }
        if let Some(id) = &self.last {
            last.string("leafUuid", id);
        }
        last.string("sessionId", &begun.id);
        lines.push(b'{');
        lines.extend_from_slice(&last.0);
        lines.extend_from_slice(b"}\n");
        self.body.put(&lines)
    }

    /// The line with the title, without its line feed. There always is one: the client shows `(session)`
    /// where the first prompt is no plain text.
    fn title(&self, begun: &Begun) -> Vec<u8> {
        let title = [note::title_of(self.hand.options, &begun.session), self.prompts.first.clone()]
            .into_iter()
            .flatten()
            .map(|t| shell::one_line(&t).trim().to_owned())
            .find(|t| !t.is_empty())
            .unwrap_or_else(|| format!("from {}", begun.session.source_agent));
        let mut fields = Fields::default();
        fields.string("type", "custom-title");
        fields.string("customTitle", &title);
        fields.string("sessionId", &begun.id);
        let mut line = vec![b'{'];
        line.extend_from_slice(&fields.0);
        line.push(b'}');
        line
    }
}

impl Prompts {
    fn take(&mut self, content: &[Part<'_>]) {
        let human = content.iter().find_map(|part| match part {
            Part::Text(text) => human(text),
            _ => None,
        });
        let Some(text) = human else { return };
        let line = shell::one_line(text.trim());
        let cut = line.char_indices().find(|(at, _)| *at >= TITLE).map_or(line.len(), |(at, _)| at);
        let line = line.get(..cut).unwrap_or_default().trim_end().to_owned();
        if line.is_empty() {
            return;
        }
        self.first.get_or_insert_with(|| line.clone());
        self.last = Some(line);
    }
}

/// The beginning of what the human says in an escaped text: an editor may have put pages before it.
fn human(text: &[u8]) -> Option<String> {
    if speech::may_be_mixed(text) {
        return note::human(&json::decode(text));
    }
    // a text of this length is cut anyway; an escape that is cut with it is no JSON and is left out
    let cut = text.len().min(6 * TITLE);
    (0..12).find_map(|back| {
        let raw = [b"\"", text.get(..cut.checked_sub(back)?)?, b"\""].concat();
        serde_json::from_slice::<String>(&raw).ok()
    })
}

/// A time so many milliseconds later; the same at the end of all times.
fn moved(at: Timestamp, milliseconds: i64) -> Timestamp {
    at.checked_add(jiff::SignedDuration::from_millis(milliseconds)).unwrap_or(at)
}

/// Fields of an object without its braces.
#[derive(Default)]
struct Fields(Vec<u8>);

impl Fields {
    fn raw(&mut self, key: &str, value: &[u8]) {
        if !self.0.is_empty() {
            self.0.push(b',');
        }
        write_string(&mut self.0, key);
        self.0.push(b':');
        self.0.extend_from_slice(value);
    }

    fn string(&mut self, key: &str, text: &str) {
        let mut value = Vec::new();
        write_string(&mut value, text);
        self.raw(key, &value);
    }
}

/// The block of a document as the API takes it, if it does: a PDF, or text that is not empty.
fn document<'a>(kind: &str, block: Value<'a>) -> Option<Cow<'a, [u8]>> {
    let source = block.get("source").filter(|_| kind == "document")?;
    let field = |key: &str| source.get(key)?.text();
    let (keys, sound): (&[&str], _) = match &*field("type")?.decode() {
        "base64" => (
            &["type", "media_type", "data"],
            field("media_type")? == "application/pdf" && is_pdf(field("data")?),
        ),
        "text" => (
            &["type", "media_type", "data"],
            field("media_type")? == "text/plain" && !field("data")?.is_blank(),
        ),
        "url" => (&["type", "url"], field("url")?.starts_with("https://")),
        _ => return None,
    };
    if !sound {
        return None;
    }
    // the API takes no keys that it does not know
    let title =
        block.get("title").filter(|t| t.text().is_some_and(|t| !t.is_empty() && t.raw().len() <= TITLED));
    let about = block.get("context").filter(|c| c.text().is_some_and(|c| !c.is_blank()));
    let mut out = b"{\"type\":\"document\",\"source\":{".to_vec();
    for (n, key) in keys.iter().enumerate() {
        out.extend_from_slice(if n == 0 { b"" } else { b"," });
        write_string(&mut out, key);
        out.push(b':');
        out.extend_from_slice(source.get(key)?.raw());
    }
    out.push(b'}');
    for (key, value) in [("title", title), ("context", about)] {
        let Some(value) = value else { continue };
        out.push(b',');
        write_string(&mut out, key);
        out.push(b':');
        out.extend_from_slice(value.raw());
    }
    out.push(b'}');
    Some(Cow::Owned(out))
}

/// The same, with the blocks that only a client of its own gets from its tools.
fn document_or_own<'a>(kind: &str, block: Value<'a>) -> Option<Cow<'a, [u8]>> {
    match kind {
        "tool_reference" | "search_result" => Some(Cow::Borrowed(block.raw())),
        _ => document(kind, block),
    }
}

/// Whether base64 text holds what begins like a PDF.
fn is_pdf(data: Text<'_>) -> bool {
    let good = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/' | b'=');
    Base64(data.raw()).bytes(0) == Some(*b"%PDF-")
        && data.raw().len().is_multiple_of(4)
        && data.raw().iter().all(good)
}
