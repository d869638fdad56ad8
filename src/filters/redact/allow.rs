//! Values that are known not to be secret.

use super::Key;
use crate::record::{Error, Result};
use std::collections::HashSet;

/// A list of values that are left as they are.
///
/// One a line; a line that begins with `#` is a remark. `prefix:TEXT` allows what begins so, `regex:PATTERN` what the
/// pattern matches as a whole, `hmac:DIGITS` the value of this fingerprint (as reports print it; it needs the salt or
/// the map under which it was made), anything else is the value itself, also behind `value:`.
#[derive(Debug, Default)]
pub struct Allow {
    values: HashSet<Vec<u8>>,
    prefixes: Vec<Vec<u8>>,
    patterns: Option<regex::bytes::RegexSet>,
    fingerprints: HashSet<String>,
}

impl Allow {
    /// Reads a list.
    ///
    /// # Errors
    /// A pattern that is no regular expression, or is too large (1 MiB compiled), or a fingerprint of another form.
    pub fn parse(list: &[u8]) -> Result<Allow> {
        let mut allow = Allow::default();
        let mut patterns = Vec::new();
        for (number, line) in list.split(|&b| b == b'\n').enumerate() {
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            if line.trim_ascii().is_empty() || line.first() == Some(&b'#') {
                continue;
            }
            let wrong = |what: &str| Error::Usage {
                what: format!("line {} of the list: {what}", number + 1),
                hint: None,
            };
            if let Some(prefix) = line.strip_prefix(b"prefix:") {
                if prefix.is_empty() {
                    return Err(wrong("an empty prefix would allow everything"));
                }
                allow.prefixes.push(prefix.to_vec());
            } else if let Some(pattern) = line.strip_prefix(b"regex:") {
                let pattern = std::str::from_utf8(pattern).map_err(|_| wrong("the pattern is no UTF-8"))?;
                regex::bytes::Regex::new(pattern).map_err(|_| wrong("this is no regular expression"))?;
                patterns.push(format!("^(?:{pattern})$"));
            } else if let Some(digits) = line.strip_prefix(b"hmac:") {
                let digits = digits.trim_ascii().to_ascii_lowercase();
                let digits = String::from_utf8(digits).unwrap_or_default();
                if digits.len() != 32 || !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
                    return Err(wrong("a fingerprint has 32 hexadecimal digits"));
                }
                allow.fingerprints.insert(digits);
            } else {
                allow.values.insert(line.strip_prefix(b"value:").unwrap_or(line).to_vec());
            }
        }
        if !patterns.is_empty() {
            let set = regex::bytes::RegexSetBuilder::new(&patterns).size_limit(1 << 20).build();
            allow.patterns = Some(set.map_err(|_| Error::Usage {
                what: "the patterns of the list are too large".to_owned(),
                hint: None,
            })?);
        }
        Ok(allow)
    }

    /// Whether fingerprints are in the list.
    pub fn has_fingerprints(&self) -> bool {
        !self.fingerprints.is_empty()
    }

    /// Whether the value is in the list.
    pub(super) fn holds(&self, value: &[u8], key: &Key) -> bool {
        self.values.contains(value)
            || self.prefixes.iter().any(|p| value.starts_with(p))
            || self.patterns.as_ref().is_some_and(|set| set.is_match(value))
            || (!self.fingerprints.is_empty() && self.fingerprints.contains(&key.fingerprint(value)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_way_to_allow() {
        let key = Key::new(&[7; 16]).unwrap();
        let list = format!(
            "# a remark\n\nexact one\r\nvalue:#odd\nprefix:test-\nregex:[0-9]+\nhmac:{}\n",
            key.fingerprint(b"hidden")
        );
        let allow = Allow::parse(list.as_bytes()).unwrap();
        for value in ["exact one", "#odd", "test-abc", "123", "hidden"] {
            assert!(allow.holds(value.as_bytes(), &key), "{value}");
        }
        for value in ["exact", "exact one more", "a test-", "123a", "Hidden", ""] {
            assert!(!allow.holds(value.as_bytes(), &key), "{value}");
        }
        assert!(allow.has_fingerprints() && !allow.holds(b"hidden", &Key::new(&[8; 16]).unwrap()));
        for wrong in ["prefix:", "regex:(", "hmac:12", "regex:(a{1000}){1000}"] {
            assert_eq!(Allow::parse(wrong.as_bytes()).unwrap_err().exit_code(), 2, "{wrong}");
        }
    }
}
