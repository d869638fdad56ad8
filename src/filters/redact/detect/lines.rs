//! Tokens that a terminal, a mail or a bound of another program has broken.

use super::bytes::{Set, blanks, byte, part, run_end, starts};
use super::value::{self, Mix};

/// Lines that one token may be broken into.
const LINES: usize = 8;

/// Whether a text was cut at an offset: an ellipsis follows, in brackets or not, behind at most one line end.
pub(super) fn is_cut(text: &[u8], at: usize) -> bool {
    let mut to = blanks(text, at, 2);
    if byte(text, to) == b'\n' {
        to += 1;
    }
    if byte(text, to) == b'[' {
        to += 1;
    }
    starts(text, to, "…".as_bytes()) || starts(text, to, b"...") || starts(text, to, b"<trunc")
}

/// Where a token ends that begins at `at` and goes on in other lines. `stop` is where it ends in its own line, with
/// its whole shape (`whole`) or not; `fits` says where in the joined lines it ends.
pub(super) fn further(
    text: &[u8],
    at: usize,
    stop: usize,
    whole: bool,
    fits: impl FnOnce(&[u8]) -> Option<usize>,
) -> Option<usize> {
    let mut end = stop;
    let mut next = following(text, stop)?;
    // lines are broken where they are full; a token that is whole seldom goes on
    let width = {
        let head = part(text, stop.saturating_sub(512), stop);
        head.iter().rev().take_while(|&&byte| byte != b'\n').count()
    };
    if whole && width < 60 {
        return None;
    }
    let mut joined = part(text, at, stop).to_vec();
    // where in `joined` a line begins, and where that is in the text
    let mut seams = Vec::new();
    for _ in 0..LINES {
        let to = run_end(text, Set::Opaque, next);
        let run = part(text, next, to);
        let closed =
            matches!(byte(text, to), b'\n' | b'\r' | b'"' | b'\'' | b'`' | b' ' | b',' | b')' | b'|' | 0);
        if run.is_empty() || !closed || (whole && (run.len() > width || !alone(text, to) || is_other(run))) {
            break;
        }
        seams.push((joined.len(), next));
        joined.extend_from_slice(run);
        end = to;
        match following(text, to) {
            Some(more) if to - next + 2 >= width.min(40) || !whole => next = more,
            _ => break,
        }
    }
    let found = fits(&joined)?;
    // it has to reach into another line
    let (seam, place) = seams.iter().rev().find(|(seam, _)| *seam < found)?;
    let to = place + (found - seam);
    (to <= end).then_some(to)
}

/// Where the next line begins when a line ends at an offset: behind its indent, and the sign of a quoted one.
fn following(text: &[u8], at: usize) -> Option<usize> {
    let mut to = at;
    if byte(text, to) == b'\r' {
        to += 1;
    }
    if byte(text, to) != b'\n' {
        return None;
    }
    to = blanks(text, to + 1, 32);
    if matches!(byte(text, to), b'>' | b'|') && byte(text, to + 1) == b' ' {
        to = blanks(text, to + 1, 8);
    }
    Set::Opaque.has(byte(text, to)).then_some(to)
}

/// Whether nothing stands behind an offset in its line but quotes and signs.
fn alone(text: &[u8], at: usize) -> bool {
    let rest = part(text, at, (at + 8).min(text.len()));
    let line = rest.iter().position(|&byte| byte == b'\n' || byte == b'\r').unwrap_or(rest.len());
    rest.get(..line).unwrap_or_default().iter().all(|byte| b"\"'`,;) |".contains(byte))
        && (line < 8 || rest.len() < 8)
}

/// Whether a line is something of its own: words, a name with its value, a hash, a short number.
fn is_other(run: &[u8]) -> bool {
    let mix = Mix::of(run);
    run.len() < 4
        || value::words(run)
        || value::hash(run)
        || mix.kinds() < 2
        || run.get(..run.len() - 2).is_some_and(|r| r.contains(&b'='))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_is_told_by_its_mark() {
        for (text, cut) in [
            ("ab…", true),
            ("ab[… 3 bytes left out …]", true),
            ("ab\n[…]\n", true),
            ("ab ...", true),
            ("ab", false),
            ("ab. c", false),
        ] {
            assert_eq!(is_cut(text.as_bytes(), 2), cut, "{text}");
        }
    }

    #[test]
    fn tokens_go_on_in_the_next_lines() {
        let fits = |wanted: usize| move |joined: &[u8]| (joined.len() >= wanted).then_some(wanted);
        let text = b"t_aB3dE5\n  gH7jK9\n  mN1\nnext";
        assert_eq!(further(text, 0, 8, false, fits(8 + 6 + 3)), Some(23));
        assert_eq!(further(text, 0, 8, false, fits(8 + 4)), Some(15));
        assert_eq!(further(text, 0, 8, false, fits(99)), None);
        assert_eq!(further(text, 0, 8, true, fits(12)), None, "the line was not full");
        let head = "x".repeat(70);
        let wide = |rest: &str| format!("{head}\n{rest}");
        let at = head.len();
        let more = |text: &str| further(text.as_bytes(), 0, at, true, |joined| Some(joined.len()));
        assert_eq!(more(&wide("gH7jK9\n")), Some(at + 7));
        for other in
            ["and then\n", "NAME=gH7jK9\n", "gH7jK9 is it\n", "d41d8cd98f00b204e9800998ecf8427e\n", "12\n"]
        {
            assert_eq!(more(&wide(other)), None, "{other}");
        }
    }
}
