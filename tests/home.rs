//! Back to Claude Code: sessions written for it reach its model whole, a session that went out and came home is
//! the one that left, and originals are put back line by line.

use crate::proof::{claude_items, harness, normal, sessions};
use crate::reading::{cases, live, read};
use crate::support::clients::{Client, resume_claude_in};
use crate::support::sandbox::Sandbox;
use relay::agents::History;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

static SEED: AtomicU64 = AtomicU64::new(100);

/// Hands a session on and gives what was written.
fn relayed(sandbox: &Sandbox, from: &str, session: &Path, to: &str, more: &str) -> Value {
    let read = format!("relay-read --quiet {from} {}", session.display());
    let write = format!("relay-write {to} --json --project {}", sandbox.project().display());
    // the dice are stopped in a sandbox, and every relay needs ids of its own
    let seed = SEED.fetch_add(1, Ordering::Relaxed).to_string();
    let out = sandbox.shell(&format!("{read} {more} | {write}")).env("RELAY_SEED", seed).run().success();
    serde_json::from_str(out.text().trim()).unwrap()
}

fn path(written: &Value) -> PathBuf {
    PathBuf::from(written["path"].as_str().unwrap())
}

/// 2.0.77 goes on from the line with the latest date, so a session without dates is the hardest.
fn reaches_without_dates(client: &Client) {
    let sandbox = Sandbox::new();
    let mut stream = json!({"type":"session","relay":1,"session_id":"s","source_agent":"codex"}).to_string();
    for n in 0..6 {
        let role = if n % 2 == 0 { "user" } else { "assistant" };
        stream += &format!("\n{}", json!({"type":"message","role":role,"content":format!("words {n}")}));
    }
    stream += "\n{\"type\":\"end\"}\n";
    let file = sandbox.write("stream", stream);
    let project = sandbox.project();
    let write = format!("relay-write claude --json --project {} < {}", project.display(), file.display());
    let written: Value = serde_json::from_str(sandbox.shell(&write).run().success().text().trim()).unwrap();
    let resumed = resume_claude_in(&sandbox, client, written["session_id"].as_str().unwrap());
    let texts: Vec<String> = claude_items(&resumed.history(), &[]);
    assert!(texts[0].starts_with("user: [relay note"), "{texts:?}");
    let said = texts.iter().filter(|t| t.contains("words ")).count();
    assert_eq!(said, 6, "{texts:?}");
}

fn reaches(client: &str) {
    let Some(client) = Client::find(client) else { return };
    reaches_without_dates(&client);
    for (name, session, records) in sessions("claude") {
        let sandbox = Sandbox::new();
        let copy = sandbox.write("session.jsonl", std::fs::read(&session).unwrap());
        let written = relayed(&sandbox, "claude", &copy, "claude", "--history exact | relay-pair");
        let read = format!("relay-read --quiet claude {} --history exact | relay-pair", copy.display());
        let paired = sandbox.shell(&read).run().success().text();
        let paired: Vec<Value> = paired.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
        let wanted: Vec<String> = live(&paired)
            .into_iter()
            .filter(|i| !i.starts_with("reasoning: "))
            .map(|i| i.replacen("summary: ", "user: ", 1))
            .collect();
        let id = written["session_id"].as_str().unwrap();
        let resumed = resume_claude_in(&sandbox, &client, id);
        assert_eq!(resumed.session_id, id, "{name}");
        let mut sent = claude_items(&resumed.history(), &harness(&records));
        assert!(sent[0].starts_with("user: [relay note"), "{name}: {}", sent[0]);
        sent.remove(0);
        // what the API has no block for travels as words
        let known = |items: Vec<String>| -> Vec<String> {
            normal(items).into_iter().filter(|i| !i.contains("future_block")).collect()
        };
        assert_eq!(known(sent), known(wanted), "{name}");
    }
}

#[test]
fn a_relayed_session_reaches_the_model_of_claude_2_1_332() {
    reaches("claude-2.1.332");
}

#[test]
fn a_relayed_session_reaches_the_model_of_claude_2_0_77() {
    reaches("claude-2.0.77");
}

/// The live conversation with all that a relay must keep: texts, calls with name and input, results.
fn kept(records: &[Value]) -> Vec<Value> {
    let mut out: Vec<Value> = Vec::new();
    for r in records {
        let role = r["role"].as_str().unwrap_or_default();
        let own = r["origin"] == "relay" || r["harness"] == "environment" || role == "reasoning";
        if r["type"] != "message" || !r["dropped"].is_null() || own {
            continue;
        }
        let content: Vec<Value> = match r["content"].as_array() {
            Some(blocks) => blocks.clone(),
            None => vec![json!({"type":"text","text":r["content"]})],
        };
        match role {
            "tool_call" => out.push(json!([role, r["tool_call_id"], r["tool_name"], r["input"]])),
            "tool_result" => out.push(json!([role, r["tool_call_id"], r["status"], content])),
            // neighbours of one role may be one message or several
            _ => out.extend(
                content
                    .into_iter()
                    .filter(|b| b["text"].as_str().is_none_or(|t| !t.trim().is_empty()))
                    .map(|b| json!([role, r["harness"], b])),
            ),
        }
    }
    out
}

