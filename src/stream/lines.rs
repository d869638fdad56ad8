//! Splitting a file or pipe into lines.

use crate::record::Refused;
use std::io::{self, Read};
use std::sync::atomic::{AtomicU64, Ordering};

/// The longest line that is read, in bytes, unless [`longest_line`] says otherwise. Such a line is in memory at once,
/// and no session of an agent comes near it.
const LONGEST: u64 = 512_000_000;

/// What [`longest_line`] says. Of the whole process, as a limit of memory is.
static LIMIT: AtomicU64 = AtomicU64::new(LONGEST);

/// Sets how long a line may be, in bytes, for all that is read from now on.
pub fn longest_line(bytes: u64) {
    LIMIT.store(bytes, Ordering::Relaxed);
}

/// Hands bytes on as long as no line of them is too long.
pub(super) struct Capped<R> {
    source: R,
    /// Bytes since the last line feed.
    run: u64,
    limit: u64,
}

impl<R> Capped<R> {
    pub(super) fn new(source: R) -> Capped<R> {
        Capped { source, run: 0, limit: LIMIT.load(Ordering::Relaxed) }
    }
}

impl<R: Read> Read for Capped<R> {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        let n = self.source.read(room)?;
        let bytes = room.get(..n).unwrap_or_default();
        match memchr::memrchr(b'\n', bytes) {
            Some(last) => self.run = (n - last - 1) as u64,
            None => self.run += n as u64,
        }
        if self.run > self.limit { Err(Refused::Long(self.limit).into()) } else { Ok(n) }
    }
}

/// Bytes asked for at a time.
const BLOCK: usize = 1 << 20;

/// A reader of lines with a buffer that grows to the longest line and shrinks again behind it.
#[derive(Debug)]
pub struct Lines<R> {
    source: R,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// Offset of `start` from where reading began, in bytes.
    offset: u64,
    done: bool,
    limit: u64,
}

/// One line.
#[derive(Debug, Clone, Copy)]
pub struct Line<'a> {
    /// The bytes without the line feed.
    pub bytes: &'a [u8],
    /// Where the line begins, in bytes from where reading began.
    pub offset: u64,
    /// Whether a line feed ended it; only the last line of a file can be without.
    pub terminated: bool,
}

/// Where a line stands in the buffer.
#[derive(Debug, Clone, Copy)]
struct Found {
    start: usize,
    end: usize,
    offset: u64,
    terminated: bool,
}

impl<R: Read> Lines<R> {
    /// Reads from here on.
    pub fn new(source: R) -> Lines<R> {
        Lines {
            source,
            buffer: Vec::new(),
            start: 0,
            end: 0,
            offset: 0,
            done: false,
            limit: LIMIT.load(Ordering::Relaxed),
        }
    }

