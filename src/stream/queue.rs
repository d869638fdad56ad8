//! A queue of lines, on disk beyond what memory may hold.

use super::Lines;
use crate::record::{Error, Result};
use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read};
use std::ops::Range;
use std::os::unix::fs::FileExt;

/// Bytes held in memory before the oldest go to a temporary file, unless [`Queue::with_limit`] says otherwise.
const MEMORY: usize = 8 << 20;

/// Bytes of a block of memory; a longer line has a block of its own.
const BLOCK: usize = 256 << 10;

/// Blocks that are kept for lines to come.
const SPARE: usize = 8;

/// Bytes of a temporary file. Its space is given back when the last of its lines is let go.
const FILE: u64 = 64 << 20;

/// Name of the temporary file in errors.
const PLACE: &str = super::TEMPORARY;

/// Lines in the order in which they came, each without its line feed. The newest 8 MiB stay in memory; older
/// ones go to temporary files that have no name, so nothing is left behind even when the process is killed.
#[derive(Debug)]
pub struct Queue {
    limit: usize,
    files: VecDeque<Part<File>>,
    blocks: VecDeque<Part<Vec<u8>>>,
    spare: Vec<Vec<u8>>,
    /// Bytes in `blocks`.
    memory: usize,
    start: u64,
    end: u64,
}

/// A run of whole lines.
#[derive(Debug)]
struct Part<T> {
    start: u64,
    len: u64,
    bytes: T,
}

impl<T> Part<T> {
    fn end(&self) -> u64 {
        self.start + self.len
    }
}

/// Where a held line stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Held {
    offset: u64,
    len: usize,
}

impl Held {
    /// Bytes of the line and its line feed.
    pub fn size(&self) -> u64 {
        self.len as u64 + 1
    }

    /// The places of the line and its line feed in the queue; ranges of neighbours touch.
    pub fn range(&self) -> Range<u64> {
        self.offset..self.offset + self.size()
    }
}

impl Default for Queue {
    fn default() -> Self {
        Queue::with_limit(MEMORY)
    }
}

impl Queue {
    /// An empty queue that keeps `limit` bytes in memory.
    pub fn with_limit(limit: usize) -> Queue {
        Queue {
            limit,
            files: VecDeque::new(),
            blocks: VecDeque::new(),
            spare: Vec::new(),
            memory: 0,
            start: 0,
            end: 0,
        }
    }

    /// Bytes held.
    pub fn len(&self) -> u64 {
        self.end - self.start
    }

    /// Whether nothing is held.
    pub fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// Holds one line, given in pieces, and says where it stands.
    ///
    /// # Errors
    /// A temporary file cannot be made or written (disk full).
    pub fn push(&mut self, pieces: &[&[u8]]) -> Result<Held> {
        let len: usize = pieces.iter().map(|p| p.len()).sum();
        let held = Held { offset: self.end, len };
        while self.memory + len >= self.limit {
            let Some(oldest) = self.blocks.pop_front() else { break };
            self.memory -= oldest.bytes.len();
            self.write(oldest.start, &[&oldest.bytes])?;
            self.keep(oldest.bytes);
        }
        if len >= self.limit {
            self.write(self.end, pieces)?;
            self.write(self.end + len as u64, &[b"\n"])?;
        } else {
            let fits = self.blocks.back().is_some_and(|b| b.bytes.capacity() - b.bytes.len() > len);
            if !fits {
                let mut bytes = if len < BLOCK { self.spare.pop().unwrap_or_default() } else { Vec::new() };
                bytes.reserve(BLOCK.max(len + 1));
                self.blocks.push_back(Part { start: self.end, len: 0, bytes });
            }
            if let Some(block) = self.blocks.back_mut() {
                for piece in pieces {
                    block.bytes.extend_from_slice(piece);
                }
                block.bytes.push(b'\n');
                block.len += len as u64 + 1;
            }
            self.memory += len + 1;
        }
        self.end += len as u64 + 1;
        Ok(held)
    }

