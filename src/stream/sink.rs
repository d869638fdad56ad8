//! Where records go.

use super::source::Compression;
use crate::record::{Error, Result};
use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::os::fd::AsFd;

/// Takes records, one at a time.
pub trait Sink {
    /// Takes one record: its line without the line feed.
    fn put(&mut self, line: &[u8]) -> Result<()>;

    /// Takes several messages and native records at once, each with its line feed.
    fn put_all(&mut self, lines: &[u8]) -> Result<()> {
        one_by_one(lines, |line| self.put(line))
    }
}

/// Hands lines, each with its line feed, to `put` without it.
///
/// # Errors
/// What `put` says.
pub fn one_by_one(mut lines: &[u8], mut put: impl FnMut(&[u8]) -> Result<()>) -> Result<()> {
    while let Some(end) = memchr::memchr(b'\n', lines) {
        put(lines.get(..end).unwrap_or_default())?;
        lines = lines.get(end + 1..).unwrap_or_default();
    }
    Ok(())
}

/// Takes what nobody wants.
#[derive(Debug, Clone, Copy, Default)]
pub struct Nowhere;

impl Sink for Nowhere {
    fn put(&mut self, _: &[u8]) -> Result<()> {
        Ok(())
    }

    fn put_all(&mut self, _: &[u8]) -> Result<()> {
        Ok(())
    }
}

impl Sink for Vec<Vec<u8>> {
    fn put(&mut self, line: &[u8]) -> Result<()> {
        self.push(line.to_vec());
        Ok(())
    }
}

/// Bytes gathered before they are written.
const BUFFER: usize = 256 << 10;

/// Bytes that are written without being gathered.
const DIRECT: usize = 32 << 10;

/// A file or pipe of records.
pub struct Output {
    writer: Compressor,
    place: String,
    each_line: bool,
    /// There is nothing behind it: what is written would be lost without a word.
    closed: bool,
}

enum Compressor {
    None(BufWriter<File>),
    Zstd(Box<zstd::stream::write::Encoder<'static, BufWriter<File>>>),
    Gzip(flate2::write::GzEncoder<BufWriter<File>>),
}

/// Whether the process began without this descriptor (`>&-`). Rust then opens /dev/null there before `main`, for
/// reading and writing and to be kept by children: a shell's `> /dev/null` is for writing alone, and programs that
/// start others open theirs to be closed in children, which the flags still tell.
#[cfg(target_os = "linux")]
fn began_closed(end: std::os::fd::BorrowedFd<'_>) -> bool {
    use rustix::fs::{OFlags, fcntl_getfl, fstat, stat};
    let flags = fcntl_getfl(end).is_ok_and(|f| f.contains(OFlags::RDWR) && !f.contains(OFlags::CLOEXEC));
    flags && fstat(end).is_ok_and(|here| stat("/dev/null").is_ok_and(|null| here.st_rdev == null.st_rdev))
}

/// Other systems do not tell.
#[cfg(not(target_os = "linux"))]
fn began_closed(_: std::os::fd::BorrowedFd<'_>) -> bool {
    false
}

impl Output {
    /// Standard output; records reach a terminal one by one.
    pub fn stdout() -> Result<Output> {
        let stdout = io::stdout();
        // a descriptor of its own, past std's line buffer
        let owned = stdout.as_fd().try_clone_to_owned().map_err(Error::io("stdout"))?;
        super::source::widen(owned.as_fd());
        let mut out = Output::file(File::from(owned), "stdout", Compression::None)?;
        out.each_line = stdout.is_terminal();
        out.closed = began_closed(stdout.as_fd());
        Ok(out)
    }

    /// A file that is open for writing; `place` names it in errors.
    pub fn file(file: File, place: impl Into<String>, compression: Compression) -> Result<Output> {
        let place = place.into();
        let buffer = BufWriter::with_capacity(BUFFER, file);
        let writer = match compression {
            Compression::None => Compressor::None(buffer),
            Compression::Zstd => Compressor::Zstd(Box::new(
                zstd::stream::write::Encoder::new(buffer, 0).map_err(Error::io(&place))?,
            )),
            Compression::Gzip => {
                Compressor::Gzip(flate2::write::GzEncoder::new(buffer, flate2::Compression::default()))
            }
        };
        Ok(Output { writer, place, each_line: false, closed: false })
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.closed {
            return Err(io::Error::other("it is closed"));
        }
        match &mut self.writer {
            Compressor::None(w) => w.write_all(bytes),
            Compressor::Zstd(w) => w.write_all(bytes),
            Compressor::Gzip(w) => w.write_all(bytes),
        }
    }

    /// Takes bytes as they are; for what is no stream of records.
    pub fn bytes(&mut self, bytes: &[u8]) -> Result<()> {
        self.write(bytes).map_err(Error::io(&self.place))
    }

    /// Hands on what was gathered; of what is compressed, what the compressor has let go.
    pub fn flush(&mut self) -> Result<()> {
        match &mut self.writer {
            Compressor::None(w) => w.flush(),
            Compressor::Zstd(w) => w.get_mut().flush(),
            Compressor::Gzip(w) => w.get_mut().flush(),
        }
        .map_err(Error::io(&self.place))
    }

    /// Hands everything on. The last thing before success: an error here fails the command.
    pub fn finish(self) -> Result<File> {
        let place = self.place;
        let buffer = match self.writer {
            Compressor::None(w) => Ok(w),
            Compressor::Zstd(w) => w.finish(),
            Compressor::Gzip(w) => w.finish(),
        }
        .map_err(Error::io(&place))?;
        buffer.into_inner().map_err(|e| Error::io(place)(e.into_error()))
    }
}

impl Sink for Output {
    fn put(&mut self, line: &[u8]) -> Result<()> {
        let flush = self.each_line;
        self.write(line)
            .and_then(|()| self.write(b"\n"))
            .and_then(|()| match &mut self.writer {
                Compressor::None(w) if flush => w.flush(),
                _ => Ok(()),
            })
            .map_err(Error::io(&self.place))
    }

    fn put_all(&mut self, lines: &[u8]) -> Result<()> {
        let flush = self.each_line;
        match &mut self.writer {
            _ if self.closed => self.write(lines),
            // so many bytes need not be gathered first
            Compressor::None(w) if flush || lines.len() >= DIRECT => {
                w.flush().and_then(|()| w.get_mut().write_all(lines))
            }
            _ => self.write(lines),
        }
        .map_err(Error::io(&self.place))
    }
}
