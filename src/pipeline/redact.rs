//! What relay-redact does: opens the files that the filter works with, and runs it.

use super::filter;
use crate::filters::redact::detect::{Choice, Class, Confidence, Detector};
use crate::filters::redact::{
    Allow, Finding, Key, Redact, Restore, Setup, Tally, Tell, map_key, map_key_line,
};
use crate::record::{Error, Result};
use crate::stream::{
    Gathered, Input, Nowhere, Output, Placing, Private, Report, Sink, Source, World, counted,
};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// The largest list or file of rules, in bytes.
const LARGEST: u64 = 4 << 20;

/// What to redact; as the command line has it.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Home names and mail addresses, too.
    pub share: bool,
    /// Classes of personal data, or `all`.
    pub pii: Vec<String>,
    /// Rules of the user's own.
    pub rules: Option<PathBuf>,
    /// The only rules or classes.
    pub only: Vec<String>,
    /// Rules or classes that do not run.
    pub skip: Vec<String>,
    /// `high`, `medium` or `low`; empty is medium.
    pub confidence: String,
    /// Endings of names of private machines.
    pub host_suffixes: Vec<String>,
    /// Values that stay.
    pub allow: Option<PathBuf>,
    /// The map.
    pub map: Option<PathBuf>,
    /// The key of numbers.
    pub salt: Option<PathBuf>,
    /// Put values back, from this map or that of `map`.
    pub restore: Option<Option<PathBuf>>,
    /// Read everything first.
    pub two_pass: bool,
    /// What was found goes here.
    pub report: Option<PathBuf>,
    /// Print what was found, not the stream.
    pub check: bool,
}

/// Redacts a stream, or restores it; says whether anything was found. `name` stands for the input in errors.
///
/// The session is not signed (`via`): what is put back must be what was there, and a second run must change nothing.
/// Placeholders say themselves whose they are.
///
/// `out` is not finished here: that stays the last thing the command does.
///
/// # Errors
/// What the source, the sink or the files say; a map or salt that others can read; an unknown rule.
pub fn run(
    input: Input,
    name: &str,
    options: &Options,
    world: &World,
    out: &mut dyn Sink,
    report: &mut dyn Report,
) -> Result<bool> {
    let mut source = Source::new(input, name);
    if let Some(map) = &options.restore {
        let map = map.as_ref().or(options.map.as_ref()).ok_or_else(|| Error::Usage {
            what: "--restore needs a map".to_owned(),
            hint: Some("name the file that --map made: --restore FILE".to_owned()),
        })?;
        let map = Private::open(&world.resolve(map))?.contents()?;
        let mut restore = Restore::new(&map)?;
        filter::run(&mut source, &mut restore, None, out, report)?;
        let (restored, unknown) = restore.counts();
        let more =
            if unknown > 0 { format!(", {unknown} that the map does not have") } else { String::new() };
        report.say(&format!("{} put back{more}", counted(restored, "value")));
        return Ok(false);
    }
    let detector = Detector::new(&choice(options, world)?)?;
    let allow = match &options.allow {
        None => Allow::default(),
        Some(path) => Allow::parse(&small(&world.resolve(path))?)?,
    };
    let mut map = options.map.as_ref().map(|p| Private::open_or_make(&world.resolve(p))).transpose()?;
    let held = map.as_mut().map(Private::contents).transpose()?.unwrap_or_default();
    let key = key(options, world, map.as_mut(), &held)?;
    if allow.has_fingerprints() && options.map.is_none() && options.salt.is_none() {
        return Err(Error::Usage {
            what: "--allow with fingerprints needs the key they were made with".to_owned(),
            hint: Some("add the --salt or --map of the run that printed them".to_owned()),
        });
    }
    let to_stdout = options.report.as_deref().is_some_and(|path| path.as_os_str() == "-");
    if to_stdout && !options.check {
        return Err(Error::Usage {
            what: "the stream and --report - both want stdout".to_owned(),
            hint: Some("name a file, or add --check: then there is no stream".to_owned()),
        });
    }
    let report_file = options.report.as_ref().filter(|_| !to_stdout);
    let mut written = report_file.map(|p| Placing::begin(&world.resolve(p))).transpose()?;
    let mut lines = match &mut written {
        None => None,
        Some(placing) => {
            let place = placing.target().display().to_string();
            let file = placing.file().try_clone().map_err(Error::io(&place))?;
            Some(Output::file(file, place, crate::stream::Compression::None)?)
        }
    };
    let mut nowhere = Nowhere;
    let (records, told): (&mut dyn Sink, Option<&mut dyn Sink>) =
        if options.check { (&mut nowhere, Some(out)) } else { (out, None) };
    let mut told = told;
    let mut tell = |finding: &Finding<'_>| {
        if let Some(lines) = &mut lines {
            lines.put(&line(finding)?)?;
        }
        match &mut told {
            Some(out) if to_stdout => out.put(&line(finding)?),
            Some(out) => out.put(words(finding).as_bytes()),
            None => Ok(()),
        }
    };
    let findings = (options.check || options.report.is_some()).then_some(&mut tell as &mut Tell<'_>);
    let mut redact = Redact::new(Setup {
        detector,
        allow,
        key,
        salted: options.salt.is_some(),
        map: &held,
        journal: map.as_mut().map(|m| m as &mut dyn Sink),
        findings,
        two_pass: options.two_pass,
        check: options.check,
    })?;
    match filter::run(&mut source, &mut redact, None, records, report) {
        // its reason may tell something, too
        Err(Error::Aborted(abort)) => return Err(Error::Aborted(redact.abort(&abort)?)),
        other => other?,
    }
    let tally = redact.tally();
    drop(redact);
    if let Some(map) = map {
        map.finish()?;
    }
    if let Some(mut lines) = lines {
        lines.put(&sum(&tally))?;
        lines.finish()?;
    }
    if let Some(placing) = written {
        placing.persist()?;
    }
    if !options.check && source.sessions() > 0 {
        report.say(&summary(&tally));
    }
    if tally.unfollowed > 0 && !options.check {
        report.say(&format!(
            "warning: {} secrets were replaced where they were found, but are too many or too long to be looked for elsewhere",
            tally.unfollowed
        ));
    }
    Ok(tally.places() > 0)
}

