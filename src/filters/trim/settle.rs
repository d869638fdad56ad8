//! What of the window is kept, and in which form.

use super::forms::{self, Form};
use super::{Counters, Entry, Item, Options, Part, SMALL, State, condensed, cost, hash, original, trimmed};
use crate::json::{Kind, Tape, Value};
use crate::record::{Budget, Error, Head, Result, Role};
use crate::stream::Sink;
use crate::tokens::{Counter, Family};
use std::collections::{HashMap, HashSet};
use std::ops::Range;

/// Where calls that keep a plan put the whole of it, by agent: Claude Code, OpenCode and Gemini CLI; Codex CLI.
const PLANS: [&str; 2] = ["todos", "plan"];

/// What is kept of a condensed result, in bytes of text.
const CONDENSED: u64 = 1_200;

/// Longest result that Codex CLI takes whole, in bytes: of a longer one it keeps 6,000 at each end when it loads
/// a session (seen in 0.47 to 0.171).
const WHOLE: usize = 12_000;

/// Most that is given back to one condensed result, in bytes; below [`WHOLE`] with the line that says what is missing.
const MOST: u64 = 11_500;

/// Room that is not worth giving back, in tokens: a hundredth of all of it within these bounds.
const SPARE: (u64, u64) = (8, 48);

/// What may stay free where not all is counted yet, as a part of the room.
const FREE: u64 = 96;

/// Steps and prompts that are taken back in at most, beside the first.
const READMITTED: usize = 64;

/// Steps whose calls stay where texts go before them, and most of a text that says nothing without its calls, in bytes.
const STEPS: usize = 3;
const ANNOUNCED: usize = 200;

/// What is counted exactly whatever the budget, in tokens.
const COUNTED: u64 = 10_000;

/// Least that a text is cut to, in bytes.
const CUT: u64 = 100;

/// Rounds of counting in which spare room is given back; in later ones only what is decided changes.
const ROUNDS: usize = 10;

/// Tools that read a file, by the names of the agents.
const READS: [&str; 5] = ["Read", "read", "read_file", "ReadFile", "view_file"];

/// Tools that write a whole file.
const WRITES: [&str; 4] = ["Write", "write", "write_file", "create_file"];

/// What becomes of a message that is not left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    Kept,
    /// Kept whatever else is.
    Pinned,
    /// The first or the newest prompt, cut to its share.
    Cut,
    Condensed,
    /// Told by its size and how it ended.
    Masked,
}

/// A message that is decided on.
struct Piece {
    item: Item,
    /// Never touched.
    pinned: bool,
    /// Bytes of its text, escaped.
    length: usize,
    images: bool,
    /// A filter made it in the place of another.
    synthetic: bool,
    /// A later one tells the same, or how it stands now.
    superseded: bool,
}

/// What goes out, in order.
enum Slot {
    Lines(Range<u64>),
    Unmarked(crate::stream::Held),
    Piece(usize),
}

#[derive(Debug, Clone, Copy)]
struct Cost {
    tokens: u64,
    sure: bool,
}

/// The messages of the window and what each form of them costs.
struct Window<'a> {
    options: &'a Options,
    counters: &'a mut Counters,
    tape: &'a mut Tape,
    state: &'a State,
    pieces: Vec<Piece>,
    /// What is never left out, in its least form, and nothing else.
    base: Vec<Form>,
    costs: HashMap<(usize, Form), Cost>,
    room: Vec<u8>,
}

