//! What relay-write does: every session of a stream becomes a new session of an agent, or the stream an
//! archive.

use super::filter::Through;
use super::trim::Configured;
use crate::agents::{self, Agent, WriteOptions, Writer, Written, named, quoted};
use crate::filters::Filter;
use crate::filters::pair::{self, Pair};
use crate::filters::trim;
use crate::formats::jsonl::Archive;
use crate::json::Tape;
use crate::record::{End, Error, Kind, Problem, Record, Result, Role, problem};
use crate::stream::{Input, Report, Sink, Source, World, counted, look};
use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

/// The target that is no agent: the stream itself.
pub const JSONL: &str = "jsonl";

/// How to write.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// An agent, or [`JSONL`].
    pub target: String,
    /// What is handed to the agent's writer.
    pub write: WriteOptions,
    /// Print a JSON object a session.
    pub json: bool,
    /// Become the target's client in the end.
    pub resume: bool,
    /// Refuse a session whose calls and results are not paired instead of repairing it.
    pub strict_pairs: bool,
    /// Trim to the target's window first.
    pub fit: bool,
    /// How many of the newest tool results that leaves whole, where the configuration says so.
    pub keep_tools: Option<u64>,
    /// The target's window, where the configuration says so.
    pub configured: Configured,
    /// The first prompt, for the command that resumes.
    pub prompt: Option<String>,
}

