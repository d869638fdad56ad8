//! The commands as people type them: the pipelines of the manual word for word, and what each command says when it
//! is given something else than it wants.

use crate::support::clients::claude_project;
use crate::support::sandbox::{Output, Run, Sandbox};
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// The session of the demonstration, as Claude Code would have made it in the sandbox's project.
const ID: &str = "5b0f6f0e-3c1d-4c8e-9a64-2f6d7e0a1b11";

/// Puts the session in its place and gives that.
fn session(sandbox: &Sandbox) -> PathBuf {
    let demo = format!("{}/scripts/demo-session/{ID}.jsonl", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(demo).unwrap();
    let text = text.replace("@PROJECT@", sandbox.project().to_str().unwrap());
    let folder = Path::new("home/.claude/projects").join(claude_project(&sandbox.project()));
    sandbox.write(folder.join(format!("{ID}.jsonl")), text)
}

/// A line of shell with nothing but a HOME: agents and relay find their folders by that.
fn typed(sandbox: &Sandbox, line: &str) -> Run {
    sandbox.shell(line).without_env("CODEX_HOME").without_env("CLAUDE_CONFIG_DIR")
}

/// The same in a terminal, until that shows `word`; keys come from whoever sits there.
fn on_screen(sandbox: &Sandbox, word: &str, keys: &str, line: &str) -> Output {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support/terminal.py");
    let run = sandbox.command("/usr/bin/env").args(&["python3", script.to_str().unwrap(), word, "60", keys]);
    let run = run.args(&["--", "bash", "-o", "pipefail", "-c", line]);
    run.without_env("CODEX_HOME").without_env("CLAUDE_CONFIG_DIR").run()
}

/// The files under a folder that may not be there.
fn files(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let paths = entries.map(|entry| entry.unwrap().path());
    paths.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

/// A stream of sessions, each with these messages behind a prompt.
fn stream(sessions: &[&[Value]]) -> String {
    let mut lines = Vec::new();
    for (n, messages) in sessions.iter().enumerate() {
        lines.push(
            json!({"type":"session","relay":1,"session_id":format!("s{n}"),"source_agent":"claude"})
                .to_string(),
        );
        lines.push(json!({"type":"message","role":"user","content":"hello"}).to_string());
        lines.extend(messages.iter().map(Value::to_string));
        lines.push(json!({"type":"end"}).to_string());
    }
    lines.iter().flat_map(|line| [line.as_str(), "\n"]).collect()
}

fn call() -> Value {
    json!({"type":"message","role":"tool_call","line":7,"tool_call_id":"t1","tool_name":"Bash","input":{"command":"ls"}})
}

/// What resumes the one session that was written, out of a line of stdout.
fn resumed(sandbox: &Sandbox, out: &Output) -> String {
    let id = out.text().trim_end().rsplit(' ').next().unwrap().to_owned();
    assert_eq!(out.text(), format!("cd -- '{}' && codex resume {id}\n", sandbox.project().display()));
    let written = files(&sandbox.home().join(".codex/sessions"));
    let [written] = written.as_slice() else { panic!("not one session: {written:?}") };
    assert!(written.to_str().unwrap().ends_with(&format!("{id}.jsonl")), "{written:?}");
    assert_eq!(written.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    id
}

/// That the whole conversation is there, in a session that Codex lists for this folder.
fn holds_all(sandbox: &Sandbox, id: &str) {
    let line = format!("relay-read codex {id} --quiet");
    let read = typed(sandbox, &line).run().success().text();
    assert!(read.contains("the same check for credit notes"), "{read}");
    assert_eq!(read.matches("\"role\":\"tool_result\"").count(), 4, "{read}");
}

#[test]
fn the_shortest_line_of_the_manual() {
    let sandbox = Sandbox::new();
    session(&sandbox);
    let line = "relay-read claude | relay-trim --budget 150000 | relay-write codex";
    let out = typed(&sandbox, line).run().success();
    holds_all(&sandbox, &resumed(&sandbox, &out));
}

#[test]
fn the_line_of_the_manual_with_every_filter() {
    let sandbox = Sandbox::new();
    session(&sandbox);
    let line = "relay-read claude | relay-pair | relay-trim --budget 150000 | relay-summarize | relay-redact | \
                relay-write codex";
    let out = typed(&sandbox, line).run().success();
    holds_all(&sandbox, &resumed(&sandbox, &out));
}

#[test]
fn the_line_of_the_manual_into_the_other_agent() {
    let sandbox = Sandbox::new();
    session(&sandbox);
    let client = sandbox.write("fake/codex", "#!/bin/sh\nread typed\necho \"$PWD/ $* got:$typed\"\n");
    std::fs::set_permissions(&client, PermissionsExt::from_mode(0o755)).unwrap();
    let line = "PATH=$PWD/../fake:$PATH; relay-read claude | relay-trim --for codex | relay-summarize | \
                relay-write codex --resume";
    // the client's input is the terminal, not the pipe that relay-write read
    let out = on_screen(&sandbox, "got:typed", "typed\n", line).success();
    let said = out.text();
    let last = said.lines().find(|line| line.contains("got:typed")).unwrap();
    let id = last.split_whitespace().nth(2).unwrap();
    assert_eq!(last.trim_end(), format!("{}/ resume {id} got:typed", sandbox.project().display()));
    holds_all(&sandbox, id);
}

#[test]
fn the_line_of_the_manual_for_an_archive() {
    let sandbox = Sandbox::new();
    session(&sandbox);
    let line =
        "relay-read claude --all --since 30d | relay-redact --share | relay-write jsonl -o archive.jsonl.zst";
    let out = typed(&sandbox, line).run().success();
    assert_eq!(out.text(), "");
    let archive = sandbox.project().join("archive.jsonl.zst");
    assert_eq!(std::fs::read(&archive).unwrap().get(..4), Some(&[0x28, 0xb5, 0x2f, 0xfd][..]));
    let back = typed(&sandbox, "relay-pair --no-via < archive.jsonl.zst").run().success().text();
    assert!(back.contains("the same check for credit notes") && back.contains("\"type\":\"end\""), "{back}");
}

#[test]
fn what_is_not_paired_is_refused_where_it_must_be() {
    let sandbox = Sandbox::new();
    let whole = json!({"type":"message","role":"assistant","content":"done"});
    sandbox.write("project/unpaired", stream(&[&[call()], &[whole]]));
    let checked = typed(&sandbox, "relay-pair --check < unpaired").run().expect_code(1);
    for more in ["", "--fit", "--quiet", "--dry-run"] {
        let line = format!("relay-write codex --project . --strict-pairs {more} < unpaired");
        let out = typed(&sandbox, &line).run().expect_code(1);
        // the words of relay-pair, and the other session all the same
        assert!(out.errors().contains(&format!("relay-write: {}", checked.text())), "{}", out.errors());
        assert!(out.errors().contains("session s0: calls and results are not paired: nothing written"));
        assert_eq!(out.text().lines().count(), 1, "{}", out.text());
        let sessions = sandbox.home().join(".codex/sessions");
        assert_eq!(files(&sessions).len(), usize::from(more != "--dry-run"), "{more}");
        if more != "--dry-run" {
            std::fs::remove_dir_all(sessions).unwrap();
        }
    }
    // without the flag it is repaired
    typed(&sandbox, "relay-write codex --project . < unpaired").run().success();
}

#[test]
fn a_line_that_cannot_be_printed_is_not_lost() {
    for (before, more, to, cause) in [
        ("", "", "/dev/full", "stdout: no space left on device"),
        ("", "--json", "/dev/full", "stdout: no space left on device"),
        // a pipe whose reader is gone for sure
        ("exec 3> >(true); wait $!;", "", "&3", "closed pipe"),
    ] {
        let sandbox = Sandbox::new();
        sandbox.write("project/two", stream(&[&[], &[]]));
        let line = format!("{before} relay-write codex --project . {more} < two >{to}");
        let out = typed(&sandbox, &line).run().expect_code(1);
        let lost = format!("relay-write: written, but not printed ({cause}): ");
        let errors = out.errors();
        let lines: Vec<&str> = errors.lines().filter_map(|line| line.strip_prefix(&lost)).collect();
        assert_eq!(lines.len(), 2, "{errors}");
        let written = files(&sandbox.home().join(".codex/sessions"));
        assert_eq!(written.len(), 2);
        for line in lines {
            let id = match more {
                "--json" => {
                    serde_json::from_str::<Value>(line).unwrap()["session_id"].as_str().unwrap().to_owned()
                }
                _ => line.rsplit(' ').next().unwrap().to_owned(),
            };
            assert!(written.iter().any(|file| file.to_str().unwrap().contains(&id)), "{line}");
        }
    }
}

#[test]
fn resume_is_looked_into_before_anything_is_written() {
    let sandbox = Sandbox::new();
    sandbox.write("project/one", stream(&[&[]]));
    let out = typed(&sandbox, "setsid -w relay-write codex --project . --resume < one").run().expect_code(1);
    assert!(out.errors().contains("--resume needs a terminal"), "{}", out.errors());
    let line = "PATH=${PATH%%:*} relay-write codex --project . --resume < one";
    let out = on_screen(&sandbox, "hint:", "", line).success();
    assert!(out.text().contains("--resume needs codex, which is not on the PATH"), "{}", out.text());
    assert!(files(&sandbox.home().join(".codex/sessions")).is_empty());
}

#[test]
fn resume_of_two_sessions_prints_both_lines() {
    let sandbox = Sandbox::new();
    sandbox.write("project/two", stream(&[&[], &[]]));
    let client = sandbox.write("fake/codex", "#!/bin/sh\necho started\n");
    std::fs::set_permissions(&client, PermissionsExt::from_mode(0o755)).unwrap();
    let line = "PATH=$PWD/../fake:$PATH; relay-write codex --project . --resume < two";
    let out = on_screen(&sandbox, "hint:", "", line).success();
    assert!(out.text().contains("--resume is for one session: 2 were written"), "{}", out.text());
    assert_eq!(out.text().matches("&& codex resume ").count(), 2, "{}", out.text());
    assert!(!out.text().contains("started"));
}

#[test]
fn a_file_holds_one_session() {
    let sandbox = Sandbox::new();
    sandbox.write("project/two", stream(&[&[], &[]]));
    for (target, out) in [("codex", "-o one.jsonl"), ("claude", "-o other.jsonl"), ("codex", "-o -")] {
        let line = format!("relay-write {target} --project . {out} < two");
        let refused = typed(&sandbox, &line).run().expect_code(1);
        assert!(refused.errors().contains("session s1: -o holds one session"), "{}", refused.errors());
        // what is on stdout is the first alone
        assert!(refused.text().matches("\"session_meta\"").count() <= 1);
    }
    assert!(sandbox.path("project/one.jsonl").is_file() && sandbox.path("project/other.jsonl").is_file());
}

#[test]
fn an_archive_refuses_what_it_would_pass_over() {
    let sandbox = Sandbox::new();
    sandbox.write("project/one", stream(&[&[]]));
    for flag in [
        "--fit",
        "--strict-pairs",
        "--resume",
        "--register",
        "--restore",
        "--project .",
        "--map-path /a=/b",
        "--title x",
        "--root .",
        "--dialogue-only",
        "--no-note",
        "--keep-tool-names",
        "--json",
        "--json -o -",
    ] {
        let out = typed(&sandbox, &format!("relay-write jsonl {flag} < one")).run().expect_code(2);
        let name = flag.split(' ').next().unwrap();
        assert!(out.errors().contains(&format!("relay-write: {name} ")), "{flag}: {}", out.errors());
        assert!(out.errors().contains("hint: ") && out.text().is_empty(), "{flag}: {}", out.errors());
    }
    typed(&sandbox, "relay-write jsonl --json -o a.jsonl.gz < one").run().success();
}

/// A session file given to a filter must not come out of it as if it had been filtered.
#[test]
fn an_agents_own_file_is_no_stream() {
    let sandbox = Sandbox::new();
    let claude = session(&sandbox);
    typed(&sandbox, "relay-read claude -q | relay-write codex -q").run().success();
    let codex = files(&sandbox.home().join(".codex/sessions")).remove(0);
    for file in [&claude, &codex] {
        for command in
            ["relay-pair", "relay-trim --budget 9000", "relay-summarize", "relay-redact", "relay-write codex"]
        {
            let line = format!("{command} < {}", file.display());
            let out = typed(&sandbox, &line).run().expect_code(3);
            assert!(out.errors().contains("stdin:1: no relay stream"), "{line}: {}", out.errors());
            assert!(out.errors().contains("hint: "), "{line}: {}", out.errors());
            assert!(!out.text().contains("credit notes"), "{line}: {}", out.text());
        }
    }
    for junk in ["hello\n", "\u{1}\u{2}\n", "[]\n", "{\"type\":7}\n"] {
        let out = typed(&sandbox, "relay-write codex").stdin(junk).run().expect_code(3);
        assert!(out.errors().contains("hint: a stream begins with"), "{junk:?}: {}", out.errors());
    }
}

#[test]
fn the_json_of_the_first_codex_is_named() {
    let sandbox = Sandbox::new();
    let says = json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]});
    let at = "2025-05-01T10:00:00.000Z";
    let whole =
        json!({"session": {"timestamp": at, "id": ID, "instructions": "x".repeat(9999)}, "items": [says]});
    // serde_json sorts keys; the client wrote `session` first
    let text = |items: &Value, session: &Value| {
        format!("{{\n  \"session\": {session:#},\n  \"items\": {items:#}\n}}")
    };
    let indented = text(&whole["items"], &whole["session"]);
    let compact = format!("{{\"session\":{},\"items\":{}}}\n", whole["session"], whole["items"]);
    for text in [indented, compact] {
        sandbox.write(format!("project/rollout-2025-05-01-{ID}.json"), text);
        for agent in ["codex", "auto", "claude"] {
            let line = format!("relay-read {agent} ./rollout-2025-05-01-{ID}.json");
            let out = typed(&sandbox, &line).run().expect_code(3);
            assert!(out.errors().contains("as Codex kept a session while"), "{}", out.errors());
            assert!(out.errors().contains("hint: ") && out.text().lines().count() == 1, "{}", out.errors());
        }
    }
}

