//! Fits the live conversation of each session into a budget of tokens.
//!
//! The budget is all that will be written: what is kept, the summary, the relay note. The last two are set aside
//! first and named in `session.budget`. What is sacrificed, in this order, oldest first, as far as needed:
//!
//! | what | becomes |
//! |---|---|
//! | commands and notices of the client, before the newest turn | left out |
//! | reasoning, before the newest turn | left out |
//! | images, before the newest turn | named |
//! | plans that a later one replaces | their size |
//! | results of reads whose file is read or written again later | one line |
//! | results of tools | head, tail, lines that tell of errors, original size |
//! | the same | how much it was, whether it worked, its last lines or why it failed; then without these lines |
//! | long texts in the input of calls | their beginning; of edits and patches the lines that they change |
//! | where there is little room, calls of all but the newest steps, with their results | left out: what was said stays |
//! | turns | left out, step by step, at last their prompt; of the last one what fits, its texts cut |
//!
//! A *step* is one message of the model with its calls and their results; it stays or goes as a whole, so no call
//! is parted from its result. The newest results ([`Options::keep_tools`]) stay whole as long as they leave half of
//! the room; a result of up to 250 bytes stays in any case. What room is left in the end is handed back, newest first.
//!
//! System records, the first prompt of the human and the newest one are never left out. A prompt that takes more than a
//! quarter of the budget, or with the other one most of the room, is cut: of a template ([`super::typed`]) what the user
//! typed stays first, then what no other prompt holds. Only where their very beginnings exceed the budget, that is an
//! error. The source's own environment, which is written to no agent, costs nothing and stays.
//!
//! Records must come paired (see [`super::pair`]).
//!
//! Held: what could still be kept. A step or prompt falls out of this window as soon as the least that everything
//! behind it can cost exceeds the budget, and goes out as `trimmed` at once. The records stand in a [`Queue`], in
//! memory up to 8 MiB; of each there are some 100 bytes besides. The newest prompt and the newest summary hold
//! back what follows them, on disk, until a newer one comes.
//!
//! Counting: by [`Options::tokenizer`]. Of the default, an estimate, only what stays far from the edge of the budget
//! is decided; else what is kept is counted exactly, and the whole budget is used.

mod cost;
mod explain;
mod forms;
mod settle;

#[cfg(test)]
mod tests;

pub use explain::{Explanation, Row};

use super::Filter;
use super::typed::{self, Lines};
use crate::json::{Tape, Text, Value};
use crate::record::{
    Budget, End, Error, Harness, Head, Kind, Origin, Record, Result, Role, number, with_fields,
};
use crate::stream::{Held, Queue, Sink};
use crate::tokens::{Counter, Exact, Family, Tokenizer};
use explain::Tally;
use forms::Form;
use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher, Hasher};
use std::ops::Range;

/// Most tokens that are set aside for the summary, and most hundredths of the budget.
const SUMMARY: (u64, u64) = (4_000, 60);

/// Most tokens that are set aside for the note, and most hundredths of the budget.
const NOTE: (u64, u64) = (500, 5);

/// The first and the newest prompt may take so much of the budget each: one in.
const CAP: u64 = 4;

/// What the first and the newest prompt may take in any case, in tokens.
const CAPPED: u64 = 48;

/// Up to this room, in tokens, calls and their results go before texts do.
const SMALL: u64 = 12_000;

/// Bytes that are held before the first records go out although nothing had to go.
const HELD: u64 = 4 << 20;

/// Bytes that are decided before they go out, all at once.
const DECIDED: u64 = 256 << 10;

/// Most steps and prompts in the window.
const UNITS: usize = 300_000;

/// The mark of a trimmed record in the canonical head, and in one that has no `dropped`.
const MARK: &[u8] = b"\"trimmed\"";

