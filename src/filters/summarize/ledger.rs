//! What is known of a session, and the lines that can be made of it.

use super::calls::State;
use super::choose::Line;
use super::findings::Findings;
use super::prompts::{Prompts, clipped};
use super::terms::{By, Names};
use super::words::{Language, Section, is_result, is_reversal, is_rule, is_wide};
use super::work::{At, Failure, Fate, Work, one_line};
use crate::record::{Session, Status};

/// Bytes of the task and of the open request that are told.
const VERBATIM: usize = 2_400;

/// What a line is worth for each thing it names that is sure to be used again.
const WORTH: f64 = 8.0;

/// Everything that is kept of a session; bounded, see [`Ledger::new`].
#[derive(Debug, Default)]
pub(super) struct Ledger {
    pub(super) session: Session,
    pub(super) prompts: Prompts,
    pub(super) findings: Findings,
    pub(super) work: Work,
    pub(super) names: Names,
    pub(super) earlier: Vec<Earlier>,
    /// Messages so far.
    pub(super) position: u32,
}

/// A line of an earlier summary.
#[derive(Debug)]
pub(super) struct Earlier {
    pub(super) section: Section,
    pub(super) text: String,
    pub(super) at: At,
}

/// What naming something in an excerpt of a change is worth against naming it in a line of facts.
const EXCERPT: f64 = 0.8;

/// Files named as changed since the open request.
const SINCE: usize = 6;

/// How a command went.
fn outcome(status: Status, language: Language) -> &'static str {
    match status {
        Status::Ok => language.pick("ok", "成功"),
        Status::Error => language.pick("FAILED", "失败"),
        Status::Unknown => language.pick("ran", "已运行"),
    }
}

impl Ledger {
    /// A ledger that keeps about `bytes` of text, and what it knows of names.
    pub(super) fn new(session: Session, bytes: usize) -> Ledger {
        Ledger {
            session,
            prompts: Prompts::new(bytes * 2 / 5),
            findings: Findings::new(bytes * 2 / 5),
            work: Work::new(bytes),
            ..Ledger::default()
        }
    }

    /// What naming something is worth: how likely the next eighty messages speak of it, as measured on public
    /// sessions of Codex and Claude Code (those whose hash is even), times [`WORTH`].
    pub(super) fn likely(&self, name: u64, whole: bool) -> f64 {
        let known = self.names.get(name);
        let often = f64::from(self.position) * 0.25;
        if known.count == 0 || (known.kept && !whole) || f64::from(known.count) > often.max(3.0) {
            return 0.0;
        }
        let age = self.position.saturating_sub(known.last);
        if known.by == By::Output {
            return WORTH
                * match (known.count, age) {
                    (..2, _) => 0.025,
                    (2..4, _) => 0.06,
                    (_, 0..24) => 0.24,
                    _ => 0.115,
                };
        }
        let recent: f64 = match age {
            0..8 => 0.40,
            8..24 => 0.31,
            24..56 => 0.20,
            56..120 => 0.11,
            _ => 0.05,
        };
        let count: f64 = match known.count {
            1 => 0.5,
            2..4 => 0.9,
            4..8 => 1.4,
            8..16 => 1.7,
            _ => 2.5,
        };
        WORTH * count * if known.by == By::Model { recent / 4.0 } else { recent }
    }

    /// Every line that could be told. `whole` says that the summary stands for the whole conversation, so that
    /// what is kept of it is told, too.
    pub(super) fn lines(&self, language: Language, whole: bool) -> Vec<Line> {
        let mut lines = Vec::new();
        self.prompt_lines(language, whole, &mut lines);
        self.since_line(language, whole, &mut lines);
        self.plan_lines(whole, &mut lines);
        self.file_lines(language, whole, &mut lines);
        self.command_lines(language, whole, &mut lines);
        self.error_lines(language, whole, &mut lines);
        self.finding_lines(whole, &mut lines);
        self.earlier_lines(whole, &mut lines);
        self.environment(language, &mut lines);
        lines
    }

