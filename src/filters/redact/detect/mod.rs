//! Finds secrets and personal data in a text.
//!
//! One pass over the keywords of all rules ([`super::rules`]); at each keyword a matcher looks at
//! the bytes around it. No matcher looks further than a bounded number of bytes, or it shares what it saw with
//! the next one ([`scan::Scan`]), so that the time is linear in the bytes whatever they are.
//!
//! | file | what it knows |
//! |---|---|
//! | `keywords` | where the keywords stand |
//! | `lines` | tokens broken by line ends and by bounds |
//! | `bytes` | sets of bytes, where a token may begin and end |
//! | `value` | secrets from placeholders, look-ups, words and numbers |
//! | `scan` | one text while it is looked at; tokens of parts |
//! | `assign` | values of names |
//! | `web` | URLs, headers, cookies, JSON web tokens |
//! | `blocks` | private keys, Kubernetes, seeds |
//! | `shell` | commands and their files |
//! | `tables` | columns of passwords, SQL, lists of codes |
//! | `personal` | personal data |
//! | `user` | rules of the user's own |
//! | `whole` | where a text may be cut so that no secret is |

mod assign;
pub(super) mod blocks;
pub(super) mod bytes;
mod keywords;
mod lines;
pub(super) mod personal;
pub(super) mod scan;
pub(super) mod shell;
pub(super) mod tables;
mod user;
mod value;
pub(super) mod web;
mod whole;

#[cfg(test)]
mod tests;

pub(crate) use whole::{cut_after, cut_before, secret_at};

use super::rules::{self, Rule, Shape};
use crate::record::{Error, Redacted, Result};
use keywords::Keywords;
use scan::{Found, Scan};
use std::ops::ControlFlow;

/// How sure a rule is of a hit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Confidence {
    /// The shape alone fits, and it is a common one, or a checksum does not hold.
    Low,
    /// The shape fits together with a name beside it, or a known prefix without its checksum.
    Medium,
    /// A shape that nothing but a secret has.
    High,
}

/// What a rule finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// A secret: whoever has it can act for its owner.
    Secret,
    /// The name of a person in a home folder.
    Home,
    /// A mail address.
    Email,
    /// An internet address.
    Ip,
    /// The name of a machine in a private network.
    Host,
    /// A telephone number.
    Phone,
    /// The number of a payment card.
    Card,
    /// The hardware address of a network card.
    Mac,
}

impl Class {
    /// All classes.
    pub const ALL: [Class; 8] = [
        Class::Secret,
        Class::Home,
        Class::Email,
        Class::Ip,
        Class::Host,
        Class::Phone,
        Class::Card,
        Class::Mac,
    ];

    /// The word for it on a command line.
    pub fn name(self) -> &'static str {
        match self {
            Class::Secret => "secret",
            Class::Home => "home",
            Class::Email => "email",
            Class::Ip => "ip",
            Class::Host => "host",
            Class::Phone => "phone",
            Class::Card => "card",
            Class::Mac => "mac",
        }
    }

    /// The class of a word of a command line.
    pub fn named(word: &str) -> Option<Class> {
        Class::ALL.into_iter().find(|class| class.name() == word)
    }
}

/// A rule, by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RuleId {
    name: &'static str,
    class: Class,
}

impl RuleId {
    /// Its id: lower-case letters, digits and dashes.
    pub fn name(self) -> &'static str {
        self.name
    }

    /// What it finds.
    pub fn class(self) -> Class {
        self.class
    }
}

/// A secret or a piece of personal data in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hit {
    /// Offset of its first byte.
    pub start: usize,
    /// Offset behind its last byte.
    pub end: usize,
    /// The rule that found it.
    pub rule: RuleId,
    /// How sure that rule is.
    pub confidence: Confidence,
    /// Whether the value may be searched for everywhere after: a secret may, personal data may not.
    pub propagate: bool,
}

/// Which rules run.
#[derive(Debug, Clone)]
pub struct Choice {
    /// Classes that are looked for.
    pub classes: Vec<Class>,
    /// Rules by id, or classes by name: if there are any, no other ones run (of the classes above).
    pub only: Vec<String>,
    /// Rules by id, or classes by name, that do not run.
    pub skip: Vec<String>,
    /// Hits of less confidence are left alone.
    pub confidence: Confidence,
    /// Text of a file of rules of the user's own (TOML as gitleaks reads it).
    pub rules: Option<String>,
    /// More endings of names of private machines, as `.example.lan`.
    pub host_suffixes: Vec<String>,
    /// Home folders whose last name is personal, wherever they lie.
    pub homes: Vec<String>,
}

impl Default for Choice {
    fn default() -> Choice {
        Choice {
            classes: vec![Class::Secret],
            only: Vec::new(),
            skip: Vec::new(),
            confidence: Confidence::Medium,
            rules: None,
            host_suffixes: Vec::new(),
            homes: Vec::new(),
        }
    }
}

