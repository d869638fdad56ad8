//! Where a text may be cut: no cut goes through a secret.
//!
//! What is left of a secret that was cut has not its shape any more, so no later stage finds it. Hence the stages that
//! shorten texts cut them at white space, and not there either inside of what this crate takes for a secret: a
//! private key, a pass phrase in quotes.

use super::{Choice, Detector, Hit};
use memchr::memmem;
use std::ops::Range;
use std::sync::LazyLock;

/// The longest word that is never cut, in bytes. A longer run without white space has no better place.
const WORD: usize = 4 << 10;

/// What is looked at before and behind a place, in bytes.
const AROUND: usize = 2 << 10;

/// The longest block that is kept together, in bytes.
const BLOCK: usize = 16 << 10;

/// The longest last line of a block, in bytes.
const LAST_LINE: usize = 80;

static SHAPES: LazyLock<Option<Detector>> = LazyLock::new(|| Detector::new(&Choice::default()).ok());

/// The secret of a known shape that begins before `at` and ends behind it. `name` is the name under which the text
/// stands, if it has one.
pub(crate) fn secret_at(name: Option<&[u8]>, text: &str, at: usize) -> Option<Range<usize>> {
    let bytes = text.as_bytes();
    let mut from = at.saturating_sub(AROUND);
    let mut to = (at + AROUND).min(bytes.len());
    if from > 0 {
        // not in the middle of a word, which could look like a token by itself
        let head = bytes.get(from..at).unwrap_or_default();
        from += head.iter().position(u8::is_ascii_whitespace).unwrap_or(0);
    }
    // a block of many lines that has begun and not ended, its last line included
    let far = at.saturating_sub(BLOCK);
    let head = bytes.get(far..at).unwrap_or_default();
    for (begin, end) in
        [(b"-----BEGIN ".as_slice(), b"-----END".as_slice()), (b"PuTTY-User-Key-File-", b"Private-MAC")]
    {
        if let Some(start) = memmem::rfind(head, begin)
            && memmem::find(head.get(start..).unwrap_or_default(), end)
                .is_none_or(|end| start + end + LAST_LINE > head.len())
        {
            from = from.min(far + start);
            to = (at + BLOCK).min(bytes.len());
        }
    }
    // the name says something of a text that is looked at from its beginning on
    let name = name.filter(|_| from == 0);
    let (mut found, mut hits) = (Vec::new(), Vec::<Hit>::new());
    SHAPES.as_ref()?.look(name, bytes.get(from..to).unwrap_or_default(), &mut found, &mut hits);
    let hit =
        hits.iter().map(|hit| from + hit.start..from + hit.end).find(|hit| hit.start < at && at < hit.end)?;
    Some(floor(text, hit.start)..ceil(text, hit.end))
}

/// The last place at `at` or before at which a text may end.
pub(crate) fn cut_before(name: Option<&[u8]>, text: &str, at: usize) -> usize {
    let mut at = floor(text, at);
    // a secret, and a word before it: that is all that can be one in the other
    for _ in 0..4 {
        if at == 0 || at == text.len() {
            return at;
        }
        let head = text
            .get(at.saturating_sub(WORD)..at)
            .or_else(|| text.get(floor(text, at.saturating_sub(WORD))..at));
        let head = head.unwrap_or_default();
        if !seam(text, at) {
            let back = head
                .char_indices()
                .rev()
                .map(|(n, _)| at - head.len() + n)
                .find(|&n| n == 0 || seam(text, n));
            at = back.unwrap_or(at);
        }
        match secret_at(name, text, at) {
            Some(secret) => at = secret.start,
            None => return at,
        }
    }
    at
}

/// The first place at `at` or behind at which a text may go on.
pub(crate) fn cut_after(name: Option<&[u8]>, text: &str, at: usize) -> usize {
    let mut at = ceil(text, at);
    for _ in 0..4 {
        if at == 0 || at >= text.len() {
            return at;
        }
        if !seam(text, at) {
            let tail = text.get(at..ceil(text, at + WORD)).unwrap_or_default();
            let ahead = tail.char_indices().map(|(n, _)| at + n).find(|&n| seam(text, n));
            at = ahead.unwrap_or(if tail.len() < WORD { text.len() } else { at });
        }
        match secret_at(name, text, at) {
            Some(secret) => at = secret.end,
            None => return at,
        }
    }
    at
}

/// Whether a text may be cut at a place: at white space, or between letters of a script that has none.
fn seam(text: &str, at: usize) -> bool {
    let before = text.get(..at).and_then(|head| head.chars().next_back());
    let behind = text.get(at..).and_then(|tail| tail.chars().next());
    let (Some(before), Some(behind)) = (before, behind) else { return true };
    // from the radicals of CJK on
    before.is_whitespace() || behind.is_whitespace() || (before >= '\u{2e80}' && behind >= '\u{2e80}')
}

/// Where a character begins, at `at` or before.
fn floor(text: &str, at: usize) -> usize {
    if at >= text.len() {
        return text.len();
    }
    (0..4).filter_map(|back| at.checked_sub(back)).find(|&at| text.is_char_boundary(at)).unwrap_or(0)
}

/// Where a character begins, at `at` or behind.
fn ceil(text: &str, at: usize) -> usize {
    (at..at.saturating_add(4)).find(|&at| text.is_char_boundary(at)).unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_whole() {
        assert!(SHAPES.is_some());
        let text = "one two-three four";
        for at in 0..=text.len() {
            let (head, tail) = (&text[..cut_before(None, text, at)], &text[cut_after(None, text, at)..]);
            assert!(head.len() <= at && text.len() - tail.len() >= at.min(text.len()));
            for word in head.split_whitespace().chain(tail.split_whitespace()) {
                assert!(["one", "two-three", "four"].contains(&word), "{head:?} {tail:?}");
            }
        }
        let run = "x".repeat(3 * WORD);
        assert_eq!((cut_before(None, &run, 2 * WORD), cut_after(None, &run, WORD)), (2 * WORD, WORD));
        assert_eq!((cut_before(None, &run, 100), cut_after(None, &run, run.len() - 100)), (0, run.len()));
        assert_eq!(cut_before(None, "漢字漢字", 7), 6);
        assert_eq!(cut_before(None, "é", 9), 2);
    }

    #[test]
    fn blocks_are_whole() {
        let line = "c3RhbmRzIGZvciBhIGtleSBvZiBzb21lIGtpbmQgYW5kIG5vdGhpbmcgZWxzZQ7x";
        let dashes = "-".repeat(5);
        let key = format!(
            "{dashes}BEGIN PRIVATE KEY{dashes}\n{}{dashes}END PRIVATE KEY{dashes}",
            format!("{line}\n").repeat(12)
        );
        let text = format!("before it\n{key}\nbehind it\n");
        for at in (0..text.len()).step_by(5) {
            let (head, tail) = (&text[..cut_before(None, &text, at)], &text[cut_after(None, &text, at)..]);
            for part in [head, tail] {
                assert!(part.contains(&key) || !part.contains(&line[..20]), "{at}: {part}");
            }
        }
    }
}
