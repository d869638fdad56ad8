//! The reference, the schema and the vocabularies agree, and the readers print what they say.

use crate::support::schema::faults;
use relay::agents::{self, History, ReadOptions};
use relay::json::Tape;
use relay::record::{Abort, End, Harness, Kind, Origin, Reason, Record, Role, SCHEMA, Session, Status};
use relay::stream::{Native, Source};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

const FORMAT: &str = include_str!("../src/record/FORMAT.md");
const PROBLEMS: &str = include_str!("../src/record/problems.rs");

fn schema() -> Value {
    serde_json::from_str(SCHEMA).unwrap()
}

fn cases() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/format");
    let mut found: Vec<PathBuf> = folder.read_dir().unwrap().map(|e| e.unwrap().path()).collect();
    found.sort();
    assert!(!found.is_empty());
    found
}

/// Every session of a case: the agent is the name of the file.
fn inputs(case: &Path) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    for agent in agents::AGENTS {
        let file = case.join(agent.name()).with_extension("jsonl");
        if file.exists() {
            found.push((agent.name().to_owned(), std::fs::read(file).unwrap()));
        }
    }
    assert!(!found.is_empty(), "{}: no AGENT.jsonl", case.display());
    found
}

fn read(agent: &str, bytes: &[u8], history: History, lean: bool) -> Vec<Vec<u8>> {
    let options = ReadOptions { history, lean, ..ReadOptions::default() };
    let mut out = Vec::new();
    let native = Native::of_bytes(bytes, None).unwrap();
    agents::named(agent).unwrap().read(&native, &options, &mut out).unwrap();
    out
}

/// Keys of a record and of its `metadata` that the schema does not name.
fn unnamed(schema: &Value, record: &Value) -> Vec<String> {
    let kind = record["type"].as_str().unwrap();
    let known = &schema["$defs"][kind]["properties"];
    let strangers = |known: &Value, object: &Value| -> Vec<String> {
        let keys = object.as_object().into_iter().flat_map(|o| o.keys());
        keys.filter(|k| known.get(k.as_str()).is_none()).cloned().collect()
    };
    let mut found = strangers(known, record);
    found.extend(strangers(&known["metadata"]["properties"], &record["metadata"]));
    found
}

fn words<'a>(records: &'a [Value], key: &str) -> BTreeSet<&'a str> {
    records.iter().filter_map(|r| r[key].as_str()).collect()
}

#[test]
fn readers_print_what_the_schema_says() {
    let schema = schema();
    let mut all = Vec::new();
    for case in cases() {
        for (agent, bytes) in inputs(&case) {
            all.extend(every_view(&schema, &agent, &bytes, &case));
        }
    }
    // the cases of other topics are good for this, too
    let mut others = 0;
    for agent in agents::AGENTS {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases").join(agent.name());
        for case in folder.read_dir().into_iter().flatten().map(|e| e.unwrap().path()) {
            if let Ok(bytes) = std::fs::read(case.join("session.jsonl")) {
                every_view(&schema, agent.name(), &bytes, &case);
                others += 1;
            }
        }
    }
    assert!(others > 5, "{others}");
    // what no case shows, no schema holds: the cases must show it all
    let roles: BTreeSet<_> = Role::ALL.iter().map(|r| r.as_str()).collect();
    assert_eq!(words(&all, "role"), roles);
    let kinds: BTreeSet<_> = Harness::ALL.iter().map(|h| h.as_str()).collect();
    assert_eq!(words(&all, "harness"), kinds);
    let dropped = words(&all, "dropped");
    for reason in [Reason::Branch, Reason::RolledBack, Reason::Compacted, Reason::Sidechain, Reason::Noise] {
        assert!(dropped.contains(reason.as_str()), "no case shows {reason}");
    }
    for key in
        ["value", "raw", "raw_base64", "raw_timestamp", "exit_code", "metadata", "extra", "failed", "part"]
    {
        assert!(all.iter().any(|r| !r[key].is_null()), "no case shows {key}");
    }
}

