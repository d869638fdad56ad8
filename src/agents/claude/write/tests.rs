use super::*;
use crate::agents::claude::{Claude, line};
use crate::agents::{Agent, ReadOptions};
use crate::stream::{Native, Source};
use serde_json::{Value as Json, json};

/// One red pixel.
const PNG: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC";

struct Home(tempfile::TempDir);

impl Home {
    fn new() -> Home {
        Home(tempfile::tempdir().unwrap())
    }

    fn world(&self) -> World {
        let variables = [
            ("CLAUDE_CONFIG_DIR", self.0.path().join("claude").to_str().unwrap().to_owned()),
            ("RELAY_NOW", "2026-11-30T03:00:00Z".to_owned()),
        ];
        let variables = variables.into_iter().map(|(k, v)| (k.into(), v.into())).collect();
        World::new(variables, self.0.path().to_owned()).unwrap()
    }

    fn write(
        &self,
        records: &[Json],
        change: impl FnOnce(&mut WriteOptions),
    ) -> Result<(Written, Vec<Json>)> {
        let stream: String = records.iter().map(|r| format!("{r}\n")).collect();
        self.bytes(stream.as_bytes(), change)
    }

    fn bytes(&self, stream: &[u8], change: impl FnOnce(&mut WriteOptions)) -> Result<(Written, Vec<Json>)> {
        let directory = self.0.path().canonicalize().unwrap();
        let mut options = WriteOptions { project: Some(directory), ..WriteOptions::default() };
        change(&mut options);
        let world = self.world();
        let mut writer = writer(&options, &world)?;
        let mut source = Source::new(stream, "test");
        while let Some(record) = source.next_record()? {
            writer.record(&record)?;
        }
        let written = writer.finish()?;
        let text = std::fs::read_to_string(&written.path).unwrap_or_default();
        Ok((written, text.lines().filter_map(|l| serde_json::from_str(l).ok()).collect()))
    }
}

/// The records that the reader makes of a written file.
fn read(path: &Path) -> Vec<Json> {
    let mut lines: Vec<Vec<u8>> = Vec::new();
    Claude.read(&Native::open(path).unwrap(), &ReadOptions::default(), &mut lines).unwrap();
    lines.iter().map(|l| serde_json::from_slice(l).unwrap()).collect()
}

fn live(records: &[Json]) -> Vec<&Json> {
    records.iter().filter(|r| r["type"] == "message" && r["dropped"].is_null()).collect()
}

fn session(agent: &str) -> Json {
    json!({"type":"session","relay":1,"session_id":"src","source_agent":agent,
        "created_at":"2026-01-02T03:04:05Z","git":{"branch":"main"}})
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
    json!({"type":"message","role":"tool_result","tool_call_id":id,"status":"ok","content":content})
}

fn grouped(mut record: Json, group: &str) -> Json {
    record["group"] = json!(group);
    record
}

/// The lines of the conversation, without the note.
fn said(lines: &[Json]) -> Vec<&Json> {
    lines.iter().filter(|l| !l["message"].is_null() && l["relay"]["note"].is_null()).collect()
}

const PATCH: &str =
    "*** Begin Patch\n*** Update File: src/lib.rs\n@@\n fn a() {\n-    1\n+    2\n }\n*** End Patch";

