//! Lines that a stage holds back.

use super::Lines;
use crate::record::{Error, Result};
use std::fs::File;
use std::io::{Seek, SeekFrom};
use std::os::unix::fs::FileExt;

/// Bytes held in memory before they go to the temporary file.
const MEMORY: usize = 8 << 20;

/// Name of the temporary file in errors.
const PLACE: &str = super::TEMPORARY;

/// Lines held back in order, each without its line feed. Up to 8 MiB stay in memory; beyond that they go to
/// a temporary file that has no name, so nothing is left behind even when the process is killed.
#[derive(Debug)]
pub struct Spool {
    /// What follows the bytes in the file. Moves there as a whole, so no line is ever split.
    memory: Vec<u8>,
    limit: usize,
    file: Option<File>,
    written: u64,
}

/// Where a held line stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slice {
    offset: u64,
    len: usize,
}

impl Default for Spool {
    fn default() -> Self {
        Spool::new()
    }
}

impl Spool {
    /// An empty spool.
    pub fn new() -> Spool {
        Spool::with_limit(MEMORY)
    }

    /// An empty spool that keeps `limit` bytes in memory.
    pub fn with_limit(limit: usize) -> Spool {
        Spool { memory: Vec::new(), limit, file: None, written: 0 }
    }

    /// Whether nothing is held.
    pub fn is_empty(&self) -> bool {
        self.written == 0 && self.memory.is_empty()
    }

    /// Holds one line and says where it stands.
    ///
    /// # Errors
    /// The temporary file cannot be made or written (disk full).
    pub fn push(&mut self, line: &[u8]) -> Result<Slice> {
        if self.memory.len() + line.len() >= self.limit {
            self.spill()?;
        }
        let slice = Slice { offset: self.written + self.memory.len() as u64, len: line.len() };
        if line.len() >= self.limit {
            // a line longer than the memory is not copied there first
            self.write(line)?;
            self.write(b"\n")?;
        } else {
            self.memory.extend_from_slice(line);
            self.memory.push(b'\n');
        }
        Ok(slice)
    }

    fn spill(&mut self) -> Result<()> {
        let held = std::mem::take(&mut self.memory);
        self.write(&held)?;
        self.memory = held;
        self.memory.clear();
        Ok(())
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        let file = match self.file.take() {
            Some(file) => file,
            None => tempfile::tempfile().map_err(Error::io(PLACE))?,
        };
        let file = self.file.insert(file);
        file.write_all_at(bytes, self.written).map_err(Error::io(PLACE))?;
        self.written += bytes.len() as u64;
        Ok(())
    }

    /// Reads one held line into `room`, replacing what stands there.
    pub fn read(&self, slice: Slice, room: &mut Vec<u8>) -> Result<()> {
        room.clear();
        match (slice.offset.checked_sub(self.written), &self.file) {
            (Some(at), _) => {
                let at = usize::try_from(at).unwrap_or(usize::MAX);
                let held = self.memory.get(at..at.saturating_add(slice.len));
                room.extend_from_slice(
                    held.ok_or_else(|| Error::failed("a line that is no longer held was asked for"))?,
                );
            }
            (None, Some(file)) => {
                room.resize(slice.len, 0);
                file.read_exact_at(room, slice.offset).map_err(Error::io(PLACE))?;
            }
            (None, None) => return Err(Error::failed("a line that is no longer held was asked for")),
        }
        Ok(())
    }

    /// Hands every held line to `take`, in order. [`Spool::read`] may be used meanwhile.
    pub fn replay(&self, mut take: impl FnMut(&[u8]) -> Result<()>) -> Result<()> {
        if let Some(file) = self.file.as_ref().filter(|_| self.written > 0) {
            let mut reader = file;
            reader.seek(SeekFrom::Start(0)).map_err(Error::io(PLACE))?;
            let mut lines = Lines::new(std::io::Read::take(reader, self.written));
            while let Some(line) = lines.next_line().map_err(Error::io(PLACE))? {
                take(line.bytes)?;
            }
        }
        let mut rest = self.memory.as_slice();
        while let Some(end) = memchr::memchr(b'\n', rest) {
            take(rest.get(..end).unwrap_or_default())?;
            rest = rest.get(end + 1..).unwrap_or_default();
        }
        Ok(())
    }

    /// Lets go of every line; disk space is given back.
    ///
    /// # Errors
    /// The temporary file cannot be emptied.
    pub fn clear(&mut self) -> Result<()> {
        self.memory.clear();
        if let Some(file) = self.file.as_ref().filter(|_| self.written > 0) {
            file.set_len(0).map_err(Error::io(PLACE))?;
        }
        self.written = 0;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_was_held_comes_back(
            lines in prop::collection::vec(prop::collection::vec(32u8..127, 0..40), 0..60),
            limit in 1usize..200,
        ) {
            let mut spool = Spool::with_limit(limit);
            // twice, because a cleared spool must serve again
            for _ in 0..2 {
                let places: Vec<Slice> = lines.iter().map(|l| spool.push(l).unwrap()).collect();
                prop_assert_eq!(spool.is_empty(), lines.is_empty());
                let mut back = Vec::new();
                let mut room = Vec::new();
                spool.replay(|line| {
                    let at = back.len();
                    spool.read(places[at], &mut room)?;
                    assert_eq!(room, line);
                    back.push(line.to_vec());
                    Ok(())
                }).unwrap();
                prop_assert_eq!(&back, &lines);
                spool.clear().unwrap();
                prop_assert!(spool.is_empty());
            }
        }
    }

    #[test]
    fn memory_stays_at_the_limit() {
        let mut spool = Spool::with_limit(1 << 16);
        let line = vec![b'x'; 1000];
        for _ in 0..10_000 {
            spool.push(&line).unwrap();
        }
        spool.push(&vec![b'y'; 5 << 20]).unwrap();
        assert!(spool.memory.capacity() <= 1 << 17);
        assert!(spool.written > 14 << 20);
    }

    #[test]
    fn a_line_that_is_gone_is_an_error() {
        let mut spool = Spool::with_limit(8);
        let place = spool.push(b"0123456789").unwrap();
        spool.clear().unwrap();
        assert!(spool.read(place, &mut Vec::new()).is_err());
    }
}
