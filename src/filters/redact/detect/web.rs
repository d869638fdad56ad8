//! Secrets of the web: URLs, headers, cookies, JSON web tokens, tokens with something before their keyword.

use super::Confidence;
use super::bytes::{Set, before, begins, blanks, byte, ends, holds, part, starts};
use super::scan::Scan;
use super::value::{self, Mix};
use base64::Engine as _;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};
use base64::engine::{DecodePaddingMode, general_purpose};

/// Base64 as it is found: with padding or without.
const LENIENT: GeneralPurposeConfig = general_purpose::NO_PAD
    .with_decode_padding_mode(DecodePaddingMode::Indifferent)
    .with_decode_allow_trailing_bits(true);
const STANDARD: GeneralPurpose = GeneralPurpose::new(&base64::alphabet::STANDARD, LENIENT);
const URL_SAFE: GeneralPurpose = GeneralPurpose::new(&base64::alphabet::URL_SAFE, LENIENT);

/// What base64 of at most a few hundred bytes says; nothing when it is none.
fn decoded(value: &[u8]) -> Option<Vec<u8>> {
    let value = value.get(..value.len().min(1024))?;
    STANDARD.decode(value).or_else(|_| URL_SAFE.decode(value)).ok()
}

/// Whether base64 holds a user and a password.
pub(super) fn login_in_base64(value: &[u8]) -> bool {
    if value.len() < 8 || value.len() > 1024 {
        return false;
    }
    decoded(value).is_some_and(|text| {
        let colon = text.iter().position(|&byte| byte == b':');
        let printable = std::str::from_utf8(&text).is_ok_and(|text| !text.chars().any(char::is_control));
        printable && colon.is_some_and(|colon| text.len() > colon + 3 && !value::placeholder(&text))
    })
}

/// `Bearer …`.
pub(crate) fn bearer(scan: &mut Scan<'_>, rule: usize, at: usize, end: usize) {
    if !begins(scan.text, at) {
        return;
    }
    let start = blanks(scan.text, end, 4);
    let mut to = scan.run(Set::Opaque, start);
    if to - start < 16 {
        return;
    }
    while matches!(before(scan.text, to), b'.') {
        to -= 1;
    }
    let token = part(scan.text, start, to);
    let mix = Mix::of(token);
    let varied = mix.digit > 0 || (mix.upper > 0 && mix.lower > 0);
    if varied
        && to - start <= 16 << 10
        && !value::words(token)
        && !value::placeholder(token)
        && !value::path(token)
        && value::entropy(token) >= 2.8
    {
        scan.loose(rule, start, to, Confidence::Medium);
    }
}

/// `Basic …` with a user and a password.
pub(crate) fn basic(scan: &mut Scan<'_>, rule: usize, at: usize, end: usize) {
    if !begins(scan.text, at) {
        return;
    }
    let start = blanks(scan.text, end, 4);
    let mut to = scan.run(Set::Base64, start);
    while to < start + 2048 && byte(scan.text, to) == b'=' {
        to += 1;
    }
    if login_in_base64(part(scan.text, start, to)) {
        scan.hit(rule, start, to, Confidence::High);
    }
}

/// `Cookie:` and `Set-Cookie:`: the values of names that say session or token.
pub(crate) fn cookie(scan: &mut Scan<'_>, _rule: usize, _at: usize, end: usize) {
    let text = scan.text;
    let mut at = end;
    // `"Cookie": "…"`, with any number of backslashes.
    while at < end + 20 && matches!(byte(text, at), b'\\' | b'"' | b'\'' | b' ') {
        at += 1;
    }
    if byte(text, at) == b':' || byte(text, at) == b'=' {
        at += 1;
    } else if before(text, end) != b':' {
        return;
    }
    while at < end + 40 && matches!(byte(text, at), b'\\' | b'"' | b'\'' | b' ') {
        at += 1;
    }
    cookies(scan, at);
}

