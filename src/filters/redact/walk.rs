//! Where text stands in a record, and what is no text: ids, ciphers, pictures.

use crate::json::{Entries, Items, Kind, Text, Value};
use std::borrow::Cow;
use std::ops::Range;

/// Keys whose strings route or pair: never looked at, wherever the structure of a record or of a source line
/// holds them. Spellings of relay, Claude Code (1.0 to 2.1.332) and Codex (0.20 to 0.171).
fn is_routing(key: &[u8]) -> bool {
    matches!(
        key,
        b"type"
            | b"role"
            | b"dropped"
            | b"origin"
            | b"harness"
            | b"id"
            | b"group"
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

/// Keys whose strings are one word or a time nearly always. Only a long one is looked at.
fn is_word(key: &[u8]) -> bool {
    matches!(
        key,
        b"status"
            | b"kind"
            | b"subtype"
            | b"timestamp"
            | b"raw_timestamp"
            | b"created_at"
            | b"updated_at"
            | b"modified_at"
            | b"name"
            | b"tool_name"
    )
}

/// Whether the string of such a key is what it should be.
fn is_short(text: &[u8]) -> bool {
    text.len() < 16
        || (text.len() <= 35
            && text
                .iter()
                .all(|b| b.is_ascii_digit() || matches!(b, b'T' | b'Z' | b':' | b'.' | b'+' | b'-')))
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

/// What a value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// Text.
    Text,
    /// A key of an object.
    Key,
    /// Text in base64: the bytes of a native line, a document.
    Base64,
    /// A number whose key says that it is secret.
    Number,
    /// Not to be looked at, and long enough to be counted: a picture, a cipher.
    Opaque,
}

/// A value of a record that is looked at.
#[derive(Debug, Clone, Copy)]
pub(super) struct Spot<'a> {
    pub(super) part: Part,
    /// It as it stands in the line, without quotes.
    pub(super) raw: &'a [u8],
    /// It holds no escapes.
    pub(super) plain: bool,
    /// The name under which it stands, if any: its key, that of its array, or the `name` beside a `value`.
    pub(super) name: Option<Text<'a>>,
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

/// Goes through the texts of a record. Nothing here recurses: records may be nested as deep as they like.
pub(super) struct Walk<'a> {
    levels: Vec<Level<'a>>,
    /// The value whose key was handed out just now.
    next: Option<Value<'a>>,
    native: bool,
}

impl<'a> Walk<'a> {
    /// The texts of `record`; `native` when it is a record of that type.
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

    /// The next one, or `None` behind the last.
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
                                return Some(spot(Part::Key, key, None));
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
            let name = key.map(plain).unwrap_or_default();
            let name = name.as_ref();
            let Some(text) = value.text() else {
                if value.kind() == Kind::Number && is_number_of_secret(name) {
                    return Some(Spot { part: Part::Number, raw: value.raw(), plain: true, name: key });
                }
                self.enter(value, key, free || (!item && is_free(name)));
                continue;
            };
            if text.is_empty() {
                continue;
            }
            if is_cipher(name) {
                return Some(spot(Part::Opaque, text, None));
            }
            if self.native && top && name == b"raw_base64" {
                return Some(spot(Part::Base64, text, None));
            }
            match media(name, text, object) {
                Some(Media::Picture) => return Some(spot(Part::Opaque, text, None)),
                Some(Media::Text(range)) => {
                    let raw = text.raw().get(range).unwrap_or_default();
                    return Some(Spot { part: Part::Base64, raw, plain: text.plain().is_some(), name: None });
                }
                None => {}
            }
            if free || !(is_routing(name) || (is_word(name) && is_short(text.raw()))) {
                let key = if item { key } else { named(name, object).or(key) };
                return Some(spot(Part::Text, text, key));
            }
        }
    }

    /// Where the value stands that was handed out last, as a JSON pointer (RFC 6901). A key that could itself tell
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

/// The bytes of a key.
fn plain(key: Text<'_>) -> Cow<'_, [u8]> {
    match key.plain() {
        Some(plain) => Cow::Borrowed(plain),
        None => Cow::Owned(key.decode().into_owned().into_bytes()),
    }
}

fn spot<'a>(part: Part, text: Text<'a>, name: Option<Text<'a>>) -> Spot<'a> {
    Spot { part, raw: text.raw(), plain: text.plain().is_some(), name }
}

/// The name beside a value: `{"name":"DB_PASSWORD","value":"…"}`, as Kubernetes, CloudFormation and others have it.
fn named<'a>(key: &[u8], object: Value<'a>) -> Option<Text<'a>> {
    if !matches!(key, b"value" | b"Value" | b"ParameterValue" | b"OutputValue" | b"default") {
        return None;
    }
    ["name", "Name", "key", "Key", "ParameterKey", "OutputKey"]
        .iter()
        .find_map(|name| object.get(name)?.text())
}

/// Whether a number under this key is a secret.
fn is_number_of_secret(key: &[u8]) -> bool {
    // most numbers are counts
    if !key.last().is_some_and(|last| b"deptvcnDEPTVCN".contains(last)) {
        return false;
    }
    let key = key.to_ascii_lowercase();
    let whole = [b"pin".as_slice(), b"otp", b"cvv", b"cvc"].contains(&key.as_slice());
    let ending =
        [b"password".as_slice(), b"passwd", b"passphrase", b"passcode", b"pwd", b"secret", b"_pin", b"_otp"];
    whole || ending.iter().any(|word| key.ends_with(word))
}