/// The records of a session in every view, each held to the schema.
fn every_view(schema: &Value, agent: &str, bytes: &[u8], case: &Path) -> Vec<Value> {
    let mut all = Vec::new();
    for (history, lean) in
        [(History::Active, false), (History::Active, true), (History::Exact, false), (History::Full, false)]
    {
        let lines = read(agent, bytes, history, lean);
        let place = format!("{} {agent} {history:?} lean={lean}", case.display());
        let mut records = Vec::new();
        for line in &lines {
            let record: Value = serde_json::from_slice(line).unwrap();
            assert_eq!(faults(schema, &record), [""; 0], "{place}: {record}");
            assert_eq!(unnamed(schema, &record), [""; 0], "{place}: {record}");
            records.push(record);
        }
        whole(&lines, &records, lean, &place);
        all.extend(records);
    }
    all
}

/// The stream has its structure, and `end` counts what there is.
fn whole(lines: &[Vec<u8>], records: &[Value], lean: bool, place: &str) {
    let mut bytes = lines.join(&b'\n');
    bytes.push(b'\n');
    let mut source = Source::new(bytes.as_slice(), place);
    let mut count = 0;
    while source.next_record().unwrap().is_some() {
        count += 1;
    }
    assert_eq!((count, source.sessions()), (records.len(), 1), "{place}");
    let end = records.last().unwrap();
    let messages: Vec<_> = records.iter().filter(|r| r["type"] == "message").collect();
    let live = messages.iter().filter(|r| r["dropped"].is_null()).count();
    assert_eq!(end["live"], json!(live), "{place}");
    // readers may count what `lean` leaves out
    if !lean {
        assert_eq!(end["messages"], json!(messages.len()), "{place}");
    }
}

/// The canonical head of the reference, in its order.
#[test]
fn messages_begin_with_the_canonical_head() {
    for case in cases() {
        for (agent, bytes) in inputs(&case) {
            for line in read(&agent, &bytes, History::Active, false) {
                let mut tape = Tape::new();
                let record = tape.parse(&line).unwrap();
                let word =
                    |key: &str| record.get(key).and_then(|v| v.text()).map(|t| t.decode().into_owned());
                if word("type").as_deref() != Some("message") {
                    continue;
                }
                let mut head = vec!["type", "role", "dropped", "origin"];
                head.extend((word("origin").as_deref() == Some("harness")).then_some("harness"));
                head.extend(["seq", "turn", "line", "part", "group"]);
                let role = word("role").unwrap();
                if role == "tool_call" || role == "tool_result" {
                    head.extend(["tool_call_id", "tool_name"]);
                }
                head.extend((role == "tool_result").then_some("status"));
                head.push("timestamp");
                let mut rest = vec!["synthetic", "raw_timestamp", "exit_code", "metadata"];
                rest.push(if role == "tool_call" { "input" } else { "content" });
                rest.push("extra");
                let keys: Vec<String> = record.entries().map(|(k, _)| k.decode().into_owned()).collect();
                let (first, behind) = keys.split_at(head.len());
                assert_eq!(first, head);
                let places: Vec<_> = behind.iter().map(|k| rest.iter().position(|r| r == k)).collect();
                assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{keys:?}");
            }
        }
    }
}

/// `expected.AGENT.jsonl` of a case is its stream in the default view, as values.
#[test]
fn cases_give_the_stream_that_is_expected() {
    let bless = std::env::var_os("RELAY_BLESS").is_some();
    for case in cases() {
        for (agent, bytes) in inputs(&case) {
            let file = case.join(format!("expected.{agent}.jsonl"));
            let mut printed = read(&agent, &bytes, History::Active, false).join(&b'\n');
            printed.push(b'\n');
            if bless {
                std::fs::write(&file, &printed).unwrap();
                continue;
            }
            let kept = std::fs::read(&file).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
            let values = |bytes: &[u8]| -> Vec<Value> {
                serde_json::Deserializer::from_slice(bytes).into_iter().map(Result::unwrap).collect()
            };
            let (printed, kept) = (values(&printed), values(&kept));
            for (n, (is, should)) in printed.iter().zip(&kept).enumerate() {
                assert_eq!(is, should, "{} record {}", file.display(), n + 1);
            }
            assert_eq!(printed.len(), kept.len(), "{}", file.display());
        }
    }
}

/// The bodies of the reference's ```json blocks.
fn example_blocks() -> Vec<&'static str> {
    let blocks = FORMAT.split("\n```json\n").skip(1);
    blocks.map(|rest| rest.split("\n```\n").next().unwrap()).collect()
}

