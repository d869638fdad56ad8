//! Arguments of relay-summarize.

use super::size::{positive, seconds, size};
use clap::Args;

/// How to summarise.
#[derive(Debug, Clone, Args)]
pub struct Summarizing {
    /// Size of the summary in o200k tokens [default: what relay-trim set aside, else summary_max_tokens of the
    /// configuration, else 2000]
    #[arg(long, value_name = "N", value_parser = positive)]
    pub max_tokens: Option<u64>,
    /// Tell of the whole conversation, not only of what was left out
    #[arg(long)]
    pub all: bool,
    /// Let each line name the records that it comes from, (#n), in the stream too; md and json always do
    #[arg(long)]
    pub cite: bool,
    /// Language of the headings; auto: the user's
    #[arg(long, default_value = "auto", value_parser = ["auto", "en", "zh"])]
    pub lang: String,
    /// stream: the stream with the summary in it; md, json: the summary of the whole conversation alone
    #[arg(long, default_value = "stream", value_parser = ["stream", "md", "json"])]
    pub format: String,
    /// Have this shell command make prose of ledger and transcript, which it gets on stdin
    #[arg(long, value_name = "CMD")]
    pub exec: Option<std::ffi::OsString>,
    /// Give the command so much time: 120 (seconds), 2m
    #[arg(long, value_name = "TIME", default_value = "120", value_parser = seconds, requires = "exec")]
    pub exec_timeout: u64,
    /// Give the command at most so many tokens of the transcript, the newest
    #[arg(long, value_name = "N", default_value = "100k", value_parser = size, requires = "exec")]
    pub exec_budget: u64,
    /// Give the command the transcript as it is, secrets and all
    #[arg(long, requires = "exec")]
    pub no_redact: bool,
}
