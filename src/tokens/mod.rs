//! Token counting. No I/O.
//!
//! A filter that fits a conversation into a window needs to know how many tokens a text costs. Exact counting with a byte-pair
//! tokenizer runs at some 10 MB/s, so the default is [`Estimator`], which counts byte classes at the speed of a memory scan.
//! Every counter also reads the escaped body of a JSON string as it stands, so that a filter need not decode what it does not look into.

mod classes;
mod escape;
mod estimate;

pub use estimate::{Estimator, estimate, estimate_escaped};

/// Counts the tokens of a text.
pub trait Counter {
    /// Tokens of `text`.
    fn count(&self, text: &str) -> u64;

    /// Tokens of the text that `body` stands for, where `body` is what stands between the quotes of a JSON string, escapes and all.
    ///
    /// Never panics: an invalid escape counts as the characters it is written with, and so does a byte that is no UTF-8
    /// (as U+FFFD or as itself).
    fn count_escaped(&self, body: &[u8]) -> u64;
}
