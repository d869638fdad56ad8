//! Who speaks in a text that stands in the user's place: the human, or the client in the human's name.
//!
//! Clients wrap what the human typed, put their own texts before and behind it, and let other agents speak there.
//! Each agent tells its own forms ([`Speech`]), and all of them are looked for in every session. What a client says of
//! a whole line (`isMeta`, `origin`, the author) is told by its reader.

use super::AGENTS;
use crate::record::Harness;
use std::borrow::Cow;

/// A stretch of a text, and who speaks in it: `None` for the human.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::agents) struct Said<'a> {
    pub(in crate::agents) by: Option<Harness>,
    /// Borrowed where it is the text's own, owned where it says in short what a wrapper says: `/name args`.
    pub(in crate::agents) text: Cow<'a, str>,
}

/// What one client puts into the user's place.
#[derive(Debug, Clone, Copy, Default)]
pub struct Speech {
    /// Tags that hold a text of the client; `ide_…` stands besides.
    pub blocks: &'static [(&'static str, Harness)],
    /// Tags that the client also puts behind what the human typed.
    pub behind: &'static [&'static str],
    /// Beginnings of texts that are the client's from the first word to the last.
    pub whole: &'static [(&'static str, Harness)],
    /// Beginnings of what an editor or an app puts before what the human typed, each with the heading below which it is
    /// worth carrying; `None`: always. Any other heading is one, too, when a `request` stands behind it.
    pub before: &'static [(&'static str, Option<&'static str>)],
    /// Headings behind which the human's words begin, after one of `before`.
    pub request: &'static [&'static str],
    /// Commands that ask nothing of the model. Any other one is a prompt, and its text follows.
    pub local: &'static [&'static str],
}

/// What every client does, since a text that one client wrote is carried to another.
fn each<T: 'static>(of: impl Fn(Speech) -> &'static [T]) -> impl Iterator<Item = &'static T> {
    AGENTS.iter().flat_map(move |agent| of(agent.speech()))
}

/// Where the human's words stand in the text of a command (templates of spec-kit), in a fence behind this heading.
const INPUT: &str = "## User Input";

/// Whether the text could be anything but the human's own words. `head` is the text or its beginning.
///
/// A template may have its heading anywhere, so a long text that begins like none is looked through.
pub(in crate::agents) fn may_be_mixed(text: &[u8]) -> bool {
    let start = text.iter().position(|b| !b.is_ascii_whitespace()).unwrap_or(0);
    let text = text.get(start..).unwrap_or_default();
    // a tag may be spelled with an escape, and white space too
    matches!(text.first(), Some(b'<' | b'[' | b'#' | b'C' | b'A' | b'\\' | 0x80..))
        || text.trim_ascii_end().ends_with(b">")
        || text.ends_with(b"\\n")
        || memchr::memmem::find(text, INPUT.as_bytes()).is_some()
}

/// The stretches of a text, in its order.
pub(in crate::agents) fn said(text: &str) -> Vec<Said<'_>> {
    let mut found = Vec::new();
    stretches(text, &mut found);
    // white space between stretches is no one's
    found.retain(|s: &Said<'_>| !s.text.trim().is_empty());
    if found.is_empty() {
        found.push(Said { by: None, text: Cow::Borrowed(text) });
    }
    found
}

/// So many letters of a prompt are shown where sessions are listed.
const SHOWN: usize = 200;

/// The beginning of what the human says in a text, on one line.
pub(in crate::agents) fn shown(text: &str) -> Option<String> {
    // what an earlier relay wrote in front
    if text.starts_with("[relay note relay_") {
        return None;
    }
    let said = said(text);
    let human = said.iter().filter(|s| s.by.is_none()).flat_map(|s| s.text.split_whitespace());
    let mut line = String::new();
    for word in human {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
        if line.chars().count() > SHOWN {
            return Some(line.chars().take(SHOWN - 1).chain(['…']).collect());
        }
    }
    (!line.is_empty()).then_some(line)
}

/// The kind of a text of the client as a whole, or `None` where the human speaks in it.
pub(in crate::agents) fn kind(text: &str) -> Option<Harness> {
    let said = said(text);
    match said.iter().any(|s| s.by.is_none()) {
        true => None,
        false => said.first().and_then(|s| s.by),
    }
}

