use super::*;
use crate::filters::pair::{self, Pair};
use crate::record::Session;
use proptest::prelude::*;
use serde_json::{Value as Json, json};

fn run(filter: &mut dyn Filter, lines: &[String]) -> Result<Vec<String>> {
    let mut out: Vec<Vec<u8>> = Vec::new();
    let mut tape = Tape::new();
    for line in lines {
        filter.record(&Record::new(line.as_bytes(), &mut tape)?, &mut out)?;
    }
    filter.end(&mut out)?;
    Ok(out.into_iter().map(|line| String::from_utf8(line).unwrap()).collect())
}

fn trim(options: &Options, lines: &[String]) -> Result<Vec<String>> {
    run(&mut Trim::new(options.clone()).unwrap(), lines)
}

fn parsed(lines: &[String]) -> Vec<Json> {
    lines.iter().map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"))).collect()
}

fn is_live(record: &Json) -> bool {
    record["type"] == "message" && record["dropped"].is_null()
}

/// Tokens of the live records, as the target counts them.
fn tokens(lines: &[String], family: Family, only: impl Fn(&Json) -> bool) -> u64 {
    let exact = Exact::o200k().unwrap();
    let mut tape = Tape::new();
    let mut sum = 0;
    for line in lines {
        let record: Json = serde_json::from_str(line).unwrap();
        if !is_live(&record) || !only(&record) {
            continue;
        }
        let mut own = Tape::new();
        let head = *Record::new(line.as_bytes(), &mut own).unwrap().head();
        if !cost::is_unwritten(&head) {
            sum += cost::whole(head.role.unwrap(), tape.parse(line.as_bytes()).unwrap(), &exact, family);
        }
    }
    sum
}

/// A session as relay-read prints one: canonical heads, or the fields in another order.
#[derive(Debug, Default)]
struct Maker {
    lines: Vec<String>,
    seq: u64,
    turn: u64,
    foreign: bool,
}

impl Maker {
    fn new(foreign: bool) -> Maker {
        let start = r#"{"type":"session","relay":1,"session_id":"s","source_agent":"x","extra":{"a":1}}"#;
        Maker { lines: vec![start.to_string()], foreign, ..Maker::default() }
    }

    fn say<'a>(
        &mut self,
        role: Role,
        fields: &[(&str, Json)],
        change: impl FnOnce(&mut crate::record::Draft<'a>),
    ) {
        self.seq += 1;
        let mut draft: crate::record::Draft<'a> = crate::record::Draft::new(role);
        (draft.seq, draft.turn, draft.line) = (Some(self.seq), Some(self.turn.max(1)), Some(self.seq + 1));
        change(&mut draft);
        let mut line = Vec::new();
        draft.begin(&mut line);
        for (key, value) in fields {
            line.extend_from_slice(format!(",\"{key}\":{value}").as_bytes());
        }
        line.extend_from_slice(b",\"extra\":{\"content\":null}}");
        let mut line = String::from_utf8(line).unwrap();
        if self.foreign && self.seq.is_multiple_of(2) {
            // sorted keys and no nulls
            let mut value: Json = serde_json::from_str(&line).unwrap();
            value.as_object_mut().unwrap().retain(|_, v| !v.is_null());
            line = value.to_string();
        }
        self.lines.push(line);
    }

    fn text(&mut self, role: Role, text: &str) {
        self.say(role, &[("content", text.into())], |_| ());
    }

    fn prompt(&mut self, text: &str) {
        self.turn += 1;
        self.text(Role::User, text);
    }

    fn harness(&mut self, kind: Harness, text: &str) {
        self.say(Role::User, &[("content", text.into())], |d| d.by = crate::record::By::Harness(kind));
    }

    fn call(&mut self, id: &str, name: &str, input: Json) {
        self.say(Role::ToolCall, &[("input", input)], |d| {
            (d.tool_call_id, d.tool_name) = (Some(id.as_bytes()), Some(name.as_bytes()));
        });
    }

