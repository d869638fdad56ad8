//! What was done: files, commands, errors, the plan. States are those of the last call that worked.

use super::calls::{Call, State, Step, StepChange, only_looks, told};
use super::prompts::{clipped, floor};
use super::terms;
use crate::record::{Status, shell::Effect};
use std::collections::{HashMap, VecDeque};

/// Calls that wait for their result at one time; more are never open in a real session.
const OPEN: usize = 1_000;

/// Names kept of the newest changes of one file.
const NAMES: usize = 80;

/// Names kept of what was seen in one file, or said by one command.
pub(super) const SEEN: usize = 30;

/// Excerpts kept of the newest changes of one file, most of one change, and bytes of one and of a line of it.
const EXCERPTS: usize = 12;
const EACH: usize = 4;
const EXCERPT: usize = 200;
const EXCERPT_LINE: usize = 140;

/// Bytes of a command and of an error that are told.
const SHOWN: usize = 200;

/// Bytes at the beginning and at the end of a failed result that are searched for the error.
const SEARCHED: usize = 64 << 10;

/// Where in the session something stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) struct At {
    /// Position among the messages.
    pub(super) position: u32,
    /// Number of the record.
    pub(super) seq: u64,
    /// Whether the record stays in the conversation as it is.
    pub(super) kept: bool,
}

/// What became of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Fate {
    Read,
    Created,
    Edited,
    Deleted,
    /// Under this name, if that is clear.
    Moved(Option<String>),
}

/// One file.
#[derive(Debug)]
pub(super) struct File {
    pub(super) path: String,
    /// Whether the last call wrote the path as it is here, not as seen from the working directory.
    pub(super) absolute: bool,
    pub(super) fate: Fate,
    /// Changes so far.
    pub(super) changes: u32,
    /// The call that gave it its state.
    pub(super) at: At,
    /// The last call that touched it.
    pub(super) touched: At,
    /// Names in what the newest changes put in, newest last, each with its call.
    pub(super) names: VecDeque<(String, u64)>,
    /// Names that were seen in it, newest last, each with its result.
    pub(super) seen: VecDeque<(String, u64)>,
    /// Lines that the newest changes put in, newest last, each with its call.
    pub(super) excerpts: VecDeque<(String, At)>,
}

/// One command, all its runs together.
#[derive(Debug)]
pub(super) struct Command {
    pub(super) text: String,
    pub(super) runs: u32,
    pub(super) status: Status,
    pub(super) exit: Option<i64>,
    /// What it said when it failed.
    pub(super) error: String,
    /// Its last call.
    pub(super) at: At,
    /// Whether it only looks at things.
    pub(super) looks: bool,
    /// Names in what it printed, newest last, each with its result.
    pub(super) seen: VecDeque<(String, u64)>,
}

/// One error.
#[derive(Debug)]
pub(super) struct Failure {
    /// The command or the tool that failed.
    pub(super) what: String,
    pub(super) line: String,
    /// The result that tells it.
    pub(super) at: At,
    /// The call that failed.
    pub(super) called: u64,
    pub(super) times: u32,
    /// The run without it, if one came.
    pub(super) resolved: Option<At>,
    /// Files changed between, each with its call.
    pub(super) by: Vec<(String, u64)>,
    /// Whether a command failed, not one of the model's own tools.
    pub(super) command: bool,
    signature: u64,
}

/// What was looked for.
#[derive(Debug)]
pub(super) struct Search {
    pub(super) text: String,
    pub(super) at: At,
}

/// Changes that were taken back.
#[derive(Debug)]
pub(super) struct DeadEnd {
    pub(super) command: String,
    /// Each with its last change.
    pub(super) files: Vec<(String, u64)>,
    pub(super) at: At,
}

#[derive(Debug)]
struct Pending {
    call: Call,
    at: At,
    name: String,
    /// Names in its result.
    seen: Vec<String>,
}

