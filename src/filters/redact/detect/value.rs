//! Whether a value is a secret or only stands where one could: placeholders, look-ups, words, numbers.

use super::bytes::{Set, byte};
use aho_corasick::AhoCorasick;
use std::sync::LazyLock;

/// Bits of information a byte, by how often each byte occurs. Long values are judged by their first bytes.
pub(super) fn entropy(value: &[u8]) -> f32 {
    let mut counts = [0u16; 256];
    let value = value.get(..512).unwrap_or(value);
    for &byte in value {
        counts[usize::from(byte)] += 1;
    }
    let all = value.len() as f32;
    counts.iter().filter(|&&n| n > 0).map(|&n| f32::from(n) / all).map(|p| -p * p.log2()).sum()
}

/// What a value is made of.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Mix {
    /// Small letters.
    pub(super) lower: usize,
    /// Capitals.
    pub(super) upper: usize,
    /// Digits.
    pub(super) digit: usize,
    /// Signs that stand between letters or digits and join no words: none of `-_./:`.
    pub(super) sign: usize,
}

impl Mix {
    /// Counts them.
    pub(super) fn of(value: &[u8]) -> Mix {
        let mut mix = Mix::default();
        let alnum = |byte: &u8| byte.is_ascii_alphanumeric();
        let first = value.iter().position(alnum).unwrap_or(0);
        let last = value.iter().rposition(alnum).unwrap_or(0);
        for (at, &byte) in value.iter().enumerate() {
            match byte {
                b'a'..=b'z' => mix.lower += 1,
                b'A'..=b'Z' => mix.upper += 1,
                b'0'..=b'9' => mix.digit += 1,
                b'-' | b'_' | b'.' | b'/' | b':' | b' ' => {}
                _ if at > first && at < last => mix.sign += 1,
                _ => {}
            }
        }
        mix
    }

    /// How many of the four kinds there are.
    pub(super) fn kinds(self) -> usize {
        [self.lower, self.upper, self.digit, self.sign].iter().filter(|&&n| n > 0).count()
    }
}

/// Words that tell an example from a secret wherever they stand, in small letters.
const EXAMPLES: &[&str] = &[
    "example",
    "changeme",
    "change_me",
    "change-me",
    "placeholder",
    "redacted",
    "xxxxxx",
    "your_",
    "your-",
    "yourkey",
    "yourtoken",
    "yourpass",
    "yoursecret",
    "notreal",
    "not-real",
    "not_real",
    "dummy",
    "replace_",
    "replace-",
    "replaceme",
    "insert_",
    "insert-",
    "deadbeef",
    "foobar",
    "fixme",
    "sample",
    "-here",
    "_here",
    "fake-",
    "fake_",
    "mock-",
    "mock_",
    "my-secret",
    "my_secret",
    "mysecret",
    "my-super",
    "supersecret",
    "super-secret",
    "super_secret",
    "secret-key",
    "secret_key",
    "test-key",
    "test_key",
    "testkey",
    "test-token",
    "test_token",
    "not-a-",
    "not_a_",
    "invalid-",
    "invalid_",
    "-goes-",
    "lorem",
    "***",
    "...",
    "…",
];

static EXAMPLES_AT: LazyLock<Option<AhoCorasick>> = LazyLock::new(|| AhoCorasick::new(EXAMPLES).ok());

/// Whether a value only shows where a secret would stand.
pub(super) fn placeholder(value: &[u8]) -> bool {
    let value = value.get(..512).unwrap_or(value);
    let mut small = [0u8; 512];
    for (to, from) in small.iter_mut().zip(value) {
        *to = from.to_ascii_lowercase();
    }
    let small = small.get(..value.len()).unwrap_or_default();
    EXAMPLES_AT.as_ref().is_some_and(|words| words.is_match(small)) || sequential(small)
}

/// Whether most bytes follow on the one before or repeat it: `12345678`, `abcdefgh`, `aaaa1111`.
fn sequential(value: &[u8]) -> bool {
    let steps = value.len().saturating_sub(1);
    let follow = |pair: &&[u8]| {
        pair.first().zip(pair.get(1)).is_some_and(|(a, b)| {
            *b == a.wrapping_add(1)
                || a == b
                || (*a == b'9' && (*b == b'0' || *b == b'a'))
                || (*a == b'f' && *b == b'0')
        })
    };
    steps >= 5 && value.windows(2).filter(follow).count() * 10 >= steps * 6
}

/// What stands in code and templates, and in no secret.
const INSIDE: &[&str] =
    &["${", "$(", "{{", "}}", "process.env", "environ[", "://", "%s", "%d", "==", "!=", "&&", "||", "::"];