/// What replaces secrets by the usual rules, without files of the user; with `check`, only counts them.
///
/// # Errors
/// A rule that does not work.
pub fn usual(world: &World, two_pass: bool, check: bool) -> Result<Redact<'static>> {
    let options = Options::default();
    Redact::new(Setup {
        detector: Detector::new(&choice(&options, world)?)?,
        allow: Allow::default(),
        key: key(&options, world, None, &[])?,
        salted: false,
        map: &[],
        journal: None,
        findings: None,
        two_pass,
        check,
    })
}

/// The secrets of a text replaced, each wherever it stands, for what is no stream.
///
/// # Errors
/// Memory or the temporary file.
pub fn text(text: &str, world: &World) -> Result<String> {
    let mut redact = usual(world, true, false)?;
    let message = serde_json::json!({"type": "message", "role": "user", "content": text});
    let stream = format!(
        "{{\"type\":\"session\",\"relay\":1,\"session_id\":\"\"}}\n{message}\n{{\"type\":\"end\"}}\n"
    );
    let mut source = Source::new(stream.as_bytes(), "text");
    let mut out: Vec<Vec<u8>> = Vec::new();
    filter::run(&mut source, &mut redact, None, &mut out, &mut Gathered::default())?;
    let content = out.iter().find_map(|line| {
        let record: serde_json::Value = serde_json::from_slice(line).ok()?;
        record.get("content")?.as_str().map(str::to_owned)
    });
    content.ok_or_else(|| Error::failed("the redacted text is not there"))
}

fn choice(options: &Options, world: &World) -> Result<Choice> {
    let mut classes = vec![Class::Secret];
    if options.share {
        classes.extend([Class::Home, Class::Email]);
    }
    for word in &options.pii {
        match Class::named(word) {
            Some(class) => classes.push(class),
            None if word == "all" => classes.extend(Class::ALL),
            None => {
                let known: Vec<&str> =
                    Class::ALL.iter().map(|c| c.name()).filter(|&n| n != "secret").collect();
                return Err(Error::Usage {
                    what: format!("no class of personal data is named {word:?}"),
                    hint: Some(format!("there are {} and all", known.join(", "))),
                });
            }
        }
    }
    classes.sort_unstable();
    classes.dedup();
    let rules = options.rules.as_ref().map(|path| {
        let path = world.resolve(path);
        String::from_utf8(small(&path)?)
            .map_err(|_| Error::input(path.display().to_string(), "a file of rules is UTF-8"))
    });
    Ok(Choice {
        classes,
        only: options.only.clone(),
        skip: options.skip.clone(),
        confidence: match options.confidence.as_str() {
            "high" => Confidence::High,
            "low" => Confidence::Low,
            _ => Confidence::Medium,
        },
        rules: rules.transpose()?,
        host_suffixes: options.host_suffixes.clone(),
        homes: ["HOME", "USERPROFILE"]
            .iter()
            .filter_map(|name| world.variable(name)?.to_str().map(str::to_owned))
            .collect(),
    })
}