    /// A block that is no longer needed serves again, unless a long line made it big.
    fn keep(&mut self, mut bytes: Vec<u8>) {
        if bytes.capacity() <= 2 * BLOCK && self.spare.len() < SPARE {
            bytes.clear();
            self.spare.push(bytes);
        }
    }

    fn write(&mut self, at: u64, pieces: &[&[u8]]) -> Result<()> {
        if self.files.back().is_none_or(|f| f.len >= FILE || f.end() != at) {
            let bytes = tempfile::tempfile().map_err(Error::io(PLACE))?;
            self.files.push_back(Part { start: at, len: 0, bytes });
        }
        let Some(file) = self.files.back_mut() else { return Ok(()) };
        for piece in pieces {
            file.bytes.write_all_at(piece, file.len).map_err(Error::io(PLACE))?;
            file.len += piece.len() as u64;
        }
        Ok(())
    }

    /// A held line. `room` serves when it stands in a file.
    ///
    /// # Errors
    /// The file cannot be read, or the line was let go.
    pub fn line<'a>(&'a self, held: Held, room: &'a mut Vec<u8>) -> Result<&'a [u8]> {
        let gone = || Error::failed("a line that is no longer held was asked for");
        if held.offset < self.start {
            return Err(gone());
        }
        if let Some(block) = before(&self.blocks, held.offset) {
            let at = usize::try_from(held.offset - block.start).unwrap_or(usize::MAX);
            return block.bytes.get(at..at.saturating_add(held.len)).ok_or_else(gone);
        }
        let file = before(&self.files, held.offset).ok_or_else(gone)?;
        // what it held is not copied to where there is more of it
        if room.capacity() < held.len {
            *room = Vec::new();
        }
        room.clear();
        room.resize(held.len, 0);
        file.bytes.read_exact_at(room, held.offset - file.start).map_err(Error::io(PLACE))?;
        Ok(room)
    }

    /// A copy of a held line, in `room`.
    ///
    /// # Errors
    /// As of [`Queue::line`].
    pub fn copy(&self, held: Held, room: &mut Vec<u8>) -> Result<()> {
        if before(&self.blocks, held.offset).is_none() {
            return self.line(held, room).map(|_| ());
        }
        let mut none = Vec::new();
        let line = self.line(held, &mut none)?;
        room.clear();
        room.extend_from_slice(line);
        Ok(())
    }

    /// Hands the lines of a range to `take`, in order, as many at once as stand together, each with its line feed.
    ///
    /// # Errors
    /// The file cannot be read, or what `take` says.
    pub fn each(&self, range: Range<u64>, mut take: impl FnMut(&[u8]) -> Result<()>) -> Result<()> {
        let mut room = Vec::new();
        let inside = |part: Range<u64>| range.start.max(part.start)..range.end.min(part.end);
        for file in &self.files {
            let part = inside(file.start..file.end());
            if part.is_empty() {
                continue;
            }
            let reader =
                Section { file: &file.bytes, at: part.start - file.start, end: part.end - file.start };
            let mut lines = Lines::new(reader);
            while let Some(line) = lines.next_line().map_err(Error::io(PLACE))? {
                room.clear();
                room.extend_from_slice(line.bytes);
                room.push(b'\n');
                take(&room)?;
            }
        }
        let first = self.blocks.partition_point(|b| b.end() <= range.start);
        for block in self.blocks.range(first..) {
            let part = inside(block.start..block.end());
            if part.is_empty() {
                break;
            }
            let at = |n: u64| usize::try_from(n - block.start).unwrap_or(usize::MAX);
            take(block.bytes.get(at(part.start)..at(part.end)).unwrap_or_default())?;
        }
        Ok(())
    }

    /// Hands every line to `take`, in order, without its line feed. [`Queue::line`] may be used meanwhile.
    ///
    /// # Errors
    /// The file cannot be read, or what `take` says.
    pub fn lines(&self, mut take: impl FnMut(&[u8]) -> Result<()>) -> Result<()> {
        self.each(self.start..self.end, |mut lines| {
            while let Some(end) = memchr::memchr(b'\n', lines) {
                take(lines.get(..end).unwrap_or_default())?;
                lines = lines.get(end + 1..).unwrap_or_default();
            }
            Ok(())
        })
    }