/// The pairs of a cookie that begins at an offset: a browser sends at most 4 KiB of them.
pub(super) fn cookies(scan: &mut Scan<'_>, from: usize) {
    let text = scan.text;
    let mut at = from;
    while at < from + (4 << 10) {
        let name_end = scan.run(Set::Dotted, at);
        if name_end == at || byte(text, name_end) != b'=' {
            return;
        }
        let start = name_end + 1;
        let mut to = scan.run(Set::Value, start);
        if to > start + (8 << 10) {
            return;
        }
        while to > start && matches!(before(text, to), b'.') {
            to -= 1;
        }
        let name = part(text, at, name_end).to_ascii_lowercase();
        let says =
            ["sess", "auth", "token", "sid", "jwt", "csrf", "xsrf", "remember", "login", "ticket", "secret"];
        let named = says.iter().any(|word| holds(&name, word));
        let token = part(text, start, to);
        if named
            && token.len() >= 12
            && !value::words(token)
            && !value::placeholder(token)
            && !value::lookup(token)
            && value::entropy(token) >= 2.8
        {
            scan.named("cookie-session", start, to, Confidence::Medium);
        }
        if byte(text, to) != b';' {
            return;
        }
        at = blanks(text, to + 1, 2);
    }
}

/// A JSON web token: its first part says how it is signed.
pub(crate) fn jwt(scan: &mut Scan<'_>, rule: usize, at: usize, _end: usize) {
    let text = scan.text;
    if !begins(text, at) {
        return;
    }
    let head = scan.run(Set::Word, at);
    // A header names an algorithm, a type, a key: a few hundred bytes.
    if head - at < 16 || head - at > 2048 || byte(text, head) != b'.' {
        return;
    }
    let body = scan.run(Set::Word, head + 1);
    if body - head < 11 || byte(text, body) != b'.' {
        return;
    }
    let mut end = scan.run(Set::Word, body + 1);
    if end - body < 11 && !starts(text, head + 1, b"eyJ") {
        return;
    }
    // An encrypted one has five parts.
    for _ in 0..2 {
        if byte(text, end) == b'.' {
            let more = scan.run(Set::Word, end + 1);
            if more > end + 12 {
                end = more;
            }
        }
    }
    let header = URL_SAFE.decode(part(text, at, head).get(..(head - at) / 4 * 4).unwrap_or_default());
    let says = header.is_ok_and(|json| {
        json.starts_with(b"{\"")
            && ["\"alg\"", "\"enc\"", "\"typ\"", "\"kid\""]
                .iter()
                .any(|name| holds(json.get(..200).unwrap_or(&json), name))
    });
    if says && !value::placeholder(part(text, body + 1, end)) {
        scan.hit(rule, at, end, Confidence::High);
    }
}

