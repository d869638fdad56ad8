//! Commands: how they ended, what they said, and which errors are still open.

use super::calls::only_looks;
use super::faults::{self, error_line, signature};
use super::prompts::clipped;
use super::terms;
use super::work::{At, Change, one_line};
use crate::record::Status;
use std::collections::{HashMap, VecDeque};

/// Bytes of a command and of an error that are told, and of what a run said last.
pub(super) const SHOWN: usize = 200;
const SAID: usize = 140;

/// Bytes of a result up to which it is told whole, if it is one line.
const BRIEF: usize = 250;

/// Commits that are told.
const COMMITS: usize = 6;

/// First lines of outputs of which it is counted how often they come.
const LINES: usize = 4_000;

/// One command, all its runs together.
#[derive(Debug)]
pub(super) struct Command {
    /// As it was typed last, with its folder and variables.
    pub(super) text: String,
    pub(super) runs: u32,
    pub(super) status: Status,
    pub(super) exit: Option<i64>,
    /// What its last run said, if that is short or a count.
    pub(super) said: String,
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
    /// Whether it only looks at things, so that nothing is broken.
    pub(super) looks: bool,
    signature: u64,
    /// What the command is for: its program and the word behind it.
    purpose: u64,
}

/// One run that has ended.
#[derive(Debug)]
pub(super) struct Run<'a> {
    /// The command as it is told, and without what is not told apart.
    pub(super) shown: String,
    pub(super) key: String,
    pub(super) status: Status,
    pub(super) exit: Option<i64>,
    pub(super) text: &'a str,
    pub(super) called: At,
    pub(super) at: At,
}

/// All commands and errors; bounded in entries.
#[derive(Debug, Default)]
pub(super) struct Runs {
    pub(super) commands: HashMap<u64, Command>,
    pub(super) failures: Vec<Failure>,
    /// The open failure of each command, by its key.
    failing: HashMap<u64, usize>,
    /// Commits: hash and subject, newest last.
    pub(super) commits: VecDeque<(String, At)>,
    /// The branch, as git said it last.
    pub(super) branch: Option<(String, At)>,
    /// How often outputs begin with a line.
    lines: HashMap<u64, u32>,
    outputs: u32,
    entries: usize,
}

impl Runs {
    pub(super) fn new(entries: usize) -> Runs {
        Runs { entries, ..Runs::default() }
    }

    /// Whether most outputs hold this line: the greeting of a shell.
    pub(super) fn is_banner(&self, line: &str) -> bool {
        let count = self.lines.get(&terms::key(line.trim())).copied().unwrap_or(0);
        count >= 4 && count * 3 >= self.outputs
    }

    fn listen(&mut self, text: &str) {
        self.outputs += 1;
        if self.lines.len() > LINES {
            self.lines.retain(|_, count| *count > 2);
        }
        let lines = text.lines().map(str::trim).filter(|l| !l.is_empty() && !faults::is_exit(l));
        for line in lines.take(3) {
            *self.lines.entry(terms::key(line)).or_default() += 1;
        }
    }

    /// Takes a run; `refused` where the user did not let it happen.
    pub(super) fn ran(&mut self, run: Run<'_>, refused: bool, edits: &VecDeque<Change>) {
        if run.shown.is_empty() {
            return;
        }
        self.listen(run.text);
        self.git(&run);
        let key = terms::key(&run.key);
        let looks = only_looks(&run.key);
        let plain: Vec<&str> =
            run.text.lines().filter(|l| !self.is_banner(l) && !faults::is_exit(l.trim())).collect();
        let silent = plain.iter().all(|l| l.trim().is_empty());
        let error = match run.status.is_error() && !refused {
            true => error_line(&plain.join("\n")),
            false => String::new(),
        };
        // a search that finds nothing ends with 1
        let nothing = faults::searches(&run.key)
            && (silent || !faults::is_fault(&error))
            && run.exit.is_none_or(|e| e == 1);
        let tells = !nothing && (!looks || !error.is_empty());
        if run.status.is_error() && !refused && tells {
            let what = clipped(&run.shown, SHOWN, 0);
            let purpose = faults::purpose(&run.key);
            self.failed(Failing {
                key,
                purpose,
                what,
                line: &error,
                command: true,
                called: run.called.seq,
                at: run.at,
            });
        } else if run.status == Status::Ok {
            self.worked(key, run.at, edits);
            self.achieved(&faults::purpose(&run.key), run.at, edits);
        }
        let said = match looks {
            true => answer(&run.key, &plain, run.text.len()),
            false => said(&plain, run.text.len()),
        };
        let entry = self.commands.entry(key).or_insert_with(|| Command {
            text: String::new(),
            runs: 0,
            status: run.status,
            exit: run.exit,
            said: String::new(),
            at: run.called,
            looks,
            seen: VecDeque::new(),
        });
        entry.text = clipped(&run.shown, SHOWN, 0);
        entry.runs += 1;
        entry.status = if nothing { Status::Ok } else { run.status };
        entry.exit = run.exit;
        entry.said = said;
        entry.at = At { kept: run.called.kept && run.at.kept, ..run.called };
        if self.commands.len() > self.entries {
            self.forget_commands();
        }
    }

    fn forget_commands(&mut self) {
        let mut order: Vec<(bool, u32, u64)> = self
            .commands
            .iter()
            .map(|(key, c)| {
                (!c.looks && (c.status.is_error() || faults::checks(&c.text)), c.at.position, *key)
            })
            .collect();
        order.sort_unstable();
        for (_, _, key) in order.into_iter().take(self.entries / 4) {
            self.commands.remove(&key);
        }
    }

