//! The lines that stand for a call or a result that has lost its other half.

use crate::json::{Tape, Value, write_escaped};
use crate::record::{By, Draft, Error, Harness, Head, Record, Result, Role, Status, number, with_fields};
use memchr::memmem;

/// A marked record and what stands for it.
#[derive(Debug)]
pub(super) struct Made {
    /// The original, no longer live.
    pub(super) marked: Vec<u8>,
    /// The record in its place.
    pub(super) twin: Option<Vec<u8>>,
}

pub(super) fn scan<'a>(line: &'a [u8], tape: &'a mut Tape) -> Result<Value<'a>> {
    tape.parse(line).map_err(|e| Error::shape(e.to_string()))
}

/// Whether the source's server ran the call, so that it has no result by design. The line is scanned only
/// when the word occurs in it at all, or could occur in escapes.
pub(super) fn is_server(record: &Record<'_>, tape: &mut Tape) -> Result<bool> {
    let line = record.line();
    // a letter in disguise is \u006… or \u007…; terminal colours are full of other escapes
    let mut escapes = memmem::find_iter(line, b"\\u00");
    let disguised = |at: usize| matches!(line.get(at + 4), Some(b'6' | b'7'));
    if memmem::find(line, b"\"server\"").is_none() && !escapes.any(disguised) {
        return Ok(false);
    }
    let server = record.parse(tape)?.get("metadata").and_then(|m| m.get("server")).and_then(|s| s.bool());
    Ok(server == Some(true))
}

fn mark(line: &[u8], value: Value<'_>) -> Vec<u8> {
    with_fields(line, value, &[("dropped", b"\"orphan\"")])
}

/// The record, marked as no longer live.
pub(super) fn marked(line: &[u8], tape: &mut Tape) -> Result<Vec<u8>> {
    Ok(mark(line, scan(line, tape)?))
}

/// The record under a new id; the source's own is kept.
pub(super) fn renamed(line: &[u8], id: &str, tape: &mut Tape) -> Result<Vec<u8>> {
    let value = scan(line, tape)?;
    let mut new = Vec::new();
    quoted(&mut new, |out| write_escaped(out, id));
    let old = value.get("tool_call_id").map(|v| v.raw()).unwrap_or(b"null");
    let known = value.get("raw_tool_call_id").is_some_and(|v| !v.is_null());
    let fields: [(&str, &[u8]); 2] = [("tool_call_id", &new), ("raw_tool_call_id", old)];
    Ok(with_fields(line, value, if known { fields.get(..1).unwrap_or_default() } else { &fields }))
}

fn quoted(out: &mut Vec<u8>, body: impl FnOnce(&mut Vec<u8>)) {
    out.push(b'"');
    body(out);
    out.push(b'"');
}

/// Escapes JSON so that it can stand in a string.
fn escaped(out: &mut Vec<u8>, json: &[u8]) {
    write_escaped(out, &String::from_utf8_lossy(json));
}

/// Begins a made record that stands for the one with this head.
fn begin(out: &mut Vec<u8>, role: Role, head: &Head<'_>, replaces: bool) {
    let time = head.timestamp.map(|t| t.decode());
    let draft = Draft {
        seq: head.seq,
        turn: head.turn,
        group: head.group.map(|g| g.raw()).filter(|_| role == Role::Assistant),
        timestamp: time.as_deref(),
        synthetic: true,
        // it stands in the user's place, but no human said it
        by: if role == Role::User { By::Harness(Harness::Notice) } else { By::Conversation },
        ..Draft::new(role)
    };
    draft.begin(out);
    if let Some(seq) = head.seq.filter(|_| replaces) {
        out.extend_from_slice(b",\"replaces\":");
        number(out, seq);
    }
}

