//! What every command has in common: arguments, errors, exit codes, the end of the output.
//!
//! A command is its arguments and one call:
//!
//! ```no_run
//! use relay::cli::{Exit, Stage};
//! use relay::stream::Report as _;
//!
//! /// Count the records of a stream
//! #[derive(clap::Parser)]
//! #[command(name = "relay-count", version)]
//! struct Arguments {}
//!
//! fn main() -> std::process::ExitCode {
//!     relay::cli::stage("relay-read claude | relay-count", &[], |_: Arguments, stage: &mut Stage| {
//!         stage.report.say("nothing counted");
//!         Ok(Exit::Done)
//!     })
//! }
//! ```

mod config;
mod dispatch;
mod hand;
mod list;
mod progress;
mod redact;
mod size;
mod summarize;
mod terminal;
mod trim;
mod write;

pub use config::{Agent as AgentConfig, Config};
pub use dispatch::{COMMANDS, dispatched};
pub use hand::Handing;
pub use list::Listing;
pub use redact::Redaction;
pub use size::{Amount, amount, positive, seconds, size};
pub use summarize::Summarizing;
pub use terminal::{safe, safe_json, safe_lines};
pub use trim::Trimming;
pub use write::Writing;

use crate::record::{Abort, Error, Result, Via};
use crate::stream::{Input, Output, Report as _, Sink, World, longest_line, one_by_one};
use clap::builder::ValueParser;
use clap::{ArgMatches, Args, FromArgMatches, Parser};
use progress::Progress;
use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::io::{self, IsTerminal, Write};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Exit codes, as every `--help` prints them.
const EXIT_CODES: &str =
    "Exit codes: 0 done, 1 failed or findings (--check), 2 usage, 3 bad or truncated input";

// Arguments of every command. No doc comment: clap would print it in place of the command's own.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Common options")]
struct Common {
    /// Print errors only
    #[arg(long, short)]
    quiet: bool,
    /// Show one line of progress on stderr, on a terminal only
    #[arg(long)]
    progress: bool,
    /// Do not note this command in the session's `via`
    #[arg(long)]
    no_via: bool,
    /// Refuse input with a line of more bytes than this: 512m, 2g
    #[arg(long, value_name = "BYTES", default_value = "512m", value_parser = positive)]
    max_line: u64,
}

/// How a command that did its work ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Everything done.
    Done,
    /// `--check` found something.
    Findings,
    /// The output is whole, but a session of the input was bad.
    BadInput,
}

impl Exit {
    /// Whether every session of the input was whole.
    pub fn of_input(whole: bool) -> Exit {
        if whole { Exit::Done } else { Exit::BadInput }
    }
}

impl From<Exit> for u8 {
    fn from(exit: Exit) -> u8 {
        match exit {
            Exit::Done => 0,
            Exit::Findings => 1,
            Exit::BadInput => 3,
        }
    }
}

/// What a running command has at hand.
pub struct Stage {
    /// Environment, clock, ids.
    pub world: World,
    /// The configuration file.
    pub config: Config,
    /// Standard output.
    pub out: Stdout,
    /// Standard error.
    pub report: Report,
    /// What to note in the session's `via`; `None` with `--no-via`.
    pub via: Option<Via>,
    /// A pipeline with this command, as `--help` shows it.
    example: String,
}

impl Stage {
    /// Looks at a pipe that this command does not read: bytes are told of with `hint`, a stream is an error, as
    /// whoever made it wanted it read.
    ///
    /// # Errors
    /// It is a relay stream.
    pub fn unread(&mut self, hint: &str) -> Result<()> {
        match fed() {
            Fed::Nothing => Ok(()),
            Fed::Bytes => {
                self.report.say(&format!("warning: what is piped in was not read; {hint}"));
                Ok(())
            }
            Fed::Stream => Err(Error::Usage {
                what: format!(
                    "{} begins a stream, and one is piped in, which it did not read",
                    self.report.name
                ),
                hint: Some(
                    "have one relay-read in a pipe; it takes many sessions: relay-read AGENT A B".to_owned(),
                ),
            }),
        }
    }