/// Decides, and hands everything on. Gives the budget where its reserves had to shrink.
///
/// # Errors
/// What is never touched exceeds the budget alone.
pub(super) fn settle(
    options: &Options,
    counters: &mut Counters,
    tape: &mut Tape,
    state: &mut State,
    aim: Budget,
    out: &mut dyn Sink,
) -> Result<Option<Budget>> {
    let mut slots = Vec::new();
    let mut pieces = Vec::new();
    let front = std::mem::take(&mut state.front);
    for entry in front.into_iter().chain(std::mem::take(&mut state.entries)) {
        slots.push(match entry {
            Entry::Lines(range) => Slot::Lines(range),
            Entry::Unmarked(held) => Slot::Unmarked(held),
            Entry::Item(item) => {
                let pinned = match item.part {
                    Part::Fixed | Part::Task | Part::Ours => true,
                    Part::Prompt => item.turn == state.turn,
                    Part::Summary | Part::Noise | Part::Step => false,
                };
                let blank =
                    Piece { item, pinned, length: 0, images: false, synthetic: false, superseded: false };
                pieces.push(blank);
                Slot::Piece(pieces.len() - 1)
            }
        });
    }
    let mut window = Window {
        options,
        counters,
        tape,
        state,
        pieces,
        base: Vec::new(),
        costs: HashMap::new(),
        room: Vec::new(),
    };
    window.look()?;
    let (forms, shrunk) = window.decide(aim)?;
    let Window { pieces, costs, mut room, .. } = window;
    let mut changes = Vec::new();
    for slot in slots {
        let at = match slot {
            Slot::Lines(range) => {
                state.queue.each(range, |lines| out.put_all(lines))?;
                continue;
            }
            Slot::Unmarked(held) => {
                out.put(&trimmed(state.queue.line(held, &mut room)?, tape)?)?;
                continue;
            }
            Slot::Piece(at) => at,
        };
        let (Some(piece), Some(form)) = (pieces.get(at), forms.get(at).copied()) else { continue };
        let item = piece.item;
        let tokens = |form| costs.get(&(at, form)).map_or(0, |c| c.tokens);
        let fate = match form {
            Form::Whole => {
                out.put(original(&state.queue, &item, &mut room)?)?;
                Some(if piece.pinned { Fate::Pinned } else { Fate::Kept })
            }
            Form::Gone if options.drop => None,
            Form::Gone => {
                let held = state.queue.line(item.held, &mut room)?;
                match item.mark {
                    Some(_) => out.put(held)?,
                    None => out.put(&trimmed(held, tape)?)?,
                }
                None
            }
            _ => {
                let line = original(&state.queue, &item, &mut room)?;
                if !options.drop {
                    out.put(&condensed(line, tape)?)?;
                }
                out.put(&forms::twin(line, form, &state.lines, tape)?)?;
                Some(match form {
                    _ if piece.pinned => Fate::Cut,
                    Form::Masked | Form::Told | Form::Superseded | Form::Bare => Fate::Masked,
                    _ => Fate::Condensed,
                })
            }
        };
        changes.push(fate);
        let left = fate.map(|fate| (fate, tokens(form)));
        state.tally.count(item.part, item.role, tokens(Form::Whole), left);
    }
    for fate in changes {
        match fate {
            Some(Fate::Kept | Fate::Pinned) => continue,
            // the original is no longer live, the twin is
            Some(Fate::Condensed | Fate::Masked | Fate::Cut) => state.messages += u64::from(!options.drop),
            None => {
                state.live -= 1;
                state.messages -= u64::from(options.drop);
            }
        }
        state.changed = true;
    }
    Ok(shrunk)
}

