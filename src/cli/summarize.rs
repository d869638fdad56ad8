//! Arguments of relay-summarize.

use clap::Args;

/// How to summarise.
#[derive(Debug, Clone, Args)]
pub struct Summarizing {
    /// Size of the summary in tokens [default: what relay-trim set aside, else 2000]
    #[arg(long, value_name = "N")]
    pub max_tokens: Option<u64>,
    /// Tell of the whole conversation, not only of what was left out
    #[arg(long)]
    pub all: bool,
    /// Language of the headings; auto: the user's
    #[arg(long, default_value = "auto", value_parser = ["auto", "en", "zh"])]
    pub lang: String,
    /// stream: the stream with the summary in it; md, json: the summary of the whole conversation alone
    #[arg(long, default_value = "stream", value_parser = ["stream", "md", "json"])]
    pub format: String,
}
