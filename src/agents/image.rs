//! Which images an API takes, told by their bytes before they are written. A session with one that it refuses
//! cannot go on: the client sends it again with every turn (anthropics/claude-code#13480, #39146, #53228).

use super::content::Image;
use crate::json::Text;
use crate::tokens::image::{Base64, size};
use std::borrow::Cow;

/// What an API takes of images.
#[derive(Debug)]
pub(in crate::agents) struct Limits {
    /// Most base64 text of one image, in bytes.
    pub(in crate::agents) base64: u64,
    /// Longest edge, in pixels.
    pub(in crate::agents) edge: u32,
    /// Longest edge when there are more than so many images.
    pub(in crate::agents) many: (usize, u32),
    /// Most images of a request.
    pub(in crate::agents) count: usize,
    /// Most base64 text of all images of a request, in bytes.
    pub(in crate::agents) total: u64,
    /// Whether an image may lie at a plain `http:` address.
    pub(in crate::agents) plain_http: bool,
    /// Whether a GIF may have several pictures.
    pub(in crate::agents) animated: bool,
}

/// The Messages API (platform.claude.com, vision and request size limits): 8000 pixels, 2000 beyond 20 images, 100
/// images, 32 MB a request, of which a quarter is left to everything else. It answers over 5 MB of base64 with an
/// error that names both numbers ("6500712 bytes > 5242880 bytes"), and "Only HTTPS URLs are supported."
/// (BrokkAi/brokk-app#2269).
pub(in crate::agents) static ANTHROPIC: Limits = Limits {
    base64: 5 << 20,
    edge: 8000,
    many: (20, 2000),
    count: 100,
    total: 24_000_000,
    plain_http: false,
    animated: true,
};

/// The Responses API (guide "Images and vision"): 500 images and 50 MB a request, no animated GIF, no limit of
/// pixels. An `image_url` has at most 20971520 letters in its OpenAPI document; 64 are left to what stands before
/// the data, and a tenth of the request to everything else.
pub(in crate::agents) static OPENAI: Limits = Limits {
    base64: (20 << 20) - 64,
    edge: u32::MAX,
    many: (usize::MAX, u32::MAX),
    count: 500,
    total: 45_000_000,
    plain_http: true,
    animated: false,
};

/// An image in base64 as the API takes it, or why it does not.
pub(in crate::agents) fn of_data<'a>(
    media_type: &str,
    data: Text<'a>,
    limits: &Limits,
) -> Result<Image<'a>, String> {
    let data = match data.plain() {
        Some(raw) => base64(raw),
        None => base64(data.decode().as_bytes()).map(|text| Cow::Owned(text.into_owned())),
    };
    let named = || if media_type.is_empty() { "data".to_owned() } else { media_type.to_owned() };
    let Some(data) = data else { return Err(format!("{}, damaged base64", named())) };
    if data.is_empty() {
        return Err(format!("{}, empty", named()));
    }
    let length = data.len() as u64;
    let Some(kind) = Kind::of(Base64(&data)) else {
        return Err(format!("{}, {} bytes", named(), length / 4 * 3));
    };
    let media_type = kind.media_type();
    let bytes = || format!("{media_type}, {} bytes", length / 4 * 3);
    if kind.is_cut(Base64(&data)) {
        return Err(format!("{}, cut", bytes()));
    }
    if length > limits.base64 {
        return Err(bytes());
    }
    let edges = size(&data);
    if let Some(size) = edges.filter(|s| s.width.max(s.height) > limits.edge) {
        return Err(format!("{media_type}, {} by {} pixels", size.width, size.height));
    }
    if !limits.animated && kind == Kind::Gif && Kind::frames(Base64(&data)).is_some_and(|n| n > 1) {
        return Err(format!("{}, animated", bytes()));
    }
    Ok(Image::Data { media_type, data })
}

