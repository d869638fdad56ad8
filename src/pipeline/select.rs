//! Which sessions a command line means.
//!
//! A word is a path (it holds a `/`, or a file of that name exists), `-` for standard input, an id, the
//! beginning of an id that only one session has, a title or a first prompt, whether capital or small. Without a word it is the session that
//! the agent itself would go on with: of those of the project, the file changed last (Claude Code 2.1.332
//! `--continue` goes by that time, whatever the lines say).

use crate::agents::{AGENTS, Agent, Found, OWN_FOLDER, Peek};
use crate::record::{Error, Problems, Result, path::is_of_windows};
use crate::stream::{Report, World, nearest};
use jiff::civil::{Date, DateTime};
use jiff::{SignedDuration, Timestamp};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// Fewest characters of an id that stand for it.
const SHORTEST: usize = 4;

/// Most candidates that an error lists.
const LISTED: usize = 10;

/// What is asked for.
#[derive(Debug, Clone, Default)]
pub struct Wanted {
    /// Paths, `-`, ids, beginnings of ids, titles.
    pub sessions: Vec<OsString>,
    /// Another project than the current directory's.
    pub project: Option<PathBuf>,
    /// Whatever the project.
    pub any_project: bool,
    /// Every session that matches, the oldest first.
    pub all: bool,
    /// The newest one, even if it was made without a terminal.
    pub headless: bool,
    /// Changed at this time or later: `7d`, `12h`, `30m`, a date, an RFC 3339 time.
    pub since: Option<String>,
    /// Changed before this time; a date stands for its end.
    pub until: Option<String>,
    /// The only folder to look in.
    pub root: Option<PathBuf>,
    /// Folders that the configuration names, by agent.
    pub configured: BTreeMap<String, PathBuf>,
}

/// One session to read.
#[derive(Clone)]
pub struct Chosen {
    /// Whose it is.
    pub agent: Whose,
    /// Where it is.
    pub from: From,
}

