//! What one line of a rollout is, and whether the client can read it.
//!
//! The rules are those of Codex 0.171 (issue 3): an item of a wrong shape is lost to the client, silently.
//! Here it is named, so that it can be kept.

use super::harness;
use crate::json::{self, Kind, Tape, Text, Value};
use crate::record::problem;
use std::borrow::Cow;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;

/// The items of a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    Message,
    /// Words of one agent to another; `inter_agent_communication` lines too.
    AgentMessage,
    Reasoning,
    FunctionCall,
    FunctionOutput,
    CustomCall,
    CustomOutput,
    LocalShell,
    WebSearch,
    ToolSearch,
    ToolSearchOutput,
    ImageGeneration,
    /// A summary that only the vendor can read.
    Compaction,
}

impl What {
    fn of(kind: Text<'_>) -> Option<What> {
        Some(match &*plain(kind) {
            b"message" => What::Message,
            b"agent_message" => What::AgentMessage,
            b"reasoning" => What::Reasoning,
            b"function_call" => What::FunctionCall,
            b"function_call_output" => What::FunctionOutput,
            b"custom_tool_call" => What::CustomCall,
            b"custom_tool_call_output" => What::CustomOutput,
            b"local_shell_call" => What::LocalShell,
            b"web_search_call" => What::WebSearch,
            b"tool_search_call" => What::ToolSearch,
            b"tool_search_output" => What::ToolSearchOutput,
            b"image_generation_call" => What::ImageGeneration,
            b"compaction" | b"compaction_summary" | b"context_compaction" => What::Compaction,
            _ => return None,
        })
    }
}

/// An item, and why the client would lose it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Item<'a> {
    pub(super) payload: Value<'a>,
    pub(super) what: What,
    pub(super) lost: Option<&'static str>,
}

/// A line that resets the model's history.
#[derive(Debug, Clone, Copy)]
pub(super) struct Compacted<'a> {
    pub(super) message: Text<'a>,
    /// The new history as an array; without it the client makes one (rule 11).
    pub(super) replacement: Option<Value<'a>>,
}

/// Where turns begin and end; ids are hashes, `None` where the line names none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mark {
    Started(Option<u64>),
    Ended(Option<u64>),
    Context(Option<u64>),
    Aborted(Option<u64>),
    /// The client's own note of a prompt.
    Prompt,
    /// The last so many turns are taken back.
    RolledBack(u32),
}

/// What a line is.
#[derive(Debug, Clone, Copy)]
pub(super) enum Sort<'a> {
    Item(Item<'a>),
    Compacted(Compacted<'a>),
    Mark(Mark),
    /// A header, of this session or of one that it was forked from.
    Meta(Value<'a>),
    /// State, events and journals: no conversation.
    Known,
    /// A type that no client seen so far writes.
    Unknown(Text<'a>),
    /// An item of the conversation that the client drops by design.
    Ignored,
    /// A conversation line that the client cannot read and that holds nothing to rescue.
    Broken(&'static str),
}

/// A line that is an object.
#[derive(Debug, Clone, Copy)]
pub(super) struct Line<'a> {
    pub(super) timestamp: Option<Text<'a>>,
    /// Type in the envelope.
    pub(super) kind: Option<Text<'a>>,
    /// The envelope's payload; the line itself in the bare format of 2025.
    pub(super) payload: Option<Value<'a>>,
    /// What an earlier relay says of the line.
    pub(super) relay: Option<Value<'a>>,
    pub(super) sort: Sort<'a>,
}

/// The value of a key; the last one where it occurs twice, as for the client.
pub(super) fn field<'a>(value: Value<'a>, key: &str) -> Option<Value<'a>> {
    value.entries().filter(|(k, _)| *k == key).last().map(|(_, v)| v)
}

/// The string of a key.
pub(super) fn text<'a>(value: Value<'a>, key: &str) -> Option<Text<'a>> {
    field(value, key)?.text()
}

/// A hash of an id, never zero.
pub(super) fn id_hash(id: Text<'_>) -> u64 {
    let mut hasher = DefaultHasher::new();
    id.decode().hash(&mut hasher);
    hasher.finish() | 1
}