    /// Standard input as a stream of records, decompressed.
    ///
    /// # Errors
    /// Standard input is a terminal: nobody types records.
    pub fn input(&self) -> Result<Input> {
        if io::stdin().is_terminal() {
            return Err(Error::Usage {
                what: "stdin is a terminal".to_owned(),
                hint: Some(format!("pipe a stream in: {}", self.example)),
            });
        }
        crate::stream::stdin()
    }
}

/// What waits on standard input of a command that reads nothing there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fed {
    /// Nothing, or it is no pipe.
    Nothing,
    /// Something else than a stream.
    Bytes,
    /// A relay stream.
    Stream,
}

/// Looks at what waits on standard input, if that is a pipe. What it looks at is gone.
fn fed() -> Fed {
    let stdin = io::stdin();
    let pipe = std::fs::metadata("/dev/stdin").is_ok_and(|kind| kind.file_type().is_fifo());
    if !pipe || !rustix::io::ioctl_fionread(&stdin).is_ok_and(|waiting| waiting > 0) {
        return Fed::Nothing;
    }
    const HEAD: &[u8] = b"{\"type\":\"session\",\"relay\":";
    let mut head = [0; HEAD.len()];
    match rustix::io::read(&stdin, &mut head) {
        Ok(n) if n == HEAD.len() && head == *HEAD => Fed::Stream,
        _ => Fed::Bytes,
    }
}

/// Columns of the terminal that standard output is; `None` when it is none.
pub fn columns() -> Option<usize> {
    let stdout = io::stdout();
    if !stdout.is_terminal() {
        return None;
    }
    Some(terminal_size::terminal_size_of(stdout).map_or(80, |(width, _)| usize::from(width.0)))
}

/// Standard output. On a terminal, what could harm it is escaped.
pub struct Stdout {
    output: Output,
    terminal: bool,
}

impl Stdout {
    /// Whether people look at it rather than a file or program.
    pub fn is_terminal(&self) -> bool {
        self.terminal
    }

    fn new() -> Result<Stdout> {
        Ok(Stdout { output: Output::stdout()?, terminal: io::stdout().is_terminal() })
    }

    /// Prints a line that is no record. It is handed on at once: who prints it must know that it arrived.
    pub fn line(&mut self, text: &str) -> Result<()> {
        match self.terminal {
            true => self.output.put(safe(text).as_bytes()),
            false => self.output.put(text.as_bytes()),
        }?;
        self.output.flush()
    }

    /// Prints a text of several lines.
    pub fn text(&mut self, text: &str) -> Result<()> {
        match self.terminal {
            true => self.output.put(safe_lines(text).as_bytes()),
            false => self.output.put(text.as_bytes()),
        }?;
        self.output.flush()
    }
}

impl Sink for Stdout {
    fn put(&mut self, line: &[u8]) -> Result<()> {
        match self.terminal {
            true => self.output.put(&safe_json(line)),
            false => self.output.put(line),
        }
    }

    fn put_all(&mut self, lines: &[u8]) -> Result<()> {
        match self.terminal {
            true => one_by_one(lines, |line| self.put(line)),
            false => self.output.put_all(lines),
        }
    }
}

/// Standard error.
#[derive(Debug)]
pub struct Report {
    name: String,
    quiet: bool,
    progress: Progress,
}

impl Report {
    /// Prints one line. Not being able to complain is no reason to fail: there is no one left to tell.
    fn print(&mut self, head: &str, text: &str) {
        let mut line = self.progress.wiped().to_owned();
        // one write, so that lines of the commands of a pipe do not mix; writing into a String cannot fail
        let _ = writeln!(line, "{head}: {}", safe(text));
        let _ = io::stderr().write_all(line.as_bytes());
    }

    /// Whether people look at it rather than a file or program.
    pub fn is_terminal(&self) -> bool {
        io::stderr().is_terminal()
    }

    /// Says lines while something else has the report.
    pub fn apart(&self) -> impl Fn(&str) + use<> {
        let (name, quiet) = (self.name.clone(), self.quiet);
        move |line| {
            if !quiet {
                let mut report = Report { name: name.clone(), quiet, progress: Progress::new(false) };
                report.print(&name, line);
            }
        }
    }

    fn error(&mut self, error: &anyhow::Error) {
        let name = self.name.clone();
        self.print(&name, &format!("{error:#}"));
        if let Some(hint) = error.chain().find_map(|e| e.downcast_ref::<Error>()?.hint()) {
            self.print("hint", hint);
        }
    }
}

