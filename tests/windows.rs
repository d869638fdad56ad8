//! Sessions of Windows and of a WSL, handed over on this machine: their paths are absolute, go by no case, and can be
//! mapped.

use crate::support::sandbox::Sandbox;
use serde_json::{Value, json};
use std::path::PathBuf;

const SESSION: &str = "0c0ffee0-0000-4000-8000-0000000000aa";

/// The folder of a session in each spelling, and the same folder as another tool of it may spell it.
const FOLDERS: &[(&str, &str, char)] = &[
    (r"C:\Users\jane\shop", r"c:\users\Jane\shop", '\\'),
    ("c:/Users/jane/shop", r"C:\users\Jane\shop", '/'),
    (r"\\server\share\shop", r"\\SERVER\Share\shop", '\\'),
    (r"\\wsl.localhost\Ubuntu\home\jane\shop", r"\\wsl$\ubuntu\home\jane\shop", '\\'),
    ("/mnt/c/Users/jane/shop", r"C:\users\jane\shop", '/'),
    ("file:///C:/Users/jane/shop", r"c:\users\jane\shop", '/'),
    ("vscode-remote://wsl+Ubuntu/home/jane/shop", "/home/jane/shop", '/'),
];

/// A Claude Code session in `folder` that wrote these files, with the paths as given.
fn claude(sandbox: &Sandbox, folder: &str, files: &[String]) -> PathBuf {
    let mut parent = Value::Null;
    let mut lines = Vec::new();
    let mut line = |kind: &str, message: Value| {
        let id = format!("0c0ffee0-0000-4000-8000-{:012}", lines.len() + 1);
        lines.push(json!({
            "parentUuid": parent, "isSidechain": false, "userType": "external", "cwd": folder, "sessionId": SESSION,
            "version": "2.1.332", "type": kind, "message": message, "uuid": id,
            "timestamp": "2020-01-01T00:00:00.000Z",
        }));
        parent = json!(id);
    };
    line("user", json!({"role": "user", "content": "Fix tax."}));
    for (n, file) in files.iter().enumerate() {
        let block = json!({"type": "tool_use", "id": format!("t{n}"), "name": "Write",
            "input": {"file_path": file, "content": "b"}});
        line(
            "assistant",
            json!({"id": format!("m{n}"), "type": "message", "role": "assistant", "content": [block]}),
        );
        let block = json!({"type": "tool_result", "tool_use_id": format!("t{n}"), "content": "done"});
        line("user", json!({"role": "user", "content": [block]}));
    }
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    sandbox.write(format!("home/.claude/projects/C--shop/{SESSION}.jsonl"), text)
}

/// The same of Codex, by patches.
fn codex(sandbox: &Sandbox, folder: &str, files: &[String]) -> PathBuf {
    let at = "2020-01-01T00:00:00.000Z";
    let item = |payload: Value| json!({"timestamp": at, "type": "response_item", "payload": payload});
    let mut lines = vec![
        json!({"timestamp": at, "type": "session_meta", "payload": {"id": SESSION, "timestamp": at, "cwd": folder,
            "originator": "codex-tui", "cli_version": "0.171.0", "source": "cli"}}),
        item(
            json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Fix tax."}]}),
        ),
        json!({"timestamp": at, "type": "event_msg", "payload": {"type": "user_message", "message": "Fix tax."}}),
    ];
    for (n, file) in files.iter().enumerate() {
        let patch = format!("*** Begin Patch\n*** Update File: {file}\n@@\n-a\n+b\n*** End Patch");
        let id = format!("c{n}");
        lines.push(item(
            json!({"type": "custom_tool_call", "name": "apply_patch", "input": patch, "call_id": id}),
        ));
        lines.push(item(json!({"type": "custom_tool_call_output", "call_id": id, "output": "Success."})));
    }
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    sandbox
        .write(format!("home/.codex/sessions/2020/01/01/rollout-2020-01-01T00-00-00-{SESSION}.jsonl"), text)
}

/// A session of the agent, whose file it is, and the agent that goes on.
fn session(sandbox: &Sandbox, from: &str, folder: &str, files: &[String]) -> (PathBuf, &'static str) {
    match from {
        "claude" => (claude(sandbox, folder, files), "codex"),
        _ => (codex(sandbox, folder, files), "claude"),
    }
}

#[test]
fn folders_of_windows_are_mapped() {
    for from in ["claude", "codex"] {
        for (folder, other, apart) in FOLDERS {
            let sandbox = Sandbox::new();
            sandbox.write("project/Tax.py", "b");
            let files = [
                format!("{folder}{apart}tax.py"),
                format!("{other}{}new.py", if other.contains('\\') { '\\' } else { '/' }),
            ];
            let (file, to) = session(&sandbox, from, folder, &files);
            let up = folder.strip_suffix(&format!("{apart}shop")).unwrap();
            let root = sandbox.root().display();
            std::os::unix::fs::symlink(sandbox.project(), sandbox.path("shop")).unwrap();
            for map in [
                format!("'{folder}={root}/project'"),
                format!("'{other}=.'"),
                format!("'{folder}=../project'"),
                format!("'{up}={root}'"),
            ] {
                let line = format!(
                    "relay-read {from} {} -q | relay-write {to} -q --dry-run --map-path {map}",
                    file.display()
                );
                let out = sandbox.shell(&line).run().success();
                assert!(
                    out.text().contains(&format!("cd -- '{}' && ", sandbox.project().display())),
                    "{}",
                    out.text()
                );
            }
        }
    }
}