impl Window<'_> {
    /// Runs `take` on a message as it came.
    fn with_line<T>(
        &mut self,
        at: usize,
        take: impl FnOnce(&[u8], &mut Tape, &mut Counters) -> Result<T>,
    ) -> Result<Option<T>> {
        let Some(piece) = self.pieces.get(at) else { return Ok(None) };
        let mut room = std::mem::take(&mut self.room);
        let line = original(&self.state.queue, &piece.item, &mut room)?;
        let taken = take(line, self.tape, self.counters);
        self.room = room;
        taken.map(Some)
    }

    /// Looks at every message once: what it costs, whether it holds images, whether a later one tells the same.
    fn look(&mut self) -> Result<()> {
        let mut answers: HashMap<u64, usize> = HashMap::new();
        let (mut whole, mut parts): (HashSet<u64>, HashSet<u64>) = (HashSet::new(), HashSet::new());
        let mut planned = false;
        let family = self.options.family;
        for at in (0..self.pieces.len()).rev() {
            let Some(role) = self.pieces.get(at).map(|p| p.item.role) else { continue };
            let seen = self.with_line(at, |line, tape, counters| {
                let value = tape.parse(line).map_err(|e| Error::shape(e.to_string()))?;
                let head = Head::scanned(value)?;
                let tokens = cost::whole(role, value, &*counters.quick, family);
                let content = value.get(if role == Role::ToolCall { "input" } else { "content" });
                let length = content.map_or(0, |c| c.raw().len());
                let images =
                    content.is_some_and(|c| c.kind() == Kind::Array && c.items().any(forms::is_image));
                let id = head.tool_call_id.map(|t| super::hash_text(t));
                let file = (role == Role::ToolCall).then(|| touched(&head, value)).flatten();
                // a short one costs hardly more than its size told
                let long = content.filter(|input| role == Role::ToolCall && input.raw().len() > cost::INPUT);
                let plans = long.is_some_and(is_plan);
                let facts = (length, images, head.synthetic, plans);
                Ok((Cost { tokens, sure: counters.last }, facts, id, file))
            })?;
            let Some((cost, (length, images, synthetic, plans), id, file)) = seen else { continue };
            self.costs.insert((at, Form::Whole), cost);
            if let Some(piece) = self.pieces.get_mut(at) {
                (piece.length, piece.images, piece.synthetic) = (length, images, synthetic);
                piece.superseded = plans && planned;
            }
            planned |= plans;
            if let (Role::ToolResult, Some(id)) = (role, id) {
                answers.insert(id, at);
            }
            let Some(file) = file else { continue };
            let told = whole.contains(&file.path) || file.part.is_some_and(|part| parts.contains(&part));
            if file.read
                && told
                && let Some(answer) = id.and_then(|id| answers.get(&id)).and_then(|a| self.pieces.get_mut(*a))
            {
                answer.superseded = true;
            }
            match file.part {
                Some(part) => parts.insert(part),
                None => whole.insert(file.path),
            };
        }
        Ok(())
    }

    /// Tokens of a form, and whether that is sure.
    fn cost(&mut self, at: usize, form: Form, sure: bool) -> Result<u64> {
        if form == Form::Gone {
            return Ok(0);
        }
        if let Some(known) = self.costs.get(&(at, form)) {
            // an estimate is never wrong enough for this to fit, and to count a text without end takes its time
            let far = form == Form::Whole && known.tokens / 4 > self.options.budget.max(COUNTED);
            if known.sure || !sure || far {
                return Ok(known.tokens);
            }
        }
        let family = self.options.family;
        let Some(role) = self.pieces.get(at).map(|p| p.item.role) else { return Ok(0) };
        let lines = &self.state.lines;
        let cost = self.with_line(at, |line, tape, counters| {
            let made;
            let line = match form {
                Form::Whole => line,
                _ => {
                    made = forms::twin(line, form, lines, tape)?;
                    &made
                }
            };
            let value = tape.parse(line).map_err(|e| Error::shape(e.to_string()))?;
            let counter: &dyn Counter = if sure { counters.sure()? } else { &*counters.quick };
            let tokens = cost::whole(role, value, counter, family);
            Ok(Cost { tokens, sure: sure || counters.last })
        })?;
        let Some(cost) = cost else { return Ok(0) };
        self.costs.insert((at, form), cost);
        Ok(cost.tokens)
    }

    /// Relay's own summary takes the place that is set aside for one; what it is longer counts.
    fn ours(&self, aim: &Budget, sum: u64) -> u64 {
        sum.saturating_sub(aim.summary_reserve)
    }

    /// Tokens of these forms.
    fn total(&mut self, forms: &[Form], aim: &Budget, sure: bool) -> Result<u64> {
        let sure_or_quick = if sure { self.state.gone_sure } else { self.state.gone_quick };
        let (mut sum, mut ours) = (sure_or_quick, self.state.gone_ours);
        for (at, form) in forms.iter().enumerate() {
            let cost = self.cost(at, *form, sure)?;
            match self.pieces.get(at).map(|p| p.item.part) {
                Some(Part::Ours) => ours = ours.saturating_add(cost),
                _ => sum = sum.saturating_add(cost),
            }
        }
        Ok(sum.saturating_add(self.ours(aim, ours)))
    }

    /// Finds a form for every message.
    fn decide(&mut self, aim: Budget) -> Result<(Vec<Form>, Option<Budget>)> {
        let exact = self.options.tokenizer != crate::tokens::Tokenizer::Simple;
        let limit = self.options.safe(self.state.room, exact);
        let whole = vec![Form::Whole; self.pieces.len()];
        let quick = self.total(&whole, &aim, false)?;
        let far = self.options.safe(self.state.room, self.counters.last && exact);
        if quick <= far {
            return Ok((whole, None));
        }
        // an estimate is never this wrong
        if quick / 4 <= limit && self.total(&whole, &aim, true)? <= limit {
            return Ok((whole, None));
        }
        let mut cap = self.state.cap;
        let (mut pinned, mut least) = self.pinned(cap, false, &aim)?;
        // two long prompts leave room for what was said about them
        while least > limit / 3 * 2 && cap > (limit / 4).max(CUT / 4) {
            cap = cap / 4 * 3;
            (pinned, least) = self.pinned(cap, false, &aim)?;
        }
        self.base = pinned.clone();
        if least > limit {
            let rest = self.options.budget.saturating_sub(self.options.summary_reserve.unwrap_or(0));
            let rest = self.options.safe(rest, exact);
            while least > rest && cap > 0 {
                cap /= 2;
                (pinned, least) = self.pinned(cap, true, &aim)?;
            }
            return self.shrink(pinned, least, aim, exact);
        }
        for round in 0.. {
            let forms = self.arrange(limit, &aim, round < ROUNDS)?;
            let mut news = false;
            for (at, form) in forms.iter().enumerate() {
                let known = *form == Form::Gone || self.costs.get(&(at, *form)).is_some_and(|c| c.sure);
                if !known {
                    let before = self.cost(at, *form, false)?;
                    news |= self.cost(at, *form, true)? != before;
                }
            }
            let total = self.known(&forms, &aim)?;
            if !news || (total <= limit && limit - total <= limit / FREE) {
                return Ok((forms, None));
            }
        }
        Ok((pinned, None))
    }

    /// What is never left out: whole, or of a long prompt what `cap` tokens hold. What was cut before is only cut again
    /// with `hard`. Everything else is left out. Gives the forms and what they cost.
    fn pinned(&mut self, cap: u64, hard: bool, aim: &Budget) -> Result<(Vec<Form>, u64)> {
        let mut forms = Vec::with_capacity(self.pieces.len());
        for at in 0..self.pieces.len() {
            let piece = self.pieces.get(at).filter(|p| p.pinned).map(|p| (p.item.part, p.synthetic));
            forms.push(match piece {
                Some((Part::Task | Part::Prompt, made)) if hard || !made => self.capped(at, cap)?,
                Some(_) => Form::Whole,
                None => Form::Gone,
            });
        }
        let least = self.total(&forms, aim, true)?;
        Ok((forms, least))
    }

    /// A prompt whole, or what of it `cap` tokens hold, at least its very beginning.
    fn capped(&mut self, at: usize, cap: u64) -> Result<Form> {
        let whole = self.cost(at, Form::Whole, true)?;
        if whole <= cap {
            return Ok(Form::Whole);
        }
        let form = self.filling(at, cap, u64::MAX, Form::Typed)?.unwrap_or(Form::Typed(CUT));
        Ok(if self.cost(at, form, true)? < whole { form } else { Form::Whole })
    }

    /// What is never touched does not fit beside what is set aside: that shrinks, the summary's part first.
    fn shrink(
        &self,
        pinned: Vec<Form>,
        least: u64,
        mut aim: Budget,
        exact: bool,
    ) -> Result<(Vec<Form>, Option<Budget>)> {
        // what the user sets aside stays
        let given = self.options.summary_reserve.unwrap_or(0);
        let rest = self.options.safe(self.options.budget.saturating_sub(given), exact);
        let Some(rest) = rest.checked_sub(least) else {
            let share = self.options.safety.unwrap_or(if exact { 1.0 } else { 0.9 });
            let mut smallest = (least as f64 / share) as u64;
            while self.options.safe(smallest, exact) < least {
                smallest += 1;
            }
            let smallest = smallest.saturating_add(given);
            let counted = match self.options.family {
                Family::Unknown => ", as the dearest model counts (--for AGENT: as its own does)",
                _ => "",
            };
            return Err(Error::Failed {
                what: format!(
                    "session {}: a budget of {} tokens is too small for the system prompt, the first and the newest prompt{counted}; the smallest possible budget is {smallest}",
                    self.state.id, self.options.budget
                ),
                hint: None,
            });
        };
        aim.note_reserve = aim.note_reserve.min(rest);
        if self.options.summary_reserve.is_none() {
            aim.summary_reserve = aim.summary_reserve.min(rest - aim.note_reserve);
        }
        Ok((pinned, Some(aim)))
    }

    /// Sacrifices in order until the costs, as far as they are known, are within the limit.
    fn arrange(&mut self, limit: u64, aim: &Budget, give: bool) -> Result<Vec<Form>> {
        let count = self.pieces.len();
        let mut plan = Plan { forms: vec![Form::Whole; count], total: 0, limit };
        for (form, base) in plan.forms.iter_mut().zip(&self.base).filter(|(_, base)| **base != Form::Gone) {
            *form = *base;
        }
        plan.total = self.known(&plan.forms, aim)?;
        let newest = self.state.turn;
        let all: Vec<usize> =
            (0..count).filter(|at| self.pieces.get(*at).is_some_and(|p| !p.pinned)).collect();
        let old = |p: &Piece| p.item.turn < newest;
        let chosen = |window: &Self, take: &dyn Fn(&Piece) -> bool| -> Vec<usize> {
            all.iter().copied().filter(|at| window.pieces.get(*at).is_some_and(take)).collect()
        };
        if plan.fits() {
            return Ok(plan.forms);
        }
        for at in chosen(self, &|p| p.item.part == Part::Noise && old(p)) {
            self.lower(&mut plan, at, Form::Gone)?;
        }
        // it costs nothing, but who trims wants it gone
        for at in chosen(self, &|p| p.item.role == Role::Reasoning && old(p)) {
            if let Some(form) = plan.forms.get_mut(at) {
                *form = Form::Gone;
            }
        }
        for at in chosen(self, &|p| p.images && old(p)) {
            self.lower(&mut plan, at, Form::Plain)?;
        }
        for at in chosen(self, &|p| p.item.role == Role::ToolCall && p.superseded) {
            self.lower(&mut plan, at, Form::Bare)?;
        }
        let results = chosen(self, &|p| p.item.role == Role::ToolResult);
        let newest_results = self.protect(&mut plan, &results, aim)?;
        let results = results.get(..newest_results).unwrap_or_default();
        for at in results {
            if self.pieces.get(*at).is_some_and(|p| p.superseded) {
                self.lower(&mut plan, *at, Form::Superseded)?;
            }
        }
        for form in [Form::Condensed(CONDENSED), Form::Told, Form::Masked] {
            for at in results {
                self.lower(&mut plan, *at, form)?;
            }
        }
        for at in chosen(self, &|p| p.item.role == Role::ToolCall && !p.superseded) {
            self.lower(&mut plan, at, Form::Short)?;
        }
        if limit <= SMALL {
            self.part(&mut plan, &all)?;
        }
        let mut left_out = self.leave_out(&mut plan, &all, aim)?;
        if give {
            if plan.spare() >= plan.limit / 16 {
                self.readmit(&mut plan, &mut left_out, 1)?;
            }
            self.give_back(&mut plan, &all)?;
            // where nothing else takes it
            self.readmit(&mut plan, &mut left_out, READMITTED)?;
            self.give_back(&mut plan, &all)?;
            self.give_prompts_back(&mut plan)?;
        }
        Ok(plan.forms)
    }

    /// Tokens of these forms, each as well as it is known.
    fn known(&mut self, forms: &[Form], aim: &Budget) -> Result<u64> {
        let (mut sum, mut ours) = (self.state.gone_sure, self.state.gone_ours);
        for (at, form) in forms.iter().enumerate() {
            let cost = self.cost(at, *form, false)?;
            match self.pieces.get(at).map(|p| p.item.part) {
                Some(Part::Ours) => ours = ours.saturating_add(cost),
                _ => sum = sum.saturating_add(cost),
            }
        }
        Ok(sum.saturating_add(self.ours(aim, ours)))
    }

    /// Gives a message a form that costs less, if it does and is still needed.
    fn lower(&mut self, plan: &mut Plan, at: usize, form: Form) -> Result<()> {
        if plan.fits() {
            return Ok(());
        }
        let Some(now) = plan.forms.get(at).copied().filter(|now| *now != Form::Gone) else { return Ok(()) };
        let (before, after) = (self.cost(at, now, false)?, self.cost(at, form, false)?);
        if after < before {
            plan.set(at, form, before, after);
        }
        Ok(())
    }

    /// The newest results stay whole while they leave half of the room; gives how many others there are.
    fn protect(&mut self, plan: &mut Plan, results: &[usize], aim: &Budget) -> Result<usize> {
        let base = std::mem::take(&mut self.base);
        let mut share = plan.limit.saturating_sub(self.known(&base, aim)?) / 2;
        self.base = base;
        let mut others = results.len();
        let keep = usize::try_from(self.options.keep_tools).unwrap_or(usize::MAX);
        for at in results.iter().rev().take(keep) {
            let long = self.pieces.get(*at).is_some_and(|p| p.length > WHOLE);
            let form = match long && self.options.family == Family::OpenAi {
                // the client would cut it itself, and with less care
                true => Form::Condensed(MOST),
                false => Form::Whole,
            };
            let cost = self.cost(*at, form, false)?;
            if cost > share {
                break;
            }
            if form != Form::Whole {
                let before = self.cost(*at, Form::Whole, false)?;
                plan.set(*at, form, before, cost);
            }
            share -= cost;
            others -= 1;
        }
        // one that is too long for that gets what is left of the share
        let kept = results.len() - others;
        if kept < keep
            && let Some(at) = others.checked_sub(1).and_then(|n| results.get(n))
            && let Some(form) = self.filling(*at, share, MOST, Form::Condensed)?
        {
            let (before, after) = (self.cost(*at, Form::Whole, false)?, self.cost(*at, form, false)?);
            plan.set(*at, form, before, after);
            others -= 1;
        }
        Ok(others)
    }

    /// A condensed form that costs at most `room` tokens, and not much less.
    fn filling(&mut self, at: usize, room: u64, most: u64, form: fn(u64) -> Form) -> Result<Option<Form>> {
        let length = self.pieces.get(at).map_or(0, |p| p.length as u64);
        let mut bytes = room.saturating_mul(3).min(most);
        let (mut fits, mut exceeds) = (0, most.saturating_add(1));
        for _ in 0..10 {
            if bytes < CUT {
                break;
            }
            let cost = self.cost(at, form(bytes), true)?;
            if cost <= room {
                fits = bytes;
                if room - cost <= room / 64 || bytes >= length {
                    break;
                }
            } else {
                exceeds = bytes;
            }
            if exceeds - fits <= 32 {
                break;
            }
            // in proportion, or half-way where that leads nowhere new
            let guess = u128::from(bytes) * u128::from(room) * 99 / 100 / u128::from(cost.max(1));
            bytes = u64::try_from(guess).unwrap_or(u64::MAX);
            if bytes <= fits || bytes >= exceeds {
                bytes = fits + (exceeds - fits) / 2;
            }
        }
        Ok((fits > 0).then_some(form(fits)))
    }

    /// Leaves out calls with their results, oldest first, and keeps what was said beside them if that is more than
    /// an announcement. The newest ones stay.
    fn part(&mut self, plan: &mut Plan, all: &[usize]) -> Result<()> {
        let mut steps: Vec<(u64, Vec<usize>)> = Vec::new();
        let mut place: HashMap<u64, usize> = HashMap::new();
        for at in all {
            let Some(item) = self.pieces.get(*at).map(|p| p.item).filter(|i| i.part == Part::Step) else {
                continue;
            };
            let n = *place.entry(item.unit).or_insert_with(|| {
                steps.push((item.unit, Vec::new()));
                steps.len() - 1
            });
            if let Some((_, members)) = steps.get_mut(n) {
                members.push(*at);
            }
        }
        let is_tool = |window: &Self, at: usize| {
            window.pieces.get(at).is_some_and(|p| matches!(p.item.role, Role::ToolCall | Role::ToolResult))
        };
        steps.retain(|(_, members)| members.iter().any(|at| is_tool(self, *at)));
        let newest = steps.len().saturating_sub(STEPS);
        for (_, members) in steps.iter().take(newest) {
            if plan.fits() {
                break;
            }
            let said: usize = members
                .iter()
                .filter(|at| !is_tool(self, **at))
                .map(|at| self.pieces.get(*at).map_or(0, |p| p.length))
                .sum();
            for at in members {
                // all of the calls or none, so that no result is left alone
                let Some(now) = plan.forms.get(*at).copied() else { continue };
                if said <= ANNOUNCED || is_tool(self, *at) {
                    let cost = self.cost(*at, now, false)?;
                    plan.set(*at, Form::Gone, cost, 0);
                }
            }
        }
        Ok(())
    }

    /// Gives a cut prompt what room nothing else takes.
    fn give_prompts_back(&mut self, plan: &mut Plan) -> Result<()> {
        for at in (0..self.pieces.len()).rev() {
            let Some(now @ Form::Typed(_)) = plan.forms.get(at).copied() else { continue };
            if plan.spare() < 2 * plan.little() {
                break;
            }
            let before = self.cost(at, now, false)?;
            let room = plan.spare().saturating_add(before);
            let better = match self.cost(at, Form::Whole, true)? <= room {
                true => Some(Form::Whole),
                false => self.filling(at, room, u64::MAX, Form::Typed)?,
            };
            if let Some(form) = better {
                let after = self.cost(at, form, true)?;
                if after > before && after <= room {
                    plan.set(at, form, before, after);
                }
            }
        }
        Ok(())
    }

    /// Leaves out whole turns, oldest first, of each its steps before its prompt. Gives the messages of each step
    /// or prompt that is left out.
    fn leave_out(&mut self, plan: &mut Plan, all: &[usize], aim: &Budget) -> Result<Vec<Vec<usize>>> {
        if plan.fits() {
            return Ok(Vec::new());
        }
        let newest_summary = self.state.newest_summary;
        let base = std::mem::take(&mut self.base);
        let free = plan.limit.saturating_sub(self.known(&base, aim)?);
        self.base = base;
        let mut units: Vec<(u64, u64, bool)> = Vec::new();
        let mut members: HashMap<u64, Vec<usize>> = HashMap::new();
        for at in all {
            let Some(piece) = self.pieces.get(*at) else { continue };
            let item = piece.item;
            if item.part == Part::Summary && item.unit == newest_summary {
                let cost = self.cost(*at, Form::Whole, false)?;
                // the newest summary goes last, but it must not crowd out everything else
                if cost > free / 2 {
                    let form = self.filling(*at, free / 4, u64::MAX, Form::Condensed)?.unwrap_or(Form::Gone);
                    self.lower(plan, *at, form)?;
                }
                continue;
            }
            let found = members.entry(item.unit).or_default();
            if found.is_empty() {
                units.push((item.turn, item.unit, item.part == Part::Prompt));
            }
            found.push(*at);
        }
        units.sort_by_key(|(turn, unit, prompt)| (*turn, *prompt, *unit));
        let mut left_out = Vec::new();
        for (_, unit, _) in units {
            if plan.fits() {
                break;
            }
            let messages = members.remove(&unit).unwrap_or_default();
            for at in &messages {
                let Some(now) = plan.forms.get(*at).copied() else { continue };
                let cost = self.cost(*at, now, false)?;
                plan.set(*at, Form::Gone, cost, 0);
            }
            left_out.push(messages);
        }
        Ok(left_out)
    }

    /// Takes what was left out last back in, its texts cut, as long as it fits.
    fn readmit(&mut self, plan: &mut Plan, left_out: &mut Vec<Vec<usize>>, most: usize) -> Result<()> {
        for _ in 0..most {
            let Some(messages) = left_out.last().filter(|_| plan.spare() >= 2 * plan.little()) else { break };
            let mut found = None;
            for call in [Form::Short, Form::Bare] {
                if found.is_none() {
                    found = self.fitting(plan.spare(), messages, call)?;
                }
            }
            let Some(forms) = found else { break };
            for (at, form) in forms {
                let cost = self.cost(at, form, true)?;
                plan.set(at, form, 0, cost);
            }
            left_out.pop();
        }
        Ok(())
    }

    /// The forms in which a step or prompt fits into the room, its calls in this form, if there are any.
    fn fitting(
        &mut self,
        mut room: u64,
        messages: &[usize],
        call: Form,
    ) -> Result<Option<Vec<(usize, Form)>>> {
        let mut texts = Vec::new();
        let mut forms = Vec::new();
        for at in messages {
            let Some(piece) = self.pieces.get(*at) else { continue };
            let form = match piece.item.role {
                Role::ToolCall => call,
                Role::ToolResult => Form::Masked,
                Role::Reasoning => continue,
                _ => {
                    texts.push(*at);
                    continue;
                }
            };
            let form = match self.cost(*at, Form::Whole, true)? <= self.cost(*at, form, true)? {
                true => Form::Whole,
                false => form,
            };
            let cost = self.cost(*at, form, true)?;
            let Some(left) = room.checked_sub(cost) else { return Ok(None) };
            room = left;
            forms.push((*at, form));
        }
        let share = texts.len().max(1) as u64;
        for at in texts {
            let form = match self.cost(at, Form::Whole, true)? <= room / share {
                true => Some(Form::Whole),
                false => self.filling(at, room / share, u64::MAX, Form::Condensed)?,
            };
            let Some(form) = form else { return Ok(None) };
            room = room.saturating_sub(self.cost(at, form, true)?);
            forms.push((at, form));
        }
        Ok(Some(forms))
    }

    /// Hands spare room back, newest first.
    fn give_back(&mut self, plan: &mut Plan, all: &[usize]) -> Result<()> {
        // what the client would cut is cut with more care here; where the target is not known, only room that nothing
        // else needs goes to it
        let mut rounds = vec![(false, MOST), (true, MOST)];
        if self.options.family != Family::OpenAi {
            rounds.push((true, u64::MAX));
        }
        for (fill, most) in rounds {
            for at in all.iter().rev().copied() {
                if plan.spare() < plan.little() {
                    return Ok(());
                }
                let Some(piece) = self.pieces.get(at) else { continue };
                let result = piece.item.role == Role::ToolResult;
                let whole = !result
                    || piece.length <= WHOLE
                    || most > MOST
                    || self.options.family == Family::Anthropic;
                let Some(now) = plan.forms.get(at).copied() else { continue };
                let told_later = piece.superseded && now == Form::Bare;
                if told_later || matches!(now, Form::Whole | Form::Superseded | Form::Gone) {
                    continue;
                }
                let cut = matches!(now, Form::Condensed(_));
                let before = self.cost(at, now, false)?;
                let room = plan.spare().saturating_add(before);
                let mut better = None;
                if whole && self.cost(at, Form::Whole, false)? <= room {
                    better = Some(Form::Whole);
                } else if fill && (result || cut) {
                    better = self.filling(at, room, if result { most } else { u64::MAX }, Form::Condensed)?;
                } else if result && !cut {
                    better = Some(Form::Condensed(CONDENSED));
                }
                if let Some(form) = better {
                    let after = self.cost(at, form, false)?;
                    if after > before && after <= room {
                        plan.set(at, form, before, after);
                    }
                }
            }
        }
        Ok(())
    }
}

