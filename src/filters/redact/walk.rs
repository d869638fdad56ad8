//! Where text stands in a record, and what is no text: ids, ciphers, pictures.

use crate::json::{Entries, Items, Kind, Text, Value};

/// Keys whose strings route, pair or name: never looked at, wherever the structure of a record or of a source line
/// holds them. Spellings of relay, Claude Code (1.0 to 2.1.332) and Codex (0.20 to 0.171).
fn is_routing(key: &[u8]) -> bool {
    matches!(
        key,
        b"type"
            | b"role"
            | b"dropped"
            | b"origin"
            | b"harness"
            | b"status"
            | b"kind"
            | b"subtype"
            | b"timestamp"
            | b"raw_timestamp"
            | b"created_at"
            | b"updated_at"
            | b"modified_at"
            | b"id"
            | b"group"
            | b"name"
            | b"tool_name"
            | b"uuid"
            | b"source_agent"
            | b"media_type"
            | b"mimeType"
            | b"stop_reason"
            | b"encrypted_content"
            | b"signature"
            | b"thinkingSignature"
    ) || is_id(key)
}

/// Whether a key names an id of the session by its ending, as `parentUuid`, `toolUseID`, `call_id` do. An id of an
/// account or a key (`AWS_ACCESS_KEY_ID`, `private_key_id`, `clientId`) is none of them.
fn is_id(key: &[u8]) -> bool {
    let stem = [b"_id".as_slice(), b"_uuid", b"Id", b"ID", b"Ids", b"Uuid", b"UUID", b"Uuids"]
        .into_iter()
        .find_map(|ending| key.strip_suffix(ending));
    let Some(stem) = stem.filter(|stem| stem.last().is_some_and(u8::is_ascii_lowercase)) else {
        return false;
    };
    let stem = stem.to_ascii_lowercase();
    ![b"key".as_slice(), b"secret", b"client", b"token", b"account", b"user"]
        .iter()
        .any(|word| stem.ends_with(word))
}

/// Keys whose values are the tool's own, in which an `id` is no id of the session.
fn is_free(key: &[u8]) -> bool {
    matches!(key, b"input" | b"arguments" | b"structuredContent" | b"structured_content")
}

/// Ciphers and signatures, wherever they stand: no one can read them, and one byte changed makes them worthless.
fn is_cipher(key: &[u8]) -> bool {
    matches!(key, b"encrypted_content" | b"signature" | b"thinkingSignature")
}

/// What a string is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// Text.
    Text,
    /// A key of an object.
    Key,
    /// Bytes of a line in base64 (`raw_base64` of a native record).
    Base64,
    /// Not to be looked at, and long enough to be counted: a picture, a cipher.
    Opaque,
}

/// A string of a record.
#[derive(Debug, Clone, Copy)]
pub(super) struct Spot<'a> {
    pub(super) part: Part,
    pub(super) text: Text<'a>,
    /// The key under which it stands, if any; of an item of an array, that of the array.
    pub(super) key: Option<Text<'a>>,
}

/// Levels that a pointer names; what lies deeper is not told apart.
const NAMED: usize = 24;

enum Inside<'a> {
    Object(Entries<'a>),
    Array(Items<'a>, usize),
}

struct Level<'a> {
    inside: Inside<'a>,
    object: Value<'a>,
    /// The key of the value that is being looked at; in an array, that of the array.
    key: Option<Text<'a>>,
    free: bool,
}

/// Goes through the strings of a record. Nothing here recurses: records may be nested as deep as they like.
pub(super) struct Walk<'a> {
    levels: Vec<Level<'a>>,
    /// The value whose key was handed out just now.
    next: Option<Value<'a>>,
    native: bool,
}

