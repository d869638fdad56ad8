//! One record of the stream: its bytes, and the few fields a stage decides by.

use super::{Error, Harness, Origin, Reason, Result, Role, Status};
use crate::json::{self, Tape, Text, Value};

/// What a record is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Begins a session.
    Session,
    /// A message of the conversation, live or dropped.
    Message,
    /// A source line that is no conversation.
    Native,
    /// Ends a session.
    End,
    /// A stage before this one died.
    Abort,
    /// Of a newer version; passes through untouched.
    Unknown,
}

impl Kind {
    fn parse(word: &[u8]) -> Kind {
        match word {
            b"session" => Kind::Session,
            b"message" => Kind::Message,
            b"native" => Kind::Native,
            b"end" => Kind::End,
            b"abort" => Kind::Abort,
            _ => Kind::Unknown,
        }
    }
}

/// The routing fields of a record. Absent and `null` are the same.
#[derive(Debug, Clone, Copy)]
pub struct Head<'a> {
    /// What the record is.
    pub kind: Kind,
    /// Who speaks, in a message.
    pub role: Option<Role>,
    /// Whether `dropped` holds a reason, known or not.
    pub dropped: Option<Text<'a>>,
    /// Where the text comes from when it is not the conversation itself.
    pub origin: Option<Origin>,
    /// The kind of harness text.
    pub harness: Option<Harness>,
    /// Position in the session, from 1.
    pub seq: Option<u64>,
    /// Turn, from 1.
    pub turn: Option<u64>,
    /// 1-based line of the source.
    pub line: Option<u64>,
    /// Which record of that line.
    pub part: Option<u64>,
    /// Messages with the same value are one message of the model.
    pub group: Option<Text<'a>>,
    /// Id that pairs a call and its result.
    pub tool_call_id: Option<Text<'a>>,
    /// Name of the tool.
    pub tool_name: Option<Text<'a>>,
    /// How the call ended.
    pub status: Option<Status>,
    /// When, RFC 3339 UTC.
    pub timestamp: Option<Text<'a>>,
    /// Made by a filter to stand for another record.
    pub synthetic: bool,
}