/// `://user:password@host`: only the password, or the token that stands there alone.
pub(crate) fn userinfo(scan: &mut Scan<'_>, rule: usize, at: usize, end: usize) {
    let text = scan.text;
    // The authority ends before a path; a name and a password are shorter than this.
    let rest = part(text, end, (end + 512).min(text.len()));
    let stop = rest
        .iter()
        .position(|&byte| {
            matches!(
                byte,
                b'/' | b'?' | b'"' | b'\'' | b'`' | b'<' | b'>' | b'\\' | b'|' | b'(' | b')' | b',' | b';'
            ) || byte <= b' '
                || byte >= 127
        })
        .unwrap_or(rest.len());
    let authority = rest.get(..stop).unwrap_or_default();
    let Some(sign) = memchr::memrchr(b'@', authority) else { return };
    if !byte(text, end + sign + 1).is_ascii_alphanumeric()
        && byte(text, end + sign + 1) != b'['
        && byte(text, end + sign + 1) != b'$'
        && byte(text, end + sign + 1) != b'{'
    {
        return;
    }
    if !before(text, at).is_ascii_alphanumeric() {
        return;
    }
    let Some(colon) = memchr::memchr(b':', authority.get(..sign).unwrap_or_default()) else {
        // A token as the name: https://TOKEN@host.
        let name = authority.get(..sign).unwrap_or_default();
        if value::random(name) && !value::placeholder(name) {
            scan.loose(rule, end, end + sign, Confidence::Medium);
        }
        return;
    };
    let (user, password) = (part(text, end, end + colon), part(text, end + colon + 1, end + sign));
    const COMMON: &[&str] = &[
        "password",
        "passwd",
        "pass",
        "pw",
        "pwd",
        "secret",
        "token",
        "test",
        "admin",
        "root",
        "postgres",
        "mysql",
        "guest",
        "user",
        "p",
        "x",
        "xxx",
        "xxxx",
        "changeme",
        "mypassword",
        "pass123",
        "password123",
        "s3cret",
        "****",
        "***",
        "username",
        "key",
        "oauth2",
        "minioadmin",
        "example",
        "x-oauth-basic",
        "<password>",
        "...",
        "hunter2",
        "foo",
        "bar",
        "db_password",
        "yourpassword",
        "your_password",
    ];
    let common = COMMON.iter().any(|word| password.eq_ignore_ascii_case(word.as_bytes()));
    if password.len() < 3
        || common
        || password == user
        || value::lookup(password)
        || value::placeholder(password)
    {
        return;
    }
    let confidence = match Mix::of(password).kinds() {
        0 | 1 => Confidence::Low,
        _ if value::words(password) => Confidence::Medium,
        _ => Confidence::High,
    };
    scan.loose(rule, end + colon + 1, end + sign, confidence);
}

/// A path of a URL whose last parts are the secret, as hooks have: the keyword is the fixed part before them.
pub(crate) fn hook(scan: &mut Scan<'_>, rule: usize, _at: usize, end: usize) {
    let text = scan.text;
    // Slack: T…/B…/24; Discord: digits/68; Teams: uuid@uuid/IncomingWebhook/32/uuid.
    let mut to = end;
    let mut last = end;
    for _ in 0..6 {
        let stop = scan.run(Set::Dotted, to);
        if stop == to || stop - to > 200 {
            break;
        }
        last = to;
        to = stop;
        if !matches!(byte(text, to), b'/' | b'@') {
            break;
        }
        to += 1;
    }
    while to > last && matches!(before(text, to), b'.' | b'/') {
        to -= 1;
    }
    let token = part(text, last, to);
    if token.len() >= 20 && !value::words(token) && !value::placeholder(token) && value::entropy(token) >= 3.0
    {
        // Discord's path begins with the number of the hook, which is no secret.
        let start = if part(text, end, last).iter().all(|byte| byte.is_ascii_digit() || *byte == b'/') {
            last
        } else {
            end
        };
        scan.hit(rule, start, to, Confidence::High);
    }
}

/// Telegram: the number of a bot, `:AA`, 33 characters. The keyword is `:AA`.
pub(crate) fn telegram(scan: &mut Scan<'_>, rule: usize, at: usize, end: usize) {
    let text = scan.text;
    let digits =
        part(text, at.saturating_sub(12), at).iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    let start = at - digits;
    let to = scan.run(Set::Word, end);
    // `/bot123:AA…` is how its URLs are written.
    let free = begins(text, start) || text.get(..start).is_some_and(|head| head.ends_with(b"bot"));
    if (8..=11).contains(&digits)
        && free
        && (32..=34).contains(&(to - end))
        && value::entropy(part(text, end, to)) >= 3.0
    {
        scan.hit(rule, start, to, Confidence::High);
    }
}

