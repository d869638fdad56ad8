//! All rules, as one table: [`table`]. `README.md` of this folder says how to add one.

mod files;
mod hosts;
mod named;
mod personal;
mod tokens;

mod made;
#[cfg(test)]
mod tests;

pub use made::list;

use super::detect::bytes::Set;
use super::detect::scan::Scan;
use super::detect::{Class, Confidence};

/// A part of a token.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Part {
    /// Text as it stands.
    Text(&'static str),
    /// Text that may be missing.
    Maybe(&'static str),
    /// Bytes of a set: the least and the greatest number of them. The run must end there.
    Run(Set, usize, usize),
}

/// What a token must pass besides its shape.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Test {
    /// Nothing.
    Nothing,
    /// Bits of entropy a byte; no words, no placeholder.
    Entropy(f32),
    /// Letters of both cases besides, for short prefixes that names begin with, too.
    Mixed,
    /// A checksum at its end; one that does not hold leaves medium confidence.
    Checksum,
}

/// A matcher written by hand: the place of its rule, and where its keyword stands.
pub(crate) type Hand = fn(&mut Scan<'_>, usize, usize, usize);

/// How a rule finds its secret.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Shape {
    /// The keyword, then these parts.
    Parts(&'static [Part]),
    /// A function that looks around the keyword.
    Hand(Hand),
    /// The value assigned to a name that holds one of these words (in small letters): its set, and the least
    /// and greatest number of bytes.
    Named { names: &'static [&'static str], set: Set, least: usize, most: usize },
    /// The value of a name, for which no other rule is meant; the detector of assignments says which.
    Given,
    /// Looked for without a keyword, in one pass over the digits of a text.
    Digits,
}

/// One rule.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rule {
    /// Lower-case letters, digits, dashes. Placeholders show it.
    pub(crate) id: &'static str,
    /// What it finds.
    pub(crate) class: Class,
    /// Keywords as they stand.
    pub(crate) words: &'static [&'static str],
    /// How it finds.
    pub(crate) shape: Shape,
    /// What a token of parts must pass.
    pub(crate) test: Test,
    /// Of a token that passed, at most.
    pub(crate) confidence: Confidence,
    /// Where the form is written down.
    pub(crate) source: &'static str,
    /// Texts that it must hit, with letters to be made up (`README.md`).
    pub(crate) yes: &'static [&'static str],
    /// Texts that it must not hit.
    #[cfg_attr(not(test), allow(dead_code))]
    pub(crate) no: &'static [&'static str],
}

impl Rule {
    /// A token with a prefix of its own.
    const fn token(id: &'static str, words: &'static [&'static str], parts: &'static [Part]) -> Rule {
        Rule {
            id,
            class: Class::Secret,
            words,
            shape: Shape::Parts(parts),
            test: Test::Entropy(2.5),
            confidence: Confidence::High,
            source: "",
            yes: &[],
            no: &[],
        }
    }

    /// A rule with a matcher of its own.
    const fn hand(id: &'static str, words: &'static [&'static str], hand: Hand) -> Rule {
        let mut rule = Rule::token(id, words, &[]);
        rule.shape = Shape::Hand(hand);
        rule.test = Test::Nothing;
        rule
    }

    /// The value of a name.
    const fn named(
        id: &'static str,
        names: &'static [&'static str],
        set: Set,
        least: usize,
        most: usize,
    ) -> Rule {
        let mut rule = Rule::token(id, &[], &[]);
        rule.shape = Shape::Named { names, set, least, most };
        rule.test = Test::Nothing;
        rule
    }

    /// A rule without keywords of its own.
    const fn given(id: &'static str, shape: Shape) -> Rule {
        let mut rule = Rule::token(id, &[], &[]);
        rule.shape = shape;
        rule.test = Test::Nothing;
        rule.confidence = Confidence::Medium;
        rule
    }

    const fn of(mut self, class: Class) -> Rule {
        self.class = class;
        self
    }

    const fn tested(mut self, test: Test) -> Rule {
        self.test = test;
        self
    }

    const fn sure(mut self, confidence: Confidence) -> Rule {
        self.confidence = confidence;
        self
    }

    const fn from(mut self, source: &'static str) -> Rule {
        self.source = source;
        self
    }

    const fn yes(mut self, examples: &'static [&'static str]) -> Rule {
        self.yes = examples;
        self
    }

    const fn no(mut self, examples: &'static [&'static str]) -> Rule {
        self.no = examples;
        self
    }
}

/// All rules. Where two find the same bytes, the first one names them.
pub(crate) fn table() -> Vec<Rule> {
    [tokens::RULES, hosts::RULES, files::RULES, named::RULES, personal::RULES].concat()
}
