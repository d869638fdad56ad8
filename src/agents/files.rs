//! What the stores of agents that keep sessions as files have in common.

use super::Found;
use crate::record::{Error, Problems, Result};
use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::ops::ControlFlow;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Bytes that are read first of a session's beginning, and all that is read of its end.
const STEP: usize = 64 << 10;

/// Most that is ever read of a session's beginning to select it. The lines before the first prompt
/// (instructions, tool schemas) take up to 150 KB in Claude Code 2.1.332.
pub(super) const MOST: usize = 16 << 20;

/// Kind of problem: a folder or file that cannot be looked into.
pub(super) const UNREADABLE: &str = "unreadable";

/// Whether a text can be the beginning of a UUID in its usual form (8-4-4-4-12).
pub(super) fn begins_uuid(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= 36
        && text.bytes().enumerate().all(|(n, b)| match n {
            8 | 13 | 18 | 23 => b == b'-',
            _ => b.is_ascii_hexdigit(),
        })
}

/// Whether a text is a UUID in its usual form.
pub(super) fn is_uuid(text: &str) -> bool {
    text.len() == 36 && begins_uuid(text)
}

/// Folders and files already seen, so that nothing reached twice through links is listed twice and
/// links that lead back up do not go round for ever.
#[derive(Debug, Default)]
pub(super) struct Seen(HashSet<(u64, u64)>);

impl Seen {
    /// Whether this is the first time.
    pub(super) fn first(&mut self, metadata: &fs::Metadata) -> bool {
        self.0.insert((metadata.dev(), metadata.ino()))
    }
}

/// One entry of a folder.
#[derive(Debug)]
pub(super) struct Entry {
    /// Where it is.
    pub(super) path: PathBuf,
    /// Its name; names that are no Unicode cannot be of a session.
    pub(super) name: String,
    link: bool,
}

/// The entries of a folder, links last, so that a file is found under its real name first. What cannot be
/// listed is counted in `problems`; a folder that does not exist has no entries.
pub(super) fn entries(folder: &Path, problems: &mut Problems) -> Vec<Entry> {
    let mut unreadable = |e: std::io::Error| {
        problems.add(UNREADABLE, None, Error::io(folder.display().to_string())(e).to_string())
    };
    let listing = match fs::read_dir(folder) {
        Ok(listing) => listing,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Vec::new(),
        // neither is there one below what is no folder
        Err(e) if e.kind() == std::io::ErrorKind::NotADirectory && fs::symlink_metadata(folder).is_err() => {
            return Vec::new();
        }
        Err(e) => {
            unreadable(e);
            return Vec::new();
        }
    };
    let mut found = Vec::new();
    for entry in listing {
        match entry.and_then(|entry| Ok((entry.file_type()?, entry))) {
            Ok((kind, entry)) => {
                if let Ok(name) = entry.file_name().into_string() {
                    found.push(Entry { path: entry.path(), name, link: kind.is_symlink() });
                }
            }
            Err(e) => unreadable(e),
        }
    }
    found.sort_by(|a, b| (a.link, &a.name).cmp(&(b.link, &b.name)));
    found
}

/// The metadata of what a path leads to, counted in `problems` when there is none. A file that is gone by
/// now is no problem: agents delete old sessions.
pub(super) fn metadata(entry: &Entry, problems: &mut Problems) -> Option<fs::Metadata> {
    match fs::metadata(&entry.path) {
        Ok(metadata) => Some(metadata),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound && !entry.link => None,
        Err(e) => {
            problems.add(UNREADABLE, None, Error::io(entry.path.display().to_string())(e).to_string());
            None
        }
    }
}

/// A session found under a place.
pub(super) fn found(entry: Entry, id: &str, place: &Path, metadata: &fs::Metadata) -> Found {
    Found {
        path: entry.path,
        id: id.to_ascii_lowercase(),
        updated: metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH),
        bytes: metadata.len(),
        title: None,
        place: Some(place.to_owned()),
    }
}

