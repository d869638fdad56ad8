//! The pieces of a message's content, and what the API takes of ids and names.

use super::handover::Lost;
use super::image::{Limits, of_data, of_url};
use super::{served, shell};
use crate::json::{Text, Value, write_escaped};
use crate::tokens::image;
use std::borrow::Cow;
use std::hash::{DefaultHasher, Hash, Hasher};

/// Longest tool name that the APIs take.
const NAME: usize = 128;

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
    /// Text of relay's own in the place of a block, and what of that block is lost.
    Made(Vec<u8>, Option<Lost>),
    Image(Image<'a>),
    /// A block of another kind that the target takes.
    Block(Cow<'a, [u8]>),
}

/// Where the bytes of an image are.
#[derive(Debug, Clone)]
pub(in crate::agents) enum Image<'a> {
    /// In base64 that needs no escapes.
    Data { media_type: &'static str, data: Cow<'a, [u8]> },
    /// The body of a JSON string.
    Url(Cow<'a, [u8]>),
}

/// See [`Takes::block`].
pub(in crate::agents) type Block = dyn for<'a> Fn(&str, Value<'a>) -> Option<Cow<'a, [u8]>>;

/// What an API takes.
#[derive(Clone, Copy)]
pub(in crate::agents) struct Takes<'t> {
    pub(in crate::agents) images: &'static Limits,
    /// A block of another type in the form that it takes, if it takes it.
    pub(in crate::agents) block: &'t Block,
}

impl<'a> Image<'a> {
    /// The body of the JSON string that holds its URL, in pieces.
    pub(in crate::agents) fn url(&self) -> [&[u8]; 4] {
        match self {
            Image::Data { media_type, data } => [b"data:", media_type.as_bytes(), b";base64,", data],
            Image::Url(url) => [url, b"", b"", b""],
        }
    }

    /// Base64 text that it brings along, in bytes.
    pub(in crate::agents) fn length(&self) -> u64 {
        match self {
            Image::Data { data, .. } => data.len() as u64,
            Image::Url(_) => 0,
        }
    }

    /// Width and height in pixels, 0 where they are not known.
    pub(in crate::agents) fn edges(&self) -> (u32, u32) {
        match self {
            Image::Data { data, .. } => image::size(data).map_or((0, 0), |s| (s.width, s.height)),
            Image::Url(_) => (0, 0),
        }
    }

    /// With bytes of its own.
    fn into_owned(self) -> Image<'static> {
        match self {
            Image::Data { media_type, data } => {
                Image::Data { media_type, data: Cow::Owned(data.into_owned()) }
            }
            Image::Url(url) => Image::Url(Cow::Owned(url.into_owned())),
        }
    }

    fn of(block: Value<'a>, limits: &Limits) -> Result<Image<'a>, String> {
        let Some(source) = block.get("source") else { return Err("without a source".to_owned()) };
        let text = |key: &str| source.get(key).and_then(|t| t.text());
        match (text("data"), text("url")) {
            (Some(data), _) => {
                let media_type = text("media_type").map(|m| shell::one_line(&m.head(100)));
                of_data(&media_type.unwrap_or_default(), data, limits)
            }
            (None, Some(url)) => of_url(url, limits),
            (None, None) => {
                let kind = text("type").map(|t| shell::one_line(&t.head(100))).unwrap_or_default();
                Err(if kind.is_empty() { "without data".to_owned() } else { format!("of source {kind:?}") })
            }
        }
    }
}

/// The text that stands for an image.
pub(in crate::agents) fn missing_image(why: &str) -> String {
    format!("[image {why}: not carried over]")
}

impl Part<'_> {
    /// Text that stands for something whole.
    pub(in crate::agents) fn made(text: &str) -> Part<'static> {
        Part::named(text, None)
    }

    /// Text that stands for something of which this is lost.
    pub(in crate::agents) fn named(text: &str, lost: impl Into<Option<Lost>>) -> Part<'static> {
        let mut body = Vec::new();
        write_escaped(&mut body, text);
        Part::Made(body, lost.into())
    }

    /// The body of the JSON string that the part is, or of an image's URL.
    pub(in crate::agents) fn body(&self) -> Cow<'_, [u8]> {
        match self {
            Part::Text(body) => Cow::Borrowed(body),
            Part::Made(body, _) => Cow::Borrowed(body),
            Part::Block(body) => Cow::Borrowed(body),
            Part::Image(image) => Cow::Owned(image.url().concat()),
        }
    }

    /// With bytes of its own.
    pub(in crate::agents) fn into_owned(self) -> Part<'static> {
        match self {
            Part::Text(body) => Part::Made(body.to_vec(), None),
            Part::Made(body, lost) => Part::Made(body, lost),
            Part::Image(image) => Part::Image(image.into_owned()),
            Part::Block(body) => Part::Block(Cow::Owned(body.into_owned())),
        }
    }

    pub(in crate::agents) fn is_text(&self) -> bool {
        matches!(self, Part::Text(_) | Part::Made(..))
    }

    pub(in crate::agents) fn is_blank(&self) -> bool {
        match self {
            Part::Text(body) => is_blank(body),
            Part::Made(..) | Part::Image(_) | Part::Block(_) => false,
        }
    }
}