    /// 1 for what stands last, falling to 0 for what stands first.
    fn recent(&self, at: At) -> f64 {
        f64::from(at.position) / f64::from(self.position.max(1))
    }

    fn prompt_lines(&self, language: Language, whole: bool, lines: &mut Vec<Line>) {
        let prompts = self.prompts.all();
        let superseded = self.prompts.superseded();
        let count = prompts.len();
        for (index, prompt) in prompts.iter().enumerate() {
            let kept = prompt.kept && !whole;
            let (section, worth, limit) = if index + 1 == count && count > 1 {
                (Section::Request, 400.0, VERBATIM)
            } else if index == 0 {
                (Section::Goal, 400.0, VERBATIM)
            } else if kept || superseded.get(&index).is_some_and(|left| left.trim().is_empty()) {
                continue;
            } else {
                let recent = (index + 1) as f64 / count as f64;
                let short = prompt.text.len() <= 300;
                let rule = prompt.text.len() <= 600 && (is_rule(&prompt.text) || is_reversal(&prompt.text));
                let worth = match (rule, short) {
                    (true, _) => 12.0,
                    (false, true) => 7.0,
                    (false, false) => 5.0,
                };
                let extra =
                    if prompt.after_stop { 3.0 } else { 0.0 } + if prompt.answers { 2.0 } else { 0.0 };
                let section = if rule { Section::Constraints } else { Section::Decisions };
                // "yes, please" tells little
                let said = prompt
                    .text
                    .chars()
                    .filter(|c| c.is_alphanumeric())
                    .map(|c| if is_wide(c) { 3.0 } else { 1.0 });
                let tells = (said.sum::<f64>() / 40.0).clamp(0.1, 1.0);
                (section, (worth + extra) * (0.6 + 0.4 * recent) * tells, VERBATIM)
            };
            let text = match (section, kept) {
                (Section::Goal | Section::Request, true) => {
                    let head = one_line(&clipped(&prompt.text, 100, 0));
                    format!("{}: {head}", language.pick("kept below", "原文保留在下方"))
                }
                (Section::Goal | Section::Request, false) => {
                    let text = clipped(&prompt.text, limit * 3 / 4, limit / 4);
                    text.lines().map(str::trim).filter(|l| !l.is_empty()).collect::<Vec<_>>().join(" ⏎ ")
                }
                _ => one_line(&clipped(superseded.get(&index).unwrap_or(&prompt.text), 480, 180)),
            };
            if !text.is_empty() {
                lines.push(Line::new(section, text, prompt.seq, worth));
            }
        }
    }