/// What is no text, though it is a string.
enum Media {
    /// A picture, a sound, a document of another form.
    Picture,
    /// Text in base64, and where in the string.
    Text(Range<usize>),
}

/// Whether a string is a picture, a sound or a document. They stand as
/// `{"type":"base64","media_type":…,"data":…}` (Messages API), `{"type":"image","data":…,"mimeType":…}` (MCP),
/// `{"type":"image/png","base64":…}` (Claude Code 2.1, `toolUseResult.file`), `{"type":"image_generation_call",
/// "result":…}` and `"image_url":"data:…"` (Codex 0.171).
fn media(key: &[u8], text: Text<'_>, object: Value<'_>) -> Option<Media> {
    let word = |key: &str| object.get(key).and_then(|t| t.text()).map(|t| t.decode().into_owned());
    let raw = text.raw();
    match key {
        b"data" | b"base64" | b"blob" => {
            let kind = word("type").unwrap_or_default();
            let media = ["media_type", "mimeType", "mime_type"].iter().find_map(|key| word(key));
            let known = media.is_some()
                || kind.contains('/')
                || matches!(kind.as_str(), "image" | "audio" | "redacted_thinking" | "pdf");
            if !known || kind == "text" || !is_base64(raw) {
                return None;
            }
            Some(match is_textual(&media.unwrap_or(kind)) {
                true => Media::Text(0..raw.len()),
                false => Media::Picture,
            })
        }
        b"result" if word("type").as_deref() == Some("image_generation_call") && is_base64(raw) => {
            Some(Media::Picture)
        }
        b"image_url" | b"url" | b"file_data" => {
            // RFC 2397
            let head = raw.get(..raw.len().min(120)).unwrap_or_default();
            let kind = head.strip_prefix(b"data:")?;
            let at = memchr::memmem::find(head, b";base64,")?;
            let kind = String::from_utf8_lossy(kind.get(..at.saturating_sub(5)).unwrap_or_default());
            if !is_base64(raw.get(at + 8..).unwrap_or_default()) {
                return None;
            }
            Some(match is_textual(&kind) {
                true => Media::Text(at + 8..raw.len()),
                false => Media::Picture,
            })
        }
        _ => None,
    }
}

/// Whether a media type is one of texts.
fn is_textual(media: &str) -> bool {
    let media = media.trim().to_ascii_lowercase();
    media.starts_with("text/")
        || ["json", "xml", "yaml", "toml", "javascript", "typescript", "x-sh", "sql", "x-www-form-urlencoded"]
            .iter()
            .any(|word| media.split(';').next().unwrap_or_default().ends_with(word))
}

/// Whether a string is base64 of either alphabet, in one line or several, as it stands in a line of JSON.
fn is_base64(raw: &[u8]) -> bool {
    // all of a block at once: pictures are long
    raw.chunks(256).all(|block| {
        block.iter().fold(true, |all, b| {
            all & (b.is_ascii_alphanumeric()
                | (*b == b'+')
                | (*b == b'/')
                | (*b == b'=')
                | (*b == b'-')
                | (*b == b'_')
                | (*b == b'\\'))
        })
    })
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
                Part::Number => "number ",
                Part::Opaque => "opaque ",
            };
            found.push(format!("{part}{}={}", walk.pointer(), crate::json::decode(spot.raw)));
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
    fn documents_are_texts() {
        for (line, wanted) in [
            (r#"{"source":{"type":"text","media_type":"text/plain","data":"AAAA"}}"#, "/source/data=AAAA"),
            (
                r#"{"source":{"type":"base64","media_type":"text/plain; charset=utf-8","data":"AAAA"}}"#,
                "base64 /source/data=AAAA",
            ),
            (
                r#"{"source":{"type":"base64","media_type":"image/png","data":"no base64"}}"#,
                "/source/data=no base64",
            ),
            (r#"{"uri":"x","mimeType":"application/json","blob":"AAAA"}"#, "base64 /blob=AAAA"),
            (r#"{"file_data":"data:text/csv;base64,AAAA"}"#, "base64 /file_data=AAAA"),
        ] {
            let found = strings(line, false);
            assert_eq!(found.last().map(String::as_str), Some(wanted), "{line}");
        }
    }

    #[test]
    fn numbers_count_where_their_key_says_that_they_are_secret() {
        assert_eq!(
            strings(r#"{"password":8462,"max_tokens":8462,"db":{"pin":[8462]},"spin":8462}"#, false),
            ["number /password=8462", "number /db/pin/0=8462"]
        );
    }

    #[test]
    fn the_name_beside_a_value_is_its_name() {
        let line = r#"{"env":[{"name":"A_PASSWORD","value":"x"}],"status":"a status of many words","tool_name":"Bash"}"#;
        let mut tape = Tape::new();
        let mut walk = Walk::new(tape.parse(line.as_bytes()).unwrap(), false);
        let mut found = Vec::new();
        while let Some(spot) = walk.next_spot() {
            found.push((
                spot.name.map(|n| n.decode().into_owned()).unwrap_or_default(),
                crate::json::decode(spot.raw),
            ));
        }
        let pair = |name: &str, text: &str| (name.to_owned(), text.to_owned());
        assert_eq!(found, [pair("A_PASSWORD", "x"), pair("status", "a status of many words")]);
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
