//! Writing a rollout that Codex CLI resumes.
//!
//! Memory: one record. The body goes to an unlinked temporary file, because the note before it tells of
//! what the last record counts. Texts are spliced from line to line as the escaped bytes they are.

#[cfg(test)]
mod tests;

use crate::agents::note::{self, Note};
use crate::agents::tools::counterpart;
use crate::agents::{WriteOptions, Writer, Written, paths, shell};
use crate::record::{End, Harness, Lineage, Origin, Problems, Role, Session, Status, problem};
use crate::stream::json::{Tape, Value, without_lone_surrogates, write_escaped, write_string};
use crate::stream::{
    Compression, Error, Head, Kind, Output, Placing, Record, Result, World, append_line, number,
    refuse_existing,
};
use jiff::Timestamp;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs::File;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// Longest `call_id` that the API takes (openai/codex 0.171 sends it unchecked).
const CALL_ID: usize = 64;

/// Longest tool name that the API takes.
const NAME: usize = 128;

/// What one image costs, in tokens: about the most that the API charges for one.
const IMAGE: u64 = 1_500;

/// Longest answer that `task_complete` repeats, in bytes; the client wants it for notices only.
const LAST_MESSAGE: usize = 64 << 10;

/// Most of a block of unknown type that is shown as text, in bytes.
const BLOCK: usize = 2_000;

/// Begins a new session.
pub(super) fn writer<'w>(options: &'w WriteOptions, world: &'w World) -> Result<Box<dyn Writer + 'w>> {
    if options.restore || options.register {
        return Err(Error::Usage {
            what: "codex sessions cannot be restored or registered yet".into(),
            hint: None,
        });
    }
    Ok(Box::new(Rollout {
        options,
        world,
        tape: Tape::new(),
        body: Body::new(options.dry_run)?,
        begun: None,
        end: None,
        turn: None,
        custom: HashSet::new(),
        conversation: false,
        messages: 0,
        tokens: 0,
        dropped: BTreeMap::new(),
        lost: BTreeMap::new(),
        problems: Problems::default(),
        summary: Vec::new(),
        strategy: BTreeSet::new(),
    }))
}

/// Size of a text in tokens, from the escaped body of its JSON string.
fn size(body: &[u8]) -> u64 {
    crate::tokens::estimate_escaped(body)
}

struct Rollout<'w> {
    options: &'w WriteOptions,
    world: &'w World,
    tape: Tape,
    body: Body,
    begun: Option<Begun>,
    end: Option<End>,
    turn: Option<Turn>,
    /// Ids of free-form calls whose result is to come.
    custom: HashSet<String>,
    /// Whether anything but harness text was written.
    conversation: bool,
    messages: u64,
    tokens: u64,
    dropped: BTreeMap<String, u64>,
    lost: BTreeMap<Lost, u64>,
    problems: Problems,
    /// Texts of relay's own leading summary, escaped.
    summary: Vec<Vec<u8>>,
    strategy: BTreeSet<&'static str>,
}

/// First line of a rollout. `model_provider`, `base_instructions` and `history_mode` must stay away: Codex
/// 0.171 refuses the first on resume when it is not the configured one, takes the second for its system
/// prompt, and wants ordinals for the third.
#[derive(serde::Serialize)]
struct Meta<'a> {
    timestamp: &'a str,
    #[serde(rename = "type")]
    kind: &'a str,
    payload: Payload<'a>,
}

/// The five fields without which no client since 0.47 resumes, where the session shows, and what is ours.
#[derive(serde::Serialize)]
struct Payload<'a> {
    id: &'a str,
    timestamp: &'a str,
    cwd: &'a str,
    originator: &'a str,
    cli_version: &'a str,
    source: &'a str,
    relay: Relay<'a>,
}

#[derive(serde::Serialize)]
struct Relay<'a> {
    relay_id: &'a str,
    source: Origins<'a>,
    lineage: &'a [Lineage],
}

#[derive(serde::Serialize)]
struct Origins<'a> {
    agent: &'a str,
    session_id: &'a str,
    path: Option<&'a str>,
}

/// What is settled when the session begins.
struct Begun {
    session: Session,
    project: PathBuf,
    directory: String,
    id: String,
    relay_id: String,
    now: Timestamp,
    target: Target,
    resume: String,
}

/// Where the file goes.
enum Target {
    /// Into the store whose home this is.
    Store { home: PathBuf, file: PathBuf },
    /// Elsewhere.
    File(PathBuf),
    /// To standard output.
    Stdout,
}

struct Turn {
    id: String,
    answered: bool,
    last_message: Option<Vec<u8>>,
}

/// What cannot be carried; the order is that of the report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Lost {
    Reasoning,
    Environment,
    Tools,
    Images,
    MovedImages,
    Blocks,
    ResultBlocks,
}