#[test]
fn one_chain_with_every_field_of_the_client() {
    let home = Home::new();
    let mut dated = message("assistant", json!("two"));
    dated["timestamp"] = json!("2026-01-02T03:05:00.678Z");
    let (written, lines) =
        home.write(&[session("codex"), message("user", json!("o\"ne")), dated, end()], |_| {}).unwrap();
    let folder = folder_name(&home.0.path().canonicalize().unwrap());
    let place =
        home.0.path().join("claude/projects").join(folder).join(format!("{}.jsonl", written.session_id));
    assert_eq!(written.path, place);
    assert_eq!(uuid::Uuid::try_parse(&written.session_id).unwrap().get_version_num(), 4);
    let tree: Vec<&Json> = lines.iter().filter(|l| l.get("uuid").is_some()).collect();
    let mut parent = Json::Null;
    for line in &tree {
        assert_eq!(line["parentUuid"], parent);
        parent = line["uuid"].clone();
        for (key, want) in [
            ("isSidechain", json!(false)),
            ("userType", json!("external")),
            ("entrypoint", json!("cli")),
            ("cwd", json!(home.0.path().canonicalize().unwrap())),
            ("sessionId", json!(written.session_id)),
            ("version", json!(VERSION)),
            ("gitBranch", json!("main")),
        ] {
            assert_eq!(line[key], want, "{key}");
        }
    }
    assert_eq!((tree.len(), tree[0]["type"].clone()), (3, json!("user")));
    assert_eq!(tree[1]["message"], json!({"role":"user","content":"o\"ne"}));
    let answer = &tree[2]["message"];
    assert_eq!(answer["content"], json!([{"type":"text","text":"two"}]));
    assert_eq!((&answer["stop_reason"], answer.get("model")), (&json!("end_turn"), None));
    assert!(answer["id"].as_str().unwrap().starts_with("msg_"));
    // all that the model is shown, within the few words by which the note may still grow
    let usage = &answer["usage"];
    let used = usage["input_tokens"].as_u64().unwrap() + usage["output_tokens"].as_u64().unwrap();
    assert!(used.abs_diff(written.tokens) < 40 && usage["output_tokens"] != 0, "{used} {}", written.tokens);
    assert_eq!(tree[0]["timestamp"], "2026-01-02T03:04:04.999Z");
    assert_eq!(tree[1]["timestamp"], "2026-01-02T03:04:05.000Z");
    assert_eq!(tree[2]["timestamp"], "2026-01-02T03:05:00.678Z");
    let [.., title, last] = lines.as_slice() else { panic!() };
    assert_eq!(*title, json!({"type":"custom-title","customTitle":"o\"ne","sessionId":written.session_id}));
    assert_eq!((&last["lastPrompt"], &last["leafUuid"]), (&json!("o\"ne"), &parent));
    let want = format!("&& claude --resume {}", written.session_id);
    assert!(written.resume.starts_with("cd -- '/") && written.resume.ends_with(&want), "{}", written.resume);
    assert_eq!((written.messages, written.problems[0].kind.as_str()), (2, "nul"));
}

#[test]
fn the_first_line_tells_of_every_relay_and_the_summary_stands_in_it() {
    let home = Home::new();
    let mut s = session("codex");
    s["lineage"] = json!([{"relay_id":"r0","from":"claude","to":"codex","at":"2026-01-01T00:00:00Z"}]);
    let mut old = message("user", json!("[relay note r0]\nold"));
    old["origin"] = json!("relay");
    let mut summary = message("summary", json!("what\ncame before"));
    summary["origin"] = json!("relay");
    let records = [s, old, summary, message("user", json!("go on")), end()];
    let (written, lines) = home.write(&records, |_| {}).unwrap();
    let blocks = lines[0]["message"]["content"].as_array().unwrap();
    assert_eq!(blocks.len(), 2);
    assert!(blocks[0]["text"].as_str().unwrap().starts_with(&format!("[relay note {}]", written.relay_id)));
    assert_eq!(blocks[1]["text"], "what\ncame before");
    assert_eq!(said(&lines).len(), 1);
    let back = read(&written.path);
    let ids: Vec<&Json> = back[0]["lineage"].as_array().unwrap().iter().map(|l| &l["relay_id"]).collect();
    assert_eq!(ids, [&json!("r0"), &json!(written.relay_id)]);
    assert_eq!(back[0]["lineage"][1]["strategy"], "summarized");
    let kinds: Vec<_> = live(&back).iter().map(|r| (r["role"].clone(), r["origin"].clone())).collect();
    let of = |role: &str, origin: Json| (json!(role), origin);
    assert_eq!(kinds, [of("user", json!("relay")), of("summary", json!("relay")), of("user", Json::Null)]);

    // handed on once more: one note, the same summary
    let stream: String = back.iter().map(|r| format!("{r}\n")).collect();
    let (again, lines) = home.bytes(stream.as_bytes(), |_| {}).unwrap();
    assert_eq!(lines[0]["message"]["content"][1]["text"], "what\ncame before");
    assert_eq!((said(&lines).len(), lines[0]["relay"]["lineage"].as_array().unwrap().len()), (1, 3));
    assert_ne!(again.relay_id, written.relay_id);
}