/// How to trim.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// All that may be written, in tokens of the family.
    pub budget: u64,
    /// Whose tokens; [`Family::Unknown`] counts as the dearest.
    pub family: Family,
    /// How texts are counted.
    pub tokenizer: Tokenizer,
    /// The share of the budget that is used. Default: 0.9 for counts that are estimates, 1 for exact ones.
    pub safety: Option<f64>,
    /// Tokens set aside for the summary. Default: 60 % of the budget, at most 4,000.
    pub summary_reserve: Option<u64>,
    /// How many of the newest tool results are left whole.
    pub keep_tools: u64,
    /// Keep at most so many turns.
    pub recent_turns: Option<u64>,
    /// Leave trimmed records, and the originals of shortened ones, out of the stream.
    pub drop: bool,
    /// Gather what [`Trim::take_explanations`] tells.
    pub explain: bool,
}

impl Options {
    /// The defaults for a budget.
    pub fn new(budget: u64) -> Options {
        Options {
            budget,
            family: Family::Unknown,
            tokenizer: Tokenizer::default(),
            safety: None,
            summary_reserve: None,
            keep_tools: 5,
            recent_turns: None,
            drop: false,
            explain: false,
        }
    }

    /// What is aimed at, as it is written into `session.budget`.
    fn aim(&self) -> Budget {
        let part = |(most, hundredths): (u64, u64)| {
            let share = u128::from(self.budget) * u128::from(hundredths) / 100;
            u64::try_from(share).unwrap_or(u64::MAX).min(most)
        };
        Budget {
            tokens: self.budget,
            summary_reserve: self.summary_reserve.unwrap_or_else(|| part(SUMMARY)),
            note_reserve: part(NOTE),
            tokenizer: self.tokenizer.name().to_owned(),
            factor: Some(self.family.factor()),
        }
    }

    /// So many tokens less the margin for a count of this kind.
    fn safe(&self, tokens: u64, exact: bool) -> u64 {
        let share = self.safety.unwrap_or(if exact { 1.0 } else { 0.9 });
        // budgets are far below 2^53, and a share is between 0 and 1
        (tokens as f64 * share) as u64
    }
}

/// The filter.
pub struct Trim {
    options: Options,
    counters: Counters,
    tape: Tape,
    state: State,
    explanations: Vec<Explanation>,
}

impl std::fmt::Debug for Trim {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Trim").field("options", &self.options).finish_non_exhaustive()
    }
}

/// The ways of counting.
struct Counters {
    quick: Box<dyn Counter + Send + Sync>,
    /// Whether `quick` counts exactly or, of the seed formula, nothing better is asked for.
    last: bool,
    exact: Option<Exact>,
}

impl Counters {
    /// The exact counter for what an estimate cannot decide, unpacked when first asked for.
    fn exact(&mut self) -> Result<&dyn Counter> {
        let exact = match self.exact {
            Some(exact) => exact,
            None => Exact::o200k().map_err(|e| Error::failed(e.to_string()))?,
        };
        Ok(self.exact.insert(exact))
    }

    /// The counter that decides.
    fn sure(&mut self) -> Result<&dyn Counter> {
        if self.last { Ok(&*self.quick) } else { self.exact() }
    }
}

/// What a held message is to the trimming.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    /// Stays as it is: a system record.
    Fixed,
    /// The first prompt of the human: stays, within its share.
    Task,
    /// A summary of relay's own: stays, and takes the place that is set aside for one.
    Ours,
    /// A prompt of the human.
    Prompt,
    /// A summary that the source made.
    Summary,
    /// Text of the client that goes first.
    Noise,
    /// Any other.
    Step,
}

/// A live message that is held.
#[derive(Debug, Clone, Copy)]
struct Item {
    held: Held,
    part: Part,
    role: Role,
    /// Where the mark stands in the held line, unless it is held as it came.
    mark: Option<Mark>,
    /// Number of the step or prompt that it belongs to; of a summary of the source its own.
    unit: u64,
    turn: u64,
}

/// A mark in a held line.
#[derive(Debug, Clone, Copy)]
struct Mark {
    at: usize,
    /// Length of what was put in.
    len: usize,
    /// What stood there.
    was: &'static [u8],
}

