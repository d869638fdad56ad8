#![doc = include_str!("TOOLS.md")]

use crate::json::{Value, write_escaped, write_string};
use std::borrow::Cow;

/// A tool that has a counterpart in another agent.
#[derive(Debug)]
pub(in crate::agents) struct Tool {
    /// Whose tool it is.
    pub(in crate::agents) agent: &'static str,
    /// Its name there.
    pub(in crate::agents) name: &'static str,
    /// What it does, and where its input says so.
    shape: Shape,
    /// Whether calls are written to this tool; the others are only read.
    written: bool,
}

#[derive(Debug, Clone, Copy)]
enum Shape {
    /// Runs shell text that stands in this field.
    Shell(&'static str),
    /// Runs a program with its arguments, an array in this field.
    Words(&'static str),
    /// Changes files by a patch of Codex's own form, in this field or as the whole input.
    Patch(&'static str),
    /// Writes a whole new file.
    Create { path: &'static str, content: &'static str },
    /// Puts one text in the place of another one.
    Replace { path: &'static str, old: &'static str, new: &'static str },
    /// Keeps a list of steps.
    Plan { list: &'static str, text: &'static str, active: Option<&'static str> },
}

const fn row(agent: &'static str, name: &'static str, written: bool, shape: Shape) -> Tool {
    Tool { agent, name, shape, written }
}

/// The published table. Names and fields as seen in sessions of Claude Code 1.0.128 to 2.1.332 and Codex
/// 0.20.0 to 0.171.0.
pub(in crate::agents) static TOOLS: &[Tool] = &[
    row("claude", "Bash", true, Shape::Shell("command")),
    row("codex", "exec_command", true, Shape::Shell("cmd")),
    row("codex", "shell_command", false, Shape::Shell("command")),
    row("codex", "shell", false, Shape::Words("command")),
    row("codex", "local_shell", false, Shape::Words("command")),
    row(
        "claude",
        "TodoWrite",
        true,
        Shape::Plan { list: "todos", text: "content", active: Some("activeForm") },
    ),
    row("claude", "Write", true, Shape::Create { path: "file_path", content: "content" }),
    row("claude", "Edit", true, Shape::Replace { path: "file_path", old: "old_string", new: "new_string" }),
    row("codex", "apply_patch", false, Shape::Patch("input")),
    row("codex", "update_plan", true, Shape::Plan { list: "plan", text: "step", active: None }),
];

/// A call as the counterpart in another agent would be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::agents) struct Counterpart {
    /// Name of that tool.
    pub(in crate::agents) name: &'static str,
    /// Its input, JSON.
    pub(in crate::agents) input: Vec<u8>,
    /// Whether the way back gives the same tool with an equal input: then the original need not be kept.
    pub(in crate::agents) exact: bool,
}

/// The counterpart that `agent` has for a call of another agent's tool, if the table knows one and the
/// input is of the form it knows.
pub(in crate::agents) fn counterpart(agent: &str, name: &str, input: Value<'_>) -> Option<Counterpart> {
    // a name that the target itself has means the target's own tool
    if TOOLS.iter().any(|t| t.agent == agent && t.name == name) {
        return None;
    }
    let from = TOOLS.iter().find(|t| t.agent != agent && t.name == name)?;
    let call = from.shape.read(input)?;
    let to = TOOLS.iter().find(|t| t.agent == agent && t.written && t.shape.takes(&call))?;
    let exact = from.written && call.whole;
    Some(Counterpart { name: to.name, input: to.shape.write(&call.does), exact })
}

/// The input that a call of the table had under its first name, given the call as its counterpart was
/// written. Only where [`Counterpart::exact`] said so, which is when no original was kept.
pub(in crate::agents) fn original(name: &str, input: Value<'_>, first: &str) -> Option<Vec<u8>> {
    let now = TOOLS.iter().find(|t| t.name == name)?;
    let then = TOOLS.iter().find(|t| t.name == first && t.agent != now.agent)?;
    let call = now.shape.read(input)?;
    then.shape.takes(&call).then(|| then.shape.write(&call.does))
}

/// What a call does, whoever's tool it is; texts are escaped bodies of JSON strings.
struct Call<'a> {
    does: Does<'a>,
    /// Whether the input says nothing else.
    whole: bool,
}

enum Does<'a> {
    Shell(Cow<'a, [u8]>),
    Plan(Vec<(&'a [u8], &'a [u8])>),
    Patch(Change),
}

impl Shape {
    fn takes(self, call: &Call<'_>) -> bool {
        matches!(
            (self, &call.does),
            (Shape::Shell(_) | Shape::Words(_), Does::Shell(_))
                | (Shape::Plan { .. }, Does::Plan(_))
                | (Shape::Create { .. }, Does::Patch(Change { old: None, .. }))
                | (Shape::Replace { .. }, Does::Patch(Change { old: Some(_), .. }))
        )
    }

    fn read<'a>(self, input: Value<'a>) -> Option<Call<'a>> {
        let alone = input.entries().count() == 1;
        match self {
            Shape::Shell(field) => {
                let text = input.get(field)?.text()?;
                Some(Call { does: Does::Shell(Cow::Borrowed(text.raw())), whole: alone })
            }
            Shape::Words(field) => {
                let words: Option<Vec<_>> = input.get(field)?.items().map(|w| w.text()).collect();
                let words = words?;
                let text = match words.as_slice() {
                    [] => return None,
                    // the shell that the client starts for a line of shell text
                    [shell, option, line]
                        if ["bash", "sh", "zsh", "/bin/bash", "/bin/sh", "/bin/zsh"]
                            .iter()
                            .any(|s| *shell == **s)
                            && ["-lc", "-c"].iter().any(|o| *option == **o) =>
                    {
                        Cow::Borrowed(line.raw())
                    }
                    words => {
                        let line: Vec<String> = words.iter().map(|w| word(&w.decode())).collect();
                        let mut body = Vec::new();
                        write_escaped(&mut body, &line.join(" "));
                        Cow::Owned(body)
                    }
                };
                Some(Call { does: Does::Shell(text), whole: false })
            }
            Shape::Patch(field) => {
                let text = input.text().or_else(|| input.get(field)?.text())?;
                Some(Call { does: Does::Patch(change(&text.decode())?), whole: false })
            }
            // no other agent has such a tool: their calls keep their names
            Shape::Create { .. } | Shape::Replace { .. } => None,
            Shape::Plan { list, text, .. } => {
                let list = input.get(list)?;
                let mut whole = alone;
                let mut steps = Vec::new();
                for step in list.items() {
                    steps.push((step.get(text)?.text()?.raw(), step.get("status")?.text()?.raw()));
                    whole &= step.entries().count() == 2;
                }
                (list.raw().first() == Some(&b'[')).then_some(Call { does: Does::Plan(steps), whole })
            }
        }
    }

    fn write(self, does: &Does<'_>) -> Vec<u8> {
        let mut out = Vec::new();
        let string = |out: &mut Vec<u8>, head: &str, key: &str, body: &[u8]| {
            out.extend_from_slice(head.as_bytes());
            write_string(out, key);
            out.extend_from_slice(b":\"");
            out.extend_from_slice(body);
            out.push(b'"');
        };
        match (self, does) {
            (Shape::Shell(field), Does::Shell(body)) => string(&mut out, "{", field, body),
            (Shape::Words(field), Does::Shell(body)) => {
                out.push(b'{');
                write_string(&mut out, field);
                out.extend_from_slice(b":[\"bash\",\"-lc\",\"");
                out.extend_from_slice(body);
                out.extend_from_slice(b"\"]");
            }
            (Shape::Plan { list, text, active }, Does::Plan(steps)) => {
                out.push(b'{');
                write_string(&mut out, list);
                out.extend_from_slice(b":[");
                for (n, (step, status)) in steps.iter().enumerate() {
                    string(&mut out, if n == 0 { "{" } else { ",{" }, text, step);
                    string(&mut out, ",", "status", status);
                    if let Some(key) = active {
                        string(&mut out, ",", key, step);
                    }
                    out.push(b'}');
                }
                out.push(b']');
            }
            (Shape::Create { path, content }, Does::Patch(change)) => {
                for (head, key, text) in [("{", path, &change.path), (",", content, &change.new)] {
                    let mut body = Vec::new();
                    write_escaped(&mut body, text);
                    string(&mut out, head, key, &body);
                }
            }
            (Shape::Replace { path, old, new }, Does::Patch(change)) => {
                let before = change.old.as_deref().unwrap_or_default();
                for (head, key, text) in
                    [("{", path, change.path.as_str()), (",", old, before), (",", new, change.new.as_str())]
                {
                    let mut body = Vec::new();
                    write_escaped(&mut body, text);
                    string(&mut out, head, key, &body);
                }
            }
            // `takes` was asked before
            _ => out.push(b'{'),
        }
        out.push(b'}');
        out
    }
}

/// The one change that a patch makes to a file.
struct Change {
    path: String,
    /// The lines that go; `None` where the file is new.
    old: Option<String>,
    new: String,
}

/// Reads a patch that adds one file, or changes one place of one file. Others say more than one call of
/// another tool can say. The form is that of Codex's `apply_patch` (0.20 to 0.171).
fn change(patch: &str) -> Option<Change> {
    let mut lines = patch.trim().lines();
    if lines.next()?.trim_end() != "*** Begin Patch" {
        return None;
    }
    let first = lines.next()?;
    let mut lines = lines.collect::<Vec<_>>();
    if lines.pop()?.trim_end() != "*** End Patch" {
        return None;
    }
    if lines.last().is_some_and(|l| *l == "*** End of File") {
        lines.pop();
    }
    if let Some(path) = first.strip_prefix("*** Add File: ") {
        let mut new = String::new();
        for line in lines {
            new.push_str(line.strip_prefix('+')?);
            new.push('\n');
        }
        return Some(Change { path: path.trim().to_owned(), old: None, new });
    }
    let path = first.strip_prefix("*** Update File: ")?.trim().to_owned();
    let (mut old, mut new) = (Vec::new(), Vec::new());
    for (n, line) in lines.into_iter().enumerate() {
        match line.split_at_checked(1) {
            _ if line.starts_with("@@") && n == 0 => {}
            // a context line that is empty may have lost its space
            None => {
                old.push("");
                new.push("");
            }
            Some((" ", text)) => {
                old.push(text);
                new.push(text);
            }
            Some(("-", text)) => old.push(text),
            Some(("+", text)) => new.push(text),
            // a second place, another file, or a move
            Some(_) => return None,
        }
    }
    // an insertion without any line around it has no place that an edit could name
    (!old.is_empty() && old != new).then(|| Change { path, old: Some(old.join("\n")), new: new.join("\n") })
}

/// A word of a command line, quoted only where the shell would read it otherwise.
fn word(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@%".contains(c);
    match !text.is_empty() && text.chars().all(plain) {
        true => text.to_owned(),
        false => format!("'{}'", text.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::Tape;

    fn to(agent: &str, name: &str, input: &str) -> Option<(String, String, bool)> {
        let mut tape = Tape::new();
        let c = counterpart(agent, name, tape.parse(input.as_bytes()).unwrap())?;
        let text = String::from_utf8(c.input).unwrap();
        serde_json::from_str::<serde_json::Value>(&text).unwrap();
        Some((c.name.to_owned(), text, c.exact))
    }

    fn some(name: &str, input: &str, exact: bool) -> Option<(String, String, bool)> {
        Some((name.to_owned(), input.to_owned(), exact))
    }

    #[test]
    fn shell_calls_have_counterparts() {
        let want = some("exec_command", r#"{"cmd":"ls \"a\\n\""}"#, true);
        assert_eq!(to("codex", "Bash", r#"{"command":"ls \"a\\n\""}"#), want);
        let want = some("exec_command", r#"{"cmd":"ls"}"#, false);
        assert_eq!(to("codex", "Bash", r#"{"command":"ls","description":"list"}"#), want);
        let want = some("Bash", r#"{"command":"ls -l"}"#, false);
        for (name, input) in [
            ("shell", r#"{"command":["bash","-lc","ls -l"]}"#),
            ("local_shell", r#"{"type":"exec","command":["ls","-l"]}"#),
            ("shell_command", r#"{"command":"ls -l","workdir":"/x"}"#),
            ("exec_command", r#"{"cmd":"ls -l","workdir":"/x"}"#),
        ] {
            assert_eq!(to("claude", name, input), want, "{name}");
        }
        let quoted = some(
            "Bash",
            r#"{"command":"echo 'a b' '' \"x"}"#.replace(" \\\"x", " 'it'\\\\''s'").as_str(),
            false,
        );
        assert_eq!(to("claude", "shell", r#"{"command":["echo","a b","","it's"]}"#), quoted);
    }

    #[test]
    fn plans_have_counterparts() {
        let todos = r#"{"todos":[{"content":"a","status":"completed","activeForm":"doing a"}]}"#;
        let want = some("update_plan", r#"{"plan":[{"step":"a","status":"completed"}]}"#, false);
        assert_eq!(to("codex", "TodoWrite", todos), want);
        let plan = r#"{"plan":[{"step":"a","status":"pending"},{"step":"b","status":"pending"}]}"#;
        let back = to("claude", "update_plan", plan).unwrap();
        assert!(back.2 && back.0 == "TodoWrite");
        assert_eq!(to("codex", &back.0, &back.1).unwrap().1, plan);
        assert_eq!(to("codex", "TodoWrite", r#"{"todos":[]}"#), some("update_plan", r#"{"plan":[]}"#, true));
    }

    #[test]
    fn others_have_none() {
        for (agent, name, input) in [
            ("codex", "Read", r#"{"file_path":"/x"}"#),
            ("codex", "exec_command", r#"{"cmd":"x"}"#),
            ("claude", "Bash", r#"{"command":"x"}"#),
            ("codex", "Bash", r#"{"command":7}"#),
            ("codex", "Bash", r#""x""#),
            ("codex", "TodoWrite", r#"{"todos":{}}"#),
            ("codex", "TodoWrite", r#"{"todos":[{"content":"a"}]}"#),
            ("claude", "shell", r#"{"command":[]}"#),
            ("claude", "shell", r#"{"command":[1]}"#),
        ] {
            assert_eq!(to(agent, name, input), None, "{name} {input}");
        }
    }

    #[test]
    fn every_agent_writes_each_kind_of_tool_one_way() {
        for t in TOOLS.iter().filter(|t| t.written) {
            let same = |o: &&Tool| {
                o.agent == t.agent
                    && o.written
                    && std::mem::discriminant(&o.shape) == std::mem::discriminant(&t.shape)
            };
            assert_eq!(TOOLS.iter().filter(same).count(), 1, "{} {}", t.agent, t.name);
        }
    }
}
