//! What the user typed, told apart from the template that a client put around it.
//!
//! Codex CLI and others send the whole text of a custom command as the prompt, with the words of the user filled in
//! wherever it says `$ARGUMENTS` (seen with the prompts of spec-kit: 5,000 to 12,000 tokens for a sentence). The
//! stream does not tell where the text is from. What does: a block that is headed as the user's input, passages that
//! stand in the prompt more than once, and long lines that other prompts hold as well.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher};

/// Shorter prompts are not looked into, in bytes.
pub(super) const SHORT: usize = 1_200;

/// Shorter lines say too little to tell that two texts are one, in bytes.
const LINE: usize = 40;

/// A passage that comes again is told once from this length on, in bytes.
const PASSAGE: usize = 80;

/// Most lines that are remembered of all prompts.
const LINES: usize = 20_000;

/// What is between the words of two lines of a template.
pub(super) const CUT: &str = "[… as in the other prompts of this template …]";

/// A prompt in the order of what it is worth.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Typed {
    /// The words of the user, where the template shows them; may be empty.
    pub(super) words: String,
    /// Everything else, each passage once, without what other prompts hold as well.
    pub(super) rest: String,
    /// Whether the prompt has a place for the words of the user: the rest is not theirs.
    pub(super) template: bool,
}

/// The long lines of the prompts so far, and how many prompts hold each.
#[derive(Debug, Default)]
pub(super) struct Lines(HashMap<u64, u32, foldhash::fast::FixedState>);

impl Lines {
    /// Notes the lines of one more prompt.
    pub(super) fn note(&mut self, prompt: &str) {
        if prompt.len() < SHORT || self.0.len() > LINES {
            return;
        }
        let mut own: Vec<u64> = long(prompt).map(key).collect();
        own.sort_unstable();
        own.dedup();
        for line in own {
            *self.0.entry(line).or_default() += 1;
        }
    }

    /// Takes a prompt apart. `times` is in how many prompts a line must stand to be one of a template: 1 for a
    /// prompt that was not noted, 2 for one that was.
    pub(super) fn apart(&self, prompt: &str, times: u32) -> Typed {
        if prompt.len() < SHORT {
            return Typed { rest: prompt.to_owned(), ..Typed::default() };
        }
        let found = input(prompt);
        let template = found.is_some();
        let (words, around) = match found {
            Some((words, before, after)) => (words, format!("{}\n{}", before.trim_end(), after.trim_start())),
            None => ("", prompt.to_owned()),
        };
        let around = match words.len() >= PASSAGE {
            true => around.replace(words, "[…]"),
            false => around,
        };
        let mut seen: HashMap<u64, ()> = HashMap::new();
        let mut rest = String::with_capacity(around.len());
        let mut cut = false;
        for line in around.lines() {
            let shown = line.trim();
            let known = shown.len() >= LINE && self.0.get(&key(shown)).is_some_and(|n| *n >= times);
            let again = shown.len() >= PASSAGE && seen.insert(key(shown), ()).is_some();
            if known || again {
                if !cut {
                    rest.push_str(CUT);
                    rest.push('\n');
                }
                cut = true;
                continue;
            }
            // what is between two lines of a template is mostly of it as well
            if cut && shown.len() < LINE {
                continue;
            }
            cut = false;
            rest.push_str(line);
            rest.push('\n');
        }
        let rest = rest.trim();
        let rest = rest.strip_prefix(CUT).unwrap_or(rest).trim();
        Typed { words: words.trim().to_owned(), rest: rest.to_owned(), template }
    }
}

/// The block that a heading calls the input of the user, and what stands before and behind it.
fn input(prompt: &str) -> Option<(&str, &str, &str)> {
    let (mut at, mut heading) = (0, 0);
    let mut headed = false;
    for line in prompt.split_inclusive('\n') {
        let shown = line.trim();
        if headed && shown.starts_with("```") {
            let start = at + line.len();
            let inside = prompt.get(start..)?;
            let end = inside
                .find("\n```")
                .map_or_else(|| inside.starts_with("```").then_some(0), |n| Some(n + 1))?;
            let behind = inside.get(end..)?;
            let behind = behind.split_once('\n').map_or("", |(_, rest)| rest);
            return Some((inside.get(..end)?, prompt.get(..heading)?, behind));
        }
        if !shown.is_empty() {
            let lower = shown.to_lowercase();
            headed = shown.len() < 60
                && (shown.starts_with(['#', '*', '<']) || shown.ends_with(':'))
                && ["user input", "arguments", "user request", "用户输入", "用户请求"]
                    .iter()
                    .any(|words| lower.contains(words));
            heading = at;
        }
        at += line.len();
    }
    None
}

fn long(prompt: &str) -> impl Iterator<Item = &str> {
    prompt.lines().map(str::trim).filter(|line| line.len() >= LINE)
}

fn key(line: &str) -> u64 {
    let mut hasher = foldhash::fast::FixedState::with_seed(11).build_hasher();
    hasher.write(line.as_bytes());
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn template(typed: &str) -> String {
        let steps: String = (0..30)
            .map(|n| {
                format!("{n}. Read the plan of step {n} and report what the step with this number needs.\n")
            })
            .collect();
        format!("\n## User Input\n\n```text\n{typed}\n```\n\nYou must consider it.\n\n{steps}")
    }

    #[test]
    fn the_words_of_the_user_come_out_of_a_template() {
        let (first, second) = (template("Port the duck counter to Rust, no unsafe code."), template(""));
        let mut lines = Lines::default();
        lines.note(&first);
        let typed = lines.apart(&first, 2);
        assert_eq!(typed.words, "Port the duck counter to Rust, no unsafe code.");
        assert!(typed.rest.contains("29. Read the plan"), "{typed:?}");
        // the second one holds nothing of its own
        let typed = lines.apart(&second, 1);
        assert_eq!(typed.words, "");
        assert!(typed.rest.len() < 200, "{typed:?}");
        lines.note(&second);
        let typed = lines.apart(&first, 2);
        assert!(typed.words.starts_with("Port the duck") && typed.rest.len() < 250, "{typed:?}");
    }

    #[test]
    fn what_differs_stays_and_what_comes_again_is_told_once() {
        let passage = "The total of an invoice is rounded once, at the end, and never a line at a time, in every currency.";
        let body: String =
            (0..40).map(|n| format!("Rule {n} of the house, as it is written in the handbook.\n")).collect();
        let one = format!("{body}Task: alpha\n{passage}\n{passage}\n");
        let two = format!("{body}Task: beta, which is long enough to be a line of its own here.\n");
        let mut lines = Lines::default();
        lines.note(&one);
        let typed = lines.apart(&two, 1);
        assert!(typed.rest.contains("Task: beta") && !typed.rest.contains("Rule 7"), "{typed:?}");
        assert_eq!(lines.apart(&one, 2).rest.matches(passage).count(), 1);
        // a short prompt is left alone
        assert_eq!(lines.apart("Rule 1 of the house, as it is written in the handbook.", 1).rest.len(), 54);
    }

    #[test]
    fn an_input_block_may_be_empty_or_open() {
        assert_eq!(input("# Arguments\n```\n```\nx").map(|i| i.0), Some(""));
        assert_eq!(input("# Arguments\n```\nab"), None);
        assert_eq!(input("用户输入：\n```\nab"), None);
        assert_eq!(input("## 用户输入\n```\n数鸭子\n```\n").map(|i| i.0), Some("数鸭子\n"));
    }
}
