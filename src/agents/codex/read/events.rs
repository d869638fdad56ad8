//! The conversation of a file that holds no response item at all: rescued from what the client told its
//! screen. The client itself sends nothing of it (rule 3).

use super::index::{Entry, flag};
use super::line::{self, Line, Sort, Standing, field, text};
use super::pieces::{Block, Body, Outcome, Piece, Pieces, outcome_of};
use crate::json::{Kind, Text, Value, write_string};
use crate::record::{Role, Status};
use std::borrow::Cow;

/// The two ways in which clients log their screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dialect {
    /// `user_message`, `agent_message`, … (up to 0.142, and later with history_mode legacy).
    Events,
    /// `item_completed` (paginated, default from 0.150).
    Items,
}

/// Gathers the events of a file until its first response item shows that they are not needed.
#[derive(Debug, Default)]
pub(super) struct Finder {
    needless: bool,
    events: Vec<Entry>,
    items: Vec<Entry>,
}

impl Finder {
    /// Looks at a line.
    pub(super) fn line(&mut self, line: &Line<'_>, entry: Entry) {
        if self.needless {
            return;
        }
        if matches!(line.sort, Sort::Item(_) | Sort::Compacted(_)) {
            *self = Finder { needless: true, ..Finder::default() };
            return;
        }
        for (dialect, list) in [(Dialect::Events, &mut self.events), (Dialect::Items, &mut self.items)] {
            if let Some(pieces) = event(line, dialect) {
                let prompt = pieces.pieces.first().filter(|p| p.role == Role::User);
                let flags = match prompt.map(|p| &p.body) {
                    Some(Body::Content(blocks)) => {
                        let words = blocks.iter().filter_map(|b| match b {
                            Block::Text(t) => std::str::from_utf8(t).ok(),
                            _ => None,
                        });
                        match line::standing_of_text(&words.collect::<Vec<_>>()) {
                            Standing::Boundary => flag::BOUNDARY | flag::USER,
                            Standing::Contextual => flag::CONTEXTUAL,
                            Standing::Plain => 0,
                        }
                    }
                    _ => 0,
                };
                list.push(Entry { flags, ..entry });
            }
        }
    }

    /// The dialect that the file speaks, and its entries.
    pub(super) fn finish(self) -> Option<(Dialect, Vec<Entry>)> {
        match (self.items.is_empty(), self.events.is_empty()) {
            (false, _) => Some((Dialect::Items, self.items)),
            (true, false) => Some((Dialect::Events, self.events)),
            (true, true) => None,
        }
    }
}

/// The records of an event line, if it tells of the conversation.
pub(super) fn event<'a>(line: &Line<'a>, dialect: Dialect) -> Option<Pieces<'a>> {
    let payload = line.payload?;
    if line.kind.is_none_or(|t| t != "event_msg") {
        return None;
    }
    let kind = text(payload, "type")?.decode();
    let pieces = match dialect {
        Dialect::Events => match &*kind {
            "user_message" => vec![words(Role::User, text(payload, "message")?)],
            "agent_message" => vec![words(Role::Assistant, text(payload, "message")?)],
            "agent_reasoning" => vec![words(Role::Reasoning, text(payload, "text")?)],
            "exec_command_end" => command(payload, text(payload, "call_id")?),
            "mcp_tool_call_end" => mcp(field(payload, "invocation")?, payload, text(payload, "call_id")?)?,
            _ => return None,
        },
        Dialect::Items => {
            if kind != "item_completed" {
                return None;
            }
            let item = field(payload, "item")?;
            match &*text(item, "type")?.decode() {
                "UserMessage" => vec![list(Role::User, field(item, "content")?)],
                "AgentMessage" => vec![list(Role::Assistant, field(item, "content")?)],
                "Reasoning" => vec![list(Role::Reasoning, field(item, "summary_text")?)],
                "CommandExecution" => command(item, text(item, "id")?),
                "McpToolCall" => mcp(item, item, text(item, "id")?)?,
                _ => return None,
            }
        }
    };
    Some(Pieces { pieces, ..Pieces::default() })
}

