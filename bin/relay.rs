//! relay: see `--help`.
use clap::builder::PossibleValuesParser;
use relay::agents::{self, WriteOptions};
use relay::cli::{self, Exit, Handing, Stage};
use relay::pipeline::{hand, read, select::Wanted, trim, write};
use relay::stream::Sink as _;
use std::process::ExitCode;

/// Hand a session from one agent to another
///
/// Reads the session, fits it into the other agent's window with a summary of what is left out, and prints the command
/// that resumes it. `relay COMMAND …` runs relay-COMMAND: list, read, pair, trim, summarize, redact, write.
#[derive(clap::Parser)]
#[command(name = "relay", version)]
struct Arguments {
    /// Whose session
    #[arg(value_parser = PossibleValuesParser::new(agents::names()))]
    from: String,
    /// The agent that goes on
    #[arg(value_parser = PossibleValuesParser::new(agents::names()))]
    to: String,
    #[command(flatten)]
    handing: Handing,
}

fn main() -> ExitCode {
    if let Some(code) = cli::dispatched(&agents::names()) {
        return code;
    }
    cli::command("relay claude codex --resume", &agents::names(), |given: Arguments, stage: &mut Stage| {
        let Arguments { from, to, handing: h } = given;
        let found = stage.config.agents.get(&to).cloned().unwrap_or_default();
        let settings = hand::Settings {
            window: trim::Configured { window: found.context_window, reserved: found.reserved_tokens },
            keep_tools: stage.config.tool_call_keep_recent,
            recent_turns: stage.config.recent_turns,
            summary: stage.config.summary_max_tokens,
        };
        let (sessions, project, any_project, headless) =
            (h.session.into_iter().collect(), h.project, h.any_project, h.headless);
        let configured = stage.config.session_roots();
        let wanted = Wanted { sessions, project, any_project, headless, configured, ..Wanted::default() };
        let read = read::Options { agent: from, wanted, ..read::Options::default() };
        let (project, title, dry_run, register) = (h.into, h.title, h.dry_run, h.register);
        let map_path = h.map_path.into_iter().map(|(old, new)| (old, stage.world.resolve(&new))).collect();
        let write = WriteOptions { project, map_path, title, dry_run, register, ..WriteOptions::default() };
        let (target, prompt) = (to, (!h.prompt.is_empty()).then(|| h.prompt.join(" ")));
        let (json, resume) = (h.json, h.resume);
        let write = write::Options { target, write, json, resume, prompt, ..write::Options::default() };
        let mut options = hand::Options::new(read, write, &settings)?;
        options.redact = h.redact;
        options.version = stage.via.as_ref().map(|via| via.version.clone());
        let Stage { world, out, report, .. } = stage;
        let mut emit = |piece: write::Piece<'_>| match piece {
            write::Piece::Line(text) => out.line(text),
            write::Piece::Record(line) => out.put(line),
        };
        Ok(Exit::of_input(hand::run(&options, world, &mut emit, report)?))
    })
}