    /// What git says of commits and branches.
    fn git(&mut self, run: &Run<'_>) {
        if run.status == Status::Error || !run.key.contains("git ") && !run.key.starts_with("git") {
            return;
        }
        for line in run.text.lines().map(str::trim) {
            let branch = line
                .strip_prefix("On branch ")
                .or_else(|| line.strip_prefix("Switched to branch '").map(|l| l.trim_end_matches('\'')))
                .or_else(|| {
                    line.strip_prefix("Switched to a new branch '").map(|l| l.trim_end_matches('\''))
                });
            if let Some(branch) = branch {
                self.branch = Some((branch.to_owned(), run.at));
            }
            // "[main 1a2b3c4] Subject"
            let Some((head, subject)) = line.strip_prefix('[').and_then(|l| l.split_once("] ")) else {
                continue;
            };
            let head = head.replace(" (root-commit)", "");
            let Some((branch, hash)) = head.rsplit_once(' ') else { continue };
            if (7..=40).contains(&hash.len()) && hash.bytes().all(|b| b.is_ascii_hexdigit()) {
                if !branch.contains(' ') {
                    self.branch = Some((branch.to_owned(), run.at));
                }
                self.commits
                    .push_back((format!("{hash} {}", clipped(&one_line(subject), 120, 0)), run.called));
                if self.commits.len() > COMMITS {
                    self.commits.pop_front();
                }
            }
        }
        let asked = ["branch --show-current", "--abbrev-ref HEAD"].iter().any(|c| run.key.ends_with(c));
        let named = run.text.lines().rfind(|l| !l.trim().is_empty() && !faults::is_exit(l.trim()));
        if let (true, Some(branch)) = (asked, named) {
            self.branch = Some((branch.trim().to_owned(), run.at));
        }
    }

    pub(super) fn failed(&mut self, failing: Failing<'_>) {
        let Failing { key, purpose, what, line, command, called, at } = failing;
        let looks_at = what.split("&&").all(|part| only_looks(part.trim()));
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
            self.worked(key, at, &VecDeque::new());
        }
        if self.failures.len() >= self.entries {
            self.forget_failures();
        }
        self.failing.insert(key, self.failures.len());
        self.failures.push(Failure {
            what,
            line: clipped(line, SHOWN, 0),
            at,
            called,
            times: 1,
            resolved: None,
            by: Vec::new(),
            command,
            looks: command && looks_at,
            signature,
            purpose: terms::key(&purpose),
        });
    }

    /// The same command has worked.
    pub(super) fn worked(&mut self, key: u64, at: At, edits: &VecDeque<Change>) {
        if let Some(index) = self.failing.remove(&key) {
            self.resolve(index, at, edits);
        }
    }

    /// Something for the same purpose has worked: `git commit --no-verify` after `git commit`.
    fn achieved(&mut self, purpose: &str, at: At, edits: &VecDeque<Change>) {
        let purpose = terms::key(purpose);
        let found: Vec<(u64, usize)> = self
            .failing
            .iter()
            .filter(|(_, index)| {
                self.failures.get(**index).is_some_and(|f| f.command && f.purpose == purpose)
            })
            .map(|(key, index)| (*key, *index))
            .collect();
        for (key, index) in found {
            self.failing.remove(&key);
            self.resolve(index, at, edits);
        }
    }

    fn resolve(&mut self, index: usize, at: At, edits: &VecDeque<Change>) {
        let Some(failure) = self.failures.get_mut(index) else { return };
        failure.resolved = Some(at);
        for change in edits.iter().rev() {
            if change.position > failure.at.position && failure.by.is_empty() {
                failure.by.push((change.path.clone(), change.seq));
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
}

/// A failure to be noted.
#[derive(Debug)]
pub(super) struct Failing<'a> {
    pub(super) key: u64,
    pub(super) purpose: String,
    pub(super) what: String,
    pub(super) line: &'a str,
    pub(super) command: bool,
    pub(super) called: u64,
    pub(super) at: At,
}

/// What a command that only looks at things found, if that is one short line and more than it was asked for.
fn answer(command: &str, lines: &[&str], length: usize) -> String {
    const EMPTY: [&str; 9] = ["pwd", "which", "echo", "printf", "ls", "find", "date", "file", "tree"];
    let first = command.split_whitespace().next().unwrap_or("");
    let mut shown = lines.iter().filter(|line| !line.trim().is_empty());
    match (shown.next(), shown.next()) {
        (Some(line), None)
            if length <= BRIEF && !EMPTY.contains(&first) && !line.starts_with(&format!("{first}: ")) =>
        {
            clipped(&one_line(&faults::strip_colours(line)), SAID, 0)
        }
        _ => String::new(),
    }
}

/// What a run said, if that fits behind the command: the line that counts what passed and failed, else all of it when
/// it is one short line.
fn said(lines: &[&str], length: usize) -> String {
    let plain = |line: &str| one_line(&faults::strip_colours(line));
    let counts = |line: &str| {
        let lower = line.to_ascii_lowercase();
        let digit = line.bytes().any(|b| b.is_ascii_digit());
        digit
            && ["passed", "failed", "passing", "failing", "errors", "warnings", "tests", "通过", "失败"]
                .iter()
                .any(|w| lower.contains(w))
    };
    let shown: Vec<&str> = lines.iter().copied().filter(|l| !l.trim().is_empty()).collect();
    if let Some(line) = shown.iter().rev().take(12).find(|l| counts(l)) {
        return clipped(plain(line).trim_matches(['=', ' ', '-']), SAID, 0);
    }
    match shown.as_slice() {
        [one] if length <= BRIEF => clipped(&plain(one), SAID, 0),
        [.., last] if length <= 2 * BRIEF && last.trim_start().starts_with("http") => {
            clipped(&plain(last), SAID, 0)
        }
        _ => String::new(),
    }
}
