//! Which lines are the live conversation, and in what order: the rules of the client, from the index alone.
//!
//! The rules and their numbers are those that were observed on Claude Code 2.1.332 (`claude -p --resume`,
//! 348 files). Where the client loses something by a defect of its own, the default view keeps it and
//! says so; `exact` follows the client.

use super::compaction::Compaction;
use super::index::{DANGLING, Index, Kind, NONE, bit};
use crate::agents::History;
use crate::json::Tape;
use crate::record::{Reason, Result, problem};
use crate::stream::{Native, Table};
use std::collections::{HashMap, HashSet};

/// Which records of a line are meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    All,
    Results,
    Others,
}

/// One line of the live conversation.
#[derive(Debug, Clone, Copy)]
pub(super) struct Unit {
    pub entry: u32,
    pub part: Part,
}

/// The live conversation in the order of the client's requests.
#[derive(Default)]
pub(super) struct Plan {
    pub units: Vec<Unit>,
    /// Single blocks of live lines that are not live: entry and number of the tool block.
    pub dropped_blocks: HashSet<(u32, u32)>,
}

const NO_REASON: u32 = 0;

/// Reasons in the three bits of an entry.
const REASONS: [Option<Reason>; 8] = [
    None,
    Some(Reason::Branch),
    Some(Reason::Compacted),
    Some(Reason::Sidechain),
    Some(Reason::Noise),
    None,
    None,
    None,
];

/// Why an entry is not live; a line that no rule spoke of is on a branch.
pub(super) fn reason(index: &Index, entry: u32) -> Reason {
    let e = index.entry(entry);
    let n = (e.bits >> bit::REASON) & 7;
    REASONS.get(n as usize).copied().flatten().unwrap_or(if e.has(bit::SIDECHAIN) {
        Reason::Sidechain
    } else {
        Reason::Branch
    })
}

/// Whether a line that is no message itself stands among the live ones.
pub(super) fn is_on_live_path(index: &Index, entry: u32) -> bool {
    let e = index.entry(entry);
    e.has(bit::PATH) && (e.bits >> bit::REASON) & 7 == NO_REASON && !e.has(bit::QUEUED)
}

pub(super) struct Planner<'a> {
    pub(super) index: &'a mut Index,
    pub(super) native: &'a Native,
    pub(super) history: History,
    /// Whether the sidechain is the conversation: a subagent's own file.
    pub(super) sidechain: bool,
    pub(super) compaction: Compaction,
    times: Option<Table<u64>>,
    /// Lines looked at in searches backward; see [`STEPS`].
    pub(super) steps: u64,
}

/// Searches backward end after so many lines in all: only a file made to be slow needs more.
pub(super) const STEPS: u64 = 200_000_000;

/// Plans the live conversation.
pub(super) fn plan(index: &mut Index, native: &Native, history: History) -> Result<Plan> {
    let nodes = |spoken: bool, side: bool| {
        index
            .entries
            .iter()
            .filter(|e| e.is_node() && (e.is_conversation() || !spoken) && e.has(bit::SIDECHAIN) == side)
            .count()
    };
    let main = nodes(false, false);
    // the client finds no conversation in a subagent's file; relay reads it when it is named
    let sidechain = history != History::Exact && nodes(true, true) > 0 && nodes(true, false) == 0;
    let mut planner = Planner {
        index,
        native,
        history,
        sidechain,
        compaction: Compaction::default(),
        times: None,
        steps: 0,
    };
    planner.resolve_links();
    if sidechain {
        let note = "a subagent's own file: the client finds no conversation in it";
        planner.index.problems.add(problem::RESCUED, None, note);
    }
    if main == 0 && !sidechain {
        return Ok(Plan::default());
    }
    planner.compact()?;
    let mut path = planner.path()?;
    planner.attach(&mut path);
    planner.undo();
    let rows = planner.cut(path)?;
    let rows = planner.rescue_results(rows);
    let rows = planner.tidy(rows);
    let mut plan = planner.order(rows);
    planner.settle(&mut plan)?;
    Ok(plan)
}