#[test]
fn all_is_not_all_where_something_could_not_be_looked_into() {
    let sandbox = Sandbox::new();
    let file = session(&sandbox);
    typed(&sandbox, "relay-read claude --all").run().success();
    let lost = file.with_file_name("5b0f6f0e-3c1d-4c8e-9a64-2f6d7e0a1b12.jsonl");
    std::os::unix::fs::symlink("/nowhere/at/all", lost).unwrap();
    let out = typed(&sandbox, "relay-read claude --all").run().expect_code(3);
    assert!(out.errors().contains("skipped: ") && out.text().contains("credit notes"), "{}", out.errors());
    typed(&sandbox, "relay-read claude").run().success();
}

#[test]
fn the_window_of_the_configuration_counts() {
    let sandbox = Sandbox::new();
    session(&sandbox);
    let settings = "[agents.codex]\ncontext_window = 500\nreserved_tokens = 90\n";
    sandbox.write("home/.config/relay/config.toml", settings);
    let out = typed(&sandbox, "relay-read claude -q | relay-write codex").run().success();
    assert!(out.errors().contains("window of 500"), "{}", out.errors());
    let fitted = typed(&sandbox, "relay-read claude -q | relay-write codex --fit --json -q --root ../other");
    let fitted: Value = serde_json::from_str(fitted.run().success().text().trim()).unwrap();
    assert!(fitted["tokens"].as_u64().unwrap() <= 410, "{fitted}");
}

