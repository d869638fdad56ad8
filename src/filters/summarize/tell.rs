//! The lines of how things stand: the last message, what is pending, files, commands, errors, findings.

use super::calls::{State, Step};
use super::choose::Line;
use super::faults;
use super::findings::{Message, is_exact, is_heading, plain};
use super::ledger::Ledger;
use super::prompts::{clipped, floor};
use super::runs::{Command, Failure};
use super::terms;
use super::words::{Language, Section, is_cause, is_praise, is_result};
use super::work::{At, Fate, File, one_line};
use crate::record::Status;
use crate::tokens::estimate;
use std::collections::HashMap;

/// Files named as changed since the newest request.
const SINCE: usize = 6;

/// Most tokens of the last message of the model.
const STATE: u64 = 500;

/// Prompts after which a plan is told as old, and after which its steps are told in one line.
const OLD: usize = 3;
const VERY_OLD: usize = 12;

/// Open errors that are told, the newest ones.
const OPEN: usize = 8;

/// Points that a message calls open, and the longest of them, in bytes.
const POINTS: usize = 8;
const POINT: usize = 220;

/// Short answers to commands that only look, the newest ones.
const LOOKS: usize = 8;

/// Files that were only read: so many are named.
const READ: usize = 8;

/// How a command went.
fn outcome(status: Status, language: Language) -> &'static str {
    match status {
        Status::Ok => language.pick("ok", "成功"),
        Status::Error => language.pick("FAILED", "失败"),
        Status::Unknown => language.pick("ran", "已运行"),
    }
}

impl Ledger {
    /// What was done for the newest request so far, so that it is not done again: the files that changed last and
    /// how the last command went.
    pub(super) fn since_line(&self, language: Language, whole: bool, lines: &mut Vec<Line>) {
        let prompts = self.prompts.all();
        let Some(request) = prompts.last().filter(|_| prompts.len() > 1) else { return };
        let told = |at: At| at.seq > request.seq && (whole || !at.kept);
        let mut files: Vec<_> =
            self.work.files.values().filter(|f| f.fate != Fate::Read && told(f.at)).collect();
        files.sort_by(|a, b| (b.at, &b.path).cmp(&(a.at, &a.path)));
        let commands = self.work.runs.commands.values();
        let commands = commands.filter(|c| !c.looks && told(c.at) && !is_no_news(&c.text));
        let command = commands.max_by(|a, b| (a.at, &a.text).cmp(&(b.at, &b.text)));
        let mut parts = Vec::new();
        if !files.is_empty() {
            let newest = files.iter().take(SINCE).map(|f| format!("`{}`", self.path(&f.path)));
            let more = match files.len().saturating_sub(SINCE) {
                0 => String::new(),
                more => format!(" + {more}"),
            };
            let list = newest.collect::<Vec<_>>().join(", ");
            parts.push(format!("{} {list}{more}", language.pick("changed", "改动")));
        }
        if let Some(command) = command {
            parts.push(format!("{} `{}`", outcome(command.status, language), command.text));
        }
        if parts.is_empty() {
            return;
        }
        let text = format!("{}: {}", language.pick("since then", "此后"), parts.join("; "));
        let mut line = Line { worth: 6.0, ..Line::new(Section::Request, text, request.seq, 0.0) };
        line.refer(files.iter().take(SINCE).map(|f| f.at.seq).chain(command.map(|c| c.at.seq)));
        lines.push(line);
    }