impl crate::stream::Report for Report {
    fn say(&mut self, line: &str) {
        if !self.quiet {
            let name = self.name.clone();
            self.print(&name, line);
        }
    }

    fn fail(&mut self, error: &Error) {
        let name = self.name.clone();
        self.print(&name, &error.to_string());
        if let Some(hint) = error.hint() {
            self.print("hint", hint);
        }
    }

    fn passed(&mut self, records: u64) {
        self.progress.passed(&self.name, records);
    }
}

/// Runs a command that writes a stream. If it dies, the last line says so, so that the next command of
/// the pipe neither takes the stream for whole nor reports the same failure again.
///
/// `example` is a pipeline for `--help`, `agents` the names that the configuration file may use.
pub fn stage<A: Parser>(
    example: &str,
    agents: &[&str],
    work: impl FnOnce(A, &mut Stage) -> anyhow::Result<Exit>,
) -> ExitCode {
    run(example, agents, true, work)
}

/// Runs a command whose output is no stream.
pub fn command<A: Parser>(
    example: &str,
    agents: &[&str],
    work: impl FnOnce(A, &mut Stage) -> anyhow::Result<Exit>,
) -> ExitCode {
    run(example, agents, false, work)
}

fn run<A: Parser>(
    example: &str,
    agents: &[&str],
    stream: bool,
    work: impl FnOnce(A, &mut Stage) -> anyhow::Result<Exit>,
) -> ExitCode {
    let command = with_common(A::command()).after_help(format!("Example:\n  {example}\n\n{EXIT_CODES}"));
    let name = command.get_name().to_owned();
    let mut report = Report { name: name.clone(), quiet: false, progress: Progress::new(false) };
    let mut out = match Stdout::new() {
        Ok(out) => out,
        Err(e) => {
            report.fail(&e);
            return ExitCode::from(e.exit_code());
        }
    };
    let (arguments, common, via) =
        match parse::<A>(command, with_auto(std::env::args_os().collect()), example) {
            Ok(parsed) => parsed,
            Err(Stop::Show(text)) => {
                let shown = out.output.put(text.trim_end().as_bytes()).map_err(anyhow::Error::from);
                return finish(out, report, false, shown.map(|()| Exit::Done));
            }
            Err(Stop::Usage(e)) => return finish(out, report, stream, Err(e.into())),
        };
    report.quiet = common.quiet;
    longest_line(common.max_line);
    report.progress = Progress::new(common.progress && io::stderr().is_terminal());
    let surroundings = || -> Result<_> {
        let world = World::of_process()?;
        let config = Config::load(&world, agents)?;
        Ok((world, config))
    };
    let (world, config) = match surroundings() {
        Ok(both) => both,
        Err(e) => return finish(out, report, stream, Err(e.into())),
    };
    let example = example.to_owned();
    let mut stage = Stage { world, config, out, report, via: (!common.no_via).then_some(via), example };
    let result = work(arguments, &mut stage);
    finish(stage.out, stage.report, stream, result)
}

/// The one place where a command ends: what was written is handed on, errors are printed, the exit code
/// is settled.
fn finish(out: Stdout, mut report: Report, stream: bool, result: anyhow::Result<Exit>) -> ExitCode {
    report.progress.clear();
    let Stdout { mut output, terminal } = out;
    let error = match result {
        Ok(exit) => match output.finish() {
            Ok(_) => return ExitCode::from(u8::from(exit)),
            Err(Error::Closed) => return ExitCode::SUCCESS,
            Err(e) => {
                report.fail(&e);
                return ExitCode::from(e.exit_code());
            }
        },
        Err(error) => error,
    };
    let known = error.chain().find_map(|e| e.downcast_ref::<Error>());
    let code = known.map_or(1, Error::exit_code);
    let abort = match known {
        Some(Error::Closed) => return ExitCode::SUCCESS,
        // the command that failed has said it; here it is only passed on
        Some(Error::Aborted(abort)) => abort.clone(),
        _ => {
            report.error(&error);
            Abort { by: report.name.clone(), reason: format!("{error:#}") }
        }
    };
    if stream && !terminal {
        // if this fails, too, the missing `end` tells the next command
        if let Ok(line) = abort.to_line() {
            let _ = output.put(&line);
        }
    }
    let _ = output.finish();
    ExitCode::from(code)
}

