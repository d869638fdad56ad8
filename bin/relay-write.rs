//! relay-write: sessions of a stream become new sessions of an agent.

use clap::Parser;
use clap::builder::PossibleValuesParser;
use relay::agents::{self, WriteOptions};
use relay::cli::{Exit, Stage, Writing};
use relay::pipeline::trim::Configured;
use relay::pipeline::write::{JSONL, Options, Piece, run};
use relay::stream::Sink;
use std::path::Path;
use std::process::ExitCode;

/// Write each session of a relay stream as a new session that an agent can resume
///
/// Prints one shell command a session, the one that resumes it. Never touches an existing file.
#[derive(Debug, Parser)]
#[command(name = "relay-write", version)]
struct Arguments {
    /// The agent that goes on, or `jsonl` for the stream itself
    #[arg(value_parser = PossibleValuesParser::new(agents::names().into_iter().chain([JSONL])))]
    target: String,
    #[command(flatten)]
    writing: Writing,
}

fn main() -> ExitCode {
    let example = "relay-read claude | relay-write codex";
    relay::cli::command(example, &agents::names(), |given: Arguments, stage: &mut Stage| {
        let Arguments { target, writing: w } = given;
        let write = WriteOptions {
            root: w.root,
            configured: stage.config.session_root(&target).map(Path::to_owned),
            project: w.project,
            map_path: w.map_path.into_iter().map(|(old, new)| (old, stage.world.resolve(&new))).collect(),
            title: w.title,
            dialogue_only: w.dialogue_only,
            note: !w.no_note,
            keep_tool_names: w.keep_tool_names,
            dry_run: w.dry_run,
            output: w.output,
            restore: w.restore,
            register: w.register,
        };
        let found = stage.config.agents.get(&target).cloned().unwrap_or_default();
        let configured = Configured { window: found.context_window, reserved: found.reserved_tokens };
        let (json, resume, strict_pairs, fit) = (w.json, w.resume, w.strict_pairs, w.fit);
        let keep_tools = stage.config.tool_call_keep_recent;
        let options =
            Options { target, write, json, resume, strict_pairs, fit, keep_tools, configured, prompt: None };
        let input = stage.input()?;
        let Stage { world, out, report, .. } = stage;
        let mut emit = |piece: Piece<'_>| match piece {
            Piece::Line(text) => out.line(text),
            Piece::Record(line) => out.put(line),
        };
        run(input, "stdin", &options, world, &mut emit, report)?;
        Ok(Exit::Done)
    })
}