/// OpenAI: `T3BlbkFJ` stands in the middle of every key since 2020.
pub(crate) fn openai(scan: &mut Scan<'_>, rule: usize, at: usize, end: usize) {
    let text = scan.text;
    if scan.seen(rule, at) {
        return;
    }
    let to = scan.run(Set::Word, end);
    scan.looked(rule, to);
    let back =
        part(text, at.saturating_sub(160), at).iter().rev().take_while(|&&byte| Set::Word.has(byte)).count();
    let head = part(text, at - back, at);
    let Some(sign) = memchr::memmem::rfind(head, b"sk-") else { return };
    let start = at - back + sign;
    if begins(text, start) && at - start >= 20 && (16..=200).contains(&(to - end)) {
        scan.hit(rule, start, to, Confidence::High);
    }
}

/// Microsoft Entra: three characters, a digit, `Q~`, 31 to 34 characters (gitleaks and Microsoft's own scanner agree).
pub(crate) fn entra(scan: &mut Scan<'_>, rule: usize, at: usize, end: usize) {
    let text = scan.text;
    let Some(start) = at.checked_sub(3) else { return };
    let mut to = end;
    for _ in 0..40 {
        if !(Set::Dotted.has(byte(text, to)) || byte(text, to) == b'~') {
            break;
        }
        to += 1;
    }
    while matches!(before(text, to), b'.') {
        to -= 1;
    }
    let head = Set::Dotted.has_all(part(text, start, at)) && begins(text, start);
    if head && (31..=34).contains(&(to - end)) && value::entropy(part(text, start, to)) >= 3.0 {
        scan.hit(rule, start, to, Confidence::High);
    }
}

/// Mailchimp: 32 hexadecimal digits, `-us`, the number of a data centre. The keyword is `-us`.
pub(crate) fn mailchimp(scan: &mut Scan<'_>, rule: usize, at: usize, end: usize) {
    let text = scan.text;
    let digits =
        text.get(end..).unwrap_or_default().iter().take(3).take_while(|byte| byte.is_ascii_digit()).count();
    if !(1..=2).contains(&digits) || !ends(text, end + digits) {
        return;
    }
    let Some(start) = at.checked_sub(32) else { return };
    let key = part(text, start, at);
    if Set::Hex.has_all(key) && begins(text, start) && value::entropy(key) >= 2.5 {
        scan.hit(rule, start, end + digits, Confidence::High);
    }
}

/// Twilio: `SK` and 32 hexadecimal digits, the first of which is part of the keyword.
pub(crate) fn twilio(scan: &mut Scan<'_>, rule: usize, at: usize, end: usize) {
    let to = scan.run(Set::Hex, end - 1);
    let free = begins(scan.text, at) && ends(scan.text, to);
    if free && to - end == 31 && value::entropy(part(scan.text, end, to)) >= 2.5 {
        scan.hit(rule, at, to, Confidence::Medium);
    }
}

/// HCP Terraform: 14 characters, `.atlasv1.`, 60 or more.
pub(crate) fn terraform(scan: &mut Scan<'_>, rule: usize, at: usize, end: usize) {
    let Some(start) = at.checked_sub(14) else { return };
    let to = scan.run(Set::Word, end);
    if Set::Alnum.has_all(part(scan.text, start, at))
        && begins(scan.text, start)
        && (60..=70).contains(&(to - end))
    {
        scan.hit(rule, start, to, Confidence::High);
    }
}

/// The signature of a shared access URL of Azure: base64 of 32 bytes, escaped. The keyword is `sig=`.
pub(crate) fn shared_access(scan: &mut Scan<'_>, rule: usize, at: usize, end: usize) {
    let text = scan.text;
    if scan.seen(rule, at) || !matches!(before(text, at), b'?' | b'&' | b';') && !begins(text, at) {
        return;
    }
    let mut to = end;
    while to < end + 80 && (Set::Query.has(byte(text, to)) || matches!(byte(text, to), b'+' | b'/' | b'=')) {
        to += 1;
    }
    scan.looked(rule, to);
    let token = part(text, end, to);
    let padded = token.ends_with(b"%3D") || token.ends_with(b"%3d") || token.ends_with(b"=");
    if padded && (44..=72).contains(&token.len()) && value::entropy(token) >= 3.5 {
        scan.hit(rule, end, to, Confidence::High);
    }
}

