//! The filter as a whole, on made-up sessions.

use super::*;
use crate::stream::{Runner, Source};
use crate::tokens::Counter as _;
use serde_json::{Value as Json, json};

/// A stream of one session out of messages, each with its number.
fn stream(session: Json, messages: &[Json]) -> String {
    let mut out = format!("{session}\n");
    for (n, message) in messages.iter().enumerate() {
        let mut message = message.clone();
        let fields = message.as_object_mut().unwrap();
        fields.insert("type".into(), "message".into());
        fields.entry("seq").or_insert((n + 1).into());
        out.push_str(&format!("{message}\n"));
    }
    out + "{\"type\":\"end\"}\n"
}

fn session() -> Json {
    json!({"type":"session","relay":1,"session_id":"s","source_agent":"duck","working_directory":"/w"})
}

fn said(role: &str, content: &str) -> Json {
    json!({"role": role, "content": content})
}

/// A call and its result.
fn did(id: &str, name: &str, input: Json, status: &str, result: &str) -> [Json; 2] {
    [
        json!({"role":"tool_call","tool_call_id":id,"tool_name":name,"input":input}),
        json!({"role":"tool_result","tool_call_id":id,"tool_name":name,"status":status,"content":result}),
    ]
}

fn trimmed(mut message: Json) -> Json {
    message.as_object_mut().unwrap().insert("dropped".into(), "trimmed".into());
    message
}

fn through(filter: &mut Summarize, input: &str) -> Vec<Json> {
    let mut out: Vec<Vec<u8>> = Vec::new();
    let mut source = Source::new(input.as_bytes(), "stdin");
    while let Some(record) = source.next_record().unwrap() {
        filter.record(&record, &mut out).unwrap();
    }
    filter.end(&mut out).unwrap();
    out.iter().map(|line| serde_json::from_slice(line).unwrap()).collect()
}

fn summaries(records: &[Json]) -> Vec<String> {
    let ours =
        records.iter().filter(|r| r["role"] == "summary" && r["origin"] == "relay" && r["dropped"].is_null());
    ours.map(|r| r["content"].as_str().unwrap().to_owned()).collect()
}

fn all(max_tokens: u64) -> Options {
    Options { max_tokens: Some(max_tokens), all: true, ..Options::default() }
}

/// The summary of a whole session; empty when there is none.
fn told(messages: &[Json]) -> String {
    summaries(&through(&mut Summarize::new(all(2_000)), &stream(session(), messages)))
        .pop()
        .unwrap_or_default()
}

/// The same with the numbers of the records.
fn cited(messages: &[Json]) -> String {
    let options = Options { cite: true, ..all(2_000) };
    summaries(&through(&mut Summarize::new(options), &stream(session(), messages))).pop().unwrap_or_default()
}

fn busy() -> Vec<Json> {
    let mut all = vec![said("user", "Port the zq_importer to the new storage layer.")];
    all.extend(did(
        "1",
        "Write",
        json!({"file_path":"/w/src/new_file.rs","content":"fn made_here() {}"}),
        "ok",
        "",
    ));
    all.extend(did(
        "2",
        "Bash",
        json!({"command":"cargo test"}),
        "error",
        "error[E9]: wrong width\nExit code 1",
    ));
    all.push(said("assistant", "Root cause: the frame_header is too short."));
    all.push(said("user", "Never touch vendor/gen_file."));
    all.extend(did(
        "3",
        "Edit",
        json!({"file_path":"/w/src/io.rs","old_string":"a","new_string":"b"}),
        "ok",
        "",
    ));
    all.extend(did("4", "Bash", json!({"command":"cargo test"}), "ok", "fine"));
    all.extend(did(
        "5",
        "TodoWrite",
        json!({"todos":[{"content":"Write docs","status":"pending"}]}),
        "ok",
        "",
    ));
    all.push(said("user", "Which of the two variants?"));
    all
}

#[test]
fn every_section_says_how_things_stand_and_where_that_is_written() {
    let text = cited(&busy());
    for line in [
        "## Goal\n- Port the zq_importer to the new storage layer. (#1)",
        "## Newest request\n- Which of the two variants? (#14)",
        "## Where it stands\n> Root cause: the frame_header is too short.\n> (#6)",
        "## Pending\n- [ ] Write docs (#12)",
        "## Rules of the user\n- Never touch vendor/gen_file. (#7)",
        "- created `src/new_file.rs`: made_here (#2)",
        "- edited `src/io.rs` (#8)",
        "- ok `cargo test` ×2 → fine (#10)",
        "- resolved: `cargo test`: error[E9]: wrong width → ok now, after work on `src/io.rs` (#4, #5, #8, #11)",
        "## Environment\n- /w, duck (#0)",
    ] {
        assert!(text.contains(line), "{line:?} is not in\n{text}");
    }
    // for the agent the same without the numbers, which it never sees
    let plain = told(&busy());
    assert!(plain.contains("- Never touch vendor/gen_file.\n") && !plain.contains("(#"), "{plain}");
}

