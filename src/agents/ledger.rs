//! Which files a session touched, from its tool calls alone. Today's disk is never looked at.
//!
//! A call counts when its result says that it worked. Shell commands count in the clear cases only: plain
//! words, no expansion, and a command whose effect on a path needs no knowledge of the disk.

use crate::record::{FileChange, FileStatus};
use std::collections::HashMap;

/// Calls that wait for their result; more than this many are never open in one turn of a real session.
const OPEN: usize = 10_000;

/// The files of one session.
#[derive(Debug, Default)]
pub struct Ledger {
    open: HashMap<u64, Vec<(String, Effect)>>,
    files: HashMap<String, Known>,
    clock: u64,
}

#[derive(Debug)]
struct Known {
    status: FileStatus,
    modified_at: Option<String>,
    order: u64,
}

/// What a call does to a path when it works.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Writes the whole file, which may be new.
    Write,
    /// Makes a new file.
    Create,
    /// Changes a file that is there.
    Edit,
    /// Removes the file.
    Delete,
    /// Reads the file.
    Read,
}

impl Ledger {
    /// A call that writes a whole file.
    pub fn write(&mut self, call: u64, path: Option<String>) {
        self.expect(call, path, Effect::Write);
    }

    /// A call that changes a file.
    pub fn edit(&mut self, call: u64, path: Option<String>) {
        self.expect(call, path, Effect::Edit);
    }

    /// A call that reads a file.
    pub fn read(&mut self, call: u64, path: Option<String>) {
        self.expect(call, path, Effect::Read);
    }

    /// A shell command that ran in `directory`.
    pub fn shell(&mut self, call: u64, command: &str, directory: Option<&str>) {
        for (path, effect) in shell_effects(command, directory) {
            self.expect(call, Some(path), effect);
        }
    }

    /// A call that does something to a path when it works.
    pub fn expect(&mut self, call: u64, path: Option<String>, effect: Effect) {
        let Some(path) = path.filter(|p| !p.is_empty()) else { return };
        if self.open.len() >= OPEN && !self.open.contains_key(&call) {
            // calls that were never answered; what they did is unknown anyway
            self.open.clear();
        }
        self.open.entry(call).or_default().push((path, effect));
    }

    /// Whether the result of this call would tell anything.
    pub fn is_open(&self, call: u64) -> bool {
        self.open.contains_key(&call)
    }

    /// The result of a call. `created` is what the client itself says of a write, `when` is RFC 3339.
    pub fn settle(&mut self, call: u64, worked: bool, created: Option<bool>, when: Option<String>) {
        let Some(effects) = self.open.remove(&call) else { return };
        if worked {
            for (path, effect) in effects {
                self.record(path, effect, created, when.clone());
            }
        }
    }

    fn record(&mut self, path: String, effect: Effect, created: Option<bool>, when: Option<String>) {
        self.clock += 1;
        let before = self.files.get(&path).map(|k| k.status);
        let status = match (effect, before) {
            (Effect::Read, Some(_)) => return,
            (Effect::Read, None) => FileStatus::Read,
            (Effect::Delete, _) => FileStatus::Deleted,
            (_, Some(FileStatus::Created)) => FileStatus::Created,
            (Effect::Create, _) => FileStatus::Created,
            (Effect::Edit, _) => FileStatus::Modified,
            (Effect::Write, before) => match (created, before) {
                (Some(true), _) | (None, None | Some(FileStatus::Deleted)) => FileStatus::Created,
                _ => FileStatus::Modified,
            },
        };
        let modified_at = if status == FileStatus::Read { None } else { when };
        self.files.insert(path, Known { status, modified_at, order: self.clock });
    }

    /// The files, the one changed last at the end.
    pub fn snapshot(self) -> Vec<FileChange> {
        let mut files: Vec<_> = self.files.into_iter().collect();
        files.sort_by_key(|(_, known)| known.order);
        files
            .into_iter()
            .map(|(path, k)| FileChange { path, status: k.status, modified_at: k.modified_at })
            .collect()
    }
}

/// A word of a shell command.
#[derive(Debug, PartialEq, Eq)]
enum Word {
    /// A word that means itself.
    Plain(String),
    /// A word that the shell would expand.
    Expanded,
    /// `>` or `>>`, and whether it appends.
    Redirect(bool),
    /// Anything that parts commands.
    Break,
}

fn shell_effects(command: &str, directory: Option<&str>) -> Vec<(String, Effect)> {
    // most commands touch nothing, and show it without being taken apart
    const SIGNS: [&str; 8] = [">", "rm ", "mv ", "cp ", "tee ", "touch ", "sed -i", "cat "];
    if !SIGNS.iter().any(|sign| command.contains(sign)) {
        return Vec::new();
    }
    let mut effects = Vec::new();
    let mut directory = directory.map(str::to_owned);
    for simple in words(command).split(|w| *w == Word::Break) {
        simple_effects(simple, &mut directory, &mut effects);
    }
    effects
}

