//! Whose words a text is made of: what an app puts around a prompt, and what only the vendor can read.

use super::line::{field, text};
use crate::json::{Kind, Value};
use crate::record::By;
use crate::record::Harness;
use std::borrow::Cow;
use std::ops::Range;

/// The line behind which editors and the app put the prompt itself. The client, too, takes the first one for
/// its preview (0.171).
const REQUEST: &[u8] = b"\\n## My request for Codex:";

/// How an expanded prompt of a file begins that quotes what the human typed behind its name.
const TYPED: &[u8] = b"## User Input\\n\\n```text\\n";

/// Where that ends.
const FENCE: &[u8] = b"\\n```";

/// Shortest cipher: one block, its time and its signature, in base64.
const CIPHER: usize = 100;

/// The stretches of a prompt, with whose words they are, in order; the text is the body of a JSON string, and the
/// stretches are all of it. `None` where all is the human's.
///
/// What an app put around the prompt belongs to it (a selection, the names of files), so that it is handed over,
/// but nobody typed it.
pub(super) fn stretches(body: &[u8]) -> Option<Vec<(By, Range<usize>)>> {
    let app = By::Harness(Harness::Expansion);
    let from = body.len() - trimmed(body).len();
    let rest = body.get(from..)?;
    if let Some(typed) = rest.strip_prefix(TYPED) {
        let length = memchr::memmem::find(typed, FENCE)?;
        let words = typed.get(..length)?;
        if trimmed(words).is_empty() || words == b"$ARGUMENTS" {
            return None;
        }
        let begin = from + TYPED.len();
        let end = begin + length;
        return Some(vec![(app, 0..begin), (By::Conversation, begin..end), (app, end..body.len())]);
    }
    if !rest.starts_with(b"# ") {
        return None;
    }
    let at = from + memchr::memmem::find(rest, REQUEST)? + REQUEST.len();
    let words = body.get(at..)?;
    let begin = at + (words.len() - trimmed(words).len());
    if begin == body.len() {
        // the picture behind it is the prompt, or there is none
        return Some(vec![(app, 0..body.len())]);
    }
    Some(vec![(app, 0..begin), (By::Conversation, begin..body.len())])
}

/// An escaped text without the white space at its beginning.
fn trimmed(mut body: &[u8]) -> &[u8] {
    loop {
        body = match body {
            [b' ', rest @ ..] | [b'\\', b'n' | b't' | b'r', rest @ ..] => rest,
            _ => return body,
        };
    }
}

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

    fn split(body: &str) -> Vec<(bool, &str)> {
        let parts = stretches(body.as_bytes()).unwrap_or_default();
        parts.into_iter().map(|(by, range)| (by == By::Conversation, &body[range])).collect()
    }

    #[test]
    fn the_words_behind_what_an_app_added_are_the_human_s() {
        for head in ["# Context from my IDE setup:", "# Files mentioned by the user:", "\\n# In app browser:"]
        {
            let header = format!("{head}\\n\\n## Open tabs:\\n- a.rs\\n\\n## My request for Codex:\\n");
            let whole = format!("{header}Fix it.\\n## My request for Codex: this, too\\n");
            let words = "Fix it.\\n## My request for Codex: this, too\\n";
            assert_eq!(split(&whole), [(false, &*header), (true, words)]);
            assert_eq!(split(&header), [(false, &*header)], "a picture may be the request");
        }
        for all in [
            "# A heading\\n\\nFix it.",
            "Fix it.\\n## My request for Codex:\\nx",
            "## My request for Codex:x",
        ] {
            assert!(split(all).is_empty(), "{all}");
        }
    }

    #[test]
    fn what_was_typed_behind_the_name_of_a_prompt_is_the_human_s() {
        let whole = "## User Input\\n\\n```text\\nPhase 4\\n```\\n\\nYou must consider it.";
        assert_eq!(
            split(whole),
            [
                (false, "## User Input\\n\\n```text\\n"),
                (true, "Phase 4"),
                (false, "\\n```\\n\\nYou must consider it.")
            ]
        );
        for all in
            ["## User Input\\n\\n```text\\n\\n```\\nGo", "## User Input\\n\\n```text\\n$ARGUMENTS\\n```\\nGo"]
        {
            assert!(split(all).is_empty(), "{all}");
        }
    }

    #[test]
    fn a_cipher_is_told_from_words() {
        let cipher = format!("gAAAAAB{}", "x".repeat(120));
        assert!(is_cipher(cipher.as_bytes()));
        for text in ["gAAAAABshort", &format!("{cipher} and words"), &"x".repeat(200)] {
            assert!(!is_cipher(text.as_bytes()), "{text}");
        }
    }
}
