//! Writing a rollout that Codex CLI resumes.
//!
//! Memory: one record. The body goes to an unlinked temporary file, because the note before it tells of
//! what the last record counts. Texts are spliced from line to line as the escaped bytes they are.

#[cfg(test)]
mod tests;

use crate::agents::body::{Body, Target};
use crate::agents::content::{Part, Takes, call_id, parts, size, tool_name};
use crate::agents::handover::{Begun, Handover, Lost, Provenance, Step, To, rfc3339, scanned};
use crate::agents::image::OPENAI;
use crate::agents::tools::counterpart;
use crate::agents::{WriteOptions, Writer, Written, note, shell};
use crate::json::{Tape, Value, write_escaped, write_string};
use crate::record::{Error, Head, Origin, Record, Result, Role, Session, Status, number, problem};
use crate::stream::{World, append_line};
use crate::tokens::Family;
use std::collections::HashSet;

/// Longest `call_id` that the API takes (openai/codex 0.171 sends it unchecked).
const CALL_ID: usize = 64;

/// What one image costs, in tokens: about the most that the API charges for one.
const IMAGE: u64 = 1_500;

/// Longest answer that `task_complete` repeats, in bytes; the client wants it for notices only.
const LAST_MESSAGE: usize = 64 << 10;

/// What a rollout can hold: texts and images.
const TAKES: Takes<'_> = Takes { images: &OPENAI, block: &|_, _| None };

/// Whose sessions these are.
pub(super) const CODEX: To = To {
    agent: "codex",
    title: "Codex CLI",
    family: Family::OpenAi,
    home: "CODEX_HOME",
    usual: ".codex",
    sessions: "sessions",
    resume: "codex resume",
};

/// Begins a new session.
pub(super) fn writer<'w>(options: &'w WriteOptions, world: &'w World) -> Result<Box<dyn Writer + 'w>> {
    Ok(Box::new(Rollout {
        hand: Handover::new(CODEX, options, world),
        tape: Tape::new(),
        body: Body::new(options.dry_run)?,
        time: Vec::new(),
        turn: None,
        custom: HashSet::new(),
    }))
}

struct Rollout<'w> {
    hand: Handover<'w>,
    tape: Tape,
    body: Body,
    /// Body of the JSON string that dates the next line.
    time: Vec<u8>,
    turn: Option<Turn>,
    /// Ids of free-form calls whose result is to come.
    custom: HashSet<String>,
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
    relay: Provenance<'a>,
}

struct Turn {
    id: String,
    answered: bool,
    last_message: Option<Vec<u8>>,
}

impl Writer for Rollout<'_> {
    fn record(&mut self, record: &Record<'_>) -> Result<()> {
        match self.hand.step(record)? {
            Step::Begin(session) => self.begin(*session),
            Step::Live(role) => self.live(role, record),
            Step::Pass => Ok(()),
        }
    }

    fn finish(mut self: Box<Self>) -> Result<Written> {
        let taken = self.body.settle(&OPENAI, |text| {
            let mut block = b"{\"type\":\"input_text\",\"text\":".to_vec();
            write_string(&mut block, text);
            block.push(b'}');
            block
        });
        self.hand.lose_taken_out(&taken);
        let begun = self.hand.settled()?;
        let head = self.head(&begun)?;
        self.close_turn()?;
        let mut untitled = None;
        if let Some(file) = self.body.finish()? {
            begun.target.place(&head, file)?;
            untitled = self.list(&begun).err();
        }
        let mut written = self.hand.written(begun);
        written.losses.extend(untitled.map(|e| format!("the title ({e})")));
        Ok(written)
    }
}