impl Lost {
    fn words(self, n: u64) -> String {
        let (one, many) = match self {
            Lost::Reasoning => (
                "reasoning block (only its own model can use it)",
                "reasoning blocks (only their own model can use them)",
            ),
            Lost::Environment => {
                ("text of the source's own environment", "texts of the source's own environment")
            }
            Lost::Tools => ("tool call or result", "tool calls and results"),
            Lost::Images => ("image", "images"),
            Lost::MovedImages => (
                "image of the assistant, moved to a user message",
                "images of the assistant, moved to user messages",
            ),
            Lost::Blocks => (
                "document or other block, named by a text in its place",
                "documents or other blocks, named by texts in their place",
            ),
            Lost::ResultBlocks => (
                "block of a tool result that is neither text nor image",
                "blocks of tool results that are neither text nor image",
            ),
        };
        format!("{n} {}", if n == 1 { one } else { many })
    }
}

impl Writer for Rollout<'_> {
    fn record(&mut self, record: &Record<'_>) -> Result<()> {
        let head = record.head();
        match head.kind {
            Kind::Session => self.begin(record.decode()?),
            Kind::Message => match head.dropped {
                None => self.live(record),
                Some(reason) => {
                    let reason = reason.decode();
                    if matches!(&*reason, "trimmed" | "condensed") {
                        self.strategy.insert("trimmed");
                    }
                    *self.dropped.entry(reason.into_owned()).or_default() += 1;
                    Ok(())
                }
            },
            Kind::End => {
                let end: End = record.decode()?;
                if let Some(why) = &end.failed {
                    let id = self.begun.as_ref().map_or("", |b| &b.session.session_id);
                    return Err(Error::input(format!("session {id}"), format!("could not be read: {why}")));
                }
                self.end = Some(end);
                Ok(())
            }
            Kind::Native | Kind::Abort | Kind::Unknown => Ok(()),
        }
    }

    fn finish(mut self: Box<Self>) -> Result<Written> {
        let (Some(begun), Some(end)) = (self.begun.take(), self.end.take()) else {
            return Err(Error::input("stream", "the session is not whole"));
        };
        if !self.conversation {
            let place = format!("session {}", begun.session.session_id);
            return Err(Error::input(place, "nothing to hand over: it has no live conversation"));
        }
        let losses: Vec<String> = self.lost.iter().map(|(what, n)| what.words(*n)).collect();
        // the next model need not hear of what it gets anew, or finds named in its place
        let told = |what: &&Lost| !matches!(what, Lost::Environment | Lost::MovedImages | Lost::Blocks);
        let told = self.lost.iter().filter(|(what, _)| told(what)).map(|(what, n)| what.words(*n));
        let head = self.head(&begun, &told.collect::<Vec<_>>())?;
        self.close_turn()?;
        let file = self.body.finish()?;
        let path = match &begun.target {
            Target::Store { file, .. } | Target::File(file) => file.clone(),
            Target::Stdout => PathBuf::from("-"),
        };
        let mut losses = losses;
        if let Some(file) = file {
            place(&begun.target, &head, file)?;
            if let Err(e) = self.list(&begun) {
                losses.push(format!("the title ({e})"));
            }
        }
        let mut problems = self.problems;
        problems.merge(end.problems);
        Ok(Written {
            agent: "codex".to_owned(),
            session_id: begun.id,
            relay_id: begun.relay_id,
            path,
            directory: begun.project,
            resume: begun.resume,
            messages: self.messages,
            tokens: self.tokens,
            dropped: self.dropped.values().sum(),
            problems: problems.into_vec(),
            losses,
        })
    }
}

/// Head and body become the file.
fn place(target: &Target, head: &[u8], mut body: File) -> Result<()> {
    body.seek(SeekFrom::Start(0)).map_err(Error::io("temporary file"))?;
    match target {
        Target::Store { file, .. } => {
            let mut placing = Placing::begin(file)?;
            let name = file.display().to_string();
            let out = placing.file();
            // file to file: the kernel copies
            out.write_all(head).and_then(|()| io::copy(&mut body, out)).map_err(Error::io(name))?;
            placing.persist()
        }
        Target::File(file) => {
            let mut placing = Placing::begin(file)?;
            let name = file.display().to_string();
            let copy = placing.file().try_clone().map_err(Error::io(&name))?;
            let mut out = Output::file(copy, name, Compression::of_name(file))?;
            pour(head, body, &mut out)?;
            out.finish()?;
            placing.persist()
        }
        Target::Stdout => {
            let mut out = Output::stdout()?;
            pour(head, body, &mut out)?;
            out.finish().map(|_| ())
        }
    }
}

fn pour(head: &[u8], mut body: File, out: &mut Output) -> Result<()> {
    out.bytes(head)?;
    let mut block = vec![0; 256 << 10];
    loop {
        match body.read(&mut block) {
            Ok(0) => return Ok(()),
            Ok(n) => out.bytes(block.get(..n).unwrap_or_default())?,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(Error::io("temporary file")(e)),
        }
    }
}

