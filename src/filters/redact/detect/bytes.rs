//! Bytes: sets of them, runs of a set, and where a token may begin and end.

const UPPER: u16 = 1;
const LOWER: u16 = 1 << 1;
const DIGIT: u16 = 1 << 2;
const HEX_LOWER: u16 = 1 << 3;
const HEX_UPPER: u16 = 1 << 4;
const UNDERSCORE: u16 = 1 << 5;
const DASH: u16 = 1 << 6;
const DOT: u16 = 1 << 7;
const PLUS_SLASH: u16 = 1 << 8;
const EQUALS: u16 = 1 << 9;
const PERCENT: u16 = 1 << 10;
const SIGN: u16 = 1 << 11;
const AMPERSAND: u16 = 1 << 12;
const COLON: u16 = 1 << 13;
const TILDE: u16 = 1 << 14;

const KINDS: [u16; 256] = kinds();

const fn kinds() -> [u16; 256] {
    let mut table = [0u16; 256];
    let mut byte = 0usize;
    while byte < 256 {
        let b = byte as u8;
        let mut kind = 0;
        if b.is_ascii_uppercase() {
            kind |= UPPER;
        }
        if b.is_ascii_lowercase() {
            kind |= LOWER;
        }
        if b.is_ascii_digit() {
            kind |= DIGIT;
        }
        if b >= b'a' && b <= b'f' {
            kind |= HEX_LOWER;
        }
        if b >= b'A' && b <= b'F' {
            kind |= HEX_UPPER;
        }
        kind |= match b {
            b'_' => UNDERSCORE,
            b'-' => DASH,
            b'.' => DOT,
            b'+' | b'/' => PLUS_SLASH,
            b'=' => EQUALS,
            b'%' => PERCENT,
            b'!' | b'#' | b'$' | b'*' | b'?' | b'@' | b'^' => SIGN,
            b'~' => TILDE,
            b'&' => AMPERSAND,
            b':' => COLON,
            _ => 0,
        };
        table[byte] = kind;
        byte += 1;
    }
    table
}

/// A set of bytes that a part of a token is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Set {
    /// Letters and digits.
    Alnum,
    /// Letters, digits, `_` and `-`: base64url.
    Word,
    /// Letters, digits, `_`, `-` and `.`.
    Dotted,
    /// Capitals and digits.
    Capital,
    /// Small letters and digits.
    Small,
    /// Digits.
    Digit,
    /// Hexadecimal digits of small letters.
    Hex,
    /// Hexadecimal digits.
    AnyHex,
    /// Base64 without its padding.
    Base64,
    /// Base64 of both alphabets with padding, dots and `~`: what stands behind `Bearer`.
    Opaque,
    /// Base64 in a URL: letters, digits, `%`, `-`, `_` and `.`.
    Query,
    /// What a value without quotes is made of.
    Value,
    /// The same in the query of a URL, where `&` ends it.
    Parameter,
}

impl Set {
    /// How many there are.
    const COUNT: usize = Set::Parameter as usize + 1;

    const fn mask(self) -> u16 {
        const ALNUM: u16 = UPPER | LOWER | DIGIT;
        const PARAMETER: u16 =
            ALNUM | UNDERSCORE | DASH | DOT | PLUS_SLASH | EQUALS | PERCENT | SIGN | COLON | TILDE;
        match self {
            Set::Alnum => ALNUM,
            Set::Word => ALNUM | UNDERSCORE | DASH,
            Set::Dotted => ALNUM | UNDERSCORE | DASH | DOT,
            Set::Capital => UPPER | DIGIT,
            Set::Small => LOWER | DIGIT,
            Set::Digit => DIGIT,
            Set::Hex => DIGIT | HEX_LOWER,
            Set::AnyHex => DIGIT | HEX_LOWER | HEX_UPPER,
            Set::Base64 => ALNUM | PLUS_SLASH,
            Set::Opaque => ALNUM | UNDERSCORE | DASH | DOT | PLUS_SLASH | EQUALS | TILDE,
            Set::Query => ALNUM | UNDERSCORE | DASH | DOT | PERCENT,
            Set::Value => PARAMETER | AMPERSAND,
            Set::Parameter => PARAMETER,
        }
    }

    /// Whether a byte belongs to it.
    pub(crate) fn has(self, byte: u8) -> bool {
        KINDS[usize::from(byte)] & self.mask() != 0
    }

    /// Whether all bytes belong to it.
    pub(crate) fn has_all(self, bytes: &[u8]) -> bool {
        bytes.iter().all(|&byte| self.has(byte))
    }
}

/// The byte at an offset; 0, which no rule looks for, beyond the end.
pub(super) fn byte(text: &[u8], at: usize) -> u8 {
    text.get(at).copied().unwrap_or(0)
}

/// The byte before an offset, or 0.
pub(super) fn before(text: &[u8], at: usize) -> u8 {
    at.checked_sub(1).map_or(0, |at| byte(text, at))
}