impl Rollout<'_> {
    fn begin(&mut self, session: Session) -> Result<()> {
        let (options, world) = (self.hand.options, self.hand.world);
        let id = world.uuid_v7().to_string();
        let named = id.clone();
        let begun = self.hand.begin(session, id, |_, now| {
            let local = now.to_zoned_datetime(world.zone());
            let name = format!("rollout-{}-{named}.jsonl", local.strftime("%Y-%m-%dT%H-%M-%S"));
            let folder = CODEX.home(options, world)?.join("sessions");
            Ok(folder.join(local.strftime("%Y/%m/%d").to_string()).join(name))
        })?;
        let first = begun.session.created_at.clone().unwrap_or_else(|| rfc3339(begun.now));
        self.time.clear();
        write_escaped(&mut self.time, &first);
        Ok(())
    }

    /// Takes a message of the live conversation.
    fn live(&mut self, role: Role, record: &Record<'_>) -> Result<()> {
        let mut tape = std::mem::take(&mut self.tape);
        let done = scanned(record, &mut tape, |value, lone| {
            if lone {
                self.hand.problems.add(problem::SURROGATE, record.head().line, "");
            }
            self.message(role, record.head(), value)
        });
        self.tape = tape;
        done
    }

    fn message(&mut self, role: Role, head: &Head<'_>, value: Value<'_>) -> Result<()> {
        if let Some(time) = head.timestamp.filter(|t| !t.is_empty()) {
            self.time.clear();
            write_escaped(&mut self.time, &time.decode());
        }
        match role {
            Role::ToolCall => self.call(head, value),
            Role::ToolResult => self.result(head, value),
            _ => self.text(role, head, value),
        }
    }

    /// A message of texts and images.
    fn text(&mut self, role: Role, head: &Head<'_>, value: Value<'_>) -> Result<()> {
        let content = value.get("content").map(|c| parts(c, TAKES)).unwrap_or_default();
        self.hand.lose_of(&content);
        let (texts, images): (Vec<Part<'_>>, Vec<Part<'_>>) =
            content.iter().filter(|p| !p.is_blank()).cloned().partition(|p| !matches!(p, Part::Image(_)));
        let harness = head.origin == Some(Origin::Harness);
        let ours = role == Role::Summary && head.origin == Some(Origin::Relay);
        if ours && self.hand.keeps_summary(&texts) {
            // the note's message is text alone
            self.hand.lose(Lost::Images, images.len() as u64);
            return Ok(());
        }
        let (texts, images, content) = match self.hand.options.dialogue_only {
            true => {
                self.hand.lose(Lost::Images, images.len() as u64);
                (texts.clone(), Vec::new(), texts)
            }
            false => (texts, images, content.into_iter().filter(|p| !p.is_blank()).collect()),
        };
        if texts.is_empty() && images.is_empty() {
            return Ok(());
        }
        self.hand.messages += 1;
        self.hand.conversation |= !harness && role != Role::System;
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
            self.open("event_msg", None)?;
            self.body.put(b"{\"type\":\"agent_message\",\"message\":\"")?;
            self.body.joined(texts)?;
            self.body.put(b"\"}")?;
            self.close()?;
        }
        if let Some(turn) = &mut self.turn {
            turn.answered = true;
            if !texts.is_empty() {
                let length: usize = texts.iter().map(|t| t.body().len() + 2).sum();
                turn.last_message = (length <= LAST_MESSAGE)
                    .then(|| texts.iter().map(|t| t.body()).collect::<Vec<_>>().join(&b"\\n"[..]));
            }
        }
        self.hand.lose(Lost::Moved, images.len() as u64);
        self.moved(images)
    }

    /// Images that the API takes from the user alone.
    fn moved(&mut self, images: &[Part<'_>]) -> Result<()> {
        if images.is_empty() { Ok(()) } else { self.say("user", images, None) }
    }

    /// A message of the model's history.
    fn say(&mut self, role: &str, content: &[Part<'_>], relay: Option<&str>) -> Result<()> {
        self.open("response_item", relay.map(str::as_bytes))?;
        self.body.put(b"{\"type\":\"message\",\"role\":\"")?;
        self.body.put(role.as_bytes())?;
        self.body.put(b"\",\"content\":")?;
        self.content(if role == "assistant" { "output_text" } else { "input_text" }, content)?;
        self.body.put(b"}")?;
        self.close()
    }

    fn content(&mut self, kind: &str, content: &[Part<'_>]) -> Result<()> {
        self.body.put(b"[")?;
        for (n, part) in content.iter().enumerate() {
            if n > 0 {
                self.body.put(b",")?;
            }
            if let Part::Image(image) = part {
                self.hand.tokens += IMAGE;
                let [a, b, c, d] = image.url();
                let head = b"{\"type\":\"input_image\",\"image_url\":\"";
                self.body.image(image, &[head, a, b, c, d, b"\"}"])?;
            } else {
                self.body.put(b"{\"type\":\"")?;
                self.body.put(kind.as_bytes())?;
                self.body.put(b"\",\"text\":\"")?;
                let text = part.body();
                self.hand.tokens += size(&text);
                self.body.put(&text)?;
                self.body.put(b"\"}")?;
            }
        }
        self.body.put(b"]")
    }

    /// The event that shows a prompt in the transcript and, the first one, in the picker.
    fn prompted(&mut self, texts: &[Part<'_>], images: usize) -> Result<()> {
        self.open("event_msg", None)?;
        self.body.put(b"{\"type\":\"user_message\",\"message\":\"")?;
        if texts.is_empty() && images > 0 {
            // an empty preview hides the session
            self.body.put(b"[image]")?;
        }
        self.body.joined(texts)?;
        // the images are in the history; a second copy here would only swell the file
        self.body.put(b"\",\"images\":[],\"local_images\":[],\"text_elements\":[]}")?;
        self.close()
    }

    fn open_turn(&mut self) -> Result<()> {
        if self.turn.is_some() {
            return Ok(());
        }
        let id = self.hand.world.uuid_v7().to_string();
        self.open("event_msg", None)?;
        self.body.put(b"{\"type\":\"task_started\",\"turn_id\":\"")?;
        self.body.put(id.as_bytes())?;
        self.body.put(b"\",\"model_context_window\":null}")?;
        self.close()?;
        self.turn = Some(Turn { id, answered: false, last_message: None });
        Ok(())
    }

    fn close_turn(&mut self) -> Result<()> {
        let Some(turn) = self.turn.take() else { return Ok(()) };
        let mut usage = Vec::new();
        usage.extend_from_slice(b"{\"input_tokens\":");
        number(&mut usage, self.hand.tokens);
        usage.extend_from_slice(
            b",\"cached_input_tokens\":0,\"output_tokens\":0,\"reasoning_output_tokens\":0,\"total_tokens\":",
        );
        number(&mut usage, self.hand.tokens);
        usage.push(b'}');
        self.open("event_msg", None)?;
        self.body.put(b"{\"type\":\"token_count\",\"info\":{\"total_token_usage\":")?;
        self.body.put(&usage)?;
        self.body.put(b",\"last_token_usage\":")?;
        self.body.put(&usage)?;
        self.body.put(b",\"model_context_window\":null},\"rate_limits\":null}")?;
        self.close()?;
        self.open("event_msg", None)?;
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
        self.close()
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
            let made = Part::made(&String::from_utf8_lossy(&text));
            return self.answer(&[made], &[]);
        }
        self.open_turn()?;
        if let Some(turn) = &mut self.turn {
            turn.answered = true;
        }
        let kind = metadata.and_then(|m| m.get("kind")?.text());
        let custom = kind.is_some_and(|k| k == "custom").then(|| input.text()).flatten();
        let source = self.hand.begun.as_ref().map_or("", |b| &b.session.source_agent);
        let twin = match self.hand.options.keep_tool_names || source == "codex" {
            true => None,
            false => counterpart(source, "codex", &name, input),
        };
        let written_id = call_id(&id, CALL_ID);
        let written_name = twin.as_ref().map_or_else(|| tool_name(&name), |t| t.name.to_owned());
        let renamed_id = *written_id != *id;
        if renamed_id {
            self.hand.problems.add(
                problem::RENAMED_ID,
                head.line,
                format!("tool call id {id} is now {written_id}"),
            );
        }
        if twin.is_none() && written_name != *name {
            self.hand.problems.add(
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
        if twin.is_none() && custom.is_none() && input.text().is_some() {
            relay.extend_from_slice(if relay.is_empty() { b"" } else { b"," });
            relay.extend_from_slice(b"\"wrapped\":true");
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
        self.hand.tokens += size(&arguments) + size(written_name.as_bytes());
        if !relay.is_empty() {
            relay.insert(0, b'{');
            relay.push(b'}');
        }
        self.open("response_item", (!relay.is_empty()).then_some(relay.as_slice()))?;
        let (kind, field) = match custom {
            Some(_) => ("custom_tool_call", "input"),
            None => ("function_call", "arguments"),
        };
        self.body
            .put(format!("{{\"type\":\"{kind}\",\"name\":\"{written_name}\",\"{field}\":\"").as_bytes())?;
        self.body.put(&arguments)?;
        self.body.put(format!("\",\"call_id\":\"{written_id}\"}}").as_bytes())?;
        self.close()?;
        if custom.is_some() {
            self.custom.insert(written_id);
        }
        Ok(())
    }

    fn result(&mut self, head: &Head<'_>, value: Value<'_>) -> Result<()> {
        let Some(id) = head.tool_call_id else {
            return Err(Error::shape("a tool_result message needs `tool_call_id`"));
        };
        let content = value.get("content").map(|c| parts(c, TAKES)).unwrap_or_default();
        self.hand.lose_of(&content);
        self.hand.messages += 1;
        self.hand.conversation = true;
        if value.get("metadata").and_then(|m| m.get("server")?.bool()) == Some(true) {
            let (texts, images): (Vec<_>, Vec<_>) =
                content.into_iter().partition(|p| !matches!(p, Part::Image(_)));
            return self.answer(&texts, &images);
        }
        self.open_turn()?;
        let id = call_id(&id.decode(), CALL_ID);
        let kind = if self.custom.remove(&id) { "custom_tool_call_output" } else { "function_call_output" };
        // the client itself keeps no word for how a call ended
        let status = head.status.filter(|s| *s != Status::Unknown).map(|s| format!("{{\"status\":\"{s}\"}}"));
        self.open("response_item", status.as_deref().map(str::as_bytes))?;
        self.body.put(format!("{{\"type\":\"{kind}\",\"call_id\":\"{id}\",\"output\":").as_bytes())?;
        if content.iter().any(|p| matches!(p, Part::Image(_))) {
            self.content("input_text", &content)?;
        } else {
            self.body.put(b"\"")?;
            self.hand.tokens += content.iter().map(|p| size(&p.body())).sum::<u64>();
            self.body.joined(&content)?;
            self.body.put(b"\"")?;
        }
        self.body.put(b"}")?;
        self.close()
    }

    /// The first lines of the file: who it is, and the note.
    fn head(&mut self, begun: &Begun) -> Result<Vec<u8>> {
        let time = rfc3339(begun.now);
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
                relay: self.hand.provenance(begun),
            },
        };
        let mut out = serde_json::to_vec(&meta).map_err(|e| Error::failed(e.to_string()))?;
        out.push(b'\n');
        let texts = self.hand.opening(begun);
        if texts.is_empty() {
            return Ok(out);
        }
        let kinds: Vec<String> = texts.iter().map(|(kind, _)| format!("\"{kind}\"")).collect();
        out.extend_from_slice(b"{\"timestamp\":\"");
        out.extend_from_slice(time.as_bytes());
        out.extend_from_slice(b"\",\"type\":\"response_item\",\"relay\":{\"parts\":[");
        out.extend_from_slice(kinds.join(",").as_bytes());
        out.extend_from_slice(b"]},\"payload\":{\"type\":\"message\",\"role\":\"user\",\"content\":[");
        for (n, (_, text)) in texts.iter().enumerate() {
            self.hand.tokens += size(text);
            out.extend_from_slice(if n == 0 { b"" } else { b"," });
            out.extend_from_slice(b"{\"type\":\"input_text\",\"text\":\"");
            out.extend_from_slice(text);
            out.extend_from_slice(b"\"}");
        }
        out.extend_from_slice(b"]}}\n");
        Ok(out)
    }

    /// Begins a line up to its payload; `relay` is an object that the client ignores.
    fn open(&mut self, kind: &str, relay: Option<&[u8]>) -> Result<()> {
        self.body.put(b"{\"timestamp\":\"")?;
        self.body.put(&self.time)?;
        self.body.put(b"\",\"type\":\"")?;
        self.body.put(kind.as_bytes())?;
        if let Some(relay) = relay {
            self.body.put(b"\",\"relay\":")?;
            self.body.put(relay)?;
            self.body.put(b",\"payload\":")
        } else {
            self.body.put(b"\",\"payload\":")
        }
    }

    fn close(&mut self) -> Result<()> {
        self.body.put(b"}\n")
    }

    /// Gives the session its title in the client's index.
    fn list(&self, begun: &Begun) -> Result<()> {
        if !matches!(begun.target, Target::Store(_)) {
            return Ok(());
        }
        let given = note::title_of(self.hand.options, &begun.session);
        let title = shell::one_line(&given.unwrap_or_default());
        if title.trim().is_empty() {
            return Ok(());
        }
        let line = serde_json::json!({
            "id": begun.id, "thread_name": title.trim(), "updated_at": rfc3339(begun.now),
        });
        let index = CODEX.home(self.hand.options, self.hand.world)?.join("session_index.jsonl");
        append_line(&index, line.to_string().as_bytes())
    }
}