/// An image elsewhere, or one in a `data:` URL.
pub(in crate::agents) fn of_url<'a>(url: Text<'a>, limits: &Limits) -> Result<Image<'a>, String> {
    let start = url.head(256);
    let scheme = start.get(..8).unwrap_or(&start).to_ascii_lowercase();
    if scheme.starts_with("https://") || limits.plain_http && scheme.starts_with("http://") {
        return match url.decode().contains(|c: char| c.is_whitespace() || c.is_control()) {
            true => Err(short(&start)),
            false => Ok(Image::Url(Cow::Borrowed(url.raw()))),
        };
    }
    if !scheme.starts_with("data:") {
        return Err(short(&start));
    }
    let Some((head, _)) = start.split_once(',') else { return Err("data, empty".to_owned()) };
    let mut words = head.get(5..).unwrap_or_default().split(';').map(str::trim);
    let media_type = super::shell::one_line(words.next().unwrap_or_default());
    if !words.any(|word| word.eq_ignore_ascii_case("base64")) {
        return Err(format!("{media_type}, not in base64"));
    }
    let comma = memchr::memchr(b',', url.raw()).map_or(url.raw().len(), |at| at + 1);
    of_data(&media_type, url.rest(comma), limits)
}

/// A place of an image that is no URL, for people.
fn short(place: &str) -> String {
    let line = super::shell::one_line(place.trim());
    let line = line.trim_matches(|c| c == '[' || c == ']');
    match line.char_indices().nth(80) {
        _ if line.is_empty() => "empty".to_owned(),
        Some((at, _)) => format!("{}…", line.get(..at).unwrap_or_default()),
        None => line.to_owned(),
    }
}

/// Base64 as RFC 4648 has it: with padding, without line breaks, in the usual alphabet. `None`: it is none.
fn base64(text: &[u8]) -> Option<Cow<'_, [u8]>> {
    let body = text.strip_suffix(b"==").or_else(|| text.strip_suffix(b"=")).unwrap_or(text);
    let usual = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/');
    if text.len().is_multiple_of(4) && body.iter().all(usual) {
        return Some(Cow::Borrowed(text));
    }
    let mut out = Vec::with_capacity(text.len() + 2);
    for byte in text.iter().filter(|b| !b.is_ascii_whitespace()) {
        out.push(match byte {
            b'-' => b'+',
            b'_' => b'/',
            other => *other,
        });
    }
    while out.last() == Some(&b'=') {
        out.pop();
    }
    if !out.iter().all(usual) || out.len() % 4 == 1 {
        return None;
    }
    while out.len() % 4 != 0 {
        out.push(b'=');
    }
    Some(Cow::Owned(out))
}

/// The formats that both APIs take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Png,
    Jpeg,
    Gif,
    Webp,
}

impl Kind {
    /// By the first bytes.
    fn of(data: Base64<'_>) -> Option<Kind> {
        if data.bytes(0) == Some(*b"\x89PNG\r\n\x1a\n") {
            return Some(Kind::Png);
        }
        if data.bytes(0) == Some([0xff, 0xd8, 0xff]) {
            return Some(Kind::Jpeg);
        }
        if matches!(data.bytes(0), Some([b'G', b'I', b'F', b'8', b'7' | b'9', b'a'])) {
            return Some(Kind::Gif);
        }
        (data.bytes(0) == Some(*b"RIFF") && data.bytes(8) == Some(*b"WEBP")).then_some(Kind::Webp)
    }

    fn media_type(self) -> &'static str {
        match self {
            Kind::Png => "image/png",
            Kind::Jpeg => "image/jpeg",
            Kind::Gif => "image/gif",
            Kind::Webp => "image/webp",
        }
    }

    /// Whether the image ends before it should, by its own marks.
    fn is_cut(self, data: Base64<'_>) -> bool {
        match self {
            Kind::Png => !Kind::png_ends(data),
            Kind::Jpeg => !Kind::jpeg_ends(data),
            Kind::Gif => Kind::frames(data).is_none(),
            Kind::Webp => data.bytes(4).is_none_or(|length| {
                let length = u32::from_le_bytes(length) as usize;
                // a chunk of an odd length may lack its last, empty byte
                size(data.0).is_some() && data.byte(length + 6).is_none()
            }),
        }
    }

    /// Whether the chunks come to the last one.
    fn png_ends(data: Base64<'_>) -> bool {
        let mut at = 8_usize;
        while let (Some(length), Some(name)) = (data.bytes(at), data.bytes(at + 4)) {
            if name == *b"IEND" {
                return true;
            }
            at = at.saturating_add(12).saturating_add(u32::from_be_bytes(length) as usize);
        }
        false
    }

    /// Whether the mark of the end is there; cameras put bytes of their own behind it.
    fn jpeg_ends(data: Base64<'_>) -> bool {
        let length = data.0.len() / 4 * 3;
        (2..length).rev().any(|at| data.bytes(at) == Some([0xff, 0xd9]))
    }

    /// How many pictures a GIF has; `None` when it ends inside one.
    fn frames(data: Base64<'_>) -> Option<usize> {
        let table = |flags: u8| if flags & 0x80 == 0 { 0 } else { 3 << ((flags & 7) + 1) };
        let mut at = 13 + table(data.byte(10)?);
        let mut frames = 0;
        // what ends between two pictures is shown all the same
        while let Some(mark) = data.byte(at) {
            match mark {
                b',' => {
                    frames += 1;
                    at += 11 + table(data.byte(at + 9)?);
                }
                b'!' => at += 2,
                _ => break,
            }
            loop {
                let length = usize::from(data.byte(at)?);
                at += 1 + length;
                if length == 0 {
                    break;
                }
            }
        }
        Some(frames)
    }
}

