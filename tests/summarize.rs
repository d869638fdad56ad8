//! relay-summarize as a command: what it prints where, and how it ends.
use crate::support::sandbox::Sandbox;

const START: &str =
    r#"{"type":"session","relay":1,"session_id":"s","source_agent":"claude","working_directory":"/w"}"#;
const TASK: &str = r#"{"type":"message","role":"user","seq":1,"content":"Port the zq_importer."}"#;
const RULE: &str = r#"{"type":"message","role":"user","dropped":"trimmed","seq":2,"content":"Never touch vendor/gen_file."}"#;
const LAST: &str = r#"{"type":"message","role":"user","seq":3,"content":"Go on."}"#;
const END: &str = r#"{"type":"end","messages":3,"live":2,"problems":[]}"#;

fn stream() -> String {
    [START, TASK, RULE, LAST, END].iter().flat_map(|line| [line, "\n"]).collect()
}

/// Runs the command: exit code, stdout, stderr.
fn summarize(arguments: &[&str], input: &str) -> (i32, String, String) {
    let out = Sandbox::new().relay("relay-summarize", arguments).stdin(input).run();
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (out.code(), text(&out.stdout), text(&out.stderr))
}

#[test]
fn the_summary_comes_first_and_via_names_the_command() {
    let (code, out, err) = summarize(&[], &stream());
    assert_eq!((code, err.as_str()), (0, ""));
    let lines: Vec<&str> = out.lines().collect();
    assert!(lines[0].contains(r#""via":[{"name":"relay-summarize""#), "{out}");
    assert!(lines[1].contains(r#""role":"summary","dropped":null,"origin":"relay""#), "{out}");
    assert!(lines[1].contains(r"- Never touch vendor/gen_file.\n"), "{out}");
    let cited = summarize(&["--cite"], &stream()).1;
    assert!(cited.contains(r"- Never touch vendor/gen_file. (#2)\n"), "{cited}");
    assert_eq!(lines[2..5], [TASK, RULE, LAST]);
    assert!(lines[5].contains(r#""messages":4,"live":3"#), "{out}");
}

#[test]
fn nothing_left_out_is_said() {
    let whole = stream().replace(r#""dropped":"trimmed","#, "");
    let (code, out, err) = summarize(&["--no-via"], &whole);
    assert_eq!((code, out), (0, whole.clone()));
    assert!(err.contains("--all"), "{err}");
    assert!(summarize(&["--all"], &whole).1.contains("- Never touch vendor/gen_file."));
}

#[test]
fn people_and_packages_get_the_summary_alone() {
    let (code, out, _) = summarize(&["--format", "md", "--lang", "zh"], &stream());
    assert_eq!(code, 0);
    assert!(out.contains("## 目标\n- Port the zq_importer. (#1)") && !out.contains(r#""type""#), "{out}");
    let (_, out, _) = summarize(&["--format", "json"], &stream());
    assert!(
        out.starts_with(r#"{"#) && out.contains(r#""goal":[{"seq":[1],"text":"Port the zq_importer."}]"#),
        "{out}"
    );
}

#[test]
fn a_command_makes_the_prose() {
    let (code, out, err) = summarize(
        &[
            "--all",
            "--no-redact",
            "--exec",
            "printf '## %s\\n' Goal 'Newest request' 'Rules of the user'; echo In prose; grep -c zq_importer",
        ],
        &stream(),
    );
    assert!(
        code == 0
            && err.lines().count() == 1
            && err.contains("waiting for --exec, 120 seconds at most: printf "),
        "{err}"
    );
    assert!(out.contains(r"In prose\n2") && out.contains("- Never touch vendor/gen_file."), "{out}");
    // the command line may hold anything: it is not put into the stream
    assert!(out.contains(r#""--exec""#) && !out.contains("grep -c"), "{out}");
}

#[test]
fn a_command_that_fails_or_hangs_leaves_the_ledger() {
    for command in ["echo broken >&2; exit 7", "true", "echo I cannot help with that.", "sleep 60"] {
        let arguments = ["--no-redact", "--exec-timeout", "1", "--exec", command];
        let (code, out, err) = summarize(&arguments, &stream());
        assert_eq!(code, 0);
        assert!(out.contains("- Never touch vendor/gen_file."), "{out}");
        assert_eq!(err.lines().count(), 2, "{err}");
        assert!(err.contains("waiting for --exec, 1 second at most: "), "{err}");
        assert!(err.contains("the summary is the ledger"), "{err}");
    }
}

#[test]
fn secrets_are_not_handed_over_unasked() {
    // put together here, so that no scanner finds a key in this file
    let secret = ["gh", "p_", "k3Vt9QbX1mZr7LwYc5Hs", "2DfJ8NaPu4Ee6GiT"].concat();
    let stream = stream().replace("Port the", &format!("With {secret} port the"));
    for (more, handed) in [(None, "0"), (Some("--no-redact"), "1")] {
        let count = format!(
            "printf '## %s\\n' Goal 'Newest request' 'Rules of the user'; echo Told; grep -o {secret} | head -1 | wc -l"
        );
        let arguments: Vec<&str> = ["--all", "--exec", &count].into_iter().chain(more).collect();
        let (code, out, err) = summarize(&arguments, &stream);
        assert!(
            code == 0
                && err.lines().count() == 1
                && err.contains("waiting for --exec, 120 seconds at most: printf "),
            "{err}"
        );
        assert!(out.contains(&format!(r"Told\n{handed}")), "{more:?}: {out}");
    }
}

#[test]
fn a_cut_stream_fails_and_an_empty_one_does_not() {
    let (code, out, _) = summarize(&[], &stream().replace(END, ""));
    assert_eq!(code, 3);
    assert!(out.lines().last().unwrap().starts_with(r#"{"type":"abort","by":"relay-summarize""#), "{out}");
    assert_eq!(summarize(&[], "").0, 0);
}
