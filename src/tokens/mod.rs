//! Token counting. No I/O.
//!
//! A filter that fits a conversation into a window needs to know how many tokens a text costs. Exact counting is tens of times slower
//! than the rest of a pipe, so the default is the [`Estimator`], which counts byte classes at the speed of a memory scan. Every counter
//! also reads the escaped body of a JSON string as it stands, so that a filter need not decode what it does not look into.
//!
//! Counters give tokens of o200k (or cl100k); [`Family`] says what those are worth to the models of a vendor, and what messages, tool
//! calls and images cost besides their text.
//!
//! ```
//! use relay::tokens::{Family, Tokenizer};
//!
//! let counter = Tokenizer::Estimate.counter()?;
//! let text = counter.count_escaped(br#"cargo test\n\ntest result: ok. 3 passed"#);
//! let cost = Family::Anthropic.tokens(text) + Family::Anthropic.overhead().tool_result;
//! assert!((20..50).contains(&cost));
//! # Ok::<(), relay::tokens::Error>(())
//! ```

#[cfg(target_arch = "x86_64")]
mod avx2;
mod classes;
mod estimate;
mod exact;
mod family;
pub mod image;
mod simple;

use std::fmt;
use std::str::FromStr;

pub use estimate::{Estimator, estimate, estimate_escaped};
pub use exact::Exact;
pub use family::{Family, Overhead};
pub use simple::Simple;

/// Counts the tokens of a text.
pub trait Counter {
    /// Tokens of `text`.
    fn count(&self, text: &str) -> u64;

    /// Tokens of the text that `body` stands for, where `body` is what stands between the quotes of a JSON string, escapes and all.
    ///
    /// Never panics: an invalid escape counts as the characters it is written with, or as one; a byte that is no UTF-8 as some character.
    fn count_escaped(&self, body: &[u8]) -> u64;
}

/// Why there is no counter.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The vocabulary is not part of this build.
    #[error("the vocabulary {0} is not part of this build")]
    Vocabulary(&'static str),
    /// No tokenizer has this name.
    #[error("no tokenizer is called {0:?}; there are estimate, o200k, cl100k, simple")]
    Name(String),
}

/// The counters a user can choose, by the names of the command line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Tokenizer {
    /// `estimate`: [`Estimator`], o200k by byte classes.
    #[default]
    Estimate,
    /// `o200k`: the exact vocabulary of current OpenAI models.
    O200k,
    /// `cl100k`: the exact vocabulary of earlier ones.
    Cl100k,
    /// `simple`: [`Simple`], characters by a fixed rate.
    Simple,
}

impl Tokenizer {
    /// All of them, in the order of the help text.
    pub const ALL: [Self; 4] = [Self::Estimate, Self::O200k, Self::Cl100k, Self::Simple];

    /// The name on the command line and in `session.budget`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Estimate => "estimate",
            Self::O200k => "o200k",
            Self::Cl100k => "cl100k",
            Self::Simple => "simple",
        }
    }

    /// The counter. An exact one unpacks its vocabulary here, the first time in a process (see [`Exact`]).
    ///
    /// # Errors
    /// [`Error::Vocabulary`] if the vocabulary is not part of this build.
    pub fn counter(self) -> Result<Box<dyn Counter + Send + Sync>, Error> {
        Ok(match self {
            Self::Estimate => Box::new(Estimator),
            Self::O200k => Box::new(Exact::o200k()?),
            Self::Cl100k => Box::new(Exact::cl100k()?),
            Self::Simple => Box::new(Simple),
        })
    }
}

impl fmt::Display for Tokenizer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.name())
    }
}

impl FromStr for Tokenizer {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        Self::ALL
            .into_iter()
            .find(|tokenizer| tokenizer.name() == name)
            .ok_or_else(|| Error::Name(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_there_and_back() {
        for tokenizer in Tokenizer::ALL {
            assert_eq!(tokenizer.to_string().parse(), Ok(tokenizer));
        }
        assert_eq!("O200K".parse::<Tokenizer>(), Err(Error::Name("O200K".to_owned())));
        assert_eq!(Tokenizer::default().name(), "estimate");
    }

    #[test]
    fn every_counter_takes_any_body() -> Result<(), Error> {
        for tokenizer in Tokenizer::ALL {
            let counter = tokenizer.counter()?;
            assert_eq!(counter.count(""), 0, "{tokenizer}");
            assert_eq!(counter.count_escaped(b""), 0, "{tokenizer}");
            for body in [b"\\".as_slice(), b"\\u", b"\\ud83d", b"\\ud83d\\u0041", b"\xff\xfe", b"a\\", b"\\q"]
            {
                assert!(counter.count_escaped(body) > 0, "{tokenizer} {body:?}");
            }
        }
        Ok(())
    }
}
