//! Sessions with every kind of image, document and block go both ways, and the real clients resume them before a
//! model server that refuses what the real services refuse (`support/api.rs`). So nothing that relay writes leaves a
//! session that cannot go on, and what is not carried is named.

use crate::support::api::tests::{gif, png};
use crate::support::clients::{Client, resume_claude_in, resume_codex_in};
use crate::support::sandbox::Sandbox;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

const SESSION: &str = "0c0ffee0-0000-4000-8000-0000000000a1";
const THREAD: &str = "019b7c1e-0000-7000-8000-0000000000a2";
const WEBP: &str = "UklGRhoAAABXRUJQVlA4TA0AAAAvAAAAEAcQERGIiP4HAA==";

/// What Codex 0.171 puts in the place of a picture that lies elsewhere; 0.142 sends its address.
const REMOTE: &str = "image content omitted because remote image URLs are not supported";

/// A picture as sessions hold them.
struct Held {
    /// Media type and data, or an address alone.
    media_type: &'static str,
    data: String,
    /// What Claude Code and Codex must show their models: a media type, `url`, or words of the text in its place.
    /// Codex makes a PNG of a GIF.
    claude: &'static str,
    codex: &'static str,
}

fn held() -> Vec<Held> {
    let one = |media_type, data: String, claude, codex| Held { media_type, data, claude, codex };
    let good = png(4, 4, 0);
    let svg = "PHN2ZyB4bWxucz0iaHR0cDovL3d3dy53My5vcmcvMjAwMC9zdmciLz4=";
    let url = |url: &str| url.to_owned();
    vec![
        one("image/jpeg", good.clone(), "image/png", "image/png"),
        one("image/webp", WEBP.to_owned(), "image/webp", "image/webp"),
        one("image/gif", gif(1), "image/gif", "image/png"),
        one("image/gif", gif(2), "image/gif", "animated"),
        one("image/svg+xml", svg.to_owned(), "image/svg+xml", "image/svg+xml"),
        one("image/png", String::new(), "empty", "empty"),
        one("image/png", good[..84].to_owned(), "cut", "cut"),
        one("image/png", "[omitted]".to_owned(), "damaged base64", "damaged base64"),
        one("image/png", png(9_000, 2, 0), "9000 by 2 pixels", "image/png"),
        one("image/png", png(4, 4, 4 << 20), "4194", "image/png"),
        one("", url("https://ducks.example/pond.png"), "url", "url"),
        one("", url("http://ducks.example/pond.png"), "http://ducks.example", "url"),
        one("", url("file:///ponds/a.png"), "file:///ponds/a.png", "file:///ponds/a.png"),
        one("", url("[image/png content omitted]"), "image/png content omitted", "image/png content omitted"),
    ]
}

/// Images as the Messages API has them.
fn claude_blocks(held: &[Held]) -> Vec<Value> {
    let source = |h: &Held| match h.media_type {
        "" => json!({"type": "url", "url": h.data}),
        media_type => json!({"type": "base64", "media_type": media_type, "data": h.data}),
    };
    held.iter().map(|h| json!({"type": "image", "source": source(h)})).collect()
}

/// Images as the Responses API has them.
fn codex_parts(held: &[Held]) -> Vec<Value> {
    let url = |h: &Held| match h.media_type {
        "" => h.data.clone(),
        media_type => format!("data:{media_type};base64,{}", h.data),
    };
    held.iter().map(|h| json!({"type": "input_image", "image_url": url(h)})).collect()
}

/// Documents and blocks of other kinds.
fn documents() -> Vec<Value> {
    let document = |source: Value| json!({"type": "document", "title": "Ducks", "source": source});
    vec![
        // %PDF-1.4
        document(json!({"type": "base64", "media_type": "application/pdf", "data": "JVBERi0xLjQK"})),
        document(json!({"type": "base64", "media_type": "application/pdf", "data": "AAAA"})),
        document(json!({"type": "text", "media_type": "text/plain", "data": "words of a text document"})),
        document(json!({"type": "text", "media_type": "text/plain", "data": " "})),
        document(json!({"type": "base64", "media_type": "text/plain", "data": "d29yZHMgaW4gYmFzZTY0"})),
        document(json!({"type": "content", "content": [{"type": "text", "text": "words of a part"}]})),
        document(json!({"type": "url", "url": "file:///ponds/a.pdf"})),
        json!({"type": "audio", "source": {"type": "base64", "media_type": "audio/wav", "data": "UklGRg=="}}),
        json!({"type": "future", "words": "of a later client"}),
        json!({"type": "text", "text": " \n"}),
    ]
}

