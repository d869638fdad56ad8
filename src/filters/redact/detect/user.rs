//! Rules of the user's own: a file of TOML as gitleaks reads it.
//!
//! Read: `[[rules]]` with `id`, `regex`, `secretGroup`, `entropy`, `keywords`, `allowlist` and `allowlists`
//! (`regexes`, `stopwords`, `regexTarget`), and the `[allowlist]` of the file. `path`, `commits`, `tags` and
//! `description` say nothing about a text of a session; `[extend]` is refused, as other files are not read.
//! Expressions are those of RE2, linear in the text; their size is bounded, so that the factor is bounded, too.

use super::Confidence;
use super::scan::Found;
use super::value;
use crate::record::{Error, Result};
use aho_corasick::{AhoCorasick, MatchKind};
use regex::bytes::{Regex, RegexBuilder};
use serde::Deserialize;

/// The most rules that a file may have.
const MOST_RULES: usize = 1000;
/// The most bytes of a compiled expression: a count of a thousand letters fits, a count of a count does not.
const LARGEST: usize = 1 << 20;
/// The most bytes of the states that one expression keeps while it runs.
const STATES: usize = 1 << 20;
/// The longest expression, in bytes.
const LONGEST: usize = 8 << 10;

/// The file.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct File {
    rules: Vec<Entry>,
    allowlist: Option<Allow>,
    allowlists: Vec<Allow>,
    extend: Option<toml::Value>,
}

/// A rule of the file.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Entry {
    id: String,
    regex: Option<String>,
    path: Option<String>,
    secret_group: usize,
    entropy: f32,
    keywords: Vec<String>,
    allowlist: Option<Allow>,
    allowlists: Vec<Allow>,
}

/// What is no secret.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Allow {
    regexes: Vec<String>,
    stopwords: Vec<String>,
    regex_target: Option<String>,
}

/// What a match must not be.
#[derive(Debug, Default)]
struct Allowed {
    /// Expressions with what they look at: the secret, the match, the line.
    regexes: Vec<(Regex, Target)>,
    stopwords: Vec<String>,
}

#[derive(Debug, Clone, Copy)]
enum Target {
    Secret,
    Match,
    Line,
}

#[derive(Debug)]
struct UserRule {
    id: &'static str,
    regex: Regex,
    group: usize,
    entropy: f32,
    /// Whether it has keywords; those of all rules are looked for at once.
    keyed: bool,
    allowed: Allowed,
}

/// The rules.
#[derive(Debug, Default)]
pub(super) struct Rules {
    rules: Vec<UserRule>,
    keywords: Option<AhoCorasick>,
    /// The rule of each keyword.
    owners: Vec<usize>,
    allowed: Allowed,
}

impl Rules {
    /// Reads a file's text.
    ///
    /// # Errors
    ///
    /// A usage error that names the rule which cannot be read.
    pub(super) fn parse(text: &str) -> Result<Rules> {
        let wrong = |what: String| Error::Usage { what, hint: None };
        let file: File = toml::from_str(text)
            .map_err(|error| wrong(format!("rules: {}", one_line(&error.to_string()))))?;
        if file.extend.is_some() {
            return Err(wrong("rules: [extend] names other rules, which are not read".to_owned())
                .with_hint("put the rules into one file"));
        }
        if file.rules.len() > MOST_RULES {
            return Err(wrong(format!("rules: {} of them, more than {MOST_RULES}", file.rules.len())));
        }
        let mut rules = Vec::new();
        let mut keywords = Vec::new();
        let mut owners = Vec::new();
        for entry in file.rules {
            // A rule about paths alone finds nothing in a text.
            let Some(regex) = &entry.regex else {
                if entry.path.is_some() {
                    continue;
                }
                return Err(wrong(format!("rules: {:?} has no regex", entry.id)));
            };
            let id = identifier(&entry.id).ok_or_else(|| {
                wrong(format!("rules: {:?} is no id of letters, digits and dashes", entry.id))
            })?;
            let regex = compiled(regex).map_err(|why| wrong(format!("rules: {id}: {why}")))?;
            if entry.secret_group >= regex.captures_len() {
                return Err(wrong(format!("rules: {id}: there is no group {}", entry.secret_group)));
            }
            for keyword in &entry.keywords {
                keywords.push(keyword.to_lowercase());
                owners.push(rules.len());
            }
            let lists = entry.allowlist.into_iter().chain(entry.allowlists);
            let allowed = Allowed::of(lists).map_err(|why| wrong(format!("rules: {id}: {why}")))?;
            rules.push(UserRule {
                // The id lives as long as hits may be named, the whole run; a file has a bounded number.
                id: Box::leak(id.into_boxed_str()),
                regex,
                group: entry.secret_group,
                entropy: entry.entropy,
                keyed: !entry.keywords.is_empty(),
                allowed,
            });
        }
        let allowed = Allowed::of(file.allowlist.into_iter().chain(file.allowlists))
            .map_err(|why| wrong(format!("rules: {why}")))?;
        let keywords = match keywords.is_empty() {
            true => None,
            false => Some(
                AhoCorasick::builder()
                    .ascii_case_insensitive(true)
                    .match_kind(MatchKind::Standard)
                    .build(&keywords)
                    .map_err(|error| wrong(format!("rules: keywords: {error}")))?,
            ),
        };
        Ok(Rules { rules, keywords, owners, allowed })
    }