fn stretches<'a>(text: &'a str, found: &mut Vec<Said<'a>>) {
    let mut rest = text;
    loop {
        let start = rest.trim_start();
        if start.is_empty() {
            return;
        }
        if let Some((_, by)) = each(|s| s.whole).find(|(head, _)| start.starts_with(head)) {
            return found.push(Said { by: Some(*by), text: Cow::Borrowed(rest) });
        }
        if let Some((words, end)) = command(start).or_else(|| shell(start)) {
            found.push(Said { by: None, text: Cow::Owned(words) });
            rest = start.get(end..).unwrap_or_default();
            continue;
        }
        let Some((by, end)) = block(start) else { break };
        let end = rest.len() - start.len() + end;
        found.push(Said { by: Some(by), text: Cow::Borrowed(rest.get(..end).unwrap_or(rest)) });
        rest = rest.get(end..).unwrap_or_default();
    }
    if let Some((by, end)) = before(rest) {
        found.push(Said { by: Some(by), text: Cow::Borrowed(rest.get(..end).unwrap_or(rest)) });
        rest = rest.get(end..).unwrap_or_default();
        return stretches(rest, found);
    }
    if let Some(input) = template(rest) {
        let parts = [(0..input.start, false), (input.clone(), true), (input.end..rest.len(), false)];
        for (range, human) in parts {
            let text = Cow::Borrowed(rest.get(range).unwrap_or_default());
            found.push(Said { by: (!human).then_some(Harness::Expansion), text });
        }
        return;
    }
    let mut end = rest.len();
    let mut behind = Vec::new();
    while let Some((start, by)) = rest.get(..end).and_then(last_block) {
        behind.push(Said { by: Some(by), text: Cow::Borrowed(rest.get(start..end).unwrap_or_default()) });
        end = start;
    }
    found.push(Said { by: None, text: Cow::Borrowed(rest.get(..end).unwrap_or(rest)) });
    found.extend(behind.into_iter().rev());
}

/// What an editor or an app put before the human's words: its kind, and where they begin.
fn before(text: &str) -> Option<(Harness, usize)> {
    let start = text.trim_start();
    if !start.starts_with("# ") {
        return None;
    }
    let end = each(|s| s.request).find_map(|heading| line_of(text, heading)).map(|at| at.end);
    let known = each(|s| s.before).find(|(head, _)| start.starts_with(head));
    let end = end.or(known.map(|_| text.len()))?;
    // the paths are what the request speaks of, and so is what is selected
    let worth = known.and_then(|(_, worth)| *worth);
    let bare = worth.is_some_and(|worth| text.get(..end).is_none_or(|text| line_of(text, worth).is_none()));
    Some((if bare { Harness::Environment } else { Harness::Expansion }, end))
}

/// The name of the tag at the beginning of a text, with what stands behind the name.
fn tag(text: &str) -> Option<(&str, &str)> {
    let inside = text.strip_prefix('<')?;
    let good = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_';
    let end = inside.find(|c| !good(c))?;
    let (name, rest) = inside.split_at_checked(end)?;
    (rest.starts_with('>') || rest.starts_with([' ', '\n'])).then_some((name, rest))
}

fn kind_of(name: &str) -> Option<Harness> {
    if let Some((_, kind)) = each(|s| s.blocks).find(|(known, _)| *known == name) {
        return Some(*kind);
    }
    let rest = name.strip_prefix("ide_")?;
    // what is selected is what the request speaks of
    Some(if rest.starts_with("selection") { Harness::Expansion } else { Harness::Environment })
}

/// The client's block at the beginning of a text: its kind, and where it ends. One that is never closed is all
/// of the text.
fn block(text: &str) -> Option<(Harness, usize)> {
    let (name, rest) = tag(text)?;
    let kind = kind_of(name)?;
    // a word in angle brackets with attributes may be anyone's, but for those that have some
    if !rest.starts_with('>') && kind != Harness::Notice {
        return None;
    }
    let close = format!("</{name}>");
    Some((kind, text.find(&close).map_or(text.len(), |at| at + close.len())))
}

/// The client's block at the end of a text: where it begins, and its kind.
fn last_block(text: &str) -> Option<(usize, Harness)> {
    let trimmed = text.trim_end();
    let name = each(|s| s.behind).find(|name| {
        trimmed.strip_suffix('>').and_then(|t| t.strip_suffix(**name)).is_some_and(|t| t.ends_with("</"))
    })?;
    let start = text.rfind(&format!("<{name}>"))?;
    Some((start, kind_of(name)?))
}