#[test]
fn what_was_done_for_the_open_request_is_told() {
    let mut all = vec![said("user", "Make the importer faster, please.")];
    all.extend(did("1", "Write", json!({"file_path":"/w/src/a.rs","content":"x"}), "ok", ""));
    all.push(said("user", "Now the exporter."));
    all.extend(did(
        "2",
        "Edit",
        json!({"file_path":"/w/src/b.rs","old_string":"a","new_string":"b"}),
        "ok",
        "",
    ));
    all.extend(did("3", "Bash", json!({"command":"make check"}), "error", "error: late"));
    all.extend(did("4", "Bash", json!({"command":"cat x"}), "ok", ""));
    let text = told(&all);
    let line = "- since then: changed `src/b.rs`; FAILED `make check`\n";
    assert!(text.contains(line), "{text}");
    // what is kept tells itself
    let kept: Vec<Json> =
        all.iter().enumerate().map(|(n, m)| if n < 3 { trimmed(m.clone()) } else { m.clone() }).collect();
    let out = through(&mut Summarize::new(Options::default()), &stream(session(), &kept));
    assert!(!summaries(&out)[0].contains("since then"));
}

#[test]
fn exact_values_stand_with_their_file_until_it_is_gone() {
    let mut all = vec![said("user", "Do it.")];
    let input = json!({"file_path":"/w/pond.toml","old_string":"port = 8080","new_string":"port = 9090"});
    all.extend(did("1", "Edit", input, "ok", ""));
    let patch = "*** Begin Patch\n*** Update File: src/io.css\n@@\n-a: #aa0011;\n+a: #bb0011;\n*** End Patch";
    all.extend(did("2", "apply_patch", json!({"input": patch}), "ok", ""));
    all.push(said("user", "Go on."));
    let text = told(&all);
    assert!(text.contains("- edited `/w/pond.toml`; now `port = 9090` (was 8080)"), "{text}");
    assert!(text.contains("- edited `src/io.css`; now `a: #bb0011;` (was #aa0011)"), "{text}");
    // what is no more has no values
    all.extend(did("3", "Bash", json!({"command": "rm src/io.css"}), "ok", ""));
    let text = told(&all);
    assert!(text.contains("deleted `src/io.css`") && !text.contains("bb0011"), "{text}");
}

#[test]
fn names_that_outputs_hold_again_and_again_are_told_where_they_stand() {
    let mut all = vec![said("user", "Look into it.")];
    for n in 1..6 {
        let input = json!({"file_path": format!("/w/src/part{n}.rs")});
        let result = format!("src/part1.rs:1: fn only_here_{n}() {{ frame_reader() }}");
        all.extend(did(&n.to_string(), "Read", input, "ok", &result));
        let input = json!({"file_path": format!("/w/src/part{n}.rs"), "old_string": "a", "new_string": "b"});
        all.extend(did(&format!("e{n}"), "Edit", input, "ok", ""));
    }
    all.extend((0..20).map(|n| said("assistant", &format!("Thought {n}."))));
    all.push(said("user", "Go on."));
    let text = cited(&all);
    assert!(text.contains(": frame_reader (#"), "{text}");
    assert_eq!(text.matches("frame_reader").count(), 1, "{text}");
    assert!(!text.contains("only_here") && !text.contains("part1.rs`: src"), "{text}");
}

#[test]
fn a_file_at_the_top_keeps_the_name_of_its_folder() {
    let mut all = vec![said("user", "Look into it.")];
    all.extend(did("1", "Write", json!({"file_path":"/home/w/README.md","content":"x"}), "ok", ""));
    all.extend(did("2", "Write", json!({"file_path":"/home/w/src/a.rs","content":"x"}), "ok", ""));
    let session = json!({"type":"session","relay":1,"session_id":"s","source_agent":"duck","working_directory":"/home/w"});
    let text =
        summaries(&through(&mut Summarize::new(super::tests::all(2_000)), &stream(session, &all))).remove(0);
    assert!(text.contains("created `…/w/README.md`\n") && text.contains("created `src/a.rs`\n"), "{text}");
}

