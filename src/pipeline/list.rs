//! What relay-list does: the sessions that there are, the one changed last first.
//!
//! Directory, title and first prompt come from the beginning and the end of each file, read by several threads. Turns and
//! tokens need the whole file: they are known once somebody asked for them (`deep`). What was learned is kept in the
//! user's cache folder, by path, size and time of change; that file may vanish at any time.

use super::select::{self, Wanted};
use crate::agents::{self, Agent, Found, History, ReadOptions};
use crate::json::Tape;
use crate::record::{Error, Kind, Record, Result, Session};
use crate::stream::{Native, Report, Sink, World};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Which sessions.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Names of agents; none means all.
    pub agents: Vec<String>,
    /// Project, times, folders.
    pub wanted: Wanted,
    /// Only those with this text in title or prompt, whatever its case; with `deep`, in anything that was said.
    pub grep: Option<String>,
    /// Read the sessions whole, for turns and tokens.
    pub deep: bool,
    /// Those of subagents, those made without a terminal and those without a word, too.
    pub all: bool,
    /// At most so many.
    pub limit: Option<usize>,
}

/// One session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Row {
    /// Whose it is.
    pub agent: &'static str,
    /// Its id.
    pub id: String,
    /// Time of last change.
    #[serde(serialize_with = "as_text")]
    pub updated_at: Timestamp,
    /// Bytes of its file.
    pub bytes: u64,
    /// Directory in which it began.
    pub project: Option<PathBuf>,
    /// Title given by the user or the client.
    pub title: Option<String>,
    /// Beginning of its first prompt.
    pub prompt: Option<String>,
    /// Prompts of the live conversation; known of sessions that were read whole.
    pub turns: Option<u64>,
    /// Size of the live conversation in tokens, estimated; known of sessions that were read whole.
    pub tokens: Option<u64>,
    /// What sets it apart: `headless`, `subagent`, `empty`.
    pub marks: Vec<&'static str>,
    /// Its file.
    pub path: PathBuf,
}

/// A time as RFC 3339.
fn as_text<S: serde::Serializer>(time: &Timestamp, to: S) -> std::result::Result<S::Ok, S::Error> {
    to.collect_str(time)
}

/// What is known of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Known {
    path: PathBuf,
    bytes: u64,
    /// Time of change, in nanoseconds since 1970.
    changed: i128,
    project: Option<PathBuf>,
    title: Option<String>,
    prompt: Option<String>,
    #[serde(default)]
    headless: bool,
    #[serde(default)]
    subagent: bool,
    #[serde(default)]
    empty: bool,
    turns: Option<u64>,
    tokens: Option<u64>,
}

impl Known {
    fn is_of(&self, found: &Found) -> bool {
        self.bytes == found.bytes && self.changed == changed(found)
    }
}

fn changed(found: &Found) -> i128 {
    Timestamp::try_from(found.updated).map_or(0, |t| t.as_nanosecond())
}

/// Lists the sessions. One that cannot be looked into is reported and left out.
///
/// # Errors
/// An unknown agent, a wrong time, a store that cannot be listed.
pub fn run(options: &Options, world: &World, report: &mut dyn Report) -> Result<Vec<Row>> {
    let chosen: Vec<&'static dyn Agent> = match options.agents.as_slice() {
        [] => agents::AGENTS.to_vec(),
        names => names.iter().map(|name| agents::named(name)).collect::<Result<_>>()?,
    };
    let found = select::every(&chosen, &options.wanted, world, report)?;
    let mut cache = Cache::load(world);
    let looked = look(&found, &cache, options.deep, options.grep.as_deref());
    let project = select::project(&options.wanted, world);
    let mut rows = Vec::new();
    let mut others = 0;
    for ((agent, found), looked) in found.iter().zip(looked) {
        let (known, said) = match looked {
            Ok(looked) => looked,
            Err(e) => {
                report.fail(&e);
                continue;
            }
        };
        cache.learn(&known);
        let belongs = options.wanted.any_project || {
            let peek = agents::Peek { started_in: known.project.clone(), ..agents::Peek::default() };
            agent.store().belongs(found, &peek, &project)
        };
        others += usize::from(!belongs);
        let row = row(*agent, found, known);
        if belongs
            && (options.all || row.marks.is_empty())
            && said.unwrap_or_else(|| row.says(options.grep.as_deref()))
        {
            rows.push(row);
        }
        if options.limit.is_some_and(|limit| rows.len() >= limit) {
            break;
        }
    }
    cache.keep(world);
    if rows.is_empty() {
        return Err(nothing(options, &project, others));
    }
    Ok(rows)
}

/// No session is what was asked for.
fn nothing(options: &Options, project: &Path, others: usize) -> Error {
    let place = match options.wanted.any_project {
        true => String::new(),
        false => format!(" of project {}", project.display()),
    };
    let error = Error::failed(format!("no session{place} is to be listed"));
    match (others, options.all) {
        (1, _) => error.with_hint("one session belongs to another project: --any-project"),
        (2.., _) => error.with_hint(format!("{others} sessions belong to other projects: --any-project")),
        (_, false) => error.with_hint("--all lists those without a prompt or a terminal, too"),
        _ => error,
    }
}

fn row(agent: &'static dyn Agent, found: &Found, known: Known) -> Row {
    let marks = [("headless", known.headless), ("subagent", known.subagent), ("empty", known.empty)];
    Row {
        agent: agent.name(),
        id: found.id.clone(),
        updated_at: Timestamp::try_from(found.updated).unwrap_or(Timestamp::UNIX_EPOCH),
        bytes: found.bytes,
        project: known.project,
        title: found.title.clone().or(known.title),
        prompt: known.prompt,
        turns: known.turns,
        tokens: known.tokens,
        marks: marks.into_iter().filter(|(_, is)| *is).map(|(mark, _)| mark).collect(),
        path: found.path.clone(),
    }
}