    fn result(&mut self, id: &str, content: Json) {
        self.say(Role::ToolResult, &[("content", content)], |d| {
            (d.tool_call_id, d.tool_name) = (Some(id.as_bytes()), Some(&b"Bash"[..]));
            d.status = Some(crate::record::Status::Ok);
        });
    }

    fn end(mut self) -> Vec<String> {
        let live = self.lines.iter().filter(|l| is_live(&serde_json::from_str(l).unwrap())).count();
        let all = self.lines.iter().filter(|l| l.contains("\"type\":\"message\"")).count();
        self.lines.push(
            json!({"type":"end","session_id":"s","messages":all,"live":live,"problems":[]}).to_string(),
        );
        self.lines
    }
}

const WORDS: [&str; 12] = [
    "pond",
    "count",
    "error",
    "the total is",
    "src/total.py",
    "\n",
    "let x = 7;",
    "鸭子在池塘里",
    "é",
    "\n    at ",
    "{\"a\":1}",
    "0x7fe3",
];

fn words(many: usize, seed: u64) -> String {
    let mut state = seed | 1;
    let mut out = String::new();
    for _ in 0..many {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        out.push_str(WORDS[(state >> 33) as usize % WORDS.len()]);
        out.push(' ');
    }
    out
}

const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAZAAAAEsCAIAAABi1XKVAAAA";

/// One event of a session: what, and how big.
type Event = (u8, usize);

fn session(events: &[Event], foreign: bool) -> Vec<String> {
    let mut made = Maker::new(foreign);
    for (n, (kind, size)) in events.iter().enumerate() {
        let text = words(*size, n as u64 * 77 + *size as u64);
        match kind {
            0 => made.prompt(&text),
            1 => made.text(Role::Assistant, &text),
            2 => made.text(Role::Reasoning, &text),
            3 => made.harness(Harness::Environment, &text),
            4 => made.harness(Harness::Command, &text),
            5 => made.text(if n == 0 { Role::System } else { Role::Assistant }, &text),
            6 if n < 4 => made.text(Role::Summary, &text),
            7 => made
                .lines
                .push(json!({"type":"native","source_agent":"x","line":n,"value":{"x":text}}).to_string()),
            8 => made.say(Role::User, &[("content", text.into())], |d| {
                d.dropped = Some(crate::record::Reason::Branch)
            }),
            9 => {
                made.turn += 1;
                let image =
                    json!({"type":"image","source":{"type":"base64","media_type":"image/png","data":PNG}});
                made.say(Role::User, &[("content", json!([{"type":"text","text":text}, image]))], |_| ());
            }
            10 => {
                let (a, b) = (format!("a{n}"), format!("b{n}"));
                made.call(&a, "Bash", json!({"command": text}));
                made.call(&b, "Read", json!({"file_path": format!("/f{}", size % 3)}));
                made.result(&a, words(size * 5, 3).into());
                made.result(&b, json!([{"type":"text","text":words(size * 3, n as u64)}]));
            }
            _ => {
                let id = format!("c{n}");
                made.call(&id, "Write", json!({"file_path": format!("/f{}", size % 3), "content": text}));
                made.result(&id, words(size * 9, n as u64).into());
            }
        }
    }
    made.end()
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let kind = prop_oneof![2 => Just(0u8), 2 => Just(1u8), 6 => Just(11u8), 3 => Just(10u8), 2 => 2u8..10];
    prop::collection::vec((kind, prop_oneof![4 => 1usize..40, 1 => 40usize..400]), 1..40)
}

/// The records that are never left out: system, first prompt, newest prompt.
fn pinned(lines: &[String]) -> Vec<u64> {
    let records = parsed(lines);
    let prompts: Vec<&Json> =
        records.iter().filter(|r| is_live(r) && r["role"] == "user" && r["origin"].is_null()).collect();
    let mut found: Vec<u64> = records
        .iter()
        .filter(|r| is_live(r) && r["role"] == "system")
        .map(|r| r["seq"].as_u64().unwrap())
        .collect();
    found.extend(prompts.first().into_iter().chain(prompts.last()).map(|r| r["seq"].as_u64().unwrap()));
    found.sort_unstable();
    found.dedup();
    found
}