#[derive(Debug)]
enum Entry {
    /// Lines that go out as they are held.
    Lines(Range<u64>),
    /// A line of another hand that is still to be marked.
    Unmarked(Held),
    Item(Item),
}

/// What stays or goes together.
#[derive(Debug, Clone, Copy)]
struct Unit {
    /// Less than its smallest form costs.
    least: u64,
    turn: u64,
    prompt: bool,
}

/// The step of the model that still grows.
#[derive(Debug, Clone, Copy)]
struct Step {
    unit: u64,
    group: Option<u64>,
    answered: bool,
    open: u64,
}

/// One session.
#[derive(Debug, Default)]
struct State {
    id: String,
    /// Room for what is kept, in tokens.
    room: u64,
    /// The most that the first and the newest prompt may take each, in tokens.
    cap: u64,
    /// The long lines of all prompts, to tell templates.
    lines: Lines,
    queue: Queue,
    /// What is decided or waits for a newer prompt or summary, before `entries`.
    front: VecDeque<Entry>,
    /// Bytes that came to `front` since it was last gone through.
    due: u64,
    entries: VecDeque<Entry>,
    /// The steps and prompts that could still be kept.
    units: VecDeque<Unit>,
    /// Number of the first of them.
    first: u64,
    least: u64,
    /// The least that what is never touched costs, without the newest prompt while that is among the units.
    fixed_least: u64,
    newest_least: u64,
    turn: u64,
    /// Turn of the prompts that come, by the source's count, and their unit, until the model speaks.
    prompting: Option<(Option<u64>, u64)>,
    step: Option<Step>,
    calls: HashMap<u64, u64, foldhash::fast::FixedState>,
    newest_summary: u64,
    /// Whether anything has fallen out of the window.
    over: bool,
    /// What went out and is never touched: as it is counted quickly and, once that matters, for sure.
    gone_quick: u64,
    gone_sure: u64,
    gone_ours: u64,
    messages: u64,
    live: u64,
    changed: bool,
    tally: Tally,
}

fn hash(text: &[u8]) -> u64 {
    // a fixed seed: the same stream gives the same result every time
    let mut hasher = foldhash::quality::FixedState::with_seed(7).build_hasher();
    hasher.write(text);
    hasher.finish()
}

fn hash_text(text: Text<'_>) -> u64 {
    match text.plain() {
        Some(plain) => hash(plain),
        None => hash(text.decode().as_bytes()),
    }
}

impl Trim {
    /// A filter that has seen nothing yet.
    ///
    /// # Errors
    /// The vocabulary of the tokenizer is not part of this build, or the share is none.
    pub fn new(options: Options) -> Result<Trim> {
        if options.safety.is_some_and(|s| !(s > 0.0 && s <= 1.0)) {
            let what = "the safety is a share: more than 0, at most 1".to_owned();
            return Err(Error::Usage { what, hint: None });
        }
        let quick = options.tokenizer.counter().map_err(|e| Error::failed(e.to_string()))?;
        let last = options.tokenizer != Tokenizer::Estimate;
        let counters = Counters { quick, last, exact: None };
        Ok(Trim { options, counters, tape: Tape::new(), state: State::default(), explanations: Vec::new() })
    }

    /// What was done to the sessions that have ended since the last look; only [`Options::explain`] gathers any.
    pub fn take_explanations(&mut self) -> Vec<Explanation> {
        std::mem::take(&mut self.explanations)
    }

    fn begin(&mut self, record: &Record<'_>, out: &mut dyn Sink) -> Result<()> {
        let aim = self.options.aim();
        let set_aside = aim.summary_reserve.saturating_add(aim.note_reserve);
        let room = aim.tokens.saturating_sub(set_aside);
        self.state = State { room, cap: (aim.tokens / CAP).max(CAPPED), ..State::default() };
        let value = record.parse(&mut self.tape)?;
        let id = value.get("session_id").and_then(|v| v.text());
        self.state.id = id.map(|t| t.decode().into_owned()).unwrap_or_default();
        let budget = serde_json::to_vec(&aim).map_err(|e| Error::shape(e.to_string()))?;
        out.put(&with_budget(record.line(), value, &budget))
    }

