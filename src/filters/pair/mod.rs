//! Gives every live tool call exactly one result, right after its call group, under an id of its own.
//!
//! A *call group* is the live calls of one model message: calls of one `group` with whatever else the model
//! said in that message, or calls that stand directly one after another. Both Claude Code 2.1 and Codex CLI
//! 0.171 lose or invent something when a call stands without its result, a result behind a later message,
//! or an id is used twice (issue 2), so writers are only ever handed paired streams.
//!
//! | found | becomes |
//! |---|---|
//! | a call without result | text of the model behind its call group, or it is given a result, or it is only marked |
//! | a result without call | text in the user's place (a notice), or it is given a call, or it is only marked |
//! | a result behind a later message | moves to its call group |
//! | a second result | is marked |
//! | a second use of an id | is renamed, call and result |
//! | a result of a call that the server ran | is one without call, unless the server gave it, too |
//!
//! A call that the server ran is text in the target, and so is a result of the server's: a plain result of such a
//! call would stand alone there.
//!
//! Only results move; everything else keeps its order, also the dropped and native records in between.
//! A call stays open until the model speaks again after the next prompt of the human; a prompt *inside* the
//! turn (typed while a tool ran) does not end it. A result that comes still later becomes text in place. A
//! result that stands before its call is one without call: to wait for it would mean to hold everything.
//!
//! Held: nothing while no call is open. Else the records since the first open call, in memory up to 8 MiB
//! and in a temporary file beyond, about 100 bytes for each open call and each result that has to move, and
//! for the whole session about 10 bytes for each id.

mod rewrite;
mod window;

#[cfg(test)]
mod tests;

use super::Filter;
use crate::json::{Tape, Text};
use crate::record::{
    End, Error, Head, Kind, Problem, Problems, Record, Result, Role, number, problem, with_fields,
};
use crate::stream::Sink;
use foldhash::fast::FixedState as Folded;
use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, Hasher};
use window::{Edit, Window};

/// What becomes of calls without result and of results without call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Orphans {
    /// Ordinary text that says what it was and keeps its content.
    #[default]
    Text,
    /// The missing half is made up and says so.
    Stub,
    /// They are marked, and nothing stands for them.
    Drop,
}

impl std::str::FromStr for Orphans {
    type Err = Error;

    fn from_str(word: &str) -> Result<Orphans> {
        match word {
            "text" => Ok(Orphans::Text),
            "stub" => Ok(Orphans::Stub),
            "drop" => Ok(Orphans::Drop),
            _ => Err(Error::Usage {
                what: format!("orphans cannot become {word:?}"),
                hint: Some("text, stub or drop".to_owned()),
            }),
        }
    }
}

/// How to pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Options {
    /// What becomes of orphans.
    pub orphans: Orphans,
    /// Only look: no record is handed on, see [`Pair::take_findings`].
    pub check: bool,
}

/// What was found in one session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Id of the session.
    pub session_id: String,
    /// Every repair that it needs, by kind.
    pub problems: Vec<Problem>,
}

impl Finding {
    /// One line for each place, and one for what was counted beyond the places kept.
    pub fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for Problem { kind, count, first } in &self.problems {
            for place in first {
                let line = place.line.map(|n| format!("line {n}: ")).unwrap_or_default();
                lines.push(format!("{}: {line}{kind}: {}", self.session_id, place.note));
            }
            let more = count.saturating_sub(first.len() as u64);
            if more > 0 {
                lines.push(format!("{}: {kind}: {more} more", self.session_id));
            }
        }
        lines
    }
}

/// The filter.
#[derive(Debug, Default)]
pub struct Pair {
    options: Options,
    session: State,
    window: Window,
    tape: Tape,
    findings: Vec<Finding>,
}

/// What is known of the session.
#[derive(Debug, Default)]
struct State {
    id: String,
    ids: Ids,
    /// Calls that the server ran, whose result, should one of the server's come, is taken as it stands.
    server: HashMap<u64, Option<String>, Folded>,
    /// Ids whose calls were settled without their result.
    settled: HashSet<u64, Folded>,
    problems: Problems,
    messages: u64,
    live: u64,
    changed: bool,
}

/// The ids in use, as hashes: two million of them cost 20 MB. When two share a hash (once in ten million
/// such sessions), one is renamed without need.
#[derive(Debug, Default)]
struct Ids {
    used: HashSet<u64, Folded>,
    /// The number that the next second use of an id gets.
    next: HashMap<u64, u32, Folded>,
}

impl Ids {
    /// Takes an id into use; gives the new one when it was in use already.
    fn claim(&mut self, id: &str) -> Option<String> {
        let key = hash(id);
        if self.used.insert(key) {
            return None;
        }
        let next = self.next.entry(key).or_insert(2);
        loop {
            let new = format!("{id}_{next}");
            *next = next.saturating_add(1);
            if self.used.insert(hash(&new)) {
                return Some(new);
            }
        }
    }
}

