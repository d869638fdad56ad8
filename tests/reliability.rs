//! What holds when something goes wrong around a command: signals, odd files, lines without end, terminals.

use crate::support::sandbox::{Run, Sandbox};
use serde_json::{Value, json};
use std::time::Duration;

/// A whole stream of one session with these messages.
fn stream(messages: &[Value]) -> String {
    let mut lines =
        vec![json!({"type":"session","relay":1,"session_id":"s0","source_agent":"claude"}).to_string()];
    lines.push(json!({"type":"message","role":"user","content":"hello"}).to_string());
    lines.extend(messages.iter().map(Value::to_string));
    lines.push(json!({"type":"end"}).to_string());
    lines.iter().flat_map(|line| [line.as_str(), "\n"]).collect()
}

/// Must end by itself, and soon.
fn soon(run: Run) -> crate::support::sandbox::Output {
    let out = run.timeout(Duration::from_secs(30)).run();
    assert!(!out.timed_out, "{} waits: {}", out.command, out.errors());
    out
}

/// The names below a folder.
fn names(sandbox: &Sandbox, below: &str) -> Vec<String> {
    let entries = std::fs::read_dir(sandbox.path(below)).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

/// Waits in a shell until a file is there.
const WAIT: &str =
    "until_there() { for n in $(seq 600); do [ -s \"$1\" ] && return; sleep .05; done; exit 99; };";

#[test]
fn a_signal_ends_what_exec_runs() {
    for (signal, code) in [("INT", 130), ("TERM", 143), ("HUP", 129)] {
        let sandbox = Sandbox::new();
        sandbox.write("project/s", stream(&[json!({"type":"message","role":"assistant","content":"done"})]));
        // set -m: a job of its own, in which INT is not ignored
        let line = format!(
            "{WAIT} set -m; relay-summarize --all --exec 'stat -c %a . >../mode; pwd >../where; (sleep 300; touch ../late) & \
             echo $! >../grandchild; echo $$ >../child; sleep 300' < s >out & pid=$!; \
             until_there ../tmp/child; kill -{signal} $pid; wait $pid; echo $?; sleep .3; \
             for p in child grandchild; do kill -0 $(cat ../tmp/$p) 2>/dev/null && ! grep -q '^State:.Z' \
             /proc/$(cat ../tmp/$p)/status && echo $p lives; done; true"
        );
        let out = soon(sandbox.shell(&line)).success();
        assert_eq!(out.text(), format!("{code}\n"), "{signal}: {}", out.errors());
        assert_eq!(std::fs::read_to_string(sandbox.path("tmp/mode")).unwrap(), "700\n");
        let folder = std::fs::read_to_string(sandbox.path("tmp/where")).unwrap();
        assert!(!std::path::Path::new(folder.trim()).exists(), "{folder}");
    }
}

#[test]
fn a_command_that_takes_too_long_ends_with_all_it_started() {
    let sandbox = Sandbox::new();
    sandbox.write("project/s", stream(&[json!({"type":"message","role":"assistant","content":"done"})]));
    let line = "relay-summarize --all --exec-timeout 1s --exec 'sleep 300 & echo $! >../grandchild; sleep 300' < s >out; \
                sleep .3; kill -0 $(cat ../tmp/grandchild) 2>/dev/null && ! grep -q '^State:.Z' \
                /proc/$(cat ../tmp/grandchild)/status && echo lives; true";
    let out = soon(sandbox.shell(line)).success();
    assert_eq!(out.text(), "", "{}", out.errors());
    assert!(out.errors().contains("not done within 1 second"), "{}", out.errors());
}

#[test]
fn a_signal_leaves_no_part_of_a_file() {
    for signal in ["INT", "TERM", "HUP"] {
        for command in ["relay-write jsonl -o new/folder/out.jsonl", "relay-redact --report new/folder/out"] {
            let sandbox = Sandbox::new();
            sandbox.write("project/s", stream(&[]));
            // the first lines arrive, the last one never
            let line = format!(
                "set -m; mkfifo pipe; (head -2 s; sleep 300) >pipe & feeder=$!; {command} <pipe >out & pid=$!; \
                 for n in $(seq 600); do ls -A new/folder 2>/dev/null | grep -q part && break; sleep .05; done; \
                 ls -A new/folder | wc -l; kill -{signal} $pid; wait $pid; echo $?; kill -- -$feeder; ls -A"
            );
            let out = soon(sandbox.shell(&line)).success().text();
            let lines: Vec<&str> = out.lines().collect();
            let code = match signal {
                "INT" => "130",
                "TERM" => "143",
                _ => "129",
            };
            assert_eq!(lines, ["1", code, "out", "pipe", "s"], "{signal} {command}");
        }
    }
}

#[test]
fn a_signal_that_is_ignored_stays_ignored() {
    let sandbox = Sandbox::new();
    sandbox.write("project/s", stream(&[]));
    let line = "trap '' HUP; mkfifo pipe; (head -2 s; until [ -e go ]; do sleep .05; done; tail -1 s) >pipe & \
                relay-write jsonl -o out.jsonl <pipe & pid=$!; \
                for n in $(seq 600); do ls -A | grep -q part && break; sleep .05; done; \
                kill -HUP $pid; sleep .2; touch go; wait $pid; echo $?";
    let out = soon(sandbox.shell(line)).success();
    assert_eq!(out.text(), "0\n", "{}", out.errors());
    assert_eq!(std::fs::read_to_string(sandbox.path("project/out.jsonl")).unwrap(), stream(&[]));
}

#[test]
fn a_home_that_is_no_folder_has_no_configuration() {
    let sandbox = Sandbox::new();
    sandbox.write("project/s", stream(&[]));
    sandbox.write("project/file", "");
    for home in ["/dev/null", "/no/such/home", "$PWD/file", "$PWD/file/below"] {
        for command in
            ["relay-pair", "relay-trim --budget 150k", "relay-summarize", "relay-redact", "relay-write jsonl"]
        {
            let line = format!("HOME={home} {command} <s");
            let out = soon(sandbox.shell(&line)).success();
            assert!(out.text().contains("\"type\":\"end\""), "{line}: {}", out.errors());
        }
        let line = format!("unset CODEX_HOME CLAUDE_CONFIG_DIR; HOME={home} relay-read auto");
        let out = soon(sandbox.shell(&line)).expect_code(1);
        assert!(
            out.errors().contains("no session of project") && !out.errors().contains("skipped"),
            "{}",
            out.errors()
        );
    }
    // what is named must be there
    soon(sandbox.shell("RELAY_CONFIG=/dev/null/x relay-pair <s")).expect_code(1);
    soon(sandbox.shell("mkfifo c; RELAY_CONFIG=c relay-pair <s")).expect_code(1);
    soon(sandbox.shell("RELAY_CONFIG=/dev/null relay-pair <s")).success();
}

#[test]
fn a_pipe_in_the_place_of_a_file_is_refused() {
    let sandbox = Sandbox::new();
    sandbox.write("project/s", stream(&[]));
    sandbox.shell("mkfifo -m 600 pipe").run().success();
    for option in ["--restore pipe", "--rules pipe", "--allow pipe", "--salt pipe", "--map pipe", "--map ."] {
        let out = soon(sandbox.shell(&format!("relay-redact {option} <s"))).expect_code(1);
        assert!(out.errors().contains("is not a plain file"), "{option}: {}", out.errors());
    }
}

#[test]
fn a_map_of_another_user_is_refused() {
    let sandbox = Sandbox::new();
    sandbox.write("project/s", stream(&[]));
    sandbox.shell("relay-redact --map map <s").run().success();
    if sandbox.shell("chown 12345 map").run().code() != 0 {
        // only root can give files away, and only root could read such a one
        return;
    }
    for option in ["--map map", "--restore map"] {
        let out = sandbox.shell(&format!("relay-redact {option} <s")).run().expect_code(1);
        assert!(out.errors().contains("belongs to another user"), "{}", out.errors());
    }
}

#[test]
fn many_processes_take_turns_with_a_map() {
    let sandbox = Sandbox::new();
    sandbox.write("project/s", stream(&[]));
    let line = "for n in $(seq 50); do relay-redact --map map -q <s >out.$n & pids=\"$pids $!\"; done; \
                for p in $pids; do wait $p || echo failed; done; cat out.* | grep -c '\"end\"'; grep -c . map";
    assert_eq!(soon(sandbox.shell(line)).success().text(), "50\n1\n");
}

#[test]
fn a_restore_tells_of_the_id_that_names_no_file() {
    for agent in ["claude", "codex"] {
        let sandbox = Sandbox::new();
        let head = json!({"type":"session","relay":1,"session_id":"../x","source_agent":agent});
        sandbox.write("project/s", format!("{head}\n{{\"type\":\"end\"}}\n"));
        let out = sandbox.shell(&format!("relay-write {agent} --restore --project . <s")).run();
        assert!(out.code() != 0 && out.errors().contains("../x"), "{agent}: {}", out.errors());
        assert!(!out.errors().contains("nothing to hand over"), "{agent}: {}", out.errors());
    }
}

#[test]
fn a_line_without_end_is_refused() {
    let sandbox = Sandbox::new();
    let long = json!({"type":"message","role":"assistant","content":"x".repeat(3_000_000)});
    sandbox.write("project/s", stream(&[long]));
    for command in [
        "relay-pair",
        "relay-redact",
        "relay-trim --budget 9m",
        "relay-summarize",
        "relay-write jsonl -o out",
    ] {
        let out = soon(sandbox.shell(&format!("{command} --max-line 2m <s"))).expect_code(3);
        let says = "stdin:3: a line is longer than 2000000 bytes, the most that --max-line allows";
        assert!(out.errors().contains(says), "{command}: {}", out.errors());
        assert!(!sandbox.path("project/out").exists());
        soon(sandbox.shell(&format!("{command} --max-line 4m <s; rm -f out"))).success();
    }
    // a session file, a pipe, an archive that unpacks to far more than it is
    for more in [
        "head -c 3000000 /dev/zero >z",
        "head -c 30000000 /dev/zero | gzip >z",
        "mkfifo z; head -c 3000000 /dev/zero >z &",
    ] {
        for agent in ["claude", "codex"] {
            let line = format!("rm -f z; {more}\nrelay-read {agent} ./z --max-line 1m");
            let out = soon(sandbox.shell(&line)).expect_code(3);
            assert!(out.errors().contains("a line is longer than 1000000 bytes"), "{line}: {}", out.errors());
        }
    }
}

#[test]
fn the_resume_line_works_or_is_refused_by_name() {
    for (name, shown) in [
        ("a\u{200b}b", Some("U+200B")),
        ("a\u{e0041}b", Some("U+E0041")),
        ("a\u{202e}b", Some("U+202E")),
        ("a\u{2060}b", Some("U+2060")),
        ("a\u{9b}b", Some("U+009B")),
        ("a\nb", Some("U+000A")),
        // joiners are letters of some scripts
        ("a\u{200d}b", None),
        ("می\u{200c}خواهم", None),
        ("it's $(x) `y` é", None),
    ] {
        let sandbox = Sandbox::new();
        std::fs::create_dir(sandbox.project().join(name)).unwrap();
        sandbox.write("project/s", stream(&[]));
        let folder = sandbox.project().join(name);
        for agent in ["claude", "codex"] {
            let run =
                sandbox.relay("relay-write", &[agent, "-q", "--project"]).args(&[&folder]).stdin(stream(&[]));
            let out = run.run();
            match shown {
                Some(shown) => {
                    assert!(out.code() == 1 && out.errors().contains(shown), "{shown}: {}", out.errors());
                    assert_eq!(out.text(), "");
                }
                None => {
                    let line = out.success().text();
                    let go = line.split(" && ").next().unwrap();
                    let there = sandbox.shell(&format!("{go} && pwd")).run().success();
                    assert_eq!(there.text().trim_end(), folder.to_str().unwrap());
                }
            }
        }
    }
}

/// The bytes that a terminal gets.
fn on_terminal(sandbox: &Sandbox, line: &str) -> String {
    let python = "import pty, sys; pty.spawn(['bash', '-c', sys.argv[1]])";
    sandbox.command("/usr/bin/env").args(&["python3", "-c", python, line]).run().success().text()
}

#[test]
fn no_escape_of_a_session_reaches_a_terminal() {
    let sandbox = Sandbox::new();
    let evil = "x\u{1b}]0;title\u{7}\u{1b}[2Jy\u{9b}31m\u{202e}z";
    let name = json!({"type":"message","role":"tool_call","line":7,"tool_call_id":evil,"tool_name":evil,"input":{"command":evil}});
    let secret =
        format!("-----BEGIN {0} KEY-----\n{1}\n-----END {0} KEY-----", "RSA PRIVATE", "MIIEabcd".repeat(40));
    let mut text =
        stream(&[name, json!({"type":"message","role":"assistant","content":format!("{evil}\n{secret}")})]);
    text = text.replace("\"s0\"", &json!(evil).to_string());
    sandbox.write("project/s", text);
    for command in [
        "relay-pair --check <s",
        "relay-redact --check <s",
        "relay-redact --check --report - <s",
        "relay-summarize --all --format md <s",
        "relay-summarize --all --format json <s",
        "relay-summarize --all <s",
        "relay-pair <s",
        "relay-write codex --project . <s",
        "relay-write claude --project . --json <s",
    ] {
        let shown = on_terminal(&sandbox, command);
        assert!(!shown.is_empty());
        let bad = |c: char| c != '\r' && c != '\n' && c != '\t' && (c.is_control() || c == '\u{202e}');
        assert!(!shown.contains(bad), "{command}: {shown:?}");
        // a pipe gets the bytes as they are
        let piped = sandbox.shell(command).run().text();
        if command.contains("--format md") {
            assert!(shown.replace("\r\n", "\n").lines().count() >= piped.lines().count(), "{shown}");
        }
    }
    let piped = sandbox.shell("relay-pair --check <s").run().expect_code(1).text();
    assert!(piped.contains('\u{1b}'), "{piped:?}");
}

#[test]
fn nothing_into_relay_write_is_bad_input() {
    let sandbox = Sandbox::new();
    for target in ["claude", "codex", "jsonl", "jsonl -o out.jsonl"] {
        for input in ["", "\n"] {
            let out = sandbox.shell(&format!("relay-write {target}")).stdin(input).run().expect_code(3);
            assert!(
                out.errors().contains("nothing came in") && out.errors().contains("hint: "),
                "{}",
                out.errors()
            );
        }
    }
    assert!(names(&sandbox, "project").is_empty());
    for filter in ["relay-pair", "relay-redact", "relay-summarize", "relay-trim --budget 9k"] {
        sandbox.shell(filter).run().success();
    }
}

#[test]
fn sizes_are_understood_as_people_write_them() {
    let sandbox = Sandbox::new();
    sandbox.write("project/s", stream(&[]));
    for budget in ["150k", "1.5m", "150_000", "1e5", "--for codex --budget 80%", "80% --for claude"] {
        let budget = if budget.starts_with("--") { budget.to_owned() } else { format!("--budget {budget}") };
        let out = sandbox.shell(&format!("relay-trim {budget} <s")).run().success();
        assert!(out.text().contains("\"budget\""), "{}", out.text());
    }
    let tokens = |budget: &str| {
        let out = sandbox.shell(&format!("relay-trim {budget} --no-via <s")).run().success();
        serde_json::from_str::<Value>(out.text().lines().next().unwrap()).unwrap()["budget"].clone()
    };
    assert_eq!(tokens("--budget 1.5m"), tokens("--budget 1500000"));
    sandbox.write(
        "home/.config/relay/config.toml",
        "[agents.codex]\ncontext_window = \"50k\"\nreserved_tokens = 0\n",
    );
    assert_eq!(tokens("--for codex --budget 50%"), tokens("--for codex --budget 25000"));
    for (wrong, example) in [
        ("80%", "--for codex --budget 80%"),
        ("150x", "150k"),
        ("0", "150k"),
        ("-5", ""),
        ("120% --for codex", "80%"),
    ] {
        let out = sandbox.shell(&format!("relay-trim --budget {wrong} <s")).run().expect_code(2);
        assert!(out.errors().contains(example), "{wrong}: {}", out.errors());
    }
    sandbox
        .shell("relay-summarize --max-tokens 2k --exec-timeout 2m --exec-budget 1.5k --exec cat <s")
        .run()
        .success();
}

#[test]
fn devices_take_what_is_written() {
    let sandbox = Sandbox::new();
    sandbox.write("project/s", stream(&[]));
    for target in ["jsonl", "codex --project .", "claude --project ."] {
        sandbox.shell(&format!("relay-write {target} -o /dev/null <s")).run().success();
        let plain = sandbox.shell(&format!("relay-write {target} -o - -q <s")).run().success().text();
        let device =
            sandbox.shell(&format!("relay-write {target} -o /dev/stdout -q <s | cat")).run().success().text();
        assert!(device.starts_with(&plain) && !plain.is_empty(), "{target}: {device}");
        for ending in ["bz2", "xz"] {
            let out = sandbox.shell(&format!("relay-write {target} -o out.{ending} <s")).run().expect_code(1);
            assert!(out.errors().contains(&format!(".{ending}")), "{}", out.errors());
        }
    }
    assert_eq!(names(&sandbox, "project"), ["s"]);
}

#[test]
fn other_compressions_are_named() {
    let sandbox = Sandbox::new();
    for (head, program) in [("BZh91AY&SY", "bzip2"), ("\\xfd7zXZ\\x00\\x00", "xz"), ("PK\\x03\\x04", "zip")] {
        let line = format!("printf '{head}' >z; relay-pair <z");
        let out = sandbox.shell(&line).run().expect_code(3);
        assert!(out.errors().contains(&format!("compressed by {program}")), "{}", out.errors());
        for agent in ["claude", "codex", "auto"] {
            let out = sandbox.shell(&format!("relay-read {agent} ./z")).run().expect_code(3);
            assert!(out.errors().contains(&format!("compressed by {program}")), "{}", out.errors());
        }
    }
}

#[test]
fn a_pipe_is_written_to_when_somebody_reads_it() {
    let sandbox = Sandbox::new();
    sandbox.write("project/s", stream(&[]));
    sandbox.shell("mkfifo pipe").run().success();
    for command in [
        "relay-write jsonl -q -o pipe",
        "relay-write claude --project . -q -o pipe",
        "relay-redact -q --report pipe",
    ] {
        let out = soon(sandbox.shell(&format!("{command} <s"))).expect_code(1);
        assert!(out.errors().contains("pipe: is a pipe that nobody reads"), "{command}: {}", out.errors());
        let line = format!("cat pipe >out & sleep .5; {command} <s >/dev/null; wait; wc -l <out");
        let read = soon(sandbox.shell(&line)).success();
        assert!(read.text().trim().parse::<u64>().unwrap() > 0, "{command}: {}", read.errors());
    }
    let out = soon(sandbox.shell("relay-write jsonl -q -o >(cat) <s; sleep .2")).success();
    assert_eq!(out.text(), stream(&[]));
}

/// The most memory that a command has at once, in bytes.
fn memory(sandbox: &Sandbox, line: &str) -> u64 {
    let python = "import resource, subprocess, sys; \
                  code = subprocess.run(['bash', '-c', 'exec ' + sys.argv[1]]).returncode; \
                  print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss); sys.exit(code)";
    let out = sandbox.command("/usr/bin/env").args(&["python3", "-c", python, line]).run().success();
    out.text().trim().parse::<u64>().unwrap() << 10
}

#[test]
fn one_long_line_is_in_memory_twice_at_most() {
    const LINE: u64 = 24 << 20;
    let sandbox = Sandbox::new();
    let call = json!({"type":"message","role":"tool_call","tool_call_id":"t","tool_name":"Bash","input":{"command":"x"}});
    let content = "a word \n".repeat(usize::try_from(LINE).unwrap() / 9);
    let result =
        json!({"type":"message","role":"tool_result","dropped":null,"tool_call_id":"t","content":content});
    sandbox.write("project/s", stream(&[call, result]));
    let native = json!({"type":"user","message":{"role":"user","content":null}});
    let whole = json!({"type":"message","role":"user","line":1,"content":content,"extra":native});
    sandbox.write(
        "project/r",
        format!(
            "{}\n{whole}\n{}\n",
            json!({"type":"session","relay":1,"session_id":"s0","source_agent":"claude"}),
            json!({"type":"end"})
        ),
    );
    // the vocabulary takes some 35 MB
    for (command, besides) in [
        ("relay-pair <s >out", 0),
        ("relay-trim --budget 100k <s >out", 35),
        ("relay-summarize --all <s >out", 35),
        ("relay-write codex --project . -q -o out.jsonl <s", 0),
        ("relay-write claude --restore -q -o original.jsonl <r", 0),
    ] {
        let most = memory(&sandbox, command);
        let allowed = LINE * 5 / 2 + ((besides + 8) << 20);
        assert!(most <= allowed, "{command}: {} MB of {} MB", most >> 20, allowed >> 20);
    }
}
