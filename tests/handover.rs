//! The main job and everything that can go wrong around it, as a user meets it: real commands in a sealed home.

use crate::support::clients::claude_project;
use crate::support::sandbox::Sandbox;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

const SESSION: &str = "0c0ffee0-0000-4000-8000-000000000001";

/// Lines of a short made-up session that ran in `folder`.
fn lines(folder: &Path, answer: &str) -> Vec<Value> {
    let line = |n: u32, kind: &str, message: Value| {
        json!({
            "parentUuid": (n > 1).then(|| format!("0c0ffee0-0000-4000-8000-00000000010{}", n - 1)),
            "isSidechain": false, "userType": "external", "cwd": folder, "sessionId": SESSION, "version": "2.1.332",
            "type": kind, "message": message, "uuid": format!("0c0ffee0-0000-4000-8000-00000000010{n}"),
            "timestamp": format!("2026-01-01T00:00:0{n}.000Z"),
        })
    };
    let assistant = |id: &str, block: Value| json!({"id": id, "type": "message", "role": "assistant", "content": [block]});
    vec![
        line(1, "user", json!({"role": "user", "content": "Count the ducks."})),
        line(
            2,
            "assistant",
            assistant(
                "m1",
                json!({"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "ls"}}),
            ),
        ),
        line(
            3,
            "user",
            json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "7"}]}),
        ),
        line(4, "assistant", assistant("m2", json!({"type": "text", "text": answer}))),
    ]
}

fn text(lines: &[Value]) -> String {
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// Puts a session where Claude Code keeps it, for a folder that exists.
fn store(sandbox: &Sandbox, folder: &Path, session: &[Value]) -> PathBuf {
    let below = format!("projects/{}/{SESSION}.jsonl", claude_project(folder));
    let path = sandbox.claude_home().join(below);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, text(session)).unwrap();
    path
}

/// Every file below the target's home that an agent or relay could take for a session.
fn rollouts(sandbox: &Sandbox) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![sandbox.codex_home()];
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().map(Result::unwrap) {
            let path = entry.path();
            if path.is_dir() {
                open.push(path);
            } else if path.to_string_lossy().contains(".jsonl") {
                found.push(path);
            }
        }
    }
    found
}

#[test]
fn the_main_job_needs_no_arguments() {
    let sandbox = Sandbox::new();
    store(&sandbox, &sandbox.project(), &lines(&sandbox.project(), "Seven."));
    let out = sandbox.shell("relay-read claude | relay-write codex").run().success();
    let project = sandbox.project();
    assert!(
        out.text().starts_with(&format!("cd -- '{}' && codex resume ", project.display())),
        "{}",
        out.text()
    );
    let files: Vec<_> =
        rollouts(&sandbox).into_iter().filter(|p| !p.ends_with("session_index.jsonl")).collect();
    assert_eq!(files.len(), 1);
    assert_eq!(
        std::os::unix::fs::PermissionsExt::mode(&files[0].metadata().unwrap().permissions()) & 0o777,
        0o600
    );
    let rollout = std::fs::read_to_string(&files[0]).unwrap();
    for part in ["Count the ducks.", "exec_command", "Seven.", "relay note"] {
        assert!(rollout.contains(part), "{part}: {rollout}");
    }
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let sandbox = Sandbox::new();
    let session = lines(&sandbox.project(), &"quack ".repeat(400_000));
    let path = store(&sandbox, &sandbox.project(), &session);
    let line = format!("relay-read --quiet claude {} | head -1 | wc -l", path.display());
    let out = sandbox.shell(&line).run().success();
    assert_eq!((out.text().trim(), out.errors().as_str()), ("1", ""));
}