impl<'a> Walk<'a> {
    /// The strings of `record`; `native` when it is a record of that type.
    pub(super) fn new(record: Value<'a>, native: bool) -> Walk<'a> {
        let mut walk = Walk { levels: Vec::new(), next: None, native };
        walk.enter(record, None, false);
        walk
    }

    fn enter(&mut self, value: Value<'a>, key: Option<Text<'a>>, free: bool) {
        let inside = match value.kind() {
            Kind::Object => Inside::Object(value.entries()),
            Kind::Array => Inside::Array(value.items(), 0),
            _ => return,
        };
        self.levels.push(Level { inside, object: value, key, free });
    }

    /// The next string, or `None` behind the last one.
    pub(super) fn next_spot(&mut self) -> Option<Spot<'a>> {
        loop {
            let top = self.levels.len() == 1;
            let level = self.levels.last_mut()?;
            let value = match self.next.take() {
                Some(value) => value,
                None => match &mut level.inside {
                    Inside::Object(entries) => match entries.next() {
                        Some((key, value)) => {
                            level.key = Some(key);
                            if is_telling(key.raw()) {
                                self.next = Some(value);
                                return Some(Spot { part: Part::Key, text: key, key: None });
                            }
                            value
                        }
                        None => {
                            self.levels.pop();
                            continue;
                        }
                    },
                    Inside::Array(items, at) => match items.next() {
                        Some(value) => {
                            *at += 1;
                            value
                        }
                        None => {
                            self.levels.pop();
                            continue;
                        }
                    },
                },
            };
            let (key, free, object) = (level.key, level.free, level.object);
            let item = matches!(level.inside, Inside::Array(..));
            let Some(text) = value.text() else {
                let opens = || key.is_some_and(|key| is_free(key.decode().as_bytes()));
                self.enter(value, key, free || (!item && opens()));
                continue;
            };
            if text.is_empty() {
                continue;
            }
            let name = key.map(|k| k.decode());
            let name = name.as_deref().unwrap_or("").as_bytes();
            let spot = |part| Some(Spot { part, text, key });
            if is_cipher(name) || is_picture(name, text, object) {
                return spot(Part::Opaque);
            }
            if self.native && top && name == b"raw_base64" {
                return spot(Part::Base64);
            }
            if free || !is_routing(name) {
                return spot(Part::Text);
            }
        }
    }

    /// Where the string stands that was handed out last, as a JSON pointer (RFC 6901). A key that could itself tell
    /// something reads `*`.
    pub(super) fn pointer(&self) -> String {
        let mut pointer = String::new();
        for level in self.levels.iter().take(NAMED) {
            pointer.push('/');
            match (&level.inside, level.key) {
                (Inside::Array(_, at), _) => pointer.push_str(&at.saturating_sub(1).to_string()),
                (Inside::Object(_), Some(key)) => match std::str::from_utf8(key.raw()) {
                    Ok(key) if key.len() <= 24 && !is_telling(key.as_bytes()) => pointer.push_str(key),
                    _ => pointer.push('*'),
                },
                (Inside::Object(_), None) => {}
            }
        }
        if self.levels.len() > NAMED {
            pointer.push_str("/…");
        }
        pointer
    }
}

/// Whether a key may hold more than a name: a path, an address, a token. Claude Code keys its file snapshots by path.
fn is_telling(key: &[u8]) -> bool {
    if key.len() < 6 || key.len() > 32 {
        return key.len() > 32;
    }
    let mut digits = 0;
    for b in key {
        match b {
            b'a'..=b'z' | b'A'..=b'Z' | b'_' | b'-' => {}
            b'0'..=b'9' => digits += 1,
            _ => return true,
        }
    }
    digits > 2 && key.len() >= 12
}

/// Whether a string is a picture, a sound or a document. They stand as
/// `{"type":"base64","media_type":…,"data":…}` (Messages API), `{"type":"image","data":…,"mimeType":…}` (MCP),
/// `{"type":"image/png","base64":…}` (Claude Code 2.1, `toolUseResult.file`), `{"type":"image_generation_call",
/// "result":…}` and `"image_url":"data:…"` (Codex 0.171).
fn is_picture(key: &[u8], text: Text<'_>, object: Value<'_>) -> bool {
    let kind =
        || object.get("type").and_then(|t| t.text()).map(|t| t.decode().into_owned()).unwrap_or_default();
    let media = || ["media_type", "mimeType", "mime_type"].iter().any(|k| object.get(k).is_some());
    match key {
        b"data" => media() || matches!(kind().as_str(), "image" | "audio" | "redacted_thinking"),
        b"base64" => media() || kind().contains('/') || kind() == "pdf",
        b"result" => kind() == "image_generation_call",
        b"image_url" | b"url" | b"file_data" => is_data_url(text.raw()),
        _ => false,
    }
}

