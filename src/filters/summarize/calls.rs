//! What a tool call does, told by the shape of its input: agents and their versions name tools and fields
//! differently, but a call that holds a path and a new text writes a file everywhere.

use crate::json::{Kind, Value};
use crate::record::shell::{self, Effect};

/// Of one text in a call's input, so many bytes are looked at for names.
const LOOKED: usize = 16 << 10;

/// Of a shell command, so many bytes are looked at.
const COMMAND: usize = 16 << 10;

/// Steps of a plan that are kept.
const STEPS: usize = 60;

/// What one call does.
#[derive(Debug, Default)]
pub(super) struct Call {
    /// Files it touches when it works, in order.
    pub(super) files: Vec<(String, Effect)>,
    /// What a patch leaves in each of them, as far as it shows it, in the same order; of other calls `texts` tells.
    pub(super) parts: Vec<String>,
    /// The lines that a patch puts into each of them, in the same order.
    pub(super) added: Vec<String>,
    /// The shell command it runs.
    pub(super) command: Option<String>,
    /// What it looks for.
    pub(super) search: Option<String>,
    /// The plan it sets, whole.
    pub(super) plan: Option<Vec<Step>>,
    /// One step that it adds or changes.
    pub(super) step: Option<StepChange>,
    /// The texts in its input, cut, for the names in them.
    pub(super) texts: String,
    /// Where in `texts` begins what a change puts in.
    pub(super) new_text: usize,
}

/// One step of a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Step {
    /// Its words.
    pub(super) text: String,
    /// How far it is.
    pub(super) state: State,
}

/// How far a step of a plan is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum State {
    /// Being done.
    Doing,
    /// Not begun.
    Pending,
    /// Done.
    Done,
}

impl State {
    /// The words that agents use, whatever their case and separators.
    fn parse(word: &str) -> State {
        let word = word.to_ascii_lowercase();
        if word.contains("progress") || word == "doing" || word == "active" {
            State::Doing
        } else if word.starts_with("complete") || word == "done" || word == "finished" || word == "cancelled"
        {
            State::Done
        } else {
            State::Pending
        }
    }
}

/// A change of one step, of agents that keep a task a call.
#[derive(Debug)]
pub(super) enum StepChange {
    /// A new task; its number stands in the result.
    Add(String),
    /// The task of this number gets a state, or other words; `None` takes it away.
    Set(String, Option<State>, Option<String>),
}

const PATHS: [&str; 8] = [
    "file_path",
    "path",
    "filePath",
    "notebook_path",
    "absolute_path",
    "target_file",
    "relative_path",
    "filename",
];
const NEW: [&str; 8] =
    ["content", "new_string", "new_str", "newText", "new_source", "file_text", "contents", "insert_line"];
const OLD: [&str; 6] = ["old_string", "old_str", "oldText", "edits", "diff", "insert_line"];
const SOUGHT: [&str; 4] = ["pattern", "query", "regex", "glob"];

fn first<'a>(input: Value<'a>, keys: &[&str]) -> Option<Value<'a>> {
    keys.iter().find_map(|key| input.get(key).filter(|v| !v.is_null()))
}

fn text(value: Value<'_>, limit: usize) -> Option<String> {
    value.text().map(|t| super::head(t, limit))
}

impl Call {
    /// Reads a call. `directory` is where the session works.
    pub(super) fn read(name: &str, input: Value<'_>, directory: Option<&str>) -> Call {
        let mut call = Call::default();
        if let Some(text) = input.text() {
            // free-form input: a patch, or a program of the tool's own
            let text = super::head(text, COMMAND);
            call.patch(&text, directory);
            push(&mut call.texts, &text);
            return call;
        }
        call.gather(input);
        if let Some(list) = ["todos", "plan", "items", "tasks"].iter().find_map(|k| input.get(k))
            && let Some(steps) = plan(list)
        {
            call.plan = Some(steps);
            return call;
        }
        call.task(name, input);
        if let Some(command) = first(input, &["command", "cmd", "script"]).and_then(command) {
            let there = first(input, &["workdir", "cwd", "working_directory"]).and_then(|v| text(v, 1024));
            let there = there.as_deref().or(directory);
            if command.contains("*** Begin Patch") {
                call.patch(&command, there);
            }
            if call.files.is_empty() {
                call.files = shell::effects(&command, there);
                call.command = Some(command);
            }
            return call;
        }
        if let Some(patch) = first(input, &["input", "patch", "patchText"]).and_then(|v| text(v, COMMAND)) {
            call.patch(&patch, directory);
        }
        let path = first(input, &PATHS).and_then(|v| text(v, 1024)).filter(|p| !p.is_empty());
        if let Some(sought) = first(input, &SOUGHT).and_then(|v| text(v, 400)) {
            call.search = Some(match path {
                Some(place) => format!("{sought} ({place})"),
                None => sought,
            });
            return call;
        }
        if let (Some(path), true) = (path, call.files.is_empty()) {
            let lower = name.to_ascii_lowercase();
            let says = |words: &[&str]| words.iter().any(|w| lower.contains(w));
            let effect = if OLD.iter().any(|k| input.get(k).is_some()) || says(&["edit", "replace"]) {
                Effect::Edit
            } else if NEW.iter().any(|k| input.get(k).is_some()) || says(&["write", "create"]) {
                Effect::Write
            } else if says(&["delete", "remove"]) {
                Effect::Delete
            } else if says(&["ls", "list", "dir"]) {
                return call;
            } else {
                Effect::Read
            };
            call.files.push((path, effect));
        }
        call
    }

