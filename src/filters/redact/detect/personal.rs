//! Personal data: home folders, mail addresses, machines, and what is made of digits.

use super::bytes::{Set, before, begins, byte, part, starts};
use super::scan::Scan;
use super::{Class, Confidence};

/// The name in a home folder. The keyword is the folder of all homes.
pub(crate) fn home(scan: &mut Scan<'_>, rule: usize, at: usize, end: usize) {
    let text = scan.text;
    let dashed = byte(text, at) == b'-';
    let last = before(text, at);
    let free = if dashed {
        // As a name of a folder: `projects/-Users-jane-src`.
        matches!(last, b'/' | b'\\' | b'"' | b'\'' | b' ' | b'\n' | 0)
    } else {
        let drive = last.is_ascii_alphabetic() && before(text, at - 1) == b'/';
        let root = last == b'/'
            && before(text, at - 1) == b'/'
            && matches!(before(text, at.saturating_sub(2)), b':' | b'/');
        drive
            || root
            || !(last.is_ascii_alphanumeric() || matches!(last, b'_' | b'-' | b'.' | b'/' | b'~' | b'}'))
            || begins(text, at) && last.is_ascii_alphabetic()
    };
    if !free {
        return;
    }
    // A doubled backslash stands in JSON inside of JSON.
    let start = if byte(text, at) == b'\\' && byte(text, end) == b'\\' { end + 1 } else { end };
    let set = if dashed { Set::Alnum } else { Set::Dotted };
    let mut to = scan.run(set, start);
    while to > start && matches!(before(text, to), b'.' | b'-') {
        to -= 1;
    }
    let name = part(text, start, to);
    const NOBODY: &[&str] = &[
        "shared",
        "public",
        "default",
        "user",
        "username",
        "you",
        "me",
        "name",
        "runner",
        "ubuntu",
        "node",
        "root",
        "vscode",
        "app",
        "your-name",
        "yourname",
        "your_username",
        "xxx",
        "guest",
        "all",
        "linuxbrew",
        "codespace",
        "gitpod",
        "circleci",
    ];
    if !name.is_empty()
        && name.len() <= 64
        && !NOBODY.iter().any(|nobody| name.eq_ignore_ascii_case(nobody.as_bytes()))
    {
        scan.loose(rule, start, to, Confidence::High);
    }
}

/// A mail address around `@`.
pub(crate) fn email(scan: &mut Scan<'_>, rule: usize, at: usize, end: usize) {
    let text = scan.text;
    let local = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'%' | b'+' | b'-');
    let mut start = at;
    while start > at.saturating_sub(64) && local(before(text, start)) {
        start -= 1;
    }
    while start < at && !byte(text, start).is_ascii_alphanumeric() {
        start += 1;
    }
    // The letter of an escape is no part of the name: `\njane@…`.
    if before(text, start) == b'\\' && matches!(byte(text, start), b'n' | b't' | b'r') {
        start += 1;
    }
    if start == at {
        return;
    }
    // A password before a host, unless it is `mailto:`.
    if before(text, start) == b':'
        && !text.get(..start).is_some_and(|head| head.ends_with(b"mailto:"))
        && text.get(..start).is_some_and(|head| {
            head.get(head.len().saturating_sub(64)..)
                .is_some_and(|near| memchr::memmem::find(near, b"://").is_some())
        })
    {
        return;
    }
    let mut to = scan.run(Set::Dotted, end);
    while to > end && !before(text, to).is_ascii_alphanumeric() {
        to -= 1;
    }
    let domain = part(text, end, to);
    if domain.len() > 255 || byte(text, to) == b':' && starts(text, start, b"git@") {
        return;
    }
    let Some(dot) = memchr::memrchr(b'.', domain) else { return };
    let top = domain.get(dot + 1..).unwrap_or_default().to_ascii_lowercase();
    const FILES: &[&str] = &[
        "png", "jpg", "jpeg", "gif", "svg", "webp", "ico", "js", "ts", "tsx", "jsx", "css", "scss", "html",
        "json", "py", "rs", "go", "rb", "md", "sh", "yml", "yaml", "toml", "lock", "tgz", "gz", "zip", "whl",
        "so", "dylib", "service", "timer", "target", "socket",
    ];
    let name = part(text, start, at).to_ascii_lowercase();
    let nobody = matches!(
        name.as_slice(),
        b"git"
            | b"noreply"
            | b"no-reply"
            | b"donotreply"
            | b"user"
            | b"you"
            | b"me"
            | b"name"
            | b"username"
            | b"email"
    );
    let domain = domain.to_ascii_lowercase();
    let made_up = [
        "example.com",
        "example.org",
        "example.net",
        "test.com",
        "users.noreply.github.com",
        "domain.com",
        "email.com",
    ]
    .iter()
    .any(|made_up| domain == made_up.as_bytes())
        || domain.ends_with(b".example");
    if top.len() >= 2
        && top.iter().all(u8::is_ascii_alphabetic)
        && !FILES.iter().any(|file| top == file.as_bytes())
        && !nobody
        && !made_up
    {
        scan.loose(rule, start, to, Confidence::High);
    }
}

