//! Filters: records in, records out.

mod ends;
pub mod pair;
pub mod redact;
pub mod summarize;
pub mod trim;
mod typed;

use crate::record::{Record, Result};
use crate::stream::Sink;

/// A stage of a pipeline. It is pushed record by record, so it may hold back, and several can be chained in
/// one process with the same bytes as a shell pipeline.
pub trait Filter {
    /// Takes the next record of the stream.
    fn record(&mut self, record: &Record<'_>, out: &mut dyn Sink) -> Result<()>;

    /// The stream has ended; everything held back goes out.
    fn end(&mut self, out: &mut dyn Sink) -> Result<()>;
}