/// Whose session a file is.
#[derive(Clone, Copy)]
pub enum Whose {
    /// It stands in this agent's store.
    Stored(&'static dyn Agent),
    /// The user says so.
    Claimed(&'static dyn Agent),
    /// Its content must tell.
    Unknown,
}

/// Where a session is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum From {
    /// Standard input.
    Stdin,
    /// A file.
    File(Found),
}

/// The sessions of one agent.
struct Shelf {
    agent: &'static dyn Agent,
    sessions: Vec<Found>,
}

/// One of them.
#[derive(Clone)]
struct Candidate {
    agent: &'static dyn Agent,
    found: Found,
}

/// Finds what is wanted among the sessions of `agents` (one, or all for `auto`).
///
/// # Errors
/// Nothing is found (every place looked at is named), a word means several sessions, or options
/// contradict each other.
pub fn select(
    agents: &[&'static dyn Agent],
    wanted: &Wanted,
    world: &World,
    report: &mut dyn Report,
) -> Result<Vec<Chosen>> {
    let search = Search::new(agents, wanted, world)?;
    if wanted.sessions.is_empty() {
        return search.newest(report);
    }
    if wanted.all || wanted.since.is_some() || wanted.until.is_some() {
        return Err(Error::Usage {
            what: "--all, --since and --until cannot be used with a SESSION".to_owned(),
            hint: Some("leave out the SESSION, or the options".to_owned()),
        });
    }
    // the stores are listed once, and only when a word is no file
    let mut shelves = None;
    let mut chosen = Vec::new();
    for word in &wanted.sessions {
        chosen.push(search.word(word, &mut shelves, report)?);
    }
    Ok(chosen)
}

/// Every session of the agents in the wanted time, the one changed last first.
pub(super) fn every(
    agents: &[&'static dyn Agent],
    wanted: &Wanted,
    world: &World,
    report: &mut dyn Report,
) -> Result<Vec<(&'static dyn Agent, Found)>> {
    let search = Search::new(agents, wanted, world)?;
    let mut all: Vec<Candidate> = Vec::new();
    for Shelf { agent, sessions } in search.shelves(report)? {
        let in_time = sessions.into_iter().filter(|found| search.in_time(found));
        all.extend(in_time.map(|found| Candidate { agent, found }));
    }
    all.sort_by(newest_first);
    Ok(all.into_iter().map(|candidate| (candidate.agent, candidate.found)).collect())
}

/// The project that is meant.
pub(super) fn project(wanted: &Wanted, world: &World) -> PathBuf {
    let project = match &wanted.project {
        // of another machine: there is no such folder here
        Some(project) if project.to_str().is_some_and(is_of_windows) => project.clone(),
        Some(project) => world.resolve(project),
        None => world.directory().to_owned(),
    };
    // sessions outlive their directories: one that is gone is taken by its name
    project.canonicalize().unwrap_or(project)
}

struct Search<'s> {
    agents: &'s [&'static dyn Agent],
    wanted: &'s Wanted,
    world: &'s World,
    since: Option<Timestamp>,
    until: Option<Timestamp>,
    /// Absolute and free of links, where it exists.
    project: PathBuf,
}

impl<'s> Search<'s> {
    fn new(agents: &'s [&'static dyn Agent], wanted: &'s Wanted, world: &'s World) -> Result<Search<'s>> {
        Ok(Search {
            agents,
            wanted,
            world,
            since: wanted.since.as_deref().map(|text| time("--since", text, false, world)).transpose()?,
            until: wanted.until.as_deref().map(|text| time("--until", text, true, world)).transpose()?,
            project: project(wanted, world),
        })
    }

    fn places(&self, agent: &dyn Agent) -> Vec<PathBuf> {
        let configured = self.wanted.configured.get(agent.name()).map(PathBuf::as_path);
        agent.store().places(self.wanted.root.as_deref(), configured, self.world)
    }

    fn shelves(&self, report: &mut dyn Report) -> Result<Vec<Shelf>> {
        let mut shelves = Vec::new();
        for agent in self.agents {
            let mut problems = Problems::default();
            let mut sessions = Vec::new();
            for place in self.places(*agent) {
                sessions.extend(agent.store().list(&place, &mut problems)?);
            }
            // the wanted session may stand behind what cannot be looked into, so this is never kept quiet
            for problem in problems.iter() {
                for place in &problem.first {
                    report.fail(&Error::failed(format!("skipped: {}", place.note)));
                }
                let more = problem.count.saturating_sub(problem.first.len() as u64);
                if more > 0 {
                    report.fail(&Error::failed(format!(
                        "skipped: {more} more places that cannot be looked into"
                    )));
                }
            }
            shelves.push(Shelf { agent: *agent, sessions });
        }
        Ok(shelves)
    }

    /// What one word means.
    fn word(
        &self,
        word: &OsStr,
        shelves: &mut Option<Vec<Shelf>>,
        report: &mut dyn Report,
    ) -> Result<Chosen> {
        let claimed = match self.agents {
            [only] => Whose::Claimed(*only),
            _ => Whose::Unknown,
        };
        if word == "-" {
            return Ok(Chosen { agent: claimed, from: From::Stdin });
        }
        let path = self.world.resolve(Path::new(word));
        if word.as_encoded_bytes().contains(&b'/') || path.is_file() {
            let metadata = std::fs::metadata(&path).map_err(Error::io(path.display().to_string()))?;
            let id = self.agents.iter().find_map(|agent| agent.store().id_of(&path)).unwrap_or_default();
            let updated = metadata.modified().unwrap_or(std::time::SystemTime::UNIX_EPOCH);
            let place = self.wanted.root.as_deref().map(|root| self.world.resolve(root));
            let bytes = metadata.len();
            let found = Found { path, id, updated, bytes, title: None, place };
            return Ok(Chosen { agent: claimed, from: From::File(found) });
        }
        let shelves = match shelves {
            Some(shelves) => shelves,
            None => shelves.insert(self.shelves(report)?),
        };
        let Some(text) = word.to_str().filter(|text| !text.is_empty()) else {
            return Err(self.nothing(&format!("no session is called {word:?}"), shelves));
        };
        let mut matches = self.by_id(text, shelves, report)?;
        if matches.is_empty() {
            matches = self.by_title(text, shelves, report)?;
        }
        match &matches[..] {
            [] => {
                let nothing =
                    self.nothing(&format!("no session has the id, title or first prompt {text:?}"), shelves);
                let hint = match path.is_dir() {
                    true => Some(format!(
                        "{text:?} is a folder: name a session file in it, or the project: --project {text}"
                    )),
                    false => self.meant(text, shelves),
                };
                Err(match hint {
                    Some(hint) => nothing.with_hint(hint),
                    None => nothing,
                })
            }
            [one] => Ok(one.chosen()),
            several => Err(ambiguous(text, several)),
        }
    }

    /// The sessions whose id is or begins with the text.
    fn by_id(&self, text: &str, shelves: &[Shelf], report: &mut dyn Report) -> Result<Vec<Candidate>> {
        let lower = text.to_ascii_lowercase();
        if lower.len() < SHORTEST {
            return Ok(Vec::new());
        }
        let mut matches: Vec<Candidate> = Vec::new();
        for shelf in shelves.iter().filter(|shelf| shelf.agent.store().is_id(&lower)) {
            let same = shelf.sessions.iter().filter(|found| found.id.starts_with(&lower));
            matches.extend(same.map(|found| Candidate { agent: shelf.agent, found: found.clone() }));
        }
        if self.wanted.project.is_some() && !self.wanted.any_project {
            matches = self.of_project(matches, report);
        }
        // one id in two folders (copied, moved with its project): the copy that lives on is meant
        matches.sort_by(newest_first);
        let mut copies = Vec::new();
        let mut kept: Vec<Candidate> = Vec::new();
        for candidate in matches {
            match kept
                .iter()
                .any(|k| k.found.id == candidate.found.id && k.agent.name() == candidate.agent.name())
            {
                true => copies.push(candidate.found.path.display().to_string()),
                false => kept.push(candidate),
            }
        }
        if let ([one], false) = (&kept[..], copies.is_empty()) {
            let path = one.found.path.display();
            report.say(&format!(
                "session {} is there more than once; read {path}, not {}",
                one.found.id,
                copies.join(", ")
            ));
        }
        Ok(kept)
    }

    /// What a word that means nothing may have been meant to be.
    fn meant(&self, text: &str, shelves: &[Shelf]) -> Option<String> {
        let lower = text.to_lowercase();
        let ids = |shelf: &Shelf| shelf.sessions.iter().any(|found| found.id.starts_with(&lower));
        if lower.len() < SHORTEST && shelves.iter().any(ids) {
            return Some(format!("give {SHORTEST} or more characters of the id"));
        }
        for agent in AGENTS.iter().filter(|agent| self.agents.iter().all(|a| a.name() != agent.name())) {
            let mut problems = Problems::default();
            let places = self.places(*agent);
            let mut listed =
                places.iter().filter_map(|place| agent.store().list(place, &mut problems).ok()).flatten();
            if lower.len() >= SHORTEST && listed.any(|found| found.id.starts_with(&lower)) {
                return Some(format!("that id is of a session of {0}: relay-read {0} {text}", agent.name()));
            }
        }
        let all = || shelves.iter().flat_map(|shelf| shelf.sessions.iter().map(move |found| (shelf, found)));
        let titles: Vec<(String, &str)> = all()
            .filter_map(|(shelf, found)| {
                let peek = shelf.agent.store().peek(found).ok()?;
                Some((peek.title.or(peek.prompt)?, found.id.as_str()))
            })
            .collect();
        let like = titles.iter().find(|(title, _)| title.to_lowercase().contains(&lower));
        let like = like.or_else(|| {
            let near = nearest(text, titles.iter().map(|(title, _)| title.as_str()))?;
            titles.iter().find(|(title, _)| title == near)
        });
        if let Some((title, id)) = like {
            return Some(format!("did you mean {title:?}? it is session {id}"));
        }
        let near = |(_, found): &(&Shelf, &Found)| {
            let head = found.id.get(..lower.len().min(found.id.len()));
            head.is_some_and(|head| nearest(&lower, [head]).is_some())
        };
        let (_, found) = all().find(near).filter(|_| lower.len() >= SHORTEST)?;
        Some(format!("did you mean session {}?", found.id))
    }

    /// Where sessions are that belong to another project than the current one.
    fn elsewhere(&self, others: &BTreeMap<PathBuf, u64>) -> String {
        let named = |folder: &Path| format!("relay-read … --project {}", folder.display());
        if self.wanted.project.is_some() && !self.project.is_dir() {
            let names = others.keys().filter_map(|folder| folder.to_str());
            return match nearest(&self.project.display().to_string(), names) {
                Some(near) => format!("there is no such folder; did you mean: {}", named(Path::new(near))),
                None => "there is no such folder, and no session ran in one of this name".to_owned(),
            };
        }
        if let Some(parent) = self.project.ancestors().skip(1).find(|a| others.contains_key(*a)) {
            return format!("there are some in the folder above: {}", named(parent));
        }
        if let Some(below) = others.keys().find(|folder| folder.starts_with(&self.project)) {
            return format!("there are some in a folder below: {}", named(below));
        }
        let name = self.project.file_name();
        if let Some(moved) = others.keys().find(|folder| name.is_some() && folder.file_name() == name) {
            return format!("if this project was moved here: {}", named(moved));
        }
        match others.values().sum::<u64>() {
            1 => "one session belongs to another project: --any-project takes it".to_owned(),
            n => format!(
                "{n} sessions belong to other projects: --any-project takes the newest, --project DIR names one"
            ),
        }
    }

    fn of_project(&self, candidates: Vec<Candidate>, report: &mut dyn Report) -> Vec<Candidate> {
        let belongs = |candidate: &Candidate| match candidate.agent.store().peek(&candidate.found) {
            Ok(peek) => candidate.agent.store().belongs(&candidate.found, &peek, &self.project),
            Err(e) => {
                report.fail(&e);
                false
            }
        };
        let mut belongs = belongs;
        candidates.into_iter().filter(|candidate| belongs(candidate)).collect()
    }

    /// The sessions with this title, or that begin with this prompt.
    fn by_title(&self, text: &str, shelves: &[Shelf], report: &mut dyn Report) -> Result<Vec<Candidate>> {
        let small = text.trim().to_lowercase();
        // what fits best counts: the title as it is, else in other letters, else the first prompt
        let mut fitting: [Vec<Candidate>; 3] = Default::default();
        for shelf in shelves {
            let store = shelf.agent.store();
            for found in &shelf.sessions {
                let Peek { title, prompt, .. } = match store.peek(found) {
                    Ok(peek) => peek,
                    Err(e) => {
                        report.fail(&e);
                        continue;
                    }
                };
                let is =
                    |said: &Option<String>| said.as_deref().is_some_and(|s| s.trim().to_lowercase() == small);
                let fits = [title.as_deref() == Some(text), is(&title), is(&prompt)];
                if let Some(place) =
                    fits.iter().zip(&mut fitting).find_map(|(fits, place)| fits.then_some(place))
                {
                    place.push(Candidate { agent: shelf.agent, found: found.clone() });
                }
            }
        }
        let mut matches = fitting.into_iter().find(|found| !found.is_empty()).unwrap_or_default();
        if self.wanted.project.is_some() && !self.wanted.any_project {
            matches = self.of_project(matches, report);
        }
        matches.sort_by(newest_first);
        Ok(matches)
    }

    /// The session changed last of those that match, or all of them.
    fn newest(&self, report: &mut dyn Report) -> Result<Vec<Chosen>> {
        let shelves = self.shelves(report)?;
        let mut candidates: Vec<Candidate> = Vec::new();
        for shelf in &shelves {
            candidates.extend(
                shelf.sessions.iter().map(|found| Candidate { agent: shelf.agent, found: found.clone() }),
            );
        }
        candidates.sort_by(newest_first);
        let mut chosen = Vec::new();
        let mut elsewhere: BTreeMap<PathBuf, u64> = BTreeMap::new();
        let (mut unsaid, mut headless) = (0, 0);
        for candidate in candidates {
            if !self.in_time(&candidate.found) {
                continue;
            }
            let store = candidate.agent.store();
            let peek = match store.peek(&candidate.found) {
                Ok(peek) => peek,
                Err(e) => {
                    report.fail(&e);
                    continue;
                }
            };
            if peek.subagent || is_own(&peek) {
                continue;
            }
            if !self.wanted.any_project && !store.belongs(&candidate.found, &peek, &self.project) {
                if peek.conversation {
                    *elsewhere.entry(peek.started_in.clone().unwrap_or_default()).or_default() += 1;
                }
                continue;
            }
            if !peek.conversation {
                unsaid += 1;
                continue;
            }
            if peek.headless && !self.wanted.headless && !self.wanted.all {
                headless += 1;
                continue;
            }
            chosen.push(candidate.chosen());
            if !self.wanted.all {
                break;
            }
        }
        if chosen.is_empty() {
            let project = match self.wanted.any_project {
                true => String::new(),
                false => format!(" of project {}", self.project.display()),
            };
            let time = match (self.since, self.until) {
                (None, None) => "",
                _ => " in that time",
            };
            let error = self.nothing(&format!("no session{project}{time}"), &shelves);
            return Err(if headless > 0 {
                error.with_hint(format!("{} made without a terminal: --headless", counted(headless)))
            } else if !elsewhere.is_empty() {
                error.with_hint(self.elsewhere(&elsewhere))
            } else if unsaid > 0 {
                error.with_hint(format!(
                    "{} hold no prompt, so there is nothing to hand over",
                    counted(unsaid)
                ))
            } else {
                error
            });
        }
        if headless > 0 {
            report.say(&format!(
                "passed over {} made without a terminal: --headless takes them",
                counted(headless)
            ));
        }
        if unsaid > 0 && !self.wanted.all {
            report.say(&format!("passed over {} without a prompt", counted(unsaid)));
        }
        // an archive reads in the order in which it grew
        chosen.reverse();
        Ok(chosen)
    }

    fn in_time(&self, found: &Found) -> bool {
        // a time that no calendar knows is older than anything asked for
        let updated = Timestamp::try_from(found.updated).unwrap_or(Timestamp::MIN);
        self.since.is_none_or(|since| updated >= since) && self.until.is_none_or(|until| updated < until)
    }

    /// The error that names every place.
    fn nothing(&self, what: &str, shelves: &[Shelf]) -> Error {
        let places: Vec<String> = shelves
            .iter()
            .flat_map(|shelf| self.places(shelf.agent))
            .map(|place| match place.is_dir() {
                true => place.display().to_string(),
                false => format!("{} (not there)", place.display()),
            })
            .collect();
        if places.is_empty() {
            return Error::failed(format!("{what}; nowhere to look: HOME is not set"))
                .with_hint("name a file, or a folder with --root DIR");
        }
        Error::failed(format!("{what}; looked in {}", places.join(", ")))
            .with_hint("name a file, or another folder with --root DIR")
    }
}