    /// Collects the beginnings of all texts of the input, those that a change puts in last.
    fn gather(&mut self, input: Value<'_>) {
        let is_new = |key: &str| key.starts_with("new") || key == "content";
        for new in [false, true] {
            self.new_text = self.texts.len();
            for (key, value) in input.entries() {
                if is_new(&key.decode()) != new {
                    continue;
                }
                if let Some(text) = value.text() {
                    push(&mut self.texts, &text.head(LOOKED));
                    continue;
                }
                for item in value.items().take(20) {
                    if let Some(text) = item.text() {
                        push(&mut self.texts, &text.head(LOOKED));
                    }
                    for (_, inner) in item.entries() {
                        if let Some(text) = inner.text() {
                            push(&mut self.texts, &text.head(LOOKED / 4));
                        }
                    }
                }
            }
        }
    }

    /// The files of a patch in the form that Codex made known.
    fn patch(&mut self, patch: &str, directory: Option<&str>) {
        if !patch.contains("*** ") {
            return;
        }
        let place = |path: &str| crate::record::path::joined(directory, path);
        for line in patch.lines() {
            let Some(rest) = line.strip_prefix("*** ") else {
                if let (Some(part), Some(b'+' | b' ' | b'@')) = (self.parts.last_mut(), line.bytes().next()) {
                    push(part, line.get(1..).unwrap_or(""));
                    if let (Some(added), Some(line)) = (self.added.last_mut(), line.strip_prefix('+')) {
                        push(added, line);
                    }
                }
                continue;
            };
            let (path, effect) = if let Some(path) = rest.strip_prefix("Update File: ") {
                (path, Effect::Edit)
            } else if let Some(path) = rest.strip_prefix("Add File: ") {
                (path, Effect::Create)
            } else if let Some(path) = rest.strip_prefix("Delete File: ") {
                (path, Effect::Delete)
            } else if let Some(path) = rest.strip_prefix("Move to: ") {
                if let Some(last) = self.files.last_mut() {
                    last.1 = Effect::Move;
                }
                (path, Effect::Write)
            } else {
                continue;
            };
            self.files.push((place(path.trim()), effect));
            self.parts.push(String::new());
            self.added.push(String::new());
        }
    }

    /// Claude Code keeps a task a call since 2.1: `TaskCreate{subject}` and `TaskUpdate{taskId, status}`.
    fn task(&mut self, name: &str, input: Value<'_>) {
        let word = |key: &str| input.get(key).and_then(|v| text(v, 400));
        self.step = match name {
            "TaskCreate" => word("subject").map(StepChange::Add),
            "TaskUpdate" => word("taskId").map(|id| {
                let state = word("status").filter(|s| s != "deleted").map(|s| State::parse(&s));
                StepChange::Set(id, state, word("subject"))
            }),
            _ => None,
        };
    }
}

fn push(texts: &mut String, text: &str) {
    texts.push_str(text);
    texts.push('\n');
}

fn plan(list: Value<'_>) -> Option<Vec<Step>> {
    if list.kind() != Kind::Array {
        return None;
    }
    let mut steps = Vec::new();
    for item in list.items().take(STEPS) {
        let words =
            first(item, &["content", "step", "text", "title", "description"]).and_then(|v| text(v, 400))?;
        let state = first(item, &["status", "state"]).and_then(|v| text(v, 40)).unwrap_or_default();
        steps.push(Step { text: words, state: State::parse(&state) });
    }
    Some(steps)
}

/// The line of shell text of a call: as it stands, or the words of an array.
fn command(value: Value<'_>) -> Option<String> {
    if let Some(line) = text(value, COMMAND) {
        return Some(line);
    }
    let words: Vec<String> = value.items().filter_map(|w| text(w, COMMAND)).collect();
    match words.as_slice() {
        [] => None,
        [shell, option, line]
            if shell.rsplit('/').next().is_some_and(|s| s.ends_with("sh")) && option.ends_with('c') =>
        {
            Some(line.clone())
        }
        words => Some(words.join(" ")),
    }
}