impl Planner<'_> {
    pub(super) fn exact(&self) -> bool {
        self.history == History::Exact
    }

    /// Lines that count as the tree of this view.
    pub(super) fn is_node(&self, at: u32) -> bool {
        let e = self.index.entry(at);
        let unread = self.exact() && (e.has(bit::RESCUED) || at < self.index.from);
        e.is_node() && !unread && !self.compaction.is_gone(at)
    }

    pub(super) fn is_main(&self, at: u32) -> bool {
        self.is_node(at) && self.index.entry(at).has(bit::SIDECHAIN) == self.sidechain
    }

    pub(super) fn count(&self) -> u32 {
        self.index.entries.len() as u32
    }

    pub(super) fn mark(&mut self, at: u32, reason: Reason) {
        let code = REASONS.iter().position(|r| *r == Some(reason)).unwrap_or(0) as u32;
        let now = self.index.entry(at).bits;
        if (now >> bit::REASON) & 7 == NO_REASON {
            self.index.set(at, code << bit::REASON);
        }
    }

    /// Follows links (hook progress, and lines of unknown types where the client would see no parent) once
    /// and for all: afterwards every parent is a node, none or missing.
    fn resolve_links(&mut self) {
        let mut chain = Vec::new();
        for at in 0..self.count() {
            chain.clear();
            let mut p = self.index.entry(at).parent;
            while p < DANGLING && self.is_link(p) {
                if chain.len() > self.index.entries.len() {
                    p = NONE;
                    break;
                }
                chain.push(p);
                p = self.index.entry(p).parent;
            }
            if p < DANGLING && !self.is_node(p) {
                p = DANGLING;
            }
            for &link in chain.iter().chain(std::iter::once(&at)) {
                self.index.change(link, |e| e.parent = p);
            }
        }
    }

    fn is_link(&self, at: u32) -> bool {
        match self.index.entry(at).kind() {
            Kind::Progress => true,
            Kind::State | Kind::Nothing => !self.exact(),
            _ => false,
        }
    }

    pub(super) fn parent(&self, at: u32) -> u32 {
        self.index.entry(at).parent
    }

    /// Rules 8 to 10: the walk from the leaf to the root.
    fn path(&mut self) -> Result<Vec<u32>> {
        let mut path = Vec::new();
        let Some(leaf) = self.leaf()? else { return Ok(path) };
        let mut at = leaf.at;
        let whole = self.history == History::Full;
        if whole {
            self.undo();
        }
        loop {
            self.index.set(at, bit::PATH);
            path.push(at);
            if self.index.cut.contains(&at) {
                let line = self.index.line_of(at);
                let note = "a later copy of the line names no parent: the client loses what stands before";
                self.index.problems.add(problem::RESCUED, Some(line), note);
            }
            let mut parent = self.parent(at);
            if whole {
                parent = self.older(at, false)?;
            } else if self.compaction.opened {
                parent = self.not_on_path(parent);
            }
            let circle = parent < DANGLING && self.index.entry(parent).has(bit::PATH);
            let gap = parent == DANGLING && (whole || !self.compaction.hangs_on_summary(at));
            if circle || gap {
                parent = self.heal(at, circle)?;
            }
            if parent >= DANGLING && !whole {
                parent = self.before_open()?.unwrap_or(parent);
            }
            if parent >= DANGLING {
                break;
            }
            at = parent;
        }
        path.reverse();
        let mut beside = Vec::new();
        for (behind, at) in leaf.beside {
            if !self.index.entry(at).has(bit::PATH) {
                self.index.set(at, bit::PATH);
                beside.push((behind, false, at));
            }
        }
        insert_after(&mut path, beside);
        Ok(path)
    }

    /// A line that names a parent which is not in the file, or one that is on the path already. The client goes
    /// on at the nearest earlier line that is at most five seconds older (rule 9); else it loses everything before.
    fn heal(&mut self, at: u32, circle: bool) -> Result<u32> {
        let line = self.index.line_of(at);
        let found = self.five_seconds_before(at)?;
        let gone = self.compaction.severed.contains(&at);
        let what = match (circle, gone) {
            (true, _) => "stands below the line",
            (_, true) => "went with a compaction",
            _ => "is not in the file",
        };
        let kind = if circle { problem::CYCLE } else { problem::DANGLING_PARENT };
        let note = |to: &str| format!("the parent {what}{to}");
        if let Some(p) = found {
            let to = format!(", read on at line {} as the client does", self.index.line_of(p));
            self.index.problems.add(kind, Some(line), note(&to));
            return Ok(p);
        }
        let Some(p) = (if self.exact() { None } else { self.before(at) }) else {
            self.index.problems.add(kind, Some(line), note(""));
            return Ok(NONE);
        };
        let to = self.index.line_of(p);
        self.index.problems.add(kind, Some(line), note(&format!(", read on at line {to}")));
        self.index.problems.add(
            problem::RESCUED,
            Some(line),
            format!("the client loses everything up to line {to}: the parent of this line {what}"),
        );
        Ok(p)
    }

    /// The nearest line before one that is at most five seconds older.
    fn five_seconds_before(&mut self, at: u32) -> Result<Option<u32>> {
        let Some(own) = self.time(at)? else { return Ok(None) };
        for p in (0..at).rev() {
            self.steps += 1;
            if self.steps > STEPS {
                break;
            }
            let e = self.index.entry(p);
            if !self.is_node(p) || e.has(bit::PATH) || e.has(bit::SIDECHAIN) != self.sidechain {
                continue;
            }
            if let Some(t) = self.time(p)?
                && (0..=5_000).contains(&(own - t))
            {
                return Ok(Some(p));
            }
        }
        Ok(None)
    }

    /// Where a view but `exact` goes on above a line whose parent is missing.
    pub(super) fn above_gap(&mut self, at: u32) -> Result<u32> {
        let found = self.five_seconds_before(at)?;
        Ok(found.or_else(|| self.before(at)).unwrap_or(NONE))
    }

    /// The last prompt or answer of the same session before a line that is not on the path yet.
    fn before(&mut self, at: u32) -> Option<u32> {
        let session = |p: &Self, e: u32| (p.index.entry(e).bits >> bit::SESSION) & 31;
        (0..at).rev().take_while(|_| self.steps <= STEPS).find(|&p| {
            self.is_main(p)
                && self.index.entry(p).is_conversation()
                && !self.index.entry(p).has(bit::PATH)
                && session(self, p) == session(self, at)
        })
    }

    pub(super) fn time(&mut self, at: u32) -> Result<Option<i64>> {
        if self.times.is_none() {
            self.times = Some(times(self.index, self.native)?);
        }
        Ok(self.times.as_ref().and_then(|t| t.get(at as usize)).filter(|&t| t != NO_TIME).map(|t| t as i64))
    }

    /// Rule 11: lines of a model message and results of its calls that hang beside the path.
    fn attach(&mut self, path: &mut Vec<u32>) {
        let rows_of = RowsOf::of(self.index, path);
        let mut added: Vec<(u32, bool, u32)> = Vec::new();
        for at in 0..self.count() {
            if !self.is_node(at) || self.index.entry(at).has(bit::PATH) {
                continue;
            }
            let e = self.index.entry(at);
            let (group, result) = match e.kind() {
                Kind::Assistant => (e.group, false),
                Kind::User if e.has(bit::RESULT) => {
                    let p = self.parent(at);
                    if p >= DANGLING || self.index.entry(p).kind() != Kind::Assistant {
                        continue;
                    }
                    (self.index.entry(p).group, true)
                }
                _ => continue,
            };
            if let Some(last) = rows_of.before(group, at) {
                added.push((last, result, at));
            }
        }
        insert_after(path, added);
    }

    /// Results that no rule of the client finds, though their call is live.
    fn rescue_results(&mut self, mut rows: Vec<u32>) -> Vec<u32> {
        if self.exact() {
            return rows;
        }
        let mut open: HashMap<u64, u32> = HashMap::new();
        // results that stand before their call
        let mut early: HashSet<u64> = HashSet::new();
        for &at in &rows {
            let e = self.index.entry(at);
            if e.kind() == Kind::Assistant && e.has(bit::CALL) {
                open.extend(self.index.tools(at).filter(|id| !early.contains(id)).map(|id| (id, at)));
            }
            if e.has(bit::RESULT) {
                early.extend(self.index.tools(at).filter(|id| open.remove(id).is_none()));
            }
        }
        if open.is_empty() {
            return rows;
        }
        let live: HashSet<u32> = rows.iter().copied().collect();
        let rows_of = RowsOf::of(self.index, &rows);
        let mut added = Vec::new();
        for at in 0..self.count() {
            let e = self.index.entry(at);
            // also one that is gone with a compaction: half a message was kept
            let main = e.is_node() && e.has(bit::SIDECHAIN) == self.sidechain;
            if !main || e.kind() != Kind::User || !e.has(bit::RESULT) || live.contains(&at) {
                continue;
            }
            let ids: Vec<u64> = self.index.tools(at).collect();
            let Some(&call) = ids.iter().find_map(|id| open.get(id)) else { continue };
            for id in ids {
                open.remove(&id);
            }
            let group = self.index.entry(call).group;
            let after = rows_of.before(group, at).unwrap_or(call);
            added.push((after, true, at));
            let line = self.index.line_of(at);
            self.index.problems.add(
                problem::RESCUED,
                Some(line),
                "a tool result that the client does not find",
            );
        }
        insert_after(&mut rows, added);
        rows
    }

    /// Rules 13 to 15: lines of the path that the client does not send.
    fn tidy(&mut self, rows: Vec<u32>) -> Vec<u32> {
        let mut answered: Vec<u64> = Vec::new();
        for &at in &rows {
            if self.index.entry(at).has(bit::RESULT) {
                answered.extend(self.index.tools(at));
            }
        }
        answered.sort_unstable();
        let tail = self.open_tail(&rows);
        let of_message = self.rows_of_empty(&rows);
        let warmup = self.sidechain && self.is_warmup(&rows);
        let mut out = Vec::with_capacity(rows.len());
        for (n, &at) in rows.iter().enumerate() {
            let e = self.index.entry(at);
            let line = self.index.line_of(at);
            let mut noise = None;
            if e.kind() == Kind::Assistant {
                if e.has(bit::API_ERROR) {
                    noise = Some("an error line of the client");
                } else if e.has(bit::CALL)
                    && n < tail
                    && !self.index.tools(at).any(|id| answered.binary_search(&id).is_ok())
                {
                    if self.exact() {
                        self.index.problems.add(
                            problem::ORPHAN_CALL,
                            Some(line),
                            "left out as the client does",
                        );
                        self.mark(at, Reason::Noise);
                        continue;
                    }
                    self.index.problems.add(
                        problem::RESCUED,
                        Some(line),
                        "a call without result that the client leaves out",
                    );
                } else if e.has(bit::BLANK) {
                    noise = Some("nothing but white space");
                } else if e.has(bit::EMPTY) && of_message.get(&e.group).is_none_or(|&n| n < 2) {
                    noise = Some("an answer without content");
                } else if e.has(bit::SYNTHETIC) && !self.exact() {
                    noise = Some("an answer that the client made");
                }
            }
            if warmup {
                noise = Some("a warm-up of the client");
            }
            if let Some(note) = noise {
                self.index.problems.add(problem::NOISE, Some(line), note);
                self.mark(at, Reason::Noise);
                continue;
            }
            out.push(at);
        }
        out
    }

    /// How many rows there are of each message that has an empty one.
    fn rows_of_empty(&self, rows: &[u32]) -> HashMap<u32, u32> {
        let answers = rows.iter().map(|&at| self.index.entry(at));
        let answers = || answers.clone().filter(|e| e.kind() == Kind::Assistant && e.group != NONE);
        let mut count: HashMap<u32, u32> =
            answers().filter(|e| e.has(bit::EMPTY)).map(|e| (e.group, 0)).collect();
        if !count.is_empty() {
            for e in answers() {
                count.entry(e.group).and_modify(|n| *n += 1);
            }
        }
        count
    }

    /// Clients 2.0 start subagents only to warm up.
    fn is_warmup(&self, rows: &[u32]) -> bool {
        rows.iter()
            .find(|&&at| self.index.entry(at).kind() == Kind::User)
            .is_some_and(|&at| self.index.entry(at).has(bit::WARMUP))
    }

    /// Row from which on only lines of the last model message and its results stand: calls that are open
    /// there are about to be answered, and the client keeps them.
    fn open_tail(&self, rows: &[u32]) -> usize {
        let entry = |n: usize| self.index.entry(rows.get(n).copied().unwrap_or(NONE));
        for n in (0..rows.len()).rev() {
            let e = entry(n);
            if e.kind() == Kind::Assistant && !e.has(bit::API_ERROR) {
                let mut last = n;
                while last > 0 {
                    let before = entry(last - 1);
                    let same = before.kind() == Kind::Assistant && e.group != NONE && before.group == e.group;
                    if before.is_conversation() && !before.has(bit::RESULT) && !same {
                        break;
                    }
                    last -= 1;
                }
                return last;
            }
            if e.kind() == Kind::User && !e.has(bit::RESULT) {
                return rows.len();
            }
        }
        0
    }

    /// Rules 16 to 18: lines become messages. Lines of one model message move together, results stand
    /// before the texts of their message.
    fn order(&mut self, rows: Vec<u32>) -> Plan {
        let mut builder = Messages::default();
        builder.plan.units.reserve_exact(rows.len());
        for at in rows {
            let e = self.index.entry(at);
            let assistant = match e.kind() {
                // a prompt typed while the model works does not part calls from their results
                Kind::Attachment if e.has(bit::QUEUED) => false,
                Kind::System if e.has(bit::LOCAL_COMMAND) => false,
                Kind::User => false,
                Kind::Assistant => true,
                _ => continue,
            };
            if !e.has(bit::CALL | bit::RESULT | bit::OTHER) {
                continue;
            }
            builder.push(self, at, assistant);
        }
        builder.flush(self);
        builder.plan
    }

    /// Marks what is live, and gives the copies that stand for others their place.
    fn settle(&mut self, plan: &mut Plan) -> Result<()> {
        for unit in &mut plan.units {
            if let Some(&newest) = self.index.newest.get(&unit.entry) {
                let blocks: Vec<_> =
                    plan.dropped_blocks.iter().filter(|b| b.0 == unit.entry).copied().collect();
                plan.dropped_blocks.extend(blocks.into_iter().map(|(_, n)| (newest, n)));
                unit.entry = newest;
            }
            self.index.set(unit.entry, bit::LIVE);
        }
        for at in 0..self.count() {
            if self.index.entry(at).has(bit::SUPERSEDED) {
                self.mark(at, Reason::Noise);
            }
        }
        let firsts: Vec<u32> = self.index.newest.keys().copied().collect();
        for first in firsts {
            self.mark(first, Reason::Noise);
        }
        if !self.exact() {
            self.drop_partials(plan)?;
        }
        Ok(())
    }

    /// Streamed snapshots: texts of one message on one parent, the shorter one a beginning of the longer.
    /// The client sends both.
    fn drop_partials(&mut self, plan: &mut Plan) -> Result<()> {
        let mut spoken: Vec<(u32, u32, u32)> = Vec::new();
        for unit in &plan.units {
            let e = self.index.entry(unit.entry);
            if e.kind() == Kind::Assistant
                && e.group != NONE
                && e.bits & (bit::CALL | bit::OTHER) == bit::OTHER
            {
                spoken.push((e.group, e.parent, unit.entry));
            }
        }
        // stable, so that those of one place stay in their order
        spoken.sort_by_key(|(group, parent, _)| (*group, *parent));
        let mut gone = HashSet::new();
        let mut window = super::emit::Window::default();
        for rows in spoken.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1)).filter(|rows| rows.len() > 1) {
            let mut texts: Vec<(u32, String)> = Vec::new();
            for &(_, _, at) in rows {
                let line = window.record(self.index, self.native, at)?;
                let mut tape = Tape::new();
                let text = tape.parse(&line).ok().and_then(|v| {
                    let content = v.get("message")?.get("content")?;
                    let one = content.items().next().filter(|_| content.items().count() == 1)?;
                    Some(one.get("text")?.text()?.decode().into_owned())
                });
                texts.extend(text.map(|t| (at, t)));
            }
            for (n, (at, text)) in texts.iter().enumerate() {
                let longer = |(m, (_, other)): (usize, &(u32, String))| {
                    other.starts_with(text.as_str()) && (other.len() > text.len() || m > n)
                };
                if texts.iter().enumerate().filter(|(m, _)| *m != n).any(longer) {
                    gone.insert(*at);
                }
            }
        }
        for &at in &gone {
            self.index.change(at, |e| e.bits &= !bit::LIVE);
            self.mark(at, Reason::Noise);
            let line = self.index.line_of(at);
            self.index.problems.add(problem::NOISE, Some(line), "a text that was still being streamed");
        }
        plan.units.retain(|u| !gone.contains(&u.entry));
        Ok(())
    }
}

