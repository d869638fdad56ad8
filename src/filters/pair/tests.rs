use super::*;
use crate::stream::Source;
use proptest::prelude::*;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Runs a filter over lines; gives its lines.
fn through(filter: &mut Pair, lines: &[String]) -> Vec<String> {
    let text = lines.join("\n");
    let mut source = Source::new(text.as_bytes(), "test");
    let mut out: Vec<Vec<u8>> = Vec::new();
    while let Some(record) = source.next_record().unwrap() {
        filter.record(&record, &mut out).unwrap();
    }
    filter.end(&mut out).unwrap();
    out.into_iter().map(|l| String::from_utf8(l).unwrap()).collect()
}

fn run(orphans: Orphans, lines: &[String]) -> Vec<String> {
    through(&mut Pair::new(Options { orphans, check: false }), lines)
}

/// A session of these messages. Each is words: a role letter, then what it needs, see below.
///
/// `c:ID` call, `C:ID` call of the server, `r:ID` result, `R:ID` result of the server, `a` assistant, `t` reasoning, `u` prompt, `h` text
/// of the harness, `s` system, `n` native, `d` dropped message; `@G` gives it a group, `#N` a turn.
fn session(words: &str) -> Vec<String> {
    let mut lines = vec![json!({"type":"session","relay":1,"session_id":"s","source_agent":"x"}).to_string()];
    for (n, word) in words.split_whitespace().enumerate() {
        let (word, turn) = word.split_once('#').map_or((word, None), |(w, t)| (w, t.parse::<u64>().ok()));
        let (word, group) = word.split_once('@').map_or((word, None), |(w, g)| (w, Some(g)));
        let (kind, id) = word.split_once(':').unwrap_or((word, ""));
        let seq = n as u64 + 1;
        let mut record = match kind {
            "c" => json!({"role":"tool_call","tool_call_id":id,"tool_name":"Bash","input":{"n":seq}}),
            "C" => {
                json!({"role":"tool_call","tool_call_id":id,"tool_name":"search","input":{},"metadata":{"server":true}})
            }
            "r" => {
                json!({"role":"tool_result","tool_call_id":id,"tool_name":"Bash","status":"ok","content":format!("out {seq}")})
            }
            "R" => {
                json!({"role":"tool_result","tool_call_id":id,"tool_name":"search","content":"found","metadata":{"server":true}})
            }
            "a" => json!({"role":"assistant","content":format!("text {seq}")}),
            "t" => json!({"role":"reasoning","content":"hm"}),
            "u" => json!({"role":"user","content":"go on"}),
            "h" => json!({"role":"user","origin":"harness","harness":"notice","content":"note"}),
            "s" => json!({"role":"system","content":"be good"}),
            "d" => json!({"role":"tool_result","dropped":"branch","tool_call_id":"x","content":""}),
            "n" => json!({"type":"native","source_agent":"x","value":{"n":seq}}),
            other => panic!("{other}"),
        };
        if kind != "n" {
            record["type"] = "message".into();
            record["seq"] = seq.into();
            record["line"] = (seq * 10).into();
        }
        if let Some(group) = group {
            record["group"] = group.into();
        }
        if let Some(turn) = turn {
            record["turn"] = turn.into();
        }
        lines.push(record.to_string());
    }
    lines.push(json!({"type":"end","session_id":"s","messages":0,"live":0,"keep":[1]}).to_string());
    lines
}

fn parsed(lines: &[String]) -> Vec<Value> {
    lines.iter().map(|l| serde_json::from_str(l).unwrap()).collect()
}

/// What came out, in the words of [`session`]; marked records in brackets, made ones with a plus sign.
fn told(lines: &[String]) -> String {
    let mut words = Vec::new();
    for v in parsed(lines) {
        let id = v["tool_call_id"].as_str().unwrap_or_default();
        let mut word = match (v["type"].as_str().unwrap(), v["role"].as_str()) {
            ("native", _) => "n".to_owned(),
            ("message", Some("tool_call")) => format!("c:{id}"),
            ("message", Some("tool_result")) if v["dropped"] == "branch" => "d".to_owned(),
            ("message", Some("tool_result")) => format!("r:{id}"),
            ("message", Some("user")) if v["origin"] == "harness" => "h".to_owned(),
            ("message", Some("reasoning")) => "t".to_owned(),
            ("message", Some(role)) => role[..1].to_owned(),
            _ => continue,
        };
        if v["synthetic"] == true {
            word = format!("+{word}");
        }
        if v["dropped"] == "orphan" {
            word = format!("[{word}]");
        }
        words.push(word);
    }
    words.join(" ")
}