    /// The ids, in order.
    pub(super) fn ids(&self) -> impl Iterator<Item = &'static str> {
        self.rules.iter().map(|rule| rule.id)
    }

    /// Whether a rule has no keyword, so that it must look at everything.
    pub(super) fn always(&self) -> bool {
        self.rules.iter().any(|rule| !rule.keyed)
    }

    /// Whether a keyword stands in the bytes.
    pub(super) fn may_hit(&self, bytes: &[u8]) -> bool {
        self.keywords.as_ref().is_some_and(|keywords| keywords.is_match(bytes))
    }

    /// Appends what the rules find; the first of them has the number `first`.
    pub(super) fn find(&self, text: &[u8], first: usize, active: &[bool], found: &mut Vec<Found>) {
        if self.rules.is_empty() {
            return;
        }
        let mut due: Vec<bool> = self.rules.iter().map(|rule| !rule.keyed).collect();
        if let Some(keywords) = &self.keywords {
            let mut missing = self.rules.len() - due.iter().filter(|due| **due).count();
            for hit in keywords.find_overlapping_iter(text) {
                if let Some(due) =
                    self.owners.get(hit.pattern().as_usize()).and_then(|&owner| due.get_mut(owner))
                    && !std::mem::replace(due, true)
                {
                    missing -= 1;
                    if missing == 0 {
                        break;
                    }
                }
            }
        }
        let runs =
            |number: usize| due.get(number) == Some(&true) && active.get(first + number) == Some(&true);
        for (number, rule) in self.rules.iter().enumerate().filter(|(number, _)| runs(*number)) {
            for captures in rule.regex.captures_iter(text) {
                let Some(whole) = captures.get(0) else { continue };
                // As gitleaks: the group asked for, else the first that took part, else all.
                let secret = match rule.group {
                    0 => captures.iter().skip(1).flatten().find(|group| !group.is_empty()).unwrap_or(whole),
                    group => captures.get(group).unwrap_or(whole),
                };
                if secret.is_empty()
                    || (rule.entropy > 0.0 && value::entropy(secret.as_bytes()) < rule.entropy)
                {
                    continue;
                }
                let allows = |allowed: &Allowed| allowed.has(text, secret.as_bytes(), whole.range());
                if allows(&rule.allowed) || allows(&self.allowed) {
                    continue;
                }
                found.push(Found {
                    start: secret.start(),
                    end: secret.end(),
                    rule: first + number,
                    confidence: Confidence::High,
                });
            }
        }
    }
}

impl Allowed {
    fn of(lists: impl Iterator<Item = Allow>) -> std::result::Result<Allowed, String> {
        let mut allowed = Allowed::default();
        for list in lists {
            let target = match list.regex_target.as_deref() {
                None | Some("secret" | "") => Target::Secret,
                Some("match") => Target::Match,
                Some("line") => Target::Line,
                Some(other) => return Err(format!("regexTarget {other:?}: secret, match or line")),
            };
            for regex in &list.regexes {
                allowed.regexes.push((compiled(regex)?, target));
            }
            allowed.stopwords.extend(
                list.stopwords.iter().map(|word| word.to_lowercase()).filter(|word| !word.is_empty()),
            );
        }
        Ok(allowed)
    }

