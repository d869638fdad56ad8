//! What a record costs the target's model.

use crate::record::{Harness, Origin, Role};
use crate::stream::json::{self, Text, Value};
use crate::stream::{Head, Record};
use crate::tokens::{Counter, Family, image};

/// What a document costs, in tokens. Vendors count its pages, which nobody here looks at.
const DOCUMENT: u64 = 1_500;

/// Texts longer than this, in bytes as they are escaped, may be shortened.
const LONG: usize = 100;

/// Whether a live record is written to no agent, so that it costs nothing and is never touched: the source's
/// own environment, and the note of an earlier relay (FORMAT.md, *Harness text*).
pub(super) fn is_unwritten(head: &Head<'_>) -> bool {
    match head.origin {
        Some(Origin::Harness) => matches!(head.harness, Some(Harness::Environment) | None),
        Some(Origin::Relay) => head.role == Some(Role::User) && !head.synthetic,
        None => false,
    }
}

/// Tokens of a whole record, its frame and its text.
pub(super) fn whole(role: Role, value: Value<'_>, counter: &dyn Counter, family: Family) -> u64 {
    let frame = family.overhead();
    match role {
        Role::Reasoning => 0,
        Role::ToolCall => {
            let name = value.get("tool_name").and_then(|n| n.text()).unwrap_or(Text::empty());
            let input = value.get("input").map_or(0, |input| match input.text() {
                Some(text) => counter.count_escaped(text.raw()),
                None => counter.count(&String::from_utf8_lossy(input.raw())),
            });
            frame.tool_call + family.tokens(counter.count_escaped(name.raw()).saturating_add(input))
        }
        Role::ToolResult => frame.tool_result.saturating_add(content(value, counter, family)),
        Role::User | Role::Assistant | Role::System | Role::Summary => {
            frame.message.saturating_add(content(value, counter, family))
        }
    }
}

fn content(value: Value<'_>, counter: &dyn Counter, family: Family) -> u64 {
    let Some(content) = value.get("content").filter(|c| !c.is_null()) else { return 0 };
    if let Some(text) = content.text() {
        return family.tokens(counter.count_escaped(text.raw()));
    }
    if content.kind() != json::Kind::Array {
        return family.tokens(counter.count(&String::from_utf8_lossy(content.raw())));
    }
    content.items().fold(0, |sum: u64, block| sum.saturating_add(self::block(block, counter, family)))
}

fn block(block: Value<'_>, counter: &dyn Counter, family: Family) -> u64 {
    if let Some(text) = block.text() {
        return family.tokens(counter.count_escaped(text.raw()));
    }
    let kind = block.get("type").and_then(|k| k.text()).map(|k| k.decode()).unwrap_or_default();
    match &*kind {
        "text" => match block.get("text").and_then(|t| t.text()) {
            Some(text) => family.tokens(counter.count_escaped(text.raw())),
            None => family.tokens(counter.count(&String::from_utf8_lossy(block.raw()))),
        },
        "image" => {
            let data = image_data(block).map(|t| t.raw());
            family.image(data.and_then(image::size))
        }
        "document" => DOCUMENT,
        _ => family.tokens(counter.count(&String::from_utf8_lossy(block.raw()))),
    }
}

/// The base64 text, or the URL, of an image block.
pub(super) fn image_data(block: Value<'_>) -> Option<Text<'_>> {
    let source = block.get("source")?;
    source.get("data").or_else(|| source.get("url"))?.text()
}

/// Less than what the smallest form of a record costs, found without looking at all of it. What is kept
/// in the window rests on this, and so it must never be more than what an exact count would give: no text of
/// a session has more than ten bytes a token on the whole.
pub(super) fn least(role: Role, record: &Record<'_>, value: Option<Value<'_>>, family: Family) -> u64 {
    let frame = family.overhead();
    let line = record.line();
    let at = match (record.body(), value) {
        (Some(body), _) => json::field_from(line, body, &["content", "input"]),
        (None, Some(value)) => value.get("content").or_else(|| value.get("input")).map(|v| v.span().start),
        (None, None) => None,
    };
    let near = |at: usize| match line.get(..at.saturating_add(LONG).min(line.len())) {
        Some(start) => json::value_end(start, at).map_or(LONG, |end| end - at),
        None => 0,
    };
    let text = |length: usize| family.tokens(length.saturating_sub(2) as u64 / 10);
    let is_text = |at: usize| line.get(at) == Some(&b'"');
    match (role, at) {
        (Role::Reasoning, _) => 0,
        (Role::ToolCall, at) => frame.tool_call + at.map_or(0, |at| text(near(at))),
        (Role::ToolResult, Some(at)) if is_text(at) => frame.tool_result + text(near(at)),
        (Role::ToolResult, _) => frame.tool_result,
        (_, Some(at)) if is_text(at) => {
            frame.message + text(json::value_end(line, at).map_or(0, |end| end - at))
        }
        (..) => frame.message,
    }
}
