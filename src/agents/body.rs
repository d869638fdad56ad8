//! Files whose beginning is known last: the body waits in a temporary file until the head is made.

use super::content::Part;
use crate::record::{Error, Result};
use crate::stream::{Compression, Output, Placing, TEMPORARY};
use std::fs::File;
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// Where a session goes.
#[derive(Debug)]
pub(in crate::agents) enum Target {
    /// Into the agent's store, as this file.
    Store(PathBuf),
    /// Elsewhere.
    File(PathBuf),
    /// To standard output.
    Stdout,
}

impl Target {
    pub(in crate::agents) fn path(&self) -> &Path {
        match self {
            Target::Store(file) | Target::File(file) => file,
            Target::Stdout => Path::new("-"),
        }
    }

    /// Head and body become the file.
    pub(in crate::agents) fn place(&self, head: &[u8], mut body: File) -> Result<()> {
        body.seek(SeekFrom::Start(0)).map_err(Error::io(TEMPORARY))?;
        match self {
            Target::Store(file) => {
                let mut placing = Placing::begin(file)?;
                let name = file.display().to_string();
                let out = placing.file();
                // file to file: the kernel copies
                out.write_all(head).and_then(|()| io::copy(&mut body, out)).map_err(Error::io(name))?;
                placing.persist()
            }
            Target::File(file) => {
                let mut placing = Placing::begin(file)?;
                let name = file.display().to_string();
                let copy = placing.file().try_clone().map_err(Error::io(&name))?;
                let mut out = Output::file(copy, name, Compression::of_name(file))?;
                pour(head, body, &mut out)?;
                out.finish()?;
                placing.persist()
            }
            Target::Stdout => {
                let mut out = Output::stdout()?;
                pour(head, body, &mut out)?;
                out.finish().map(|_| ())
            }
        }
    }
}

fn pour(head: &[u8], mut body: File, out: &mut Output) -> Result<()> {
    out.bytes(head)?;
    let mut block = vec![0; 256 << 10];
    loop {
        match body.read(&mut block) {
            Ok(0) => return Ok(()),
            Ok(n) => out.bytes(block.get(..n).unwrap_or_default())?,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(Error::io(TEMPORARY)(e)),
        }
    }
}

/// The lines behind the head, in an unlinked temporary file; a dry run keeps nothing.
#[derive(Debug)]
pub(in crate::agents) struct Body(Option<BufWriter<File>>);

impl Body {
    pub(in crate::agents) fn new(dry_run: bool) -> Result<Body> {
        Ok(Body(match dry_run {
            true => None,
            false => {
                Some(BufWriter::with_capacity(256 << 10, tempfile::tempfile().map_err(Error::io(TEMPORARY))?))
            }
        }))
    }

    pub(in crate::agents) fn put(&mut self, bytes: &[u8]) -> Result<()> {
        match &mut self.0 {
            Some(file) => file.write_all(bytes).map_err(Error::io(TEMPORARY)),
            None => Ok(()),
        }
    }

    /// Texts on lines of their own, in one string.
    pub(in crate::agents) fn joined(&mut self, texts: &[Part<'_>]) -> Result<()> {
        for (n, text) in texts.iter().enumerate() {
            if n > 0 {
                self.put(b"\\n")?;
            }
            self.put(&text.body())?;
        }
        Ok(())
    }

    /// The file with all that was put; `None` for a dry run.
    pub(in crate::agents) fn finish(&mut self) -> Result<Option<File>> {
        match self.0.take() {
            None => Ok(None),
            Some(file) => {
                let file = file.into_inner().map_err(|e| Error::io(TEMPORARY)(e.into_error()))?;
                Ok(Some(file))
            }
        }
    }
}