#[test]
fn the_size_of_a_summary_is_that_of_the_configuration() {
    let sandbox = Sandbox::new();
    session(&sandbox);
    let size = |more: &str| {
        let line = format!("relay-read claude -q | relay-summarize --all --format md {more}");
        typed(&sandbox, &line).run().success().text().len()
    };
    let usual = size("");
    sandbox.write("home/.config/relay/config.toml", "[relay]\nsummary_max_tokens = 120\n");
    let small = size("");
    assert!(small < usual && small > 0, "{small} {usual}");
    assert_eq!(size("--max-tokens 2000"), usual);
}

#[test]
fn a_folder_is_no_session() {
    let sandbox = Sandbox::new();
    session(&sandbox);
    sandbox.write("project/src/x", "");
    let named = typed(&sandbox, "relay-read claude src").run().expect_code(1);
    assert!(named.errors().contains("hint: \"src\" is a folder"), "{}", named.errors());
    let path = typed(&sandbox, "relay-read claude ./src").run().expect_code(3);
    assert!(path.errors().contains("is a folder"), "{}", path.errors());
}

#[test]
fn a_word_that_means_nothing_is_nearly_another() {
    let sandbox = Sandbox::new();
    session(&sandbox);
    for word in ["Fix the invoice rounding", "FIX THE INVOICE ROUNDING", "fix the invoice rounding "] {
        let out = typed(&sandbox, &format!("relay-read claude '{word}'")).run().success();
        assert!(out.text().contains("5b0f6f0e"), "{word}");
    }
    for (word, hint) in [
        ("5b0f6f0f", "did you mean session 5b0f6f0e"),
        ("5b0", "4 or more characters"),
        ("invoice", "it is session 5b0f6f0e"),
        ("Fix teh invoice rounding", "it is session 5b0f6f0e"),
    ] {
        let out = typed(&sandbox, &format!("relay-read claude '{word}'")).run().expect_code(1);
        assert!(out.errors().contains(hint), "{word}: {}", out.errors());
    }
    let out = typed(&sandbox, "relay-read codex 5b0f6f0e").run().expect_code(1);
    assert!(out.errors().contains("session of claude: relay-read claude 5b0f6f0e"), "{}", out.errors());
}

