//! The stream itself, for archives: every record as it came, dropped ones and `native` too.

use crate::record::{Kind, Record, Result};
use crate::stream::{Compression, Output, Placing, Sink};
use std::path::Path;

/// Writes records to a file that appears once the stream is whole.
pub struct Archive {
    out: Option<Output>,
    place: Option<Placing>,
    sessions: u64,
    messages: u64,
}

/// What was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct Archived {
    /// Sessions.
    pub sessions: u64,
    /// Messages, live or not.
    pub messages: u64,
}

impl Archive {
    /// Begins a file; a name that ends in `.zst` or `.gz` is compressed.
    ///
    /// # Errors
    /// The file exists, or its folder cannot be written.
    pub fn file(target: &Path) -> Result<Archive> {
        let mut place = Placing::begin(target)?;
        let name = target.display().to_string();
        let file = place.file().try_clone().map_err(crate::record::Error::io(&name))?;
        let out = Output::file(file, name, Compression::of_name(target))?;
        Ok(Archive { out: Some(out), place: Some(place), sessions: 0, messages: 0 })
    }

    /// Counts only: a dry run, or records that go elsewhere.
    pub fn nowhere() -> Archive {
        Archive { out: None, place: None, sessions: 0, messages: 0 }
    }

    /// Takes the next record.
    pub fn record(&mut self, record: &Record<'_>) -> Result<()> {
        match record.head().kind {
            Kind::Session => self.sessions += 1,
            Kind::Message => self.messages += 1,
            _ => {}
        }
        self.out.as_mut().map_or(Ok(()), |out| out.put(record.line()))
    }

    /// The stream is whole: the file takes its place. A stream without sessions makes no file.
    pub fn finish(self) -> Result<Archived> {
        if let Some(out) = self.out {
            out.finish()?;
        }
        match self.place {
            Some(place) if self.sessions > 0 => place.persist()?,
            _ => {}
        }
        Ok(Archived { sessions: self.sessions, messages: self.messages })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream::{Source, open};

    const STREAM: &str = concat!(
        "{\"type\":\"session\",\"relay\":1,\"session_id\":\"s\",\"source_agent\":\"x\"}\n",
        "{\"type\":\"message\", \"role\":\"user\",\"dropped\":\"branch\",\"content\":\"hi\"}\n",
        "{\"type\":\"later\",\"x\":1}\n",
        "{\"type\":\"end\"}\n",
    );

    fn archive(target: &Path, stream: &str) -> Result<Archived> {
        let mut source = Source::new(stream.as_bytes(), "test");
        let mut archive = Archive::file(target)?;
        while let Some(record) = source.next_record()? {
            archive.record(&record)?;
        }
        archive.finish()
    }

    #[test]
    fn every_byte_is_kept_whatever_the_compression() {
        let home = tempfile::tempdir().unwrap();
        for name in ["a.jsonl", "a.jsonl.zst", "a.jsonl.gz"] {
            let target = home.path().join(name);
            assert_eq!(archive(&target, STREAM).unwrap(), Archived { sessions: 1, messages: 1 });
            let mut text = String::new();
            std::io::Read::read_to_string(&mut open(&target).unwrap(), &mut text).unwrap();
            assert_eq!(text, STREAM);
            assert!(archive(&target, STREAM).is_err(), "written over");
        }
    }

    #[test]
    fn a_stream_that_is_not_whole_leaves_nothing() {
        let home = tempfile::tempdir().unwrap();
        let cut = STREAM.rsplit_once("{\"type\":\"end\"").unwrap().0;
        for stream in [cut, "", &format!("{cut}{}", r#"{"type":"abort","by":"relay-read","reason":"x"}"#)] {
            let _ = archive(&home.path().join("a.jsonl"), stream);
            assert_eq!(std::fs::read_dir(home.path()).unwrap().count(), 0, "{stream}");
        }
    }
}