static INSIDE_AT: LazyLock<Option<AhoCorasick>> = LazyLock::new(|| AhoCorasick::new(INSIDE).ok());

/// Whether a value only says where the secret is found: a variable, a template, a reference to a vault.
pub(super) fn lookup(value: &[u8]) -> bool {
    const HEADS: &[&str] = &[
        "$",
        "{{",
        "<",
        "%(",
        "%{",
        "#{",
        "@{",
        "{%",
        "&",
        "op://",
        "arn:",
        "vault:",
        "ref+",
        "ref:",
        "file:",
        "env:",
        "env.",
        "env(",
        "secret://",
        "secrets.",
        "process.env",
        "os.environ",
        "os.getenv",
        "getenv",
        "import.meta",
        "sha256:",
        "sha512-",
        "sha384-",
        "sha1-",
        "data:",
        "http:",
        "https:",
        "ssh-rsa",
        "ssh-ed25519",
        "pk_live_",
        "pk_test_",
        "toolu_",
        "call_",
        "msg_",
        "req_",
        "projects/",
        "urn:",
        "self.",
        "this.",
        "config.",
        "settings.",
        "args.",
        "options.",
        "!Ref",
        "!Sub",
        "!ref",
        "!vault",
        "=====",
        "-----",
        "<REDACTED",
    ];
    if HEADS.iter().any(|head| value.starts_with(head.as_bytes())) {
        // Crypt hashes and passwords may begin with `$`, variables go on with a letter, `{` or `(`.
        let dollar = value.first() == Some(&b'$') && byte(value, 1) != b'$';
        let variable = matches!(byte(value, 1), b'{' | b'(' | b'_' | b'a'..=b'z' | b'A'..=b'Z');
        let named = value.get(1..).is_some_and(words);
        if !dollar || (variable && (named || !byte(value, 1).is_ascii_alphabetic())) {
            return true;
        }
    }
    let trailing = value.len().saturating_sub(2);
    let inside = INSIDE_AT.as_ref().is_some_and(|inside| {
        inside.find_iter(value).any(|hit| match INSIDE.get(hit.pattern().as_usize()) {
            // Padding of base64 is no comparison, and signs of a format begin a short one.
            Some(&"==") => hit.start() < trailing,
            Some(&("%s" | "%d")) => hit.start() == 0 && value.len() <= 6,
            _ => true,
        })
    });
    inside || (value.first() == Some(&b'%') && value.last() == Some(&b'%') && value.len() > 2)
}

/// Whether a value is words, joined or not: `cache-key-name`, `getUserToken`, `v1.2.3`, `2024-01-31`.
pub(super) fn words(value: &[u8]) -> bool {
    value.split(|byte| !byte.is_ascii_alphanumeric()).all(|token| word(token, 0))
}

/// The same, in doubt no words: for tokens whose prefix and length say the rest.
pub(super) fn surely_words(value: &[u8]) -> bool {
    value.split(|byte| !byte.is_ascii_alphanumeric()).all(|token| word(token, 2))
}

/// How much more often a letter stands in English than among random ones: eighths of bits, softened for the
/// abbreviations of code (from the well-known frequencies of letters).
const ENGLISH: [i32; 26] =
    [8, -9, -3, 1, 13, -5, -6, 5, 6, -22, -14, 0, -5, 6, 7, -7, -23, 5, 5, 9, -3, -12, -5, -22, -6, -23];

/// Whether letters and digits are one word, or a few in camel case, or a number. A letter of mixed ones has
/// to have this many eighths of bits of English.
fn word(token: &[u8], least: i32) -> bool {
    let (mut letters, mut humps, mut swaps, mut english) = (0usize, 0usize, 0usize, 0i32);
    let (mut lower, mut upper, mut run) = (0usize, 0usize, 0usize);
    let mut last = 0u8;
    // A run of letters of one case has ended: words in camel case have one capital, then more small letters.
    let ended = |last: u8, run: usize| match run {
        0 => 0,
        1 if last.is_ascii_lowercase() => -8,
        1 => 2,
        _ if last.is_ascii_lowercase() => 2,
        _ => -8,
    };
    for &byte in token {
        let digit = byte.is_ascii_digit();
        swaps += usize::from(last != 0 && digit != last.is_ascii_digit());
        let same = byte.is_ascii_lowercase() == last.is_ascii_lowercase()
            && byte.is_ascii_uppercase() == last.is_ascii_uppercase();
        if !same {
            english += ended(last, run);
            run = 0;
        }
        run += usize::from(!digit);
        if !digit {
            letters += 1;
            humps += usize::from(letters == 1 || (byte.is_ascii_uppercase() && last.is_ascii_lowercase()));
            lower += usize::from(byte.is_ascii_lowercase());
            upper += usize::from(byte.is_ascii_uppercase());
            english +=
                ENGLISH.get(usize::from(byte.to_ascii_lowercase().wrapping_sub(b'a'))).copied().unwrap_or(0);
        }
        last = byte;
    }
    english += ended(last, run);
    if letters == 0 {
        return true;
    }
    if token.len() <= 3 {
        return swaps <= 1 && humps <= 1;
    }
    let mixed = lower > 0 && upper > 0 && !(upper == 1 && humps == 1);
    // One case says nothing: its runs are all of the token.
    let natural = if mixed { english >= least * letters as i32 } else { english >= 0 || letters < 16 };
    swaps <= 2 && letters >= humps * 2 && natural && (mixed || token.len() <= 30)
}

