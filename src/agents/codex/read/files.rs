//! Which files a session touched, as far as its calls tell.

use super::line::{Item, What, field, text};
use super::pieces::outcome_of;
use crate::record::{FileChange, FileStatus, Status};
use crate::stream::json::{Tape, Value};
use std::collections::HashMap;

/// Paths that are kept; a session that touches more names its first ones.
const MOST: usize = 4096;

/// Calls whose output has not come; a session has few open at a time.
const OPEN: usize = 256;

/// The files, gathered in order of their last change. A change counts when its call did not fail.
#[derive(Debug, Default)]
pub(super) struct Files {
    changes: Vec<Option<FileChange>>,
    places: HashMap<String, usize>,
    open: HashMap<String, Vec<(String, FileStatus)>>,
}

impl Files {
    /// Looks at an item; `when` is its time.
    pub(super) fn item(&mut self, item: &Item<'_>, when: Option<&str>) {
        match item.what {
            What::FunctionCall | What::CustomCall | What::LocalShell => {
                let touched = touched(item);
                let Some(id) = text(item.payload, "call_id") else { return };
                if !touched.is_empty() && self.open.len() < OPEN {
                    self.open.insert(id.decode().into_owned(), touched);
                }
            }
            What::FunctionOutput | What::CustomOutput if !self.open.is_empty() => {
                let Some(id) = text(item.payload, "call_id") else { return };
                let Some(touched) = self.open.remove(&*id.decode()) else { return };
                let output = field(item.payload, "output");
                let words = output.and_then(|o| {
                    o.text().or_else(|| o.items().find_map(|part| text(part, "text")))
                });
                if words.map(outcome_of).is_none_or(|o| o.status != Status::Error) {
                    for (path, status) in touched {
                        self.change(path, status, when);
                    }
                }
            }
            _ => {}
        }
    }

    fn change(&mut self, path: String, status: FileStatus, when: Option<&str>) {
        let before = self.places.get(&path).copied().and_then(|at| self.changes.get_mut(at)).and_then(Option::take);
        let change = match (before, status) {
            // looking at a file that was changed changes nothing
            (Some(old), FileStatus::Read) => old,
            // a file that the session made stays one that it made
            (Some(FileChange { status: FileStatus::Created, .. }), FileStatus::Modified) => FileChange {
                path: path.clone(),
                status: FileStatus::Created,
                modified_at: when.map(str::to_owned),
            },
            (_, status) => FileChange {
                path: path.clone(),
                status,
                modified_at: when.filter(|_| status != FileStatus::Read).map(str::to_owned),
            },
        };
        if self.places.len() >= MOST && !self.places.contains_key(&path) {
            return;
        }
        self.places.insert(path, self.changes.len());
        self.changes.push(Some(change));
        if self.changes.len() > 2 * MOST {
            self.changes.retain(Option::is_some);
            for (at, change) in self.changes.iter().enumerate() {
                if let Some(change) = change {
                    self.places.insert(change.path.clone(), at);
                }
            }
        }
    }

    /// The files, newest change last.
    pub(super) fn into_snapshot(self) -> Option<Vec<FileChange>> {
        let changes = self.changes.into_iter().flatten().collect::<Vec<_>>();
        (!changes.is_empty()).then_some(changes)
    }
}

fn touched(item: &Item<'_>) -> Vec<(String, FileStatus)> {
    match item.what {
        What::CustomCall => match text(item.payload, "input") {
            Some(input) if holds_patch(input.raw()) => patch(&input.decode()),
            _ => Vec::new(),
        },
        What::LocalShell => field(item.payload, "action").map(of_arguments).unwrap_or_default(),
        _ => {
            let Some(arguments) = text(item.payload, "arguments") else { return Vec::new() };
            // long arguments are patches or file contents: only the former are looked into
            if arguments.raw().len() > 4096 && !holds_patch(arguments.raw()) {
                return Vec::new();
            }
            let decoded = arguments.decode();
            let mut tape = Tape::new();
            tape.parse(decoded.as_bytes()).map(of_arguments).unwrap_or_default()
        }
    }
}

fn holds_patch(raw: &[u8]) -> bool {
    memchr::memmem::find(raw, b"*** Begin Patch").is_some()
}

/// `{"input": patch}`, `{"command": [..]}`, `{"command": ".."}`, `{"cmd": ".."}`.
fn of_arguments(arguments: Value<'_>) -> Vec<(String, FileStatus)> {
    if let Some(input) = text(arguments, "input") {
        return patch(&input.decode());
    }
    let Some(command) = field(arguments, "command").or_else(|| field(arguments, "cmd")) else { return Vec::new() };
    if let Some(line) = command.text() {
        return shell(&line.decode());
    }
    let words = command.items().filter_map(|w| w.text()).map(|t| t.decode().into_owned()).collect::<Vec<_>>();
    match words.as_slice() {
        [shell_name, option, line] if shell_name.ends_with("sh") && option.starts_with('-') => shell(line),
        [name, input] if name == "apply_patch" => patch(input),
        _ => simple(&words.iter().map(String::as_str).collect::<Vec<_>>()),
    }
}

