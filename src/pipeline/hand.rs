//! A session handed over in one process: what the commands do in a pipe, with the same bytes, without the pipes.

use super::filter::{Chain, Signing, Through};
use super::{read, redact, trim, write};
use crate::filters::Filter;
use crate::filters::pair::{self, Pair};
use crate::filters::redact::Redact;
use crate::filters::summarize::{self, Summarize};
use crate::json::Tape;
use crate::record::{Error, Kind, Record, Result, Via, splice};
use crate::stream::{Report, Sink, World};
use std::cell::RefCell;

/// What is handed over, and how.
#[derive(Debug, Clone)]
pub struct Options {
    /// Which session; its `via` is that of relay-read.
    pub read: read::Options,
    /// Secrets are replaced.
    pub redact: bool,
    /// How much the target takes, as relay-trim has it.
    pub trim: crate::filters::trim::Options,
    /// Size of a summary in tokens, where the configuration says so.
    pub summary: Option<u64>,
    /// How the target's session is written.
    pub write: write::Options,
    /// Version that each stage notes in the session; `None` notes nothing.
    pub version: Option<String>,
}

/// What the configuration says of a hand-over.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// The target's window.
    pub window: trim::Configured,
    /// How many of the newest tool results stay whole.
    pub keep_tools: Option<u64>,
    /// How many turns stay at most.
    pub recent_turns: Option<u64>,
    /// Size of a summary in tokens.
    pub summary: Option<u64>,
}

impl Options {
    /// A hand-over to `write.target`, fitted into its window.
    ///
    /// # Errors
    /// There is no such agent, or nothing of its window is left.
    pub fn new(read: read::Options, write: write::Options, settings: &Settings) -> Result<Options> {
        let mut fit = trim::target(&write.target, |_| settings.window)?;
        fit.keep_tools = settings.keep_tools.unwrap_or(fit.keep_tools);
        fit.recent_turns = settings.recent_turns;
        let (keep_tools, configured) = (settings.keep_tools, settings.window);
        let write = write::Options { fit: true, keep_tools, configured, ..write };
        Ok(Options { read, redact: false, trim: fit, summary: settings.summary, write, version: None })
    }
}

/// Hands a session over. Gives whether it could be read as a whole.
///
/// # Errors
/// Those of reading and writing.
pub fn run(
    options: &Options,
    world: &World,
    emit: &mut dyn FnMut(write::Piece<'_>) -> Result<()>,
    report: &mut dyn Report,
) -> Result<bool> {
    let via = |name: &str, options_given: Vec<String>| {
        let version = options.version.clone()?;
        Some(Via { name: format!("relay-{name}"), version, options: options_given })
    };
    // their keys are drawn from clones, so that what relay-write draws is the same as in a process of its own
    let mut stages: Vec<Box<dyn Filter>> = Vec::new();
    if options.redact {
        stages.push(Box::new(redact::usual(&world.clone(), false, false)?));
    }
    let target = format!("--for={}", options.write.target);
    let summary = summarize::Options { usual: options.summary, ..summarize::Options::default() };
    let filters: [(&str, Vec<String>, Box<dyn Filter>); 3] = [
        ("pair", Vec::new(), Box::new(Pair::new(pair::Options::default()))),
        ("trim", vec![target], Box::new(trim::Fit::new(options.trim.clone())?)),
        ("summarize", Vec::new(), Box::new(Summarize::new(summary))),
    ];
    for (name, given, filter) in filters {
        stages.push(Box::new(Signing::new(filter, via(name, given))));
    }
    let mut chain = Chain::new(stages);
    let read = read::Options { via: via("read", Vec::new()), ..options.read.clone() };
    let mut secrets = (!options.redact).then(|| redact::usual(&world.clone(), false, true)).transpose()?;
    let later = RefCell::new(Vec::new());
    let mut whole = true;
    let handed = write::fed(&options.write, world, emit, &mut Later(&later), |written| {
        let mut counted = Counted { secrets: secrets.as_mut(), out: written, tape: Tape::new() };
        let mut through = Through::new(&mut chain, &mut counted);
        whole = read::run(&read, world, &mut through, report)?;
        through.end()?;
        // before the other agent may take over
        tell(&later, report);
        Ok(())
    });
    tell(&later, report);
    handed.map_err(|e| match e.hint() {
        // here the writer's directory has a word of its own
        Some(hint) if hint.contains("--project DIR, or") => {
            let hint = hint.replace("--project DIR", "--into DIR");
            e.with_hint(hint)
        }
        _ => e,
    })?;
    let found: u64 =
        secrets.iter().flat_map(|s| s.tally().rules.into_values()).map(|(_, values)| values).sum();
    if found > 0 {
        let what = if found == 1 { "1 value looks" } else { &format!("{found} values look") };
        report.say(&format!("{what} like secrets and went along: --redact replaces them"));
    }
    Ok(whole)
}

/// What the writer says, kept until the reader, which began first, has said what it read.
struct Later<'c>(&'c RefCell<Vec<Said>>);

enum Said {
    Line(String),
    Failure(Error),
}

impl Report for Later<'_> {
    fn say(&mut self, line: &str) {
        self.0.borrow_mut().push(Said::Line(line.to_owned()));
    }

    fn fail(&mut self, error: &Error) {
        let mut same = Error::failed(error.to_string());
        if let Some(hint) = error.hint() {
            same = same.with_hint(hint);
        }
        self.0.borrow_mut().push(Said::Failure(same));
    }
}

fn tell(later: &RefCell<Vec<Said>>, report: &mut dyn Report) {
    for said in later.take() {
        match said {
            Said::Line(line) => report.say(&line),
            Said::Failure(error) => report.fail(&error),
        }
    }
}

/// Looks for secrets in what is handed over, and hands it on as it is.
struct Counted<'a> {
    secrets: Option<&'a mut Redact<'static>>,
    out: &'a mut dyn Sink,
    tape: Tape,
}

impl Sink for Counted<'_> {
    fn put(&mut self, line: &[u8]) -> Result<()> {
        if let Some(secrets) = &mut self.secrets {
            let live = {
                let record = Record::new(line, &mut self.tape)?;
                record.head().is_live() || matches!(record.head().kind, Kind::Session | Kind::End)
            };
            if live {
                let seen = without_extra(line, &mut self.tape)?;
                let mut tape = Tape::new();
                secrets.record(&Record::new(&seen, &mut tape)?, &mut Nowhere)?;
            }
        }
        self.out.put(line)
    }
}

struct Nowhere;

impl Sink for Nowhere {
    fn put(&mut self, _: &[u8]) -> Result<()> {
        Ok(())
    }
}

/// A record without what only its source needs.
fn without_extra(line: &[u8], tape: &mut Tape) -> Result<Vec<u8>> {
    let record = tape.parse(line).map_err(|e| Error::shape(e.to_string()))?;
    let Some(extra) = record.get("extra") else { return Ok(line.to_vec()) };
    Ok(splice(line, vec![(extra.span(), b"null".to_vec())]))
}