impl Rollout<'_> {
    fn begin(&mut self, session: Session) -> Result<()> {
        let (options, world) = (self.options, self.world);
        let project = paths::project(&session, options, world)?;
        let directory = note::utf8(&project)?.to_owned();
        let now = world.now();
        let id = world.uuid_v7().to_string();
        let mut command = String::new();
        if let Some(root) = &options.root {
            command = format!("CODEX_HOME={} ", shell::quoted(note::utf8(&world.resolve(root))?)?);
        }
        command.push_str("codex resume ");
        command.push_str(&id);
        let mut resume = shell::in_directory(&directory, &command)?;
        let target = match &options.output {
            Some(to) if to.as_os_str() == "-" => Target::Stdout,
            Some(to) => {
                let to = world.resolve(to);
                refuse_existing(&to)?;
                Target::File(to)
            }
            None => {
                let home = home(options, world)?;
                let local = now.to_zoned_datetime(world.zone());
                let name = format!("rollout-{}-{id}.jsonl", local.strftime("%Y-%m-%dT%H-%M-%S"));
                let file = home.join("sessions").join(local.strftime("%Y/%m/%d").to_string()).join(name);
                Target::Store { home, file }
            }
        };
        if !matches!(target, Target::Store { .. }) {
            // what lies elsewhere is not found by its id
            resume.clear();
        }
        let first = session.created_at.clone().unwrap_or_else(|| rfc3339(now));
        self.body.time.clear();
        write_escaped(&mut self.body.time, &first);
        let relay_id = note::relay_id(world);
        self.begun = Some(Begun { session, project, directory, id, relay_id, now, target, resume });
        Ok(())
    }

    fn lose(&mut self, what: Lost, n: u64) {
        if n > 0 {
            *self.lost.entry(what).or_default() += n;
        }
    }

    /// Takes a message of the live conversation.
    fn live(&mut self, record: &Record<'_>) -> Result<()> {
        let head = record.head();
        let Some(role) = head.role else { return Ok(()) };
        if role == Role::Reasoning {
            self.lose(Lost::Reasoning, 1);
            return Ok(());
        }
        if head.origin == Some(Origin::Harness) && matches!(head.harness, Some(Harness::Environment) | None) {
            self.lose(Lost::Environment, 1);
            return Ok(());
        }
        if head.origin == Some(Origin::Relay) && role == Role::User && !head.synthetic {
            // the note of an earlier relay: the new one says what it said
            return Ok(());
        }
        if self.options.dialogue_only && matches!(role, Role::ToolCall | Role::ToolResult) {
            self.lose(Lost::Tools, 1);
            return Ok(());
        }
        let mut tape = std::mem::take(&mut self.tape);
        // nothing of `extra` is written
        let value = tape.parse_opaque(record.line(), &["extra"]).map_err(shape);
        let done = match value {
            Err(e) => Err(e),
            Ok(value) if !value.has_lone_surrogate() => self.message(role, head, value),
            Ok(_) => {
                // the client loses a line with a lone surrogate (0.47 to 0.171)
                self.problems.add(problem::SURROGATE, head.line, "");
                let line = without_lone_surrogates(record.line());
                tape.parse_opaque(&line, &["extra"]).map_err(shape).and_then(|v| self.message(role, head, v))
            }
        };
        self.tape = tape;
        done
    }

    fn message(&mut self, role: Role, head: &Head<'_>, value: Value<'_>) -> Result<()> {
        if let Some(time) = head.timestamp.filter(|t| !t.is_empty()) {
            self.body.time.clear();
            write_escaped(&mut self.body.time, &time.decode());
        }
        match role {
            Role::ToolCall => self.call(head, value),
            Role::ToolResult => self.result(head, value),
            _ => self.text(role, head, value),
        }
    }

    /// A message of texts and images.
    fn text(&mut self, role: Role, head: &Head<'_>, value: Value<'_>) -> Result<()> {
        let content = value.get("content").map(parts).unwrap_or_default();
        let blocks = content.iter().filter(|p| matches!(p, Part::Made(_))).count();
        let (texts, images): (Vec<Part<'_>>, Vec<Part<'_>>) =
            content.iter().filter(|p| !p.is_blank()).cloned().partition(|p| !matches!(p, Part::Image(_)));
        self.lose(Lost::Blocks, blocks as u64);
        let harness = head.origin == Some(Origin::Harness);
        let ours = role == Role::Summary && head.origin == Some(Origin::Relay);
        if ours {
            self.strategy.insert("summarized");
            if !self.conversation {
                self.summary.extend(texts.iter().map(|t| t.body().into_owned()));
                self.conversation |= !self.summary.is_empty();
                self.messages += 1;
                return Ok(());
            }
        }
        let (texts, images, content) = match self.options.dialogue_only {
            true => {
                self.lose(Lost::Images, images.len() as u64);
                (texts.clone(), Vec::new(), texts)
            }
            false => (texts, images, content.into_iter().filter(|p| !p.is_blank()).collect()),
        };
        if texts.is_empty() && images.is_empty() {
            return Ok(());
        }
        self.messages += 1;
        self.conversation |= !harness && role != Role::System;
        match role {
            Role::Assistant => self.answer(&texts, &images),
            Role::System if !harness => {
                self.open_turn()?;
                self.say("developer", &texts, None)?;
                self.moved(&images)
            }
            _ => {
                // a command, a notice or a summary stands in the user's place, but nobody typed it: no
                // event, so that the first real prompt stays the preview of the session
                let prompt = head.is_prompt();
                if prompt && self.turn.as_ref().is_some_and(|t| t.answered) {
                    self.close_turn()?;
                }
                self.open_turn()?;
                let kind = match (role, head.harness.filter(|_| harness)) {
                    (Role::Summary, _) => Some("{\"role\":\"summary\"}".to_owned()),
                    (_, Some(kind)) => Some(format!("{{\"harness\":\"{kind}\"}}")),
                    _ => None,
                };
                self.say("user", &content, kind.as_deref())?;
                if prompt { self.prompted(&texts, images.len()) } else { Ok(()) }
            }
        }
    }

    /// Text of the model, and the event that shows it in the transcript.
    fn answer(&mut self, texts: &[Part<'_>], images: &[Part<'_>]) -> Result<()> {
        self.open_turn()?;
        if !texts.is_empty() {
            self.say("assistant", texts, None)?;
            self.body.open("event_msg", None)?;
            self.body.put(b"{\"type\":\"agent_message\",\"message\":\"")?;
            self.body.joined(texts)?;
            self.body.put(b"\"}")?;
            self.body.close()?;
        }
        if let Some(turn) = &mut self.turn {
            turn.answered = true;
            if !texts.is_empty() {
                let length: usize = texts.iter().map(|t| t.body().len() + 2).sum();
                turn.last_message = (length <= LAST_MESSAGE)
                    .then(|| texts.iter().map(|t| t.body()).collect::<Vec<_>>().join(&b"\\n"[..]));
            }
        }
        self.lose(Lost::MovedImages, images.len() as u64);
        self.moved(images)
    }

    /// Images that the API takes from the user alone.
    fn moved(&mut self, images: &[Part<'_>]) -> Result<()> {
        if images.is_empty() { Ok(()) } else { self.say("user", images, None) }
    }

    /// A message of the model's history.
    fn say(&mut self, role: &str, content: &[Part<'_>], relay: Option<&str>) -> Result<()> {
        self.body.open("response_item", relay.map(str::as_bytes))?;
        self.body.put(b"{\"type\":\"message\",\"role\":\"")?;
        self.body.put(role.as_bytes())?;
        self.body.put(b"\",\"content\":")?;
        self.content(if role == "assistant" { "output_text" } else { "input_text" }, content)?;
        self.body.put(b"}")?;
        self.body.close()
    }

    fn content(&mut self, kind: &str, content: &[Part<'_>]) -> Result<()> {
        self.body.put(b"[")?;
        for (n, part) in content.iter().enumerate() {
            if n > 0 {
                self.body.put(b",")?;
            }
            if let Part::Image(url) = part {
                self.tokens += IMAGE;
                self.body.put(b"{\"type\":\"input_image\",\"image_url\":\"")?;
                for piece in url {
                    self.body.put(piece)?;
                }
            } else {
                self.body.put(b"{\"type\":\"")?;
                self.body.put(kind.as_bytes())?;
                self.body.put(b"\",\"text\":\"")?;
                let text = part.body();
                self.tokens += size(&text);
                self.body.put(&text)?;
            }
            self.body.put(b"\"}")?;
        }
        self.body.put(b"]")
    }

    /// The event that shows a prompt in the transcript and, the first one, in the picker.
    fn prompted(&mut self, texts: &[Part<'_>], images: usize) -> Result<()> {
        self.body.open("event_msg", None)?;
        self.body.put(b"{\"type\":\"user_message\",\"message\":\"")?;
        if texts.is_empty() && images > 0 {
            // an empty preview hides the session
            self.body.put(b"[image]")?;
        }
        self.body.joined(texts)?;
        // the images are in the history; a second copy here would only swell the file
        self.body.put(b"\",\"images\":[],\"local_images\":[],\"text_elements\":[]}")?;
        self.body.close()
    }

    fn open_turn(&mut self) -> Result<()> {
        if self.turn.is_some() {
            return Ok(());
        }
        let id = self.world.uuid_v7().to_string();
        self.body.open("event_msg", None)?;
        self.body.put(b"{\"type\":\"task_started\",\"turn_id\":\"")?;
        self.body.put(id.as_bytes())?;
        self.body.put(b"\",\"model_context_window\":null}")?;
        self.body.close()?;
        self.turn = Some(Turn { id, answered: false, last_message: None });
        Ok(())
    }

    fn close_turn(&mut self) -> Result<()> {
        let Some(turn) = self.turn.take() else { return Ok(()) };
        let mut usage = Vec::new();
        usage.extend_from_slice(b"{\"input_tokens\":");
        number(&mut usage, self.tokens);
        usage.extend_from_slice(
            b",\"cached_input_tokens\":0,\"output_tokens\":0,\"reasoning_output_tokens\":0,\"total_tokens\":",
        );
        number(&mut usage, self.tokens);
        usage.push(b'}');
        self.body.open("event_msg", None)?;
        self.body.put(b"{\"type\":\"token_count\",\"info\":{\"total_token_usage\":")?;
        self.body.put(&usage)?;
        self.body.put(b",\"last_token_usage\":")?;
        self.body.put(&usage)?;
        self.body.put(b",\"model_context_window\":null},\"rate_limits\":null}")?;
        self.body.close()?;
        self.body.open("event_msg", None)?;
        self.body.put(b"{\"type\":\"task_complete\",\"turn_id\":\"")?;
        self.body.put(turn.id.as_bytes())?;
        self.body.put(b"\",\"last_agent_message\":")?;
        match turn.last_message {
            None => self.body.put(b"null")?,
            Some(text) => {
                self.body.put(b"\"")?;
                self.body.put(&text)?;
                self.body.put(b"\"")?;
            }
        }
        self.body.put(b"}")?;
        self.body.close()
    }

    fn call(&mut self, head: &Head<'_>, value: Value<'_>) -> Result<()> {
        let (Some(id), Some(input)) = (head.tool_call_id, value.get("input")) else {
            return Err(Error::shape("a tool_call message needs `tool_call_id` and `input`"));
        };
        // some sources have calls without a name; the API takes none without
        let (id, name) = (id.decode(), head.tool_name.map_or("unknown".into(), |n| n.decode()));
        let metadata = value.get("metadata");
        self.messages += 1;
        self.conversation = true;
        if metadata.and_then(|m| m.get("server")?.bool()) == Some(true) {
            let mut text = format!("[tool run by the server: {name} ").into_bytes();
            text.extend_from_slice(input.raw());
            text.push(b']');
            let made = Part::made(&String::from_utf8_lossy(&text));
            return self.answer(&[made], &[]);
        }
        self.open_turn()?;
        if let Some(turn) = &mut self.turn {
            turn.answered = true;
        }
        let kind = metadata.and_then(|m| m.get("kind")?.text());
        let custom = kind.is_some_and(|k| k == "custom").then(|| input.text()).flatten();
        let source = self.begun.as_ref().map_or("", |b| &b.session.source_agent);
        let twin = match self.options.keep_tool_names || source == "codex" {
            true => None,
            false => counterpart("codex", &name, input),
        };
        let written_id = call_id(&id);
        let written_name = twin.as_ref().map_or_else(|| tool_name(&name), |t| t.name.to_owned());
        let renamed_id = *written_id != *id;
        if renamed_id {
            self.problems.add(
                problem::RENAMED_ID,
                head.line,
                format!("tool call id {id} is now {written_id}"),
            );
        }
        if twin.is_none() && written_name != *name {
            self.problems.add(
                problem::RENAMED_ID,
                head.line,
                format!("tool name {name:?} is now {written_name}"),
            );
        }
        // for the way back; the client ignores it
        let mut relay = Vec::new();
        if written_name != *name {
            relay.extend_from_slice(b"\"tool_name\":");
            write_string(&mut relay, &name);
        }
        if renamed_id {
            relay.extend_from_slice(if relay.is_empty() { b"" } else { b"," });
            relay.extend_from_slice(b"\"tool_call_id\":");
            write_string(&mut relay, &id);
        }
        if twin.as_ref().is_some_and(|t| !t.exact) {
            relay.extend_from_slice(b",\"input\":");
            relay.extend_from_slice(input.raw());
        }
        let mut arguments = Vec::new();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        match (&twin, custom) {
            (_, Some(custom)) => arguments.extend_from_slice(custom.raw()),
            (Some(twin), None) => write_escaped(&mut arguments, &text(&twin.input)),
            (None, None) if input.is_null() => arguments.extend_from_slice(b"{}"),
            (None, None) if input.text().is_some() => {
                // free text where the API wants JSON
                write_escaped(&mut arguments, &format!("{{\"input\":{}}}", text(input.raw())));
            }
            (None, None) => match std::str::from_utf8(input.raw()) {
                Ok(json) => write_escaped(&mut arguments, json),
                Err(e) => return Err(Error::shape(e.to_string())),
            },
        }
        self.tokens += size(&arguments) + size(written_name.as_bytes());
        if !relay.is_empty() {
            relay.insert(0, b'{');
            relay.push(b'}');
        }
        self.body.open("response_item", (!relay.is_empty()).then_some(relay.as_slice()))?;
        let (kind, field) = match custom {
            Some(_) => ("custom_tool_call", "input"),
            None => ("function_call", "arguments"),
        };
        self.body
            .put(format!("{{\"type\":\"{kind}\",\"name\":\"{written_name}\",\"{field}\":\"").as_bytes())?;
        self.body.put(&arguments)?;
        self.body.put(format!("\",\"call_id\":\"{written_id}\"}}").as_bytes())?;
        self.body.close()?;
        if custom.is_some() {
            self.custom.insert(written_id);
        }
        Ok(())
    }

    fn result(&mut self, head: &Head<'_>, value: Value<'_>) -> Result<()> {
        let Some(id) = head.tool_call_id else {
            return Err(Error::shape("a tool_result message needs `tool_call_id`"));
        };
        let content = value.get("content").map(parts).unwrap_or_default();
        self.messages += 1;
        self.conversation = true;
        if value.get("metadata").and_then(|m| m.get("server")?.bool()) == Some(true) {
            let (texts, images): (Vec<_>, Vec<_>) =
                content.into_iter().partition(|p| !matches!(p, Part::Image(_)));
            return self.answer(&texts, &images);
        }
        // the result is what the tool said: no text of ours in it
        let (content, others): (Vec<_>, Vec<_>) =
            content.into_iter().partition(|p| !matches!(p, Part::Made(_)));
        self.lose(Lost::ResultBlocks, others.len() as u64);
        self.open_turn()?;
        let id = call_id(&id.decode());
        let kind = if self.custom.remove(&id) { "custom_tool_call_output" } else { "function_call_output" };
        let failed = head.status == Some(Status::Error);
        self.body.open("response_item", failed.then_some(b"{\"status\":\"error\"}"))?;
        self.body.put(format!("{{\"type\":\"{kind}\",\"call_id\":\"{id}\",\"output\":").as_bytes())?;
        if content.iter().any(|p| matches!(p, Part::Image(_))) {
            self.content("input_text", &content)?;
        } else {
            self.body.put(b"\"")?;
            self.tokens += content.iter().map(|p| size(&p.body())).sum::<u64>();
            self.body.joined(&content)?;
            self.body.put(b"\"")?;
        }
        self.body.put(b"}")?;
        self.body.close()
    }

    /// The first lines of the file: who it is, and the note.
    fn head(&mut self, begun: &Begun, losses: &[String]) -> Result<Vec<u8>> {
        let mut out = Vec::new();
        let time = rfc3339(begun.now);
        let strategy = match (self.options.dialogue_only, &self.strategy) {
            (true, _) => "dialogue",
            (_, s) if s.contains("summarized") => "summarized",
            (_, s) if s.contains("trimmed") => "trimmed",
            _ => "whole",
        };
        let s = &begun.session;
        let mut lineage = s.lineage.clone();
        lineage.push(Lineage {
            relay_id: begun.relay_id.clone(),
            from: s.source_agent.clone(),
            to: "codex".to_owned(),
            at: time.clone(),
            strategy: Some(strategy.to_owned()),
        });
        let meta = Meta {
            timestamp: &time,
            kind: "session_meta",
            payload: Payload {
                id: &begun.id,
                timestamp: &time,
                cwd: &begun.directory,
                originator: "relay",
                cli_version: env!("CARGO_PKG_VERSION"),
                source: "cli",
                relay: Relay {
                    relay_id: &begun.relay_id,
                    source: Origins {
                        agent: &s.source_agent,
                        session_id: &s.session_id,
                        path: s.source_path.as_deref(),
                    },
                    lineage: &lineage,
                },
            },
        };
        let mut whole = serde_json::to_vec(&meta).map_err(|e| Error::failed(e.to_string()))?;
        self.tokens += self.note(begun, losses, &time, &mut out);
        whole.push(b'\n');
        whole.extend_from_slice(&out);
        Ok(whole)
    }

    /// Appends the note with the summary, one message; gives its tokens.
    fn note(&self, begun: &Begun, losses: &[String], time: &str, out: &mut Vec<u8>) -> u64 {
        let mut texts = Vec::new();
        let mut kinds = Vec::new();
        if self.options.note {
            let note = Note {
                relay_id: &begun.relay_id,
                session: &begun.session,
                target: "Codex CLI",
                now: begun.now,
                project: &begun.project,
                options: self.options,
                dropped: &self.dropped,
                losses,
                summary: !self.summary.is_empty(),
            };
            let mut text = Vec::new();
            write_escaped(&mut text, &note.text());
            texts.push(text);
            kinds.push("\"note\"");
        }
        texts.extend(self.summary.iter().cloned());
        kinds.extend(self.summary.iter().map(|_| "\"summary\""));
        if texts.is_empty() {
            return 0;
        }
        out.extend_from_slice(b"{\"timestamp\":\"");
        out.extend_from_slice(time.as_bytes());
        out.extend_from_slice(b"\",\"type\":\"response_item\",\"relay\":{\"parts\":[");
        out.extend_from_slice(kinds.join(",").as_bytes());
        out.extend_from_slice(b"]},\"payload\":{\"type\":\"message\",\"role\":\"user\",\"content\":[");
        let mut tokens = 0;
        for (n, text) in texts.iter().enumerate() {
            tokens += size(text);
            out.extend_from_slice(if n == 0 { b"" } else { b"," });
            out.extend_from_slice(b"{\"type\":\"input_text\",\"text\":\"");
            out.extend_from_slice(text);
            out.extend_from_slice(b"\"}");
        }
        out.extend_from_slice(b"]}}\n");
        tokens
    }

    /// Gives the session its title in the client's index.
    fn list(&self, begun: &Begun) -> Result<()> {
        let Target::Store { home, .. } = &begun.target else { return Ok(()) };
        let given = self.options.title.as_deref().or(begun.session.title.as_deref());
        let title = shell::one_line(given.unwrap_or_default());
        if title.trim().is_empty() {
            return Ok(());
        }
        let line = serde_json::json!({
            "id": begun.id, "thread_name": title.trim(), "updated_at": rfc3339(begun.now),
        });
        append_line(&home.join("session_index.jsonl"), line.to_string().as_bytes())
    }
}

/// The home of the target's store: `--root`, `CODEX_HOME`, `~/.codex`.
fn home(options: &WriteOptions, world: &World) -> Result<PathBuf> {
    if let Some(root) = &options.root {
        return Ok(world.resolve(root));
    }
    if let Some(home) = world.variable("CODEX_HOME") {
        return Ok(world.resolve(Path::new(home)));
    }
    world.home().map(|home| home.join(".codex")).ok_or_else(|| Error::Failed {
        what: "neither CODEX_HOME nor HOME is set".to_owned(),
        hint: Some("name the home of Codex with --root DIR".to_owned()),
    })
}

/// As Codex writes times: UTC with milliseconds.
fn rfc3339(at: Timestamp) -> String {
    format!("{at:.3}")
}

/// The id as the API takes it. A bad one gets a name that depends on nothing but itself, so that call and
/// result agree without a table of what was renamed.
fn call_id(id: &str) -> String {
    let good = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if (1..=CALL_ID).contains(&id.len()) && id.chars().all(good) {
        return id.to_owned();
    }
    let hash = |salt: u8| {
        let mut hasher = DefaultHasher::new();
        (salt, id).hash(&mut hasher);
        hasher.finish()
    };
    let start: String = id.chars().take(16).map(|c| if good(c) { c } else { '_' }).collect();
    format!("relay_{start}_{:016x}{:016x}", hash(1), hash(2))
}

/// The tool's name as the API takes it.
fn tool_name(name: &str) -> String {
    let good = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    match name.is_empty() {
        true => "tool".to_owned(),
        false => name.chars().take(NAME).map(|c| if good(c) { c } else { '_' }).collect(),
    }
}

/// A piece of a message; texts are escaped bodies of JSON strings.
#[derive(Debug, Clone)]
enum Part<'a> {
    Text(&'a [u8]),
    /// Text of relay's own that stands for a block that cannot be carried.
    Made(Vec<u8>),
    /// An image; the pieces of its URL.
    Image(Vec<&'a [u8]>),
}

impl Part<'_> {
    fn made(text: &str) -> Part<'static> {
        let mut body = Vec::new();
        write_escaped(&mut body, text);
        Part::Made(body)
    }

    fn body(&self) -> std::borrow::Cow<'_, [u8]> {
        match self {
            Part::Text(body) => std::borrow::Cow::Borrowed(body),
            Part::Made(body) => std::borrow::Cow::Borrowed(body),
            Part::Image(pieces) => std::borrow::Cow::Owned(pieces.concat()),
        }
    }

    fn is_blank(&self) -> bool {
        match self {
            Part::Text(body) => is_blank(body),
            Part::Made(_) | Part::Image(_) => false,
        }
    }
}

/// Whether an escaped text is empty or white space.
fn is_blank(mut body: &[u8]) -> bool {
    loop {
        body = match body {
            [] => return true,
            [b' ', rest @ ..] | [b'\\', b'n' | b't' | b'r', rest @ ..] => rest,
            _ => return false,
        };
    }
}

/// The pieces of a `content`.
fn parts<'a>(content: Value<'a>) -> Vec<Part<'a>> {
    if let Some(text) = content.text() {
        return vec![Part::Text(text.raw())];
    }
    if content.is_null() {
        return Vec::new();
    }
    if content.raw().first() != Some(&b'[') {
        return vec![other("unknown content", content)];
    }
    content.items().map(part).collect()
}