#[test]
fn the_nearest_project_is_named() {
    let sandbox = Sandbox::new();
    session(&sandbox);
    let project = sandbox.project();
    for (folder, hint) in [
        ("project/src/deep", "in the folder above"),
        ("moved/project", "moved here"),
        ("", "in a folder below"),
    ] {
        std::fs::create_dir_all(sandbox.path(folder)).unwrap();
        let out = typed(&sandbox, "relay-read claude").folder(sandbox.path(folder)).run().expect_code(1);
        let command = format!("--project {}", project.display());
        assert!(out.errors().contains(hint) && out.errors().contains(&command), "{folder}: {}", out.errors());
    }
}

#[test]
fn what_is_piped_into_a_reader_is_not_passed_over_in_silence() {
    let sandbox = Sandbox::new();
    let file = session(&sandbox);
    let fed = format!("cat {} | relay-read claude", file.display());
    let out = typed(&sandbox, &fed).run();
    assert!(out.errors().contains("is named -"), "{}", out.errors());
    for line in
        [format!("{fed} -"), "relay-read claude </dev/null".to_owned(), "true | relay-read claude".to_owned()]
    {
        let out = typed(&sandbox, &line).run().success();
        assert!(!out.errors().contains("warning"), "{line}: {}", out.errors());
    }
}