/// Whether a text is nothing but a `data:` URL of media in base64 (RFC 2397).
fn is_data_url(raw: &[u8]) -> bool {
    let Some(rest) = raw.strip_prefix(b"data:") else { return false };
    let media = [b"image/".as_slice(), b"audio/", b"video/", b"application/pdf"];
    if !media.iter().any(|m| rest.starts_with(m)) {
        return false;
    }
    let head = rest.get(..rest.len().min(120)).unwrap_or_default();
    let Some(at) = memchr::memmem::find(head, b";base64,") else { return false };
    let body = rest.get(at + 8..).unwrap_or_default();
    body.iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/' | b'=' | b'\\'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::Tape;

    fn strings(line: &str, native: bool) -> Vec<String> {
        let mut tape = Tape::new();
        let value = tape.parse(line.as_bytes()).unwrap();
        let mut walk = Walk::new(value, native);
        let mut found = Vec::new();
        while let Some(spot) = walk.next_spot() {
            let part = match spot.part {
                Part::Text => "",
                Part::Key => "key ",
                Part::Base64 => "base64 ",
                Part::Opaque => "opaque ",
            };
            found.push(format!("{part}{}={}", walk.pointer(), spot.text.decode()));
        }
        found
    }

    #[test]
    fn texts_are_seen_and_ids_are_not() {
        let line = r#"{"type":"message","role":"tool_call","tool_call_id":"t","tool_name":"N","content":[{"type":"text","text":"a"},{"type":"tool_use","id":"x","name":"n","input":{"id":"b","list":["c",{"name":"d"}]}}],"extra":{"uuid":"u","parentUuid":"p","sourceToolUseID":"s","cwd":"/e","message":{"id":"m","content":null}}}"#;
        assert_eq!(
            strings(line, false),
            [
                "/content/0/text=a",
                "/content/1/input/id=b",
                "/content/1/input/list/0=c",
                "/content/1/input/list/1/name=d",
                "/extra/cwd=/e"
            ]
        );
    }

    #[test]
    fn ids_of_the_session_are_told_from_ids_of_keys() {
        for key in ["parentUuid", "toolUseID", "call_id", "sessionId", "turn_id", "leafUuid", "messageIds"] {
            assert!(is_routing(key.as_bytes()), "{key}");
        }
        for key in ["AWS_ACCESS_KEY_ID", "private_key_id", "clientId", "AccessKeyId", "valid", "ID", "_id"] {
            assert!(!is_routing(key.as_bytes()), "{key}");
        }
    }

    #[test]
    fn pictures_and_ciphers_are_opaque_in_every_shape() {
        for line in [
            r#"{"source":{"data":"AAAA","media_type":"image/png","type":"base64"}}"#,
            r#"{"type":"image","data":"AAAA","mimeType":"image/png"}"#,
            r#"{"file":{"base64":"AAAA","type":"image/png"}}"#,
            r#"{"type":"image_generation_call","result":"AAAA"}"#,
            r#"{"image_url":"data:image/png;base64,AAAA"}"#,
            r#"{"type":"thinking","signature":"AAAA"}"#,
            r#"{"input":{"encrypted_content":"AAAA"}}"#,
        ] {
            let found = strings(line, false);
            assert!(found.len() == 1 && found[0].starts_with("opaque "), "{line}: {found:?}");
        }
        for line in
            [r#"{"data":"AAAA"}"#, r#"{"image_url":"data:image/png;base64,AA AA"}"#, r#"{"result":"AAAA"}"#]
        {
            assert!(!strings(line, false)[0].starts_with("opaque "), "{line}");
        }
    }

    #[test]
    fn keys_that_may_tell_something_are_texts_too() {
        assert_eq!(
            strings(r#"{"files":{"/home/ann/x":{"status":"y","a":"z"}}}"#, false),
            ["key /files/*=/home/ann/x", "/files/*/a=z"]
        );
    }

    #[test]
    fn bytes_of_a_native_line() {
        let line = r#"{"type":"native","raw_base64":"QQ==","value":{"raw_base64":"x"}}"#;
        assert_eq!(strings(line, true), ["base64 /raw_base64=QQ==", "/value/raw_base64=x"]);
        assert_eq!(strings(line, false)[0], "/raw_base64=QQ==");
    }

    #[test]
    fn depth_is_no_danger() {
        let line = format!("{{\"a\":{}\"x\"{}}}", "[".repeat(200_000), "]".repeat(200_000));
        assert!(strings(&line, false)[0].ends_with("/…=x"));
    }
}
