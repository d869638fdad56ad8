//! From the entries of the index to what is live: the client's own replay (rules 9 to 13).

use super::chain::Segment;
use super::index::{Entry, Index, Kind, flag};
use super::line::{self, Checks, Standing, field, text};
use crate::agents::History;
use crate::json::{Tape, Value};
use crate::record::{Error, Reason, Result, problem};
use crate::stream::{Lines, Table};
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

/// Tokens of earlier prompts that the client keeps beside a summary it makes itself (rule 11).
const KEPT_TOKENS: usize = 20_000;

/// What became of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    Live,
    /// A call that is live and that the client answers with "aborted" when it sends it.
    Unanswered,
    Dropped(Reason),
    /// An output that the client does not send because nothing called for it.
    Orphan,
    /// Not part of any history: marks, items of replacement histories that were replaced again.
    Unused,
}

impl Fate {
    pub(super) fn reason(self) -> Option<Reason> {
        match self {
            Fate::Live | Fate::Unanswered => None,
            Fate::Dropped(reason) => Some(reason),
            Fate::Orphan => Some(Reason::Noise),
            Fate::Unused => Some(Reason::Compacted),
        }
    }
}

/// A user message that a compaction without replacement history made of an earlier one.
#[derive(Debug)]
pub(super) struct Made {
    /// Entry of the compaction.
    pub(super) at: usize,
    pub(super) parts: Vec<String>,
    pub(super) live: bool,
    /// Whether it was the summary of an earlier compaction.
    pub(super) summary: bool,
    flags: u16,
}

/// The history.
#[derive(Debug)]
pub(super) struct Replay {
    /// One for each entry.
    pub(super) fates: Vec<Fate>,
    pub(super) made: Vec<Made>,
    /// Compactions that were undone because only the vendor can read their summary.
    pub(super) undone: u64,
}

impl Replay {
    /// The client cannot read the file at all.
    pub(super) fn drop_all(&mut self) {
        for fate in &mut self.fates {
            if fate.reason().is_none() {
                *fate = Fate::Dropped(Reason::Noise);
            }
        }
        for made in &mut self.made {
            made.live = false;
        }
    }
}

/// Replays the entries.
pub(super) fn replay(index: &Index, segments: &[Segment<'_>], history: History) -> Result<Replay> {
    let entries = &index.entries;
    let mut run = Run {
        entries,
        history,
        segments,
        bare: &index.bare,
        fates: vec![Fate::Unused; entries.len()],
        made: Vec::new(),
        live: Vec::new(),
        undone: 0,
    };
    let dead = run.dead_compactions();
    for at in 0..entries.len() {
        run.step(at, &dead)?;
    }
    let replay = run.finish();
    entries.check()?;
    replay
}

struct Run<'a> {
    entries: &'a Table<Entry>,
    history: History,
    segments: &'a [Segment<'a>],
    bare: &'a [bool],
    fates: Vec<Fate>,
    made: Vec<Made>,
    /// The history: numbers of entries, then of made messages counted on from the entries.
    live: Vec<u32>,
    undone: u64,
}

/// A stretch of the file that the client takes for one turn, gathered from its end backward.
#[derive(Default)]
struct Turn {
    id: u64,
    user: bool,
    compactions: Vec<usize>,
}