/// The files that a patch in Codex's own format names.
fn patch(text: &str) -> Vec<(String, FileStatus)> {
    let mut found: Vec<(String, FileStatus)> = Vec::new();
    for line in text.lines() {
        let Some(line) = line.strip_prefix("*** ") else { continue };
        if let Some(path) = line.strip_prefix("Add File: ") {
            found.push((path.trim().to_owned(), FileStatus::Created));
        } else if let Some(path) = line.strip_prefix("Update File: ") {
            found.push((path.trim().to_owned(), FileStatus::Modified));
        } else if let Some(path) = line.strip_prefix("Delete File: ") {
            found.push((path.trim().to_owned(), FileStatus::Deleted));
        } else if let Some(path) = line.strip_prefix("Move to: ") {
            if let Some((_, status)) = found.last_mut() {
                *status = FileStatus::Deleted;
            }
            found.push((path.trim().to_owned(), FileStatus::Created));
        }
    }
    found
}

/// A shell line, where it is clear: a patch in a here-document, one file written by one, or one simple command.
fn shell(line: &str) -> Vec<(String, FileStatus)> {
    if line.contains("*** Begin Patch") {
        return if line.contains("apply_patch") { patch(line) } else { Vec::new() };
    }
    let first = line.trim_start().lines().next().unwrap_or_default();
    if let Some(rest) = first.strip_prefix("cat >") {
        let (appends, rest) = rest.strip_prefix('>').map_or((false, rest), |r| (true, r));
        let path = rest.split("<<").next().unwrap_or_default().trim().trim_matches(['"', '\'']);
        let clear = first.contains("<<") && is_path(path);
        let status = if appends { FileStatus::Modified } else { FileStatus::Created };
        return if clear { vec![(path.to_owned(), status)] } else { Vec::new() };
    }
    if line.trim().contains(['\n', '|', '>', '<', ';', '&', '`', '$', '*', '?', '\\', '(', '{', '"']) {
        return Vec::new();
    }
    let words = line.split_whitespace().map(|w| w.trim_matches('\'')).collect::<Vec<_>>();
    simple(&words)
}

fn is_path(text: &str) -> bool {
    !text.is_empty() && !text.contains(|c: char| c.is_whitespace() || "|<>;&`$*?\"'\\(){}".contains(c))
}

fn simple(words: &[&str]) -> Vec<(String, FileStatus)> {
    let Some((command, rest)) = words.split_first() else { return Vec::new() };
    let named = rest.iter().filter(|w| !w.starts_with('-')).copied().collect::<Vec<_>>();
    let clear = named.iter().all(|p| is_path(p));
    let all = |status: FileStatus| named.iter().map(|p| ((*p).to_owned(), status)).collect();
    match (*command, named.as_slice()) {
        _ if !clear && *command != "sed" => Vec::new(),
        ("cat" | "nl", [path]) => vec![((*path).to_owned(), FileStatus::Read)],
        ("sed", [range, path]) if rest.first() == Some(&"-n") && range.ends_with('p') && is_path(path) => {
            vec![((*path).to_owned(), FileStatus::Read)]
        }
        // without -r: what a recursive removal took along is not known
        ("rm", [_, ..]) if rest.iter().all(|w| !w.starts_with('-') || *w == "-f") => all(FileStatus::Deleted),
        ("touch", [_, ..]) => all(FileStatus::Modified),
        ("mv", [from, to]) if !to.ends_with('/') && to.contains('.') => {
            vec![((*from).to_owned(), FileStatus::Deleted), ((*to).to_owned(), FileStatus::Created)]
        }
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use FileStatus::{Created, Deleted, Modified, Read};

    fn owned(list: &[(&str, FileStatus)]) -> Vec<(String, FileStatus)> {
        list.iter().map(|(p, s)| ((*p).to_owned(), *s)).collect()
    }

    #[test]
    fn patches_name_their_files() {
        let text = "*** Begin Patch\n*** Add File: a b.rs\n+x\n*** Update File: c.rs\n*** Move to: d.rs\n@@\n*** Delete File: e\n*** End Patch";
        assert_eq!(patch(text), owned(&[("a b.rs", Created), ("c.rs", Deleted), ("d.rs", Created), ("e", Deleted)]));
    }

    #[test]
    fn only_clear_shell_lines_count() {
        for (line, files) in [
            ("cat src/lib.rs", owned(&[("src/lib.rs", Read)])),
            ("sed -n '1,20p' a.rs", owned(&[("a.rs", Read)])),
            ("cat > a.txt <<'EOF'\nx\nEOF", owned(&[("a.txt", Created)])),
            ("rm -f a b", owned(&[("a", Deleted), ("b", Deleted)])),
            ("mv a.rs b.rs", owned(&[("a.rs", Deleted), ("b.rs", Created)])),
            ("touch new", owned(&[("new", Modified)])),
            ("apply_patch <<'EOF'\n*** Begin Patch\n*** Update File: z\n*** End Patch\nEOF", owned(&[("z", Modified)])),
            ("rm -rf target", vec![]),
            ("cat a | wc", vec![]),
            ("cat $X", vec![]),
            ("echo x > y", vec![]),
        ] {
            assert_eq!(shell(line), files, "{line}");
        }
    }
}
