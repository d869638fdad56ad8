//! Secrets that stand apart from their name: columns of tables, statements of SQL, lists of codes.

use super::Confidence;
use super::bytes::{before, begins, blanks, byte, part, starts};
use super::scan::Scan;
use super::value::{self, Mix};
use super::{assign, shell};

/// Rows of a table that are looked at.
const ROWS: usize = 200;

/// Bytes of a table that are looked at.
const TABLE: usize = 16 << 10;

/// The cells below a head: `| user | password |`, `user,password`. The keyword, at the end of a name, stands at
/// `at..end`.
pub(super) fn column(scan: &mut Scan<'_>, at: usize, end: usize) {
    let text = scan.text;
    // most keywords stand in no table, which their neighbours show
    let right = blanks(text, end, 40);
    if !matches!(byte(text, right), b'|' | b',' | b';' | b'\t' | b'\n' | b'\r' | 0) {
        return;
    }
    let mut start = at;
    while start > at.saturating_sub(24)
        && matches!(before(text, start), b'a'..=b'z' | b'A'..=b'Z' | b'_' | b'-' | b'0'..=b'9')
    {
        start -= 1;
    }
    let head = at.saturating_sub(256);
    let line = match memchr::memrchr(b'\n', part(text, head, at)) {
        Some(n) => head + n + 1,
        None if head == 0 => 0,
        // no head of a table is so long
        None => return,
    };
    // rows below a head are no heads
    if line != scan.columns.0 && at < scan.columns.1 {
        return;
    }
    let stop = |from: usize| {
        from + memchr::memchr(b'\n', part(text, from, (from + 1024).min(text.len()))).unwrap_or(1024)
    };
    let first = part(text, line, stop(line).min(text.len()));
    let Some(&sign) = [b'|', b'\t', b',', b';'].iter().find(|sign| first.contains(sign)) else { return };
    // the whole cell is the name
    let left = part(text, line, start);
    let trimmed =
        left.get(..left.iter().rposition(|byte| *byte != b' ').map_or(0, |n| n + 1)).unwrap_or_default();
    if !(trimmed.is_empty() || trimmed.last() == Some(&sign))
        || (byte(text, right) != sign && right < stop(line))
    {
        return;
    }
    let name = part(text, start, end);
    let column = left.iter().filter(|byte| **byte == sign).count();
    let count = first.iter().filter(|byte| **byte == sign).count();
    let mut from = line + first.len() + 1;
    scan.columns = (line, (line + TABLE).min(text.len()));
    for _ in 0..ROWS {
        if from >= text.len() || from > line + TABLE {
            return;
        }
        let to = stop(from).min(text.len());
        let row = part(text, from, to);
        let rule = !row.is_empty()
            && row.iter().all(|byte| matches!(byte, b'-' | b'+' | b'|' | b':' | b' ' | b'=' | b'\r'));
        if !rule {
            if row.iter().filter(|byte| **byte == sign).count() != count {
                scan.columns.1 = from;
                return;
            }
            let mut cells = row.split(|byte| *byte == sign);
            let skipped: usize = cells.by_ref().take(column).map(|cell| cell.len() + 1).sum();
            let cell = cells.next().unwrap_or_default();
            let trimmed = cell.trim_ascii();
            let bare = trimmed.trim_ascii();
            let quotes = usize::from(
                bare.len() > 2
                    && matches!(bare.first(), Some(b'"' | b'\'' | b'`'))
                    && bare.first() == bare.last(),
            );
            let bare = bare.get(quotes..bare.len() - quotes).unwrap_or_default();
            if assign::fits_column(scan, name, bare) {
                let begin = from + skipped + (cell.len() - cell.trim_ascii_start().len()) + quotes;
                scan.named("password-table", begin, begin + bare.len(), Confidence::Medium);
            }
        }
        from = to + 1;
    }
}

/// `IDENTIFIED BY '…'`, `PASSWORD '…'`, `PASSWORD = N'…'`, `PASSWORD('…')`. The keyword is the words before it.
pub(crate) fn sql(scan: &mut Scan<'_>, rule: usize, at: usize, end: usize) {
    let text = scan.text;
    if byte(text, at) != b' ' && !begins(text, at) {
        return;
    }
    let quoted = matches!(before(text, end), b'\'' | b'"');
    let mut to = if quoted { end - 1 } else { blanks(text, end, 8) };
    while matches!(byte(text, to), b'=' | b'(') {
        to = blanks(text, to + 1, 4);
    }
    for word in ["PASSWORD", "password", "VALUES", "values", "N"] {
        if starts(text, to, word.as_bytes()) && matches!(byte(text, to + word.len()), b' ' | b'\'' | b'"') {
            to = blanks(text, to + word.len(), 4);
        }
    }
    let by = part(text, at, end).eq_ignore_ascii_case(b"identified by");
    if !by && !matches!(byte(text, to), b'\'' | b'"') {
        return;
    }
    let (start, mut stop) = shell::word(scan, to);
    while !matches!(byte(text, to), b'\'' | b'"')
        && matches!(before(text, stop), b';' | b')' | b',')
        && stop > start
    {
        stop -= 1;
    }
    if shell::password(part(text, start, stop)) {
        scan.loose(rule, start, stop, Confidence::Medium);
    }
}

/// Codes that let a user in without the second factor. The keyword names them.
pub(crate) fn codes(scan: &mut Scan<'_>, rule: usize, _at: usize, end: usize) {
    let text = scan.text;
    let mut at = end;
    if byte(text, at) == b's' {
        at += 1;
    }
    let mut seen = 0;
    // a list has ten or twenty of them
    for _ in 0..24 {
        let rest = part(text, at, (at + 24).min(text.len()));
        let gap = rest.iter().take_while(|byte| !byte.is_ascii_alphanumeric()).count();
        let between = rest.get(..gap).unwrap_or_default();
        if gap == rest.len() || (seen == 0 && !between.iter().any(|b| matches!(b, b':' | b'\n' | b'='))) {
            return;
        }
        let start = at + gap;
        let code = part(text, start, (start + 40).min(text.len()));
        let length = code.iter().take_while(|&&b| b.is_ascii_alphanumeric() || b == b'-').count();
        let code = code.get(..length).unwrap_or_default();
        // the number of a line of the list
        if code.len() <= 2 && code.iter().all(u8::is_ascii_digit) {
            at = start + length;
            continue;
        }
        let parts = || code.split(|byte| *byte == b'-');
        let mix = Mix::of(code);
        let long = parts().all(|part| (4..=16).contains(&part.len()));
        if !long || !(8..=36).contains(&code.len()) || mix.digit < 1 || value::placeholder(code) {
            return;
        }
        scan.loose(rule, start, start + length, Confidence::Medium);
        seen += 1;
        at = start + length;
    }
}
