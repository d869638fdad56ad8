//! A session file of an agent, read twice.

use super::lines::Capped;
use super::source::{Compression, decompressed, refuse_other};
use crate::record::{Error, Result};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// A seekable session file. Files are opened read-only and never locked; pipes and compressed files are
/// first copied, decompressed, to an unlinked temporary file.
#[derive(Debug)]
pub struct Native {
    file: File,
    path: Option<PathBuf>,
    name: String,
}

impl Native {
    /// Opens a plain or compressed file.
    pub fn open(path: &Path) -> Result<Native> {
        let name = path.display().to_string();
        let mut file = File::open(path).map_err(Error::io(&name))?;
        let kind = file.metadata().map_err(Error::io(&name))?.file_type();
        if kind.is_dir() {
            return Err(Error::input(name, "is a folder").with_hint("name a session file inside it"));
        }
        let mut head = Vec::with_capacity(4);
        if kind.is_file() {
            file.by_ref().take(4).read_to_end(&mut head).map_err(Error::io(&name))?;
            file.seek(SeekFrom::Start(0)).map_err(Error::io(&name))?;
            refuse_other(&head).map_err(Error::io(&name))?;
        }
        if !kind.is_file() || Compression::detect(&head) != Compression::None {
            file = copied(file, &name)?;
        }
        Ok(Native { file, path: Some(path.to_owned()), name })
    }

    /// Takes standard input.
    pub fn stdin() -> Result<Native> {
        Ok(Native { file: copied(io::stdin().lock(), "stdin")?, path: None, name: "stdin".to_owned() })
    }

    /// Takes bytes that are at hand; for tests and joined segments. `path` is what the bytes stand for.
    pub fn of_bytes(bytes: &[u8], path: Option<&Path>) -> Result<Native> {
        let name = path.map_or_else(|| "bytes".to_owned(), |p| p.display().to_string());
        let copy = io::Cursor::new(bytes.to_vec());
        Ok(Native { file: copied(copy, &name)?, path: path.map(Path::to_owned), name })
    }

    /// Where the session was found; `None` for a pipe.
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// The name in messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// A reader of the bytes from `offset` on. Only one may be in use at a time: they share a position.
    pub fn reader_at(&self, offset: u64) -> Result<&File> {
        let mut file = &self.file;
        file.seek(SeekFrom::Start(offset)).map_err(Error::io(&self.name))?;
        Ok(file)
    }

    /// Fills `room` from `offset` on without moving the shared position.
    pub fn read_at(&self, room: &mut [u8], offset: u64) -> Result<()> {
        std::os::unix::fs::FileExt::read_exact_at(&self.file, room, offset).map_err(Error::io(&self.name))
    }

    /// The first `max` bytes, or fewer where the file is shorter.
    pub fn head(&self, max: u64) -> Result<Vec<u8>> {
        let mut head = Vec::new();
        self.reader_at(0)?.take(max).read_to_end(&mut head).map_err(Error::io(&self.name))?;
        Ok(head)
    }
}

fn copied(raw: impl Read + 'static, name: &str) -> Result<File> {
    let mut plain = Capped::new(decompressed(raw).map_err(Error::io(name))?);
    let mut file = tempfile::tempfile().map_err(Error::io(super::TEMPORARY))?;
    io::copy(&mut plain, &mut file).map_err(|e| match e.kind() {
        io::ErrorKind::UnexpectedEof | io::ErrorKind::InvalidData => {
            Error::input(name, format!("damaged compressed input: {e}"))
        }
        _ => Error::io(name)(e),
    })?;
    Ok(file)
}