#[test]
fn the_line_that_resumes_is_not_lost_with_stdout_closed() {
    for (agent, resumes) in [("codex", "codex resume "), ("claude", "claude --resume ")] {
        let written = |end: &str| {
            let sandbox = Sandbox::new();
            store(&sandbox, &sandbox.project(), &lines(&sandbox.project(), "Seven."));
            let read = format!("relay-read --quiet claude > s; relay-write --quiet {agent} < s {end}");
            sandbox.shell(&read).run()
        };
        let out = written(">&-").expect_code(1);
        let told = out.errors();
        assert!(told.contains(resumes) && told.contains("it is closed"), "{told}");
        // who throws it away by name has said so
        assert_eq!(written("> /dev/null").success().errors(), "");
    }
    let sandbox = Sandbox::new();
    store(&sandbox, &sandbox.project(), &lines(&sandbox.project(), "Seven."));
    let out = sandbox.shell("relay-read claude >&-").run().expect_code(1);
    assert!(out.errors().contains("stdout"), "{}", out.errors());
}

#[test]
fn a_record_that_was_cut_ends_every_stage() {
    for dropped in ["null", "\"branch\""] {
        let stream = format!(
            concat!(
                "{{\"type\":\"session\",\"relay\":1,\"session_id\":\"a\",\"source_agent\":\"claude\"}}\n",
                "{{\"type\":\"message\",\"role\":\"user\",\"content\":\"hello\"}}\n",
                "{{\"type\":\"message\",\"role\":\"assistant\",\"dropped\":{},\"origin\":null,\"seq\":2,\"turn\":1,",
                "\"line\":2,\"part\":null,\"group\":\"g\",\"timestamp\":null,\"content\":\"cut he\n",
                "{{\"type\":\"end\"}}\n"
            ),
            dropped
        );
        for command in [
            "relay-pair",
            "relay-pair --check",
            "relay-trim --budget 8000",
            "relay-summarize",
            "relay-summarize --format md",
            "relay-redact",
            "relay-redact --check",
            "relay-write jsonl",
            "relay-write codex --project .",
            "relay-write claude --project .",
        ] {
            let sandbox = Sandbox::new();
            let out = sandbox.shell(command).stdin(stream.clone()).run().expect_code(3);
            assert!(out.errors().contains("stdin:3: the record is not whole"), "{command}: {}", out.errors());
            assert_eq!(rollouts(&sandbox), Vec::<PathBuf>::new(), "{command}");
        }
    }
}

#[test]
fn a_full_disk_is_an_error() {
    let sandbox = Sandbox::new();
    let path = store(&sandbox, &sandbox.project(), &lines(&sandbox.project(), "Seven."));
    let out =
        sandbox.shell(&format!("relay-read claude {} > /dev/full", path.display())).run().expect_code(1);
    assert!(out.errors().to_lowercase().contains("relay-read: stdout: no space left"), "{}", out.errors());
}

#[test]
fn a_disk_that_fills_while_writing_leaves_nothing() {
    let sandbox = Sandbox::new();
    let path = store(&sandbox, &sandbox.project(), &lines(&sandbox.project(), &"quack ".repeat(100_000)));
    // a file may grow to 64 KiB only; without the signal, writing fails as it does on a full disk
    let line = format!(
        "relay-read claude {} > stream.jsonl; trap '' XFSZ; ulimit -f 64; relay-write codex < stream.jsonl",
        path.display()
    );
    let out = sandbox.shell(&line).run();
    assert_eq!(out.code(), 1, "{}", out.errors());
    assert!(out.errors().contains("relay-write: "), "{}", out.errors());
    assert_eq!(rollouts(&sandbox), Vec::<PathBuf>::new());
    assert_eq!(out.text(), "");
}

#[test]
fn a_stream_that_is_cut_writes_nothing() {
    let sandbox = Sandbox::new();
    let path = store(&sandbox, &sandbox.project(), &lines(&sandbox.project(), "Seven."));
    let stream = sandbox.relay("relay-read", &["claude".as_ref(), path.as_os_str()]).run().success().stdout;
    for keep in [stream.len() - 1, stream.len() - 40, stream.len() / 2, 1] {
        let cut = &stream[..keep];
        let out = sandbox.relay("relay-write", &["codex"]).stdin(cut).run();
        // the last line feed alone is no loss
        let whole = keep == stream.len() - 1;
        assert_eq!(out.code(), if whole { 0 } else { 3 }, "{keep} of {}: {}", stream.len(), out.errors());
        if !whole {
            assert_eq!(out.text(), "", "{keep}");
        }
        // the whole one alone was written
        assert_eq!(rollouts(&sandbox).len(), 1, "{keep}");
    }
}

