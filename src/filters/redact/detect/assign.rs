//! Values of names: `password = "…"`, `API_KEY=…`, `"token": "…"`, `--secret …`, `密码是…`.

use super::Confidence;
use super::bytes::{Set, before, blanks, byte, part, starts};
use super::scan::Scan;
use super::tables;
use super::value::{self, Mix};
use crate::filters::redact::rules::{Rule, Shape};
use aho_corasick::{AhoCorasick, BuildError};

/// Ends of names whose value may be a secret; each also in capitals and with one capital.
pub(super) const TAILS: &[&str] = &[
    "key",
    "token",
    "secret",
    "password",
    "passwd",
    "passphrase",
    "pwd",
    "pass",
    "auth",
    "authorization",
    "credential",
    "credentials",
    "creds",
    "private_key_id",
    "passwort",
    "kennwort",
    "contrasena",
    "contraseña",
    "mot de passe",
    "senha",
    "clave",
    "palavra-passe",
    "parola d'ordine",
    "wachtwoord",
    "psk",
    "bindpw",
    "rootpw",
    "masterauth",
];

/// Ends of names that are looked for as they stand.
pub(super) const EXACT_TAILS: &[&str] = &[
    "_PAT",
    "密码",
    "密碼",
    "密钥",
    "口令",
    "令牌",
    "秘钥",
    "passCode",
    "userPass",
    "パスワード",
    "暗証番号",
    "비밀번호",
    "암호",
    "пароль",
    "Пароль",
    "ПАРОЛЬ",
    "Key Content",
];

/// The shortest value that is taken; of what is no password, eight.
const SHORTEST: usize = 6;

/// The longest value that is taken: keys with their certificates in one line are shorter.
const LONGEST: usize = 64 << 10;

/// How much a name says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Says {
    /// A password, which may be short.
    Password,
    /// A secret.
    Secret,
    /// Something that can be one: a key, a token.
    Maybe,
    /// `auth` of a registry: user and password in base64.
    Login,
    /// The header: a scheme, and the secret behind it.
    Header,
}

/// What stands between name and value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Between {
    Equals,
    Colon,
    /// A comma of a call or the bar of a table.
    Comma,
    /// `<password>`.
    Tag,
    /// The verb of a sentence.
    Is,
    /// Only blanks, as behind a flag.
    Blank,
}

/// Ends of names of passwords.
const PASSWORDS: &[&str] = &[
    "password",
    "passwd",
    "passphrase",
    "pwd",
    "密码",
    "密碼",
    "口令",
    "passcode",
    "passwort",
    "kennwort",
    "contrasena",
    "contraseña",
    "mot de passe",
    "senha",
    "clave",
    "palavra-passe",
    "parola d'ordine",
    "wachtwoord",
    "パスワード",
    "暗証番号",
    "비밀번호",
    "암호",
    "пароль",
    "Пароль",
    "ПАРОЛЬ",
    "psk",
    "bindpw",
    "rootpw",
    "masterauth",
    "key content",
];

/// Words of names of something public, where a word of the name begins.
const PUBLIC: &[&str] = &[
    "public",
    "cache",
    "primary",
    "foreign",
    "tokeniz",
    "checksum",
    "integrity",
    "signature",
    "sort",
    "partition",
    "page",
    "next",
    "prev",
    "continuation",
    "cursor",
    "idempot",
    "dedup",
    "transl",
    "i18n",
    "locale",
    "registry_key",
    "hotkey",
    "shortcut",
    "keyboard",
    "object",
    "s3",
    "row",
    "column",
    "field",
    "group",
    "route",
    "query",
    "shard",
    "stop",
    "eos",
    "bos",
    "pad_",
    "mask",
    "special",
    "max",
    "min_",
    "num",
    "count",
    "event",
    "bypass",
    "compass",
    "publish",
    "color",
    "colour",
    "layout",
    "state",
    "context",
    "lookup",
    "hash_key",
    "index",
    "sitekey",
    "site_key",
    "anchor",
    "session_key",
    "sessionkey",
    "restore",
    "prompt",
    "metric",
    "feature",
    "dom_",
    "node",
    "thread",
    "message",
    "tool",
];

/// Words of names that make a key or token a secret.
const QUALIFIED: &[&str] = &[
    "api",
    "secret",
    "access",
    "private",
    "auth",
    "account",
    "encrypt",
    "sign",
    "master",
    "license",
    "licence",
    "service",
    "deploy",
    "admin",
    "client",
    "app_",
    "app-",
    "appkey",
    "subscription",
    "storage",
    "shared",
    "webhook",
    "hmac",
    "crypt",
    "aes",
    "jwt",
    "ssh",
    "tls",
    "ssl",
    "vault",
    "bot",
    "ingest",
    "write",
    "openai",
    "anthropic",
    "stripe",
    "aws",
    "gcp",
    "azure",
    "github",
    "gitlab",
    "slack",
    "sentry",
    "datadog",
    "mailchimp",
    "twilio",
    "sendgrid",
    "mailgun",
    "rsa",
    "bearer",
    "refresh",
    "personal",
    "discord",
    "telegram",
    "oauth",
    "security",
    "npm",
    "pypi",
    "id_token",
    "idtoken",
    "session_token",
    "sessiontoken",
    "user_token",
    "usertoken",
    "functions",
    "validation",
];