#[test]
fn there_and_back_again_nothing_changes() {
    let mut trips = 0;
    for folder in cases("claude") {
        let name = folder.file_name().unwrap().to_string_lossy().into_owned();
        let session = folder.join("session.jsonl");
        let first = read("claude", &session, History::Active);
        // blocks of unknown types and what the server ran become words on the way
        let odd = std::fs::read_to_string(&session)
            .is_ok_and(|text| ["future_block", "server_tool_use"].iter().any(|word| text.contains(word)));
        if live(&first).is_empty() || odd {
            continue;
        }
        let sandbox = Sandbox::new();
        let copy = sandbox.write("session.jsonl", std::fs::read(&session).unwrap());
        let stream = sandbox.shell(&format!("relay-read --quiet claude {} | relay-pair", copy.display()));
        let stream = stream.run().success().text();
        let paired: Vec<Value> = stream.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
        let mut from = "claude";
        let mut at = copy;
        for (n, to) in ["codex", "claude", "codex", "claude", "claude"].into_iter().enumerate() {
            at = path(&relayed(&sandbox, from, &at, to, ""));
            from = to;
            let back = read(to, &at, History::Active);
            let notes = back.iter().filter(|r| r["origin"] == "relay" && r["role"] == "user").count();
            let lineage = back[0]["lineage"].as_array().unwrap();
            assert_eq!((notes, lineage.len()), (1, n + 1), "{name} after {n} relays, in {to}");
            assert_eq!(lineage[n]["to"], to, "{name}");
            if to == "claude" {
                assert_eq!(kept(&back), kept(&paired), "{name} after {n} relays");
            }
        }
        trips += 1;
    }
    assert!(trips >= 10, "only {trips} sessions made the trip");
}

#[test]
fn originals_are_put_back_line_by_line() {
    for folder in cases("claude") {
        let name = folder.file_name().unwrap().to_string_lossy().into_owned();
        let session = folder.join("session.jsonl");
        if !read("claude", &session, History::Active).last().unwrap()["failed"].is_null() {
            continue;
        }
        for history in ["active", "exact", "full"] {
            let sandbox = Sandbox::new();
            let copy = sandbox.write("session.jsonl", std::fs::read(&session).unwrap());
            let written =
                relayed(&sandbox, "claude", &copy, "claude --restore", &format!("--history {history}"));
            let lines = |bytes: Vec<u8>| -> Vec<Vec<u8>> {
                bytes
                    .strip_suffix(b"\n")
                    .unwrap_or(&bytes)
                    .split(|&b| b == b'\n')
                    .map(<[u8]>::to_vec)
                    .collect()
            };
            let (got, want) =
                (lines(std::fs::read(path(&written)).unwrap()), lines(std::fs::read(&copy).unwrap()));
            assert_eq!(got.len(), want.len(), "{name}, {history}");
            for (n, (got, want)) in got.iter().zip(&want).enumerate() {
                let value = |line: &[u8]| serde_json::from_slice::<Value>(line).ok();
                let equal = got == want || value(got).is_some() && value(got) == value(want);
                assert!(equal, "{name}, {history}, line {}: {}", n + 1, String::from_utf8_lossy(got));
            }
        }
    }
}

/// Such a file is half a conversation, which is not handed over, but it is whole as a file.
#[test]
fn a_rollout_without_the_one_before_it_is_put_back_all_the_same() {
    let (id, base) = ("019a0000-0000-7000-8000-00000000000a", "019a0000-0000-7000-8000-00000000000b");
    let at = "2026-11-01T10:00:00.000Z";
    let base = json!({"thread_id": base, "end_ordinal_exclusive": 9, "end_byte_offset": 900});
    let meta = json!({"id": id, "timestamp": at, "cwd": "/p", "originator": "codex-tui", "cli_version": "0.171.0", "history_base": base});
    let says = json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": "on"}]});
    let lines = [
        json!({"timestamp": at, "type": "session_meta", "payload": meta}),
        json!({"timestamp": at, "type": "response_item", "payload": says}),
    ];
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let sandbox = Sandbox::new();
    let file = sandbox.write(format!("rollout-2026-11-01T10-00-00-{id}.jsonl"), &text);
    let pipe = |more: &str| {
        let read = format!("relay-read codex {}", file.display());
        sandbox.shell(&format!("{read} | relay-write codex --json --project . {more}")).run()
    };
    let refused = pipe("").expect_code(3);
    assert!(refused.errors().contains("it continues rollout"), "{}", refused.errors());
    // relay-read has its exit code for the half conversation, and relay-write its own
    let restored = pipe("--restore").expect_code(3);
    let restored: Value = serde_json::from_str(restored.text().trim()).unwrap();
    assert_eq!(std::fs::read_to_string(path(&restored)).unwrap(), text);
}