    /// Hands a record on that is never touched, in its turn.
    fn pass(&mut self, line: &[u8], out: &mut dyn Sink) -> Result<()> {
        let state = &mut self.state;
        if state.front.is_empty() && state.entries.is_empty() {
            return out.put(line);
        }
        let range = state.queue.push(&[line])?.range();
        append(&mut state.entries, range);
        Ok(())
    }

    fn message(&mut self, record: &Record<'_>, out: &mut dyn Sink) -> Result<()> {
        let head = record.head();
        self.state.messages += 1;
        let Some(role) = head.role.filter(|_| head.is_live()) else { return self.pass(record.line(), out) };
        self.state.live += 1;
        if cost::is_unwritten(head) {
            return self.pass(record.line(), out);
        }
        let prompt = role == Role::User && head.is_prompt() && record.line().len() > typed::SHORT;
        let value = match record.body() {
            Some(_) if !prompt => None,
            _ => Some(record.parse(&mut self.tape)?),
        };
        if prompt {
            let content = value.and_then(|value| value.get("content"));
            self.state.lines.note(&content.map(forms::text).unwrap_or_default());
        }
        let least = cost::least(role, record, value, self.options.family);
        let state = &mut self.state;
        let small = state.room <= SMALL && matches!(role, Role::ToolCall | Role::ToolResult);
        let (part, unit) = state.place(role, head, if small { least / 4 } else { least });
        let turn = state.turn;
        let mark = match part {
            Part::Fixed | Part::Ours => None,
            Part::Task | Part::Prompt | Part::Summary | Part::Noise | Part::Step => mark(record, value),
        };
        let held = match mark {
            None => state.queue.push(&[record.line()])?,
            Some(mark) => {
                let (before, after) = record.line().split_at(mark.at.min(record.line().len()));
                let after = after.get(mark.was.len()..).unwrap_or_default();
                let put: &[u8] = if mark.was.is_empty() { b",\"dropped\":\"trimmed\"" } else { MARK };
                state.queue.push(&[before, put, after])?
            }
        };
        state.entries.push_back(Entry::Item(Item { held, part, role, mark, unit, turn }));
        self.fall();
        self.pump(out)
    }

    /// Lets fall out of the window what can no longer be kept.
    fn fall(&mut self) {
        let state = &mut self.state;
        while let Some(oldest) = state.units.front() {
            let behind = (state.least - oldest.least)
                .saturating_add(state.fixed_least)
                .saturating_add(state.newest_least.min(state.cap));
            let old = self.options.recent_turns.is_some_and(|n| oldest.turn.saturating_add(n) <= state.turn);
            if behind <= state.room && !old && state.units.len() <= UNITS {
                break;
            }
            state.least -= oldest.least;
            if oldest.prompt && oldest.turn == state.turn {
                state.newest_least += oldest.least;
            }
            state.units.pop_front();
            state.first += 1;
            state.over = true;
        }
    }

    /// Hands on what is decided.
    fn pump(&mut self, out: &mut dyn Sink) -> Result<()> {
        if !self.state.over && self.state.queue.len() < HELD {
            return Ok(());
        }
        loop {
            let first = self.state.first;
            let decided = |entry: &Entry| match entry {
                Entry::Lines(_) | Entry::Unmarked(_) => true,
                Entry::Item(item) => {
                    item.unit < first || matches!(item.part, Part::Fixed | Part::Task | Part::Ours)
                }
            };
            if !self.state.entries.front().is_some_and(decided) {
                break;
            }
            let Some(entry) = self.state.entries.pop_front() else { break };
            let (entry, held) = match entry {
                Entry::Lines(ref range) => {
                    let held = range.end - range.start;
                    (entry, held)
                }
                Entry::Unmarked(held) => (entry, held.size()),
                Entry::Item(item) if matches!(item.part, Part::Noise | Part::Step) => {
                    (self.fallen(item)?, item.held.size())
                }
                Entry::Item(item) => (entry, item.held.size()),
            };
            self.state.due += held;
            match entry {
                Entry::Lines(range) => append(&mut self.state.front, range),
                entry => self.state.front.push_back(entry),
            }
        }
        if self.state.due < DECIDED {
            return Ok(());
        }
        self.state.due = 0;
        self.drain(out)
    }