/// A call without result as text of the model: its name and its whole input.
pub(super) fn call_as_text(line: &[u8], tape: &mut Tape) -> Result<Vec<u8>> {
    let value = scan(line, tape)?;
    let head = Head::scanned(value)?;
    let mut twin = Vec::with_capacity(line.len() + 256);
    begin(&mut twin, Role::Assistant, &head, true);
    twin.extend_from_slice(b",\"content\":");
    quoted(&mut twin, |out| {
        out.extend_from_slice(b"[tool call without result: ");
        out.extend_from_slice(head.tool_name.map(|t| t.raw()).unwrap_or_default());
        out.push(b' ');
        if let Some(input) = value.get("input") {
            match input.text() {
                Some(text) => out.extend_from_slice(text.raw()),
                None => escaped(out, input.raw()),
            }
        }
        out.push(b']');
    });
    twin.push(b'}');
    Ok(twin)
}

/// A result without call as text in the user's place: what it was and its whole content, images as they are.
pub(super) fn result_as_text(line: &[u8], tape: &mut Tape) -> Result<Made> {
    let value = scan(line, tape)?;
    let head = Head::scanned(value)?;
    let says = |out: &mut Vec<u8>| {
        out.extend_from_slice(b"[tool result without call:");
        for word in [head.tool_name, head.tool_call_id].into_iter().flatten().filter(|t| !t.is_empty()) {
            out.push(b' ');
            out.extend_from_slice(word.raw());
        }
        if head.status == Some(Status::Error) {
            out.extend_from_slice(b", failed");
        }
        out.push(b']');
    };
    let mut twin = Vec::with_capacity(line.len() + 256);
    begin(&mut twin, Role::User, &head, true);
    twin.extend_from_slice(b",\"content\":");
    let content = value.get("content");
    if let Some(blocks) = content.filter(|c| c.raw().first() == Some(&b'[')) {
        twin.extend_from_slice(b"[{\"type\":\"text\",\"text\":");
        quoted(&mut twin, says);
        twin.push(b'}');
        for block in blocks.items() {
            twin.push(b',');
            twin.extend_from_slice(block.raw());
        }
        twin.push(b']');
    } else {
        quoted(&mut twin, |out| {
            says(out);
            let Some(content) = content.filter(|c| !c.is_null()) else { return };
            out.extend_from_slice(b"\\n");
            match content.text() {
                Some(text) => out.extend_from_slice(text.raw()),
                None => escaped(out, content.raw()),
            }
        });
    }
    twin.push(b'}');
    Ok(Made { marked: mark(line, value), twin: Some(twin) })
}

/// A made call for a result that has none, under the id that the result will have.
pub(super) fn call_for(result: &Record<'_>, id: &str) -> Vec<u8> {
    let head = result.head();
    let mut body = Vec::new();
    write_escaped(&mut body, id);
    let time = head.timestamp.map(|t| t.decode());
    let draft = Draft {
        seq: head.seq,
        turn: head.turn,
        tool_call_id: Some(&body),
        tool_name: Some(head.tool_name.map(|t| t.raw()).filter(|t| !t.is_empty()).unwrap_or(b"unknown")),
        timestamp: time.as_deref(),
        synthetic: true,
        ..Draft::new(Role::ToolCall)
    };
    let mut out = Vec::with_capacity(256);
    draft.begin(&mut out);
    out.extend_from_slice(b",\"input\":{}}");
    out
}

/// A made result for a call that has none; `seq` is that of the record behind it, else the call's own.
pub(super) fn result_for(
    call: &[u8],
    new_id: Option<&str>,
    seq: Option<u64>,
    tape: &mut Tape,
) -> Result<Vec<u8>> {
    let head = Head::scanned(scan(call, tape)?)?;
    let mut body = Vec::new();
    match new_id {
        Some(id) => write_escaped(&mut body, id),
        None => body.extend_from_slice(head.tool_call_id.map(|t| t.raw()).unwrap_or_default()),
    }
    let time = head.timestamp.map(|t| t.decode());
    let draft = Draft {
        seq: seq.or(head.seq),
        turn: head.turn,
        tool_call_id: Some(&body),
        tool_name: head.tool_name.map(|t| t.raw()),
        status: Some(Status::Error),
        timestamp: time.as_deref(),
        synthetic: true,
        ..Draft::new(Role::ToolResult)
    };
    let mut out = Vec::with_capacity(256);
    draft.begin(&mut out);
    out.extend_from_slice(b",\"content\":\"[no result recorded]\"}");
    Ok(out)
}