/// What a word in a name says.
#[derive(Debug, Clone, Copy)]
enum Word {
    Public,
    Qualified,
    /// The rule at this place of the table knows the service.
    Service(usize),
}

/// All words that count in names.
#[derive(Debug)]
pub(super) struct Names {
    words: AhoCorasick,
    meanings: Vec<Word>,
}

impl Names {
    /// The words of this file and of a table of rules.
    ///
    /// # Errors
    ///
    /// None with the words of this crate.
    pub(super) fn new(table: &[Rule]) -> Result<Names, BuildError> {
        let mut words: Vec<&str> = Vec::new();
        let mut meanings = Vec::new();
        for (list, meaning) in [(PUBLIC, Word::Public), (QUALIFIED, Word::Qualified)] {
            words.extend(list);
            meanings.extend(list.iter().map(|_| meaning));
        }
        for (place, rule) in table.iter().enumerate() {
            if let Shape::Named { names, .. } = rule.shape {
                words.extend(names);
                meanings.extend(names.iter().map(|_| Word::Service(place)));
            }
        }
        Ok(Names { words: AhoCorasick::new(words)?, meanings })
    }

    /// Whether a name is that of something public.
    pub(super) fn is_public(&self, name: &[u8]) -> bool {
        self.name(name).public
    }

    /// What is said of a name.
    fn name(&self, bytes: &[u8]) -> Name {
        let mut name = Name::of(bytes);
        let (mut public, mut qualified) = (false, false);
        let mut services = [None; 4];
        let mut count = 0;
        for hit in self.words.find_overlapping_iter(name.bytes()) {
            match self.meanings.get(hit.pattern().as_usize()) {
                Some(Word::Public) => public |= name.begins.get(hit.start()) == Some(&true),
                Some(Word::Qualified) => qualified = true,
                Some(&Word::Service(place)) => {
                    if let Some(service) = services.get_mut(count) {
                        *service = Some(place);
                        count += 1;
                    }
                }
                None => {}
            }
        }
        services.sort_unstable_by_key(|place| place.unwrap_or(usize::MAX));
        (name.public, name.qualified, name.services) = (public, qualified, services);
        name
    }
}

/// A name in small letters, of which the last 96 bytes count.
struct Name {
    small: [u8; 96],
    /// Where a word begins: behind a sign, or at a capital behind a small letter.
    begins: [bool; 96],
    length: usize,
    capitals: bool,
    public: bool,
    qualified: bool,
    /// Rules whose service the name names, in the order of the table.
    services: [Option<usize>; 4],
}

impl Name {
    fn of(name: &[u8]) -> Name {
        let name = name.get(name.len().saturating_sub(96)..).unwrap_or(name);
        let mut small = [0u8; 96];
        let mut begins = [false; 96];
        let mut last = b' ';
        for ((to, begins), &from) in small.iter_mut().zip(&mut begins).zip(name) {
            *to = from.to_ascii_lowercase();
            *begins =
                !last.is_ascii_alphanumeric() || (from.is_ascii_uppercase() && !last.is_ascii_uppercase());
            last = from;
        }
        let capitals = !name.iter().any(u8::is_ascii_lowercase) && name.iter().any(u8::is_ascii_uppercase);
        Name {
            small,
            begins,
            length: name.len(),
            capitals,
            public: false,
            qualified: false,
            services: [None; 4],
        }
    }

    fn bytes(&self) -> &[u8] {
        self.small.get(..self.length).unwrap_or_default()
    }

    fn ends(&self, words: &[&str]) -> bool {
        words.iter().any(|word| self.bytes().ends_with(word.as_bytes()))
    }

    /// What the name says of its value; nothing when it is a word that only ends alike (`monkey`), or the name
    /// of something public.
    fn says(&self) -> Option<Says> {
        if self.public {
            return None;
        }
        let name = self.bytes();
        if self.ends(PASSWORDS) {
            return Some(Says::Password);
        }
        // `PASS: name` is what test runners print.
        if self.ends(&["pass"]) {
            return (!self.capitals || self.length > 4).then_some(Says::Password);
        }
        if self.ends(&["authorization"]) {
            return Some(Says::Header);
        }
        if self.ends(&["auth"]) {
            return Some(Says::Login);
        }
        if self.ends(&[
            "secret",
            "credential",
            "credentials",
            "creds",
            "_pat",
            "private_key_id",
            "密钥",
            "秘钥",
            "令牌",
        ]) {
            return Some(Says::Secret);
        }
        if self.ends(&["token"]) {
            return Some(if self.qualified || (self.capitals && name.contains(&b'_')) {
                Says::Secret
            } else {
                Says::Maybe
            });
        }
        // "key": an own word, of a camel case, or of a compound that is known.
        let stem = name.get(..name.len().saturating_sub(3)).unwrap_or_default();
        if self.qualified || (self.capitals && stem.contains(&b'_')) {
            return Some(Says::Secret);
        }
        Some(Says::Maybe)
    }
}

/// Bytes that may follow a name whose value is of interest.
pub(super) fn may_follow(byte: u8) -> bool {
    matches!(
        byte,
        b'=' | b':'
            | b'"'
            | b'\''
            | b'\\'
            | b' '
            | b'\t'
            | b']'
            | b')'
            | b'>'
            | b'|'
            | b','
            | b'`'
            | b'_'
            | b'0'..=b'9' | b'?' | b'\n' | b'\r' | b'*' | b'<' | 0xe2..=0xef | 0xd0 | 0xd1
    )
}

