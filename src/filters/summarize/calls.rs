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
    /// That as it is told, with the folder and the variables it needs, and for comparing.
    pub(super) shown: String,
    pub(super) key: String,
    /// Exact values that it puts in the place of others, for each file.
    pub(super) values: Vec<Vec<String>>,
    /// A plan in words that the user was shown.
    pub(super) approved: Option<String>,
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
                call.runs(command, there, directory);
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
            call.values.push(replaced(input));
        }
        if name == "ExitPlanMode" {
            call.approved = input.get("plan").and_then(|plan| text(plan, LOOKED));
        }
        call
    }

    /// Notes the command that it runs.
    pub(super) fn runs(&mut self, command: String, there: Option<&str>, directory: Option<&str>) {
        (self.shown, self.key) = told(&command, there, directory);
        self.command = Some(command);
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
        let mut out: Vec<&str> = Vec::new();
        for line in patch.lines() {
            let Some(rest) = line.strip_prefix("*** ") else {
                match line.as_bytes().first() {
                    Some(b'-') => out.push(line.get(1..).unwrap_or("")),
                    Some(b'+') => {
                        if let ([old], Some(values)) = (out.as_slice(), self.values.last_mut())
                            && let Some(value) = value(old, line.get(1..).unwrap_or(""))
                        {
                            values.push(value);
                        }
                        out.clear();
                        let constant = constant(line.get(1..).unwrap_or(""));
                        if let (Some(constant), Some(values)) = (constant, self.values.last_mut())
                            && values.len() < VALUES
                        {
                            values.push(constant);
                        }
                    }
                    _ => out.clear(),
                }
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
            self.values.push(Vec::new());
            out.clear();
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

/// Most values of one change that are told, and the longest line and value of them, in bytes.
const VALUES: usize = 3;
const VALUE_LINE: usize = 100;
const VALUE: usize = 40;

/// The exact values that an edit replaces, line by line.
fn replaced(input: Value<'_>) -> Vec<String> {
    let mut found = Vec::new();
    let mut pairs = Vec::new();
    let pair = |input: Value<'_>| {
        let old = first(input, &["old_string", "old_str", "oldText"]).and_then(|v| text(v, LOOKED))?;
        Some((old, first(input, &["new_string", "new_str", "newText"]).and_then(|v| text(v, LOOKED))?))
    };
    pairs.extend(pair(input));
    pairs.extend(input.get("edits").into_iter().flat_map(|edits| edits.items().take(10)).filter_map(pair));
    for (old, new) in pairs {
        let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
        let before: std::collections::HashSet<&str> = old.iter().copied().collect();
        found.extend(new.iter().filter(|line| !before.contains(*line)).filter_map(|line| constant(line)));
        if old.len() != new.len() {
            continue;
        }
        let changed = old.iter().zip(&new).filter(|(old, new)| old != new);
        found.extend(changed.filter_map(|(old, new)| value(old, new)).take(VALUES));
    }
    found.truncate(VALUES);
    found
}

/// The constant that a line sets to a short text or number.
fn constant(line: &str) -> Option<String> {
    let (left, right) = line.trim().split_once('=')?;
    let name = left.split(':').next()?.split_whitespace().next_back()?;
    let upper =
        name.len() >= 4 && name.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_');
    let value = right.trim().trim_end_matches([';', ',']);
    let bare = value.trim_matches(['"', '\'', '`']);
    let quoted = bare.len() + 2 == value.len() && !bare.is_empty() && !bare.contains(char::is_whitespace);
    let number = !value.is_empty() && value.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'_' | b'.'));
    (upper && value.len() <= VALUE && (quoted || number)).then(|| format!("`{name} = {value}`"))
}

/// What a line sets, where it differs from the line before in one short value that holds a digit.
fn value(old: &str, new: &str) -> Option<String> {
    let (old, new) = (old.trim(), new.trim());
    if new.len() > VALUE_LINE || old.len() > VALUE_LINE || old == new {
        return None;
    }
    let is_word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '#' | '%' | '-');
    let shared = old.chars().zip(new.chars()).take_while(|(a, b)| a == b).map(|(a, _)| a);
    // from the beginning of the word in which they begin to differ
    let mut from: usize = shared.map(char::len_utf8).sum();
    from = old
        .get(..from)?
        .rfind(|c| !is_word(c))
        .map_or(0, |at| at + old.get(at..).and_then(|o| o.chars().next()).map_or(1, char::len_utf8));
    let behind: usize = old
        .get(from..)?
        .chars()
        .rev()
        .zip(new.get(from..)?.chars().rev())
        .take_while(|(a, b)| a == b && !is_word(*a))
        .map(|(a, _)| a.len_utf8())
        .sum();
    let (was, is) = (old.get(from..old.len() - behind)?, new.get(from..new.len() - behind)?);
    let exact = is.bytes().any(|b| b.is_ascii_digit()) && was.bytes().any(|b| b.is_ascii_digit());
    let short = is.len() <= VALUE && was.len() <= VALUE && !is.contains(' ') && !was.contains(' ');
    (exact && short && from >= 3).then(|| format!("`{new}` (was {was})"))
}

