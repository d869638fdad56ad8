//! What went wrong, told from the text of a result.

use super::prompts::{clipped, floor};
use super::runs::SHOWN;
use super::work::one_line;

/// Bytes at the beginning and at the end of a failed result that are searched for the error.
const SEARCHED: usize = 64 << 10;

const WORDS: [&str; 27] = [
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
    "conflict",
    "错误",
    "失败",
    "异常",
    "无法",
];

/// Whether a line speaks of an error.
pub(super) fn is_fault(line: &str) -> bool {
    let lower = line.to_ascii_lowercase();
    WORDS.iter().any(|word| lower.contains(word))
}

/// The line of a failed result that tells most: the first that begins like an error, else the first that speaks
/// of one, else the last.
pub(super) fn error_line(text: &str) -> String {
    let head = text.get(..floor(text, SEARCHED)).unwrap_or(text);
    let mut best: Option<(u8, &str)> = None;
    let mut last = "";
    // a terminal writes over what stands before a carriage return
    for line in head.split(['\n', '\r']) {
        let line = line.trim();
        if line.len() < 3 || is_exit(line) {
            continue;
        }
        last = line;
        let rank = rank(line);
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

/// How much a line sounds like the error itself.
fn rank(line: &str) -> u8 {
    let lower = line.get(..floor(line, 300)).unwrap_or(line).to_ascii_lowercase();
    let begins = lower.trim_start_matches(|c: char| !c.is_alphanumeric());
    let first = begins.split([' ', ':', '[', '(']).next().unwrap_or("");
    // counts of what went well
    if begins.starts_with("0 error") || begins.contains("no fixes applied") {
        return 0;
    }
    if first.ends_with("error") || matches!(first, "fatal" | "panic" | "错误") || first.ends_with("exception")
    {
        3
    } else if matches!(first, "fail" | "failed" | "failure" | "conflict")
        || line.starts_with("E ")
        || lower.contains("error:")
        || lower.contains(": error ")
        || lower.contains("panicked")
    {
        2
    } else {
        u8::from(WORDS.iter().any(|word| lower.contains(word)))
    }
}

/// Lines that tell the exit code and nothing else.
pub(super) fn is_exit(line: &str) -> bool {
    [
        "Exit code",
        "Process exited",
        "exit status",
        "Wall time",
        "Chunk ID",
        "Output:",
        "Original token",
        "Total output lines",
    ]
    .iter()
    .any(|words| line.starts_with(words))
}

/// A line without the control sequences of a terminal.
pub(super) fn strip_colours(line: &str) -> String {
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
pub(super) fn signature(line: &str) -> String {
    let mut out = String::new();
    for word in line.split_whitespace() {
        if word.contains('/') {
            out.push('/');
        } else {
            out.push_str(&without_numbers(word));
        }
        out.push(' ');
    }
    out
}

/// A text with one digit in the place of each number.
pub(super) fn without_numbers(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c.is_ascii_digit() {
            true if out.ends_with('0') => {}
            true => out.push('0'),
            false => out.push(c),
        }
    }
    out
}

/// Whether a command searches or compares, so that it ends with 1 when there is nothing.
pub(super) fn searches(command: &str) -> bool {
    command.split(['|', ';', '&']).map(str::trim).any(|part| {
        let mut words = part.split_whitespace();
        match words.next() {
            Some("git") => matches!(words.next(), Some("diff" | "grep" | "ls-files" | "check-ignore")),
            Some(first) => {
                matches!(
                    first.rsplit('/').next(),
                    Some(
                        "grep"
                            | "egrep"
                            | "rg"
                            | "ag"
                            | "diff"
                            | "cmp"
                            | "test"
                            | "["
                            | "find"
                            | "ls"
                            | "which"
                            | "command"
                            | "pgrep"
                            | "lsof"
                    )
                )
            }
            None => false,
        }
    })
}

/// What a command is for, where another form of it reaches the same: a commit, a rebase, a push. Of any other the
/// command itself: that one test passes says nothing of another.
pub(super) fn purpose(command: &str) -> String {
    // the last command of a line is what it is for: `git add . && git commit`
    let part = command.rsplit("&&").next().unwrap_or(command).trim();
    let mut words = part.split_whitespace().filter(|w| !w.starts_with('-'));
    match (words.next(), words.next()) {
        (
            Some("git"),
            Some(verb @ ("commit" | "rebase" | "merge" | "cherry-pick" | "push" | "pull" | "clone")),
        ) => {
            format!("git {verb}")
        }
        (Some("gh"), Some(verb)) => format!("gh {verb} {}", words.next().unwrap_or("")),
        (
            Some(program @ ("npm" | "pnpm" | "yarn" | "pip" | "pip3" | "uv" | "poetry")),
            Some(verb @ ("install" | "ci" | "sync")),
        ) => {
            format!("{program} {verb}")
        }
        _ => command.to_owned(),
    }
}

/// Whether a command checks or runs the work: tests, builds, linters, servers.
pub(super) fn checks(command: &str) -> bool {
    const WORDS: [&str; 40] = [
        "test",
        "tests",
        "pytest",
        "jest",
        "vitest",
        "mocha",
        "build",
        "check",
        "lint",
        "typecheck",
        "tsc",
        "clippy",
        "fmt",
        "ruff",
        "mypy",
        "eslint",
        "biome",
        "prettier",
        "ctest",
        "tox",
        "nox",
        "gradle",
        "gradlew",
        "mvn",
        "bench",
        "verify",
        "validate",
        "dev",
        "serve",
        "start",
        "run",
        "unittest",
        "rspec",
        "phpunit",
        "playwright",
        "cypress",
        "make",
        "knip",
        "audit",
        "tauri:dev",
    ];
    let git = command.split_whitespace().next() == Some("git");
    !git && command
        .split(|c: char| c.is_whitespace() || matches!(c, ':' | '/' | '=' | '-' | '.'))
        .any(|w| WORDS.contains(&w))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_that_says_what_is_wrong_is_told() {
        let text = "🥊 format (0.18 seconds)\nChecked 3 files\nsrc/a.ts(5,1): error TS7034: 'x' has no type\nExit code 1";
        assert_eq!(error_line(text), "src/a.ts(5,1): error TS7034: 'x' has no type");
        assert_eq!(
            error_line("Rebasing (1/2)\rRebasing (2/2)\rerror: could not apply 1a2b"),
            "error: could not apply 1a2b"
        );
        assert_eq!(error_line("\u{1b}[31mfatal\u{1b}[0m: no branch"), "fatal: no branch");
    }

    #[test]
    fn purposes_and_checks_are_told_by_the_words() {
        assert_eq!(purpose("git add . && git commit --no-verify -m x"), purpose("git commit -m y"));
        assert_eq!(purpose("git rebase --continue"), purpose("git rebase origin/main"));
        assert_ne!(purpose("npm run check"), purpose("npm run build"));
        assert_ne!(purpose("cargo test --test a"), purpose("cargo test --test b"));
        for command in [
            "PYTHONPATH=. pytest -q",
            "cargo test --lib",
            "npm run check",
            "./gradlew assemble",
            "npx tsc --noEmit",
        ] {
            assert!(checks(command), "{command}");
        }
        assert!(!checks("git checkout main") && !checks("rm -rf x"));
        assert!(searches("cd a && rg --files") && searches("git branch | grep x") && !searches("cargo test"));
    }
}