/// Puts each added row behind the row that it belongs to: siblings first, then results, in file order.
fn insert_after(rows: &mut Vec<u32>, mut added: Vec<(u32, bool, u32)>) {
    if added.is_empty() {
        return;
    }
    added.sort_unstable();
    let mut out = Vec::with_capacity(rows.len() + added.len());
    for &row in rows.iter() {
        out.push(row);
        let from = added.partition_point(|(last, _, _)| *last < row);
        out.extend(added.iter().skip(from).take_while(|(last, _, _)| *last == row).map(|(_, _, at)| *at));
    }
    *rows = out;
}

struct Message {
    assistant: bool,
    results: bool,
    rows: Vec<u32>,
}

/// Rows of model messages by the message's number.
struct RowsOf {
    /// Every row, by message and place.
    all: Vec<(u32, u32)>,
    /// The first row of each message.
    first: Vec<(u32, u32)>,
}

impl RowsOf {
    fn of(index: &Index, rows: &[u32]) -> RowsOf {
        let spoken = rows.iter().map(|&at| (index.entry(at), at));
        let spoken = spoken.filter(|(e, _)| e.kind() == Kind::Assistant && e.group != NONE);
        let mut all: Vec<(u32, u32)> = spoken.map(|(e, at)| (e.group, at)).collect();
        // stable: rows of one message stay in their order
        all.sort_by_key(|(group, _)| *group);
        let mut first = all.clone();
        first.dedup_by_key(|(group, _)| *group);
        all.sort_unstable();
        RowsOf { all, first }
    }

