//! One line on stderr that says how far the work is.

use std::io::Write;
use std::time::{Duration, Instant};

/// How often the line may change.
const PAUSE: Duration = Duration::from_millis(200);

/// The line of `--progress`. It is drawn on a terminal only and wiped before anything else is printed.
#[derive(Debug)]
pub(super) struct Progress {
    on: bool,
    drawn: Option<Instant>,
    /// Records since the clock was last asked.
    since: u64,
    shown: bool,
}

impl Progress {
    /// `on`: it was asked for and stderr is a terminal.
    pub(super) fn new(on: bool) -> Progress {
        Progress { on, drawn: None, since: 0, shown: false }
    }

    /// So many records have passed.
    pub(super) fn passed(&mut self, name: &str, records: u64) {
        if !self.on {
            return;
        }
        // asking the clock for every record would cost more than many a record
        self.since += 1;
        if self.since < 64 {
            return;
        }
        self.since = 0;
        if self.drawn.is_some_and(|at| at.elapsed() < PAUSE) {
            return;
        }
        self.drawn = Some(Instant::now());
        self.shown = true;
        // a progress line that cannot be drawn is not worth failing for
        let line = format!("\r\x1b[K{name}: {records} records");
        let _ = std::io::stderr().write_all(line.as_bytes());
    }

    /// Wipes the line.
    pub(super) fn clear(&mut self) {
        // an empty write is none
        let _ = std::io::stderr().write_all(self.wiped().as_bytes());
    }

    /// What wipes the line, to be printed in front of something else.
    pub(super) fn wiped(&mut self) -> &'static str {
        if std::mem::take(&mut self.shown) { "\r\x1b[K" } else { "" }
    }
}
