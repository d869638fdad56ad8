//! The agents whose sessions relay reads and writes.
//!
//! A new agent is one folder (`mod.rs locate.rs read.rs write.rs README.md testdata/`) and one line in
//! [`AGENTS`]; names, help, discovery and the shared tests follow from the table.

mod body;
pub mod claude;
pub mod codex;
mod content;
mod files;
mod handover;
mod image;
pub mod ledger;
mod note;
mod paths;
mod restore;
mod served;
mod shell;
mod speech;
mod tools;

pub use shell::quoted;
pub use speech::Speech;

use crate::calls::Tool;
use crate::record::{Error, Problem, Problems, Record, Result};
use crate::stream::{Native, Sink, World, nearest};
use crate::tokens::Family;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Every agent, in the order in which help names them.
pub static AGENTS: &[&dyn Agent] = &[&claude::Claude, &codex::Codex];

/// How the names of folders begin in which relay itself runs an agent (relay-summarize `--exec`); sessions
/// that began in one are never chosen unless they are named.
pub const OWN_FOLDER: &str = "relay-exec-";

/// The names of all agents, in the order in which help names them.
pub fn names() -> Vec<&'static str> {
    AGENTS.iter().map(|agent| agent.name()).collect()
}

/// The agent of this name.
///
/// # Errors
/// Names every agent when this one is none.
pub fn named(name: &str) -> Result<&'static dyn Agent> {
    AGENTS.iter().copied().find(|a| a.name() == name).ok_or_else(|| Error::Usage {
        what: format!("no agent is called {name:?}"),
        hint: Some(match nearest(name, names()) {
            Some(near) => format!("did you mean {near}?"),
            None => format!("agents: {}", names().join(", ")),
        }),
    })
}

/// The family of a model by its name, with or without a vendor in front (`openai/gpt-5`).
pub fn family_of(model: &str) -> Family {
    let name = model.rsplit('/').next().unwrap_or(model).to_ascii_lowercase();
    AGENTS.iter().find_map(|agent| agent.family_of(&name)).unwrap_or(Family::Unknown)
}

/// One coding agent: where its sessions are, how to read and how to write them.
pub trait Agent: Sync {
    /// Name on the command line and in `source_agent`.
    fn name(&self) -> &'static str;

    /// The program that resumes its sessions.
    fn program(&self) -> &'static str {
        self.name()
    }

    /// Name for people: `Claude Code`, `Codex CLI`.
    fn title(&self) -> &'static str;

    /// What the first bytes of a file (up to 64 KiB) say about whose session it is.
    fn detect(&self, head: &[u8]) -> Detected;

    /// Where this agent keeps its sessions.
    fn store(&self) -> &dyn Store;

    /// Reads one session and hands on its records, `session` to `end`. A session that cannot be read
    /// as a conversation at all still ends in an `end` with `failed`.
    fn read(&self, native: &Native, options: &ReadOptions, out: &mut dyn Sink) -> Result<()>;

    /// Begins a new session of this agent.
    fn writer<'w>(&self, options: &'w WriteOptions, world: &'w World) -> Result<Box<dyn Writer + 'w>>;

    /// Has the client list a written session at once, where that takes a step of its own.
    fn register(&self, written: &Written, options: &WriteOptions, world: &World) -> Result<()> {
        let _ = (written, options, world);
        Ok(())
    }

    /// What its client puts into the user's place.
    fn speech(&self) -> Speech {
        Speech::default()
    }

    /// Its tools that have a counterpart in other agents.
    fn tools(&self) -> &'static [Tool] {
        &[]
    }

    /// Whose tokens its usual model counts.
    fn family(&self) -> Family {
        Family::Unknown
    }

    /// The family of a model that this agent's vendor makes, by its lower-case name without a vendor in front.
    fn family_of(&self, model: &str) -> Option<Family> {
        let _ = model;
        None
    }

    /// Context window of the agent's usual model, in tokens, and what of it to leave free.
    fn window(&self) -> Window;
}

/// A context window, in tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// The whole window.
    pub tokens: u64,
    /// Left free for what the agent adds and for the next turns.
    pub reserved: u64,
}

/// What a file seems to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detected {
    /// A session of this agent.
    Yes,
    /// Nothing that this agent writes.
    No,
    /// A session of another agent in a similar envelope; its name for people.
    LookAlike(&'static str),
    /// A session of this agent in a form that relay does not read.
    Unread {
        /// What the file is.
        what: &'static str,
        /// What to do with it.
        hint: &'static str,
    },
}

/// Finds the sessions of one agent.
pub trait Store: Sync {
    /// The folders that may hold sessions, in order of preference: `root` (flag) alone when given, else
    /// the agent's environment variable, `configured` (configuration file), the usual place.
    fn places(&self, root: Option<&Path>, configured: Option<&Path>, world: &World) -> Vec<PathBuf>;

    /// The main sessions under one of the places: names and dates only, no session is opened. What cannot
    /// be listed (permissions, links that lead nowhere) is said in `problems`. A place that does not exist
    /// gives nothing.
    fn list(&self, place: &Path, problems: &mut Problems) -> Result<Vec<Found>>;

    /// Looks into a session just far enough to select it.
    fn peek(&self, found: &Found) -> Result<Peek>;

    /// Whether the agent itself would offer the session in `project`, an absolute path without links.
    fn belongs(&self, found: &Found, peek: &Peek, project: &Path) -> bool;

    /// Whether a text can be the beginning of a session id of this agent (never a path).
    fn is_id(&self, text: &str) -> bool;

    /// The session id that the name of a file tells, if it is named as the agent names its sessions.
    fn id_of(&self, path: &Path) -> Option<String>;

