//! Where the conversation ends.
//!
//! The rules were observed on Claude Code 2.1.332. They hold for the tree as a compaction leaves it.

use super::index::{DANGLING, Kind, NONE, bit};
use super::plan::Planner;
use crate::record::Result;
use crate::record::problem;
use crate::stream::Table;
use std::collections::HashSet;

/// The end of the conversation.
pub(super) struct Leaf {
    pub at: u32,
    /// Content that the client sends though it hangs beside the path of this view: the line that it belongs
    /// behind, and the line.
    pub beside: Vec<(u32, u32)>,
}

/// How the client chose the end.
#[derive(PartialEq)]
enum Chosen {
    ByPlace,
    /// A `last-prompt` line names it.
    Named,
    /// The user went back to it.
    Rewound,
    /// Below it the kept lines and later ones part.
    Fork,
}

/// Children of every line, in file order: the first child and the next one of the same parent, packed.
struct Children(Table<u64>);

impl Children {
    fn of(planner: &Planner<'_>) -> Result<Children> {
        let pack = |first: u32, next: u32| u64::from(first) << 32 | u64::from(next);
        let mut rows = Table::new();
        for _ in 0..planner.count() {
            rows.push(pack(NONE, NONE));
        }
        for at in (0..planner.count()).rev().filter(|&at| planner.is_node(at)) {
            let parent = planner.parent(at);
            if parent >= DANGLING {
                continue;
            }
            let next = rows.get(parent as usize).map_or(NONE, |row| (row >> 32) as u32);
            rows.update(parent as usize, |row| *row = pack(at, *row as u32));
            rows.update(at as usize, |row| *row = pack((*row >> 32) as u32, next));
        }
        rows.check()?;
        Ok(Children(rows))
    }

    fn each(&self, parent: u32) -> impl Iterator<Item = u32> {
        let row = |at: u32| self.0.get(at as usize);
        let first = row(parent).map(|row| (row >> 32) as u32).filter(|&at| at != NONE);
        std::iter::successors(first, move |&at| row(at).map(|row| row as u32).filter(|&at| at != NONE))
    }
}