/// What was done so far; bounded in entries.
#[derive(Debug, Default)]
pub(super) struct Work {
    open: HashMap<u64, Pending>,
    pub(super) files: HashMap<String, File>,
    pub(super) commands: HashMap<u64, Command>,
    pub(super) failures: Vec<Failure>,
    /// The open failure of each command, by its key.
    failing: HashMap<u64, usize>,
    pub(super) searches: VecDeque<Search>,
    pub(super) dead_ends: VecDeque<DeadEnd>,
    pub(super) plan: Vec<(Step, At)>,
    /// Tasks that are kept one a call, with their numbers.
    tasks: Vec<(String, Step, At)>,
    /// The newest changes: position, record, file.
    edits: VecDeque<(u32, u64, String)>,
    entries: usize,
    /// Whether the last result was a refusal of the user.
    pub(super) refused: bool,
    /// Calls so far.
    pub(super) calls: u64,
}

impl Work {
    /// Keeps about `bytes` of what is told.
    pub(super) fn new(bytes: usize) -> Work {
        Work { entries: (bytes / 250).clamp(60, 4_000), ..Work::default() }
    }

    pub(super) fn call(&mut self, id: u64, name: String, call: Call, at: At) {
        self.calls += 1;
        if self.open.len() >= OPEN {
            // calls that were never answered; what they did is unknown
            self.open.clear();
        }
        self.open.insert(id, Pending { call, at, name, seen: Vec::new() });
    }

    /// Whether the text of the result of this call tells more than its status.
    pub(super) fn wants_text(&self, id: u64) -> bool {
        self.open.get(&id).is_some_and(|p| matches!(p.call.step, Some(StepChange::Add(_))))
    }

    /// Names in the result of this call that are worth telling.
    pub(super) fn saw(&mut self, id: u64, names: &[&str]) {
        if let Some(pending) = self.open.get_mut(&id) {
            pending.seen = names.iter().map(|name| (*name).to_owned()).collect();
        }
    }

    /// The result of a call; `text` is what it says, where that was asked for or the call failed.
    pub(super) fn result(&mut self, id: u64, status: Status, exit: Option<i64>, text: &str, at: At) {
        let Some(Pending { call, at: called, name, seen }) = self.open.remove(&id) else { return };
        let failed = status.is_error();
        self.refused = failed && is_refusal(text);
        let error = if failed && !self.refused { error_line(text) } else { String::new() };
        if let Some(command) = &call.command {
            self.ran(command, status, exit, &error, called, at);
        } else if failed && !self.refused {
            let what = match call.files.first() {
                Some((path, _)) => format!("{name} {path}"),
                None => name.clone(),
            };
            self.failed(terms::key(&what), what, &error, false, called.seq, at);
        } else if let Some((path, _)) = call.files.first() {
            self.worked(terms::key(&format!("{name} {path}")), at);
        }
        let file = call.files.first().map(|(path, _)| path.clone());
        if failed {
            return;
        }
        if let Some(sought) = call.search {
            self.searches.push_back(Search { text: clipped(&one_line(&sought), SHOWN, 0), at: called });
            if self.searches.len() > self.entries {
                self.searches.pop_front();
            }
        }
        if let Some(plan) = call.plan {
            self.plan = plan.into_iter().map(|step| (step, called)).collect();
        }
        self.step(call.step, text, called);
        let mut moved: Option<String> = None;
        let whole = call.texts.get(call.new_text..).unwrap_or("");
        for (n, (path, effect)) in call.files.into_iter().enumerate() {
            if let (Some(from), Effect::Write) = (moved.take(), effect)
                && let Some(file) = self.files.get_mut(&from)
            {
                file.fate = Fate::Moved(Some(path));
                continue;
            }
            let text = call.parts.get(n).map_or(whole, String::as_str);
            let added = call.added.get(n).map_or(whole, String::as_str);
            self.touch(&path, effect, call.texts.contains(&path), called, text, added);
            moved = (effect == Effect::Move).then_some(path);
        }
        match (file.and_then(|path| self.files.get_mut(&path)), &call.command) {
            (Some(file), _) => {
                let path = &file.path;
                let other: Vec<String> =
                    seen.into_iter().filter(|name| !path.contains(name.as_str())).collect();
                keep_newest(&mut file.seen, other, at.seq);
            }
            (None, Some(command)) => {
                if let Some(command) = self.commands.get_mut(&terms::key(&told(command).1)) {
                    keep_newest(&mut command.seen, seen, at.seq);
                }
            }
            (None, None) => {}
        }
        if self.files.len() > self.entries {
            self.forget_files();
        }
    }

