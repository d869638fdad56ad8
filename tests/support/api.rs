//! What the model services refuse, as their public documentation and the answers of theirs that public reports quote
//! say. Nothing here comes from relay: it is the judge of what relay writes.
//!
//! Anthropic (platform.claude.com): Messages API reference, "Images and vision", "PDF support", "How tool use works",
//! "Request size limits". OpenAI (developers.openai.com): Responses API reference and its OpenAPI document, "Images and
//! vision". Where the two pages of a service disagree, the narrower number holds.
use std::collections::{HashMap, HashSet};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

/// What is wrong with a request to `/v1/messages`; nothing when the service takes it.
pub(crate) fn anthropic(body: &Value, length: usize) -> Vec<String> {
    let mut judge = Judge::default();
    if length > 32_000_000 {
        judge.fault("request", "is larger than 32 MB");
    }
    let Some(messages) = body["messages"].as_array() else {
        judge.fault("messages", "is no list");
        return judge.faults;
    };
    if messages.first().is_none_or(|first| first["role"] != "user") {
        judge.fault("messages.0", "the first message is not the user's");
    }
    // neighbours of one role are one turn
    let mut turns: Vec<(&str, Vec<&Value>)> = Vec::new();
    for (n, message) in messages.iter().enumerate() {
        let place = format!("messages.{n}");
        let role = message["role"].as_str().unwrap_or_default();
        if !["user", "assistant", "system"].contains(&role) {
            judge.fault(&place, &format!("no role {role:?}"));
        }
        // Claude Code 2.1.332 puts these in by itself, even empty ones
        if role == "system" {
            continue;
        }
        let blocks: Vec<&Value> = match &message["content"] {
            Value::String(text) => {
                if text.trim().is_empty() {
                    judge.fault(&place, "all messages must have non-empty content");
                }
                Vec::new()
            }
            Value::Array(blocks) if !blocks.is_empty() => blocks.iter().collect(),
            _ => {
                judge.fault(&place, "all messages must have non-empty content");
                Vec::new()
            }
        };
        for (m, block) in blocks.iter().enumerate() {
            judge.block(&format!("{place}.content.{m}"), role, block);
        }
        match turns.last_mut() {
            Some((last, all)) if *last == role => all.extend(blocks),
            _ => turns.push((role, blocks)),
        }
    }
    judge.turns(&turns);
    judge.last(messages);
    judge.pictures(20, 2000, 100);
    judge.faults
}

/// What is wrong with a request to `/v1/responses`; nothing when the service takes it.
pub(crate) fn openai(body: &Value, length: usize) -> Vec<String> {
    let mut judge = Judge::default();
    if length > 50_000_000 {
        judge.fault("request", "is larger than 50 MB");
    }
    let Some(items) = body["input"].as_array() else {
        judge.fault("input", "is no list");
        return judge.faults;
    };
    // kind of output that each open call waits for
    let mut open: HashMap<&str, &str> = HashMap::new();
    let mut called = HashSet::new();
    for (n, item) in items.iter().enumerate() {
        let place = format!("input[{n}]");
        let kind = item["type"].as_str().unwrap_or("message");
        let id = item["call_id"].as_str().unwrap_or_default();
        let paired = kind.ends_with("_output") || CALLS.iter().any(|(call, _)| *call == kind);
        if paired && !(1..=64).contains(&id.len()) {
            judge.fault(&place, &format!("call_id of {} letters", id.len()));
        }
        if let Some((_, output)) = CALLS.iter().find(|(call, _)| *call == kind) {
            if !called.insert(id) {
                judge.fault(&place, &format!("duplicate call_id {id}"));
            }
            open.insert(id, output);
        }
        match kind {
            "message" => judge.message(&place, item),
            "function_call" => {
                judge.name(&place, &item["name"]);
                let object = |text: &str| serde_json::from_str::<Value>(text).is_ok_and(|v| v.is_object());
                if !item["arguments"].as_str().is_some_and(object) {
                    judge.fault(&place, "arguments are no JSON object in a string");
                }
            }
            "custom_tool_call" => {
                judge.name(&place, &item["name"]);
                if !item["input"].is_string() {
                    judge.fault(&place, "input is no string");
                }
            }
            "function_call_output" | "custom_tool_call_output" | "local_shell_call_output" => {
                if open.remove(id) != Some(kind) {
                    judge.fault(&place, &format!("no tool call found for {kind} {id}"));
                }
                judge.parts(&place, &item["output"], &["input_text", "input_image", "input_file"]);
            }
            "tool_search_output" => drop(open.remove(id)),
            "local_shell_call"
            | "tool_search_call"
            | "reasoning"
            | "web_search_call"
            | "image_generation_call"
            | "compaction" => {}
            _ => judge.fault(&place, &format!("no item of type {kind:?}")),
        }
    }
    let mut unanswered: Vec<&str> = open.into_keys().collect();
    unanswered.sort_unstable();
    for id in unanswered {
        judge.fault("input", &format!("no tool output found for {id}"));
    }
    judge.pictures(usize::MAX, u32::MAX, 500);
    judge.faults
}

