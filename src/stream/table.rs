//! Rows of a fixed size, more than should stand in memory.

use crate::record::{Error, Result};
use std::cell::RefCell;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// Rows of one page.
const ROWS: usize = 2048;

/// Pages in memory: 8 MiB of rows of 32 bytes.
const FRAMES: usize = 128;

/// Name of the temporary file in errors.
const PLACE: &str = super::TEMPORARY;

/// What a [`Table`] holds.
pub trait Row: Copy {
    /// Bytes of a row in the file.
    const SIZE: usize;
    /// Appends the row, [`Row::SIZE`] bytes.
    fn write(self, out: &mut Vec<u8>);
    /// The row that these bytes are; `None` when they are too few.
    fn read(bytes: &[u8]) -> Option<Self>;
}

impl Row for u64 {
    const SIZE: usize = 8;

    fn write(self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.to_le_bytes());
    }

    fn read(bytes: &[u8]) -> Option<u64> {
        bytes.first_chunk().map(|b| u64::from_le_bytes(*b))
    }
}

/// Rows by number. The pages used last stay in memory, the others in a temporary file without a name. Made for
/// reading that mostly stays near where it was: a row far away costs a read of 64 KiB.
///
/// A failure of the file is kept and told by [`Table::check`], which has to be asked before anything made of
/// the rows is believed; until then lost rows read as `None`.
#[derive(Debug)]
pub struct Table<R> {
    pages: RefCell<Pages<R>>,
}

#[derive(Debug)]
struct Pages<R> {
    frames: Vec<Frame<R>>,
    /// How many rows there are.
    len: usize,
    /// Where each page stands in memory.
    places: Vec<Option<u32>>,
    /// The next frame that may have to go.
    hand: usize,
    limit: usize,
    file: Option<File>,
    failure: Option<io::Error>,
    bytes: Vec<u8>,
}

#[derive(Debug)]
struct Frame<R> {
    page: usize,
    rows: Vec<R>,
    changed: bool,
    /// Looked at since the hand was here.
    used: bool,
}

impl<R: Row> Default for Table<R> {
    fn default() -> Self {
        Table::new()
    }
}

impl<R: Row> Table<R> {
    /// An empty table.
    pub fn new() -> Table<R> {
        Table::with_limit(FRAMES)
    }

    fn with_limit(limit: usize) -> Table<R> {
        let pages = Pages {
            frames: Vec::new(),
            len: 0,
            places: Vec::new(),
            hand: 0,
            limit: limit.max(1),
            file: None,
            failure: None,
            bytes: Vec::new(),
        };
        Table { pages: RefCell::new(pages) }
    }

    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.pages.borrow().len
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Appends a row.
    pub fn push(&mut self, row: R) {
        let pages = self.pages.get_mut();
        let page = pages.len / ROWS;
        if page == pages.places.len() {
            pages.places.push(None);
            pages.room(page);
        }
        pages.with(page, |frame| {
            frame.changed = true;
            frame.rows.push(row);
        });
        pages.len += 1;
    }

    /// The row with this number, from 0.
    pub fn get(&self, at: usize) -> Option<R> {
        self.pages.borrow_mut().with(at / ROWS, |frame| frame.rows.get(at % ROWS).copied()).flatten()
    }

    /// Changes the row with this number; nothing when there is none.
    pub fn update(&mut self, at: usize, change: impl FnOnce(&mut R)) {
        self.pages.get_mut().with(at / ROWS, |frame| {
            if let Some(row) = frame.rows.get_mut(at % ROWS) {
                frame.changed = true;
                change(row);
            }
        });
    }

    /// All rows in order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = R> {
        (0..self.len()).filter_map(|at| self.get(at))
    }

    /// Whether every row could be kept and read so far.
    ///
    /// # Errors
    /// The temporary file could not be made, written or read (disk full).
    pub fn check(&self) -> Result<()> {
        match self.pages.borrow_mut().failure.take() {
            Some(e) => Err(Error::io(PLACE)(e)),
            None => Ok(()),
        }
    }
}

impl<R: Row> Pages<R> {
    fn with<T>(&mut self, page: usize, work: impl FnOnce(&mut Frame<R>) -> T) -> Option<T> {
        let at = match self.places.get(page).copied()? {
            Some(frame) => frame as usize,
            None => self.load(page)?,
        };
        let frame = self.frames.get_mut(at)?;
        frame.used = true;
        Some(work(frame))
    }