/// Whether an escaped text is empty or white space, as Unicode has it: the Messages API refuses such a text.
fn is_blank(mut body: &[u8]) -> bool {
    loop {
        body = match body {
            [] => return true,
            [b' ', rest @ ..] | [b'\\', b'n' | b't' | b'r' | b'f', rest @ ..] => rest,
            [b'\\', b'u', digits @ ..] => {
                let code = digits.get(..4).and_then(|d| std::str::from_utf8(d).ok());
                let code = code.and_then(|d| u32::from_str_radix(d, 16).ok()).and_then(char::from_u32);
                match code {
                    Some(c) if is_space(c) => digits.get(4..).unwrap_or_default(),
                    _ => return false,
                }
            }
            [0..0x80, ..] => return false,
            _ => {
                // no character is longer than four bytes
                let head = body.get(..4.min(body.len())).unwrap_or_default();
                match head.utf8_chunks().next().and_then(|c| c.valid().chars().next()) {
                    Some(c) if is_space(c) => body.get(c.len_utf8()..).unwrap_or_default(),
                    _ => return false,
                }
            }
        };
    }
}

/// White space, with the four separators of ASCII that other languages count to it.
fn is_space(c: char) -> bool {
    c.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&c)
}

/// The pieces of a `content` as an API takes them; blocks that it does not take become text.
pub(in crate::agents) fn parts<'a>(content: Value<'a>, takes: Takes<'_>) -> Vec<Part<'a>> {
    if let Some(text) = content.text() {
        return vec![Part::Text(text.raw())];
    }
    if content.is_null() {
        return Vec::new();
    }
    let mut out = Vec::new();
    if content.raw().first() != Some(&b'[') {
        served::readable("unknown content", content, takes, &mut out);
        return out;
    }
    for block in content.items() {
        part(block, takes, &mut out);
    }
    out
}

/// Adds the pieces of a block.
pub(in crate::agents) fn part<'a>(block: Value<'a>, takes: Takes<'_>, out: &mut Vec<Part<'a>>) {
    if let Some(text) = block.text() {
        return out.push(Part::Text(text.raw()));
    }
    let kind = block.get("type").and_then(|t| t.text()).map(|t| t.decode()).unwrap_or_default();
    let taken = match &*kind {
        "text" | "image" => None,
        kind => (takes.block)(kind, block),
    };
    if let Some(taken) = taken {
        return out.push(Part::Block(taken));
    }
    match &*kind {
        "text" if block.get("text").is_some_and(|t| t.text().is_some()) => {
            let text = block.get("text").and_then(|t| t.text());
            out.extend(text.map(|text| Part::Text(text.raw())));
        }
        "image" => out.push(match Image::of(block, takes.images) {
            Ok(image) => Part::Image(image),
            Err(why) => Part::named(&missing_image(&why), Lost::UnfitImages),
        }),
        "document" => document(block, takes, out),
        "tool_reference" => {
            let name = block.get("tool_name").and_then(|t| t.text()).map(|t| t.decode()).unwrap_or_default();
            out.push(Part::made(&format!("[tool {}]", shell::one_line(&name))));
        }
        "" => served::readable("unknown block", block, takes, out),
        kind => served::readable(&shell::one_line(kind), block, takes, out),
    }
}