fn words(role: Role, text: Text<'_>) -> Piece<'_> {
    Piece::new(role, Body::Content(vec![Block::Text(Cow::Borrowed(text.raw()))]))
}

/// Texts as strings or as blocks of whatever case (`Text`, `text`).
fn list(role: Role, content: Value<'_>) -> Piece<'_> {
    let blocks = content.items().map(|part| match part.text().or_else(|| text(part, "text")) {
        Some(text) => Block::Text(Cow::Borrowed(text.raw())),
        None => Block::Other(part.raw()),
    });
    Piece::new(role, Body::Content(blocks.collect()))
}

fn call<'a>(id: Text<'a>, name: Cow<'a, [u8]>, input: Cow<'a, [u8]>) -> Piece<'a> {
    let mut piece = Piece::new(Role::ToolCall, Body::Input(input));
    piece.call_id = Some(Cow::Borrowed(id.raw()));
    piece.tool_name = Some(name);
    piece
}

fn result<'a>(id: Text<'a>, content: Vec<Block<'a>>, outcome: Outcome) -> Piece<'a> {
    let mut piece = Piece::new(Role::ToolResult, Body::Content(content));
    piece.call_id = Some(Cow::Borrowed(id.raw()));
    piece.status = Some(outcome.status);
    piece.exit_code = outcome.exit_code;
    piece
}

fn command<'a>(event: Value<'a>, id: Text<'a>) -> Vec<Piece<'a>> {
    let command = field(event, "command").map_or(&b"[]"[..], |c| c.raw());
    let input = [b"{\"command\":", command, b"}"].concat();
    let output = text(event, "aggregated_output").or_else(|| text(event, "stdout"));
    let code = field(event, "exit_code").and_then(|c| std::str::from_utf8(c.raw()).ok()?.parse::<i64>().ok());
    let outcome = code.map(Outcome::of_code).unwrap_or_default();
    let content = output.map(|o| Block::Text(Cow::Borrowed(o.raw()))).into_iter().collect();
    vec![call(id, Cow::Borrowed(b"shell"), Cow::Owned(input)), result(id, content, outcome)]
}

fn mcp<'a>(invocation: Value<'a>, event: Value<'a>, id: Text<'a>) -> Option<Vec<Piece<'a>>> {
    let (server, tool) = (text(invocation, "server")?, text(invocation, "tool")?);
    let name = [b"mcp__", server.raw(), b"__", tool.raw()].concat();
    let input = field(invocation, "arguments").filter(Value::is_object).map_or(&b"{}"[..], |a| a.raw());
    let result_value = field(event, "result");
    let answer = result_value.map(|r| field(r, "Ok").unwrap_or(r));
    let failed = result_value.and_then(|r| field(r, "Err"));
    let is_error = answer.and_then(|a| field(a, "isError")).and_then(|e| e.bool());
    let mut outcome = match (failed, is_error) {
        (Some(_), _) | (None, Some(true)) => Outcome { status: Status::Error, exit_code: None },
        (None, Some(false)) => Outcome { status: Status::Ok, exit_code: None },
        (None, None) => Outcome::default(),
    };
    let mut content = Vec::new();
    if let Some(words) = failed.and_then(|f| f.text()) {
        content.push(Block::Text(Cow::Borrowed(words.raw())));
    } else if let Some(list) = answer.and_then(|a| field(a, "content")).filter(|c| c.kind() == Kind::Array) {
        for part in list.items() {
            content.push(match text(part, "text") {
                Some(words) => Block::Text(Cow::Borrowed(words.raw())),
                None => Block::Other(part.raw()),
            });
        }
    } else if let Some(other) = result_value.filter(|r| !r.is_null()) {
        let mut quoted = Vec::new();
        write_string(&mut quoted, &String::from_utf8_lossy(other.raw()));
        let body = quoted.get(1..quoted.len().saturating_sub(1)).unwrap_or_default().to_vec();
        content.push(Block::Text(Cow::Owned(body)));
    }
    if outcome.status == Status::Unknown {
        outcome = answer.and_then(|a| a.text()).map(outcome_of).unwrap_or_default();
    }
    Some(vec![call(id, Cow::Owned(name), Cow::Borrowed(input)), result(id, content, outcome)])
}