#[test]
fn one_failure_is_told_once() {
    let sandbox = Sandbox::new();
    let out = sandbox.shell("relay-read claude 0c0ffee0-dead | relay-pair | relay-write codex").run();
    assert_eq!(out.code(), 3);
    let errors: Vec<_> =
        out.errors().lines().filter(|l| !l.starts_with("hint:")).map(str::to_owned).collect();
    assert_eq!(errors.len(), 1, "{errors:?}");
    assert!(errors[0].starts_with("relay-read: ") && errors[0].contains(".claude/projects"), "{errors:?}");
    assert_eq!(rollouts(&sandbox), Vec::<PathBuf>::new());
}

#[test]
fn a_target_that_cannot_be_written_is_named() {
    let sandbox = Sandbox::new();
    let path = store(&sandbox, &sandbox.project(), &lines(&sandbox.project(), "Seven."));
    let file = sandbox.write("no-folder", "a file where the home should be");
    let out = sandbox
        .shell(&format!("relay-read --quiet claude {} | relay-write codex", path.display()))
        .env("CODEX_HOME", file.as_os_str())
        .run()
        .expect_code(1);
    assert!(out.errors().contains("no-folder"), "{}", out.errors());
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "a file where the home should be");
}

#[test]
fn a_project_folder_that_is_gone_asks_for_another() {
    let sandbox = Sandbox::new();
    let gone = sandbox.path("gone");
    std::fs::create_dir_all(&gone).unwrap();
    let path = store(&sandbox, &gone, &lines(&gone, "Seven."));
    std::fs::remove_dir(&gone).unwrap();
    let line = format!("relay-read --quiet claude {} | relay-write codex", path.display());
    let out = sandbox.shell(&line).run();
    assert_ne!(out.code(), 0);
    assert!(out.errors().contains("gone") && out.errors().contains("--project"), "{}", out.errors());
    assert_eq!(rollouts(&sandbox), Vec::<PathBuf>::new());
    sandbox.shell(&format!("{line} --project {}", sandbox.project().display())).run().success();
}

/// The printed line is evaluated by a shell with a stand-in for the client.
#[test]
fn a_hostile_folder_name_is_only_a_name() {
    for name in ["$(touch x)", "`touch x`", "it's \"quoted\"", "-rf", "a;touch x", "ütf 漢", "~", "a\\b"] {
        let sandbox = Sandbox::new();
        sandbox.write("stand-in/codex", "#!/bin/sh\npwd -P > \"$HOME/ran\"\n");
        sandbox.shell("chmod +x stand-in/codex").folder(sandbox.root()).run().success();
        let folder = sandbox.path("places").join(name);
        std::fs::create_dir_all(&folder).unwrap();
        let path = store(&sandbox, &folder, &lines(&folder, "Seven."));
        let line = format!(
            "resume=$(relay-read --quiet claude {} | relay-write --quiet codex) && PATH={}:$PATH && eval \"$resume\"",
            path.display(),
            sandbox.path("stand-in").display()
        );
        sandbox.shell(&line).run().success();
        let ran = std::fs::read_to_string(sandbox.home().join("ran")).unwrap();
        assert_eq!(Path::new(ran.trim_end_matches('\n')), folder.canonicalize().unwrap(), "{name}");
        assert!(!sandbox.project().join("x").exists() && !folder.join("x").exists(), "{name} was run");
    }
    let sandbox = Sandbox::new();
    let folder = sandbox.path("places").join("two\nlines");
    std::fs::create_dir_all(&folder).unwrap();
    let path = sandbox.write("session.jsonl", text(&lines(&folder, "Seven.")));
    let out =
        sandbox.shell(&format!("relay-read --quiet claude {} | relay-write codex", path.display())).run();
    assert_ne!(out.code(), 0);
    assert!(out.errors().contains("U+000A"), "{}", out.errors());
}