/// A keyword of [`TAILS`] at `at..end`.
pub(super) fn assigned(scan: &mut Scan<'_>, at: usize, end: usize) {
    if may_follow(byte(scan.text, end)) && !given(scan, at, end) {
        stated(scan, at, end);
    }
}

/// A value as only passwords look, a few words behind one for a password: `the new password was set to …`.
fn stated(scan: &mut Scan<'_>, at: usize, end: usize) {
    /// Bytes and words between the two.
    const NEAR: usize = 48;
    const WORDS: usize = 6;
    let text = scan.text;
    let name = part(text, at, end);
    let password = |word: &&str| name.eq_ignore_ascii_case(word.as_bytes());
    if !PASSWORDS.iter().any(password) {
        return;
    }
    let rest = part(text, end, (end + NEAR + 64).min(text.len()));
    let line = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
    let rest = rest.get(..line).unwrap_or_default();
    let part_of = |byte: &u8| byte.is_ascii_alphanumeric() || b"!#$%^&*?~@+_-".contains(byte);
    let mut from = 0;
    for _ in 0..=WORDS {
        let gap = rest.get(from..).unwrap_or_default().iter().take_while(|byte| !part_of(byte)).count();
        let start = from + gap;
        let mut length =
            rest.get(start..).unwrap_or_default().iter().take_while(|byte| part_of(byte)).count();
        if length == 0 || start > NEAR {
            return;
        }
        from = start + length;
        let closes =
            |byte: Option<&u8>| byte.is_none_or(|byte| !matches!(byte, b'(' | b'=' | b'[' | b'/' | b':'));
        let opens = start
            .checked_sub(1)
            .and_then(|n| rest.get(n))
            .is_none_or(|byte| !matches!(byte, b'/' | b'.' | b'=' | b'{'));
        while length > 0 && matches!(rest.get(start + length - 1), Some(b'?' | b'-' | b'_')) {
            length -= 1;
        }
        let value = rest.get(start..start + length).unwrap_or_default();
        let mix = Mix::of(value);
        let sign = value.iter().any(|byte| b"!#$%^&*?~@+".contains(byte));
        let strong = mix.lower > 0 && mix.upper > 0 && mix.digit > 0 && sign && (8..=64).contains(&length);
        if strong && opens && closes(rest.get(from)) && !value::lookup(value) && !value::placeholder(value) {
            scan.named("generic-password", end + start, end + start + length, Confidence::Medium);
            return;
        }
    }
}

/// The value that is given to the name that ends with a keyword; whether there is one.
fn given(scan: &mut Scan<'_>, at: usize, end: usize) -> bool {
    let text = scan.text;
    let next = byte(text, end);
    // Most keywords are words of a sentence or a bare name: seen without looking at the name.
    if next == b' ' {
        let to = blanks(text, end, 24);
        let sign =
            matches!(byte(text, to), b'=' | b':' | b'|' | b'!' | b',' | b'{' | b'\n' | b'\r' | 0xc2..=0xef);
        let other = || {
            flag(text, at)
                || login(text, at)
                || ordered(text, at, end)
                || of_something(text, at, end).is_some()
        };
        if verb(text, to).is_none() && !sign && !other() {
            return false;
        }
    }
    tables::column(scan, at, end);
    let Some(tail) = suffix(text, end) else { return false };
    let Some((from, between)) = separator(text, at, tail) else { return false };
    let start = name_start(text, at);
    // The rule of a placeholder of ours is no name.
    if text.get(..start).is_some_and(|head| head.ends_with(b"<REDACTED:")) {
        return false;
    }
    // `monkey`, `donkey`: the keyword is no word of its own.
    if joined(text, start, at, end) {
        return false;
    }
    let query = matches!(before(text, start), b'?' | b'&');
    let header = part(text, at, end).eq_ignore_ascii_case(b"authorization");
    let Some((from, to, quoted)) = value_at(scan, from, between, header, query) else { return false };
    // Most values of keys in code are shorter.
    if to < from + SHORTEST {
        return false;
    }
    let mut first = start;
    // `API key: …`, `personal access token is …`.
    if matches!(between, Between::Is | Between::Colon) && before(text, start) == b' ' {
        let before = name_start(text, start - 1);
        if byte(text, before).is_ascii_alphabetic() {
            first = before;
        }
    }
    let name = scan.names.name(part(text, first, end));
    let login = between == Between::Blank && part(text, start, end) == b"PASS";
    let Some(says) = name.says().or(login.then_some(Says::Password)) else { return false };
    judge(scan, &name, says, between, from, to, quoted)
}