/// What stands between the first `<name>` and `</name>`.
fn inside<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(&format!("<{name}>"))?;
    rest.split_once(&format!("</{name}>")).map(|(inside, _)| inside)
}

/// A slash command that asks something of the model, as the human typed it, and where its wrapper ends.
///
/// Claude Code begins the wrapper of such a command with `command-message`, that of a local one with
/// `command-name` (2.0.77, 2.1.332). A skill that the model called has no slash.
fn command(text: &str) -> Option<(String, usize)> {
    let (first, _) = tag(text)?;
    if !matches!(first, "command-message" | "command-name" | "command-args") {
        return None;
    }
    let mut end = 0;
    loop {
        let rest = text.get(end..)?;
        let start = rest.trim_start();
        let Some((name, _)) = tag(start) else { break };
        if !matches!(name, "command-message" | "command-name" | "command-args" | "skill-format") {
            break;
        }
        let close = format!("</{name}>");
        end += rest.len() - start.len() + start.find(&close)? + close.len();
    }
    let wrapper = text.get(..end)?;
    let name = inside(wrapper, "command-name")?.trim();
    let bare = name.strip_prefix('/')?;
    if bare.is_empty() || first != "command-message" && each(|s| s.local).any(|local| *local == bare) {
        return None;
    }
    let args = inside(wrapper, "command-args").unwrap_or_default().trim();
    Some((format!("{name} {args}").trim_end().to_owned(), end))
}

/// A shell command that the human ran with `!`, and where its wrapper ends.
fn shell(text: &str) -> Option<(String, usize)> {
    let close = "</bash-input>";
    let end = text.strip_prefix("<bash-input>").and(text.find(close))?;
    let typed = inside(text, "bash-input")?.trim();
    (!typed.is_empty()).then(|| (format!("! {typed}"), end + close.len()))
}

/// The first line that is `heading`, with its line feed.
fn line_of(text: &str, heading: &str) -> Option<std::ops::Range<usize>> {
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        if line.trim_end() == heading {
            return Some(at..at + line.len());
        }
        at += line.len();
    }
    None
}

/// Where the human's words stand in the text of a command: the fence behind its heading.
fn template(text: &str) -> Option<std::ops::Range<usize>> {
    let heading = line_of(text, INPUT)?;
    let rest = text.get(heading.end..)?;
    let open = rest.find(|c: char| !c.is_whitespace())?;
    let fence = rest.get(open..)?;
    if !fence.starts_with("```") {
        return None;
    }
    let start = heading.end + open + fence.find('\n')? + 1;
    let length = text.get(start..)?.find("\n```")?;
    let typed = text.get(start..start + length)?;
    // the place that the command was given nothing for
    Some(if typed.trim() == "$ARGUMENTS" { start..start } else { start..start + length })
}

#[cfg(test)]
mod tests {
    use super::*;
    use Harness::{Command, Environment, Expansion, Interrupt, Notice};

    fn parts(text: &str) -> Vec<(Option<Harness>, String)> {
        assert!(may_be_mixed(text.as_bytes()) || said(text).len() == 1, "{text}");
        said(text).into_iter().map(|s| (s.by, s.text.trim().to_owned())).collect()
    }

    fn human(text: &str) -> (Option<Harness>, String) {
        (None, text.to_owned())
    }

    #[test]
    fn what_the_human_typed_is_the_humans() {
        for text in [
            "fix the bug",
            "<b>bold</b> text of mine",
            "<ide-is-mine>x",
            "# Notes\nread them",
            "see <system-reminder> in the log, why?",
            "[ ] a list",
            "",
            "<channels>x</channels> is my markup",
        ] {
            assert_eq!(parts(text), [human(text)], "{text}");
            assert_eq!(kind(text), None);
        }
    }

    #[test]
    fn texts_of_the_client_have_their_kind() {
        for (text, expected) in [
            ("<command-name>/clear</command-name>", Command),
            (
                "<command-name>/compact</command-name>\n <command-message>compact</command-message>\n <command-args>names</command-args>",
                Command,
            ),
            (
                "<command-message>The \"x\" skill is loading</command-message>\n<command-name>x</command-name>",
                Command,
            ),
            ("\n  <local-command-stdout></local-command-stdout>", Command),
            (
                "Caveat: The messages below were generated by the user while running local commands. x",
                Command,
            ),
            ("<bash-stdout>a</bash-stdout><bash-stderr></bash-stderr>", Command),
            ("<task-notification>x", Notice),
            ("<teammate-message teammate_id=\"b\" color=\"blue\">\nmerge it\n</teammate-message>", Notice),
            ("[SUGGESTION MODE: Suggest what the user might type]", Notice),
            ("<ide_opened_file>x", Environment),
            ("<system-reminder>a</system-reminder>\n<system-reminder>b</system-reminder>", Environment),
            ("[Request interrupted by user for tool use]", Interrupt),
        ] {
            assert_eq!(kind(text), Some(expected), "{text}");
            assert!(kind(text).is_some());
        }
    }