    fn touch(&mut self, path: &str, effect: Effect, absolute: bool, at: At, text: &str, added: &str) {
        let changes = effect != Effect::Read;
        if matches!(effect, Effect::Write | Effect::Create | Effect::Edit) {
            self.edits.push_back((at.position, at.seq, path.to_owned()));
            if self.edits.len() > 64 {
                self.edits.pop_front();
            }
        }
        let known = self.files.entry(path.to_owned());
        let new = matches!(known, std::collections::hash_map::Entry::Vacant(_));
        let file = known.or_insert_with(|| File {
            path: path.to_owned(),
            absolute,
            fate: Fate::Read,
            changes: 0,
            at,
            touched: at,
            names: VecDeque::new(),
            seen: VecDeque::new(),
            excerpts: VecDeque::new(),
        });
        file.touched = at;
        file.absolute = absolute;
        let gone = matches!(file.fate, Fate::Deleted | Fate::Moved(_));
        let fate = match effect {
            Effect::Read if gone => Fate::Read,
            Effect::Read => return,
            Effect::Delete => Fate::Deleted,
            Effect::Move => Fate::Moved(None),
            Effect::Create => Fate::Created,
            Effect::Write if new || gone => Fate::Created,
            Effect::Write | Effect::Edit if file.fate == Fate::Created => Fate::Created,
            Effect::Write | Effect::Edit => Fate::Edited,
        };
        file.fate = fate;
        file.at = at;
        file.changes += u32::from(changes);
        let mut room = NAMES;
        terms::each(text, |name| {
            if room > 0 && !path.contains(name) {
                room -= usize::from(!file.names.iter().any(|(known, seq)| known == name && *seq == at.seq));
                file.names.retain(|(known, _)| known != name);
                file.names.push_back((name.to_owned(), at.seq));
            }
        });
        while file.names.len() > NAMES {
            file.names.pop_front();
        }
        for excerpt in excerpts(added) {
            file.excerpts.retain(|(known, _)| *known != excerpt);
            file.excerpts.push_back((excerpt, at));
        }
        while file.excerpts.len() > EXCERPTS {
            file.excerpts.pop_front();
        }
    }

    /// Lets go of the files that were only read, and longest ago, first.
    fn forget_files(&mut self) {
        let mut order: Vec<(bool, u32, String)> =
            self.files.values().map(|f| (f.fate != Fate::Read, f.touched.position, f.path.clone())).collect();
        order.sort_unstable();
        for (_, _, path) in order.into_iter().take(self.entries / 4) {
            self.files.remove(&path);
        }
    }

    fn ran(&mut self, text: &str, status: Status, exit: Option<i64>, error: &str, called: At, at: At) {
        let (shown, key) = told(text);
        let shown = clipped(&one_line(&shown), SHOWN, 0);
        if shown.is_empty() {
            return;
        }
        let key = terms::key(&key);
        let looks = only_looks(&shown);
        if status.is_error() && !self.refused && !(looks && error.is_empty()) {
            self.failed(key, shown.clone(), error, true, called.seq, at);
        } else if status == Status::Ok {
            self.worked(key, at);
        }
        if status != Status::Error
            && ["git checkout -- ", "git restore ", "git reset --hard", "git stash"]
                .iter()
                .any(|c| shown.starts_with(c))
            && !shown.starts_with("git stash pop")
        {
            let mut files: Vec<(String, u64)> = Vec::new();
            for (_, seq, path) in self.edits.iter().rev() {
                let name = path.rsplit('/').next().unwrap_or(path);
                let named = shown.contains(name) || !shown.contains("-- ");
                if named && files.len() < 3 && !files.iter().any(|(known, _)| known == path) {
                    files.push((path.clone(), *seq));
                }
            }
            if !files.is_empty() {
                self.dead_ends.push_back(DeadEnd { command: shown.clone(), files, at: called });
                if self.dead_ends.len() > 20 {
                    self.dead_ends.pop_front();
                }
            }
        }
        let entry = self.commands.entry(key).or_insert_with(|| Command {
            text: String::new(),
            runs: 0,
            status,
            exit,
            error: String::new(),
            at: called,
            looks,
            seen: VecDeque::new(),
        });
        entry.text = shown;
        entry.runs += 1;
        entry.status = status;
        entry.exit = exit;
        entry.error = clipped(error, SHOWN, 0);
        entry.at = At { kept: called.kept && at.kept, ..called };
        if self.commands.len() > self.entries {
            let mut order: Vec<(bool, u32, u64)> = self
                .commands
                .iter()
                .map(|(key, c)| (!c.looks && c.status.is_error(), c.at.position, *key))
                .collect();
            order.sort_unstable();
            for (_, _, key) in order.into_iter().take(self.entries / 4) {
                self.commands.remove(&key);
            }
        }
    }