/// A whole text that stands under a name of its own.
pub(super) fn whole(scan: &mut Scan<'_>, name: &[u8]) {
    let text = scan.text;
    if text.len() > LONGEST || text.len() < SHORTEST {
        return;
    }
    let name_bytes = name;
    let name = scan.names.name(name);
    let tail = |tail: &str| name.bytes().ends_with(tail.as_bytes());
    if !TAILS.iter().any(|t| tail(t)) && !EXACT_TAILS.iter().any(|t| name_bytes.ends_with(t.as_bytes())) {
        return;
    }
    let start = name_start(name_bytes, name_bytes.len());
    let key = name_bytes.len().saturating_sub(3);
    if name.ends(&["key"]) && joined(name_bytes, start, key, name_bytes.len()) {
        return;
    }
    let Some(says) = name.says() else { return };
    let blank = |byte: &u8| byte.is_ascii_whitespace();
    let from = text.iter().position(|byte| !blank(byte)).unwrap_or(0);
    let to = text.iter().rposition(|byte| !blank(byte)).map_or(0, |at| at + 1);
    let from = if says == Says::Header { scheme(text, from) } else { Some(from) };
    if let Some(from) = from.filter(|&from| from < to) {
        let _ = judge(scan, &name, says, Between::Colon, from, to, true);
    }
}

/// Where the name that ends at `at` begins: at most 64 bytes before.
fn name_start(text: &[u8], at: usize) -> usize {
    let mut start = at;
    while start > at.saturating_sub(64) && Set::Dotted.has(before(text, start)) {
        start -= 1;
    }
    start
}

/// Whether `key` or `pass` only ends a longer word.
fn joined(text: &[u8], start: usize, at: usize, end: usize) -> bool {
    let keyword = part(text, at, end);
    let short = keyword.eq_ignore_ascii_case(b"key")
        || keyword.eq_ignore_ascii_case(b"pass")
        || keyword.eq_ignore_ascii_case(b"auth");
    let last = before(text, at);
    let small = keyword.first().is_some_and(u8::is_ascii_lowercase);
    let same = if small {
        last.is_ascii_lowercase()
    } else {
        last.is_ascii_uppercase() && keyword.iter().all(u8::is_ascii_uppercase)
    };
    if !short || !same || at <= start {
        return false;
    }
    const COMPOUNDS: &[&str] = &[
        "api",
        "secret",
        "auth",
        "access",
        "private",
        "master",
        "account",
        "license",
        "signing",
        "encryption",
        "deploy",
        "service",
        "client",
        "app",
        "server",
        "pass",
        "ssh",
        "db",
        "user",
        "ftp",
        "smtp",
        "mail",
        "admin",
        "root",
        "my",
        "subscription",
        "shared",
        "storage",
        "function",
        "functions",
        "pplx",
        "sql",
        "redis",
        "store",
        "key",
        "require",
        "zip",
        "bind",
        "ldap",
        "wifi",
        "guest",
        "git",
        "web",
    ];
    let head = part(text, start, at);
    let ends = |word: &str| {
        head.len() >= word.len() && head[head.len() - word.len()..].eq_ignore_ascii_case(word.as_bytes())
    };
    !COMPOUNDS.iter().any(|word| ends(word))
}

/// Behind what may still follow the keyword in a name: a number, the environment, an encoding.
fn suffix(text: &[u8], end: usize) -> Option<usize> {
    const SUFFIXES: &[&str] = &[
        "_base64",
        "_base",
        "_b64",
        "_hex",
        "_value",
        "_production",
        "_prod",
        "_staging",
        "_dev",
        "_live",
        "_primary",
        "_secondary",
        "_old",
        "_new",
        "_main",
        "_plain",
        "_string",
    ];
    let mut to = end;
    if byte(text, to) == b'_' {
        let rest = part(text, to, (to + 12).min(text.len()));
        let fits = |word: &&&str| {
            rest.get(..word.len()).is_some_and(|head| head.eq_ignore_ascii_case(word.as_bytes()))
        };
        match SUFFIXES.iter().find(fits) {
            Some(word) => to += word.len(),
            None => to += 1,
        }
    }
    let digits =
        text.get(to..).unwrap_or_default().iter().take(3).take_while(|byte| byte.is_ascii_digit()).count();
    if digits == 3 || (to == end + 1 && digits == 0 && byte(text, end) == b'_') {
        return None;
    }
    to += digits;
    (!Set::Word.has(byte(text, to))).then_some(to)
}

/// Whether the name around `at` is a flag of a command: `--api-token`.
fn flag(text: &[u8], at: usize) -> bool {
    let start = name_start(text, at);
    starts(text, start, b"--") && byte(text, start + 2).is_ascii_alphabetic()
}

/// Whether `password` at `at` is a word of a netrc file: `machine … login … password …`.
fn login(text: &[u8], at: usize) -> bool {
    if before(text, at).is_ascii_alphanumeric() || !starts(text, at, b"password") {
        return false;
    }
    let head = part(text, at.saturating_sub(160), at);
    memchr::memmem::find(head, b"machine ").is_some() && memchr::memmem::find(head, b"login ").is_some()
}

/// The quote at an offset with the backslashes before it: how many, and the quote.
fn quote(text: &[u8], at: usize) -> Option<(usize, u8)> {
    let rest = text.get(at..).unwrap_or_default();
    let backslashes = rest.iter().take(8).take_while(|&&byte| byte == b'\\').count();
    let mark = byte(text, at + backslashes);
    (backslashes < 8 && matches!(mark, b'"' | b'\'' | b'`')).then_some((backslashes, mark))
}

/// Verbs between a password and what it is, in the languages of [`TAILS`].
const VERBS: &[&str] = &[
    "is", "was", "es", "est", "ist", "lautet", "é", "è", "是", "为", "為", "は", "는", "은", "—", "–", "->",
    "=>", "→", "now",
];

