//! Puts a summary of what was left out in front of what is kept.
//!
//! The summary is a ledger made by rules, the same for the same input: what the user asked and ruled, how plan,
//! files, commands and errors stand, and what the model found. *All* records are read, kept and left out ones, so
//! that states are those of the end; the summary then tells what the kept ones do not. Where it is asked for, each line
//! names the records that say so, `(#seq)`; `(#0)` is the session's own. Nothing is told by language: sections come from the
//! structure of the records, words of English and Chinese only add weight.
//!
//! | part | from |
//! |---|---|
//! | goal, newest request | the first prompt that says what the work is and the newest one, as far as they fit; what was done for the latter |
//! | where it stands | the last message of the model, quoted; if that is brief, also the last long one; newest commits |
//! | pending | the open steps that the model kept (TodoWrite, update_plan, TaskCreate), what its last messages call open |
//! | rules, what else the user said | the other prompts, an answer with what it answers; words in refused calls; the instructions of the project; what a later prompt took back is left out |
//! | decisions, findings, dead ends | sentences of the model that name something exact or give a cause; documents that it wrote; changes that were taken back |
//! | files, commands, errors | calls and their results: the last state of each, what a change was for, what a check said last |
//! | environment | the session record; the folder of the work, the branch as git said it last |
//!
//! Earlier summaries of relay and its notes are merged into the new one and marked `summarized`. Harness text and
//! messages that are no part of the conversation (other branches, subagents, noise) are passed over.
//!
//! What fits is chosen by worth for each token ([`choose`]): every line has a worth of its own and that of the names
//! in it, which is how likely the session goes on to use them (recent, rare, not in what is kept). Where records are
//! named, up to 15 % go to names behind the lines of files and commands: what changes put in, what outputs hold again
//! and again. Left out whatever the room: headings, questions, announcements, praise, repeats.
//! Sizes are o200k tokens, never less than one for each wide character and one for four others.
//!
//! Held: the ledger, some 50 bytes for each token of the summary and at most 2 MB on names; every record behind
//! the session's in a [`Queue`], because the summary stands before them.

mod calls;
mod choose;
mod docs;
mod faults;
mod findings;
mod ledger;
mod prompts;
mod prose;
mod runs;
mod tell;
mod terms;
mod words;
mod work;

#[cfg(test)]
mod tests;

use super::Filter;
use super::ends::tail;
use super::redact::detect::cut_before;
use crate::json::{Tape, Text, Value, write_string};
use crate::record::{
    Budget, By as Author, Draft, End, Error, Harness, Kind, Origin, Reason, Record, Result, Role, Session,
    Status, number, with_fields,
};
use crate::stream::{Queue, Sink};
use crate::tokens::{Counter, Exact, Family};
use calls::Call;
use choose::Print;
use ledger::{Earlier, Ledger};
use prompts::Prompt;
pub use prose::{Exec, Redact};
use terms::By;
pub use words::Language;
use words::Section;
use work::{At, Wanted};

/// Size of a summary when neither the options nor the session tell one, in tokens.
const SIZE: u64 = 2_000;

/// What frames a message, in tokens.
const FRAME: u64 = 8;

/// Of a tool result, so many bytes are looked at for names.
const LOOKED: usize = 8 << 10;

/// Of the result of a command, so many bytes at its end as well.
const TAIL: usize = 2_000;

/// Fewer tokens than this may hold no summary at all.
const SCANT: u64 = 150;

/// A name in the output of a tool may be told when so many messages hold it: of those that two or three hold, the next
/// eighty messages speak of one in sixteen, of those that more do, of one in seven (public sessions, even half).
const AGAIN: u32 = 3;

/// What the summary begins with, in the manner of the clients' own.
const OPENING: [&str; 2] = [
    "Hand-over note, made by rules by relay. It stands for the part of the conversation that was left out; the newest part follows as it was.",
    "交接说明，由 relay 按规则生成。它代替被省略的对话，最近的对话原样保留在其后。",
];

/// How to summarise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Options {
    /// Size of the summary in tokens; `None`: what relay-trim set aside for it, else 2,000.
    pub max_tokens: Option<u64>,
    /// The size where neither says one, instead of 2,000.
    pub usual: Option<u64>,
    /// Tell of the whole conversation, not only of what was left out.
    pub all: bool,
    /// Name the records that each line comes from, `(#seq)`, in the stream as well; the other formats always do.
    pub cite: bool,
    /// Language of the headings; `None`: that of most of the user's text.
    pub language: Option<Language>,
    /// What comes out.
    pub format: Format,
}

