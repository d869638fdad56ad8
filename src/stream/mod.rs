//! Records on pipes and files: splitting into lines, scanning, compression, the structure of a stream.
//!
//! | file | what |
//! |---|---|
//! | `lines` | bytes to lines, memory bounded by the longest line |
//! | `source`, `sink` | whole streams in and out |
//! | `queue` | a queue of lines, on disk beyond 8 MiB |
//! | `native` | a session file of an agent, seekable |
//! | `world` | clock, ids and environment as values |
//! | `place` | files that appear whole or not at all |
//! | `leftover` | what a signal must not leave behind |
//! | `private` | files that hold secrets |
//! | `report` | what people hear of the work |
//! | `runner` | commands that a stage has run for it |
//! | `nearest` | did you mean …? |

mod leftover;
mod lines;
mod native;
mod nearest;
mod place;
mod private;
mod queue;
mod report;
mod runner;
mod sink;
mod source;
mod table;
mod world;

pub use leftover::{Guard, Leftover, guarded};
pub use lines::{Line, Lines, longest_line};
pub use native::Native;
pub use nearest::nearest;
pub use place::{Placing, append_line, look, refuse_existing};
pub use private::Private;
pub use queue::{Held, Queue};
pub use report::{Gathered, Report, counted};
pub use runner::Runner;
pub use sink::{Nowhere, Output, Sink, one_by_one};
pub use source::{Compression, Input, Source, decompressed, open, stdin};
pub use table::{Row, Table};
pub use world::World;

/// What holds records back on disk, as errors name it.
pub const TEMPORARY: &str = "temporary file (TMPDIR names its folder)";