/// Behind the verb of a sentence at an offset.
fn verb(text: &[u8], at: usize) -> Option<usize> {
    VERBS.iter().find_map(|verb| {
        let to = at + verb.len();
        let ends = verb.len() > 2 && !verb.is_ascii() || matches!(byte(text, to), b' ' | b':' | b'"' | b'\'');
        (starts(text, at, verb.as_bytes()) && ends).then_some(to)
    })
}

/// Whether a name is one whose value follows behind a blank: a line of a configuration, the argument of a command.
fn ordered(text: &[u8], at: usize, end: usize) -> bool {
    const LINES: &[&str] = &["requirepass", "masterauth", "bindpw", "rootpw"];
    const COMMANDS: &[&str] = &[
        "setx ",
        "setx /M ",
        "setx /m ",
        "setenv ",
        "set -x ",
        "set -gx ",
        "set -Ux ",
        "ENV ",
        "config set ",
        "configure set ",
        "secret put ",
        "secrets put ",
        "env set ",
    ];
    let start = name_start(text, at);
    let line = matches!(before(text, start), b'\n' | b'\r' | b' ' | b'\t' | 0);
    let head = part(text, start.saturating_sub(96), start);
    let name = part(text, start, end);
    name.ends_with(b"psk")
        || line
            && (LINES.iter().any(|line| name == line.as_bytes())
                || (name == b"PASS" && memchr::memmem::find(head, b"USER ").is_some())
                || COMMANDS.iter().any(|command| head.ends_with(command.as_bytes()))
                || (starts(text, start, b"password ")
                    && memchr::memmem::find(head, b"wifi connect ").is_some()))
}

/// Where the colon of `password for the admin: …` stands.
fn of_something(text: &[u8], at: usize, end: usize) -> Option<usize> {
    let name = part(text, at, end);
    let password = matches!(name.first(), Some(b'p' | b'P' | 0x80..)) && !name.eq_ignore_ascii_case(b"pass");
    if !password {
        return None;
    }
    let rest = part(text, end, (end + 40).min(text.len()));
    let words = |byte: &u8| byte.is_ascii_alphabetic() || *byte >= 0x80 || matches!(byte, b' ' | b'-' | b'_');
    let stop = rest.iter().position(|byte| !words(byte))?;
    (stop > 1 && rest.get(stop) == Some(&b':') && rest.get(stop + 1) == Some(&b' ')).then_some(end + stop)
}

/// The value beside a name that is itself a value: `name: X` and `value: …` in the next line, `"Key": "X", "Value":
/// "…"`, `variable "x" { … default = "…"`, a field of a form.
fn beside(text: &[u8], from: usize, closed: bool) -> Option<usize> {
    if closed && (starts(text, from, b"\r\n\r\n") || starts(text, from, b"\n\n")) {
        return Some(from + if byte(text, from) == b'\r' { 4 } else { 2 });
    }
    let rest = part(text, from, (from + 256).min(text.len()));
    let blank = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | b'\\' | b'"' | b'\'');
    if closed && rest.first() == Some(&b' ') && rest.get(1) == Some(&b'{') {
        let found = memchr::memmem::find(rest, b"default")?;
        let block = rest.get(..found).unwrap_or_default();
        let sign = from + found + 7;
        let sign = blanks(text, sign, 16);
        return (!block.contains(&b'}') && byte(text, sign) == b'=').then(|| blanks(text, sign + 1, 4));
    }
    let comma = rest.first() == Some(&b',');
    let more = rest.get(usize::from(comma)..).unwrap_or_default();
    let gap = more.iter().take(48).take_while(|byte| blank(byte)).count();
    let head = more.get(..gap).unwrap_or_default();
    if !comma && !head.contains(&b'\n') {
        return None;
    }
    let at = from + usize::from(comma) + gap;
    const NAMES: &[&str] = &["value", "Value", "ParameterValue", "default", "OutputValue"];
    let name = NAMES.iter().find(|name| starts(text, at, name.as_bytes()))?;
    let mut to = at + name.len();
    if let Some((backslashes, _)) = quote(text, to) {
        to += backslashes + 1;
    }
    to = blanks(text, to, 8);
    matches!(byte(text, to), b':' | b'=').then(|| blanks(text, to + 1, 8))
}