    /// Behind which row of its message a line beside the path is sent: the nearest one that stands before it
    /// in the file, else the message's first. Dates do not matter.
    fn before(&self, group: u32, at: u32) -> Option<u32> {
        let n = self.all.partition_point(|row| *row < (group, at)).checked_sub(1);
        let near = n.and_then(|n| self.all.get(n)).filter(|(other, _)| *other == group);
        let first =
            || self.first.binary_search_by_key(&group, |(g, _)| *g).ok().and_then(|n| self.first.get(n));
        near.or_else(first).map(|(_, row)| *row)
    }
}

/// Messages since the last prompt: only among them can a line still join an earlier message.
#[derive(Default)]
struct Messages {
    plan: Plan,
    open: Vec<Message>,
    newest_of: HashMap<u32, usize>,
    calls: HashSet<u64>,
    expected: HashSet<u64>,
}

impl Messages {
    fn push(&mut self, planner: &mut Planner<'_>, at: u32, assistant: bool) {
        let e = planner.index.entry(at);
        if assistant {
            let joins = self.newest_of.get(&e.group).copied().filter(|_| e.group != NONE && !self.blocked());
            match joins.and_then(|n| self.open.get_mut(n)) {
                Some(message) => message.rows.push(at),
                None => {
                    if self.blocked() {
                        self.flush(planner);
                    }
                    self.newest_of.insert(e.group, self.open.len());
                    self.open.push(Message { assistant: true, results: false, rows: vec![at] });
                }
            }
            return;
        }
        match self.open.last_mut().filter(|m| !m.assistant) {
            Some(message) => {
                message.rows.push(at);
                message.results |= e.has(bit::RESULT);
            }
            None => self.open.push(Message { assistant: false, results: e.has(bit::RESULT), rows: vec![at] }),
        }
    }

