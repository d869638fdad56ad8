//! relay-list: see `--help`.
use clap::builder::PossibleValuesParser;
use relay::agents;
use relay::cli::{self, Exit, Listing, Stage};
use relay::pipeline::{list, select::Wanted, table};
use std::process::ExitCode;

/// List the sessions of this project, the one changed last first
#[derive(clap::Parser)]
#[command(name = "relay-list", version)]
struct Arguments {
    /// Whose sessions [default: those of every agent]
    #[arg(value_parser = PossibleValuesParser::new(agents::names()))]
    agents: Vec<String>,
    #[command(flatten)]
    listing: Listing,
}

fn main() -> ExitCode {
    let example = "relay-read claude $(relay-list claude --ids --limit 1) | relay-write codex";
    cli::command(example, &agents::names(), |given: Arguments, stage: &mut Stage| {
        let Arguments { agents, listing: l } = given;
        let (project, any_project, since, until, root) = (l.project, l.any_project, l.since, l.until, l.root);
        let configured = stage.config.session_roots();
        let wanted = Wanted { project, any_project, since, until, root, configured, ..Wanted::default() };
        let limit = l.limit.map(|n| usize::try_from(n).unwrap_or(usize::MAX));
        let (grep, deep, all) = (l.grep, l.deep, l.all);
        let options = list::Options { agents, wanted, grep, deep, all, limit };
        let rows = list::run(&options, &stage.world, &mut stage.report)?;
        let lines = match (l.json, l.ids) {
            (true, _) => rows.iter().map(serde_json::to_string).collect::<Result<_, _>>()?,
            (_, true) => rows.into_iter().map(|row| row.id).collect(),
            _ => table::lines(&rows, stage.world.now(), stage.world.home().as_deref(), cli::columns()),
        };
        for line in lines {
            stage.out.line(&line)?;
        }
        Ok(Exit::Done)
    })
}