    /// Hands on the front as far as it is decided.
    fn drain(&mut self, out: &mut dyn Sink) -> Result<()> {
        while let Some(entry) = self.state.front.pop_front() {
            match entry {
                Entry::Lines(range) => {
                    self.state.queue.each(range.clone(), |lines| out.put_all(lines))?;
                    self.state.queue.forget(range.end);
                }
                Entry::Unmarked(held) => {
                    let mut room = Vec::new();
                    out.put(&trimmed(self.state.queue.line(held, &mut room)?, &mut self.tape)?)?;
                    self.state.queue.forget(held.range().end);
                }
                Entry::Item(item) if item.part == Part::Fixed || item.part == Part::Ours => {
                    self.count_gone(item)?;
                    let range = item.held.range();
                    self.state.queue.each(range.clone(), |lines| out.put_all(lines))?;
                    self.state.queue.forget(range.end);
                }
                Entry::Item(item) if item.part == Part::Task => {
                    if !self.first_prompt(item, out)? {
                        self.state.front.push_front(entry);
                        break;
                    }
                    self.state.queue.forget(item.held.range().end);
                }
                Entry::Item(item) if self.waits(&item) => {
                    self.state.front.push_front(entry);
                    break;
                }
                Entry::Item(item) => {
                    let entry = self.fallen(item)?;
                    self.state.front.push_front(entry);
                }
            }
        }
        Ok(())
    }

    /// Hands the first prompt on, cut to its share once it is known that not all fits. Gives whether it is out.
    fn first_prompt(&mut self, item: Item, out: &mut dyn Sink) -> Result<bool> {
        let Trim { options, counters, tape, state, .. } = self;
        let mut room = Vec::new();
        let line = original(&state.queue, &item, &mut room)?;
        let (family, cap) = (options.family, state.cap);
        let tokens = |line: &[u8], tape: &mut Tape, counter: &dyn Counter| -> Result<u64> {
            let value = tape.parse(line).map_err(|e| Error::shape(e.to_string()))?;
            Ok(cost::whole(item.role, value, counter, family))
        };
        let quick = tokens(line, tape, &*counters.quick)?;
        // an estimate is never this wrong
        let mut sure = if quick / 4 > cap { quick } else { tokens(line, tape, counters.sure()?)? };
        if sure <= cap {
            out.put(line)?;
            state.tally.count(item.part, item.role, quick, Some((settle::Fate::Pinned, sure)));
            state.gone_quick = state.gone_quick.saturating_add(quick);
            state.gone_sure = state.gone_sure.saturating_add(sure);
            return Ok(true);
        }
        if !state.over {
            return Ok(false);
        }
        let (mut bytes, mut twin) = (cap.saturating_mul(4), Vec::new());
        while sure > cap && bytes > 0 {
            twin = forms::twin(line, Form::Typed(bytes), &state.lines, tape)?;
            sure = tokens(&twin, tape, counters.sure()?)?;
            bytes = bytes * 7 / 8;
        }
        if !options.drop {
            out.put(&condensed(line, tape)?)?;
            state.messages += 1;
        }
        out.put(&twin)?;
        state.changed = true;
        state.tally.count(item.part, item.role, quick, Some((settle::Fate::Cut, sure)));
        state.gone_quick = state.gone_quick.saturating_add(sure);
        state.gone_sure = state.gone_sure.saturating_add(sure);
        Ok(true)
    }