/// Where the value begins, and what separates it from the name that ends at `tail`.
fn separator(text: &[u8], at: usize, tail: usize) -> Option<(usize, Between)> {
    let mut to = tail;
    let closed = quote(text, to);
    if let Some((backslashes, _)) = closed {
        to += backslashes + 1;
    }
    if matches!(byte(text, to), b'\n' | b'\r' | b',' | b' ')
        && let Some(value) = beside(text, to, closed.is_some())
    {
        return Some((value, Between::Colon));
    }
    for optional in [b']', b')', b'?'] {
        if byte(text, to) == optional {
            to += 1;
        }
    }
    // Markdown: **password**: …
    while byte(text, to) == b'*' && to < tail + 4 {
        to += 1;
    }
    let sign = blanks(text, to, 24);
    let (behind, between) = match byte(text, sign) {
        b'=' => {
            let more =
                text.get(sign..).unwrap_or_default().iter().take(3).take_while(|&&b| b == b'=').count();
            (sign + more + usize::from(byte(text, sign + more) == b'>'), Between::Equals)
        }
        b'!' if byte(text, sign + 1) == b'=' => {
            (sign + 2 + usize::from(byte(text, sign + 2) == b'='), Between::Comma)
        }
        b':' => match byte(text, sign + 1) {
            b':' => return None,
            b'=' => (sign + 2, Between::Equals),
            b'*' => (sign + 3, Between::Colon),
            _ => (sign + 1, Between::Colon),
        },
        b',' if closed.is_some() => {
            let value = blanks(text, sign + 1, 4);
            quote(text, value)?;
            (value, Between::Comma)
        }
        b'|' => (sign + 1, Between::Comma),
        b'>' if before(text, name_start(text, at)) == b'<' || closed.is_some() => (sign + 1, Between::Tag),
        b'<' if starts(text, sign, b"</key>") => {
            let rest = part(text, sign + 6, (sign + 48).min(text.len()));
            let gap = rest.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
            let start = sign + 6 + gap;
            (starts(text, start, b"<string>")).then_some((start + 8, Between::Tag))?
        }
        0xc2 if byte(text, sign + 1) == 0xa0 && byte(text, sign + 2) == b':' => (sign + 3, Between::Colon),
        0xef if starts(text, sign, "：".as_bytes()) || starts(text, sign, "＝".as_bytes()) => {
            (sign + 3, Between::Is)
        }
        _ if (sign > to || byte(text, sign) >= 0x80) && closed.is_none() && verb(text, sign).is_some() => {
            (verb(text, sign)?, Between::Is)
        }
        // XML: <add key="Password" value="…"/>.
        b'v' if closed.is_some() && starts(text, sign, b"value=") => (sign + 6, Between::Equals),
        _ if sign > to && closed.is_none() && of_something(text, at, tail).is_some() => {
            (of_something(text, at, tail)? + 1, Between::Is)
        }
        _ if sign > to
            && closed.is_none()
            && (flag(text, at) || login(text, at) || ordered(text, at, tail)) =>
        {
            (sign, Between::Blank)
        }
        _ => return None,
    };
    let mut value = blanks(text, behind, 40);
    // `密码是：…`, `is: …`.
    if between == Between::Is {
        for colon in [":", "："] {
            if starts(text, value, colon.as_bytes()) {
                value = blanks(text, value + colon.len(), 4);
            }
        }
    }
    if byte(text, value) >= 0x80 {
        // quotes of other languages
        for mark in ["「", "『", "“", "„", "«", "‘", "《"] {
            if starts(text, value, mark.as_bytes()) {
                value += mark.len();
            }
        }
    }
    // the text of a block of YAML: its first line
    if between == Between::Colon && matches!(byte(text, value), b'|' | b'>') {
        let sign = value + 1 + usize::from(matches!(byte(text, value + 1), b'-' | b'+'));
        if byte(text, sign) == b'\n' {
            value = blanks(text, sign + 1, 32);
        }
    }
    if between == Between::Colon && byte(text, value) == b'\n' {
        value = beside(text, value, false)?;
    }
    if starts(text, value, b"!!str ") {
        value += 6;
    }
    // a text that ends at a word of its own
    if starts(text, value, b"<<")
        && let Some(line) = memchr::memchr(b'\n', part(text, value, (value + 32).min(text.len())))
    {
        value += line + 1;
    }
    Some((value, between))
}

/// Where the value that begins at `at` stands, without its quotes, and whether it has any.
fn value_at(
    scan: &mut Scan<'_>,
    at: usize,
    between: Between,
    header: bool,
    query: bool,
) -> Option<(usize, usize, bool)> {
    let text = scan.text;
    let mut at = at;
    // b"…", r'…', f"…": letters of a string of Python or Rust.
    let letters = text
        .get(at..)
        .unwrap_or_default()
        .iter()
        .take(2)
        .take_while(|b| matches!(b, b'b' | b'r' | b'f' | b'u' | b'L' | b'@'))
        .count();
    if letters > 0 && quote(text, at + letters).is_some_and(|(backslashes, _)| backslashes < 3) {
        at += letters;
    }
    if let Some((backslashes, mark)) = quote(text, at) {
        let start = at + backslashes + 1;
        let end = closing(text, start, backslashes, mark)?;
        let start = if header { scheme(text, start).filter(|&start| start < end)? } else { start };
        return Some((start, end, true));
    }
    if header {
        at = scheme(text, at)?;
    }
    if between == Between::Tag {
        let end = scan.run(Set::Value, at);
        return (byte(text, end) == b'<').then_some((at, end, true));
    }
    let set = if query { Set::Parameter } else { Set::Value };
    let mut end = scan.run(set, at);
    // Hostile texts put a name before every byte of one value: it is judged a few times, not more.
    if end - at > LONGEST || !scan.may_judge(end) {
        return None;
    }
    match byte(text, end) {
        // A call around a text: Some("…"), SecretStr('…').
        b'(' if end > at && end - at < 48 => {
            let (backslashes, mark) = quote(text, end + 1)?;
            let start = end + 2 + backslashes;
            return Some((start, closing(text, start, backslashes, mark)?, true));
        }
        b'(' | b'[' | b'{' => return None,
        // A type: `token: &str = "…"`.
        _ if between == Between::Colon => {
            let rest = part(text, at, (at + 64).min(text.len()));
            let of_type = |byte: &u8| byte.is_ascii_alphanumeric() || b"_&'<>[] .|:?*=".contains(byte);
            let line = rest.iter().position(|byte| !of_type(byte)).unwrap_or(rest.len());
            let line = rest.get(..line).unwrap_or(rest);
            if let Some(sign) = memchr::memmem::find(line, b" = ") {
                let (backslashes, mark) = quote(text, at + sign + 3)?;
                let start = at + sign + 4 + backslashes;
                return Some((start, closing(text, start, backslashes, mark)?, true));
            }
        }
        _ => {}
    }
    // `X=1&&next`, and the `&` of a query whose first names were cut off.
    if !query && let Some(sign) = memchr::memmem::find(part(text, at, end), b"&&") {
        end = at + sign;
    }
    while end > at && matches!(before(text, end), b'.' | b':' | b'?') {
        end -= 1;
    }
    Some((at, end, false))
}

