//! Reading a session.
//!
//! | file | what |
//! |---|---|
//! | `line`, `harness` | what one line is, and whether the client can read it |
//! | `chain` | files that continue each other |
//! | `index` | the first pass: what the replay and the header need |
//! | `replay` | the client's own replay: what is live |
//! | `pieces`, `compact` | from an item to records and back to its argument text |
//! | `emit` | the second pass: every line becomes its records |
//! | `vendor` | what only the vendor can read, agents' names, generated pictures |
//! | `events`, `files` | the rescue from screen events; the files that calls touch |
//! | `restore` | from records back to the line |
//! | `time` | times as the client writes them |

mod chain;
mod compact;
mod emit;
mod events;
mod files;
mod harness;
mod index;
mod line;
mod pieces;
mod replay;
mod restore;
#[cfg(test)]
mod tests;
mod time;
mod vendor;

pub use restore::restore;

use crate::agents::{Detected, History, ReadOptions};
use crate::json::Tape;
use crate::record::{End, Error, Problems, Result, Session, VERSION, problem};
use crate::stream::{Lines, Native, Sink};
use std::fs::File;
use std::path::{Path, PathBuf};

/// Whose session the first bytes are.
pub(super) fn detect(head: &[u8]) -> Detected {
    const LINES: usize = 16;
    if is_document(head) {
        return Detected::Unread {
            what: "one JSON document, as Codex kept a session while it was written in TypeScript (rollout-*.json): \
                   relay reads the rollout-*.jsonl of Codex 0.20 and later",
            hint: "start the agent that is to go on, and have it read this file",
        };
    }
    let mut tape = Tape::new();
    for line in head.split(|b| *b == b'\n').filter(|l| !l.iter().all(u8::is_ascii_whitespace)).take(LINES) {
        let Ok(value) = tape.parse(line) else {
            // the first line holds the client's instructions and may be longer than the head
            let start = line.get(..512).unwrap_or(line);
            let holds = |word: &[u8]| memchr::memmem::find(start, word).is_some();
            if holds(b"\"type\":\"session_meta\"") && holds(b"\"payload\":{") {
                return Detected::Yes;
            }
            continue;
        };
        let enveloped = line::field(value, "payload").is_some_and(|p| p.is_object())
            && line::field(value, "timestamp").is_some()
            && !matches!(
                line::sort(value, false, line::Checks::Shapes).sort,
                line::Sort::Unknown(_) | line::Sort::Broken(_)
            );
        if enveloped || line::is_bare_meta(value) || line::is_bare_line(value) {
            return Detected::Yes;
        }
    }
    Detected::No
}

/// Why a file is no session.
const NO_ROLLOUT: &str = "no line of it is a record of a Codex rollout";

/// Whether a file begins as the clients in TypeScript (openai/codex,
/// codex-cli/src/utils/storage/save-rollout.ts, until the summer of 2025) began theirs: an indented
/// `{"session":{"timestamp":…,"id":…,"instructions":…},"items":[…]}`, whose lines are no records each.
fn is_document(head: &[u8]) -> bool {
    const BEGINNING: &[u8] = b"{\"session\":{";
    head.iter().filter(|b| !b.is_ascii_whitespace()).take(BEGINNING.len()).eq(BEGINNING)
}

