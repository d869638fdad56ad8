//! relay-redact: see `--help`.
use relay::agents;
use relay::cli::{self, Exit, Redaction, Stage};
use relay::filters::redact::rules;
use relay::pipeline::redact::{Options, run};
use std::process::ExitCode;

/// Replace the secrets in every text of a stream by placeholders, the same for the same value
///
/// By default only secrets, so that paths still work on this machine.
#[derive(clap::Parser)]
#[command(name = "relay-redact", version)]
struct Arguments {
    #[command(flatten)]
    redaction: Redaction,
}

fn main() -> ExitCode {
    let example = "relay-read claude | relay-redact --share | relay-write jsonl -o session.jsonl.zst";
    cli::stage(example, &agents::names(), |given: Arguments, stage| {
        if given.redaction.list_rules {
            stage.out.text(&rules::list().join("\n"))?;
            return Ok(Exit::Done);
        }
        let Redaction { share, pii, rules, only, skip, confidence, host_suffix, .. } = given.redaction;
        let Redaction { allow, map, salt, restore, two_pass, report, check, .. } = given.redaction;
        let options = Options {
            share,
            pii,
            rules,
            only,
            skip,
            confidence,
            host_suffixes: host_suffix,
            allow,
            map,
            salt,
            restore,
            two_pass,
            report,
            check,
        };
        let input = stage.input()?;
        let Stage { world, out, report, .. } = stage;
        let found = run(input, "stdin", &options, world, out, report)?;
        Ok(if check && found { Exit::Findings } else { Exit::Done })
    })
}
