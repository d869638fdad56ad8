//! One test a rule. Every session read here is also put together again, line by line, in all three views.

use super::*;
use crate::agents::History::{self, Active, Exact, Full};
use crate::agents::codex::restore;
use crate::stream::Native;
use serde_json::{Value, json};
use std::collections::BTreeMap;

const META: &str = r#"{"timestamp":"2026-01-02T03:04:05.000Z","type":"session_meta","payload":{"id":"019a0000-0000-7000-8000-00000000000a","timestamp":"2026-01-02T03:04:05.000Z","cwd":"/w/app","originator":"codex_cli_rs","cli_version":"0.171.0","source":"cli","git":{"branch":"main","commit_hash":"abc"}}}"#;

fn line(kind: &str, payload: Value) -> String {
    // the order of keys that clients write
    format!(r#"{{"timestamp":"2026-01-02T03:04:06.000Z","type":"{kind}","payload":{payload}}}"#)
}

fn item(payload: Value) -> String {
    line("response_item", payload)
}

fn event(payload: Value) -> String {
    line("event_msg", payload)
}

fn says(role: &str, text: &str) -> String {
    let kind = if role == "assistant" { "output_text" } else { "input_text" };
    item(json!({"type": "message", "role": role, "content": [{"type": kind, "text": text}]}))
}

fn calls(id: &str, name: &str, arguments: &str) -> String {
    item(json!({"type": "function_call", "name": name, "arguments": arguments, "call_id": id}))
}

fn answers(id: &str, output: Value) -> String {
    item(json!({"type": "function_call_output", "call_id": id, "output": output}))
}

fn rolls_back(turns: Value) -> String {
    event(json!({"type": "thread_rolled_back", "num_turns": turns}))
}

fn started(id: &str) -> String {
    event(json!({"type": "task_started", "turn_id": id}))
}

fn complete(id: &str) -> String {
    event(json!({"type": "task_complete", "turn_id": id}))
}

fn compacted(message: &str, replacement: Option<Value>) -> String {
    line(
        "compacted",
        match replacement {
            Some(items) => json!({"message": message, "replacement_history": items}),
            None => json!({"message": message}),
        },
    )
}

fn file(lines: &[String]) -> Vec<u8> {
    let mut all = META.to_owned() + "\n";
    for line in lines {
        all.push_str(line);
        all.push('\n');
    }
    all.into_bytes()
}

struct Session {
    records: Vec<Value>,
}

fn read_as(bytes: &[u8], options: &ReadOptions) -> Session {
    let mut out: Vec<Vec<u8>> = Vec::new();
    read(&Native::of_bytes(bytes, None).unwrap(), options, &mut out).unwrap();
    let records = out.iter().map(|r| serde_json::from_slice(r).unwrap()).collect::<Vec<Value>>();
    if !options.lean {
        restores(bytes, &out, &records);
    }
    assert_eq!(
        (&records[0]["type"], &records[records.len() - 1]["type"]),
        (&json!("session"), &json!("end"))
    );
    Session { records }
}

/// Every line must come back: equal as a value where it is one, else byte by byte.
fn restores(bytes: &[u8], out: &[Vec<u8>], records: &[Value]) {
    let mut lines: BTreeMap<u64, Vec<&[u8]>> = BTreeMap::new();
    for (raw, record) in out.iter().zip(records) {
        if let Some(n) = record["line"].as_u64() {
            lines.entry(n).or_default().push(raw);
        }
    }
    let body = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    for (n, line) in body.split(|b| *b == b'\n').enumerate() {
        let n = n as u64 + 1;
        let back = restore(lines.get(&n).map_or(&[], Vec::as_slice))
            .unwrap()
            .unwrap_or_else(|| panic!("line {n} is lost"));
        if back == line {
            continue;
        }
        let (a, b) = (serde_json::from_slice::<Value>(&back), serde_json::from_slice::<Value>(line));
        assert_eq!(a.unwrap(), b.unwrap(), "line {n}");
    }
}

fn session(lines: &[String], history: History) -> Session {
    read_as(&file(lines), &ReadOptions { history, ..ReadOptions::default() })
}

impl Session {
    fn messages(&self) -> impl Iterator<Item = &Value> {
        self.records.iter().filter(|r| r["type"] == "message")
    }

    fn end(&self) -> &Value {
        self.records.last().unwrap()
    }

    fn problems(&self, kind: &str) -> u64 {
        let all = self.end()["problems"].as_array().unwrap();
        all.iter().find(|p| p["kind"] == kind).map_or(0, |p| p["count"].as_u64().unwrap())
    }

    /// The live conversation as `role: text` or `role: id`.
    fn live(&self) -> Vec<String> {
        self.messages().filter(|m| m["dropped"].is_null() && m["origin"] != "harness").map(brief).collect()
    }

    fn dropped(&self, reason: &str) -> Vec<String> {
        self.messages().filter(|m| m["dropped"] == reason).map(brief).collect()
    }
}

fn brief(message: &Value) -> String {
    let role = message["role"].as_str().unwrap();
    let content = match &message["content"] {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => {
            blocks.iter().map(|b| b["text"].as_str().unwrap_or("*").to_owned()).collect::<Vec<_>>().join("|")
        }
        _ => message["input"].to_string(),
    };
    match role {
        "tool_call" | "tool_result" => {
            format!("{role} {}: {content}", message["tool_call_id"].as_str().unwrap())
        }
        _ => format!("{role}: {content}"),
    }
}

#[test]
fn the_first_header_is_the_session() {
    let other = META.replace("00000a", "00000b").replace("/w/app", "/w/other");
    let s = session(&[says("user", "q"), other, says("assistant", "a")], Exact);
    let head = &s.records[0];
    assert_eq!(head["session_id"], "019a0000-0000-7000-8000-00000000000a");
    assert_eq!(head["working_directory"], "/w/app");
    assert_eq!(head["git"], json!({"branch": "main", "commit": "abc"}));
    assert_eq!(head["created_at"], "2026-01-02T03:04:05.000Z");
    assert_eq!(head["updated_at"], "2026-01-02T03:04:06.000Z");
    assert_eq!(s.live(), ["user: q", "assistant: a"]);
}

#[test]
fn the_header_tells_model_context_and_parent() {
    let meta = META
        .replace(r#""source":"cli""#, r#""source":{"subagent":{"thread_spawn":{"parent_thread_id":"p"}}}"#);
    let lines = [
        meta,
        line("turn_context", json!({"cwd": "/w/sub", "model": "gpt-5"})),
        event(
            json!({"type": "token_count", "info": {"last_token_usage": {"total_tokens": 7}, "model_context_window": 9}}),
        ),
        event(json!({"type": "token_count", "info": null})),
        event(json!({"type": "thread_name_updated", "thread_name": "A name"})),
    ];
    let bytes = lines.join("\n").into_bytes();
    let s = read_as(&bytes, &ReadOptions::default());
    let head = &s.records[0];
    assert_eq!(
        (&head["model"], &head["parent_session_id"], &head["title"]),
        (&json!("gpt-5"), &json!("p"), &json!("A name"))
    );
    assert_eq!(head["context"], json!({"used_tokens": 7, "window": 9}));
}

#[test]
fn events_are_no_history_beside_response_items() {
    let s = session(
        &[
            event(json!({"type": "user_message", "message": "q"})),
            says("user", "q"),
            event(json!({"type": "agent_message", "message": "a"})),
        ],
        Active,
    );
    assert_eq!(s.live(), ["user: q"]);
    assert_eq!(s.problems("rescued"), 0);
}

#[test]
fn a_file_of_events_alone_is_rescued_but_not_for_the_exact_view() {
    let lines = [
        event(json!({"type": "user_message", "message": "q"})),
        event(
            json!({"type": "exec_command_end", "call_id": "c", "command": ["ls"], "aggregated_output": "a", "exit_code": 2}),
        ),
        event(json!({"type": "agent_message", "message": "a"})),
        rolls_back(json!(1)),
        event(json!({"type": "user_message", "message": "q2"})),
    ];
    assert_eq!(session(&lines, Exact).live(), [""; 0]);
    let s = session(&lines, Active);
    assert_eq!(s.live(), ["user: q2"]);
    assert_eq!(s.dropped("rolled_back").len(), 4);
    assert_eq!(s.problems("rescued"), 1);
    let items = [
        event(
            json!({"type": "item_completed", "item": {"type": "UserMessage", "content": [{"type": "text", "text": "Ping."}]}}),
        ),
        event(
            json!({"type": "item_completed", "item": {"type": "CommandExecution", "id": "c1", "command": ["ls"], "exit_code": 0, "aggregated_output": "a"}}),
        ),
        event(
            json!({"type": "item_completed", "item": {"type": "AgentMessage", "content": [{"type": "Text", "text": "Pong."}]}}),
        ),
    ];
    let s = session(&items, Active);
    assert_eq!(
        s.live(),
        ["user: Ping.", "tool_call c1: {\"command\":[\"ls\"]}", "tool_result c1: a", "assistant: Pong."]
    );
}

#[test]
fn shapes_that_the_client_loses_are_rescued() {
    let lines = [
        item(json!({"type": "message", "role": "user", "content": "plain"})),
        item(json!({"type": "message", "role": "user", "content": [{"type": "text", "text": "kind"}]})),
        item(json!({"type": "message", "role": "assistant", "phase": "odd", "content": [{"type": "output_text", "text": "phase"}]})),
        item(json!({"type": "message", "role": "system", "content": [{"type": "input_text", "text": "sys"}]})),
        json!({"type": "response_item", "payload": {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "undated"}]}}).to_string(),
        item(json!({"type": "function_call", "name": "f", "arguments": {"a": 1}, "call_id": "c"})),
        item(json!({"type": "function_call_output", "call_id": "c", "output": {"content": "r", "success": false}})),
        item(json!({"type": "custom_tool_call", "name": "f", "input": null, "call_id": "d"})),
    ];
    let s = session(&lines, Exact);
    assert_eq!(s.live(), [""; 0]);
    assert_eq!(s.problems("lost"), 8);
    assert_eq!(s.messages().count(), 0);
    let s = session(&lines, Active);
    assert_eq!(
        s.live(),
        [
            "user: plain",
            "user: kind",
            "assistant: phase",
            "system: sys",
            "user: undated",
            "tool_call c: {\"a\":1}",
            "tool_result c: r",
            "tool_call d: null"
        ]
    );
    assert_eq!(s.problems("rescued"), 8);
    assert!(s.messages().all(|m| m["extra"]["raw"].is_string()));
    assert_eq!(s.messages().nth(6).unwrap()["status"], "error");
}