/// A part of a text; empty when it does not lie inside.
pub(super) fn part(text: &[u8], start: usize, end: usize) -> &[u8] {
    text.get(start..end).unwrap_or_default()
}

/// Whether what stands at an offset begins with something.
pub(super) fn starts(text: &[u8], at: usize, with: &[u8]) -> bool {
    text.get(at..).is_some_and(|rest| rest.starts_with(with))
}

/// Whether something stands in a few bytes: for names and heads, on which a prepared search costs more.
pub(super) fn holds(text: &[u8], what: &str) -> bool {
    text.windows(what.len().max(1)).any(|window| window == what.as_bytes())
}

/// Behind the spaces and tabs at an offset, at most `most` of them.
pub(super) fn blanks(text: &[u8], at: usize, most: usize) -> usize {
    let rest = text.get(at..).unwrap_or_default();
    at + rest.iter().take(most).take_while(|&&byte| byte == b' ' || byte == b'\t').count()
}

/// Whether a token may begin at an offset: behind anything but a letter, digit or `_` - or behind one that is
/// no text: the letter of an escape (`\n`, `\u4e2d`), of a colour (`ESC[32m`) or of a URL's `%20`.
pub(super) fn begins(text: &[u8], at: usize) -> bool {
    let last = before(text, at);
    if !(last.is_ascii_alphanumeric() || last == b'_') {
        return true;
    }
    let back = |n: usize| at.checked_sub(n).map_or(0, |at| byte(text, at));
    if matches!(last, b'n' | b't' | b'r' | b'b' | b'f' | b'0' | b'e') && back(2) == b'\\' {
        return true;
    }
    if last.is_ascii_hexdigit() {
        let hex = |n: usize| back(n).is_ascii_hexdigit();
        if hex(2) && back(3) == b'%' {
            return true;
        }
        if hex(2) && hex(3) && hex(4) && back(5) == b'u' && back(6) == b'\\' {
            return true;
        }
        if hex(2) && back(3) == b'x' && back(4) == b'\\' {
            return true;
        }
    }
    last == b'm' && colour(text, at - 1)
}

/// Whether the `m` at an offset ends a colour: `ESC[1;32m`, the escape character itself or written out.
fn colour(text: &[u8], end: usize) -> bool {
    let mut at = end;
    // As many parameters as terminals take.
    for _ in 0..24 {
        match before(text, at) {
            b'0'..=b'9' | b';' => at -= 1,
            b'[' => {
                let head = part(text, 0, at - 1);
                let escapes: [&[u8]; 6] = [b"\x1b", b"\\x1b", b"\\u001b", b"\\u001B", b"\\033", b"\\e"];
                return escapes.iter().any(|escape| head.ends_with(escape));
            }
            _ => return false,
        }
    }
    false
}

/// Whether a token may end at an offset: before anything but a letter or digit.
pub(super) fn ends(text: &[u8], at: usize) -> bool {
    !byte(text, at).is_ascii_alphanumeric()
}

/// Where the run of a set that begins at an offset ends.
pub(super) fn run_end(text: &[u8], set: Set, at: usize) -> usize {
    let rest = text.get(at..).unwrap_or_default();
    at + rest.iter().position(|&byte| !set.has(byte)).unwrap_or(rest.len())
}

/// The last run of each set, so that hits inside a long one do not look at it again.
#[derive(Debug, Default, Clone)]
pub(super) struct Runs {
    last: [(usize, usize); Set::COUNT],
}

impl Runs {
    /// Where the run of a set that covers `at` ends; `at` itself when none does.
    pub(super) fn end(&mut self, text: &[u8], set: Set, at: usize) -> usize {
        let Some(last) = self.last.get_mut(set as usize) else { return at };
        if at >= last.0 && at < last.1 {
            return last.1;
        }
        let end = run_end(text, set, at);
        *last = (at, end);
        end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_begin_behind_escapes_colours_and_text_of_other_scripts() {
        for head in
            ["", " ", "\"", "是", "\\n", "\\\\n", "\\u662f", "\x1b[32m", "\\u001b[1;31m", "%3D", "-", "\\x1b"]
        {
            let text = format!("{head}ghp");
            assert!(begins(text.as_bytes(), head.len()), "{head:?}");
        }
        for head in ["x", "_", "7", "n", "um", "[32m", "u662f", "3D"] {
            let text = format!("{head}ghp");
            assert!(!begins(text.as_bytes(), head.len()), "{head:?}");
        }
        assert!(begins(b"", 7), "beyond the end is no panic");
    }

    #[test]
    fn a_run_is_looked_at_once() {
        let text = b"abc-def ghi";
        let mut runs = Runs::default();
        assert_eq!(runs.end(text, Set::Word, 0), 7);
        assert_eq!(runs.end(text, Set::Word, 3), 7);
        assert_eq!(runs.end(text, Set::Alnum, 0), 3);
        assert_eq!(runs.end(text, Set::Alnum, 3), 3);
        assert_eq!(runs.end(text, Set::Alnum, 99), 99);
    }
}
