//! What every writer does alike: it counts what is left out, settles where the session goes, and tells the
//! next model of the handover.

use super::body::{TakenOut, Target};
use super::content::Part;
use super::note::{self, Most, Note};
use super::{Source, WriteOptions, Written, paths, shell};
use crate::json::{Tape, Value, without_lone_surrogates, write_escaped};
use crate::record::{
    End, Error, Harness, Kind, Lineage, Origin, Problems, Record, Result, Role, Session, problem,
};
use crate::stream::{World, look, refuse_existing};
use crate::tokens::Family;
use jiff::Timestamp;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Whose session is written.
#[derive(Debug, Clone, Copy)]
pub(in crate::agents) struct To {
    /// Its name in the table of agents.
    pub(in crate::agents) agent: &'static str,
    /// Its name for people.
    pub(in crate::agents) title: &'static str,
    /// Whose tokens its window counts.
    pub(in crate::agents) family: Family,
    /// The variable that names its home.
    pub(in crate::agents) home: &'static str,
    /// The usual name of that home in the user's.
    pub(in crate::agents) usual: &'static str,
    /// The folder of sessions in it.
    pub(in crate::agents) sessions: &'static str,
    /// The command that resumes a session, without the id.
    pub(in crate::agents) resume: &'static str,
}

impl To {
    /// The home of the agent's store: `--root`, else the agent's own variable, else the configuration, else the
    /// usual place; readers look in the same order.
    ///
    /// # Errors
    /// Nothing says where it is.
    pub(in crate::agents) fn home(self, options: &WriteOptions, world: &World) -> Result<PathBuf> {
        if let Some(root) = &options.root {
            return Ok(home_of(world.resolve(root), self.sessions));
        }
        if let Some(home) = world.variable(self.home) {
            return Ok(world.resolve(Path::new(home)));
        }
        if let Some(configured) = &options.configured {
            return Ok(home_of(configured.clone(), self.sessions));
        }
        world.home().map(|home| home.join(self.usual)).ok_or_else(|| Error::Failed {
            what: format!("neither {} nor HOME is set", self.home),
            hint: Some(format!("name the home of {} with --root DIR", self.title)),
        })
    }

    /// The same where the client has to be told, which does not know relay's options and configuration.
    pub(in crate::agents) fn told_home(
        self,
        options: &WriteOptions,
        world: &World,
    ) -> Result<Option<PathBuf>> {
        let known = options.configured.is_none() || world.variable(self.home).is_some();
        match options.root.is_none() && known {
            true => Ok(None),
            false => self.home(options, world).map(Some),
        }
    }
}

/// The home in which the folder of sessions is, where that is named instead.
pub(in crate::agents) fn home_of(named: PathBuf, sessions: &str) -> PathBuf {
    match (named.ends_with(sessions), named.parent()) {
        (true, Some(home)) => home.to_owned(),
        _ => named,
    }
}

/// What a writer gathers while records come.
#[derive(Debug)]
pub(in crate::agents) struct Handover<'w> {
    pub(in crate::agents) options: &'w WriteOptions,
    pub(in crate::agents) world: &'w World,
    to: To,
    pub(in crate::agents) begun: Option<Begun>,
    end: Option<End>,
    /// Whether anything but harness text was written.
    pub(in crate::agents) conversation: bool,
    pub(in crate::agents) messages: u64,
    pub(in crate::agents) tokens: u64,
    dropped: BTreeMap<String, u64>,
    lost: BTreeMap<Lost, u64>,
    pub(in crate::agents) problems: Problems,
    /// Texts of relay's own leading summary, escaped.
    pub(in crate::agents) summary: Vec<Vec<u8>>,
    strategy: BTreeSet<&'static str>,
}

/// What is settled when the session begins.
#[derive(Debug)]
pub(in crate::agents) struct Begun {
    pub(in crate::agents) session: Session,
    pub(in crate::agents) project: PathBuf,
    pub(in crate::agents) directory: String,
    pub(in crate::agents) id: String,
    pub(in crate::agents) relay_id: String,
    pub(in crate::agents) now: Timestamp,
    pub(in crate::agents) target: Target,
    resume: String,
}

/// What a record asks of the writer.
pub(in crate::agents) enum Step {
    /// Begin with this session.
    Begin(Box<Session>),
    /// Write this message of the live conversation.
    Live(Role),
    /// Nothing.
    Pass,
}

