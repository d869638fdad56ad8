//! The layer rule: which folder may use which, and what stays out of filters and commands.

use std::path::{Path, PathBuf};

/// Every folder of `src/` with the folders it may use.
const MAY_USE: &[(&str, &[&str])] = &[
    ("json", &[]),
    ("record", &["json"]),
    ("tokens", &["json", "record"]),
    ("calls", &["json", "record"]),
    ("stream", &["json", "record"]),
    ("agents", &["json", "record", "calls", "tokens", "stream"]),
    ("formats", &["json", "record", "stream"]),
    ("filters", &["json", "record", "calls", "tokens", "stream"]),
    ("pipeline", &["json", "record", "calls", "tokens", "stream", "agents", "formats", "filters"]),
    ("cli", &["json", "record", "stream"]),
];

/// What a folder never names, and why.
const NEVER: &[(&str, &[&str])] = &[
    ("json", &["std::fs", "std::env", "std::process", "std::io::stdin", "clap", "anyhow"]),
    ("record", &["std::fs", "std::env", "std::process", "std::io::stdin", "clap", "anyhow"]),
    ("tokens", &["std::fs", "std::env", "std::process", "std::io::stdin", "clap", "anyhow"]),
    ("calls", &["std::fs", "std::env", "std::process", "std::io::stdin", "clap", "anyhow"]),
    ("stream", &["clap", "anyhow"]),
    ("agents", &["clap", "anyhow", "std::env"]),
    ("formats", &["clap", "anyhow", "std::env"]),
    ("filters", &["clap", "anyhow", "std::fs", "std::env", "std::process"]),
    ("pipeline", &["clap", "anyhow", "std::env"]),
];

fn package() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// The files of Rust below a folder, with their text without comments and tests.
fn sources(folder: &Path) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display())) {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|e| e == "rs") {
            found.push((path.clone(), code(&std::fs::read_to_string(&path).unwrap())));
        }
    }
    found
}

/// A source without comments, white space and the tests at its end: what is left are the paths it uses.
fn code(text: &str) -> String {
    let body = text.split("#[cfg(test)]\nmod ").next().unwrap_or(text);
    let lines = body.lines().map(|line| line.split("//").next().unwrap_or(line));
    lines.collect::<Vec<_>>().join(" ").split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The first names of what stands behind `prefix` in paths and `use` groups: `crate::{a::B, c}` gives a, c.
fn named_behind(text: &str, prefix: &str) -> Vec<String> {
    let mut names = Vec::new();
    for (at, _) in text.match_indices(prefix) {
        let before = text[..at].chars().next_back();
        if before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == ':') {
            continue;
        }
        let rest = &text[at + prefix.len()..];
        let first =
            |text: &str| text.trim().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
        let Some(group) = rest.strip_prefix('{') else {
            names.push(first(rest));
            continue;
        };
        let mut depth = 0;
        let mut item = String::new();
        for c in group.chars() {
            match c {
                '{' => depth += 1,
                '}' if depth == 0 => break,
                '}' => depth -= 1,
                ',' if depth == 0 => names.push(first(&std::mem::take(&mut item))),
                _ => {}
            }
            if c != ',' || depth > 0 {
                item.push(c);
            }
        }
        names.push(first(&item));
    }
    names.retain(|name: &String| !name.is_empty());
    names
}

/// Whether a source names a path such as `std::fs`, written out or in a `use` group.
fn names(text: &str, path: &str) -> bool {
    match path.split_once("::") {
        None => {
            let bare = |at: usize| {
                let before = text[..at].chars().next_back();
                let after = text[at + path.len()..].chars().next();
                let inside = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
                !inside(before) && !inside(after) && text[at + path.len()..].starts_with("::")
            };
            text.match_indices(path).any(|(at, _)| bare(at))
        }
        Some((root, rest)) => {
            let module = rest.split("::").next().unwrap_or(rest);
            let listed = named_behind(text, &format!("{root}::")).iter().any(|name| name == module);
            match rest.split_once("::") {
                None => listed,
                Some((_, item)) => {
                    listed
                        && (text.contains(path)
                            || named_behind(text, &format!("{root}::{module}::")).iter().any(|n| n == item))
                }
            }
        }
    }
}

