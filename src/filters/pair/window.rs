//! The records held while a call is open, and what is to become of them.
//!
//! The records themselves stand in a queue and are gone through once, in order, when they are let go. In
//! memory stands only what departs from that order.

use super::{Folded, Orphans, State, hash, rewrite};
use crate::json::Tape;
use crate::record::{Head, Record, Result, problem};
use crate::stream::{Held, Queue, Sink};
use std::collections::{HashMap, VecDeque};

/// What happens to a held call.
#[derive(Debug)]
pub(super) enum Edit {
    /// It is the second use of its id.
    Rename(String),
    /// It stays without result.
    Orphan,
}

/// What is put in before a held record.
#[derive(Debug)]
enum Insert {
    /// A held result that moves here.
    Held(Held),
    /// A made result for this call, with its new id if it got one.
    Stub(Held, Option<String>),
    /// The text that stands for this call, which has no result.
    Text(Held),
}

#[derive(Debug)]
struct Call {
    index: u64,
    place: Held,
    key: u64,
    open: bool,
}

#[derive(Debug)]
struct Answer {
    /// Which call of the group.
    call: usize,
    index: u64,
    place: Held,
    in_place: bool,
}

/// A call group with open calls.
#[derive(Debug)]
struct Batch {
    calls: Vec<Call>,
    open: usize,
    answers: Vec<Answer>,
    /// Group of its last call.
    group: Option<u64>,
    /// Whether all its calls have one and the same group.
    uniform: bool,
    /// The last live record was one of its calls.
    calling: bool,
    /// The first live record that is not part of it; results go before that.
    closed: Option<u64>,
}

/// An open call that is being answered.
#[derive(Debug)]
pub(super) struct Taken {
    batch: u64,
    call: usize,
    /// Place of the call among the held records.
    pub(super) index: u64,
    /// Whether the result stands where it should.
    pub(super) in_place: bool,
}

/// The held records.
#[derive(Debug, Default)]
pub(super) struct Window {
    queue: Queue,
    count: u64,
    open_calls: usize,
    /// Open calls by the hash of their id.
    open: HashMap<u64, VecDeque<(u64, usize)>, Folded>,
    batches: HashMap<u64, Batch, Folded>,
    batch_count: u64,
    /// The group that may still grow or be answered in place.
    current: Option<u64>,
    /// Turn of the last open call.
    turn: Option<u64>,
    /// A prompt of a later turn has come.
    over: bool,
    edits: Vec<(u64, Edit)>,
    inserts: Vec<(u64, Insert)>,
    moved: Vec<u64>,
}

impl Window {
    /// Whether any call is open.
    pub(super) fn is_open(&self) -> bool {
        self.open_calls > 0
    }

    /// Whether the turn of the open calls is over as soon as the model speaks.
    pub(super) fn is_over(&self) -> bool {
        self.over
    }

    /// Holds a record.
    pub(super) fn push(&mut self, line: &[u8]) -> Result<(u64, Held)> {
        let place = self.queue.push(&[line])?;
        self.count += 1;
        Ok((self.count - 1, place))
    }

    /// A live record comes that belongs to no call group.
    pub(super) fn close(&mut self) {
        let at = self.count;
        if let Some(batch) = self.current.take().and_then(|b| self.batches.get_mut(&b)) {
            batch.closed = Some(at);
        }
    }

    /// The model says something beside its calls.
    pub(super) fn said(&mut self, group: Option<u64>) {
        let Some(batch) = self.current.and_then(|b| self.batches.get_mut(&b)) else { return };
        if group.is_some() && group == batch.group && batch.answers.is_empty() {
            batch.calling = false;
        } else {
            self.close();
        }
    }

    /// The human says something.
    pub(super) fn prompted(&mut self, turn: Option<u64>) {
        self.close();
        if self.is_open() && (turn.is_none() || turn != self.turn) {
            self.over = true;
        }
    }

    /// The model calls a tool.
    pub(super) fn call(
        &mut self,
        line: &[u8],
        key: u64,
        group: Option<u64>,
        turn: Option<u64>,
    ) -> Result<()> {
        let joins = |b: &Batch| b.answers.is_empty() && (b.calling || (group.is_some() && group == b.group));
        if !self.current.and_then(|b| self.batches.get(&b)).is_some_and(joins) {
            self.close();
        }
        let number = match self.current {
            Some(number) => number,
            None => {
                self.batch_count += 1;
                self.batch_count
            }
        };
        let (index, place) = self.push(line)?;
        let batch = self.batches.entry(number).or_insert_with(|| Batch {
            calls: Vec::new(),
            open: 0,
            answers: Vec::new(),
            group,
            uniform: group.is_some(),
            calling: true,
            closed: None,
        });
        batch.uniform &= group == batch.group;
        batch.group = group;
        batch.calling = true;
        batch.open += 1;
        self.open.entry(key).or_default().push_back((number, batch.calls.len()));
        batch.calls.push(Call { index, place, key, open: true });
        self.current = Some(number);
        self.open_calls += 1;
        self.turn = turn;
        Ok(())
    }

    /// The open call that a result with this id answers: one of the group just before it, else the first.
    pub(super) fn take(&mut self, key: u64) -> Option<Taken> {
        let waiting = self.open.get_mut(&key)?;
        let near = waiting.iter().position(|(batch, _)| Some(*batch) == self.current).unwrap_or(0);
        let (number, at) = waiting.remove(near)?;
        if waiting.is_empty() {
            self.open.remove(&key);
        }
        let batch = self.batches.get_mut(&number)?;
        let call = batch.calls.get_mut(at)?;
        call.open = false;
        batch.open -= 1;
        self.open_calls -= 1;
        let in_place = Some(number) == self.current;
        Some(Taken { batch: number, call: at, index: call.index, in_place })
    }

