//! Every folder of `tests/cases/claude` is one way in which a session can be odd: `session.jsonl` and what the
//! three views make of it. Add a folder to add a case; see tests/cases/README.md.

use relay::agents::{History, ReadOptions, named};
use relay::stream::Native;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// The folders of cases, in a stable order.
pub(crate) fn cases(agent: &str) -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases").join(agent);
    let mut found: Vec<PathBuf> = std::fs::read_dir(&root)
        .unwrap_or_else(|e| panic!("{}: {e}", root.display()))
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_dir())
        .collect();
    found.sort();
    assert!(found.len() > 5, "only {} cases in {}", found.len(), root.display());
    found
}

/// All records of a session file.
pub(crate) fn read(agent: &str, path: &Path, history: History) -> Vec<Value> {
    let mut out: Vec<Vec<u8>> = Vec::new();
    let options = ReadOptions { history, ..ReadOptions::default() };
    named(agent).unwrap().read(&Native::open(path).unwrap(), &options, &mut out).unwrap();
    out.iter().map(|line| serde_json::from_slice(line).unwrap()).collect()
}

/// The live conversation in words: one line a text, call, result or image.
pub(crate) fn live(records: &[Value]) -> Vec<String> {
    records
        .iter()
        .filter(|r| r["type"] == "message" && r["dropped"].is_null() && r["origin"] != "harness")
        .flat_map(items)
        .collect()
}

fn items(record: &Value) -> Vec<String> {
    let role = record["role"].as_str().unwrap();
    let id = record["tool_call_id"].as_str().unwrap_or_default();
    match role {
        "tool_call" => return vec![format!("call: {id} {}", record["tool_name"].as_str().unwrap())],
        "tool_result" => {
            let mut out = vec![format!("result: {id} {}", record["status"].as_str().unwrap())];
            out.extend(blocks(record).filter(|(kind, _)| kind == "image").map(|(_, text)| text));
            return out;
        }
        _ => {}
    }
    match record["content"].as_str() {
        Some(text) => vec![format!("{role}: {text}")],
        None => blocks(record)
            .map(|(kind, text)| match kind.as_str() {
                "text" => format!("{role}: {text}"),
                "image" => text,
                _ => format!("{role}: [{kind}]"),
            })
            .collect(),
    }
}

fn blocks(record: &Value) -> impl Iterator<Item = (String, String)> + '_ {
    record["content"].as_array().into_iter().flatten().map(|block| {
        let kind = block["type"].as_str().unwrap_or("?").to_owned();
        let text = match kind.as_str() {
            "image" => format!("image: {}", block["source"]["media_type"].as_str().unwrap_or("?")),
            _ => block["text"].as_str().unwrap_or_default().to_owned(),
        };
        (kind, text)
    })
}

fn strings(value: &Value) -> Vec<String> {
    value.as_array().unwrap().iter().map(|v| v.as_str().unwrap().to_owned()).collect()
}

fn all_cases() -> impl Iterator<Item = (&'static str, PathBuf)> {
    ["claude", "codex"]
        .into_iter()
        .flat_map(|agent| cases(agent).into_iter().map(move |folder| (agent, folder)))
}

#[test]
fn every_view_of_every_case() {
    for (agent, folder) in all_cases() {
        let name = folder.file_name().unwrap().to_string_lossy().into_owned();
        let expect: Value =
            serde_json::from_slice(&std::fs::read(folder.join("expect.json")).unwrap()).unwrap();
        let session = folder.join("session.jsonl");
        let active = read(agent, &session, History::Active);
        let end = active.last().unwrap();
        assert_eq!(end["type"], "end", "{name}");
        match expect["failed"].as_str() {
            Some(reason) => assert!(end["failed"].as_str().unwrap().contains(reason), "{name}: {end}"),
            None => assert!(end["failed"].is_null(), "{name}: {end}"),
        }
        assert_eq!(live(&active), strings(&expect["active"]), "{name}, active");
        let exact: Vec<String> = live(&read(agent, &session, History::Exact));
        let wanted = if expect["exact"].is_null() { &expect["active"] } else { &expect["exact"] };
        assert_eq!(exact, strings(wanted), "{name}, exact");
        if !expect["full"].is_null() {
            let full = live(&read(agent, &session, History::Full));
            assert_eq!(full, strings(&expect["full"]), "{name}, full");
        }
        if let Some(problems) = expect["problems"].as_object() {
            let found: serde_json::Map<String, Value> = end["problems"]
                .as_array()
                .unwrap()
                .iter()
                .map(|p| (p["kind"].as_str().unwrap().to_owned(), p["count"].clone()))
                .collect();
            assert_eq!(&found, problems, "{name}: {end}");
        }
        if let Some(title) = expect.get("title") {
            assert_eq!(active[0].get("title").unwrap_or(&Value::Null), title, "{name}");
        }
        if !expect["dropped"].is_null() {
            let dropped: Vec<String> = active
                .iter()
                .filter(|r| r["dropped"].is_string())
                .flat_map(|r| {
                    items(r)
                        .into_iter()
                        .map(|i| format!("{} {i}", r["dropped"].as_str().unwrap()))
                        .collect::<Vec<_>>()
                })
                .collect();
            assert_eq!(dropped, strings(&expect["dropped"]), "{name}, dropped");
        }
        if !expect["harness"].is_null() {
            let kinds: Vec<&str> = active.iter().filter_map(|r| r["harness"].as_str()).collect();
            assert_eq!(kinds, strings(&expect["harness"]), "{name}, harness");
        }
    }
}

/// No line is lost: each is in a record, or in several.
#[test]
fn every_line_is_accounted_for() {
    for (agent, folder) in all_cases() {
        let session = folder.join("session.jsonl");
        let bytes = std::fs::read(&session).unwrap();
        let lines = bytes.split(|&b| b == b'\n').count() - usize::from(bytes.ends_with(b"\n"));
        for history in [History::Active, History::Exact, History::Full] {
            let records = read(agent, &session, history);
            if !records.last().unwrap()["failed"].is_null() {
                continue;
            }
            let mut seen: Vec<u64> = records.iter().filter_map(|r| r["line"].as_u64()).collect();
            seen.sort_unstable();
            seen.dedup();
            assert_eq!(seen, (1..=lines as u64).collect::<Vec<_>>(), "{} {history:?}", folder.display());
        }
    }
}