    /// The last message of the model; where that only announces something, also the one that ended the turn before.
    pub(super) fn state_lines(&self, language: Language, whole: bool, size: u64, lines: &mut Vec<Line>) {
        let Some(last) = self.findings.last() else { return };
        let room = STATE.min(size / 4);
        let told = |message: &Message| whole || !message.at.kept;
        let mut left = room;
        if told(last) {
            let text = quoted(&last.text, left);
            left = left.saturating_sub(estimate(&text));
            lines.push(Line::quote(Section::State, text, last.at.seq, 300.0));
        }
        let brief = last.text.len() < 300;
        let before = self.findings.closings().rev().find(|m| m.at != last.at && m.text.len() >= 200);
        if let Some(before) = before.filter(|m| brief && told(m) && left > room / 3) {
            let text = quoted(&before.text, left);
            lines.push(Line::quote(Section::State, text, before.at.seq, 60.0));
        }
        let commits: Vec<_> = self.work.runs.commits.iter().filter(|(_, at)| whole || !at.kept).collect();
        if let Some((_, at)) = commits.last() {
            let list: Vec<String> = commits.iter().rev().map(|(text, _)| text.clone()).collect();
            let text = format!("{}: {}", language.pick("newest commits", "最新提交"), list.join("; "));
            lines.push(Line::new(Section::State, text, at.seq, 6.0));
        }
    }

    /// What is still to be done: open steps of the plan, and what the last messages call open.
    pub(super) fn pending_lines(&self, language: Language, whole: bool, lines: &mut Vec<Line>) {
        let at = self.work.plan.iter().map(|(_, at)| *at).max().unwrap_or_default();
        let later = self.prompts.all().iter().filter(|p| p.seq > at.seq).count();
        let open: Vec<_> = self.work.plan.iter().filter(|(step, _)| step.state != State::Done).collect();
        let done: Vec<_> = self.work.plan.iter().filter(|(step, _)| step.state == State::Done).collect();
        let told = |at: &At| whole || !at.kept;
        if later >= VERY_OLD && !open.is_empty() && told(&at) {
            let marked = |step: &Step| {
                let mark = match step.state {
                    State::Doing => "[~]",
                    State::Pending => "[ ]",
                    State::Done => "[x]",
                };
                format!("{mark} {}", one_line(&step.text))
            };
            let list: Vec<String> = open.iter().chain(&done).map(|(step, _)| marked(step)).collect();
            let text = match language {
                Language::English => {
                    format!("a plan made {later} prompts ago, perhaps done or dropped: {}", list.join("; "))
                }
                Language::Chinese => {
                    format!("{later} 条提示之前的计划，可能已完成或放弃：{}", list.join("；"))
                }
            };
            lines.push(Line::new(Section::Plan, clipped(&text, 400, 0), at.seq, 3.5));
        } else {
            let old = match (later >= OLD, language) {
                (false, _) => String::new(),
                (true, Language::English) => format!(" (planned {later} prompts ago)"),
                (true, Language::Chinese) => format!("（{later} 条提示之前的计划）"),
            };
            for (step, at) in open.iter().filter(|(_, at)| told(at)) {
                let mark = if step.state == State::Doing { "[~]" } else { "[ ]" };
                let worth = if step.state == State::Doing { 12.0 } else { 11.0 };
                let text = format!("{mark} {}{old}", one_line(&step.text));
                lines.push(Line::new(Section::Plan, text, at.seq, worth));
            }
            for (step, at) in done.iter().filter(|(_, at)| told(at) && later < OLD) {
                let text = format!("{}: [x] {}", language.pick("done", "已完成"), one_line(&step.text));
                lines.push(Line::new(Section::State, text, at.seq, 4.0));
            }
        }
        let newest = self.findings.last().map(|m| m.at);
        for message in self.findings.closings().rev().filter(|m| told(&m.at) && Some(m.at) != newest).take(2)
        {
            for point in open_points(&message.text) {
                let known = open.iter().any(|(step, _)| alike(&step.text, &point));
                if !known {
                    lines.push(Line::new(Section::Plan, format!("[ ] {point}"), message.at.seq, 4.0));
                }
            }
        }
    }

    /// A path as it is told: from the working directory. One that would lose its folder, which the record names,
    /// keeps that.
    pub(super) fn path(&self, path: &str) -> String {
        let absolute = self.work.files.get(path).is_none_or(|file| file.absolute);
        let path = one_line(path);
        let directory = self.session.working_directory.as_deref().unwrap_or("").trim_end_matches('/');
        let inside = path.strip_prefix(directory).and_then(|rest| rest.strip_prefix('/'));
        match (inside, directory.rsplit_once('/')) {
            (Some(rest), _) if !directory.is_empty() && (rest.contains('/') || !absolute) => rest.to_owned(),
            (Some(rest), Some((above, folder))) if !above.is_empty() => format!("…/{folder}/{rest}"),
            _ => path,
        }
    }

