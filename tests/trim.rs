//! relay-trim as a command: what it prints where, how it ends, and `relay-write --fit`.
use crate::support::sandbox::Sandbox;
use serde_json::{Value, json};

/// A session of one prompt and so many steps.
pub(crate) fn session(steps: usize) -> String {
    let mut lines = vec![
        json!({"type":"session","relay":1,"session_id":"s","source_agent":"claude"}),
        json!({"type":"message","role":"user","seq":1,"turn":1,"content":"Count the ducks on every pond."}),
    ];
    for n in 0..steps {
        let (id, log) = (format!("t{n}"), format!("pond {n}: 7 ducks, all of them awake\n").repeat(40));
        lines.push(
            json!({"type":"message","role":"tool_call","seq":2 * n + 2,"turn":1,"group":format!("m{n}"),
            "tool_call_id":id,"tool_name":"Bash","input":{"command":format!("count pond-{n}")}}),
        );
        lines.push(json!({"type":"message","role":"tool_result","seq":2 * n + 3,"turn":1,"tool_call_id":id,
            "tool_name":"Bash","status":"ok","content":log}));
    }
    lines.push(
        json!({"type":"end","session_id":"s","messages":2 * steps + 1,"live":2 * steps + 1,"problems":[]}),
    );
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// Runs the command: exit code, stdout, stderr.
fn trim(arguments: &[&str], input: &str) -> (i32, String, String) {
    let out = Sandbox::new().relay("relay-trim", arguments).stdin(input).run();
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (out.code(), text(&out.stdout), text(&out.stderr))
}

fn records(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn live(records: &[Value]) -> usize {
    records.iter().filter(|r| r["type"] == "message" && r["dropped"].is_null()).count()
}

#[test]
fn a_long_session_is_trimmed_and_says_to_what() {
    let input = session(400);
    let (code, out, err) = trim(&["--budget", "8000"], &input);
    assert_eq!((code, err.as_str()), (0, ""));
    let found = records(&out);
    assert_eq!(
        found[0]["budget"],
        json!({"tokens":8000,"summary_reserve":4000,"note_reserve":400,"tokenizer":"estimate","factor":1300})
    );
    assert_eq!(found[0]["via"][0]["options"], json!(["--budget=8000"]));
    assert!(live(&found) > 20 && live(&found) < 300, "{}", live(&found));
    assert_eq!(found.last().unwrap()["live"], live(&found));
    assert_eq!(trim(&["--budget", "8000"], &input).1, out);
    let (_, lean, _) = trim(&["--budget", "8000", "--drop"], &input);
    assert_eq!(live(&records(&lean)), live(&found));
    assert!(!lean.contains(r#""dropped":"trimmed""#) && !lean.contains(r#""dropped":"condensed""#));
}

#[test]
fn the_table_and_the_findings_go_to_stderr() {
    let (code, out, err) = trim(&["--budget", "8000", "--explain"], &session(400));
    assert_eq!(code, 0);
    let line = err.lines().find(|line| line.contains("tool results")).unwrap();
    let figures: Vec<u64> = line.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    let [kept, condensed, masked, dropped, before, after] = figures[..] else { panic!("{line}") };
    assert_eq!(kept + condensed + masked + dropped, 400);
    assert!(err.lines().any(|line| line.contains("unused: ")), "{err}");
    assert!(kept >= 2 && before > 50_000 && after < 4_400, "{line}");
    // the bar is for terminals
    assert!(!err.contains("[#"), "{err}");
    assert!(out.lines().all(|line| line.starts_with('{')));
    assert_eq!(trim(&["--budget", "8000", "--explain", "--quiet"], &session(400)).2, "");
}

#[test]
fn a_budget_that_is_too_small_names_one_that_works() {
    let input = session(3);
    let (code, out, err) = trim(&["--budget", "3"], &input);
    assert_eq!((code, err.lines().count()), (1, 1), "{err}");
    assert!(out.lines().last().unwrap().starts_with(r#"{"type":"abort","by":"relay-trim""#), "{out}");
    let smallest = err.trim().rsplit(' ').next().unwrap();
    let (code, out, err) = trim(&["--budget", smallest], &input);
    assert_eq!((code, err.as_str()), (0, ""));
    assert_eq!(live(&records(&out)), 1);
    let end = records(&out).pop().unwrap();
    assert_eq!(end["budget"]["summary_reserve"], 0);
}

#[test]
fn wrong_arguments_are_usage_errors_with_a_next_step() {
    let refused = |arguments: &[&str]| {
        let (code, _, err) = trim(arguments, "");
        assert_eq!(code, 2, "{err}");
        err
    };
    assert!(refused(&["--buget", "7"]).contains("'--budget'"));
    assert!(refused(&["--budget", "7", "--tokenizer", "o200"]).contains("'o200k'"));
    assert!(refused(&["--for", "cluade"]).contains("did you mean claude?"));
    assert!(refused(&[]).contains("for example: relay-read claude | relay-trim --budget"));
    for wrong in [["--budget", "0"], ["--budget", "many"], ["--for", "codex:"]] {
        refused(&wrong);
    }
    refused(&["--budget", "7", "--safety", "1.5"]);
    refused(&["--budget", "7", "--recent-turns", "0"]);
}

#[test]
fn a_target_brings_its_window_from_the_configuration() {
    let sandbox = Sandbox::new();
    sandbox.write(
        "home/.config/relay/config.toml",
        "[agents.codex]\ncontext_window = 9000\nreserved_tokens = 2000\n[relay]\ntool_call_keep_recent = 0\n",
    );
    let config = sandbox.path("home/.config/relay/config.toml");
    let run = |target: &str| {
        let out = sandbox
            .relay("relay-trim", &["--for", target])
            .env("RELAY_CONFIG", config.as_os_str())
            .stdin(session(400))
            .run()
            .success();
        records(&out.text())
    };
    let found = run("codex");
    assert_eq!(found[0]["budget"]["tokens"], 7000);
    // the same number of tokens of a dearer model holds less
    assert!(live(&run("codex:claude-opus-4-5")) < live(&found));
    let usual = records(&trim(&["--for", "claude"], &session(1)).1);
    assert_eq!(usual[0]["budget"]["tokens"], 150_000);
}

#[test]
fn relay_write_can_fit_by_itself() {
    let sandbox = Sandbox::new();
    let config = sandbox.write(
        "small.toml",
        "[agents.codex]\ncontext_window = 9000\nreserved_tokens = 1000\n[agents.claude]\ncontext_window = 9000\nreserved_tokens = 1000\n",
    );
    for target in ["codex", "claude"] {
        let project = sandbox.project();
        let out = sandbox
            .relay("relay-write", &[target, "--fit", "--json", "--project", project.to_str().unwrap()])
            .env("RELAY_CONFIG", config.as_os_str())
            .stdin(session(400))
            .run()
            .success();
        let written: Value = serde_json::from_str(&out.text()).unwrap();
        let tokens = written["tokens"].as_u64().unwrap();
        assert!(tokens > 2_000 && tokens < 4_800, "{target}: {tokens}");
        assert!(written["dropped"].as_u64().unwrap() > 300);
        let text = std::fs::read_to_string(written["path"].as_str().unwrap()).unwrap();
        assert!(text.contains("Count the ducks on every pond.") && text.contains("count pond-399"));
        assert!(text.contains("trimmed to fit") && !text.contains("count pond-9\\"));
    }
    let jsonl = sandbox.relay("relay-write", &["jsonl", "--fit"]).stdin(session(1)).run();
    assert_eq!(jsonl.code(), 2);
}

#[test]
fn an_unpaired_stream_is_paired_first() {
    let lines: Vec<String> = session(1).lines().map(str::to_owned).collect();
    let without: String =
        lines.iter().filter(|l| !l.contains("tool_result")).map(|l| format!("{l}\n")).collect();
    let (code, out, _) = trim(&["--budget", "8000"], &without);
    assert_eq!(code, 0);
    assert!(out.contains("[tool call without result: Bash"), "{out}");
}

#[test]
fn streams_that_are_cut_or_empty_end_as_everywhere() {
    let cut = session(2).replace(r#"{"live""#, r#"{"x""#);
    let cut = cut.lines().take(4).map(|l| format!("{l}\n")).collect::<String>();
    assert_eq!(trim(&["--budget", "8000"], &cut).0, 3);
    let (code, out, err) = trim(&["--budget", "8000"], "");
    assert_eq!((code, out.as_str(), err.lines().count()), (0, "", 1));
}

#[test]
fn help_begins_with_what_the_command_does() {
    let (code, out, _) = trim(&["--help"], "");
    assert_eq!(code, 0);
    assert!(out.starts_with("Fit the live conversation into a budget of tokens"), "{out}");
    assert!(out.contains("relay-read claude | relay-trim --budget 150000 | relay-write codex"));
    assert!(out.contains("Exit codes: 0 done"));
}
