//! Writing message records in the order that makes them cheap to route.

use super::{Harness, Reason, Role, Status};
use crate::json::write_string;

/// Where a text that is not the conversation itself comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum By {
    /// The conversation itself.
    #[default]
    Conversation,
    /// The source agent's client.
    Harness(Harness),
    /// relay.
    Relay,
}

/// The routing fields of a message to be written. Raw fields are bodies of JSON strings, still escaped, so
/// that what was read can be written as it was.
#[derive(Debug, Clone, Copy)]
pub struct Draft<'a> {
    /// Who speaks.
    pub role: Role,
    /// Why the message is not live, if it is not.
    pub dropped: Option<Reason>,
    /// Where the text comes from.
    pub by: By,
    /// Position in the session, from 1.
    pub seq: Option<u64>,
    /// Turn, from 1.
    pub turn: Option<u64>,
    /// 1-based line of the source.
    pub line: Option<u64>,
    /// Which record of that line, from 0; `None` when the line gives one record.
    pub part: Option<u64>,
    /// Raw id of the model message.
    pub group: Option<&'a [u8]>,
    /// Raw id that pairs a call and its result.
    pub tool_call_id: Option<&'a [u8]>,
    /// Raw name of the tool.
    pub tool_name: Option<&'a [u8]>,
    /// How the call ended; results only, absent means unknown.
    pub status: Option<Status>,
    /// RFC 3339 UTC.
    pub timestamp: Option<&'a str>,
    /// Made by a filter to stand for another record.
    pub synthetic: bool,
}

impl<'a> Draft<'a> {
    /// A live message of the conversation with nothing else known.
    pub fn new(role: Role) -> Draft<'a> {
        Draft {
            role,
            dropped: None,
            by: By::Conversation,
            seq: None,
            turn: None,
            line: None,
            part: None,
            group: None,
            tool_call_id: None,
            tool_name: None,
            status: None,
            timestamp: None,
            synthetic: false,
        }
    }

    /// Appends the record up to and with its routing fields. The caller appends `,"key":value` for
    /// everything else (big text last, `extra` at the very end) and the closing brace.
    pub fn begin(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"type\":\"message\",\"role\":\"");
        out.extend_from_slice(self.role.as_str().as_bytes());
        out.extend_from_slice(b"\",\"dropped\":");
        word(out, self.dropped.map(Reason::as_str));
        out.extend_from_slice(b",\"origin\":");
        match self.by {
            By::Conversation => out.extend_from_slice(b"null"),
            By::Relay => out.extend_from_slice(b"\"relay\""),
            By::Harness(kind) => {
                out.extend_from_slice(b"\"harness\",\"harness\":");
                word(out, Some(kind.as_str()));
            }
        }
        for (key, value) in [("seq", self.seq), ("turn", self.turn), ("line", self.line), ("part", self.part)]
        {
            out.extend_from_slice(b",\"");
            out.extend_from_slice(key.as_bytes());
            out.extend_from_slice(b"\":");
            match value {
                None => out.extend_from_slice(b"null"),
                Some(n) => number(out, n),
            }
        }
        out.extend_from_slice(b",\"group\":");
        raw(out, self.group);
        if matches!(self.role, Role::ToolCall | Role::ToolResult) {
            out.extend_from_slice(b",\"tool_call_id\":");
            raw(out, self.tool_call_id);
            out.extend_from_slice(b",\"tool_name\":");
            raw(out, self.tool_name);
        }
        if self.role == Role::ToolResult {
            out.extend_from_slice(b",\"status\":");
            word(out, Some(self.status.unwrap_or(Status::Unknown).as_str()));
        }
        out.extend_from_slice(b",\"timestamp\":");
        match self.timestamp {
            None => out.extend_from_slice(b"null"),
            Some(text) => write_string(out, text),
        }
        if self.synthetic {
            out.extend_from_slice(b",\"synthetic\":true");
        }
    }
}

fn word(out: &mut Vec<u8>, text: Option<&str>) {
    raw(out, text.map(str::as_bytes));
}

fn raw(out: &mut Vec<u8>, body: Option<&[u8]>) {
    match body {
        None => out.extend_from_slice(b"null"),
        Some(body) => {
            out.push(b'"');
            out.extend_from_slice(body);
            out.push(b'"');
        }
    }
}

/// Appends a number in decimal.
pub fn number(out: &mut Vec<u8>, mut n: u64) {
    let mut digits = [0u8; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        if let Some(d) = digits.get_mut(at) {
            *d = b'0' + (n % 10) as u8;
        }
        n /= 10;
        if n == 0 {
            break;
        }
    }
    out.extend_from_slice(digits.get(at..).unwrap_or_default());
}

#[cfg(test)]
mod tests {
    use super::super::{Kind, Record};
    use super::*;
    use crate::json::Tape;

    #[test]
    fn what_is_drafted_takes_the_short_cut() {
        for &role in Role::ALL {
            let draft = Draft {
                by: By::Harness(Harness::Notice),
                dropped: Some(Reason::Branch),
                seq: Some(12),
                group: Some(b"msg_1"),
                tool_call_id: Some(b"t1"),
                tool_name: Some(b"Bash"),
                status: Some(Status::Error),
                timestamp: Some("2026-01-02T03:04:05Z"),
                synthetic: true,
                ..Draft::new(role)
            };
            let mut line = Vec::new();
            draft.begin(&mut line);
            // behind the head nothing is looked at on the short cut: broken JSON shows that it was taken
            line.extend_from_slice(b",\"content\":\x01");
            let mut tape = Tape::new();
            let record = Record::new(&line, &mut tape).unwrap();
            let head = record.head();
            assert_eq!((head.kind, head.role, head.seq), (Kind::Message, Some(role), Some(12)));
            assert_eq!(head.reason(), Some(Reason::Branch));
            assert_eq!(head.harness, Some(Harness::Notice));
            assert!(head.synthetic && !head.is_live());
            assert_eq!(head.status.is_some(), role == Role::ToolResult);
        }
    }

    #[test]
    fn numbers_are_written_whole() {
        for n in [0, 7, 10, 1234567890, u64::MAX] {
            let mut out = Vec::new();
            number(&mut out, n);
            assert_eq!(String::from_utf8(out).unwrap(), n.to_string());
        }
    }
}
