//! Text of sessions is untrusted: it must not move the cursor, change the title of the window or turn
//! the line around.

use crate::record::is_hidden;
use std::borrow::Cow;
use std::fmt::Write;

/// The text as one line that is safe to print: what is unsafe is spelled out.
pub fn safe(text: &str) -> Cow<'_, str> {
    if !text.contains(is_hidden) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            c if is_hidden(c) => {
                // writing into a String cannot fail
                let _ = write!(out, "\\u{{{:x}}}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    Cow::Owned(out)
}

/// A text of several lines, each of them safe.
pub fn safe_lines(text: &str) -> Cow<'_, str> {
    match text.contains(|c| c != '\n' && is_hidden(c)) {
        false => Cow::Borrowed(text),
        true => Cow::Owned(text.split('\n').map(safe).collect::<Vec<_>>().join("\n")),
    }
}

/// A line of JSON in which what is unsafe is escaped; its value stays the same.
pub fn safe_json(line: &[u8]) -> Cow<'_, [u8]> {
    let Ok(text) = std::str::from_utf8(line) else {
        return Cow::Owned(
            String::from_utf8_lossy(line).chars().filter(|c| !is_hidden(*c)).collect::<String>().into_bytes(),
        );
    };
    if !text.contains(is_hidden) {
        return Cow::Borrowed(line);
    }
    let mut out = String::with_capacity(text.len() + 16);
    let mut units = [0u16; 2];
    for c in text.chars() {
        if is_hidden(c) && c != '\t' {
            for unit in c.encode_utf16(&mut units) {
                let _ = write!(out, "\\u{unit:04x}");
            }
        } else {
            out.push(c);
        }
    }
    Cow::Owned(out.into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_unsafe_reaches_a_terminal() {
        assert_eq!(safe("plain é 漢 😀"), "plain é 漢 😀");
        assert_eq!(safe("a\nb\u{1b}]0;x\u{7}"), "a\\nb\\u{1b}]0;x\\u{7}");
        assert_eq!(safe("exe\u{202e}gpj \u{9b}2J"), "exe\\u{202e}gpj \\u{9b}2J");
        for c in (0..=0x10ffff).filter_map(char::from_u32) {
            assert!(!safe(&format!("x{c}y")).contains(is_hidden));
        }
    }

    #[test]
    fn escaped_json_has_the_same_value() {
        let line = "{\"a\":\"x\u{202e}y\u{85}\u{e0041}\u{7f}é\"}".as_bytes();
        let shown = safe_json(line);
        assert!(!String::from_utf8(shown.to_vec()).unwrap().contains(is_hidden));
        let value = |bytes: &[u8]| serde_json::from_slice::<serde_json::Value>(bytes).unwrap();
        assert_eq!(value(&shown), value(line));
    }
}
