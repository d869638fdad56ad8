//! Argument text and the one spelling in which it can be told from its value.
//!
//! A call's arguments are a string that holds JSON. As a value they go into the record; the string itself can
//! be left out of `extra` only where writing the value compactly gives the very same text.

use std::borrow::Cow;

/// A string literal as serde_json, and so the client, writes it.
pub(super) fn literal(text: &str) -> String {
    // a string can always be written
    serde_json::to_string(text).unwrap_or_default()
}

/// JSON without white space between its tokens and with its strings spelled as [`literal`] does. `json` must
/// have been scanned as valid.
pub(super) fn compact(json: &str) -> Cow<'_, str> {
    if is_compact(json) {
        return Cow::Borrowed(json);
    }
    let bytes = json.as_bytes();
    let mut out = String::with_capacity(json.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let from = at;
        if byte == b'"' {
            at = string_end(bytes, at);
            let raw = json.get(from..at).unwrap_or_default();
            match serde_json::from_str::<String>(raw) {
                Ok(text) => out.push_str(&literal(&text)),
                // a lone surrogate: kept as it is spelled
                Err(_) => out.push_str(raw),
            }
            continue;
        }
        while bytes.get(at).is_some_and(|b| *b != b'"' && !b.is_ascii_whitespace()) {
            at += 1;
        }
        out.push_str(json.get(from..at).unwrap_or_default());
        while bytes.get(at).is_some_and(u8::is_ascii_whitespace) {
            at += 1;
        }
    }
    Cow::Owned(out)
}

/// Index behind the string that opens at `at`.
fn string_end(bytes: &[u8], at: usize) -> usize {
    let mut at = at + 1;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    bytes.len()
}

fn is_compact(json: &str) -> bool {
    let bytes = json.as_bytes();
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        if byte.is_ascii_whitespace() {
            return false;
        }
        if byte == b'"' {
            let end = string_end(bytes, at);
            let raw = bytes.get(at..end).unwrap_or_default();
            if !escapes_are_shortest(raw) {
                return false;
            }
            at = end;
            continue;
        }
        at += 1;
    }
    true
}

/// Whether a string, given without its quotes or with them, is spelled as [`literal`] does.
pub(super) fn escapes_are_shortest(raw: &[u8]) -> bool {
    let mut at = 0;
    while let Some(n) = raw.get(at..).and_then(|rest| memchr::memchr(b'\\', rest)) {
        at += n;
        match raw.get(at + 1) {
            Some(b'"' | b'\\' | b'n' | b'r' | b't' | b'b' | b'f') => at += 2,
            Some(b'u') => {
                let short = [&b"0008"[..], b"0009", b"000a", b"000c", b"000d"];
                let digits = raw.get(at + 2..at + 6).unwrap_or_default();
                let control = digits.starts_with(b"00")
                    && matches!(digits.get(2), Some(b'0' | b'1'))
                    && !digits.iter().any(u8::is_ascii_uppercase);
                if !control || short.contains(&digits) {
                    return false;
                }
                at += 6;
            }
            _ => return false,
        }
    }
    true
}

/// Whether every number of a compact JSON text is a short whole one, which every JSON library writes alike.
pub(super) fn numbers_are_plain(json: &str) -> bool {
    let bytes = json.as_bytes();
    let mut at = 0;
    let mut digits = 0;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'"' => {
                at = string_end(bytes, at);
                digits = 0;
                continue;
            }
            b'0'..=b'9' => digits += 1,
            b'.' | b'E' | b'+' => return false,
            // in `true`, `false` and `null` no digit stands before
            b'e' if digits > 0 => return false,
            b'-' if bytes.get(at + 1) == Some(&b'0') => return false,
            _ => digits = 0,
        }
        if digits > 15 {
            return false;
        }
        at += 1;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compact_is_what_serde_json_writes() {
        for text in [
            r#"{"a":[1,true,null,"x\n\u0001\\\""],"b":{}}"#,
            "{ \"a\" : [ 1 , 2 ],\n \"b\":\"\\u00e9\\/\" }",
            "[]",
            r#""\u0008\u0009\u001F""#,
        ] {
            let value: serde_json::Value = serde_json::from_str(text).unwrap();
            assert_eq!(compact(text), serde_json::to_string(&value).unwrap(), "{text}");
        }
    }

    #[test]
    fn what_is_compact_is_told_from_what_is_not() {
        for text in [r#"{"a b":"c\nd"}"#, r#"[1,"\u001f"]"#] {
            assert!(matches!(compact(text), Cow::Borrowed(_)), "{text}");
        }
        for text in [r#"{"a": 1}"#, r#"["\/"]"#, r#"["\u000a"]"#, r#"["\u00e9"]"#, r#"["\u001F"]"#] {
            assert!(matches!(compact(text), Cow::Owned(_)), "{text}");
        }
    }

    #[test]
    fn numbers_that_libraries_spell_apart() {
        for text in [r#"{"a":12,"e":[-3,false]}"#, r#"{"1.5":"1e9"}"#] {
            assert!(numbers_are_plain(text), "{text}");
        }
        for text in ["[1.0]", "[1e3]", "[-0]", "[12345678901234567]", "[1E3]"] {
            assert!(!numbers_are_plain(text), "{text}");
        }
    }
}