/// Where a text in quotes ends: at the same quote behind the same number of backslashes, in its own line.
fn closing(text: &[u8], start: usize, backslashes: usize, mark: u8) -> Option<usize> {
    let rest = part(text, start, (start + LONGEST).min(text.len()));
    let mut at = 0;
    while let Some(next) = rest.get(at..).and_then(|rest| memchr::memchr2(mark, b'\n', rest)) {
        at += next;
        if byte(rest, at) == b'\n' {
            return None;
        }
        let escapes = rest
            .get(..at)
            .unwrap_or_default()
            .iter()
            .rev()
            .take(8)
            .take_while(|&&byte| byte == b'\\')
            .count();
        if escapes == backslashes || (backslashes == 0 && escapes % 2 == 0) {
            return Some(start + at - backslashes.min(escapes));
        }
        // Fewer backslashes end the text around this one.
        if escapes < backslashes {
            return None;
        }
        at += 1;
    }
    None
}

/// Behind the scheme of an `Authorization` header; nothing for those that have rules of their own.
fn scheme(text: &[u8], at: usize) -> Option<usize> {
    let rest = text.get(at..).unwrap_or_default();
    let word = rest.iter().take(20).take_while(|byte| byte.is_ascii_alphabetic() || **byte == b'-').count();
    let scheme = rest.get(..word).unwrap_or_default();
    if scheme.eq_ignore_ascii_case(b"bearer")
        || scheme.eq_ignore_ascii_case(b"basic")
        || scheme.eq_ignore_ascii_case(b"digest")
    {
        return None;
    }
    Some(if word > 0 && byte(rest, word) == b' ' { blanks(text, at + word, 4) } else { at })
}

/// Decides over a value and says which rule it is of.
fn judge(
    scan: &mut Scan<'_>,
    name: &Name,
    says: Says,
    between: Between,
    from: usize,
    to: usize,
    quoted: bool,
) -> bool {
    let text = scan.text;
    let value = part(text, from, to);
    if value.len() < SHORTEST || value.len() > LONGEST {
        return false;
    }
    if value.len() < 8 && (says != Says::Password || Mix::of(value).kinds() < 3) {
        return false;
    }
    let spaced = quoted && value.contains(&b' ');
    if spaced && !phrase(name, says, between, value) {
        return false;
    }
    if value.iter().any(|byte| !((33..127).contains(byte) || spaced && *byte == b' '))
        || value::lookup(value)
        || value::placeholder(value)
        || value::path(value)
    {
        return false;
    }
    // Text of another script, escaped: `\\u5bc6\\u7801`. Signs of ASCII are escaped so, too.
    let foreign = memchr::memmem::find(value, b"\\u").is_some_and(|at| !starts(value, at + 2, b"00"));
    if foreign {
        return false;
    }
    if says == Says::Login {
        if super::web::login_in_base64(value) {
            scan.named("docker-config-auth", from, to, Confidence::High);
            return true;
        } else if name.ends(&["_auth"]) && name.capitals && value::random(value) {
            scan.named("dotenv-secret", from, to, Confidence::Medium);
            return true;
        }
        return false;
    }
    // Rules that know the service by its name also know the form of its keys.
    let fits_rule = |place: &usize| match scan.rule(*place).map(|rule| rule.shape) {
        Some(Shape::Named { set, least, most, .. }) => {
            scan.runs_rule(*place) && (least..=most).contains(&value.len()) && set.has_all(value)
        }
        _ => false,
    };
    let service = name.services.iter().flatten().copied().find(fits_rule);
    if let Some((place, rule)) = service.and_then(|place| Some((place, scan.rule(place)?)))
        && !value::words(value)
        && value::entropy(value) >= 2.5
    {
        scan.loose(place, from, to, rule.confidence);
        return true;
    }
    // A field of a connection string or the argument of a flag is a value, no code.
    let field = byte(text, to) == b';' && before(text, from.saturating_sub(name.length + 1)) == b';';
    if !spaced && !fits(says, between, value, quoted, field || name.bytes().starts_with(b"--")) {
        return false;
    }
    let id = if between == Between::Blank
        && !starts(text, name_start(text, from), b"-")
        && !name.bytes().starts_with(b"-")
    {
        "netrc"
    } else if name.bytes().starts_with(b"--") {
        "cli-password-flag"
    } else if says == Says::Header {
        "auth-header"
    } else if name.bytes().contains(&b'-') && between == Between::Colon {
        "api-key-header"
    } else if says == Says::Password && byte(text, to) == b';' && !quoted && between == Between::Equals {
        "odbc-jdbc-password"
    } else if name.bytes().contains(&b':') || name.ends(&["_authtoken"]) {
        "npm-legacy"
    } else if name.capitals && between == Between::Equals {
        "dotenv-secret"
    } else if says == Says::Password {
        "generic-password"
    } else {
        "generic-secret"
    };
    scan.named(id, from, to, Confidence::Medium);
    true
}