#[test]
fn examples_of_the_reference_are_records() {
    let schema = schema();
    let mut seen = Vec::new();
    for block in example_blocks() {
        for record in serde_json::Deserializer::from_str(block).into_iter::<Value>() {
            let record = record.unwrap();
            assert_eq!(faults(&schema, &record), [""; 0], "{record}");
            assert_eq!(unnamed(&schema, &record), [""; 0], "{record}");
            // what the types and the scan make of it
            let line = serde_json::to_vec(&record).unwrap();
            let mut tape = Tape::new();
            let read = Record::new(&line, &mut tape).unwrap();
            match read.head().kind {
                Kind::Session => drop(read.decode::<Session>().unwrap()),
                Kind::End => drop(read.decode::<End>().unwrap()),
                Kind::Abort => drop(read.decode::<Abort>().unwrap()),
                Kind::Message | Kind::Native => {}
                Kind::Unknown => panic!("an example of an unknown type: {record}"),
            }
            seen.push(record);
        }
    }
    let types: Vec<_> = words(&seen, "type").into_iter().collect();
    assert_eq!(types, ["abort", "end", "message", "native", "session"]);
}

#[test]
fn the_first_example_is_a_whole_stream() {
    let block = example_blocks()[0];
    let mut source = Source::new(block.as_bytes(), "example");
    let mut count = 0;
    while source.next_record().unwrap().is_some() {
        count += 1;
    }
    assert_eq!((count, source.sessions()), (block.lines().count(), 1));
}

/// First cells of the tables under a heading of the reference.
fn first_column(heading: &str) -> BTreeSet<&'static str> {
    let section = FORMAT.split(&format!("{heading}\n")).nth(1).unwrap();
    let section = section.split("\n#").next().unwrap();
    // what stands above the rule is the heading of the table
    let rows = section.lines().skip_while(|l| !l.starts_with("|---"));
    rows.filter_map(|l| l.strip_prefix("| `")?.split('`').next()).collect()
}

#[test]
fn every_kind_of_problem_is_in_the_reference() {
    let constants: BTreeSet<&str> = PROBLEMS
        .lines()
        .filter_map(|l| l.trim().strip_prefix("pub const ")?.split(": &str = \"").nth(1)?.split('"').next())
        .collect();
    assert!(constants.contains("bad_line") && constants.len() > 20);
    assert_eq!(first_column("### Kinds of problems"), constants);
}

