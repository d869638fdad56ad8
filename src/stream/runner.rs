//! Commands of the user that a stage has run for it.

use crate::record::Result;

/// Runs a shell command. Filters are handed one, so that they start nothing themselves.
pub trait Runner {
    /// Runs `command` with `input` on its stdin and gives what it prints.
    ///
    /// # Errors
    /// It cannot be started, takes too long, fails, or prints more than can be used; the message says which, and is
    /// made for people.
    fn run(&mut self, command: &str, input: &[u8]) -> Result<Vec<u8>>;
}