/// What the written session says of where it comes from.
#[derive(Debug, serde::Serialize)]
pub(in crate::agents) struct Provenance<'a> {
    relay_id: &'a str,
    source: Origins<'a>,
    lineage: Vec<Lineage>,
}

#[derive(Debug, serde::Serialize)]
struct Origins<'a> {
    agent: &'a str,
    session_id: &'a str,
    path: Option<&'a str>,
}

impl<'w> Handover<'w> {
    pub(in crate::agents) fn new(to: To, options: &'w WriteOptions, world: &'w World) -> Handover<'w> {
        Handover {
            options,
            world,
            to,
            begun: None,
            end: None,
            conversation: false,
            messages: 0,
            tokens: 0,
            dropped: BTreeMap::new(),
            lost: BTreeMap::new(),
            problems: Problems::default(),
            summary: Vec::new(),
            strategy: BTreeSet::new(),
        }
    }

    /// Counts a record, and says what is to be done with it. The table of harness texts is that of the
    /// stream's reference.
    ///
    /// # Errors
    /// The session could not be read.
    pub(in crate::agents) fn step(&mut self, record: &Record<'_>) -> Result<Step> {
        let head = record.head();
        match head.kind {
            Kind::Session => return Ok(Step::Begin(Box::new(record.decode()?))),
            Kind::Message => {
                if let Some(reason) = head.dropped {
                    let reason = reason.decode();
                    if matches!(&*reason, "trimmed" | "condensed") {
                        self.strategy.insert("trimmed");
                    }
                    *self.dropped.entry(reason.into_owned()).or_default() += 1;
                    return Ok(Step::Pass);
                }
            }
            Kind::End => {
                let end: End = record.decode()?;
                // without the file before it a file has half a history, but all of its own lines
                let own = self.options.restore
                    && end.problems.iter().any(|p| p.kind == problem::MISSING_BASE && p.count > 0);
                if let Some(why) = end.failed.as_ref().filter(|_| !own) {
                    let id = self.begun.as_ref().map_or("", |b| &b.session.session_id);
                    return Err(Error::input(format!("session {id}"), format!("could not be read: {why}")));
                }
                self.end = Some(end);
                return Ok(Step::Pass);
            }
            Kind::Native | Kind::Abort | Kind::Unknown => return Ok(Step::Pass),
        }
        let Some(role) = head.role else { return Ok(Step::Pass) };
        if role == Role::Reasoning {
            self.lose(Lost::Reasoning, 1);
        } else if head.origin == Some(Origin::Harness)
            && matches!(head.harness, Some(Harness::Environment) | None)
        {
            self.lose(Lost::Environment, 1);
        } else if head.origin == Some(Origin::Relay) && role == Role::User && !head.synthetic {
            // the note of an earlier relay: the new one says what it said
        } else if self.options.dialogue_only && matches!(role, Role::ToolCall | Role::ToolResult) {
            self.lose(Lost::Tools, 1);
        } else {
            return Ok(Step::Live(role));
        }
        Ok(Step::Pass)
    }

    /// Settles where the new session goes on and where its file is to be; `file` tells the place in the
    /// agent's store.
    pub(in crate::agents) fn begin(
        &mut self,
        session: Session,
        id: String,
        file: impl FnOnce(&str, Timestamp) -> Result<PathBuf>,
    ) -> Result<&Begun> {
        let (options, world) = (self.options, self.world);
        let project = paths::project(&session, options, world)?;
        let directory = note::utf8(&project)?.to_owned();
        let now = world.now();
        let target = match &options.output {
            Some(to) if to.as_os_str() == "-" => Target::Stdout,
            Some(to) => {
                let to = world.resolve(to);
                refuse_existing(&to)?;
                Target::File(to)
            }
            None => Target::Store(file(&directory, now)?),
        };
        if let (true, Target::Store(file) | Target::File(file)) = (options.dry_run, &target) {
            look(file)?;
        }
        let resume = match target {
            Target::Store(_) => self.resume(&directory, &id)?,
            // what lies elsewhere is not found by its id
            _ => String::new(),
        };
        let relay_id = note::relay_id(world);
        let begun = Begun { session, project, directory, id, relay_id, now, target, resume };
        Ok(self.begun.insert(begun))
    }

    /// Begins a session that gets its own file again, where the client knows it as `id`; `directory` is where it
    /// is resumed.
    pub(in crate::agents) fn again(
        &self,
        session: Session,
        id: String,
        target: Target,
        directory: Option<PathBuf>,
    ) -> Result<Begun> {
        // what lies elsewhere is not found by its id
        let id = if matches!(target, Target::Store(_)) { id } else { session.session_id.clone() };
        let (project, directory, resume) = match directory {
            None => (PathBuf::new(), String::new(), String::new()),
            Some(project) => {
                let directory = note::utf8(&project)?.to_owned();
                let resume = self.resume(&directory, &id)?;
                (project, directory, resume)
            }
        };
        let relay_id = note::relay_id(self.world);
        Ok(Begun { session, project, directory, id, relay_id, now: self.world.now(), target, resume })
    }

    /// The shell command that resumes a session.
    pub(in crate::agents) fn resume(&self, directory: &str, id: &str) -> Result<String> {
        let mut command = String::new();
        if let Some(home) = self.to.told_home(self.options, self.world)? {
            command = format!("{}={} ", self.to.home, shell::quoted(note::utf8(&home)?)?);
        }
        shell::in_directory(directory, &format!("{command}{} {id}", self.to.resume))
    }

    pub(in crate::agents) fn lose(&mut self, what: Lost, n: u64) {
        if n > 0 {
            *self.lost.entry(what).or_default() += n;
        }
    }

    /// Counts what one request could not have of images and documents.
    pub(in crate::agents) fn lose_taken_out(&mut self, taken: &TakenOut) {
        self.lose(Lost::UnfitImages, taken.images);
        self.lose(Lost::Blocks, taken.documents);
    }

    /// Counts what is lost of the pieces of a message.
    pub(in crate::agents) fn lose_of(&mut self, content: &[Part<'_>]) {
        for part in content {
            if let Part::Made(_, Some(what)) = part {
                self.lose(*what, 1);
            }
        }
    }

    /// Whether the texts of relay's own summary are kept for the note's message; else they are to be
    /// written where they stand.
    pub(in crate::agents) fn keeps_summary(&mut self, texts: &[Part<'_>]) -> bool {
        self.strategy.insert("summarized");
        if self.conversation {
            return false;
        }
        self.summary.extend(texts.iter().map(|t| t.body().into_owned()));
        self.conversation |= !self.summary.is_empty();
        self.messages += 1;
        true
    }

    pub(in crate::agents) fn provenance<'b>(&self, begun: &'b Begun) -> Provenance<'b> {
        let strategy = match (self.options.dialogue_only, &self.strategy) {
            (true, _) => "dialogue",
            (_, s) if s.contains("summarized") => "summarized",
            (_, s) if s.contains("trimmed") => "trimmed",
            _ => "whole",
        };
        let s = &begun.session;
        let mut lineage = s.lineage.clone();
        lineage.push(Lineage {
            relay_id: begun.relay_id.clone(),
            from: s.source_agent.clone(),
            to: self.to.agent.to_owned(),
            at: rfc3339(begun.now),
            strategy: Some(strategy.to_owned()),
        });
        let source =
            Origins { agent: &s.source_agent, session_id: &s.session_id, path: s.source_path.as_deref() };
        Provenance { relay_id: &begun.relay_id, source, lineage }
    }

    /// The texts of the first message, escaped: the note, if there is one, and relay's own summary.
    pub(in crate::agents) fn opening(&self, begun: &Begun) -> Vec<(&'static str, Vec<u8>)> {
        let mut texts = Vec::new();
        if self.options.note {
            // the next model need not hear of what it gets anew, or finds named in its place
            let told = |what: &&Lost| {
                !matches!(
                    what,
                    Lost::Environment | Lost::Moved | Lost::UnfitImages | Lost::Ciphers | Lost::Blocks
                )
            };
            let told = self.lost.iter().filter(|(what, _)| told(what)).map(|(what, n)| what.words(*n));
            // of the two the one that knows what had to be kept
            let last = self.end.as_ref().and_then(|end| end.budget.as_ref());
            let budget = last.or(begun.session.budget.as_ref());
            let note = Note {
                relay_id: &begun.relay_id,
                session: &begun.session,
                target: self.to.title,
                now: begun.now,
                project: &begun.project,
                options: self.options,
                dropped: &self.dropped,
                losses: &told.collect::<Vec<_>>(),
                summary: !self.summary.is_empty(),
                most: budget.map(|budget| Most { tokens: budget.note_reserve, family: self.to.family }),
            };
            let mut text = Vec::new();
            write_escaped(&mut text, &note.text());
            if !text.is_empty() {
                texts.push(("note", text));
            }
        }
        texts.extend(self.summary.iter().map(|text| ("summary", text.clone())));
        texts
    }

    /// What is settled once every record has come.
    ///
    /// # Errors
    /// No live conversation came, or the session is not whole.
    pub(in crate::agents) fn settled(&mut self) -> Result<Begun> {
        let (Some(begun), Some(_)) = (self.begun.take(), &self.end) else {
            return Err(Error::input("stream", "the session is not whole"));
        };
        if !self.conversation {
            let place = format!("session {}", begun.session.session_id);
            return Err(Error::input(place, "nothing to hand over: it has no live conversation"));
        }
        Ok(begun)
    }

    /// What is told of the work.
    pub(in crate::agents) fn written(self, begun: Begun) -> Written {
        let mut problems = self.problems;
        problems.merge(self.end.unwrap_or_default().problems);
        Written {
            agent: self.to.agent.to_owned(),
            source: Source {
                agent: begun.session.source_agent,
                session_id: begun.session.session_id,
                path: begun.session.source_path,
            },
            dry_run: self.options.dry_run,
            session_id: begun.id,
            relay_id: begun.relay_id,
            path: begun.target.path().to_owned(),
            directory: begun.project,
            resume: begun.resume,
            messages: self.messages,
            tokens: self.tokens,
            dropped: self.dropped.values().sum(),
            problems: problems.into_vec(),
            losses: self.lost.iter().map(|(what, n)| what.words(*n)).collect(),
        }
    }
}

