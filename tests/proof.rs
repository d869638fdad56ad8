//! Fidelity, judged by the real clients: what relay-read calls live is what the client sends for the same file,
//! and what relay-write wrote reaches the model of Codex whole.

use crate::reading::{cases, live, read};
use crate::support::clients::{Client, resume_claude, resume_codex, resume_codex_in};
use crate::support::sandbox::Sandbox;
use relay::agents::History;
use serde_json::Value;
use std::path::Path;

/// Cases with a live conversation that the client can be asked about, with their `exact` view.
pub(crate) fn sessions(agent: &str) -> Vec<(String, std::path::PathBuf, Vec<Value>)> {
    cases(agent)
        .into_iter()
        .filter_map(|folder| {
            let expect: Value =
                serde_json::from_slice(&std::fs::read(folder.join("expect.json")).unwrap()).unwrap();
            let name = folder.file_name().unwrap().to_string_lossy().into_owned();
            let records = read(agent, &folder.join("session.jsonl"), History::Exact);
            let judged = expect["client"] != false && !live(&records).is_empty();
            judged.then(|| (name, folder.join("session.jsonl"), records))
        })
        .collect()
}

/// Order of results inside one run of results means nothing: parallel calls end as they end. White space at the
/// ends of texts is the client's.
pub(crate) fn normal(items: Vec<String>) -> Vec<String> {
    let mut out: Vec<String> = items.iter().map(|i| i.trim().to_owned()).filter(|i| !i.is_empty()).collect();
    for run in out.chunk_by_mut(|a, b| a.starts_with("result: ") && b.starts_with("result: ")) {
        if run.len() > 1 {
            run.sort();
        }
    }
    out
}

/// The texts that the records hold as the client's own.
pub(crate) fn harness(records: &[Value]) -> Vec<&str> {
    let own = records.iter().filter(|r| r["origin"] == "harness" && r["dropped"].is_null());
    own.flat_map(|r| match &r["content"] {
        Value::Array(blocks) => blocks.iter().filter_map(|block| block["text"].as_str()).collect(),
        content => Vec::from_iter(content.as_str()),
    })
    .map(str::trim)
    .collect()
}

/// Texts that Claude Code 2.1.332 adds to a history that it resumes.
fn is_repair(text: &str) -> bool {
    ["No response requested.", "Tool loaded.", "(no content)", "[Tool ", "[Orphaned tool result"]
        .iter()
        .any(|made| text.starts_with(made))
}

pub(crate) fn claude_items(history: &[(String, Vec<Value>)], harness: &[&str]) -> Vec<String> {
    let mut out = Vec::new();
    for (role, blocks) in history {
        for block in blocks {
            match block["type"].as_str().unwrap() {
                "text" => {
                    let text = block["text"].as_str().unwrap().trim();
                    if !is_repair(text) && !harness.contains(&text) {
                        out.push(format!("{role}: {text}"));
                    }
                }
                "tool_use" => out.push(format!(
                    "call: {} {}",
                    block["id"].as_str().unwrap(),
                    // the client renames one tool of its own (reading rule 21)
                    block["name"].as_str().unwrap().replace("Agent", "Task")
                )),
                "tool_result" => {
                    let content = &block["content"];
                    if content.as_str().is_some_and(is_repair) {
                        continue;
                    }
                    let status = if block["is_error"] == true { "error" } else { "ok" };
                    out.push(format!("result: {} {status}", block["tool_use_id"].as_str().unwrap()));
                    out.extend(content.as_array().into_iter().flatten().filter_map(image));
                }
                "thinking" => {}
                _ => out.push(
                    image(block).unwrap_or_else(|| format!("{role}: [{}]", block["type"].as_str().unwrap())),
                ),
            }
        }
    }
    out
}

fn image(block: &Value) -> Option<String> {
    (block["type"] == "image").then(|| format!("image: {}", block["source"]["media_type"].as_str().unwrap()))
}

