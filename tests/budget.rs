//! The whole product, judged by the real clients: what trimming keeps, the summary and the note reach the model
//! together, in this order, within the budget.

use crate::support::clients::{Client, resume_claude_in, resume_codex_in};
use crate::support::sandbox::Sandbox;
use relay::tokens::{Counter as _, Exact};
use serde_json::Value;

const BUDGET: u64 = 8_000;

/// How a summary begins.
const SUMMARY: &str = "Hand-over note, made by rules by relay.";

const PIPE: &str = "relay-pair --quiet | relay-trim --budget 8000 | relay-summarize | relay-redact --quiet";

/// Puts the session through the pipe into a store; what relay-write says of it.
fn relayed(sandbox: &Sandbox, target: &str) -> Value {
    let line = format!("{PIPE} | relay-write {target} --quiet --json --project .");
    let out = sandbox.shell(&line).stdin(crate::trim::session(300)).run();
    assert_eq!(out.code(), 0, "{}", out.errors());
    serde_json::from_slice(&out.stdout).unwrap()
}

/// What the texts cost, in thousandths of o200k tokens, and whether the first one holds note and summary.
fn judge(texts: &[String], factor: u64) {
    let exact = Exact::o200k().unwrap();
    let cost: u64 = texts.iter().map(|text| exact.count(text)).sum::<u64>() * factor / 1000;
    assert!(cost <= BUDGET, "{cost} tokens");
    let Some(first) = texts.first() else { panic!("nothing arrived") };
    let (note, summary) = first.split_once(SUMMARY).unwrap_or_else(|| panic!("{first}"));
    assert!(
        note.contains("relay") && summary.contains("## Goal") && summary.contains("## Commands"),
        "{first}"
    );
    assert!(texts[1..].iter().all(|text| !text.contains(SUMMARY)));
    assert_eq!(texts[1], "Count the ducks on every pond.");
    // the newest steps are there, each with its result
    assert!(texts.iter().any(|text| text.contains("count pond-299")));
    assert!(texts.iter().any(|text| text.contains("pond 299: 7 ducks")));
}

#[test]
fn what_reaches_codex_stays_within_the_budget() {
    let Some(client) = Client::find("codex-0.171.0") else { return };
    let sandbox = Sandbox::new();
    let id = relayed(&sandbox, "codex")["session_id"].as_str().unwrap().to_owned();
    let history = resume_codex_in(&sandbox, &client, &id).history();
    let texts: Vec<String> = history
        .iter()
        .map(|item| match item["type"].as_str().unwrap() {
            "message" => {
                item["content"].as_array().unwrap().iter().map(|c| c["text"].as_str().unwrap()).collect()
            }
            "function_call" => {
                format!("{} {}", item["name"].as_str().unwrap(), item["arguments"].as_str().unwrap())
            }
            _ => item["output"].as_str().unwrap().to_owned(),
        })
        .collect();
    judge(&texts, 1000);
    let ids = |kind: &str| -> Vec<&str> {
        history.iter().filter(|i| i["type"] == kind).map(|i| i["call_id"].as_str().unwrap()).collect()
    };
    assert_eq!(ids("function_call"), ids("function_call_output"));
}

#[test]
fn what_reaches_claude_code_stays_within_the_budget() {
    let Some(client) = Client::find("claude-2.1.332") else { return };
    let sandbox = Sandbox::new();
    let id = relayed(&sandbox, "claude")["session_id"].as_str().unwrap().to_owned();
    let history = resume_claude_in(&sandbox, &client, &id).history();
    let blocks = || history.iter().flat_map(|(_, blocks)| blocks);
    let mut texts: Vec<String> = blocks()
        .map(|block| match block["type"].as_str().unwrap() {
            "text" => block["text"].as_str().unwrap().to_owned(),
            "tool_use" => format!("{} {}", block["name"].as_str().unwrap(), block["input"]),
            _ => match &block["content"] {
                Value::String(text) => text.clone(),
                parts => parts.as_array().unwrap().iter().map(|p| p["text"].as_str().unwrap()).collect(),
            },
        })
        .collect();
    // note and summary are two blocks of one message
    assert!(history[0].1.len() >= 2);
    let summary = texts.remove(1);
    texts[0] += &summary;
    judge(&texts, 1300);
    let ids = |kind: &str, key: &str| -> Vec<&str> {
        blocks().filter(|b| b["type"] == kind).map(|b| b[key].as_str().unwrap()).collect()
    };
    assert_eq!(ids("tool_use", "id"), ids("tool_result", "tool_use_id"));
}
