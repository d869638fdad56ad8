//! A summary in prose, made by a command of the user, and what of the ledger it must not lose.

use super::choose::{Line, Print, cost};
use super::prompts::{clipped, floor};
use super::terms;
use super::words::Section;
use super::work::one_line;
use super::{content, scan};
use crate::filters::redact::detect::cut_before;
use crate::json::Tape;
use crate::record::{Error, Kind, Reason, Record, Result, Role};
use crate::stream::{Queue, Runner};
use crate::tokens::Counter;
use std::collections::VecDeque;

/// Removes secrets from a text before a command sees it.
pub type Redact = Box<dyn FnMut(&str) -> Result<String>>;

/// What makes prose of the ledger.
pub struct Exec {
    /// The shell command.
    pub command: String,
    /// Runs it.
    pub runner: Box<dyn Runner>,
    /// Removes secrets from what it is given; `None` hands the conversation over as it is.
    pub redact: Option<Redact>,
    /// How much of the conversation it is given, in bytes, the newest part.
    pub transcript: usize,
}

impl std::fmt::Debug for Exec {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Exec").field("command", &self.command).finish_non_exhaustive()
    }
}

/// What the command is asked for; the headings follow.
const REQUEST: &str = "Below are the ledger and the transcript of a coding session. Another agent goes on with this session and \
sees only your note and the newest messages. Write a hand-over note, as a good colleague would: what is wanted, the newest \
request, the exact place where the work stands and the next step, what is pending, what the user ruled, decisions with their \
reasons, what was tried and failed, and why. Keep every path, identifier, command, number and rule of the user exactly. Say \
nothing twice, praise nothing. Do not use tools, do not answer the request, print nothing but the note. Write it in the \
language of the ledger, under these headings, in this order, leaving out what has nothing under it:";

/// What a summary in prose begins with.
const OPENING: [&str; 2] = [
    "Hand-over note in prose, made by a command of the user (--exec) from a ledger of relay. It stands for the part of the conversation that was left out; the newest part follows as it was.",
    "交接说明（叙述体），由用户的命令（--exec）根据 relay 的记录生成。它代替被省略的对话，最近的对话原样保留在其后。",
];

impl Exec {
    /// Runs the command on ledger and transcript and gives what it printed.
    ///
    /// # Errors
    /// The command failed, or printed nothing.
    pub(super) fn prose(
        &mut self,
        ledger: &str,
        lines: &[Line],
        print: Print<'_>,
        size: u64,
        queue: &Queue,
    ) -> Result<String> {
        let transcript = self.conversation(queue)?;
        let headings: String =
            Section::ALL.iter().map(|section| format!("\n## {}", section.heading(print.language))).collect();
        let size = prose_size(size);
        let mut input = format!(
            "{REQUEST}{headings}\n\nAt most {size} tokens.\n\n<ledger>\n{ledger}\n</ledger>\n\n<transcript>\n{transcript}</transcript>\n"
        );
        if let Some(redact) = &mut self.redact {
            input = redact(&input)?;
        }
        let printed = self.runner.run(&self.command, input.as_bytes())?;
        let prose = String::from_utf8_lossy(&printed).trim().to_owned();
        if prose.is_empty() {
            return Err(Error::failed("it printed nothing"));
        }
        let missing = missing_sections(&prose, lines);
        if !missing.is_empty() {
            let names: Vec<&str> = missing.iter().map(|section| section.heading(print.language)).collect();
            return Err(Error::failed(format!(
                "its answer is no hand-over note, it lacks: {}",
                names.join(", ")
            )));
        }
        Ok(prose)
    }

    /// The newest part of the conversation as plain text, results and long texts cut.
    fn conversation(&self, queue: &Queue) -> Result<String> {
        let (mut parts, mut bytes) = (VecDeque::new(), 0);
        let (mut tape, mut head_tape) = (Tape::new(), Tape::new());
        queue.lines(|line| {
            let record = Record::new(line, &mut head_tape)?;
            let head = record.head();
            let ours = head.kind == Kind::Message && head.origin.is_none() && !head.synthetic;
            let told = head.dropped.is_none()
                || matches!(head.reason(), Some(Reason::Trimmed | Reason::Condensed | Reason::Compacted));
            let (true, true, Some(role)) = (ours, told, head.role) else { return Ok(()) };
            if matches!(role, Role::System | Role::Reasoning) {
                return Ok(());
            }
            let value = scan(&record, &mut tape)?;
            let text = match role {
                Role::ToolCall => {
                    let name = head.tool_name.map(|t| t.head(80).into_owned()).unwrap_or_default();
                    let input = value.get("input").map(|v| v.raw()).unwrap_or_default();
                    let shown =
                        String::from_utf8_lossy(input.get(..input.len().min(2_000)).unwrap_or_default());
                    format!("[call] {name} {}", clipped(&shown, 500, 100))
                }
                Role::ToolResult => format!("[result] {}", clipped(&content(value, 64 << 10), 500, 500)),
                role => format!("[{role}] {}", clipped(&content(value, 64 << 10), 3_000, 1_000)),
            };
            bytes += text.len() + 1;
            parts.push_back(text);
            while bytes > self.transcript {
                let Some(gone) = parts.pop_front() else { break };
                bytes -= gone.len() + 1;
            }
            Ok(())
        })?;
        let mut out = String::with_capacity(bytes);
        for part in parts {
            out.push_str(&part);
            out.push('\n');
        }
        Ok(out)
    }
}