#[test]
fn dates_rise_from_line_to_line() {
    let home = Home::new();
    let dated = |text: &str, at: &str| json!({"type":"message","role":"user","content":text,"timestamp":at});
    let records = [
        session("codex"),
        message("user", json!("no date")),
        dated("later", "2026-01-02T03:05:00.678901Z"),
        message("assistant", json!([{"type":"text","text":"a"},{"type":"text","text":"b"}])),
        dated("back", "2025-01-01T00:00:00Z"),
        dated("no date at all", "yesterday"),
        end(),
    ];
    let (_, lines) = home.write(&records, |_| {}).unwrap();
    let dates: Vec<_> = lines.iter().filter_map(|l| l["timestamp"].as_str()).collect();
    let ends =
        ["04:04.999Z", "04:05.000Z", "05:00.678Z", "05:00.679Z", "05:00.680Z", "05:00.681Z", "05:00.682Z"];
    assert_eq!(dates, ends.map(|end| format!("2026-01-02T03:{end}")));
}

#[test]
fn calls_of_one_step_are_one_message() {
    let home = Home::new();
    let records = [
        session("codex"),
        message("user", json!("go")),
        message("assistant", json!("I look.")),
        call("a", "x", json!({})),
        call("b", "x", json!({})),
        result("a", json!("1")),
        result("b", json!("2")),
        grouped(call("c", "x", json!({})), "g1"),
        grouped(call("d", "x", json!({})), "g2"),
        result("c", json!("3")),
        result("d", json!("4")),
        grouped(message("assistant", json!("One.")), "g3"),
        grouped(message("assistant", json!("Two.")), "g4"),
        end(),
    ];
    let (_, lines) = home.write(&records, |_| {}).unwrap();
    let ids: Vec<&str> = said(&lines).iter().filter_map(|l| l["message"]["id"].as_str()).collect();
    let [look, a, b, c, d, one, two] = ids.as_slice() else { panic!("{ids:?}") };
    assert!(look == a && a == b && c == d && b != c && d != one && one != two, "{ids:?}");
    let tree = said(&lines);
    assert_eq!(tree[4]["sourceToolAssistantUUID"], tree[3]["uuid"]);
    assert_eq!(tree[2]["message"]["stop_reason"], "tool_use");
}