/// A document: what is text is carried, what is not is named.
fn document<'a>(block: Value<'a>, takes: Takes<'_>, out: &mut Vec<Part<'a>>) {
    let source = block.get("source");
    let field = |key: &str| source.and_then(|s| s.get(key)?.text());
    let line = |text: Text<'_>, max: usize| shell::one_line(&text.head(max));
    let name = block.get("title").and_then(|t| t.text()).map(|t| format!(" {:?}", line(t, 200)));
    let name = name.unwrap_or_default();
    if let Some(context) = block.get("context").and_then(|c| c.text()).filter(|c| !c.is_blank()) {
        out.push(Part::made(&format!("[about document{name}: {}]", context.decode())));
    }
    let kind = field("type").map(|t| t.decode()).unwrap_or_default();
    let media = field("media_type").map(|m| line(m, 100)).unwrap_or_default();
    let body = source.and_then(|s| s.get("content"));
    match (&*kind, field("data"), field("url"), body) {
        ("content", _, _, Some(body)) => {
            out.push(Part::made(&format!("[document{name}]")));
            match body.text() {
                Some(text) => out.push(Part::Text(text.raw())),
                None => body.items().for_each(|block| part(block, takes, out)),
            }
        }
        ("text", Some(data), _, _) => {
            out.push(Part::made(&format!("[document{name}]\n{}", data.decode())));
        }
        (_, Some(data), _, _) => {
            let decoded = media.starts_with("text/").then(|| decoded(data)).flatten();
            let size = data.raw().len() / 4 * 3;
            out.push(match decoded {
                Some(text) => Part::made(&format!("[document{name}]\n{text}")),
                None => {
                    let text = format!("[document{name} {media}, {size} bytes: not carried over]");
                    Part::named(&text, Lost::Blocks)
                }
            });
        }
        (_, None, Some(url), _) => {
            let text = format!("[document{name} at {}]", line(url, 1000));
            out.push(Part::named(&text, Lost::Blocks));
        }
        _ => served::readable("document", block, takes, out),
    }
}

/// The text that stands in base64.
fn decoded(data: Text<'_>) -> Option<String> {
    use base64::Engine;
    let bytes = base64::engine::general_purpose::STANDARD.decode(data.decode().as_bytes()).ok()?;
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
pub(in crate::agents) mod tests {
    use super::super::image::OPENAI;
    use super::*;
    use crate::json::Tape;
    use serde_json::{Value as Json, json};

    /// The pieces as text, each with what is lost of it.
    pub(in crate::agents) fn told(content: &Json) -> Vec<(String, Option<Lost>)> {
        let line = content.to_string();
        let mut tape = Tape::new();
        let takes = Takes { images: &OPENAI, block: &|_, _| None };
        parts(tape.parse(line.as_bytes()).unwrap(), takes)
            .iter()
            .map(|part| {
                let text = String::from_utf8(part.body().into_owned()).unwrap();
                let text = serde_json::from_str(&format!("\"{text}\"")).unwrap();
                (text, if let Part::Made(_, lost) = part { *lost } else { None })
            })
            .collect()
    }

    #[test]
    fn every_kind_of_white_space_is_blank() {
        for text in ["", " \n", "\u{a0}", "\u{2003}\t", "\u{1f}", "\u{c}\u{b}", "\u{3000}\u{85}"] {
            let body = serde_json::to_string(text).unwrap();
            assert!(is_blank(body.trim_matches('"').as_bytes()), "{text:?}");
        }
        for text in ["a", " \u{e9}", "\u{200b}", "\u{0}", "\u{1f600}"] {
            let body = serde_json::to_string(text).unwrap();
            assert!(!is_blank(body.trim_matches('"').as_bytes()), "{text:?}");
        }
    }

    #[test]
    fn the_text_of_documents_is_carried_and_the_rest_is_named() {
        let source = |source: Json| json!([{"type":"document","title":"a\nb","source":source}]);
        let text = source(json!({"type":"text","media_type":"text/plain","data":"line 1\nline 2"}));
        assert_eq!(told(&text), [("[document \"a b\"]\nline 1\nline 2".to_owned(), None)]);
        let text = source(json!({"type":"base64","media_type":"text/plain","data":"bGluZSAx"}));
        assert_eq!(told(&text), [("[document \"a b\"]\nline 1".to_owned(), None)]);
        let blocks =
            json!([{"type":"text","text":"x"}, {"type":"image","source":{"type":"file","file_id":"f"}}]);
        let got = told(&source(json!({"type":"content","content":blocks})));
        let want = [
            ("[document \"a b\"]", None),
            ("x", None),
            ("[image of source \"file\": not carried over]", Some(Lost::UnfitImages)),
        ];
        assert_eq!(got, want.map(|(text, lost)| (text.to_owned(), lost)));
        let got = told(&source(json!({"type":"content","content":"y"})));
        assert_eq!(got[1], ("y".to_owned(), None));
        for (given, want) in [
            (
                json!({"type":"base64","media_type":"application/pdf","data":"AAAA"}),
                "[document \"a b\" application/pdf, 3 bytes: not carried over]",
            ),
            (json!({"type":"url","url":"https://a.b/c.pdf"}), "[document \"a b\" at https://a.b/c.pdf]"),
        ] {
            assert_eq!(told(&source(given)), [(want.to_owned(), Some(Lost::Blocks))]);
        }
    }
}