impl Run<'_> {
    fn entry(&self, at: usize) -> Option<Entry> {
        self.entries.get(at)
    }

    /// Which of the made messages a number of the history behind the entries means.
    fn made_at(&self, at: usize) -> Option<usize> {
        at.checked_sub(self.entries.len())
    }

    /// Whether this view knows nothing of a compaction.
    fn ignores(&self, entry: &Entry) -> bool {
        match self.history {
            History::Exact => false,
            History::Full => true,
            History::Active => entry.is(flag::ENCRYPTED),
        }
    }

    /// Compactions that lie in turns that were taken back (rules 9 and 12): scanned backward, each rollback
    /// takes so many user turns, and what lies between them.
    fn dead_compactions(&self) -> HashSet<usize> {
        let mut dead = HashSet::new();
        let mut pending = 0u64;
        let mut turn: Option<Turn> = None;
        let mut close = |turn: Turn, pending: &mut u64| {
            if *pending > 0 {
                dead.extend(turn.compactions);
                *pending -= u64::from(turn.user);
            }
        };
        for at in (0..self.entries.len()).rev() {
            let Some(entry) = self.entry(at) else { continue };
            match entry.kind {
                Kind::Replaced => {}
                Kind::RolledBack => pending = pending.saturating_add(entry.aux),
                Kind::Started => {
                    let fits =
                        turn.as_ref().is_some_and(|t| t.id == 0 || entry.aux == 0 || t.id == entry.aux);
                    if fits && let Some(turn) = turn.take() {
                        close(turn, &mut pending);
                    }
                }
                Kind::Aborted if turn.is_none() => {
                    if entry.aux != 0 {
                        turn = Some(Turn { id: entry.aux, ..Turn::default() });
                    }
                }
                kind => {
                    let turn = turn.get_or_insert_default();
                    match kind {
                        Kind::Compacted => turn.compactions.push(at),
                        Kind::Prompt => turn.user = true,
                        Kind::Item => turn.user |= entry.is(flag::BOUNDARY),
                        _ if turn.id == 0 => turn.id = entry.aux,
                        _ => {}
                    }
                }
            }
        }
        if let Some(turn) = turn {
            close(turn, &mut pending);
        }
        dead
    }

    fn flags(&self, number: u32) -> u16 {
        let at = number as usize;
        match self.entries.get(at) {
            Some(entry) => entry.flags,
            None => self.made_at(at).and_then(|n| self.made.get(n)).map_or(0, |m| m.flags),
        }
    }

    fn drop(&mut self, number: u32, reason: Reason) {
        let at = number as usize;
        let replaced = self.entry(at).is_some_and(|e| e.kind == Kind::Replaced);
        if let Some(fate) = self.fates.get_mut(at) {
            *fate = if replaced { Fate::Unused } else { Fate::Dropped(reason) };
        }
    }

    fn step(&mut self, at: usize, dead: &HashSet<usize>) -> Result<()> {
        let Some(entry) = self.entry(at) else { return Ok(()) };
        let number =
            u32::try_from(at).map_err(|_| Error::failed("a session of over four thousand million lines"))?;
        match entry.kind {
            Kind::Item => self.live.push(number),
            Kind::RolledBack => self.roll_back(usize::try_from(entry.aux).unwrap_or(usize::MAX)),
            Kind::Compacted => {
                let replaces = entry.is(flag::REPLACES);
                if replaces && dead.contains(&at) {
                    self.drop(number, Reason::RolledBack);
                } else if self.ignores(&entry) && (self.history == History::Full || !self.live.is_empty()) {
                    self.undone += u64::from(self.history == History::Active);
                    self.drop(number, Reason::Compacted);
                } else if replaces {
                    self.clear(Reason::Compacted);
                    let count = u32::try_from(entry.aux).unwrap_or(0);
                    let items = number + 1..=number.saturating_add(count);
                    let sent = items.filter(|n| self.flags(*n) & flag::LEFT_OUT == 0).collect::<Vec<_>>();
                    self.live.extend(sent);
                    self.drop(number, Reason::Compacted);
                } else {
                    self.compact(at, number)?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn clear(&mut self, reason: Reason) {
        for number in std::mem::take(&mut self.live) {
            self.drop(number, reason);
        }
    }

    /// Cuts the history before the n-th last prompt; more than there are cut at the first (rule 12).
    fn roll_back(&mut self, turns: usize) {
        let is = |run: &Self, n: u32, flags: u16| run.flags(n) & flags != 0;
        let Some(first) = self.live.iter().position(|n| is(self, *n, flag::BOUNDARY)) else { return };
        if turns == 0 {
            return;
        }
        let nth =
            self.live.iter().enumerate().rev().filter(|(_, n)| is(self, **n, flag::BOUNDARY)).nth(turns - 1);
        let mut cut = nth.map_or(first, |(at, _)| at);
        // context that was told right before the turn goes with it
        while cut > first && self.live.get(cut - 1).is_some_and(|n| is(self, *n, flag::CONTEXTUAL)) {
            cut -= 1;
        }
        for number in self.live.split_off(cut) {
            self.drop(number, Reason::RolledBack);
        }
    }

    /// A compaction that brings a message only (rule 11): the newest prompts within 20,000 tokens, then it.
    fn compact(&mut self, at: usize, number: u32) -> Result<()> {
        let mut left = KEPT_TOKENS;
        let mut kept = Vec::new();
        let prompts = flag::BOUNDARY | flag::USER;
        for n in self.live.clone().into_iter().rev() {
            if left == 0 {
                break;
            }
            if self.flags(n) & prompts != prompts {
                continue;
            }
            let parts = self.texts(n)?;
            let joined = parts.join("\n");
            let tokens = joined.len().div_ceil(4);
            if tokens > left {
                kept.push(self.made(at, n, cut(&joined, left)));
                break;
            }
            left -= tokens;
            kept.push(self.made(at, n, parts));
        }
        self.clear(Reason::Compacted);
        for made in kept.into_iter().rev() {
            let n = self.entries.len() + self.made.len();
            self.live.push(u32::try_from(n).map_err(|_| Error::failed("a session of too many lines"))?);
            self.made.push(made);
        }
        self.live.push(number);
        Ok(())
    }

    /// What the compaction at `at` keeps of the message `number`.
    fn made(&self, at: usize, number: u32, parts: Vec<String>) -> Made {
        let number = number as usize;
        let summary = match self.entry(number) {
            Some(entry) => entry.kind == Kind::Compacted,
            None => self.made_at(number).and_then(|n| self.made.get(n)).is_some_and(|m| m.summary),
        };
        let texts = parts.iter().map(String::as_str).collect::<Vec<_>>();
        let flags = match line::standing_of_text(&texts) {
            Standing::Boundary => flag::BOUNDARY | flag::USER,
            Standing::Contextual => flag::CONTEXTUAL | flag::USER,
            Standing::Plain => flag::USER,
        };
        Made { at, parts, live: false, summary, flags }
    }

    /// The texts of a prompt, read from the file again.
    fn texts(&self, number: u32) -> Result<Vec<String>> {
        let at = number as usize;
        let Some(entry) = self.entry(at) else {
            let made = self.made_at(at).and_then(|n| self.made.get(n));
            return Ok(made.map(|m| m.parts.clone()).unwrap_or_default());
        };
        let Some(segment) = self.segments.get(usize::from(entry.segment)) else { return Ok(Vec::new()) };
        let native = segment.native();
        let bare = self.bare.get(usize::from(entry.segment)).copied().unwrap_or(false);
        let mut lines = Lines::new(native.reader_at(entry.offset)?);
        let mut tape = Tape::new();
        let Some(found) = lines.next_line().map_err(Error::io(native.name()))? else { return Ok(Vec::new()) };
        // which record of the line it is: entries of one line stand together
        let same = |e: &Entry| e.line == entry.line && e.segment == entry.segment && e.kind == Kind::Item;
        let before = self.before(at).take_while(same).count();
        let skip = if entry.kind == Kind::Item { before } else { 0 };
        let scanned = tape.parse(found.bytes);
        let damage = line::damage(found.bytes, scanned);
        let (bytes, records) = match (scanned, damage) {
            (Ok(_), None) => (Cow::Borrowed(found.bytes), std::iter::once(0..found.bytes.len()).collect()),
            (_, damage) => {
                let damage = damage.unwrap_or(problem::BAD_LINE);
                let repaired = line::repair(found.bytes, damage, &mut tape, bare);
                (repaired.bytes, repaired.records)
            }
        };
        let mut items = 0;
        for range in records {
            let Ok(value) = tape.parse(bytes.get(range).unwrap_or_default()) else { continue };
            let payload = match line::sort(value, bare, Checks::Shapes).sort {
                line::Sort::Item(item) => Some(item.payload),
                line::Sort::Compacted(c) if entry.kind == Kind::Replaced => {
                    c.replacement.and_then(|r| r.items().nth(self.place_in_replacement(at)))
                }
                line::Sort::Compacted(c) => return Ok(vec![c.message.decode().into_owned()]),
                _ => None,
            };
            let Some(payload) = payload else { continue };
            if items == skip {
                return Ok(input_texts(payload));
            }
            items += 1;
        }
        Ok(Vec::new())
    }

    fn place_in_replacement(&self, at: usize) -> usize {
        self.before(at).take_while(|e| e.kind == Kind::Replaced).count()
    }

    /// The entries before one, the nearest first.
    fn before(&self, at: usize) -> impl Iterator<Item = Entry> {
        (0..at).rev().filter_map(|at| self.entry(at))
    }

    fn finish(mut self) -> Result<Replay> {
        let active = self.history != History::Exact;
        let mut calls: HashMap<u64, u16> = HashMap::new();
        let mut outputs: HashSet<(u64, u16)> = HashSet::new();
        const KINDS: u16 = flag::CUSTOM | flag::SEARCH;
        if !active {
            for entry in self.live.iter().filter_map(|n| self.entry(*n as usize)) {
                if entry.is(flag::CALL) {
                    calls.entry(entry.aux).or_insert(entry.flags & KINDS);
                } else if entry.is(flag::OUTPUT) {
                    outputs.insert((entry.aux, entry.flags & KINDS));
                }
            }
        }
        for number in &self.live {
            let at = *number as usize;
            let Some(entry) = self.entry(at) else {
                if let Some(made) = self.made_at(at).and_then(|n| self.made.get_mut(n)) {
                    made.live = true;
                }
                continue;
            };
            let kinds = entry.flags & KINDS;
            let fate = if active && entry.is(flag::ENCRYPTED) && entry.kind != Kind::Compacted {
                Fate::Dropped(Reason::Unreadable)
            } else if active {
                Fate::Live
            } else if entry.is(flag::OUTPUT) && calls.get(&entry.aux) != Some(&kinds) {
                Fate::Orphan
            } else if entry.is(flag::CALL) && !outputs.contains(&(entry.aux, kinds)) {
                Fate::Unanswered
            } else {
                Fate::Live
            };
            if let Some(place) = self.fates.get_mut(at) {
                *place = fate;
            }
        }
        Ok(Replay { fates: self.fates, made: self.made, undone: self.undone })
    }
}

/// The texts that a compaction keeps of a prompt: images and all else vanish.
fn input_texts(payload: Value<'_>) -> Vec<String> {
    let Some(content) = field(payload, "content") else { return Vec::new() };
    if let Some(plain) = content.text() {
        return vec![plain.decode().into_owned()];
    }
    let parts = content.items().filter(|p| text(*p, "type").is_some_and(|t| t == "input_text"));
    parts.filter_map(|p| Some(text(p, "text")?.decode().into_owned())).collect()
}

/// The prompt that does not fit: its two ends around the count of tokens between them.
fn cut(joined: &str, left: usize) -> Vec<String> {
    let half = left * 2;
    let mut head = half.min(joined.len());
    while !joined.is_char_boundary(head) {
        head -= 1;
    }
    let mut tail = joined.len().saturating_sub(half);
    while !joined.is_char_boundary(tail) {
        tail += 1;
    }
    let removed = joined.len().saturating_sub(left * 4).div_ceil(4);
    vec![
        joined.get(..head).unwrap_or_default().to_owned(),
        format!("…{removed} tokens truncated…"),
        joined.get(tail..).unwrap_or_default().to_owned(),
    ]
}