    fn failed(&mut self, key: u64, what: String, line: &str, command: bool, called: u64, at: At) {
        let signature = terms::key(&signature(line));
        if let Some(index) = self.failing.get(&key).copied()
            && let Some(known) = self.failures.get_mut(index)
        {
            if known.signature == signature {
                known.times += 1;
                known.at = at;
                known.called = called;
                // the same but for what differs from run to run: told as it was last
                known.line = clipped(line, SHOWN, 0);
                return;
            }
            // another error took its place: the earlier one is over
            self.worked(key, at);
        }
        if self.failures.len() >= self.entries {
            self.forget_failures();
        }
        self.failing.insert(key, self.failures.len());
        self.failures.push(Failure {
            what: clipped(&one_line(&what), SHOWN, 0),
            line: clipped(line, SHOWN, 0),
            at,
            called,
            times: 1,
            resolved: None,
            by: Vec::new(),
            command,
            signature,
        });
    }

    fn worked(&mut self, key: u64, at: At) {
        let Some(index) = self.failing.remove(&key) else { return };
        let Some(failure) = self.failures.get_mut(index) else { return };
        failure.resolved = Some(at);
        for (position, seq, path) in self.edits.iter().rev() {
            let new = !failure.by.iter().any(|(known, _)| known == path);
            if *position > failure.at.position && new && failure.by.is_empty() {
                failure.by.push((path.clone(), *seq));
            }
        }
    }

    /// Lets go of the oldest errors, resolved ones first.
    fn forget_failures(&mut self) {
        let mut order: Vec<(bool, u32)> =
            self.failures.iter().map(|f| (f.resolved.is_none(), f.at.position)).collect();
        order.sort_unstable();
        let Some(limit) = order.get(self.entries / 4).copied() else { return };
        let failing = std::mem::take(&mut self.failing);
        let keys: HashMap<usize, u64> = failing.into_iter().map(|(key, index)| (index, key)).collect();
        let mut kept = Vec::new();
        for (index, failure) in std::mem::take(&mut self.failures).into_iter().enumerate() {
            if (failure.resolved.is_none(), failure.at.position) >= limit {
                if let Some(key) = keys.get(&index) {
                    self.failing.insert(*key, kept.len());
                }
                kept.push(failure);
            }
        }
        self.failures = kept;
    }

    fn step(&mut self, change: Option<StepChange>, text: &str, at: At) {
        match change {
            None => return,
            Some(StepChange::Add(words)) => {
                // "Task #3 created successfully: …" (Claude Code 2.1)
                let id: String = text
                    .split_once('#')
                    .map(|(_, rest)| rest.chars().take_while(char::is_ascii_digit).collect())
                    .unwrap_or_default();
                self.tasks.push((id, Step { text: words, state: State::Pending }, at));
                if self.tasks.len() > 100 {
                    self.tasks.remove(0);
                }
            }
            Some(StepChange::Set(id, state, words)) => {
                let Some(task) = self.tasks.iter_mut().find(|(known, _, _)| *known == id) else { return };
                task.2 = at;
                if let Some(words) = words {
                    task.1.text = words;
                }
                match state {
                    Some(state) => task.1.state = state,
                    None => self.tasks.retain(|(known, _, _)| *known != id),
                }
            }
        }
        self.plan = self.tasks.iter().map(|(_, step, at)| (step.clone(), *at)).collect();
    }
}