    pub(super) fn file_lines(&self, language: Language, whole: bool, lines: &mut Vec<Line>) {
        let mut files: Vec<_> = self.work.files.values().collect();
        files.sort_by(|a, b| (a.touched, &a.path).cmp(&(b.touched, &b.path)));
        let read: Vec<_> =
            files.iter().filter(|f| f.fate == Fate::Read && (whole || !f.touched.kept)).collect();
        let mut often: Vec<_> = read.iter().filter(|f| f.reads > 1).copied().collect();
        often.sort_by_key(|f| std::cmp::Reverse((f.reads.min(4), f.touched)));
        often.truncate(READ);
        if let Some(newest) = often.iter().map(|f| f.touched).max() {
            let list: Vec<String> = often.iter().map(|f| format!("`{}`", self.path(&f.path))).collect();
            let lead = language.pick("read again and again, not changed", "多次读取、未改动");
            let mut line = Line::new(Section::Files, format!("{lead}: {}", list.join(", ")), newest.seq, 2.0);
            line.refer(often.iter().map(|f| f.touched.seq));
            lines.push(line);
        }
        for file in files.into_iter().filter(|f| f.fate != Fate::Read) {
            lines.push(self.file_line(file, language, whole));
        }
    }

    fn file_line(&self, file: &File, language: Language, whole: bool) -> Line {
        let path = self.path(&file.path);
        let word = match &file.fate {
            Fate::Read => language.pick("read", "读取"),
            Fate::Created => language.pick("created", "新建"),
            Fate::Edited => language.pick("edited", "修改"),
            Fate::Deleted => language.pick("deleted", "删除"),
            Fate::Moved(_) => language.pick("moved", "移动"),
        };
        let mut text = format!("{word} `{path}`");
        if let Fate::Moved(Some(to)) = &file.fate {
            text.push_str(&format!(" → `{}`", self.path(to)));
        }
        if file.changes > 1 {
            text.push_str(&format!(" ×{}", file.changes));
        }
        let mut worth = 3.0 + 2.0 * self.recent(file.touched);
        if file.touched.kept && !whole {
            worth *= 0.15;
        }
        let gone = matches!(file.fate, Fate::Deleted | Fate::Moved(_));
        let told = !gone && !file.purpose.text.is_empty();
        if told {
            text.push_str(&format!(": {}", file.purpose.text));
            worth += 1.5;
        }
        let mut line = Line::new(Section::Files, text, file.at.seq, worth);
        line.refer(told.then_some(file.purpose.seq));
        if gone {
            return line;
        }
        for (n, (value, at)) in file.values.iter().enumerate() {
            line.text.push_str(if n == 0 { language.pick("; now ", "；现为 ") } else { ", " });
            line.text.push_str(value);
            line.refer([at.seq]);
            line.worth += 1.0;
        }
        line.more.extend(file.names.iter().chain(&file.seen).rev().cloned());
        line
    }

