//! The real clients resume hand-made sessions. That is the ground under every other test that uses them as judges:
//! should one of these fail, it is the kit or the client, not relay.
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::support::clients::{ClaudeResume, Client, CodexResume, resume_claude, resume_codex};
use crate::support::sandbox::Sandbox;

const THREAD: &str = "019b7c1e-0000-7000-8000-0000000000aa";
const SESSION: &str = "7c1e0000-0000-4000-8000-0000000000bb";

fn lines(lines: &[Value]) -> String {
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// The response items of a short made-up thread: a question, a call with its output, an answer.
fn codex_items() -> Vec<Value> {
    let message = |role: &str, kind: &str, text: &str| json!({"type": "message", "role": role, "content": [{"type": kind, "text": text}]});
    vec![
        message("user", "input_text", "How many ducks are on the pond? Zähle sie."),
        message("assistant", "output_text", "I will count them."),
        json!({"type": "function_call", "name": "exec_command", "call_id": "toolu_duck",
            "arguments": "{\"cmd\":\"ls pond | wc -l\"}"}),
        json!({"type": "function_call_output", "call_id": "toolu_duck", "output": "7\n"}),
        message("assistant", "output_text", "Seven ducks."),
    ]
}

/// Writes those items as the rollout that Codex's own importer would make of them.
fn codex_rollout(sandbox: &Sandbox) -> PathBuf {
    let line = |kind: &str, payload: Value| json!({"timestamp": "2026-01-02T03:04:05.000Z", "type": kind, "payload": payload});
    let mut rollout = vec![
        line(
            "session_meta",
            json!({
                "id": THREAD, "timestamp": "2026-01-02T03:04:05.000Z", "cwd": "/made/up",
                "originator": "relay", "cli_version": "0.0.0", "source": "cli"
            }),
        ),
        line("event_msg", json!({"type": "task_started", "turn_id": "1", "model_context_window": null})),
    ];
    for item in codex_items() {
        let text = item["content"][0]["text"].clone();
        let event = match item["role"].as_str() {
            Some("user") => Some(json!({
                "type": "user_message", "message": text, "images": [], "local_images": [], "text_elements": []
            })),
            Some(_) => Some(json!({"type": "agent_message", "message": text})),
            None => None,
        };
        rollout.push(line("response_item", item));
        rollout.extend(event.map(|event| line("event_msg", event)));
    }
    rollout.push(line(
        "event_msg",
        json!({
            "type": "task_complete", "turn_id": "1", "last_agent_message": "Seven ducks."
        }),
    ));
    sandbox.write(format!("rollout-2026-01-02T03-04-05-{THREAD}.jsonl"), lines(&rollout))
}

fn codex_shows_the_items(client: &str) {
    let sandbox = Sandbox::new();
    let Some(resumed) = resume_codex(client, &codex_rollout(&sandbox)) else { return };
    let CodexResume { thread_id, turns, strays, .. } = &resumed;
    assert_eq!(thread_id, THREAD);
    assert_eq!(resumed.history(), codex_items());
    assert_eq!((*turns, strays.as_slice()), (1, [].as_slice()));
    assert!(
        resumed.output.text().contains("carried"),
        "the reply did not come through: {:?}",
        resumed.output
    );
    assert!(!resumed.output.left_behind);
}

#[test]
fn codex_0_171_0_resumes_a_hand_made_rollout() {
    codex_shows_the_items("codex-0.171.0");
}

#[test]
fn codex_0_142_0_resumes_a_hand_made_rollout() {
    codex_shows_the_items("codex-0.142.0");
}

#[test]
fn codex_0_171_0_refuses_a_rollout_without_its_first_line() {
    if Client::find("codex-0.171.0").is_none() {
        return;
    }
    let sandbox = Sandbox::new();
    let rollout = codex_rollout(&sandbox);
    let content = std::fs::read_to_string(&rollout).unwrap();
    std::fs::write(&rollout, content.split_once('\n').unwrap().1).unwrap();
    let told = std::panic::catch_unwind(|| resume_codex("codex-0.171.0", &rollout));
    let message = *told.unwrap_err().downcast::<String>().unwrap();
    assert!(message.contains(&format!("Codex did not resume {THREAD}")), "{message}");
}

/// The messages of a short made-up session, as the API is shown them.
fn claude_messages() -> Vec<(String, Vec<Value>)> {
    let text = |text: &str| json!({"type": "text", "text": text});
    let call = json!({"type": "tool_use", "id": "toolu_duck", "name": "Bash", "input": {"command": "ls pond | wc -l"}});
    let result = json!({"type": "tool_result", "tool_use_id": "toolu_duck", "content": "7"});
    vec![
        ("user".to_owned(), vec![text("How many ducks are on the pond? Zähle sie.")]),
        ("assistant".to_owned(), vec![text("I will count them."), call]),
        ("user".to_owned(), vec![result]),
        ("assistant".to_owned(), vec![text("Seven ducks.")]),
    ]
}

/// Writes those messages as Claude Code's own session lines.
fn claude_session(sandbox: &Sandbox) -> PathBuf {
    let mut parent = Value::Null;
    let mut session = Vec::new();
    for (number, (role, content)) in claude_messages().into_iter().enumerate() {
        let uuid = json!(format!("7c1e0000-0000-4000-8000-00000000100{number}"));
        let mut message = json!({"role": role, "content": content});
        if role == "assistant" {
            message["id"] = json!(format!("msg_duck{number}"));
            message["type"] = json!("message");
            message["usage"] = json!({"input_tokens": 90, "output_tokens": 9});
        }
        session.push(json!({
            "parentUuid": parent, "isSidechain": false, "userType": "external", "cwd": "/made/up",
            "sessionId": SESSION, "version": "2.1.332", "type": role, "message": message, "uuid": uuid,
            "timestamp": format!("2026-01-02T03:04:0{number}.000Z")
        }));
        parent = uuid;
    }
    sandbox.write(format!("{SESSION}.jsonl"), lines(&session))
}

#[test]
fn claude_2_1_332_resumes_a_hand_made_session() {
    let sandbox = Sandbox::new();
    let Some(resumed) = resume_claude("claude-2.1.332", &claude_session(&sandbox)) else { return };
    let ClaudeResume { session_id, turns, strays, .. } = &resumed;
    assert_eq!(session_id, SESSION);
    assert_eq!(resumed.history(), claude_messages());
    assert_eq!((*turns, strays.as_slice()), (1, [].as_slice()));
    assert!(
        resumed.output.text().contains("carried"),
        "the reply did not come through: {:?}",
        resumed.output
    );
    assert!(!resumed.output.left_behind);
}

#[test]
fn claude_2_1_332_does_not_see_what_is_not_in_the_chain() {
    let sandbox = Sandbox::new();
    let session = claude_session(&sandbox);
    let content = std::fs::read_to_string(&session).unwrap().replace("\"parentUuid\"", "\"formerParent\"");
    std::fs::write(&session, content).unwrap();
    let Some(resumed) = resume_claude("claude-2.1.332", &session) else { return };
    assert_eq!(resumed.history(), claude_messages()[3..]);
}
