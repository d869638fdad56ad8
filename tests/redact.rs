//! relay-redact as a command: files it opens and makes, what it prints where, and how it ends.
use crate::support::sandbox::{Output, Sandbox};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

const END: &str = r#"{"type":"end"}"#;

/// A made-up token of GitHub's old form, put together here.
fn token(seed: u64) -> String {
    let letters = b"ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz0123456789";
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let body: String = (0..36)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            char::from(letters[(state >> 33) as usize % letters.len()])
        })
        .collect();
    ["gh", "p_", &body].concat()
}

fn start(title: &str) -> String {
    format!(r#"{{"type":"session","relay":1,"session_id":"s","source_agent":"claude","title":"{title}"}}"#)
}

fn call(id: &str, text: &str) -> String {
    format!(
        r#"{{"type":"message","role":"tool_call","line":7,"tool_call_id":"{id}","tool_name":"Bash","input":{{"command":"{text}"}},"extra":{{"uuid":"u-{id}"}}}}"#
    )
}

fn result(id: &str, text: &str) -> String {
    format!(r#"{{"type":"message","role":"tool_result","tool_call_id":"{id}","content":"{text}"}}"#)
}

fn stream(lines: &[String]) -> String {
    lines.iter().map(String::as_str).chain([END]).flat_map(|line| [line, "\n"]).collect()
}

fn redact(sandbox: &Sandbox, arguments: &[&str], input: &str) -> Output {
    sandbox.relay("relay-redact", arguments).stdin(input).run()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// What a session says behind relay-redact.
fn stamp(level: &str) -> String {
    format!(r#","redacted":{{"level":"{level}","version":"{}"}}"#, env!("CARGO_PKG_VERSION"))
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn secrets_become_placeholders_and_come_back() {
    let sandbox = Sandbox::new();
    let (a, b) = (token(1), token(2));
    let input =
        stream(&[start(&a), call("t1", &format!("x {b}")), result("t1", &a), result("t2", "nothing")]);
    let map = sandbox.path("map");
    let map_name = map.to_str().unwrap();
    let done = redact(&sandbox, &["--map", map_name], &input);
    assert_eq!(done.code(), 0, "{}", text(&done.stderr));
    let out = text(&done.stdout);
    assert!(!out.contains(&a) && !out.contains(&b), "{out}");
    let plain = out.replace("<REDACTED:github-pat:1>", &a).replace("<REDACTED:github-pat:2>", &b);
    assert_eq!(plain.replace(&stamp("secrets"), ""), input);
    assert_eq!(text(&done.stderr), "relay-redact: 2 values replaced in 3 places: github-pat 3\n");
    assert_eq!(mode(&map), 0o600);
    for restore in [["--restore", map_name].as_slice(), &["--restore", "--map", map_name]] {
        let back = redact(&sandbox, restore, &out);
        assert_eq!((back.code(), text(&back.stdout)), (0, input.clone()));
    }
    // a second run changes nothing, with the map or without
    for arguments in [["--map", map_name].as_slice(), &[]] {
        assert_eq!(text(&redact(&sandbox, arguments, &out).stdout), out);
    }
    // the next session goes on with the same map
    let next = redact(
        &sandbox,
        &["--map", map_name],
        &stream(&[start("x"), result("t", &token(3)), result("u", &b)]),
    );
    let next = text(&next.stdout);
    assert!(next.contains("<REDACTED:github-pat:3>") && next.contains("<REDACTED:github-pat:2>"), "{next}");
}

#[test]
fn nothing_tells_a_value_but_the_map() {
    let sandbox = Sandbox::new();
    let secrets = [token(4), token(5)];
    let input = stream(&[start(&secrets[0]), call("t1", &secrets[1]), result("t1", &secrets.join(" "))]);
    let (map, report) = (sandbox.path("map"), sandbox.path("report"));
    let done = redact(
        &sandbox,
        &["--map", map.to_str().unwrap(), "--report", report.to_str().unwrap(), "--progress"],
        &input,
    );
    assert_eq!(done.code(), 0, "{}", text(&done.stderr));
    let told = std::fs::read(&report).unwrap();
    assert_eq!(mode(&report), 0o600);
    for secret in &secrets {
        for part in [secret.as_str(), &secret[4..16], &secret[28..]] {
            for (place, bytes) in [("output", &done.stdout), ("stderr", &done.stderr), ("report", &told)] {
                assert!(!text(bytes).contains(part), "{place}: {}", text(bytes));
            }
        }
        assert!(text(&std::fs::read(&map).unwrap()).contains(secret.as_str()));
    }
    let lines: Vec<serde_json::Value> =
        text(&told).lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    assert_eq!(lines.len(), 5);
    let first = &lines[1];
    assert_eq!(
        (first["record"].as_u64(), first["line"].as_u64(), first["length"].as_u64()),
        (Some(2), Some(7), Some(40))
    );
    assert_eq!(
        (first["pointer"].as_str(), first["rule"].as_str()),
        (Some("/input/command"), Some("github-pat"))
    );
    assert_eq!(lines[4]["rules"]["github-pat"], serde_json::json!({"places": 4, "values": 2}));
    // what the report calls it by is what --allow takes
    let allow = sandbox.write("allow", format!("hmac:{}\n", first["fingerprint"].as_str().unwrap()));
    let arguments = ["--map", map.to_str().unwrap(), "--allow", allow.to_str().unwrap()];
    let allowed = text(&redact(&sandbox, &arguments, &input).stdout);
    assert!(allowed.contains(&secrets[1]) && !allowed.contains(&secrets[0]), "{allowed}");
    assert_eq!(redact(&sandbox, &["--allow", allow.to_str().unwrap()], &input).code(), 2);
    // a report is never written over
    assert_eq!(redact(&sandbox, &["--report", report.to_str().unwrap()], &input).code(), 1);
    assert_eq!(std::fs::read(&report).unwrap(), told);
}

#[test]
fn a_map_that_others_can_read_is_refused() {
    let sandbox = Sandbox::new();
    let input = stream(&[start("x"), result("t", &token(6))]);
    let map = sandbox.write("map", "");
    let link = sandbox.path("link");
    std::os::unix::fs::symlink(&map, &link).unwrap();
    let refused = |path: &Path, flag: &str| {
        let out = redact(&sandbox, &[flag, path.to_str().unwrap()], &input);
        assert_eq!(out.code(), 1, "{}", text(&out.stderr));
        assert!(text(&out.stdout).starts_with(r#"{"type":"abort""#), "{}", text(&out.stdout));
        assert!(text(&out.stderr).contains("hint: "), "{}", text(&out.stderr));
    };
    std::fs::set_permissions(&map, std::fs::Permissions::from_mode(0o640)).unwrap();
    for flag in ["--map", "--salt", "--restore"] {
        refused(&map, flag);
        refused(&link, flag);
    }
    std::fs::set_permissions(&map, std::fs::Permissions::from_mode(0o600)).unwrap();
    refused(&link, "--map");
    assert_eq!(std::fs::read(&map).unwrap(), b"");
    assert_eq!(redact(&sandbox, &["--map", map.to_str().unwrap()], &input).code(), 0);
    let broken = sandbox.write("broken", format!("{{\"placeholder\":7,\"value\":\"{}\"}}\n", token(7)));
    std::fs::set_permissions(&broken, std::fs::Permissions::from_mode(0o600)).unwrap();
    let out = redact(&sandbox, &["--map", broken.to_str().unwrap()], &input);
    assert!(out.code() == 3 && !text(&out.stderr).contains(&token(7)), "{}", text(&out.stderr));
}

#[test]
fn a_salt_is_made_once_and_makes_runs_agree() {
    let sandbox = Sandbox::new();
    let salt = sandbox.path("salt");
    let run = |lines: &[String]| {
        text(&redact(&sandbox, &["--salt", salt.to_str().unwrap()], &stream(lines)).stdout)
    };
    let one = run(&[start("x"), result("t", &token(8)), result("u", &token(9))]);
    let made = std::fs::read(&salt).unwrap();
    let two = run(&[start("x"), result("u", &token(9))]);
    assert_eq!((std::fs::read(&salt).unwrap(), mode(&salt)), (made, 0o600));
    assert_eq!(one.lines().nth(2), two.lines().nth(1));
    assert!(two.contains("<REDACTED:github-pat:"), "{two}");
}

#[test]
fn a_check_prints_findings_only() {
    let sandbox = Sandbox::new();
    let found = redact(&sandbox, &["--check"], &stream(&[start("x"), call("t1", &token(10))]));
    assert_eq!((found.code(), text(&found.stderr)), (1, String::new()));
    let line = text(&found.stdout);
    assert!(line.starts_with("s: line 7, record 2, /input/command: github-pat, 40 bytes, "), "{line}");
    assert!(line.lines().count() == 1 && !line.contains(&token(10)[..12]));
    let clean = redact(&sandbox, &["--check", "--two-pass"], &stream(&[start("x"), call("t1", "ls")]));
    assert_eq!((clean.code(), text(&clean.stdout), text(&clean.stderr)), (0, String::new(), String::new()));
}

#[test]
fn two_passes_find_what_came_before() {
    let sandbox = Sandbox::new();
    let secret = ["q8#vT", "2mZr4w", "K9!d"].concat();
    let lines = [start("x"), result("t", &secret), call("u", &format!("DB_PASSWORD={secret} make"))];
    let one = text(&redact(&sandbox, &[], &stream(&lines)).stdout);
    assert_eq!(one.matches(&secret).count(), 1, "{one}");
    let map = sandbox.path("map");
    let two = redact(&sandbox, &["--two-pass", "--map", map.to_str().unwrap()], &stream(&lines));
    let two = text(&two.stdout);
    assert!(!two.contains(&secret) && two.matches("<REDACTED:").count() == 2, "{two}");
    let back = redact(&sandbox, &["--restore", map.to_str().unwrap()], &two);
    assert_eq!(text(&back.stdout), stream(&lines));
}

#[test]
fn home_names_and_addresses_only_where_they_are_asked_for() {
    let sandbox = Sandbox::new();
    let lines = [start("x"), result("t", "/Users/annabel/src/x.rs by annabel@corp-mail.net")];
    let plain = redact(&sandbox, &[], &stream(&lines));
    assert_eq!(text(&plain.stdout).replace(&stamp("secrets"), ""), stream(&lines));
    let share = text(&redact(&sandbox, &["--share"], &stream(&lines)).stdout);
    assert!(share.contains("/Users/<REDACTED:home:1>/src/x.rs") && !share.contains("annabel"), "{share}");
    assert_eq!(redact(&sandbox, &["--pii", "shoe-size"], "").code(), 2);
    assert_eq!(redact(&sandbox, &["--only", "no-such-rule"], "").code(), 2);
}

/// Made-up keys of many shapes.
fn keys() -> Vec<String> {
    let of = |seed: u64, letters: &str, count: usize| -> String {
        let letters = letters.as_bytes();
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        (0..count)
            .map(|_| {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                char::from(letters[(state >> 33) as usize % letters.len()])
            })
            .collect()
    };
    const ALL: &str = "ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz0123456789";
    const HEX: &str = "0123456789abcdef";
    let shapes = [
        (["gh", "p_"].concat(), ALL, 36),
        (["sk-", "ant-api03-"].concat(), ALL, 95),
        (["sk-", "proj-"].concat(), ALL, 156),
        (["AK", "IA"].concat(), "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", 16),
        (["gl", "pat-"].concat(), ALL, 20),
        (["np", "m_"].concat(), ALL, 36),
        (["dop", "_v1_"].concat(), HEX, 64),
        (["AI", "za"].concat(), ALL, 35),
        (["sk", "_live_"].concat(), ALL, 24),
        (["hv", "s."].concat(), ALL, 95),
        ("DB_PASSWORD=".to_owned(), ALL, 24),
        ("api_key: ".to_owned(), HEX, 40),
    ];
    let plain = (0..108u64).map(|n| {
        let (prefix, letters, count) = &shapes[n as usize % shapes.len()];
        format!("{prefix}{}", of(n + 3, letters, *count))
    });
    let block = |n: u64| {
        let line = |k: u64| of(n * 100 + k, ALL, 64) + "\n";
        let dashes = "-".repeat(5);
        let body: String = (0..24).map(line).collect();
        format!("{dashes}BEGIN RSA PRIVATE KEY{dashes}\n{body}{dashes}END RSA PRIVATE KEY{dashes}\n")
    };
    plain.chain((0..4).map(block)).collect()
}

/// No cut of an earlier stage leaves a piece of a secret that its shape does not tell any more.
#[test]
fn nothing_leaks_through_the_whole_pipe() {
    let sandbox = Sandbox::new();
    let keys = keys();
    let words = "the table of orders is sorted by its date and then by name before it is shown ";
    let mut lines = vec![start("x").replace("\"title\"", "\"working_directory\":\"/srv/x\",\"title\"")];
    let mut n = 0;
    for (at, group) in keys.chunks(4).enumerate() {
        let mut content = String::new();
        for (k, key) in group.iter().enumerate() {
            content += &words.repeat(3 + (at * 7 + k * 5) % 23);
            content += if k % 2 == 0 { "\n" } else { "" };
            content += &format!("use {key} for it, ");
        }
        content += &words.repeat(at % 9);
        let content = serde_json::to_string(&content).unwrap();
        n += 1;
        let name = if at % 3 == 0 { "Write" } else { "Bash" };
        lines.push(match at % 4 {
            0 => format!(r#"{{"type":"message","role":"user","line":{n},"content":{content}}}"#),
            1 => format!(r#"{{"type":"message","role":"assistant","line":{n},"content":{content}}}"#),
            _ => format!(
                r#"{{"type":"message","role":"tool_call","line":{n},"tool_call_id":"t{at}","tool_name":"{name}","input":{{"command":"cat x","content":{content}}}}}"#
            ),
        });
        if at % 4 > 1 {
            lines.push(format!(
                r#"{{"type":"message","role":"tool_result","line":{n},"tool_call_id":"t{at}","content":{content}}}"#
            ));
        }
    }
    lines.push(user_line("what is next?"));
    std::fs::create_dir_all(sandbox.path("x")).unwrap();
    let mut kept = 0;
    for (n, budget) in (6..40).step_by(3).map(|thousands| thousands * 1000 + 137).enumerate() {
        let target = ["claude", "codex"][n % 2];
        let file = sandbox.path(format!("out-{budget}"));
        let pipe = format!(
            "relay-pair -q | relay-trim -q --budget {budget} | relay-summarize -q | relay-redact -q | relay-write {target} -q --project {} -o {}",
            sandbox.path("x").display(),
            file.display()
        );
        let done = sandbox.shell(&pipe).stdin(stream(&lines)).run();
        assert_eq!(done.code(), 0, "{budget}: {}", text(&done.stderr));
        let written = text(&std::fs::read(&file).unwrap());
        kept += written.matches("<REDACTED:").count();
        for key in &keys {
            let secret = key.trim_start_matches("DB_PASSWORD=").trim_start_matches("api_key: ");
            let from = if secret.contains("PRIVATE") { 40 } else { 12.min(secret.len() - 10) };
            for piece in (from..secret.len() - 9).step_by(3).map(|at| &secret[at..at + 10]) {
                let odd = piece.contains(['\n', '-']);
                assert!(odd || !written.contains(piece), "{target} {budget}: {piece} of {}", secret.len());
            }
        }
    }
    assert!(kept > 300, "hardly any secret came so far: {kept}");
}

fn user_line(words: &str) -> String {
    format!(r#"{{"type":"message","role":"user","content":"{words}"}}"#)
}

#[test]
fn the_own_home_is_known_wherever_it_lies() {
    let sandbox = Sandbox::new();
    let home = sandbox.path("people/annabel");
    std::fs::create_dir_all(&home).unwrap();
    let (home, folder) = (home.to_str().unwrap(), sandbox.path("people").display().to_string());
    let dashed = |path: &str| path.replace(|c: char| !c.is_ascii_alphanumeric(), "-");
    let lines = [start("x"), result("t", &format!("{home}/x and {folder}/bob, {}-x", dashed(home)))];
    let share = sandbox.relay("relay-redact", &["--share"]).env("HOME", home).stdin(stream(&lines)).run();
    let share = text(&share.stdout);
    let name = "<REDACTED:home:1>";
    assert!(
        share.contains(&format!("{folder}/{name}/x and {folder}/bob, {}-{name}-x", dashed(&folder))),
        "{share}"
    );
}

#[test]
fn the_reason_of_an_abort_holds_no_secret() {
    let sandbox = Sandbox::new();
    let secret = token(12);
    let aborted = format!(
        "{}\n{{\"type\":\"abort\",\"by\":\"relay-read\",\"reason\":\"/x/{secret}: gone\"}}\n",
        start("x")
    );
    let done = redact(&sandbox, &[], &aborted);
    let out = text(&done.stdout);
    assert!(
        done.code() == 3 && !out.contains(&secret) && out.contains("/x/<REDACTED:github-pat:1>: gone"),
        "{out}"
    );
}

#[test]
fn ids_and_pairs_stay_what_they_are() {
    let sandbox = Sandbox::new();
    let id = token(11);
    let lines = [start("x"), call(&id, &id), result(&id, &id)];
    let out = text(&redact(&sandbox, &[], &stream(&lines)).stdout);
    assert_eq!(out.matches(&id).count(), 3, "{out}");
    let pairs = sandbox.relay("relay-pair", &["--check"]).stdin(out).run();
    assert_eq!((pairs.code(), text(&pairs.stdout)), (0, String::new()));
}

#[test]
fn it_stands_in_a_pipe_like_every_filter() {
    let sandbox = Sandbox::new();
    assert_eq!(redact(&sandbox, &["--quiet"], "").code(), 0);
    let cut = redact(&sandbox, &[], &(start("x") + "\n"));
    assert_eq!(cut.code(), 3);
    assert!(text(&cut.stdout).lines().last().unwrap().starts_with(r#"{"type":"abort","by":"relay-redact""#));
    // it signs nothing: a second run, or putting back, must give the same bytes
    let plain = stream(&[start("x")]);
    let share = text(&redact(&sandbox, &["--share"], &plain).stdout);
    assert_eq!(share.replace(&stamp("share"), ""), plain);
    assert_eq!(text(&redact(&sandbox, &["--share"], &share).stdout), share);
    let help = text(&redact(&sandbox, &["--help"], "").stdout);
    assert!(help.starts_with("Replace the secrets") && help.contains("Exit codes: 0 done"), "{help}");
}

/// Every promise of the README of the rules has its tests.
#[test]
fn the_tests_of_the_promises_are_there() {
    fn read(folder: &std::path::Path, all: &mut String) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                read(&path, all);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                all.push_str(&std::fs::read_to_string(path).unwrap());
            }
        }
    }
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut sources = String::new();
    for folder in ["src", "tests"] {
        read(&root.join(folder), &mut sources);
    }
    let rows: Vec<&str> = include_str!("../src/filters/redact/rules/README.md")
        .lines()
        .filter(|line| line.matches(" | ").count() == 2)
        .collect();
    let tests: Vec<&str> = rows
        .iter()
        .filter_map(|row| row.rsplit_once(" | "))
        .flat_map(|(_, tests)| tests.split('`').skip(1).step_by(2))
        .filter(|name| name.contains('_') && !name.contains(['-', '{']))
        .collect();
    assert!(tests.len() > 20, "{tests:?}");
    for test in tests {
        assert!(sources.contains(&format!("fn {test}(")), "{test}");
    }
}
