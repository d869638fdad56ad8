//! The words of the summary, in the languages it is written in.

use crate::record::{Error, Result};

/// Language of the headings and of the words of state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Language {
    /// English.
    #[default]
    English,
    /// Chinese, simplified.
    Chinese,
}

impl std::str::FromStr for Language {
    type Err = Error;

    fn from_str(word: &str) -> Result<Language> {
        match word {
            "en" => Ok(Language::English),
            "zh" => Ok(Language::Chinese),
            _ => Err(Error::Usage {
                what: format!("no summary is written in {word:?}"),
                hint: Some("en or zh".to_owned()),
            }),
        }
    }
}

/// The parts of a summary, in their order. Their names in JSON are stable: packages are built on them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Section {
    Goal,
    Request,
    Constraints,
    Decisions,
    Plan,
    Files,
    Commands,
    Errors,
    Findings,
    Environment,
}

use Section::*;

impl Section {
    pub(super) const ALL: [Section; 10] =
        [Goal, Request, Constraints, Decisions, Plan, Files, Commands, Errors, Findings, Environment];

    /// The key in JSON.
    pub(super) fn key(self) -> &'static str {
        match self {
            Goal => "goal",
            Request => "open_request",
            Constraints => "constraints",
            Decisions => "decisions",
            Plan => "plan",
            Files => "files",
            Commands => "commands",
            Errors => "errors",
            Findings => "findings",
            Environment => "environment",
        }
    }

    /// The heading.
    pub(super) fn heading(self, language: Language) -> &'static str {
        let (english, chinese) = match self {
            Goal => ("Goal", "目标"),
            Request => ("Open request", "当前请求"),
            Constraints => ("Constraints and corrections of the user", "用户的约束与更正"),
            Decisions => ("What else the user said", "用户的其他要求"),
            Plan => ("Plan", "计划"),
            Files => ("Files", "文件"),
            Commands => ("Commands", "命令"),
            Errors => ("Errors", "错误"),
            Findings => ("Findings", "发现"),
            Environment => ("Environment", "环境"),
        };
        language.pick(english, chinese)
    }

    /// The section of a heading that relay wrote, in whatever language.
    pub(super) fn of_heading(text: &str) -> Option<Section> {
        Section::ALL.into_iter().find(|s| {
            [Language::English, Language::Chinese].into_iter().any(|language| s.heading(language) == text)
        })
    }

    /// The most that the section may take in the first round, in thousandths of the whole.
    pub(super) fn share(self) -> u64 {
        match self {
            Goal | Request => 250,
            Constraints => 300,
            Decisions => 200,
            Plan => 200,
            Files => 250,
            Commands => 150,
            Errors => 200,
            Findings => 250,
            Environment => 50,
        }
    }
}

impl Language {
    /// The word of this language.
    pub(super) fn pick<'a>(self, english: &'a str, chinese: &'a str) -> &'a str {
        match self {
            Language::English => english,
            Language::Chinese => chinese,
        }
    }
}

/// Words of users by which a message is taken for a lasting rule. Only an extra: messages without them are
/// told all the same.
const RULES: [&str; 32] = [
    "never",
    "always",
    "must",
    "don't",
    "do not",
    "dont ",
    "only ",
    "instead",
    "rather than",
    "make sure",
    "should not",
    "shouldn't",
    "avoid",
    "keep ",
    "stay",
    "without",
    "require",
    "prefer",
    "no longer",
    "nothing else",
    "不要",
    "必须",
    "不能",
    "禁止",
    "只",
    "别",
    "应该",
    "始终",
    "一律",
    "保持",
    "务必",
    "不得",
];

/// Words that take something back.
const REVERSALS: [&str; 28] = [
    "not ",
    "instead",
    "rather",
    "no longer",
    "change",
    "becomes",
    "replace",
    "switch to",
    "actually",
    "wrong",
    "correction",
    "from now on",
    "my mind",
    "不是",
    "不对",
    "改成",
    "改为",
    "改用",
    "别用",
    "换成",
    "不再",
    "而不是",
    "取代",
    "更正",
    "不用",
    "应该是",
    "从现在起",
    "从现在开始",
];

/// Words that lead to a result.
const RESULTS: [&str; 34] = [
    "root cause",
    "because",
    "therefore",
    "so the",
    "conclusion",
    "measured",
    "result",
    "turns out",
    "found",
    "confirmed",
    "the problem",
    "the issue",
    "the fix",
    "decided",
    "fixed",
    "bottleneck",
    "caused by",
    "works",
    "note that",
    "verified",
    "原因",
    "根因",
    "因此",
    "所以",
    "结论",
    "测量",
    "结果",
    "发现",
    "确认",
    "问题在于",
    "瓶颈",
    "决定",
    "修复",
    "已验证",
];

fn has(text: &str, words: &[&str]) -> bool {
    let lower = text.to_ascii_lowercase();
    words.iter().any(|word| lower.contains(word))
}

/// Whether a user's text sounds like a rule.
pub(super) fn is_rule(text: &str) -> bool {
    has(text, &RULES)
}

/// Whether a text takes something back.
pub(super) fn is_reversal(text: &str) -> bool {
    has(text, &REVERSALS)
}

/// A text in lower case without the words that take something back: they say nothing of what that is.
pub(super) fn without_reversals(text: &str) -> String {
    let mut text = text.to_lowercase();
    for words in REVERSALS.iter().map(|words| words.trim()) {
        let inside = |c: char| words.is_ascii() && (c.is_alphanumeric() || c == '_');
        let mut from = 0;
        while let Some(at) = text.get(from..).and_then(|rest| rest.find(words)).map(|at| from + at) {
            let end = at + words.len();
            let before = text.get(..at).and_then(|t| t.chars().next_back());
            let behind = text.get(end..).and_then(|t| t.chars().next());
            from = end;
            if !before.is_some_and(inside) && !behind.is_some_and(inside) {
                text.replace_range(at..end, " ");
                from = at + 1;
            }
        }
    }
    text
}

/// Whether a sentence sounds like a result.
pub(super) fn is_result(text: &str) -> bool {
    has(text, &RESULTS)
}

/// Whether a character is written without spaces between words: Chinese, Japanese, Korean.
pub(super) fn is_wide(c: char) -> bool {
    matches!(u32::from(c), 0x2e80..=0x9fff | 0xac00..=0xd7ff | 0xf900..=0xfaff | 0xff00..=0xffef | 0x20000..=0x3ffff)
}