#[test]
fn only_the_clients_own_side_files_are_read() {
    let spilled = |named: &Path| {
        let preview = format!("<persisted-output>\nFull output saved to: {}\n\nPreview", named.display());
        json!([{"type": "tool_result", "tool_use_id": "t1", "content": preview}])
    };
    let read = |named: &Path, prepare: &dyn Fn(&Sandbox, &Path)| {
        let sandbox = Sandbox::new();
        let mut session = lines(&sandbox.project(), "Seven.");
        let path = store(&sandbox, &sandbox.project(), &[]);
        let own = path.with_extension("").join("tool-results");
        std::fs::create_dir_all(&own).unwrap();
        prepare(&sandbox, &own);
        session[2]["message"]["content"] = spilled(named);
        session[2]["toolUseResult"] = json!({"persistedOutputPath": named, "stdout": ""});
        std::fs::write(&path, text(&session)).unwrap();
        sandbox.relay("relay-read", &["claude".as_ref(), path.as_os_str()]).run().success().text()
    };
    let secret = "words that nobody may carry away";
    let plant = |sandbox: &Sandbox, _: &Path| {
        std::fs::create_dir_all(sandbox.home().join(".ssh")).unwrap();
        std::fs::write(sandbox.home().join(".ssh/id_rsa"), secret).unwrap();
    };
    for named in ["../../.ssh/id_rsa", "tool-results/../../.ssh/id_rsa", "/etc/passwd", "tool-results/.."] {
        let stream = read(Path::new(named), &plant);
        assert!(!stream.contains(secret) && !stream.contains("root:"), "{named}");
        assert!(stream.contains("Preview") && stream.contains("\"kind\":\"lost\""), "{named}: {stream}");
    }
    let linked = read(Path::new("/old/tool-results/out.txt"), &|sandbox, own| {
        plant(sandbox, own);
        std::os::unix::fs::symlink(sandbox.home().join(".ssh/id_rsa"), own.join("out.txt")).unwrap();
    });
    assert!(!linked.contains(secret) && linked.contains("\"kind\":\"lost\""), "{linked}");
    // the folder of such files, or the session's own, leads to another place
    for up in 0..2 {
        let linked = read(Path::new("/old/tool-results/out.txt"), &|sandbox, own| {
            let other = sandbox.home().join("other");
            std::fs::create_dir_all(other.join("tool-results")).unwrap();
            std::fs::write(other.join("out.txt"), secret).unwrap();
            std::fs::write(other.join("tool-results/out.txt"), secret).unwrap();
            let link = own.ancestors().nth(up).unwrap();
            std::fs::remove_dir_all(link).unwrap();
            std::os::unix::fs::symlink(&other, link).unwrap();
        });
        assert!(!linked.contains(secret) && linked.contains("its folder is no plain folder"), "{linked}");
    }
    let own = read(Path::new("/old/tool-results/out.txt"), &|_, own| {
        std::fs::write(own.join("out.txt"), "the whole output").unwrap();
    });
    assert!(own.contains("the whole output") && own.contains("\"kind\":\"rescued\""), "{own}");
}