impl<'a> Head<'a> {
    const fn new(kind: Kind) -> Head<'a> {
        Head {
            kind,
            role: None,
            dropped: None,
            origin: None,
            harness: None,
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

    /// Whether this is a message of the live conversation.
    pub fn is_live(&self) -> bool {
        self.kind == Kind::Message && self.dropped.is_none()
    }

    /// Whether this is a live prompt of a human: where a turn begins.
    pub fn is_prompt(&self) -> bool {
        self.is_live() && self.role == Some(Role::User) && self.origin.is_none()
    }

    /// Reads the head the way relay's own tools write it, without looking at the rest of the line.
    ///
    /// The short cut holds only when every routing field stands where the writer puts it, `null` ones too:
    /// then no edit that adds or changes one (jq changes in place) can hide behind it. Anything else, also
    /// an escape in one of the strings, gives `None`, and the whole line is scanned.
    fn canonical(line: &'a [u8]) -> Option<(Head<'a>, usize)> {
        let mut c = Cursor { line, at: 0 };
        c.eat(b"{\"type\":\"message\",\"role\":")?;
        let mut head = Head::new(Kind::Message);
        let role = Role::parse(c.word()?)?;
        head.role = Some(role);
        c.eat(b",\"dropped\":")?;
        head.dropped = c.text_or_null()?;
        c.eat(b",\"origin\":")?;
        head.origin = match c.text_or_null()? {
            None => None,
            Some(word) => Some(Origin::parse(word.raw())?),
        };
        if head.origin == Some(Origin::Harness) {
            c.eat(b",\"harness\":")?;
            head.harness = Some(Harness::parse(c.word()?)?);
        }
        c.eat(b",\"seq\":")?;
        head.seq = c.number_or_null()?;
        c.eat(b",\"turn\":")?;
        head.turn = c.number_or_null()?;
        c.eat(b",\"line\":")?;
        head.line = c.number_or_null()?;
        c.eat(b",\"part\":")?;
        head.part = c.number_or_null()?;
        c.eat(b",\"group\":")?;
        head.group = c.text_or_null()?;
        if matches!(role, Role::ToolCall | Role::ToolResult) {
            c.eat(b",\"tool_call_id\":")?;
            head.tool_call_id = c.text_or_null()?;
            c.eat(b",\"tool_name\":")?;
            head.tool_name = c.text_or_null()?;
        }
        if role == Role::ToolResult {
            c.eat(b",\"status\":")?;
            head.status = Some(Status::parse(c.word()?)?);
        }
        c.eat(b",\"timestamp\":")?;
        head.timestamp = c.text_or_null()?;
        head.synthetic = c.eat(b",\"synthetic\":true").is_some();
        c.eat(b",")?;
        Some((head, c.at))
    }

    /// Reads the head from a scanned line, in whatever order its fields stand.
    pub fn scanned(value: Value<'a>) -> Result<Head<'a>> {
        if !value.is_object() {
            return Err(Error::Shape { what: "a record must be an object".into() });
        }
        let text = |key: &str| value.get(key).and_then(|v| v.text());
        let Some(kind) = text("type") else {
            return Err(Error::Shape { what: "`type` is missing".into() });
        };
        let mut head = Head::new(Kind::parse(kind.decode().as_bytes()));
        if head.kind == Kind::Message {
            let role = text("role").ok_or_else(|| Error::Shape { what: "`role` is missing".into() })?;
            head.role = Some(
                Role::parse(role.decode().as_bytes())
                    .ok_or_else(|| Error::Shape { what: format!("unknown `role` {:?}", role.decode()) })?,
            );
        }
        let number = |key: &str| value.get(key).and_then(|v| v.u64());
        head.dropped = text("dropped");
        head.origin = text("origin").and_then(|w| Origin::parse(w.decode().as_bytes()));
        head.harness = text("harness").and_then(|w| Harness::parse(w.decode().as_bytes()));
        head.seq = number("seq");
        head.turn = number("turn");
        head.line = number("line");
        head.part = number("part");
        head.group = text("group");
        head.tool_call_id = text("tool_call_id");
        head.tool_name = text("tool_name");
        head.status = text("status").and_then(|w| Status::parse(w.decode().as_bytes()));
        head.timestamp = text("timestamp");
        head.synthetic = value.get("synthetic").and_then(|v| v.bool()).unwrap_or(false);
        head.require(value)?;
        Ok(head)
    }

    /// What the reference requires of a message.
    fn require(&self, value: Value<'_>) -> Result<()> {
        let Some(role) = self.role else { return Ok(()) };
        let missing = |key: &str| Error::Shape { what: format!("a {role} message needs `{key}`") };
        if matches!(role, Role::ToolCall | Role::ToolResult) && self.tool_call_id.is_none() {
            return Err(missing("tool_call_id"));
        }
        if role == Role::ToolCall {
            // `null` where the source itself has no name
            if value.get("tool_name").is_none() {
                return Err(missing("tool_name"));
            }
            return value.get("input").map(|_| ()).ok_or_else(|| missing("input"));
        }
        value.get("content").map(|_| ()).ok_or_else(|| missing("content"))
    }

    /// The reason for which the record is not live, when it is a known one.
    pub fn reason(&self) -> Option<Reason> {
        Reason::parse(self.dropped?.raw())
    }
}

struct Cursor<'a> {
    line: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    #[inline]
    fn eat(&mut self, word: &[u8]) -> Option<()> {
        self.line.get(self.at..)?.starts_with(word).then(|| self.at += word.len())
    }

    fn text_or_null(&mut self) -> Option<Option<Text<'a>>> {
        if self.eat(b"null").is_some() {
            return Some(None);
        }
        self.word().map(|raw| Some(Text::unescaped(raw)))
    }