/// Items that wait for an output, and the type of it.
const CALLS: &[(&str, &str)] = &[
    ("function_call", "function_call_output"),
    ("custom_tool_call", "custom_tool_call_output"),
    ("local_shell_call", "local_shell_call_output"),
];

#[derive(Default)]
struct Judge {
    faults: Vec<String>,
    /// Width and height of each picture; 0 where it lies elsewhere.
    pictures: Vec<(u32, u32)>,
}

impl Judge {
    fn fault(&mut self, place: &str, what: &str) {
        self.faults.push(format!("{place}: {what}"));
    }

    fn keys(&mut self, place: &str, value: &Value, known: &[&str]) {
        for key in value.as_object().into_iter().flat_map(|o| o.keys()) {
            if !known.contains(&key.as_str()) {
                self.fault(place, &format!("{key}: extra inputs are not permitted"));
            }
        }
    }

    fn name(&mut self, place: &str, name: &Value) {
        let good = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        let name = name.as_str().unwrap_or_default();
        if !(1..=128).contains(&name.len()) || !name.chars().all(good) {
            self.fault(place, &format!("tool name {name:?}"));
        }
    }

    fn pictures(&mut self, many: usize, edge: u32, count: usize) {
        let all = self.pictures.len();
        if all > count {
            self.fault("request", &format!("{all} images"));
        }
        let big = |(width, height): &(u32, u32)| *width.max(height) > edge;
        if all > many && self.pictures.iter().any(big) {
            self.fault("request", &format!("an image of more than {edge} pixels among {all}"));
        }
    }
}

/// The Messages API.
impl Judge {
    fn block(&mut self, place: &str, role: &str, block: &Value) {
        let kind = block["type"].as_str().unwrap_or_default();
        match (role, kind) {
            (_, "text") => self.text(place, block),
            ("user", "image") => self.image(place, block),
            ("user", "document") => self.document(place, block),
            ("user", "tool_result") => self.tool_result(place, block),
            ("user", "search_result") => {}
            ("assistant", "tool_use") => {
                self.keys(place, block, &["type", "id", "name", "input", "cache_control", "caller"]);
                self.id(place, &block["id"]);
                self.name(place, &block["name"]);
                if !block["input"].is_object() {
                    self.fault(place, "input: should be a valid dictionary");
                }
            }
            // its own server made these, and knows them again
            ("assistant", "thinking" | "redacted_thinking" | "server_tool_use") => {}
            ("assistant", kind) if kind.ends_with("_tool_result") => {}
            _ => self.fault(place, &format!("no block of type {kind:?} from {role}")),
        }
    }

    fn text(&mut self, place: &str, block: &Value) {
        self.keys(place, block, &["type", "text", "cache_control", "citations"]);
        if block["text"].as_str().is_none_or(|text| text.trim().is_empty()) {
            self.fault(place, "text content blocks must contain non-whitespace text");
        }
    }

