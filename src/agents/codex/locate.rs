//! Where Codex keeps its sessions: `sessions/YYYY/MM/DD/rollout-<local time>-<thread>.jsonl` in
//! `$CODEX_HOME` or `~/.codex`, and the same names flat in `archived_sessions/`.
//!
//! A rollout idle for a week may be compressed (`.jsonl.zst`, 0.137 and later). A rewound thread goes on in
//! a file of its own, `rollout-<local time>-<thread>_<segment>.jsonl` (0.171): the newest one is the thread.
//! Titles stand in `session_index.jsonl`; the last line of an id wins. Days and times in names are local
//! ones and say nothing here.

use super::write::CODEX;
use crate::agents::files::{self, Seen};
use crate::agents::handover::home_of;
use crate::agents::paths::is_of;
use crate::agents::{Found, Peek, Store, speech};
use crate::json::{Tape, Value};
use crate::record::{Error, Problems, Result};
use crate::stream::{Lines, World, decompressed};
use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// The store.
#[derive(Debug)]
pub(super) struct Sessions;

/// Folders below `sessions/` that are looked into: year, month, day, and one to spare.
const DEPTH: usize = 4;

/// What the name of a rollout tells.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Name {
    thread: String,
    /// The id of the file itself: the last one in its name. `history_base.thread_id` means this one.
    segment: String,
    compressed: bool,
}

impl Name {
    fn parse(name: &str) -> Option<Name> {
        let stem = name.strip_prefix("rollout-")?;
        let (stem, compressed) = match stem.strip_suffix(".zst") {
            Some(stem) => (stem, true),
            None => (stem, false),
        };
        let stem = stem.strip_suffix(".jsonl")?;
        let last = |text: &str| Some(text.get(text.len().checked_sub(36)?..)?.to_ascii_lowercase());
        let segment = last(stem).filter(|id| files::is_uuid(id))?;
        let before = stem.get(..stem.len() - 36)?;
        let thread = match before.strip_suffix('_') {
            Some(before) => last(before).filter(|id| files::is_uuid(id))?,
            None => segment.clone(),
        };
        Some(Name { thread, segment, compressed })
    }

    /// Milliseconds at which a UUIDv7 was made; earlier versions (v4, before 0.40) tell nothing.
    fn made(id: &str) -> Option<u64> {
        uuid::Uuid::try_parse(id)
            .ok()
            .filter(|id| id.get_version_num() == 7)
            .map(|id| id.as_u64_pair().0 >> 16)
    }

    /// Order of the files of one thread: the newest segment last; of one segment's copies the plain one
    /// last, then the one changed last.
    fn order(&self, updated: SystemTime) -> (Option<u64>, bool, SystemTime) {
        (Name::made(&self.segment), !self.compressed, updated)
    }
}

/// The folders with rollouts under a place, which is the client's home or any folder.
fn folders(place: &Path) -> Vec<PathBuf> {
    let usual = [place.join("sessions"), place.join("archived_sessions")];
    match usual.iter().any(|folder| folder.is_dir()) {
        true => usual.into(),
        false => vec![place.to_owned()],
    }
}

/// Every rollout under a folder.
fn walk(
    folder: &Path,
    depth: usize,
    seen: &mut Seen,
    problems: &mut Problems,
    take: &mut dyn FnMut(files::Entry, Name, &std::fs::Metadata),
) {
    for entry in files::entries(folder, problems) {
        let name = Name::parse(&entry.name);
        // a day may hold thousands of other files; only what may matter is looked at
        if name.is_none() && (depth == 0 || entry.name.contains('.')) {
            continue;
        }
        let Some(metadata) = files::metadata(&entry, problems) else { continue };
        match name {
            Some(name) if metadata.is_file() && metadata.len() > 0 && seen.first(&metadata) => {
                take(entry, name, &metadata);
            }
            None if metadata.is_dir() && seen.first(&metadata) => {
                walk(&entry.path, depth - 1, seen, problems, take);
            }
            _ => {}
        }
    }
}

/// The titles of a home by thread. An index that is not there has none.
fn titles(place: &Path, problems: &mut Problems) -> HashMap<String, String> {
    let mut titles = HashMap::new();
    // a place may be the folder `sessions` itself
    let homes = [Some(place), place.parent()];
    let Some(index) =
        homes.into_iter().flatten().map(|home| home.join("session_index.jsonl")).find(|path| path.is_file())
    else {
        return titles;
    };
    let mut read = || -> Result<()> {
        let place = index.display().to_string();
        let mut lines = Lines::new(files::open(&index)?);
        let mut tape = Tape::new();
        while let Some(line) = lines.next_line().map_err(Error::io(&place))? {
            // appended to by the client while it is read: a line that is no JSON is none yet
            let Ok(entry) = tape.parse(line.bytes) else { continue };
            let text = |key: &str| entry.get(key).and_then(|v| v.text());
            if let (Some(id), Some(title)) = (text("id"), text("thread_name")) {
                titles.insert(id.decode().to_ascii_lowercase(), title.decode().into_owned());
            }
        }
        Ok(())
    };
    if let Err(e) = read() {
        problems.add(files::UNREADABLE, None, e.to_string());
    }
    titles
}

