//! Reading a session.

use crate::agents::{Detected, ReadOptions};
use crate::stream::{Error, Native, Result, Sink};

/// Whose session the first bytes are.
pub(super) fn detect(_head: &[u8]) -> Detected {
    Detected::No
}

/// Reads one session.
pub(super) fn read(_native: &Native, _options: &ReadOptions, _out: &mut dyn Sink) -> Result<()> {
    Err(Error::failed("under construction"))
}