/// A command as it is told, its first line with folder and variables, and for comparing: without the way there
/// (`cd X &&`, `A=b`) and without what only cuts its output. `there` is where it runs, `directory` where the session
/// works.
pub(super) fn told(command: &str, there: Option<&str>, directory: Option<&str>) -> (String, String) {
    let skipped = |l: &str| l.is_empty() || l.starts_with('#') || l.starts_with("set -");
    let line = command.lines().map(str::trim).find(|l| !skipped(l)).unwrap_or("");
    let line = commit(line, command);
    let (mut rest, mut folder, mut variables) = (line.as_str(), None, String::new());
    loop {
        let before = rest;
        if let Some((to, behind)) = rest.strip_prefix("cd ").and_then(|rest| rest.split_once("&&")) {
            folder = Some(to.trim());
            rest = behind.trim_start();
        }
        if let Some((word, behind)) = rest.split_once(' ')
            && let Some((name, _)) = word.split_once('=')
            && !name.is_empty()
            && name.bytes().all(|b| b.is_ascii_uppercase() || b == b'_' || b.is_ascii_digit())
        {
            variables.push_str(word);
            variables.push(' ');
            rest = behind.trim_start();
        }
        // it is of no news that files were added to a commit
        if let Some((_, behind)) = rest.strip_prefix("git add ").and_then(|rest| rest.split_once("&&")) {
            rest = behind.trim_start();
        }
        if rest == before {
            break;
        }
    }
    let mut key = rest;
    for cut in [" 2>&1", " | head", " | tail", " 2>/dev/null"] {
        if let Some((kept, _)) = key.split_once(cut) {
            key = kept;
        }
    }
    let key = key.trim();
    let folder = folder.or(there).map(|folder| inside(folder.trim_matches(['"', '\'']), directory));
    let way = match folder {
        Some(folder) if !folder.is_empty() && folder != "." => format!("cd {folder} && "),
        _ => String::new(),
    };
    (format!("{way}{variables}{key}"), key.to_owned())
}

/// A folder as seen from where the session works; empty for that itself.
fn inside<'a>(folder: &'a str, directory: Option<&str>) -> &'a str {
    let folder = folder.trim_end_matches('/');
    let Some(directory) = directory.map(|d| d.trim_end_matches('/')) else { return folder };
    match folder.strip_prefix(directory) {
        Some("") => "",
        Some(rest) if rest.starts_with('/') => rest.trim_start_matches('/'),
        _ => folder,
    }
}

/// A commit with the subject that a here-document or the next lines hold, and its quotes closed.
fn commit(line: &str, command: &str) -> String {
    if let Some((before, _)) = line.split_once(" --body").filter(|(before, _)| before.contains("gh ")) {
        return before.to_owned();
    }
    if !line.contains("git commit") {
        return line.to_owned();
    }
    if let Some((before, _)) = line.split_once("\"$(cat <<") {
        let subject = super::docs::here_document(command)
            .and_then(|body| body.lines().map(str::trim).find(|l| !l.is_empty()));
        return format!("{before}\"{}\"", subject.unwrap_or(""));
    }
    match line.bytes().filter(|b| *b == b'"').count() % 2 {
        0 => line.to_owned(),
        _ => format!("{line}\""),
    }
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
        let todos =
            read("TodoWrite", r#"{"todos":[{"content":"a","status":"in_progress","activeForm":"b"}]}"#);
        assert_eq!(todos.plan.unwrap(), [Step { text: "a".into(), state: State::Doing }]);
        let steps = read(
            "update_plan",
            r#"{"plan":[{"step":"a","status":"completed"},{"step":"b","status":"pending"}]}"#,
        );
        assert_eq!(
            steps.plan.unwrap().iter().map(|s| s.state).collect::<Vec<_>>(),
            [State::Done, State::Pending]
        );
        assert!(
            matches!(read("TaskCreate", r#"{"subject":"a"}"#).step, Some(StepChange::Add(s)) if s == "a")
        );
    }

    #[test]
    fn commands_are_told_with_folder_and_variables_and_compared_without() {
        assert_eq!(
            told("cd /w/x && RUST_LOG=a cargo test 2>&1 | tail -5", None, Some("/w")),
            ("cd x && RUST_LOG=a cargo test".into(), "cargo test".into())
        );
        assert_eq!(told("make", Some("/w"), Some("/w")).0, "make");
        assert_eq!(told("make", Some("/w/duck"), Some("/w")).0, "cd duck && make");
        assert_eq!(told("\n# note\nset -e\nmake", None, None).1, "make");
        assert_eq!(
            told("git add -A && git commit -m \"$(cat <<'EOF'\nfix: the pond\n\nbody\nEOF\n)\"", None, None)
                .0,
            "git commit -m \"fix: the pond\""
        );
        assert_eq!(
            told("git commit -m \"fix: the pond\n\nbody\"", None, None).0,
            "git commit -m \"fix: the pond\""
        );
        assert!(
            only_looks("git status --short") && only_looks("sed -n 1,5p a") && !only_looks("sed -i s/a/b/ a")
        );
    }

    #[test]
    fn exact_values_that_a_change_puts_in_are_found() {
        let edit = read(
            "Edit",
            r#"{"file_path":"/w/a.toml","old_string":"[x]\nport = 8080","new_string":"[x]\nport = 9090"}"#,
        );
        assert_eq!(edit.values, [["`port = 9090` (was 8080)"]]);
        let patch = read(
            "apply_patch",
            r#""*** Begin Patch\n*** Update File: a.css\n@@\n-  color: #aa0011;\n+  color: #bb0011;\n-old\n+new\n*** End Patch""#,
        );
        assert_eq!(patch.values, [["`color: #bb0011;` (was #aa0011)"]]);
        let constant = read(
            "apply_patch",
            r#""*** Begin Patch\n*** Update File: a.rs\n@@\n+pub const POND_READY: &str = \"pond-ready\";\n+let x = 4;\n*** End Patch""#,
        );
        assert_eq!(constant.values, [["`POND_READY = \"pond-ready\"`"]]);
    }
}
