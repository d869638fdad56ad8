//! Secrets of commands and of the files that they read.

use super::Confidence;
use super::bytes::{Set, before, begins, blanks, byte, part, starts};
use super::scan::Scan;
use super::value::{self, Mix};

/// A word of a command at an offset, without its quotes.
fn word(scan: &mut Scan<'_>, at: usize) -> (usize, usize) {
    let text = scan.text;
    let slashes =
        text.get(at..).unwrap_or_default().iter().take(3).take_while(|&&byte| byte == b'\\').count();
    let mark = byte(text, at + slashes);
    if matches!(mark, b'"' | b'\'') {
        let start = at + slashes + 1;
        let rest = part(text, start, (start + 512).min(text.len()));
        let stop = rest.iter().position(|&byte| byte == mark || byte == b'\n').unwrap_or(rest.len());
        let escapes = slashes.min(stop);
        return (start, start + stop - escapes);
    }
    (at, scan.run(Set::Value, at))
}

/// Whether a word of a command may be a password.
fn password(word: &[u8]) -> bool {
    let mix = Mix::of(word);
    (6..=512).contains(&word.len())
        && mix.kinds() >= 2
        && !value::lookup(word)
        && !value::placeholder(word)
        && !value::path(word)
        && (!value::surely_words(word) || mix.sign > 0)
        && word.iter().all(|byte| (33..127).contains(byte))
}

/// `curl -u name:password`, `--user name:password`. The keyword is the flag.
pub(crate) fn user_flag(scan: &mut Scan<'_>, rule: usize, _at: usize, end: usize) {
    let text = scan.text;
    let mut at = end;
    if matches!(byte(text, at), b' ' | b'=') {
        at = blanks(text, at + 1, 4);
    }
    let (start, to) = word(scan, at);
    if to - start > 512 {
        return;
    }
    let Some(colon) = memchr::memchr(b':', part(text, start, to)) else { return };
    let from = start + colon + 1;
    if colon > 0 && password(part(text, from, to)) && !part(text, start, to).contains(&b'/') {
        scan.loose(rule, from, to, Confidence::Medium);
    }
}

/// `mysql -pSECRET`, `sshpass -p SECRET`, `redis-cli -a SECRET`, `docker login … -p SECRET`. The keyword is the command.
pub(crate) fn command(scan: &mut Scan<'_>, rule: usize, at: usize, end: usize) {
    let text = scan.text;
    if !begins(text, at) || byte(text, end) != b' ' || scan.seen(rule, at) {
        return;
    }
    let name = part(text, at, end);
    // Up to the end of the command: a line, a pipe, another command.
    let rest = part(text, end, (end + 200).min(text.len()));
    let stop = rest.iter().position(|&byte| matches!(byte, b'\n' | b'|' | b';')).unwrap_or(rest.len());
    scan.looked(rule, end + stop);
    let flag: &[u8] = if name.starts_with(b"redis") { b" -a" } else { b" -p" };
    let Some(found) = memchr::memmem::find(rest.get(..stop).unwrap_or_default(), flag) else { return };
    let behind = end + found + 3;
    // mysql takes it without a blank only; there `-P` is the port.
    let joined = name.starts_with(b"my") || name.starts_with(b"maria");
    let blank = byte(text, behind) == b' ';
    if joined == blank {
        return;
    }
    let (start, to) = word(scan, blanks(text, behind, 2));
    if password(part(text, start, to)) {
        scan.loose(rule, start, to, Confidence::Medium);
    }
}

/// A line of a pgpass file: host, port, database, user, password. The keyword is the port between colons.
pub(crate) fn pgpass(scan: &mut Scan<'_>, rule: usize, at: usize, end: usize) {
    let text = scan.text;
    if !(Set::Dotted.has(before(text, at)) || before(text, at) == b'*') {
        return;
    }
    let mut from = end;
    for _ in 0..2 {
        let rest = part(text, from, (from + 64).min(text.len()));
        let field = rest.iter().take_while(|&&byte| Set::Dotted.has(byte) || byte == b'*').count();
        if field == 0 || byte(text, from + field) != b':' {
            return;
        }
        from += field + 1;
    }
    let to = scan.run(Set::Value, from);
    let value = part(text, from, to);
    if (4..=256).contains(&value.len())
        && !value::lookup(value)
        && !value::placeholder(value)
        && !value::plain(value)
    {
        scan.hit(rule, from, to, Confidence::High);
    }
}

/// Hashes of passwords as htpasswd, crypt and shadow files hold them. The keyword is the name of the algorithm.
pub(crate) fn crypt(scan: &mut Scan<'_>, rule: usize, at: usize, end: usize) {
    let text = scan.text;
    if before(text, at) == b'$' || before(text, at).is_ascii_alphanumeric() {
        return;
    }
    let body =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'/' | b'$' | b'=' | b',' | b'+');
    let rest = part(text, end, (end + 200).min(text.len()));
    let mut length = rest.iter().take_while(|&&byte| body(byte)).count();
    while length > 0 && matches!(before(text, end + length), b'.' | b',') && length > 54 {
        length -= 1;
    }
    let name = part(text, at, end);
    let least = if name == b"$apr1$" || name == b"$1$" {
        24
    } else if name.starts_with(b"$2") {
        56
    } else {
        44
    };
    if (least..=180).contains(&length) && value::entropy(part(text, end, end + length)) >= 3.5 {
        scan.hit(rule, at, end + length, Confidence::Medium);
    }
}

/// `:_password=` and `:_auth=` of an npmrc file are assignments; `identitytoken` of a docker file is one, too.
pub(crate) fn identity(scan: &mut Scan<'_>, rule: usize, _at: usize, end: usize) {
    let text = scan.text;
    let mut at = end;
    while at < end + 16 && matches!(byte(text, at), b'"' | b'\\' | b' ' | b':' | b'=') {
        at += 1;
    }
    let to = scan.run(Set::Opaque, at);
    let token = part(text, at, to);
    if at > end
        && (20..=8192).contains(&token.len())
        && !value::words(token)
        && value::entropy(token) >= 3.0
        && !starts(text, to, b"(")
    {
        scan.hit(rule, at, to, Confidence::High);
    }
}
