//! How a command tells people what it does, apart from its records.

use crate::record::Error;

/// Hears of the work while it is done. Commands print it on stderr, tests gather it.
pub trait Report {
    /// One line of what was done. Silenced by `--quiet`.
    fn say(&mut self, line: &str);

    /// Something failed that does not end the work: one session of many. Never silenced.
    fn fail(&mut self, error: &Error);

    /// So many records have passed by now; called often, so it must be cheap.
    fn passed(&mut self, records: u64) {
        let _ = records;
    }
}

/// So many of something, in words: `1 session`, `2 sessions`.
pub fn counted(n: u64, one: &str) -> String {
    let ending = if n == 1 { "" } else { "s" };
    format!("{n} {one}{ending}")
}

/// Gathers everything; for tests and for work in process.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Gathered {
    /// What was said.
    pub said: Vec<String>,
    /// What failed.
    pub failed: Vec<String>,
}

impl Report for Gathered {
    fn say(&mut self, line: &str) {
        self.said.push(line.to_owned());
    }

    fn fail(&mut self, error: &Error) {
        self.failed.push(error.to_string());
    }
}
