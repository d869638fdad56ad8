//! Files that appear whole or not at all, and never in the place of another one.

use super::{Guard, Leftover, guarded};
use crate::record::{Error, Result};
use rustix::fs::{Access, OFlags, access, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// A file on its way to its place.
///
/// Its bytes gather under another name in the target folder, one that no agent takes for a session. What
/// is dropped before [`Placing::persist`] leaves nothing, not even the folders that were made for it, and so does a
/// signal; only KILL can leave the file under its other name.
#[derive(Debug)]
pub struct Placing {
    file: Where,
    target: PathBuf,
    // behind `file`: it must be gone before its folders can go
    _made: MadeFolders,
    _guard: Guard,
}

/// Where the bytes gather.
#[derive(Debug)]
enum Where {
    /// Under another name.
    Aside(NamedTempFile),
    /// Nowhere: a device such as `/dev/null`, or a pipe, takes them as they come.
    Device(File),
}

impl Placing {
    /// Begins the file that is to stand at `target`, readable by its owner alone.
    ///
    /// # Errors
    /// `target` exists, or its folder cannot be made or written.
    pub fn begin(target: &Path) -> Result<Placing> {
        refuse_existing(target)?;
        refuse_name(target)?;
        if is_device(target) {
            let file = Where::Device(device(target)?);
            let (made, _guard) = guarded(|| Ok((MadeFolders(Vec::new()), Vec::new())))?;
            return Ok(Placing { file, target: target.to_owned(), _made: made, _guard });
        }
        let folder = match target.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        let make = || {
            let made = MadeFolders::make(folder)?;
            let file = tempfile::Builder::new()
                .prefix(".relay-")
                .suffix(".part")
                .tempfile_in(folder)
                .map_err(|e| Error::io(folder.display().to_string())(inner(e)))?;
            let mut things = vec![Leftover::File(file.path().to_owned())];
            things.extend(made.0.iter().rev().cloned().map(Leftover::Folder));
            Ok(((file, made), things))
        };
        let ((file, made), guard) = guarded(make)?;
        Ok(Placing { file: Where::Aside(file), target: target.to_owned(), _made: made, _guard: guard })
    }

    /// The file, to be written from its start.
    pub fn file(&mut self) -> &mut File {
        match &mut self.file {
            Where::Aside(file) => file.as_file_mut(),
            Where::Device(file) => file,
        }
    }

    /// The place it will have.
    pub fn target(&self) -> &Path {
        &self.target
    }

    /// Puts the file in its place once its bytes are on the disk.
    ///
    /// # Errors
    /// The disk is full, or something stands in that place by now.
    pub fn persist(self) -> Result<()> {
        let Placing { file, target, _made, _guard } = self;
        let Where::Aside(file) = file else { return Ok(()) };
        let place = target.display().to_string();
        file.as_file().sync_all().map_err(Error::io(&place))?;
        if let Err(e) = file.persist_noclobber(&target) {
            let cause = inner(e.error);
            // the other name goes first, then the folders made for it
            drop(e.file);
            return Err(Error::io(place)(cause));
        }
        _made.keep();
        if let Some(folder) = target.parent().filter(|p| !p.as_os_str().is_empty()) {
            // without this a power cut may lose the name of a file whose bytes are safe
            File::open(folder).and_then(|f| f.sync_all()).map_err(Error::io(place))?;
        }
        Ok(())
    }
}

/// `tempfile` wraps errors to name its own path; the cause is what people need.
fn inner(e: std::io::Error) -> std::io::Error {
    e.raw_os_error().map_or(e, std::io::Error::from_raw_os_error)
}

/// Fails when something stands at `target`, also a link that leads nowhere.
///
/// # Errors
/// Says so.
pub fn refuse_existing(target: &Path) -> Result<()> {
    match fs::symlink_metadata(target) {
        // it is not written over, and stays what it is
        Ok(_) if is_device(target) => Ok(()),
        Ok(_) => Err(Error::Failed {
            what: format!("{}: exists already", target.display()),
            hint: Some("relay never writes over a file: name another one".to_owned()),
        }),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(e) => Err(Error::io(target.display().to_string())(e)),
    }
}

/// Whether a file could be made at `target`, without making anything.
///
/// # Errors
/// As of [`Placing::begin`], as far as that can be told.
pub fn look(target: &Path) -> Result<()> {
    refuse_existing(target)?;
    refuse_name(target)?;
    if is_device(target) {
        return Ok(());
    }
    let above =
        || target.ancestors().skip(1).map(|p| if p.as_os_str().is_empty() { Path::new(".") } else { p });
    let Some(folder) = above().find(|p| fs::symlink_metadata(p).is_ok()) else { return Ok(()) };
    let place = || folder.display().to_string();
    if !fs::metadata(folder).map_err(Error::io(place()))?.is_dir() {
        return Err(Error::failed(format!("{}: not a folder", place())));
    }
    access(folder, Access::WRITE_OK | Access::EXEC_OK).map_err(|e| Error::io(place())(e.into()))
}

/// Whether something takes bytes without keeping them as a file: `/dev/null`, `/dev/stdout`, a named pipe.
fn is_device(target: &Path) -> bool {
    fs::metadata(target).is_ok_and(|kind| kind.file_type().is_char_device() || kind.file_type().is_fifo())
}

/// Opens it to write. A pipe that nobody reads would be waited for without end, and is an error.
fn device(target: &Path) -> Result<File> {
    let place = target.display().to_string();
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    let file = match OpenOptions::new().write(true).custom_flags(flags).open(target) {
        Err(e) if e.raw_os_error() == Some(Errno::NXIO.raw_os_error()) => {
            return Err(Error::failed(format!("{place}: is a pipe that nobody reads"))
                .with_hint("start what reads it first, or name a file"));
        }
        opened => opened.map_err(Error::io(&place))?,
    };
    // from here on it waits while the reader is busy
    let wait = fcntl_getfl(&file).and_then(|flags| fcntl_setfl(&file, flags - OFlags::NONBLOCK));
    wait.map_err(|e| Error::io(place)(e.into()))?;
    Ok(file)
}

/// Refuses a name that promises a form in which nothing is written here.
fn refuse_name(target: &Path) -> Result<()> {
    match target.extension().and_then(|e| e.to_str()) {
        Some(ending @ ("bz2" | "xz" | "lz4" | "zip" | "7z" | "br")) => {
            let what = format!("{}: nothing is compressed as .{ending} here", target.display());
            Err(Error::failed(what).with_hint("name it .zst or .gz"))
        }
        _ => Ok(()),
    }
}

/// Folders that were made and go again when nothing came into them; the outermost first.
#[derive(Debug)]
struct MadeFolders(Vec<PathBuf>);

impl MadeFolders {
    fn make(folder: &Path) -> Result<MadeFolders> {
        let missing: Vec<&Path> = folder
            .ancestors()
            .take_while(|p| !p.as_os_str().is_empty() && fs::symlink_metadata(p).is_err())
            .collect();
        let mut made = MadeFolders(Vec::new());
        for path in missing.into_iter().rev() {
            match DirBuilder::new().mode(0o700).create(path) {
                Ok(()) => made.0.push(path.to_owned()),
                // another process was faster: then it is not ours to remove
                Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(e) => return Err(Error::io(path.display().to_string())(e)),
            }
        }
        Ok(made)
    }

    fn keep(mut self) {
        self.0.clear();
    }
}

impl Drop for MadeFolders {
    fn drop(&mut self) {
        for path in self.0.iter().rev() {
            // fails where something stands in it, which is then left alone
            let _ = fs::remove_dir(path);
        }
    }
}

/// Appends one line to a file of lines in a single write, so that readers and other writers see it whole;
/// a file that is missing is made, readable by its owner alone.
///
/// # Errors
/// The file cannot be opened or written.
pub fn append_line(path: &Path, line: &[u8]) -> Result<()> {
    let place = path.display().to_string();
    let append = || -> std::io::Result<()> {
        let mut file = OpenOptions::new().read(true).append(true).create(true).mode(0o600).open(path)?;
        let length = file.metadata()?.len();
        let mut last = *b"\n";
        if length > 0 {
            std::os::unix::fs::FileExt::read_exact_at(&file, &mut last, length - 1)?;
        }
        let mut whole = Vec::with_capacity(line.len() + 2);
        if last != *b"\n" {
            whole.push(b'\n');
        }
        whole.extend_from_slice(line);
        whole.push(b'\n');
        file.write_all(&whole)?;
        file.sync_all()
    };
    append().map_err(Error::io(place))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn what_is_persisted_is_whole_and_private() {
        let home = tempfile::tempdir().unwrap();
        let target = home.path().join("a/b/x.jsonl");
        let mut placing = Placing::begin(&target).unwrap();
        placing.file().write_all(b"bytes").unwrap();
        assert!(!target.exists());
        let before: Vec<_> =
            fs::read_dir(target.parent().unwrap()).unwrap().map(|e| e.unwrap().path()).collect();
        assert!(before.iter().all(|p| p.extension() != Some("jsonl".as_ref())), "{before:?}");
        placing.persist().unwrap();
        assert_eq!(fs::read(&target).unwrap(), b"bytes");
        assert_eq!(fs::metadata(&target).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(target.parent().unwrap()).unwrap().count(), 1);
    }

    #[test]
    fn what_is_dropped_leaves_nothing() {
        let home = tempfile::tempdir().unwrap();
        drop(Placing::begin(&home.path().join("a/b/x.jsonl")).unwrap());
        assert_eq!(fs::read_dir(home.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_folder_in_use_stays() {
        let home = tempfile::tempdir().unwrap();
        let placing = Placing::begin(&home.path().join("a/b/x.jsonl")).unwrap();
        fs::write(home.path().join("a/other"), "").unwrap();
        drop(placing);
        assert!(home.path().join("a/other").exists() && !home.path().join("a/b").exists());
    }

    #[test]
    fn nothing_is_written_over() {
        let home = tempfile::tempdir().unwrap();
        let target = home.path().join("x.jsonl");
        let mut early = Placing::begin(&target).unwrap();
        early.file().write_all(b"mine").unwrap();
        fs::write(&target, "theirs").unwrap();
        assert!(early.persist().is_err());
        assert!(Placing::begin(&target).unwrap_err().to_string().contains("exists"));
        assert_eq!(fs::read_to_string(&target).unwrap(), "theirs");
        assert_eq!(fs::read_dir(home.path()).unwrap().count(), 1);
        let dangling = home.path().join("y.jsonl");
        std::os::unix::fs::symlink("nowhere", &dangling).unwrap();
        assert!(Placing::begin(&dangling).is_err());
    }

    #[test]
    fn lines_are_appended_behind_a_line_feed() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("index.jsonl");
        append_line(&path, b"1").unwrap();
        fs::write(&path, "1\n2").unwrap();
        append_line(&path, b"3").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "1\n2\n3\n");
    }
}
