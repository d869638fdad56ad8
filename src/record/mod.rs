#![doc = include_str!("FORMAT.md")]
//!
//! The types below are the routing vocabulary and the records that frame a session. Messages are not
//! deserialised as a whole anywhere: stages look at their head and splice bytes (see `stream`).

mod draft;
mod error;
mod head;
mod hidden;
pub mod path;
mod problems;
mod session;
pub mod shell;
mod words;

pub use draft::{By, Draft, number};
pub use error::{Error, Refused, Result};
pub use head::{Head, Kind, Record, splice, with_fields};
pub use hidden::is_hidden;
pub use problems::{Place, Problem, Problems, problem};
pub use session::{
    Abort, Budget, Context, End, FileChange, FileStatus, Git, Lineage, Redacted, Session, Via,
};
pub use words::{Harness, Origin, Reason, Role, Status};

/// Version of the stream that this library reads and writes; a newer one is refused.
pub const VERSION: u64 = 1;

/// JSON Schema (2020-12) of one line of the stream.
pub const SCHEMA: &str = include_str!("schema.json");