/// A file that people write by hand.
fn small(path: &Path) -> Result<Vec<u8>> {
    let place = path.display().to_string();
    // not even opened when it is something else: a pipe would wait for ever
    if !std::fs::metadata(path).map_err(Error::io(&place))?.is_file() {
        return Err(Error::failed(format!("{place}: is not a plain file")).with_hint("name a file"));
    }
    let file = File::open(path).map_err(Error::io(&place))?;
    let mut bytes = Vec::new();
    file.take(LARGEST + 1).read_to_end(&mut bytes).map_err(Error::io(&place))?;
    if bytes.len() as u64 > LARGEST {
        return Err(Error::input(place, "larger than 4 MiB"));
    }
    Ok(bytes)
}

/// The key of fingerprints and, with a salt, of numbers: of the salt, else of the map, else one that nobody keeps.
fn key(options: &Options, world: &World, map: Option<&mut Private>, held: &[u8]) -> Result<Key> {
    let fresh = || (0..4).map(|_| format!("{:016x}", world.random())).collect::<String>();
    if let Some(path) = &options.salt {
        let mut file = Private::open_or_make(&world.resolve(path))?;
        let salt = file.contents()?;
        if !salt.is_empty() {
            return Key::new(&salt);
        }
        let salt = fresh();
        file.put(salt.as_bytes())?;
        file.finish()?;
        return Key::new(salt.as_bytes());
    }
    if let Some(key) = map_key(held)? {
        return Ok(key);
    }
    let made = fresh();
    if let Some(map) = map {
        map.put(&map_key_line(&made))?;
    }
    Key::new(made.as_bytes())
}

#[derive(serde::Serialize)]
struct Line<'a> {
    session_id: &'a str,
    record: u64,
    line: Option<u64>,
    pointer: &'a str,
    rule: &'a str,
    placeholder: &'a str,
    length: usize,
    fingerprint: &'a str,
}

fn line(finding: &Finding<'_>) -> Result<Vec<u8>> {
    let Finding { session_id, record, line, pointer, rule, placeholder, length, fingerprint } = *finding;
    let line = Line { session_id, record, line, pointer, rule, placeholder, length, fingerprint };
    serde_json::to_vec(&line).map_err(|e| Error::failed(e.to_string()))
}

fn words(finding: &Finding<'_>) -> String {
    let line = finding.line.map(|n| format!("line {n}, ")).unwrap_or_default();
    format!(
        "{}: {line}record {}, {}: {}, {} bytes, {}",
        finding.session_id,
        finding.record,
        finding.pointer,
        finding.rule,
        finding.length,
        finding.fingerprint
    )
}

/// The last line of a report.
fn sum(tally: &Tally) -> Vec<u8> {
    let rules: serde_json::Map<String, serde_json::Value> = tally
        .rules
        .iter()
        .map(|(rule, (places, values))| {
            (rule.clone(), serde_json::json!({"places": places, "values": values}))
        })
        .collect();
    let sum =
        serde_json::json!({"rules": rules, "skipped_bytes": tally.skipped, "unfollowed": tally.unfollowed});
    sum.to_string().into_bytes()
}

fn summary(tally: &Tally) -> String {
    if tally.places() == 0 {
        return "nothing found".to_owned();
    }
    let rules: Vec<String> =
        tally.rules.iter().map(|(rule, (places, _))| format!("{rule} {places}")).collect();
    let values: u64 = tally.rules.values().map(|(_, values)| values).sum();
    let (values, places) = (counted(values, "value"), counted(tally.places(), "place"));
    format!("{values} replaced in {places}: {}", rules.join(", "))
}
