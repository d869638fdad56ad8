//! What can go wrong, and what it means for the exit code.

use super::Abort;
use std::io;

/// Result of everything that reads or writes records.
pub type Result<T> = std::result::Result<T, Error>;

/// An error of the library. `Display` is one line, lower case, without full stop: place, what, cause.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file or pipe could not be read or written.
    #[error("{place}: {}", plain(cause))]
    Io {
        /// The file, or `stdin`, `stdout`.
        place: String,
        /// What the system said.
        cause: io::Error,
    },
    /// A record or line that is not of the form it must have; the caller knows where it stands.
    #[error("{what}")]
    Shape {
        /// What is wrong.
        what: String,
    },
    /// Input that cannot be used.
    #[error("{place}: {what}")]
    Input {
        /// The file with its line, as `FILE:LINE`.
        place: String,
        /// What is wrong.
        what: String,
        /// What to do next.
        hint: Option<String>,
    },
    /// An earlier stage of the pipe died and has said why.
    #[error("{} failed: {}", .0.by, .0.reason)]
    Aborted(Abort),
    /// The reader of our output went away: no error, the work is over.
    #[error("closed pipe")]
    Closed,
    /// The work could not be done.
    #[error("{what}")]
    Failed {
        /// What is wrong.
        what: String,
        /// What to do next.
        hint: Option<String>,
    },
    /// The command line asks for something that cannot be.
    #[error("{what}")]
    Usage {
        /// What is wrong.
        what: String,
        /// What to do next.
        hint: Option<String>,
    },
}

/// Why bytes are not read on; an [`io::Error`] carries it up.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    /// A line is longer than may be read, in bytes.
    #[error("a line is longer than {0} bytes, the most that --max-line allows")]
    Long(u64),
    /// A file is compressed by this program.
    #[error("compressed by {0}, which relay does not read: zstd and gzip it does")]
    Compressed(&'static str),
}

impl Refused {
    /// What was refused, when that is why reading failed.
    pub fn of(e: &io::Error) -> Option<&Refused> {
        e.get_ref()?.downcast_ref()
    }

    fn hint(&self) -> String {
        match self {
            Refused::Long(_) => "if it is meant to be so long: --max-line 2g".to_owned(),
            Refused::Compressed("zip") => "unpack it first: unzip FILE".to_owned(),
            Refused::Compressed(program) => format!("unpack it first: {program} -dc FILE"),
        }
    }
}

impl From<Refused> for io::Error {
    fn from(refused: Refused) -> io::Error {
        io::Error::other(refused)
    }
}

/// What the system said, as a part of a line: lower case, without its number.
fn plain(cause: &io::Error) -> String {
    let text = cause.to_string();
    let text = text.split(" (os error").next().unwrap_or(&text);
    let mut letters = text.chars();
    match letters.next() {
        Some(first) => first.to_lowercase().chain(letters).collect(),
        None => cause.kind().to_string(),
    }
}

impl Error {
    /// An error of a file or pipe; a closed pipe becomes [`Error::Closed`].
    pub fn io(place: impl Into<String>) -> impl FnOnce(io::Error) -> Error {
        move |cause| match cause.kind() {
            io::ErrorKind::BrokenPipe => Error::Closed,
            _ => match Refused::of(&cause) {
                Some(refused) => Error::input(place, refused.to_string()).with_hint(refused.hint()),
                None => Error::Io { place: place.into(), cause },
            },
        }
    }

    /// Work that could not be done.
    pub fn failed(what: impl Into<String>) -> Error {
        Error::Failed { what: what.into(), hint: None }
    }

    /// Input of a wrong form.
    pub fn shape(what: impl Into<String>) -> Error {
        Error::Shape { what: what.into() }
    }

    /// Input that cannot be used.
    pub fn input(place: impl Into<String>, what: impl Into<String>) -> Error {
        Error::Input { place: place.into(), what: what.into(), hint: None }
    }

    /// The same error with the next step named.
    pub fn with_hint(self, next: impl Into<String>) -> Error {
        let hint = Some(next.into());
        match self {
            Error::Input { place, what, .. } => Error::Input { place, what, hint },
            Error::Failed { what, .. } => Error::Failed { what, hint },
            Error::Usage { what, .. } => Error::Usage { what, hint },
            Error::Shape { what } => Error::Failed { what, hint },
            other => other,
        }
    }

    /// The next step, if one is known.
    pub fn hint(&self) -> Option<&str> {
        match self {
            Error::Input { hint, .. } | Error::Failed { hint, .. } | Error::Usage { hint, .. } => {
                hint.as_deref()
            }
            _ => None,
        }
    }

    /// The exit code that this error means: 0 closed pipe, 1 failed, 2 usage, 3 bad or truncated input.
    pub fn exit_code(&self) -> u8 {
        match self {
            Error::Closed => 0,
            Error::Io { .. } | Error::Failed { .. } => 1,
            Error::Usage { .. } => 2,
            Error::Shape { .. } | Error::Input { .. } | Error::Aborted(_) => 3,
        }
    }
}
