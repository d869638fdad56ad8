//! Escapes inside the body of a JSON string: the one place that decodes them.

/// Four hexadecimal digits at `at`, as a UTF-16 unit.
pub fn hex4(bytes: &[u8], at: usize) -> Option<u16> {
    let digits = bytes.get(at..at.checked_add(4)?)?;
    digits.iter().try_fold(0, |unit, &d| Some(unit << 4 | u16::try_from((d as char).to_digit(16)?).ok()?))
}

/// Reads one `\u` escape, or a surrogate pair of two, at the start of `bytes`.
///
/// Gives the character and the number of bytes it is written with. A lone surrogate gives U+FFFD. `None` if it is no such escape.
pub fn unicode(bytes: &[u8]) -> Option<(char, usize)> {
    let first = unit(bytes)?;
    if (0xD800..0xDC00).contains(&first)
        && let Some(second) = bytes.get(6..).and_then(unit)
        && (0xDC00..0xE000).contains(&second)
    {
        let code = 0x1_0000 + ((first - 0xD800) << 10) + (second - 0xDC00);
        return char::from_u32(code).map(|character| (character, 12));
    }
    Some((char::from_u32(first).unwrap_or(char::REPLACEMENT_CHARACTER), 6))
}

fn unit(bytes: &[u8]) -> Option<u32> {
    bytes.starts_with(b"\\u").then(|| hex4(bytes, 2).map(u32::from)).flatten()
}

/// Decodes the body of a JSON string. An invalid escape stays as it is written; invalid UTF-8 becomes U+FFFD.
pub fn decode(body: &[u8]) -> String {
    let mut text = Vec::with_capacity(body.len());
    let mut rest = body;
    while let Some(at) = memchr::memchr(b'\\', rest) {
        let (plain, escape) = rest.split_at(at);
        text.extend_from_slice(plain);
        let (byte, length) = match escape.get(1) {
            Some(b'n') => (b'\n', 2),
            Some(b't') => (b'\t', 2),
            Some(b'r') => (b'\r', 2),
            Some(b'b') => (0x08, 2),
            Some(b'f') => (0x0C, 2),
            Some(&byte @ (b'"' | b'\\' | b'/')) => (byte, 2),
            Some(b'u') => {
                if let Some((character, length)) = unicode(escape) {
                    text.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
                    rest = escape.get(length..).unwrap_or_default();
                    continue;
                }
                (b'\\', 1)
            }
            _ => (b'\\', 1),
        };
        text.push(byte);
        rest = escape.get(length..).unwrap_or_default();
    }
    text.extend_from_slice(rest);
    match String::from_utf8(text) {
        Ok(text) => text,
        Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
    }
}

/// A copy of the line in which every lone surrogate escape reads `\ufffd`.
pub fn without_lone_surrogates(line: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(line.len());
    let mut i = 0;
    while let Some(at) = line.get(i..).and_then(|rest| memchr::memchr(b'\\', rest)).map(|n| n + i) {
        out.extend_from_slice(line.get(i..at).unwrap_or_default());
        let mut len = 2;
        let mut lone = false;
        if line.get(at + 1) == Some(&b'u') {
            len = 6;
            match hex4(line, at + 2) {
                Some(0xd800..=0xdbff) => {
                    let low = line.get(at + 6..at + 8) == Some(b"\\u")
                        && matches!(hex4(line, at + 8), Some(0xdc00..=0xdfff));
                    if low { len = 12 } else { lone = true }
                }
                Some(0xdc00..=0xdfff) => lone = true,
                _ => {}
            }
        }
        let end = (at + len).min(line.len());
        out.extend_from_slice(if lone { b"\\ufffd" } else { line.get(at..end).unwrap_or_default() });
        i = end;
    }
    out.extend_from_slice(line.get(i..).unwrap_or_default());
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn escapes_become_the_characters_they_stand_for() {
        assert_eq!(decode(br#"a\n\t\r\b\f\"\\\/z"#), "a\n\t\r\u{8}\u{c}\"\\/z");
        assert_eq!(decode(br"\u4e2d\u6587\ud83d\ude00\u001b["), "中文😀\u{1b}[");
    }

    #[test]
    fn broken_escapes_stay_as_they_are_written() {
        assert_eq!(decode(br"\x \u12 \u12g4 end\"), r"\x \u12 \u12g4 end\");
        assert_eq!(decode(br"\ud83d \ude00"), "\u{fffd} \u{fffd}");
        assert_eq!(decode(br"\ud83d\u0041"), "\u{fffd}A");
        assert_eq!(decode(b"a\xffb"), "a\u{fffd}b");
    }

    proptest! {
        #[test]
        fn what_a_json_writer_escapes_comes_back(text: String) {
            let json = serde_json::to_string(&text).map_err(|e| TestCaseError::fail(e.to_string()))?;
            prop_assert_eq!(decode(json.as_bytes().get(1..json.len() - 1).unwrap_or_default()), text);
        }
    }
}
