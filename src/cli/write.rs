//! Arguments of relay-write.

use crate::record::path::{is_absolute, is_of_windows};
use clap::Args;
use std::path::PathBuf;

/// Where and how sessions are written.
#[derive(Debug, Clone, Args)]
pub struct Writing {
    /// Write the new session, or the stream, here instead of where the agent looks; `-` is stdout
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Do all but the writing, and report where it would go; the command that would resume it is printed as a comment
    #[arg(long)]
    pub dry_run: bool,
    /// Print one JSON object a session instead of the command that resumes it: agent, source (agent, session_id,
    /// path), dry_run, session_id, relay_id, path, directory, resume, messages, tokens, dropped, problems, losses; of
    /// one that fails agent, source, dry_run, failed
    #[arg(long)]
    pub json: bool,
    /// Go on in this directory [default: the session's own, which must exist]
    #[arg(long, value_name = "DIR")]
    pub project: Option<PathBuf>,
    /// Read paths of another machine that begin with OLD as paths that begin with NEW: /Users/me=/home/me,
    /// 'C:\Users\me\shop=.'
    #[arg(long, value_name = "OLD=NEW", value_parser = pair)]
    pub map_path: Vec<(String, PathBuf)>,
    /// Give the new session this title [default: the source's]
    #[arg(long)]
    pub title: Option<String>,
    /// Home of the agent that goes on, for relay-read and the client the same [default: CODEX_HOME or
    /// CLAUDE_CONFIG_DIR, else session_root of the configuration, else ~/.codex or ~/.claude]
    #[arg(long, value_name = "DIR")]
    pub root: Option<PathBuf>,
    /// Write text turns only: no tools, no images
    #[arg(long)]
    pub dialogue_only: bool,
    /// Begin without the relay note
    #[arg(long)]
    pub no_note: bool,
    /// Leave the names of tools as the source has them
    #[arg(long)]
    pub keep_tool_names: bool,
    /// Trim to the agent's window first, as relay-trim --for does
    #[arg(long, conflicts_with = "restore")]
    pub fit: bool,
    /// Refuse a session whose calls and results are not paired instead of repairing it: print what relay-pair
    /// --check finds, write nothing of it, exit 1
    #[arg(long, conflicts_with = "restore")]
    pub strict_pairs: bool,
    /// Put the original file back under its own id, where there is none; wants the whole of relay-read's stream
    #[arg(long, conflicts_with_all = ["title", "dialogue_only", "no_note", "keep_tool_names"])]
    pub restore: bool,
    /// Have the agent list the new session at once: from 0.150 on, Codex shows what it wrote itself; needs codex
    /// on the PATH
    #[arg(long, conflicts_with_all = ["dry_run", "output"])]
    pub register: bool,
    /// Become the agent in that directory once the one session is written
    #[arg(long, conflicts_with_all = ["dry_run", "json", "output"])]
    pub resume: bool,
}

/// OLD is absolute on its own machine, or begins with a placeholder of relay-redact. NEW is a path of this one.
pub(super) fn pair(text: &str) -> Result<(String, PathBuf), String> {
    let good = |old: &str| is_absolute(old) || old.starts_with("<REDACTED:");
    match text.split_once('=') {
        Some((old, new)) if good(old) && !new.is_empty() && !is_of_windows(new) => {
            Ok((old.to_owned(), PathBuf::from(new)))
        }
        _ => Err("expected OLD=NEW, an absolute path of the other machine and a folder of this one: \
                  /Users/me=/home/me, or 'C:\\Users\\me\\shop=.'"
            .to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::pair;

    #[test]
    fn a_map_is_an_absolute_path_and_a_folder() {
        for (old, new) in [
            ("/Users/a", "/home/a"),
            ("/a", "b"),
            (r"C:\Users\a", "."),
            ("c:/x", "~/x"),
            (r"\\server\share\x", "/x"),
            ("/home/<REDACTED:home:1>", "/home/a"),
            ("<REDACTED:home:1>/x", "/home/a"),
        ] {
            assert_eq!(pair(&format!("{old}={new}")), Ok((old.into(), new.into())));
        }
        for wrong in ["", "/a", "a=/b", "/a=", "=/a", r"/a=C:\x", "C:x=/a"] {
            assert!(pair(wrong).is_err(), "{wrong}");
        }
    }
}
