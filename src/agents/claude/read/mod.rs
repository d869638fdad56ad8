//! Reading a session: an index pass, a plan, an emit pass.

pub(super) mod attached;
mod compaction;
mod emit;
mod index;
mod leaf;
mod line;
mod plan;
mod relayed;
mod slots;
mod text;

use crate::agents::{Detected, ReadOptions};
use crate::json::Tape;
use crate::record::{Context, End, Error, Git, Result, Session, VERSION};
use crate::stream::{Native, Sink};
use index::Index;
use std::path::Path;

/// Whose session the first bytes are.
pub(super) fn detect(head: &[u8]) -> Detected {
    let mut tape = Tape::new();
    for line in head.split(|&b| b == b'\n').take(200) {
        let Ok(value) = tape.parse(line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line)) else { continue };
        if value.get("message").is_some_and(|m| m.get("parts").is_some()) {
            return Detected::LookAlike("Qwen Code");
        }
        let tree = value.get("parentUuid").is_some() || value.get("uuid").is_some();
        let state = value.get("leafUuid").is_some()
            || value.get("sessionId").is_some()
            || value.get("snapshot").is_some();
        if value.get("type").is_some_and(|t| t.text().is_some()) && (tree || state) {
            return Detected::Yes;
        }
    }
    // a first line longer than what was looked at
    let cut = !head.contains(&b'\n') && memchr::memmem::find(head, b"\"parentUuid\":").is_some();
    if cut { Detected::Yes } else { Detected::No }
}

/// Reads one session.
pub(super) fn read(native: &Native, options: &ReadOptions, out: &mut dyn Sink) -> Result<()> {
    let mut index = Index::build(native, options)?;
    let plan = plan::plan(&mut index, native, options.history)?;
    index.entries.check()?;
    let session = header(native, &mut index);
    let line =
        |l: std::result::Result<Vec<u8>, serde_json::Error>| l.map_err(|e| Error::shape(e.to_string()));
    out.put(&line(session.to_line())?)?;
    let foreign = not_claude(&index);
    let mut end = match foreign {
        Some(reason) => End { messages: Some(0), live: Some(0), failed: Some(reason), ..End::default() },
        None => emit::emit(&mut index, native, &plan, options, out)?,
    };
    index.entries.check()?;
    end.session_id = Some(session.session_id);
    end.problems = std::mem::take(&mut index.problems).into_vec();
    out.put(&line(end.to_line())?)
}

/// Why a file is no session of Claude Code, if it is none.
fn not_claude(index: &Index) -> Option<String> {
    let facts = &index.facts;
    if facts.claude > 0 {
        return None;
    }
    if facts.qwen > 0 {
        return Some("not a Claude Code session: it looks like Qwen Code".to_owned());
    }
    let empty = index.entries.iter().all(|e| e.length <= 1);
    (!empty).then(|| "not a Claude Code session: no line is of a kind that Claude Code writes".to_owned())
}

fn header(native: &Native, index: &mut Index) -> Session {
    let facts = std::mem::take(&mut index.facts);
    let path = native.path();
    let stem =
        path.and_then(|p| p.file_stem()).and_then(|s| s.to_str()).map(|s| s.trim_end_matches(".jsonl"));
    let named =
        stem.filter(|s| uuid::Uuid::try_parse(s).is_ok_and(|_| s.len() == 36) || s.starts_with("agent-"));
    let first = facts.session_ids.first();
    let session_id = named.or(first.map(String::as_str)).or(stem).unwrap_or("unknown").to_owned();
    // a title line of older clients may name a line of another session (see case 74 of the bug reports)
    let summary = facts
        .summaries
        .iter()
        .rev()
        .find(|(leaf, _)| index.find(*leaf).is_some())
        .map(|(_, title)| title.clone());
    let folder = path.and_then(|p| p.parent()).and_then(|p| p.file_name()).and_then(|n| n.to_str());
    let home =
        facts.directories.iter().find(|d| Some(super::locate::folder_name(Path::new(d)).as_str()) == folder);
    let subagent = facts.agent_id.is_some() && stem.is_some_and(|s| s.starts_with("agent-"));
    let parent = first.filter(|id| subagent && **id != session_id).cloned();
    let files = facts.files.snapshot();
    let session = Session {
        relay: VERSION,
        session_id,
        source_agent: "claude".to_owned(),
        created_at: facts.first_time,
        updated_at: facts.last_time,
        working_directory: home.or(facts.directories.first()).cloned(),
        title: facts.custom_title.or(facts.generated_title).or(summary),
        model: facts.model,
        source_version: facts.version,
        git: facts.branch.map(|branch| Git { branch: Some(branch), commit: None }),
        source_path: path.map(|p| p.display().to_string()),
        parent_session_id: parent,
        file_snapshot: (!files.is_empty()).then_some(files),
        context: facts.used_tokens.map(|used| Context { used_tokens: Some(used), window: None }),
        lineage: facts.relay.unwrap_or_default(),
        ..Session::default()
    };
    index.facts.claude = facts.claude;
    index.facts.qwen = facts.qwen;
    session
}
