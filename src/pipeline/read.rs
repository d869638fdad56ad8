//! relay-read: sessions of agents become a stream.

use super::select::{self, Chosen, From, Wanted, Whose};
use super::via::{Signed, unread};
use crate::agents::{self, Agent, Detected, Found, ReadOptions};
use crate::record::{End, Error, Problems, Result, Via};
use crate::stream::{Native, Report, Sink, World, counted};
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

impl Options {
    /// What to do with a stream that is not to be looked at.
    pub fn next(&self) -> String {
        let target = agents::names().into_iter().find(|name| *name != self.agent).unwrap_or("jsonl");
        format!(
            "the stream is for the next command: relay-read {} … | relay-write {target}; --stdout shows it here",
            self.agent
        )
    }
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
    let mut heard = Heard { report, failed: false };
    let chosen = select::select(agents, &options.wanted, world, &mut heard)?;
    // what could not be looked into may be one of all, where one alone has been found
    let whole = !(options.wanted.all && heard.failed);
    let alone = chosen.len() == 1 && !options.subagents;
    let mut stage = Reading {
        options,
        watch: Watch {
            out: Signed::new(out, options.via.as_ref()),
            session: None,
            end: None,
            broken: false,
            records: 0,
        },
        report,
        whole,
        alone,
    };
    for session in &chosen {
        stage.session(session)?;
    }
    Ok(stage.whole)
}

/// Notes whether anything failed.
struct Heard<'r> {
    report: &'r mut dyn Report,
    failed: bool,
}

