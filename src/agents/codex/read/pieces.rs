//! From an item of a rollout to the records that stand for it.
//!
//! Text stays in the spelling of the line; what a record holds is named as a hole of the line, so that the
//! rest can ride in `extra`.

use super::compact::{compact, escapes_are_shortest, literal, numbers_are_plain};
use super::harness;
use super::line::{self, Item, What, field, text};
use super::vendor;
use crate::agents::speech;
use crate::agents::tools::original;
use crate::json::{Kind, Tape, Text, Value, without_lone_surrogates, write_escaped, write_string};
use crate::record::{By, Harness, Role, Status};
use std::borrow::Cow;
use std::ops::Range;

/// A block of content; texts are bodies of JSON strings.
#[derive(Debug, Clone)]
pub(super) enum Block<'a> {
    Text(Cow<'a, [u8]>),
    Image {
        media_type: &'a [u8],
        data: &'a [u8],
    },
    Url(&'a [u8]),
    /// A block that relay has no word for, as JSON.
    Other(&'a [u8]),
}

/// What a record holds.
#[derive(Debug)]
pub(super) enum Body<'a> {
    Content(Vec<Block<'a>>),
    /// The arguments of a call, as JSON.
    Input(Cow<'a, [u8]>),
}

/// One record to be written.
#[derive(Debug)]
pub(super) struct Piece<'a> {
    pub(super) role: Role,
    pub(super) by: By,
    pub(super) body: Body<'a>,
    pub(super) call_id: Option<Cow<'a, [u8]>>,
    /// The source has no id that a call and its result share: the one here is made of the line, or of an item's.
    pub(super) nameless: bool,
    pub(super) tool_name: Option<Cow<'a, [u8]>>,
    pub(super) status: Option<Status>,
    pub(super) exit_code: Option<i64>,
    /// Members of `metadata`: keys and their JSON.
    pub(super) metadata: Vec<(&'static str, Cow<'a, [u8]>)>,
}

impl<'a> Piece<'a> {
    pub(super) fn new(role: Role, body: Body<'a>) -> Piece<'a> {
        Piece {
            role,
            by: By::Conversation,
            body,
            call_id: None,
            nameless: false,
            tool_name: None,
            status: None,
            exit_code: None,
            metadata: Vec::new(),
        }
    }
}

/// A place of a line whose text a record holds, and what stands there instead.
pub(super) type Hole = (Range<usize>, Cow<'static, [u8]>);

/// The records of an item, and what they hold of its line.
#[derive(Debug, Default)]
pub(super) struct Pieces<'a> {
    pub(super) pieces: Vec<Piece<'a>>,
    pub(super) holes: Vec<Hole>,
    /// Something of it can be read by the vendor alone: words stand in its place.
    pub(super) unreadable: bool,
}

/// How items are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// One record a message, as the client sends it.
    Exact,
    /// As another agent can use it: the words of the human apart from what an app put around them, ciphers named,
    /// pictures shown.
    Shared,
}

const NULL: Cow<'static, [u8]> = Cow::Borrowed(b"null");

/// Where the text of an item stands: the places that become holes, in order. The same places are found in
/// the line and in its skeleton, because only keys and types decide.
pub(super) fn slots(payload: Value<'_>, what: What) -> Vec<Value<'_>> {
    match what {
        What::Message => parts_of(field(payload, "content")),
        What::AgentMessage => match field(payload, "content") {
            // inter_agent_communication has its words as a string; as a hole it reads null
            Some(plain) if matches!(plain.kind(), Kind::String | Kind::Null) => vec![plain],
            content => parts_of(content),
        },
        What::Reasoning => {
            let mut slots = parts_of(field(payload, "summary"));
            slots.extend(parts_of(field(payload, "content")));
            slots
        }
        What::FunctionCall => field(payload, "arguments").into_iter().collect(),
        What::CustomCall => field(payload, "input").into_iter().collect(),
        What::ImageGeneration => field(payload, "result").into_iter().collect(),
        What::FunctionOutput | What::CustomOutput => match field(payload, "output") {
            Some(list) if list.kind() == Kind::Array => parts_of(Some(list)),
            Some(output) => vec![output],
            None => Vec::new(),
        },
        _ => Vec::new(),
    }
}

fn parts_of(list: Option<Value<'_>>) -> Vec<Value<'_>> {
    match list {
        Some(list) if list.kind() == Kind::Array => list.items().map(slot_of_part).collect(),
        _ => Vec::new(),
    }
}

fn slot_of_part(part: Value<'_>) -> Value<'_> {
    let key = match text(part, "type").map(line::plain).as_deref() {
        Some(b"input_text" | b"output_text" | b"summary_text" | b"reasoning_text" | b"text") => "text",
        Some(b"input_image") => "image_url",
        _ => return part,
    };
    field(part, key).unwrap_or(part)
}

/// The block that a slot holds.
fn block_of(slot: Value<'_>, part_is_image: bool) -> Block<'_> {
    match slot.text() {
        Some(text) if part_is_image => image(text),
        Some(text) => Block::Text(Cow::Borrowed(text.raw())),
        None => Block::Other(slot.raw()),
    }
}

fn image(url: Text<'_>) -> Block<'_> {
    let raw = url.raw();
    let split = || {
        let rest = raw.strip_prefix(b"data:")?;
        let semicolon = memchr::memchr2(b';', b',', rest)?;
        let (media_type, rest) = rest.split_at_checked(semicolon)?;
        let data = rest.strip_prefix(b";base64,")?;
        // an escape would be spelled another way when the address is put together again
        memchr::memchr(b'\\', raw).is_none().then_some(Block::Image { media_type, data })
    };
    split().unwrap_or(Block::Url(raw))
}

fn blocks(list: Option<Value<'_>>) -> Vec<Block<'_>> {
    match list {
        Some(list) if list.kind() == Kind::Array => list.items().map(block_of_part).collect(),
        Some(plain) if plain.kind() == Kind::String => vec![block_of(plain, false)],
        _ => Vec::new(),
    }
}

fn block_of_part(part: Value<'_>) -> Block<'_> {
    let is_image = text(part, "type").is_some_and(|t| t == "input_image");
    block_of(slot_of_part(part), is_image)
}

/// The records of an item. `number` is its 1-based line, for calls without any id.
pub(super) fn pieces<'a>(item: &Item<'a>, number: u64, relay: Option<Value<'a>>, form: Form) -> Pieces<'a> {
    let payload = item.payload;
    let mut all = Pieces::default();
    let mut holes: Vec<Hole> = slots(payload, item.what).iter().map(|slot| (slot.span(), NULL)).collect();
    let raw = |key: &str| text(payload, key).map(|t| Cow::Borrowed(t.raw()));
    match item.what {
        What::Message => all.pieces = message(payload, relay),
        What::AgentMessage => {
            let mut piece = Piece::new(Role::User, Body::Content(blocks(field(payload, "content"))));
            // nobody typed it: an agent must not get the rank of the human
            piece.by = By::Harness(Harness::Notice);
            for key in ["author", "recipient"] {
                if let Some(value) = field(payload, key) {
                    piece.metadata.push((key, Cow::Borrowed(value.raw())));
                }
            }
            all.pieces.push(piece);
        }
        What::Reasoning => {
            let mut content = blocks(field(payload, "summary"));
            content.extend(blocks(field(payload, "content")));
            all.pieces.push(Piece::new(Role::Reasoning, Body::Content(content)));
        }
        What::FunctionCall => {
            let arguments = field(payload, "arguments");
            let (input, whole) = match arguments.map(|a| (a, a.text())) {
                Some((_, Some(text))) => arguments_value(text),
                Some((value, None)) => (Cow::Borrowed(value.raw()), true),
                None => (Cow::Borrowed(&b"{}"[..]), true),
            };
            if !whole {
                holes.clear();
            }
            let namespace = raw("namespace");
            let mcp = |name: &Option<Cow<'_, [u8]>>| name.as_ref().is_some_and(|n| n.starts_with(b"mcp__"));
            let kind = if mcp(&namespace) || mcp(&raw("name")) { "mcp" } else { "function" };
            let mut piece = call(raw("call_id"), raw("name"), input, kind);
            if let Some(namespace) = field(payload, "namespace").filter(|n| !n.is_null()) {
                piece.metadata.push(("namespace", Cow::Borrowed(namespace.raw())));
            }
            all.pieces.push(piece);
        }
        What::CustomCall => {
            let input =
                field(payload, "input").map_or(Cow::Borrowed(&b"\"\""[..]), |v| Cow::Borrowed(v.raw()));
            all.pieces.push(call(raw("call_id"), raw("name"), input, "custom"));
        }
        What::LocalShell => {
            let action = field(payload, "action").map_or(Cow::Borrowed(&b"{}"[..]), without_nulls);
            let id = raw("call_id").or_else(|| raw("id"));
            all.pieces.push(call(id, Some(Cow::Borrowed(b"local_shell")), action, "local_shell"));
        }
        What::WebSearch => {
            let action = field(payload, "action").filter(Value::is_object);
            let input = action.map_or(Cow::Borrowed(&b"{}"[..]), without_nulls);
            let id = raw("id").or_else(|| raw("call_id"));
            all.pieces.push(server(call(id, Some(Cow::Borrowed(b"web_search")), input, "web_search")));
        }
        What::ToolSearch => {
            let arguments = field(payload, "arguments").filter(|a| !a.is_null());
            let input = arguments.map_or(Cow::Borrowed(&b"{}"[..]), |a| Cow::Borrowed(a.raw()));
            let id = raw("call_id").or_else(|| raw("id"));
            let mut piece = call(id, Some(Cow::Borrowed(b"tool_search")), input, "tool_search");
            piece.nameless = raw("call_id").is_none();
            all.pieces.push(piece);
        }
        What::ImageGeneration => {
            let prompt = field(payload, "revised_prompt").filter(|p| p.kind() == Kind::String);
            let mut members = Vec::new();
            if let Some(prompt) = prompt {
                members.push([b"\"revised_prompt\":", prompt.raw()].concat());
            }
            // a call is all that the client sends of it
            let shown = vendor::picture(payload).filter(|_| form == Form::Shared);
            let result = text(payload, "result").map_or(0, |r| r.raw().len());
            if shown.is_none() && result > 0 {
                let bytes = result / 4 * 3;
                members.push(
                    format!("\"result\":\"[picture of {bytes} bytes: not carried over]\"").into_bytes(),
                );
            }
            let input = [b"{", members.join(&b","[..]).as_slice(), b"}"].concat();
            let name = Some(Cow::Borrowed(&b"image_generation"[..]));
            all.pieces.push(server(call(raw("id"), name, Cow::Owned(input), "image_generation")));
            match shown {
                None => holes.clear(),
                Some(data) => {
                    let picture = Block::Image { media_type: vendor::media_type(data), data };
                    let mut piece = Piece::new(Role::Assistant, Body::Content(vec![picture]));
                    piece.metadata = kind_of("image_generation");
                    all.pieces.push(piece);
                }
            }
        }
        What::FunctionOutput | What::CustomOutput => {
            let kind = if item.what == What::CustomOutput { "custom" } else { "function" };
            all.pieces.push(output(payload, kind, &mut holes));
        }
        What::ToolSearchOutput => {
            // the tools that were found, as the JSON that they are
            let found = field(payload, "tools").map_or(Cow::Borrowed(&b"[]"[..]), as_text);
            let mut piece = Piece::new(Role::ToolResult, Body::Content(vec![Block::Text(found)]));
            piece.call_id = raw("call_id");
            piece.nameless = piece.call_id.is_none();
            piece.status = Some(Status::Unknown);
            piece.metadata = kind_of("tool_search");
            all.pieces.push(piece);
        }
        What::Compaction => {
            all.pieces.push(Piece::new(Role::Summary, Body::Content(vec![Block::Other(payload.raw())])));
        }
    }
    let shared = form == Form::Shared;
    let parted = shared && item.what == What::Message && split(&mut all.pieces);
    // the exact view keeps arguments, which are compared with what the client sends
    all.unreadable = (shared || item.what == What::AgentMessage) && named(&mut all.pieces, payload);
    let headed = shared && item.what == What::AgentMessage && head(&mut all.pieces, payload);
    if all.unreadable || parted || headed {
        // the records no longer hold the places of the line one by one
        holes.clear();
    }
    if let Some(relay) = relay {
        of_relay(&mut all.pieces, &mut holes, relay);
    }
    for piece in &mut all.pieces {
        if matches!(piece.role, Role::ToolCall | Role::ToolResult) && piece.call_id.is_none() {
            piece.call_id = Some(Cow::Owned(format!("line_{number}").into_bytes()));
        }
        if piece.role == Role::ToolCall && piece.tool_name.is_none() {
            piece.tool_name = Some(Cow::Borrowed(b"unknown"));
        }
    }
    all.holes = holes;
    all
}

/// Puts words in the place of what only the vendor can read; whether there was any.
fn named(pieces: &mut [Piece<'_>], payload: Value<'_>) -> bool {
    let mut found = false;
    for piece in pieces.iter_mut().filter(|p| p.role != Role::Reasoning && p.role != Role::Summary) {
        match &mut piece.body {
            Body::Content(blocks) => {
                for block in blocks {
                    let hidden = match block {
                        Block::Other(json) => Tape::new().parse(json).is_ok_and(vendor::is_encrypted),
                        Block::Text(text) => vendor::is_cipher(text) && piece.by != By::Conversation,
                        _ => false,
                    };
                    if hidden {
                        *block = Block::Text(Cow::Borrowed(vendor::ENCRYPTED.as_bytes()));
                        found = true;
                    }
                }
            }
            Body::Input(input) => {
                if memchr::memmem::find(input, b"gAAAAA").is_none() || field(payload, "arguments").is_none() {
                    continue;
                }
                let mut tape = Tape::new();
                let readable = tape.parse(input).ok().and_then(vendor::readable);
                if let Some(readable) = readable {
                    *input = Cow::Owned(readable);
                    found = true;
                }
            }
        }
    }
    found
}

/// Parts the words of the human from what clients put around them; whether there was anything.
pub(super) fn split(pieces: &mut Vec<Piece<'_>>) -> bool {
    let own = |p: &Piece<'_>| p.role == Role::User && p.by == By::Conversation;
    let mixed = |p: &Piece<'_>| match &p.body {
        Body::Content(blocks) if own(p) => {
            blocks.iter().any(|b| matches!(b, Block::Text(t) if speech::may_be_mixed(t)))
        }
        _ => false,
    };
    if !pieces.iter().any(mixed) {
        return false;
    }
    let mut parted = Vec::new();
    let mut changed = false;
    for piece in std::mem::take(pieces) {
        if !mixed(&piece) {
            parted.push(piece);
            continue;
        }
        let Piece { role, body: Body::Content(blocks), metadata, .. } = piece else { continue };
        let mut of_piece = Vec::new();
        for block in blocks {
            let words = match &block {
                Block::Text(text) if speech::may_be_mixed(text) => decoded(text),
                _ => None,
            };
            let by = |kind: Option<Harness>| kind.map_or(By::Conversation, By::Harness);
            let said = words.as_deref().map(speech::said).unwrap_or_default();
            match said.as_slice() {
                [] => push_block(&mut of_piece, role, By::Conversation, block),
                [only] if matches!(only.text, Cow::Borrowed(_)) => {
                    push_block(&mut of_piece, role, by(only.by), block);
                }
                several => {
                    changed = true;
                    for said in several {
                        let mut body = Vec::new();
                        write_escaped(&mut body, &said.text);
                        push_block(&mut of_piece, role, by(said.by), Block::Text(Cow::Owned(body)));
                    }
                }
            }
        }
        for piece in &mut of_piece {
            piece.metadata.clone_from(&metadata);
        }
        parted.append(&mut of_piece);
    }
    *pieces = parted;
    changed
}

/// The text that an escaped body spells.
fn decoded(body: &[u8]) -> Option<String> {
    let quoted = [b"\"", body, b"\""].concat();
    let mut tape = Tape::new();
    Some(tape.parse(&quoted).ok()?.text()?.decode().into_owned())
}

/// Has a message between agents say who wrote it; whether it had to be added.
fn head(pieces: &mut [Piece<'_>], payload: Value<'_>) -> bool {
    let Some(Piece { body: Body::Content(blocks), .. }) = pieces.first_mut() else { return false };
    let words: Vec<Cow<'_, [u8]>> = blocks
        .iter()
        .filter_map(|b| match b {
            Block::Text(text) => Some(text.clone()),
            _ => None,
        })
        .collect();
    let Some(heading) = vendor::heading(payload, &words) else { return false };
    blocks.insert(0, Block::Text(Cow::Owned(heading)));
    true
}

/// A line that an earlier relay wrote says how it was in its first session: `{"note":true}`, or
/// `{"parts":["note","summary"]}` for the parts of a message, `harness` or `role` for a whole one; `tool_name`, `tool_call_id` and `input` of a
/// call; `status` of a result.
fn of_relay<'a>(pieces: &mut [Piece<'a>], holes: &mut Vec<Hole>, relay: Value<'a>) {
    let note = field(relay, "note").and_then(|n| n.bool()) == Some(true);
    let raw = |key: &str| text(relay, key).map(|t| Cow::Borrowed(t.raw()));
    for piece in pieces {
        if note {
            piece.by = By::Relay;
        }
        if let Some(kind) = text(relay, "harness").and_then(|k| Harness::parse(k.raw())) {
            piece.by = By::Harness(kind);
        }
        if piece.role == Role::User && text(relay, "role").is_some_and(|r| r == "summary") {
            piece.role = Role::Summary;
        }
        if matches!(piece.role, Role::ToolCall | Role::ToolResult)
            && let Some(id) = raw("tool_call_id")
        {
            piece.call_id = Some(id);
        }
        if piece.role == Role::ToolResult
            && let Some(status) = text(relay, "status").and_then(|s| Status::parse(s.raw()))
        {
            piece.status = Some(status);
        }
        if piece.role == Role::ToolCall {
            let now = piece.tool_name.take();
            piece.tool_name = raw("tool_name").or_else(|| now.clone());
            let wrapped = field(relay, "wrapped").and_then(|w| w.bool()) == Some(true);
            let input = match (field(relay, "input"), &piece.body, now, text(relay, "tool_name")) {
                (Some(input), ..) => Some(Cow::Borrowed(input.raw())),
                (None, Body::Input(written), ..) if wrapped => {
                    let mut tape = Tape::new();
                    let written = tape.parse(written).ok();
                    written.and_then(|w| Some(Cow::Owned(w.get("input")?.raw().to_vec())))
                }
                (None, Body::Input(written), Some(now), Some(first)) => {
                    let mut tape = Tape::new();
                    let written = tape.parse(written).ok();
                    let now = String::from_utf8_lossy(&now);
                    written.and_then(|w| original("codex", &now, w, &first.decode())).map(Cow::Owned)
                }
                _ => None,
            };
            if let Some(input) = input {
                piece.body = Body::Input(input);
                // the record no longer holds the arguments of the line
                holes.clear();
            }
        }
    }
}

fn kind_of(kind: &str) -> Vec<(&'static str, Cow<'static, [u8]>)> {
    vec![("kind", Cow::Owned(literal(kind).into_bytes()))]
}

fn call<'a>(
    id: Option<Cow<'a, [u8]>>,
    name: Option<Cow<'a, [u8]>>,
    input: Cow<'a, [u8]>,
    kind: &str,
) -> Piece<'a> {
    let mut piece = Piece::new(Role::ToolCall, Body::Input(input));
    piece.call_id = id;
    piece.tool_name = name;
    piece.metadata = kind_of(kind);
    piece
}

fn server(mut piece: Piece<'_>) -> Piece<'_> {
    piece.metadata.push(("server", Cow::Borrowed(b"true")));
    piece
}

/// The arguments as a JSON value, and whether the text can be made from the value again.
fn arguments_value(arguments: Text<'_>) -> (Cow<'_, [u8]>, bool) {
    let decoded = arguments.decode();
    let mut tape = Tape::new();
    let value = match tape.parse(decoded.as_bytes()) {
        Ok(value) if matches!(value.kind(), Kind::Object | Kind::Array) => value,
        // free text, also text that happens to be a number or a string
        _ => return (Cow::Owned([b"\"", arguments.raw(), b"\""].concat()), true),
    };
    let fragile = line::is_fragile(value);
    let lone = value.has_lone_surrogate();
    let packed = compact(&decoded);
    let whole = matches!(packed, Cow::Borrowed(_)) && !fragile && !lone && numbers_are_plain(&packed);
    let input =
        if lone { without_lone_surrogates(packed.as_bytes()) } else { packed.into_owned().into_bytes() };
    (Cow::Owned(input), whole)
}

/// An object without its null members, as the client sends it.
fn without_nulls(object: Value<'_>) -> Cow<'_, [u8]> {
    if !object.entries().any(|(_, v)| v.is_null()) {
        return Cow::Borrowed(object.raw());
    }
    let mut out = b"{".to_vec();
    for (key, value) in object.entries().filter(|(_, v)| !v.is_null()) {
        if out.len() > 1 {
            out.push(b',');
        }
        out.push(b'"');
        out.extend_from_slice(key.raw());
        out.extend_from_slice(b"\":");
        out.extend_from_slice(value.raw());
    }
    out.push(b'}');
    Cow::Owned(out)
}

/// A message: one record, or one for each run of parts that are harness text of one kind or none.
fn message<'a>(payload: Value<'a>, relay: Option<Value<'a>>) -> Vec<Piece<'a>> {
    let role_text = text(payload, "role").map(|r| r.decode()).unwrap_or_default();
    let role = match &*role_text {
        "user" => Role::User,
        "assistant" => Role::Assistant,
        _ => Role::System,
    };
    let mut metadata: Vec<(&'static str, Cow<'_, [u8]>)> = Vec::new();
    if role == Role::System && role_text != "developer" {
        metadata.push(("raw_role", Cow::Owned(literal(&role_text).into_bytes())));
    }
    if let Some(phase) = field(payload, "phase").filter(|p| p.kind() == Kind::String) {
        metadata.push(("phase", Cow::Borrowed(phase.raw())));
    }
    let content = field(payload, "content");
    // what an earlier relay knew of the message
    let told = relay.and_then(|r| text(r, "harness")).and_then(|kind| Harness::parse(kind.raw()));
    let summary = relay.and_then(|r| text(r, "role")).is_some_and(|r| r == "summary");
    let role = if summary { Role::Summary } else { role };
    let by = |text: Option<Text<'_>>| match text {
        _ if summary => By::Conversation,
        Some(_) if told.is_some() => told.map_or(By::Conversation, By::Harness),
        Some(text) if role != Role::Assistant => {
            harness::kind(text, role == Role::System).map_or(By::Conversation, By::Harness)
        }
        _ => By::Conversation,
    };
    let mut pieces: Vec<Piece<'_>> = Vec::new();
    let mut kinds = relay.and_then(|r| field(r, "parts")).into_iter().flat_map(|k| k.items());
    match content {
        Some(list) if list.kind() == Kind::Array => {
            for part in list.items() {
                let block = block_of_part(part);
                let text = slot_of_part(part).text().filter(|_| matches!(block, Block::Text(_)));
                let (role, who) = match kinds.next().and_then(|k| k.text()) {
                    Some(kind) if kind == "note" => (role, By::Relay),
                    Some(kind) if kind == "summary" => (Role::Summary, By::Relay),
                    _ => (role, by(text)),
                };
                push_block(&mut pieces, role, who, block);
            }
        }
        Some(plain) if plain.kind() == Kind::String => {
            push_block(&mut pieces, role, by(plain.text()), block_of(plain, false));
        }
        _ => {}
    }
    if pieces.is_empty() {
        pieces.push(Piece::new(role, Body::Content(Vec::new())));
    }
    for piece in &mut pieces {
        piece.metadata.clone_from(&metadata);
    }
    pieces
}

fn push_block<'a>(pieces: &mut Vec<Piece<'a>>, role: Role, by: By, block: Block<'a>) {
    if let Some(Piece { role: last_role, by: last, body: Body::Content(content), .. }) = pieces.last_mut()
        && (*last_role, *last) == (role, by)
    {
        content.push(block);
        return;
    }
    let mut piece = Piece::new(role, Body::Content(vec![block]));
    piece.by = by;
    pieces.push(piece);
}

fn output<'a>(payload: Value<'a>, kind: &str, holes: &mut Vec<Hole>) -> Piece<'a> {
    let output = field(payload, "output");
    let mut outcome = Outcome::default();
    let mut content = Vec::new();
    match output {
        Some(value) if value.kind() == Kind::String => {
            let text = value.text();
            outcome = text.map(outcome_of).unwrap_or_default();
            match text.and_then(unwrapped) {
                Some((inner, shell)) => {
                    *holes = vec![(value.span(), Cow::Owned(shell))];
                    content.push(Block::Text(Cow::Owned(inner)));
                }
                None => content.push(block_of(value, false)),
            }
        }
        Some(value) if value.kind() == Kind::Array => {
            outcome =
                value.items().filter_map(|p| text(p, "text")).map(outcome_of).next().unwrap_or_default();
            content = blocks(output);
        }
        // shapes that the client cannot read: their words are still the result
        Some(value) if value.is_object() => {
            match text(value, "content").or_else(|| text(value, "output")) {
                Some(words) => content.push(Block::Text(Cow::Borrowed(words.raw()))),
                None => content.push(Block::Text(as_text(value))),
            }
            if let Some(success) = field(value, "success").and_then(|s| s.bool()) {
                outcome.status = if success { Status::Ok } else { Status::Error };
            }
        }
        Some(value) if !value.is_null() => content.push(Block::Text(as_text(value))),
        _ => {}
    }
    let mut piece = Piece::new(Role::ToolResult, Body::Content(content));
    piece.call_id = text(payload, "call_id").map(|t| Cow::Borrowed(t.raw()));
    piece.status = Some(outcome.status);
    piece.exit_code = outcome.exit_code;
    piece.metadata = kind_of(kind);
    piece
}

/// A value as the body of a string that holds its JSON.
fn as_text(value: Value<'_>) -> Cow<'_, [u8]> {
    let mut out = Vec::new();
    write_string(&mut out, &String::from_utf8_lossy(value.raw()));
    out.pop();
    if !out.is_empty() {
        out.remove(0);
    }
    Cow::Owned(out)
}

/// How a call ended, as far as the output tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Outcome {
    pub(super) status: Status,
    pub(super) exit_code: Option<i64>,
}

impl Default for Outcome {
    fn default() -> Outcome {
        Outcome { status: Status::Unknown, exit_code: None }
    }
}

impl Outcome {
    pub(super) fn of_code(code: i64) -> Outcome {
        Outcome { status: if code == 0 { Status::Ok } else { Status::Error }, exit_code: Some(code) }
    }
}

/// Texts that stand for a call that did not run or failed, by their first words.
const FAILURES: [&str; 9] = [
    "unsupported call: ",
    "unsupported custom tool call: ",
    "aborted",
    "failed to parse function arguments",
    "execution error: ",
    "exec_command failed",
    "apply_patch verification failed",
    "sandbox error: ",
    "Script failed",
];

/// Outputs have no flag; the shell tools say in words how they ended: `{"output":…,"metadata":{"exit_code":N}}`
/// (0.20 to 0.118), `Exit code: N` (from 0.80), `Process exited with code N` (0.142 and later).
pub(super) fn outcome_of(text: Text<'_>) -> Outcome {
    let number = |s: &str| {
        let digits = s.trim_start();
        let end = digits.find(|c: char| !c.is_ascii_digit() && c != '-').unwrap_or(digits.len());
        digits.get(..end)?.parse::<i64>().ok()
    };
    if text.starts_with("{\"output\":") {
        // the code stands behind the output, which may be long
        let raw = text.raw();
        let tail = raw.get(raw.len().saturating_sub(160)..).unwrap_or_default();
        const KEY: &[u8] = b"\\\"exit_code\\\":";
        let code = memchr::memmem::rfind(tail, KEY)
            .and_then(|at| std::str::from_utf8(tail.get(at + KEY.len()..)?).ok())
            .and_then(number);
        return code.map(Outcome::of_code).unwrap_or_default();
    }
    let head = text.head(320);
    if let Some(rest) = head.strip_prefix("Exit code:") {
        return number(rest).map(Outcome::of_code).unwrap_or_default();
    }
    if head.starts_with("Chunk ID:") || head.starts_with("Wall time:") {
        let head = head.split_once("\nOutput:").map_or(&*head, |(h, _)| h);
        let code = head.split_once("Process exited with code").and_then(|(_, rest)| number(rest));
        return code.map(Outcome::of_code).unwrap_or_default();
    }
    if FAILURES.iter().any(|f| head.starts_with(f)) {
        return Outcome { status: Status::Error, exit_code: None };
    }
    if head.starts_with("Success. Updated the following files:") {
        return Outcome { status: Status::Ok, exit_code: None };
    }
    Outcome::default()
}

/// Start of the wrapper of 2025, as the string that holds it is spelled.
const WRAPPER: &[u8] = b"{\\\"output\\\":\\\"";

/// The output inside its wrapper of 2025, and the string that stands in the line without it. `None` where
/// there is no wrapper, or where it could not be put together again character by character.
fn unwrapped(text: Text<'_>) -> Option<(Vec<u8>, Vec<u8>)> {
    let raw = text.raw().strip_prefix(WRAPPER)?;
    let (inner, end) = inner_string(raw)?;
    let quoted = [b"\"", raw.get(end..)?, b"\""].concat();
    let mut tape = Tape::new();
    let rest = tape.parse(&quoted).ok()?.text()?.decode().into_owned();
    let shell = ["{\"output\":null", &rest].concat();
    let wrapper = tape.parse(shell.as_bytes()).ok()?;
    if wrapper.has_lone_surrogate() || wrapper.duplicate_key().is_some() {
        return None;
    }
    field(wrapper, "metadata").filter(Value::is_object)?;
    Some((inner, literal(&shell).into_bytes()))
}

/// Takes one level of escapes from a string inside a string: the body of the inner one, which is one of a
/// JSON string again, and the index behind its closing quote. `None` where the inner string is spelled in
/// another way than [`literal`] does, or where the outer one escapes what it need not.
fn inner_string(raw: &[u8]) -> Option<(Vec<u8>, usize)> {
    let mut inner = Vec::with_capacity(raw.len());
    let mut at = 0;
    loop {
        let rest = raw.get(at..)?;
        let plain = memchr::memchr(b'\\', rest)?;
        inner.extend_from_slice(rest.get(..plain)?);
        let escape = rest.get(plain..)?;
        match escape.get(1)? {
            b'"' => return Some((inner, at + plain + 2)),
            b'\\' => {}
            _ => return None,
        }
        // an escape of the inner string: two characters, of which the outer one may escape the second
        let (spelled, length): (&[u8], usize) = match escape.get(2..4)? {
            b"\\\\" => (b"\\\\", 4),
            b"\\\"" => (b"\\\"", 4),
            [b'n', _] => (b"\\n", 3),
            [b't', _] => (b"\\t", 3),
            [b'r', _] => (b"\\r", 3),
            [b'b', _] => (b"\\b", 3),
            [b'f', _] => (b"\\f", 3),
            [b'u', _] => (escape.get(1..7)?, 7),
            _ => return None,
        };
        if length == 7 && !escapes_are_shortest(spelled) {
            return None;
        }
        inner.extend_from_slice(spelled);
        at += plain + length;
    }
}
