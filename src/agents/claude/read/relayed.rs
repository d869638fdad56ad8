//! Lines that an earlier relay wrote say how they were in their first session, in a `relay` object that the
//! client ignores: `parts`, `role`, `harness` of a text; `tool_name`, `tool_call_id`, `input`, `wrapped`,
//! `kind` of a call; `tool_call_id` and `status` of a result.

use super::emit::Piece;
use crate::agents::claude::write::{CLAUDE, SYSTEM};
use crate::agents::tools::original;
use crate::json::{Text, Value};
use crate::record::{By, Harness, Role, Status};
use std::borrow::Cow;

fn word<'a>(relay: Value<'a>, key: &str) -> Option<Text<'a>> {
    relay.get(key).and_then(|v| v.text())
}

/// Whether a text is the heading that relay put above instructions; `block` is its place in the content.
pub(super) fn is_heading(relay: Value<'_>, text: Text<'_>, block: usize) -> bool {
    block == 0 && text == SYSTEM && word(relay, "role").is_some_and(|role| role == "system")
}

/// Who spoke a text of a user's line, if relay says so; `block` is its place in the content.
pub(super) fn text(relay: Value<'_>, block: usize) -> Option<(Role, By)> {
    match relay.get("parts").and_then(|parts| parts.items().nth(block)?.text()) {
        Some(part) if part == "summary" => return Some((Role::Summary, By::Relay)),
        Some(part) if part == "note" => return Some((Role::User, By::Relay)),
        _ => {}
    }
    if let Some(kind) = word(relay, "harness").and_then(|h| Harness::parse(h.raw())) {
        return Some((Role::User, By::Harness(kind)));
    }
    match word(relay, "role").map(|r| r.decode()).as_deref() {
        Some("summary") if word(relay, "origin").is_some_and(|o| o == "relay") => {
            Some((Role::Summary, By::Relay))
        }
        Some("summary") => Some((Role::Summary, By::Conversation)),
        Some("system") => Some((Role::System, By::Conversation)),
        _ => None,
    }
}

/// Gives a call its first name, id and input again. `written` is the input of the line.
pub(super) fn call<'a>(piece: &mut Piece<'a>, relay: Value<'a>, written: Option<Value<'a>>) {
    if let Some(id) = word(relay, "tool_call_id") {
        piece.tool_call_id = Some(id);
    }
    piece.kind = word(relay, "kind");
    let input = if let Some(input) = relay.get("input") {
        Some(Cow::Borrowed(input.raw()))
    } else if relay.get("wrapped").and_then(|w| w.bool()) == Some(true) {
        written.and_then(|w| w.get("input")).map(|input| Cow::Borrowed(input.raw()))
    } else {
        let now = piece.tool_name.as_deref().map(String::from_utf8_lossy);
        let first = word(relay, "tool_name").map(|n| n.decode());
        match (now, first, written) {
            (Some(now), Some(first), Some(written)) => {
                original(CLAUDE.agent, &now, written, &first).map(Cow::Owned)
            }
            _ => None,
        }
    };
    if let Some(name) = word(relay, "tool_name") {
        piece.tool_name = Some(Cow::Borrowed(name.raw()));
    }
    if let Some(input) = input {
        piece.raw = input;
        // the record no longer holds what the line holds
        piece.holes.clear();
    }
}

/// Whether a result had no content before the API had to be given some.
pub(super) fn was_empty(relay: Value<'_>) -> bool {
    relay.get("empty").and_then(|e| e.bool()) == Some(true)
}

/// Gives a result the id of its call again, and the state that the client has no word for.
pub(super) fn result<'a>(piece: &mut Piece<'a>, relay: Value<'a>) {
    if let Some(id) = word(relay, "tool_call_id") {
        piece.tool_call_id = Some(id);
    }
    if let Some(status) = word(relay, "status").and_then(|s| Status::parse(s.raw())) {
        piece.status = Some(status);
    }
}
