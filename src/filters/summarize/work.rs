//! What was done: files, the plan, what the user said to a call. States are those of the last call that worked.

use super::calls::{Call, State, Step, StepChange};
use super::docs;
use super::prompts::{clipped, floor};
use super::runs::{Failing, Run, Runs, SHOWN};
use super::terms;
use super::words::is_announcement;
use crate::record::{Status, shell::Effect};
use std::collections::{HashMap, VecDeque};

/// Calls that wait for their result at one time; more are never open in a real session.
const OPEN: usize = 1_000;

/// Names kept of the newest changes of one file.
const NAMES: usize = 80;

/// Names kept of what was seen in one file, or said by one command.
pub(super) const SEEN: usize = 30;

/// Calls that change files for which an announcement stands.
const LASTS: u32 = 4;

/// Exact values kept of the newest changes of one file.
const VALUES: usize = 4;

/// Lines of documents that are kept, and most of one document.
const DOCUMENTED: usize = 60;
const DOCUMENT: usize = 12;

/// Answers and refusals of the user that are kept.
const WORDS: usize = 60;

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
    /// Changes so far, and reads.
    pub(super) changes: u32,
    pub(super) reads: u32,
    /// The call that gave it its state.
    pub(super) at: At,
    /// The last call that touched it.
    pub(super) touched: At,
    /// What the newest change that says so was for.
    pub(super) purpose: Purpose,
    /// Exact values that changes put in, newest last.
    pub(super) values: VecDeque<(String, At)>,
    /// Names in what the newest changes put in, newest last, each with its call.
    pub(super) names: VecDeque<(String, u64)>,
    /// Names that were seen in it, newest last, each with its result.
    pub(super) seen: VecDeque<(String, u64)>,
}

/// What a change is for, and the record that says so.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Purpose {
    pub(super) text: String,
    pub(super) seq: u64,
}

/// A change of a file.
#[derive(Debug, Clone)]
pub(super) struct Change {
    pub(super) position: u32,
    pub(super) seq: u64,
    pub(super) path: String,
}

/// Changes that were taken back.
#[derive(Debug)]
pub(super) struct DeadEnd {
    pub(super) command: String,
    /// Each with its last change.
    pub(super) files: Vec<(String, u64)>,
    /// What they were for.
    pub(super) purpose: String,
    pub(super) at: At,
}

/// What the user said in the result of a call.
#[derive(Debug)]
pub(super) struct Words {
    /// What the call was to do; empty where the words tell it.
    pub(super) of: String,
    pub(super) text: String,
    /// Whether they refuse the call.
    pub(super) refuse: bool,
    pub(super) at: At,
}

/// A line of a document that the model wrote.
#[derive(Debug)]
pub(super) struct Documented {
    pub(super) path: String,
    pub(super) text: String,
    pub(super) at: At,
}

#[derive(Debug)]
struct Pending {
    call: Call,
    at: At,
    name: String,
    /// Names in its result.
    seen: Vec<String>,
    /// What the model said it is for.
    purpose: Purpose,
}

/// What was done so far; bounded in entries.
#[derive(Debug, Default)]
pub(super) struct Work {
    open: HashMap<u64, Pending>,
    pub(super) files: HashMap<String, File>,
    pub(super) runs: Runs,
    pub(super) dead_ends: VecDeque<DeadEnd>,
    pub(super) plan: Vec<(Step, At)>,
    pub(super) words: VecDeque<Words>,
    pub(super) documented: VecDeque<Documented>,
    /// Tasks that are kept one a call, with their numbers.
    tasks: Vec<(String, Step, At)>,
    /// The newest changes.
    edits: VecDeque<Change>,
    entries: usize,
    /// Whether names in files and outputs are gathered.
    names: bool,
    /// What the model said last of what it does now, and how many changes it still stands for.
    purpose: Purpose,
    lasts: u32,
    /// Whether the plan was set in this turn.
    planned: bool,
    /// Whether the last result was a refusal of the user.
    pub(super) refused: bool,
    /// Calls so far.
    pub(super) calls: u64,
}