/// A name of a private network. The keyword is its ending.
pub(crate) fn host(scan: &mut Scan<'_>, rule: usize, at: usize, end: usize) {
    let text = scan.text;
    let after = byte(text, end);
    if after.is_ascii_alphanumeric()
        || matches!(after, b'_' | b'-' | b'(' | b'=')
        || (after == b'.' && byte(text, end + 1).is_ascii_alphanumeric())
    {
        return;
    }
    // `this.local = 1` is code.
    if after == b' ' && matches!(byte(text, end + 1), b'=' | b'+' | b'-' | b'!') {
        return;
    }
    let mut start = at;
    let letter = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.');
    while start > at.saturating_sub(253) && letter(before(text, start)) {
        start -= 1;
    }
    while start < at && !byte(text, start).is_ascii_alphanumeric() {
        start += 1;
    }
    let name = part(text, start, at);
    let code =
        [b"self".as_slice(), b"this", b"java", b"sun", b"std", b"env", b".env", b"settings", b"config"];
    if name.is_empty()
        || before(text, start) == b'_'
        || code.contains(&name)
        || starts(text, start, b"com.")
        || starts(text, start, b"org.")
    {
        return;
    }
    scan.loose(rule, start, end, Confidence::High);
}

/// Addresses, numbers of telephones and cards, and hardware addresses: one pass over the digits.
pub(super) fn digits(scan: &mut Scan<'_>, rules: &[(usize, Class)]) {
    let text = scan.text;
    let wanted = |class: Class| rules.iter().find(|rule| rule.1 == class).map(|rule| rule.0);
    let (ip, phone, card, mac) =
        (wanted(Class::Ip), wanted(Class::Phone), wanted(Class::Card), wanted(Class::Mac));
    let mut at = 0;
    while let Some(&first) = text.get(at) {
        let start = at;
        let hex = first.is_ascii_hexdigit();
        if !(hex || matches!(first, b'+' | b'(' | b':')) || !free(text, start) {
            at += 1;
            continue;
        }
        let mut found = None;
        if hex && let Some(rule) = mac {
            found = hardware(text, start).map(|end| (rule, end));
        }
        if found.is_none()
            && let Some(rule) = ip
        {
            found = address(text, start).map(|end| (rule, end));
        }
        if found.is_none()
            && let Some(rule) = card
        {
            found = payment(text, start).map(|end| (rule, end));
        }
        if found.is_none()
            && let Some(rule) = phone
        {
            found = telephone(text, start).map(|end| (rule, end));
        }
        match found {
            Some((rule, end)) => {
                scan.loose(rule, start, end, Confidence::High);
                at = end;
            }
            None => at += 1,
        }
    }
}

/// Whether a number may begin here.
fn free(text: &[u8], at: usize) -> bool {
    let last = before(text, at);
    !(last.is_ascii_alphanumeric() || matches!(last, b'_' | b'.' | b':' | b'-' | b'+'))
        || (last.is_ascii_alphabetic() && begins(text, at))
}

/// `a4:83:e7:1b:2c:3d`, also with dashes.
fn hardware(text: &[u8], at: usize) -> Option<usize> {
    let address = part(text, at, at + 17);
    let sign = byte(address, 2);
    let fits = address.len() == 17
        && matches!(sign, b':' | b'-')
        && address
            .iter()
            .enumerate()
            .all(|(n, &byte)| if n % 3 == 2 { byte == sign } else { byte.is_ascii_hexdigit() });
    let next = byte(text, at + 17);
    let same =
        address.iter().filter(|byte| byte.is_ascii_hexdigit()).all(|byte| Some(byte) == address.first());
    (fits && !same && !next.is_ascii_alphanumeric() && next != sign).then_some(at + 17)
}