/// What of a summary the prose may take: three fifths, the rest is for what it does not tell.
fn prose_size(size: u64) -> u64 {
    size * 3 / 5
}

/// The sections without which an answer is no hand-over note, as far as the ledger has them: an answer of a model that
/// talks of something else, or an error message, has no such headings.
fn missing_sections(prose: &str, lines: &[Line]) -> Vec<Section> {
    let headed: Vec<Section> = prose
        .lines()
        .filter_map(|line| line.trim().strip_prefix('#'))
        .filter_map(|line| Section::of_heading(line.trim_start_matches('#').trim().trim_matches('*')))
        .collect();
    let needed = [Section::Goal, Section::Request, Section::State, Section::Plan, Section::Constraints];
    let told = |section: &Section| lines.iter().any(|line| line.section == *section);
    needed.into_iter().filter(|section| told(section) && !headed.contains(section)).collect()
}

/// The prose, cut to three fifths of `size`, and behind it what of the ledger it does not tell.
pub(super) fn verified(
    prose: &str,
    lines: &[Line],
    print: Print<'_>,
    size: u64,
    counter: &dyn Counter,
) -> String {
    let Print { language, .. } = print;
    let opening = language.pick(OPENING[0], OPENING[1]);
    let mut prose = prose.to_owned();
    while cost(counter, &prose) > prose_size(size) {
        let shorter = floor(&prose, prose.len() * 9 / 10);
        prose.truncate(shorter);
        if prose.is_empty() {
            break;
        }
        let end = prose.rfind(['\n', '.', '。']).unwrap_or(prose.len());
        prose.truncate(cut_before(None, &prose, end.max(prose.len() / 2)));
        prose.push('…');
    }
    let plain = one_line(&prose);
    let heading = language.pick("Facts kept by rule", "按规则保留的事实");
    let mut missing: Vec<Line> = lines.iter().filter(|line| !tells(&plain, line)).cloned().collect();
    loop {
        let mut text = format!("{opening}\n\n{prose}");
        if !missing.is_empty() {
            text.push_str("\n\n");
            text.push_str(&super::choose::print(
                &missing,
                Print { opening: &format!("# {heading}"), ..print },
            ));
        }
        if cost(counter, &text) <= size || missing.is_empty() {
            return text;
        }
        // what was found matters less than what was asked
        let last = missing
            .iter()
            .enumerate()
            .max_by_key(|(at, line)| (matches!(line.section, Section::Findings | Section::Environment), *at))
            .map(|(at, _)| at);
        if let Some(at) = last {
            missing.remove(at);
        }
    }
}

/// Whether prose tells what a line of the ledger does: its names and its quoted parts, or else its words.
fn tells(prose: &str, line: &Line) -> bool {
    match line.section {
        // of these the state matters, which prose words in its own way: what they name must be there
        Section::Files | Section::Commands | Section::Errors => {
            let quoted = line.text.split('`').nth(1).unwrap_or(&line.text);
            let last = quoted.rsplit('/').next().unwrap_or(quoted);
            prose.contains(quoted)
                || (line.section == Section::Files && last.len() >= 6 && prose.contains(last))
        }
        Section::Findings | Section::Environment | Section::State => true,
        Section::Goal | Section::Request | Section::Constraints | Section::Decisions | Section::Plan => {
            let mut names = 0;
            let mut told = 0;
            terms::each(&line.text, |name| {
                names += 1;
                told += usize::from(prose.contains(name));
            });
            let text = line.text.trim_start_matches(['[', ']', ' ', 'x', '~']);
            prose.contains(text) || (names > 0 && names == told && line.section == Section::Plan)
        }
    }
}