fn problems(lines: &[String]) -> BTreeMap<String, u64> {
    let end = parsed(lines).pop().unwrap();
    let all = end["problems"].as_array().cloned().unwrap_or_default();
    all.iter().map(|p| (p["kind"].as_str().unwrap().to_owned(), p["count"].as_u64().unwrap())).collect()
}

fn gives(orphans: Orphans, input: &str, output: &str, kinds: &[(&str, u64)]) {
    let out = run(orphans, &session(input));
    assert_eq!(told(&out), output, "{input}");
    let want: BTreeMap<String, u64> = kinds.iter().map(|(k, n)| ((*k).to_owned(), *n)).collect();
    assert_eq!(problems(&out), want, "{input}");
    assert_eq!(run(orphans, &out), out, "a second run of {input}");
}

#[test]
fn what_is_paired_passes_as_the_very_bytes() {
    for words in [
        "u a@g c:1@g c:2@g r:2 r:1 a u c:3 r:3 n d c:4 n r:4",
        "u c:1@g t@g c:2@g a@g n r:1 d r:2",
        "u C:1 a u c:2 r:2 C:9@g c:3@g r:3",
        "u C:1 R:1 a",
        "",
    ] {
        let mut lines = session(words);
        // white space and key order that no tool of ours writes
        for line in &mut lines {
            *line = line.replacen(",", " , ", 1);
        }
        for orphans in [Orphans::Text, Orphans::Stub, Orphans::Drop] {
            assert_eq!(run(orphans, &lines), lines);
        }
    }
}

#[test]
fn a_call_without_result() {
    let found = [("orphan_call", 1)];
    gives(Orphans::Text, "u c:1 a u", "u [c:1] +a a u", &found);
    gives(Orphans::Drop, "u c:1 a u", "u [c:1] a u", &found);
    gives(Orphans::Stub, "u c:1 n a u", "u c:1 n +r:1 a u", &found);
    gives(Orphans::Stub, "u c:1 n", "u c:1 n +r:1", &found);
}

#[test]
fn the_text_of_a_call_keeps_name_input_and_place() {
    let out = run(Orphans::Text, &session("u c:1@g#4"));
    let made = parsed(&out).into_iter().find(|v| v["synthetic"] == true).unwrap();
    assert_eq!(made["content"], "[tool call without result: Bash {\"n\":2}]");
    assert_eq!((&made["replaces"], &made["seq"], &made["turn"]), (&json!(2), &json!(2), &json!(4)));
    assert_eq!(
        (&made["group"], &made["origin"], &made["role"]),
        (&json!("g"), &json!(null), &json!("assistant"))
    );
    let end = parsed(&out).pop().unwrap();
    assert_eq!((&end["messages"], &end["live"], &end["keep"]), (&json!(3), &json!(2), &json!([1])));
    assert_eq!(end["problems"][0]["first"], json!([{"line":20,"note":"Bash 1"}]));
}

#[test]
fn input_that_is_text_stands_there_as_it_is() {
    let mut lines = session("u c:1");
    lines[2] = r#"{"type":"message","role":"tool_call","tool_call_id":"1","tool_name":"apply \"patch\"","input":"*** a\n\"b\" \ud83d\ude00"}"#.into();
    let out = run(Orphans::Text, &lines);
    let made = parsed(&out).into_iter().find(|v| v["synthetic"] == true).unwrap();
    assert_eq!(made["content"], "[tool call without result: apply \"patch\" *** a\n\"b\" 😀]");
}