impl Work {
    /// Keeps about `bytes` of what is told, names in files and outputs where they are wanted.
    pub(super) fn new(bytes: usize, names: bool) -> Work {
        let entries = (bytes / 250).clamp(60, 4_000);
        Work { entries, names, runs: Runs::new(entries), ..Work::default() }
    }

    /// The model says what it does next; an empty text: a new turn begins.
    pub(super) fn says(&mut self, text: &str, seq: u64) {
        self.purpose = Purpose { text: purpose(text), seq };
        self.lasts = LASTS;
        self.planned &= !text.is_empty();
    }

    pub(super) fn call(&mut self, id: u64, name: String, call: Call, at: At) {
        self.calls += 1;
        if self.open.len() >= OPEN {
            // calls that were never answered; what they did is unknown
            self.open.clear();
        }
        if call.files.iter().any(|(_, effect)| *effect != Effect::Read) {
            self.lasts = self.lasts.saturating_sub(1);
        }
        if self.lasts == 0 {
            self.purpose.text.clear();
        }
        let purpose = match self.purpose.text.is_empty() {
            false => self.purpose.clone(),
            true => {
                let mut plan = self.plan.iter().filter(|_| self.planned);
                let doing = plan.find(|(step, _)| step.state == State::Doing);
                doing.map_or_else(Purpose::default, |(step, at)| Purpose {
                    text: clipped(&one_line(&step.text), 120, 0),
                    seq: at.seq,
                })
            }
        };
        self.open.insert(id, Pending { call, at, name, seen: Vec::new(), purpose });
    }

    /// Whether the text of the result of this call tells more than its status.
    pub(super) fn wants(&self, id: u64) -> Wanted {
        match self.open.get(&id) {
            Some(p) if matches!(p.call.step, Some(StepChange::Add(_))) || asks(&p.name) => Wanted::All,
            Some(p) if p.call.command.is_some() => Wanted::Ends,
            _ => Wanted::Names,
        }
    }

    /// Names in the result of this call that are worth telling.
    pub(super) fn saw(&mut self, id: u64, names: &[&str]) {
        if let Some(pending) = self.open.get_mut(&id).filter(|_| self.names) {
            pending.seen = names.iter().map(|name| (*name).to_owned()).collect();
        }
    }

    /// The result of a call; `text` is what it says, as far as that was asked for or the call failed.
    pub(super) fn result(&mut self, id: u64, status: Status, exit: Option<i64>, text: &str, at: At) {
        let Some(Pending { call, at: called, name, seen, purpose }) = self.open.remove(&id) else { return };
        let failed = status.is_error();
        self.refused = failed && is_refusal(text);
        self.hear(&name, &call, text, at);
        if call.command.is_some() {
            let (shown, key) = (call.shown.clone(), call.key.clone());
            if status != Status::Error {
                self.taken_back(&key, called);
            }
            let run = Run { shown: one_line(&shown), key, status, exit, text, called, at };
            self.runs.ran(run, self.refused, &self.edits);
        } else if failed && !self.refused && !of_client(text) {
            let what = match call.files.first() {
                Some((path, _)) => format!("{name} {path}"),
                None => name.clone(),
            };
            let error = super::faults::error_line(text);
            let key = terms::key(&what);
            let what = clipped(&one_line(&what), SHOWN, 0);
            let failing = Failing {
                key,
                purpose: String::new(),
                what,
                line: &error,
                command: false,
                called: called.seq,
                at,
            };
            self.runs.failed(failing);
        } else if let Some((path, _)) = call.files.first() {
            self.runs.worked(terms::key(&format!("{name} {path}")), at, &self.edits);
        }
        if failed {
            return;
        }
        let file = call.files.first().map(|(path, _)| path.clone());
        self.documents(&call, called);
        if let Some(plan) = call.plan.clone() {
            self.planned = true;
            self.plan = plan.into_iter().map(|step| (step, called)).collect();
        }
        self.step(call.step.as_ref(), text, called);
        let command = call.command.is_some().then(|| terms::key(&call.key));
        self.touch_all(call, called, &purpose);
        self.keep_seen(file, command, seen, at.seq);
        if self.files.len() > self.entries {
            self.forget_files();
        }
    }