    /// Lets every line go.
    pub fn clear(&mut self) {
        self.forget(self.end);
    }

    /// Lets every line go that stands before this place; the space of whole files and blocks is given back.
    pub fn forget(&mut self, before: u64) {
        self.start = self.start.max(before.min(self.end));
        while self.files.front().is_some_and(|f| f.end() <= self.start) {
            self.files.pop_front();
        }
        while self.blocks.front().is_some_and(|b| b.end() <= self.start) {
            if let Some(block) = self.blocks.pop_front() {
                self.memory -= block.bytes.len();
                self.keep(block.bytes);
            }
        }
    }
}

/// The part in which a place lies, if it does not lie before all of them.
fn before<T>(parts: &VecDeque<Part<T>>, offset: u64) -> Option<&Part<T>> {
    parts.get(parts.partition_point(|p| p.start <= offset).checked_sub(1)?)
}

/// Reads a section of a file without moving its cursor.
struct Section<'a> {
    file: &'a File,
    at: u64,
    end: u64,
}

impl Read for Section<'_> {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        let most = usize::try_from(self.end - self.at).unwrap_or(usize::MAX).min(room.len());
        let read = self.file.read_at(room.get_mut(..most).unwrap_or_default(), self.at)?;
        self.at += read as u64;
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_was_held_comes_back(
            lines in prop::collection::vec((prop::collection::vec(32u8..127, 0..40), 0usize..3), 0..60),
            limit in 1usize..200,
        ) {
            let mut queue = Queue::with_limit(limit);
            let mut held: VecDeque<(Held, Vec<u8>)> = VecDeque::new();
            let mut room = Vec::new();
            for (line, go) in lines {
                let (a, b) = line.split_at(line.len() / 2);
                held.push_back((queue.push(&[a, b]).unwrap(), line));
                for (place, line) in &held {
                    prop_assert_eq!(queue.line(*place, &mut room).unwrap(), line.as_slice());
                }
                let mut all = Vec::new();
                let range = held[0].0.range().start..held[held.len() - 1].0.range().end;
                queue.each(range, |lines| {
                    let lines = lines.strip_suffix(b"\n").unwrap();
                    all.extend(lines.split(|b| *b == b'\n').map(<[u8]>::to_vec));
                    Ok(())
                }).unwrap();
                let mut one_by_one = Vec::new();
                queue.lines(|line| {
                    one_by_one.push(line.to_vec());
                    Ok(())
                }).unwrap();
                prop_assert_eq!(&one_by_one, &all);
                prop_assert_eq!(all, held.iter().map(|(_, l)| l.clone()).collect::<Vec<_>>());
                for _ in 0..go {
                    if let Some((place, _)) = held.pop_front() {
                        queue.forget(place.range().end);
                    }
                }
                prop_assert_eq!(queue.is_empty(), held.is_empty());
            }
        }
    }

    #[test]
    fn memory_and_files_stay_small() {
        let mut queue = Queue::with_limit(1 << 20);
        let line = vec![b'x'; 1000];
        for n in 0..300_000u64 {
            let held = queue.push(&[&line]).unwrap();
            // five MB are held all the time
            queue.forget(held.range().start.saturating_sub(5 << 20));
            assert!(n < 6000 || queue.len() > 5 << 20);
        }
        assert!(queue.memory <= 1 << 20);
        assert!(queue.files.len() <= 2, "{}", queue.files.len());
    }

    #[test]
    fn a_line_that_is_gone_is_an_error() {
        let mut queue = Queue::with_limit(64);
        let held = queue.push(&[b"0123456789"]).unwrap();
        queue.push(&[&[b'y'; 100]]).unwrap();
        queue.forget(held.range().end);
        let last = queue.push(&[b"z"]).unwrap();
        assert!(queue.line(held, &mut Vec::new()).is_err());
        queue.clear();
        assert!(queue.is_empty() && queue.line(last, &mut Vec::new()).is_err());
        // it serves again
        let held = queue.push(&[b"a"]).unwrap();
        assert_eq!(queue.line(held, &mut Vec::new()).unwrap(), b"a");
    }
}
