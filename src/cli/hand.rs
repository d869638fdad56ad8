//! Arguments of `relay FROM TO`.

use super::write::pair;
use clap::Args;
use std::ffi::OsString;
use std::path::PathBuf;

/// Which session is handed over, and how it goes on.
#[derive(Debug, Clone, Args)]
pub struct Handing {
    /// A path, an id or its beginning (4+ characters), or an exact title; default: the most recently updated session
    /// of this directory's project
    #[arg(value_name = "SESSION")]
    pub session: Option<OsString>,
    /// The first prompt for the agent that goes on
    #[arg(last = true, value_name = "FIRST PROMPT")]
    pub prompt: Vec<String>,
    /// Become the agent that goes on
    #[arg(long, conflicts_with_all = ["dry_run", "json"])]
    pub resume: bool,
    /// Replace secrets before anything else is done
    #[arg(long)]
    pub redact: bool,
    /// Sessions of this directory's project instead of the current one's
    #[arg(long, value_name = "DIR", conflicts_with = "any_project")]
    pub project: Option<PathBuf>,
    /// Sessions of every project
    #[arg(long)]
    pub any_project: bool,
    /// Take the newest session even if it was made without a terminal
    #[arg(long)]
    pub headless: bool,
    /// Go on in this directory [default: the session's own, which must exist]
    #[arg(long, value_name = "DIR")]
    pub into: Option<PathBuf>,
    /// Read paths of another machine that begin with OLD as paths that begin with NEW: /Users/me=/home/me
    #[arg(long, value_name = "OLD=NEW", value_parser = pair)]
    pub map_path: Vec<(String, PathBuf)>,
    /// Give the new session this title [default: the source's]
    #[arg(long)]
    pub title: Option<String>,
    /// Do all but the writing, and report where it would go
    #[arg(long)]
    pub dry_run: bool,
    /// Print a JSON object instead of the command that resumes the session
    #[arg(long)]
    pub json: bool,
    /// Have the agent list the new session at once, where that takes a step of its own
    #[arg(long, conflicts_with = "dry_run")]
    pub register: bool,
}