    /// Keeps what the user says in a result: why a call was refused, what a question of the model was answered.
    fn hear(&mut self, name: &str, call: &Call, text: &str, at: At) {
        let mut words = None;
        if self.refused {
            words = refusal_words(text).map(|text| {
                let of = match (&call.command, call.files.first()) {
                    (Some(command), _) => clipped(&one_line(command), 100, 0),
                    (None, Some((path, _))) => format!("{name} {path}"),
                    (None, None) => name.to_owned(),
                };
                Words { of, text: clipped(&one_line(text), 480, 180), refuse: true, at }
            });
        } else if asks(name) {
            let text = one_line(text.get(..floor(text, 4_000)).unwrap_or(text));
            words = (!text.is_empty()).then(|| Words {
                of: String::new(),
                text: clipped(&text, 480, 180),
                refuse: false,
                at,
            });
        }
        if let Some(words) = words {
            self.words.push_back(words);
            if self.words.len() > WORDS {
                self.words.pop_front();
            }
        }
    }

    /// Keeps what documents say that the model has written.
    fn documents(&mut self, call: &Call, at: At) {
        let found = docs::written(call);
        for (path, lines) in found {
            self.documented.retain(|line| line.path != path);
            for text in lines.into_iter().take(DOCUMENT) {
                self.documented.push_back(Documented { path: path.clone(), text, at });
            }
        }
        while self.documented.len() > DOCUMENTED {
            self.documented.pop_front();
        }
    }

    fn touch_all(&mut self, call: Call, called: At, purpose: &Purpose) {
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
            let touch = Touch { effect, absolute: call.texts.contains(&path), at: called, text, purpose };
            self.touch(&path, &touch);
            if let Some(file) = self.files.get_mut(&path).filter(|_| effect == Effect::Edit) {
                for value in call.values.get(n).into_iter().flatten() {
                    file.values.retain(|(known, _)| known != value);
                    file.values.push_back((value.clone(), called));
                }
                while file.values.len() > VALUES {
                    file.values.pop_front();
                }
            }
            moved = (effect == Effect::Move).then_some(path);
        }
    }

    fn keep_seen(&mut self, file: Option<String>, command: Option<u64>, seen: Vec<String>, seq: u64) {
        match (file.and_then(|path| self.files.get_mut(&path)), command) {
            (Some(file), _) => {
                let path = &file.path;
                let other: Vec<String> =
                    seen.into_iter().filter(|name| !path.contains(name.as_str())).collect();
                keep_newest(&mut file.seen, other, seq);
            }
            (None, Some(command)) => {
                if let Some(command) = self.runs.commands.get_mut(&command) {
                    keep_newest(&mut command.seen, seen, seq);
                }
            }
            (None, None) => {}
        }
    }

    fn touch(&mut self, path: &str, touch: &Touch<'_>) {
        let Touch { effect, absolute, at, text, purpose } = *touch;
        let changes = effect != Effect::Read;
        if matches!(effect, Effect::Write | Effect::Create | Effect::Edit) {
            self.edits.push_back(Change { position: at.position, seq: at.seq, path: path.to_owned() });
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
            reads: 0,
            at,
            touched: at,
            purpose: Purpose::default(),
            values: VecDeque::new(),
            names: VecDeque::new(),
            seen: VecDeque::new(),
        });
        file.touched = at;
        file.absolute = absolute;
        file.reads += u32::from(!changes);
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
        if effect != Effect::Edit {
            // what was put in before is no more
            file.values.clear();
        }
        file.fate = fate;
        file.at = at;
        file.changes += u32::from(changes);
        if !purpose.text.is_empty() {
            purpose.clone_into(&mut file.purpose);
        }
        if !self.names {
            return;
        }
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

    /// Notes what a command takes back of the newest changes.
    fn taken_back(&mut self, command: &str, at: At) {
        const BACK: [&str; 5] =
            ["git checkout -- ", "git restore ", "git reset --hard", "git stash", "git revert"];
        if !BACK.iter().any(|c| command.starts_with(c)) || command.starts_with("git stash pop") {
            return;
        }
        let mut files: Vec<(String, u64)> = Vec::new();
        for change in self.edits.iter().rev() {
            let name = change.path.rsplit('/').next().unwrap_or(&change.path);
            let named = command.contains(name) || !command.contains("-- ");
            if named && files.len() < 3 && !files.iter().any(|(known, _)| *known == change.path) {
                files.push((change.path.clone(), change.seq));
            }
        }
        if !files.is_empty() {
            let purpose =
                files.first().and_then(|(path, _)| self.files.get(path)).map(|f| f.purpose.text.clone());
            let command = clipped(&one_line(command), SHOWN, 0);
            self.dead_ends.push_back(DeadEnd { command, files, purpose: purpose.unwrap_or_default(), at });
            if self.dead_ends.len() > 20 {
                self.dead_ends.pop_front();
            }
        }
    }

    fn step(&mut self, change: Option<&StepChange>, text: &str, at: At) {
        match change {
            None => return,
            Some(StepChange::Add(words)) => {
                // "Task #3 created successfully: …" in the result
                let id: String = text
                    .split_once('#')
                    .map(|(_, rest)| rest.chars().take_while(char::is_ascii_digit).collect())
                    .unwrap_or_default();
                self.tasks.push((id, Step { text: words.clone(), state: State::Pending }, at));
                if self.tasks.len() > 100 {
                    self.tasks.remove(0);
                }
            }
            Some(StepChange::Set(id, state, words)) => {
                let Some(task) = self.tasks.iter_mut().find(|(known, _, _)| known == id) else { return };
                task.2 = at;
                if let Some(words) = words {
                    words.clone_into(&mut task.1.text);
                }
                match state {
                    Some(state) => task.1.state = *state,
                    None => self.tasks.retain(|(known, _, _)| known != id),
                }
            }
        }
        self.planned = true;
        self.plan = self.tasks.iter().map(|(_, step, at)| (step.clone(), *at)).collect();
    }
}