#[test]
fn calls_come_back_as_they_were() {
    let home = Home::new();
    let records = [
        session("codex"),
        message("user", json!("go")),
        call("p", "apply_patch", json!(PATCH)),
        call("s", "shell", json!({"command":["bash","-lc","ls -l"],"workdir":"/x"})),
        call("e", "exec_command", json!({"cmd":"ls"})),
        call("u", "update_plan", json!({"plan":[{"step":"a","status":"pending"}]})),
        call("bad id!", "no good/name", json!([1.50])),
        call("n", "nothing", Json::Null),
        json!({"type":"message","role":"tool_call","tool_call_id":"f","tool_name":"free","input":"te\nxt",
            "metadata":{"kind":"custom"}}),
        result("p", json!("ok")),
        result("s", json!("ok")),
        result("e", json!("ok")),
        result("u", json!("ok")),
        json!({"type":"message","role":"tool_result","tool_call_id":"bad id!","status":"error","content":"no"}),
        result("n", json!("ok")),
        json!({"type":"message","role":"tool_result","tool_call_id":"f","content":"ok"}),
        end(),
    ];
    let (written, lines) = home.write(&records, |_| {}).unwrap();
    let calls: Vec<_> = said(&lines)
        .iter()
        .map(|l| l["message"]["content"][0].clone())
        .filter(|b| b["type"] == "tool_use")
        .map(|b| (b["name"].as_str().unwrap().to_owned(), b["input"].clone()))
        .collect();
    let edit =
        json!({"file_path":"src/lib.rs","old_string":"fn a() {\n    1\n}","new_string":"fn a() {\n    2\n}"});
    let todo = json!({"todos":[{"content":"a","status":"pending","activeForm":"a"}]});
    for (got, want) in calls.iter().zip([
        ("Edit", edit),
        ("Bash", json!({"command":"ls -l"})),
        ("Bash", json!({"command":"ls"})),
        ("TodoWrite", todo),
        ("no_good_name", json!({"input":[1.5]})),
        ("nothing", json!({})),
        ("free", json!({"input":"te\nxt"})),
    ]) {
        assert_eq!((got.0.as_str(), &got.1), (want.0, &want.1));
    }
    assert_eq!(written.problems.iter().find(|p| p.kind == "renamed_id").unwrap().count, 2);
    let failed = said(&lines).iter().find(|l| l["message"]["content"][0]["is_error"] == true).unwrap()["message"]
        ["content"][0]["tool_use_id"]
        .clone();
    assert!(failed.as_str().unwrap().chars().all(|c| c.is_ascii_alphanumeric() || c == '_'));

    let back = read(&written.path);
    let tools = |records: &[Json]| -> Vec<Json> {
        let is_tool = |r: &&Json| r["role"] == "tool_call" || r["role"] == "tool_result";
        records
            .iter()
            .filter(is_tool)
            .map(|r| {
                let name = if r["role"] == "tool_call" { r["tool_name"].clone() } else { Json::Null };
                let status = r["status"].as_str().unwrap_or("unknown");
                let status = if r["role"] == "tool_call" { "" } else { status };
                json!([
                    r["role"],
                    r["tool_call_id"],
                    name,
                    r["input"],
                    r["content"],
                    status,
                    r["metadata"]["kind"]
                ])
            })
            .collect()
    };
    assert_eq!(tools(&back), tools(&records));
}

#[test]
fn what_is_not_the_users_is_marked_and_comes_back() {
    let home = Home::new();
    let harness = |kind: &str, text: &str| json!({"type":"message","role":"user","origin":"harness","harness":kind,"content":text});
    let records = [
        session("codex"),
        harness("environment", "left out"),
        message("system", json!("be kind")),
        harness("expansion", "a skill"),
        harness("notice", "a task ended"),
        message("summary", json!("earlier")),
        message("reasoning", json!("hm")),
        message("user", json!("go")),
        end(),
    ];
    let (written, lines) = home.write(&records, |_| {}).unwrap();
    let texts: Vec<&Json> = said(&lines).iter().map(|l| &l["message"]["content"]).collect();
    let system = json!([{"type":"text","text":"[system context]"},{"type":"text","text":"be kind"}]);
    assert_eq!(texts, [&system, &json!("a skill"), &json!("a task ended"), &json!("earlier"), &json!("go")]);
    assert_eq!(said(&lines)[1]["isMeta"], true);
    assert_eq!(written.losses.len(), 2);
    let back = read(&written.path);
    let got: Vec<_> = live(&back)
        .into_iter()
        .filter(|r| r["origin"] != "relay")
        .map(|r| json!([r["role"], r["harness"], r["content"]]))
        .collect();
    let want = [
        json!(["system", null, "be kind"]),
        json!(["user", "expansion", "a skill"]),
        json!(["user", "notice", "a task ended"]),
        json!(["summary", null, "earlier"]),
        json!(["user", null, "go"]),
    ];
    assert_eq!(got, want);
}

