//! relay-read: sessions of agents become a stream.

use super::select::{self, Chosen, From, Wanted, Whose};
use super::via::{Signed, unread};
use crate::agents::{self, Agent, Detected, Found, ReadOptions};
use crate::record::{End, Problems, Via};
use crate::stream::{Error, Native, Report, Result, Sink, World};
use serde::Deserialize;
use std::path::Path;

/// Bytes of a file by which it is recognised.
const HEAD: u64 = 64 << 10;

/// What to read and how.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Name of the agent, or `auto`.
    pub agent: String,
    /// Which sessions.
    pub wanted: Wanted,
    /// How to read each.
    pub read: ReadOptions,
    /// Each session is followed by its subagents.
    pub subagents: bool,
    /// What to note in the sessions.
    pub via: Option<Via>,
}

/// Writes the wanted sessions as a stream. Gives whether all could be read: one of several that cannot be
/// read ends with `failed`, and the others follow.
///
/// # Errors
/// Nothing is found, the only session cannot be read, or the output cannot be written.
pub fn run(options: &Options, world: &World, out: &mut dyn Sink, report: &mut dyn Report) -> Result<bool> {
    let agents = match options.agent.as_str() {
        "auto" => agents::AGENTS.to_vec(),
        name => vec![agents::named(name)?],
    };
    read(&agents, options, world, out, report)
}

fn read(
    agents: &[&'static dyn Agent],
    options: &Options,
    world: &World,
    out: &mut dyn Sink,
    report: &mut dyn Report,
) -> Result<bool> {
    let chosen = select::select(agents, &options.wanted, world, report)?;
    let alone = chosen.len() == 1 && !options.subagents;
    let mut stage = Reading {
        options,
        watch: Watch {
            out: Signed::new(out, options.via.clone()),
            session: None,
            end: None,
            broken: false,
            records: 0,
        },
        report,
        whole: true,
        alone,
    };
    for session in &chosen {
        stage.session(session)?;
    }
    Ok(stage.whole)
}

struct Reading<'r> {
    options: &'r Options,
    watch: Watch<'r>,
    report: &'r mut dyn Report,
    whole: bool,
    /// There is one session only: if it fails, everything does.
    alone: bool,
}

impl Reading<'_> {
    fn session(&mut self, chosen: &Chosen) -> Result<()> {
        let (found, native) = match &chosen.from {
            From::Stdin => (None, Native::stdin()),
            From::File(found) => (Some(found), Native::open(&found.path)),
        };
        let agent = match &native {
            Ok(native) => whose(chosen.agent, native),
            Err(_) => Ok(claim(chosen.agent)),
        };
        let known = agent.as_ref().ok().copied().flatten();
        let opened = native.and_then(|native| Ok((native, agent?)));
        self.file(known, found, opened)?;
        let (Some(agent), Some(found), true) = (known, found, self.options.subagents) else { return Ok(()) };
        let mut problems = Problems::default();
        let subagents = agent.store().subagents(found, &mut problems)?;
        for problem in problems.iter().flat_map(|p| &p.first) {
            self.whole = false;
            self.report.fail(&Error::failed(format!("skipped: {}", problem.note)));
        }
        for path in subagents {
            let id = agent.store().id_of(&path).unwrap_or_default();
            let opened = Native::open(&path).map(|native| (native, Some(agent)));
            let below = Found { path, id, title: None, ..found.clone() };
            self.file(Some(agent), Some(&below), opened)?;
        }
        Ok(())
    }

    /// Reads one file, or says in the stream why it cannot be read.
    fn file(
        &mut self,
        agent: Option<&'static dyn Agent>,
        found: Option<&Found>,
        opened: Result<(Native, Option<&'static dyn Agent>)>,
    ) -> Result<()> {
        self.watch.session = None;
        self.watch.end = None;
        let name = agent.map_or("unknown", |agent| agent.name());
        let result = opened.and_then(|(native, agent)| {
            let agent = agent.ok_or_else(|| Error::failed("a session of no agent"))?;
            let read =
                ReadOptions { place: found.and_then(|f| f.place.clone()), ..self.options.read.clone() };
            let mut watched = Watched { watch: &mut self.watch, report: self.report };
            agent.read(&native, &read, &mut watched)
        });
        if let Err(e) = result {
            if self.watch.broken || self.alone {
                return Err(e);
            }
            self.failed(name, found, &e)?;
            self.report.fail(&e);
            self.whole = false;
            return Ok(());
        }
        self.finished(name, found);
        Ok(())
    }

    /// Ends a session that broke off, or stands in for one that never began.
    fn failed(&mut self, agent: &str, found: Option<&Found>, error: &Error) -> Result<()> {
        let id = match &self.watch.session {
            Some(begun) => begun.session_id.clone(),
            None => {
                let path = found.map(|f| f.path.as_path());
                let id = match (found.map(|f| f.id.as_str()), path.and_then(Path::file_stem)) {
                    (Some(id), _) if !id.is_empty() => id.to_owned(),
                    (_, Some(stem)) => stem.to_string_lossy().into_owned(),
                    _ => "unknown".to_owned(),
                };
                self.watch.put(&unread(&id, agent, path)?)?;
                id
            }
        };
        if self.watch.end.is_some() {
            return Ok(());
        }
        let end = End { session_id: Some(id), failed: Some(error.to_string()), ..End::default() };
        self.watch.put(&end.to_line().map_err(|e| Error::shape(e.to_string()))?)
    }

    /// Tells what came of a session.
    fn finished(&mut self, agent: &str, found: Option<&Found>) {
        let (Some(begun), Some(end)) = (&self.watch.session, &self.watch.end) else { return };
        if let Some(reason) = &end.failed {
            self.whole = false;
            let place = found.map_or_else(|| "stdin".to_owned(), |f| f.path.display().to_string());
            self.report.fail(&Error::input(place, reason.clone()));
            return;
        }
        let mut line = format!("{agent} {}", begun.session_id);
        if let Some(title) = begun.title.as_ref().or(found.and_then(|f| f.title.as_ref())) {
            line.push_str(&format!(" {title:?}"));
        }
        line.push_str(&format!(
            ": {} messages, {} live",
            end.messages.unwrap_or_default(),
            end.live.unwrap_or_default()
        ));
        for problem in &end.problems {
            line.push_str(&format!(", {} {}", problem.count, problem.kind));
        }
        self.report.say(&line);
    }
}

