//! A text as a terminal or a browser shows it, and the way back to the text.
//!
//! Colours, control characters and characters without width can stand inside of a secret (`grep --color` marks the
//! part that it found) and hide its shape; so can the escapes of JSON inside of JSON, and a line that goes on behind a
//! backslash. Secrets are looked for in the text as it stands and in this view of it.

use crate::json::hex4;
use std::borrow::Cow;

/// A piece of a text that is shown in another way, or not at all.
#[derive(Debug, Clone, Copy)]
struct Edit {
    /// Where it stands in the view.
    at: usize,
    /// Bytes of the view that stand for it: one, or none.
    len: usize,
    /// Where it stands in the text.
    from: usize,
    to: usize,
}

/// The view of a text.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// What is shown.
    pub(super) text: Vec<u8>,
    edits: Vec<Edit>,
}

/// What an odd piece of a text is.
enum Odd {
    /// It is not shown.
    Nothing,
    /// It is shown as this byte.
    Byte(u8),
}

impl Seen {
    /// The view; `None` when it would be the text itself.
    pub(super) fn of(text: &[u8]) -> Option<Seen> {
        let mut seen = Seen::default();
        let mut from = 0;
        let mut at = next(text, 0)?;
        loop {
            match odd(text, at) {
                Some((odd, len)) => {
                    seen.text.extend_from_slice(text.get(from..at).unwrap_or_default());
                    let place = seen.text.len();
                    if let Odd::Byte(byte) = odd {
                        seen.text.push(byte);
                    }
                    let to = at + len;
                    seen.edits.push(Edit { at: place, len: seen.text.len() - place, from: at, to });
                    from = to;
                    at = to;
                }
                None => at += 1,
            }
            match next(text, at) {
                Some(next) => at = next,
                None => break,
            }
        }
        if seen.edits.is_empty() {
            return None;
        }
        seen.text.extend_from_slice(text.get(from..).unwrap_or_default());
        Some(seen)
    }

    /// The last edit at a place of the view or before it.
    fn edit(&self, at: usize) -> Option<Edit> {
        let count = self.edits.partition_point(|edit| edit.at <= at);
        count.checked_sub(1).and_then(|n| self.edits.get(n)).copied()
    }

    /// Where a byte of the view begins and ends in the text.
    fn byte(&self, at: usize) -> (usize, usize) {
        match self.edit(at) {
            None => (at, at + 1),
            Some(edit) if at < edit.at + edit.len => (edit.from, edit.to),
            Some(edit) => {
                let place = edit.to + (at - edit.at - edit.len);
                (place, place + 1)
            }
        }
    }

    /// Where a piece of the view, which is not empty, stands in the text.
    pub(super) fn place(&self, start: usize, end: usize) -> (usize, usize) {
        (self.byte(start).0, self.byte(end.saturating_sub(1)).1)
    }
}

