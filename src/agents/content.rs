//! The pieces of a message's content, and what the API takes of ids and names.

use super::shell;
use crate::json::{Value, write_escaped};
use std::borrow::Cow;
use std::hash::{DefaultHasher, Hash, Hasher};

/// Longest tool name that the APIs take.
const NAME: usize = 128;

/// Most of a block of unknown type that is shown as text, in bytes.
const BLOCK: usize = 2_000;

/// Size of a text in tokens, from the escaped body of its JSON string.
pub(in crate::agents) fn size(body: &[u8]) -> u64 {
    crate::tokens::estimate_escaped(body)
}

fn is_good(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '-'
}

/// The id of a tool call as an API takes it: up to `longest` letters, digits, `_` and `-`. A bad one gets a
/// name that depends on nothing but itself, so that call and result agree without a table of what was
/// renamed.
pub(in crate::agents) fn call_id(id: &str, longest: usize) -> String {
    if (1..=longest).contains(&id.len()) && id.chars().all(is_good) {
        return id.to_owned();
    }
    let hash = |salt: u8| {
        let mut hasher = DefaultHasher::new();
        (salt, id).hash(&mut hasher);
        hasher.finish()
    };
    let start: String = id.chars().take(16).map(|c| if is_good(c) { c } else { '_' }).collect();
    format!("relay_{start}_{:016x}{:016x}", hash(1), hash(2))
}

/// The tool's name as the APIs take it.
pub(in crate::agents) fn tool_name(name: &str) -> String {
    match name.is_empty() {
        true => "tool".to_owned(),
        false => name.chars().take(NAME).map(|c| if is_good(c) { c } else { '_' }).collect(),
    }
}

/// A piece of a message; texts are escaped bodies of JSON strings.
#[derive(Debug, Clone)]
pub(in crate::agents) enum Part<'a> {
    Text(&'a [u8]),
    /// Text of relay's own that stands for a block that cannot be carried.
    Made(Vec<u8>),
    Image(Image<'a>),
    /// A block that the target takes as it is.
    Block(&'a [u8]),
}

/// Where the bytes of an image are.
#[derive(Debug, Clone)]
pub(in crate::agents) enum Image<'a> {
    Data { media_type: Cow<'a, [u8]>, data: Cow<'a, [u8]> },
    Url(&'a [u8]),
}

impl<'a> Image<'a> {
    /// The body of the JSON string that holds its URL, in pieces.
    pub(in crate::agents) fn url(&self) -> [&[u8]; 4] {
        match self {
            Image::Data { media_type, data } => [b"data:", media_type, b";base64,", data],
            Image::Url(url) => [url, b"", b"", b""],
        }
    }

    fn of(block: Value<'a>) -> Option<Image<'a>> {
        let source = block.get("source")?;
        if let Some(data) = source.get("data").and_then(|d| d.text()) {
            let media = source.get("media_type").and_then(|m| m.text());
            let media_type = Cow::Borrowed(media.map_or(&b"image/png"[..], |m| m.raw()));
            return Some(Image::Data { media_type, data: Cow::Borrowed(data.raw()) });
        }
        let url = source.get("url")?.text()?.raw();
        Some(Image::of_data_url(url).unwrap_or(Image::Url(url)))
    }

    /// `data:TYPE;base64,DATA`, with or without the escapes that JSON allows for a slash.
    fn of_data_url(url: &'a [u8]) -> Option<Image<'a>> {
        let rest = url.strip_prefix(b"data:")?;
        let comma = memchr::memchr(b',', rest)?;
        let media_type = rest.get(..comma)?.strip_suffix(b";base64")?;
        let data = rest.get(comma + 1..)?;
        let plain = |raw: &'a [u8]| match memchr::memchr(b'\\', raw) {
            None => Cow::Borrowed(raw),
            Some(_) => Cow::Owned(raw.iter().copied().filter(|b| *b != b'\\').collect()),
        };
        Some(Image::Data { media_type: plain(media_type), data: plain(data) })
    }
}

impl Part<'_> {
    pub(in crate::agents) fn made(text: &str) -> Part<'static> {
        let mut body = Vec::new();
        write_escaped(&mut body, text);
        Part::Made(body)
    }

    /// The body of the JSON string that the part is, or of an image's URL.
    pub(in crate::agents) fn body(&self) -> Cow<'_, [u8]> {
        match self {
            Part::Text(body) | Part::Block(body) => Cow::Borrowed(body),
            Part::Made(body) => Cow::Borrowed(body),
            Part::Image(image) => Cow::Owned(image.url().concat()),
        }
    }

    pub(in crate::agents) fn is_text(&self) -> bool {
        matches!(self, Part::Text(_) | Part::Made(_))
    }

    pub(in crate::agents) fn is_blank(&self) -> bool {
        match self {
            Part::Text(body) => is_blank(body),
            Part::Made(_) | Part::Image(_) | Part::Block(_) => false,
        }
    }
}

