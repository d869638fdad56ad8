//! What a record costs the target's model.

use crate::json::{self, Text, Value};
use crate::record::{Harness, Head, Origin, Record, Role};
use crate::tokens::{Counter, Family, estimate_escaped, image};

/// What a document costs, in tokens. Vendors count its pages, which nobody here looks at.
const DOCUMENT: u64 = 1_500;

/// Longest text of a call's input that is kept whole where it must be short, in bytes.
pub(super) const INPUT: usize = 240;

/// Results longer than this, in bytes as they are escaped, may cost less in one line.
const MASK: usize = 100;

/// What a line costs at least that says how much was left out, in o200k tokens.
const LEFT_OUT: u64 = 8;

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
            // where it becomes a todo list, a plan says each of its steps twice
            let input = if family != Family::OpenAi && name == "update_plan" { 2 * input } else { input };
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

/// Less than what the smallest form of a record costs, found without looking at all of it. What is kept in the
/// window rests on this, so it must not be more than what an exact count of many records would give: a third is
/// taken off the estimate, which is never that wrong on the whole.
pub(super) fn least(role: Role, record: &Record<'_>, value: Option<Value<'_>>, family: Family) -> u64 {
    if role == Role::Reasoning {
        return 0;
    }
    let frame = family.overhead();
    let line = record.line();
    let at = match (record.body(), value) {
        (Some(body), _) => json::field_from(line, body, &["content", "input"]),
        (None, Some(value)) => value.get("content").or_else(|| value.get("input")).map(|v| v.span().start),
        (None, None) => None,
    };
    let Some(at) = at else { return frame.message };
    // the value as far as it goes, if it ends within so many bytes
    let within = |most: usize| {
        let start = line.get(..at.saturating_add(most).min(line.len())).unwrap_or_default();
        json::value_end(start, at).and_then(|end| line.get(at..end))
    };
    let tokens = |text: &[u8]| family.tokens(estimate_escaped(text) * 2 / 3);
    let is_text = line.get(at) == Some(&b'"');
    match role {
        Role::Reasoning => 0,
        Role::ToolCall => {
            // a longer one may be told by its size alone
            let input = within(INPUT).map_or(family.tokens(LEFT_OUT), tokens);
            frame.tool_call + input
        }
        Role::ToolResult if is_text => {
            frame.tool_result + within(MASK).map_or(family.tokens(LEFT_OUT), tokens)
        }
        Role::ToolResult => frame.tool_result,
        Role::User | Role::Assistant | Role::System | Role::Summary if is_text => {
            let end = json::value_end(line, at).unwrap_or(at);
            frame.message + tokens(line.get(at..end).unwrap_or_default())
        }
        Role::User | Role::Assistant | Role::System | Role::Summary => frame.message,
    }
}
