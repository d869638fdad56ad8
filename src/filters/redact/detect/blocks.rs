//! Secrets of many lines: private keys, secrets of Kubernetes, words that are a wallet's seed.

use super::Confidence;
use super::bytes::{Set, before, begins, blanks, byte, holds, part, starts};
use super::scan::Scan;
use super::value;
use memchr::memmem;

/// The longest private key that is taken: RSA of 16384 bits with numbered lines fits.
const LONGEST: usize = 16 << 10;

/// `-----BEGIN … PRIVATE KEY-----` to its end, whatever stands for its line ends: `\n` escaped once or twice,
/// CRLF, numbers of `cat -n`, `+` of a diff, quotes of joined texts. Without an end, as far as lines look like a key.
pub(crate) fn pem(scan: &mut Scan<'_>, rule: usize, at: usize, end: usize) {
    let text = scan.text;
    if starts(text, at, b"-----END") {
        return pem_tail(scan, rule, at, end);
    }
    let label = part(text, end, (end + 48).min(text.len()));
    let Some(dashes) = memmem::find(label, b"-----") else { return };
    let name = label.get(..dashes).unwrap_or_default();
    if !holds(name, "PRIVATE KEY")
        || !name.iter().all(|&byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b' ')
    {
        return;
    }
    let body = end + dashes + 5;
    if !is_body(text, body) {
        return;
    }
    let cap = (body + LONGEST).min(text.len());
    let stop = scan.next_end(body).filter(|&stop| stop < cap);
    let to = match stop {
        Some(stop) => {
            let tail = part(text, stop + 8, (stop + 56).min(text.len()));
            stop + 8 + memmem::find(tail, b"-----").map_or(0, |dashes| dashes + 5)
        }
        None => unfinished(text, body, cap),
    };
    scan.hit(rule, at, to, Confidence::High);
}

/// What is left of a private key whose beginning was cut off: the lines before its end.
fn pem_tail(scan: &mut Scan<'_>, rule: usize, at: usize, end: usize) {
    let text = scan.text;
    let label = part(text, end, (end + 48).min(text.len()));
    let Some(dashes) = memmem::find(label, b"-----") else { return };
    if !holds(label.get(..dashes).unwrap_or_default(), "PRIVATE KEY") {
        return;
    }
    let from = at.saturating_sub(LONGEST).max(scan.covered);
    let body = part(text, from, at);
    let (mut start, mut to, mut long) = (at, at, 0);
    for run in body.rsplit(|&byte| !(Set::Base64.has(byte) || byte == b'=')) {
        let first = to - run.len();
        // what escapes and numbers of lines leave between the lines
        let between = run.len() < 16 && (long > 0 || start < at || run.len() <= 1);
        if between
            && !(run.len() <= 6 && run.iter().all(|b| b.is_ascii_digit() || matches!(b, b'n' | b'r' | b'+')))
        {
            break;
        }
        // the `n` of an escaped line end is no letter of the line
        if !between {
            long += usize::from(run.len() >= 40);
            start = first;
        }
        to = first.saturating_sub(1);
        if to <= from {
            break;
        }
    }
    if long > 0 {
        scan.hit(rule, start, end + dashes + 5, Confidence::High);
    }
}

/// Whether a key follows: soon 24 bytes of base64, or the headers of an encrypted one.
fn is_body(text: &[u8], from: usize) -> bool {
    let head = part(text, from, (from + 120).min(text.len()));
    let first = head.get(..40).unwrap_or(head);
    for header in ["Proc-Type", "DEK-Info", "Version:", "Comment:", "Charset:"] {
        if holds(first, header) {
            return true;
        }
    }
    let mut run = 0;
    for (at, &byte) in head.iter().enumerate() {
        if Set::Base64.has(byte) || byte == b'=' {
            run += 1;
            if run >= 24 {
                let start = at + 1 - run;
                return !value::plain(head.get(start..=at).unwrap_or_default());
            }
        } else {
            run = 0;
            // Line ends, their escapes, numbers, quotes: not more than this stands before the first line.
            if at > 64 {
                return false;
            }
        }
    }
    false
}

/// Where the lines of a key without an end stop.
fn unfinished(text: &[u8], from: usize, cap: usize) -> usize {
    let mut at = from;
    let mut end = from;
    while at < cap {
        // One line: what may stand before, base64, what may stand behind.
        let line = part(text, at, cap);
        let between =
            line.iter().take(24).take_while(|&&byte| !Set::Base64.has(byte) || byte == b'+').count();
        let escape = line.get(..between).unwrap_or_default().last() == Some(&b'\\');
        let start = at + between + usize::from(escape);
        let rest = part(text, start, cap);
        let run = rest.iter().take_while(|&&byte| Set::Base64.has(byte) || byte == b'=').count();
        let number = run <= 6 && rest.get(..run).unwrap_or_default().iter().all(u8::is_ascii_digit);
        if run == 0 || (run < 16 && !number && end != from) {
            // The last line may be short; it ends in `=` or the text.
            if run > 0 && before(text, start + run) == b'=' {
                end = start + run;
            }
            break;
        }
        if !number {
            end = start + run;
        }
        at = start + run;
    }
    end
}