impl Planner<'_> {
    /// Where the conversation ends in this view.
    pub(super) fn leaf(&mut self) -> Result<Option<Leaf>> {
        let main = || (0..self.count()).rev().filter(|&at| self.is_main(at));
        let mut left = super::plan::STEPS;
        let start = self.last_that_was_said(main()).or_else(|| main().next());
        let Some(start) = start else { return Ok(None) };
        let last = main().find(|&at| self.index.entry(at).is_conversation());
        let (client, how, children) = self.client_leaf(start)?;
        let mut leaf = Leaf { at: client, beside: Vec::new() };
        if self.exact() {
            return Ok(Some(leaf));
        }
        match (how, last) {
            (Chosen::Rewound, _) | (_, None) => {}
            (Chosen::Named, Some(last)) => {
                // it is above the last line, but a parent between them is missing
                if self.is_below(last, client)? {
                    self.say_late(client);
                    leaf.at = last;
                }
            }
            (Chosen::Fork, Some(_)) => {
                let lost = children.as_ref().and_then(|c| self.last_below(client, c));
                if let Some(lost) = lost {
                    self.say_late(client);
                    leaf.at = lost;
                }
            }
            (Chosen::ByPlace, Some(last)) => {
                let spoken = self.spoken(client, &mut left);
                // a system or attachment line may hang on an older line and hide the turns between
                if spoken.is_some_and(|spoken| spoken != last && self.is_above(spoken, last)) {
                    self.say_late(client);
                    leaf.at = last;
                    leaf.beside = self.said_between(client, spoken.unwrap_or(NONE));
                }
            }
        }
        Ok(Some(leaf))
    }

    /// The first of these lines that is a prompt or answer or hangs on one. No line is looked at twice.
    fn last_that_was_said(&self, mut lines: impl Iterator<Item = u32>) -> Option<u32> {
        let mut silent: Vec<bool> = Vec::new();
        lines.find(|&line| {
            let mut at = line;
            while at < DANGLING {
                if self.is_said(at) {
                    return true;
                }
                if silent.is_empty() {
                    silent = vec![false; self.count() as usize];
                }
                match silent.get_mut(at as usize) {
                    Some(silent) if !*silent => *silent = true,
                    _ => return false,
                }
                at = self.parent(at);
            }
            false
        })
    }

    /// The client's end, how it came to it, and the children where they were asked for.
    fn client_leaf(&mut self, start: u32) -> Result<(u32, Chosen, Option<Children>)> {
        let named = self.index.leaf;
        let at = named.and_then(|n| self.index.find(n.id)).filter(|&at| self.is_node(at));
        if let (Some(at), Some(named)) = (at, named)
            && named.explicit
            && named.newest
        {
            return Ok((at, Chosen::Rewound, None));
        }
        let mut children = None;
        let mut leaf = start;
        if self.has_child(start) {
            let c = children.insert(Children::of(self)?);
            leaf = self.newest_below(start, c)?;
        }
        let mut how = Chosen::ByPlace;
        if let Some(at) = at
            && !self.is_above(at, leaf)
            && !(self.compaction.relinks && self.has_child(at))
            && !self.is_parallel(at, leaf)
        {
            (leaf, how) = (at, Chosen::Named);
        }
        if self.compaction.relinks {
            let c = match children {
                Some(c) => c,
                None => Children::of(self)?,
            };
            match self.end_below(leaf, &c) {
                Some(end) => leaf = end,
                None if how == Chosen::ByPlace => how = Chosen::Fork,
                None => {}
            }
            children = Some(c);
        }
        Ok((leaf, how, children))
    }

    /// Clients 2.1.120 and 2.1.226 write an answer before its prompt: the newest descendant that is not older
    /// than the line is the end.
    fn newest_below(&mut self, start: u32, children: &Children) -> Result<u32> {
        let mut newest = start;
        let Some(mut best) = self.time(start)? else { return Ok(start) };
        let mut seen = vec![false; self.count() as usize];
        let mut open = vec![start];
        while let Some(at) = open.pop() {
            for child in children.each(at) {
                match seen.get_mut(child as usize) {
                    Some(seen) if !*seen && child != start => *seen = true,
                    _ => continue,
                }
                open.push(child);
                if let Some(time) = self.time(child)?
                    && time >= best
                {
                    (best, newest) = (time, child);
                }
            }
        }
        Ok(newest)
    }

    /// After a compaction that kept lines: down from a line while there is one way. `None` where it parts.
    fn end_below(&self, leaf: u32, children: &Children) -> Option<u32> {
        let mut at = self.spoken(leaf, &mut u64::from(self.count()))?;
        for _ in 0..=self.count() {
            let mut each = children.each(at);
            let Some(first) = each.next() else { return Some(at) };
            if each.next().is_none() {
                at = first;
                continue;
            }
            let mut spoken = children.each(at).filter(|&c| self.index.entry(c).is_conversation());
            at = spoken.next()?;
            if spoken.next().is_some() {
                return None;
            }
        }
        None
    }

    /// The last prompt or answer by place below a line.
    fn last_below(&self, above: u32, children: &Children) -> Option<u32> {
        let above = self.spoken(above, &mut u64::from(self.count()))?;
        let mut seen = vec![false; self.count() as usize];
        let mut open = vec![above];
        let mut last = None;
        while let Some(at) = open.pop() {
            for child in children.each(at) {
                match seen.get_mut(child as usize) {
                    Some(seen) if !*seen && child != above => *seen = true,
                    _ => continue,
                }
                open.push(child);
                if self.is_main(child) && self.index.entry(child).is_conversation() {
                    last = last.max(Some(child));
                }
            }
        }
        last
    }

    fn has_child(&self, parent: u32) -> bool {
        (0..self.count()).any(|at| self.parent(at) == parent && self.is_node(at))
    }

    /// Whether a named line, or the prompt or answer that it hangs on, is one of several calls of a message or the
    /// result of one: those fork, and no fork is the end. Tried with some eighty small trees on 2.1.332.
    fn is_parallel(&self, named: u32, leaf: u32) -> bool {
        let Some(spoken) = self.spoken(named, &mut u64::from(self.count())) else { return false };
        let call = if self.is_result(spoken) { self.parent(spoken) } else { spoken };
        let e = self.index.entry(call);
        if e.kind() != Kind::Assistant || !e.has(bit::CALL) {
            return false;
        }
        let calls = |at: u32| self.index.entry(at).has(bit::CALL) && self.is_of(at, e.group);
        let run = |at: &u32| self.is_of(*at, e.group) || self.is_result(*at) || !self.is_said(*at);
        let mut path = vec![false; self.count() as usize];
        // below the call: the line right below, and whether a further call of the message follows
        let (mut child, mut below) = (NONE, false);
        let mut found = None;
        for at in self.up(leaf) {
            if let Some(on) = path.get_mut(at as usize) {
                *on = true;
            }
            if at == call {
                found = Some((child, below));
            }
            below = run(&at) && (below || calls(at));
            child = at;
        }
        let on_path = |at: u32| path.get(at as usize).copied().unwrap_or(false);
        if on_path(spoken) {
            return false;
        }
        if e.group != NONE && self.up(call).skip(1).take_while(run).any(|at| on_path(at) && calls(at)) {
            return true;
        }
        found.is_some_and(|(child, below)| below && e.group != NONE || self.answer_apart(call, spoken, child))
    }

    /// Whether two results below one line answer different calls of it.
    fn answer_apart(&self, calls: u32, one: u32, other: u32) -> bool {
        if !self.is_result(other) {
            return false;
        }
        let of = |at: u32| self.index.tools(at).collect::<HashSet<u64>>();
        let (calls, one, other) = (of(calls), of(one), of(other));
        one.is_subset(&calls) && other.is_subset(&calls) && one.is_disjoint(&other)
    }

    fn is_result(&self, at: u32) -> bool {
        let e = self.index.entry(at);
        e.kind() == Kind::User && e.has(bit::RESULT)
    }

    fn is_said(&self, at: u32) -> bool {
        self.index.entry(at).is_conversation()
    }

    /// Whether a line is of a model message.
    fn is_of(&self, at: u32, message: u32) -> bool {
        let e = self.index.entry(at);
        e.kind() == Kind::Assistant && e.group == message && message != NONE
    }

    /// A line and those above it.
    fn up(&self, from: u32) -> impl Iterator<Item = u32> {
        let parent = |&at: &u32| Some(self.parent(at)).filter(|&p| p < DANGLING);
        std::iter::successors(Some(from), parent).take(self.index.entries.len())
    }

    /// The nearest prompt or answer above a line, or the line itself. Every line looked at is taken from `left`.
    fn spoken(&self, from: u32, left: &mut u64) -> Option<u32> {
        let mut at = from;
        for _ in 0..=self.count() {
            *left = left.checked_sub(1)?;
            if at >= DANGLING {
                return None;
            }
            if self.index.entry(at).is_conversation() {
                return Some(at);
            }
            at = self.parent(at);
        }
        None
    }

    /// What was said on the way down from `spoken` to a late line.
    fn said_between(&self, late: u32, spoken: u32) -> Vec<(u32, u32)> {
        let mut out = Vec::new();
        let mut at = late;
        while at < DANGLING && at != spoken && out.len() <= self.index.entries.len() {
            let e = self.index.entry(at);
            if e.has(bit::QUEUED) || e.has(bit::LOCAL_COMMAND) {
                out.push((spoken, at));
            }
            at = self.parent(at);
        }
        out
    }

    /// Whether a line descends from another one in the views but `exact`, which go on where a parent is missing.
    fn is_below(&mut self, below: u32, above: u32) -> Result<bool> {
        let mut at = below;
        for _ in 0..=self.count() {
            if at == above {
                return Ok(true);
            }
            at = match self.parent(at) {
                DANGLING => self.above_gap(at)?,
                parent => parent,
            };
            if at >= DANGLING {
                break;
            }
        }
        Ok(false)
    }

    /// Whether `above` is `below` or one of its ancestors.
    fn is_above(&self, above: u32, below: u32) -> bool {
        let mut at = below;
        for _ in 0..=self.count() {
            if at == above {
                return true;
            }
            at = self.parent(at);
            if at >= DANGLING {
                return false;
            }
        }
        false
    }

    fn say_late(&mut self, at: u32) {
        let line = self.index.line_of(at);
        let note = "a late line hangs on an older one: the client loses the turns between";
        self.index.problems.add(problem::RESCUED, Some(line), note);
    }
}
