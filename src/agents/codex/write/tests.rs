use super::*;
use crate::stream::Source;
use serde_json::{Value as Json, json};
use std::collections::BTreeMap;
use std::path::Path;

/// One red pixel.
const PNG: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC";

struct Home(tempfile::TempDir);

impl Home {
    fn new() -> Home {
        Home(tempfile::tempdir().unwrap())
    }

    fn write(
        &self,
        records: &[Json],
        change: impl FnOnce(&mut WriteOptions),
    ) -> Result<(Written, Vec<Json>)> {
        let directory = self.0.path().canonicalize().unwrap();
        let variables = [
            ("CODEX_HOME", directory.join("codex").to_str().unwrap().to_owned()),
            ("RELAY_NOW", "2026-11-30T03:00:00Z".to_owned()),
            ("RELAY_SEED", "1".to_owned()),
            ("TZ", "America/New_York".to_owned()),
        ];
        let variables = variables.into_iter().map(|(k, v)| (k.into(), v.into())).collect();
        let world = World::new(variables, directory.clone()).unwrap();
        let mut options = WriteOptions { project: Some(directory), ..WriteOptions::default() };
        change(&mut options);
        let mut stream = Vec::new();
        for record in records {
            stream.extend_from_slice(record.to_string().as_bytes());
            stream.push(b'\n');
        }
        self.bytes(&stream, &options, &world)
    }

    fn bytes(&self, stream: &[u8], options: &WriteOptions, world: &World) -> Result<(Written, Vec<Json>)> {
        let mut writer = writer(options, world)?;
        let mut source = Source::new(stream, "test");
        while let Some(record) = source.next_record()? {
            writer.record(&record)?;
        }
        let written = writer.finish()?;
        let text = std::fs::read_to_string(&written.path).unwrap_or_default();
        Ok((written, text.lines().map(|l| serde_json::from_str(l).unwrap()).collect()))
    }
}

fn session() -> Json {
    json!({"type":"session","relay":1,"session_id":"src","source_agent":"claude","title":"A\ntitle"})
}

fn end() -> Json {
    json!({"type":"end","problems":[{"kind":"nul","count":2}]})
}

fn message(role: &str, content: Json) -> Json {
    json!({"type":"message","role":role,"content":content})
}

fn call(id: &str, name: &str, input: Json) -> Json {
    json!({"type":"message","role":"tool_call","tool_call_id":id,"tool_name":name,"input":input})
}

fn result(id: &str, content: Json) -> Json {
    json!({"type":"message","role":"tool_result","tool_call_id":id,"content":content})
}

fn image() -> Json {
    json!({"type":"image","source":{"type":"base64","media_type":"image/png","data":PNG}})
}

/// The history that the model gets, without the note.
fn history(lines: &[Json]) -> Vec<Json> {
    let items = lines.iter().filter(|l| l["type"] == "response_item" && l["relay"]["parts"].is_null());
    items.map(|l| l["payload"].clone()).collect()
}

fn events(lines: &[Json]) -> Vec<&str> {
    lines
        .iter()
        .filter(|l| l["type"] == "event_msg")
        .map(|l| l["payload"]["type"].as_str().unwrap())
        .collect()
}

#[test]
fn a_turn_has_its_items_and_its_events() {
    let home = Home::new();
    let mut dated = message("user", json!("one"));
    dated["timestamp"] = json!("2026-01-02T03:04:05.678Z");
    let records =
        [session(), dated, message("assistant", json!("two")), message("user", json!("three")), end()];
    let (written, lines) = home.write(&records, |_| {}).unwrap();
    let meta = &lines[0]["payload"];
    assert_eq!(lines[0]["type"], "session_meta");
    assert_eq!(
        (&meta["id"], &meta["originator"], &meta["source"]),
        (&json!(written.session_id), &json!("relay"), &json!("cli"))
    );
    assert_eq!(meta["relay"]["relay_id"], json!(written.relay_id));
    assert_eq!(meta["relay"]["lineage"][0]["strategy"], "whole");
    for key in ["model_provider", "base_instructions", "history_mode"] {
        assert!(meta[key].is_null(), "{key}");
    }
    assert!(lines.iter().all(|l| l["timestamp"].is_string() && l["type"] != "turn_context"));
    assert_eq!(lines.last().unwrap()["timestamp"], "2026-01-02T03:04:05.678Z");
    assert_eq!(
        history(&lines),
        [
            json!({"type":"message","role":"user","content":[{"type":"input_text","text":"one"}]}),
            json!({"type":"message","role":"assistant","content":[{"type":"output_text","text":"two"}]}),
            json!({"type":"message","role":"user","content":[{"type":"input_text","text":"three"}]}),
        ]
    );
    let turn = ["task_started", "user_message", "agent_message", "token_count", "task_complete"];
    let open = ["task_started", "user_message", "token_count", "task_complete"];
    assert_eq!(events(&lines), [&turn[..], &open[..]].concat());
    let counted = lines.iter().rev().find(|l| l["payload"]["type"] == "token_count").unwrap();
    assert_eq!(counted["payload"]["info"]["last_token_usage"]["total_tokens"], json!(written.tokens));
    assert!(written.tokens > 0 && written.messages == 3 && written.problems[0].kind == "nul");
    // local time, the day before
    let place = written.path.strip_prefix(written.directory.join("codex/sessions")).unwrap();
    let name = format!("2026/11/29/rollout-2026-11-29T22-00-00-{}.jsonl", written.session_id);
    assert_eq!(place, Path::new(&name));
    let index = std::fs::read_to_string(written.directory.join("codex/session_index.jsonl")).unwrap();
    let index: Json = serde_json::from_str(&index).unwrap();
    assert_eq!((&index["id"], &index["thread_name"]), (&json!(written.session_id), &json!("A title")));
}