    /// A string without escapes.
    fn word(&mut self) -> Option<&'a [u8]> {
        self.eat(b"\"")?;
        let (end, flags) = json::string_end(self.line, self.at).ok()?;
        let word = self.line.get(self.at..end).filter(|_| flags == 0)?;
        self.at = end + 1;
        Some(word)
    }

    fn number_or_null(&mut self) -> Option<Option<u64>> {
        if self.eat(b"null").is_some() {
            return Some(None);
        }
        let rest = self.line.get(self.at..)?;
        let len = rest.iter().position(|b| !b.is_ascii_digit()).filter(|len| *len > 0)?;
        self.at += len;
        let digit = |n: u64, b: &u8| n.checked_mul(10)?.checked_add(u64::from(b - b'0'));
        rest.get(..len)?.iter().try_fold(0, digit).map(Some)
    }
}

/// One record: the bytes of its line, and its head.
#[derive(Debug, Clone, Copy)]
pub struct Record<'a> {
    line: &'a [u8],
    head: Head<'a>,
    body: Option<usize>,
}

impl<'a> Record<'a> {
    /// Reads the head of a line; `tape` serves when the line is not in the order that tools write.
    pub fn new(line: &'a [u8], tape: &'a mut Tape) -> Result<Record<'a>> {
        let (head, body) = match Head::canonical(line) {
            Some((head, body)) => (head, Some(body)),
            None => {
                (Head::scanned(tape.parse(line).map_err(|e| Error::Shape { what: e.to_string() })?)?, None)
            }
        };
        Ok(Record { line, head, body })
    }

    /// The bytes of the line, without line feed.
    pub fn line(&self) -> &'a [u8] {
        self.line
    }

    /// Where the key of the first field behind the routing fields begins, in bytes; `None` when these do not
    /// stand where relay's own tools write them.
    pub fn body(&self) -> Option<usize> {
        self.body
    }

    /// The routing fields.
    pub fn head(&self) -> &Head<'a> {
        &self.head
    }

    /// Scans the whole record.
    pub fn parse<'t>(&self, tape: &'t mut Tape) -> Result<Value<'t>>
    where
        'a: 't,
    {
        tape.parse(self.line).map_err(|e| Error::Shape { what: e.to_string() })
    }

    /// The record as a value of `T`, for the records that frame a session.
    pub fn decode<T: serde::de::DeserializeOwned>(&self) -> Result<T> {
        serde_json::from_slice(self.line).map_err(|e| Error::Shape { what: e.to_string() })
    }
}

/// A copy of an object's line with some fields set, all other bytes as they were.
///
/// `fields` are keys with their new value as JSON. A key that the line has is changed in place (every
/// occurrence, where one occurs twice); a new one is put right behind the routing words at the start.
pub fn with_fields(line: &[u8], value: Value<'_>, fields: &[(&str, &[u8])]) -> Vec<u8> {
    let mut edits: Vec<(std::ops::Range<usize>, Vec<u8>)> = Vec::new();
    let mut anchor = value.span().start + 1;
    let mut empty = true;
    for (key, v) in value.entries() {
        empty = false;
        if key == "type" || key == "role" {
            anchor = v.span().end;
        }
    }
    let mut added = Vec::new();
    for (key, new) in fields {
        let before = edits.len();
        edits.extend(value.entries().filter(|(k, _)| k == key).map(|(_, old)| (old.span(), new.to_vec())));
        if edits.len() == before {
            added.extend_from_slice(b",\"");
            added.extend_from_slice(key.as_bytes());
            added.extend_from_slice(b"\":");
            added.extend_from_slice(new);
        }
    }
    if !added.is_empty() {
        let at_start = anchor == value.span().start + 1;
        if at_start {
            added.remove(0);
            if !empty {
                added.push(b',');
            }
        }
        edits.push((anchor..anchor, added));
    }
    splice(line, edits)
}

