//! Files that hold secrets: readable by their owner alone, or refused.

use super::Sink;
use crate::record::{Error, Result};
use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::mpsc::channel;
use std::time::Duration;

/// How long another process may have the file.
const PATIENCE: Duration = Duration::from_secs(60);

/// A file of lines that nobody but its owner can read. Lines are appended, each in one write, and never changed.
#[derive(Debug)]
pub struct Private {
    file: File,
    place: String,
}

impl Private {
    /// Opens a file to read.
    ///
    /// # Errors
    /// It is not there, a link, not a plain file, another user's, or others may read or write it.
    pub fn open(path: &Path) -> Result<Private> {
        let place = path.display().to_string();
        let seen = fs::symlink_metadata(path).map_err(Error::io(&place))?;
        looks_private(&seen, &place)?;
        let file = File::open(path).map_err(Error::io(&place))?;
        checked(file, &seen, place)
    }

    /// Opens a file to read and to append to, for this process alone; one that is missing is made, with mode 0600.
    /// While another process has it, this one waits, a minute at the most: in a pipe of two commands with the same
    /// file each would wait for the other.
    ///
    /// # Errors
    /// As of [`Private::open`]; its folder is not there, or another process does not let go of it.
    pub fn open_or_make(path: &Path) -> Result<Private> {
        let place = path.display().to_string();
        let private = match fs::symlink_metadata(path) {
            Ok(seen) => {
                looks_private(&seen, &place)?;
                let file =
                    OpenOptions::new().read(true).append(true).open(path).map_err(Error::io(&place))?;
                checked(file, &seen, place)?
            }
            Err(e) if e.kind() == ErrorKind::NotFound => {
                let make = OpenOptions::new().read(true).append(true).create_new(true).mode(0o600).open(path);
                match make {
                    Ok(file) => Private { file, place },
                    // another process was faster
                    Err(e) if e.kind() == ErrorKind::AlreadyExists => return Private::open_or_make(path),
                    Err(e) => return Err(Error::io(place)(e)),
                }
            }
            Err(e) => return Err(Error::io(place)(e)),
        };
        private.locked(PATIENCE)
    }

    /// The same, once no other process has it.
    fn locked(self, patience: Duration) -> Result<Private> {
        let outcome = match self.file.try_lock() {
            Ok(()) => Ok(()),
            Err(fs::TryLockError::Error(e)) => Err(e),
            Err(fs::TryLockError::WouldBlock) => {
                // the copy shares the lock
                let copy = self.file.try_clone().map_err(Error::io(&self.place))?;
                let (give, take) = channel();
                std::thread::spawn(move || give.send(copy.lock()));
                take.recv_timeout(patience).map_err(|_| {
                    Error::failed(format!("{}: another process is using it", self.place))
                        .with_hint("wait for it, or name another file")
                })?
            }
        };
        match outcome {
            Ok(()) => Ok(self),
            // some network file systems have no locks
            Err(e) if e.kind() == ErrorKind::Unsupported => Ok(self),
            Err(e) => Err(Error::io(self.place)(e)),
        }
    }

    /// All that is in it.
    pub fn contents(&mut self) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.file.read_to_end(&mut bytes).map_err(Error::io(&self.place))?;
        Ok(bytes)
    }

    /// Has the system write everything to the disk.
    pub fn finish(self) -> Result<()> {
        self.file.sync_all().map_err(Error::io(self.place))
    }
}

/// Refuses what must not even be opened: a pipe would wait for ever.
fn looks_private(seen: &fs::Metadata, place: &str) -> Result<()> {
    let refuse = |what: &str, next: &str| Err(Error::failed(format!("{place}: {what}")).with_hint(next));
    if seen.file_type().is_symlink() {
        return refuse("is a link", "name the file itself: what it holds is secret");
    }
    if !seen.is_file() {
        return refuse("is not a plain file", "name a file");
    }
    if seen.uid() != rustix::process::geteuid().as_raw() {
        return refuse(
            "belongs to another user",
            "run as that user, or make a copy of your own: what it holds is secret",
        );
    }
    Ok(())
}

/// The opened file, when it is the one that was seen and its owner's alone.
fn checked(file: File, seen: &fs::Metadata, place: String) -> Result<Private> {
    let held = file.metadata().map_err(Error::io(&place))?;
    let refuse = |what: &str, next: &str| Err(Error::failed(format!("{place}: {what}")).with_hint(next));
    if (seen.dev(), seen.ino()) != (held.dev(), held.ino()) {
        return refuse("was replaced while it was opened", "look who else uses it");
    }
    looks_private(&held, &place)?;
    if held.mode() & 0o077 != 0 {
        return refuse("can be read or written by others", "make it yours alone: chmod 600 FILE");
    }
    Ok(Private { file, place })
}

impl Sink for Private {
    fn put(&mut self, line: &[u8]) -> Result<()> {
        let mut whole = Vec::with_capacity(line.len() + 1);
        whole.extend_from_slice(line);
        whole.push(b'\n');
        self.file.write_all(&whole).map_err(Error::io(&self.place))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn made_private_and_extended() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("map");
        assert!(Private::open(&path).is_err());
        let mut new = Private::open_or_make(&path).unwrap();
        assert_eq!(new.contents().unwrap(), b"");
        new.put(b"1").unwrap();
        let second = Private::open(&path).unwrap().locked(Duration::from_millis(50));
        assert!(second.unwrap_err().to_string().contains("another process"));
        new.finish().unwrap();
        let mut again = Private::open_or_make(&path).unwrap();
        assert_eq!(again.contents().unwrap(), b"1\n");
        again.put(b"2").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"1\n2\n");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn what_others_can_reach_is_refused() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("map");
        fs::write(&path, "x\n").unwrap();
        let link = home.path().join("link");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        for mode in [0o644, 0o640, 0o602, 0o660] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            assert!(Private::open(&path).unwrap_err().hint().unwrap().contains("chmod 600"), "{mode:o}");
            assert!(Private::open_or_make(&path).is_err());
        }
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        assert!(Private::open(&path).is_ok());
        for other in [&link, &home.path().to_owned()] {
            assert!(Private::open(other).is_err() && Private::open_or_make(other).is_err(), "{other:?}");
        }
        let nowhere = home.path().join("nowhere");
        std::os::unix::fs::symlink("missing", &nowhere).unwrap();
        assert!(Private::open_or_make(&nowhere).is_err() && !home.path().join("missing").exists());
        assert_eq!(fs::read(&path).unwrap(), b"x\n");
    }
}
