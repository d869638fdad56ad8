//! relay-trim: see `--help`.
use relay::agents;
use relay::cli::{self, Amount, Exit, Trimming};
use relay::filters::trim::Options;
use relay::pipeline::{filter, trim};
use relay::record::Error;
use relay::stream::Source;
use std::process::ExitCode;

/// Fit the live conversation into a budget of tokens: what is left out is marked, what is long is shortened
///
/// The system prompt, the first and the newest prompt always stay, cut where they are very long; a call never loses its
/// result.
#[derive(clap::Parser)]
#[command(name = "relay-trim", version)]
struct Arguments {
    #[command(flatten)]
    trimming: Trimming,
}

fn main() -> ExitCode {
    let example = "relay-read claude | relay-trim --budget 150000 | relay-write codex";
    cli::stage(example, &agents::names(), |Arguments { trimming: t }: Arguments, stage| {
        let window = |agent: &str| {
            let found = stage.config.agents.get(agent).cloned().unwrap_or_default();
            trim::Configured { window: found.context_window, reserved: found.reserved_tokens }
        };
        let target = t.target.as_deref().map(|target| trim::target(target, window)).transpose()?;
        let budget = match (t.budget, t.target.as_deref()) {
            (None, _) => None,
            (Some(Amount::Tokens(tokens)), _) => Some(tokens),
            (Some(Amount::Share(share)), Some(target)) => Some(trim::share(target, share, window)?),
            (Some(Amount::Share(_)), None) => {
                let hint = Some("say whose: --for codex --budget 80%, or a number: --budget 150k".to_owned());
                return Err(Error::Usage { what: "--budget in % needs a window".to_owned(), hint }.into());
            }
        };
        let usual = target.unwrap_or_else(|| Options::new(0));
        let mut fit = trim::Fit::new(Options {
            budget: budget.unwrap_or(usual.budget),
            tokenizer: t.tokenizer.parse()?,
            safety: t.safety,
            summary_reserve: t.summary_reserve,
            keep_tools: t.keep_tools.or(stage.config.tool_call_keep_recent).unwrap_or(usual.keep_tools),
            recent_turns: t.recent_turns.or(stage.config.recent_turns),
            drop: t.drop,
            explain: t.explain,
            ..usual
        })?;
        let mut source = Source::new(stage.input()?, "stdin");
        filter::run(&mut source, &mut fit, stage.via.clone(), &mut stage.out, &mut stage.report)?;
        trim::explain(&fit.take_explanations(), stage.report.is_terminal(), &mut stage.report);
        Ok(Exit::Done)
    })
}
