//! relay-list, and which session is the newest.

use crate::support::clients::claude_project;
use crate::support::sandbox::Sandbox;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

/// Puts a session where Claude Code keeps it, changed so many minutes ago.
fn claude(sandbox: &Sandbox, n: u32, minutes: u64, prompts: &[&str], more: &Value) -> String {
    let id = format!("0c0ffee0-0000-4000-8000-0000000000{n:02}");
    let project = sandbox.project();
    let mut lines = String::new();
    let mut parent = Value::Null;
    for (at, prompt) in prompts.iter().enumerate() {
        for (kind, text) in [("user", *prompt), ("assistant", "Done.")] {
            // a command of the client's own has no answer
            if kind == "assistant" && prompt.contains("<command-name>") {
                continue;
            }
            let uuid = format!("{kind}-{at}");
            let mut line = json!({
                "parentUuid": parent, "isSidechain": false, "cwd": project, "sessionId": id, "version": "2.1.332",
                "type": kind, "uuid": uuid, "timestamp": format!("2026-01-01T00:0{at}:00.000Z"),
                "message": {"role": kind, "content": text},
            });
            line.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            lines.push_str(&format!("{line}\n"));
            parent = uuid.into();
        }
    }
    let below = format!("home/.claude/projects/{}/{id}.jsonl", claude_project(&project));
    let path = sandbox.write(below, lines);
    changed(&path, minutes);
    id
}

fn changed(path: &PathBuf, minutes: u64) {
    // RELAY_NOW of the sandbox
    let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_767_323_045);
    let file = std::fs::File::options().append(true).open(path).unwrap();
    file.set_modified(now - Duration::from_secs(60 * minutes)).unwrap();
}

fn codex(sandbox: &Sandbox, minutes: u64, source: &str) -> String {
    let id = "019a0000-0000-7000-8000-00000000000a";
    let line = |kind: &str, payload: Value| {
        format!("{}\n", json!({"timestamp": "2026-01-01T00:00:00.000Z", "type": kind, "payload": payload}))
    };
    let meta = json!({"id": id, "cwd": sandbox.project(), "source": source, "cli_version": "0.171.0",
        "timestamp": "2026-01-01T00:00:00.000Z", "originator": "codex"});
    let said = |role: &str, kind: &str, text: &str| json!({"type": "message", "role": role, "content": [{"type": kind, "text": text}]});
    let text = line("session_meta", meta)
        + &line(
            "response_item",
            said("user", "input_text", "<environment_context>\n  <cwd>/x</cwd>\n</environment_context>"),
        )
        + &line("response_item", said("user", "input_text", "Feed the ducks"))
        + &line("response_item", said("assistant", "output_text", "Fed."));
    let path = sandbox
        .write(format!("home/.codex/sessions/2026/01/01/rollout-2026-01-01T00-00-00-{id}.jsonl"), text);
    changed(&path, minutes);
    id.to_owned()
}

fn usage() -> &'static str {
    "<command-name>/usage</command-name>\n<command-message>usage</command-message>\n<command-args></command-args>"
}

#[test]
fn sessions_are_listed_the_newest_first() {
    let sandbox = Sandbox::new();
    let none = json!({});
    let old = claude(&sandbox, 1, 90, &["Count the ducks\nin the pond.", "And the geese."], &none);
    let fix = claude(
        &sandbox,
        2,
        30,
        &[
            "<command-message>fix is running</command-message>\n<command-name>/fix</command-name>\n<command-args>the pond now</command-args>",
        ],
        &none,
    );
    claude(&sandbox, 3, 20, &[usage()], &none);
    let headless = claude(&sandbox, 4, 10, &["Made by a script."], &json!({"entrypoint": "sdk-cli"}));
    let codex = codex(&sandbox, 60, "cli");
    let out = sandbox.shell("relay-list --json").run().success();
    let rows: Vec<Value> = out.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let shown: Vec<_> =
        rows.iter().map(|r| (r["id"].as_str().unwrap(), r["prompt"].as_str().unwrap())).collect();
    assert_eq!(
        shown,
        [
            (fix.as_str(), "/fix the pond now"),
            (&codex, "Feed the ducks"),
            (&old, "Count the ducks in the pond.")
        ]
    );
    assert_eq!(rows[2]["turns"], Value::Null);
    assert_eq!(rows[0]["project"], json!(sandbox.project()));
    // what was learned stays known
    let deep = sandbox.shell("relay-list claude --deep --json --all").run().success();
    let deep: Vec<Value> = deep.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let marks: Vec<_> = deep.iter().map(|r| r["marks"].to_string()).collect();
    assert_eq!(marks, [r#"["headless"]"#, r#"["empty"]"#, "[]", "[]"]);
    let again = sandbox.shell("relay-list claude --json").run().success();
    let again: Vec<Value> = again.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(again[1]["turns"], 2);
    // a cache that is no cache is none
    sandbox.write("home/.cache/relay/sessions.jsonl", "\0\0\n{\"path\":7}\n");
    let ids = sandbox.shell("relay-list --ids --limit 2").run().success();
    assert_eq!(ids.text(), format!("{fix}\n{codex}\n"));
    let found = sandbox.shell("relay-list --ids --grep DUCKS").run().success();
    assert_eq!(found.text(), format!("{codex}\n{old}\n"));
    let found = sandbox.shell("relay-list --ids --deep --grep GEESE").run().success();
    assert_eq!(found.text(), format!("{old}\n"));
    let out = sandbox.shell("relay-list --since 15m").run().expect_code(1);
    assert!(out.errors().contains("--all"), "{}", out.errors());
    let out = sandbox.shell("relay-list --any-project --all --since 15m --ids").run().success();
    assert_eq!(out.text(), format!("{headless}\n"));
    let out = sandbox.shell("relay").run().success();
    assert!(out.text().contains("/fix the pond now") && out.errors().contains("relay FROM TO --resume"));
}

#[test]
fn the_newest_session_has_a_prompt_and_a_terminal() {
    let sandbox = Sandbox::new();
    let none = json!({});
    let old = claude(&sandbox, 1, 90, &["Count the ducks."], &none);
    let script = claude(&sandbox, 2, 30, &["Made by a script."], &json!({"entrypoint": "sdk-cli"}));
    claude(&sandbox, 3, 20, &[usage()], &none);
    let read = |line: &str| {
        let out = sandbox.shell(line).run().success();
        let first: Value = serde_json::from_str(out.text().lines().next().unwrap()).unwrap();
        (first["session_id"].as_str().unwrap().to_owned(), out.errors())
    };
    let (id, said) = read("relay-read claude");
    assert_eq!(id, old);
    assert!(said.contains("passed over 1 session made without a terminal: --headless takes them"), "{said}");
    assert!(said.contains("passed over 1 session without a prompt"), "{said}");
    assert_eq!(read("relay-read claude --headless").0, script);
    // an archive has all that was said
    let all = sandbox.shell("relay-read claude --all --lean").run().success();
    assert_eq!(all.text().lines().filter(|l| l.starts_with("{\"type\":\"session\"")).count(), 2);
    codex(&sandbox, 5, "exec");
    let out = sandbox.shell("relay-read codex").run().expect_code(1);
    assert!(out.errors().contains("1 session made without a terminal: --headless"), "{}", out.errors());
    read("relay-read codex --headless");
}