    fn id(&mut self, place: &str, id: &Value) {
        let good = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        let id = id.as_str().unwrap_or_default();
        if id.is_empty() || !id.chars().all(good) {
            self.fault(place, &format!("id {id:?}: string should match pattern '^[a-zA-Z0-9_-]+$'"));
        }
    }

    fn image(&mut self, place: &str, block: &Value) {
        self.keys(place, block, &["type", "source", "cache_control"]);
        let source = &block["source"];
        match source["type"].as_str() {
            Some("base64") => {
                self.keys(place, source, &["type", "media_type", "data"]);
                let data = source["data"].as_str().unwrap_or_default();
                if data.len() > 5 << 20 {
                    self.fault(
                        place,
                        &format!("image exceeds 5 MB maximum: {} bytes > 5242880 bytes", data.len()),
                    );
                }
                let media_type = source["media_type"].as_str().unwrap_or_default();
                self.picture(place, media_type, data, 8000);
            }
            Some("url") => {
                self.keys(place, source, &["type", "url"]);
                self.pictures.push((0, 0));
                if !source["url"].as_str().is_some_and(|url| url.starts_with("https://")) {
                    self.fault(place, "only HTTPS URLs are supported");
                }
            }
            other => self.fault(place, &format!("no image source {other:?}")),
        }
    }

    fn picture(&mut self, place: &str, media_type: &str, data: &str, edge: u32) {
        if data.is_empty() {
            return self.fault(place, "image cannot be empty");
        }
        let Ok(bytes) = STANDARD.decode(data) else { return self.fault(place, "invalid base64 data") };
        let Some(found) = Picture::of(&bytes) else { return self.fault(place, "could not process image") };
        if found.media_type != media_type {
            let media = found.media_type;
            self.fault(place, &format!("declared as {media_type}, but the image appears to be {media}"));
        }
        if !found.whole {
            self.fault(place, "could not process image: it is cut");
        }
        if found.width.max(found.height) > edge {
            self.fault(place, &format!("image dimensions exceed max allowed size: {edge} pixels"));
        }
        self.pictures.push((found.width, found.height));
    }

    fn document(&mut self, place: &str, block: &Value) {
        self.keys(place, block, &["type", "source", "title", "context", "citations", "cache_control"]);
        for key in ["title", "context"] {
            let value = &block[key];
            if !value.is_null() && value.as_str().is_none_or(str::is_empty) {
                self.fault(place, &format!("{key}: string should have at least 1 character"));
            }
        }
        let source = &block["source"];
        let data = source["data"].as_str().unwrap_or_default();
        match (source["type"].as_str(), source["media_type"].as_str()) {
            (Some("base64"), Some("application/pdf")) => {
                if !STANDARD.decode(data).is_ok_and(|bytes| bytes.starts_with(b"%PDF-")) {
                    self.fault(place, "the PDF specified was not valid");
                }
            }
            (Some("text"), Some("text/plain")) => {
                if data.trim().is_empty() {
                    self.fault(place, "the document is empty");
                }
            }
            (Some("url"), _) => {
                if !source["url"].as_str().is_some_and(|url| url.starts_with("https://")) {
                    self.fault(place, "only HTTPS URLs are supported");
                }
            }
            (kind, media_type) => {
                self.fault(place, &format!("no document source {kind:?} of {media_type:?}"));
            }
        }
    }

    fn tool_result(&mut self, place: &str, block: &Value) {
        self.keys(place, block, &["type", "tool_use_id", "content", "is_error", "cache_control"]);
        self.id(place, &block["tool_use_id"]);
        let failed = block["is_error"] == true;
        let parts = match &block["content"] {
            Value::Array(parts) => parts.as_slice(),
            Value::String(text) if failed && text.is_empty() => {
                return self.fault(place, "content cannot be empty if `is_error` is true");
            }
            Value::String(_) | Value::Null => &[],
            _ => return self.fault(place, "content is neither text nor blocks"),
        };
        for (n, part) in parts.iter().enumerate() {
            let place = format!("{place}.content.{n}");
            match part["type"].as_str().unwrap_or_default() {
                "text" => self.text(&place, part),
                _ if failed => self.fault(&place, "all content must be type text if is_error is true"),
                "image" => self.image(&place, part),
                "document" => self.document(&place, part),
                "search_result" | "tool_reference" => {}
                kind => self.fault(&place, &format!("no block of type {kind:?} in a result")),
            }
        }
    }