/// An address of version 4 or 6 that is not of this machine.
fn address(text: &[u8], at: usize) -> Option<usize> {
    let rest = part(text, at, (at + 46).min(text.len()));
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit() || **byte == b'.').count();
    let mut four = rest.get(..digits).unwrap_or_default();
    while four.last() == Some(&b'.') {
        four = four.get(..four.len() - 1).unwrap_or_default();
    }
    let end = at + four.len();
    if let Some(address) =
        std::str::from_utf8(four).ok().and_then(|text| text.parse::<std::net::Ipv4Addr>().ok())
    {
        let next = byte(text, end);
        let head = part(text, at.saturating_sub(12), at).to_ascii_lowercase();
        let signs =
            head.iter().rev().take_while(|byte| matches!(byte, b'=' | b':' | b'"' | b'\'' | b' ')).count();
        let head = head.get(..head.len() - signs).unwrap_or_default();
        let version = [b"version".as_slice(), b"ver", b"v"].iter().any(|word| head.ends_with(word));
        let own = address.is_loopback() || address.is_unspecified() || address.is_broadcast();
        // A mask of a network, a version of four numbers.
        let mask = address.octets().first() == Some(&255);
        return (!own && !mask && !version && !next.is_ascii_alphanumeric() && next != b'_' && next != b'-')
            .then_some(end);
    }
    let six = rest.iter().take_while(|byte| byte.is_ascii_hexdigit() || matches!(byte, b':' | b'.')).count();
    let mut six = rest.get(..six).unwrap_or_default();
    while matches!(six.last(), Some(b'.')) || (six.last() == Some(&b':') && !six.ends_with(b"::")) {
        six = six.get(..six.len() - 1).unwrap_or_default();
    }
    let end = at + six.len();
    // Shorter ones are paths of code (`a::b`) and times.
    if six.len() < 7
        || six.iter().filter(|byte| **byte == b':').count() < 2
        || !six.iter().any(u8::is_ascii_digit)
    {
        return None;
    }
    let address: std::net::Ipv6Addr = std::str::from_utf8(six).ok()?.parse().ok()?;
    let next = byte(text, end);
    (!address.is_loopback()
        && !address.is_unspecified()
        && !next.is_ascii_alphanumeric()
        && next != b'_'
        && next != b':')
        .then_some(end)
}

/// 13 to 19 digits of a known issuer that Luhn's sum holds for, in groups or not.
fn payment(text: &[u8], at: usize) -> Option<usize> {
    let mut digits = [0u8; 19];
    let mut count = 0;
    let mut end = at;
    let mut sign = 0;
    for (n, &byte) in part(text, at, (at + 24).min(text.len())).iter().enumerate() {
        match byte {
            b'0'..=b'9' => {
                *digits.get_mut(count)? = byte - b'0';
                count += 1;
                end = at + n + 1;
            }
            b' ' | b'-' if count >= 4 && (sign == 0 || sign == byte) && end == at + n => sign = byte,
            _ => break,
        }
    }
    let digits = digits.get(..count)?;
    let issuer = match (digits.first()?, digits.get(1)?) {
        (4, _) => matches!(count, 13 | 16 | 19),
        (5, 1..=5) | (2, 2..=7) => count == 16,
        (3, 4 | 7) => count == 15,
        (6, 0 | 2 | 4 | 5) => (16..=19).contains(&count),
        (3, 5) => count == 16,
        _ => false,
    };
    let sum: u32 = digits
        .iter()
        .rev()
        .enumerate()
        .map(|(n, &digit)| {
            let twice = u32::from(digit) * if n % 2 == 1 { 2 } else { 1 };
            twice / 10 + twice % 10
        })
        .sum();
    let varied = digits.iter().any(|digit| Some(digit) != digits.first());
    (issuer && varied && sum.is_multiple_of(10) && !byte(text, end).is_ascii_alphanumeric()).then_some(end)
}

/// `+CC …`, `(415) 555-2671`, a mobile number of China.
fn telephone(text: &[u8], at: usize) -> Option<usize> {
    let rest = part(text, at, (at + 24).min(text.len()));
    let first = byte(rest, 0);
    let (mut digits, mut end, mut groups) = (0, 0, 0);
    for (n, &byte) in rest.iter().enumerate() {
        match byte {
            b'0'..=b'9' => {
                if n > 0 && !rest.get(n - 1).is_some_and(u8::is_ascii_digit) {
                    groups += 1;
                }
                digits += 1;
                end = n + 1;
            }
            b'+' | b'(' if n == 0 => {}
            b'(' | b')' | b' ' | b'-' | b'.' => {}
            _ => break,
        }
    }
    let number = rest.get(..end)?;
    let free = !byte(text, at + end).is_ascii_alphanumeric();
    let international = first == b'+' && (9..=15).contains(&digits) && matches!(byte(rest, 1), b'1'..=b'9');
    let american = first == b'(' && digits == 10 && byte(rest, 4) == b')' && groups >= 2;
    let chinese = first == b'1' && digits == 11 && number.len() == 11 && matches!(byte(rest, 1), b'3'..=b'9');
    (free && (international || american || chinese)).then_some(at + end)
}