    /// A user message without any result parts the conversation: no later line joins what is before it.
    /// Results may still come to it, so it blocks only when the model speaks again.
    fn blocked(&self) -> bool {
        self.open.last().is_some_and(|m| !m.assistant && !m.results)
    }

    fn flush(&mut self, planner: &mut Planner<'_>) {
        self.newest_of.clear();
        for message in std::mem::take(&mut self.open) {
            if message.assistant {
                self.expected.clear();
                let mut rows = message.rows;
                // texts of a message stand before its calls, so that results come right behind these
                rows.sort_by_key(|&at| planner.index.entry(at).has(bit::CALL));
                for at in rows {
                    self.calls_of(planner, at);
                    self.plan.units.push(Unit { entry: at, part: Part::All });
                }
                continue;
            }
            let first = self.plan.units.len();
            for &at in &message.rows {
                let e = planner.index.entry(at);
                if e.has(bit::RESULT) && self.results_of(planner, at) {
                    let part = if e.has(bit::OTHER) { Part::Results } else { Part::All };
                    self.plan.units.push(Unit { entry: at, part });
                }
            }
            // in the order in which they came; the client's own order of results means nothing
            if let Some(results) = self.plan.units.get_mut(first..) {
                results.sort_unstable_by_key(|u| u.entry);
            }
            for at in message.rows {
                let e = planner.index.entry(at);
                if e.has(bit::OTHER) {
                    let part = if e.has(bit::RESULT) { Part::Others } else { Part::All };
                    self.plan.units.push(Unit { entry: at, part });
                }
            }
        }
    }