    #[test]
    fn a_command_is_what_the_human_typed() {
        let with = |text: &str| parts(text);
        assert_eq!(
            with(
                "<command-message>fix-issue is running…</command-message>\n<command-name>/fix-issue</command-name>\n<command-args>123 now</command-args>"
            ),
            [human("/fix-issue 123 now")]
        );
        assert_eq!(
            with(
                "<command-name>/fix-issue</command-name>\n<command-message>fix-issue</command-message>\n<command-args>123 now</command-args>"
            ),
            [human("/fix-issue 123 now")]
        );
        assert_eq!(
            with("<command-message>init</command-message><command-name>/init</command-name>"),
            [human("/init")]
        );
        assert_eq!(with("<bash-input>git status</bash-input>"), [human("! git status")]);
        assert_eq!(
            with("<bash-input>ls</bash-input>\n<bash-stdout>a</bash-stdout>"),
            [human("! ls"), (Some(Command), "<bash-stdout>a</bash-stdout>".into())]
        );
    }

    #[test]
    fn what_is_the_clients_from_the_first_word_stays_it() {
        for (head, expected) in each(|s| s.whole) {
            assert_eq!(kind(&format!("{head} x\n\nmore")), Some(*expected), "{head}");
        }
    }

    #[test]
    fn the_humans_words_are_found_among_the_clients() {
        assert_eq!(
            parts("<ide_opened_file>a.rs</ide_opened_file>\n<ide_selection>let x</ide_selection> fix this"),
            [
                (Some(Environment), "<ide_opened_file>a.rs</ide_opened_file>".into()),
                (Some(Expansion), "<ide_selection>let x</ide_selection>".into()),
                human("fix this"),
            ]
        );
        assert_eq!(
            parts(
                "fix this\n\n<system-reminder>be brief</system-reminder>\n<ide_opened_file>a</ide_opened_file>\n"
            ),
            [
                human("fix this"),
                (Some(Environment), "<system-reminder>be brief</system-reminder>".into()),
                (Some(Environment), "<ide_opened_file>a</ide_opened_file>".into()),
            ]
        );
        assert_eq!(
            parts("Plan it.\n\n## User Input\n\n```text\na photo album\n```\n\nYou **MUST** heed it."),
            [
                (Some(Expansion), "Plan it.\n\n## User Input\n\n```text".into()),
                human("a photo album"),
                (Some(Expansion), "```\n\nYou **MUST** heed it.".into()),
            ]
        );
        assert_eq!(kind("Plan.\n## User Input\n\n```text\n$ARGUMENTS\n```\nGo."), Some(Expansion));
    }

    #[test]
    fn behind_what_an_editor_says_the_human_asks() {
        let request = each(|s| s.request).next().unwrap();
        assert_eq!(parts(&format!("Fix it.\n{request}\nx")), [human(&format!("Fix it.\n{request}\nx"))]);
        for (head, worth) in each(|s| s.before) {
            let bare = format!("{head}\n\n## a.py: /w/a.py\n\n{request}");
            let by = if worth.is_some() { Environment } else { Expansion };
            assert_eq!(parts(&format!("{bare}\nadd tests\n")), [(Some(by), bare), human("add tests")]);
            let Some(worth) = worth else { continue };
            let picked = format!("{head}\n\n{worth}\nlet x\n{request}");
            assert_eq!(parts(&format!("{picked}\nrename x")), [(Some(Expansion), picked), human("rename x")]);
        }
        let other = format!("# In app browser:\n- a page\n\n{request}");
        assert_eq!(
            parts(&format!("{other}\nFix it.\n{request} this, too")),
            [(Some(Expansion), other.clone()), human(&format!("Fix it.\n{request} this, too"))]
        );
        assert_eq!(parts(&other), [(Some(Expansion), other.clone())], "a picture may be the request");
    }
}