    /// Calls and results stand side by side.
    fn turns(&mut self, turns: &[(&str, Vec<&Value>)]) {
        let of = |blocks: &[&Value], kind: &str, key: &str| -> Vec<String> {
            let all = blocks.iter().filter(|b| b["type"] == kind);
            all.map(|b| b[key].as_str().unwrap_or_default().to_owned()).collect()
        };
        let mut ids = HashSet::new();
        let mut waiting: Vec<String> = Vec::new();
        for (n, (role, blocks)) in turns.iter().enumerate() {
            let place = format!("turn {n}");
            let results = of(blocks, "tool_result", "tool_use_id");
            let ahead = blocks.iter().take_while(|b| b["type"] == "tool_result").count();
            if ahead < results.len() {
                self.fault(&place, "tool_result blocks must come first");
            }
            for id in &waiting {
                match results.iter().filter(|r| *r == id).count() {
                    0 => self.fault(&place, &format!("`tool_use` without `tool_result` right after: {id}")),
                    1 => {}
                    _ => self.fault(&place, &format!("each tool_use must have a single result: {id}")),
                }
            }
            for id in results.iter().filter(|id| !waiting.contains(id)) {
                self.fault(&place, &format!("unexpected `tool_use_id` in `tool_result`: {id}"));
            }
            waiting = if *role == "assistant" { of(blocks, "tool_use", "id") } else { Vec::new() };
            for id in &waiting {
                if !ids.insert(id.clone()) {
                    self.fault(&place, &format!("`tool_use` ids must be unique: {id}"));
                }
            }
        }
        for id in waiting {
            self.fault("last turn", &format!("`tool_use` without `tool_result` right after: {id}"));
        }
    }

    fn last(&mut self, messages: &[Value]) {
        let Some(last) = messages.last().filter(|last| last["role"] == "assistant") else { return };
        let content = &last["content"];
        let text = content.as_str().or_else(|| content.as_array()?.last()?["text"].as_str());
        if text.is_some_and(|text| text.ends_with(char::is_whitespace)) {
            self.fault("messages", "final assistant content cannot end with trailing whitespace");
        }
    }
}

/// The Responses API.
impl Judge {
    fn message(&mut self, place: &str, item: &Value) {
        let known: &[&str] = match item["role"].as_str() {
            Some("user") => &["input_text", "input_image", "input_file"],
            Some("system" | "developer") => &["input_text"],
            Some("assistant") => &["output_text", "refusal"],
            other => return self.fault(place, &format!("no role {other:?}")),
        };
        self.parts(place, &item["content"], known);
    }

    fn parts(&mut self, place: &str, content: &Value, known: &[&str]) {
        if let Some(text) = content.as_str() {
            return self.length(place, text, 10 << 20);
        }
        let Some(parts) = content.as_array() else { return self.fault(place, "neither text nor parts") };
        for (n, part) in parts.iter().enumerate() {
            let place = format!("{place}.content[{n}]");
            let kind = part["type"].as_str().unwrap_or_default();
            if !known.contains(&kind) {
                self.fault(&place, &format!("invalid value {kind:?}: supported are {known:?}"));
                continue;
            }
            match kind {
                "input_image" => self.input_image(&place, &part["image_url"]),
                "input_file" => {}
                _ => match part["text"].as_str() {
                    Some(text) => self.length(&place, text, 10 << 20),
                    None => self.fault(&place, "no text"),
                },
            }
        }
    }

    fn length(&mut self, place: &str, text: &str, most: usize) {
        if text.chars().count() > most {
            self.fault(place, &format!("string too long: expected a string with maximum length {most}"));
        }
    }