    fn load(&mut self, page: usize) -> Option<usize> {
        let at = self.room(page)?;
        let mut bytes = std::mem::take(&mut self.bytes);
        bytes.resize(ROWS * R::SIZE, 0);
        let offset = (page * ROWS * R::SIZE) as u64;
        let read = match &self.file {
            Some(file) => file.read_exact_at(&mut bytes, offset),
            None => Err(io::ErrorKind::NotFound.into()),
        };
        match read {
            Ok(()) => {
                let frame = self.frames.get_mut(at)?;
                // the last page may have gone before it was full
                let filled = self.len.saturating_sub(page * ROWS).min(ROWS);
                frame.rows.extend(bytes.chunks_exact(R::SIZE).take(filled).filter_map(R::read));
            }
            Err(e) => self.failure = self.failure.take().or(Some(e)),
        }
        self.bytes = bytes;
        Some(at)
    }

    /// An empty frame for a page, taken from another when there are enough.
    fn room(&mut self, page: usize) -> Option<usize> {
        let at = if self.frames.len() < self.limit {
            self.frames.push(Frame { page, rows: Vec::with_capacity(ROWS), changed: false, used: true });
            self.frames.len() - 1
        } else {
            let at = self.victim()?;
            self.save(at);
            let frame = self.frames.get_mut(at)?;
            let old = std::mem::replace(&mut frame.page, page);
            frame.rows.clear();
            frame.changed = false;
            *self.places.get_mut(old)? = None;
            at
        };
        *self.places.get_mut(page)? = u32::try_from(at).ok();
        Some(at)
    }

    /// A frame that was not looked at for a whole round.
    fn victim(&mut self) -> Option<usize> {
        for _ in 0..=self.frames.len() {
            let at = self.hand;
            self.hand = (self.hand + 1) % self.frames.len();
            if !std::mem::take(&mut self.frames.get_mut(at)?.used) {
                return Some(at);
            }
        }
        Some(self.hand)
    }

    fn save(&mut self, at: usize) {
        let Some(frame) = self.frames.get(at).filter(|frame| frame.changed) else { return };
        self.bytes.clear();
        for row in &frame.rows {
            row.write(&mut self.bytes);
        }
        // only the last page is not full, and whole pages are read
        self.bytes.resize(ROWS * R::SIZE, 0);
        let offset = (frame.page * ROWS * R::SIZE) as u64;
        let saved = match &self.file {
            Some(file) => file.write_all_at(&self.bytes, offset),
            None => tempfile::tempfile().and_then(|file| {
                let file = self.file.insert(file);
                file.write_all_at(&self.bytes, offset)
            }),
        };
        if let Err(e) = saved {
            self.failure = self.failure.take().or(Some(e));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Does the same to a table and to a vector.
    fn as_a_vector(len: usize, changes: &[(usize, u64)]) -> std::result::Result<(), TestCaseError> {
        let mut table = Table::with_limit(2);
        let mut plain: Vec<u64> = Vec::new();
        for n in 0..len as u64 {
            table.push(n * 3);
            plain.push(n * 3);
        }
        for &(at, value) in changes {
            table.update(at, |row| *row = value);
            if let Some(row) = plain.get_mut(at) {
                *row = value;
            }
            prop_assert_eq!(table.get(at), plain.get(at).copied());
            // growing goes on between the changes
            table.push(value);
            plain.push(value);
        }
        prop_assert!(table.iter().eq(plain.iter().copied()));
        prop_assert!(table.check().is_ok());
        Ok(())
    }

    proptest! {
        #[test]
        fn rows_are_those_of_a_vector(
            len in 0usize..6 * ROWS,
            changes in prop::collection::vec((0usize..7 * ROWS, any::<u64>()), 0..60),
        ) {
            as_a_vector(len, &changes)?;
        }
    }

    #[test]
    fn a_page_that_grew_is_written_before_another_one_comes() {
        let mut changes = vec![(0, 0); 12];
        changes.extend([(0, 7), (14_071, 8), (7739, 9), (741, 10), (14_301, 11), (12_041, 12), (6706, 13)]);
        changes.extend([(4908, 14), (4826, 15), (2067, 16), (6847, 17), (227, 18), (2805, 19)]);
        as_a_vector(4074, &changes).unwrap();
    }

    #[test]
    fn a_lost_page_is_told() {
        let mut table = Table::with_limit(1);
        for n in 0..3 * ROWS as u64 {
            table.push(n);
        }
        // the page in memory is the one in the file from here on
        assert_eq!(table.get(0), Some(0));
        table.pages.get_mut().file.as_ref().unwrap().set_len(0).unwrap();
        assert_eq!(table.get(ROWS), None);
        assert!(table.check().is_err());
    }
}