/// The agent that the user or the store names.
fn claim(agent: Whose) -> Option<&'static dyn Agent> {
    match agent {
        Whose::Stored(agent) | Whose::Claimed(agent) => Some(agent),
        Whose::Unknown => None,
    }
}

/// The agent whose session this is, by its content.
fn whose(said: Whose, native: &Native) -> Result<Option<&'static dyn Agent>> {
    let claimed = match said {
        Whose::Stored(agent) => return Ok(Some(agent)),
        Whose::Claimed(agent) => Some(agent),
        Whose::Unknown => None,
    };
    let head = native.head(HEAD)?;
    if head.starts_with(b"{\"type\":\"session\",\"relay\":") {
        return Err(Error::input(native.name(), "is a relay stream already")
            .with_hint("pass it to the next command: relay-write codex < FILE"));
    }
    let mut alike = None;
    let mut owner = None;
    for agent in agents::AGENTS {
        match agent.detect(&head) {
            Detected::Yes => owner = owner.or(Some(*agent)),
            Detected::LookAlike(other) => alike = alike.or(Some((*agent, other))),
            Detected::No => {}
        }
    }
    if let Some(agent) = claimed.filter(|agent| agent.detect(&head) == Detected::Yes) {
        return Ok(Some(agent));
    }
    if let (None, Some((agent, other))) = (owner, alike) {
        return Err(Error::input(
            native.name(),
            format!("not a {} session (looks like {other})", agent.title()),
        ));
    }
    match (claimed, owner) {
        (None, Some(owner)) => Ok(Some(owner)),
        (None, None) => Err(Error::input(native.name(), "no session of an agent that relay knows")
            .with_hint(format!("to read it anyway, name its agent: {}", agents::names().join(", ")))),
        (Some(claimed), Some(owner)) => Err(Error::input(
            native.name(),
            format!("a session of {}, not of {}", owner.title(), claimed.title()),
        )
        .with_hint(format!("relay-read {}", owner.name()))),
        // whatever it is, its reader says what is wrong with it
        (Some(claimed), None) => Ok(Some(claimed)),
    }
}

/// Looks at the records that pass.
struct Watch<'w> {
    out: Signed<'w>,
    session: Option<Begun>,
    end: Option<End>,
    /// The output failed, not the source.
    broken: bool,
    records: u64,
}

/// What a session's first record tells.
#[derive(Deserialize)]
struct Begun {
    session_id: String,
    #[serde(default)]
    title: Option<String>,
}

impl Watch<'_> {
    fn put(&mut self, line: &[u8]) -> Result<()> {
        let wrong = |e: serde_json::Error| Error::shape(e.to_string());
        self.records += 1;
        if line.starts_with(b"{\"type\":\"session\"") {
            self.session = Some(serde_json::from_slice(line).map_err(wrong)?);
        } else if line.starts_with(b"{\"type\":\"end\"") {
            self.end = Some(serde_json::from_slice(line).map_err(wrong)?);
        }
        let done = self.out.put(line);
        self.broken |= done.is_err();
        done
    }
}

/// The same, with the progress told.
struct Watched<'a, 'w> {
    watch: &'a mut Watch<'w>,
    report: &'a mut dyn Report,
}

impl Sink for Watched<'_, '_> {
    fn put(&mut self, line: &[u8]) -> Result<()> {
        self.watch.put(line)?;
        self.report.passed(self.watch.records);
        Ok(())
    }
}