#[cfg(test)]
pub(in crate::agents) mod tests {
    use super::*;
    use crate::json::Tape;
    use ::base64::Engine;
    use ::base64::engine::general_purpose::STANDARD;
    use serde_json::json;

    /// A whole PNG of this size as far as its marks go.
    pub(in crate::agents) fn png(width: u32, height: u32) -> Vec<u8> {
        let mut bytes = b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR".to_vec();
        bytes.extend(width.to_be_bytes());
        bytes.extend(height.to_be_bytes());
        bytes.extend([8, 6, 0, 0, 0, 1, 2, 3, 4]);
        bytes.extend(b"\0\0\0\x04IDAT\x78\x9c\x03\0\0\0\0\0\0\0\0\0IEND\xae\x42\x60\x82");
        bytes
    }

    pub(in crate::agents) fn encoded(bytes: &[u8]) -> String {
        STANDARD.encode(bytes)
    }

    fn told(found: Result<Image<'_>, String>) -> String {
        match found {
            Ok(Image::Data { media_type, data }) => {
                format!("{media_type} {}", String::from_utf8_lossy(&data))
            }
            Ok(Image::Url(url)) => format!("at {}", String::from_utf8_lossy(&url)),
            Err(why) => why,
        }
    }

    fn data(declared: &str, text: &str, limits: &Limits) -> String {
        let line = serde_json::to_vec(text).unwrap();
        let mut tape = Tape::new();
        told(of_data(declared, tape.parse(&line).unwrap().text().unwrap(), limits))
    }

    fn url(json: &str, limits: &Limits) -> String {
        let mut tape = Tape::new();
        told(of_url(tape.parse(json.as_bytes()).unwrap().text().unwrap(), limits))
    }

    const GIF: &[u8] = b"GIF89a\x01\0\x01\0\x80\0\0\0\0\0\xff\xff\xff!\xf9\x04\x01\0\0\0\0,\0\0\0\0\x01\0\x01\0\0\x02\x02D\x01\0;";

    #[test]
    fn the_bytes_tell_the_format() {
        let jpeg = b"\xff\xd8\xff\xe0\0\x04JF\xff\xd9".to_vec();
        let webp =
            b"RIFF\x1a\0\0\0WEBPVP8L\x0d\0\0\0\x2f\0\0\0\x10\x07\x10\x11\x11\x88\x88\xfe\x07\0".to_vec();
        for (bytes, want) in [
            (png(2, 2), "image/png"),
            (jpeg, "image/jpeg"),
            (GIF.to_vec(), "image/gif"),
            (webp, "image/webp"),
        ] {
            let text = encoded(&bytes);
            for declared in ["image/png", "image/svg+xml", ""] {
                assert_eq!(data(declared, &text, &OPENAI), format!("{want} {text}"), "{declared}");
            }
        }
    }

    #[test]
    fn what_is_none_of_them_is_named() {
        let heic = encoded(b"\0\0\0\x18ftypheic");
        for (declared, text, want) in [
            ("image/svg+xml", encoded(b"<svg/>"), "image/svg+xml, 6 bytes"),
            ("image/bmp", encoded(b"BM\x01\0\0\0"), "image/bmp, 6 bytes"),
            ("image/heic", heic, "image/heic, 12 bytes"),
            ("image/png", String::new(), "image/png, empty"),
            ("image/png", "not base64!".to_owned(), "image/png, damaged base64"),
            ("image/png", "[image/png content omitted]".to_owned(), "image/png, damaged base64"),
            ("", "AAAAA".to_owned(), "data, damaged base64"),
        ] {
            assert_eq!(data(declared, &text, &ANTHROPIC), want, "{text}");
        }
    }