    /// A second use of a call id is not sent (rule 19).
    fn calls_of(&mut self, planner: &mut Planner<'_>, at: u32) {
        if !planner.index.entry(at).has(bit::CALL) {
            return;
        }
        let ids: Vec<u64> = planner.index.tools(at).collect();
        for (n, id) in ids.into_iter().enumerate() {
            if self.calls.insert(id) {
                self.expected.insert(id);
                continue;
            }
            let line = Some(planner.index.line_of(at));
            planner.index.problems.add(problem::DUPLICATE_ID, line, "a call id used before");
            if planner.exact() {
                self.plan.dropped_blocks.insert((at, n as u32));
            } else {
                planner.index.problems.add(
                    problem::RESCUED,
                    line,
                    "a call that the client loses: its id was used before",
                );
                self.expected.insert(id);
            }
        }
    }

    /// A result counts in the message right after its call, once (rule 18). Whether any is left.
    fn results_of(&mut self, planner: &mut Planner<'_>, at: u32) -> bool {
        let ids: Vec<u64> = planner.index.tools(at).collect();
        let line = Some(planner.index.line_of(at));
        let mut left = false;
        for (n, id) in ids.into_iter().enumerate() {
            if self.expected.remove(&id) {
                left = true;
            } else if planner.exact() {
                self.plan.dropped_blocks.insert((at, n as u32));
                planner.index.problems.add(problem::ORPHAN_RESULT, line, "left out as the client does");
            } else {
                let call = self.calls.contains(&id);
                let place = if call { "in an earlier message" } else { "not among these messages" };
                let note = format!("a result that the client loses: its call is {place}");
                planner.index.problems.add(problem::RESCUED, line, note);
            }
        }
        if !left && planner.exact() {
            planner.mark(at, Reason::Noise);
        }
        left || !planner.exact() || planner.index.entry(at).has(bit::OTHER)
    }
}