    /// Holds the result of a call.
    pub(super) fn answered(&mut self, taken: &Taken, line: &[u8]) -> Result<()> {
        let (index, place) = self.push(line)?;
        let Some(batch) = self.batches.get_mut(&taken.batch) else { return Ok(()) };
        batch.answers.push(Answer { call: taken.call, index, place, in_place: taken.in_place });
        if batch.open > 0 {
            return Ok(());
        }
        if self.current == Some(taken.batch) {
            self.current = None;
        }
        if let Some(batch) = self.batches.remove(&taken.batch) {
            let target = batch.closed.unwrap_or(self.count);
            for answer in batch.answers.iter().filter(|a| !a.in_place) {
                self.move_to(target, answer);
            }
        }
        Ok(())
    }

    /// A change to a held call.
    pub(super) fn edit(&mut self, index: u64, edit: Edit) {
        self.edits.push((index, edit));
    }

    fn move_to(&mut self, target: u64, answer: &Answer) {
        self.inserts.push((target, Insert::Held(answer.place)));
        self.moved.push(answer.index);
    }

    /// Decides about every call that is still open.
    pub(super) fn settle(&mut self, orphans: Orphans, session: &mut State, tape: &mut Tape) -> Result<()> {
        let mut room = Vec::new();
        let mut batches: Vec<(u64, Batch)> = self.batches.drain().collect();
        batches.sort_unstable_by_key(|(number, _)| *number);
        for (_, batch) in batches {
            let end = batch.closed.unwrap_or(self.count);
            // A call that is none any more parts its group, unless all of it is one message of the model: then
            // results of the calls before it go before it.
            let mut parting = vec![None; batch.calls.len()];
            if orphans != Orphans::Stub && !batch.uniform {
                let mut next = None;
                for (slot, call) in parting.iter_mut().zip(&batch.calls).rev() {
                    if call.open {
                        next = Some(call.index);
                    }
                    *slot = next;
                }
            }
            for answer in &batch.answers {
                match parting.get(answer.call).copied().flatten() {
                    Some(before) => self.move_to(before, answer),
                    None if !answer.in_place => self.move_to(end, answer),
                    None => {}
                }
            }
            for call in batch.calls.iter().filter(|c| c.open) {
                if orphans != Orphans::Stub {
                    session.settled.insert(call.key);
                    self.edits.push((call.index, Edit::Orphan));
                    // Behind the results of the whole group: a text between calls and their results parts
                    // them for the client of the target.
                    if orphans == Orphans::Text {
                        self.inserts.push((end, Insert::Text(call.place)));
                    }
                    continue;
                }
                let line = self.queue.line(call.place, &mut room)?;
                let head = Head::scanned(rewrite::scan(line, tape)?)?;
                session.found(problem::ORPHAN_CALL, &head);
                let id = head.tool_call_id.map(|t| t.decode()).unwrap_or_default();
                session.settled.insert(hash(&id));
                let new = session.ids.claim(&id);
                if let Some(new) = &new {
                    session.found(problem::RENAMED_ID, &head);
                    self.edits.push((call.index, Edit::Rename(new.clone())));
                }
                self.inserts.push((end, Insert::Stub(call.place, new)));
            }
        }
        Ok(())
    }

    /// Lets every held record go. `next` is the position in the session of the record behind them.
    pub(super) fn flush(
        &mut self,
        session: &mut State,
        tape: &mut Tape,
        next: Option<u64>,
        out: &mut dyn Sink,
    ) -> Result<()> {
        self.edits.sort_by_key(|(at, _)| *at);
        self.inserts.sort_by_key(|(at, _)| *at);
        self.moved.sort_unstable();
        let mut edits = self.edits.drain(..).peekable();
        let mut inserts = self.inserts.drain(..).peekable();
        let mut moved = self.moved.drain(..).peekable();
        let queue = &self.queue;
        let mut room = Vec::new();
        let mut index = 0;
        let mut insert =
            |what: Insert, seq: Option<u64>, session: &mut State, tape: &mut Tape, out: &mut dyn Sink| {
                match what {
                    Insert::Held(place) => out.put(queue.line(place, &mut room)?),
                    Insert::Stub(call, id) => {
                        session.made();
                        let call = queue.line(call, &mut room)?;
                        out.put(&rewrite::result_for(call, id.as_deref(), seq, tape)?)
                    }
                    Insert::Text(call) => {
                        session.made();
                        out.put(&rewrite::call_as_text(queue.line(call, &mut room)?, tape)?)
                    }
                }
            };
        queue.lines(|line| {
            if inserts.peek().is_some_and(|(at, _)| *at == index) {
                let seq = Record::new(line, tape)?.head().seq;
                while let Some((_, what)) = inserts.next_if(|(at, _)| *at == index) {
                    insert(what, seq, session, tape, out)?;
                }
            }
            let stays = moved.next_if_eq(&index).is_none();
            let edit = edits.next_if(|(at, _)| *at == index);
            index += 1;
            match edit {
                _ if !stays => Ok(()),
                None => out.put(line),
                Some((_, Edit::Rename(id))) => out.put(&rewrite::renamed(line, &id, tape)?),
                Some((_, Edit::Orphan)) => {
                    session.found(problem::ORPHAN_CALL, Record::new(line, tape)?.head());
                    session.live -= 1;
                    out.put(&rewrite::marked(line, tape)?)
                }
            }
        })?;
        for (_, what) in inserts {
            insert(what, next, session, tape, out)?;
        }
        drop((edits, moved));
        self.queue.clear();
        self.count = 0;
        self.open_calls = 0;
        self.open.clear();
        self.batches.clear();
        self.current = None;
        self.turn = None;
        self.over = false;
        Ok(())
    }
}
