//! `relay COMMAND …` runs relay-COMMAND, as git does.

use super::{Report, progress::Progress};
use crate::record::Error;
use crate::stream::{Report as _, nearest};
use std::env::{args_os, current_exe};
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

/// The small commands.
pub const COMMANDS: &[&str] = &["read", "pair", "trim", "summarize", "redact", "write"];

/// Runs what the first word names, when it is a command; `None` when the words are a hand-over's, or ask for help.
pub fn dispatched(agents: &[&str]) -> Option<ExitCode> {
    let mut words = args_os().skip(1);
    let first = words.next().unwrap_or_default();
    let name = match first.to_str() {
        Some(name) if COMMANDS.contains(&name) => name,
        Some(name) if name.is_empty() || name.starts_with('-') || agents.contains(&name) => return None,
        _ => {
            let known = COMMANDS.iter().chain(agents).copied();
            let near = first.to_str().and_then(|word| nearest(word, known));
            let hint = match near {
                Some(near) => format!("did you mean {near}?"),
                None => format!("agents: {}; commands: {}", agents.join(", "), COMMANDS.join(", ")),
            };
            let what = format!("no agent and no command is called {:?}", first.to_string_lossy());
            return Some(refused(&Error::Usage { what, hint: Some(hint) }));
        }
    };
    let program = format!("relay-{name}");
    let beside = current_exe().ok().map(|here| here.with_file_name(&program)).filter(|there| there.is_file());
    let mut command = Command::new(beside.unwrap_or_else(|| program.clone().into()));
    let cause = command.args(words).exec();
    Some(refused(
        &Error::failed(format!("{program} cannot be run: {cause}")).with_hint("it is installed beside relay"),
    ))
}

fn refused(error: &Error) -> ExitCode {
    Report { name: "relay".to_owned(), quiet: false, progress: Progress::new(false) }.fail(error);
    ExitCode::from(error.exit_code())
}
