//! Tools that have a counterpart in another agent. Every agent has a table of its own; what a call does is told by
//! its shape, so a call of one table can be made again by another.

use crate::json::{Value, write_escaped, write_string};
use std::borrow::Cow;

/// A tool of an agent.
#[derive(Debug, Clone, Copy)]
pub struct Tool {
    /// Its name.
    pub name: &'static str,
    /// What it does, and where its input says so.
    pub shape: Shape,
    /// Whether calls are written to this tool; the others are only read.
    pub written: bool,
}

impl Tool {
    /// A tool that calls are written to.
    pub const fn written(name: &'static str, shape: Shape) -> Tool {
        Tool { name, shape, written: true }
    }

    /// A tool that is only read: an earlier client's, or a second way to say the same.
    pub const fn read(name: &'static str, shape: Shape) -> Tool {
        Tool { name, shape, written: false }
    }
}

/// What a tool does, and where in its input it says so.
#[derive(Debug, Clone, Copy)]
pub enum Shape {
    /// Runs shell text that stands in this field.
    Shell(&'static str),
    /// Runs a program with its arguments, an array in this field.
    Words(&'static str),
    /// Changes files by a patch that begins with `*** Begin Patch`, in this field or as the whole input.
    Patch(&'static str),
    /// Writes a whole new file.
    Create {
        /// Field of the file's path.
        path: &'static str,
        /// Field of the file's text.
        content: &'static str,
    },
    /// Puts one text in the place of another one.
    Replace {
        /// Field of the file's path.
        path: &'static str,
        /// Field of the text that goes.
        old: &'static str,
        /// Field of the text that comes.
        new: &'static str,
    },
    /// Keeps a list of steps.
    Plan {
        /// Field of the list.
        list: &'static str,
        /// Field of a step's words.
        text: &'static str,
        /// Field that says them once more, in the form of "doing …".
        active: Option<&'static str>,
    },
}

/// A call as the counterpart in another agent would be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counterpart {
    /// Name of that tool.
    pub name: &'static str,
    /// Its input, JSON.
    pub input: Vec<u8>,
    /// Whether the way back gives the same tool with an equal input: then the original need not be kept.
    pub exact: bool,
}

/// The counterpart that the agent with the tools `to` has for a call of the agent with the tools `from`, if both
/// tables know one and the input is of the form that the table tells.
pub fn counterpart(from: &[Tool], to: &[Tool], name: &str, input: Value<'_>) -> Option<Counterpart> {
    let from = from.iter().find(|tool| tool.name == name)?;
    let call = from.shape.read(input)?;
    let to = to.iter().find(|tool| tool.written && tool.shape.takes(&call))?;
    let exact = from.written && call.whole;
    Some(Counterpart { name: to.name, input: to.shape.write(&call.does), exact })
}

/// The input that a call had as `first`, a tool of `then`, given the call as its counterpart `name` of `now` was
/// written. Only where [`Counterpart::exact`] said so, which is when no original was kept.
pub fn original(now: &[Tool], then: &[Tool], name: &str, input: Value<'_>, first: &str) -> Option<Vec<u8>> {
    let now = now.iter().find(|tool| tool.name == name)?;
    let then = then.iter().find(|tool| tool.name == first)?;
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
/// another tool can say. The form is the one that Codex's `apply_patch` made known (0.20 to 0.171).
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

    const ONE: &[Tool] = &[
        Tool::written("Run", Shape::Shell("command")),
        Tool::written("Steps", Shape::Plan { list: "todos", text: "content", active: Some("doing") }),
        Tool::written("Make", Shape::Create { path: "file", content: "text" }),
        Tool::written("Swap", Shape::Replace { path: "file", old: "was", new: "is" }),
    ];
    const TWO: &[Tool] = &[
        Tool::written("run_it", Shape::Shell("cmd")),
        Tool::read("run_words", Shape::Words("command")),
        Tool::read("patch_it", Shape::Patch("input")),
        Tool::written("plan_it", Shape::Plan { list: "plan", text: "step", active: None }),
    ];

    fn between(from: &[Tool], to: &[Tool], name: &str, input: &str) -> Option<(String, String, bool)> {
        let mut tape = Tape::new();
        let c = counterpart(from, to, name, tape.parse(input.as_bytes()).unwrap())?;
        let text = String::from_utf8(c.input).unwrap();
        serde_json::from_str::<serde_json::Value>(&text).unwrap();
        Some((c.name.to_owned(), text, c.exact))
    }

    fn some(name: &str, input: &str, exact: bool) -> Option<(String, String, bool)> {
        Some((name.to_owned(), input.to_owned(), exact))
    }

    #[test]
    fn shell_calls_have_counterparts() {
        let want = some("run_it", r#"{"cmd":"ls \"a\\n\""}"#, true);
        assert_eq!(between(ONE, TWO, "Run", r#"{"command":"ls \"a\\n\""}"#), want);
        let want = some("run_it", r#"{"cmd":"ls"}"#, false);
        assert_eq!(between(ONE, TWO, "Run", r#"{"command":"ls","description":"list"}"#), want);
        let want = some("Run", r#"{"command":"ls -l"}"#, false);
        for (name, input) in [
            ("run_words", r#"{"command":["bash","-lc","ls -l"]}"#),
            ("run_words", r#"{"type":"exec","command":["ls","-l"]}"#),
            ("run_it", r#"{"cmd":"ls -l","workdir":"/x"}"#),
        ] {
            assert_eq!(between(TWO, ONE, name, input), want, "{name}");
        }
        let quoted = some("Run", r#"{"command":"echo 'a b' '' 'it'\\''s'"}"#, false);
        assert_eq!(between(TWO, ONE, "run_words", r#"{"command":["echo","a b","","it's"]}"#), quoted);
    }

    #[test]
    fn plans_have_counterparts() {
        let todos = r#"{"todos":[{"content":"a","status":"completed","doing":"doing a"}]}"#;
        let want = some("plan_it", r#"{"plan":[{"step":"a","status":"completed"}]}"#, false);
        assert_eq!(between(ONE, TWO, "Steps", todos), want);
        let plan = r#"{"plan":[{"step":"a","status":"pending"},{"step":"b","status":"pending"}]}"#;
        let back = between(TWO, ONE, "plan_it", plan).unwrap();
        assert!(back.2 && back.0 == "Steps");
        assert_eq!(between(ONE, TWO, &back.0, &back.1).unwrap().1, plan);
        assert_eq!(between(ONE, TWO, "Steps", r#"{"todos":[]}"#), some("plan_it", r#"{"plan":[]}"#, true));
    }

    #[test]
    fn small_patches_have_counterparts() {
        let add = r#""*** Begin Patch\n*** Add File: a\n+x\n*** End Patch""#;
        assert_eq!(between(TWO, ONE, "patch_it", add), some("Make", r#"{"file":"a","text":"x\n"}"#, false));
        let change = r#""*** Begin Patch\n*** Update File: a\n@@\n-x\n+y\n*** End Patch""#;
        let want = some("Swap", r#"{"file":"a","was":"x","is":"y"}"#, false);
        assert_eq!(between(TWO, ONE, "patch_it", change), want);
        let more = r#""*** Begin Patch\n*** Update File: a\n@@\n-x\n@@\n-y\n*** End Patch""#;
        assert_eq!(between(TWO, ONE, "patch_it", more), None);
    }

    #[test]
    fn others_have_none() {
        for (name, input) in [
            ("Look", r#"{"file":"/x"}"#),
            // a name that the other table has is not this agent's tool
            ("run_it", r#"{"cmd":"x"}"#),
            ("Run", r#"{"command":7}"#),
            ("Run", r#""x""#),
            ("Make", r#"{"file":"a","text":"b"}"#),
            ("Steps", r#"{"todos":{}}"#),
            ("Steps", r#"{"todos":[{"content":"a"}]}"#),
        ] {
            assert_eq!(between(ONE, TWO, name, input), None, "{name} {input}");
        }
        for input in [r#"{"command":[]}"#, r#"{"command":[1]}"#] {
            assert_eq!(between(TWO, ONE, "run_words", input), None, "{input}");
        }
    }

    #[test]
    fn what_was_exact_comes_back() {
        let mut tape = Tape::new();
        let written = tape.parse(br#"{"cmd":"ls"}"#).unwrap();
        let input = original(TWO, ONE, "run_it", written, "Run").unwrap();
        assert_eq!(input, br#"{"command":"ls"}"#);
        assert_eq!(original(TWO, ONE, "run_it", written, "Steps"), None);
        assert_eq!(original(TWO, ONE, "unknown", written, "Run"), None);
    }
}