    /// Counts a message that is trimmed, and gives what goes out of it.
    fn fallen(&mut self, item: Item) -> Result<Entry> {
        self.state.changed = true;
        self.state.live -= 1;
        let (options, state) = (&self.options, &mut self.state);
        if options.explain {
            let mut room = Vec::new();
            let line = original(&state.queue, &item, &mut room)?;
            let value = self.tape.parse(line).map_err(|e| Error::shape(e.to_string()))?;
            let tokens = cost::whole(item.role, value, &*self.counters.quick, options.family);
            state.tally.count(item.part, item.role, tokens, None);
        }
        let range = item.held.range();
        Ok(if options.drop {
            state.messages -= 1;
            // nothing of it goes out, and what was held is let go
            Entry::Lines(range.end..range.end)
        } else if item.mark.is_some() {
            Entry::Lines(range)
        } else {
            Entry::Unmarked(item.held)
        })
    }

    /// Turn of the oldest step or prompt that could still be kept.
    fn oldest_turn(&self) -> u64 {
        self.state.units.front().map_or(self.state.turn, |unit| unit.turn)
    }

    /// Whether a prompt or summary waits for a newer one.
    fn waits(&self, item: &Item) -> bool {
        match item.part {
            Part::Summary => item.unit == self.state.newest_summary,
            _ => item.turn >= self.oldest_turn(),
        }
    }

    /// Counts what goes out and is never touched.
    fn count_gone(&mut self, item: Item) -> Result<()> {
        let mut room = Vec::new();
        let line = self.state.queue.line(item.held, &mut room)?;
        let value = self.tape.parse(line).map_err(|e| Error::shape(e.to_string()))?;
        let family = self.options.family;
        let quick = cost::whole(item.role, value, &*self.counters.quick, family);
        let sure = cost::whole(item.role, value, self.counters.sure()?, family);
        self.state.tally.count(item.part, item.role, quick, Some((settle::Fate::Kept, quick)));
        if item.part == Part::Ours {
            self.state.gone_ours = self.state.gone_ours.saturating_add(sure);
            return Ok(());
        }
        self.state.gone_quick = self.state.gone_quick.saturating_add(quick);
        self.state.gone_sure = self.state.gone_sure.saturating_add(sure);
        Ok(())
    }

    /// Decides what is held, and lets everything go.
    fn settle(&mut self, out: &mut dyn Sink) -> Result<Option<Budget>> {
        // what waits behind another one that waits may have been decided long ago
        for entry in std::mem::take(&mut self.state.front) {
            let entry = match entry {
                Entry::Item(item)
                    if matches!(item.part, Part::Prompt | Part::Summary) && !self.waits(&item) =>
                {
                    self.fallen(item)?
                }
                other => other,
            };
            self.state.front.push_back(entry);
        }
        let aim = self.options.aim();
        let Trim { options, counters, tape, state, .. } = self;
        let settled = settle::settle(options, counters, tape, state, aim, out)?;
        let state = &mut self.state;
        state.queue = Queue::default();
        state.front.clear();
        state.entries.clear();
        state.units.clear();
        Ok(settled)
    }

    fn finish(&mut self, record: &Record<'_>, out: &mut dyn Sink) -> Result<()> {
        let shrunk = self.settle(out)?;
        let state = std::mem::take(&mut self.state);
        if self.options.explain {
            let budget = shrunk.clone().unwrap_or_else(|| self.options.aim());
            self.explanations.push(state.tally.explanation(state.id, budget));
        }
        if !state.changed && shrunk.is_none() {
            return out.put(record.line());
        }
        let _: End = record.decode()?;
        let (mut messages, mut live) = (Vec::new(), Vec::new());
        number(&mut messages, state.messages);
        number(&mut live, state.live);
        let value = record.parse(&mut self.tape)?;
        let budget = serde_json::to_vec(&shrunk).map_err(|e| Error::shape(e.to_string()))?;
        let fields: [(&str, &[u8]); 3] = [("messages", &messages), ("live", &live), ("budget", &budget)];
        let fields = if shrunk.is_some() { &fields[..] } else { fields.get(..2).unwrap_or_default() };
        out.put(&with_fields(record.line(), value, fields))
    }
}