#[test]
fn a_cut_file_fails_where_nothing_may_be_skipped() {
    let sandbox = Sandbox::new();
    let claude = session(&sandbox);
    typed(&sandbox, "relay-read claude -q | relay-write codex -q").run().success();
    let codex = files(&sandbox.home().join(".codex/sessions")).remove(0);
    for (agent, file) in [("claude", claude), ("codex", codex)] {
        let whole = std::fs::read(&file).unwrap();
        std::fs::write(sandbox.project().join("cut.jsonl"), &whole[..whole.len() - 30]).unwrap();
        typed(&sandbox, &format!("relay-read {agent} ./cut.jsonl")).run().success();
        let out = typed(&sandbox, &format!("relay-read {agent} ./cut.jsonl --strict")).run().expect_code(3);
        assert!(out.errors().contains("cut.jsonl:"), "{}", out.errors());
    }
}

#[test]
fn one_root_means_the_same_to_readers_writers_and_the_client() {
    for (from, to, home, variable) in
        [("claude", "codex", ".codex", "CODEX_HOME"), ("codex", "claude", ".claude", "CLAUDE_CONFIG_DIR")]
    {
        let sandbox = Sandbox::new();
        session(&sandbox);
        if from == "codex" {
            typed(&sandbox, "relay-read claude -q | relay-write codex -q").run().success();
        }
        let sessions = if to == "codex" { "sessions" } else { "projects" };
        let other = sandbox.path("other home");
        let told = format!("{variable}='{}' {to}", other.display());
        let config = sandbox.path("home/.config/relay/config.toml");
        for (setting, more, line) in [
            ("", format!("--root '{}'", other.display()), &told),
            ("", format!("--root '{}/{sessions}'", other.display()), &told),
            (other.to_str().unwrap(), String::new(), &told),
            (other.join(sessions).to_str().unwrap(), String::new(), &told),
        ] {
            let text = format!("[agents.{to}]\nsession_root = {setting:?}\n");
            sandbox.write(&config, if setting.is_empty() { String::new() } else { text });
            let write = format!("relay-read {from} -q | relay-write {to} -q {more}");
            let out = typed(&sandbox, &write).run().success().text();
            assert!(out.contains(line.as_str()), "{out}");
            assert_eq!(files(&other.join(sessions)).len(), 1, "{write}");
            let read = format!("relay-read {to} {more}");
            let out = typed(&sandbox, &read).run().success();
            assert!(out.text().contains("credit notes"), "{}", out.errors());
            std::fs::remove_dir_all(&other).unwrap();
        }
        // the agent's own variable goes before the configuration, and the client knows it
        let set = format!("export {variable}=$HOME/{home}");
        sandbox.write(&config, format!("[agents.{to}]\nsession_root = {:?}\n", other.to_str().unwrap()));
        let out =
            typed(&sandbox, &format!("{set}; relay-read {from} -q | relay-write {to} -q")).run().success();
        assert!(!out.text().contains(variable) && !other.exists(), "{}", out.text());
    }
}