#[test]
fn pairs_keep_one_id_that_the_api_takes() {
    let home = Home::new();
    let long = "x".repeat(65);
    let records = [
        session(),
        call("toolu_1", "Bash", json!({"command":"ls","description":"d"})),
        call("a.b", "no good/name", json!({"n":[1.50,"\"\\"]})),
        call(&long, "Read", Json::Null),
        call("c", "apply_patch", json!("*** free")),
        result("toolu_1", json!([{"type":"text","text":"x"},{"type":"text","text":"y"},{"type":"odd"}])),
        result("a.b", json!([{"type":"text","text":"see"}, image()])),
        result(&long, json!("")),
        result("c", Json::Null),
        end(),
    ];
    let mut records = records.to_vec();
    records[4]["metadata"] = json!({"kind":"custom"});
    records[5]["status"] = json!("error");
    let (written, lines) = home.write(&records, |_| {}).unwrap();
    let items = history(&lines);
    let good = |s: &str, max: usize| {
        (1..=max).contains(&s.len()) && s.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c))
    };
    for n in 0..4 {
        assert_eq!(items[n]["call_id"], items[n + 4]["call_id"]);
        assert!(
            good(items[n]["call_id"].as_str().unwrap(), 64) && good(items[n]["name"].as_str().unwrap(), 128)
        );
    }
    assert_eq!(
        (&items[0]["name"], &items[0]["arguments"]),
        (&json!("exec_command"), &json!("{\"cmd\":\"ls\"}"))
    );
    assert_eq!(items[1]["arguments"], json!("{\"n\":[1.5,\"\\\"\\\\\"]}"));
    assert_eq!(items[2]["arguments"], json!("{}"));
    assert_eq!((&items[3]["type"], &items[3]["input"]), (&json!("custom_tool_call"), &json!("*** free")));
    assert_eq!(items[4]["output"], json!("x\ny\n[odd block {\"type\":\"odd\"}]"));
    assert_eq!(
        items[5]["output"],
        json!([{"type":"input_text","text":"see"},{"type":"input_image","image_url":format!("data:image/png;base64,{PNG}")}])
    );
    assert_eq!((&items[7]["type"], &items[7]["output"]), (&json!("custom_tool_call_output"), &json!("")));
    let kept: Vec<_> = lines.iter().filter(|l| l["type"] == "response_item").map(|l| &l["relay"]).collect();
    assert_eq!(*kept[1], json!({"tool_name":"Bash","input":{"command":"ls","description":"d"}}));
    assert_eq!(*kept[2], json!({"tool_name":"no good/name","tool_call_id":"a.b"}));
    assert_eq!(*kept[5], json!({"status":"error"}));
    let renamed = written.problems.iter().find(|p| p.kind == problem::RENAMED_ID).unwrap();
    assert_eq!(renamed.count, 3);
    assert!(written.losses.iter().any(|l| l.contains("document or other block")), "{:?}", written.losses);
    let (_, lines) = Home::new().write(&records, |o| o.keep_tool_names = true).unwrap();
    assert_eq!(history(&lines)[0]["name"], "Bash");
}