    pub(super) fn command_lines(&self, language: Language, whole: bool, lines: &mut Vec<Line>) {
        let tells = |command: &Command, checks: bool| {
            // what checks the work is told even where its last run is to be seen
            let seen = command.at.kept && !whole && !checks;
            // an error tells its command itself
            let error = command.status.is_error() && self.has_error(command);
            // a script that is not told has no name
            let script = command.text.contains("<<") && !checks;
            let empty = script || (command.looks && command.said.is_empty());
            !seen && !empty && !is_no_news(&command.text) && !error
        };
        let mut commands: Vec<_> = self.work.runs.commands.values().collect();
        commands.sort_by(|a, b| (b.at, &b.text).cmp(&(a.at, &a.text)));
        // of commands that differ in numbers alone the newest stands for all that went the same way
        let mut kinds: HashMap<(u64, bool), (usize, u32)> = HashMap::new();
        let mut told = Vec::new();
        let mut looks = 0;
        for command in commands {
            let checks = faults::checks(&command.text) && !command.looks;
            if !tells(command, checks) {
                continue;
            }
            looks += usize::from(command.looks);
            if command.looks && looks > LOOKS {
                continue;
            }
            let kind = (terms::key(&faults::without_numbers(&command.text)), command.status.is_error());
            let (_, like) = kinds.entry(kind).or_insert_with(|| {
                told.push(self.command_line(command, checks, language));
                (told.len() - 1, 0)
            });
            *like += 1;
        }
        for (at, like) in kinds.into_values() {
            if let (2.., Some(line)) = (like, told.get_mut(at)) {
                let more = like - 1;
                line.text.push_str(&match language {
                    Language::English => format!(" (and {more} like it)"),
                    Language::Chinese => format!("（另有 {more} 条类似的）"),
                });
            }
        }
        lines.extend(told);
    }

    fn has_error(&self, command: &Command) -> bool {
        let told = |f: &&Failure| f.command && f.what == command.text && f.resolved.is_some();
        self.open_failures().iter().any(|f| f.what == command.text)
            || self.work.runs.failures.iter().any(|f| told(&f))
    }

    fn command_line(&self, command: &Command, checks: bool, language: Language) -> Line {
        let base = match (checks, command.status) {
            (true, _) => 5.0,
            (false, _) if command.looks => 0.5,
            (false, Status::Ok) => 2.0,
            (false, Status::Error) => 2.5,
            (false, Status::Unknown) => 1.5,
        };
        let mut text = format!("{} `{}`", outcome(command.status, language), command.text);
        if command.runs > 1 {
            text.push_str(&format!(" ×{}", command.runs));
        }
        if let (true, Some(code)) = (command.status.is_error(), command.exit) {
            text.push_str(&format!(" exit {code}"));
        }
        if !command.said.is_empty() {
            text.push_str(&format!(" → {}", command.said));
        }
        let often = f64::from(command.runs.min(5)) * 0.4;
        let worth = base + often + 1.5 * self.recent(command.at);
        let mut line = Line::new(Section::Commands, text, command.at.seq, worth);
        line.more.extend(command.seen.iter().rev().cloned());
        line
    }

    /// The errors that are open and could still matter, newest first.
    fn open_failures(&self) -> Vec<&Failure> {
        let runs = &self.work.runs;
        let told = |f: &&Failure| {
            f.resolved.is_none() && f.command && !f.looks && f.line.len() > 8 && !runs.is_banner(&f.line)
        };
        let mut open: Vec<_> = runs.failures.iter().filter(told).collect();
        open.sort_by_key(|f| std::cmp::Reverse(f.at));
        open.truncate(OPEN);
        open
    }

    pub(super) fn error_lines(&self, language: Language, whole: bool, lines: &mut Vec<Line>) {
        let open = self.open_failures();
        let hidden = |f: &Failure| !whole && f.at.kept && f.resolved.is_none_or(|at| at.kept);
        for failure in open.iter().filter(|f| !hidden(f)) {
            lines.push(self.error_line(failure, language));
        }
        let banner = |f: &Failure| self.work.runs.is_banner(&f.line);
        for failure in self.work.runs.failures.iter().filter(|f| !hidden(f) && !banner(f)) {
            // an error of a tool of the model's own matters only while the work is at it
            let tool = !failure.command && failure.resolved.is_none() && self.recent(failure.at) > 0.9;
            if (failure.command && failure.resolved.is_some() && faults::is_fault(&failure.line)) || tool {
                lines.push(self.error_line(failure, language));
            }
        }
        for end in &self.work.dead_ends {
            let files: Vec<String> = end.files.iter().map(|(f, _)| format!("`{}`", self.path(f))).collect();
            let mut text = format!(
                "{}: `{}` {} {}",
                language.pick("dead end", "死胡同"),
                end.command,
                language.pick("took back", "撤回了"),
                files.join(", ")
            );
            if !end.purpose.is_empty() {
                text.push_str(&format!(" ({})", end.purpose));
            }
            let mut line = Line::new(Section::Findings, text, end.at.seq, 4.0);
            line.refer(end.files.iter().map(|(_, seq)| *seq));
            lines.push(line);
        }
    }

