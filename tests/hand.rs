//! `relay FROM TO` and what it does with other words.

use crate::reading::cases;
use crate::support::sandbox::Sandbox;
use relay::agents::AGENTS;
use relay::cli::COMMANDS;
use std::path::{Path, PathBuf};

/// Every file below a folder, with what it holds.
fn files(sandbox: &Sandbox, folder: &Path) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    let mut open = vec![folder.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().map(Result::unwrap) {
            let path = entry.path();
            if path.is_dir() {
                open.push(path);
            } else {
                let text = String::from_utf8_lossy(&std::fs::read(&path).unwrap()).into_owned();
                found.push((path.strip_prefix(sandbox.root()).unwrap().to_owned(), text));
            }
        }
    }
    found.sort();
    found
}

/// What a command line prints and writes; what it wrote is gone afterwards.
fn made(sandbox: &Sandbox, line: &str) -> (String, Vec<(PathBuf, String)>) {
    let out = sandbox.shell(line).run().success();
    let written = files(sandbox, &sandbox.codex_home());
    let _ = std::fs::remove_dir_all(sandbox.codex_home());
    (out.text(), written)
}

#[test]
fn one_process_writes_what_the_pipe_writes() {
    let mut handed = 0;
    for folder in cases("claude") {
        // one place for both, because the note tells of it and its size counts
        let sandbox = Sandbox::new();
        sandbox.write("project/session.jsonl", std::fs::read(folder.join("session.jsonl")).unwrap());
        for (stage, flag) in [("", ""), ("relay-redact | ", " --redact")] {
            let pipe = format!(
                "relay-read -q claude ./session.jsonl | {stage}relay-pair | relay-trim --for codex | relay-summarize -q | \
                 relay-write -q codex --fit --project . || echo none"
            );
            let one = format!("relay -q claude codex ./session.jsonl --into .{flag} || echo none");
            let (piped, direct) = (made(&sandbox, &pipe), made(&sandbox, &one));
            assert_eq!(direct, piped, "{}{flag}", folder.display());
            handed += usize::from(!piped.1.is_empty());
        }
    }
    assert!(handed > 40, "{handed}");
}

#[test]
fn a_first_prompt_goes_to_the_command_that_resumes() {
    let sandbox = Sandbox::new();
    let session = cases("claude").into_iter().find(|f| f.ends_with("the-last-branch-is-live")).unwrap();
    sandbox.write("project/session.jsonl", std::fs::read(session.join("session.jsonl")).unwrap());
    let out = sandbox
        .shell("relay -q claude codex ./session.jsonl --into . -- go on with \"it's\"")
        .run()
        .success();
    assert!(out.text().trim_end().ends_with(r" -- 'go on with it'\''s'"), "{}", out.text());
}

#[test]
fn what_looks_like_a_secret_is_counted() {
    let sandbox = Sandbox::new();
    let key = format!("ghp{}{}", "_", "Ab3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5");
    let line = |n: u32, kind: &str, text: &str| {
        let parent = if n == 1 {
            "null".to_owned()
        } else {
            format!("\"0c0ffee0-0000-4000-8000-00000000000{}\"", n - 1)
        };
        format!(
            r#"{{"parentUuid":{parent},"isSidechain":false,"cwd":"/made/up","sessionId":"0c0ffee0-0000-4000-8000-000000000001","version":"2.1.332","type":"{kind}","message":{{"role":"{kind}","content":"{text}"}},"uuid":"0c0ffee0-0000-4000-8000-00000000000{n}","timestamp":"2026-01-01T00:00:0{n}.000Z"}}"#
        )
    };
    let session =
        format!("{}\n{}\n", line(1, "user", &format!("The key is {key}.")), line(2, "assistant", "Seen."));
    sandbox.write("project/s.jsonl", session);
    let out = sandbox.shell("relay claude codex ./s.jsonl --into .").run().success();
    assert!(
        out.errors().contains("1 value looks like secrets and went along: --redact replaces them"),
        "{}",
        out.errors()
    );
    let sandbox_two = Sandbox::new();
    sandbox_two.write("project/s.jsonl", std::fs::read(sandbox.path("project/s.jsonl")).unwrap());
    let out = sandbox_two.shell("relay claude codex ./s.jsonl --into . --redact").run().success();
    assert!(!out.errors().contains("secrets"), "{}", out.errors());
    assert!(files(&sandbox_two, &sandbox_two.codex_home()).iter().all(|(_, text)| !text.contains(&key)));
}

#[test]
fn no_agent_is_called_like_a_command() {
    for agent in AGENTS {
        assert!(!COMMANDS.contains(&agent.name()), "{}", agent.name());
    }
}

#[test]
fn the_first_word_is_an_agent_or_a_command() {
    let sandbox = Sandbox::new();
    let out = sandbox.shell("relay read --version").run().success();
    assert!(out.text().starts_with("relay-read "), "{}", out.text());
    let out = sandbox.shell("relay raed").run().expect_code(2);
    assert!(
        out.errors().contains("\"raed\"") && out.errors().contains("did you mean read?"),
        "{}",
        out.errors()
    );
    let out = sandbox.shell("relay zzzzzz").run().expect_code(2);
    assert!(out.errors().contains("agents: ") && out.errors().contains("commands: "), "{}", out.errors());
    sandbox.shell("relay claude").run().expect_code(2);
    let out = sandbox.shell("relay --help").run().success();
    assert!(out.text().contains("relay claude codex --resume"), "{}", out.text());
}

#[test]
fn a_directory_that_is_not_here_is_named_or_mapped() {
    let sandbox = Sandbox::new();
    let case = cases("claude").into_iter().find(|f| f.ends_with("the-last-branch-is-live")).unwrap();
    sandbox.write("project/session.jsonl", std::fs::read(case.join("session.jsonl")).unwrap());
    let out = sandbox.shell("relay claude codex ./session.jsonl").run().expect_code(1);
    assert!(
        out.errors().contains("--into DIR, or another machine's paths with --map-path"),
        "{}",
        out.errors()
    );
    let out =
        sandbox.shell("relay -q claude codex ./session.jsonl --map-path /made/up/pond=.").run().success();
    assert!(out.text().contains(sandbox.project().to_str().unwrap()), "{}", out.text());
}