impl Report for Heard<'_> {
    fn say(&mut self, line: &str) {
        self.report.say(line);
    }

    fn fail(&mut self, error: &Error) {
        self.failed = true;
        self.report.fail(error);
    }
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
            ": {}, {} live",
            counted(end.messages.unwrap_or_default(), "message"),
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
        return Err(Error::input(native.name(), "is a relay stream already").with_hint(format!(
            "pass it to the next command: relay-write {} < FILE",
            agents::names().join("|")
        )));
    }
    let mut alike = None;
    let mut unread = None;
    let mut owner = None;
    for agent in agents::AGENTS {
        match agent.detect(&head) {
            Detected::Yes => owner = owner.or(Some(*agent)),
            Detected::LookAlike(other) => alike = alike.or(Some((*agent, other))),
            Detected::Unread { what, hint } => unread = unread.or(Some((what, hint))),
            Detected::No => {}
        }
    }
    if let Some(agent) = claimed.filter(|agent| agent.detect(&head) == Detected::Yes) {
        return Ok(Some(agent));
    }
    if let (None, Some((what, hint))) = (owner, unread) {
        return Err(Error::input(native.name(), what).with_hint(hint));
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agents::{Peek, Store, Window, WriteOptions, Writer};
    use crate::stream::Gathered;
    use std::ffi::OsString;
    use std::path::PathBuf;

    /// An agent whose sessions are files of lines: `break` breaks the reading off, `refuse` refuses it.
    struct Fake;

    impl Store for Fake {
        fn places(&self, root: Option<&Path>, _: Option<&Path>, _: &World) -> Vec<PathBuf> {
            root.map(Path::to_owned).into_iter().collect()
        }
        fn list(&self, _: &Path, _: &mut Problems) -> Result<Vec<Found>> {
            Ok(Vec::new())
        }
        fn peek(&self, _: &Found) -> Result<Peek> {
            Ok(Peek::default())
        }
        fn belongs(&self, _: &Found, _: &Peek, _: &Path) -> bool {
            true
        }
        fn is_id(&self, _: &str) -> bool {
            false
        }
        fn id_of(&self, path: &Path) -> Option<String> {
            Some(path.file_stem()?.to_str()?.to_owned())
        }
        fn subagents(&self, found: &Found, problems: &mut Problems) -> Result<Vec<PathBuf>> {
            let child = found.path.with_extension("child");
            if !child.exists() {
                return Ok(Vec::new());
            }
            if found.id == "odd" {
                problems.add("unreadable", None, "x: permission denied");
            }
            Ok(vec![child])
        }
    }

    impl Agent for Fake {
        fn name(&self) -> &'static str {
            "fake"
        }
        fn title(&self) -> &'static str {
            "Fake"
        }
        fn detect(&self, _: &[u8]) -> Detected {
            Detected::No
        }
        fn store(&self) -> &dyn Store {
            &Fake
        }
        fn read(&self, native: &Native, _: &ReadOptions, out: &mut dyn Sink) -> Result<()> {
            let text = String::from_utf8(native.head(1 << 20)?).unwrap();
            let id = native.path().and_then(Path::file_stem).unwrap().to_str().unwrap();
            if text.contains("refuse") {
                return Err(Error::input(native.name(), "refused"));
            }
            out.put(
                format!(
                    r#"{{"type":"session","relay":1,"session_id":"{id}","source_agent":"fake","title":"T"}}"#
                )
                .as_bytes(),
            )?;
            for (n, line) in text.lines().enumerate() {
                if line == "break" {
                    return Err(Error::input(format!("{}:{}", native.name(), n + 1), "broken"));
                }
                out.put(format!(r#"{{"type":"message","role":"user","content":"{line}"}}"#).as_bytes())?;
            }
            let failed = if text.contains("fail") { r#","failed":"no base""# } else { "" };
            out.put(format!(r#"{{"type":"end","session_id":"{id}","messages":2,"live":1,"problems":[{{"kind":"nul","count":3}}]{failed}}}"#).as_bytes())
        }
        fn writer<'w>(&self, _: &'w WriteOptions, _: &'w World) -> Result<Box<dyn Writer + 'w>> {
            Err(Error::failed("not written"))
        }
        fn window(&self) -> Window {
            Window { tokens: 1, reserved: 0 }
        }
    }

    fn run(files: &[(&str, &str)], words: &[&str], subagents: bool) -> (Result<bool>, Vec<String>, Gathered) {
        let dir = tempfile::tempdir().unwrap();
        for (name, text) in files {
            std::fs::write(dir.path().join(name), text).unwrap();
        }
        let world = World::new(Default::default(), dir.path().to_owned()).unwrap();
        let sessions: Vec<OsString> = words.iter().map(|w| dir.path().join(w).into()).collect();
        let options = Options {
            wanted: Wanted { sessions, ..Wanted::default() },
            subagents,
            via: Some(Via { name: "relay-read".into(), version: "1".into(), options: vec![] }),
            ..Options::default()
        };
        let mut out = Vec::new();
        let mut heard = Gathered::default();
        let whole = read(&[&Fake], &options, &world, &mut out, &mut heard);
        let place = dir.path().display().to_string() + "/";
        let clean = |text: String| text.replace(&place, "");
        heard.failed = heard.failed.into_iter().map(clean).collect();
        (whole, out.into_iter().map(|l| clean(String::from_utf8(l).unwrap())).collect(), heard)
    }

    /// What stands in the stream: the id of each session, `+` for a message, `.` or `!` for an end.
    fn shape(lines: &[String]) -> String {
        lines
            .iter()
            .map(|line| {
                let v: serde_json::Value = serde_json::from_str(line).unwrap();
                match v["type"].as_str().unwrap() {
                    "session" => v["session_id"].as_str().unwrap().to_owned(),
                    "message" => "+".to_owned(),
                    "end" if v.get("failed").is_some() => "! ".to_owned(),
                    _ => ". ".to_owned(),
                }
            })
            .collect()
    }

    #[test]
    fn a_session_is_read_signed_and_told() {
        let (whole, lines, heard) = run(&[("a.x", "one\ntwo")], &["a.x"], false);
        assert!(whole.unwrap());
        assert_eq!(shape(&lines), "a++. ");
        assert!(
            lines[0].ends_with(r#""via":[{"name":"relay-read","version":"1","options":[]}]}"#),
            "{}",
            lines[0]
        );
        assert_eq!(heard.said, ["fake a \"T\": 2 messages, 1 live, 3 nul"]);
        assert!(heard.failed.is_empty());
    }

    #[test]
    fn one_of_several_that_fails_does_not_stop_the_others() {
        let files =
            [("a.x", "one"), ("b.x", "one\nbreak"), ("c.x", "refuse"), ("d.x", "fail"), ("e.x", "one")];
        let (whole, lines, heard) = run(&files, &["a.x", "b.x", "c.x", "d.x", "e.x"], false);
        assert!(!whole.unwrap());
        assert_eq!(shape(&lines), "a+. b+! c! d+! e+. ");
        assert_eq!(heard.failed, ["b.x:2: broken", "c.x: refused", "d.x: no base"]);
        assert_eq!(heard.said.len(), 2);
        // every record of it is in order
        let mut source = crate::stream::Source::new(std::io::Cursor::new(lines.join("\n")), "test");
        while source.next_record().unwrap().is_some() {}
        assert_eq!(source.sessions(), 5);
    }

    #[test]
    fn the_only_session_that_fails_fails_the_command() {
        let (whole, lines, _) = run(&[("b.x", "one\nbreak")], &["b.x"], false);
        assert_eq!(whole.unwrap_err().to_string().rsplit('/').next(), Some("b.x:2: broken"));
        // no made-up end: the command says in an `abort` why there is none
        assert_eq!(shape(&lines), "b+");
        let (whole, lines, heard) = run(&[("d.x", "fail")], &["d.x"], false);
        assert!(!whole.unwrap());
        assert_eq!((shape(&lines).as_str(), heard.failed.len()), ("d+! ", 1));
    }

    #[test]
    fn subagents_follow_their_parent() {
        let files = [("a.x", "one"), ("a.child", "two\nthree"), ("odd.x", "x"), ("odd.child", "break")];
        let (whole, lines, heard) = run(&files, &["a.x", "odd.x"], true);
        assert!(!whole.unwrap());
        assert_eq!(shape(&lines), "a+. a++. odd+. odd! ");
        assert_eq!(heard.failed, ["skipped: x: permission denied", "odd.child:1: broken"]);
    }

    #[test]
    fn a_closed_output_ends_everything() {
        struct Closed(usize);
        impl Sink for Closed {
            fn put(&mut self, _: &[u8]) -> Result<()> {
                self.0 += 1;
                Err(Error::Closed)
            }
        }
        let dir = tempfile::tempdir().unwrap();
        let world = World::new(Default::default(), dir.path().to_owned()).unwrap();
        let path = dir.path().join("a.x");
        std::fs::write(&path, "one").unwrap();
        let wanted = Wanted { sessions: vec![path.clone().into(), path.into()], ..Wanted::default() };
        let mut out = Closed(0);
        let options = Options { wanted, ..Options::default() };
        let end = read(&[&Fake], &options, &world, &mut out, &mut Gathered::default());
        assert!(matches!(end, Err(Error::Closed)) && out.0 == 1);
    }

    #[test]
    fn a_file_of_no_known_agent_is_refused_by_auto_only() {
        let native = |text: &str| Native::of_bytes(text.as_bytes(), None).unwrap();
        let error = |said: Whose, text: &str| whose(said, &native(text)).map(|_| ()).unwrap_err().to_string();
        assert!(error(Whose::Unknown, "hello").contains("no session of an agent"));
        assert!(
            error(Whose::Unknown, r#"{"type":"session","relay":1}"#).contains("is a relay stream already")
        );
        assert!(whose(Whose::Claimed(&Fake), &native("hello")).unwrap().is_some());
    }
}