/// Words of [`documents`] that must arrive in every agent.
const WORDS: &[&str] = &[
    "words of a text document",
    "words in base64",
    "words of a part",
    "file:///ponds/a.pdf",
    "audio",
    "of a later client",
];

/// A session of Claude Code with all of that: in prompts, in results, in results of failed calls.
fn claude_session(sandbox: &Sandbox) -> PathBuf {
    let mut session: Vec<Value> = Vec::new();
    let mut add = |kind: &str, content: Value| {
        let n = session.len();
        let mut message = json!({"role": kind, "content": content});
        if kind == "assistant" {
            message["id"] = json!(format!("msg_{n}"));
            message["type"] = json!("message");
        }
        session.push(json!({
            "parentUuid": n.checked_sub(1).map(|n| format!("0c0ffee0-0000-4000-8000-0000000001{n:02}")),
            "isSidechain": false, "userType": "external", "cwd": sandbox.project(), "sessionId": SESSION,
            "version": "2.1.332", "type": kind, "message": message,
            "uuid": format!("0c0ffee0-0000-4000-8000-0000000001{n:02}"),
            "timestamp": format!("2026-01-01T00:00:{n:02}.000Z"),
        }));
    };
    let text = |text: &str| json!({"type": "text", "text": text});
    let call = |id: &str| json!({"type": "tool_use", "id": id, "name": "mcp.pond/look", "input": {"n": 1}});
    let result = |id: &str, failed: bool, content: Value| json!({"type": "tool_result", "tool_use_id": id, "is_error": failed, "content": content});
    let all = [vec![text("Look at these.")], claude_blocks(&held()), documents()].concat();
    add("user", json!(all));
    add("assistant", json!([text("I look."), call("toolu:1")]));
    add("user", json!([result("toolu:1", false, json!(all))]));
    add("assistant", json!([call("t2")]));
    add("user", json!([result("t2", true, json!(all))]));
    add("assistant", json!([call("t3")]));
    add("user", json!([result("t3", true, json!(""))]));
    add("assistant", json!([call(&"t".repeat(300))]));
    add("user", json!([result(&"t".repeat(300), false, json!(""))]));
    // the server's own tools
    let cipher = "QUJD".repeat(1_000);
    let hit = json!({"type": "web_search_result", "title": "Pond news", "url": "https://ducks.example",
        "encrypted_content": cipher});
    add(
        "assistant",
        json!([
            {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "pond"}},
            {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": [hit]},
            text("Seven ducks. ")
        ]),
    );
    let lines: String = session.iter().map(|line| format!("{line}\n")).collect();
    sandbox.write(format!("{SESSION}.jsonl"), lines)
}

/// A rollout of Codex with all of that.
fn codex_session(sandbox: &Sandbox) -> PathBuf {
    let text = |text: &str| json!({"type": "input_text", "text": text});
    let call =
        |id: &str| json!({"type": "function_call", "name": "look", "call_id": id, "arguments": "{\"n\":1}"});
    let output =
        |id: &str, output: Value| json!({"type": "function_call_output", "call_id": id, "output": output});
    let all = [vec![text("Look at these.")], codex_parts(&held()), vec![text(" ")]].concat();
    let failed = [vec![text("Process exited with code 1\nOutput:\n")], codex_parts(&held())].concat();
    let items = [
        json!({"type": "message", "role": "user", "content": all}),
        json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "I look. "}]}),
        call("call/1"),
        output("call/1", json!(all)),
        call("call_2"),
        output("call_2", json!(failed)),
        call("call_3"),
        output("call_3", json!("")),
        json!({"type": "custom_tool_call", "name": "apply_patch", "call_id": "call_4", "input": "*** Begin Patch"}),
        json!({"type": "custom_tool_call_output", "call_id": "call_4", "output": "ok"}),
        json!({"type": "web_search_call", "id": "ws_1", "status": "completed",
            "action": {"type": "search", "query": "pond"}}),
        json!({"type": "image_generation_call", "id": "ig_1", "status": "completed", "result": png(5, 5, 0),
            "revised_prompt": "a pond"}),
        json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Seven ducks. "}]}),
    ];
    rollout(sandbox, &items)
}