#[test]
fn what_is_no_session_is_refused_by_name() {
    let sandbox = Sandbox::new();
    let binary: Vec<u8> = (0..200_000u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    let cases: [(&str, Vec<u8>, &str); 3] = [
        ("binary", binary, "binary"),
        ("qwen.jsonl", br#"{"uuid":"1","parentUuid":null,"sessionId":"s","type":"user","message":{"role":"user","parts":[{"text":"x"}]}}"#.to_vec(), "Qwen Code"),
        ("notes.txt", b"just some notes\nof mine\n".to_vec(), "notes.txt"),
    ];
    for (name, content, told) in cases {
        let path = sandbox.write(name, content);
        let out = sandbox.shell(&format!("relay-read claude {} | relay-write codex", path.display())).run();
        assert_ne!(out.code(), 0, "{name}");
        assert!(out.errors().contains(told), "{name}: {}", out.errors());
    }
    let folder = sandbox.path("a folder");
    std::fs::create_dir_all(&folder).unwrap();
    let out = sandbox.relay("relay-read", &["claude".as_ref(), folder.as_os_str()]).run();
    assert_ne!(out.code(), 0);
    assert!(out.errors().contains("a folder"), "{}", out.errors());
    assert_eq!(rollouts(&sandbox), Vec::<PathBuf>::new());
}

#[test]
fn nothing_to_hand_over_is_said_and_nothing_written() {
    let sandbox = Sandbox::new();
    let path =
        sandbox.write("empty.jsonl", "{\"type\":\"summary\",\"summary\":\"alone\",\"leafUuid\":\"x\"}\n");
    let out = sandbox
        .shell(&format!("relay-read claude {} | relay-write codex", path.display()))
        .run()
        .expect_code(3);
    assert!(out.errors().contains("nothing to hand over"), "{}", out.errors());
    assert_eq!(rollouts(&sandbox), Vec::<PathBuf>::new());
}

#[test]
fn an_existing_file_is_never_touched() {
    let sandbox = Sandbox::new();
    let path = store(&sandbox, &sandbox.project(), &lines(&sandbox.project(), "Seven."));
    let target = sandbox.write("mine.jsonl", "precious");
    for to in ["codex", "jsonl"] {
        let line = format!(
            "relay-read --quiet claude {} | relay-write {to} -o {}",
            path.display(),
            target.display()
        );
        sandbox.shell(&line).run().expect_code(1);
        assert_eq!(std::fs::read_to_string(&target).unwrap(), "precious");
    }
}

#[test]
fn a_file_that_grows_gives_what_was_whole() {
    let sandbox = Sandbox::new();
    let mut session = text(&lines(&sandbox.project(), "Seven."));
    session.push_str("{\"parentUuid\":\"0c0ffee0-0000-4000-8000-000000000104\",\"type\":\"user\",\"mess");
    let path = sandbox.write(format!("{SESSION}.jsonl"), &session);
    let out = sandbox.relay("relay-read", &["claude".as_ref(), path.as_os_str()]).run().success();
    let end: Value = serde_json::from_str(out.text().lines().last().unwrap()).unwrap();
    assert_eq!((&end["live"], &end["problems"][0]["kind"]), (&json!(4), &json!("truncated_tail")));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), session, "the source was touched");
}

#[test]
fn one_of_ten_thousand_sessions_is_found() {
    let sandbox = Sandbox::new();
    let folder = sandbox.claude_home().join("projects").join(claude_project(&sandbox.project()));
    std::fs::create_dir_all(&folder).unwrap();
    let session = text(&lines(&sandbox.project(), "Seven."));
    for n in 0..10_000 {
        std::fs::write(folder.join(format!("0c0ffee0-0000-4000-8000-{n:012}.jsonl")), &session).unwrap();
    }
    let out =
        sandbox.relay("relay-read", &["claude", "0c0ffee0-0000-4000-8000-000000004711"]).run().success();
    assert!(out.text().starts_with("{\"type\":\"session\""), "{}", out.text());
    sandbox.relay("relay-read", &["claude", "0c0ffee0"]).run().expect_code(1);
    sandbox.relay("relay-read", &["claude"]).run().success();
}

#[test]
fn streams_may_be_compressed_and_pass_through_archives() {
    let sandbox = Sandbox::new();
    let path = store(&sandbox, &sandbox.project(), &lines(&sandbox.project(), "Seven."));
    for name in ["a.jsonl", "a.jsonl.zst", "a.jsonl.gz"] {
        let line = format!(
            "relay-read claude {} | relay-write jsonl -o {name} && relay-write codex --dry-run --json < {name}",
            path.display()
        );
        let out = sandbox.shell(&line).run().success();
        let report: Value = serde_json::from_str(out.text().lines().last().unwrap()).unwrap();
        assert_eq!((&report["agent"], &report["messages"]), (&json!("codex"), &json!(4)), "{name}");
    }
    assert_eq!(rollouts(&sandbox), Vec::<PathBuf>::new());
}
