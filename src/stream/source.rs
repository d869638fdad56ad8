//! Reading a stream of records: compression, structure, versions.

use super::Lines;
use crate::json::{Tape, value_end};
use crate::record::{Abort, Error, Kind, Record, Refused, Result, VERSION};
use serde::Deserialize;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

/// Whatever holds bytes, decompressed.
pub type Input = Box<dyn Read>;

/// Standard input, decompressed when it begins like a `.zst` or `.gz` file.
pub fn stdin() -> Result<Input> {
    widen(io::stdin().as_fd());
    decompressed(io::stdin().lock()).map_err(Error::io("stdin"))
}

/// Bytes that a pipe holds. With the usual 64 KiB two stages wait for each other four times as often.
#[cfg(target_os = "linux")]
const PIPE: usize = 256 << 10;

/// Asks for a wider pipe. What is no pipe, or would be one pipe too many for this user, stays as it is.
#[cfg(target_os = "linux")]
pub(super) fn widen(end: BorrowedFd<'_>) {
    if rustix::pipe::fcntl_getpipe_size(end).is_ok_and(|size| size < PIPE) {
        let _ = rustix::pipe::fcntl_setpipe_size(end, PIPE);
    }
}

/// Other systems give no say in it.
#[cfg(not(target_os = "linux"))]
pub(super) fn widen(_: BorrowedFd<'_>) {}

/// A file, opened read-only, decompressed when it begins like a `.zst` or `.gz` file.
pub fn open(path: &Path) -> Result<Input> {
    let place = path.display().to_string();
    let file = File::open(path).map_err(Error::io(&place))?;
    decompressed(file).map_err(Error::io(place))
}

/// How a byte stream is compressed, by its first bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    /// Not at all.
    None,
    /// Zstandard (RFC 8878).
    Zstd,
    /// gzip (RFC 1952).
    Gzip,
}

impl Compression {
    /// Tells by the magic number.
    pub fn detect(head: &[u8]) -> Compression {
        match head {
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Compression::Zstd,
            [0x1f, 0x8b, ..] => Compression::Gzip,
            _ => Compression::None,
        }
    }

    /// Tells by a file name.
    pub fn of_name(path: &Path) -> Compression {
        match path.extension().and_then(|e| e.to_str()) {
            Some("zst") => Compression::Zstd,
            Some("gz") => Compression::Gzip,
            _ => Compression::None,
        }
    }
}

/// Refuses what begins as a file of a compressor that is not known here.
pub(super) fn refuse_other(head: &[u8]) -> io::Result<()> {
    let program = match head {
        [b'B', b'Z', b'h', b'1'..=b'9', ..] => "bzip2",
        [0xfd, b'7', b'z', b'X', ..] => "xz",
        [0x04, 0x22, 0x4d, 0x18, ..] => "lz4",
        [b'P', b'K', 3, 4, ..] => "zip",
        _ => return Ok(()),
    };
    Err(Refused::Compressed(program).into())
}

/// Puts a decompressor in front when the bytes begin with a known magic number.
pub fn decompressed(mut raw: impl Read + 'static) -> io::Result<Input> {
    let mut head = Vec::with_capacity(4);
    raw.by_ref().take(4).read_to_end(&mut head)?;
    let kind = Compression::detect(&head);
    refuse_other(&head)?;
    let whole = io::Cursor::new(head).chain(raw);
    Ok(match kind {
        Compression::None => Box::new(whole),
        Compression::Zstd => Box::new(zstd::stream::read::Decoder::new(whole)?),
        Compression::Gzip => Box::new(flate2::read::MultiGzDecoder::new(whole)),
    })
}

/// A reader of records that holds the stream to its structure.
pub struct Source<R> {
    lines: Lines<R>,
    tape: Tape,
    name: String,
    line: u64,
    session: Option<String>,
    sessions: u64,
}

impl<R: Read> Source<R> {
    /// Reads records from here on; `name` stands for the source in errors.
    pub fn new(reader: R, name: impl Into<String>) -> Source<R> {
        Source {
            lines: Lines::new(reader),
            tape: Tape::new(),
            name: name.into(),
            line: 0,
            session: None,
            sessions: 0,
        }
    }

    /// Where the last record stands, as `NAME:LINE`.
    pub fn place(&self) -> String {
        format!("{}:{}", self.name, self.line)
    }

    /// How many sessions have begun.
    pub fn sessions(&self) -> u64 {
        self.sessions
    }

