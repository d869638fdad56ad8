//! relay-pair: see `--help`.
use relay::agents;
use relay::cli::{self, Exit};
use relay::filters::pair::{Options, Orphans, Pair};
use relay::pipeline::filter;
use relay::stream::Source;
use std::process::ExitCode;

/// Give every tool call of a stream exactly one result, right after its call group
#[derive(clap::Parser)]
#[command(name = "relay-pair", version)]
struct Arguments {
    /// What becomes of calls without result and results without call: text that says what they were (text),
    /// a made-up other half that says so (stub), or nothing (drop)
    #[arg(long, default_value = "text", value_parser = ["text", "stub", "drop"])]
    orphans: String,
    /// Print what would have to be repaired instead of the stream; exit 1 if anything
    #[arg(long)]
    check: bool,
}

fn main() -> ExitCode {
    let example = "relay-read claude | relay-pair | relay-write codex";
    cli::stage(example, &agents::names(), |given: Arguments, stage| {
        let orphans: Orphans = given.orphans.parse()?;
        let mut pair = Pair::new(Options { orphans, check: given.check });
        let mut source = Source::new(stage.input()?, "stdin");
        filter::run(&mut source, &mut pair, stage.via.clone(), &mut stage.out, &mut stage.report)?;
        let findings = pair.take_findings();
        for line in findings.iter().flat_map(|finding| finding.lines()) {
            stage.out.line(&line)?;
        }
        Ok(if findings.is_empty() { Exit::Done } else { Exit::Findings })
    })
}