#[test]
fn damaged_lines_are_lost_to_the_client_and_kept_here() {
    let whole = says("user", "whole");
    let mut bytes = file(&[
        says("user", "glued one") + &says("user", "glued two"),
        r#"{"timestamp":"x","type":"response_item","payload":{"type":"mess"#.to_owned() + &whole,
        "\0\0\0".to_owned() + &says("user", "behind nul"),
        says("user", "lone X end").replace('X', "\\ud83d"),
        "not json".to_owned(),
        String::new(),
        "[1]".to_owned(),
    ]);
    bytes.extend(says("user", "no utf8 Y").bytes().map(|b| if b == b'Y' { 0xff } else { b }));
    bytes.extend_from_slice(b"\n{\"cut");
    let exact = read_as(&bytes, &ReadOptions { history: Exact, ..ReadOptions::default() });
    assert_eq!(exact.live(), [""; 0]);
    let s = read_as(&bytes, &ReadOptions::default());
    assert_eq!(
        s.live(),
        [
            "user: glued one",
            "user: glued two",
            "user: whole",
            "user: behind nul",
            "user: lone \u{fffd} end",
            "user: no utf8 \u{fffd}"
        ]
    );
    for (kind, count) in
        [("glued", 1), ("bad_line", 2), ("nul", 1), ("surrogate", 1), ("truncated_tail", 1), ("utf8", 1)]
    {
        assert_eq!(s.problems(kind), count, "{kind}");
    }
}

