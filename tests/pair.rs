//! relay-pair as a command: what it prints where, and how it ends.
use crate::support::sandbox::{Sandbox, bin};

const START: &str = r#"{"type":"session","relay":1,"session_id":"s","source_agent":"claude"}"#;
const CALL: &str = r#"{"type":"message","role":"tool_call","line":7,"tool_call_id":"t1","tool_name":"Bash","input":{"command":"ls"}}"#;
const RESULT: &str = r#"{"type":"message","role":"tool_result","tool_call_id":"t1","content":"x"}"#;
const END: &str = r#"{"type":"end"}"#;

fn stream(lines: &[&str]) -> String {
    lines.iter().flat_map(|line| [line, "\n"]).collect()
}

/// Runs the command: exit code, stdout, stderr.
fn pair(arguments: &[&str], input: &str) -> (i32, String, String) {
    let out = Sandbox::new().relay("relay-pair", arguments).stdin(input).run();
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (out.code(), text(&out.stdout), text(&out.stderr))
}

#[test]
fn a_paired_stream_passes_and_names_the_command() {
    let input = stream(&[START, CALL, RESULT, END]);
    assert_eq!(pair(&["--no-via"], &input), (0, input.clone(), String::new()));
    let (code, out, err) = pair(&["--orphans", "stub"], &input);
    assert_eq!((code, err.as_str()), (0, ""));
    assert!(out.lines().next().unwrap().contains(r#""via":[{"name":"relay-pair""#), "{out}");
    assert!(out.contains("--orphans=stub"));
    assert!(out.ends_with(&stream(&[CALL, RESULT, END])));
}

#[test]
fn each_way_with_orphans_is_its_own() {
    let input = stream(&[START, CALL, END]);
    let (_, text, _) = pair(&[], &input);
    assert!(text.contains(r#"[tool call without result: Bash {\"command\":\"ls\"}]"#), "{text}");
    let (_, stub, _) = pair(&["--orphans=stub"], &input);
    assert!(stub.contains("[no result recorded]") && !stub.contains(r#""dropped":"orphan""#), "{stub}");
    let (_, dropped, _) = pair(&["--orphans=drop"], &input);
    assert!(dropped.contains(r#""dropped":"orphan""#) && !dropped.contains("synthetic"), "{dropped}");
    assert_eq!(pair(&["--orphans=keep"], &input).0, 2);
}

#[test]
fn a_check_prints_findings_only() {
    let (code, out, err) = pair(&["--check"], &stream(&[START, CALL, END]));
    assert_eq!((code, out.as_str(), err.as_str()), (1, "s: line 7: orphan_call: Bash t1\n", ""));
    assert_eq!(pair(&["--check"], &stream(&[START, CALL, RESULT, END])), (0, String::new(), String::new()));
}

#[test]
fn a_plain_result_of_a_call_of_the_server_is_found() {
    let call = r#"{"type":"message","role":"tool_call","line":3,"tool_call_id":"t1","tool_name":"tool_search","input":{"query":"x"},"metadata":{"server":true}}"#;
    let prompt = r#"{"type":"message","role":"user","content":"find it"}"#;
    let found = "orphan_result: t1";
    let input = stream(&[START, prompt, call, RESULT, END]);
    let (code, out, _) = pair(&["--check"], &input);
    assert_eq!((code, out.contains(found)), (1, true), "{out}");
    let sandbox = Sandbox::new();
    let project = sandbox.project().display().to_string();
    for agent in ["claude", "codex"] {
        let write = |arguments: &[&str]| {
            sandbox
                .relay("relay-write", &[&[agent, "-o", "-", "--project", &project], arguments].concat())
                .stdin(input.as_str())
                .run()
        };
        let out = write(&["--strict-pairs"]);
        assert_eq!(out.code(), 1, "{agent}");
        // else both halves are text
        let out = write(&[]).success().text();
        assert!(
            out.contains("[tool run by the server: tool_search")
                && out.contains("[tool result without call: t1]")
        );
        assert!(!out.contains("tool_use_id") && !out.contains("function_call_output"), "{agent}: {out}");
    }
}

#[test]
fn an_empty_stream_is_no_error() {
    let (code, out, err) = pair(&[], "");
    assert_eq!((code, out.as_str()), (0, ""));
    assert_eq!(err.lines().count(), 1);
    assert_eq!(pair(&["--quiet"], ""), (0, String::new(), String::new()));
}

#[test]
fn a_cut_stream_fails_and_says_so_to_the_next_command() {
    let (code, out, err) = pair(&[], &stream(&[START, CALL]));
    assert_eq!(code, 3);
    assert!(out.lines().last().unwrap().starts_with(r#"{"type":"abort","by":"relay-pair""#), "{out}");
    assert_eq!(err.lines().count(), 1);
}

#[test]
fn the_failure_of_an_earlier_command_is_passed_on_in_silence() {
    let abort = r#"{"type":"abort","by":"relay-read","reason":"disk"}"#;
    let (code, out, err) = pair(&[], &stream(&[START, CALL, abort]));
    assert_eq!((code, err.as_str()), (3, ""));
    assert_eq!(out.lines().last().unwrap(), abort);
    assert!(!out.contains(r#""type":"end""#));
}

#[test]
fn a_full_disk_fails_and_a_closed_pipe_does_not() {
    let sandbox = Sandbox::new();
    let pair = bin("relay-pair");
    let input = sandbox.write("in.jsonl", stream(&[START, CALL, RESULT, END]).repeat(20_000));
    let (pair, input) = (pair.display(), input.display());
    let full = sandbox.shell(&format!("'{pair}' < '{input}' > /dev/full")).run();
    assert_eq!(full.code(), 1);
    let closed = sandbox.shell(&format!("{{ '{pair}' < '{input}'; echo $? >&2; }} | head -1")).run();
    assert_eq!(String::from_utf8_lossy(&closed.stderr), "0\n");
}

#[test]
fn help_begins_with_what_the_command_does() {
    let (code, out, _) = pair(&["--help"], "");
    assert_eq!(code, 0);
    assert!(out.starts_with("Give every tool call"), "{out}");
    assert!(out.contains("relay-read claude | relay-pair | relay-write codex"));
    assert!(out.contains("Exit codes: 0 done"));
}