/// The forms chosen so far.
struct Plan {
    forms: Vec<Form>,
    total: u64,
    limit: u64,
}

impl Plan {
    fn fits(&self) -> bool {
        self.total <= self.limit
    }

    fn spare(&self) -> u64 {
        self.limit.saturating_sub(self.total)
    }

    /// Room that is not worth giving back, in tokens.
    fn little(&self) -> u64 {
        (self.limit / 100).clamp(SPARE.0, SPARE.1)
    }

    fn set(&mut self, at: usize, form: Form, before: u64, after: u64) {
        if let Some(now) = self.forms.get_mut(at) {
            *now = form;
            self.total = self.total.saturating_sub(before).saturating_add(after);
        }
    }
}

/// The file that a call reads or writes.
struct Touched {
    path: u64,
    /// The path with the part of the file; `None`: all of it.
    part: Option<u64>,
    read: bool,
}

/// Whether the input of a call holds a plan, each step of it.
fn is_plan(input: Value<'_>) -> bool {
    PLANS.iter().filter_map(|key| input.get(key)).any(|plan| {
        plan.kind() == Kind::Array
            && plan.items().all(|step| step.kind() == Kind::Object && step.get("status").is_some())
    })
}

fn touched(head: &Head<'_>, value: Value<'_>) -> Option<Touched> {
    let name = head.tool_name?;
    let read = READS.iter().any(|known| name == **known);
    if !read && !WRITES.iter().any(|known| name == **known) {
        return None;
    }
    let input = value.get("input")?;
    let path = ["file_path", "path", "absolute_path"].iter().find_map(|key| input.get(key)?.text())?.decode();
    let range: Vec<String> = ["offset", "limit", "view_range", "start_line", "end_line", "pages"]
        .iter()
        .filter_map(|key| {
            input
                .get(key)
                .filter(|v| !v.is_null())
                .map(|v| format!("{key}{}", String::from_utf8_lossy(v.raw())))
        })
        .collect();
    let part = (!range.is_empty()).then(|| hash(format!("{path}\n{}", range.join(",")).as_bytes()));
    Some(Touched { path: hash(path.as_bytes()), part, read })
}
