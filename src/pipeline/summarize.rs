//! Summaries whose prose a command makes.

use super::exec::Shell;
use super::redact;
use crate::filters::summarize::Exec;
use crate::stream::World;
use std::time::Duration;

/// What runs `command` for a summary, at most so many `seconds`. `tokens` is how much of the conversation it is
/// given; with a `world`, secrets are taken out of that first.
pub fn exec(command: String, seconds: u64, tokens: usize, world: Option<World>) -> Exec {
    let runner = Box::new(Shell { timeout: Duration::from_secs(seconds) });
    let redact = world.map(|world| Box::new(move |text: &str| redact::text(text, &world)) as _);
    Exec { command, runner, redact, transcript: tokens.saturating_mul(4) }
}