    fn error_line(&self, failure: &Failure, language: Language) -> Line {
        let recent = self.recent(failure.at);
        let worth = match (failure.command, failure.resolved.is_some()) {
            (true, false) => 9.0 + 6.0 * recent,
            // without a change that did it there is nothing to learn
            (true, true) if failure.by.is_empty() => 0.6 + 0.6 * recent,
            (true, true) => 2.5 + 1.5 * recent,
            (false, _) => 0.8 + recent,
        };
        let state = match failure.resolved {
            None => language.pick("open", "未解决"),
            Some(_) => language.pick("resolved", "已解决"),
        };
        let what = match failure.what.split_once(' ') {
            Some((tool, path)) if !failure.command => format!("{tool} {}", self.path(path)),
            _ => failure.what.clone(),
        };
        let mut text = format!("{state}: `{what}`");
        if failure.resolved.is_none() {
            text.push_str(language.pick(" failed", " 失败"));
        }
        if failure.times > 1 {
            text.push_str(&format!(" ×{}", failure.times));
        }
        text.push_str(&format!(": {}", failure.line));
        let files: Vec<String> = failure.by.iter().map(|(f, _)| format!("`{}`", self.path(f))).collect();
        match (failure.resolved.is_some(), files.is_empty(), language) {
            (false, _, _) => {}
            (true, true, _) => text.push_str(language.pick(" → ok now", " → 现已成功")),
            (true, false, Language::English) => {
                text.push_str(&format!(" → ok now, after work on {}", files.join(", ")))
            }
            (true, false, Language::Chinese) => {
                text.push_str(&format!(" → 在处理 {} 之后成功", files.join("、")))
            }
        }
        let mut line = Line::new(Section::Errors, text, failure.at.seq, worth);
        line.refer(failure.by.iter().map(|(_, seq)| *seq).chain([failure.called]));
        line.refer(failure.resolved.map(|at| at.seq));
        line
    }

    /// What the model wrote down in documents counts as said.
    pub(super) fn document_lines(&self, whole: bool, lines: &mut Vec<Line>) {
        for said in self.work.documented.iter().filter(|d| whole || !d.at.kept) {
            let text = match said.path.is_empty() {
                true => said.text.clone(),
                false => format!("`{}`: {}", self.path(&said.path), said.text),
            };
            lines.push(Line::new(Section::Findings, text, said.at.seq, 3.0 + 2.0 * self.recent(said.at)));
        }
    }

    pub(super) fn finding_lines(&self, language: Language, whole: bool, lines: &mut Vec<Line>) {
        let quoted = self.findings.last().map(|m| m.at);
        let mut refuted = None;
        for finding in self.findings.all() {
            // the last message is told as a whole
            if (finding.at.kept && !whole) || Some(finding.at) == quoted {
                continue;
            }
            let recent = self.recent(finding.at);
            let cause = is_cause(&finding.text);
            let mut worth: f64 = match (finding.closing, finding.whole, finding.place) {
                (true, true, _) => 3.0,
                (true, false, 0..4) => 1.6,
                (true, false, _) => 0.8,
                (false, true, _) => 0.5,
                (false, false, _) => 0.3,
            };
            worth += match (cause, finding.closing) {
                (true, true) => 3.0,
                (true, false) => 1.8,
                (false, _) if is_result(&finding.text) => 0.6,
                (false, _) => 0.0,
            };
            if !cause && !is_exact(&finding.text) {
                if !(finding.closing && is_result(&finding.text)) {
                    continue;
                }
                worth *= 0.5;
            }
            let mut text = finding.text.clone();
            if let Some(words) = &finding.refuted {
                // told with what the user answered, once for each message
                if Some(finding.at) == refuted {
                    continue;
                }
                refuted = Some(finding.at);
                text.push_str(&match language {
                    Language::English => format!(" (but the user then: \"{words}\")"),
                    Language::Chinese => format!("（但用户随后说：“{words}”）"),
                });
                worth *= 0.4;
            }
            lines.push(Line::new(Section::Findings, text, finding.at.seq, worth * (0.5 + 0.5 * recent)));
        }
    }