/// Reads one session.
pub(super) fn read(native: &Native, options: &ReadOptions, out: &mut dyn Sink) -> Result<()> {
    let mut problems = Problems::default();
    let chain = chain::follow(native, options.place.as_deref(), &mut problems)?;
    let mut index = index::index(&chain.segments, options)?;
    let mut replay = replay::replay(&index, &chain.segments, options.history)?;
    problems.merge(std::mem::take(&mut index.problems).into_vec());
    if index.from_events.is_some() {
        problems.add(problem::RESCUED, None, "no response items: the conversation is read from events");
    }
    if index.bare.last() == Some(&true) {
        let note = "the format of Codex 0.20 to 0.29, which no client from 0.47 on resumes";
        if options.history == History::Exact {
            problems.add(problem::UNKNOWN_VERSION, None, note);
            replay.drop_all();
        } else {
            problems.add(problem::RESCUED, None, note);
        }
    }
    if replay.undone > 0 {
        let note = "the only summary is unreadable: the conversation before it is live again";
        problems.add(problem::RESCUED, None, note);
    }
    let facts = std::mem::take(&mut index.facts);
    let session_id =
        facts.id.or_else(|| native.path().and_then(id_of_name)).unwrap_or_else(|| "unknown".to_owned());
    let title = title(native, options, &session_id, &mut problems)?.or(facts.title);
    let session = Session {
        relay: VERSION,
        session_id: session_id.clone(),
        source_agent: "codex".to_owned(),
        created_at: facts.created,
        updated_at: facts.updated,
        working_directory: facts.directory,
        title,
        model: facts.model,
        source_version: facts.version,
        git: facts.git,
        source_path: native.path().map(|p| p.display().to_string()),
        parent_session_id: facts.parent,
        file_snapshot: facts.files.into_snapshot(),
        context: facts.context,
        lineage: facts.lineage,
        ..Session::default()
    };
    let shape = |e: serde_json::Error| Error::failed(format!("a record cannot be written: {e}"));
    out.put(&session.to_line().map_err(shape)?)?;
    let mut emitter = emit::Emitter::new(&index, &replay, options, out);
    emitter.run(&chain.segments)?;
    index.entries.check()?;
    let (messages, live) = (emitter.messages, emitter.live);
    problems.merge(emitter.problems.into_vec());
    let failed = chain.broken.or_else(|| {
        let why =
            if native.head(1).is_ok_and(|head| head.is_empty()) { "the file is empty" } else { NO_ROLLOUT };
        (index.known_lines == 0).then(|| why.to_owned())
    });
    let end = End {
        session_id: Some(session_id),
        messages: Some(messages),
        live: Some(live),
        problems: problems.into_vec(),
        budget: None,
        failed,
    };
    out.put(&end.to_line().map_err(shape)?)
}

/// The thread id in a rollout's name: `rollout-<time>-<thread>[_<segment>].jsonl`.
pub(super) fn id_of_name(path: &Path) -> Option<String> {
    let name = path.file_name()?.to_str()?;
    let stem = name.strip_suffix(".zst").unwrap_or(name).strip_suffix(".jsonl")?;
    let thread = match stem.split_once('_') {
        Some((thread, _)) => thread,
        None => stem,
    };
    let id = thread.get(thread.len().checked_sub(36)?..)?;
    uuid::Uuid::try_parse(id).ok().map(|_| id.to_owned())
}

/// The title that the user gave, from `session_index.jsonl` in the home of the store; the last line of an id
/// wins (observed with 0.171).
fn title(
    native: &Native,
    options: &ReadOptions,
    id: &str,
    problems: &mut Problems,
) -> Result<Option<String>> {
    let mut homes: Vec<PathBuf> = native.path().and_then(chain::home_of).into_iter().collect();
    if let Some(place) = &options.place {
        homes.push(place.clone());
        homes.extend(place.parent().map(Path::to_owned));
    }
    for home in homes {
        let path = home.join("session_index.jsonl");
        let name = path.display().to_string();
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => continue,
            Err(e) => {
                problems.add(problem::LOST, None, format!("the title in {name}: {e}"));
                continue;
            }
        };
        let mut lines = Lines::new(file);
        let mut tape = Tape::new();
        let mut title = None;
        while let Some(line) = lines.next_line().map_err(Error::io(&name))? {
            if memchr::memmem::find(line.bytes, id.as_bytes()).is_none() {
                continue;
            }
            let Ok(value) = tape.parse(line.bytes) else { continue };
            if line::text(value, "id").is_some_and(|t| t == id) {
                title = line::text(value, "thread_name").map(|t| t.decode().into_owned());
            }
        }
        return Ok(title.filter(|t| !t.trim().is_empty()));
    }
    Ok(None)
}
