//! What was done, for people.

use super::Part;
use super::settle::Fate;
use crate::record::{Budget, Role};

/// The kinds of messages that are told apart, in the order of the table.
const KINDS: [&str; 9] = [
    "system",
    "first and newest prompt",
    "other prompts",
    "summaries",
    "text of the model",
    "tool calls",
    "tool results",
    "reasoning",
    "text of the client",
];

/// One kind of messages.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Row {
    /// What kind, in words.
    pub kind: &'static str,
    /// Messages kept as they were.
    pub kept: u64,
    /// Messages that a shorter one stands for.
    pub condensed: u64,
    /// Messages of which only their size and how they ended is told.
    pub masked: u64,
    /// Messages left out.
    pub dropped: u64,
    /// Tokens of all of them before; estimated.
    pub before: u64,
    /// Tokens of what is left of them.
    pub after: u64,
}

/// What was done to one session.
#[derive(Debug, Clone, PartialEq)]
pub struct Explanation {
    /// Id of the session.
    pub session_id: String,
    /// What was aimed at; reserves as they are in the end.
    pub budget: Budget,
    /// The kinds of which there were any.
    pub rows: Vec<Row>,
}

impl Explanation {
    /// Tokens of what is never touched: system records, first and newest prompt.
    pub fn pinned(&self) -> u64 {
        self.rows.iter().filter(|r| KINDS.iter().take(2).any(|k| *k == r.kind)).map(|r| r.after).sum()
    }

    /// Tokens of everything that is kept.
    pub fn kept(&self) -> u64 {
        self.rows.iter().map(|r| r.after).sum()
    }

    /// Tokens of the budget that neither what is kept nor what is set aside takes.
    pub fn free(&self) -> u64 {
        let set_aside = self.budget.summary_reserve.saturating_add(self.budget.note_reserve);
        self.budget.tokens.saturating_sub(self.kept()).saturating_sub(set_aside)
    }

    /// The table, a line a kind, then what is worth saying of it.
    pub fn lines(&self) -> Vec<String> {
        let mut lines = vec![format!(
            "{:24} {:>8} {:>9} {:>8} {:>8} {:>11} {:>11}",
            "", "kept", "shortened", "masked", "dropped", "tokens", "left"
        )];
        let mut all = Row { kind: "all", ..Row::default() };
        for row in &self.rows {
            all.kept += row.kept;
            all.condensed += row.condensed;
            all.masked += row.masked;
            all.dropped += row.dropped;
            all.before += row.before;
            all.after += row.after;
        }
        for row in self.rows.iter().chain([&all]) {
            lines.push(format!(
                "{:24} {:>8} {:>9} {:>8} {:>8} {:>11} {:>11}",
                row.kind, row.kept, row.condensed, row.masked, row.dropped, row.before, row.after
            ));
        }
        let share = |tokens: u64| tokens * 100 / self.budget.tokens.max(1);
        let prompts = self.pinned();
        if share(prompts) >= 25 {
            lines.push(format!(
                "system, first and newest prompt take {prompts} tokens, {} % of the budget",
                share(prompts)
            ));
        }
        let free = self.free();
        lines.push(format!("unused: {free} tokens, {} % of the budget", share(free)));
        lines
    }

    /// The budget as one line of `width` characters with its legend: pinned, summary and note, recent, free.
    pub fn bar(&self, width: usize) -> Vec<String> {
        let total = self.budget.tokens.max(1);
        let set_aside = self.budget.summary_reserve.saturating_add(self.budget.note_reserve);
        let (pinned, kept) = (self.pinned(), self.kept());
        let recent = kept.saturating_sub(pinned);
        let free = self.free();
        let cells = |tokens: u64| {
            let cells = u128::from(tokens) * width as u128 / u128::from(total);
            usize::try_from(cells).unwrap_or(width).min(width)
        };
        let mut bar = String::new();
        for (tokens, cell) in [(pinned, '#'), (set_aside, '='), (recent, '+')] {
            bar.extend(std::iter::repeat_n(cell, cells(tokens)));
        }
        let mut bar: String = bar.chars().take(width).collect();
        bar.extend(std::iter::repeat_n('.', width.saturating_sub(bar.len())));
        vec![
            format!("[{bar}]"),
            format!(
                "# pinned {pinned}   = summary and note {set_aside}   + recent {recent}   . free {free}   of {}",
                self.budget.tokens
            ),
        ]
    }
}

/// Counts what becomes of messages.
#[derive(Debug, Default)]
pub(super) struct Tally([Row; KINDS.len()]);

impl Tally {
    /// Counts one message with its tokens; `left` is what becomes of it and what that costs, unless it is left out.
    pub(super) fn count(&mut self, part: Part, role: Role, tokens: u64, left: Option<(Fate, u64)>) {
        let kind = match (part, role) {
            (_, Role::System) => 0,
            (Part::Fixed | Part::Task, _) => 1,
            (Part::Prompt, _) if matches!(left, Some((Fate::Pinned | Fate::Cut, _))) => 1,
            (Part::Prompt, _) => 2,
            (Part::Ours | Part::Summary, _) => 3,
            (_, Role::Assistant) => 4,
            (_, Role::ToolCall) => 5,
            (_, Role::ToolResult) => 6,
            (_, Role::Reasoning) => 7,
            _ => 8,
        };
        let Some(row) = self.0.get_mut(kind) else { return };
        row.before = row.before.saturating_add(tokens);
        match left {
            None => row.dropped += 1,
            Some((fate, after)) => {
                row.after = row.after.saturating_add(after);
                match fate {
                    Fate::Kept | Fate::Pinned => row.kept += 1,
                    Fate::Condensed | Fate::Cut => row.condensed += 1,
                    Fate::Masked => row.masked += 1,
                }
            }
        }
    }

    pub(super) fn explanation(self, session_id: String, budget: Budget) -> Explanation {
        let rows = self.0.into_iter().zip(KINDS).map(|(row, kind)| Row { kind, ..row });
        let rows = rows.filter(|r| r.kept + r.condensed + r.masked + r.dropped > 0).collect();
        Explanation { session_id, budget, rows }
    }
}