    pub(super) fn earlier_lines(&self, whole: bool, lines: &mut Vec<Line>) {
        for earlier in &self.earlier {
            if earlier.at.kept && !whole {
                continue;
            }
            let quoted = earlier.text.split('`').nth(1);
            let known = match earlier.section {
                Section::Files => {
                    quoted.is_some_and(|path| self.work.files.keys().any(|k| self.path(k) == path))
                }
                Section::Commands => {
                    quoted.is_some_and(|c| self.work.runs.commands.values().any(|k| k.text == c))
                }
                Section::Plan => !self.work.plan.is_empty(),
                // how it stood then, and where
                Section::Request | Section::State => self.findings.last().is_some(),
                Section::Environment => true,
                _ => false,
            };
            if known {
                continue;
            }
            let (section, worth) = match earlier.section {
                Section::Goal => (Section::Goal, 30.0),
                Section::Request | Section::State => (Section::State, 4.0),
                Section::Constraints => (Section::Constraints, 10.0),
                Section::Decisions => (Section::Decisions, 5.0),
                Section::Plan => (Section::Plan, 6.0),
                Section::Errors => (Section::Errors, 2.5),
                Section::Files | Section::Commands => (earlier.section, 3.0),
                section => (section, 2.5),
            };
            lines.push(Line::new(section, earlier.text.clone(), earlier.at.seq, worth));
        }
    }

    /// Facts of the session itself; its record has no number, so they are said to come from 0.
    pub(super) fn environment(&self, language: Language, lines: &mut Vec<Line>) {
        let session = &self.session;
        let mut parts = Vec::new();
        if let Some(directory) = &session.working_directory {
            parts.push(one_line(directory));
        }
        let named = session.git.as_ref().and_then(|git| git.branch.clone());
        // what git said last is newer than the session's first line
        if let Some(branch) = self.work.runs.branch.as_ref().map(|(branch, _)| branch.clone()).or(named) {
            parts.push(format!("{} {}", language.pick("branch", "分支"), one_line(&branch)));
        }
        let version = session.source_version.as_deref().unwrap_or("");
        parts.push(one_line(&format!("{} {version}", session.source_agent)));
        parts.extend(session.model.as_deref().map(one_line));
        if self.offline {
            let words = language.pick(
                "the source agent had no network access (restricted)",
                "源代理没有网络权限（restricted）",
            );
            parts.push(words.to_owned());
        }
        let mut line = Line::new(Section::Environment, parts.join(", "), 0, 6.0);
        line.refer(self.work.runs.branch.as_ref().map(|(_, at)| at.seq));
        lines.push(line);
        if let Some(last) = session.lineage.last() {
            let text = format!(
                "{} {} → {}, {}",
                language.pick("handed over before:", "此前已交接："),
                one_line(&last.from),
                one_line(&last.to),
                one_line(&last.at)
            );
            lines.push(Line::new(Section::Environment, text, 0, 2.0));
        }
    }
}

/// Commands that change nothing that is not told elsewhere: commits stand in the state, files in their section.
fn is_no_news(command: &str) -> bool {
    const WORDS: [&str; 15] = [
        "git add ",
        "git commit",
        "git fetch",
        "git checkout ",
        "git switch ",
        "git restore --staged",
        "mkdir ",
        "cp ",
        "mv ",
        "rm ",
        "touch ",
        "chmod ",
        "ls",
        "cd ",
        "echo ",
    ];
    let mut parts = command.split("&&").map(str::trim);
    let first = parts.next().unwrap_or("");
    WORDS.iter().any(|word| first.starts_with(word))
        && parts.all(|part| {
            part == "git push" || part.starts_with("git push ") || WORDS.iter().any(|w| part.starts_with(w))
        })
}