#[test]
fn every_word_is_in_the_reference_and_in_the_schema() {
    let schema = schema();
    let message = &schema["$defs"]["message"]["properties"];
    let check = |field: &str, words: Vec<&str>, documented: Option<BTreeSet<&str>>| {
        let in_schema: Vec<&str> =
            message[field]["enum"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
        assert_eq!(in_schema, words, "{field}");
        match documented {
            Some(documented) => {
                assert_eq!(documented, words.iter().copied().collect(), "{field}");
            }
            None => {
                let row = format!("| `{field}` | ");
                let row = FORMAT.lines().find(|l| l.starts_with(&row)).unwrap();
                for word in words {
                    assert!(row.contains(&format!("`{word}`")), "{field}: {word} is not in {row}");
                }
            }
        }
    };
    check("role", Role::ALL.iter().map(|w| w.as_str()).collect(), Some(first_column("### Roles")));
    check("dropped", Reason::ALL.iter().map(|w| w.as_str()).collect(), Some(first_column("## Dropped")));
    check(
        "harness",
        Harness::ALL.iter().map(|w| w.as_str()).collect(),
        Some(first_column("## Harness text")),
    );
    check("origin", Origin::ALL.iter().map(|w| w.as_str()).collect(), None);
    check("status", Status::ALL.iter().map(|w| w.as_str()).collect(), None);
}

/// Every field of the schema is described.
#[test]
fn every_field_of_the_schema_is_in_the_reference() {
    fn fields(schema: &Value, found: &mut BTreeSet<String>) {
        match schema {
            Value::Object(object) => {
                for (key, inner) in object {
                    if let ("properties", Some(names)) = (key.as_str(), inner.as_object()) {
                        found.extend(names.keys().cloned());
                        names.values().for_each(|v| fields(v, found));
                    } else {
                        fields(inner, found);
                    }
                }
            }
            Value::Array(list) => list.iter().for_each(|v| fields(v, found)),
            _ => {}
        }
    }
    let mut found = BTreeSet::new();
    fields(&schema(), &mut found);
    assert!(found.contains("replaces") && found.contains("summary_reserve"));
    for field in found {
        assert!(FORMAT.contains(&format!("`{field}`")), "{field} is not in the reference");
    }
}

/// Lines that are no records, with whether the reader refuses them too (it leaves to later stages what it
/// does not need to route).
const WRONG: &[(&str, bool)] = &[
    ("[]", true),
    (r#"{}"#, true),
    (r#"{"type":7}"#, true),
    (r#"{"type":"message","content":""}"#, true),
    (r#"{"type":"message","role":"wizard","content":""}"#, true),
    (r#"{"type":"message","role":"user"}"#, true),
    (r#"{"type":"message","role":"summary","input":""}"#, true),
    (r#"{"type":"message","role":"tool_call","tool_name":"x","input":{}}"#, true),
    (r#"{"type":"message","role":"tool_call","tool_call_id":null,"tool_name":"x","input":{}}"#, true),
    (r#"{"type":"message","role":"tool_call","tool_call_id":"1","input":{}}"#, true),
    (r#"{"type":"message","role":"tool_call","tool_call_id":"1","tool_name":"x","content":""}"#, true),
    (r#"{"type":"message","role":"tool_result","content":""}"#, true),
    (r#"{"type":"message","role":"user","content":7}"#, false),
    (r#"{"type":"message","role":"user","content":"","dropped":"because"}"#, false),
    (r#"{"type":"message","role":"user","content":"","origin":"harness"}"#, false),
    (r#"{"type":"message","role":"user","content":"","origin":"harness","harness":null}"#, false),
    (r#"{"type":"message","role":"user","content":"","seq":0}"#, false),
    (r#"{"type":"message","role":"user","content":"","line":"4"}"#, false),
    (r#"{"type":"message","role":"user","content":"","extra":[]}"#, false),
    (r#"{"type":"message","role":"tool_result","tool_call_id":"1","content":"","status":"fine"}"#, false),
    (r#"{"type":"native","source_agent":"claude","line":1}"#, false),
    (r#"{"type":"native","line":1,"raw":""}"#, false),
    (r#"{"type":"session","relay":1,"session_id":"a"}"#, false),
    (r#"{"type":"session","relay":2,"session_id":"a","source_agent":"claude"}"#, false),
    (r#"{"type":"session","relay":1,"session_id":"a","source_agent":"claude","budget":{"tokens":1}}"#, false),
    (r#"{"type":"session","relay":1,"session_id":"a","source_agent":"claude","via":[{"name":"x"}]}"#, false),
    (
        r#"{"type":"session","relay":1,"session_id":"a","source_agent":"c","file_snapshot":[{"path":"p","status":"lost"}]}"#,
        false,
    ),
    (r#"{"type":"end","messages":-1}"#, false),
    (r#"{"type":"end","problems":[{"kind":"nul"}]}"#, false),
    (r#"{"type":"end","problems":null}"#, false),
    (r#"{"type":"abort"}"#, false),
];

#[test]
fn the_schema_refuses_what_is_no_record() {
    let schema = schema();
    for (line, refused) in WRONG {
        let value: Value = serde_json::from_str(line).unwrap();
        assert!(!faults(&schema, &value).is_empty(), "{line}");
        let mut tape = Tape::new();
        assert_eq!(Record::new(line.as_bytes(), &mut tape).is_err(), *refused, "{line}");
    }
}

#[test]
fn the_schema_takes_what_the_reader_takes() {
    let schema = schema();
    for line in [
        r#"{"content":"","role":"user","type":"message"}"#,
        r#"{"type":"message","role":"user","content":[{"type":"odd"},7],"mine":{"a":1}}"#,
        r#"{"type":"message","role":"tool_call","tool_call_id":"","tool_name":null,"input":null}"#,
        r#"{"type":"message","role":"user","content":"","origin":null,"dropped":null,"seq":null}"#,
        r#"{"type":"from-the-future","role":7}"#,
        r#"{"type":"end"}"#,
    ] {
        let value: Value = serde_json::from_str(line).unwrap();
        assert_eq!(faults(&schema, &value), [""; 0], "{line}");
        let mut tape = Tape::new();
        assert!(Record::new(line.as_bytes(), &mut tape).is_ok(), "{line}");
    }
}