    /// The next record, or `None` at the end of a whole stream.
    ///
    /// # Errors
    /// A record of a wrong form, a record outside a session, a session without `end`, a newer version, or
    /// an `abort` record, which says that an earlier stage died.
    pub fn next_record(&mut self) -> Result<Option<Record<'_>>> {
        let Source { lines, tape, name, line: number, session, sessions } = self;
        let (blank, line) = lines.next_filled_line().map_err(|e| cut(name, *number, e))?;
        *number += blank;
        let Some(line) = line else {
            return match session.take() {
                None => Ok(None),
                Some(id) => Err(Error::input(
                    format!("{name}:{number}"),
                    format!(
                        "the stream ends inside session {id}: the command before this one did not finish"
                    ),
                )),
            };
        };
        *number += 1;
        let place = || format!("{name}:{number}");
        let at = |e: Error| match e {
            Error::Shape { what } => Error::input(place(), what),
            other => other,
        };
        let record = Record::new(line.bytes, tape).map_err(at);
        let record = if *sessions == 0 { record.map_err(|e| e.with_hint(NO_STREAM))? } else { record? };
        // a record that is passed on by its head alone was not scanned: a line cut behind it would go unseen
        if record.body().is_some() && value_end(line.bytes, 0) != Some(line.bytes.trim_ascii_end().len()) {
            return Err(Error::input(
                place(),
                "the record is not whole: the line was cut or has more behind it",
            ));
        }
        match record.head().kind {
            Kind::Session => {
                let start: Start = record.decode().map_err(at)?;
                if start.relay > VERSION {
                    let what = format!(
                        "this stream is of version {}, this relay reads up to {VERSION}",
                        start.relay
                    );
                    return Err(
                        Error::input(place(), what).with_hint("update relay where the stream is read")
                    );
                }
                if let Some(id) = session {
                    return Err(Error::input(
                        place(),
                        format!("session {id} has no `end` before the next one"),
                    ));
                }
                *session = Some(start.session_id);
                *sessions += 1;
            }
            Kind::End => {
                if session.take().is_none() {
                    return Err(Error::input(place(), "`end` outside a session"));
                }
            }
            Kind::Message | Kind::Native if session.is_none() => {
                return Err(Error::input(place(), "a record outside a session").with_hint(NO_STREAM));
            }
            // a later version may have records that this one does not know, but no stream begins with one:
            // an agent's own file would pass every filter untouched, and relay-redact, too
            Kind::Unknown if *sessions == 0 => {
                return Err(Error::input(place(), "no relay stream").with_hint(NO_STREAM));
            }
            Kind::Abort => {
                let abort: Abort = record.decode().map_err(at)?;
                return Err(Error::Aborted(abort));
            }
            Kind::Message | Kind::Native | Kind::Unknown => {}
        }
        Ok(Some(record))
    }
}

/// What to do with input that is no stream.
const NO_STREAM: &str =
    "a stream begins with what relay-read prints; give a native session file to relay-read";

#[derive(Deserialize)]
struct Start {
    relay: u64,
    session_id: String,
}

/// A compressed stream that ends early is truncated input, not a failure of the machine.
fn cut(name: &str, line: u64, e: io::Error) -> Error {
    match e.kind() {
        io::ErrorKind::UnexpectedEof | io::ErrorKind::InvalidData => {
            Error::input(format!("{name}:{line}"), format!("damaged compressed input: {e}"))
        }
        _ if matches!(Refused::of(&e), Some(Refused::Long(_))) => {
            Error::io(format!("{name}:{}", line + 1))(e)
        }
        _ => Error::io(name)(e),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &str) -> Result<u64> {
        let mut source = Source::new(text.as_bytes(), "x");
        while source.next_record()?.is_some() {}
        Ok(source.sessions())
    }

    #[test]
    fn a_record_cut_behind_its_head_is_seen() {
        let head = |dropped: &str| {
            format!(
                "{{\"type\":\"message\",\"role\":\"assistant\",\"dropped\":{dropped},\"origin\":null,\"seq\":2,\"turn\":1,\"line\":2,\"part\":null,\"group\":\"g\",\"timestamp\":null,"
            )
        };
        let start = "{\"type\":\"session\",\"relay\":1,\"session_id\":\"s\"}\n";
        let body = "\"content\":[{\"type\":\"text\",\"text\":\"{a\\\"]}\"}],\"extra\":{\"n\":[1,null,{}]}}";
        let native = "{\"type\":\"native\",\"source_agent\":\"x\",\"line\":5,\"value\":{\"a\":{\"b\":[]}}}";
        let stream = |line: &str| format!("{start}{line}\n{{\"type\":\"end\"}}\n");
        for line in [head("null") + body, head("\"branch\"") + body, native.to_owned()] {
            assert_eq!(all(&stream(&line)).unwrap(), 1);
            assert_eq!(all(&stream(&format!("{line} \r"))).unwrap(), 1);
            for end in 1..line.len() {
                let cut = stream(line.get(..end).unwrap());
                assert_eq!(all(&cut).unwrap_err().exit_code(), 3, "{cut}");
            }
            assert_eq!(all(&stream(&format!("{line}}}"))).unwrap_err().exit_code(), 3);
        }
    }

    #[test]
    fn no_stream_begins_with_a_record_of_another_kind() {
        let whole = "{\"type\":\"session\",\"relay\":1,\"session_id\":\"s\"}\n{\"type\":\"later\"}\n{\"type\":\"end\"}\n";
        assert_eq!(all(whole).unwrap(), 1);
        // behind a session it may be something of a later version
        assert_eq!(all(&format!("{whole}{{\"type\":\"later\"}}\n{whole}")).unwrap(), 2);
        for first in ["{\"type\":\"later\"}\n", "{\"type\":\"message\",\"role\":\"user\"}\n", "{}\n", "x\n"] {
            let error = all(&format!("{first}{whole}")).unwrap_err();
            assert_eq!((error.exit_code(), error.hint()), (3, Some(NO_STREAM)), "{first}: {error}");
        }
    }
}