    /// Whether a secret is none.
    fn has(&self, text: &[u8], secret: &[u8], whole: std::ops::Range<usize>) -> bool {
        let small = secret.to_ascii_lowercase();
        if self.stopwords.iter().any(|word| memchr::memmem::find(&small, word.as_bytes()).is_some()) {
            return true;
        }
        self.regexes.iter().any(|(regex, target)| match target {
            Target::Secret => regex.is_match(secret),
            Target::Match => text.get(whole.clone()).is_some_and(|text| regex.is_match(text)),
            Target::Line => {
                // Lines of hostile texts are long; what stands near is enough.
                let from = whole.start.saturating_sub(1024);
                let head = text.get(from..whole.start).unwrap_or_default();
                let start = memchr::memrchr(b'\n', head).map_or(from, |at| from + at + 1);
                let tail = text.get(whole.end..(whole.end + 1024).min(text.len())).unwrap_or_default();
                let end = whole.end + memchr::memchr(b'\n', tail).unwrap_or(tail.len());
                text.get(start..end).is_some_and(|line| regex.is_match(line))
            }
        })
    }
}

/// An expression of bounded size. Go's classes are those of ASCII, so Unicode is tried second.
fn compiled(regex: &str) -> std::result::Result<Regex, String> {
    if regex.len() > LONGEST {
        return Err(format!("the regex is longer than {LONGEST} bytes"));
    }
    let build = |unicode: bool| {
        RegexBuilder::new(regex)
            .unicode(unicode)
            .size_limit(LARGEST)
            .dfa_size_limit(STATES)
            .nest_limit(100)
            .build()
    };
    match build(false) {
        Ok(regex) => Ok(regex),
        Err(regex::Error::CompiledTooBig(_)) => {
            Err(format!("the regex is larger than {LARGEST} bytes when compiled"))
        }
        Err(_) => build(true).map_err(|error| one_line(&error.to_string())),
    }
}

/// An id as placeholders show it.
fn identifier(id: &str) -> Option<String> {
    let id = id.trim().to_ascii_lowercase().replace(['_', ' ', '.'], "-");
    let sound = !id.is_empty()
        && id.len() <= 64
        && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    sound.then_some(id)
}

/// The last line of a message that draws a picture.
fn one_line(text: &str) -> String {
    text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default().trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(rules: &str, text: &str) -> Vec<(String, String)> {
        let rules = Rules::parse(rules).unwrap();
        let mut found = Vec::new();
        rules.find(text.as_bytes(), 0, &[true; 9], &mut found);
        found
            .iter()
            .map(|hit| (rules.rules[hit.rule].id.to_owned(), text[hit.start..hit.end].to_owned()))
            .collect()
    }

    #[test]
    fn a_file_of_gitleaks() {
        let rules = r#"
            title = "ours"
            [allowlist]
            stopwords = ["Sample"]
            [[rules]]
            id = "Ticket"
            description = "x"
            regex = '''(?i)\bTCK-([0-9a-z]{6})\b'''
            keywords = ["TCK-"]
            [[rules]]
            id = "host_pair"
            regex = 'pair=(\w+):(\w+)'
            secretGroup = 2
            entropy = 1.5
            [[rules.allowlists]]
            regexTarget = "line"
            regexes = ["public"]
        "#;
        assert_eq!(
            found(rules, "see tck-a1b2c3, pair=x:abcd"),
            [("ticket".into(), "a1b2c3".into()), ("host-pair".into(), "abcd".into())]
        );
        assert!(found(rules, "TCK-sample").is_empty(), "a stopword");
        assert!(found(rules, "pair=x:aaaa").is_empty(), "too little entropy");
        assert!(found(rules, "public pair=x:abcd").is_empty(), "an allowed line");
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        let message = |rules: &str| Rules::parse(rules).unwrap_err().to_string();
        assert!(message("[[rules]]\nid = \"x\"\nregex = '('").contains("x: "));
        assert!(message("[[rules]]\nid = \"x\"\nregex = '((a{1000}){1000}){1000}'").contains("larger than"));
        assert!(message("[[rules]]\nid = \"x\"\nregex = 'a'\nsecretGroup = 3").contains("no group 3"));
        assert!(message("[[rules]]\nid = \"a/b\"\nregex = 'a'").contains("no id"));
        assert!(message("[extend]\nuseDefault = true").contains("[extend]"));
        assert!(message("[[rules]]\nid = \"x\"").contains("no regex"));
        assert!(message("rules = 3").starts_with("rules: "));
    }
}
