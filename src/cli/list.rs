//! Arguments of relay-list.

use super::positive;
use clap::Args;
use std::path::PathBuf;

/// Which sessions are listed, and how.
#[derive(Debug, Clone, Args)]
pub struct Listing {
    /// Sessions of this directory's project instead of the current one's
    #[arg(long, value_name = "DIR", conflicts_with = "any_project")]
    pub project: Option<PathBuf>,
    /// Sessions of every project
    #[arg(long)]
    pub any_project: bool,
    /// Sessions updated since then: 7d, 12h, 30m, a date, or an RFC 3339 time
    #[arg(long, value_name = "WHEN")]
    pub since: Option<String>,
    /// Sessions updated before then
    #[arg(long, value_name = "WHEN")]
    pub until: Option<String>,
    /// Sessions with this text in their title or first prompt, whatever its case; with --deep, in anything said
    #[arg(long, value_name = "TEXT")]
    pub grep: Option<String>,
    /// Read the sessions whole: for turns and tokens, and for --grep
    #[arg(long)]
    pub deep: bool,
    /// Show those of subagents, those made without a terminal and those without a prompt, too
    #[arg(long)]
    pub all: bool,
    /// Show at most so many
    #[arg(long, value_name = "N", value_parser = positive)]
    pub limit: Option<u64>,
    /// Print a JSON object a session: agent, id, updated_at, bytes, project, title, prompt, turns, tokens, marks, path
    #[arg(long, conflicts_with = "ids")]
    pub json: bool,
    /// Print ids only
    #[arg(long)]
    pub ids: bool,
    /// Look for sessions in this folder only
    #[arg(long, value_name = "DIR")]
    pub root: Option<PathBuf>,
}
