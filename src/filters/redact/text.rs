//! Strings of a line, decoded and found again.
//!
//! Secrets are looked for in the decoded text: `\n`, `"` and `\u` escapes of the line would hide the letters before
//! and behind them. What is found is replaced in the line itself, so every place has to be mapped back.

use crate::json::hex4;

/// What one escape of a JSON string stands for.
struct Unit {
    /// Bytes of the escape in the line.
    raw: usize,
    /// Its text, the first `len` bytes.
    text: [u8; 4],
    len: usize,
}

/// The escape at `at`, which is a backslash. A lone surrogate keeps its value, as three bytes (WTF-8): nothing is
/// decoded to U+FFFD, so that different strings stay different.
fn unit(raw: &[u8], at: usize) -> Unit {
    let short = |b: u8| Unit { raw: 2, text: [b, 0, 0, 0], len: 1 };
    match raw.get(at + 1) {
        Some(b'n') => short(b'\n'),
        Some(b't') => short(b'\t'),
        Some(b'r') => short(b'\r'),
        Some(b'b') => short(8),
        Some(b'f') => short(12),
        Some(b'u') => {
            let Some(first) = hex4(raw, at + 2).map(u32::from) else { return short(b'u') };
            let mut code = first;
            let mut size = 6;
            if (0xd800..0xdc00).contains(&first)
                && raw.get(at + 6..at + 8) == Some(b"\\u")
                && let Some(low @ 0xdc00..=0xdfff) = hex4(raw, at + 8).map(u32::from)
            {
                code = 0x10000 + ((first - 0xd800) << 10) + (low - 0xdc00);
                size = 12;
            }
            let mut text = [0; 4];
            let len = match char::from_u32(code) {
                Some(c) => c.encode_utf8(&mut text).len(),
                None => {
                    // a lone surrogate: three bytes, as UTF-8 would spell the number
                    text = [
                        0xe0 | (code >> 12) as u8,
                        0x80 | (code >> 6 & 0x3f) as u8,
                        0x80 | (code & 0x3f) as u8,
                        0,
                    ];
                    3
                }
            };
            Unit { raw: size, text, len }
        }
        Some(&other) => short(other),
        None => Unit { raw: 1, text: [b'\\', 0, 0, 0], len: 1 },
    }
}

/// Appends the text of a string's body as it stands in a line.
pub(super) fn decode(raw: &[u8], out: &mut Vec<u8>) {
    out.reserve(raw.len());
    let mut at = 0;
    while let Some(next) = raw.get(at..).and_then(|rest| memchr::memchr(b'\\', rest)) {
        out.extend_from_slice(raw.get(at..at + next).unwrap_or_default());
        let unit = unit(raw, at + next);
        out.extend_from_slice(unit.text.get(..unit.len).unwrap_or_default());
        at += next + unit.raw;
    }
    out.extend_from_slice(raw.get(at..).unwrap_or_default());
}

/// Finds places of the decoded text in the string as it stands in the line. Places must be asked for in rising order.
#[derive(Debug)]
pub(super) struct Places<'a> {
    raw: &'a [u8],
    at: usize,
    decoded: usize,
    /// Where the bytes end that stand for themselves.
    run: usize,
}

impl<'a> Places<'a> {
    /// From the beginning on.
    pub(super) fn new(raw: &'a [u8], escaped: bool) -> Places<'a> {
        let mut places = Places { raw, at: 0, decoded: 0, run: raw.len() };
        if escaped {
            places.look();
        }
        places
    }

    fn look(&mut self) {
        let rest = self.raw.get(self.at..).unwrap_or_default();
        self.run = self.at + memchr::memchr(b'\\', rest).unwrap_or(rest.len());
    }

    /// The place of the decoded offset `wanted`, never inside an escape or a character: `up` gives the one behind
    /// it, else the one before.
    pub(super) fn find(&mut self, wanted: usize, up: bool) -> usize {
        loop {
            let plain = self.run - self.at;
            if wanted <= self.decoded + plain {
                let step = wanted.saturating_sub(self.decoded);
                self.at += step;
                self.decoded += step;
                return self.whole(up);
            }
            self.at = self.run;
            self.decoded += plain;
            if self.at >= self.raw.len() {
                return self.at;
            }
            let unit = unit(self.raw, self.at);
            if self.decoded + unit.len > wanted && !up {
                return self.at;
            }
            self.at += unit.raw;
            self.decoded += unit.len;
            self.look();
            if self.decoded >= wanted {
                return self.at;
            }
        }
    }

    /// The nearest beginning of a character.
    fn whole(&self, up: bool) -> usize {
        let inside = |at: usize| self.raw.get(at).is_some_and(|b| b & 0xc0 == 0x80);
        let mut at = self.at;
        while inside(at) {
            match up {
                true => at += 1,
                false if at > 0 => at -= 1,
                false => break,
            }
        }
        at
    }
}

/// Appends bytes as the body of a JSON string, as most writers spell them. `None` when they are no UTF-8.
pub(super) fn escape(text: &[u8], out: &mut Vec<u8>) -> Option<()> {
    crate::json::write_escaped(out, std::str::from_utf8(text).ok()?);
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn decoded(raw: &str) -> Vec<u8> {
        let mut out = Vec::new();
        decode(raw.as_bytes(), &mut out);
        out
    }

    #[test]
    fn escapes_of_every_kind() {
        assert_eq!(decoded(r#"a\n\"\\\/\u0041\ud83d\ude00é"#), "a\n\"\\/A😀é".as_bytes());
        assert_eq!(decoded(r"\ud83d!"), [0xed, 0xa0, 0xbd, b'!']);
    }

    proptest! {
        #[test]
        fn every_place_is_found_again(text in "([a-c]|[é😀]|\n|\"|\\\\){0,40}", ascii in any::<bool>(), from in 0usize..200, len in 0usize..200) {
            let mut raw = Vec::new();
            if ascii {
                for unit in text.encode_utf16() {
                    raw.extend_from_slice(format!("\\u{unit:04x}").as_bytes());
                }
            } else {
                escape(text.as_bytes(), &mut raw).unwrap();
            }
            let bytes = text.as_bytes();
            let mut start = from.min(bytes.len());
            let mut end = (start + len).min(bytes.len());
            let mut places = Places::new(&raw, true);
            let (a, b) = (places.find(start, false), places.find(end, true));
            while !text.is_char_boundary(start) { start -= 1; }
            while !text.is_char_boundary(end) { end += 1; }
            let mut back = Vec::new();
            decode(&raw[a..b], &mut back);
            prop_assert_eq!(&back, &bytes[start..end]);
            let mut whole = Vec::new();
            decode(&raw, &mut whole);
            prop_assert_eq!(whole, bytes);
        }
    }
}