impl State {
    /// Finds out what a live message is, and to what it belongs.
    fn place(&mut self, role: Role, head: &Head<'_>, least: u64) -> (Part, u64) {
        let next = self.first + self.units.len() as u64;
        let model = matches!(role, Role::Assistant | Role::Reasoning | Role::ToolCall | Role::ToolResult);
        if model {
            self.prompting = None;
            return (Part::Step, self.step(role, head, least, next));
        }
        if self.step.is_some_and(|s| s.open == 0) {
            self.step = None;
        }
        let part = match role {
            Role::System => Part::Fixed,
            Role::Summary if head.origin == Some(Origin::Relay) => return (Part::Ours, next),
            Role::Summary => Part::Summary,
            // one that was cut before is still the human's
            _ if head.is_prompt() => {
                // several texts of one line are one prompt
                match self.prompting.filter(|(turn, _)| turn.is_some() && *turn == head.turn) {
                    Some((_, unit)) if self.turn > 1 => return (Part::Prompt, self.joined(unit, least)),
                    Some(_) => {}
                    None => {
                        self.turn += 1;
                        self.newest_least = 0;
                        self.prompting = Some((head.turn, next));
                    }
                }
                if self.turn == 1 { Part::Task } else { Part::Prompt }
            }
            _ if matches!(head.harness, Some(Harness::Command | Harness::Notice)) => Part::Noise,
            _ => Part::Step,
        };
        if matches!(part, Part::Fixed | Part::Task) {
            let least = if part == Part::Task { least.min(self.cap) } else { least };
            self.fixed_least = self.fixed_least.saturating_add(least);
            return (part, next);
        }
        if part == Part::Summary {
            self.newest_summary = next;
        }
        // the newest summary may be left out, and noise goes before anything else
        let least = match part {
            Part::Summary | Part::Noise => 0,
            Part::Prompt => least.min(self.cap),
            _ => least,
        };
        (part, self.alone(least, part == Part::Prompt))
    }

    /// A new unit.
    fn alone(&mut self, least: u64, prompt: bool) -> u64 {
        let unit = self.first + self.units.len() as u64;
        self.units.push_back(Unit { least, turn: self.turn, prompt });
        self.least = self.least.saturating_add(least);
        unit
    }

    /// One more message of a unit.
    fn joined(&mut self, unit: u64, least: u64) -> u64 {
        let at = unit.checked_sub(self.first).and_then(|at| usize::try_from(at).ok());
        match at.and_then(|at| self.units.get_mut(at)) {
            Some(found) => {
                found.least = found.least.saturating_add(least);
                self.least = self.least.saturating_add(least);
            }
            None => self.newest_least = self.newest_least.saturating_add(least),
        }
        unit
    }

    /// The step to which a message of the model or a result belongs.
    fn step(&mut self, role: Role, head: &Head<'_>, least: u64, next: u64) -> u64 {
        let id = || head.tool_call_id.map(hash_text);
        if role == Role::ToolResult {
            let Some(unit) = id().and_then(|id| self.calls.remove(&id)) else {
                self.step = None;
                return self.alone(least, false);
            };
            if let Some(step) = self.step.as_mut().filter(|s| s.unit == unit) {
                step.answered = true;
                step.open = step.open.saturating_sub(1);
            }
            return self.step_grows(unit, least);
        }
        let group = head.group.map(hash_text);
        let goes_on = self.step.filter(|s| {
            s.open > 0 || (group.is_some() && s.group == group) || (!s.answered && s.group == group)
        });
        let mut step = goes_on.unwrap_or(Step { unit: next, group, answered: false, open: 0 });
        let unit = match goes_on {
            Some(step) => self.step_grows(step.unit, least),
            None => self.alone(least, false),
        };
        step.group = group;
        if role == Role::ToolCall
            && let Some(id) = id()
        {
            step.open += 1;
            self.calls.insert(id, unit);
        }
        self.step = Some(step);
        unit
    }