/// What comes out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Format {
    /// The stream, with the summary in it.
    #[default]
    Stream,
    /// The text of the summaries alone, for people.
    Markdown,
    /// One JSON object a session.
    Json,
}

impl std::str::FromStr for Format {
    type Err = Error;

    fn from_str(word: &str) -> Result<Format> {
        match word {
            "stream" => Ok(Format::Stream),
            "md" => Ok(Format::Markdown),
            "json" => Ok(Format::Json),
            _ => Err(Error::Usage {
                what: format!("no summary comes as {word:?}"),
                hint: Some("stream, md or json".to_owned()),
            }),
        }
    }
}

/// The filter.
#[derive(Debug, Default)]
pub struct Summarize {
    options: Options,
    tape: Tape,
    queue: Queue,
    ledger: Ledger,
    state: State,
    exec: Option<Exec>,
    texts: Vec<String>,
    warnings: Vec<String>,
    untouched: u64,
}

/// What is known of the session's records.
#[derive(Debug, Default)]
struct State {
    session: Option<Vec<u8>>,
    size: u64,
    messages: u64,
    live: u64,
    /// Whether anything was left out to fit.
    trimmed: bool,
    first_seq: Option<u64>,
    first_turn: Option<u64>,
    /// Places in the queue of what the new summary merges.
    merged: Vec<u64>,
    queued: u64,
    interrupted: bool,
}

impl Summarize {
    /// A filter that has seen nothing yet.
    pub fn new(options: Options) -> Summarize {
        Summarize { options, ..Summarize::default() }
    }

    /// The texts made since the last look, when the format is not the stream: one a session.
    pub fn take_texts(&mut self) -> Vec<String> {
        std::mem::take(&mut self.texts)
    }

    /// Has a command make prose of each ledger. Where it fails, the ledger stands for itself.
    pub fn with_exec(mut self, exec: Exec) -> Summarize {
        self.exec = Some(exec);
        self
    }

    /// What went wrong without ending the work, since the last look: one line each.
    pub fn take_warnings(&mut self) -> Vec<String> {
        std::mem::take(&mut self.warnings)
    }

    /// Sessions that passed without a summary because nothing had been left out.
    pub fn untouched(&self) -> u64 {
        self.untouched
    }

    /// Whether the summary stands for all of the conversation.
    fn whole(&self) -> bool {
        self.options.all || self.options.format != Format::Stream
    }

    /// Whether lines name their records.
    fn cites(&self) -> bool {
        self.options.cite || self.options.format != Format::Stream
    }

    /// Most o200k tokens of a summary, where relay-trim said this.
    fn size(&self, budget: Option<&Budget>) -> u64 {
        let reserve = budget.map(|budget| {
            // the reserve is in tokens of the target's family; what frames a message is paid from it
            let factor = budget.factor.unwrap_or_else(|| Family::Unknown.factor()).max(1);
            let o200k = u128::from(budget.summary_reserve) * 1000 / u128::from(factor);
            u64::try_from(o200k).unwrap_or(u64::MAX).saturating_sub(FRAME)
        });
        self.options.max_tokens.or(reserve).or(self.options.usual).unwrap_or(SIZE)
    }

    fn begin(&mut self, record: &Record<'_>) -> Result<()> {
        let session: Session = record.decode()?;
        let size = self.size(session.budget.as_ref());
        let bytes = usize::try_from(size.saturating_mul(50)).unwrap_or(usize::MAX).clamp(64 << 10, 2 << 20);
        self.ledger = Ledger::new(session, bytes, self.cites());
        self.queue.clear();
        self.state = State { session: Some(record.line().to_vec()), size, ..State::default() };
        Ok(())
    }

    /// Holds a record until the summary is known.
    fn hold(&mut self, record: &Record<'_>) -> Result<()> {
        if self.options.format == Format::Stream || self.exec.is_some() {
            self.queue.push(&[record.line()])?;
            self.state.queued += 1;
        }
        Ok(())
    }