#[test]
fn a_dry_run_is_marked_and_looks_where_it_would_write() {
    for (agent, home) in [("codex", ".codex"), ("claude", ".claude")] {
        let sandbox = Sandbox::new();
        sandbox.write("project/one", stream(&[&[]]));
        let write = format!("relay-write {agent} --project . --dry-run <one");
        let out = typed(&sandbox, &write).run().success().text();
        assert!(out.starts_with("# dry run: cd -- '"), "{out}");
        // nothing that a shell would run
        typed(&sandbox, &format!("eval \"$({write})\"")).run().success();
        let json = typed(&sandbox, &write.replace("--dry-run", "--dry-run --json")).run().success().text();
        let told: Value = serde_json::from_str(json.trim()).unwrap();
        assert_eq!((&told["dry_run"], &told["source"]["session_id"]), (&json!(true), &json!("s0")));
        assert_eq!(told["source"]["agent"], "claude");
        sandbox.shell(&format!("rm -rf ../home/{home}; echo a file >../home/{home}")).run().success();
        for more in ["--dry-run", ""] {
            let out = typed(&sandbox, &write.replace("--dry-run", more)).run().expect_code(1);
            assert!(out.errors().contains(home) && out.text().is_empty(), "{more}: {}", out.errors());
        }
    }
    let sandbox = Sandbox::new();
    sandbox.write("project/one", stream(&[&[]]));
    for target in ["one", "one/x.jsonl", "x.bz2"] {
        for agent in ["jsonl", "codex --project ."] {
            let line = format!("relay-write {agent} -o {target} --dry-run <one");
            typed(&sandbox, &line).run().expect_code(1);
        }
    }
}

#[test]
fn json_tells_of_every_session() {
    let sandbox = Sandbox::new();
    let mut text = stream(&[&[], &[], &[]]).replacen("\"hello\"", "\"\"", 1);
    text = text.replacen("\"role\":\"user\"", "\"role\":\"reasoning\"", 1);
    sandbox.write("project/three", text);
    let out = typed(&sandbox, "relay-write codex --project . --json <three").run().expect_code(3).text();
    let told: Vec<Value> = out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let ids: Vec<&Value> = told.iter().map(|line| &line["source"]["session_id"]).collect();
    assert_eq!(ids, ["s0", "s1", "s2"]);
    assert!(told[0]["failed"].as_str().unwrap().contains("nothing to hand over"), "{out}");
    assert!(told[1]["failed"].is_null() && told[1]["resume"].is_string(), "{out}");
}