fn simple_effects(simple: &[Word], directory: &mut Option<String>, effects: &mut Vec<(String, Effect)>) {
    let mut args: Vec<Option<&str>> = Vec::new();
    let mut rest = simple.iter();
    while let Some(word) = rest.next() {
        match word {
            Word::Redirect(append) => {
                if let Some(Word::Plain(path)) = rest.next()
                    && !path.starts_with("/dev/")
                    && !path.starts_with('&')
                {
                    effects.push((at(directory, path), if *append { Effect::Edit } else { Effect::Write }));
                }
            }
            Word::Plain(text) => args.push(Some(text)),
            Word::Expanded => args.push(None),
            Word::Break => {}
        }
    }
    let Some((Some(name), mut args)) = args.split_first().map(|(n, a)| (*n, a)) else { return };
    let mut name = name;
    if name == "git"
        && let Some((Some(verb @ ("rm" | "mv")), more)) = args.split_first().map(|(n, a)| (*n, a))
    {
        name = verb;
        args = more;
    }
    let paths: Vec<Option<&str>> =
        args.iter().copied().filter(|a| a.is_none_or(|t| !t.starts_with('-'))).collect();
    let mut each = |effect| effects.extend(paths.iter().flatten().map(|p| (at(directory, p), effect)));
    match (name, paths.as_slice()) {
        ("cd", [target]) => {
            *directory = target.map(|t| at(directory, t));
        }
        ("rm", _) => each(Effect::Delete),
        ("touch", _) => each(Effect::Write),
        ("tee", _) => each(Effect::Write),
        // whether the last word is a folder is not known unless it looks like a file
        ("mv" | "cp", [Some(from), Some(to)]) => {
            if name == "mv" {
                effects.push((at(directory, from), Effect::Delete));
            }
            let file = to.rsplit('/').next().unwrap_or(to);
            if file.trim_start_matches('.').contains('.') {
                effects.push((at(directory, to), Effect::Write));
            }
        }
        ("sed", [Some(_), Some(file)]) if args.iter().flatten().any(|a| a.starts_with("-i")) => {
            effects.push((at(directory, file), Effect::Edit));
        }
        ("cat", [Some(file)]) => effects.push((at(directory, file), Effect::Read)),
        _ => {}
    }
}

/// A path as seen from the directory of the command.
fn at(directory: &Option<String>, path: &str) -> String {
    match directory {
        Some(dir) if !path.starts_with(['/', '~']) => {
            format!("{}/{}", dir.trim_end_matches('/'), path.trim_start_matches("./"))
        }
        _ => path.to_owned(),
    }
}