/// Everything that must hold for a trimmed session.
fn check(options: &Options, input: &[String]) -> std::result::Result<(), TestCaseError> {
    let never = pinned(input);
    let is_pinned = |r: &Json| r["synthetic"] != true && never.contains(&r["seq"].as_u64().unwrap_or(0));
    let system = |r: &Json| r["role"] == "system" && is_pinned(r);
    let (least, all) = (tokens(input, options.family, system), tokens(input, options.family, is_pinned));
    let out = match trim(options, input) {
        Ok(out) => out,
        Err(e) => {
            // of each prompt its beginning at least
            prop_assert!(all > options.budget && least + 4 * 100 > options.budget, "{e}: {least}, {all}");
            let text = e.to_string();
            let smallest: u64 = text.rsplit(' ').next().unwrap().parse().unwrap();
            let works = |budget| trim(&Options { budget, ..options.clone() }, input).is_ok();
            prop_assert!(works(smallest));
            prop_assert!(!works(smallest - 1));
            return Ok(());
        }
    };
    prop_assert_eq!(&trim(options, input).unwrap(), &out, "the same every time");
    prop_assert_eq!(&trim(options, &out).unwrap(), &out, "nothing the second time");
    let (before, after) = (parsed(input), parsed(&out));
    // every record is there, in order, and but for the mark as it was
    let mut left = after.iter().filter(|r| r["synthetic"] != true);
    for was in &before {
        let is = left.next().unwrap();
        match (was["type"].as_str().unwrap(), &is["dropped"]) {
            ("message", reason)
                if was["dropped"].is_null() && (reason == "trimmed" || reason == "condensed") =>
            {
                let mut unmarked = is.clone();
                unmarked["dropped"] = Json::Null;
                let mut was = was.clone();
                was["dropped"] = Json::Null;
                prop_assert_eq!(unmarked, was);
            }
            ("session" | "end", _) => {}
            _ => prop_assert_eq!(is, was),
        }
        if is_pinned(was) {
            // a prompt of more than its share may be cut, and then its twin is there
            let cut = was["role"] == "user" && is["dropped"] == "condensed";
            prop_assert!(is_live(is) || cut, "never left out: {}", is);
        }
    }
    prop_assert!(left.next().is_none());
    // a twin stands right behind what it stands for
    for pair in after.windows(2) {
        if pair[0]["dropped"] == "condensed" {
            prop_assert_eq!(&pair[1]["replaces"], &pair[0]["seq"]);
            prop_assert!(is_live(&pair[1]));
        }
        prop_assert_eq!(pair[0]["dropped"] == "condensed", pair[1]["synthetic"] == true);
    }
    // pairs are whole
    let mut pairing = Pair::new(pair::Options { check: true, ..pair::Options::default() });
    run(&mut pairing, &out).unwrap();
    prop_assert_eq!(pairing.take_findings(), vec![]);
    // it fits, beside what is set aside
    let end = after.last().unwrap();
    let budget = if end["budget"].is_null() { &after[0]["budget"] } else { &end["budget"] };
    let set_aside = budget["summary_reserve"].as_u64().unwrap() + budget["note_reserve"].as_u64().unwrap();
    let kept = tokens(&out, options.family, |_| true);
    prop_assert!(kept + set_aside <= options.budget, "{kept} + {set_aside}");
    prop_assert_eq!(&end["live"], &json!(after.iter().filter(|r| is_live(r)).count()));
    prop_assert_eq!(&end["messages"], &json!(after.iter().filter(|r| r["type"] == "message").count()));
    // without the marked records the rest is the same
    let dropped = trim(&Options { drop: true, ..options.clone() }, input).unwrap();
    let unmarked = after.iter().filter(|r| r["dropped"] != "trimmed" && r["dropped"] != "condensed");
    let (mut a, mut b) = (unmarked.cloned().collect::<Vec<_>>(), parsed(&dropped));
    prop_assert_eq!(b.last().unwrap()["live"].clone(), a.last().unwrap()["live"].clone());
    prop_assert_eq!(
        b.last().unwrap()["messages"].clone(),
        json!(b.iter().filter(|r| r["type"] == "message").count())
    );
    a.pop();
    b.pop();
    prop_assert_eq!(a, b);
    Ok(())
}

