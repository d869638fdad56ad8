//! Where the sessions are.

use crate::agents::{Found, Peek, Store};
use crate::record::Problems;
use crate::stream::{Error, Result, World};
use std::path::{Path, PathBuf};

/// The store.
#[derive(Debug)]
pub(super) struct Sessions;

impl Store for Sessions {
    fn places(&self, _root: Option<&Path>, _configured: Option<&Path>, _world: &World) -> Vec<PathBuf> {
        Vec::new()
    }

    fn list(&self, _place: &Path, _project: Option<&Path>, _problems: &mut Problems) -> Result<Vec<Found>> {
        Err(Error::failed("under construction"))
    }

    fn peek(&self, _found: &Found) -> Result<Peek> {
        Err(Error::failed("under construction"))
    }

    fn is_id(&self, _text: &str) -> bool {
        false
    }

    fn subagents(&self, _found: &Found) -> Result<Vec<PathBuf>> {
        Err(Error::failed("under construction"))
    }
}

/// Folder name of a project.
pub(super) fn folder_name(path: &str) -> String {
    path.encode_utf16()
        .map(|u| char::from_u32(u32::from(u)).filter(char::is_ascii_alphanumeric).unwrap_or('-'))
        .collect()
}