#[test]
fn images_go_where_the_api_takes_them() {
    let home = Home::new();
    let data = json!({"type":"image","source":{"type":"base64","media_type":"image/png","data":PNG}});
    let url = json!({"type":"image","source":{"type":"url","url":format!("data:image/png;base64,{PNG}")}});
    let far = json!({"type":"image","source":{"type":"url","url":"https://example.com/a.png"}});
    let text = json!({"type":"text","text":"see"});
    let records = [
        session("codex"),
        message("user", json!([text, url])),
        message("assistant", json!([text, data])),
        call("a", "x", json!({})),
        result("a", json!([text, data])),
        message("user", json!([far])),
        end(),
    ];
    let (_, lines) = home.write(&records, |_| {}).unwrap();
    let content: Vec<&Json> = said(&lines).iter().map(|l| &l["message"]["content"]).collect();
    assert_eq!(*content[0], json!([text, data]));
    assert_eq!(*content[1], json!([text]));
    assert_eq!(content[3][0]["content"], json!([text, data]));
    // the model's own image waits until the pair is closed
    assert_eq!((content[4], content[5]), (&json!([data]), &json!([far])));
}

#[test]
fn a_failed_call_has_text_alone_and_some() {
    let home = Home::new();
    let image = json!({"type":"image","source":{"type":"base64","media_type":"image/png","data":PNG}});
    let document = json!({"type":"document","source":{"type":"text","media_type":"text/plain","data":"x"}});
    let text = json!({"type":"text","text":"it failed"});
    let failed = |id: &str, content: Json| {
        let mut record = result(id, content);
        record["status"] = json!("error");
        record
    };
    let records = [
        session("codex"),
        message("user", json!("look")),
        call("a", "x", json!({})),
        call("b", "x", json!({})),
        failed("a", json!([text, image, document])),
        failed("b", json!([image])),
        call("c", "x", json!({})),
        failed("c", json!(" ")),
        end(),
    ];
    let (written, lines) = home.write(&records, |_| {}).unwrap();
    let lines = said(&lines);
    let content: Vec<&Json> = lines.iter().map(|l| &l["message"]["content"]).collect();
    let result = |n: usize| (&content[n][0]["content"], &content[n][0]["is_error"]);
    assert_eq!(result(3), (&json!("it failed"), &json!(true)));
    assert_eq!(result(4), (&json!(NO_OUTPUT), &json!(true)));
    // behind the results, before the next message
    assert_eq!(*content[5], json!([image, document, image]));
    assert_eq!(content[6][0]["id"], "c");
    // that it failed without a word is told to the next relay only
    assert_eq!(result(7), (&json!(" "), &Json::Null));
    assert_eq!(lines[7]["relay"]["status"], "error");
    assert!(written.losses.iter().any(|l| l.starts_with("3 images or documents")), "{:?}", written.losses);
    let records = read(&written.path);
    let back = live(&records);
    let last = back.last().unwrap();
    assert_eq!((&last["content"], &last["status"]), (&json!(" "), &json!("error")));
}

#[test]
fn documents_have_the_keys_that_the_api_knows() {
    let home = Home::new();
    let pdf = json!({"type":"base64","media_type":"application/pdf","data":"JVBERi0xLjQK"});
    let given = json!([
        {"type":"document","source":pdf,"title":"","context":"c","cache_control":{"type":"ephemeral"},"x":1},
        {"type":"document","source":{"type":"url","url":"https://a.b/c.pdf","y":1},"title":"t"},
        {"type":"document","source":{"type":"url","url":"http://a.b/c.pdf"}},
    ]);
    let records = [session("codex"), message("user", given), end()];
    let (_, lines) = home.write(&records, |_| {}).unwrap();
    let want = json!([
        {"type":"document","source":pdf,"context":"c"},
        {"type":"document","source":{"type":"url","url":"https://a.b/c.pdf"},"title":"t"},
        {"type":"text","text":"[document at http://a.b/c.pdf]"},
    ]);
    assert_eq!(said(&lines)[0]["message"]["content"], want);
}