fn hash(text: &str) -> u64 {
    // a fixed seed: the same stream gives the same result every time
    let mut hasher = foldhash::quality::FixedState::with_seed(7).build_hasher();
    hasher.write(text.as_bytes());
    hasher.finish()
}

/// Takes what is written in a check.
struct Nowhere;

impl Sink for Nowhere {
    fn put(&mut self, _: &[u8]) -> Result<()> {
        Ok(())
    }
}

/// The words that name a call in a problem.
fn note(head: &Head<'_>) -> String {
    let name = head.tool_name.map(|t| t.head(64));
    let id = head.tool_call_id.map(|t| t.head(80));
    [name, id].into_iter().flatten().filter(|t| !t.is_empty()).collect::<Vec<_>>().join(" ")
}

impl Pair {
    /// A filter that has seen nothing yet.
    pub fn new(options: Options) -> Pair {
        Pair { options, ..Pair::default() }
    }

    /// The sessions with findings that have ended since the last look; only a check gathers any.
    pub fn take_findings(&mut self) -> Vec<Finding> {
        std::mem::take(&mut self.findings)
    }

    /// Hands a record on as it is, in its turn.
    fn pass(&mut self, line: &[u8], out: &mut dyn Sink) -> Result<()> {
        if self.window.is_open() { self.window.push(line).map(|_| ()) } else { out.put(line) }
    }

    /// Settles what is open and lets everything go.
    fn settle(&mut self, next: Option<u64>, out: &mut dyn Sink) -> Result<()> {
        if !self.window.is_open() {
            return Ok(());
        }
        self.window.settle(self.options.orphans, &mut self.session, &mut self.tape)?;
        self.window.flush(&mut self.session, &mut self.tape, next, out)
    }

    fn message(&mut self, record: &Record<'_>, out: &mut dyn Sink) -> Result<()> {
        let head = record.head();
        self.session.messages += 1;
        if !head.is_live() {
            return self.pass(record.line(), out);
        }
        self.session.live += 1;
        let Some(role) = head.role else { return self.pass(record.line(), out) };
        let model = matches!(role, Role::Assistant | Role::Reasoning | Role::ToolCall);
        if model && self.window.is_over() {
            self.settle(head.seq, out)?;
        }
        match role {
            Role::ToolCall => return self.call(record, out),
            Role::ToolResult => return self.result(record, out),
            Role::Assistant | Role::Reasoning => self.window.said(group(head)),
            Role::User if head.is_prompt() && !head.synthetic => self.window.prompted(head.turn),
            Role::User | Role::System | Role::Summary => self.window.close(),
        }
        self.pass(record.line(), out)
    }

    fn call(&mut self, record: &Record<'_>, out: &mut dyn Sink) -> Result<()> {
        let head = record.head();
        let id = required_id(head)?.decode();
        if !rewrite::is_server(record, &mut self.tape)? {
            return self.window.call(record.line(), hash(&id), group(head), head.turn);
        }
        self.window.said(group(head));
        // a server's call may have no id of its own
        let new = if id.is_empty() { None } else { self.session.ids.claim(&id) };
        self.session.server.insert(hash(&id), new.clone());
        match new {
            None => self.pass(record.line(), out),
            Some(new) => {
                self.session.found(problem::RENAMED_ID, head);
                let line = rewrite::renamed(record.line(), &new, &mut self.tape)?;
                self.pass(&line, out)
            }
        }
    }

    fn result(&mut self, record: &Record<'_>, out: &mut dyn Sink) -> Result<()> {
        let head = record.head();
        let id = required_id(head)?.decode();
        let key = hash(&id);
        if let Some(call) = self.window.take(key) {
            return self.answer(call, &id, record, out);
        }
        let served = self.session.server.remove(&key);
        if let Some(new) = &served
            && rewrite::is_server(record, &mut self.tape)?
        {
            return match new {
                None => self.pass(record.line(), out),
                Some(new) => {
                    let line = rewrite::renamed(record.line(), new, &mut self.tape)?;
                    self.pass(&line, out)
                }
            };
        }
        self.session.live -= 1;
        let made = if served.is_none()
            && self.session.ids.used.contains(&key)
            && !self.session.settled.contains(&key)
        {
            self.session.found(problem::DUPLICATE_RESULT, head);
            rewrite::Made { marked: rewrite::marked(record.line(), &mut self.tape)?, twin: None }
        } else {
            self.session.found(problem::ORPHAN_RESULT, head);
            match self.options.orphans {
                Orphans::Text => rewrite::result_as_text(record.line(), &mut self.tape)?,
                Orphans::Drop => {
                    rewrite::Made { marked: rewrite::marked(record.line(), &mut self.tape)?, twin: None }
                }
                Orphans::Stub => return self.result_with_call(record, &id, out),
            }
        };
        if made.twin.is_some() {
            self.window.close();
        }
        self.pass(&made.marked, out)?;
        let Some(twin) = made.twin else { return Ok(()) };
        self.session.made();
        self.pass(&twin, out)
    }