/// Stands for a line without a time.
const NO_TIME: u64 = u64::MAX;

/// The time of every line, in milliseconds as an `i64`; read only where a parent is missing.
fn times(index: &Index, native: &Native) -> Result<Table<u64>> {
    let mut out = Table::new();
    let mut window = super::emit::Window::default();
    let mut tape = Tape::new();
    for at in 0..index.entries.len() as u32 {
        if index.entry(at).kind() == Kind::Nothing {
            out.push(NO_TIME);
            continue;
        }
        let line = window.record(index, native, at)?;
        let time = tape.parse(&line).ok().and_then(|v| milliseconds(&v.get("timestamp")?.text()?.decode()));
        out.push(time.map_or(NO_TIME, |t| t as u64));
    }
    for (&place, &copy) in &index.newest {
        let time = out.get(copy as usize).unwrap_or(NO_TIME);
        out.update(place as usize, |t| *t = time);
    }
    out.check()?;
    Ok(out)
}

/// A time as the client takes it; without an offset it is taken as UTC.
fn milliseconds(text: &str) -> Option<i64> {
    let local = || jiff::tz::TimeZone::UTC.to_timestamp(text.parse::<jiff::civil::DateTime>().ok()?).ok();
    text.parse::<jiff::Timestamp>().ok().or_else(local).map(|t| t.as_millisecond())
}