/// A value as it is shown.
pub(super) fn plain(value: Cow<'_, [u8]>) -> Cow<'_, [u8]> {
    match Seen::of(&value) {
        Some(seen) => Cow::Owned(seen.text),
        None => value,
    }
}

/// Where the next byte stands with which an odd piece may begin.
fn next(text: &[u8], from: usize) -> Option<usize> {
    let rest = text.get(from..)?;
    let (blocks, tail) = rest.as_chunks::<BLOCK>();
    let found = |block: &[u8]| block.iter().position(|&byte| may_begin(byte) != 0 && !is_letter(byte));
    let mut at = from;
    for block in blocks {
        // all of a block at once: byte by byte would cost as much as looking for secrets
        if block.iter().fold(0, |any, &byte| any | may_begin(byte)) != 0
            && let Some(found) = found(block)
        {
            return Some(at + found);
        }
        at += BLOCK;
    }
    found(tail).map(|found| at + found)
}

/// Bytes that are looked at together.
const BLOCK: usize = 32;

/// Not 0 for a byte that is odd: a control character that is no white space, no ASCII, a backslash, a caret.
fn may_begin(byte: u8) -> u8 {
    let odd = byte.wrapping_sub(0x20) >= 0x5f;
    let white = (byte == b'\n') | (byte == b'\t') | (byte == b'\r');
    u8::from(odd & !white) | u8::from(byte == b'\\') | u8::from(byte == b'^')
}

/// Whether a byte is one of the many that only letters of other scripts have.
fn is_letter(byte: u8) -> bool {
    matches!(byte, 0x80..=0xc1 | 0xc3..=0xe0 | 0xe3..=0xee | 0xf0..=0xf2 | 0xf4..)
}

/// The odd piece that begins at a place, and its bytes.
fn odd(text: &[u8], at: usize) -> Option<(Odd, usize)> {
    let byte = |n: usize| text.get(at + n).copied().unwrap_or(0);
    let hidden = |len: usize| Some((Odd::Nothing, len));
    match byte(0) {
        0x1b => hidden(1 + sequence(text, at + 1)),
        // a letter that is struck twice, as manual pages have bold ones
        8 if at.checked_sub(1).and_then(|last| text.get(last)) == text.get(at + 1) => hidden(2),
        0..0x20 | 0x7f => hidden(1),
        0xc2 => match byte(1) {
            0x9b => hidden(2 + parameters(text, at + 2)),
            0x80..=0x9f | 0xad => hidden(2),
            _ => None,
        },
        0xe1 if byte(1) == 0xa0 && byte(2) == 0x8e => hidden(3),
        0xe2 => match (byte(1), byte(2)) {
            (0x80, 0x8b..=0x8f | 0xaa..=0xae) | (0x81, 0xa0..=0xa4 | 0xa6..=0xaf) => hidden(3),
            _ => None,
        },
        0xef => match (byte(1), byte(2)) {
            (0xbb, 0xbf) | (0xb8, 0x80..=0x8f) => hidden(3),
            _ => None,
        },
        0xf3 if byte(1) == 0xa0 && matches!(byte(2), 0x80..=0x81 | 0x84..=0x87) => hidden(4),
        // how `cat -v` and pagers write it
        b'^' if byte(1) == b'[' && byte(2) == b'[' => hidden(3 + parameters(text, at + 3)),
        b'\\' => escape(text, at),
        _ => None,
    }
}

/// Bytes of a control sequence behind its escape character.
fn sequence(text: &[u8], at: usize) -> usize {
    match text.get(at) {
        Some(b'[') => 1 + parameters(text, at + 1),
        // a title or a link: to the bell or `ESC \`
        Some(b']') => {
            let rest = text.get(at..text.len().min(at + 2048)).unwrap_or_default();
            match memchr::memchr2(7, 0x1b, rest) {
                Some(end) if rest.get(end) == Some(&7) => end + 1,
                Some(end) if rest.get(end + 1) == Some(&b'\\') => end + 2,
                _ => 1,
            }
        }
        Some(b' '..=b'/') => 1 + usize::from(text.get(at + 1).is_some_and(|b| (0x30..0x7f).contains(b))),
        Some(b'7' | b'8' | b'=' | b'>' | b'c' | b'D' | b'E' | b'H' | b'M' | b'\\') => 1,
        _ => 0,
    }
}

/// Bytes of the parameters of a control sequence and its last letter.
fn parameters(text: &[u8], at: usize) -> usize {
    let rest = text.get(at..text.len().min(at + 64)).unwrap_or_default();
    let count = rest.iter().take_while(|byte| matches!(byte, 0x20..=0x3f)).count();
    match rest.get(count) {
        Some(0x40..=0x7e) => count + 1,
        _ => 0,
    }
}

/// What stands behind one or more backslashes.
fn escape(text: &[u8], at: usize) -> Option<(Odd, usize)> {
    let rest = text.get(at..).unwrap_or_default();
    let slashes = rest.iter().take(8).take_while(|&&byte| byte == b'\\').count();
    let behind = rest.get(slashes..).unwrap_or_default();
    let last = |n: usize| at.checked_sub(n).and_then(|at| text.get(at));
    let token =
        |byte: Option<&u8>| byte.is_some_and(|&b| b.is_ascii_alphanumeric() || b"+/=_-.".contains(&b));
    let colour = |len: usize| {
        let start = at + slashes + len;
        match text.get(start) {
            Some(b'[') => Some((Odd::Nothing, slashes + len + 1 + parameters(text, start + 1))),
            _ => None,
        }
    };
    match behind {
        [b'u', ..] => {
            let code = hex4(behind, 1)?;
            let hidden = Some((Odd::Nothing, slashes + 5));
            match code {
                0x1b => colour(5).or(hidden),
                9 | 10 | 13 => None,
                0..0x20 | 0x7f..=0x9f | 0xad | 0x180e | 0xfeff => hidden,
                0x200b..=0x200f | 0x202a..=0x202e | 0x2060..=0x2064 | 0x2066..=0x206f => hidden,
                0xfe00..=0xfe0f => hidden,
                // a quote or a backslash that is escaped ends nothing
                0x22 | 0x5c => None,
                _ => {
                    u8::try_from(code).ok().filter(u8::is_ascii_graphic).map(|b| (Odd::Byte(b), slashes + 5))
                }
            }
        }
        [b'x', b'1', b'b' | b'B', ..] => colour(3),
        [b'0', b'3', b'3', ..] => colour(3),
        [b'e' | b'E', ..] => colour(1),
        // `\/` as some writers of JSON have it
        [b'/', ..] if token(last(1)) || token(behind.get(1)) => Some((Odd::Byte(b'/'), slashes + 1)),
        [b'\n', next, ..] if slashes == 1 && token(last(1)) && token(Some(next)) => Some((Odd::Nothing, 2)),
        [b'\r', b'\n', next, ..] if slashes == 1 && token(last(1)) && token(Some(next)) => {
            Some((Odd::Nothing, 3))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn shown(text: &str) -> String {
        Seen::of(text.as_bytes())
            .map_or_else(|| text.to_owned(), |seen| String::from_utf8_lossy(&seen.text).into_owned())
    }

    #[test]
    fn what_is_not_shown_is_passed_over() {
        for odd in [
            "\u{1b}[01;31m",
            "\u{1b}[K",
            "\u{1b}[m\u{1b}[K",
            "\u{1b}(B",
            "\u{1b}]8;;https://x.example.net\u{7}",
            "\u{1b}]0;title\u{1b}\\",
            "\u{9b}1m",
            "\0",
            "\u{7}",
            "\u{7f}",
            "\u{ad}",
            "\u{200b}",
            "\u{200d}",
            "\u{202e}",
            "\u{2060}",
            "\u{feff}",
            "\u{fe0f}",
            "\u{e0041}",
            "\\u001b[32m",
            "\\\\u001b[0m",
            "\\x1b[1m",
            "\\033[31m",
            "\\e[0m",
            "^[[32m",
            "\\u200b",
            "\\u0000",
            "\\\n",
            "\\\r\n",
            "\u{8}b",
        ] {
            assert_eq!(shown(&format!("ab{odd}cd")), "abcd", "{odd:?}");
        }
        assert_eq!(shown("a\\/b \\u002b\\u003d \\\\/c"), "a/b += /c");
        for text in
            ["", "ab\ncd\te\r\n", "漢字、é…—→", "a\\nb \\\"c\\\" d\\", "x ^ y", "\\u0022 \\u005c", "C:\\x\\y"]
        {
            assert!(Seen::of(text.as_bytes()).is_none(), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn every_place_is_found_again(pieces in prop::collection::vec((
            prop_oneof![Just("\u{1b}[1m"), Just("\u{200b}"), Just("\0"), Just("\\u200b"), Just("")], "[a-zé漢]{0,9}"), 0..9))
        {
            let text: String = pieces.iter().flat_map(|(odd, plain)| [*odd, plain.as_str()]).collect();
            let plain: String = pieces.iter().map(|(_, plain)| plain.as_str()).collect();
            prop_assert_eq!(shown(&text), plain.clone());
            if let Some(seen) = Seen::of(text.as_bytes()) {
                for at in 0..plain.len() {
                    let (from, to) = seen.place(at, at + 1);
                    prop_assert_eq!(text.as_bytes().get(from..to), plain.as_bytes().get(at..=at));
                }
            }
        }
    }
}