/// Scans a record that is to be written, without its `extra`, and hands it on free of lone surrogates, with
/// whether it had one: Codex loses a line that holds one (0.47 to 0.171), Claude Code replaces it (2.1.332).
pub(in crate::agents) fn scanned(
    record: &Record<'_>,
    tape: &mut Tape,
    take: impl FnOnce(Value<'_>, bool) -> Result<()>,
) -> Result<()> {
    let shape = |e: crate::json::Error| Error::shape(e.to_string());
    let value = tape.parse_opaque(record.line(), &["extra"]).map_err(shape)?;
    if !value.has_lone_surrogate() {
        return take(value, false);
    }
    let line = without_lone_surrogates(record.line());
    take(tape.parse_opaque(&line, &["extra"]).map_err(shape)?, true)
}

/// As the clients write times: UTC with milliseconds.
pub(in crate::agents) fn rfc3339(at: Timestamp) -> String {
    format!("{at:.3}")
}

/// What cannot be carried; the order is that of the report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::agents) enum Lost {
    Reasoning,
    Environment,
    Tools,
    Images,
    Moved,
    UnfitImages,
    Ciphers,
    Blocks,
}

impl Lost {
    /// For people, and for the note.
    pub(in crate::agents) fn words(self, n: u64) -> String {
        let (one, many) = match self {
            Lost::Reasoning => (
                "reasoning block (only its own model can use it)",
                "reasoning blocks (only their own model can use them)",
            ),
            Lost::Environment => {
                ("text of the source's own environment", "texts of the source's own environment")
            }
            Lost::Tools => ("tool call or result", "tool calls and results"),
            Lost::Images => ("image", "images"),
            Lost::Moved => (
                "image or document that the API does not take in its place, moved to a user message",
                "images or documents that the API does not take in their place, moved to user messages",
            ),
            Lost::UnfitImages => (
                "image that the target's API refuses, named by a text in its place",
                "images that the target's API refuses, named by texts in their place",
            ),
            Lost::Ciphers => (
                "encrypted part of a server tool's result (only its own server reads it)",
                "encrypted parts of server tools' results (only their own server reads them)",
            ),
            Lost::Blocks => (
                "document or other block, named by a text in its place",
                "documents or other blocks, named by texts in their place",
            ),
        };
        format!("{n} {}", if n == 1 { one } else { many })
    }
}