/// A rollout of these items.
fn rollout(sandbox: &Sandbox, items: &[Value]) -> PathBuf {
    let line = |kind: &str, payload: &Value| json!({"timestamp": "2026-01-02T03:04:05.000Z", "type": kind, "payload": payload});
    let meta = json!({
        "id": THREAD, "timestamp": "2026-01-02T03:04:05.000Z", "cwd": sandbox.project(), "originator": "codex_exec",
        "cli_version": "0.171.0", "source": "exec"
    });
    let lines = std::iter::once(line("session_meta", &meta))
        .chain(items.iter().map(|item| line("response_item", item)))
        .map(|line| format!("{line}\n"));
    sandbox.write(format!("rollout-2026-01-02T03-04-05-{THREAD}.jsonl"), lines.collect::<String>())
}

/// Hands a session with all of that over; its new id, and what relay-write reported.
fn handed(sandbox: &Sandbox, from: &str, to: &str) -> (String, Value) {
    let session = match from {
        "claude" => claude_session(sandbox),
        _ => codex_session(sandbox),
    };
    written(sandbox, from, &session, to)
}

fn written(sandbox: &Sandbox, from: &str, session: &Path, to: &str) -> (String, Value) {
    let line = format!(
        "relay-read --quiet {from} {} | relay-pair --quiet | relay-write {to} --json --project .",
        session.display()
    );
    let out = sandbox.shell(&line).run().success();
    let report: Value = serde_json::from_str(out.text().trim()).unwrap();
    (report["session_id"].as_str().unwrap().to_owned(), report)
}

/// What a model is shown, in a word or a text each: `url`, the media type of an image or a document, or a text.
fn shown(value: &Value, out: &mut Vec<String>) {
    let kind = value["type"].as_str().unwrap_or_default();
    let media_type = |url: &str| match url.strip_prefix("data:").and_then(|rest| rest.split_once(';')) {
        Some((media_type, _)) => media_type.to_owned(),
        None => "url".to_owned(),
    };
    match (kind, value) {
        (_, Value::Array(all)) => all.iter().for_each(|one| shown(one, out)),
        (_, Value::String(text)) => out.push(text.clone()),
        ("input_text", _) if value["text"] == REMOTE => out.push("url".to_owned()),
        ("image", _) => out.push(value["source"]["media_type"].as_str().unwrap_or("url").to_owned()),
        ("input_image", _) => out.push(media_type(value["image_url"].as_str().unwrap())),
        ("document", _) => {
            out.push(format!("document {}", value["source"]["media_type"].as_str().unwrap_or_default()));
            shown(&value["source"]["data"], out);
        }
        ("text" | "input_text" | "output_text", _) => out.push(value["text"].as_str().unwrap().to_owned()),
        ("tool_result" | "message", _) => shown(&value["content"], out),
        ("function_call_output" | "custom_tool_call_output", _) => shown(&value["output"], out),
        _ => {}
    }
}

/// Every picture of [`held`] arrived so many times, as itself or by its name, and so did what else there was.
fn judge(history: &[Value], from: &str, to: &str, words: &[&str]) {
    let times = 3;
    let mut all = Vec::new();
    history.iter().for_each(|one| shown(one, &mut all));
    let mut wanted: std::collections::BTreeMap<&str, usize> = std::collections::BTreeMap::new();
    for one in held() {
        *wanted.entry(if to == "claude" { one.claude } else { one.codex }).or_default() += times;
    }
    // the picture that the model of Codex made
    *wanted.entry("image/png").or_default() += usize::from(from == "codex");
    for (what, times) in wanted {
        let found = match what {
            "url" | "image/png" | "image/gif" | "image/webp" => all.iter().filter(|one| *one == what).count(),
            words => {
                let named = |text: &String| {
                    let names = text.split("[image ").filter(|name| name.contains(words));
                    names.filter(|name| name.contains("not carried over]")).count()
                };
                all.iter().map(named).sum()
            }
        };
        assert_eq!(found, times, "{what} in {all:#?}");
    }
    for word in words {
        assert!(all.iter().any(|one| one.contains(word)), "{word} in {all:#?}");
    }
    assert!(!all.iter().any(|one| one.contains("QUJDQUJD")), "cipher text in {all:#?}");
}