#[test]
fn the_note_looks_for_the_files_of_windows_where_they_are() {
    for from in ["claude", "codex"] {
        for (folder, other, apart) in FOLDERS.iter().filter(|(folder, ..)| !folder.contains("://")) {
            let sandbox = Sandbox::new();
            sandbox.write("project/src/Tax.py", "b");
            sandbox.write("project/new.py", "b");
            let other_apart = if other.contains('\\') { '\\' } else { '/' };
            let files = [
                format!("{folder}{apart}src{apart}Tax.py"),
                format!("{other}{other_apart}NEW.py"),
                format!("{folder}{apart}lost.py"),
                // the same file in another spelling is one file
                format!("{folder}{apart}.{apart}src{apart}x{apart}..{apart}Tax.py"),
            ];
            let (file, to) = session(&sandbox, from, folder, &files);
            for how in ["--project .", &format!("--map-path '{other}=.'")] {
                let line =
                    format!("relay-read {from} {} -q | relay-write {to} -q -o - {how}", file.display());
                let text = sandbox.shell(&line).run().success().text();
                let note = text.lines().find(|line| line.contains("[relay note")).unwrap();
                let part =
                    note.split("newest first:").nth(1).unwrap().split("Files may have").next().unwrap();
                assert_eq!(part.matches("Tax.py").count(), 1, "{from} {folder}: {part}");
                assert_eq!(part.matches("gone now").count(), 1, "{from} {folder} {how}: {part}");
                assert!(
                    part.split("lost.py").nth(1).unwrap().split("\\n").next().unwrap().contains("gone now"),
                    "{part}"
                );
                // calls keep the words of the session
                let raw = serde_json::to_string(&serde_json::to_string(&files[0]).unwrap()).unwrap();
                let raw = raw.trim_matches(|c| c == '"' || c == '\\');
                let plain = serde_json::to_string(&files[0]).unwrap();
                assert!(text.contains(raw) || text.contains(plain.trim_matches('"')), "{raw} {text}");
            }
        }
    }
}

#[test]
fn a_patch_is_joined_as_windows_spells_it() {
    let sandbox = Sandbox::new();
    for (folder, patched, whole) in [
        (r"C:\Users\jane\shop", r"src\tax.py", r"C:\Users\jane\shop\src\tax.py"),
        (r"C:\Users\jane\shop", "src/tax.py", r"C:\Users\jane\shop\src\tax.py"),
        ("c:/Users/jane/shop", r"src\tax.py", "c:/Users/jane/shop/src/tax.py"),
        (r"\\server\share\shop", r".\tax.py", r"\\server\share\shop\tax.py"),
        (r"C:\Users\jane\shop", r"D:\x\tax.py", r"D:\x\tax.py"),
        ("/w", "./a.rs", "/w/a.rs"),
        ("/w", "/w/./b/../a.rs", "/w/a.rs"),
    ] {
        for from in ["codex", "claude"] {
            let (file, _) = session(&sandbox, from, folder, &[patched.to_owned()]);
            let line = format!("relay-read {from} {} -q", file.display());
            let text = sandbox.shell(&line).run().success().text();
            let head: Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
            assert_eq!(head["file_snapshot"][0]["path"], whole, "{from}: {head}");
        }
    }
}

#[test]
fn without_a_mapping_the_error_says_which() {
    for from in ["claude", "codex"] {
        let sandbox = Sandbox::new();
        let (file, to) = session(&sandbox, from, r"C:\Users\jane\shop", &[]);
        let line = format!("relay-read {from} {} -q | relay-write {to}", file.display());
        let out = sandbox.shell(&line).run().expect_code(1);
        assert!(out.errors().contains(r"--map-path 'C:\Users\jane\shop=DIR'"), "{}", out.errors());
    }
}

#[test]
fn a_project_of_windows_is_named_as_it_was_there() {
    for from in ["claude", "codex"] {
        let sandbox = Sandbox::new();
        session(&sandbox, from, r"C:\Users\jane\shop", &[]);
        for name in [r"C:\Users\jane\shop", "c:/users/jane/shop/", "/mnt/c/Users/jane/shop"] {
            let out = sandbox.shell(&format!("relay-read {from} --project '{name}'")).run().success();
            assert!(out.text().contains("Fix tax."), "{}", out.errors());
        }
        sandbox.shell(&format!(r"relay-read {from} --project 'C:\Users\jane\other'")).run().expect_code(1);
    }
}

#[test]
fn a_redacted_folder_can_be_mapped() {
    let sandbox = Sandbox::new();
    let folder = "/home/janedoe/shop";
    claude(&sandbox, folder, &[]);
    let stream = format!("relay-read claude --project {folder} -q | relay-redact --share -q");
    let text = sandbox.shell(&stream).run().success().text();
    let head: Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    let redacted = head["working_directory"].as_str().unwrap();
    assert!(redacted.contains("<REDACTED:"), "{redacted}");
    let line = format!("{stream} | relay-write codex -q --map-path '{redacted}=.'");
    sandbox.shell(&line).run().success();
}
