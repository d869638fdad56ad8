//! `relay COMMAND …` runs relay-COMMAND, as git does.

use super::{Report, progress::Progress};
use crate::record::Error;
use crate::stream::{Report as _, nearest};
use std::env::{args_os, current_exe};
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

/// The small commands.
pub const COMMANDS: &[&str] = &["list", "read", "pair", "trim", "summarize", "redact", "write"];

/// Runs what the first word names, when it is a command; `None` when the words are a hand-over's, or ask for help.
pub fn dispatched(agents: &[&str]) -> Option<ExitCode> {
    let mut words = args_os().skip(1);
    let first = words.next().unwrap_or_default();
    let name = match first.to_str() {
        Some("") => return Some(what_there_is()),
        Some(name) if COMMANDS.contains(&name) => name,
        Some(name) if name.starts_with('-') || agents.contains(&name) => return None,
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
    Some(refused(&missing(name, &beside(name).args(words).exec())))
}

/// The command of this name, where relay itself is, else on the PATH.
fn beside(name: &str) -> Command {
    let program = format!("relay-{name}");
    let beside = current_exe().ok().map(|here| here.with_file_name(&program)).filter(|there| there.is_file());
    Command::new(beside.unwrap_or_else(|| program.into()))
}

fn missing(name: &str, cause: &std::io::Error) -> Error {
    Error::failed(format!("relay-{name} cannot be run: {cause}")).with_hint("it is installed beside relay")
}

/// The sessions of this folder, and what can be done with them.
fn what_there_is() -> ExitCode {
    let code = match beside("list").status() {
        Ok(status) => status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1),
        Err(cause) => return refused(&missing("list", &cause)),
    };
    let mut report = Report { name: "relay".to_owned(), quiet: false, progress: Progress::new(false) };
    report.say("hand the newest one over: relay FROM TO; another one: relay FROM TO ID");
    report.say("straight into the other agent: relay FROM TO --resume");
    report.say("the sessions of every project: relay list --any-project; more: relay --help");
    ExitCode::from(code)
}

fn refused(error: &Error) -> ExitCode {
    Report { name: "relay".to_owned(), quiet: false, progress: Progress::new(false) }.fail(error);
    ExitCode::from(error.exit_code())
}
