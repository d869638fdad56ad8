//! Personal data: home folders, mail addresses, machines, and what is made of digits.

use super::bytes::{Set, before, begins, byte, part, starts};
use super::scan::Scan;
use super::{Class, Confidence};

/// Names of accounts that are nobody's.
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
    "all users",
    "default user",
    "linuxbrew",
    "codespace",
    "gitpod",
    "circleci",
];

fn is_nobody(name: &[u8]) -> bool {
    NOBODY.iter().any(|nobody| name.eq_ignore_ascii_case(nobody.as_bytes()))
}

/// What stands between the names of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Between {
    Slash,
    /// Of Windows; in JSON inside of JSON it is doubled.
    Backslash,
    /// Of Claude Code's names of project folders.
    Dash,
    /// `%2F` or `%5C`, as URIs have them.
    Percent,
}

/// The name in a home folder. The keyword is the folder of all homes.
pub(crate) fn home(scan: &mut Scan<'_>, rule: usize, at: usize, end: usize) {
    let text = scan.text;
    let between = match before(text, end) {
        b'\\' => Between::Backslash,
        b'-' => Between::Dash,
        b'/' => Between::Slash,
        _ => Between::Percent,
    };
    let small = byte(text, at + 1) == b'u';
    let free = match between {
        Between::Slash => slash_begins(text, at, small),
        Between::Backslash => backslash_begins(text, at, starts(text, at, b"\\home")),
        Between::Dash => dash_begins(text, at),
        Between::Percent => {
            let head = part(text, at.saturating_sub(3), at);
            head.ends_with(b"/")
                || [b"%2F", b"%2f", b"%5C", b"%5c"].contains(&<&[u8; 3]>::try_from(head).unwrap_or(b"   "))
        }
    };
    if !free {
        return;
    }
    let mut start = end;
    while between == Between::Backslash && byte(text, start) == b'\\' && start < end + 8 {
        start += 1;
    }
    let to = name_end(scan, start, between);
    let name = part(text, start, to);
    if !name.is_empty() && name.len() <= 64 && !is_nobody(name) {
        scan.loose(rule, start, to, Confidence::High);
    }
}

/// Where the name of a home folder ends.
fn name_end(scan: &mut Scan<'_>, start: usize, between: Between) -> usize {
    let text = scan.text;
    let set = if between == Between::Dash { Set::Alnum } else { Set::Dotted };
    let mut to = scan.run(set, start);
    while to > start && matches!(before(text, to), b'.' | b'-') {
        to -= 1;
    }
    // Names of people have spaces and letters of all scripts; then a folder has to follow.
    let more = |byte: u8| {
        byte == b' ' || byte >= 0x80 || Set::Dotted.has(byte) || matches!(byte, b'\'' | b'&' | b'@')
    };
    let next = byte(text, to);
    if matches!(between, Between::Slash | Between::Backslash) && (next == b' ' || next >= 0x80) {
        let rest = part(text, to, (start + 64).min(text.len()));
        let length = rest.iter().take_while(|&&byte| more(byte)).count();
        let closed = match (rest.get(length), between) {
            (Some(b'/'), Between::Slash) | (Some(b'\\'), Between::Backslash) => true,
            (Some(b'"' | b'\''), _) => rest.first().is_some_and(|byte| *byte >= 0x80),
            _ => false,
        };
        let words = rest.get(..length).unwrap_or_default().split(|&byte| byte == b' ').count();
        // three names of a person at most: more is a sentence
        if closed && words <= 4 && (to > start || next >= 0x80) {
            return to + length;
        }
        if to == start && next >= 0x80 {
            return start + rest.iter().take_while(|&&byte| byte >= 0x80 || Set::Dotted.has(byte)).count();
        }
    }
    to
}