    /// The call of this result is known.
    fn answer(
        &mut self,
        call: window::Taken,
        id: &str,
        record: &Record<'_>,
        out: &mut dyn Sink,
    ) -> Result<()> {
        let head = record.head();
        let mut line = std::borrow::Cow::Borrowed(record.line());
        if let Some(new) = self.session.ids.claim(id) {
            self.session.found(problem::RENAMED_ID, head);
            line = rewrite::renamed(record.line(), &new, &mut self.tape)?.into();
            self.window.edit(call.index, Edit::Rename(new));
        }
        if !call.in_place {
            self.session.found(problem::LATE_RESULT, head);
        } else if !self.window.is_open() {
            // the usual case: the last open call is answered where it should be
            self.window.flush(&mut self.session, &mut self.tape, None, out)?;
            return out.put(&line);
        }
        self.window.answered(&call, &line)?;
        if self.window.is_open() {
            return Ok(());
        }
        self.window.flush(&mut self.session, &mut self.tape, None, out)
    }

    /// A result without call is given one.
    fn result_with_call(&mut self, record: &Record<'_>, id: &str, out: &mut dyn Sink) -> Result<()> {
        self.window.close();
        let new = self.session.ids.claim(id);
        let call = rewrite::call_for(record, new.as_deref().unwrap_or(id));
        // the result stays live, and the made call comes in addition
        self.session.live += 1;
        self.session.made();
        self.pass(&call, out)?;
        match new {
            None => self.pass(record.line(), out),
            Some(new) => {
                self.session.found(problem::RENAMED_ID, record.head());
                let line = rewrite::renamed(record.line(), &new, &mut self.tape)?;
                self.pass(&line, out)
            }
        }
    }

    fn finish(&mut self, record: &Record<'_>, out: &mut dyn Sink) -> Result<()> {
        let State { id, problems, messages, live, changed, .. } = std::mem::take(&mut self.session);
        if !changed {
            return out.put(record.line());
        }
        if self.options.check {
            self.findings.push(Finding { session_id: id, problems: problems.into_vec() });
            return Ok(());
        }
        let end: End = record.decode()?;
        let mut all = Problems::default();
        all.merge(end.problems);
        all.merge(problems.into_vec());
        let all = serde_json::to_vec(&all.into_vec()).map_err(|e| Error::shape(e.to_string()))?;
        let (mut count, mut alive) = (Vec::new(), Vec::new());
        number(&mut count, messages);
        number(&mut alive, live);
        let value = record.parse(&mut self.tape)?;
        let fields: [(&str, &[u8]); 3] = [("messages", &count), ("live", &alive), ("problems", &all)];
        out.put(&with_fields(record.line(), value, &fields))
    }
}

impl State {
    /// Counts a repair.
    fn found(&mut self, kind: &str, head: &Head<'_>) {
        self.changed = true;
        self.problems.add(kind, head.line, note(head));
    }

    /// Counts a made message, all of which are live.
    fn made(&mut self) {
        self.messages += 1;
        self.live += 1;
    }
}

fn group(head: &Head<'_>) -> Option<u64> {
    head.group.map(|g| hash(&g.decode()))
}

fn required_id<'a>(head: &Head<'a>) -> Result<Text<'a>> {
    let role = head.role.map_or("tool", Role::as_str);
    head.tool_call_id.ok_or_else(|| Error::shape(format!("a {role} message needs `tool_call_id`")))
}

impl Filter for Pair {
    fn record(&mut self, record: &Record<'_>, out: &mut dyn Sink) -> Result<()> {
        let mut nowhere = Nowhere;
        let out: &mut dyn Sink = if self.options.check { &mut nowhere } else { out };
        match record.head().kind {
            Kind::Session => {
                self.settle(None, out)?;
                self.session = State::default();
                if self.options.check {
                    let value = record.parse(&mut self.tape)?;
                    let id = value.get("session_id").and_then(|v| v.text());
                    self.session.id = id.map(|t| t.decode().into_owned()).unwrap_or_default();
                }
                out.put(record.line())
            }
            Kind::End => {
                self.settle(None, out)?;
                self.finish(record, out)
            }
            Kind::Message => self.message(record, out),
            Kind::Native | Kind::Abort | Kind::Unknown => self.pass(record.line(), out),
        }
    }

    fn end(&mut self, out: &mut dyn Sink) -> Result<()> {
        // only a stream without `end`, which sources refuse, still holds anything here
        let mut nowhere = Nowhere;
        let out: &mut dyn Sink = if self.options.check { &mut nowhere } else { out };
        self.settle(None, out)
    }
}
