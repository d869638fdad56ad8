//! What a shell command does to files, as far as the command alone tells.
//!
//! Only the clear cases: plain words, no expansion, and a command whose effect on a path needs no knowledge of
//! the disk.

use super::path::{is_of_windows, joined};

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
    /// Takes the file away under another name; where that is clear, the [`Effect::Write`] of the new name
    /// comes next.
    Move,
    /// Reads the file.
    Read,
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

/// What a command that works does to files, in order. Paths that are not absolute are seen from `directory`
/// and from where the command itself goes.
pub fn effects(command: &str, directory: Option<&str>) -> Vec<(String, Effect)> {
    // most commands touch nothing, and show it without being taken apart
    const SIGNS: [&str; 8] = [">", "rm ", "mv ", "cp ", "tee ", "touch ", "sed -i", "cat "];
    if !SIGNS.iter().any(|sign| command.contains(sign)) {
        return Vec::new();
    }
    let mut effects = Vec::new();
    let mut directory = directory.map(str::to_owned);
    let windows = directory.as_deref().is_some_and(is_of_windows);
    for simple in words(command, windows).split(|w| *w == Word::Break) {
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
                effects.push((at(directory, from), Effect::Move));
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
    joined(directory.as_deref(), path)
}

/// Splits a command into words, as far as that is clear. Bodies of here-documents are left out. On Windows a `\` is
/// one thing to PowerShell and another to Git Bash, so that a word with one in front of a letter is not clear.
fn words(command: &str, windows: bool) -> Vec<Word> {
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
                        // between these quotes it stands for itself in front of anything else
                        '\\' => match chars.next_if(|c| "$`\"\\\n".contains(*c)) {
                            Some('\n') => {}
                            Some(c) => text.push(c),
                            None => text.push('\\'),
                        },
                        '$' | '`' => expanded = true,
                        c => text.push(c),
                    }
                }
            }
            '\\' => match chars.next() {
                Some('\n') | None => {}
                Some(c) if windows && c.is_alphanumeric() => {
                    expanded = true;
                    word.get_or_insert_default().push(c);
                }
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
        super::effects(command, Some("/w"))
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
            vec![("/w/a.rs".to_owned(), Effect::Move), ("/w/b.rs".to_owned(), Effect::Write)]
        );
        assert_eq!(effects("cat > f.py <<'EOF'\nrm x\nEOF\nrm y"), {
            let mut v = one("/w/f.py", Effect::Write);
            v.extend(one("/w/y", Effect::Delete));
            v
        });
    }

    #[test]
    fn a_windows_folder_has_its_own_spelling() {
        let there = |command: &str| super::effects(command, Some("C:\\w"));
        assert_eq!(there("touch a/b.txt"), one("C:\\w\\a\\b.txt", Effect::Write));
        assert_eq!(there("rm 'src\\a.txt'"), one("C:\\w\\src\\a.txt", Effect::Delete));
        assert_eq!(there("cat \"D:\\x\\a.txt\""), one("D:\\x\\a.txt", Effect::Read));
        assert_eq!(there("cd /c/w/src && rm ./a"), one("C:\\w\\src\\a", Effect::Delete));
        // PowerShell and Git Bash would not agree
        assert_eq!(there("rm src\\a.txt"), vec![]);
        assert_eq!(effects("rm ./a/../b"), one("/w/b", Effect::Delete));
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
            let made: Vec<_> = effects(command)
                .into_iter()
                .filter(|(_, e)| !matches!(e, Effect::Delete | Effect::Move))
                .collect();
            assert_eq!(made, vec![], "{command}");
        }
        assert_eq!(effects("rm $X *.o"), vec![]);
    }
}
