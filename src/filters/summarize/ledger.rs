//! What is known of a session, and the lines that can be made of it.

use super::choose::Line;
use super::faults::is_fault;
use super::findings::{Findings, letters, same};
use super::prompts::{Prompt, Prompts, clipped};
use super::terms::{By, Names};
use super::words::{Language, Section, is_continuation, is_question, is_reversal, is_rule, is_wide};
use super::work::{At, Fate, Work, one_line};
use crate::record::Session;

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
    /// What the user ran by hand, newest last, with what it said.
    pub(super) by_hand: Vec<(String, At)>,
    /// Lines of the project's instructions that forbid or demand something.
    pub(super) instructions: Vec<(String, At)>,
    /// Whether the source agent had no network.
    pub(super) offline: bool,
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

impl Ledger {
    /// A ledger that keeps about `bytes` of text, and what it knows of names; with `names` also those in files and
    /// outputs.
    pub(super) fn new(session: Session, bytes: usize, names: bool) -> Ledger {
        Ledger {
            session,
            prompts: Prompts::new(bytes * 2 / 5),
            findings: Findings::new(bytes * 2 / 5),
            work: Work::new(bytes, names),
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
    /// what is kept of it is told, too; `size` is how many tokens it may have.
    pub(super) fn lines(&self, language: Language, whole: bool, size: u64) -> Vec<Line> {
        let mut lines = Vec::new();
        self.prompt_lines(language, whole, &mut lines);
        self.word_lines(language, whole, &mut lines);
        self.since_line(language, whole, &mut lines);
        self.state_lines(language, whole, size, &mut lines);
        self.pending_lines(language, whole, &mut lines);
        self.document_lines(whole, &mut lines);
        self.finding_lines(language, whole, &mut lines);
        self.file_lines(language, whole, &mut lines);
        self.command_lines(language, whole, &mut lines);
        self.error_lines(language, whole, &mut lines);
        self.earlier_lines(whole, &mut lines);
        self.environment(language, &mut lines);
        if let Some(place) = self.place() {
            let (way, inside) = (format!("cd {place} && "), format!("{place}/"));
            for line in lines.iter_mut().filter(|line| line.section != Section::Environment && !line.quote) {
                line.text = line.text.replace(&way, "").replace(&inside, "");
            }
            let words = language
                .pick("the work is in {}, from where paths are seen", "工作目录为 {}，路径以此为起点");
            lines.push(Line::new(Section::Environment, words.replace("{}", &place), 0, 6.0));
        }
        // the same words stand in the first section that has them
        lines.sort_by_key(|line| line.section);
        let mut told = std::collections::HashSet::new();
        lines.retain(|line| line.quote || told.insert(same(line.text.trim_start_matches("[ ] "))));
        // nor is told twice what a quoted message says
        let quoted: Vec<String> = lines.iter().filter(|line| line.quote).map(|l| letters(&l.text)).collect();
        lines.retain(|line| {
            let finding = line.section == Section::Findings && !line.quote;
            !finding || !quoted.iter().any(|quote| quote.contains(&letters(&line.text)))
        });
        lines
    }

    /// The folder in which the work was done where that is not the session's own, as with worktrees: what the
    /// changed files and the folders of commands have in common.
    fn place(&self) -> Option<String> {
        let own = format!("{}/", self.session.working_directory.as_deref()?.trim_end_matches('/'));
        let changed = self.work.files.values().filter(|file| file.fate != Fate::Read);
        let (inside, outside): (Vec<_>, Vec<_>) = changed
            .map(|file| file.path.as_str())
            .filter(|path| !path.starts_with("/tmp/") && !path.starts_with("/private/"))
            .partition(|path| path.starts_with(&own) || !path.starts_with('/'));
        if outside.len() < 2 || inside.len() * 3 > outside.len() {
            return None;
        }
        let ways =
            self.work.runs.commands.values().filter_map(|c| c.text.strip_prefix("cd /")?.split_once(" && "));
        let ways = ways.map(|(way, _)| format!("/{way}/")).filter(|way| !way.starts_with(&own));
        let mut common: Option<String> = None;
        for path in outside.iter().map(|path| (*path).to_owned()).chain(ways) {
            let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
            common = Some(match common {
                None => folder.to_owned(),
                Some(known) => {
                    let parts = known.split('/').zip(folder.split('/')).take_while(|(a, b)| a == b);
                    parts.map(|(part, _)| part).collect::<Vec<_>>().join("/")
                }
            });
        }
        common.filter(|folder| folder.matches('/').count() >= 3)
    }

    /// 1 for what stands last, falling to 0 for what stands first.
    pub(super) fn recent(&self, at: At) -> f64 {
        f64::from(at.position) / f64::from(self.position.max(1))
    }

    /// The place of the first prompt that says what the work is.
    fn goal(&self) -> usize {
        let prompts = self.prompts.all();
        prompts.iter().take(6).position(|p| !is_continuation(&p.text)).unwrap_or(0)
    }

    fn prompt_lines(&self, language: Language, whole: bool, lines: &mut Vec<Line>) {
        let prompts = self.prompts.all();
        let superseded = self.prompts.superseded();
        let (count, goal) = (prompts.len(), self.goal());
        for (index, prompt) in prompts.iter().enumerate() {
            let newest = index + 1 == count && count > 1;
            if !newest && index != goal {
                let left = superseded.get(&index);
                if (prompt.kept && !whole) || left.is_some_and(|left| left.trim().is_empty()) {
                    continue;
                }
                let recent = (index + 1) as f64 / count as f64;
                lines.extend(other(prompt, left.unwrap_or(&prompt.text), recent, language));
                continue;
            }
            let section = if newest { Section::Request } else { Section::Goal };
            let mut text = match prompt.kept && !whole {
                true => {
                    let head = one_line(&clipped(&prompt.text, 160, 0));
                    format!("{}: {head}", language.pick("kept below", "原文保留在下方"))
                }
                false => {
                    let text = clipped(&prompt.text, VERBATIM * 3 / 4, VERBATIM / 4);
                    text.lines().map(str::trim).filter(|l| !l.is_empty()).collect::<Vec<_>>().join(" ⏎ ")
                }
            };
            if let Some(asked) = &prompt.asked {
                text.push_str(&answer_to(asked, language));
            }
            if !text.is_empty() {
                lines.push(Line::new(section, text, prompt.seq, 400.0));
            }
        }
    }

    /// What the user said elsewhere than in a prompt: in the refusal of a call, to a question of the model, by a
    /// command of their own; and what the project's instructions say.
    fn word_lines(&self, language: Language, whole: bool, lines: &mut Vec<Line>) {
        for words in self.work.words.iter().filter(|w| whole || !w.at.kept) {
            let (section, text, worth) = match words.refuse {
                true => {
                    let refused = language.pick("refused", "拒绝了");
                    (Section::Constraints, format!("{} ({refused} `{}`)", words.text, words.of), 13.0)
                }
                false => (Section::Decisions, words.text.clone(), 9.0),
            };
            lines.push(Line::new(section, text, words.at.seq, worth));
        }
        for (text, at) in self.by_hand.iter().filter(|(_, at)| whole || !at.kept) {
            let text = format!("{}: {text}", language.pick("ran by hand", "用户自己运行"));
            lines.push(Line::new(Section::Decisions, text, at.seq, 4.0 + 2.0 * self.recent(*at)));
        }
        // an agent of the same make reads the same file itself
        let same = self.session.budget.as_ref().is_some_and(|b| b.factor == Some(1000));
        for (text, at) in self.instructions.iter().filter(|_| !(same && self.session.source_agent == "codex"))
        {
            let text = format!("{}: {text}", language.pick("project instructions", "项目说明"));
            lines.push(Line::new(Section::Constraints, text, at.seq, 2.5));
        }
    }
}

/// What an answer answers, behind it.
fn answer_to(asked: &str, language: Language) -> String {
    match language {
        Language::English => format!(" (answer to: {asked})"),
        Language::Chinese => format!("（回答：{asked}）"),
    }
}

/// The line of a prompt that is neither the first nor the newest.
fn other(prompt: &Prompt, text: &str, recent: f64, language: Language) -> Option<Line> {
    let short = prompt.text.len() <= 300;
    let told = prompt.text.to_lowercase().starts_with("i tried");
    // a log is no ruling
    let pasted = prompt.text.lines().nth(1).is_some() && is_fault(&prompt.text);
    let rule = !is_question(&prompt.text)
        && !told
        && !pasted
        && ((prompt.text.len() <= 600 && is_rule(&prompt.text))
            || (prompt.text.len() <= 200 && is_reversal(&prompt.text)));
    let worth = match (rule, short) {
        (true, _) => 12.0,
        (false, true) => 7.0,
        (false, false) => 5.0,
    };
    let extra = if prompt.after_stop { 3.0 } else { 0.0 } + if prompt.asked.is_some() { 2.0 } else { 0.0 };
    let section = if rule { Section::Constraints } else { Section::Decisions };
    let mut text = one_line(&clipped(text, 480, 180));
    if let Some(asked) = &prompt.asked {
        text.push_str(&answer_to(asked, language));
    }
    // "yes, please" tells little, "thanks" nothing
    let said = text.chars().filter(|c| c.is_alphanumeric()).map(|c| if is_wide(c) { 3.0 } else { 1.0 });
    let tells = (said.sum::<f64>() / 40.0).clamp(0.1, 1.0);
    (!text.is_empty())
        .then(|| Line::new(section, text, prompt.seq, (worth + extra) * (0.6 + 0.4 * recent) * tells))
}