/// The first lines of a text that name something new, in a few excerpts of one line.
fn excerpts(text: &str) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    let mut named: Vec<u64> = Vec::new();
    for line in text.lines().map(one_line).filter(|line| line.len() <= EXCERPT_LINE) {
        let before = named.len();
        terms::each(&line, |name| {
            let key = terms::key(name);
            if !named.contains(&key) {
                named.push(key);
            }
        });
        if named.len() == before {
            continue;
        }
        let full = all.len() == EACH;
        match all.last_mut() {
            Some(last) if last.len() + line.len() <= EXCERPT => {
                last.push_str(" ⏎ ");
                last.push_str(&line);
            }
            _ if full => break,
            _ => all.push(line),
        }
    }
    all
}

/// Puts names at the end, each once, and lets the oldest go.
fn keep_newest(place: &mut VecDeque<(String, u64)>, names: Vec<String>, seq: u64) {
    place.retain(|(known, _)| !names.contains(known));
    place.extend(names.into_iter().map(|name| (name, seq)));
    while place.len() > SEEN {
        place.pop_front();
    }
}

/// What clients put into the result of a call that the user refused.
fn is_refusal(text: &str) -> bool {
    let head = text.get(..floor(text, 300)).unwrap_or(text);
    ["doesn't want to proceed", "user rejected", "rejected by user", "denied by the user"]
        .iter()
        .any(|words| head.contains(words))
}

/// White space runs become one space.
pub(super) fn one_line(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for word in text.split_whitespace() {
        if !out.is_empty() {
            out.push(' ');
        }
        out.extend(word.chars().filter(|c| !c.is_control()));
    }
    out
}

const WORDS: [&str; 26] = [
    "error",
    "fail",
    "fatal",
    "panic",
    "exception",
    "cannot",
    "can't",
    "could not",
    "unable",
    "not found",
    "no such",
    "denied",
    "undefined",
    "invalid",
    "unexpected",
    "refused",
    "timed out",
    "missing",
    "unknown",
    "expected",
    "mismatch",
    "abort",
    "错误",
    "失败",
    "异常",
    "无法",
];

/// The line of a failed result that tells most: the first that begins like an error, else the first that speaks
/// of one, else the last.
pub(super) fn error_line(text: &str) -> String {
    let head = text.get(..floor(text, SEARCHED)).unwrap_or(text);
    let mut best: Option<(u8, &str)> = None;
    let mut last = "";
    for line in head.lines() {
        let line = line.trim();
        if line.len() < 3 || is_exit(line) {
            continue;
        }
        last = line;
        let lower = line.get(..floor(line, 300)).unwrap_or(line).to_ascii_lowercase();
        let begins = lower.trim_start_matches(|c: char| !c.is_alphanumeric()).to_owned();
        let first = begins.split([' ', ':', '[', '(']).next().unwrap_or("");
        let rank = if first.ends_with("error")
            || matches!(first, "fatal" | "panic" | "错误")
            || first.ends_with("exception")
        {
            3
        } else if matches!(first, "fail" | "failed" | "failure")
            || line.starts_with("E ")
            || lower.contains("error:")
            || lower.contains("panicked")
        {
            2
        } else if WORDS.iter().any(|word| lower.contains(word)) {
            1
        } else {
            0
        };
        if rank > 0 && best.is_none_or(|(known, _)| rank > known) {
            best = Some((rank, line));
        }
    }
    if best.is_none() && text.len() > head.len() {
        let tail = text.get(floor(text, text.len() - 2_000)..).unwrap_or("");
        last = tail.lines().map(str::trim).rfind(|l| l.len() >= 3 && !is_exit(l)).unwrap_or(last);
    }
    let line = strip_colours(best.map_or(last, |(_, line)| line));
    clipped(&one_line(&line), SHOWN, 0)
}

/// Lines that tell the exit code and nothing else.
fn is_exit(line: &str) -> bool {
    ["Exit code", "Process exited", "exit status", "Wall time", "Chunk ID", "Output:", "Original token"]
        .iter()
        .any(|words| line.starts_with(words))
}

