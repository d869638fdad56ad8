//! relay-read: see `--help`.
use clap::builder::PossibleValuesParser;
use relay::agents::{self, ReadOptions};
use relay::cli::{self, Exit};
use relay::pipeline::{read, select::Wanted};
use relay::stream::{Nowhere, Report as _, Sink};
use std::process::ExitCode;

/// Read sessions of a coding agent as a relay stream
#[derive(clap::Parser)]
#[command(name = "relay-read", version)]
struct Arguments {
    /// Whose sessions; auto: tell by the content of a file, look among those of all agents
    #[arg(value_parser = PossibleValuesParser::new(agents::names().into_iter().chain(["auto"])))]
    agent: String,
    #[command(flatten)]
    selection: cli::Selection,
    /// Which history is live: what the client would send and its losses rescued (active), what it would
    /// send and nothing else (exact), or all that was compacted away as well (full)
    #[arg(long, default_value = "active", value_parser = ["active", "exact", "full"])]
    history: String,
    /// Write the live conversation only
    #[arg(long)]
    lean: bool,
    /// Let each session be followed by its subagents
    #[arg(long)]
    subagents: bool,
    /// Print the stream even when stdout is a terminal
    #[arg(long)]
    stdout: bool,
    /// Fail at the first bad line instead of skipping it, also at a last line that is cut
    #[arg(long)]
    strict: bool,
}

fn main() -> ExitCode {
    cli::stage("relay-read claude | relay-write codex", &agents::names(), |given: Arguments, stage| {
        let Arguments { agent, selection: s, history, lean, subagents, stdout, strict } = given;
        let (sessions, project, root, configured) =
            (s.sessions, s.project, s.root, stage.config.session_roots());
        let (any_project, all, headless, since, until) = (s.any_project, s.all, s.headless, s.since, s.until);
        let wanted = Wanted { sessions, project, any_project, all, headless, since, until, root, configured };
        let read = ReadOptions { history: history.parse()?, lean, strict, place: None };
        let options = read::Options { agent, wanted, read, subagents, via: stage.via.clone() };
        let from_stdin = options.wanted.sessions.iter().any(|word| word == "-");
        // nobody reads a session off a screen
        let shown = stdout || !stage.out.is_terminal();
        let mut nowhere = Nowhere;
        let out: &mut dyn Sink = if shown { &mut stage.out } else { &mut nowhere };
        let whole = read::run(&options, &stage.world, out, &mut stage.report)?;
        // looked at last: whatever fills the pipe has had its time
        if !from_stdin {
            stage.unread("a session on stdin is named -")?;
        }
        if !shown {
            stage.report.say(&options.next());
        }
        Ok(Exit::of_input(whole))
    })
}