#[test]
fn what_is_read_as_live_is_what_claude_code_sends() {
    for (name, session, records) in sessions("claude") {
        let sandbox = Sandbox::new();
        let id = records[0]["session_id"].as_str().unwrap();
        let copy = sandbox.write(format!("{id}.jsonl"), std::fs::read(&session).unwrap());
        let Some(resumed) = resume_claude("claude-2.1.332", &copy) else { return };
        // a prompt typed while the model worked comes inside a system message; the kit leaves those out
        let queued = |item: &String| name == "a-prompt-typed-while-the-model-works" && item.contains("geese");
        let wanted: Vec<String> = live(&records)
            .into_iter()
            .filter(|i| !i.starts_with("reasoning: ") && !queued(i))
            .map(|i| i.replacen("summary: ", "user: ", 1))
            .collect();
        let sent = claude_items(&resumed.history(), &harness(&records));
        assert_eq!(normal(sent), normal(wanted), "{name}");
    }
}

/// What Codex sends of a rollout of its own, in the words of [`live`] without names, states and media types: a web
/// search has no id, and what an agent says to another is no conversation.
fn codex_sent(items: &[Value], harness: &[&str]) -> Vec<String> {
    let mut out = Vec::new();
    for item in items {
        let id = item["call_id"].as_str().or(item["id"].as_str()).unwrap_or("?");
        match item["type"].as_str().unwrap() {
            "message" => {
                let role = item["role"].as_str().unwrap();
                for part in item["content"].as_array().unwrap() {
                    match part["text"].as_str() {
                        Some(text) if harness.contains(&text.trim()) => {}
                        Some(text) => out.push(format!("{role}: {}", text.trim())),
                        None => out.push("image".to_owned()),
                    }
                }
            }
            "function_call"
            | "custom_tool_call"
            | "local_shell_call"
            | "tool_search_call"
            | "image_generation_call" => {
                out.push(format!("call: {id}"));
            }
            "function_call_output" | "custom_tool_call_output" | "tool_search_output" => {
                out.push(format!("result: {id}"));
            }
            "web_search_call" => out.push("call: ?".to_owned()),
            "agent_message" => {}
            other => panic!("an item of type {other} is in no case"),
        }
    }
    out
}

#[test]
fn what_is_read_as_live_is_what_codex_sends() {
    for (name, session, records) in sessions("codex") {
        let sandbox = Sandbox::new();
        let id = records[0]["session_id"].as_str().unwrap();
        let rollout = format!("rollout-2026-02-03T04-05-00-{id}.jsonl");
        let copy = sandbox.write(rollout, std::fs::read(&session).unwrap());
        let Some(resumed) = resume_codex("codex-0.171.0", &copy) else { return };
        assert_eq!(resumed.thread_id, id, "{name}");
        let wanted: Vec<String> = live(&records)
            .iter()
            .filter(|i| !i.starts_with("reasoning: "))
            .map(|i| match i.split_whitespace().collect::<Vec<_>>()[..] {
                ["call:", _, "web_search"] => "call: ?".to_owned(),
                ["call:", id, ..] => format!("call: {id}"),
                ["result:", id, ..] => format!("result: {id}"),
                ["image:", ..] => "image".to_owned(),
                _ => i.replacen("summary: ", "user: ", 1).trim().to_owned(),
            })
            .collect();
        assert_eq!(codex_sent(&resumed.history(), &harness(&records)), wanted, "{name}");
    }
}

