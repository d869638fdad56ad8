//! What a compaction leaves of the tree: which lines before it still exist, and on what they hang.
//!
//! Observed on Claude Code 2.1.332 with some 2,100 prefixes of genuine sessions and 185 made-up trees. The last
//! boundary of the file decides, and it decides before the end of the conversation is looked for.

use super::index::{DANGLING, Kind, NONE, bit};
use super::plan::Planner;
use crate::agents::History;
use crate::json::{Kind as Json, Tape, Value};
use crate::record::Result;
use crate::record::{Reason, problem};
use std::collections::HashSet;

/// The compaction that decides, and what it changed.
#[derive(Default)]
pub(super) struct Compaction {
    /// Whether lines before `boundary` that are not among `kept` are gone.
    pub prunes: bool,
    /// Whether the kept lines were hung behind the anchor.
    pub relinks: bool,
    boundary: u32,
    /// Kept lines by place.
    kept: Vec<u32>,
    /// Of a list that names lines that are not there: those that are, in the order of the list.
    rest: Vec<u32>,
    /// Behind which line the kept ones stand.
    anchor: u32,
    /// A boundary whose summary was not written: all views but `exact` go on before it.
    pub open: Option<u32>,
    /// Whether the path has come to it.
    pub opened: bool,
    /// Lines that hang elsewhere now, with their parents in the file.
    moved: Vec<(u32, u32)>,
    /// Lines whose parent is gone with the compaction, and on which nothing was hung in its place.
    pub severed: HashSet<u32>,
    /// Boundaries that keep lines, or stand behind such a one, by place.
    lists: Vec<u32>,
}

/// What a boundary says.
enum Kept {
    /// Neither a list nor a segment.
    Nothing,
    /// The lines, in order, and the line behind which they stand.
    Lines(Vec<u32>, Anchor),
    /// Some line is not in the file: the client then keeps nothing and leaves everything as it is.
    Broken(Vec<u32>, Anchor),
}

#[derive(Clone, Copy)]
struct Anchor {
    /// The line, [`NONE`] or [`DANGLING`].
    at: u32,
    /// Hash of the id.
    id: u64,
}

impl Compaction {
    /// Whether a line is gone with the compaction.
    pub(super) fn is_gone(&self, at: u32) -> bool {
        self.prunes && at < self.boundary && self.kept.binary_search(&at).is_err()
    }

    /// Whether a line was kept by a compaction whose summary was not written: it may name that as its parent.
    pub(super) fn hangs_on_summary(&self, at: u32) -> bool {
        self.open.is_some() && !self.opened && self.kept.binary_search(&at).is_ok()
    }
}