fn strip_colours(line: &str) -> String {
    let mut out = String::new();
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        if c == '\u{1b}' {
            // up to the letter that ends the sequence
            chars.by_ref().find(|c| c.is_ascii_alphabetic());
        } else {
            out.push(c);
        }
    }
    out
}

/// An error without what differs from run to run: numbers, and what stands in paths.
fn signature(line: &str) -> String {
    let mut out = String::new();
    for word in line.split_whitespace() {
        if word.contains('/') {
            out.push('/');
        } else {
            out.extend(word.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }));
        }
        out.push(' ');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(position: u32) -> At {
        At { position, seq: u64::from(position), kept: false }
    }

    fn run(work: &mut Work, position: u32, command: &str, status: Status, text: &str) {
        let call = Call { command: Some(command.to_owned()), ..Call::default() };
        work.call(1, "Bash".into(), call, at(position));
        work.result(1, status, None, text, at(position + 1));
    }

    fn touch(work: &mut Work, position: u32, path: &str, effect: Effect) {
        let call = Call { files: vec![(path.to_owned(), effect)], ..Call::default() };
        work.call(1, "X".into(), call, at(position));
        work.result(1, Status::Ok, None, "", at(position + 1));
    }

    #[test]
    fn the_last_run_tells_how_a_command_and_its_error_stand() {
        let mut work = Work::new(100_000);
        run(&mut work, 1, "cargo test", Status::Error, "   Compiling a\nerror[E1]: x\nExit code 1");
        assert_eq!(work.failures[0].line, "error[E1]: x");
        assert!(work.failures[0].resolved.is_none());
        touch(&mut work, 3, "a.rs", Effect::Edit);
        run(&mut work, 5, "cd y && cargo test 2>&1 | tail -3", Status::Ok, "");
        assert_eq!(work.failures[0].resolved.map(|a| a.seq), Some(6));
        assert_eq!(work.failures[0].by, [("a.rs".to_owned(), 3)]);
        let command = work.commands.values().next().unwrap();
        assert_eq!((work.commands.len(), command.runs, command.status), (1, 2, Status::Ok));
        // another error of the same command ends the first
        run(&mut work, 7, "make", Status::Error, "error: a");
        run(&mut work, 9, "make", Status::Error, "error: b");
        assert!(work.failures[1].resolved.is_some() && work.failures[2].resolved.is_none());
    }

    #[test]
    fn the_last_change_tells_how_a_file_stands() {
        let mut work = Work::new(100_000);
        touch(&mut work, 1, "a", Effect::Write);
        touch(&mut work, 3, "a", Effect::Edit);
        assert_eq!((&work.files["a"].fate, work.files["a"].changes), (&Fate::Created, 2));
        touch(&mut work, 5, "a", Effect::Delete);
        assert_eq!(work.files["a"].fate, Fate::Deleted);
        touch(&mut work, 7, "b", Effect::Read);
        touch(&mut work, 9, "b", Effect::Edit);
        assert_eq!(work.files["b"].fate, Fate::Edited);
        let call =
            Call { files: vec![("b".into(), Effect::Move), ("c".into(), Effect::Write)], ..Call::default() };
        work.call(1, "X".into(), call, at(11));
        work.result(1, Status::Ok, None, "", at(12));
        assert_eq!(work.files["b"].fate, Fate::Moved(Some("c".into())));
        // what failed did not happen
        work.call(
            1,
            "X".into(),
            Call { files: vec![("d".into(), Effect::Write)], ..Call::default() },
            at(13),
        );
        work.result(1, Status::Error, None, "no", at(14));
        assert!(!work.files.contains_key("d"));
    }

    #[test]
    fn a_session_without_end_stays_bounded() {
        let mut work = Work::new(25_000);
        for n in 0..20_000 {
            touch(&mut work, n * 4, &format!("f{n}"), Effect::Read);
            let status = if n % 2 == 0 { Status::Error } else { Status::Ok };
            run(&mut work, n * 4 + 2, &format!("make t{n}"), status, "error: x");
        }
        assert!(work.files.len() <= 101 && work.commands.len() <= 101 && work.failures.len() <= 101);
        assert!(work.files.contains_key("f19999"));
    }
}