#[test]
fn an_unended_last_line_counts_when_it_is_whole() {
    let mut bytes = file(&[says("user", "q")]);
    bytes.extend_from_slice(says("assistant", "a").as_bytes());
    let s = read_as(&bytes, &ReadOptions::default());
    assert_eq!(s.live(), ["user: q", "assistant: a"]);
    assert_eq!(s.problems("truncated_tail"), 0);
    let strict = ReadOptions { strict: true, ..ReadOptions::default() };
    let mut out: Vec<Vec<u8>> = Vec::new();
    bytes.extend_from_slice(b"\nnot json\n");
    let error = read(&Native::of_bytes(&bytes, None).unwrap(), &strict, &mut out).unwrap_err();
    assert!(error.to_string().contains(":4: "), "{error}");
}

#[test]
fn a_key_that_occurs_twice_counts_last_and_stays_as_it_was() {
    let twice = says("user", "x").replace(r#""role":"user""#, r#""role":"user","role":"assistant""#);
    let s = session(&[twice], Exact);
    assert_eq!(s.live(), ["assistant: x"]);
    assert!(s.messages().next().unwrap()["extra"]["raw"].is_string());
}

#[test]
fn identical_lines_are_two_items_and_order_is_that_of_the_file() {
    let late = says("user", "b").replace("03:04:06", "01:00:00");
    assert_eq!(
        session(&[says("user", "a"), says("user", "a"), late], Exact).live(),
        ["user: a", "user: a", "user: b"]
    );
}

#[test]
fn a_replacement_history_is_the_history() {
    let kept = json!([
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "q1"}]},
        {"type": "ghost_snapshot"},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "sum"}]},
    ]);
    let lines =
        [says("user", "q1"), says("assistant", "a1"), compacted("sum", Some(kept)), says("user", "q2")];
    let s = session(&lines, Exact);
    assert_eq!(s.live(), ["user: q1", "summary: sum", "user: q2"]);
    assert_eq!(s.dropped("compacted"), ["user: q1", "assistant: a1"]);
    let made: Vec<_> = s.messages().filter(|m| m["line"] == 4).map(|m| m["part"].as_u64()).collect();
    assert_eq!(made, [Some(0), Some(1)]);
    let s = session(&lines, Full);
    assert_eq!(s.live(), ["user: q1", "assistant: a1", "user: q2"]);
    assert_eq!(s.dropped("compacted"), ["summary: sum"]);
}

#[test]
fn a_malformed_compaction_is_lost_as_a_whole() {
    let bad = json!([{"type": "message", "role": "user", "content": "text"}]);
    for broken in [
        compacted("s", Some(bad)),
        compacted("s", Some(json!([{}]))),
        line("compacted", json!({"message": null})),
    ] {
        let s = session(&[says("user", "q1"), broken, says("user", "q2")], Exact);
        assert_eq!(s.live(), ["user: q1", "user: q2"]);
        assert_eq!(s.problems("lost"), 1);
    }
    let empty = session(&[says("user", "q1"), compacted("s", Some(json!([])))], Exact);
    assert_eq!(empty.live(), [""; 0]);
}

#[test]
fn a_compaction_without_history_keeps_prompts_and_its_message() {
    let image = item(json!({"type": "message", "role": "user", "content": [
        {"type": "input_text", "text": "see"}, {"type": "input_image", "image_url": "data:image/png;base64,aGk="}]}));
    let lines = [
        says("user", "<environment_context>x</environment_context>"),
        image,
        says("assistant", "a"),
        compacted("", None),
    ];
    let s = session(&lines, Exact);
    assert_eq!(s.live(), ["user: see", "summary: (no summary available)"]);
    assert_eq!(s.dropped("compacted").len(), 3);
}

#[test]
fn the_prompt_that_exceeds_twenty_thousand_tokens_is_cut_in_the_middle() {
    let long = format!("{}é{}", "a".repeat(50_000), "b".repeat(50_000));
    let lines = [
        says("user", "dropped"),
        says("user", &long),
        says("user", &"c".repeat(40_000)),
        compacted("sum", None),
    ];
    let s = session(&lines, Exact);
    let live: Vec<_> = s.messages().filter(|m| m["dropped"].is_null()).collect();
    assert_eq!(live.len(), 3);
    let parts: Vec<_> =
        live[0]["content"].as_array().unwrap().iter().map(|b| b["text"].as_str().unwrap()).collect();
    // 10,000 tokens are left: 20,000 bytes on either side of (100,002 - 40,000) / 4 tokens
    assert_eq!(parts, ["a".repeat(20_000).as_str(), "…15001 tokens truncated…", "b".repeat(20_000).as_str()]);
    assert_eq!(live[2]["content"], "sum");
}

#[test]
fn a_cut_falls_between_characters() {
    let lines = [says("user", &"é".repeat(41_001)), compacted("sum", None)];
    let s = session(&lines, Exact);
    let live: Vec<_> = s.messages().filter(|m| m["dropped"].is_null()).collect();
    let parts = live[0]["content"].as_array().unwrap();
    assert_eq!(parts[0]["text"], "é".repeat(20_000));
    assert_eq!(parts[1]["text"], "…501 tokens truncated…");
}