/// A bot of Discord: the number of its user in base64, a time, a signature, joined by dots. The keyword is the
/// service's name, the token the value of a name in the same line.
pub(crate) fn discord(scan: &mut Scan<'_>, rule: usize, _at: usize, end: usize) {
    let text = scan.text;
    if scan.seen(rule, end) {
        return;
    }
    let rest = part(text, end, (end + 48).min(text.len()));
    let line = rest.iter().position(|&byte| byte == b'\n').unwrap_or(rest.len());
    scan.looked(rule, end + line);
    let mut at = end;
    while at < end + line {
        let stop = scan.run(Set::Dotted, at);
        if stop == at {
            at += 1;
            continue;
        }
        let token = part(text, at, stop.min(at + 100));
        let mut parts = token.split(|&byte| byte == b'.');
        let lengths = (
            parts.next().map_or(0, <[u8]>::len),
            parts.next().map_or(0, <[u8]>::len),
            parts.next().map_or(0, <[u8]>::len),
        );
        if (23..=28).contains(&lengths.0)
            && lengths.1 == 6
            && (27..=45).contains(&lengths.2)
            && matches!(token.first(), Some(b'M' | b'N' | b'O'))
        {
            scan.hit(rule, at, at + lengths.0 + lengths.1 + lengths.2 + 2, Confidence::High);
            return;
        }
        at = stop;
    }
}

/// A long value of the query of a URL that is signed. The keyword is its name.
pub(crate) fn signed(scan: &mut Scan<'_>, rule: usize, at: usize, end: usize) {
    let to = scan.run(Set::Query, end);
    let token = part(scan.text, end, to);
    let plain = starts(scan.text, at, b"Signature=");
    let near = || {
        let head = part(scan.text, at.saturating_sub(256), at);
        let tail = part(scan.text, to, (to + 128).min(scan.text.len()));
        [head, tail]
            .iter()
            .any(|near| holds(near, "Expires=") || holds(near, "Key-Pair-Id=") || holds(near, "KeyId="))
    };
    if (40..=4096).contains(&token.len()) && value::entropy(token) >= 3.0 && (!plain || near()) {
        scan.hit(rule, end, to, Confidence::High);
    }
}

/// A token in the query of the URL of a robot. The keyword is all before it.
pub(crate) fn robot(scan: &mut Scan<'_>, rule: usize, _at: usize, end: usize) {
    let to = scan.run(Set::Word, end);
    if (32..=80).contains(&(to - end)) && value::entropy(part(scan.text, end, to)) >= 2.5 {
        scan.hit(rule, end, to, Confidence::High);
    }
}

/// Keys of Azure that Microsoft made to be found: 52 characters, `JQQJ99`, 26.
pub(crate) fn azure(scan: &mut Scan<'_>, rule: usize, at: usize, end: usize) {
    let Some(start) = at.checked_sub(52) else { return };
    let to = scan.run(Set::Alnum, end);
    if Set::Alnum.has_all(part(scan.text, start, at)) && begins(scan.text, start) && to - end == 26 {
        scan.hit(rule, start, to, Confidence::High);
    }
}

/// The name of a hook behind the number of its account. The keyword is all before the number.
pub(crate) fn zapier(scan: &mut Scan<'_>, rule: usize, _at: usize, end: usize) {
    let number = scan.run(Set::Digit, end);
    let to = scan.run(Set::Alnum, number + 1);
    if number > end && byte(scan.text, number) == b'/' && (5..=12).contains(&(to - number - 1)) {
        scan.hit(rule, number + 1, to, Confidence::High);
    }
}
