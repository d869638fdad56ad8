//! Summaries whose prose a command makes.

use super::exec::Shell;
use super::redact;
use crate::filters::summarize::Exec;
use crate::record::Result;
use crate::stream::{Runner, World, counted};
use std::time::Duration;

/// Runs a command and says so first: an agent takes its time.
struct Told<S> {
    shell: Shell,
    say: S,
}

impl<S: Fn(&str)> Runner for Told<S> {
    fn run(&mut self, command: &str, input: &[u8]) -> Result<Vec<u8>> {
        let most = counted(self.shell.timeout.as_secs(), "second");
        (self.say)(&format!("waiting for --exec, {most} at most: {command}"));
        self.shell.run(command, input)
    }
}

/// What runs `command` for a summary, at most so many `seconds`. `tokens` is how much of the conversation it is
/// given; with a `world`, secrets are taken out of that first. `say` hears that the command is waited for.
pub fn exec(
    command: String,
    seconds: u64,
    tokens: usize,
    world: Option<World>,
    say: impl Fn(&str) + 'static,
) -> Exec {
    let runner = Box::new(Told { shell: Shell { timeout: Duration::from_secs(seconds) }, say });
    let redact = world.map(|world| Box::new(move |text: &str| redact::text(text, &world)) as _);
    Exec { command, runner, redact, transcript: tokens.saturating_mul(4) }
}