    fn message(&mut self, record: &Record<'_>) -> Result<()> {
        let head = record.head();
        self.state.messages += 1;
        self.state.live += u64::from(head.is_live());
        self.ledger.position = self.ledger.position.saturating_add(1);
        let seq = head.seq.unwrap_or(self.state.messages);
        self.state.first_seq.get_or_insert(seq);
        self.state.first_turn = self.state.first_turn.or(head.turn);
        let reason = head.reason();
        self.state.trimmed |= matches!(reason, Some(Reason::Trimmed | Reason::Condensed));
        let Some(role) = head.role else { return Ok(()) };
        if head.dropped.is_some()
            && !matches!(
                reason,
                Some(Reason::Trimmed | Reason::Condensed | Reason::Compacted | Reason::Orphan)
            )
        {
            return Ok(());
        }
        let kept = head.is_live() || reason == Some(Reason::Condensed);
        let at = At { position: self.ledger.position, seq, kept };
        if head.origin == Some(Origin::Relay) {
            return self.own(record, role, at);
        }
        if head.synthetic {
            return self.twin(record, at);
        }
        if head.origin == Some(Origin::Harness) {
            self.state.interrupted |= head.harness == Some(Harness::Interrupt);
            return match head.harness {
                Some(Harness::Environment | Harness::Command) if role == Role::User => {
                    self.of_client(record, at)
                }
                _ => Ok(()),
            };
        }
        match role {
            Role::User | Role::Assistant | Role::Summary => self.spoken(record, role, at),
            Role::ToolCall => self.call(record, at),
            Role::ToolResult => self.result(record, at),
            Role::Reasoning => {
                let value = scan(record, &mut self.tape)?;
                // no target gets it, so it keeps nothing visible
                self.ledger.names.note(&content(value, 64 << 10), at.position, false, By::Model);
                Ok(())
            }
            Role::System => Ok(()),
        }
    }

    /// A summary or a note of an earlier relay.
    fn own(&mut self, record: &Record<'_>, role: Role, at: At) -> Result<()> {
        if !record.head().is_live() || !matches!(role, Role::Summary | Role::User) {
            return Ok(());
        }
        self.state.merged.push(self.state.queued);
        if role == Role::Summary {
            let value = scan(record, &mut self.tape)?;
            if let Some(sections) = value.get("metadata").and_then(|m| m.get("sections")) {
                let told: Vec<(Section, String)> = told_in(sections).collect();
                for (section, text) in told {
                    self.earlier(section, &text, At { kept: false, ..at });
                }
                return Ok(());
            }
            // it went through a session of a client, which keeps its text alone
            let text = content(value, usize::MAX);
            let mut section = Section::Findings;
            for line in text.lines() {
                if let Some(heading) = line.strip_prefix("## ") {
                    section = Section::of_heading(heading.trim()).unwrap_or(Section::Findings);
                } else if let Some(line) = line.strip_prefix("- ").or_else(|| line.strip_prefix("> ")) {
                    let text = line.rsplit_once(" (#").map_or(line, |(text, _)| text);
                    self.earlier(section, text, At { kept: false, ..at });
                }
            }
        }
        Ok(())
    }

    /// Text of the client: commands that the user ran by hand, instructions of the project, the sandbox.
    fn of_client(&mut self, record: &Record<'_>, at: At) -> Result<()> {
        let value = scan(record, &mut self.tape)?;
        let text = content(value, 64 << 10);
        let inside = |tag: &str| {
            let (_, rest) = text.split_once(&format!("<{tag}>"))?;
            Some(rest.split_once(&format!("</{tag}>")).map_or(rest, |(inside, _)| inside))
        };
        let said = |text: &str| prompts::clipped(&work::one_line(text), 120, 120);
        if let Some(command) = inside("bash-input").or_else(|| inside("user_shell_command")) {
            self.ledger.by_hand.push((format!("`{}`", said(command)), at));
        } else if let Some(output) = inside("bash-stdout") {
            let output = faults::strip_colours(output);
            if let (Some((last, _)), false) = (self.ledger.by_hand.last_mut(), output.trim().is_empty()) {
                last.push_str(&format!(" → {}", said(&output)));
            }
        }
        if self.ledger.by_hand.len() > 40 {
            self.ledger.by_hand.remove(0);
        }
        if inside("network_access").is_some_and(|access| access.trim() == "restricted") {
            self.ledger.offline = true;
        }
        if text.contains("AGENTS.md") || text.contains("<INSTRUCTIONS>") {
            self.ledger.instructions = instructions(&text).into_iter().map(|line| (line, at)).collect();
        }
        Ok(())
    }

    fn earlier(&mut self, section: Section, text: &str, at: At) {
        if self.ledger.earlier.len() < 400 {
            let text = prompts::clipped(&work::one_line(text), 480, 180);
            self.ledger.earlier.push(Earlier { section, text, at });
        }
    }