/// Whether a value is small letters and signs alone, as no generator makes them.
pub(super) fn plain(value: &[u8]) -> bool {
    value.iter().all(|byte| !byte.is_ascii_digit() && !byte.is_ascii_uppercase())
}

/// Whether a value is a UUID.
pub(super) fn uuid(value: &[u8]) -> bool {
    value.len() == 36
        && value.iter().enumerate().all(|(at, &byte)| match at {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
}

/// Whether a value has the length and digits of a hash.
pub(super) fn hash(value: &[u8]) -> bool {
    matches!(value.len(), 16 | 32 | 40 | 48 | 56 | 64 | 96 | 128) && Set::AnyHex.has_all(value)
}

/// Whether a value is a path: begins as one, and all between its slashes is words.
pub(super) fn path(value: &[u8]) -> bool {
    let head = value.starts_with(b"/")
        || value.starts_with(b"./")
        || value.starts_with(b"~/")
        || value.starts_with(b"../");
    let slashes = value.iter().filter(|&&byte| byte == b'/').count();
    (head || slashes >= 2) && value.split(|&byte| byte == b'/').filter(|part| !part.is_empty()).all(words)
}

/// Whether a value looks random enough to be a secret under any name at all: letters of both cases and digits
/// or a long mix, no hash, no id of a known form.
pub(super) fn random(value: &[u8]) -> bool {
    let mix = Mix::of(value);
    let varied = (mix.lower > 0 && mix.upper > 0 && mix.digit > 0)
        || (value.len() >= 24 && mix.digit >= 4 && mix.lower + mix.upper >= 4);
    value.len() >= 20 && varied && !hash(value) && !uuid(value) && !words(value) && entropy(value) >= 3.5
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_numbers_and_names_are_no_secrets() {
        for value in [
            "cache-key-name",
            "getUserToken",
            "v1.2.3",
            "2024-01-31",
            "cl100k_base",
            "us_intl_45",
            "app-secrets",
            "sha256",
            "HTTPServerError",
            "MAX_TOKENS",
            "gpt-4o-mini",
            "mistral-3-5-large",
            "localhost:5432",
            "4096",
            "user@host",
            "",
        ] {
            assert!(words(value.as_bytes()), "{value}");
        }
        for value in ["q7Rk2mZx9LpW", "a8f3k2m9x1", "kJ8#mQ2", "xQzRtPlMnWqVbK", "aB3-xY9-kQ2"] {
            assert!(!words(value.as_bytes()), "{value}");
        }
    }

    #[test]
    fn placeholders_and_look_ups() {
        assert!(EXAMPLES_AT.is_some() && INSIDE_AT.is_some());
        for value in
            ["YOUR_API_KEY_HERE", "changeme", "xxxxxxxxxxxxxxxx", "1234567890abcdef", "abcdefghijklmnop"]
        {
            assert!(placeholder(value.as_bytes()), "{value}");
        }
        for value in
            ["${TOKEN}", "$TOKEN", "<your>", "%PASSWORD%", "{{ x }}", "process.env.X", "secrets.NPM", "a${b}"]
        {
            assert!(lookup(value.as_bytes()), "{value}");
        }
        for value in ["$kQ9#f2Lx", "aGk3==", "q7%s9Kfa"] {
            assert!(!lookup(value.as_bytes()), "{value}");
        }
    }

    #[test]
    fn entropy_of_nothing_one_and_many() {
        assert!(entropy(b"") == 0.0 && entropy(b"aaaa") == 0.0);
        assert!((entropy(b"abcd") - 2.0).abs() < 1e-6);
    }
}