#[test]
fn work_in_another_folder_is_told_from_there() {
    let mut all = vec![said("user", "Look into it.")];
    for n in 0..3 {
        let input = json!({"file_path": format!("/home/trees/pond/src/part{n}.rs"), "content": "x"});
        all.extend(did(&n.to_string(), "Write", input, "ok", ""));
    }
    all.extend(did("9", "Bash", json!({"command":"cd /home/trees/pond && cargo test"}), "ok", "3 passed"));
    let text = told(&all);
    for line in [
        "- created `src/part1.rs`\n",
        "- ok `cargo test` → 3 passed\n",
        "- the work is in /home/trees/pond, from",
    ] {
        assert!(text.contains(line), "{line:?} is not in\n{text}");
    }
}

#[test]
fn of_commands_that_differ_in_numbers_one_is_told() {
    let mut all = vec![said("user", "Count the ducks.")];
    for n in 0..30 {
        all.extend(did(&n.to_string(), "Bash", json!({"command": format!("count pond-{n}")}), "ok", ""));
    }
    all.extend(did("a", "Bash", json!({"command": "git add . && git commit -m x && git push"}), "ok", ""));
    all.extend(did("b", "Bash", json!({"command": "python3 - <<'E'\nprint(1)\nE"}), "ok", "1"));
    all.extend(did("c", "Bash", json!({"command": "head -1 go.mod"}), "ok", "go 1.19"));
    let text = told(&all);
    assert!(
        text.contains(
            "## Commands\n- ok `count pond-29` (and 29 like it)\n- ok `head -1 go.mod` → go 1.19\n\n"
        ),
        "{text}"
    );
}

#[test]
fn the_summary_stands_first_and_what_is_kept_stays_as_it_was() {
    let mut messages = busy();
    for message in messages.iter_mut().skip(1).take(9) {
        *message = trimmed(message.clone());
    }
    let input = stream(session(), &messages);
    let out = through(&mut Summarize::new(Options::default()), &input);
    assert_eq!(out[1]["role"], "summary");
    assert_eq!((&out[1]["synthetic"], &out[1]["seq"]), (&json!(true), &json!(1)));
    let lines: Vec<Json> = input.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    assert_eq!(out[0], lines[0]);
    assert_eq!(out[2..out.len() - 1], lines[1..lines.len() - 1]);
    assert_eq!((&out[out.len() - 1]["messages"], &out[out.len() - 1]["live"]), (&json!(15), &json!(6)));
    let text = out[1]["content"].as_str().unwrap();
    // the kept prompts are named, not told again; the plan is kept, too
    assert!(text.contains("kept below: Port the zq_importer"), "{text}");
    assert!(text.contains("Never touch vendor/gen_file.\n") && !text.contains("Write docs"), "{text}");
}

#[test]
fn nothing_left_out_needs_no_summary() {
    let input = stream(session(), &busy());
    let mut filter = Summarize::new(Options::default());
    let out = through(&mut filter, &input);
    assert_eq!(out, input.lines().map(|l| serde_json::from_str(l).unwrap()).collect::<Vec<Json>>());
    assert_eq!(filter.untouched(), 1);
}

#[test]
fn the_size_is_never_exceeded_and_the_same_input_gives_the_same_bytes() {
    let counter = Exact::o200k().unwrap();
    let mut messages = Vec::new();
    for n in 0..300 {
        messages
            .push(said("user", &format!("请修改 `value_{n}`，然后运行测试。Please keep name_{n} as it is.")));
        messages.extend(did(&n.to_string(), "Edit", json!({"file_path":format!("/w/a/f{n}.rs"),"old_string":"x","new_string":format!("call_of_{n}()")}), "ok", ""));
        messages.push(said(
            "assistant",
            &format!("The result of step_{n} is that it works. 结论是第 {n} 步没有问题。"),
        ));
    }
    let input = stream(session(), &messages);
    for size in [0, 1, 60, 200, 1_000, 4_000] {
        let out = through(&mut Summarize::new(all(size)), &input);
        let text = summaries(&out).pop().unwrap_or_default();
        assert!(counter.count(&text) <= size, "{size}");
        assert!(
            size < 1_000 || choose::cost(&counter, &text) > size * 8 / 10,
            "{size}: too little of it is used"
        );
        assert_eq!(out, through(&mut Summarize::new(all(size)), &input));
    }
}