/// What is done at a keyword.
#[derive(Debug, Clone, Copy)]
enum Act {
    /// The rule at this place of the table.
    Rule(usize),
    /// The end of a name of an assignment.
    Assign,
    /// A home folder of the choice, whose name has so many bytes.
    Home(usize, usize),
}

/// Finds what a [`Choice`] asks for.
#[derive(Debug)]
pub struct Detector {
    table: Vec<Rule>,
    active: Vec<bool>,
    ids: Vec<RuleId>,
    keywords: Keywords,
    names: assign::Names,
    /// What is done at each keyword, by its number.
    acts: Vec<Act>,
    digits: Vec<(usize, Class)>,
    assigns: bool,
    user: user::Rules,
    least: Confidence,
    /// What a stream may call itself behind all these rules.
    level: Option<&'static str>,
    found: Vec<Found>,
}

impl Detector {
    /// A detector.
    ///
    /// # Errors
    ///
    /// A usage error when a rule or class of the choice is unknown, or the user's rules cannot be read.
    pub fn new(choice: &Choice) -> Result<Detector> {
        let table = rules::table();
        let user = match &choice.rules {
            Some(text) => user::Rules::parse(text)?,
            None => user::Rules::default(),
        };
        let known = |word: &String| {
            Class::named(word).is_some()
                || table.iter().any(|rule| rule.id == word)
                || user.ids().any(|id| id == word)
        };
        if let Some(word) = choice.only.iter().chain(&choice.skip).find(|word| !known(word)) {
            return Err(Error::Usage {
                what: format!("no rule or class {word:?}"),
                hint: Some(format!("classes: {}", Class::ALL.map(Class::name).join(", "))),
            });
        }
        let runs = |id: &str, class: Class| {
            let listed = |words: &[String]| words.iter().any(|word| word == id || word == class.name());
            choice.classes.contains(&class)
                && (choice.only.is_empty() || listed(&choice.only))
                && !listed(&choice.skip)
        };
        let mut ids: Vec<RuleId> =
            table.iter().map(|rule| RuleId { name: rule.id, class: rule.class }).collect();
        ids.extend(user.ids().map(|name| RuleId { name, class: Class::Secret }));
        let active: Vec<bool> = ids.iter().map(|id| runs(id.name, id.class)).collect();

        let mut patterns: Vec<Vec<u8>> = Vec::new();
        let mut acts = Vec::new();
        let mut assigns = false;
        let mut digits = Vec::new();
        for (place, rule) in table.iter().enumerate().filter(|(place, _)| active.get(*place) == Some(&true)) {
            match rule.shape {
                Shape::Named { .. } | Shape::Given => assigns = true,
                Shape::Digits => digits.push((place, rule.class)),
                Shape::Parts(_) | Shape::Hand(_) => {}
            }
            for word in rule.words {
                patterns.push(word.as_bytes().to_vec());
                acts.push(Act::Rule(place));
            }
            if rule.id == "host" {
                for suffix in &choice.host_suffixes {
                    patterns.push(suffix.as_bytes().to_vec());
                    acts.push(Act::Rule(place));
                }
            }
            if rule.id == "home" {
                for (pattern, name) in choice.homes.iter().flat_map(|home| personal::own(home)) {
                    patterns.push(pattern);
                    acts.push(Act::Home(place, name));
                }
            }
        }
        if assigns {
            let words = assign::TAILS.iter().flat_map(|word| cases(word));
            let exact = assign::EXACT_TAILS.iter().map(|word| word.as_bytes().to_vec());
            for pattern in words.chain(exact) {
                patterns.push(pattern);
                acts.push(Act::Assign);
            }
        }
        let keywords =
            Keywords::new(patterns.into_iter().enumerate().map(|(number, pattern)| (pattern, number)));
        let names =
            assign::Names::new(&table).map_err(|error| Error::failed(format!("words of names: {error}")))?;
        Ok(Detector {
            names,
            table,
            active,
            ids,
            keywords,
            acts,
            digits,
            assigns,
            user,
            least: choice.confidence,
            level: level(choice),
            found: Vec::new(),
        })
    }