/// Whether words in quotes are a pass phrase or a password with spaces, and no sentence.
fn phrase(name: &Name, says: Says, between: Between, value: &[u8]) -> bool {
    /// What sentences about passwords cannot do without.
    const SENTENCE: &[&str] = &[
        "the",
        "and",
        "for",
        "was",
        "are",
        "has",
        "its",
        "but",
        "you",
        "your",
        "from",
        "with",
        "not",
        "were",
        "which",
        "should",
        "would",
        "must",
        "can",
        "will",
        "this",
        "that",
        "when",
        "have",
        "use",
        "set",
        "get",
        "new",
        "old",
        "password",
        "passwords",
        "passphrase",
        "passwort",
        "secret",
        "secrets",
        "token",
        "tokens",
        "key",
        "keys",
        "enter",
        "invalid",
        "required",
        "confirm",
        "forgot",
        "reset",
        "current",
        "wrong",
        "incorrect",
        "minimum",
        "characters",
        "missing",
        "user",
        "login",
        "account",
        "value",
        "string",
        "field",
        "here",
        "change",
        "hash",
        "und",
        "der",
        "die",
        "das",
        "les",
        "des",
        "una",
        "los",
        "del",
        "por",
        "para",
        "est",
        "pas",
        "het",
        "een",
    ];
    if !matches!(says, Says::Password | Says::Secret)
        || !matches!(between, Between::Equals | Between::Colon | Between::Tag)
        || value.first() == Some(&b' ')
        || value.last() == Some(&b' ')
    {
        return false;
    }
    let parts = || value.split(|&byte| byte == b' ');
    let count = parts().count();
    if parts().any(|part| SENTENCE.iter().any(|word| part.eq_ignore_ascii_case(word.as_bytes()))) {
        return false;
    }
    let odd = |part: &&[u8]| {
        let kinds = Mix::of(part).kinds();
        part.len() >= 5 && (kinds >= 3 || (kinds == 2 && !value::words(part)))
    };
    if value.len() >= 10 && count <= 12 && parts().filter(odd).count() * 2 >= count {
        return true;
    }
    let least = if name.ends(&["phrase"]) { 3 } else { 4 };
    let word = |part: &[u8]| part.len() >= 3 && part.iter().all(u8::is_ascii_lowercase);
    says == Says::Password && (least..=16).contains(&count) && value.len() >= 16 && parts().all(word)
}

/// Whether a cell may be a secret in a column of this name.
pub(super) fn fits_column(scan: &Scan<'_>, name: &[u8], cell: &[u8]) -> bool {
    match scan.names.name(name).says() {
        Some(Says::Password) => {
            super::shell::password(cell) && (Mix::of(cell).kinds() >= 3 || !value::words(cell))
        }
        Some(Says::Secret | Says::Header) => {
            super::shell::password(cell) && fits(Says::Secret, Between::Colon, cell, true, false)
        }
        Some(Says::Maybe | Says::Login) => super::shell::password(cell) && value::random(cell),
        None => false,
    }
}

/// Whether a value may be the secret of a name that says so.
fn fits(says: Says, between: Between, value: &[u8], quoted: bool, closed: bool) -> bool {
    let mix = Mix::of(value);
    let bits = value::entropy(value);
    let words = value::words(value);
    let loose = matches!(between, Between::Equals | Between::Colon | Between::Tag);
    match says {
        Says::Password => {
            let strong = mix.kinds() >= 3 && value.len() >= 8 && (!words || mix.sign > 0) && bits >= 2.5;
            let mixed = mix.kinds() >= 2
                && !words
                && value.len() >= 8
                && bits >= 2.5
                && (mix.digit > 0 || value.len() >= 12);
            // Code without quotes has signs, too: `user.password!=null`.
            let code =
                !quoted && mix.sign > 0 && mix.digit == 0 && value.iter().filter(|b| **b == b'.').count() > 0;
            let stated = closed && !quoted && value.len() >= 12 && mix.kinds() >= 2;
            // a number is one only where it is given like a text
            let number = quoted && loose && mix.digit == value.len() && value.len() >= 8;
            !code
                && (number || strong || stated || (mixed && (loose || mix.kinds() >= 3 || value.len() >= 12)))
        }
        Says::Secret | Says::Header => {
            let least = if loose { 10 } else { 16 };
            let varied = mix.digit > 0 || (mix.upper > 0 && mix.lower > 0);
            let enough = if Set::AnyHex.has_all(value) { 2.3 } else { 2.8 };
            value.len() >= least && varied && !words && bits >= enough && mix.lower + mix.upper > 0
        }
        Says::Maybe | Says::Login => value::random(value),
    }
}