#[test]
fn odd_sessions_are_summarised_or_left_alone() {
    let summary_of = |messages: &[Json]| told(messages);
    assert_eq!(summary_of(&[]), "");
    assert_eq!(summary_of(&[said("user", "")]), "");
    assert!(summary_of(&[said("user", "hello there")]).contains("## Goal\n- hello there\n"));
    let calls = did("1", "Read", json!({"file_path":"/w/a/b.rs"}), "ok", "x");
    // one look at a file is nothing to tell
    assert_eq!(summary_of(&calls), "");
    let twice =
        [calls.to_vec(), did("2", "Read", json!({"file_path":"/w/a/b.rs"}), "ok", "x").to_vec()].concat();
    assert!(summary_of(&twice).contains("not changed: `a/b.rs`"));
    // a result without call, a call without result, inputs of no known shape
    let odd = [
        json!({"role":"tool_result","tool_call_id":"9","content":null}),
        json!({"role":"tool_call","tool_call_id":"8","tool_name":null,"input":null}),
        json!({"role":"tool_call","tool_call_id":"7","tool_name":"Bash","input":{"command":[1,{}]}}),
        json!({"role":"assistant","content":[{"type":"image"},7,{"type":"text","text":"Seen: the odd_block."}]}),
    ];
    assert!(summary_of(&odd).contains("odd_block"));
}

#[test]
fn what_is_no_part_of_the_conversation_is_not_told() {
    let mut messages = vec![said("user", "The first_task.")];
    for (key, value) in
        [("dropped", "branch"), ("dropped", "rolled_back"), ("dropped", "sidechain"), ("origin", "harness")]
    {
        let mut message = said("user", &format!("Never use hidden_{value}."));
        message.as_object_mut().unwrap().insert(key.into(), value.into());
        message.as_object_mut().unwrap().insert("harness".into(), "environment".into());
        messages.push(message);
    }
    messages.push(said("system", "hidden_system rule"));
    messages.push(said("user", "The last_prompt."));
    assert!(!told(&messages).contains("hidden_"));
}

#[test]
fn a_value_that_was_taken_back_is_not_told() {
    let text = told(&[
        said("user", "Build it."),
        said("user", "Use code_old_7 as the queue name."),
        said("user", "No, not code_old_7: the queue name is code_new_8."),
        said("user", "Set the cache prefix to pre_one_1 for now."),
        said("user", "Change of plan, the cache prefix becomes pre_two_2."),
        said("user", "Go on."),
    ]);
    assert!(text.contains("code_new_8") && text.contains("pre_two_2"), "{text}");
    assert!(!text.contains("Use code_old_7") && !text.contains("pre_one_1"), "{text}");
}

#[test]
fn an_earlier_summary_is_merged_and_marked() {
    let first = told(&busy());
    let summary = json!({"role":"summary","origin":"relay","content":first});
    let note = json!({"role":"user","origin":"relay","content":"[relay note x]"});
    let mut messages = vec![note, summary];
    messages.push(said("user", "Now the other_module, please."));
    messages.extend(did(
        "1",
        "Edit",
        json!({"file_path":"/w/src/io.rs","old_string":"a","new_string":"b"}),
        "ok",
        "",
    ));
    let out = through(&mut Summarize::new(all(2_000)), &stream(session(), &messages));
    let texts = summaries(&out);
    assert_eq!(texts.len(), 1);
    assert_eq!((&out[2]["dropped"], &out[3]["dropped"]), (&json!("summarized"), &json!("summarized")));
    let text = &texts[0];
    assert!(
        text.contains("- Never touch vendor/gen_file.\n") && text.contains("Port the zq_importer"),
        "{text}"
    );
    // a file that changed since is told once, as it stands now
    assert_eq!(
        text.matches("src/io.rs").count() - text.matches("after work on `src/io.rs`").count(),
        1,
        "{text}"
    );
    assert!(out.iter().filter(|r| r["origin"] == "relay" && r["dropped"].is_null()).count() == 1);
}

#[test]
fn headings_are_in_the_language_of_the_user() {
    let text = told(&[
        said("user", "把导入器迁移到新的存储层，并保持旧命令行可用。"),
        said("user", "继续之前：你推荐哪个方案？"),
    ]);
    assert!(text.contains("## 目标") && text.contains("## 最新请求"), "{text}");
}

#[test]
fn json_has_every_section_whatever_there_is_to_tell() {
    let mut filter = Summarize::new(Options { format: Format::Json, ..all(2_000) });
    assert!(through(&mut filter, &stream(session(), &busy())).is_empty());
    let object: Json = serde_json::from_str(&filter.take_texts()[0]).unwrap();
    for key in [
        "goal",
        "open_request",
        "constraints",
        "decisions",
        "files",
        "commands",
        "errors",
        "plan",
        "findings",
        "environment",
    ] {
        assert!(object[key].is_array(), "{key}");
    }
    assert_eq!(object["goal"][0], json!({"text":"Port the zq_importer to the new storage layer.","seq":[1]}));
}