/// Folders of systems in which homes lie.
const ROOTS: &[&[u8]] = &[
    b"/var",
    b"/usr",
    b"/export",
    b"/private",
    b"/System/Volumes/Data",
    b"/host",
    b"/hostfs",
    b"/rootfs",
    b"/net",
    b"/nfs",
];

/// What stands before the name of a disk, a machine or a distribution.
const MOUNTS: &[&[u8]] = &[
    b"/Volumes/",
    b"/media/",
    b"/mnt/",
    b"/net/",
    b"/nfs/",
    b"/run/user/",
    b"wsl$/",
    b"wsl.localhost/",
    b"wsl+",
    b"wsl%2B",
    b"wsl%2b",
    b"-remote+",
    b"file://",
    b"sftp://",
    b"ssh://",
    b"smb://",
    b"nfs://",
    b"afp://",
];

/// Whether `/home/` at a place begins a path, or stands behind what a path of another machine begins with.
fn slash_begins(text: &[u8], at: usize, small: bool) -> bool {
    let last = before(text, at);
    let drive = last.is_ascii_alphabetic() && before(text, at - 1) == b'/';
    let colon = last == b':' && before(text, at - 1).is_ascii_alphabetic();
    if drive || colon {
        // `/c/Users`, `/mnt/c/Users`, `C:/Users`
        return true;
    }
    if small {
        // `/users/7` is what the paths of web services look like
        return false;
    }
    let root = last == b'/'
        && before(text, at - 1) == b'/'
        && matches!(before(text, at.saturating_sub(2)), b':' | b'/');
    if root
        || !(last.is_ascii_alphanumeric() || matches!(last, b'_' | b'-' | b'.' | b'/' | b'~' | b'}'))
        || begins(text, at) && last.is_ascii_alphabetic()
    {
        return true;
    }
    let head = part(text, at.saturating_sub(96), at);
    let whole = |root: &&[u8]| {
        head.strip_suffix(*root).is_some_and(|more| more.last().is_none_or(|b| !Set::Dotted.has(*b)))
    };
    let name =
        head.iter().rev().take_while(|&&byte| Set::Dotted.has(byte) || byte == b'+' || byte == b'$').count();
    let mount = head.get(..head.len() - name).unwrap_or_default();
    // `wsl+Ubuntu` is one run with what stands before the plus
    let joined = |mount: &&[u8]| {
        memchr::memmem::find(head.get(head.len() - name..).unwrap_or_default(), mount).is_some()
    };
    ROOTS.iter().any(whole)
        || MOUNTS.iter().any(|end| mount.ends_with(end))
        || MOUNTS.iter().filter(|end| end.last() != Some(&b'/')).any(joined)
}

/// Whether `\Users\` at a place stands in a path that begins with a drive or a share.
fn backslash_begins(text: &[u8], at: usize, home: bool) -> bool {
    let head = part(text, at.saturating_sub(96), at);
    let path = |byte: u8| Set::Dotted.has(byte) || matches!(byte, b'\\' | b'$' | b'@' | b'+' | b' ' | b'?');
    let length = head.iter().rev().take_while(|&&byte| path(byte)).count();
    let (outside, inside) = head.split_at(head.len() - length);
    let drive = outside.last() == Some(&b':')
        && outside.get(outside.len().wrapping_sub(2)).is_some_and(u8::is_ascii_alphabetic);
    let share = inside.windows(2).enumerate().any(|(n, pair)| {
        pair == b"\\\\" && n.checked_sub(1).and_then(|n| inside.get(n)).is_none_or(|b| *b == b' ')
    });
    let wsl = || memchr::memmem::find(inside, b"wsl").is_some();
    match home {
        true => share && wsl(),
        false => drive || share,
    }
}

