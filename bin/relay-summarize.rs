//! relay-summarize: see `--help`.
use relay::agents;
use relay::cli::{self, Exit, Summarizing};
use relay::filters::summarize::{Format, Options, Summarize};
use relay::pipeline::{filter, summarize};
use relay::stream::{Report as _, Source};
use std::process::ExitCode;

/// Put a summary of what was left out in front of what is kept
#[derive(clap::Parser)]
#[command(name = "relay-summarize", version)]
struct Arguments {
    #[command(flatten)]
    summarizing: Summarizing,
}

fn main() -> ExitCode {
    let example = "relay-read claude | relay-trim --budget 150000 | relay-summarize | relay-write codex";
    cli::stage(example, &agents::names(), |given: Arguments, stage| {
        let given = given.summarizing;
        let format: Format = given.format.parse()?;
        let language = (given.lang != "auto").then(|| given.lang.parse()).transpose()?;
        let (max_tokens, all, usual) = (given.max_tokens, given.all, stage.config.summary_max_tokens);
        let cite = given.cite;
        let mut filter = Summarize::new(Options { max_tokens, usual, all, cite, language, format });
        if let Some(command) = given.exec {
            let command = command.to_string_lossy().into_owned();
            let world = (!given.no_redact).then(|| stage.world.clone());
            let exec = summarize::exec(
                command,
                given.exec_timeout,
                usize::try_from(given.exec_budget).unwrap_or(usize::MAX),
                world,
                stage.report.apart(),
            );
            filter = filter.with_exec(exec);
        }
        let mut source = Source::new(stage.input()?, "stdin");
        filter::run(&mut source, &mut filter, stage.via.clone(), &mut stage.out, &mut stage.report)?;
        for text in filter.take_texts() {
            stage.out.text(&text)?;
        }
        for warning in filter.take_warnings() {
            stage.report.say(&warning);
        }
        if filter.untouched() > 0 {
            stage.report.say("nothing was left out, so there is no summary; --all makes one");
        }
        Ok(Exit::Done)
    })
}