#[test]
fn the_reserve_of_relay_trim_counts_in_the_targets_tokens() {
    let mut start = session();
    start["budget"] =
        json!({"tokens":10_000,"summary_reserve":130,"note_reserve":0,"tokenizer":"estimate","factor":1300});
    let messages: Vec<Json> =
        (0..40).map(|n| trimmed(said("user", &format!("Keep name_of_{n} as it is, please.")))).collect();
    let out = through(&mut Summarize::new(Options::default()), &stream(start.clone(), &messages));
    let text = summaries(&out).pop().unwrap();
    assert!(Exact::o200k().unwrap().count(&text) <= 92, "{text}");
    // what `end` says in the end counts
    start["budget"]["summary_reserve"] = json!(4_000);
    let end = |reserve: u64| {
        let mut budget = start["budget"].clone();
        budget["summary_reserve"] = json!(reserve);
        let input = stream(start.clone(), &messages);
        input.replace("{\"type\":\"end\"}", &json!({"type":"end","budget":budget}).to_string())
    };
    let text = summaries(&through(&mut Summarize::new(Options::default()), &end(130))).pop().unwrap();
    assert!(Exact::o200k().unwrap().count(&text) <= 92, "{text}");
    let mut filter = Summarize::new(Options::default());
    assert!(summaries(&through(&mut filter, &end(20))).is_empty());
    assert_eq!(filter.take_warnings().len(), 1);
}

/// A command of the tests: keeps what it was given.
struct Fake(std::result::Result<&'static str, &'static str>, std::rc::Rc<std::cell::RefCell<Vec<u8>>>);

impl Runner for Fake {
    fn run(&mut self, _: &str, input: &[u8]) -> Result<Vec<u8>> {
        *self.1.borrow_mut() = input.to_vec();
        self.0.map(|text| text.as_bytes().to_vec()).map_err(Error::failed)
    }
}

fn exec(outcome: std::result::Result<&'static str, &'static str>) -> (String, String, Vec<String>) {
    let given = std::rc::Rc::default();
    let mut filter = Summarize::new(all(2_000)).with_exec(Exec {
        command: "x".into(),
        runner: Box::new(Fake(outcome, std::rc::Rc::clone(&given))),
        redact: Some(Box::new(|text| Ok(text.replace("gen_file", "<REDACTED>")))),
        transcript: 10_000,
    });
    let text = summaries(&through(&mut filter, &stream(session(), &busy()))).pop().unwrap();
    let input = String::from_utf8(given.borrow().clone()).unwrap();
    (text, input, filter.take_warnings())
}

#[test]
fn a_command_makes_prose_and_loses_no_facts() {
    const NOTE: &str = "## Goal\nPort it.\n## Newest request\nA choice.\n# Where it stands\nThe work on src/new_file.rs goes well.\n## Pending\nDocs.\n### **Rules of the user**\nSome.\n";
    let (text, input, warnings) = exec(Ok(NOTE));
    assert_eq!(warnings, [""; 0]);
    assert!(text.starts_with("Hand-over note in prose, made by a command of the user"), "{text}");
    assert!(input.contains("\n## Where it stands\n") && input.contains("At most 1200 tokens"), "{input}");
    assert!(text.contains("The work on src/new_file.rs goes well."), "{text}");
    // what the prose tells is not told again; what it does not is
    assert!(
        !text.contains("created `src/new_file.rs`") && text.contains("Never touch vendor/gen_file."),
        "{text}"
    );
    assert!(text.contains("## Newest request\n- Which of the two variants?"));
    assert!(
        input.contains("<ledger>") && input.contains("[call] Edit") && input.contains("[result] error[E9]"),
        "{input}"
    );
    assert!(!input.contains("gen_file"));
}

#[test]
fn a_command_that_fails_leaves_the_ledger() {
    for (outcome, why) in [
        (Err("no quota"), "no quota"),
        (Ok("  \n"), "it printed nothing"),
        // what is no note is not taken for one
        (
            Ok("I cannot help with that."),
            "it lacks: Goal, Newest request, Where it stands, Pending, Rules of the user",
        ),
    ] {
        let (text, _, warnings) = exec(outcome);
        assert!(text.contains("- created `src/new_file.rs`") && text.contains("made by rules"));
        assert!(warnings.len() == 1 && warnings[0].contains(why), "{warnings:?}");
    }
}