impl Planner<'_> {
    fn is_boundary(&self, at: u32) -> bool {
        let e = self.index.entry(at);
        e.kind() == Kind::System && e.has(bit::BOUNDARY) && self.is_node(at)
    }

    /// Applies the last compaction to the tree. Parents must be resolved.
    pub(super) fn compact(&mut self) -> Result<()> {
        if !self.index.boundaries {
            return Ok(());
        }
        let all = self.boundaries(self.count());
        let Some(&last) = all.last() else { return Ok(()) };
        let summary = |at: u32| self.is_node(at) && self.index.entry(at).has(bit::SUMMARY);
        if !self.exact() && !(last..self.count()).any(summary) {
            self.compaction.open = Some(last);
        }
        self.compaction.lists = self.lists(&all).to_vec();
        self.apply(&all)
    }

    /// The boundaries before a line, by place.
    fn boundaries(&self, before: u32) -> Vec<u32> {
        (0..before).filter(|&at| self.is_boundary(at)).collect()
    }

    /// From the first boundary on that says what it keeps.
    fn lists<'b>(&self, all: &'b [u32]) -> &'b [u32] {
        let first = all.iter().position(|&at| self.index.entry(at).has(bit::KEEPS));
        first.and_then(|first| all.get(first..)).unwrap_or_default()
    }

    /// Applies the last of these boundaries.
    fn apply(&mut self, all: &[u32]) -> Result<()> {
        let Some(&boundary) = all.last() else { return Ok(()) };
        self.compaction.boundary = boundary;
        match self.kept_by(boundary)? {
            Kept::Nothing => self.compaction.prunes = self.lists(all).len() > 1,
            Kept::Broken(rest, anchor) => {
                self.compaction.rest = rest;
                self.compaction.anchor = anchor.at;
                return Ok(());
            }
            Kept::Lines(lines, anchor) => {
                self.compaction.prunes = true;
                self.compaction.kept = lines.clone();
                self.compaction.kept.sort_unstable();
                self.relink(&lines, anchor);
            }
        }
        self.sever();
        Ok(())
    }

    /// Where the views but `exact` go on when the path ends at a compaction without its summary, which stands for
    /// what was before: the line before the boundary, in the tree as the compaction before this one left it.
    pub(super) fn before_open(&mut self) -> Result<Option<u32>> {
        let reached = |p: &Self, open: u32| p.compaction.prunes || p.index.entry(open).has(bit::PATH);
        let Some(open) = self.compaction.open.filter(|&open| !self.compaction.opened && reached(self, open))
        else {
            return Ok(None);
        };
        self.undo();
        let lists = std::mem::take(&mut self.compaction.lists);
        self.compaction = Compaction { open: Some(open), opened: true, lists, ..Compaction::default() };
        let before = self.boundaries(open);
        self.apply(&before)?;
        let at = self.before_boundary(open, false)?;
        let at = self.not_on_path(at);
        if at < DANGLING {
            let note = "a compaction without its summary: the client loses what it did not keep";
            self.index.problems.add(problem::RESCUED, Some(self.index.line_of(open)), note);
        }
        Ok(Some(at))
    }

    /// The line, or what is above it behind the lines that are on the path already: those that were kept.
    pub(super) fn not_on_path(&self, mut at: u32) -> u32 {
        for _ in 0..=self.count() {
            if at >= DANGLING || !self.index.entry(at).has(bit::PATH) {
                return at;
            }
            at = self.parent(at);
        }
        NONE
    }

    /// What a boundary keeps, by its last copy.
    fn kept_by(&self, boundary: u32) -> Result<Kept> {
        let mut window = super::emit::Window::default();
        let copy = self.index.newest.get(&boundary).copied().unwrap_or(boundary);
        let line = window.record(self.index, self.native, copy)?;
        let mut tape = Tape::new();
        let Ok(value) = tape.parse(&line) else { return Ok(Kept::Nothing) };
        let object = |key| value.get("compactMetadata")?.get(key).filter(Value::is_object);
        if let Some(list) = object("preservedMessages")
            && let Some(ids) = list.get("uuids").filter(|v| v.kind() == Json::Array)
        {
            let named = ids.items().count();
            let lines: Vec<u32> = ids.items().filter_map(|id| self.named(Some(id))).collect();
            let whole = lines.len() == named;
            let anchor = self.anchor(list);
            return Ok(if whole { Kept::Lines(lines, anchor) } else { Kept::Broken(lines, anchor) });
        }
        let Some(segment) = object("preservedSegment") else { return Ok(Kept::Nothing) };
        let (head, mut at) = (self.named(segment.get("headUuid")), self.named(segment.get("tailUuid")));
        let mut lines = Vec::new();
        let anchor = self.anchor(segment);
        while let Some(line) = at.filter(|_| lines.len() <= self.index.entries.len()) {
            lines.push(line);
            if Some(line) == head {
                lines.reverse();
                return Ok(Kept::Lines(lines, anchor));
            }
            at = Some(self.parent(line)).filter(|&p| p < DANGLING);
        }
        // where the segment begins is not known, so none of it can be told from what was compacted
        Ok(Kept::Broken(Vec::new(), anchor))
    }

    /// The line of the tree that an id names.
    fn named(&self, id: Option<Value<'_>>) -> Option<u32> {
        let id = id?.text()?;
        self.index.find(self.index.hash(id)).filter(|&at| self.is_node(at))
    }

    fn anchor(&self, list: Value<'_>) -> Anchor {
        let Some(id) = list.get("anchorUuid").and_then(|v| v.text()).filter(|t| !t.is_empty()) else {
            return Anchor { at: NONE, id: 0 };
        };
        let id = self.index.hash(id);
        Anchor { at: self.index.find(id).filter(|&at| self.is_node(at)).unwrap_or(DANGLING), id }
    }

    fn hang(&mut self, at: u32, parent: u32) {
        let was = self.parent(at);
        if was != parent {
            self.compaction.moved.push((at, was));
            self.index.change(at, |e| e.parent = parent);
        }
    }

    /// Hangs the kept lines behind the anchor, in the order of the list, and what hung on the anchor or on a
    /// line that is gone behind the last of them.
    fn relink(&mut self, lines: &[u32], anchor: Anchor) {
        let Some(&tail) = lines.last() else { return };
        self.compaction.relinks = true;
        // an anchor that is not in the file still has children, by its id
        let lost: HashSet<u32> = if anchor.at == DANGLING {
            self.index.missing.iter().filter(|(_, id)| *id == anchor.id).map(|(at, _)| *at).collect()
        } else {
            HashSet::new()
        };
        for at in self.compaction.boundary..self.count() {
            let parent = self.parent(at);
            let on_anchor = if parent == DANGLING { lost.contains(&at) } else { parent == anchor.at };
            if on_anchor
                && parent != NONE
                && self.is_node(at)
                && self.compaction.kept.binary_search(&at).is_err()
            {
                self.hang(at, tail);
            }
        }
        let mut before = anchor.at;
        for &at in lines {
            self.hang(at, before);
            before = at;
        }
        let kept = self.compaction.kept.clone();
        let behind = self.compaction.boundary..self.count();
        for at in kept.into_iter().filter(|&at| at < behind.start).chain(behind.clone()) {
            let parent = self.parent(at);
            let orphan = parent < DANGLING && self.compaction.is_gone(parent);
            if orphan && self.is_node(at) && self.index.entry(at).is_conversation() {
                self.hang(at, tail);
            }
        }
    }

    /// Lines whose parent is gone and that hang on nothing else have a parent that is not in the file.
    fn sever(&mut self) {
        if !self.compaction.prunes {
            return;
        }
        let kept = self.compaction.kept.clone();
        let behind = self.compaction.boundary..self.count();
        for at in kept.into_iter().filter(|&at| at < behind.start).chain(behind.clone()) {
            let parent = self.parent(at);
            if parent < DANGLING && self.compaction.is_gone(parent) && self.is_node(at) {
                self.hang(at, DANGLING);
                self.compaction.severed.insert(at);
            }
        }
    }

    /// Gives every line the parent back that the file names. The view `full` also gets back what is gone.
    pub(super) fn undo(&mut self) {
        for (at, parent) in std::mem::take(&mut self.compaction.moved).into_iter().rev() {
            self.index.change(at, |e| e.parent = parent);
        }
        if self.history == History::Full {
            self.compaction.prunes = false;
            self.compaction.severed.clear();
        }
    }

    /// The boundary between a line and its parent, when the line does not hang on what was before it any more.
    pub(super) fn boundary_between(&self, parent: u32, at: u32) -> Option<u32> {
        let lists = &self.compaction.lists;
        let last = lists.partition_point(|&b| b <= at).checked_sub(1)?;
        lists.get(last).copied().filter(|&b| parent < b)
    }

    /// Where the conversation went on before a boundary: the line that the boundary names if something was
    /// said there since the boundary before, else the last one before by its place. Clients of 2.1.226 and
    /// 2.1.267 name a line that hangs on copies of old ones. `all`: also among lines that are gone.
    pub(super) fn before_boundary(&mut self, boundary: u32, all: bool) -> Result<u32> {
        let is = |p: &Self, at: u32| if all { p.index.entry(at).is_node() } else { p.is_node(at) };
        let start = (0..boundary).rev().find(|&at| {
            self.steps += 1;
            let e = self.index.entry(at);
            self.steps > super::plan::STEPS || e.is_node() && e.has(bit::BOUNDARY)
        });
        if let Some(named) = self.logical_parent(boundary)?.filter(|&at| at < boundary && is(self, at)) {
            let mut at = named;
            while at < boundary && Some(at) > start {
                self.steps += 1;
                if self.index.entry(at).is_conversation() {
                    return Ok(named);
                }
                let parent = self.parent(at);
                if parent >= at || !is(self, parent) {
                    break;
                }
                at = parent;
            }
        }
        for at in (0..boundary).rev() {
            self.steps += 1;
            if self.steps > super::plan::STEPS {
                break;
            }
            let e = self.index.entry(at);
            if is(self, at) && e.is_conversation() && e.has(bit::SIDECHAIN) == self.sidechain {
                return Ok(at);
            }
        }
        Ok(NONE)
    }

    /// The id that a boundary names as the line before it.
    fn logical_parent(&self, at: u32) -> Result<Option<u32>> {
        let mut window = super::emit::Window::default();
        let copy = self.index.newest.get(&at).copied().unwrap_or(at);
        let line = window.record(self.index, self.native, copy)?;
        let mut tape = Tape::new();
        let value = tape.parse(&line).ok();
        let id = value.and_then(|v| v.get("logicalParentUuid")).and_then(|v| v.text());
        Ok(id.and_then(|id| self.index.find(self.index.hash(id))))
    }

    /// From the last compaction on; what was before is marked as compacted.
    pub(super) fn cut(&mut self, rows: Vec<u32>) -> Result<Vec<u32>> {
        if self.history == History::Full {
            return Ok(self.without_summaries(rows));
        }
        let open = self.compaction.open;
        let cut = rows.iter().rposition(|&at| Some(at) != open && self.is_boundary(at));
        let Some(cut) = cut else {
            // lines that are gone, though no boundary is on the path
            if self.compaction.prunes {
                self.mark_before(self.compaction.boundary)?;
            }
            self.say_large(&rows);
            return Ok(rows);
        };
        let boundary = rows.get(cut).copied().unwrap_or(NONE);
        let mut live: Vec<u32> = rows.get(cut + 1..).unwrap_or_default().to_vec();
        for &at in rows.get(..cut).unwrap_or_default() {
            self.mark(at, Reason::Compacted);
        }
        if !self.exact() && boundary == self.compaction.boundary {
            self.keep_the_rest(&mut live);
        }
        self.mark_before(boundary)?;
        self.say_large(&live);
        Ok(live)
    }

    /// Kept lines of a broken list, which the client does not keep.
    fn keep_the_rest(&mut self, live: &mut Vec<u32>) {
        let have: HashSet<u32> = live.iter().copied().collect();
        let mut rest = std::mem::take(&mut self.compaction.rest);
        rest.retain(|at| !have.contains(at));
        if rest.is_empty() {
            return;
        }
        let line = self.index.line_of(self.compaction.boundary);
        let note = "a compaction names lines to keep that are not there: the client keeps none of them";
        self.index.problems.add(problem::RESCUED, Some(line), note);
        for &at in &rest {
            self.index.set(at, bit::PATH);
        }
        let anchor = live.iter().position(|&at| at == self.compaction.anchor).map_or(0, |n| n + 1);
        live.splice(anchor..anchor, rest);
    }

    /// A compaction of which nothing before is there keeps its summary.
    fn without_summaries(&mut self, rows: Vec<u32>) -> Vec<u32> {
        let mut spoken = false;
        let mut out = Vec::with_capacity(rows.len());
        for at in rows {
            let e = self.index.entry(at);
            if e.has(bit::SUMMARY) && spoken {
                self.mark(at, Reason::Compacted);
                continue;
            }
            spoken |= e.is_conversation();
            out.push(at);
        }
        out
    }

    /// Marks what was the conversation before a boundary.
    fn mark_before(&mut self, boundary: u32) -> Result<()> {
        let mut at = self.before_boundary(boundary, true)?;
        for _ in 0..=self.count() {
            if at >= DANGLING || self.steps > super::plan::STEPS {
                break;
            }
            if !self.index.entry(at).has(bit::PATH) {
                self.index.set(at, bit::PATH);
                self.mark(at, Reason::Compacted);
            }
            at = self.older(at, true)?;
        }
        Ok(())
    }

    /// The line before another one in the whole history, across compactions. `all` as above.
    pub(super) fn older(&mut self, at: u32, all: bool) -> Result<u32> {
        let parent = self.parent(at);
        if parent == NONE && self.index.entry(at).has(bit::BOUNDARY) {
            return self.before_boundary(at, all);
        }
        match self.boundary_between(parent, at) {
            Some(boundary) if parent < DANGLING => self.before_boundary(boundary, all),
            _ => Ok(parent),
        }
    }

    /// Lines that the client does not read because the file is large.
    fn say_large(&mut self, rows: &[u32]) {
        if self.exact() || !rows.iter().any(|&at| at < self.index.from && !self.compaction.is_gone(at)) {
            return;
        }
        let line = self.index.line_of(self.index.from);
        let note = "the client reads nothing before this line: the file is larger than 5 MiB";
        self.index.problems.add(problem::RESCUED, Some(line), note);
    }
}