/// A message as a quotation of at most so many tokens, its middle left out: the end holds the offer.
fn quoted(text: &str, tokens: u64) -> String {
    let mut kept: Vec<&str> = Vec::new();
    let mut code = 0usize;
    for line in text.lines().map(str::trim_end).filter(|l| !l.trim().is_empty()) {
        if line.trim_start().starts_with("```") {
            code = usize::from(code == 0);
        } else if code > 0 {
            code += 1;
        }
        let bare = plain(line);
        let praise = is_praise(&bare) && !is_cause(&bare) && !is_exact(&bare) && bare.len() < 120;
        if code <= 8 && !praise {
            kept.push(line);
        }
    }
    let all = quote(&kept);
    if estimate(&all) <= tokens {
        return all;
    }
    // without its headings first
    kept.retain(|line| !is_heading(line.trim()));
    let (mut head, mut tail) = (Vec::new(), Vec::new());
    let mut left = tokens.saturating_sub(4);
    let (mut from, mut to) = (0, kept.len());
    // two lines from the beginning for one from the end
    for turn in 0.. {
        let line = if turn % 3 == 1 { kept.get(to.wrapping_sub(1)) } else { kept.get(from) };
        let Some(line) = line.filter(|_| from < to) else { break };
        let cost = estimate(line) + 2;
        if cost > left {
            if head.is_empty() || tail.is_empty() {
                let bytes = usize::try_from(left).unwrap_or(0) * 2;
                let cut = line.get(..floor(line, bytes)).unwrap_or("");
                if turn % 3 == 1 { tail.push(cut) } else { head.push(cut) }
            }
            break;
        }
        left -= cost;
        if turn % 3 == 1 {
            tail.push(*line);
            to -= 1;
        } else {
            head.push(*line);
            from += 1;
        }
    }
    head.push("[…]");
    tail.reverse();
    head.extend(tail);
    quote(&head)
}

fn quote(lines: &[&str]) -> String {
    let lines: Vec<String> = lines
        .iter()
        .map(|l| format!("> {}", l.chars().filter(|c| !c.is_control()).collect::<String>()))
        .collect();
    lines.join("\n")
}

/// What a message calls open: the points behind a line that says so.
fn open_points(text: &str) -> Vec<String> {
    const OPEN: [&str; 19] = [
        "remaining",
        "next step",
        "todo",
        "to do",
        "still open",
        "not done",
        "not yet",
        "future",
        "pending",
        "follow-up",
        "outstanding",
        "left to do",
        "open question",
        "剩余",
        "待办",
        "下一步",
        "尚未",
        "未完成",
        "后续",
    ];
    let mut found = Vec::new();
    let mut inside = false;
    for line in text.lines().map(str::trim).filter(|l| !l.is_empty()) {
        let point = plain(line.trim_start_matches('#'));
        let lower = point.to_lowercase();
        let listed = line.starts_with(['-', '*', '•']) || line.starts_with(|c: char| c.is_ascii_digit());
        if is_heading(line) || line.ends_with([':', '：']) {
            inside = point.len() < 80 && OPEN.iter().any(|word| lower.contains(word));
        } else if inside && listed && found.len() < POINTS && !point.contains('✅') {
            if point.len() >= 12 && !point.ends_with(['?', '？']) {
                found.push(clipped(&one_line(&point), POINT, 0));
            }
        } else if !listed {
            inside = false;
        }
    }
    found
}

/// Whether two points name the same thing: most words of the shorter one are in the other.
fn alike(one: &str, other: &str) -> bool {
    let words = |text: &str| -> Vec<String> {
        text.to_lowercase()
            .split(|c: char| !c.is_alphanumeric())
            .filter(|w| w.len() > 3)
            .map(str::to_owned)
            .collect()
    };
    let (one, other) = (words(one), words(other));
    let (less, more) = if one.len() < other.len() { (&one, &other) } else { (&other, &one) };
    let shared = less.iter().filter(|word| more.contains(word)).count();
    shared >= 2 && shared * 3 >= less.len()
}