    /// The subagents of a session, each a file that [`Agent::read`] takes. What cannot be looked into is said
    /// in `problems`.
    fn subagents(&self, found: &Found, problems: &mut Problems) -> Result<Vec<PathBuf>>;
}

/// One session file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// The file.
    pub path: PathBuf,
    /// Session id as the file name tells it.
    pub id: String,
    /// Time of last change.
    pub updated: SystemTime,
    /// Bytes of the file.
    pub bytes: u64,
    /// Title, where the store keeps an index of them.
    pub title: Option<String>,
    /// The place in which it was found; `None` for a file that the user named.
    pub place: Option<PathBuf>,
}

/// What selects a session.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Peek {
    /// Directory in which the session began (the first one that its lines name).
    pub started_in: Option<PathBuf>,
    /// Directory in which the session ran (the last one that its lines name).
    pub working_directory: Option<PathBuf>,
    /// Title given by the user or the client.
    pub title: Option<String>,
    /// Whether it holds any prompt of a human, or an answer.
    pub conversation: bool,
    /// The beginning of the first prompt, as the human typed it, on one line.
    pub prompt: Option<String>,
    /// Whether it was made by a run without a terminal, which the client's own list leaves out.
    pub headless: bool,
    /// Whether it is a subagent's.
    pub subagent: bool,
}

/// Which history a reader hands on as live; see FORMAT.md.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum History {
    /// What the client sends, and what it loses by a defect of its own.
    #[default]
    Active,
    /// What the client sends and nothing else.
    Exact,
    /// Everything that was compacted away is live again.
    Full,
}

impl std::str::FromStr for History {
    type Err = Error;

    fn from_str(name: &str) -> Result<History> {
        match name {
            "active" => Ok(History::Active),
            "exact" => Ok(History::Exact),
            "full" => Ok(History::Full),
            _ => Err(Error::Usage { what: format!("no history is called {name:?}"), hint: None }),
        }
    }
}

/// How to read.
#[derive(Debug, Clone, Default)]
pub struct ReadOptions {
    /// Which history is live.
    pub history: History,
    /// The live conversation only: no dropped records, no `native`, no `extra`.
    pub lean: bool,
    /// The first bad line fails the session instead of being skipped, a last line that is cut, too.
    pub strict: bool,
    /// Folder of the store in which the session was found, for files it refers to.
    pub place: Option<PathBuf>,
}

/// How to write.
#[derive(Debug, Clone)]
pub struct WriteOptions {
    /// Home of the target's store instead of the usual one (`CODEX_HOME`, `CLAUDE_CONFIG_DIR`), or the folder of
    /// sessions in it.
    pub root: Option<PathBuf>,
    /// What the configuration names as the place of the target's sessions. The target's own variable goes before it.
    pub configured: Option<PathBuf>,
    /// Directory of the new session instead of the source's.
    pub project: Option<PathBuf>,
    /// Pairs of folders, another machine's (see [`crate::record::path`]) and this one's.
    pub map_path: Vec<(String, PathBuf)>,
    /// Title instead of the source's.
    pub title: Option<String>,
    /// Text turns only.
    pub dialogue_only: bool,
    /// Begin with a relay note.
    pub note: bool,
    /// Leave tool names as the source has them.
    pub keep_tool_names: bool,
    /// Do everything but the writing.
    pub dry_run: bool,
    /// Write the native bytes here instead of into the target's store; `-` is standard output.
    pub output: Option<PathBuf>,
    /// The original file under its own id, from a full stream.
    pub restore: bool,
    /// Have the target list the session at once, where that takes a step of its own.
    pub register: bool,
}

impl Default for WriteOptions {
    fn default() -> Self {
        WriteOptions {
            root: None,
            configured: None,
            project: None,
            map_path: Vec::new(),
            title: None,
            dialogue_only: false,
            note: true,
            keep_tool_names: false,
            dry_run: false,
            output: None,
            restore: false,
            register: false,
        }
    }
}

/// Writes one session. Records come paired: every live call has its result right behind its group.
pub trait Writer {
    /// Takes the next record; the first is `session`, the last `end`.
    fn record(&mut self, record: &Record<'_>) -> Result<()>;

    /// Puts the session in its place, whole or not at all. A writer that is dropped before leaves nothing.
    ///
    /// # Errors
    /// "nothing to hand over" (exit 3) when no live conversation came.
    fn finish(self: Box<Self>) -> Result<Written>;
}

/// The session that is handed over.
#[derive(Debug, Clone, Default, serde::Serialize)]
pub struct Source {
    /// Its agent.
    pub agent: String,
    /// Its id.
    pub session_id: String,
    /// Its file, where the stream names it.
    pub path: Option<String>,
}

/// What was written.
#[derive(Debug, Clone, serde::Serialize)]
pub struct Written {
    /// Target agent.
    pub agent: String,
    /// The session it was.
    pub source: Source,
    /// Nothing was written.
    pub dry_run: bool,
    /// Id of the new session.
    pub session_id: String,
    /// Id of this relay.
    pub relay_id: String,
    /// The new file; with a dry run, where it would be.
    pub path: PathBuf,
    /// Directory in which to resume.
    pub directory: PathBuf,
    /// Shell command that resumes the session, POSIX-quoted.
    pub resume: String,
    /// Messages written.
    pub messages: u64,
    /// Their size in tokens, estimated.
    pub tokens: u64,
    /// Messages of the stream that are not live and so were not written.
    pub dropped: u64,
    /// Every oddity of the source and of the writing.
    pub problems: Vec<Problem>,
    /// What could not be carried, in words.
    pub losses: Vec<String>,
}
