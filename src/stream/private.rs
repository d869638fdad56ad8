//! Files that hold secrets: readable by their owner alone, or refused.

use super::Sink;
use crate::record::{Error, Result};
use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

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
    /// It is not there, a link, no plain file, or others may read or write it.
    pub fn open(path: &Path) -> Result<Private> {
        let place = path.display().to_string();
        let seen = fs::symlink_metadata(path).map_err(Error::io(&place))?;
        let file = File::open(path).map_err(Error::io(&place))?;
        checked(file, &seen, place)
    }

    /// Opens a file to read and to append to, for this process alone; one that is missing is made, with mode 0600.
    ///
    /// # Errors
    /// As of [`Private::open`]; its folder is not there, or another process holds it.
    pub fn open_or_make(path: &Path) -> Result<Private> {
        let place = path.display().to_string();
        let private = match fs::symlink_metadata(path) {
            Ok(seen) => {
                let file =
                    OpenOptions::new().read(true).append(true).open(path).map_err(Error::io(&place))?;
                checked(file, &seen, place)?
            }
            Err(e) if e.kind() == ErrorKind::NotFound => {
                let make = OpenOptions::new().read(true).append(true).create_new(true).mode(0o600).open(path);
                Private { file: make.map_err(Error::io(&place))?, place }
            }
            Err(e) => return Err(Error::io(place)(e)),
        };
        match private.file.try_lock() {
            Ok(()) => Ok(private),
            Err(fs::TryLockError::WouldBlock) => {
                Err(Error::failed(format!("{}: another process is using it", private.place))
                    .with_hint("wait for it, or name another file"))
            }
            // some network file systems have no locks
            Err(fs::TryLockError::Error(e)) if e.kind() == ErrorKind::Unsupported => Ok(private),
            Err(fs::TryLockError::Error(e)) => Err(Error::io(private.place)(e)),
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

/// The opened file, when it is the one that was seen and its owner's alone.
fn checked(file: File, seen: &fs::Metadata, place: String) -> Result<Private> {
    let held = file.metadata().map_err(Error::io(&place))?;
    let refuse = |what: &str, next: &str| Err(Error::failed(format!("{place}: {what}")).with_hint(next));
    if seen.file_type().is_symlink() || (seen.dev(), seen.ino()) != (held.dev(), held.ino()) {
        return refuse("is a link", "name the file itself: what it holds is secret");
    }
    if !held.is_file() {
        return refuse("is no plain file", "name a file");
    }
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
        assert!(Private::open_or_make(&path).unwrap_err().to_string().contains("another process"));
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