fn part<'a>(block: Value<'a>) -> Part<'a> {
    if let Some(text) = block.text() {
        return Part::Text(text.raw());
    }
    let kind = block.get("type").and_then(|t| t.text()).map(|t| t.decode()).unwrap_or_default();
    match &*kind {
        "text" => match block.get("text").and_then(|t| t.text()) {
            Some(text) => Part::Text(text.raw()),
            None => other("text block", block),
        },
        "image" => image(block).unwrap_or_else(|| other("image", block)),
        "document" => document(block),
        "" => other("unknown block", block),
        kind => other(&format!("{} block", shell::one_line(kind)), block),
    }
}

fn image<'a>(block: Value<'a>) -> Option<Part<'a>> {
    let source = block.get("source")?;
    let url = match source.get("data").and_then(|d| d.text()) {
        Some(data) => {
            let media =
                source.get("media_type").and_then(|m| m.text()).map_or(&b"image/png"[..], |m| m.raw());
            vec![&b"data:"[..], media, b";base64,", data.raw()]
        }
        None => vec![source.get("url")?.text()?.raw()],
    };
    Some(Part::Image(url))
}

fn document<'a>(block: Value<'a>) -> Part<'a> {
    let source = block.get("source");
    let field = |key: &str| source.and_then(|s| s.get(key)?.text());
    let title = block.get("title").and_then(|t| t.text()).map(|t| shell::one_line(&t.head(200)));
    let name = title.map(|t| format!(" {t:?}")).unwrap_or_default();
    match (field("type").map(|t| t.decode()).as_deref(), field("data"), field("url")) {
        (Some("text"), Some(data), _) => Part::made(&format!("[document{name}]\n{}", data.decode())),
        (_, Some(data), _) => {
            let media = field("media_type").map(|m| shell::one_line(&m.head(100))).unwrap_or_default();
            Part::made(&format!(
                "[document{name} {media}, {} bytes: not carried over]",
                data.raw().len() / 4 * 3
            ))
        }
        (_, None, Some(url)) => {
            Part::made(&format!("[document{name} at {}]", shell::one_line(&url.head(1000))))
        }
        _ => other("document", block),
    }
}