impl Row {
    /// Whether a text stands in its title or prompt.
    fn says(&self, text: Option<&str>) -> bool {
        let Some(text) = text.map(str::to_lowercase) else { return true };
        [&self.title, &self.prompt].into_iter().flatten().any(|said| said.to_lowercase().contains(&text))
    }
}

/// What is known of a session, and whether the text that is looked for was said in it.
type Looked = Result<(Known, Option<bool>)>;

/// Looks into each session, as far as the cache does not tell; by as many threads as there are cores.
fn look(found: &[(&'static dyn Agent, Found)], cache: &Cache, deep: bool, text: Option<&str>) -> Vec<Looked> {
    let text = text.filter(|_| deep).map(str::to_lowercase);
    let next = AtomicUsize::new(0);
    let results: Vec<Mutex<Option<Looked>>> = found.iter().map(|_| Mutex::new(None)).collect();
    let work = || {
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let (Some((agent, one)), Some(slot)) = (found.get(at), results.get(at)) else { return };
            let looked = into(*agent, one, cache, deep, text.as_deref());
            if let Ok(mut slot) = slot.lock() {
                *slot = Some(looked);
            }
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(found.len());
    std::thread::scope(|scope| {
        for _ in 1..threads {
            scope.spawn(work);
        }
        work();
    });
    let lost = || Err(Error::failed("a thread that looked into sessions has died"));
    results.into_iter().map(|slot| slot.into_inner().ok().flatten().unwrap_or_else(lost)).collect()
}

/// Looks into one session.
fn into(agent: &dyn Agent, found: &Found, cache: &Cache, deep: bool, text: Option<&str>) -> Looked {
    let known = cache.known.get(&found.path).filter(|known| known.is_of(found)).cloned();
    let mut known = match known {
        Some(known) => known,
        None => {
            let peek = agent.store().peek(found)?;
            Known {
                path: found.path.clone(),
                bytes: found.bytes,
                changed: changed(found),
                project: peek.started_in,
                title: peek.title,
                prompt: peek.prompt,
                headless: peek.headless,
                subagent: peek.subagent,
                empty: !peek.conversation,
                turns: None,
                tokens: None,
            }
        }
    };
    let mut said = None;
    if deep && (known.turns.is_none() || text.is_some()) {
        let mut counted = Counted { text, said: false, turns: 0, tokens: None, tape: Tape::new() };
        let options =
            ReadOptions { history: History::Active, lean: true, strict: false, place: found.place.clone() };
        agent.read(&Native::open(&found.path)?, &options, &mut counted)?;
        (known.turns, known.tokens) = (Some(counted.turns), counted.tokens);
        said = text.map(|_| counted.said);
    }
    Ok((known, said))
}

/// Counts what a session says.
struct Counted<'t> {
    /// What is looked for, in lower case.
    text: Option<&'t str>,
    said: bool,
    turns: u64,
    tokens: Option<u64>,
    tape: Tape,
}

impl Sink for Counted<'_> {
    fn put(&mut self, line: &[u8]) -> Result<()> {
        let record = Record::new(line, &mut self.tape)?;
        let head = record.head();
        match head.kind {
            Kind::Session => {
                let session: Session = record.decode()?;
                self.tokens = session.context.and_then(|context| context.used_tokens);
            }
            Kind::Message => {
                self.turns = self.turns.max(head.turn.filter(|_| head.is_prompt()).unwrap_or(0));
                if let Some(text) = self.text.filter(|_| !self.said) {
                    self.said = String::from_utf8_lossy(line).to_lowercase().contains(text);
                }
            }
            _ => {}
        }
        Ok(())
    }
}

/// What earlier runs have learned.
#[derive(Debug, Default)]
struct Cache {
    known: HashMap<PathBuf, Known>,
    grown: bool,
}

impl Cache {
    fn file(world: &World) -> Option<PathBuf> {
        let base = world.variable("XDG_CACHE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
        Some(base.or_else(|| Some(world.home()?.join(".cache")))?.join("relay/sessions.jsonl"))
    }

    /// A line that cannot be read is one that is not known.
    fn load(world: &World) -> Cache {
        let text = Cache::file(world).and_then(|file| std::fs::read(file).ok()).unwrap_or_default();
        let lines = text.split(|b| *b == b'\n').filter_map(|line| serde_json::from_slice::<Known>(line).ok());
        Cache { known: lines.map(|known| (known.path.clone(), known)).collect(), grown: false }
    }

    fn learn(&mut self, known: &Known) {
        if self.known.get(&known.path) != Some(known) {
            self.known.insert(known.path.clone(), known.clone());
            self.grown = true;
        }
    }

    /// Writes the file anew. A cache that cannot be kept is none the worse for those who list.
    fn keep(&self, world: &World) {
        let Some(file) = Cache::file(world).filter(|_| self.grown) else { return };
        let _ = self.write(&file);
    }

    fn write(&self, file: &Path) -> Result<()> {
        let mut lines = Vec::new();
        for known in self.known.values().filter(|known| known.path.exists()) {
            serde_json::to_writer(&mut lines, known).map_err(|e| Error::failed(e.to_string()))?;
            lines.push(b'\n');
        }
        let place = || file.display().to_string();
        let folder = file.parent().unwrap_or(Path::new("."));
        std::fs::create_dir_all(folder).map_err(Error::io(place()))?;
        let mut new = tempfile::NamedTempFile::new_in(folder).map_err(Error::io(place()))?;
        new.write_all(&lines).map_err(Error::io(place()))?;
        new.persist(file).map_err(|e| Error::io(place())(e.error))?;
        Ok(())
    }
}
