//! A written session is found by its client's own means: the list of sessions, and the newest one.

use crate::support::clients::{Client, claude_picker, codex_picker, go_on_in_claude};
use crate::support::sandbox::Sandbox;
use serde_json::{Value, json};

/// No text of any client has this word.
const TITLE: &str = "Quokkafinder";

/// Writes a session with a title into the sandbox's home of the client that `target` names, with its options.
fn write(sandbox: &Sandbox, target: &str) -> Value {
    let lines = [
        json!({"type":"session","relay":1,"session_id":"s","source_agent":"x","title":TITLE}),
        json!({"type":"message","role":"user","content":"Where do they live?"}),
        json!({"type":"message","role":"assistant","content":"On one island."}),
        json!({"type":"end"}),
    ];
    let stream: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let stream = sandbox.write("stream", stream);
    let project = sandbox.project();
    let write = format!("relay-write {target} --json --project {} < {}", project.display(), stream.display());
    // `--register` looks for the client on the PATH; the other clients are not there
    let line = format!("PATH={}:$PATH {write}", sandbox.path("bin").display());
    serde_json::from_str(sandbox.shell(&line).run().success().text().trim()).unwrap()
}

#[test]
fn claude_continue_takes_the_session_that_was_just_written() {
    for client in ["claude-2.1.332", "claude-2.0.77"] {
        let Some(client) = Client::find(client) else { continue };
        let sandbox = Sandbox::new();
        let id = write(&sandbox, "claude")["session_id"].clone();
        assert_eq!(go_on_in_claude(&sandbox, &client, &["--continue"]).session_id, id);
    }
}

#[test]
fn the_list_of_claude_shows_the_title() {
    for client in ["claude-2.1.332", "claude-2.0.77"] {
        let Some(client) = Client::find(client) else { continue };
        let sandbox = Sandbox::new();
        write(&sandbox, "claude");
        let screen = claude_picker(&sandbox, &client, TITLE);
        assert_eq!(screen.code(), 0, "{}{}", screen.text(), screen.errors());
    }
}

#[test]
fn the_list_of_codex_shows_the_title_once_registered() {
    for name in ["codex-0.171.0", "codex-0.142.0"] {
        let Some(client) = Client::find(name) else { continue };
        let sandbox = Sandbox::new();
        std::fs::create_dir(sandbox.path("bin")).unwrap();
        std::os::unix::fs::symlink(client.program(), sandbox.path("bin/codex")).unwrap();
        write(&sandbox, "codex --register");
        let screen = codex_picker(&sandbox, &client, TITLE);
        assert_eq!(screen.code(), 0, "{name}: {}{}", screen.text(), screen.errors());
    }
}