/// Hands on the lines of a beginning until `visit` breaks, reading no more than it takes and [`MOST`]
/// at the most. Gives whether the file went on behind what was read.
pub(super) fn head(
    mut source: impl Read,
    mut visit: impl FnMut(&[u8]) -> ControlFlow<()>,
) -> std::io::Result<bool> {
    let mut buffer = Vec::new();
    let mut start = 0;
    let mut step = STEP;
    loop {
        let before = buffer.len();
        source.by_ref().take(step as u64).read_to_end(&mut buffer)?;
        let ended = buffer.len() - before < step;
        let mut from = before;
        while let Some(n) = memchr::memchr(b'\n', buffer.get(from..).unwrap_or_default()) {
            let line = buffer.get(start..from + n).unwrap_or_default();
            start = from + n + 1;
            from = start;
            if visit(line).is_break() {
                return Ok(true);
            }
        }
        if ended {
            // a last line without line feed may be whole; if it is not, it is no JSON
            let _ = visit(buffer.get(start..).unwrap_or_default());
            return Ok(false);
        }
        if buffer.len() >= MOST {
            return Ok(true);
        }
        step = buffer.len().min(MOST - buffer.len());
    }
}

/// Hands on the whole lines of the last part of a file.
pub(super) fn tail(file: &mut File, mut visit: impl FnMut(&[u8])) -> std::io::Result<()> {
    let size = file.metadata()?.len();
    let from = size.saturating_sub(STEP as u64);
    file.seek(SeekFrom::Start(from))?;
    let mut buffer = Vec::new();
    file.take(2 * STEP as u64).read_to_end(&mut buffer)?;
    let mut lines = buffer.split(|b| *b == b'\n');
    if from > 0 {
        // the rest of a line that began further up
        lines.next();
    }
    lines.for_each(&mut visit);
    Ok(())
}

/// Opens a session file read-only.
pub(super) fn open(path: &Path) -> Result<File> {
    let place = path.display().to_string();
    // not even opened when it is no plain file: a pipe would wait for ever
    let kind = fs::metadata(path).map_err(Error::io(&place))?;
    if !kind.is_file() {
        return Err(Error::input(place, "is not a plain file"));
    }
    File::open(path).map_err(Error::io(place))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uuids_and_their_beginnings() {
        assert!(
            is_uuid("019a0000-0000-7000-8000-00000000000e")
                && is_uuid("AAAAAAAA-bbbb-4ccc-8ddd-eeeeeeeeeeee")
        );
        for good in ["0", "019a", "019a0000-", "019a0000-0000-7"] {
            assert!(begins_uuid(good) && !is_uuid(good), "{good}");
        }
        for bad in
            ["", "../x", "019a/", "019a00000", "019a0000-0000-7000-8000-00000000000e0", "０19a", "-", "%2e"]
        {
            assert!(!begins_uuid(bad), "{bad}");
        }
    }

    #[test]
    fn a_beginning_is_read_as_far_as_it_must() {
        struct Count<'a>(&'a [u8], usize);
        impl Read for Count<'_> {
            fn read(&mut self, room: &mut [u8]) -> std::io::Result<usize> {
                let n = self.0.read(room)?;
                self.1 += n;
                Ok(n)
            }
        }
        let mut text = b"first\n".to_vec();
        text.resize(300 << 10, b'x');
        text.extend_from_slice(b"\nlast");
        let mut source = Count(&text, 0);
        assert!(head(&mut source, |_| ControlFlow::Break(())).unwrap());
        assert_eq!(source.1, STEP);
        let mut lengths = Vec::new();
        let went_on = head(&text[..], |line| {
            lengths.push(line.len());
            ControlFlow::Continue(())
        });
        assert!(!went_on.unwrap());
        assert_eq!(lengths, [5, (300 << 10) - 6, 4]);
        let endless = std::io::repeat(b'x');
        assert!(head(endless, |_| ControlFlow::Continue(())).unwrap());
    }

    #[test]
    fn an_end_gives_whole_lines_only() {
        let mut file = tempfile::tempfile().unwrap();
        let mut text = vec![b'x'; STEP];
        text.extend_from_slice(b"\nb\nc");
        std::io::Write::write_all(&mut file, &text).unwrap();
        let mut lines = Vec::new();
        tail(&mut file, |line| lines.push(String::from_utf8(line.to_vec()).unwrap())).unwrap();
        assert_eq!(lines, ["b", "c"]);
    }
}