#[test]
fn without_a_note_the_title_tells_of_the_relay() {
    let home = Home::new();
    let prompt = message("user", json!("hi"));
    let (written, lines) =
        home.write(&[session("codex"), prompt.clone(), end()], |o| o.note = false).unwrap();
    assert_eq!((&lines[0]["type"], &lines[1]["message"]["content"]), (&json!("custom-title"), &json!("hi")));
    assert!(lines[1]["parentUuid"].is_null());
    assert_eq!(read(&written.path)[0]["lineage"][0]["relay_id"], json!(written.relay_id));
    // a session that begins with the model needs a line of the user all the same
    let records = [session("codex"), message("assistant", json!("hi")), prompt, end()];
    let (_, lines) = home.write(&records, |o| o.note = false).unwrap();
    assert_eq!((&lines[0]["type"], &lines[1]["type"]), (&json!("user"), &json!("assistant")));
    assert_eq!(lines[1]["parentUuid"], lines[0]["uuid"]);
}

#[test]
fn nothing_is_written_without_a_conversation_or_over_a_file() {
    let home = Home::new();
    let e = home.write(&[session("codex"), end()], |_| {}).unwrap_err();
    assert_eq!(e.exit_code(), 3);
    let taken = home.0.path().join("taken");
    std::fs::write(&taken, "mine").unwrap();
    let records = [session("codex"), message("user", json!("hi")), end()];
    assert!(home.write(&records, |o| o.output = Some(taken.clone())).is_err());
    assert_eq!(std::fs::read_to_string(taken).unwrap(), "mine");
    assert!(!home.0.path().join("claude").exists());
}

#[test]
fn an_original_is_put_back_under_its_id() {
    let home = Home::new();
    let id = "7c1e0000-0000-4000-8000-0000000000bb";
    let uuid = |n: u32| format!("7c1e0000-0000-4000-8000-00000000000{n}");
    let tree = |n: u32, kind: &str, message: Json| {
        let parent = if n == 1 { Json::Null } else { json!(uuid(n - 1)) };
        json!({"parentUuid":parent,"isSidechain":false,"sessionId":id,"cwd":"/nowhere/p","type":kind,
            "message":message,"uuid":uuid(n),"timestamp":"2026-01-02T03:04:05.000Z"})
        .to_string()
    };
    let image = json!({"type":"image","source":{"type":"base64","media_type":"image/png","data":PNG}});
    let lines = [
        "{\"type\":\"mode\",\"mode\":\"normal\"}".to_owned(),
        tree(
            1,
            "user",
            json!({"role":"user","content":[{"type":"text","text":"see"}, image, image, "bare", image]}),
        ),
        "no JSON at all".to_owned(),
        tree(
            2,
            "assistant",
            json!({"id":"msg_1","role":"assistant","content":[
                {"type":"thinking","thinking":"","signature":"x"}, {"type":"redacted_thinking","data":"y"},
                {"type":"text","text":""}, {"type":"text","text":"t\u{e9}xt"}, {"type":"odd","n":1.50},
                {"type":"tool_use","id":"a","name":"Bash","input":null},
                {"type":"tool_use","id":"b","name":"Bash"}]}),
        ),
        tree(
            3,
            "user",
            json!({"role":"user","content":[{"type":"tool_result","tool_use_id":"b","content":[image]},
                {"type":"tool_result","tool_use_id":"a"}, {"type":"text","text":"and"}]}),
        ),
        "{\"type\":\"user\",\"uuid\":\"x\",\"message\":{\"content\":\"a\",\"content\":\"b\"}}".to_owned(),
        "{\"type\":\"system\",\"subtype\":\"local_command\",\"content\":\"<local-command-stdout>x\"}"
            .to_owned(),
    ];
    let source = home.0.path().join("projects/-nowhere-p").join(format!("{id}.jsonl"));
    std::fs::create_dir_all(source.parent().unwrap()).unwrap();
    std::fs::write(&source, lines.join("\n") + "\n").unwrap();
    let mut stream: Vec<Vec<u8>> = Vec::new();
    Claude.read(&Native::open(&source).unwrap(), &ReadOptions::default(), &mut stream).unwrap();
    let restore = |o: &mut WriteOptions| (o.restore, o.project) = (true, None);
    let (written, _) = home.bytes(&stream.join(&b'\n'), restore).unwrap();
    assert_eq!(written.path, home.0.path().join("claude/projects/-nowhere-p").join(format!("{id}.jsonl")));
    assert_eq!((written.session_id.as_str(), written.resume.as_str()), (id, ""));
    let back = std::fs::read_to_string(&written.path).unwrap();
    for (got, want) in back.lines().zip(&lines) {
        let value = |text: &str| serde_json::from_str::<Json>(text).ok();
        assert!(got == want || value(got).is_some() && value(got) == value(want), "{got}\n{want}");
    }
    assert_eq!(back.lines().count(), lines.len());
    // only where there is none
    assert!(home.bytes(&stream.join(&b'\n'), restore).unwrap_err().to_string().contains("exists"));
    // a stream without the source's lines cannot be restored
    let lean: Vec<_> = stream.iter().filter(|l| !l.starts_with(b"{\"type\":\"native\"")).cloned().collect();
    let elsewhere = |o: &mut WriteOptions| {
        restore(o);
        o.root = Some("other".into());
    };
    assert!(
        home.bytes(&lean.join(&b'\n'), elsewhere).unwrap_err().to_string().contains("line 1 of the source")
    );
    assert!(!home.0.path().join("other").exists());
}