/// Splits a command into words, as far as that is clear. Bodies of here-documents are left out.
fn words(command: &str) -> Vec<Word> {
    let mut out = Vec::new();
    let mut word: Option<String> = None;
    let mut expanded = false;
    let mut chars = command.chars().peekable();
    let close = |out: &mut Vec<Word>, word: &mut Option<String>, expanded: &mut bool| {
        let Some(text) = word.take() else { return };
        out.push(if std::mem::take(expanded) { Word::Expanded } else { Word::Plain(text) });
    };
    let mut endings: Vec<String> = Vec::new();
    while let Some(c) = chars.next() {
        match c {
            '\'' => {
                let text = word.get_or_insert_default();
                text.extend(chars.by_ref().take_while(|&c| c != '\''));
            }
            '"' => {
                let text = word.get_or_insert_default();
                while let Some(c) = chars.next() {
                    match c {
                        '"' => break,
                        '\\' => text.extend(chars.next()),
                        '$' | '`' => expanded = true,
                        c => text.push(c),
                    }
                }
            }
            '\\' => match chars.next() {
                Some('\n') | None => {}
                Some(c) => word.get_or_insert_default().push(c),
            },
            '<' => {
                close(&mut out, &mut word, &mut expanded);
                if chars.peek() == Some(&'<') {
                    chars.next();
                    // the delimiter of a here-document is the next word
                    let mut delimiter = String::new();
                    while chars.peek().is_some_and(|c| " -'\"\\".contains(*c)) {
                        chars.next();
                    }
                    while let Some(&c) = chars.peek().filter(|c| c.is_alphanumeric() || **c == '_') {
                        delimiter.push(c);
                        chars.next();
                    }
                    while chars.peek().is_some_and(|c| "'\"".contains(*c)) {
                        chars.next();
                    }
                    if !delimiter.is_empty() {
                        endings.push(delimiter);
                    }
                } else {
                    // what is read from is no argument
                    while chars.peek().is_some_and(|c| *c == ' ') {
                        chars.next();
                    }
                    while chars.peek().is_some_and(|c| !c.is_whitespace() && !";&|".contains(*c)) {
                        chars.next();
                    }
                }
            }
            '>' => {
                // a file descriptor before it is no word
                if word.as_deref().is_some_and(|w| w == "1" || w == "2") {
                    word = None;
                }
                close(&mut out, &mut word, &mut expanded);
                let append = chars.next_if_eq(&'>').is_some();
                out.push(Word::Redirect(append));
            }
            '\n' | ';' | '|' | '(' | ')' => {
                close(&mut out, &mut word, &mut expanded);
                out.push(Word::Break);
                if c == '\n' {
                    for ending in endings.drain(..) {
                        loop {
                            let line: String = chars.by_ref().take_while(|&c| c != '\n').collect();
                            if line.trim() == ending || chars.peek().is_none() {
                                break;
                            }
                        }
                    }
                }
            }
            '&' => {
                // part of `>&2` and `&>`, else a break
                if matches!(out.last(), Some(Word::Redirect(_))) && word.is_none() {
                    word = Some("&".to_owned());
                } else {
                    close(&mut out, &mut word, &mut expanded);
                    out.push(Word::Break);
                }
            }
            c if c.is_whitespace() => close(&mut out, &mut word, &mut expanded),
            '$' | '`' | '*' | '?' | '[' | '{' => {
                expanded = true;
                word.get_or_insert_default().push(c);
            }
            c => word.get_or_insert_default().push(c),
        }
    }
    close(&mut out, &mut word, &mut expanded);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn effects(command: &str) -> Vec<(String, Effect)> {
        shell_effects(command, Some("/w"))
    }

    fn one(path: &str, effect: Effect) -> Vec<(String, Effect)> {
        vec![(path.to_owned(), effect)]
    }

    #[test]
    fn clear_commands_tell_what_they_do() {
        assert_eq!(effects("rm -rf build/x.o"), one("/w/build/x.o", Effect::Delete));
        assert_eq!(effects("echo hi > a.txt"), one("/w/a.txt", Effect::Write));
        assert_eq!(effects("make 2>&1 | tee log.txt"), one("/w/log.txt", Effect::Write));
        assert_eq!(effects("cd sub && touch 'a b'"), one("/w/sub/a b", Effect::Write));
        assert_eq!(effects("sed -i 's/a/b/' /etc/f"), one("/etc/f", Effect::Edit));
        assert_eq!(
            effects("git mv a.rs b.rs"),
            vec![("/w/a.rs".to_owned(), Effect::Delete), ("/w/b.rs".to_owned(), Effect::Write)]
        );
        assert_eq!(effects("cat > f.py <<'EOF'\nrm x\nEOF\nrm y"), {
            let mut v = one("/w/f.py", Effect::Write);
            v.extend(one("/w/y", Effect::Delete));
            v
        });
    }

    #[test]
    fn unclear_commands_tell_nothing() {
        for command in [
            "rm $X",
            "rm *.o",
            "echo a > /dev/null",
            "ls 2>/dev/null",
            "mv a b",
            "cd $(pwd); ls",
            "grep -r x .",
        ] {
            let made: Vec<_> = effects(command).into_iter().filter(|(_, e)| *e != Effect::Delete).collect();
            assert_eq!(made, vec![], "{command}");
        }
        assert_eq!(effects("rm $X *.o"), vec![]);
    }

    #[test]
    fn what_failed_did_not_happen_and_states_add_up() {
        let mut l = Ledger::default();
        l.write(1, Some("a".into()));
        l.settle(1, false, None, None);
        l.write(2, Some("b".into()));
        l.settle(2, true, Some(true), Some("t2".into()));
        l.edit(3, Some("b".into()));
        l.settle(3, true, None, Some("t3".into()));
        l.read(4, Some("c".into()));
        l.settle(4, true, None, Some("t4".into()));
        l.edit(5, Some("c".into()));
        l.settle(5, true, None, Some("t5".into()));
        l.shell(6, "rm d", None);
        l.settle(6, true, None, Some("t6".into()));
        let got: Vec<_> =
            l.snapshot().into_iter().map(|f| (f.path, f.status, f.modified_at.unwrap_or_default())).collect();
        assert_eq!(
            got,
            vec![
                ("b".into(), FileStatus::Created, "t3".to_owned()),
                ("c".into(), FileStatus::Modified, "t5".to_owned()),
                ("d".into(), FileStatus::Deleted, "t6".to_owned()),
            ]
        );
    }
}