    /// What was done for the open request so far, so that it is not done again: the files that changed last and how
    /// the last command went.
    fn since_line(&self, language: Language, whole: bool, lines: &mut Vec<Line>) {
        let prompts = self.prompts.all();
        let Some(request) = prompts.last().filter(|_| prompts.len() > 1) else { return };
        let told = |at: At| at.seq > request.seq && (whole || !at.kept);
        let mut files: Vec<_> =
            self.work.files.values().filter(|f| f.fate != Fate::Read && told(f.at)).collect();
        files.sort_by(|a, b| (b.at, &b.path).cmp(&(a.at, &a.path)));
        let commands = self.work.commands.values().filter(|c| !c.looks && told(c.at));
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

    fn plan_lines(&self, whole: bool, lines: &mut Vec<Line>) {
        for (step, at) in &self.work.plan {
            if at.kept && !whole {
                continue;
            }
            let (mark, worth) = match step.state {
                State::Doing => ("[~]", 12.0),
                State::Pending => ("[ ]", 11.0),
                State::Done => ("[x]", 6.0),
            };
            let text = format!("{mark} {}", one_line(&step.text));
            lines.push(Line::new(Section::Plan, text, at.seq, worth));
        }
    }

    /// A path as it is told: from the working directory. One that would lose its folder, which the record names,
    /// keeps that.
    fn path(&self, path: &str) -> String {
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

    fn file_lines(&self, language: Language, whole: bool, lines: &mut Vec<Line>) {
        let mut files: Vec<_> = self.work.files.values().collect();
        files.sort_by(|a, b| (a.touched, &a.path).cmp(&(b.touched, &b.path)));
        for file in files {
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
            let changed = file.fate != Fate::Read;
            let mut worth = if changed { 3.0 } else { 0.5 } + 2.0 * self.recent(file.touched);
            if file.touched.kept && !whole {
                worth *= 0.15;
            }
            let seq = if changed { file.at.seq } else { file.touched.seq };
            let mut line = Line::new(Section::Files, text, seq, worth);
            if matches!(file.fate, Fate::Deleted | Fate::Moved(_)) {
                lines.push(line);
                continue;
            }
            line.more.extend(file.names.iter().chain(&file.seen).rev().cloned());
            lines.push(line);
            for (excerpt, at) in file.excerpts.iter().filter(|(_, at)| whole || !at.kept) {
                let text = format!("{} `{path}`: {excerpt}", language.pick("put into", "写入"));
                let worth = 0.1 * self.recent(*at);
                lines.push(Line { naming: EXCERPT, ..Line::new(Section::Findings, text, at.seq, worth) });
            }
        }
    }

    fn command_lines(&self, language: Language, whole: bool, lines: &mut Vec<Line>) {
        let mut commands: Vec<_> = self.work.commands.values().collect();
        commands.sort_by(|a, b| (a.at, &a.text).cmp(&(b.at, &b.text)));
        for command in commands {
            if command.at.kept && !whole {
                continue;
            }
            let worth = match command.status {
                Status::Ok => 2.0,
                Status::Error => 3.0,
                Status::Unknown => 1.5,
            };
            let mut text = format!("{} `{}`", outcome(command.status, language), command.text);
            if command.runs > 1 {
                text.push_str(&format!(" ×{}", command.runs));
            }
            let mut worth = worth + 1.5 * self.recent(command.at);
            if command.looks {
                worth = 0.1;
            } else if let (true, Some(code)) = (command.status.is_error(), command.exit) {
                text.push_str(&format!(" exit {code}"));
            }
            let mut line = Line::new(Section::Commands, text, command.at.seq, worth);
            line.more.extend(command.seen.iter().rev().cloned());
            lines.push(line);
        }
        for search in &self.work.searches {
            if !search.at.kept || whole {
                let text = format!("{} `{}`", language.pick("searched", "搜索"), search.text);
                lines.push(Line::new(Section::Commands, text, search.at.seq, 0.1));
            }
        }
    }

    fn error_lines(&self, language: Language, whole: bool, lines: &mut Vec<Line>) {
        for failure in &self.work.failures {
            let hidden = failure.at.kept && failure.resolved.is_none_or(|at| at.kept);
            if hidden && !whole {
                continue;
            }
            lines.push(self.error_line(failure, language));
        }
        for end in &self.work.dead_ends {
            let files: Vec<String> = end.files.iter().map(|(f, _)| format!("`{}`", self.path(f))).collect();
            let text = format!(
                "{}: `{}` {} {}",
                language.pick("dead end", "死胡同"),
                end.command,
                language.pick("took back", "撤回了"),
                files.join(", ")
            );
            let mut line = Line::new(Section::Errors, text, end.at.seq, 4.0);
            line.refer(end.files.iter().map(|(_, seq)| *seq));
            lines.push(line);
        }
    }

    fn error_line(&self, failure: &Failure, language: Language) -> Line {
        let recent = self.recent(failure.at);
        let worth = match (failure.command, failure.resolved.is_some()) {
            (true, false) => 8.0 + 2.0 * recent,
            (true, true) => 5.0 + recent,
            (false, false) => 0.8 + recent,
            (false, true) => 0.3,
        };
        let mut text = match failure.resolved {
            None => language.pick("open", "未解决").to_owned(),
            Some(_) => language.pick("resolved", "已解决").to_owned(),
        };
        let what = match failure.what.split_once(' ') {
            Some((tool, path)) if !failure.command => format!("{tool} {}", self.path(path)),
            _ => failure.what.clone(),
        };
        text.push_str(&format!(": {} (`{what}`", failure.line));
        if failure.times > 1 {
            text.push_str(&format!(" ×{}", failure.times));
        }
        if failure.resolved.is_some() {
            text.push_str(language.pick(", ok now", "，现已成功"));
        }
        if !failure.by.is_empty() {
            let files: Vec<String> = failure.by.iter().map(|(f, _)| format!("`{}`", self.path(f))).collect();
            let list = files.join(", ");
            match language {
                Language::English => text.push_str(&format!(", after work on {list}")),
                Language::Chinese => text.push_str(&format!("，在处理 {list} 之后")),
            }
        }
        text.push(')');
        let mut line = Line::new(Section::Errors, text, failure.at.seq, worth);
        line.refer(failure.by.iter().map(|(_, seq)| *seq).chain([failure.called]));
        line.refer(failure.resolved.map(|at| at.seq));
        line
    }

    fn finding_lines(&self, whole: bool, lines: &mut Vec<Line>) {
        for finding in self.findings.all() {
            if finding.at.kept && !whole {
                continue;
            }
            let recent = self.recent(finding.at);
            let result = if is_result(&finding.text) { 1.0 } else { 0.0 };
            let worth = match (finding.closing, finding.whole, finding.place) {
                (true, true, _) => 5.5,
                (true, false, 0) => 1.6 + result,
                (true, false, _) => 0.6 + result,
                (false, true, _) => 0.3 + 0.5 * result,
                (false, false, _) => 0.2 + 0.5 * result,
            };
            let text = finding.text.clone();
            lines.push(Line::new(Section::Findings, text, finding.at.seq, worth * (0.5 + 0.5 * recent)));
        }
    }

    fn earlier_lines(&self, whole: bool, lines: &mut Vec<Line>) {
        for earlier in &self.earlier {
            if earlier.at.kept && !whole {
                continue;
            }
            let quoted = earlier.text.split('`').nth(1);
            let known = match earlier.section {
                Section::Files => {
                    quoted.is_some_and(|path| self.work.files.keys().any(|k| self.path(k) == path))
                }
                Section::Plan => !self.work.plan.is_empty(),
                Section::Request | Section::Environment => true,
                _ => false,
            };
            if known {
                continue;
            }
            let (section, worth) = match earlier.section {
                Section::Goal => (Section::Decisions, 10.0),
                Section::Constraints => (Section::Constraints, 10.0),
                Section::Errors => (Section::Errors, 2.5),
                section => (section, 1.5),
            };
            lines.push(Line::new(section, earlier.text.clone(), earlier.at.seq, worth));
        }
    }

    /// Facts of the session itself; its record has no number, so they are said to come from 0.
    fn environment(&self, language: Language, lines: &mut Vec<Line>) {
        let session = &self.session;
        let mut parts = Vec::new();
        if let Some(directory) = &session.working_directory {
            parts.push(one_line(directory));
        }
        if let Some(branch) = session.git.as_ref().and_then(|git| git.branch.as_ref()) {
            parts.push(format!("{} {}", language.pick("branch", "分支"), one_line(branch)));
        }
        let version = session.source_version.as_deref().unwrap_or("");
        parts.push(one_line(&format!("{} {version}", session.source_agent)));
        parts.extend(session.model.as_deref().map(one_line));
        lines.push(Line::new(Section::Environment, parts.join(", "), 0, 6.0));
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