/// Whether an escaped text is empty or white space.
fn is_blank(mut body: &[u8]) -> bool {
    loop {
        body = match body {
            [] => return true,
            [b' ', rest @ ..] | [b'\\', b'n' | b't' | b'r', rest @ ..] => rest,
            _ => return false,
        };
    }
}

/// The pieces of a `content`; blocks of which `takes` says so stay as they are.
pub(in crate::agents) fn parts<'a>(
    content: Value<'a>,
    takes: &dyn Fn(&str, Value<'a>) -> bool,
) -> Vec<Part<'a>> {
    if let Some(text) = content.text() {
        return vec![Part::Text(text.raw())];
    }
    if content.is_null() {
        return Vec::new();
    }
    if content.raw().first() != Some(&b'[') {
        return vec![other("unknown content", content)];
    }
    content.items().map(|block| part(block, takes)).collect()
}

fn part<'a>(block: Value<'a>, takes: &dyn Fn(&str, Value<'a>) -> bool) -> Part<'a> {
    if let Some(text) = block.text() {
        return Part::Text(text.raw());
    }
    let kind = block.get("type").and_then(|t| t.text()).map(|t| t.decode()).unwrap_or_default();
    match &*kind {
        "text" => match block.get("text").and_then(|t| t.text()) {
            Some(text) => Part::Text(text.raw()),
            None => other("text block", block),
        },
        "image" => Image::of(block).map_or_else(|| other("image", block), Part::Image),
        kind if takes(kind, block) => Part::Block(block.raw()),
        "document" => document(block),
        "" => other("unknown block", block),
        kind => other(&format!("{} block", shell::one_line(kind)), block),
    }
}

fn document<'a>(block: Value<'a>) -> Part<'a> {
    let source = block.get("source");
    let field = |key: &str| source.and_then(|s| s.get(key)?.text());
    let title = block.get("title").and_then(|t| t.text()).map(|t| shell::one_line(&t.head(200)));
    let name = title.map(|t| format!(" {t:?}")).unwrap_or_default();
    match (field("type").map(|t| t.decode()).as_deref(), field("data"), field("url")) {
        (Some("text"), Some(data), _) => Part::made(&format!("[document{name}]\n{}", data.decode())),
        (_, Some(data), _) => {
            let media = field("media_type").map(|m| shell::one_line(&m.head(100))).unwrap_or_default();
            Part::made(&format!(
                "[document{name} {media}, {} bytes: not carried over]",
                data.raw().len() / 4 * 3
            ))
        }
        (_, None, Some(url)) => {
            Part::made(&format!("[document{name} at {}]", shell::one_line(&url.head(1000))))
        }
        _ => other("document", block),
    }
}

/// Honest words for what has no place in a rollout.
fn other(what: &str, block: Value<'_>) -> Part<'static> {
    let raw = block.raw();
    match std::str::from_utf8(raw) {
        Ok(json) if raw.len() <= BLOCK => Part::made(&format!("[{what} {json}]")),
        _ => Part::made(&format!("[{what} of {} bytes: not carried over]", raw.len())),
    }
}
