//! What only the vendor of the model can read, and who wrote what agents say to each other.

use super::line::{field, text};
use crate::json::{Kind, Value};
use std::borrow::Cow;

/// Shortest cipher: one block, its time and its signature, in base64.
const CIPHER: usize = 100;

/// What stands for a text that only the vendor can read.
pub(super) const ENCRYPTED: &str = "[encrypted: only the vendor of Codex can read it]";

/// Whether a part of a content is one that only the vendor can read.
pub(super) fn is_encrypted(part: Value<'_>) -> bool {
    text(part, "type").is_some_and(|t| t == "encrypted_content")
}

/// Whether an escaped text is a cipher: Fernet's version and the first bytes of its time, all in base64.
pub(super) fn is_cipher(body: &[u8]) -> bool {
    body.len() >= CIPHER
        && body.starts_with(b"gAAAAA")
        && body.iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'='))
}

/// Arguments with words in the place of what only the vendor can read: the `message` of one agent to another
/// (0.14x and later). `None` where all can be read.
pub(super) fn readable(arguments: Value<'_>) -> Option<Vec<u8>> {
    if arguments.kind() != Kind::Object {
        return None;
    }
    let hidden = |value: Value<'_>| value.text().is_some_and(|t| is_cipher(t.raw()));
    if !arguments.entries().any(|(_, value)| hidden(value)) {
        return None;
    }
    let mut out = b"{".to_vec();
    for (key, value) in arguments.entries() {
        if out.len() > 1 {
            out.push(b',');
        }
        out.push(b'"');
        out.extend_from_slice(key.raw());
        out.extend_from_slice(b"\":");
        if hidden(value) {
            out.extend_from_slice(format!("\"{ENCRYPTED}\"").as_bytes());
        } else {
            out.extend_from_slice(value.raw());
        }
    }
    out.push(b'}');
    Some(out)
}

/// The first line of a message between agents, as the body of a JSON string, where its own words do not name who
/// wrote it.
pub(super) fn heading(payload: Value<'_>, words: &[Cow<'_, [u8]>]) -> Option<Vec<u8>> {
    let name = |key: &str| text(payload, key).map(|t| t.raw()).filter(|t| !t.is_empty());
    let author = name("author").or_else(|| name("sender"));
    if let Some(author) = author
        && words.iter().any(|w| memchr::memmem::find(w, author).is_some())
    {
        return None;
    }
    let mut out = b"[message of ".to_vec();
    match author {
        Some(author) => {
            out.extend_from_slice(b"agent ");
            out.extend_from_slice(author);
        }
        None => out.extend_from_slice(b"another agent"),
    }
    if let Some(recipient) = name("recipient") {
        out.extend_from_slice(b" to ");
        out.extend_from_slice(recipient);
    }
    out.push(b']');
    Some(out)
}

/// The media type of a picture in base64, by its first bytes.
pub(super) fn media_type(data: &[u8]) -> &'static [u8] {
    match data {
        [b'/', b'9', b'j', ..] => b"image/jpeg",
        [b'U', b'k', b'l', b'G', ..] => b"image/webp",
        [b'R', b'0', b'l', b'G', ..] => b"image/gif",
        // what the API makes where nothing else is asked of it
        _ => b"image/png",
    }
}

/// The picture that an item holds, as the body of a JSON string in base64.
pub(super) fn picture(payload: Value<'_>) -> Option<&[u8]> {
    let data = field(payload, "result")?.text()?.raw();
    let plain = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/' | b'=');
    (!data.is_empty() && data.iter().all(plain)).then_some(data)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cipher_is_told_from_words() {
        let cipher = format!("gAAAAAB{}", "x".repeat(120));
        assert!(is_cipher(cipher.as_bytes()));
        for text in ["gAAAAABshort", &format!("{cipher} and words"), &"x".repeat(200)] {
            assert!(!is_cipher(text.as_bytes()), "{text}");
        }
    }
}