fn to_claude(client: &str, from: &str, words: &[&str]) {
    let Some(client) = Client::find(client) else { return };
    let sandbox = Sandbox::new();
    let (id, report) = handed(&sandbox, from, "claude");
    let history = resume_claude_in(&sandbox, &client, &id).history();
    let blocks: Vec<Value> = history.into_iter().flat_map(|(_, blocks)| blocks).collect();
    judge(&blocks, from, "claude", words);
    assert!(report["losses"].to_string().contains("that the target's API refuses"), "{report}");
}

fn to_codex(client: &str, from: &str, words: &[&str]) {
    let Some(client) = Client::find(client) else { return };
    let sandbox = Sandbox::new();
    let (id, report) = handed(&sandbox, from, "codex");
    let history = resume_codex_in(&sandbox, &client, &id).history();
    judge(&history, from, "codex", words);
    assert!(report["losses"].to_string().contains("that the target's API refuses"), "{report}");
}

const OF_CLAUDE: &[&str] = &["Pond news: https://ducks.example"];
const OF_CODEX: &[&str] = &["web_search", "a pond"];

#[test]
fn claude_code_goes_on_with_what_codex_held() {
    to_claude("claude-2.1.332", "codex", OF_CODEX);
    to_claude("claude-2.0.77", "codex", OF_CODEX);
}

#[test]
fn claude_code_goes_on_with_what_claude_code_held() {
    to_claude("claude-2.1.332", "claude", &[WORDS, OF_CLAUDE, &["document application/pdf"]].concat());
}

#[test]
fn codex_goes_on_with_what_claude_code_held() {
    let words = [WORDS, OF_CLAUDE, &["application/pdf"]].concat();
    to_codex("codex-0.171.0", "claude", &words);
    to_codex("codex-0.142.0", "claude", &words);
}

#[test]
fn codex_goes_on_with_what_codex_held() {
    to_codex("codex-0.171.0", "codex", OF_CODEX);
}

#[test]
fn codex_goes_on_with_what_a_subagent_held() {
    let Some(client) = Client::find("codex-0.171.0") else { return };
    let sandbox = Sandbox::new();
    let parent = claude_session(&sandbox);
    let lines = std::fs::read_to_string(&parent).unwrap();
    let own = lines.replace("\"isSidechain\":false", "\"isSidechain\":true,\"agentId\":\"a1b2\"");
    sandbox.write(format!("{SESSION}/subagents/agent-a1b2.jsonl"), own);
    let line = format!(
        "relay-read --quiet claude --subagents {} | relay-pair --quiet | relay-write codex --json --project .",
        parent.display()
    );
    let out = sandbox.shell(&line).run().success().text();
    let reports: Vec<Value> = out.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    assert_eq!(reports.len(), 2, "{out}");
    let id = reports[1]["session_id"].as_str().unwrap();
    judge(&resume_codex_in(&sandbox, &client, id).history(), "claude", "codex", WORDS);
}

/// Of more pictures than one request may have the newest ones stay, and no big one stands among so many.
#[test]
fn claude_code_goes_on_with_more_pictures_than_it_may_have() {
    let Some(client) = Client::find("claude-2.1.332") else { return };
    let sandbox = Sandbox::new();
    let picture = |n: usize| {
        let edge = if n.is_multiple_of(50) { 2_001 } else { 2_000 };
        json!({"type": "input_image", "image_url": format!("data:image/png;base64,{}", png(edge, 1, 0))})
    };
    let pictures: Vec<Value> = (1..=120).map(picture).collect();
    let prompt = json!({"type": "message", "role": "user", "content": pictures});
    let answer = json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Seen."}]});
    let session = rollout(&sandbox, &[prompt, answer]);
    let (id, report) = written(&sandbox, "codex", &session, "claude");
    let mut all = Vec::new();
    for (_, blocks) in resume_claude_in(&sandbox, &client, &id).history() {
        blocks.iter().for_each(|block| shown(block, &mut all));
    }
    let count = |words: &str| all.iter().filter(|one| one.contains(words)).count();
    assert_eq!((count("one of too many"), count("too big for so many")), (20, 2), "{all:#?}");
    assert_eq!(all.iter().filter(|one| *one == "image/png").count(), 98);
    assert!(report["losses"].to_string().contains("22 images that the target's API refuses"), "{report}");
}