/// Honest words for what has no place in a rollout.
fn other(what: &str, block: Value<'_>) -> Part<'static> {
    let raw = block.raw();
    match std::str::from_utf8(raw) {
        Ok(json) if raw.len() <= BLOCK => Part::made(&format!("[{what} {json}]")),
        _ => Part::made(&format!("[{what} of {} bytes: not carried over]", raw.len())),
    }
}

/// The lines behind the head, in an unlinked temporary file; a dry run keeps nothing.
struct Body {
    file: Option<BufWriter<File>>,
    /// Body of the JSON string that dates the next line.
    time: Vec<u8>,
}

impl Body {
    fn new(dry_run: bool) -> Result<Body> {
        let file = match dry_run {
            true => None,
            false => Some(BufWriter::with_capacity(
                256 << 10,
                tempfile::tempfile().map_err(Error::io("temporary file"))?,
            )),
        };
        Ok(Body { file, time: Vec::new() })
    }

    fn put(&mut self, bytes: &[u8]) -> Result<()> {
        match &mut self.file {
            Some(file) => file.write_all(bytes).map_err(Error::io("temporary file")),
            None => Ok(()),
        }
    }

    /// Begins a line up to its payload; `relay` is an object that the client ignores.
    fn open(&mut self, kind: &str, relay: Option<&[u8]>) -> Result<()> {
        let time = std::mem::take(&mut self.time);
        self.put(b"{\"timestamp\":\"")?;
        self.put(&time)?;
        self.time = time;
        self.put(b"\",\"type\":\"")?;
        self.put(kind.as_bytes())?;
        if let Some(relay) = relay {
            self.put(b"\",\"relay\":")?;
            self.put(relay)?;
            self.put(b",\"payload\":")
        } else {
            self.put(b"\",\"payload\":")
        }
    }

    fn close(&mut self) -> Result<()> {
        self.put(b"}\n")
    }

    /// Texts on lines of their own, in one string.
    fn joined(&mut self, texts: &[Part<'_>]) -> Result<()> {
        for (n, text) in texts.iter().enumerate() {
            if n > 0 {
                self.put(b"\\n")?;
            }
            self.put(&text.body())?;
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<Option<File>> {
        match self.file.take() {
            None => Ok(None),
            Some(file) => {
                let file = file.into_inner().map_err(|e| Error::io("temporary file")(e.into_error()))?;
                Ok(Some(file))
            }
        }
    }
}

fn shape(e: crate::stream::json::Error) -> Error {
    Error::shape(e.to_string())
}