#[test]
fn folders_use_only_what_they_may() {
    let source = package().join("src");
    let known: Vec<&str> = MAY_USE.iter().map(|(folder, _)| *folder).collect();
    let mut faults = Vec::new();
    for entry in std::fs::read_dir(&source).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        if name != "lib.rs" && !known.contains(&name.as_str()) {
            faults.push(format!("src/{name}: a folder that the table does not know"));
        }
    }
    for (folder, may) in MAY_USE {
        for (path, text) in sources(&source.join(folder)) {
            let shown = path.strip_prefix(package()).unwrap().display().to_string();
            for used in named_behind(&text, "crate::") {
                if used != *folder && known.contains(&used.as_str()) && !may.contains(&used.as_str()) {
                    faults.push(format!("{shown}: {folder} must not use {used}"));
                }
            }
            for (_, never) in NEVER.iter().filter(|(of, _)| of == folder) {
                for path in never.iter().filter(|path| names(&text, path)) {
                    faults.push(format!("{shown}: {folder} must not use {path}"));
                }
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn agents_know_nothing_of_each_other() {
    let folder = package().join("src/agents");
    let agents: Vec<String> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap())
        .filter(|entry| entry.path().is_dir())
        .map(|entry| entry.file_name().into_string().unwrap())
        .collect();
    assert!(agents.len() >= 2, "no agents: is the layout another one?");
    let mut faults = Vec::new();
    for agent in &agents {
        for (path, text) in sources(&folder.join(agent)) {
            let mut used = named_behind(&text, "crate::agents::");
            used.extend(named_behind(&text, "super::super::"));
            for other in agents.iter().filter(|other| *other != agent && used.contains(other)) {
                faults.push(format!("{}: {agent} must not use {other}", path.display()));
            }
        }
        for file in ["mod.rs", "locate.rs", "read.rs", "write.rs", "README.md"] {
            let held = folder.join(agent).join(file).exists()
                || folder.join(agent).join(file.trim_end_matches(".rs")).join("mod.rs").exists();
            if !held {
                faults.push(format!("src/agents/{agent}/{file} is missing"));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn commands_are_arguments_and_one_call() {
    let mut faults = Vec::new();
    let manifest = std::fs::read_to_string(package().join("Cargo.toml")).unwrap();
    let mut commands = 0;
    for (path, text) in sources(&package().join("bin")) {
        commands += 1;
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        let lines = std::fs::read_to_string(&path).unwrap().lines().count();
        if !(10..=60).contains(&lines) {
            faults.push(format!("bin/{name}: {lines} lines; a command has 25 to 60 at the most"));
        }
        if text.matches("fn ").count() != 1 {
            faults.push(format!("bin/{name}: more than `main`"));
        }
        let calls = text.matches("cli::stage(").count() + text.matches("cli::command(").count();
        if calls != 1 {
            faults.push(format!("bin/{name}: {calls} calls of cli::stage or cli::command, not one"));
        }
        for never in ["std::fs", "std::env", "std::io", "println!", "unwrap(", "expect("] {
            if text.contains(never) {
                faults.push(format!("bin/{name}: {never}"));
            }
        }
        if !manifest.contains(&format!("path = \"bin/{name}\"")) {
            faults.push(format!("bin/{name} is no [[bin]] of Cargo.toml"));
        }
    }
    assert!(commands > 0, "no commands: is the layout another one?");
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// The rules above hold nothing if they cannot see a breach.
#[test]
fn breaches_are_seen() {
    assert_eq!(
        named_behind("use crate::{agents::X, record::{A, B}, stream}; x(crate::cli::y)", "crate::"),
        ["agents", "record", "stream", "cli"]
    );
    assert_eq!(named_behind("$crate::x mycrate::y", "crate::"), ["x"]);
    assert!(names("use std::{fs::File, io};", "std::fs") && names("std::fs::read(x)", "std::fs"));
    assert!(!names("use std::{fmt, io};", "std::fs") && !names("my_std::fs", "std::fs"));
    assert!(names("use clap::Parser;", "clap") && names("#[derive(clap::Parser)]", "clap"));
    assert!(!names("let clap = 1;", "clap") && !names("xclap::y", "clap"));
    assert!(
        names("io::stdin() std::io::stdin()", "std::io::stdin")
            && !names("std::io::stdout()", "std::io::stdin")
    );
    assert_eq!(code("a // std::fs\n/// std::fs\nb\n#[cfg(test)]\nmod tests { c }"), "a b");
}

/// No name of an agent stands outside its folder, its line in the table, and what is written for people.
#[test]
fn an_agent_is_named_in_its_own_folder_only() {
    let source = package().join("src");
    let names: Vec<&str> = relay::agents::AGENTS.iter().map(|agent| agent.name()).collect();
    let inside = |path: &Path| names.iter().any(|name| path.starts_with(source.join("agents").join(name)));
    let mut files = Vec::new();
    every_file(&source, &mut files);
    for path in files.iter().filter(|path| !inside(path)) {
        let text = std::fs::read_to_string(path).unwrap();
        for (n, line) in text.lines().enumerate() {
            let code = line.trim_start();
            let table = path.ends_with("agents/mod.rs")
                && (code.starts_with("pub mod ") || code.starts_with("pub static AGENTS"));
            if table || code.starts_with("///") || code.starts_with("//!") || EXCUSED.contains(&code) {
                continue;
            }
            let words = code.to_lowercase();
            let mut words = words.split(|c: char| !c.is_alphanumeric() && c != '_');
            assert!(!words.any(|word| names.contains(&word)), "{}:{}: {line}", path.display(), n + 1);
        }
    }
}

/// Project instructions that the target reads itself are left out where source and target are of one make, and
/// relay-summarize is not told the target.
const EXCUSED: &[&str] = &[
    "for (text, at) in self.instructions.iter().filter(|_| !(same && self.session.source_agent == \"codex\"))",
];

fn every_file(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            every_file(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}