/// So many sessions, in words.
fn counted(sessions: u64) -> String {
    if sessions == 1 { "1 session".to_owned() } else { format!("{sessions} sessions") }
}

impl Candidate {
    fn chosen(&self) -> Chosen {
        Chosen { agent: Whose::Stored(self.agent), from: From::File(self.found.clone()) }
    }
}

fn newest_first(a: &Candidate, b: &Candidate) -> std::cmp::Ordering {
    b.found.updated.cmp(&a.found.updated).then_with(|| a.found.path.cmp(&b.found.path))
}

/// Whether relay itself had an agent make this session.
fn is_own(peek: &Peek) -> bool {
    let folder = peek.started_in.as_deref().and_then(Path::file_name).and_then(OsStr::to_str);
    folder.is_some_and(|folder| folder.starts_with(OWN_FOLDER))
}

fn ambiguous(text: &str, several: &[Candidate]) -> Error {
    let mut listed: Vec<String> = several
        .iter()
        .take(LISTED)
        .map(|c| {
            let directory = c.agent.store().peek(&c.found).ok().and_then(|peek| peek.started_in);
            let directory = directory.map(|d| format!(" in {}", d.display())).unwrap_or_default();
            format!("{} {}{directory}", c.agent.name(), c.found.id)
        })
        .collect();
    if several.len() > LISTED {
        listed.push(format!("{} more", several.len() - LISTED));
    }
    Error::failed(format!("{text:?} means {} sessions: {}", several.len(), listed.join("; ")))
        .with_hint("give more of the id, or the path of the file")
}

