//! Writing a session.

use crate::agents::{WriteOptions, Writer};
use crate::stream::{Error, Result, World};

/// Begins a new session.
pub(super) fn writer<'w>(_options: &'w WriteOptions, _world: &'w World) -> Result<Box<dyn Writer + 'w>> {
    Err(Error::failed("under construction"))
}
