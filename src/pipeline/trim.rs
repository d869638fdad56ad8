//! What relay-trim does, and relay-write with `--fit`.

use super::filter::Chain;
use crate::agents::{Window, family_of, named, names};
use crate::filters::Filter;
use crate::filters::pair::{self, Pair};
use crate::filters::trim::{Explanation, Options, Trim};
use crate::record::{Error, Record, Result};
use crate::stream::{Report, Sink};

/// Room of an agent in the configuration, in tokens; `None` where it says nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Configured {
    /// The whole window.
    pub window: Option<u64>,
    /// What of it to leave free.
    pub reserved: Option<u64>,
}

impl Configured {
    /// The window that counts, where the agent's own is `usual`.
    pub fn over(self, usual: Window) -> Window {
        Window {
            tokens: self.window.unwrap_or(usual.tokens),
            reserved: self.reserved.unwrap_or(usual.reserved),
        }
    }
}

/// Options that fit a session into the window of a target, `AGENT` or `AGENT:MODEL`; `configured` tells what the
/// configuration says of the agent.
///
/// # Errors
/// There is no such agent, or nothing of its window is left.
pub fn target(target: &str, configured: impl FnOnce(&str) -> Configured) -> Result<Options> {
    let (name, model) = target.split_once(':').map_or((target, None), |(name, model)| (name, Some(model)));
    let agent = named(name)?;
    let Window { tokens: window, reserved } = configured(agent.name()).over(agent.window());
    let budget = window.checked_sub(reserved).filter(|left| *left > 0).ok_or_else(|| Error::Usage {
        what: format!(
            "nothing is left of {name}'s window: {window} tokens, of which {reserved} are reserved"
        ),
        hint: Some(format!("set context_window and reserved_tokens in [agents.{name}] of the configuration")),
    })?;
    let family = match model {
        Some("") => {
            let hint = format!("AGENT:MODEL or AGENT; agents: {}", names().join(", "));
            return Err(Error::Usage { what: format!("{target:?} names no model"), hint: Some(hint) });
        }
        Some(model) => family_of(model),
        None => agent.family(),
    };
    Ok(Options { family, ..Options::new(budget) })
}

/// A share of a target's window, in tokens.
///
/// # Errors
/// There is no such agent.
pub fn share(target: &str, share: f64, configured: impl FnOnce(&str) -> Configured) -> Result<u64> {
    let agent = named(target.split_once(':').map_or(target, |(name, _)| name))?;
    let window = configured(agent.name()).over(agent.window()).tokens;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "a window is far below 2^52, and a share between 0 and 1"
    )]
    Ok(((window as f64 * share) as u64).max(1))
}

/// Pairs calls and results, then trims.
#[derive(Debug)]
pub struct Fit {
    pair: Pair,
    trim: Trim,
}

impl Fit {
    /// A filter that has seen nothing yet.
    ///
    /// # Errors
    /// As [`Trim::new`].
    pub fn new(options: Options) -> Result<Fit> {
        Ok(Fit { pair: Pair::new(pair::Options::default()), trim: Trim::new(options)? })
    }

    /// As [`Trim::take_explanations`].
    pub fn take_explanations(&mut self) -> Vec<Explanation> {
        self.trim.take_explanations()
    }
}

/// Hands what was paired to the trimming.
struct Paired<'a> {
    trim: &'a mut Trim,
    /// The record that is paired: it mostly comes out as the very bytes it is, and need not be read again.
    now: Option<&'a Record<'a>>,
    out: &'a mut dyn Sink,
}

impl Sink for Paired<'_> {
    fn put(&mut self, line: &[u8]) -> Result<()> {
        if let Some(same) = self.now.filter(|now| std::ptr::eq(now.line(), line)) {
            return self.trim.record(same, self.out);
        }
        // an empty tape owns no memory, and most lines do not need one
        let mut tape = crate::json::Tape::new();
        self.trim.record(&Record::new(line, &mut tape)?, self.out)
    }
}

impl Filter for Fit {
    fn record(&mut self, record: &Record<'_>, out: &mut dyn Sink) -> Result<()> {
        self.pair.record(record, &mut Paired { trim: &mut self.trim, now: Some(record), out })
    }

    fn end(&mut self, out: &mut dyn Sink) -> Result<()> {
        self.pair.end(&mut Paired { trim: &mut self.trim, now: None, out })?;
        self.trim.end(out)
    }
}

/// Says what was done to each session; on a terminal with the budget as a bar.
pub fn explain(found: &[Explanation], terminal: bool, report: &mut dyn Report) {
    for explanation in found {
        report.say(&format!("session {}:", explanation.session_id));
        for line in explanation.lines() {
            report.say(&line);
        }
        if terminal {
            for line in explanation.bar(60) {
                report.say(&line);
            }
        }
    }
}

/// Nothing but the pairing that comes before every writer, or that and the trimming.
pub(super) fn before_writing(fit: Option<&Options>) -> Result<Chain> {
    let pair: Box<dyn Filter> = Box::new(Pair::new(pair::Options::default()));
    Ok(Chain::new(match fit {
        None => vec![pair],
        Some(options) => vec![pair, Box::new(Trim::new(options.clone())?)],
    }))
}