/// Whether shapes are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Checks {
    Shapes,
    /// The first pass did.
    Nothing,
}

/// The bytes of a short string.
pub(super) fn plain(text: Text<'_>) -> Cow<'_, [u8]> {
    match memchr::memchr(b'\\', text.raw()) {
        None => Cow::Borrowed(text.raw()),
        Some(_) => Cow::Owned(text.decode().into_owned().into_bytes()),
    }
}

/// Sorts a line. `bare` is the format of Codex 0.20 to 0.29: items without envelope.
pub(super) fn sort(value: Value<'_>, bare: bool, checks: Checks) -> Line<'_> {
    let mut line = Line { timestamp: None, kind: None, payload: None, relay: None, sort: Sort::Known };
    for (key, value) in value.entries() {
        match &*plain(key) {
            b"timestamp" => line.timestamp = value.text(),
            b"type" => line.kind = value.text(),
            b"payload" => line.payload = value.is_object().then_some(value),
            b"relay" => line.relay = value.is_object().then_some(value),
            _ => {}
        }
    }
    line.sort = match (line.payload, line.kind) {
        (Some(payload), Some(kind)) => sort_enveloped(payload, kind, line.timestamp.is_some(), checks),
        (Some(_), None) => Sort::Broken("no type"),
        (None, _) => sort_bare(value, bare, checks),
    };
    if bare && line.payload.is_none() {
        line.payload = Some(value);
    }
    line
}

fn sort_enveloped<'a>(payload: Value<'a>, kind: Text<'a>, dated: bool, checks: Checks) -> Sort<'a> {
    match &*plain(kind) {
        b"response_item" => sort_item(payload, dated, checks),
        b"inter_agent_communication" => match field(payload, "content").map(|c| c.kind()) {
            Some(Kind::String | Kind::Array) => Sort::Item(Item {
                payload,
                what: What::AgentMessage,
                lost: (!dated).then_some("no timestamp"),
            }),
            _ => Sort::Broken("no content"),
        },
        b"compacted" if !dated => Sort::Broken("a compaction without timestamp"),
        b"compacted" => sort_compacted(payload, checks),
        b"event_msg" => match sort_event(payload) {
            Some(mark) if dated => Sort::Mark(mark),
            _ => Sort::Known,
        },
        b"turn_context" if dated => Sort::Mark(Mark::Context(turn_id(payload))),
        b"session_meta" => Sort::Meta(payload),
        b"turn_context"
        | b"world_state"
        | b"token_usage_record"
        | b"inter_agent_communication_metadata"
        | b"realtime_item"
        | b"retained_context"
        | b"security_risk_score" => Sort::Known,
        _ => Sort::Unknown(kind),
    }
}

fn sort_bare(value: Value<'_>, bare: bool, checks: Checks) -> Sort<'_> {
    if let Some(kind) = text(value, "type") {
        return match What::of(kind) {
            Some(what) => {
                let lost = if bare { checks.shape(value, what, false).err() } else { Some("no envelope") };
                Sort::Item(Item { payload: value, what, lost })
            }
            None => Sort::Unknown(kind),
        };
    }
    if is_bare_meta(value) {
        return Sort::Meta(value);
    }
    match text(value, "record_type") {
        Some(_) => Sort::Known,
        None => Sort::Broken("no type"),
    }
}

/// Whether a line is the header of the bare format.
pub(super) fn is_bare_meta(value: Value<'_>) -> bool {
    text(value, "id").is_some()
        && text(value, "timestamp").is_some()
        && field(value, "type").is_none()
        && field(value, "payload").is_none()
        && field(value, "instructions").is_some()
}

/// Whether a line is an item or a state line of the bare format.
pub(super) fn is_bare_line(value: Value<'_>) -> bool {
    field(value, "payload").is_none()
        && (text(value, "record_type").is_some() || text(value, "type").and_then(What::of).is_some())
}

fn sort_item(payload: Value<'_>, dated: bool, checks: Checks) -> Sort<'_> {
    let Some(kind) = text(payload, "type") else {
        // older tools leave the type of a message out; it is clear from its keys
        return match field(payload, "role").is_some() && field(payload, "content").is_some() {
            true => Sort::Item(Item { payload, what: What::Message, lost: Some("no type") }),
            false => Sort::Broken("an item without type"),
        };
    };
    match What::of(kind) {
        Some(what) => {
            let lost = if dated { checks.shape(payload, what, false).err() } else { Some("no timestamp") };
            Sort::Item(Item { payload, what, lost })
        }
        None if kind == "ghost_snapshot" || kind == "compaction_trigger" => Sort::Ignored,
        None if kind == "configuration_update" || kind == "additional_tools" => Sort::Ignored,
        None => Sort::Unknown(kind),
    }
}

fn sort_compacted(payload: Value<'_>, checks: Checks) -> Sort<'_> {
    let Some(message) = text(payload, "message") else { return Sort::Broken("a compaction without message") };
    let replacement = match field(payload, "replacement_history") {
        None => None,
        Some(v) if v.is_null() => None,
        Some(v) if v.kind() == Kind::Array => Some(v),
        Some(_) => return Sort::Broken("a compaction whose history is no array"),
    };
    if let Some(items) = replacement {
        for item in items.items() {
            let Some(kind) = text(item, "type") else {
                return Sort::Broken("a compaction with an item without type");
            };
            if What::of(kind).is_some_and(|what| checks.shape(item, what, true).is_err()) {
                return Sort::Broken("a compaction with a malformed item");
            }
        }
    }
    Sort::Compacted(Compacted { message, replacement })
}

/// An item of a replacement history; `None` for those that the client leaves out.
pub(super) fn replaced(item: Value<'_>) -> Option<Item<'_>> {
    let what = What::of(text(item, "type")?)?;
    Some(Item { payload: item, what, lost: None })
}

fn turn_id(payload: Value<'_>) -> Option<u64> {
    text(payload, "turn_id").map(id_hash)
}

fn sort_event(payload: Value<'_>) -> Option<Mark> {
    Some(match &*plain(text(payload, "type")?) {
        b"task_started" | b"turn_started" => Mark::Started(turn_id(payload)),
        b"task_complete" | b"turn_complete" => Mark::Ended(turn_id(payload)),
        b"turn_aborted" => Mark::Aborted(turn_id(payload)),
        b"user_message" => Mark::Prompt,
        b"thread_rolled_back" => Mark::RolledBack(u32::try_from(field(payload, "num_turns")?.u64()?).ok()?),
        _ => return None,
    })
}

impl Checks {
    fn shape(self, payload: Value<'_>, what: What, in_replacement: bool) -> Result<(), &'static str> {
        if self == Checks::Nothing { Ok(()) } else { shape(payload, what, in_replacement) }
    }
}

/// Whether the client reads an item of this shape, else what is wrong with it (rules 6 and 7).
fn shape(payload: Value<'_>, what: What, in_replacement: bool) -> Result<(), &'static str> {
    let string = |key: &str| field(payload, key).is_some_and(|v| v.kind() == Kind::String);
    let string_or_none =
        |key: &str| field(payload, key).is_none_or(|v| matches!(v.kind(), Kind::String | Kind::Null));
    let need = |ok: bool, what: &'static str| if ok { Ok(()) } else { Err(what) };
    need(string_or_none("id"), "an id that is no string")?;
    match what {
        What::Message => {
            need(string("role"), "a message without role")?;
            need(field(payload, "content").is_some_and(content_is_sound), "content of a wrong shape")?;
            let phase = field(payload, "phase");
            need(
                phase.is_none_or(|p| {
                    p.is_null()
                        || p.text().is_some_and(|t| {
                            ["commentary", "partial_answer", "final_answer"].iter().any(|w| t == *w)
                        })
                }),
                "an unknown phase",
            )?;
            let system = text(payload, "role").is_some_and(|r| r == "system");
            need(in_replacement || !system, "a message of role system")
        }
        What::FunctionCall => {
            need(string("name") && string("call_id"), "a call without name or id")?;
            need(string("arguments"), "arguments that are no string")?;
            need(string_or_none("status"), "a status that is no string")
        }
        What::CustomCall => {
            need(string("name") && string("call_id"), "a call without name or id")?;
            need(string("input"), "an input that is no string")?;
            need(string_or_none("status"), "a status that is no string")
        }
        What::FunctionOutput | What::CustomOutput => {
            need(string("call_id"), "an output without id")?;
            let output = field(payload, "output");
            need(
                output.is_some_and(|o| o.kind() == Kind::String || content_is_sound(o)),
                "output of a wrong shape",
            )
        }
        What::LocalShell => {
            need(field(payload, "action").is_some_and(|a| a.is_object()), "a shell call without action")?;
            need(string("status"), "a shell call without status")
        }
        What::Reasoning => {
            let summary = field(payload, "summary");
            need(summary.is_some_and(|s| s.kind() == Kind::Array), "reasoning without summary")
        }
        What::AgentMessage => need(
            field(payload, "content").is_some_and(|c| c.kind() == Kind::Array),
            "content of a wrong shape",
        ),
        What::WebSearch
        | What::ToolSearch
        | What::ToolSearchOutput
        | What::ImageGeneration
        | What::Compaction => Ok(()),
    }
}

fn content_is_sound(content: Value<'_>) -> bool {
    content.kind() == Kind::Array && content.items().all(part_is_sound)
}

fn part_is_sound(part: Value<'_>) -> bool {
    let Some(kind) = text(part, "type") else { return false };
    match &*plain(kind) {
        b"input_text" | b"output_text" => text(part, "text").is_some(),
        b"input_image" => {
            let detail = field(part, "detail");
            text(part, "image_url").is_some()
                && detail.is_none_or(|d| {
                    d.is_null()
                        || d.text()
                            .is_some_and(|t| ["auto", "low", "high", "original"].iter().any(|w| t == *w))
                })
        }
        b"input_audio" | b"encrypted_content" => true,
        _ => false,
    }
}

/// What a message is to rollbacks and compactions (rules 9 and 14a).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    /// A prompt: a rollback counts it.
    Boundary,
    /// The client's own text.
    Contextual,
    /// Neither.
    Plain,
}

/// The standing of an item.
pub(super) fn standing(item: &Item<'_>) -> Standing {
    if item.what == What::AgentMessage {
        return Standing::Boundary;
    }
    if item.what != What::Message {
        return Standing::Plain;
    }
    let role = text(item.payload, "role");
    let content = field(item.payload, "content");
    let inputs = || {
        content
            .into_iter()
            .flat_map(|c| c.items())
            .filter(|p| text(*p, "type").is_some_and(|t| t == "input_text"))
    };
    let texts = || inputs().filter_map(|p| text(p, "text"));
    match role {
        Some(r) if r == "user" => {
            if texts().any(harness::is_contextual) {
                return Standing::Contextual;
            }
            let mut all = content.into_iter().flat_map(|c| c.items()).filter_map(|p| text(p, "text"));
            match all.next() {
                Some(first) if harness::is_summary(first) => Standing::Plain,
                _ => Standing::Boundary,
            }
        }
        Some(r) if r == "developer" && texts().any(harness::is_developer_context) => Standing::Contextual,
        _ => Standing::Plain,
    }
}

/// The standing of a text that stands as a user message of its own.
pub(super) fn standing_of_text(parts: &[&str]) -> Standing {
    if parts.iter().any(|t| harness::is_contextual_text(t)) {
        return Standing::Contextual;
    }
    match parts.first() {
        Some(first) if first.starts_with(harness::SUMMARY_PREFIX) => Standing::Plain,
        _ => Standing::Boundary,
    }
}

/// Whether a line's value would not survive a stage that parses it: a key twice in one object, or a number
/// that a double cannot hold. (Lone surrogates are the tape's to tell.)
pub(super) fn is_fragile(value: Value<'_>) -> bool {
    // a stack of its own: lines may nest deeper than the thread's stack allows
    let mut open = vec![value];
    while let Some(value) = open.pop() {
        match value.kind() {
            Kind::Object => {
                if value.duplicate_key().is_some() {
                    return true;
                }
                open.extend(value.entries().map(|(_, v)| v).filter(holds_more));
            }
            Kind::Array => open.extend(value.items().filter(holds_more)),
            Kind::Number => {
                let raw = std::str::from_utf8(value.raw()).unwrap_or_default();
                let whole = !raw.contains(['.', 'e', 'E']);
                let finite = raw.parse::<f64>().is_ok_and(f64::is_finite);
                if !finite || (whole && raw.parse::<i64>().is_err() && raw.parse::<u64>().is_err()) {
                    return true;
                }
            }
            _ => {}
        }
    }
    false
}

fn holds_more(value: &Value<'_>) -> bool {
    match value.kind() {
        Kind::Object | Kind::Array => true,
        Kind::Number => value.raw().len() > 15,
        _ => false,
    }
}

/// How many places of a damaged line are tried.
const TRIES: usize = 64;

/// The records that a damaged line still holds: whole objects glued together, or one behind a cut one or
/// behind a run of NUL bytes. Empty when there is nothing to save.
pub(super) fn fragments(line: &[u8], tape: &mut Tape, bare: bool) -> Vec<Range<usize>> {
    let mut found: Vec<Range<usize>> = Vec::new();
    let mut tries = 0;
    let mut at = 0;
    while let Some(open) = line.get(at..).and_then(|rest| memchr::memchr(b'{', rest)).map(|n| n + at) {
        let rest = line.get(open..).unwrap_or_default();
        // objects inside a cut record must not pass for records: only an envelope begins like this
        let glued = found.last().is_some_and(|last| last.end == open);
        if tries < TRIES && (tries == 0 || glued || rest.starts_with(b"{\"timestamp\":")) {
            tries += 1;
            if let Ok((value, end)) = tape.parse_prefix(rest)
                && (field(value, "payload").is_some() || bare)
            {
                found.push(open..open + end);
                at = open + end;
                continue;
            }
        }
        at = open + 1;
    }
    found
}

/// What is wrong with a line that is not blank, as a kind of problem; `None` for a sound one.
pub(super) fn damage(line: &[u8], scanned: Result<Value<'_>, json::Error>) -> Option<&'static str> {
    match scanned {
        Ok(value) if value.is_object() && !value.has_lone_surrogate() => None,
        Ok(value) if value.is_object() => Some(problem::SURROGATE),
        Ok(_) => Some(problem::UNKNOWN_TYPE),
        Err(json::Error::Utf8(_)) => Some(problem::UTF8),
        Err(json::Error::Trailing(_)) => Some(problem::GLUED),
        Err(_) if line.contains(&0) => Some(problem::NUL),
        Err(_) => Some(problem::BAD_LINE),
    }
}

/// A damaged line, repaired or in pieces.
#[derive(Debug)]
pub(super) struct Repaired<'a> {
    pub(super) bytes: Cow<'a, [u8]>,
    /// Where the records stand in `bytes`; none when the line holds nothing readable.
    pub(super) records: Vec<Range<usize>>,
}

/// Saves what a damaged line holds. The client gives such lines up (rules 1 and 5).
pub(super) fn repair<'a>(line: &'a [u8], damage: &str, tape: &mut Tape, bare: bool) -> Repaired<'a> {
    let mut repaired = Repaired { bytes: Cow::Borrowed(line), records: Vec::new() };
    if damage == problem::UNKNOWN_TYPE {
        return repaired;
    }
    if damage == problem::UTF8 {
        repaired.bytes = Cow::Owned(String::from_utf8_lossy(line).into_owned().into_bytes());
    }
    let fixed = json::without_lone_surrogates(&repaired.bytes);
    if fixed != *repaired.bytes {
        repaired.bytes = Cow::Owned(fixed);
    }
    repaired.records = match tape.parse(&repaired.bytes).is_ok_and(|v| v.is_object()) {
        true => std::iter::once(0..repaired.bytes.len()).collect(),
        false => fragments(&repaired.bytes, tape, bare),
    };
    repaired
}

/// The item that a line with holes is of.
pub(super) fn sort_skeleton(value: Value<'_>, bare: bool) -> Option<Item<'_>> {
    let payload = if bare { value } else { field(value, "payload")? };
    let what = match text(value, "type")?.decode() {
        kind if !bare && kind == "inter_agent_communication" => What::AgentMessage,
        _ => What::of(text(payload, "type")?)?,
    };
    Some(Item { payload, what, lost: None })
}