proptest! {
    #[test]
    fn whatever_the_conversation_and_the_budget(
        events in events(),
        budget in prop_oneof![1u64..400, 400u64..8000],
        foreign: bool,
        keep_tools in 0u64..7,
        family in prop::sample::select(vec![Family::Anthropic, Family::OpenAi, Family::Unknown]),
        recent_turns in prop::option::weighted(0.2, 1u64..4),
    ) {
        let options = Options { keep_tools, family, recent_turns, ..Options::new(budget) };
        check(&options, &session(&events, foreign))?;
    }
}

#[test]
fn what_fits_stays_as_it_is() {
    let input = session(&[(5, 9), (0, 9), (11, 9), (2, 9), (10, 9), (1, 9)], true);
    let out = trim(&Options::new(100_000), &input).unwrap();
    assert_eq!(out[1..], input[1..]);
    let start: Session = serde_json::from_str(&out[0]).unwrap();
    let budget = start.budget.unwrap();
    assert_eq!((budget.tokens, budget.summary_reserve, budget.note_reserve), (100_000, 4_000, 500));
    assert!(out[0].ends_with(r#","extra":{"a":1}}"#), "{}", out[0]);
    let small = Options::new(2_000).aim();
    assert_eq!((small.summary_reserve, small.note_reserve), (1_200, 100));
}

/// One prompt and so many steps, as a long autonomous run has them.
fn long_run(steps: usize) -> Vec<String> {
    let mut made = Maker::new(false);
    made.prompt("Make the whole suite pass, and do not stop before it does.");
    for n in 0..steps {
        let id = format!("toolu_{n}");
        if n % 3 == 0 {
            made.text(Role::Assistant, &format!("Step {n}: the next failure is in module {}.", n % 17));
        }
        made.call(&id, "Bash", json!({"command": format!("cargo test module_{n}")}));
        made.result(&id, format!("run {n}\n{}", words(60, n as u64)).into());
    }
    made.end()
}

#[test]
fn a_long_run_of_one_prompt_keeps_its_newest_steps() {
    let input = long_run(3000);
    for budget in [10_000, 32_000] {
        let options = Options::new(budget);
        let out = trim(&options, &input).unwrap();
        let records = parsed(&out);
        let kept = tokens(&out, options.family, |_| true);
        let room = options.budget - options.aim().summary_reserve - options.aim().note_reserve;
        assert!(kept <= room && kept * 100 >= room * 95, "{kept} of {room}");
        assert!(is_live(&records[1]) && records[1]["role"] == "user");
        let live: Vec<&Json> = records.iter().filter(|r| is_live(r)).collect();
        // the five newest results are whole, those before are one line or condensed, and no step is left out between
        let results: Vec<&&Json> = live.iter().filter(|r| r["role"] == "tool_result").collect();
        assert!(results.len() > 35, "{}", results.len());
        for (n, result) in results.iter().rev().enumerate() {
            assert_eq!(result["tool_call_id"], format!("toolu_{}", 2999 - n));
            assert_eq!(result["synthetic"] == true, n >= 5, "{n}");
        }
        assert_eq!(trim(&options, &out).unwrap(), out);
    }
}

#[test]
fn the_window_is_small_however_long_the_session() {
    let mut filter = Trim::new(Options::new(8_000)).unwrap();
    let mut out: Vec<Vec<u8>> = Vec::new();
    let mut tape = Tape::new();
    let input = long_run(5000);
    for (n, line) in input.iter().enumerate() {
        filter.record(&Record::new(line.as_bytes(), &mut tape).unwrap(), &mut out).unwrap();
        assert!(filter.state.entries.len() < 2_000 && filter.state.queue.len() < 1 << 20, "{n}");
        assert!(filter.state.calls.len() < 3);
    }
    assert_eq!(
        out.len(),
        input.len() + out.iter().filter(|l| l.windows(16).any(|w| w == b"\"synthetic\":true")).count()
    );
}

#[test]
fn a_later_prompt_that_waits_holds_little_in_memory() {
    // the newest prompt cannot go out before it is known to be the newest
    let mut filter = Trim::new(Options::new(4_000)).unwrap();
    let mut out: Vec<Vec<u8>> = Vec::new();
    let mut tape = Tape::new();
    let mut input = session(&[(0, 5), (1, 5), (0, 6)], false);
    input.pop();
    input.extend(long_run(2000).into_iter().skip(2));
    for line in &input {
        filter.record(&Record::new(line.as_bytes(), &mut tape).unwrap(), &mut out).unwrap();
        assert!(filter.state.entries.len() + filter.state.front.len() < 300);
    }
    let lines: Vec<String> = out.into_iter().map(|l| String::from_utf8(l).unwrap()).collect();
    let prompts = parsed(&lines).into_iter().filter(|r| r["role"] == "user" && is_live(r)).count();
    assert_eq!(prompts, 2);
}

/// Counts four bytes as one token, and how many bytes it was asked for.
struct Asked(std::sync::Arc<std::sync::atomic::AtomicU64>);

impl crate::tokens::Counter for Asked {
    fn count(&self, text: &str) -> u64 {
        self.0.fetch_add(text.len() as u64, std::sync::atomic::Ordering::Relaxed);
        text.len() as u64 / 4
    }

    fn count_escaped(&self, body: &[u8]) -> u64 {
        self.count(&String::from_utf8_lossy(body))
    }
}

#[test]
fn a_prompt_without_end_takes_work_in_proportion() {
    for (place, text) in [(0, "a"), (1, "a"), (0, "a pond "), (1, "鸭")] {
        let work = |times: usize| {
            let mut made = Maker::new(false);
            let mut texts = ["Count the ducks.".to_owned(), "Go on.".to_owned()];
            texts[place] = text.repeat(times);
            made.prompt(&texts[0]);
            made.call("c", "Bash", json!({"command": "ls"}));
            made.result("c", "x".into());
            made.prompt(&texts[1]);
            let asked = std::sync::Arc::default();
            let mut filter = Trim::new(Options::new(8_000)).unwrap();
            filter.counters.quick = Box::new(Asked(std::sync::Arc::clone(&asked)));
            // what is counted for sure is counted by it, too
            filter.counters.last = true;
            run(&mut filter, &made.end()).unwrap();
            (asked.load(std::sync::atomic::Ordering::Relaxed), (text.len() * times) as u64)
        };
        for times in [100_000, 400_000, 1_600_000] {
            let (asked, bytes) = work(times / text.len());
            assert!(asked <= 3 * bytes + 300_000, "{place}: {asked} of {bytes}");
        }
    }
}

#[test]
fn superseded_reads_go_before_other_results() {
    let mut made = Maker::new(false);
    made.prompt("Look at the file.");
    for (id, path) in [("r1", "/a"), ("r2", "/b"), ("r3", "/a")] {
        made.call(id, "Read", json!({"file_path": path}));
        made.result(id, words(300, 9).into());
    }
    made.call("w", "Write", json!({"file_path": "/c", "content": "x"}));
    made.result("w", "done".into());
    let input = made.end();
    let all = tokens(&input, Family::Unknown, |_| true);
    let options = Options { keep_tools: 0, summary_reserve: Some(0), ..Options::new(all) };
    let out = parsed(&trim(&options, &input).unwrap());
    let shown: Vec<&str> = out
        .iter()
        .filter(|r| is_live(r) && r["synthetic"] == true)
        .map(|r| r["content"].as_str().unwrap())
        .collect();
    assert_eq!(shown.len(), 1);
    assert!(shown[0].ends_with("the file is read or written again later]"), "{shown:?}");
}

#[test]
fn of_the_plans_the_newest_stays() {
    let mut made = Maker::new(false);
    made.prompt("Do all of it.");
    for n in 0..4 {
        let plan: Vec<Json> = (0..12)
            .map(|s| json!({"step": format!("Step {s} of the plan"), "status": if s < n { "completed" } else { "pending" }}))
            .collect();
        made.call(&format!("p{n}"), "update_plan", json!({"plan": plan}));
        made.result(&format!("p{n}"), "Plan updated".into());
    }
    let input = made.end();
    let all = tokens(&input, Family::OpenAi, |_| true);
    let options = Options { family: Family::OpenAi, summary_reserve: Some(0), ..Options::new(all * 3 / 4) };
    let once = trim(&options, &input).unwrap();
    let out = parsed(&once);
    let calls: Vec<&Json> = out.iter().filter(|r| is_live(r) && r["role"] == "tool_call").collect();
    let omitted: Vec<bool> = calls.iter().map(|c| c["input"]["omitted"].is_string()).collect();
    assert_eq!(omitted, [true, true, false, false]);
    assert_eq!(calls[3]["input"]["plan"][2]["status"], "completed");
    assert_eq!(trim(&options, &once).unwrap(), once);
}

#[test]
fn a_budget_that_is_too_small_names_the_smallest() {
    let input = session(&[(0, 300), (1, 5), (0, 20)], false);
    let error = trim(&Options::new(50), &input).unwrap_err();
    assert_eq!(error.exit_code(), 1);
    assert!(error.to_string().contains("a budget of 50 tokens is too small"), "{error}");
}

#[test]
fn what_is_done_is_told() {
    let options = Options { explain: true, ..Options::new(8_000) };
    let mut filter = Trim::new(options).unwrap();
    run(&mut filter, &long_run(500)).unwrap();
    let told = filter.take_explanations().remove(0);
    let row = |kind: &str| told.rows.iter().find(|r| r.kind == kind).unwrap().clone();
    let results = row("tool results");
    assert_eq!(results.kept + results.condensed + results.masked + results.dropped, 500);
    assert_eq!(results.kept, 5);
    assert!(results.condensed + results.masked > 10 && results.dropped > 300, "{results:?}");
    assert_eq!(row("first and newest prompt").kept, 1);
    assert!(told.kept() <= 4_400 && told.pinned() > 5);
    let lines = told.lines();
    let [.., all, unused] = &lines[..] else { panic!("{lines:?}") };
    assert!(all.starts_with("all ") && unused.starts_with("unused: "), "{lines:?}");
    let bar = told.bar(60);
    assert_eq!(bar[0].len(), 62);
    assert!(bar[0].contains("===") && bar[0].contains("++"), "{bar:?}");
}

#[test]
fn a_plan_costs_what_it_will_be_in_the_target() {
    let steps = ["Read the importer and its tests", "Write the exporter", "Run everything once more"];
    let plan: Vec<Json> = steps.iter().map(|s| json!({"step": s, "status": "pending"})).collect();
    let todos: Vec<Json> =
        steps.iter().map(|s| json!({"content": s, "status": "pending", "activeForm": s})).collect();
    let exact = Exact::o200k().unwrap();
    let call = json!({"role":"tool_call","tool_name":"update_plan","input":{"plan":plan}}).to_string();
    let mut tape = Tape::new();
    let value = tape.parse(call.as_bytes()).unwrap();
    let written = exact.count("TodoWrite") + exact.count(&json!({"todos": todos}).to_string());
    for family in [Family::Anthropic, Family::Unknown] {
        assert!(cost::whole(Role::ToolCall, value, &exact, family) >= family.tokens(written));
    }
    // there it stays as it is
    assert!(cost::whole(Role::ToolCall, value, &exact, Family::OpenAi) < written);
}