#[test]
fn two_readers_in_a_pipe_are_an_error() {
    let sandbox = Sandbox::new();
    session(&sandbox);
    typed(&sandbox, "relay-read claude -q >s").run().success();
    let out = typed(&sandbox, "cat s | (sleep .5; relay-read claude)").run().expect_code(2);
    assert!(out.errors().contains("one is piped in") && out.errors().contains("hint: "), "{}", out.errors());
}

#[test]
fn a_screen_is_no_place_for_a_stream() {
    let sandbox = Sandbox::new();
    session(&sandbox);
    let out = on_screen(&sandbox, "--stdout shows it here", "", "relay-read claude").success();
    let shown = out.text();
    assert!(shown.contains("Fix the invoice rounding") && shown.contains("| relay-write codex"), "{shown}");
    assert!(!shown.contains("\"type\""), "{shown}");
    let out = on_screen(&sandbox, "\"type\":\"end\"", "", "relay-read claude --stdout").success();
    assert!(out.text().contains("\"type\":\"session\""), "{}", out.text());
}

#[test]
fn what_other_programs_have_flags_for_is_said() {
    let sandbox = Sandbox::new();
    for (line, hint) in [
        ("relay-read claude --list", "relay-list shows them"),
        ("relay-read claude --last", "the newest of this folder"),
        ("relay-read", "for example: relay-read claude | relay-write codex"),
        ("relay-write", "for example: relay-read claude | relay-write codex"),
        ("relay-trim", "for example: relay-read claude | relay-trim --budget 150000"),
    ] {
        let out = typed(&sandbox, line).run().expect_code(2);
        assert!(out.errors().contains(hint), "{line}: {}", out.errors());
    }
    session(&sandbox);
    let near = format!("{}x", sandbox.project().display());
    let out = typed(&sandbox, &format!("relay-read claude --project {near}")).run().expect_code(1);
    assert!(out.errors().contains("there is no such folder; did you mean"), "{}", out.errors());
    let out = typed(&sandbox, "relay-read claude --project /no/such/folder/at/all").run().expect_code(1);
    assert!(out.errors().contains("there is no such folder"), "{}", out.errors());
}

#[test]
fn a_first_prompt_names_its_session() {
    let sandbox = Sandbox::new();
    for (agent, wrapped) in [
        ("claude", "<ide_opened_file>a.py</ide_opened_file>\nround it up"),
        (
            "codex",
            "# Context from my IDE setup:\n\n## Active file: a.py\n\n## My request for Codex:\nround it up",
        ),
    ] {
        let text = stream(&[&[]]).replace("\"hello\"", &json!(wrapped).to_string());
        sandbox.write("project/one", text);
        typed(&sandbox, &format!("relay-write {agent} --project . --no-note -q <one")).run().success();
        let out = typed(&sandbox, &format!("relay-read {agent} 'Round it UP'")).run().success();
        assert!(out.text().contains("round it up"), "{}", out.errors());
    }
}

#[test]
fn one_is_one() {
    let sandbox = Sandbox::new();
    sandbox.write("project/one", stream(&[&[]]));
    let out = typed(&sandbox, "relay-write jsonl -o x.jsonl <one").run().success();
    assert!(out.errors().contains(": 1 session, 1 message\n"), "{}", out.errors());
    let out = typed(&sandbox, "relay-write codex --project . <one").run().success();
    assert!(out.errors().contains(": 1 message, about "), "{}", out.errors());
}

#[test]
fn a_path_as_first_word_is_a_session_of_whatever_agent() {
    let sandbox = Sandbox::new();
    let path = session(&sandbox);
    let read = |line: String| sandbox.shell(&line).run().success().text();
    let named = read(format!("relay-read -q claude {} --no-via", path.display()));
    assert_eq!(read(format!("relay-read {} -q --no-via", path.display())), named);
    std::fs::copy(&path, sandbox.project().join("here.jsonl")).unwrap();
    assert!(read("relay-read here.jsonl -q".to_owned()).starts_with("{\"type\":\"session\""));
    // a word that is neither is what it was
    let out = sandbox.shell("relay-read not-here.jsonl").run().expect_code(2);
    assert!(out.errors().contains("invalid value"), "{}", out.errors());
}