/// The line with byte ranges replaced. Ranges must not overlap.
pub fn splice<T: AsRef<[u8]>>(line: &[u8], mut edits: Vec<(std::ops::Range<usize>, T)>) -> Vec<u8> {
    edits.sort_by_key(|(range, _)| (range.start, range.end));
    let more = edits.iter().map(|(_, new)| new.as_ref().len()).sum::<usize>();
    let mut out = Vec::with_capacity(line.len() + more);
    let mut from = 0;
    for (range, new) in edits {
        out.extend_from_slice(line.get(from..range.start).unwrap_or_default());
        out.extend_from_slice(new.as_ref());
        from = range.end;
    }
    out.extend_from_slice(line.get(from..).unwrap_or_default());
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const FULL: &str = r#"{"type":"message","role":"tool_result","dropped":null,"origin":null,"seq":3,"turn":1,"line":7,"part":0,"group":null,"tool_call_id":"t1","tool_name":"Bash","status":"ok","timestamp":"2026-01-02T03:04:05Z","content":"x"}"#;

    fn head(line: &str) -> String {
        let mut tape = Tape::new();
        format!("{:?}", Record::new(line.as_bytes(), &mut tape).map(|r| *r.head()).map_err(|e| e.to_string()))
    }

    #[test]
    fn the_short_cut_reads_what_the_scan_reads() {
        assert!(Head::canonical(FULL.as_bytes()).is_some());
        let spaced = FULL.replace(",\"role\"", " ,\"role\"");
        assert!(Head::canonical(spaced.as_bytes()).is_none());
        assert_eq!(head(FULL), head(&spaced).replace("escaped: true", "escaped: false"));
    }

    #[test]
    fn a_field_that_an_edit_appends_is_seen() {
        let line = r#"{"type":"message","role":"user","content":"\"dropped\":null","dropped":"trimmed"}"#;
        let mut tape = Tape::new();
        let record = Record::new(line.as_bytes(), &mut tape).unwrap();
        assert_eq!(record.head().reason(), Some(Reason::Trimmed));
        assert!(!record.head().is_live());
    }

    #[test]
    fn an_edit_in_place_keeps_the_short_cut() {
        let line = FULL.replacen("\"dropped\":null", "\"dropped\":\"trimmed\"", 1);
        let (head, body) = Head::canonical(line.as_bytes()).unwrap();
        assert_eq!(&line[body..], "\"content\":\"x\"}");
        assert_eq!(head.reason(), Some(Reason::Trimmed));
    }

    #[test]
    fn missing_fields_are_named() {
        assert!(
            head(r#"{"type":"message","role":"tool_call","tool_name":"x","input":{}}"#)
                .contains("`tool_call_id`")
        );
        assert!(head(r#"{"type":"message","role":"user"}"#).contains("`content`"));
        assert!(head(r#"{"type":"message","role":"wizard","content":""}"#).contains("wizard"));
        assert!(head(r#"{"role":"user"}"#).contains("`type`"));
        assert!(head(r#"[1]"#).contains("object"));
    }

    #[test]
    fn edits_touch_nothing_else() {
        let set = |line: &str, fields: &[(&str, &[u8])]| {
            let mut tape = Tape::new();
            let v = tape.parse(line.as_bytes()).unwrap();
            String::from_utf8(with_fields(line.as_bytes(), v, fields)).unwrap()
        };
        assert_eq!(set(r#"{"type":"x", "a" : 1e2}"#, &[("a", b"7")]), r#"{"type":"x", "a" : 7}"#);
        assert_eq!(set(r#"{"type":"x","a":1}"#, &[("b", b"7")]), r#"{"type":"x","b":7,"a":1}"#);
        assert_eq!(set(r#"{"a":1,"b":2,"a":3}"#, &[("a", b"7")]), r#"{"a":7,"b":2,"a":7}"#);
        assert_eq!(set(r#"{"a":1}"#, &[("b", b"7")]), r#"{"b":7,"a":1}"#);
        assert_eq!(set(r#"{}"#, &[("b", b"7"), ("c", b"8")]), r#"{"b":7,"c":8}"#);
    }
}
