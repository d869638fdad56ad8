//! Summaries whose prose a command makes.

use super::exec::Shell;
use crate::filters::summarize::Exec;
use crate::stream::{Error, Result};
use std::time::Duration;

/// What runs `command` for a summary. `tokens` is how much of the conversation it is given; `redact` whether secrets
/// are removed from that.
///
/// # Errors
/// Secrets are to be removed: relay cannot do that yet.
pub fn exec(command: String, seconds: u64, tokens: usize, redact: bool) -> Result<Exec> {
    if redact {
        return Err(Error::Usage {
            what: "--exec would hand the transcript over with all secrets in it".to_owned(),
            hint: Some("relay does not redact yet: add --no-redact if that is what you want".to_owned()),
        });
    }
    let runner = Box::new(Shell { timeout: Duration::from_secs(seconds) });
    Ok(Exec { command, runner, redact: None, transcript: tokens.saturating_mul(4) })
}