    fn input_image(&mut self, place: &str, url: &Value) {
        let url = url.as_str().unwrap_or_default();
        self.length(place, url, 20 << 20);
        if url.starts_with("https://") || url.starts_with("http://") {
            return self.pictures.push((0, 0));
        }
        let data = url.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,"));
        let Some((media_type, data)) = data else {
            return self.fault(place, "expected a valid URL or a data URL in base64");
        };
        self.picture(place, media_type, data, u32::MAX);
        let animated = || STANDARD.decode(data).is_ok_and(|bytes| frames(&bytes) > 1);
        if media_type == "image/gif" && animated() {
            self.fault(place, "an animated GIF");
        }
    }
}

/// What the bytes of a picture say.
struct Picture {
    media_type: &'static str,
    width: u32,
    height: u32,
    /// Whether its end is there.
    whole: bool,
}

impl Picture {
    fn of(bytes: &[u8]) -> Option<Picture> {
        let big = |at: usize| Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
        let short = |at: usize| Some(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?));
        let small = |at: usize| Some(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?));
        let found =
            |media_type, width: u32, height: u32, whole| Some(Picture { media_type, width, height, whole });
        if bytes.starts_with(b"\x89PNG\r\n\x1a\n") {
            let whole = bytes.windows(4).any(|four| four == b"IEND");
            return found("image/png", big(16)?, big(20)?, whole);
        }
        if bytes.starts_with(b"GIF87a") || bytes.starts_with(b"GIF89a") {
            return found("image/gif", small(6)?.into(), small(8)?.into(), bytes.ends_with(b";"));
        }
        if bytes.starts_with(b"\xff\xd8\xff") {
            let whole = bytes.windows(2).any(|two| two == b"\xff\xd9");
            let mut at = 2;
            while let (Some(0xff), Some(kind)) = (bytes.get(at), bytes.get(at + 1)) {
                if (0xc0..=0xcf).contains(kind) && ![0xc4, 0xc8, 0xcc].contains(kind) {
                    return found("image/jpeg", short(at + 7)?.into(), short(at + 5)?.into(), whole);
                }
                at += 2 + usize::from(short(at + 2)?);
            }
            return None;
        }
        if bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WEBP") {
            let length = u32::from_le_bytes(bytes.get(4..8)?.try_into().ok()?) as usize;
            let whole = bytes.len() + 1 >= length + 8;
            let (width, height) = match bytes.get(12..16)? {
                b"VP8L" => {
                    let bits = u32::from_le_bytes(bytes.get(21..25)?.try_into().ok()?);
                    ((bits & 0x3fff) + 1, (bits >> 14 & 0x3fff) + 1)
                }
                b"VP8 " => (u32::from(small(26)? & 0x3fff), u32::from(small(28)? & 0x3fff)),
                _ => (u32::from(small(24)?) + 1, u32::from(small(27)?) + 1),
            };
            return found("image/webp", width, height, whole);
        }
        None
    }
}