impl Store for Sessions {
    fn places(&self, root: Option<&Path>, configured: Option<&Path>, world: &World) -> Vec<PathBuf> {
        // `~/.codex/sessions` may be named; the home above it has the archive and the titles
        let home = |path| home_of(path, CODEX.sessions);
        if let Some(root) = root {
            return vec![home(world.resolve(root))];
        }
        if let Some(home) = world.variable("CODEX_HOME") {
            return vec![world.resolve(Path::new(home))];
        }
        match (configured, world.home()) {
            (Some(configured), _) => vec![home(configured.to_owned())],
            (None, Some(home)) => vec![home.join(".codex")],
            (None, None) => Vec::new(),
        }
    }

    fn list(&self, place: &Path, problems: &mut Problems) -> Result<Vec<Found>> {
        let mut newest: HashMap<String, (Name, Found)> = HashMap::new();
        let mut seen = Seen::default();
        for folder in folders(place) {
            walk(&folder, DEPTH, &mut seen, problems, &mut |entry, name, metadata| {
                let found = files::found(entry, &name.thread, place, metadata);
                match newest.get_mut(&name.thread) {
                    None => {
                        newest.insert(name.thread.clone(), (name, found));
                    }
                    Some(held) if held.0.order(held.1.updated) < name.order(found.updated) => {
                        *held = (name, found);
                    }
                    Some(_) => {}
                }
            });
        }
        let mut titles = titles(place, problems);
        let mut sessions: Vec<Found> = newest.into_values().map(|(_, found)| found).collect();
        for session in &mut sessions {
            session.title = titles.remove(&session.id);
        }
        sessions.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(sessions)
    }

    fn peek(&self, found: &Found) -> Result<Peek> {
        let glance = glance(&found.path, true)?;
        let working_directory = glance.directory.map(PathBuf::from);
        Ok(Peek {
            started_in: working_directory.clone(),
            working_directory,
            title: found.title.clone(),
            conversation: glance.conversation,
            subagent: glance.subagent,
            prompt: glance.prompt,
            headless: glance.headless,
        })
    }

    fn belongs(&self, _found: &Found, peek: &Peek, project: &Path) -> bool {
        peek.started_in.as_deref().is_some_and(|directory| is_of(directory, project))
    }

    fn is_id(&self, text: &str) -> bool {
        files::begins_uuid(text)
    }

    fn id_of(&self, path: &Path) -> Option<String> {
        Some(Name::parse(path.file_name()?.to_str()?)?.thread)
    }

    fn subagents(&self, found: &Found, problems: &mut Problems) -> Result<Vec<PathBuf>> {
        let place = match &found.place {
            Some(place) => place.clone(),
            // a file that the user named: its home, when it stands in one, else its folder
            None => {
                let sessions =
                    |folder: &&Path| folder.ends_with("sessions") || folder.ends_with("archived_sessions");
                let inside = found.path.ancestors().find(sessions).and_then(Path::parent);
                inside.or(found.path.parent()).unwrap_or(Path::new(".")).to_owned()
            }
        };
        let parent = Name::made(&found.id);
        let mut children: HashMap<String, Vec<Found>> = HashMap::new();
        for candidate in self.list(&place, problems)? {
            // no child is older than its parent, so nothing older is opened
            let older = matches!((parent, Name::made(&candidate.id)), (Some(p), Some(c)) if c < p);
            if older || candidate.id == found.id {
                continue;
            }
            let glance = match glance(&candidate.path, false) {
                Ok(glance) => glance,
                Err(e) => {
                    problems.add(files::UNREADABLE, None, e.to_string());
                    continue;
                }
            };
            if let Some(parent) = glance.parent.filter(|_| glance.subagent) {
                children.entry(parent).or_default().push(candidate);
            }
        }
        // each behind its own parent, as deep as they go
        let mut agents = Vec::new();
        let mut open: Vec<Found> = children.remove(&found.id).unwrap_or_default();
        open.reverse();
        let mut seen = HashSet::new();
        while let Some(child) = open.pop() {
            if seen.insert(child.id.clone()) {
                open.extend(children.remove(&child.id).unwrap_or_default().into_iter().rev());
                agents.push(child.path);
            }
        }
        Ok(agents)
    }
}