/// How much of a result is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    /// All of it.
    All,
    /// Its beginning and its end.
    Ends,
    /// Its beginning, for the names in it.
    Names,
}

/// How a call touches a file.
#[derive(Debug, Clone, Copy)]
struct Touch<'a> {
    effect: Effect,
    absolute: bool,
    at: At,
    text: &'a str,
    purpose: &'a Purpose,
}

/// Puts names at the end, each once, and lets the oldest go.
fn keep_newest(place: &mut VecDeque<(String, u64)>, names: Vec<String>, seq: u64) {
    place.retain(|(known, _)| !names.contains(known));
    place.extend(names.into_iter().map(|name| (name, seq)));
    while place.len() > SEEN {
        place.pop_front();
    }
}

/// What the model says that a change is for: its last words before the call, unless it only looks.
fn purpose(text: &str) -> String {
    const LOOKS: [&str; 17] = [
        "check",
        "look",
        "see",
        "read",
        "verify",
        "understand",
        "find",
        "examine",
        "explore",
        "search",
        "review",
        "run",
        "查看",
        "看",
        "检查",
        "看看",
        "运行",
    ];
    const LEADS: [&str; 28] = [
        "now let me ",
        "now, let me ",
        "let me now ",
        "let me ",
        "let's ",
        "now i'll ",
        "i'll now ",
        "i'll ",
        "i will ",
        "now i need to ",
        "i need to ",
        "now i ",
        "next, ",
        "now ",
        "first, ",
        "then ",
        "also, ",
        "also ",
        "i'm going to ",
        "让我",
        "我先",
        "先",
        "现在让我",
        "现在",
        "接下来",
        "我来",
        "我将",
        "我会",
    ];
    let Some(line) = text.lines().rev().map(str::trim).find(|l| !l.is_empty() && !l.starts_with("```"))
    else {
        return String::new();
    };
    let plain = super::findings::plain(line.trim_start_matches('#')).replace('’', "'");
    let Some(last) = super::findings::split(&plain).last().map(|s| s.trim().to_owned()) else {
        return String::new();
    };
    let mut rest = last.trim_end_matches([':', '：', '.', '。', '…']).trim().to_owned();
    if let Some((step, behind)) = rest.split_once(':')
        && step.to_lowercase().starts_with("step ")
    {
        rest = behind.trim_start().to_owned();
    }
    let announced = is_announcement(&rest) || last.ends_with([':', '：']);
    loop {
        let lower = rest.to_lowercase();
        let Some(lead) = LEADS.iter().find(|lead| lower.starts_with(**lead)) else { break };
        rest = rest.get(lead.len()..).unwrap_or("").trim_start().to_owned();
    }
    let first = rest.split(' ').next().unwrap_or("").to_lowercase();
    if !announced
        || LOOKS.iter().any(|word| first.starts_with(word))
        || rest.len() < 12
        || rest.ends_with('?')
    {
        return String::new();
    }
    clipped(&one_line(&rest), 140, 0)
}