#[test]
fn each_role_has_its_place() {
    let home = Home::new();
    let harness = |kind: &str| {
        let mut m = message("user", json!(kind));
        m["origin"] = json!("harness");
        m["harness"] = json!(kind);
        m
    };
    let mut old_note = message("user", json!("[relay note old]"));
    old_note["origin"] = json!("relay");
    let mut ours = message("summary", json!("earlier: \"x\""));
    ours["origin"] = json!("relay");
    let mut gone = message("user", json!("gone"));
    gone["dropped"] = json!("trimmed");
    let mut server = call("s", "web_search", json!({"q":"x"}));
    server["metadata"] = json!({"server":true});
    let records = [
        session(),
        old_note,
        ours,
        gone,
        harness("environment"),
        harness("command"),
        message("user", json!("hi")),
        message("reasoning", json!("hm")),
        server,
        message("assistant", json!([{"type":"text","text":"a"}, image()])),
        message("assistant", json!(" \n")),
        message("system", json!("sys")),
        message("summary", json!("the source's own")),
        message(
            "user",
            json!([{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"AAAA"}}]),
        ),
        end(),
    ];
    let (written, lines) = home.write(&records, |_| {}).unwrap();
    let note = lines[1]["payload"]["content"].as_array().unwrap();
    assert_eq!(lines[1]["relay"]["parts"], json!(["note", "summary"]));
    assert!(note[0]["text"].as_str().unwrap().starts_with("[relay note relay_20261130_030000_"));
    assert!(note[0]["text"].as_str().unwrap().contains("1 message trimmed to fit"));
    assert_eq!(note[1]["text"], "earlier: \"x\"");
    let told: Vec<(String, String)> = history(&lines)
        .iter()
        .map(|i| {
            let c = &i["content"][0];
            (
                i["role"].as_str().unwrap().to_owned(),
                c["text"].as_str().or(c["image_url"].as_str()).unwrap().to_owned(),
            )
        })
        .collect();
    let told: Vec<_> = told.iter().map(|(r, t)| (r.as_str(), t.as_str())).collect();
    let picture = format!("data:image/png;base64,{PNG}");
    assert_eq!(
        told,
        [
            ("user", "command"),
            ("user", "hi"),
            ("assistant", "[tool run by the server: web_search {\"q\":\"x\"}]"),
            ("assistant", "a"),
            ("user", picture.as_str()),
            ("developer", "sys"),
            ("user", "the source's own"),
            ("user", "[document application/pdf, 3 bytes: not carried over]"),
        ]
    );
    let prompts = lines.iter().filter(|l| l["payload"]["type"] == "user_message");
    assert_eq!(prompts.map(|l| l["payload"]["message"].as_str().unwrap()).next(), Some("hi"));
    assert_eq!(written.dropped, 1);
    assert_eq!(lines[0]["payload"]["relay"]["lineage"][0]["strategy"], "summarized");

    let (_, lines) = Home::new().write(&records, |o| o.note = false).unwrap();
    assert_eq!(lines[1]["relay"]["parts"], json!(["summary"]));
}

#[test]
fn dialogue_is_text_alone() {
    let home = Home::new();
    let records = [
        session(),
        message("user", json!([{"type":"text","text":"hi"}, image()])),
        call("c", "Bash", json!({"command":"ls"})),
        result("c", json!("out")),
        end(),
    ];
    let (written, lines) = home.write(&records, |o| o.dialogue_only = true).unwrap();
    assert_eq!(
        history(&lines),
        [json!({"type":"message","role":"user","content":[{"type":"input_text","text":"hi"}]})]
    );
    assert_eq!(written.losses, ["2 tool calls and results", "1 image"]);
    let tools = [session(), call("c", "Bash", json!({})), result("c", json!("")), end()];
    let refused = home.write(&tools, |o| o.dialogue_only = true).unwrap_err();
    assert_eq!(refused.exit_code(), 3);
}

#[test]
fn a_line_with_a_lone_surrogate_is_not_lost() {
    let home = Home::new();
    let directory = home.0.path().to_owned();
    let options = WriteOptions {
        project: Some(directory.clone()),
        output: Some("o.jsonl".into()),
        ..WriteOptions::default()
    };
    let world = World::new(BTreeMap::new(), directory).unwrap();
    let stream = format!(
        "{}\n{}\n{}\n",
        session(),
        r#"{"type":"message","role":"user","content":"a\ud83db\u0000"}"#,
        end()
    );
    let (written, lines) = home.bytes(stream.as_bytes(), &options, &world).unwrap();
    assert_eq!(history(&lines)[0]["content"][0]["text"], "a\u{fffd}b\0");
    assert!(written.problems.iter().any(|p| p.kind == problem::SURROGATE) && written.resume.is_empty());
}

#[test]
fn a_writer_that_is_dropped_leaves_nothing() {
    let home = Home::new();
    for records in [
        vec![session(), message("user", json!("x"))],
        vec![session(), message("reasoning", json!("x")), end()],
    ] {
        assert!(home.write(&records, |_| {}).is_err());
        assert_eq!(std::fs::read_dir(home.0.path()).unwrap().count(), 0);
    }
}