    /// The next line, or `None` at the end. A line that is too long is an error. Not an iterator: the line lives in the buffer.
    pub fn next_line(&mut self) -> io::Result<Option<Line<'_>>> {
        Ok(self.next_found()?.map(|found| self.line(found)))
    }

    /// The next line that holds more than white space, and how many lines were passed over before it.
    pub fn next_filled_line(&mut self) -> io::Result<(u64, Option<Line<'_>>)> {
        let mut blank = 0;
        loop {
            let Some(found) = self.next_found()? else { return Ok((blank, None)) };
            if !self.line(found).bytes.iter().all(u8::is_ascii_whitespace) {
                return Ok((blank, Some(self.line(found))));
            }
            blank += 1;
        }
    }

    fn next_found(&mut self) -> io::Result<Option<Found>> {
        self.give_back();
        let mut searched = self.start;
        loop {
            let unread = self.buffer.get(searched..self.end).unwrap_or_default();
            if let Some(n) = memchr::memchr(b'\n', unread) {
                return Ok(Some(self.take(searched + n, true)));
            }
            searched = self.end;
            if self.done {
                if self.start == self.end {
                    return Ok(None);
                }
                return Ok(Some(self.take(self.end, false)));
            }
            if (self.end - self.start) as u64 > self.limit {
                return Err(Refused::Long(self.limit).into());
            }
            searched -= self.make_room();
            self.fill()?;
        }
    }

    fn take(&mut self, end: usize, terminated: bool) -> Found {
        let found = Found { start: self.start, end, offset: self.offset, terminated };
        self.start = end + usize::from(terminated);
        self.offset += (self.start - found.start) as u64;
        found
    }

    fn line(&self, found: Found) -> Line<'_> {
        let Found { start, end, offset, terminated } = found;
        Line { bytes: self.buffer.get(start..end).unwrap_or_default(), offset, terminated }
    }

    /// Makes room for a block behind `end`; gives how far the unread bytes moved down.
    fn make_room(&mut self) -> usize {
        let moved = self.start;
        if moved > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= moved;
            self.start = 0;
        }
        if self.buffer.len() - self.end < BLOCK {
            // by an eighth, not by doubling: a line of 300 MB must not cost 600 MB here
            let grow = (self.buffer.len() / 8).clamp(BLOCK, 32 * BLOCK);
            self.buffer.reserve_exact((self.end + grow).saturating_sub(self.buffer.len()));
            self.buffer.resize(self.end + grow, 0);
        }
        moved
    }

    /// Gives the memory of a long line back once that is behind us, before anything else is done: whoever held it
    /// back may need as much again when the next record comes.
    fn give_back(&mut self) {
        if self.buffer.len() > 16 * BLOCK && self.end - self.start < BLOCK {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
            self.buffer.truncate(2 * BLOCK);
            self.buffer.shrink_to_fit();
        }
    }

    fn fill(&mut self) -> io::Result<()> {
        loop {
            // no more than a few blocks, however long a line has been
            let most = self.buffer.len().min(self.end + 4 * BLOCK);
            let room = self.buffer.get_mut(self.end..most).unwrap_or_default();
            match self.source.read(room) {
                Ok(0) => self.done = true,
                Ok(n) => self.end += n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                Err(e) => return Err(e),
            }
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Gives a few bytes at a time.
    struct Drip<'a>(&'a [u8], usize);

    impl Read for Drip<'_> {
        fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
            let n = self.0.len().min(self.1).min(room.len());
            room[..n].copy_from_slice(&self.0[..n]);
            self.0 = &self.0[n..];
            Ok(n)
        }
    }

    proptest! {
        #[test]
        fn lines_are_those_of_split(bytes in prop::collection::vec(prop_oneof![Just(b'\n'), any::<u8>()], 0..200), step in 1usize..50) {
            let mut lines = Lines::new(Drip(&bytes, step));
            let mut whole = Vec::new();
            while let Some(line) = lines.next_line().unwrap() {
                prop_assert_eq!(line.offset, whole.len() as u64);
                prop_assert!(!line.bytes.contains(&b'\n'));
                whole.extend_from_slice(line.bytes);
                if line.terminated { whole.push(b'\n'); }
            }
            prop_assert_eq!(whole, bytes);
        }
    }

    #[test]
    fn a_line_that_is_too_long_is_an_error() {
        let line = vec![b'x'; 3 << 20];
        let mut text = b"short\n".to_vec();
        text.extend_from_slice(&line);
        let mut lines = Lines { limit: 1 << 20, ..Lines::new(&text[..]) };
        assert_eq!(lines.next_line().unwrap().unwrap().bytes, b"short");
        assert!(matches!(Refused::of(&lines.next_line().unwrap_err()), Some(Refused::Long(_))));
        assert!(lines.buffer.len() <= 4 << 20);
        let mut endless = Capped { source: io::repeat(0), run: 0, limit: 1 << 20 };
        assert!(matches!(
            Refused::of(&io::copy(&mut endless, &mut io::sink()).unwrap_err()),
            Some(Refused::Long(_))
        ));
    }

    #[test]
    fn memory_of_a_long_line_is_given_back() {
        let mut bytes = vec![b'x'; 40 << 20];
        bytes.push(b'\n');
        bytes.extend(std::iter::repeat_n(b"short\n", 500_000).flatten());
        let mut lines = Lines::new(&bytes[..]);
        assert_eq!(lines.next_line().unwrap().unwrap().bytes.len(), 40 << 20);
        assert!(lines.buffer.capacity() <= 46 << 20);
        assert_eq!(lines.next_line().unwrap().unwrap().bytes, b"short");
        assert!(lines.buffer.capacity() <= 4 << 20);
        let mut count = 1;
        while lines.next_line().unwrap().is_some() {
            count += 1;
        }
        assert_eq!(count, 500_000);
        assert!(lines.buffer.capacity() <= 4 << 20);
    }
}
