//! relay-summarize: see `--help`.
use relay::cli::{self, Exit, Summarizing};
use relay::filters::summarize::{Format, Language, Options, Summarize};
use relay::pipeline::filter;
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
    cli::stage(example, &[], |given: Arguments, stage| {
        let Summarizing { max_tokens, all, lang, format } = given.summarizing;
        let language = match lang.as_str() {
            "en" => Some(Language::English),
            "zh" => Some(Language::Chinese),
            _ => None,
        };
        let format = match format.as_str() {
            "md" => Format::Markdown,
            "json" => Format::Json,
            _ => Format::Stream,
        };
        let mut summarize = Summarize::new(Options { max_tokens, all, language, format });
        let mut source = Source::new(stage.input()?, "stdin");
        filter::run(&mut source, &mut summarize, stage.via.clone(), &mut stage.out, &mut stage.report)?;
        for text in summarize.take_texts() {
            stage.out.line(&text)?;
        }
        if summarize.untouched() > 0 {
            stage.report.say("nothing was left out, so there is no summary; --all makes one");
        }
        Ok(Exit::Done)
    })
}