    #[test]
    fn other_forms_of_base64_are_put_right() {
        let bytes = [png(3, 3), vec![0xfb, 0xef, 0xff, 0xfe]].concat();
        let want = format!("image/png {}", encoded(&bytes));
        let plain = encoded(&bytes);
        let bare = plain.trim_end_matches('=').to_owned();
        let broken: String =
            plain.as_bytes().chunks(20).map(|c| format!("{}\r\n", std::str::from_utf8(c).unwrap())).collect();
        for text in [plain.replace('+', "-").replace('/', "_"), bare, broken] {
            assert_eq!(data("image/png", &text, &ANTHROPIC), want, "{text}");
        }
    }

    #[test]
    fn a_cut_image_is_none() {
        let whole = png(64, 64);
        let jpeg =
            b"\xff\xd8\xff\xc0\0\x11\x08\0\x10\0\x10\x03\x01\"\0\x02\x11\x01\x03\x11\x01\xff\xda\0\x0c"
                .to_vec();
        let webp = b"RIFF\xff\0\0\0WEBPVP8L\x18\0\0\0\x2f\x01\0\0\0\0\0".to_vec();
        for bytes in [&whole[..8], &whole[..40], &jpeg, &GIF[..36], &GIF[..9], &webp] {
            let told = data("image/png", &encoded(bytes), &ANTHROPIC);
            assert!(told.ends_with(" bytes, cut"), "{told}");
        }
    }

    #[test]
    fn sizes_over_the_limit_are_named() {
        let wide = encoded(&png(8001, 2));
        assert_eq!(data("image/png", &wide, &ANTHROPIC), "image/png, 8001 by 2 pixels");
        assert!(data("image/png", &wide, &OPENAI).starts_with("image/png iVBOR"));
        assert!(data("image/png", &encoded(&png(2, 8000)), &ANTHROPIC).starts_with("image/png iVBOR"));
        let big = encoded(&[png(2, 2), vec![0; 4 << 20]].concat());
        assert_eq!(data("image/png", &big, &ANTHROPIC), format!("image/png, {} bytes", big.len() / 4 * 3));
        assert!(data("image/png", &big, &OPENAI).starts_with("image/png iVBOR"));
    }

    #[test]
    fn a_gif_of_several_pictures_goes_where_it_is_taken() {
        let two = [&GIF[..GIF.len() - 1], &GIF[27..]].concat();
        let text = encoded(&two);
        assert_eq!(data("", &text, &OPENAI), format!("image/gif, {} bytes, animated", text.len() / 4 * 3));
        assert_eq!(data("", &text, &ANTHROPIC), format!("image/gif {text}"));
    }

    #[test]
    fn places_are_urls_of_the_web() {
        let text = encoded(&png(1, 1));
        for (given, want) in [
            (json!("https://a.b/c.png"), "at https://a.b/c.png".to_owned()),
            (json!("HTTPS://a.b/c.png"), "at HTTPS://a.b/c.png".to_owned()),
            (json!("http://a.b/c.png"), "http://a.b/c.png".to_owned()),
            (json!(format!("data:image/jpg;base64,{text}")), format!("image/png {text}")),
            (json!(format!("data:image/png;charset=x;BASE64,{text}")), format!("image/png {text}")),
            (json!("data:image/svg+xml,%3Csvg/%3E"), "image/svg+xml, not in base64".to_owned()),
            (json!("data:image/png;base64,"), "image/png, empty".to_owned()),
            (json!("data:image/png;base64"), "data, empty".to_owned()),
            (json!("file:///tmp/a.png"), "file:///tmp/a.png".to_owned()),
            (json!("/tmp/a.png"), "/tmp/a.png".to_owned()),
            (json!("https://a.b/c d.png"), "https://a.b/c d.png".to_owned()),
            (json!("[image/png content omitted]"), "image/png content omitted".to_owned()),
            (json!(""), "empty".to_owned()),
        ] {
            assert_eq!(url(&given.to_string(), &ANTHROPIC), want, "{given}");
        }
        assert_eq!(url("\"http://a.b/c.png\"", &OPENAI), "at http://a.b/c.png");
        // a slash may be escaped
        let escaped = format!("\"data:image\\/png;base64,{}\"", text.replace('/', "\\/"));
        assert_eq!(url(&escaped, &ANTHROPIC), format!("image/png {text}"));
    }
}