#[test]
fn a_result_without_call() {
    let found = [("orphan_result", 1)];
    gives(Orphans::Text, "u r:1 a", "u [r:1] +h a", &found);
    gives(Orphans::Drop, "u r:1 a", "u [r:1] a", &found);
    gives(Orphans::Stub, "u r:1 a", "u +c:1 r:1 a", &found);
    // before its call is without call
    gives(Orphans::Text, "u r:1 c:1 a", "u [r:1] +h [c:1] +a a", &[("orphan_result", 1), ("orphan_call", 1)]);
}

#[test]
fn the_text_of_a_result_keeps_words_and_images() {
    let mut lines = session("u r:1 r:2 r:3");
    let image = r#"{"type":"image","source":{"type":"base64","media_type":"image/png","data":"aaaa"}}"#;
    lines[3] = format!(
        r#"{{"type":"message","role":"tool_result","tool_call_id":"2","tool_name":"Read","status":"error","content":[{image},{{"x": 1.50}}]}}"#
    );
    lines[4] = r#"{"type":"message","role":"tool_result","tool_call_id":"3","content":{"a":"b"}}"#.into();
    let out = run(Orphans::Text, &lines);
    let made: Vec<&String> = out.iter().filter(|l| l.contains("\"synthetic\"")).collect();
    let contents: Vec<Value> =
        made.iter().map(|l| serde_json::from_str::<Value>(l).unwrap()["content"].clone()).collect();
    assert_eq!(contents[0], "[tool result without call: Bash 1]\nout 2");
    assert_eq!(contents[1][0], json!({"type":"text","text":"[tool result without call: Read 2, failed]"}));
    assert!(made[1].ends_with(&format!(r#",{image},{{"x": 1.50}}]}}"#)));
    assert_eq!(contents[2], "[tool result without call: 3]\n{\"a\":\"b\"}");
}

#[test]
fn a_late_result_moves_to_its_group() {
    gives(Orphans::Text, "u c:1 n a d r:1 n a", "u c:1 n r:1 a d n a", &[("late_result", 1)]);
    gives(Orphans::Text, "u c:1@g c:2@g r:2 a r:1 u", "u c:1 c:2 r:2 r:1 a u", &[("late_result", 1)]);
    gives(Orphans::Text, "u c:1 a c:2 r:1 r:2", "u c:1 r:1 a c:2 r:2", &[("late_result", 1)]);
    // two messages of the model are two groups, text between calls parts them unless it is of their message
    gives(Orphans::Text, "c:1@g a c:2@g r:1 r:2", "c:1 r:1 a c:2 r:2", &[("late_result", 1)]);
    gives(Orphans::Text, "c:1@g c:2@g r:1 c:3@g r:2 r:3", "c:1 c:2 r:1 r:2 c:3 r:3", &[("late_result", 1)]);
    gives(Orphans::Text, "c:1 h s r:1", "c:1 r:1 h s", &[("late_result", 1)]);
}

#[test]
fn a_prompt_ends_the_wait_when_the_model_answers_it() {
    gives(Orphans::Text, "u c:1 u r:1 a", "u c:1 r:1 u a", &[("late_result", 1)]);
    gives(Orphans::Text, "u#1 c:1#1 u#1 a#1 r:1#1", "u c:1 r:1 u a", &[("late_result", 1)]);
    let late = [("orphan_call", 1), ("orphan_result", 1)];
    gives(Orphans::Text, "u#1 c:1#1 u#2 a#2 r:1#2", "u [c:1] +a u a [r:1] +h", &late);
    gives(Orphans::Text, "u c:1 u a r:1", "u [c:1] +a u a [r:1] +h", &late);
    let renamed = [("orphan_call", 1), ("orphan_result", 1), ("renamed_id", 1)];
    gives(Orphans::Stub, "u c:1 u a r:1", "u c:1 +r:1 u a +c:1_2 r:1_2", &renamed);
}

#[test]
fn a_second_result_is_marked() {
    gives(Orphans::Text, "c:1 r:1 r:1 a", "c:1 r:1 [r:1] a", &[("duplicate_result", 1)]);
    gives(Orphans::Stub, "c:1 c:2 r:1 r:1 r:2", "c:1 c:2 r:1 [r:1] r:2", &[("duplicate_result", 1)]);
}

#[test]
fn a_second_use_of_an_id_is_renamed_on_both_sides() {
    let out = run(Orphans::Text, &session("c:1 r:1 u c:1 r:1 c:1_2 r:1_2"));
    assert_eq!(told(&out), "c:1 r:1 u c:1_2 r:1_2 c:1_2_2 r:1_2_2");
    assert_eq!(problems(&out).get("renamed_id"), Some(&2));
    let v = parsed(&out);
    assert_eq!((&v[4]["raw_tool_call_id"], &v[5]["raw_tool_call_id"]), (&json!("1"), &json!("1")));
    assert_eq!(run(Orphans::Text, &out), out);
    gives(Orphans::Text, "c:1 c:1 r:1 r:1", "c:1 c:1_2 r:1 r:1_2", &[("renamed_id", 1)]);
    // the nearer call gets the result
    gives(Orphans::Text, "c:1 a c:1 r:1 a", "[c:1] +a a c:1 r:1 a", &[("orphan_call", 1)]);
    gives(Orphans::Text, "C:1 R:1 C:1 R:1", "c:1 r:1 c:1_2 r:1_2", &[("renamed_id", 1)]);
}

#[test]
fn text_for_one_of_several_calls_does_not_part_another_from_its_result() {
    let one = [("orphan_call", 1)];
    gives(Orphans::Text, "c:1 c:2 c:3 r:1 r:3 a", "c:1 r:1 [c:2] c:3 r:3 +a a", &one);
    gives(Orphans::Drop, "c:1@f c:2@g a@g r:1 a", "c:1 r:1 [c:2] a a", &one);
    gives(Orphans::Text, "c:1@g c:2@g c:3@g r:1 r:3 a", "c:1 [c:2] c:3 r:1 r:3 +a a", &one);
    // not even at the end of a session that was killed
    gives(Orphans::Text, "c:1@g c:2@g c:3@g r:1 r:2", "c:1 c:2 [c:3] r:1 r:2 +a", &one);
    gives(Orphans::Text, "c:1@g c:2@g r:2 u#2 a", "[c:1] c:2 r:2 +a u a", &one);
    gives(Orphans::Stub, "c:1 c:2 c:3 r:1 r:3 a", "c:1 c:2 c:3 r:1 r:3 +r:2 a", &one);
    gives(Orphans::Drop, "c:1 c:0@h a@h r:1", "c:1 r:1 [c:0] a", &one);
}

#[test]
fn a_plain_result_of_a_call_of_the_server_stands_alone_in_the_target() {
    let one = [("orphan_result", 1)];
    gives(Orphans::Text, "u C:1 r:1 a", "u c:1 [r:1] +h a", &one);
    gives(Orphans::Drop, "u C:1@g r:1 a", "u c:1 [r:1] a", &one);
    gives(Orphans::Stub, "u C:1 r:1 a", "u c:1 +c:1_2 r:1_2 a", &[("orphan_result", 1), ("renamed_id", 1)]);
    // an id that was used by the server first is no other call's
    gives(Orphans::Text, "u C:1 c:1 r:1 a", "u c:1 c:1_2 r:1_2 a", &[("renamed_id", 1)]);
}

#[test]
fn an_id_is_the_same_however_it_is_escaped() {
    let mut lines = session("c:ab r:ab");
    lines[2] = lines[2].replace("\"ab\"", "\"\\u0061b\"");
    assert_eq!(run(Orphans::Text, &lines), lines);
    let mut server = session("C:1 a");
    server[1] = server[1].replace("\"server\"", "\"s\\u0065rver\"");
    assert_eq!(run(Orphans::Text, &server), server);
    // the word alone makes no server of a call
    let mut talk = session("c:1 a");
    talk[1] = talk[1].replace("{\"n\":1}", "{\"server\":true}");
    assert_eq!(told(&run(Orphans::Text, &talk)), "[c:1] +a a");
}

#[test]
fn sessions_do_not_know_of_each_other() {
    let one = session("c:1 r:1 u");
    let two = [session("c:1 r:1"), session("c:1 a"), one.clone()].concat();
    let out = run(Orphans::Text, &two);
    assert_eq!(told(&out), "c:1 r:1 [c:1] +a a c:1 r:1 u");
    assert_eq!(out[out.len() - one.len()..], one);
}

#[test]
fn a_check_hands_nothing_on_and_tells_what_it_found() {
    let lines = [session("c:1 r:1"), session("c:1 a r:2")].concat();
    let mut pair = Pair::new(Options { orphans: Orphans::Text, check: true });
    assert!(through(&mut pair, &lines).is_empty());
    let found = pair.take_findings();
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].session_id, "s");
    let kinds: Vec<&str> = found[0].problems.iter().map(|p| p.kind.as_str()).collect();
    assert_eq!(kinds, ["orphan_call", "orphan_result"]);
    assert_eq!(found[0].lines(), ["s: line 10: orphan_call: Bash 1", "s: line 30: orphan_result: Bash 2"]);
    assert!(pair.take_findings().is_empty());

    let many = session(&"c:1 a ".repeat(23));
    through(&mut pair, &many);
    let told = pair.take_findings()[0].lines();
    assert_eq!((told.len(), told[20].as_str()), (21, "s: orphan_call: 3 more"));
}

#[test]
fn earlier_problems_are_added_to() {
    let mut lines = session("c:1 a");
    let last = lines.len() - 1;
    lines[last] = r#"{"type":"end","problems":[{"kind":"nul","count":3},{"kind":"orphan_call","count":2,"first":[{"line":1}]}]}"#.into();
    let out = run(Orphans::Text, &lines);
    assert_eq!(problems(&out), BTreeMap::from([("nul".into(), 3), ("orphan_call".into(), 3)]));
    let end = parsed(&out).pop().unwrap();
    assert_eq!(end["problems"][1]["first"], json!([{"line":1},{"line":10,"note":"Bash 1"}]));
    assert_eq!((&end["messages"], &end["live"]), (&json!(3), &json!(2)));
}

#[test]
fn what_does_not_fit_in_memory_comes_back_whole() {
    let mut words = "u c:never".to_owned();
    for n in 0..300 {
        words += &format!(" a c:{n} a r:{n} n");
    }
    let mut lines = session(&words);
    let big = "x".repeat(40_000);
    for line in &mut lines {
        *line = line.replacen("\"out", &format!("\"out {big}"), 1);
    }
    assert!(lines.iter().map(String::len).sum::<usize>() > 10 << 20);
    let out = run(Orphans::Text, &lines);
    let want: String = (0..300).map(|n| format!(" a c:{n} r:{n} a n")).collect();
    assert!(told(&out) == format!("u [c:never] +a{want}"));
    assert_eq!(out.iter().filter(|l| l.contains(&big)).count(), 300);
}

/// A random conversation in the words of [`session`].
fn conversation() -> impl Strategy<Value = String> {
    let id = 0u8..6;
    let group = prop_oneof![Just(""), Just("@g"), Just("@h")];
    let turn = prop_oneof![Just(""), Just("#1"), Just("#2")];
    let word = prop_oneof![
        6 => (id.clone(), group.clone()).prop_map(|(id, g)| format!("c:{id}{g}")),
        7 => id.clone().prop_map(|id| format!("r:{id}")),
        1 => (id, group.clone()).prop_map(|(id, g)| format!("C:s{id}{g}")),
        3 => group.clone().prop_map(|g| format!("a{g}")),
        1 => group.prop_map(|g| format!("t{g}")),
        1 => Just("u".to_owned()), 1 => Just("h".to_owned()), 1 => Just("s".to_owned()),
        2 => Just("n".to_owned()), 2 => Just("d".to_owned()),
    ];
    prop::collection::vec((word, turn).prop_map(|(w, t)| w + t), 0..40).prop_map(|w| w.join(" "))
}

/// The same record with its keys in another order and other white space.
fn shuffled(line: &str, by: usize) -> String {
    let value: Value = serde_json::from_str(line).unwrap();
    let map = value.as_object().unwrap();
    let mut entries: Vec<String> = map.iter().map(|(k, v)| format!("{}: {v}", json!(k))).collect();
    let by = by % entries.len().max(1);
    entries.rotate_left(by);
    format!("{{ {} }}", entries.join(", "))
}

/// The rule of the module, checked without its code: every live call has one result, and behind the last
/// call of a group come, of live records, only what the model said in the same message and the results.
fn is_paired(lines: &[String]) -> std::result::Result<(), String> {
    let all = parsed(lines);
    let live: Vec<&Value> = all.iter().filter(|v| v["type"] == "message" && v["dropped"].is_null()).collect();
    let server = |v: &Value| v["metadata"]["server"] == true;
    let mut ids = HashSet::new();
    for (at, v) in live.iter().enumerate() {
        let id = &v["tool_call_id"];
        if v["role"] == "tool_call" && !ids.insert(id.clone()) {
            return Err(format!("{id} is used twice"));
        }
        if v["role"] == "tool_result" && !ids.contains(id) {
            return Err(format!("result {id} before its call"));
        }
        if v["role"] != "tool_call" || server(v) {
            continue;
        }
        let results: Vec<usize> = (0..live.len())
            .filter(|&n| live[n]["role"] == "tool_result" && live[n]["tool_call_id"] == *id)
            .collect();
        let [result] = results[..] else { return Err(format!("{id} has {} results", results.len())) };
        let mut answering = false;
        let (mut group, mut calling) = (v["group"].clone(), true);
        for between in &live[at + 1..result] {
            let same = !group.is_null() && between["group"] == group;
            match between["role"].as_str().unwrap() {
                "tool_result" => answering = true,
                "tool_call" if !server(between) && !answering && (calling || same) => {
                    group = between["group"].clone();
                    calling = true;
                }
                "assistant" | "reasoning" | "tool_call" if !answering && same => calling = false,
                other => return Err(format!("{other} between {id} and its result")),
            }
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn any_conversation_comes_out_paired(words in conversation(), mode in 0..3, turn_keys in any::<Option<u8>>()) {
        let orphans = [Orphans::Text, Orphans::Stub, Orphans::Drop][mode as usize];
        let mut lines = session(&words);
        if let Some(by) = turn_keys {
            for (n, line) in lines.iter_mut().enumerate() {
                *line = shuffled(line, n + by as usize);
            }
        }
        let out = run(orphans, &lines);
        prop_assert!(is_paired(&out).is_ok(), "{}: {:?}\n{}", words, is_paired(&out), told(&out));

        // a second run changes nothing, in no mode
        for again in [Orphans::Text, Orphans::Stub, Orphans::Drop] {
            prop_assert_eq!(&run(again, &out), &out, "{}", words);
        }
        // what was paired already is left alone
        if is_paired(&lines).is_ok() && !words.contains("C:") {
            prop_assert_eq!(&out, &lines, "{}", words);
        }

        // nothing is lost: every record is there, as it was but for marks and ids
        let plain = |v: &Value| {
            let mut v = v.clone();
            let map = v.as_object_mut().unwrap();
            if map.get("dropped").is_some_and(|d| d == "orphan") { map.remove("dropped"); }
            if let Some(raw) = map.remove("raw_tool_call_id") { map.insert("tool_call_id".into(), raw); }
            v.to_string()
        };
        let body = |lines: &[String]| {
            let all = parsed(lines);
            all[1..all.len() - 1].iter().filter(|v| v["synthetic"] != true).map(plain).collect::<Vec<_>>()
        };
        let (mut before, mut after) = (body(&lines), body(&out));
        // only results move
        let still = |all: &[String]| all.iter().filter(|l| !l.contains("\"out ")).cloned().collect::<Vec<_>>();
        prop_assert_eq!(still(&before), still(&after), "{}", words);
        before.sort();
        after.sort();
        prop_assert_eq!(before, after, "{}", words);

        // the counts of `end` are those of the stream
        let all = parsed(&out);
        let end = all.last().unwrap();
        if out != lines {
            let messages = all.iter().filter(|v| v["type"] == "message").count();
            let live = all.iter().filter(|v| v["type"] == "message" && v["dropped"].is_null()).count();
            prop_assert_eq!(&end["messages"], &json!(messages));
            prop_assert_eq!(&end["live"], &json!(live));
        }
        prop_assert_eq!(&end["keep"], &json!([1]));
    }
}