    /// A record that a filter made in the place of another: only what it keeps visible counts.
    fn twin(&mut self, record: &Record<'_>, at: At) -> Result<()> {
        if self.whole() || !at.kept {
            return Ok(());
        }
        let value = scan(record, &mut self.tape)?;
        let text = content(value, LOOKED);
        self.ledger.names.note(&text, at.position, true, By::Output);
        Ok(())
    }

    fn spoken(&mut self, record: &Record<'_>, role: Role, at: At) -> Result<()> {
        let value = scan(record, &mut self.tape)?;
        let text = content(value, 1 << 20);
        let live = record.head().is_live();
        let by = if role == Role::User { By::Call } else { By::Model };
        let looked = text.get(..prompts::floor(&text, 64 << 10)).unwrap_or("");
        self.ledger.names.note(looked, at.position, live, by);
        match role {
            Role::User if !text.trim().is_empty() => {
                let asked = prompts::asked(&text, self.ledger.findings.last().map(|m| m.text.as_str()));
                let asked = asked.filter(|_| self.ledger.findings.asks() || text.len() < 200);
                self.ledger.findings.close(words::is_denial(&text).then_some(text.as_str()));
                self.ledger.work.says("", at.seq);
                let after_stop = std::mem::take(&mut self.state.interrupted) || self.ledger.work.refused;
                self.ledger.work.refused = false;
                self.ledger.prompts.push(Prompt { seq: at.seq, text, kept: at.kept, after_stop, asked });
            }
            Role::Assistant => {
                self.ledger.work.says(&text, at.seq);
                self.ledger.findings.push(&text, at);
            }
            // the source agent's own summary: the newest stands for the ones before
            Role::Summary => {
                self.ledger.earlier.retain(|e| e.at.seq == at.seq || e.section != Section::Findings);
                let text = text.get(..prompts::floor(&text, 32 << 10)).unwrap_or("").to_owned();
                let mut found = Vec::new();
                findings::sentences(&text, |sentence| found.push(sentence.to_owned()));
                for sentence in found {
                    self.earlier(Section::Findings, &sentence, at);
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn call(&mut self, record: &Record<'_>, at: At) -> Result<()> {
        let head = record.head();
        let Some(id) = head.tool_call_id else { return Ok(()) };
        let value = scan(record, &mut self.tape)?;
        let Some(input) = value.get("input") else { return Ok(()) };
        let name = head.tool_name.map(|t| t.head(80).into_owned()).unwrap_or_default();
        let call = Call::read(&name, input, self.ledger.session.working_directory.as_deref());
        let live = head.is_live();
        self.ledger.names.note(&call.texts, at.position, live, By::Call);
        if let Some(command) = &call.command {
            self.ledger.names.note(command, at.position, live, By::Call);
        }
        self.ledger.work.call(terms::key(&id.decode()), name, call, at);
        Ok(())
    }

    fn result(&mut self, record: &Record<'_>, at: At) -> Result<()> {
        let head = record.head();
        let Some(id) = head.tool_call_id else { return Ok(()) };
        let id = terms::key(&id.decode());
        let status = head.status.unwrap_or(Status::Unknown);
        let visible = head.is_live() && !self.whole();
        let value = scan(record, &mut self.tape)?;
        let exit = value.get("exit_code").and_then(|v| std::str::from_utf8(v.raw()).ok()?.parse().ok());
        let text = match (status.is_error(), self.ledger.work.wants(id)) {
            (true, _) | (_, Wanted::All) => content(value, 1 << 20),
            (_, Wanted::Ends) => ends(value),
            (_, Wanted::Names) => content(value, LOOKED),
        };
        let looked = text.get(..prompts::floor(&text, LOOKED)).unwrap_or("");
        let mut again: Vec<&str> = Vec::new();
        self.ledger.names.note_each(looked, at.position, visible, By::Output, |name, count| {
            if count >= AGAIN && again.len() < work::SEEN && !again.contains(&name) {
                again.push(name);
            }
        });
        self.ledger.work.saw(id, &again);
        self.ledger.work.result(id, status, exit, &text, at);
        Ok(())
    }

    /// The session is over: the summary, then everything held.
    fn finish(&mut self, record: &Record<'_>, out: &mut dyn Sink) -> Result<()> {
        let state = std::mem::take(&mut self.state);
        let end: End = record.decode()?;
        let wanted = (state.trimmed || self.whole()) && end.failed.is_none();
        self.ledger.findings.close(None);
        // what is never touched may have left less than was aimed at
        let size = end.budget.as_ref().map_or(state.size, |budget| self.size(Some(budget)));
        let made = if wanted { self.summary(size)? } else { None };
        if wanted && made.is_none() && size < SCANT {
            self.warnings.push(format!("the budget leaves {size} tokens for a summary: too few for one"));
        }
        self.untouched += u64::from(!wanted && end.failed.is_none());
        if self.options.format != Format::Stream {
            self.texts.extend(made.map(|made| made.text));
            self.queue.clear();
            return Ok(());
        }
        if let Some(session) = &state.session {
            out.put(session)?;
        }
        let Some(made) = made else {
            self.queue.lines(|line| out.put(line))?;
            self.queue.clear();
            return out.put(record.line());
        };
        out.put(&summary_line(&made, &state))?;
        let mut merged = state.merged.iter().peekable();
        let (mut place, mut gone) = (0u64, 0u64);
        let tape = &mut self.tape;
        self.queue.lines(|line| {
            let here = merged.next_if_eq(&&place).is_some();
            place += 1;
            if !here {
                return out.put(line);
            }
            gone += 1;
            let value = tape.parse(line).map_err(|e| Error::shape(e.to_string()))?;
            out.put(&with_fields(line, value, &[("dropped", b"\"summarized\"")]))
        })?;
        self.queue.clear();
        let (mut messages, mut live) = (Vec::new(), Vec::new());
        number(&mut messages, state.messages + 1);
        number(&mut live, (state.live + 1).saturating_sub(gone));
        let value = record.parse(&mut self.tape)?;
        out.put(&with_fields(record.line(), value, &[("messages", &messages), ("live", &live)]))
    }

    /// The summary; `None` when there is nothing to tell.
    fn summary(&mut self, size: u64) -> Result<Option<Made>> {
        let language = self.options.language.unwrap_or(match self.ledger.prompts.wide() {
            0..30 => Language::English,
            _ => Language::Chinese,
        });
        let counter = Exact::o200k().map_err(|e| Error::failed(e.to_string()))?;
        let opening = language.pick(OPENING[0], OPENING[1]);
        let print = Print { opening, language, cite: self.cites() };
        let Some(chosen) = self.choose(size, print, &counter) else { return Ok(None) };
        if self.options.format == Format::Json {
            let text = json(&self.ledger.session, language, &chosen);
            return Ok(Some(Made { text, chosen }));
        }
        let text = choose::print(&chosen, print);
        let Some(exec) = &mut self.exec else { return Ok(Some(Made { text, chosen })) };
        let text = match exec.prose(&text, &chosen, print, size, &self.queue) {
            Ok(prose) => prose::verified(&prose, &chosen, print, size, &counter),
            Err(why) => {
                self.warnings.push(format!("--exec: {why}; the summary is the ledger"));
                text
            }
        };
        Ok(Some(Made { text, chosen }))
    }

    /// The lines of a summary of at most `size` tokens; `None` when they would tell nothing.
    fn choose(&self, size: u64, print: Print<'_>, counter: &dyn Counter) -> Option<Vec<choose::Line>> {
        let whole = self.whole();
        let lines = self.ledger.lines(print.language, whole, size);
        let likely = |name| self.ledger.likely(name, whole);
        let mut chosen = choose::choose(lines, print, size, counter, &likely);
        // tokens of lines do not quite add up to those of the whole
        while choose::cost(counter, &choose::print(&chosen, print)) > size {
            chosen.pop()?;
        }
        chosen.iter().any(|line| line.section != Section::Environment).then_some(chosen)
    }
}

/// The summary as one JSON object. Every section is there, whether it has lines or not.
fn json(session: &Session, language: Language, lines: &[choose::Line]) -> String {
    let word = |text: &str| serde_json::Value::from(text);
    let mut object = serde_json::Map::new();
    object.insert("session_id".into(), word(&session.session_id));
    object.insert("source_agent".into(), word(&session.source_agent));
    object.insert("language".into(), word(language.pick("en", "zh")));
    sections(lines, &mut object);
    serde_json::Value::Object(object).to_string()
}

/// The lines of every section, each with the numbers of its records.
fn sections(lines: &[choose::Line], object: &mut serde_json::Map<String, serde_json::Value>) {
    for section in Section::ALL {
        let lines = lines.iter().filter(|line| line.section == section);
        let list = lines.map(|line| serde_json::json!({"text": line.text, "seq": line.seqs}));
        object.insert(section.key().into(), list.collect());
    }
}

/// The lines of an earlier summary, as its record has them.
fn told_in(sections: Value<'_>) -> impl Iterator<Item = (Section, String)> {
    sections.entries().filter_map(|(key, lines)| Some((Section::of_key(&key.decode())?, lines))).flat_map(
        |(section, lines)| {
            let texts =
                lines.items().filter_map(|line| Some(line.get("text")?.text()?.decode().into_owned()));
            texts.map(move |text| (section, text)).collect::<Vec<_>>()
        },
    )
}

/// A summary that has been made.
struct Made {
    text: String,
    /// What the ledger holds of it.
    chosen: Vec<choose::Line>,
}

/// The record of a summary.
fn summary_line(made: &Made, state: &State) -> Vec<u8> {
    let draft = Draft {
        by: Author::Relay,
        seq: state.first_seq,
        turn: state.first_turn,
        synthetic: true,
        ..Draft::new(Role::Summary)
    };
    let mut line = Vec::with_capacity(2 * made.text.len() + 256);
    draft.begin(&mut line);
    let mut object = serde_json::Map::new();
    sections(&made.chosen, &mut object);
    line.extend_from_slice(b",\"metadata\":{\"sections\":");
    line.extend_from_slice(serde_json::Value::Object(object).to_string().as_bytes());
    line.extend_from_slice(b"},\"content\":");
    write_string(&mut line, &made.text);
    line.push(b'}');
    line
}

fn scan<'t>(record: &Record<'t>, tape: &'t mut Tape) -> Result<Value<'t>> {
    tape.parse_opaque(record.line(), &["extra"]).map_err(|e| Error::shape(e.to_string()))
}

/// The beginning of a text, whole words of about `limit` bytes: half a secret is none to relay-redact.
fn head(text: Text<'_>, limit: usize) -> String {
    let mut head = text.head(limit).into_owned();
    if text.raw().len() > limit && head.len() + 4 > limit {
        head.truncate(cut_before(None, &head, head.len().saturating_sub(1)));
    }
    head
}

/// The beginning and the end of a record's content: what a run says last is how it went.
fn ends(value: Value<'_>) -> String {
    let mut text = content(value, LOOKED);
    let Some(raw) = value.get("content").and_then(|c| c.text()).map(|t| t.raw()) else { return text };
    if raw.len() > LOOKED + TAIL {
        text.push('\n');
        text.push_str(&tail(raw, TAIL));
    }
    text
}

/// Lines of a project's instructions that forbid or demand something.
fn instructions(text: &str) -> Vec<String> {
    const RULES: [&str; 9] =
        ["never ", "do not ", "don't ", "must not", "must never", "不要", "禁止", "不得", "严禁"];
    let lines = text.lines().map(findings::plain).filter(|line| {
        let lower = line.to_lowercase();
        (20..240).contains(&line.len()) && RULES.iter().any(|words| lower.contains(words))
    });
    lines.take(8).map(|line| work::one_line(&line)).collect()
}

/// The text of a record's content, up to about `limit` bytes.
fn content(value: Value<'_>, limit: usize) -> String {
    let Some(content) = value.get("content") else { return String::new() };
    if let Some(text) = content.text() {
        return head(text, limit);
    }
    let mut out = String::new();
    for block in content.items() {
        if let Some(text) = block.get("text").and_then(|t| t.text())
            && out.len() < limit
        {
            if !out.is_empty() {
                out.push('\n');
            }
            out.push_str(&head(text, limit - out.len().min(limit)));
        }
    }
    out
}

impl Filter for Summarize {
    fn record(&mut self, record: &Record<'_>, out: &mut dyn Sink) -> Result<()> {
        match record.head().kind {
            Kind::Session => self.begin(record),
            Kind::Message => {
                self.message(record)?;
                self.hold(record)
            }
            Kind::End => self.finish(record, out),
            Kind::Native | Kind::Unknown => self.hold(record),
            // the source stops at it
            Kind::Abort => out.put(record.line()),
        }
    }

    fn end(&mut self, out: &mut dyn Sink) -> Result<()> {
        // only a stream without `end`, which sources refuse, still holds anything here
        if let Some(session) = self.state.session.take() {
            out.put(&session)?;
        }
        self.queue.lines(|line| out.put(line))?;
        self.queue.clear();
        Ok(())
    }
}