/// So many bytes of a prompt are looked at.
const LOOKED: usize = 16 << 10;

/// What the beginning of a rollout tells.
#[derive(Debug, Default)]
struct Glance {
    directory: Option<String>,
    subagent: bool,
    parent: Option<String>,
    conversation: bool,
    prompt: Option<String>,
    headless: bool,
}

/// Looks into a rollout as far as its head and, with `conversation`, the first prompt or answer.
fn glance(path: &Path, conversation: bool) -> Result<Glance> {
    let place = path.display().to_string();
    let mut glance = Glance::default();
    let mut tape = Tape::new();
    let mut met = false;
    let source = decompressed(files::open(path)?).map_err(Error::io(&place))?;
    let went_on = files::head(source, |line| {
        let Ok(line) = tape.parse(line) else { return ControlFlow::Continue(()) };
        met |= glance.line(line, met);
        match met && glance.directory.is_some() && (glance.prompt.is_some() || !conversation) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    })
    .map_err(|e| match e.kind() {
        std::io::ErrorKind::UnexpectedEof | std::io::ErrorKind::InvalidData | std::io::ErrorKind::Other => {
            Error::input(&place, format!("damaged compressed file: {e}"))
        }
        _ => Error::io(&place)(e),
    })?;
    // nothing said in all that was read, and more to come: rather offered than hidden
    glance.conversation |= went_on && conversation;
    Ok(glance)
}

