//! Examples of rules: their letters are made up when they are needed, so that no text of the source looks like a key.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};

/// Makes up letters; the same seed gives the same ones.
pub(super) struct Maker(pub(super) u64);

impl Maker {
    fn next(&mut self) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize
    }

    fn of(&mut self, letters: &str, count: usize) -> String {
        let letters = letters.as_bytes();
        let letter = |n: usize| letters.get(n % letters.len().max(1)).copied().unwrap_or(b'x');
        (0..count).map(|_| char::from(letter(self.next()))).collect()
    }

    fn base64(&mut self, count: usize) -> String {
        self.of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", count)
    }

    fn alnum(&mut self, count: usize) -> String {
        self.of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789", count)
    }

    /// 30 letters and the checksum of GitHub and npm.
    fn summed(&mut self) -> String {
        let body = self.alnum(30);
        let mut sum = u32::MAX;
        for byte in body.bytes() {
            sum ^= u32::from(byte);
            for _ in 0..8 {
                sum = if sum & 1 == 1 { (sum >> 1) ^ 0xedb8_8320 } else { sum >> 1 };
            }
        }
        let mut rest = !sum;
        let digits = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
        let mut tail = [b'0'; 6];
        for place in tail.iter_mut().rev() {
            *place = digits.get((rest % 62) as usize).copied().unwrap_or(b'0');
            rest /= 62;
        }
        body + &String::from_utf8_lossy(&tail)
    }

    /// A private key of a kind, with something before each line and something between lines.
    fn key(&mut self, kind: &str, before: impl Fn(usize) -> String, between: &str, whole: bool) -> String {
        let edge = |word: &str| format!("-----{word} {kind}PRIVATE KEY-----");
        let mut lines = vec![edge("BEGIN")];
        lines.extend((0..12).map(|_| self.base64(64)));
        lines.push(self.base64(22) + "==");
        if whole {
            lines.push(edge("END"));
        }
        let lines: Vec<String> = lines
            .iter()
            .enumerate()
            .map(|(n, line)| if n == 0 { line.clone() } else { before(n) + line })
            .collect();
        lines.join(between)
    }

    /// What a placeholder of an example stands for.
    fn make(&mut self, what: &str) -> Option<String> {
        let (kind, count) = match what.split_once(':') {
            Some((kind, count)) => (kind, count.parse().ok().filter(|count| *count < 1000)?),
            None => (what, 0),
        };
        let none = |_: usize| String::new();
        Some(match kind {
            "an" => self.alnum(count),
            "al" => self.of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz", count),
            "w" => {
                self.of(
                    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_",
                    count.checked_sub(2)?,
                ) + &self.alnum(2)
            }
            "lo" => self.of("abcdefghijklmnopqrstuvwxyz0123456789", count),
            "hx" => self.of("0123456789abcdef", count),
            "UPHEX" => self.of("0123456789ABCDEF", count),
            "UP" => self.of("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789", count),
            "b32" => self.of("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", count),
            "bech" => self.of("QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L", count),
            "d" | "n" => self.of("123456789", count),
            "b64" => self.base64(count),
            "pw" => {
                self.of("abcdefghijkmnpqrstuvwxyz", count.checked_sub(6)?)
                    + &self.of("23456789", 2)
                    + "#"
                    + &self.of("ABCDEFGHJK", 2)
                    + &self.of("xyz", 1)
            }
            "crc" => self.summed(),
            "u" => [8, 4, 4, 4, 12].map(|n| self.of("0123456789abcdef", n)).join("-"),
            "name" => {
                self.of("bcdfgklmnprst", 1)
                    + &self.of("aeiou", 1)
                    + &self.of("bdfgklmnprst", 2)
                    + &self.of("aeio", 1)
                    + &self.of("lnrs", 1)
            }
            "words" => (0..count).filter_map(|_| self.make("name")).collect::<Vec<_>>().join(" "),
            "basic" => {
                let login = format!("svc:{}", self.alnum(18));
                STANDARD.encode(login)
            }
            "jwt" => {
                let head = URL_SAFE_NO_PAD.encode("{\"alg\":\"HS256\",\"typ\":\"JWT\"}");
                let body = URL_SAFE_NO_PAD.encode(format!("{{\"sub\":\"{}\"}}", self.of("123456789", 10)));
                format!("{head}.{body}.{}", self.make("w:43")?)
            }
            "pem" => self.key("RSA ", none, "\n", true),
            "pem-openssh" => self.key("OPENSSH ", none, "\n", true),
            "pem-escaped" => self.key("EC ", none, "\\n", true),
            "pem-twice" => self.key("", none, "\\\\n", true),
            "pem-crlf" => self.key("", none, "\r\n", true),
            "pem-numbered" => self.key("", |n| format!("{n:6}→"), "\n", true),
            "pem-diff" => self.key("", |_| "+".to_owned(), "\n", true),
            "pem-tail" => {
                let key = self.key("", none, "\n", true);
                key.lines().skip(5).collect::<Vec<_>>().join("\n")
            }
            "pem-cut" => self.key("", none, "\n", false),
            "pem-base64" => {
                let key = self.key("", none, "\n", true);
                STANDARD.encode(key)
            }
            _ => return None,
        })
    }

    /// An example with its placeholders made up, and where the secret in it stands.
    pub(super) fn example(&mut self, template: &str) -> (String, usize, usize) {
        let (mut text, mut marks) = (String::new(), Vec::new());
        let mut rest = template;
        while let Some(c) = rest.chars().next() {
            rest = rest.get(c.len_utf8()..).unwrap_or_default();
            match c {
                '«' | '»' => marks.push(text.len()),
                '{' => match rest.split_once('}').and_then(|(what, tail)| Some((self.make(what)?, tail))) {
                    Some((made, tail)) => {
                        text += &made;
                        rest = tail;
                    }
                    None => text.push(c),
                },
                _ => text.push(c),
            }
        }
        match marks.as_slice() {
            &[start, end] => (text, start, end),
            _ => (text.clone(), 0, text.len()),
        }
    }
}

/// Bytes of an example that are shown.
const SHOWN: usize = 120;

/// All rules for people, a line each: id, class, an example of the shape, where the form is written down.
pub fn list() -> Vec<String> {
    super::table()
        .iter()
        .map(|rule| {
            let template = rule.yes.first().copied().unwrap_or_default();
            let (example, ..) = Maker(rule.id.len() as u64).example(template);
            let mut example =
                example.replace('\\', "\\\\").replace('\n', "\\n").replace('\r', "\\r").replace('\t', "\\t");
            if let Some((at, _)) = example.char_indices().find(|(at, _)| *at >= SHOWN) {
                example.truncate(at);
                example.push('…');
            }
            format!("{}\t{}\t{example}\t{}", rule.id, rule.class.name(), rule.source)
        })
        .collect()
}