/// The command with what all have. Its own first line stays: groups of arguments bring one of their own.
fn with_common(command: clap::Command) -> clap::Command {
    let (about, long) = (command.get_about().cloned(), command.get_long_about().cloned());
    let mut command = Common::augment_args(command).long_about(None::<&str>);
    if let Some(about) = about {
        command = command.about(about);
    }
    match long {
        Some(long) => command.long_about(long),
        None => command,
    }
}

/// Why a command line leads to no work.
#[derive(Debug)]
enum Stop {
    /// It asks for help or the version.
    Show(String),
    /// It cannot be understood.
    Usage(Error),
}

/// A path as the first word of relay-read means a session of whatever agent it is.
fn with_auto(mut given: Vec<OsString>) -> Vec<OsString> {
    let own = given.first().is_some_and(|own| Path::new(own).file_name() == Some("relay-read".as_ref()));
    if own && given.get(1).is_some_and(|word| is_path(word)) {
        given.insert(1, "auto".into());
    }
    given
}

fn is_path(word: &OsStr) -> bool {
    let bytes = word.as_encoded_bytes();
    !bytes.starts_with(b"-") && (bytes.contains(&b'/') || Path::new(word).is_file())
}

fn parse<A: Parser>(
    mut command: clap::Command,
    given: Vec<OsString>,
    example: &str,
) -> std::result::Result<(A, Common, Via), Stop> {
    let name = command.get_name().to_owned();
    let understood = command.try_get_matches_from_mut(given).and_then(|matches| {
        let via = Via {
            name: name.clone(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            options: options(&command, &matches),
        };
        Ok((A::from_arg_matches(&matches)?, Common::from_arg_matches(&matches)?, via))
    });
    understood.map_err(|e| match e.use_stderr() {
        false => Stop::Show(e.render().to_string()),
        true => Stop::Usage(usage(&name, &e.render().to_string(), example)),
    })
}

/// The options given, for `via`. Values that are paths or free text stay out: `via` tells what was done
/// to a session, never its content or whose machine it was.
fn options(command: &clap::Command, matches: &ArgMatches) -> Vec<String> {
    let private = [ValueParser::path_buf().type_id(), ValueParser::os_string().type_id()];
    let mut found = Vec::new();
    for argument in command.get_arguments() {
        let id = argument.get_id().as_str();
        if matches!(id, "quiet" | "progress" | "max_line" | "stdout") {
            continue;
        }
        let given = matches.value_source(id) == Some(clap::parser::ValueSource::CommandLine);
        let Some(long) = argument.get_long().filter(|_| given) else { continue };
        let takes = argument.get_action().takes_values();
        if !takes || private.contains(&argument.get_value_parser().type_id()) {
            found.push(format!("--{long}"));
            continue;
        }
        for value in matches.get_raw(id).into_iter().flatten() {
            found.push(format!("--{long}={}", value.to_string_lossy()));
        }
    }
    found
}

/// An error of the command line, out of what the parser prints: its first paragraph in one line, and its
/// tip as hint.
fn usage(name: &str, rendered: &str, example: &str) -> Error {
    let mut lines = rendered.lines();
    let first: Vec<&str> = lines.by_ref().take_while(|line| !line.trim().is_empty()).map(str::trim).collect();
    let what = first.join(" ");
    let missing = what.contains("required arguments were not provided");
    let elsewhere = ELSEWHERE.iter().find(|(flag, _)| what.contains(&format!("argument '{flag}'")));
    let hint = match (elsewhere, lines.find_map(|line| line.trim().strip_prefix("tip: "))) {
        (Some((_, hint)), _) => (*hint).to_owned(),
        (None, _) if missing => format!("for example: {example}"),
        (None, Some(tip)) => tip.to_owned(),
        (None, None) => format!("see {name} --help"),
    };
    Error::Usage { what: what.strip_prefix("error: ").unwrap_or(&what).to_owned(), hint: Some(hint) }
}

/// What other programs have flags for, and how it is done here.
const ELSEWHERE: [(&str, &str); 5] = [
    ("--last", "without a SESSION the newest of this folder is read: relay-read AGENT"),
    ("--latest", "without a SESSION the newest of this folder is read: relay-read AGENT"),
    ("--continue", "without a SESSION the newest of this folder is read: relay-read AGENT"),
    ("--list", "relay-list shows them"),
    ("--id", "an id is given as it is: relay-read AGENT 5b0f6f0e"),
];

/// Which sessions to read; the same words in every command that selects sessions.
#[derive(Debug, Clone, Args)]
pub struct Selection {
    /// A path, `-` for stdin, an id or its beginning (4+ characters), a title or the first prompt; default: the
    /// most recently updated session of this directory's project
    #[arg(value_name = "SESSION")]
    pub sessions: Vec<OsString>,
    /// Sessions of this directory's project instead of the current one's
    #[arg(long, value_name = "DIR", conflicts_with = "any_project")]
    pub project: Option<PathBuf>,
    /// Sessions of every project
    #[arg(long)]
    pub any_project: bool,
    /// Every session that matches, one after another
    #[arg(long)]
    pub all: bool,
    /// Take the newest session even if it was made without a terminal (claude -p, codex exec)
    #[arg(long)]
    pub headless: bool,
    /// Sessions updated since then: 7d, 12h, 30m, a date, or an RFC 3339 time
    #[arg(long, value_name = "WHEN")]
    pub since: Option<String>,
    /// Sessions updated before then
    #[arg(long, value_name = "WHEN")]
    pub until: Option<String>,
    /// Look for sessions in this folder only
    #[arg(long, value_name = "DIR")]
    pub root: Option<PathBuf>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    /// Try things
    ///
    /// At length.
    #[derive(Debug, Parser)]
    #[command(name = "relay-try", version)]
    struct Arguments {
        /// Which one
        #[arg(value_parser = ["mallard", "gander"])]
        agent: String,
        /// How much
        #[arg(long)]
        budget: Option<u64>,
        #[command(flatten)]
        selection: Selection,
    }

    fn given(words: &[&str]) -> std::result::Result<(Arguments, Common, Via), Stop> {
        let words = ["relay-try"].iter().chain(words).map(OsString::from).collect();
        parse::<Arguments>(with_common(Arguments::command()), words, "x | y")
    }

    fn refused(words: &[&str]) -> String {
        match given(words).map(|_| ()).unwrap_err() {
            Stop::Show(text) => panic!("shown: {text}"),
            Stop::Usage(e) => {
                assert_eq!(e.exit_code(), 2);
                format!("{e} | {}", e.hint().unwrap_or(""))
            }
        }
    }

    #[test]
    fn the_command_line_is_well_formed() {
        with_common(Arguments::command()).debug_assert();
    }

    #[test]
    fn usage_errors_are_one_line_with_a_next_step() {
        assert!(refused(&["mallard", "--buget", "7"]).ends_with("| a similar argument exists: '--budget'"));
        assert!(refused(&["mallrad"]).contains("| a similar value exists: 'mallard'"));
        let missing = refused(&[]);
        assert!(missing.contains("<AGENT>") && missing.ends_with("| for example: x | y"), "{missing}");
        assert!(
            refused(&["mallard", "--last"]).ends_with("the newest of this folder is read: relay-read AGENT")
        );
        assert!(!missing.contains('\n'));
    }

    #[test]
    fn via_tells_options_but_no_paths_and_titles() {
        let (arguments, common, via) =
            given(&["mallard", "My title", "--budget", "7", "--root", "/home/u", "--all", "--quiet"])
                .unwrap();
        assert_eq!(via.options, ["--budget=7", "--all", "--root"]);
        assert_eq!(via.name, "relay-try");
        assert_eq!(arguments.selection.sessions, ["My title"]);
        assert!(arguments.agent == "mallard" && arguments.budget == Some(7));
        assert!(common.quiet && !common.progress && !common.no_via);
    }

    #[test]
    fn help_and_version_are_no_errors() {
        let shown = |word: &str| match given(&[word]) {
            Err(Stop::Show(text)) => text,
            other => panic!("{word}: {other:?}"),
        };
        assert_eq!(shown("--version").trim(), format!("relay-try {}", env!("CARGO_PKG_VERSION")));
        for word in ["--help", "-h"] {
            assert!(shown(word).starts_with("Try things\n"), "{}", shown(word));
            assert_eq!(shown(word).contains("At length.\n"), word == "--help");
        }
    }
}