/// A point in time as the command line gives it. With `end`, a date is its last moment.
fn time(option: &str, text: &str, end: bool, world: &World) -> Result<Timestamp> {
    let wrong = || Error::Usage {
        what: format!("{option}: {text:?} is no time"),
        hint: Some("for example 7d, 12h, 30m, 2026-01-31, 2026-01-31T12:00:00Z".to_owned()),
    };
    if let Some((unit, number)) =
        text.char_indices().next_back().and_then(|(n, unit)| Some((unit, text.get(..n)?)))
        && let Ok(number) = number.parse::<u32>()
    {
        let seconds = match unit {
            's' => 1,
            'm' => 60,
            'h' => 3600,
            'd' => 86_400,
            'w' => 7 * 86_400,
            _ => return Err(wrong()),
        };
        let ago = SignedDuration::from_secs(i64::from(number) * seconds);
        return world.now().checked_sub(ago).map_err(|_| wrong());
    }
    if let Ok(time) = text.parse::<Timestamp>() {
        return Ok(time);
    }
    let local = match (text.contains(['T', ' ', ':']), end) {
        (true, _) => text.parse::<DateTime>().map_err(|_| wrong())?,
        (false, false) => {
            text.parse::<Date>().map_err(|_| wrong())?.to_datetime(jiff::civil::Time::midnight())
        }
        (false, true) => {
            let next = text.parse::<Date>().and_then(Date::tomorrow).map_err(|_| wrong())?;
            next.to_datetime(jiff::civil::Time::midnight())
        }
    };
    world.zone().to_timestamp(local).map_err(|_| wrong())
}