#[test]
fn records_that_do_not_fit_are_refused() {
    let extra = |content: &str| {
        format!(
            "{{\"type\":\"message\",\"role\":\"user\",\"content\":\"x\",\"extra\":{{\"type\":\"user\",\"message\":{{\"content\":{content}}}}}}}"
        )
    };
    let restored = |records: &[&str]| {
        let records: Vec<&[u8]> = records.iter().map(|r| r.as_bytes()).collect();
        line(&records).map(|l| l.map(|l| String::from_utf8(l).unwrap())).map_err(|e| e.to_string())
    };
    let whole = extra("null");
    assert_eq!(restored(&[&whole]).unwrap().unwrap(), "{\"type\":\"user\",\"message\":{\"content\":\"x\"}}");
    assert!(restored(&[&extra("[{\"type\":\"text\",\"text\":null},null]")]).is_err());
    assert!(restored(&[&extra("[]")]).is_err());
    let made = whole.replacen("\"message\"", "\"message\",\"synthetic\":true", 1);
    assert_eq!(restored(&[&made]), Ok(None));
    assert_eq!(restored(&["{\"type\":\"native\",\"raw\":\"a\\nb\"}"]), Ok(Some("a\nb".to_owned())));
}

#[test]
fn the_title_is_what_the_human_said() {
    let ide = "# Context from my IDE setup:\n\n## Active file: a.py\n\n## My request for Codex:\n";
    let long = format!(
        "# Context from my IDE setup:\n{}## My request for Codex:\n",
        "def f(): pass\n".repeat(2_000)
    );
    for (first, title) in [
        (format!("{ide}round it\n"), "round it"),
        (format!("{long}round it"), "round it"),
        ("<ide_opened_file>a.py</ide_opened_file>\nround it".to_owned(), "round it"),
        ("round it\n\n<system-reminder>be brief</system-reminder>".to_owned(), "round it"),
        ("<command-message>fix</command-message>\n<command-name>/fix</command-name>\n<command-args>12</command-args>".to_owned(), "/fix 12"),
        // an editor's words without any of the human
        ("<ide_selection>x</ide_selection>".to_owned(), "and then?"),
    ] {
        let home = Home::new();
        for given in [None, Some(ide), Some("Rounding")] {
            let mut head = session("codex");
            head["title"] = json!(given.map(|t| t.replace('\n', " ")));
            let records =
                [head, message("user", json!(first)), message("assistant", json!("a")), message("user", json!("and then?")), end()];
            let (_, lines) = home.write(&records, |_| {}).unwrap();
            let [.., shown, last] = lines.as_slice() else { panic!() };
            let title = if given == Some("Rounding") { "Rounding" } else { title };
            assert_eq!((&shown["customTitle"], &last["lastPrompt"]), (&json!(title), &json!("and then?")));
        }
    }
}