#[test]
fn rollbacks_count_prompts_and_take_context_along() {
    let context = says("user", "<environment_context>new</environment_context>");
    let lines = [
        says("user", "q1"),
        says("assistant", "a1"),
        context,
        says("user", "q2"),
        says("assistant", "a2"),
        rolls_back(json!(1)),
        says("user", "q3"),
    ];
    let s = session(&lines, Exact);
    assert_eq!(s.live(), ["user: q1", "assistant: a1", "user: q3"]);
    assert_eq!(s.dropped("rolled_back").len(), 3);
    for (turns, left) in [(json!(0), 2), (json!(2), 0), (json!(9), 0), (json!("1"), 2), (json!(-1), 2)] {
        let s = session(&[says("user", "q1"), says("user", "q2"), rolls_back(turns.clone())], Exact);
        assert_eq!(s.live().len(), left, "{turns}");
    }
}

#[test]
fn a_rolled_back_compaction_gives_the_history_before_it_back() {
    let summary =
        json!([{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "sum"}]}]);
    let lines = [
        started("t1"),
        says("user", "q1"),
        complete("t1"),
        started("t2"),
        says("user", "q2"),
        compacted("sum", Some(summary)),
        complete("t2"),
        rolls_back(json!(1)),
    ];
    let s = session(&lines, Exact);
    assert_eq!(s.live(), ["user: q1"]);
    assert_eq!(s.dropped("rolled_back"), ["user: q2", "summary: sum"]);
    // a compaction by message alone is applied all the same, and its message counts as a prompt
    let lines = [
        started("t1"),
        says("user", "q1"),
        complete("t1"),
        started("t2"),
        says("user", "q2"),
        compacted("sum", None),
        complete("t2"),
        rolls_back(json!(1)),
    ];
    assert_eq!(session(&lines, Exact).live(), ["user: q1", "user: q2"]);
}

#[test]
fn an_unreadable_summary_brings_the_originals_back() {
    let secret = json!([
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "q1"}]},
        {"type": "compaction", "encrypted_content": "xyz"},
    ]);
    let lines = [
        says("user", "q1"),
        says("assistant", "a1"),
        compacted("", Some(secret.clone())),
        says("user", "q2"),
    ];
    assert_eq!(session(&lines, Exact).live(), ["user: q1", "summary: *", "user: q2"]);
    let s = session(&lines, Active);
    assert_eq!(s.live(), ["user: q1", "assistant: a1", "user: q2"]);
    assert_eq!(s.dropped("unreadable"), ["summary: *"]);
    assert_eq!((s.problems("rescued"), s.problems("unreadable")), (1, 1));
    // nothing stands before it: what it kept is all there is
    let s = session(&[compacted("", Some(secret)), says("user", "q2")], Active);
    assert_eq!(s.live(), ["user: q1", "user: q2"]);
    assert_eq!(s.dropped("unreadable"), ["summary: *"]);
}

#[test]
fn outputs_that_nothing_called_for_stay_away_in_the_exact_view() {
    let lines = [
        answers("none", json!("r")),
        calls("a", "f", "{}"),
        item(json!({"type": "custom_tool_call_output", "call_id": "a", "output": "wrong kind"})),
        calls("b", "f", "{}"),
        answers("b", json!("r")),
    ];
    let s = session(&lines, Exact);
    assert_eq!(
        s.live(),
        ["tool_call a: {}", "tool_result a: aborted", "tool_call b: {}", "tool_result b: r"]
    );
    assert_eq!(s.problems("orphan_result"), 2);
    assert_eq!(session(&lines, Active).live().len(), 5);
}