impl Glance {
    /// Takes a line; gives whether it is the head of the rollout. Later heads are copies of the parent's
    /// in a fork.
    fn line(&mut self, line: Value<'_>, met: bool) -> bool {
        let kind = line.get("type").and_then(|t| t.text()).map(|t| t.decode().into_owned());
        let payload = line.get("payload").filter(Value::is_object);
        let text = |of: Value<'_>, key: &str| {
            of.get(key).and_then(|v| v.text()).filter(|t| !t.is_empty()).map(|t| t.decode().into_owned())
        };
        match (kind.as_deref(), payload) {
            (Some("session_meta"), Some(meta)) if !met => {
                self.directory = text(meta, "cwd");
                self.headless = text(meta, "source").as_deref() == Some("exec");
                let spawned =
                    meta.get("source").and_then(|s| s.get("subagent").or_else(|| s.get("subAgent")));
                self.subagent =
                    spawned.is_some() || text(meta, "thread_source").as_deref() == Some("subagent");
                self.parent = text(meta, "parent_thread_id")
                    .or_else(|| text(spawned?.get("thread_spawn")?, "parent_thread_id"))
                    .map(|id| id.to_ascii_lowercase());
                true
            }
            (Some("turn_context"), Some(context)) => {
                if self.directory.is_none() {
                    self.directory = text(context, "cwd");
                }
                false
            }
            (Some("response_item"), Some(item)) => {
                self.item(item);
                false
            }
            (Some("event_msg"), Some(event)) => {
                let said = text(event, "type");
                self.conversation |= matches!(said.as_deref(), Some("user_message" | "agent_message"));
                false
            }
            (Some("compacted"), Some(_)) => {
                self.conversation = true;
                false
            }
            // before 0.30: a bare head, then bare items; the directory stands in a text of the harness
            (None, None) => !met && line.get("id").is_some() && line.get("timestamp").is_some(),
            (Some("message"), None) => {
                self.item(line);
                false
            }
            _ => false,
        }
    }

    fn item(&mut self, item: Value<'_>) {
        let role = item.get("role").and_then(|r| r.text()).map(|r| r.decode().into_owned());
        if !matches!(role.as_deref(), Some("user" | "assistant")) {
            return;
        }
        let texts = item
            .get("content")
            .into_iter()
            .flat_map(|c| c.items())
            .filter_map(|part| part.get("text")?.text());
        let mut said = item.get("content").is_some_and(|c| c.items().next().is_some());
        for text in texts {
            if text.starts_with("<environment_context>") {
                said = false;
                let whole = text.decode();
                let directory = whole.split_once("<cwd>").and_then(|(_, rest)| rest.split_once("</cwd>"));
                if let (None, Some((directory, _))) = (&self.directory, directory) {
                    self.directory = Some(directory.to_owned());
                }
            } else if role.as_deref() == Some("user") {
                match speech::shown(&text.head(LOOKED)) {
                    Some(shown) => _ = self.prompt.get_or_insert(shown),
                    None => said = false,
                }
            }
        }
        self.conversation |= said;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::time::Duration;

    const A: &str = "019a0000-0000-7000-8000-00000000000a";
    const B: &str = "019a0000-0001-7000-8000-00000000000b";
    const C: &str = "019a0000-0002-7000-8000-00000000000c";

    fn meta(id: &str, cwd: &str, more: &str) -> String {
        format!(
            r#"{{"timestamp":"2026-03-01T10:00:00.000Z","type":"session_meta","payload":{{"id":"{id}","timestamp":"2026-03-01T10:00:00.000Z","cwd":"{cwd}","originator":"x","cli_version":"0.0.0"{more}}}}}"#
        ) + "\n"
    }

    fn said() -> &'static str {
        r#"{"timestamp":"2026-03-01T10:00:00.000Z","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"hi"}]}}"#
    }

    fn put(path: PathBuf, text: &[u8]) -> PathBuf {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    fn list(home: &Path) -> Vec<(String, String)> {
        let mut problems = Problems::default();
        let found = Sessions.list(home, &mut problems).unwrap();
        assert!(problems.is_empty(), "{problems:?}");
        let mut pairs: Vec<_> = found
            .into_iter()
            .map(|f| (f.id, f.path.strip_prefix(home).unwrap().display().to_string()))
            .collect();
        pairs.sort();
        pairs
    }

    #[test]
    fn names_tell_thread_and_segment() {
        let name = |n: &str| Name::parse(n);
        let plain = name(&format!("rollout-2026-03-01T10-00-00-{A}.jsonl")).unwrap();
        assert_eq!((plain.thread.as_str(), plain.segment.as_str(), plain.compressed), (A, A, false));
        let segment = name(&format!("rollout-2026-03-01T10-00-00-{A}_{B}.jsonl.zst")).unwrap();
        assert_eq!((segment.thread.as_str(), segment.segment.as_str(), segment.compressed), (A, B, true));
        for bad in ["rollout-.jsonl", "x.jsonl", "rollout-2026-é-000000000000000000000000000000000000.jsonl"]
        {
            assert_eq!(name(bad), None);
        }
        assert_eq!(name(&format!("{A}.jsonl")), None);
        assert_eq!(name(&format!("rollout-é_{A}.jsonl")), None);
    }

    #[test]
    fn each_thread_is_listed_once() {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path();
        let day = home.join("sessions/2026/03/01");
        put(day.join(format!("rollout-2026-03-01T10-00-00-{A}.jsonl")), b"x");
        put(day.join(format!("rollout-2026-03-01T11-00-00-{A}_{B}.jsonl")), b"x");
        // rewound later, in an hour with an earlier name (clock set back)
        put(day.join(format!("rollout-2026-03-01T09-30-00-{A}_{C}.jsonl")), b"x");
        put(day.join(format!("rollout-2026-03-01T12-00-00-{B}.jsonl")), b"x");
        put(day.join(format!("rollout-2026-03-01T12-00-00-{B}.jsonl.zst")), b"x");
        put(home.join(format!("archived_sessions/rollout-2026-03-01T12-00-00-{C}.jsonl")), b"x");
        put(day.join(format!("rollout-2026-03-01T13-00-00-{}.jsonl", B.replace("0b", "ff"))), b"");
        put(home.join("history.jsonl"), b"x");
        std::os::unix::fs::symlink(home.join("sessions"), day.join("loop")).unwrap();
        let path = |p: &str| format!("sessions/2026/03/01/rollout-2026-03-01T{p}.jsonl");
        assert_eq!(
            list(home),
            [
                (A.to_owned(), path(&format!("09-30-00-{A}_{C}"))),
                (B.to_owned(), path(&format!("12-00-00-{B}"))),
                (C.to_owned(), format!("archived_sessions/rollout-2026-03-01T12-00-00-{C}.jsonl")),
            ]
        );
        // any folder will do as root
        assert_eq!(list(&day).len(), 2);
    }

    #[test]
    fn titles_come_from_the_index() {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path();
        put(
            home.join(format!("sessions/2026/03/01/rollout-2026-03-01T10-00-00-{A}.jsonl")),
            meta(A, "/w", "").as_bytes(),
        );
        let index = format!(
            "{{\"id\":\"{A}\",\"thread_name\":\"Old\"}}\n{{\"id\":\"{A}\",\"thread_name\":\"New \\u00e9\"}}\nbroken\n{{\"id\":\"{A}\",\"thr"
        );
        put(home.join("session_index.jsonl"), index.as_bytes());
        let found = Sessions.list(home, &mut Problems::default()).unwrap();
        assert_eq!(Sessions.peek(&found[0]).unwrap().title.as_deref(), Some("New é"));
        let found = Sessions.list(&home.join("sessions"), &mut Problems::default()).unwrap();
        assert_eq!(found[0].title.as_deref(), Some("New é"));
    }

    #[test]
    fn a_look_inside_tells_directory_and_kind() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join(format!("rollout-2026-03-01T10-00-00-{A}.jsonl"));
        let peek = |text: &[u8]| {
            put(file.clone(), text);
            let found = Sessions.list(dir.path(), &mut Problems::default()).unwrap();
            Sessions.peek(&found[0]).unwrap()
        };
        let at = |p: &Peek| p.started_in.as_ref().map(|d| d.display().to_string());
        let whole = meta(A, "/w/app", "") + said();
        let seen = peek(whole.as_bytes());
        assert_eq!((at(&seen).as_deref(), seen.conversation, seen.subagent), (Some("/w/app"), true, false));
        assert_eq!(peek(&zstd::encode_all(whole.as_bytes(), 0).unwrap()), seen);
        let alone = peek(meta(A, "/w/app", "").as_bytes());
        assert!(!alone.conversation);
        // a fork repeats its parent's head: the first one counts
        let fork = peek(
            (meta(A, "/w/app", "") + &meta(B, "/other", r#","source":{"subagent":"review"}"#) + said())
                .as_bytes(),
        );
        assert_eq!(fork, seen);
        for source in
            [r#"{"subagent":"review"}"#, r#"{"subagent":{"thread_spawn":{"parent_thread_id":"x"}}}"#]
        {
            assert!(peek(meta(A, "/w", &format!(r#","source":{source}"#)).as_bytes()).subagent);
        }
        let bare = format!(
            "{{\"id\":\"{A}\",\"timestamp\":\"2025-08-01T10:00:00Z\",\"instructions\":null}}\n{{\"record_type\":\"state\"}}\n\
             {{\"type\":\"message\",\"role\":\"user\",\"content\":[{{\"type\":\"input_text\",\"text\":\"<environment_context>\\n<cwd>/w/bare</cwd>\\n</environment_context>\"}}]}}\n\
             {{\"type\":\"message\",\"role\":\"user\",\"content\":[{{\"type\":\"input_text\",\"text\":\"hi\"}}]}}\n"
        );
        let seen = peek(bare.as_bytes());
        assert_eq!((at(&seen).as_deref(), seen.conversation), (Some("/w/bare"), true));
        assert_eq!(peek(b"no json at all\n"), Peek::default());
    }

    #[test]
    fn damaged_compression_is_an_error_of_the_input() {
        let dir = tempfile::tempdir().unwrap();
        let mut packed = zstd::encode_all(meta(A, "/w", "").as_bytes(), 0).unwrap();
        packed.truncate(packed.len() / 2);
        put(dir.path().join(format!("rollout-2026-03-01T10-00-00-{A}.jsonl.zst")), &packed);
        let found = Sessions.list(dir.path(), &mut Problems::default()).unwrap();
        assert_eq!(Sessions.peek(&found[0]).unwrap_err().exit_code(), 3);
    }

    #[test]
    fn subagents_follow_their_parents() {
        let dir = tempfile::tempdir().unwrap();
        let day = dir.path().join("sessions/2026/03/01");
        let rollout = |id: &str| day.join(format!("rollout-2026-03-01T10-00-00-{id}.jsonl"));
        let child = |of: &str| {
            format!(r#","source":{{"subagent":{{"thread_spawn":{{"parent_thread_id":"{of}","depth":1}}}}}}"#)
        };
        let d = C.replace("0c", "0d");
        put(rollout(A), meta(A, "/w", "").as_bytes());
        put(rollout(B), meta(B, "/w", &child(A)).as_bytes());
        put(rollout(C), meta(C, "/w", &child(B)).as_bytes());
        put(
            rollout(&d),
            meta(&d, "/w", &format!(r#","forked_from_id":"{A}","parent_thread_id":"{A}""#)).as_bytes(),
        );
        let named = Found {
            path: rollout(A),
            id: A.to_owned(),
            updated: SystemTime::UNIX_EPOCH + Duration::from_secs(1),
            bytes: 1,
            title: None,
            place: None,
        };
        assert_eq!(Sessions.subagents(&named, &mut Problems::default()).unwrap(), [rollout(B), rollout(C)]);
        let stored = Found { place: Some(dir.path().to_owned()), ..named };
        assert_eq!(Sessions.subagents(&stored, &mut Problems::default()).unwrap(), [rollout(B), rollout(C)]);
    }
}