/// How many pictures a GIF has: each begins with a control block of its own.
fn frames(bytes: &[u8]) -> usize {
    bytes.windows(3).filter(|three| *three == b"\x21\xf9\x04").count()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use serde_json::json;
    use std::io::Write as _;

    /// A black PNG of this size, with so many bytes of no meaning in it.
    pub(crate) fn png(width: u32, height: u32, more: usize) -> String {
        let mut head = width.to_be_bytes().to_vec();
        head.extend(height.to_be_bytes());
        head.extend([8, 0, 0, 0, 0]);
        let mut pixels = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
        pixels.write_all(&vec![0; (width as usize + 1) * height as usize]).unwrap();
        let mut bytes = b"\x89PNG\r\n\x1a\n".to_vec();
        let more = vec![b'x'; more];
        for (name, data) in
            [(b"IHDR", head), (b"reLy", more), (b"IDAT", pixels.finish().unwrap()), (b"IEND", Vec::new())]
        {
            bytes.extend((data.len() as u32).to_be_bytes());
            let mut sum = flate2::Crc::new();
            for part in [name.as_slice(), &data] {
                sum.update(part);
                bytes.extend(part);
            }
            bytes.extend(sum.sum().to_be_bytes());
        }
        STANDARD.encode(bytes)
    }

    /// A GIF of one letter's size with so many pictures.
    pub(crate) fn gif(pictures: usize) -> String {
        let mut bytes = b"GIF89a\x01\0\x01\0\x80\0\0\0\0\0\xff\xff\xff".to_vec();
        for _ in 0..pictures {
            bytes.extend(b"!\xf9\x04\x01\0\0\0\0,\0\0\0\0\x01\0\x01\0\0\x02\x02D\x01\0");
        }
        bytes.push(b';');
        STANDARD.encode(bytes)
    }

    fn user(content: Value) -> Value {
        json!({"role": "user", "content": content})
    }

    fn assistant(content: Value) -> Value {
        json!({"role": "assistant", "content": content})
    }

    fn tool_use(id: &str) -> Value {
        json!({"type": "tool_use", "id": id, "name": "Bash", "input": {"command": "ls"}})
    }

    fn tool_result(id: &str) -> Value {
        json!({"type": "tool_result", "tool_use_id": id, "content": "7"})
    }

    fn picture(media_type: &str, data: &str) -> Value {
        json!({"type": "image", "source": {"type": "base64", "media_type": media_type, "data": data}})
    }

    /// The first fault of these messages.
    fn told(messages: Value) -> String {
        anthropic(&json!({"messages": messages}), 100).into_iter().next().unwrap_or_default()
    }

    #[test]
    fn anthropic_takes_what_its_clients_send() {
        let messages = json!([
            user(json!("hello")),
            assistant(json!([{"type": "text", "text": "a"}, tool_use("t1"), tool_use("t2")])),
            user(json!([tool_result("t1")])),
            user(
                json!([tool_result("t2"), {"type": "text", "text": "and"}, picture("image/png", &png(8000, 1, 0))])
            ),
            assistant(json!([tool_use("t3")])),
            user(json!([{"type": "tool_result", "tool_use_id": "t3", "is_error": true, "content": "no"}])),
            user(json!([
                {"type": "image", "source": {"type": "url", "url": "https://a.b/c.png"}},
                {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "x"}},
                {"type": "document", "source": {"type": "base64", "media_type": "application/pdf",
                    "data": STANDARD.encode("%PDF-1.7")}},
                picture("image/gif", &gif(2))
            ])),
        ]);
        assert_eq!(anthropic(&json!({"messages": messages}), 100), [""; 0]);
    }

    #[test]
    fn anthropic_refuses_content_by_its_bytes_sizes_and_schemes() {
        let one = |block: Value| told(json!([user(json!([block]))]));
        let good = png(4, 4, 0);
        let bmp = STANDARD.encode("BM\x01\0\0\0");
        for (media_type, data, want) in [
            ("image/jpeg", good.as_str(), "appears to be image/png"),
            ("image/svg+xml", &bmp, "could not process"),
            ("image/png", "", "cannot be empty"),
            ("image/png", "[omitted]", "invalid base64"),
            ("image/png", &good[..84], "cut"),
            ("image/png", &png(8001, 1, 0), "8000 pixels"),
            ("image/png", &png(4, 4, 4 << 20), "5 MB maximum"),
        ] {
            let told = one(picture(media_type, data));
            assert!(told.contains(want), "{want}: {told}");
        }
        for url in ["http://a.b/c.png", "file:///a.png", "data:image/png;base64,AAAA", "[omitted]", ""] {
            let block = json!({"type": "image", "source": {"type": "url", "url": url}});
            assert!(one(block).contains("HTTPS"), "{url}");
        }
        let document = |source: Value| one(json!({"type": "document", "source": source}));
        let pdf = |data: &str| json!({"type": "base64", "media_type": "application/pdf", "data": data});
        assert!(document(pdf("AAAA")).contains("PDF"));
        let odd = document(json!({"type": "base64", "media_type": "text/plain", "data": "YQ=="}));
        assert!(odd.contains("no document source"));
        let blank = json!({"type": "text", "media_type": "text/plain", "data": " "});
        assert!(document(blank).contains("empty"));
        for kind in ["audio", "input_image", "tool_reference", "web_search_tool_result", ""] {
            assert!(one(json!({"type": kind})).contains("no block"), "{kind}");
        }
        assert!(one(json!({"type": "text", "text": "a", "relay": 1})).contains("extra inputs"));
        let many =
            |edge: u32, n: usize| told(json!([user(json!(vec![picture("image/png", &png(edge, 1, 0)); n]))]));
        assert_eq!(many(2001, 20), "");
        assert!(many(2001, 21).contains("2000 pixels"));
        assert_eq!(many(2000, 100), "");
        assert!(many(1, 101).contains("101 images"));
        let large = anthropic(&json!({"messages": [user(json!("a"))]}), 32_000_001);
        assert_eq!(large, ["request: is larger than 32 MB"]);
    }

    #[test]
    fn anthropic_refuses_broken_pairs_roles_and_texts() {
        let failed = |content: Value| {
            json!([
                user(json!("a")),
                assistant(json!([tool_use("t")])),
                user(
                    json!([{"type": "tool_result", "tool_use_id": "t", "is_error": true, "content": content}])
                )
            ])
        };
        let text = json!({"type": "text", "text": "b"});
        let named = |id: &str, name: &str, input: Value| {
            let call = json!({"type": "tool_use", "id": id, "name": name, "input": input});
            json!([user(json!("a")), assistant(json!([call])), user(json!([tool_result(id)]))])
        };
        for (messages, want) in [
            (json!([]), "first message"),
            (json!([assistant(json!("a"))]), "first message"),
            (json!([user(json!("a")), {"role": "tool", "content": "b"}]), "no role"),
            (json!([user(json!(""))]), "non-empty content"),
            (json!([user(json!([]))]), "non-empty content"),
            (json!([user(json!([{"type": "text", "text": "\u{a0}\n"}]))]), "non-whitespace"),
            (
                json!([user(json!("a")), assistant(json!([picture("image/png", &png(1, 1, 0))]))]),
                "from assistant",
            ),
            (json!([user(json!([tool_use("t")]))]), "from user"),
            (json!([user(json!("a")), assistant(json!([tool_use("t")]))]), "without `tool_result`"),
            (
                json!([user(json!("a")), assistant(json!([tool_use("t")])), user(json!("b"))]),
                "without `tool_result`",
            ),
            (
                json!([
                    user(json!("a")),
                    assistant(json!([tool_use("t")])),
                    user(json!([text, tool_result("t")]))
                ]),
                "must come first",
            ),
            (
                json!([
                    user(json!("a")),
                    assistant(json!([tool_use("t")])),
                    user(json!([tool_result("t"), tool_result("t")]))
                ]),
                "single result",
            ),
            (json!([user(json!([tool_result("t")]))]), "unexpected `tool_use_id`"),
            (
                json!([
                    user(json!("a")),
                    assistant(json!([tool_use("t")])),
                    user(json!([tool_result("t")])),
                    assistant(json!([tool_use("t")])),
                    user(json!([tool_result("t")]))
                ]),
                "must be unique",
            ),
            (named("a:b", "Bash", json!({})), "match pattern"),
            (named("", "Bash", json!({})), "match pattern"),
            (named("t", "a.b", json!({})), "tool name"),
            (named("t", &"a".repeat(129), json!({})), "tool name"),
            (named("t", "Bash", json!("ls")), "valid dictionary"),
            (failed(json!("")), "cannot be empty"),
            (failed(json!([picture("image/png", &png(1, 1, 0))])), "must be type text"),
            (json!([user(json!("a")), assistant(json!("b "))]), "trailing whitespace"),
        ] {
            let told = told(messages.clone());
            assert!(told.contains(want), "{want}: {told:?} of {messages}");
        }
    }

    fn items(items: Value) -> String {
        openai(&json!({"input": items}), 100).into_iter().next().unwrap_or_default()
    }

    fn said(role: &str, part: Value) -> Value {
        json!({"type": "message", "role": role, "content": [part]})
    }

    fn call(id: &str, name: &str, arguments: &str) -> Value {
        json!({"type": "function_call", "call_id": id, "name": name, "arguments": arguments})
    }

    fn output(id: &str) -> Value {
        json!({"type": "function_call_output", "call_id": id, "output": "7"})
    }

    fn shown(url: &str) -> Value {
        json!({"type": "input_image", "image_url": url})
    }

    #[test]
    fn openai_takes_what_its_clients_send() {
        let url = format!("data:image/png;base64,{}", png(9000, 2, 0));
        let told = items(json!([
            said("developer", json!({"type": "input_text", "text": "rules"})),
            said("user", json!({"type": "input_text", "text": ""})),
            said("user", shown(&url)),
            said("user", shown("http://a.b/c.png")),
            said("assistant", json!({"type": "output_text", "text": "a"})),
            call("a", "exec_command", "{}"),
            {"type": "custom_tool_call", "call_id": "b", "name": "apply_patch", "input": "*** Begin Patch"},
            {"type": "custom_tool_call_output", "call_id": "b", "output": "ok"},
            {"type": "function_call_output", "call_id": "a", "output": [shown("https://a.b/c.png")]},
        ]));
        assert_eq!(told, "");
    }

    #[test]
    fn openai_refuses_what_its_documentation_excludes() {
        let data = |media_type: &str, data: &str| {
            json!([said("user", shown(&format!("data:{media_type};base64,{data}")))])
        };
        let good = png(4, 4, 0);
        for (input, want) in [
            (data("image/jpeg", &good), "appears to be image/png"),
            (data("image/svg+xml", "PHN2Zy8+"), "could not process"),
            (data("image/png", ""), "cannot be empty"),
            (data("image/png", "[omitted]"), "invalid base64"),
            (data("image/png", &good[..84]), "cut"),
            (data("image/gif", &gif(2)), "animated"),
            (data("image/png", &png(4, 4, 15 << 20)), "20971520"),
            (json!([said("user", shown("file:///a.png"))]), "valid URL"),
            (json!([said("user", shown(""))]), "valid URL"),
            (json!([said("assistant", shown("https://a.b/c.png"))]), "invalid value"),
            (json!([said("user", json!({"type": "document"}))]), "invalid value"),
            (json!([said("user", json!({"type": "input_audio"}))]), "invalid value"),
            (
                json!([said("user", json!({"type": "input_text", "text": "a".repeat(10_485_761)}))]),
                "10485760",
            ),
            (json!([said("tool", json!({"type": "input_text", "text": "a"}))]), "no role"),
            (json!([{"type": "tool_use"}]), "no item"),
            (json!([call("a", "x", "{}")]), "no tool output found"),
            (json!([output("a")]), "no tool call found"),
            (json!([output("a"), call("a", "x", "{}")]), "no tool call found"),
            (
                json!([call("a", "x", "{}"), {"type": "custom_tool_call_output", "call_id": "a", "output": ""}]),
                "no tool call found",
            ),
            (json!([call("a", "x", "{}"), output("a"), output("a")]), "no tool call found"),
            (json!([call("a", "x", "{}"), output("a"), call("a", "x", "{}"), output("a")]), "duplicate"),
            (json!([call("", "x", "{}"), output("")]), "call_id of 0"),
            (json!([call(&"a".repeat(65), "x", "{}")]), "call_id of 65"),
            (json!([call("a", "a b", "{}"), output("a")]), "tool name"),
            (json!([call("a", "", "{}"), output("a")]), "tool name"),
            (json!([call("a", "x", "ls"), output("a")]), "no JSON object"),
        ] {
            let told = items(input);
            assert!(told.contains(want), "{want}: {told:?}");
        }
        let many = json!({"input": vec![said("user", shown("https://a.b/c.png")); 501]});
        assert_eq!(openai(&many, 100), ["request: 501 images"]);
        assert_eq!(openai(&json!({"input": []}), 50_000_001), ["request: is larger than 50 MB"]);
    }
}