/// Whether a tool asks the user something, so that its result is the user's.
fn asks(name: &str) -> bool {
    matches!(
        name,
        "AskUserQuestion" | "request_user_input" | "ask_user" | "ask_followup_question" | "question"
    )
}

/// What clients put into the result of a call that the user refused.
fn is_refusal(text: &str) -> bool {
    let head = text.get(..floor(text, 300)).unwrap_or(text);
    [
        "doesn't want to proceed",
        "user rejected",
        "rejected by user",
        "denied by the user",
        "User denied",
        "rejected by the user",
    ]
    .iter()
    .any(|words| head.contains(words))
}

/// The user's own words in such a result.
pub(super) fn refusal_words(text: &str) -> Option<&str> {
    const LEADS: [&str; 5] =
        ["the user said:", "provided the following reason", "with feedback:", "User feedback:", "reason:"];
    let (_, words) = LEADS.iter().find_map(|lead| text.split_once(lead))?;
    let words = words.split("Note: The user's next message").next().unwrap_or(words);
    let words = words.trim_start_matches([':', ' ', '\n']).trim_start_matches("for the rejection:").trim();
    (!words.is_empty()).then_some(words)
}

/// Errors of the client's own rules, of which nothing is left when the next call keeps to them.
fn of_client(text: &str) -> bool {
    let head = text.get(..floor(text, 400)).unwrap_or(text);
    [
        "has not been read yet",
        "has been modified since",
        "File does not exist",
        "exceeds maximum allowed tokens",
        "InputValidationError",
        "String to replace not found",
        "No changes to make",
        "Sibling tool call errored",
    ]
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

#[cfg(test)]
mod tests {
    use super::*;

    fn at(position: u32) -> At {
        At { position, seq: u64::from(position), kept: false }
    }

    fn run(work: &mut Work, position: u32, command: &str, status: Status, text: &str) {
        let mut call = Call::default();
        call.runs(command.to_owned(), None, None);
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
        let mut work = Work::new(100_000, true);
        run(&mut work, 1, "cargo test", Status::Error, "   Compiling a\nerror[E1]: x\nExit code 1");
        assert_eq!(work.runs.failures[0].line, "error[E1]: x");
        assert!(work.runs.failures[0].resolved.is_none());
        touch(&mut work, 3, "a.rs", Effect::Edit);
        run(&mut work, 5, "cd y && cargo test 2>&1 | tail -3", Status::Ok, "");
        assert_eq!(work.runs.failures[0].resolved.map(|a| a.seq), Some(6));
        assert_eq!(work.runs.failures[0].by, [("a.rs".to_owned(), 3)]);
        let command = work.runs.commands.values().next().unwrap();
        assert_eq!((work.runs.commands.len(), command.runs, command.status), (1, 2, Status::Ok));
        // another error of the same command ends the first
        run(&mut work, 7, "make", Status::Error, "error: a");
        run(&mut work, 9, "make", Status::Error, "error: b");
        assert!(work.runs.failures[1].resolved.is_some() && work.runs.failures[2].resolved.is_none());
    }

    #[test]
    fn what_is_no_error_is_not_told_as_one() {
        let mut work = Work::new(100_000, false);
        for n in 0..6 {
            run(&mut work, n * 2 + 1, &format!("node x{n}.js"), Status::Ok, "Now using node v22\nfine");
        }
        run(&mut work, 21, "rg --files | rg duck", Status::Error, "Now using node v22\nExit code 1");
        run(&mut work, 23, "git commit -m x", Status::Error, "hook: 1 error: lint");
        run(&mut work, 25, "git add . && git commit --no-verify -m x", Status::Ok, "[main 1a2b3c4] x");
        let open: Vec<_> = work.runs.failures.iter().filter(|f| f.resolved.is_none()).collect();
        assert!(open.is_empty(), "{open:?}");
        assert_eq!(work.runs.commits[0].0, "1a2b3c4 x");
        assert_eq!(work.runs.branch.as_ref().map(|b| b.0.as_str()), Some("main"));
    }

    #[test]
    fn the_last_change_tells_how_a_file_stands() {
        let mut work = Work::new(100_000, true);
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
    fn what_a_change_is_for_is_told_by_the_words_before_it() {
        for (said, found) in [
            ("Perfect!\n\n**2. Fix the redundant requireUser call:**", "Fix the redundant requireUser call"),
            ("Now let me add the missing test of the pond:", "add the missing test of the pond"),
            ("现在让我修复舍入错误的问题：", "修复舍入错误的问题"),
            ("Let me check the file first:", ""),
            ("我先看一下解析器的代码：", ""),
            ("I’ll add the missing test of the pond:", "add the missing test of the pond"),
            ("The total is rounded twice.", ""),
        ] {
            assert_eq!(purpose(said), found, "{said}");
        }
    }

    #[test]
    fn what_was_said_long_ago_is_not_what_a_change_is_for() {
        let mut work = Work::new(100_000, false);
        work.says("Let me add the missing test of the pond:", 1);
        for n in 0..6 {
            touch(&mut work, 2 * n + 2, &format!("f{n}"), Effect::Edit);
        }
        let of = |work: &Work, path: &str| work.files[path].purpose.clone();
        assert_eq!(of(&work, "f0"), Purpose { text: "add the missing test of the pond".into(), seq: 1 });
        assert_eq!(of(&work, "f5"), Purpose::default());
        // a plan tells it in the turn in which it was set
        let plan = vec![Step { text: "Fix the parser of the ducks".into(), state: State::Doing }];
        work.call(1, "X".into(), Call { plan: Some(plan), ..Call::default() }, at(20));
        work.result(1, Status::Ok, None, "", at(21));
        touch(&mut work, 22, "g", Effect::Edit);
        assert_eq!(of(&work, "g").text, "Fix the parser of the ducks");
        work.says("", 30);
        touch(&mut work, 32, "h", Effect::Edit);
        assert_eq!(of(&work, "h"), Purpose::default());
    }

    #[test]
    fn the_words_of_the_user_in_a_refusal_are_found() {
        let refused = "The user doesn't want to proceed with this tool use. To tell you how to proceed, the user said:\nno, never touch the lock file";
        assert!(is_refusal(refused));
        assert_eq!(refusal_words(refused), Some("no, never touch the lock file"));
        assert_eq!(refusal_words("exec command rejected by user"), None);
    }

    #[test]
    fn a_session_without_end_stays_bounded() {
        let mut work = Work::new(25_000, true);
        for n in 0..20_000 {
            touch(&mut work, n * 4, &format!("f{n}"), Effect::Read);
            let status = if n % 2 == 0 { Status::Error } else { Status::Ok };
            run(&mut work, n * 4 + 2, &format!("make t{n}"), status, "error: x");
        }
        assert!(
            work.files.len() <= 101 && work.runs.commands.len() <= 101 && work.runs.failures.len() <= 101
        );
        assert!(work.files.contains_key("f19999"));
    }
}