/// Whether `-Users-` at a place begins a name of a folder: `-Users-ann-src`, `C--Users-ann`, `-mnt-c-Users-ann`.
fn dash_begins(text: &[u8], at: usize) -> bool {
    let opens =
        |at: usize| matches!(before(text, at), b'/' | b'\\' | b'"' | b'\'' | b' ' | b'\n' | b'`' | b'(' | 0);
    let letter = |at: usize| before(text, at).is_ascii_alphabetic();
    let mount = part(text, at.saturating_sub(6), at);
    opens(at)
        || (before(text, at) == b'-' && letter(at - 1) && opens(at.saturating_sub(2)))
        || (mount.starts_with(b"-mnt-") && letter(at) && opens(at.saturating_sub(6)))
        || ([b"-var".as_slice(), b"-export", b"-usr"]
            .iter()
            .any(|root| text.get(..at).is_some_and(|head| head.ends_with(root)) && opens(at - root.len())))
}

/// A home folder in all spellings, each with the number of bytes of its last name at its end.
pub(super) fn own(home: &str) -> Vec<(Vec<u8>, usize)> {
    let home = home.trim_end_matches(['/', '\\']);
    let names: Vec<&str> = home.split(['/', '\\']).filter(|name| !name.is_empty()).collect();
    let Some((name, folders)) = names.split_last() else { return Vec::new() };
    if is_nobody(name.as_bytes()) || name.len() < 2 {
        return Vec::new();
    }
    let drive = folders.first().filter(|first| first.len() == 2 && first.ends_with(':'));
    let rest = folders.get(usize::from(drive.is_some())..).unwrap_or_default();
    let below =
        |apart: &str| rest.iter().chain([name]).fold(String::new(), |whole, name| whole + apart + name);
    let mut all = Vec::new();
    for apart in ["/", "\\", "\\\\", "%2F", "%2f", "%5C", "%5c"] {
        // of a path of Unix, the one with backslashes is that of its WSL
        let below = below(apart);
        match drive.map(|drive| drive.trim_end_matches(':')) {
            None => all.push(below),
            Some(letter) => {
                for letter in [letter.to_ascii_uppercase(), letter.to_ascii_lowercase()] {
                    for colon in [":", "%3A", "%3a"] {
                        all.push(format!("{letter}{colon}{below}"));
                    }
                }
                if apart == "/" {
                    let small = letter.to_ascii_lowercase();
                    all.extend([format!("/{small}{below}"), format!("/mnt/{small}{below}")]);
                }
            }
        }
    }
    if !rest.is_empty() || drive.is_some() {
        let dashed: Vec<String> =
            all.iter().filter(|path| !path.contains(['%', '\\'])).map(|path| dashes(path)).collect();
        all.extend(dashed);
    }
    let small: Vec<String> = all.iter().filter(|_| drive.is_some()).map(|path| path.to_lowercase()).collect();
    all.extend(small);
    all.sort_unstable();
    all.dedup();
    all.into_iter().map(|path| (path.into_bytes(), name.len())).collect()
}

/// A path as Claude Code names its project folders.
fn dashes(path: &str) -> String {
    path.bytes().map(|byte| if byte.is_ascii_alphanumeric() { char::from(byte) } else { '-' }).collect()
}

/// The user's own home folder at a place, as [`own`] spells it.
pub(super) fn own_home(scan: &mut Scan<'_>, rule: usize, at: usize, end: usize, name: usize) {
    let text = scan.text;
    let first = byte(text, at);
    let last = before(text, at);
    let joined = last.is_ascii_alphanumeric() || matches!(last, b'_' | b'-' | b'.' | b'~');
    let share = first == b'\\' || first == b'%';
    if joined && !share && !begins(text, at) && last != b'/' {
        return;
    }
    let next = byte(text, end);
    let goes_on = match first {
        b'-' => next.is_ascii_alphanumeric(),
        _ => {
            next.is_ascii_alphanumeric()
                || next == b'_'
                || (matches!(next, b'-' | b'.')
                    && byte(text, end + 1).is_ascii_alphanumeric()
                    && last != b'-')
        }
    };
    if !goes_on {
        scan.loose(rule, end - name, end, Confidence::High);
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