/// A PEM block that was put into base64 as a whole. The keyword is base64 of `-----BEGIN`.
pub(crate) fn pem_in_base64(scan: &mut Scan<'_>, rule: usize, at: usize, _end: usize) {
    let text = scan.text;
    if !begins(text, at) {
        return;
    }
    let mut to = scan.run(Set::Base64, at);
    // Of `-----BEGIN RSA PRIVATE KEY`: the word PRIVATE at all three alignments.
    const PRIVATE: [&[u8]; 3] = [b"UFJJVkFUR", b"BSSVZBVE", b"QUklWQVRF"];
    let head = part(text, at, (at + 80).min(to));
    if to - at < 160 || !PRIVATE.iter().any(|word| memmem::find(head, word).is_some()) {
        return;
    }
    while byte(text, to) == b'=' && to < text.len() {
        to += 1;
    }
    scan.hit(rule, at, to, Confidence::High);
}

/// A key of PuTTY or of SSH2: to its last line, or as far as a key is long.
pub(crate) fn putty(scan: &mut Scan<'_>, rule: usize, at: usize, end: usize) {
    let text = scan.text;
    if scan.seen(rule, at) {
        return;
    }
    let cap = (end + LONGEST).min(text.len());
    let block = part(text, end, cap);
    let marks: [(&[u8], usize); 2] = [(b"Private-MAC: ", 64), (b"---- END SSH2", 40)];
    // The lines of a key are counted and named: a mention in a text has none.
    let head = block.get(..block.len().min(400)).unwrap_or_default();
    if memmem::find(head, b"ncryption:").is_none() && memmem::find(head, b"PRIVATE KEY ----").is_none() {
        return;
    }
    for (mark, most) in marks {
        if let Some(found) = memmem::find(block, mark) {
            let tail = end + found + mark.len();
            let stop = part(text, tail, (tail + most).min(text.len()))
                .iter()
                .position(|&byte| byte <= b' ' || byte == b'\\');
            scan.hit(rule, at, tail + stop.unwrap_or(most).min(text.len() - tail), Confidence::High);
            return;
        }
    }
    scan.looked(rule, cap);
    let stop = unfinished(text, end, cap);
    if stop > end + 64 {
        scan.hit(rule, at, stop, Confidence::Medium);
    }
}

/// A secret of Kubernetes: the values below `data:` are base64. The keyword is `kind: Secret`.
pub(crate) fn kubernetes(scan: &mut Scan<'_>, rule: usize, at: usize, end: usize) {
    let text = scan.text;
    if byte(text, end).is_ascii_alphanumeric() || scan.seen(rule, at) {
        return;
    }
    // `data:` may stand before the kind as well: kubectl sorts the keys.
    let from = at.saturating_sub(4 << 10);
    let head = part(text, from, at);
    let begin = memmem::rfind(head, b"apiVersion").map_or(at, |n| from + n);
    let cap = (end + LONGEST).min(text.len());
    let block = part(text, begin, cap);
    let stop = memmem::find(block, b"\n---").unwrap_or(block.len());
    scan.looked(rule, begin + stop);
    let mut at = begin;
    while let Some(colon) = memchr::memchr(b':', part(text, at, begin + stop)) {
        let start = at + colon + 1;
        let value = start
            + text
                .get(start..)
                .unwrap_or_default()
                .iter()
                .take(4)
                .take_while(|byte| matches!(byte, b' ' | b'"' | b'\\'))
                .count();
        let mut to = scan.run(Set::Base64, value);
        while byte(text, to) == b'=' && to < value + (64 << 10) {
            to += 1;
        }
        let token = part(text, value, to);
        let sound = token.len() >= 8 && token.len().is_multiple_of(4) && !value::words(token);
        if sound && value > start {
            scan.hit(rule, value, to, Confidence::High);
        }
        at = to.max(start);
    }
}

/// Words of a seed: 12, 15, 18, 21 or 24 of three to eight small letters (BIP 39). The keyword names it.
pub(crate) fn seed(scan: &mut Scan<'_>, rule: usize, _at: usize, end: usize) {
    let text = scan.text;
    let mut at = end;
    // From the name to the words: quotes, signs, "is", "phrase".
    for _ in 0..4 {
        let skip = text
            .get(at..)
            .unwrap_or_default()
            .iter()
            .take(8)
            .take_while(|byte| !byte.is_ascii_lowercase())
            .count();
        at += skip;
        match ["phrase", "words", "is ", "mnemonic", "seed"]
            .iter()
            .find(|word| starts(text, at, word.as_bytes()))
        {
            Some(word) => at += word.len(),
            None => break,
        }
    }
    let start = at;
    let (mut count, mut to) = (0, at);
    // Words that prose cannot do without and the list does not have.
    const PROSE: &[&str] = &[
        "the", "and", "for", "was", "are", "has", "had", "its", "but", "you", "your", "from", "with", "not",
        "were", "which", "should", "would",
    ];
    while count < 24 {
        let word = text
            .get(at..)
            .unwrap_or_default()
            .iter()
            .take(9)
            .take_while(|byte| byte.is_ascii_lowercase())
            .count();
        if !(3..=8).contains(&word) || PROSE.iter().any(|prose| part(text, at, at + word) == prose.as_bytes())
        {
            break;
        }
        count += 1;
        to = at + word;
        at = blanks(text, to, 2);
        if at == to {
            break;
        }
    }
    if matches!(count, 12 | 15 | 18 | 21 | 24) && !byte(text, to).is_ascii_alphanumeric() {
        scan.hit(rule, start, to, Confidence::Medium);
    }
}