/// What goes to standard output.
#[derive(Debug, Clone, Copy)]
pub enum Piece<'a> {
    /// A line of text.
    Line(&'a str),
    /// A record of the stream.
    Record(&'a [u8]),
}

/// Writes every session of `input`; `name` stands for it in errors.
///
/// One session that cannot be written does not end the work: it is reported, and the last such error is
/// the result. What was written before stays and was printed.
///
/// # Errors
/// Input that is cut, damaged or aborted (nothing is written for the session that is not whole), a target
/// that cannot be written, a session without live conversation, one that is not paired where it must be, a
/// line that could not be printed (the error holds it: the session is there).
pub fn run(
    input: Input,
    name: &str,
    options: &Options,
    world: &World,
    emit: &mut dyn FnMut(Piece<'_>) -> Result<()>,
    report: &mut dyn Report,
) -> Result<()> {
    let source = Source::new(input, name);
    if options.target == JSONL {
        refuse_for_archive(options)?;
        return archive(source, name, options, world, emit, report);
    }
    into_agent(options, world, emit, report, |fit, sessions| match pass(source, fit, sessions)? {
        0 => Err(nothing(name)),
        _ => Ok(()),
    })
}

/// Writes every session that `feed` puts into its sink: [`run`] behind a reader or filter in the same process.
///
/// # Errors
/// As [`run`], and what `feed` says.
pub fn fed(
    options: &Options,
    world: &World,
    emit: &mut dyn FnMut(Piece<'_>) -> Result<()>,
    report: &mut dyn Report,
    feed: impl FnOnce(&mut dyn Sink) -> Result<()>,
) -> Result<()> {
    into_agent(options, world, emit, report, |fit, sessions| {
        let mut before = super::trim::before_writing(fit)?;
        let mut through = Through::new(&mut before, sessions);
        feed(&mut through)?;
        through.end()
    })
}

fn into_agent(
    options: &Options,
    world: &World,
    emit: &mut dyn FnMut(Piece<'_>) -> Result<()>,
    report: &mut dyn Report,
    pass: impl FnOnce(Option<&trim::Options>, &mut Sessions<'_, '_>) -> Result<()>,
) -> Result<()> {
    if options.json && options.write.output.as_deref().is_some_and(is_stdout) {
        return Err(both_want_stdout("--json and -o -"));
    }
    let agent = named(&options.target)?;
    let fit = match options.fit {
        true => {
            let usual = super::trim::target(&options.target, |_| options.configured)?;
            let keep_tools = options.keep_tools.unwrap_or(usual.keep_tools);
            Some(trim::Options { keep_tools, ..usual })
        }
        false => None,
    };
    if options.resume {
        can_become(agent, world)?;
    }
    let mut sessions = Sessions {
        agent,
        options,
        world,
        emit,
        report,
        tape: Tape::new(),
        records: 0,
        state: State::Between,
        session: String::new(),
        source: agents::Source::default(),
        unpaired: false,
        failed: None,
        written: None,
        count: 0,
    };
    let read = pass(fit.as_ref(), &mut sessions);
    let read = match (read, sessions.failed.take()) {
        (Err(e), Some(earlier)) => {
            sessions.report.fail(&earlier);
            Err(e)
        }
        (Ok(()), Some(failed)) => Err(failed),
        (read, None) => read,
    };
    if let (true, 1, Some(only)) = (options.resume, sessions.count, sessions.written.take()) {
        let failed = match read {
            Ok(()) => become_client(&only),
            Err(failed) => failed,
        };
        // the client does not take over, so the line that it stood for is wanted after all
        let Err(lost) = sessions.print(&only.resume) else { return Err(failed) };
        sessions.report.fail(&failed);
        return Err(lost);
    }
    read?;
    if options.resume && sessions.count > 1 {
        let what = format!("--resume is for one session: {} were written", sessions.count);
        return Err(Error::failed(what).with_hint("run the line of the one to go on with"));
    }
    Ok(())
}

fn is_stdout(output: &Path) -> bool {
    output.as_os_str() == "-"
}

fn both_want_stdout(which: &str) -> Error {
    let hint = Some("write to a file: -o FILE".to_owned());
    Error::Usage { what: format!("{which} both want stdout"), hint }
}

/// An archive is the stream as it came: what would change a session is refused, not passed over.
fn refuse_for_archive(options: &Options) -> Result<()> {
    let write = &options.write;
    let given = [
        ("--fit", options.fit, "trim the stream first: relay-trim --budget TOKENS"),
        ("--strict-pairs", options.strict_pairs, "look at the stream first: relay-pair --check"),
        ("--resume", options.resume, "only an agent's session can be resumed"),
        ("--register", write.register, ""),
        ("--restore", write.restore, ""),
        ("--project", write.project.is_some(), ""),
        ("--map-path", !write.map_path.is_empty(), ""),
        ("--title", write.title.is_some(), ""),
        ("--root", write.root.is_some(), "name the archive with -o FILE"),
        ("--dialogue-only", write.dialogue_only, ""),
        ("--no-note", !write.note, ""),
        ("--keep-tool-names", write.keep_tool_names, ""),
    ];
    if let Some((flag, _, hint)) = given.into_iter().find(|(_, given, _)| *given) {
        let hint = if hint.is_empty() { "give it when the archive is written for an agent" } else { hint };
        let what = format!("{flag} is for agents: an archive keeps the stream as it is");
        return Err(Error::Usage { what, hint: Some(hint.to_owned()) });
    }
    if options.json && !write.dry_run && write.output.as_deref().is_none_or(is_stdout) {
        return Err(both_want_stdout("--json and the archive"));
    }
    Ok(())
}

/// Hands every record on, paired; gives how many sessions there were.
fn pass(
    mut source: Source<Input>,
    fit: Option<&trim::Options>,
    sessions: &mut Sessions<'_, '_>,
) -> Result<u64> {
    // writers take paired records only, so that a pipe without relay-pair is safe
    let mut before = super::trim::before_writing(fit)?;
    // the very code of relay-pair --check, which hands nothing on, beside the one that repairs
    let check = pair::Options { check: true, ..pair::Options::default() };
    let mut check = sessions.options.strict_pairs.then(|| Pair::new(check));
    let mut records = 0;
    while let Some(record) = source.next_record()? {
        let checked = match &mut check {
            Some(check) => sessions.check(check, &record),
            None => Ok(()),
        };
        match checked.and_then(|()| before.record(&record, sessions)) {
            Ok(()) => {}
            Err(Error::Shape { what }) => return Err(Error::input(source.place(), what)),
            Err(other) => return Err(other),
        }
        records += 1;
        sessions.report.passed(records);
    }
    before.end(sessions)?;
    Ok(source.sessions())
}

/// No session came: whatever was to make one has failed without a word, such as a command that is not there.
fn nothing(name: &str) -> Error {
    let (from, to) = (agents::names().first().copied(), agents::names().last().copied());
    Error::input(name, "nothing came in: no session to write").with_hint(format!(
        "look at what the command before this one says; to try it: relay-read {} | relay-write {}",
        from.unwrap_or("AGENT"),
        to.unwrap_or("AGENT")
    ))
}

fn archive(
    mut source: Source<Input>,
    name: &str,
    options: &Options,
    world: &World,
    emit: &mut dyn FnMut(Piece<'_>) -> Result<()>,
    report: &mut dyn Report,
) -> Result<()> {
    let target = options.write.output.as_ref().filter(|o| !is_stdout(o)).map(|o| world.resolve(o));
    let to_stdout = target.is_none() && !options.write.dry_run;
    if let (Some(target), true) = (&target, options.write.dry_run) {
        look(target)?;
    }
    let mut archive = match &target {
        Some(target) if !options.write.dry_run => Archive::file(target)?,
        _ => Archive::nowhere(),
    };
    let mut records = 0;
    while let Some(record) = source.next_record()? {
        archive.record(&record)?;
        if to_stdout {
            emit(Piece::Record(record.line()))?;
        }
        records += 1;
        report.passed(records);
    }
    let written = archive.finish()?;
    if written.sessions == 0 {
        return Err(nothing(name));
    }
    let place = target.as_ref().map_or_else(|| "stdout".to_owned(), |t| t.display().to_string());
    if options.json && !to_stdout {
        let line = serde_json::json!({
            "agent": JSONL, "path": target, "sessions": written.sessions, "messages": written.messages,
        });
        emit(Piece::Line(&line.to_string()))?;
    }
    let dry = if options.write.dry_run { "dry run, nothing written: " } else { "" };
    let (sessions, messages) = (counted(written.sessions, "session"), counted(written.messages, "message"));
    report.say(&format!("{dry}{place}: {sessions}, {messages}"));
    Ok(())
}

/// Begins and ends a writer for each session that comes.
struct Sessions<'a, 'w> {
    agent: &'static dyn Agent,
    options: &'w Options,
    world: &'w World,
    emit: &'a mut dyn FnMut(Piece<'_>) -> Result<()>,
    report: &'a mut dyn Report,
    tape: Tape,
    records: u64,
    state: State<'w>,
    session: String,
    source: agents::Source,
    /// The session that comes to its end now has calls or results without the other half.
    unpaired: bool,
    /// The last failure, reported when the next one comes.
    failed: Option<Error>,
    /// The first session written; more are only counted.
    written: Option<Written>,
    count: u64,
}

enum State<'w> {
    Between,
    Writing(Box<dyn Writer + 'w>),
    /// The session could not begin; whether that matters shows when its conversation does.
    Doomed(Error),
    /// The session has failed; its records pass by.
    Skipping,
}

impl Sink for Sessions<'_, '_> {
    fn put(&mut self, line: &[u8]) -> Result<()> {
        self.records += 1;
        self.report.passed(self.records);
        let mut tape = std::mem::take(&mut self.tape);
        let before = self.count;
        let taken = match Record::new(line, &mut tape) {
            Ok(record) => self.record(&record),
            Err(e) => Err(e),
        };
        self.tape = tape;
        match taken {
            Ok(()) => Ok(()),
            // the machine's trouble ends the work, a session's only that session
            Err(e @ (Error::Io { .. } | Error::Closed | Error::Aborted(_) | Error::Usage { .. })) => Err(e),
            Err(e) => {
                let e = match e {
                    Error::Shape { what } => Error::input(format!("session {}", self.session), what),
                    other => other,
                };
                // one that was written, but not printed, has not failed
                let told = if self.count == before { self.tell_failure(&e) } else { Ok(()) };
                if let Some(earlier) = self.failed.replace(e) {
                    self.report.fail(&earlier);
                }
                told
            }
        }
    }
}

impl Sessions<'_, '_> {
    /// Looks for calls and results that are not paired, and says what is found once the session ends.
    fn check(&mut self, check: &mut Pair, record: &Record<'_>) -> Result<()> {
        check.record(record, &mut Vec::<Vec<u8>>::new())?;
        for finding in check.take_findings() {
            self.unpaired = true;
            for line in finding.lines() {
                self.report.fail(&Error::failed(line));
            }
        }
        Ok(())
    }

    fn record(&mut self, record: &Record<'_>) -> Result<()> {
        let kind = record.head().kind;
        // what was found stands before the `end`, wherever the filters held the records until then
        if kind == Kind::End && std::mem::take(&mut self.unpaired) {
            // the writer is dropped, and leaves nothing
            self.state = State::Between;
            let what = format!("session {}: calls and results are not paired: nothing written", self.session);
            return Err(Error::failed(what).with_hint("without --strict-pairs they are repaired"));
        }
        if kind == Kind::Session {
            let Name { session_id, source_agent, source_path } = record.decode()?;
            self.session.clone_from(&session_id);
            self.source = agents::Source { agent: source_agent, session_id, path: source_path };
            // in its place before anything can fail, so that a failure skips the whole session
            self.state = State::Skipping;
            if self.count > 0 && self.options.write.output.is_some() {
                let what = format!("session {}: -o holds one session, and that is written", self.session);
                return Err(
                    Error::failed(what).with_hint("leave out -o, or have relay-read name one session")
                );
            }
            self.state = State::Writing(self.agent.writer(&self.options.write, self.world)?);
        }
        match std::mem::replace(&mut self.state, State::Skipping) {
            State::Writing(mut writer) => {
                if let Err(e) = writer.record(record) {
                    if kind != Kind::Session || matches!(e, Error::Io { .. } | Error::Closed) {
                        return Err(e);
                    }
                    self.state = State::Doomed(e);
                    return Ok(());
                }
                if kind != Kind::End {
                    self.state = State::Writing(writer);
                    return Ok(());
                }
                self.state = State::Between;
                let mut written = writer.finish()?;
                if let Some(prompt) = &self.options.prompt {
                    written.resume.push_str(&format!(" -- {}", quoted(prompt)?));
                }
                let told = self.tell(&written);
                let registered = match self.options.write.register {
                    true => self.agent.register(&written, &self.options.write, self.world),
                    false => Ok(()),
                };
                self.count += 1;
                self.written.get_or_insert(written);
                match (told, registered) {
                    (Err(lost), Err(e)) => {
                        self.report.fail(&lost);
                        Err(e)
                    }
                    (told, registered) => told.and(registered),
                }
            }
            State::Doomed(e) => {
                // whatever else is in it, a file cannot be put back
                let head = record.head();
                if self.options.write.restore {
                    return Err(e);
                }
                if head.is_live() && head.origin.is_none() && head.role != Some(Role::System) {
                    return Err(e);
                }
                if kind != Kind::End {
                    self.state = State::Doomed(e);
                    return Ok(());
                }
                self.state = State::Between;
                // that it has no folder is nothing against a session of which nothing would be written
                let place = format!("session {}", self.session);
                Err(match record.decode::<End>()?.failed {
                    Some(why) => Error::input(place, format!("could not be read: {why}")),
                    None => Error::input(place, "nothing to hand over: it has no live conversation"),
                })
            }
            other => {
                self.state = if kind == Kind::End { State::Between } else { other };
                Ok(())
            }
        }
    }

    fn tell(&mut self, written: &Written) -> Result<()> {
        let options = self.options;
        for line in summary(self.agent, written, options) {
            self.report.say(&line);
        }
        let line = match options.json {
            true => serde_json::to_string(written).map_err(|e| Error::failed(e.to_string()))?,
            false => written.resume.clone(),
        };
        match &self.written {
            _ if line.is_empty() => return Ok(()),
            // the client may take its place
            None if options.resume => return Ok(()),
            Some(first) if options.resume && self.count == 1 => {
                let first = first.resume.clone();
                self.print(&first)?;
            }
            _ => {}
        }
        self.print(&line)
    }

    /// With `--json`, prints what became of a session that could not be written.
    fn tell_failure(&mut self, error: &Error) -> Result<()> {
        if !self.options.json {
            return Ok(());
        }
        let line = serde_json::json!({
            "agent": self.options.target, "source": self.source, "dry_run": self.options.write.dry_run,
            "failed": error.to_string(),
        });
        (self.emit)(Piece::Line(&line.to_string()))
    }

    /// Prints the line that leads to a session.
    fn print(&mut self, line: &str) -> Result<()> {
        // a comment, so that nobody runs it
        let marked = format!("# dry run: {line}");
        let line = if self.options.write.dry_run && !self.options.json { &marked } else { line };
        (self.emit)(Piece::Line(line)).map_err(|cause| match self.options.write.dry_run {
            true => cause,
            // the session is there, so the one line that leads to it must be somewhere, and the other
            // sessions are none the worse for it
            false => Error::failed(format!("written, but not printed ({cause}): {line}")),
        })
    }
}

#[derive(serde::Deserialize)]
struct Name {
    session_id: String,
    #[serde(default)]
    source_agent: String,
    #[serde(default)]
    source_path: Option<String>,
}

/// What people are told of a written session.
fn summary(agent: &dyn Agent, written: &Written, options: &Options) -> Vec<String> {
    let path = if is_stdout(&written.path) { Path::new("to stdout") } else { &written.path }.display();
    if options.write.restore {
        let done = if options.write.dry_run { "would restore" } else { "restored" };
        return vec![format!("{done} {path}: the original, {}", counted(written.messages, "message"))];
    }
    let done = if options.write.dry_run { "would write" } else { "wrote" };
    let mut lines = vec![format!(
        "{done} {path}: {}, about {}, for {} in {}",
        counted(written.messages, "message"),
        counted(written.tokens, "token"),
        agent.title(),
        written.directory.display()
    )];
    if written.dropped > 0 {
        lines.push(format!(
            "left out: {}, not part of the live conversation",
            counted(written.dropped, "message")
        ));
    }
    if !written.losses.is_empty() {
        lines.push(format!("not carried: {}", written.losses.join("; ")));
    }
    lines.extend(written.problems.iter().map(told));
    let window = options.configured.over(agent.window());
    if written.tokens > window.tokens.saturating_sub(window.reserved) {
        lines.push(format!(
            "warning: with {} tokens little or nothing of {}'s window of {} is left: trim first, with relay-trim --for {}",
            written.tokens,
            agent.title(),
            window.tokens,
            agent.name()
        ));
    }
    lines
}

fn told(found: &Problem) -> String {
    let mut line = format!("{}: {}", found.kind, found.count);
    if let Some(first) = found.first.first() {
        line.push_str(if found.count > 1 { ", first" } else { "" });
        if let Some(n) = first.line {
            line.push_str(&format!(" line {n}"));
        }
        if !first.note.is_empty() {
            line.push_str(&format!(" ({})", first.note));
        }
    }
    if found.kind == problem::RENAMED_ID {
        line.push_str(", on both sides of the pair");
    }
    line
}

/// The terminal, as the client's input.
fn terminal() -> Result<File> {
    let hint = "without --resume, the command that resumes the session is printed";
    File::open("/dev/tty").map_err(|e| {
        Error::failed(format!("--resume needs a terminal ({})", Error::io("/dev/tty")(e))).with_hint(hint)
    })
}

/// Whether [`become_client`] can work, asked while nothing is written yet.
fn can_become(agent: &dyn Agent, world: &World) -> Result<()> {
    terminal()?;
    let program = agent.program();
    if world.finds(program) {
        return Ok(());
    }
    let hint = "put it there, or leave out --resume: then the command that resumes the session is printed";
    Err(Error::failed(format!("--resume needs {program}, which is not on the PATH")).with_hint(hint))
}

/// Becomes the client, with the terminal as its input; comes back only when that cannot be done.
fn become_client(written: &Written) -> Error {
    let terminal = match terminal() {
        Ok(terminal) => terminal,
        Err(e) => return e,
    };
    let cause = Command::new("sh").arg("-c").arg(format!("{} ", written.resume)).stdin(terminal).exec();
    Error::io("sh")(cause)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream::Gathered;
    use std::collections::BTreeMap;
    use std::path::{Path, PathBuf};

    struct Run {
        result: Result<()>,
        lines: Vec<String>,
        report: Gathered,
        files: Vec<PathBuf>,
    }

    fn write(home: &Path, stream: &str, change: impl FnOnce(&mut Options)) -> Run {
        let variables =
            [("HOME", home.to_str().unwrap()), ("RELAY_NOW", "2026-11-29T10:00:00Z"), ("TZ", "UTC")];
        let variables: BTreeMap<_, _> = variables.iter().map(|(k, v)| ((*k).into(), (*v).into())).collect();
        let world = World::new(variables, home.to_owned()).unwrap();
        let mut options = Options { target: target().name().to_owned(), ..Options::default() };
        options.write.project = Some(home.to_owned());
        change(&mut options);
        let mut lines = Vec::new();
        let mut report = Gathered::default();
        let input: Input = Box::new(std::io::Cursor::new(stream.as_bytes().to_vec()));
        let mut emit = |piece: Piece<'_>| {
            lines.push(match piece {
                Piece::Line(text) => text.to_owned(),
                Piece::Record(line) => String::from_utf8(line.to_vec()).unwrap(),
            });
            Ok(())
        };
        let result = run(input, "test", &options, &world, &mut emit, &mut report);
        let mut files = Vec::new();
        let mut open = vec![home.to_owned()];
        while let Some(folder) = open.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() { open.push(path) } else { files.push(path) }
            }
        }
        Run { result, lines, report, files }
    }

    /// Whose sessions these tests write.
    fn target() -> &'static dyn Agent {
        *agents::AGENTS.last().unwrap()
    }

    fn session(id: &str, body: &str, end: &str) -> String {
        format!(
            "{{\"type\":\"session\",\"relay\":1,\"session_id\":\"{id}\",\"source_agent\":\"x\"}}\n{body}{end}\n"
        )
    }

    const PROMPT: &str = "{\"type\":\"message\",\"role\":\"user\",\"content\":\"hi\"}\n";
    const END: &str = "{\"type\":\"end\"}";

    #[test]
    fn each_session_gives_a_line_and_a_file() {
        let home = tempfile::tempdir().unwrap();
        let stream = session("a", PROMPT, END) + &session("b", PROMPT, END);
        let run = write(home.path(), &stream, |_| {});
        assert!(run.result.is_ok(), "{:?}", run.result);
        assert_eq!((run.lines.len(), run.files.len()), (2, 2));
        for line in &run.lines {
            let id = line.rsplit(' ').next().unwrap();
            let file =
                run.files.iter().find(|f| f.to_str().unwrap().ends_with(&format!("{id}.jsonl"))).unwrap();
            assert!(file.starts_with(home.path()));
            let resume = format!("' && {} ", target().program());
            assert!(line.starts_with("cd -- '/") && line.contains(&resume), "{line}");
        }
    }

    #[test]
    fn what_is_not_whole_writes_nothing() {
        let home = tempfile::tempdir().unwrap();
        let abort = "{\"type\":\"abort\",\"by\":\"relay-read\",\"reason\":\"x\"}";
        for (stream, says) in [
            (session("a", PROMPT, ""), "ends inside session a"),
            (session("a", PROMPT, abort), "relay-read failed: x"),
            (
                session("a", PROMPT, "{\"type\":\"end\",\"failed\":\"no history\"}"),
                "could not be read: no history",
            ),
            (session("a", "", END), "nothing to hand over"),
            (
                session(
                    "a",
                    "{\"type\":\"message\",\"role\":\"user\",\"content\":\"x\",\"dropped\":\"branch\"}\n",
                    END,
                ),
                "nothing to hand over",
            ),
            (session("a", "{\"type\":\"message\",\"role\":\"user\"}\n", END), "`content`"),
        ] {
            let run = write(home.path(), &stream, |_| {});
            let e = run.result.unwrap_err();
            assert!(e.to_string().contains(says) && e.exit_code() == 3, "{e} for {stream}");
            assert!(run.lines.is_empty() && run.files.is_empty(), "{stream}: {:?}", run.files);
        }
        let run = write(home.path(), "", |_| {});
        let e = run.result.unwrap_err();
        assert!(e.to_string().contains("nothing came in") && e.exit_code() == 3, "{e}");
        assert!(run.lines.is_empty() && run.files.is_empty());
    }

    #[test]
    fn one_bad_session_does_not_cost_the_others() {
        let home = tempfile::tempdir().unwrap();
        let stream = session("a", "", END) + &session("b", PROMPT, END) + &session("c", "", END);
        let run = write(home.path(), &stream, |_| {});
        assert!(run.result.unwrap_err().to_string().contains("session c: nothing"));
        assert_eq!(run.report.failed, ["session a: nothing to hand over: it has no live conversation"]);
        assert_eq!((run.lines.len(), run.files.len()), (1, 1));
    }

    #[test]
    fn a_session_that_is_not_paired_is_refused_where_asked() {
        let home = tempfile::tempdir().unwrap();
        let call = "{\"type\":\"message\",\"role\":\"tool_call\",\"line\":3,\"tool_call_id\":\"t\",\"tool_name\":\"x\",\"input\":{}}\n";
        let stream = session("a", &format!("{PROMPT}{call}"), END) + &session("b", PROMPT, END);
        for fit in [false, true] {
            let run = write(home.path(), &stream, |o| {
                (o.strict_pairs, o.fit, o.write.dry_run) = (true, fit, true);
            });
            let e = run.result.unwrap_err();
            assert_eq!((e.exit_code(), run.lines.len()), (1, 1), "{e}");
            assert_eq!(run.report.failed, ["a: line 3: orphan_call: x t"], "{e}");
            assert!(e.to_string().starts_with("session a: calls and results are not paired"), "{e}");
        }
    }

    #[test]
    fn a_dry_run_says_where_and_writes_nothing() {
        let home = tempfile::tempdir().unwrap();
        let run = write(home.path(), &session("a", PROMPT, END), |o| {
            o.json = true;
            o.write.dry_run = true;
        });
        let told: serde_json::Value = serde_json::from_str(&run.lines[0]).unwrap();
        assert!(told["path"].as_str().unwrap().contains("/sessions/2026/11/29/rollout-"));
        assert_eq!(told["messages"], 1);
        assert!(run.files.is_empty());
    }

    #[test]
    fn an_archive_is_the_stream() {
        let home = tempfile::tempdir().unwrap();
        let stream = session("a", PROMPT, END) + &session("b", "", END);
        let archive = |o: &mut Options| {
            o.target = JSONL.to_owned();
            o.write.project = None;
        };
        let run = write(home.path(), &stream, |o| {
            archive(o);
            o.write.output = Some("x.jsonl".into());
        });
        assert!(run.result.is_ok());
        assert_eq!(std::fs::read_to_string(home.path().join("x.jsonl")).unwrap(), stream);
        let run = write(home.path(), &stream, archive);
        assert_eq!(run.lines.join("\n") + "\n", stream);
    }

    #[test]
    fn a_session_over_the_window_is_written_with_a_warning() {
        let home = tempfile::tempdir().unwrap();
        let long = PROMPT.replace("hi", &"word ".repeat(300_000));
        let run = write(home.path(), &session("a", &long, END), |_| {});
        assert!(run.result.is_ok() && run.files.len() == 1);
        assert!(
            run.report.said.iter().any(|l| l.contains(&format!("relay-trim --for {}", target().name()))),
            "{:?}",
            run.report
        );
    }
}