    /// What a stream may call itself behind all these rules ([`Redacted`]); nothing when some are left out.
    pub fn level(&self) -> Option<&'static str> {
        self.level
    }

    /// The rule of a number under a name that says that it is secret.
    pub fn number(&self, name: &[u8], number: &[u8]) -> Option<RuleId> {
        let place = self.table.iter().position(|rule| rule.id == "generic-password")?;
        let runs = self.active.get(place) == Some(&true) && self.least <= Confidence::Medium;
        let long = number.iter().filter(|byte| byte.is_ascii_digit()).count() >= 4;
        (runs && long && !self.names.is_public(name)).then(|| self.ids.get(place).copied()).flatten()
    }

    /// Appends what is found in `text`, by rising offsets (in bytes), never overlapping. `name` is the name
    /// under which the text stands, if it has one: a key of JSON, a header.
    pub fn find(&mut self, name: Option<&[u8]>, text: &[u8], hits: &mut Vec<Hit>) {
        let mut found = std::mem::take(&mut self.found);
        found.clear();
        self.look(name, text, &mut found, hits);
        self.found = found;
    }

    /// The same with a buffer of the caller's.
    fn look(&self, name: Option<&[u8]>, text: &[u8], found: &mut Vec<Found>, hits: &mut Vec<Hit>) {
        let mut scan = Scan::new(text, &self.table, &self.active, &self.names, found);
        self.keywords(&mut scan);
        if let Some(name) = name.filter(|_| self.assigns) {
            assign::whole(&mut scan, name);
            if name.to_ascii_lowercase().ends_with(b"cookie") {
                web::cookies(&mut scan, 0);
            }
        }
        if !self.digits.is_empty() {
            personal::digits(&mut scan, &self.digits);
        }
        self.user.find(text, self.table.len(), &self.active, found);
        if !found.is_empty() {
            self.join(found, hits);
        }
    }

    /// Runs the matcher of every keyword in a text.
    fn keywords(&self, scan: &mut Scan<'_>) {
        let text = scan.text;
        let _ = self.keywords.each(text, |number, at, end| {
            match self.acts.get(number) {
                Some(Act::Assign) => assign::assigned(scan, at, end),
                Some(&Act::Home(rule, name)) => personal::own_home(scan, rule, at, end, name),
                Some(&Act::Rule(rule)) if at >= scan.covered => {
                    match self.table.get(rule).map(|rule| rule.shape) {
                        Some(Shape::Parts(_)) => scan.parts(rule, at, end),
                        Some(Shape::Hand(hand)) => hand(scan, rule, at, end),
                        _ => {}
                    }
                }
                _ => {}
            }
            ControlFlow::Continue(())
        });
    }

    /// Hands on what was found: overlapping hits become one, named by the rule that comes first in the table.
    fn join(&self, found: &mut [Found], hits: &mut Vec<Hit>) {
        found.sort_unstable_by_key(|found| (found.start, found.end));
        let mut open: Option<Found> = None;
        for &next in found.iter().filter(|found| found.confidence >= self.least) {
            match &mut open {
                Some(last) if next.start < last.end => {
                    last.end = last.end.max(next.end);
                    last.rule = last.rule.min(next.rule);
                    last.confidence = last.confidence.max(next.confidence);
                }
                _ => {
                    hits.extend(open.replace(next).and_then(|found| self.hit(found)));
                }
            }
        }
        hits.extend(open.and_then(|found| self.hit(found)));
    }

    fn hit(&self, found: Found) -> Option<Hit> {
        let rule = *self.ids.get(found.rule)?;
        let Found { start, end, confidence, .. } = found;
        Some(Hit {
            start,
            end,
            rule,
            confidence,
            propagate: rule.class == Class::Secret && confidence > Confidence::Low,
        })
    }

    /// False when no rule can hit in these bytes. A name that stands in the bytes counts as well.
    pub fn may_hit(&self, bytes: &[u8]) -> bool {
        if !self.digits.is_empty() || self.user.always() {
            return true;
        }
        // Most names stand in sentences and code without a value; the other keywords count wherever they stand.
        let counts = |number: usize, end: usize| match self.acts.get(number) {
            Some(Act::Assign) => assign::may_follow(bytes::byte(bytes, end)),
            _ => true,
        };
        let hit = self.keywords.each(bytes, |number, _, end| match counts(number, end) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        });
        hit.is_break() || self.user.may_hit(bytes)
    }
}

/// See [`Detector::level`].
fn level(choice: &Choice) -> Option<&'static str> {
    let has = |class| choice.classes.contains(&class);
    let all = choice.only.is_empty() && choice.skip.is_empty() && choice.confidence <= Confidence::Medium;
    match (all && has(Class::Secret), has(Class::Home) && has(Class::Email)) {
        (false, _) => None,
        (true, true) => Some(Redacted::SHARE),
        (true, false) => Some(Redacted::SECRETS),
    }
}

/// A keyword as it stands, in capitals and with one capital.
fn cases(word: &str) -> [Vec<u8>; 3] {
    let mut title = word.as_bytes().to_vec();
    if let Some(first) = title.first_mut() {
        first.make_ascii_uppercase();
    }
    [word.as_bytes().to_vec(), title, word.to_ascii_uppercase().into_bytes()]
}
