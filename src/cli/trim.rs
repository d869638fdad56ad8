//! Arguments of relay-trim.

use super::size::{Amount, amount, positive, size};
use clap::Args;

/// How a conversation is fitted into a window.
#[derive(Debug, Clone, Args)]
#[command(group = clap::ArgGroup::new("size").required(true).multiple(true))]
pub struct Trimming {
    /// All that may be written, in tokens: what is kept, the summary and the note; 150000, 150k, or 80% of the
    /// window of --for
    #[arg(long, value_name = "TOKENS", group = "size", value_parser = amount)]
    pub budget: Option<Amount>,
    /// Fit the window of this agent, less what it keeps free: AGENT or AGENT:MODEL; with --budget, only count as it
    /// counts [default: as the dearest does]
    #[arg(id = "target", long = "for", group = "size", value_name = "AGENT[:MODEL]")]
    pub target: Option<String>,
    /// Set so many tokens aside for the summary [default: 60 % of the budget, at most 4000]
    #[arg(long, value_name = "TOKENS", value_parser = size)]
    pub summary_reserve: Option<u64>,
    /// Count by: estimate (exactly where it matters), o200k, cl100k, or simple (CJK / 1.5 + rest / 4)
    #[arg(long, default_value = "estimate", value_parser = ["estimate", "o200k", "cl100k", "simple"])]
    pub tokenizer: String,
    /// Use this share of the budget only [default: 0.9 for estimates, 1.0 for exact counts]
    #[arg(long, value_name = "SHARE", value_parser = share)]
    pub safety: Option<f64>,
    /// Leave so many of the newest tool results whole [default: 5]
    #[arg(long, value_name = "N", value_parser = size)]
    pub keep_tools: Option<u64>,
    /// Keep at most so many turns [default: no such limit]
    #[arg(long, value_name = "N", value_parser = positive)]
    pub recent_turns: Option<u64>,
    /// Leave trimmed records out of the stream instead of marking them
    #[arg(long)]
    pub drop: bool,
    /// Print on stderr what was kept, condensed and dropped, by kind
    #[arg(long)]
    pub explain: bool,
}

fn share(text: &str) -> Result<f64, String> {
    let number = match text.trim().strip_suffix('%') {
        Some(percent) => percent.trim().parse::<f64>().map(|percent| percent / 100.0),
        None => text.trim().parse::<f64>(),
    };
    match number {
        Ok(share) if share > 0.0 && share <= 1.0 => Ok(share),
        _ => Err("expected a share of more than 0 and at most all, such as 0.9 or 90%".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::share;

    #[test]
    fn a_share_is_no_more_than_the_whole() {
        assert_eq!((share("0.9"), share("1"), share("50%")), (Ok(0.9), Ok(1.0), Ok(0.5)));
        for wrong in ["0", "-1", "1.1", "101%", "0%", "%", "NaN", "inf", "x", ""] {
            assert!(share(wrong).is_err(), "{wrong}");
        }
    }
}