/// A command as it is told: its first line without the way there (`cd X &&`, `A=b`) and, for comparing, also
/// without what only cuts its output.
pub(super) fn told(command: &str) -> (String, String) {
    let mut line =
        command.lines().map(str::trim).find(|l| !l.is_empty() && !l.starts_with('#')).unwrap_or("");
    loop {
        let before = line;
        if let Some(rest) = line.strip_prefix("cd ").and_then(|rest| rest.split_once("&&")) {
            line = rest.1.trim_start();
        }
        if let Some((word, rest)) = line.split_once(' ')
            && let Some((name, _)) = word.split_once('=')
            && !name.is_empty()
            && name.bytes().all(|b| b.is_ascii_uppercase() || b == b'_' || b.is_ascii_digit())
        {
            line = rest.trim_start();
        }
        if line == before {
            break;
        }
    }
    let mut key = line;
    for cut in [" 2>&1", " | head", " | tail"] {
        if let Some((kept, _)) = key.split_once(cut) {
            key = kept;
        }
    }
    (line.to_owned(), key.trim().to_owned())
}

/// Whether a command only looks at things; what it found is not told by its name.
pub(super) fn only_looks(command: &str) -> bool {
    const LOOKS: [&str; 26] = [
        "ls", "cat", "cd", "pwd", "echo", "grep", "rg", "find", "head", "tail", "wc", "sed", "nl", "tree",
        "which", "file", "stat", "sleep", "awk", "less", "sort", "du", "true", "date", "printf", "jq",
    ];
    let mut words = command.split_whitespace();
    match words.next() {
        Some("git") => matches!(words.next(), Some("status" | "diff" | "log" | "show" | "branch")),
        Some("sed") => !command.contains(" -i"),
        Some(first) => LOOKS.contains(&first),
        None => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::Tape;

    fn read(name: &str, input: &str) -> Call {
        let mut tape = Tape::new();
        Call::read(name, tape.parse(input.as_bytes()).unwrap(), Some("/w"))
    }

    #[test]
    fn files_are_told_by_the_shape_of_the_input() {
        for (name, input, path, effect) in [
            ("Write", r#"{"file_path":"/w/a.rs","content":"x"}"#, "/w/a.rs", Effect::Write),
            ("Edit", r#"{"file_path":"/w/a.rs","old_string":"x","new_string":"y"}"#, "/w/a.rs", Effect::Edit),
            ("Read", r#"{"file_path":"/w/a.rs"}"#, "/w/a.rs", Effect::Read),
            ("edit", r#"{"path":"a.rs","edits":[{"oldText":"x"}]}"#, "a.rs", Effect::Edit),
            ("exec_command", r#"{"cmd":"rm b.rs"}"#, "/w/b.rs", Effect::Delete),
            ("shell", r#"{"command":["bash","-lc","touch b.rs"]}"#, "/w/b.rs", Effect::Write),
            (
                "apply_patch",
                r#"{"input":"*** Begin Patch\n*** Update File: c.rs\n"}"#,
                "/w/c.rs",
                Effect::Edit,
            ),
            ("apply_patch", r#""*** Begin Patch\n*** Add File: c.rs\n""#, "/w/c.rs", Effect::Create),
        ] {
            let call = read(name, input);
            assert_eq!(call.files, vec![(path.to_owned(), effect)], "{input}");
        }
        let moved = read("apply_patch", r#""*** Update File: c.rs\n*** Move to: d.rs\n""#);
        assert_eq!(moved.files.len(), 2);
        assert_eq!(read("Grep", r#"{"pattern":"x_y","path":"src"}"#).search.unwrap(), "x_y (src)");
    }

    #[test]
    fn plans_of_each_agent_are_read() {
        let claude =
            read("TodoWrite", r#"{"todos":[{"content":"a","status":"in_progress","activeForm":"b"}]}"#);
        assert_eq!(claude.plan.unwrap(), [Step { text: "a".into(), state: State::Doing }]);
        let codex = read(
            "update_plan",
            r#"{"plan":[{"step":"a","status":"completed"},{"step":"b","status":"pending"}]}"#,
        );
        assert_eq!(
            codex.plan.unwrap().iter().map(|s| s.state).collect::<Vec<_>>(),
            [State::Done, State::Pending]
        );
        assert!(
            matches!(read("TaskCreate", r#"{"subject":"a"}"#).step, Some(StepChange::Add(s)) if s == "a")
        );
    }

    #[test]
    fn commands_are_told_without_the_way_there() {
        assert_eq!(
            told("cd /x && RUST_LOG=a cargo test 2>&1 | tail -5"),
            ("cargo test 2>&1 | tail -5".into(), "cargo test".into())
        );
        assert_eq!(told("\n# note\nmake").1, "make");
        assert!(
            only_looks("git status --short") && only_looks("sed -n 1,5p a") && !only_looks("sed -i s/a/b/ a")
        );
    }
}