/// What is restored goes on under the id that is told.
#[test]
fn a_restored_rollout_resumes_under_the_id_that_is_told() {
    let Some(client) = Client::find("codex-0.171.0") else { return };
    let (_, session, records) = sessions("codex").remove(0);
    let sandbox = Sandbox::new();
    let id = records[0]["session_id"].as_str().unwrap();
    let copy =
        sandbox.write(format!("rollout-2026-02-03T04-05-00-{id}.jsonl"), std::fs::read(session).unwrap());
    let line = format!(
        "relay-read --quiet codex {} | relay-write codex --restore --json --project {}",
        copy.display(),
        sandbox.project().display()
    );
    let written: Value = serde_json::from_str(sandbox.shell(&line).run().success().text().trim()).unwrap();
    assert_eq!(written["session_id"], id);
    assert!(written["resume"].as_str().unwrap().ends_with(&format!("codex resume {id}")), "{written}");
    assert_eq!(resume_codex_in(&sandbox, &client, id).thread_id, id);
}

/// The items of a request as words; names and inputs may be the target's own.
fn codex_items(items: &[Value]) -> Vec<String> {
    let mut out = Vec::new();
    for item in items {
        match item["type"].as_str().unwrap() {
            "message" => {
                let role = item["role"].as_str().unwrap();
                for part in item["content"].as_array().unwrap() {
                    out.push(match part["text"].as_str() {
                        Some(text) => format!("{role}: {}", text.trim()),
                        None => "image".to_owned(),
                    });
                }
            }
            "function_call" => out.push(format!("call: {}", item["call_id"].as_str().unwrap())),
            "function_call_output" => {
                out.push(format!("result: {}", item["call_id"].as_str().unwrap()));
                let parts = item["output"].as_array().into_iter().flatten();
                out.extend(parts.filter(|p| p["type"] == "input_image").map(|_| "image".to_owned()));
            }
            other => panic!("an item of type {other} was never written"),
        }
    }
    out
}

fn relayed_reaches(client: &str) {
    let Some(client) = Client::find(client) else { return };
    for (name, session, records) in sessions("claude") {
        let sandbox = Sandbox::new();
        let copy = sandbox.write("session.jsonl", std::fs::read(&session).unwrap());
        let read = format!("relay-read --quiet claude {} --history exact", copy.display());
        let write = format!("{read} | relay-write codex --json --project {}", sandbox.project().display());
        let out = sandbox.shell(&write).run().success();
        let written: Value = serde_json::from_str(out.text().trim()).unwrap();
        let paired = sandbox.shell(&format!("{read} | relay-pair")).run().success().text();
        let paired: Vec<Value> = paired.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
        let wanted: Vec<String> = live(&paired)
            .into_iter()
            .filter(|i| !i.starts_with("reasoning: "))
            .map(|i| match i.split_whitespace().collect::<Vec<_>>()[..] {
                ["call:", id, ..] => format!("call: {id}"),
                ["result:", id, ..] => format!("result: {id}"),
                ["image:", ..] => "image".to_owned(),
                _ => i.replacen("summary: ", "user: ", 1).trim().to_owned(),
            })
            .filter(|i| !i.ends_with("[future_block]"))
            .collect();
        let resumed = resume_codex_in(&sandbox, &client, written["session_id"].as_str().unwrap());
        assert_eq!(resumed.thread_id, written["session_id"].as_str().unwrap(), "{name}");
        let mut sent = codex_items(&resumed.history());
        assert!(sent[0].starts_with("user: [relay note"), "{name}: {}", sent[0]);
        sent.remove(0);
        // the client's own texts travel, too, and blocks that Codex has no shape for travel as words
        let own = harness(&records);
        sent.retain(|i| !own.iter().any(|h| i.ends_with(h)) && !i.contains("future_block"));
        assert_eq!(sent, wanted, "{name}");
        assert!(Path::new(written["path"].as_str().unwrap()).starts_with(sandbox.codex_home()), "{name}");
    }
}

#[test]
fn a_relayed_session_reaches_the_model_of_codex_0_171_0() {
    relayed_reaches("codex-0.171.0");
}

#[test]
fn a_relayed_session_reaches_the_model_of_codex_0_142_0() {
    relayed_reaches("codex-0.142.0");
}