#[test]
fn every_kind_of_call() {
    let lines = [
        calls("a", "exec_command", r#"{"cmd":"ls"}"#),
        calls("b", "mcp__docs__find", r#"{ "q" : 1.5 }"#),
        calls("c", "free", "not json"),
        calls("d", "number", "12"),
        item(json!({"type": "custom_tool_call", "name": "apply_patch", "input": "*** x\n", "call_id": "e"})),
        item(
            json!({"type": "local_shell_call", "id": "ls1", "call_id": null, "status": "completed", "action": {"type": "exec", "command": ["ls"], "timeout_ms": null}}),
        ),
        item(
            json!({"type": "web_search_call", "status": "completed", "action": {"type": "search", "query": "q"}}),
        ),
        item(
            json!({"type": "tool_search_call", "call_id": "t", "execution": "client", "arguments": {"query": "x"}}),
        ),
        item(
            json!({"type": "tool_search_output", "call_id": "t", "execution": "client", "status": "completed", "tools": []}),
        ),
        item(
            json!({"type": "image_generation_call", "id": "ig", "status": "completed", "result": "aGk=", "revised_prompt": "p"}),
        ),
    ];
    let s = session(&lines, Active);
    let picture = s.messages().last().unwrap();
    assert_eq!(
        (&picture["role"], &picture["content"][0]["source"]["data"]),
        (&json!("assistant"), &json!("aGk="))
    );
    let exact = session(&lines, Exact);
    assert_eq!(exact.messages().last().unwrap()["input"]["result"], "[picture of 3 bytes: not carried over]");
    let seen: Vec<_> = s
        .messages()
        .filter(|m| m["role"] != "assistant")
        .map(|m| {
            (brief(m), m["tool_name"].clone(), m["metadata"]["kind"].clone(), m["metadata"]["server"] == true)
        })
        .collect();
    let expect = [
        ("tool_call a: {\"cmd\":\"ls\"}", "exec_command", "function", false),
        ("tool_call b: {\"q\":1.5}", "mcp__docs__find", "mcp", false),
        ("tool_call c: \"not json\"", "free", "function", false),
        ("tool_call d: \"12\"", "number", "function", false),
        ("tool_call e: \"*** x\\n\"", "apply_patch", "custom", false),
        ("tool_call ls1: {\"command\":[\"ls\"],\"type\":\"exec\"}", "local_shell", "local_shell", false),
        ("tool_call line_8: {\"query\":\"q\",\"type\":\"search\"}", "web_search", "web_search", true),
        ("tool_call t: {\"query\":\"x\"}", "tool_search", "tool_search", false),
        ("tool_result t: []", "tool_search", "tool_search", false),
        ("tool_call ig: {\"revised_prompt\":\"p\"}", "image_generation", "image_generation", true),
    ];
    for ((brief, name, kind, server), (e_brief, e_name, e_kind, e_server)) in seen.iter().zip(expect) {
        assert_eq!(
            (brief.as_str(), name, kind, *server),
            (e_brief, &json!(e_name), &json!(e_kind), e_server)
        );
    }
    assert_eq!(seen.len(), expect.len());
    let extra = |n: usize| s.messages().nth(n).unwrap()["extra"]["payload"]["arguments"].clone();
    assert!(extra(0).is_null() && extra(2).is_null());
    // would not come back from its value
    assert_eq!(extra(1), r#"{ "q" : 1.5 }"#);
}

#[test]
fn outputs_tell_how_they_ended() {
    let wrapped = r#"{"output":"a\n\"b\"\t\\","metadata":{"exit_code":3,"duration_seconds":0.1}}"#;
    let lines = [
        answers("1", json!("Exit code: 3\nWall time: 0.1 seconds\nOutput:\nx")),
        answers(
            "2",
            json!(
                "Chunk ID: x\nWall time: 0.0 seconds\nProcess exited with code 0\nOutput:\nProcess exited with code 9"
            ),
        ),
        answers("3", json!(wrapped)),
        answers("4", json!("unsupported call: x")),
        answers("5", json!("whatever")),
        answers(
            "6",
            json!([{"type": "input_text", "text": "Exit code: 0\n"}, {"type": "input_image", "image_url": "data:image/png;base64,aGk=", "detail": "high"}, {"type": "input_image", "image_url": "https://example.invalid/a.png"}]),
        ),
    ];
    let s = session(&lines, Active);
    let seen: Vec<_> =
        s.messages().map(|m| (m["status"].as_str().unwrap(), m["exit_code"].as_i64())).collect();
    assert_eq!(
        seen,
        [
            ("error", Some(3)),
            ("ok", Some(0)),
            ("error", Some(3)),
            ("error", None),
            ("unknown", None),
            ("ok", Some(0))
        ]
    );
    assert_eq!(s.messages().nth(2).unwrap()["content"], "a\n\"b\"\t\\");
    let images = &s.messages().nth(5).unwrap()["content"];
    assert_eq!(images[1]["source"], json!({"type": "base64", "media_type": "image/png", "data": "aGk="}));
    assert_eq!(images[2]["source"], json!({"type": "url", "url": "https://example.invalid/a.png"}));
}

#[test]
fn a_wrapper_that_would_not_come_back_stays() {
    for odd in [
        r#"{"output":"é","metadata":{}}"#,
        r#"{"output":"\u00e9","metadata":{}}"#,
        r#"{"output":"a"}"#,
        r#"{"output":"a","metadata":{}"#,
        r#"{"output":"\/","metadata":{}}"#,
    ] {
        let s = session(&[answers("1", json!(odd))], Active);
        let content = s.messages().next().unwrap()["content"].clone();
        assert_eq!(content == odd, odd != r#"{"output":"é","metadata":{}}"#, "{odd}");
    }
}

#[test]
fn harness_text_is_told_part_by_part() {
    let mixed = item(json!({"type": "message", "role": "user", "content": [
        {"type": "input_text", "text": "# AGENTS.md instructions for /w"},
        {"type": "input_text", "text": "<environment_context>x</environment_context>"},
        {"type": "input_text", "text": "real words"},
        {"type": "input_text", "text": "<turn_aborted>"},
    ]}));
    let s =
        session(&[mixed, says("developer", "<permissions instructions>"), says("developer", "plain")], Exact);
    let seen: Vec<_> = s
        .messages()
        .map(|m| (m["role"].as_str().unwrap(), m["harness"].as_str(), m["part"].as_u64()))
        .collect();
    assert_eq!(
        seen,
        [
            ("user", Some("environment"), Some(0)),
            ("user", None, Some(1)),
            ("user", Some("interrupt"), Some(2)),
            ("system", Some("environment"), None),
            ("system", None, None),
        ]
    );
    assert!(s.messages().nth(1).unwrap()["extra"].is_null());
}

#[test]
fn the_bare_format_of_2025() {
    let lines = [
        r#"{"id":"3619d75c-0000-4000-8000-000000000001","timestamp":"2025-08-19T08:31:17.621Z","instructions":null}"#,
        r#"{"record_type":"state"}"#,
        r#"{"type":"message","id":null,"role":"user","content":[{"type":"input_text","text":"<environment_context>\nCurrent working directory: /w/app\n</environment_context>"}]}"#,
        r#"{"type":"message","id":null,"role":"user","content":[{"type":"input_text","text":"q"}]}"#,
        r#"{"type":"reasoning","id":"r","summary":[{"type":"summary_text","text":"think"}],"content":null,"encrypted_content":null}"#,
        r#"{"type":"function_call","id":"f","name":"shell","arguments":"{\"command\":[\"ls\"]}","call_id":"c"}"#,
        r#"{"type":"function_call_output","call_id":"c","output":"{\"output\":\"a\\n\",\"metadata\":{\"exit_code\":0,\"duration_seconds\":0.1}}"}"#,
    ];
    let all = ["user: q", "reasoning: think", "tool_call c: {\"command\":[\"ls\"]}", "tool_result c: a\n"];
    let read = |history| {
        let options = ReadOptions { history, ..ReadOptions::default() };
        read_as(lines.join("\n").as_bytes(), &options)
    };
    for history in [Active, Full] {
        let s = read(history);
        assert_eq!(s.live(), all);
        assert_eq!(s.records[0]["working_directory"], "/w/app");
        assert_eq!(s.records[0]["session_id"], "3619d75c-0000-4000-8000-000000000001");
        assert_eq!(s.problems("rescued"), 1);
    }
    // no client from 0.47 on resumes it
    let s = read(Exact);
    assert_eq!(s.live(), [""; 0]);
    assert_eq!(s.problems("unknown_version"), 1);
    assert!(all.iter().all(|m| s.dropped("noise").iter().any(|d| d == m)));
}

#[test]
fn words_between_agents_are_notices_that_name_who_wrote_them() {
    let cipher = format!("gAAAAAB{}", "x".repeat(120));
    let from = |content: Value| {
        item(json!({"type": "agent_message", "author": "/root/w", "recipient": "/root", "content": content}))
    };
    let lines = [
        says("user", "go"),
        line(
            "inter_agent_communication",
            json!({"author": "/root", "recipient": "/root/w", "content": "do it"}),
        ),
        from(json!([{"type": "input_text", "text": "Sender: /root/w\nmerge now"}])),
        from(json!([{"type": "encrypted_content", "encrypted_content": cipher}])),
    ];
    let s = session(&lines, Active);
    let told: Vec<_> =
        s.messages().map(|m| (m["origin"].clone(), m["harness"].clone(), m["turn"].clone())).collect();
    let notice = (json!("harness"), json!("notice"), json!(1));
    assert_eq!(told, [(Value::Null, Value::Null, json!(1)), notice.clone(), notice.clone(), notice]);
    let text = s.records.iter().map(Value::to_string).collect::<String>();
    assert!(text.contains("[message of agent /root to /root/w]") && text.contains("do it"), "{text}");
    assert_eq!(
        s.messages().nth(2).unwrap()["content"],
        "Sender: /root/w\nmerge now",
        "its own words name the author"
    );
    let hidden = s.messages().nth(3).unwrap();
    assert!(!hidden["content"].to_string().contains("gAAAA"), "{hidden}");
    assert!(hidden["content"].to_string().contains("[encrypted: "), "{hidden}");
    assert_eq!(hidden["metadata"], json!({"author": "/root/w", "recipient": "/root"}));
    assert_eq!(s.problems("unreadable"), 1);
    let exact = session(&lines, Exact);
    assert!(!exact.messages().nth(3).unwrap()["content"].to_string().contains("gAAAA"));
    assert!(exact.messages().skip(1).all(|m| m["origin"] == "harness"));
}

#[test]
fn arguments_that_only_the_vendor_can_read_are_named() {
    let cipher = format!("gAAAAAB{}==", "x-_9".repeat(40));
    let arguments = json!({"task_name": "tests", "message": cipher}).to_string();
    let lines = [
        says("user", "go"),
        calls("s", "spawn_agent", &arguments),
        calls("t", "shell", &json!({"cmd": "ls"}).to_string()),
    ];
    let s = session(&lines, Active);
    let inputs: Vec<_> = s.messages().skip(1).map(|m| m["input"].clone()).collect();
    assert_eq!(
        inputs,
        [
            json!({"task_name": "tests", "message": "[encrypted: only the vendor of Codex can read it]"}),
            json!({"cmd": "ls"})
        ]
    );
    let exact = session(&lines, Exact);
    assert_eq!(exact.messages().nth(1).unwrap()["input"]["message"], json!(cipher));
}

#[test]
fn the_human_s_words_stand_apart_from_what_an_app_added() {
    let head = "# Context from my IDE setup:\n\n## Active selection of the file:\nlet x\n\n## My request for Codex:\n";
    let lines = [
        says("user", &format!("{head}Fix it.\n")),
        says("assistant", "ok"),
        says("user", &format!("{head}And test.")),
    ];
    let s = session(&lines, Active);
    let seen: Vec<_> =
        s.messages().map(|m| (m["harness"].clone(), m["turn"].clone(), m["content"].clone())).collect();
    let app = |turn: u64| (json!("expansion"), json!(turn), json!(head));
    let own = |turn: u64, text: &str| (Value::Null, json!(turn), json!(text));
    assert_eq!(seen, [app(1), own(1, "Fix it.\n"), own(1, "ok"), app(2), own(2, "And test.")]);
    // the client sends one message
    assert_eq!(session(&lines, Exact).live()[0], format!("user: {head}Fix it.\n"));
}

#[test]
fn a_search_without_id_has_the_output_behind_it() {
    let search = item(
        json!({"type": "tool_search_call", "id": "tsc", "call_id": null, "execution": "server", "arguments": {"query": "x"}}),
    );
    let found = item(
        json!({"type": "tool_search_output", "id": "tso", "call_id": null, "execution": "server", "status": "completed", "tools": [{"name": "f"}]}),
    );
    let s = session(&[says("user", "go"), search.clone(), found.clone(), search, found], Active);
    let ids: Vec<_> = s.messages().skip(1).map(|m| m["tool_call_id"].clone()).collect();
    assert_eq!(ids, ["tsc", "tsc", "tsc", "tsc"]);
    assert_eq!(s.messages().nth(2).unwrap()["content"], "[{\"name\":\"f\"}]");
}

#[test]
fn a_summary_without_history_is_kept_by_the_next_one() {
    let lines = [
        says("user", "q1"),
        line("compacted", json!({"message": "first"})),
        says("user", "q2"),
        line("compacted", json!({"message": "second"})),
    ];
    for view in [Active, Exact] {
        assert_eq!(
            session(&lines, view).live(),
            ["user: q1", "summary: first", "user: q2", "summary: second"]
        );
    }
}

#[test]
fn turns_and_groups() {
    let lines = [
        says("user", "q1"),
        calls("a", "f", "{}"),
        calls("b", "f", "{}"),
        answers("a", json!("r")),
        answers("b", json!("r")),
        says("assistant", "a1"),
        line("token_usage_record", json!({})),
        says("assistant", "a2"),
        says("user", "q2"),
    ];
    let s = session(&lines, Exact);
    let seen: Vec<_> = s
        .messages()
        .map(|m| {
            (m["seq"].as_u64().unwrap(), m["turn"].as_u64().unwrap(), m["group"].as_str().unwrap_or("-"))
        })
        .collect();
    assert_eq!(
        seen,
        [
            (1, 1, "-"),
            (2, 1, "g1"),
            (3, 1, "g1"),
            (4, 1, "-"),
            (5, 1, "-"),
            (6, 1, "g2"),
            (7, 1, "g3"),
            (8, 2, "-")
        ]
    );
    assert_eq!(s.messages().nth(3).unwrap()["tool_name"], "f");
}

#[test]
fn lines_that_an_earlier_relay_wrote() {
    let with = |line: String, relay: Value| {
        let mut value: Value = serde_json::from_str(&line).unwrap();
        value["relay"] = relay;
        value.to_string()
    };
    let note = item(
        json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": "n"}, {"type": "input_text", "text": "s"}]}),
    );
    let lines = [
        with(note, json!({"parts": ["note", "summary"]})),
        with(says("user", "old note"), json!({"note": true})),
        with(says("user", "/cmd"), json!({"harness": "command"})),
        with(
            calls("c", "exec_command", r#"{"cmd":"ls"}"#),
            json!({"tool_name": "Bash", "input": {"command": "ls"}, "tool_call_id": "toolu.1"}),
        ),
        with(answers("c", json!("r")), json!({"status": "error", "tool_call_id": "toolu.1"})),
    ];
    let s = session(&lines, Active);
    let seen: Vec<_> = s.messages().map(|m| (brief(m), m["origin"].as_str().unwrap_or("-"))).collect();
    assert_eq!(
        seen,
        [
            ("user: n".to_owned(), "relay"),
            ("summary: s".to_owned(), "relay"),
            ("user: old note".to_owned(), "relay"),
            ("user: /cmd".to_owned(), "harness"),
            ("tool_call toolu.1: {\"command\":\"ls\"}".to_owned(), "-"),
            ("tool_result toolu.1: r".to_owned(), "-"),
        ]
    );
    assert_eq!(s.messages().nth(4).unwrap()["tool_name"], "Bash");
    assert_eq!(s.messages().nth(5).unwrap()["status"], "error");
    let meta = META.replace(r#""source":"cli""#, r#""source":"cli","relay":{"relay_id":"r1","lineage":[{"relay_id":"r1","from":"claude","to":"codex","at":"2026-01-01T00:00:00Z","strategy":"whole"}]}"#);
    let s = read_as(meta.as_bytes(), &ReadOptions::default());
    assert_eq!(s.records[0]["lineage"][0]["from"], "claude");
}

#[test]
fn files_come_from_calls_that_worked() {
    let patch = "*** Begin Patch\n*** Add File: new.rs\n+x\n*** Update File: /abs/a.rs\n*** Move to: /abs/b.rs\n*** End Patch";
    let lines = [
        item(json!({"type": "custom_tool_call", "name": "apply_patch", "input": patch, "call_id": "p"})),
        item(json!({"type": "custom_tool_call_output", "call_id": "p", "output": "Exit code: 0\nOutput:\n"})),
        calls("s", "shell", r#"{"command":["bash","-lc","rm gone.txt"],"workdir":"/w/sub"}"#),
        answers("s", json!("Exit code: 0\n")),
        calls("t", "shell", r#"{"command":["touch","never.txt"]}"#),
        answers("t", json!("Exit code: 1\n")),
    ];
    let s = session(&lines, Active);
    let files: Vec<_> = s.records[0]["file_snapshot"]
        .as_array()
        .unwrap()
        .iter()
        .map(|f| (f["path"].as_str().unwrap(), f["status"].as_str().unwrap()))
        .collect();
    assert_eq!(
        files,
        [
            ("/w/app/new.rs", "created"),
            ("/abs/a.rs", "deleted"),
            ("/abs/b.rs", "created"),
            ("/w/sub/gone.txt", "deleted")
        ]
    );
}

#[test]
fn lean_is_the_live_conversation_alone() {
    let lines = [
        says("user", "q1"),
        says("user", "q2"),
        rolls_back(json!(1)),
        event(json!({"type": "token_count", "info": null})),
    ];
    let s = read_as(&file(&lines), &ReadOptions { lean: true, ..ReadOptions::default() });
    assert_eq!(s.records.len(), 3);
    assert!(s.records[1]["extra"].is_null());
    assert_eq!((&s.end()["messages"], &s.end()["live"]), (&json!(2), &json!(1)));
}

/// A store with a thread, the file that a rewind made, and a fork of it.
fn store() -> (tempfile::TempDir, [std::path::PathBuf; 3]) {
    let dir = tempfile::tempdir().unwrap();
    let day = dir.path().join("sessions/2026/01/02");
    std::fs::create_dir_all(&day).unwrap();
    let ids = [
        "019a0000-0000-7000-8000-00000000000a",
        "019a0000-0000-7000-8000-0000000000a2",
        "019a0000-0000-7000-8000-00000000000c",
    ];
    let names = [
        format!("rollout-2026-01-02T03-04-05-{}.jsonl", ids[0]),
        format!("rollout-2026-01-02T03-05-00-{}_{}.jsonl", ids[0], ids[1]),
        format!("rollout-2026-01-02T03-06-00-{}.jsonl", ids[2]),
    ];
    let base = |id: &str, end: usize| {
        format!(
            r#","history_base":{{"thread_id":"{id}","end_ordinal_exclusive":2,"end_byte_offset":{end}}},"source""#
        )
    };
    let first = file(&[says("user", "q1"), says("assistant", "a1")]);
    let whole = [first.clone(), (says("user", "taken back") + "\n").into_bytes()].concat();
    let second_meta = META.replace(r#","source""#, &base(ids[0], first.len()));
    let second = format!("{second_meta}\n{}\n", says("user", "q2")).into_bytes();
    let third_meta =
        META.replace("00000a\"", "00000c\"").replace(r#","source""#, &base(ids[1], second.len()));
    let third = format!("{third_meta}\n{}\n", says("user", "q3")).into_bytes();
    let paths = names.map(|n| day.join(n));
    for (path, bytes) in paths.iter().zip([whole, second, third]) {
        std::fs::write(path, bytes).unwrap();
    }
    (dir, paths)
}

fn read_path(path: &std::path::Path, place: Option<&std::path::Path>) -> Session {
    let mut out: Vec<Vec<u8>> = Vec::new();
    let options = ReadOptions { place: place.map(Path::to_owned), ..ReadOptions::default() };
    read(&Native::open(path).unwrap(), &options, &mut out).unwrap();
    Session { records: out.iter().map(|r| serde_json::from_slice(r).unwrap()).collect() }
}

#[test]
fn files_that_continue_each_other_are_one_history() {
    let (dir, [first, second, third]) = store();
    assert_eq!(read_path(&first, None).live(), ["user: q1", "assistant: a1", "user: taken back"]);
    let s = read_path(&second, None);
    assert_eq!(s.live(), ["user: q1", "assistant: a1", "user: q2"]);
    let q1 = s.messages().next().unwrap();
    assert!(q1["line"].is_null() && q1["extra"].is_null());
    assert_eq!(q1["metadata"]["segment_line"], 2);
    assert!(s.records.iter().filter(|r| r["type"] == "native").all(|r| r["line"] == 1));
    assert_eq!(read_path(&third, None).live(), ["user: q1", "assistant: a1", "user: q2", "user: q3"]);
    // the base may lie on another day, packed, or in the archive
    let archive = dir.path().join("archived_sessions");
    std::fs::create_dir_all(&archive).unwrap();
    let packed = zstd::encode_all(std::fs::read(&first).unwrap().as_slice(), 0).unwrap();
    std::fs::write(archive.join(format!("{}.zst", first.file_name().unwrap().to_str().unwrap())), packed)
        .unwrap();
    std::fs::remove_file(&first).unwrap();
    assert_eq!(read_path(&third, None).live().len(), 4);
}

#[test]
fn a_missing_or_circular_base_fails_with_a_hint() {
    let (_dir, [first, second, third]) = store();
    std::fs::remove_file(&second).unwrap();
    let s = read_path(&third, None);
    let failed = s.end()["failed"].as_str().unwrap();
    assert!(failed.contains("0000000000a2") && failed.contains("hint:"), "{failed}");
    assert_eq!(s.problems("missing_base"), 1);
    let own = std::fs::read_to_string(&third).unwrap().replace("0000000000a2", "00000000000c");
    std::fs::write(&third, own).unwrap();
    assert!(read_path(&third, None).end()["failed"].as_str().unwrap().contains("comes back"));
    assert!(read_path(&first, None).end()["failed"].is_null());
}

#[test]
fn titles_stand_in_the_index_of_the_store() {
    let (dir, [first, ..]) = store();
    let index = "{\"id\":\"019a0000-0000-7000-8000-00000000000a\",\"thread_name\":\"Old\"}\n{\"id\":\"other\",\"thread_name\":\"x\"}\n{\"id\":\"019a0000-0000-7000-8000-00000000000a\",\"thread_name\":\"New\"}\n";
    std::fs::write(dir.path().join("session_index.jsonl"), index).unwrap();
    assert_eq!(read_path(&first, None).records[0]["title"], "New");
}

#[test]
fn what_is_no_rollout_fails() {
    let s = read_as(b"{\n  \"session\": 1\n}\n", &ReadOptions::default());
    assert!(s.end()["failed"].is_string());
}

#[test]
fn rollouts_are_told_by_their_first_lines() {
    let bare = br#"{"id":"a","timestamp":"2025-08-19T08:31:17.621Z","instructions":null}"#;
    let cut = META.get(..META.len() - 40).unwrap().as_bytes();
    for head in [META.as_bytes(), bare, br#"{"record_type":"state"}"#, cut, says("user", "q").as_bytes()] {
        assert_eq!(detect(head), Detected::Yes);
    }
    let claude = br#"{"type":"user","uuid":"u","parentUuid":null,"message":{"role":"user","content":"x"}}"#;
    for head in [&b""[..], b"text", b"{}", claude, br#"{"type":"session","relay":1}"#] {
        assert_eq!(detect(head), Detected::No);
    }
    for head in ["{\n  \"session\": {\n    \"timestamp\"", "{\"session\":{\"timestamp\":\"x\"},\"items\":[]}"]
    {
        assert!(matches!(detect(head.as_bytes()), Detected::Unread { .. }), "{head}");
    }
}
