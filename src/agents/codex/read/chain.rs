//! Files that continue each other.
//!
//! From 0.171 on a rewind or a fork writes a new file whose header names what stands before it:
//! `history_base {thread_id, end_byte_offset}`, where `thread_id` is the last id in the *name* of the base
//! file. The history is that of the base up to the offset, recursively, then the file's own lines (rule 12b).

use super::line::{self, Checks, Sort, field, text};
use crate::json::Tape;
use crate::record::{Error, Problems, Result, problem};
use crate::stream::{Lines, Native};
use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// How many files may continue each other.
const LONGEST: usize = 256;

/// Lines at the start of a file among which its header is looked for.
const HEADER_LINES: usize = 64;

/// One file of a chain.
#[derive(Debug)]
pub(super) struct Segment<'a> {
    file: File<'a>,
    /// Bytes that belong to the history.
    pub(super) upto: u64,
    /// Id in the name of the file; `None` for the file that was asked for.
    pub(super) id: Option<String>,
}

#[derive(Debug)]
enum File<'a> {
    Given(&'a Native),
    Found(Native),
}

impl Segment<'_> {
    pub(super) fn native(&self) -> &Native {
        match &self.file {
            File::Given(native) => native,
            File::Found(native) => native,
        }
    }
}

/// The file and all it stands on.
#[derive(Debug)]
pub(super) struct Chain<'a> {
    /// Oldest first; the last one is the file that was asked for.
    pub(super) segments: Vec<Segment<'a>>,
    /// Why the history before the file cannot be read.
    pub(super) broken: Option<String>,
}

/// Follows `history_base` from a file back to the first one.
pub(super) fn follow<'a>(
    native: &'a Native,
    store: Option<&Path>,
    problems: &mut Problems,
) -> Result<Chain<'a>> {
    let mut newest_first = vec![Segment { file: File::Given(native), upto: u64::MAX, id: None }];
    let mut base = base_of(native)?;
    let mut seen = HashSet::new();
    let mut broken = None;
    let own_id = native.path().and_then(segment_id).map(str::to_owned);
    seen.extend(own_id);
    while let Some(wanted) = base.take() {
        let place = newest_first.last().and_then(|s| s.native().path().map(Path::to_owned));
        if !seen.insert(wanted.id.clone()) || newest_first.len() > LONGEST {
            broken = Some(format!("its history comes back to {}, which is before it already", wanted.id));
            break;
        }
        let Some(path) = find(&wanted.id, place.as_deref(), store, problems) else {
            problems.add(problem::MISSING_BASE, Some(1), wanted.id.clone());
            broken = Some(format!(
                "it continues rollout {}, which is not there; hint: put the file whose name ends in {} beside it, \
                 or read from its store with --root",
                wanted.id, wanted.id
            ));
            break;
        };
        let file = Native::open(&path)?;
        base = base_of(&file)?;
        newest_first.push(Segment { file: File::Found(file), upto: wanted.end, id: Some(wanted.id) });
    }
    newest_first.reverse();
    Ok(Chain { segments: newest_first, broken })
}

struct Base {
    id: String,
    end: u64,
}

/// The base that a file's first header names.
fn base_of(native: &Native) -> Result<Option<Base>> {
    let mut lines = Lines::new(native.reader_at(0)?);
    let mut tape = Tape::new();
    for _ in 0..HEADER_LINES {
        let Some(line) = lines.next_line().map_err(Error::io(native.name()))? else { break };
        let Ok(value) = tape.parse(line.bytes) else { continue };
        let Sort::Meta(meta) = line::sort(value, false, Checks::Shapes).sort else { continue };
        let Some(base) = field(meta, "history_base") else { return Ok(None) };
        let id = text(base, "thread_id").map(|t| t.decode().into_owned());
        let end = field(base, "end_byte_offset").and_then(|v| v.u64());
        // a base that cannot be read is as good as a missing one: half a history must not pass for a whole
        return Ok(match (base.is_null(), id, end) {
            (true, ..) => None,
            (false, Some(id), Some(end)) => Some(Base { id, end }),
            (false, id, _) => Some(Base { id: id.unwrap_or_else(|| "(unnamed)".to_owned()), end: 0 }),
        });
    }
    Ok(None)
}

/// The last id in a rollout's name: that of the segment.
fn segment_id(path: &Path) -> Option<&str> {
    let name = path.file_name()?.to_str()?;
    let stem = name.strip_suffix(".zst").unwrap_or(name).strip_suffix(".jsonl")?;
    stem.get(stem.len().checked_sub(36)?..)
}

/// The file of a segment: beside the file that names it, else anywhere in the store.
fn find(id: &str, beside: Option<&Path>, store: Option<&Path>, problems: &mut Problems) -> Option<PathBuf> {
    if id.is_empty() || id.contains(['/', '\\']) {
        return None;
    }
    if let Some(folder) = beside.and_then(Path::parent)
        && let Some(path) = search(folder, id, 0, problems)
    {
        return Some(path);
    }
    let home = beside.and_then(home_of);
    let homes = [home, store.map(Path::to_owned)];
    for home in homes.into_iter().flatten() {
        for part in ["sessions", "archived_sessions", "."] {
            // year, month, day
            if let Some(path) = search(&home.join(part), id, 3, problems) {
                return Some(path);
            }
        }
    }
    None
}

fn search(folder: &Path, id: &str, depth: usize, problems: &mut Problems) -> Option<PathBuf> {
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return None,
        Err(e) => {
            problems.add(problem::MISSING_BASE, None, format!("{}: {e}", folder.display()));
            return None;
        }
    };
    let mut folders = Vec::new();
    let mut packed = None;
    for entry in entries.flatten() {
        // links are not followed: they could lead in circles
        let Ok(kind) = entry.file_type() else { continue };
        let path = entry.path();
        if kind.is_dir() {
            folders.push(path);
        } else if segment_id(&path) == Some(id) {
            // where both are there, the plain one is newer
            if path.extension().is_some_and(|e| e == "jsonl") {
                return Some(path);
            }
            packed = Some(path);
        }
    }
    if packed.is_some() || depth == 0 {
        return packed;
    }
    folders.sort();
    folders.iter().rev().find_map(|f| search(f, id, depth - 1, problems))
}

/// The Codex home that a session file lies in.
pub(super) fn home_of(file: &Path) -> Option<PathBuf> {
    let store = file
        .ancestors()
        .skip(1)
        .find(|a| a.file_name().is_some_and(|n| n == "sessions" || n == "archived_sessions"))?;
    store.parent().map(Path::to_owned)
}
