//! Secrets of commands and of the files that they read.

use super::Confidence;
use super::bytes::{Set, before, begins, blanks, byte, part, starts};
use super::scan::Scan;
use super::value::{self, Mix};

/// A word of a command at an offset, without its quotes.
pub(super) fn word(scan: &mut Scan<'_>, at: usize) -> (usize, usize) {
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
pub(super) fn password(word: &[u8]) -> bool {
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

/// Commands and their flags before a password; behind `=` and such without a blank, too.
const FLAGS: &[(&str, &[&str])] = &[
    ("redis-cli", &[" -a ", " --pass ", " AUTH "]),
    ("mysql", &[" -p"]),
    ("mysqldump", &[" -p"]),
    ("mysqladmin", &[" -p"]),
    ("mariadb", &[" -p"]),
    ("sshpass", &[" -p ", " -p"]),
    ("mongo", &[" -p "]),
    ("mongosh", &[" -p "]),
    ("docker login", &[" -p "]),
    ("podman login", &[" -p "]),
    ("helm registry login", &[" -p "]),
    ("az login", &[" -p "]),
    ("ldapsearch", &[" -w "]),
    ("ldapmodify", &[" -w "]),
    ("ldapadd", &[" -w "]),
    ("ldapwhoami", &[" -w "]),
    ("ldapdelete", &[" -w "]),
    ("ldappasswd", &[" -w ", " -s "]),
    ("unzip ", &["-P "]),
    ("zip ", &["-P "]),
    ("7z ", &[" -p"]),
    ("7za ", &[" -p"]),
    ("rar ", &[" -hp", " -p"]),
    ("keytool", &[" -storepass ", " -keypass "]),
    ("openssl", &[" pass:", " -k "]),
    ("ssh-keygen", &[" -N ", " -P "]),
    ("smbclient", &[" -U "]),
    ("lftp ", &["-u "]),
    ("mosquitto_", &[" -P "]),
    ("ipmitool", &[" -P "]),
    ("sqlcmd", &[" -P "]),
    ("bcp ", &[" -P "]),
    ("xfreerdp", &[" /p:"]),
    ("cmdkey", &[" /pass:"]),
    ("net user ", &[" "]),
    ("net use ", &["/user:"]),
    ("wpa_passphrase ", &[" "]),
    ("htpasswd ", &[" "]),
    ("gh secret set ", &[" --body ", " -b "]),
    ("sqlplus ", &[""]),
    ("impdp ", &[""]),
    ("expdp ", &[""]),
    ("jdbc:oracle:thin:", &[""]),
];

/// `mysql -pSECRET`, `sshpass -p SECRET`, `ldapsearch -w SECRET`, and others of [`FLAGS`]. The keyword is the command.
pub(crate) fn command(scan: &mut Scan<'_>, rule: usize, at: usize, end: usize) {
    let text = scan.text;
    let name = part(text, at, end);
    let Some((command, flags)) = FLAGS.iter().find(|(command, _)| command.as_bytes() == name) else { return };
    let whole = command.ends_with([' ', '_', ':']) || byte(text, end) == b' ';
    if !begins(text, at) || !whole || scan.seen(rule, at) {
        return;
    }
    // Up to the end of the command: a line, a pipe, another command.
    let rest = part(text, end, (end + 240).min(text.len()));
    let stop = rest.iter().position(|&byte| matches!(byte, b'\n' | b'|')).unwrap_or(rest.len());
    scan.looked(rule, end + stop);
    let rest = rest.get(..stop).unwrap_or_default();
    for flag in *flags {
        let Some(found) = memchr::memmem::find(rest, flag.as_bytes()) else { continue };
        let behind = end + found + flag.len();
        // these take it without a blank only: what follows one is the name of a database
        if flag.ends_with('p') && byte(text, behind) == b' ' {
            continue;
        }
        let (start, to) = match *command {
            "net use " => {
                let name = scan.run(Set::Value, behind);
                word(scan, blanks(text, name, 2))
            }
            // the second word: name, then password
            "net user " | "wpa_passphrase " => word(scan, behind),
            // … and the third: file, name, password
            "htpasswd " => {
                let Some(last) = memchr::memrchr(b' ', rest.trim_ascii_end()) else { return };
                word(scan, end + last + 1)
            }
            _ => word(scan, blanks(text, behind, 2)),
        };
        let given = part(text, start, to);
        // `name%password`, `name,password`, `name/password@host`
        let inner = match *command {
            "smbclient" => memchr::memchr(b'%', given),
            "lftp " => memchr::memchr(b',', part(text, start, (start + 128).min(text.len()))),
            "sqlplus " | "impdp " | "expdp " | "jdbc:oracle:thin:" => memchr::memchr(b'/', given),
            _ => None,
        };
        let (start, mut to) = match inner {
            Some(sign) if *command == "lftp " => word(scan, start + sign + 1),
            Some(sign) => (start + sign + 1, to),
            None if matches!(
                *command,
                "smbclient" | "lftp " | "sqlplus " | "impdp " | "expdp " | "jdbc:oracle:thin:"
            ) =>
            {
                continue;
            }
            None => (start, to),
        };
        if matches!(*command, "sqlplus " | "impdp " | "expdp " | "jdbc:oracle:thin:")
            && let Some(sign) = memchr::memrchr(b'@', part(text, start, to))
        {
            to = start + sign;
        }
        if password(part(text, start, to)) {
            scan.loose(rule, start, to, Confidence::Medium);
            return;
        }
    }
}

/// What is handed to a command that asks for a password: `echo SECRET | sudo -S`, `sudo -S x <<< SECRET`. The keyword
/// is the command.
pub(crate) fn piped(scan: &mut Scan<'_>, rule: usize, at: usize, end: usize) {
    let text = scan.text;
    let from = at.saturating_sub(256);
    let head = part(text, from, at);
    let line = from + memchr::memrchr(b'\n', head).map_or(0, |n| n + 1);
    let head = part(text, line, at);
    let many = starts(text, at, b"chpasswd");
    let mut found = None;
    if memchr::memchr(b'|', head).is_some() {
        for command in ["echo -n ", "echo ", "printf '%s' ", "printf '%s\\n' ", "printf "] {
            if let Some(n) = memchr::memmem::find(head, command.as_bytes()) {
                found = Some(line + n + command.len());
                break;
            }
        }
    } else {
        let rest = part(text, end, (end + 200).min(text.len()));
        let stop = rest.iter().position(|&byte| byte == b'\n').unwrap_or(rest.len());
        found = memchr::memmem::find(rest.get(..stop).unwrap_or_default(), b"<<<")
            .map(|n| blanks(text, end + n + 3, 4));
    }
    let Some(found) = found else { return };
    let (mut start, to) = word(scan, found);
    if many {
        let Some(colon) = memchr::memchr(b':', part(text, start, to)) else { return };
        start += colon + 1;
    }
    if password(part(text, start, to)) {
        scan.loose(rule, start, to, Confidence::Medium);
    }
}

/// A text given to a function: `ConvertTo-SecureString "…"`. The keyword is its name.
pub(crate) fn secure_string(scan: &mut Scan<'_>, rule: usize, _at: usize, end: usize) {
    let text = scan.text;
    let mut at = blanks(text, end, 8);
    if starts(text, at, b"-String") {
        at = blanks(text, at + 7, 8);
    }
    let (start, to) = word(scan, at);
    if password(part(text, start, to)) {
        scan.loose(rule, start, to, Confidence::Medium);
    }
}

/// The second text in brackets: `auth=("user", "…")`, `HTTPBasicAuth('user', '…')`. The keyword ends with the bracket.
pub(crate) fn pair(scan: &mut Scan<'_>, rule: usize, _at: usize, end: usize) {
    let text = scan.text;
    let at = blanks(text, end, 4);
    let slashes = usize::from(byte(text, at) == b'\\');
    if !matches!(byte(text, at + slashes), b'"' | b'\'') {
        return;
    }
    let (_, to) = word(scan, at);
    let next = to + slashes + 1;
    if byte(text, next) != b',' {
        return;
    }
    let mut at = blanks(text, next + 1, 4);
    if starts(text, at, b"Some(") {
        at += 5;
    }
    if !matches!(byte(text, at + slashes), b'"' | b'\'') {
        return;
    }
    let (start, to) = word(scan, at);
    if password(part(text, start, to)) {
        scan.loose(rule, start, to, Confidence::Medium);
    }
}

/// Name and password of Go's drivers: `name:password@tcp(host)`. The keyword is what follows the password.
pub(crate) fn dsn(scan: &mut Scan<'_>, rule: usize, at: usize, _end: usize) {
    let text = scan.text;
    let head = part(text, at.saturating_sub(128), at);
    let length = head
        .iter()
        .rev()
        .take_while(|&&byte| byte > b' ' && byte < 127 && !matches!(byte, b'"' | b'\'' | b'`'))
        .count();
    let run = part(text, at - length, at);
    let Some(colon) = memchr::memchr(b':', run) else { return };
    let start = at - length + colon + 1;
    if password(part(text, start, at)) {
        scan.loose(rule, start, at, Confidence::High);
    }
}

/// The password in the code of a wireless network: `WIFI:T:WPA;S:name;P:…;;`. The keyword is its beginning.
pub(crate) fn wifi(scan: &mut Scan<'_>, rule: usize, _at: usize, end: usize) {
    let text = scan.text;
    let rest = part(text, end, (end + 200).min(text.len()));
    let Some(found) = memchr::memmem::find(rest, b"P:") else { return };
    let start = end + found + 2;
    if !matches!(before(text, start - 2), b';' | b':') {
        return;
    }
    let tail = part(text, start, (start + 80).min(text.len()));
    let Some(stop) = memchr::memchr2(b';', b'\n', tail) else { return };
    if stop >= 8 {
        scan.loose(rule, start, start + stop, Confidence::High);
    }
}

/// The text of an element of XML. The keyword is its opening tag.
pub(crate) fn element(scan: &mut Scan<'_>, rule: usize, _at: usize, end: usize) {
    let text = scan.text;
    let rest = part(text, end, (end + 128).min(text.len()));
    if let Some(stop) = memchr::memchr(b'<', rest)
        && stop >= 8
    {
        scan.loose(rule, end, end + stop, Confidence::High);
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

/// A password behind a number that says how it is stored. The keyword is what stands before it.
pub(crate) fn router(scan: &mut Scan<'_>, rule: usize, _at: usize, end: usize) {
    let text = scan.text;
    let number = byte(text, end).is_ascii_digit() && byte(text, end + 1) == b' ';
    let start = if number { end + 2 } else { end };
    let to = scan.run(Set::Value, start);
    let value = part(text, start, to);
    if password(value) && (Mix::of(value).kinds() >= 3 || !value::words(value)) {
        scan.loose(rule, start, to, Confidence::Medium);
    }
}

/// The value of a short name. The keyword is the name and its sign.
pub(crate) fn short(scan: &mut Scan<'_>, rule: usize, at: usize, end: usize) {
    let text = scan.text;
    if !begins(text, at) && before(text, at) != b'_' {
        return;
    }
    let (start, to) = word(scan, blanks(text, end, 4));
    let value = part(text, start, to);
    if password(value) && Mix::of(value).kinds() >= 3 {
        scan.loose(rule, start, to, Confidence::Medium);
    }
}