    /// One more message of a step, which may have fallen already.
    fn step_grows(&mut self, unit: u64, least: u64) -> u64 {
        if unit >= self.first { self.joined(unit, least) } else { unit }
    }
}

/// Puts lines at the end, into one range with what stands before them where they touch.
fn append(entries: &mut VecDeque<Entry>, range: Range<u64>) {
    match entries.back_mut() {
        Some(Entry::Lines(last)) if last.end == range.start => last.end = range.end,
        Some(Entry::Lines(last)) if last.is_empty() => *last = range,
        _ => entries.push_back(Entry::Lines(range)),
    }
}

/// Where a live record is marked. `None`: it holds `dropped` twice.
fn mark(record: &Record<'_>, value: Option<Value<'_>>) -> Option<Mark> {
    let Some(value) = value else {
        // the canonical head
        let role = record.head().role.map_or(0, |role| role.as_str().len());
        let at = b"{\"type\":\"message\",\"role\":\"\",\"dropped\":".len() + role;
        let is_null = record.line().get(at..).is_some_and(|rest| rest.starts_with(b"null,"));
        return is_null.then_some(Mark { at, len: MARK.len(), was: b"null" });
    };
    let mut found = value.entries().filter(|(key, _)| *key == "dropped");
    let end = match (found.next(), found.next()) {
        (Some((_, old)), None) if old.is_null() => {
            return Some(Mark { at: old.span().start, len: MARK.len(), was: b"null" });
        }
        (None, None) => value.entries().filter(|(k, _)| *k == "type" || *k == "role").last()?.1.span().end,
        _ => return None,
    };
    Some(Mark { at: end, len: b",\"dropped\":".len() + MARK.len(), was: b"" })
}

/// A held line as it came, in `room`: the mark is taken out where it stands, so that there is one copy of the line.
fn original<'a>(queue: &'a Queue, item: &Item, room: &'a mut Vec<u8>) -> Result<&'a [u8]> {
    let Some(mark) = item.mark else { return queue.line(item.held, room) };
    queue.copy(item.held, room)?;
    let end = (mark.at + mark.len).min(room.len());
    room.splice(mark.at.min(end)..end, mark.was.iter().copied());
    Ok(room)
}

fn trimmed(line: &[u8], tape: &mut Tape) -> Result<Vec<u8>> {
    let value = tape.parse(line).map_err(|e| Error::shape(e.to_string()))?;
    Ok(with_fields(line, value, &[("dropped", MARK)]))
}

/// The original of a shortened record.
fn condensed(line: &[u8], tape: &mut Tape) -> Result<Vec<u8>> {
    let value = tape.parse(line).map_err(|e| Error::shape(e.to_string()))?;
    Ok(with_fields(line, value, &[("dropped", b"\"condensed\"")]))
}

/// The session's record with its budget, which stands before `via` and `extra` when it is new.
fn with_budget(line: &[u8], session: Value<'_>, budget: &[u8]) -> Vec<u8> {
    if session.get("budget").is_some() {
        return with_fields(line, session, &[("budget", budget)]);
    }
    let before = session.entries().take_while(|(key, _)| *key != "via" && *key != "extra").last();
    let Some((_, before)) = before else {
        return with_fields(line, session, &[("budget", budget)]);
    };
    let at = before.span().end;
    let added = [b",\"budget\":", budget].concat();
    crate::record::splice(line, vec![(at..at, added)])
}

impl Filter for Trim {
    fn record(&mut self, record: &Record<'_>, out: &mut dyn Sink) -> Result<()> {
        match record.head().kind {
            Kind::Session => {
                self.settle(out)?;
                self.begin(record, out)
            }
            Kind::End => self.finish(record, out),
            Kind::Message => self.message(record, out),
            Kind::Native | Kind::Abort | Kind::Unknown => self.pass(record.line(), out),
        }
    }

    fn end(&mut self, out: &mut dyn Sink) -> Result<()> {
        // only a stream without `end`, which sources refuse, still holds anything here
        self.settle(out).map(|_| ())
    }
}
