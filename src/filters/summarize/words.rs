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
    State,
    Plan,
    Constraints,
    Decisions,
    Findings,
    Files,
    Commands,
    Errors,
    Environment,
}

use Section::*;

/// Headings of summaries that relay wrote before they were hand-over notes (0.1).
const OLD: [(&str, Section); 8] = [
    ("Open request", Request),
    ("当前请求", Request),
    ("Constraints and corrections of the user", Constraints),
    ("用户的约束与更正", Constraints),
    ("Plan", Plan),
    ("计划", Plan),
    ("Findings", Findings),
    ("发现", Findings),
];

impl Section {
    pub(super) const ALL: [Section; 11] =
        [Goal, Request, State, Plan, Constraints, Decisions, Findings, Files, Commands, Errors, Environment];

    /// The key in JSON.
    pub(super) fn key(self) -> &'static str {
        match self {
            Goal => "goal",
            Request => "open_request",
            State => "state",
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
            Request => ("Newest request", "最新请求"),
            State => ("Where it stands", "进展"),
            Plan => ("Pending", "待办"),
            Constraints => ("Rules of the user", "用户的规则"),
            Decisions => ("What else the user said", "用户的其他要求"),
            Findings => ("Decisions, findings and dead ends", "决定、发现与死胡同"),
            Files => ("Files", "文件"),
            Commands => ("Commands", "命令"),
            Errors => ("Errors", "错误"),
            Environment => ("Environment", "环境"),
        };
        language.pick(english, chinese)
    }

    /// The section of a heading that relay wrote, in whatever language.
    pub(super) fn of_heading(text: &str) -> Option<Section> {
        let now = Section::ALL.into_iter().find(|s| {
            [Language::English, Language::Chinese].into_iter().any(|language| s.heading(language) == text)
        });
        now.or_else(|| OLD.iter().find(|(heading, _)| *heading == text).map(|(_, section)| *section))
    }

    /// The section whose key in JSON this is.
    pub(super) fn of_key(key: &str) -> Option<Section> {
        Section::ALL.into_iter().find(|s| s.key() == key)
    }

    /// The most that the section may take in the first round, in thousandths of the whole.
    pub(super) fn share(self) -> u64 {
        match self {
            Goal | Request => 250,
            State => 350,
            Constraints => 300,
            Decisions => 200,
            Plan => 200,
            Files => 220,
            Commands => 170,
            Errors => 150,
            Findings => 320,
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
const RULES: &[&str] = &[
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
const REVERSALS: &[&str] = &[
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

/// Words of a claim that something is so.
const RESULTS: &[&str] = &[
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
    "resolved",
    "passes",
    "passing",
    "原因",
    "根因",
    "因此",
    "结论",
    "测量",
    "结果",
    "确认",
    "已验证",
    "修复",
    "正常",
    "通过",
];

/// Words that lead to a cause, a reason or a limit: what a successor cannot see in the files.
const CAUSES: &[&str] = &[
    "because",
    "caused by",
    "root cause",
    "the cause",
    "due to",
    "fixed by",
    "instead of",
    "rather than",
    "broke",
    "must not",
    "cannot",
    "can't",
    "must be",
    "only works",
    "does not work",
    "doesn't work",
    "didn't work",
    "turns out",
    "the reason",
    "so that",
    "otherwise",
    "unless",
    "therefore",
    "not supported",
    "no longer",
    "decided",
    "reverted",
    "workaround",
    "the issue is",
    "the issue was",
    "the problem is",
    "the problem was",
    "was wrong",
    "failed because",
    "blocked",
    "still fails",
    "not yet",
    "did not",
    "requires",
    "the fix",
    "因为",
    "由于",
    "根因",
    "原因",
    "导致",
    "所以",
    "因此",
    "而不是",
    "否则",
    "不能",
    "必须",
    "不支持",
    "改用",
    "决定",
    "回退",
    "撤回",
    "问题在于",
    "问题是",
    "没有执行",
    "绕过",
];

/// How a sentence begins that only says what comes next.
const ANNOUNCED: &[&str] = &[
    "let me",
    "let's",
    "let us",
    "i'll",
    "i’ll",
    "i will",
    "i'm going",
    "i am going",
    "i need to",
    "i should",
    "i want to",
    "i can see",
    "i see",
    "now i",
    "now let",
    "now to ",
    "next, i",
    "next i",
    "first, let",
    "first i",
    "first, i",
    "going to",
    "looking at",
    "we'll",
    "time to",
    "step ",
    "here's",
    "here is",
    "here are",
    "now, let",
    "then i",
    "i'm now",
    "i’m ",
    "also, let",
    "让我",
    "我来",
    "我将",
    "我会",
    "接下来",
    "现在让",
    "首先",
    "下面我",
    "我先",
    "现在我",
];

/// Words of an offer or a question to the user.
const OFFERS: &[&str] = &[
    "if you want",
    "if you'd like",
    "if you’d like",
    "if you prefer",
    "want me to",
    "would you like",
    "do you want",
    "let me know",
    "tell me",
    "feel free",
    "shall i",
    "should i",
    "just say",
    "say \"",
    "i can also",
    "ready for",
    "pick one",
    "which one",
    "next step",
    "i'll ",
    "i’ll ",
    "you can ",
    "需要我",
    "要不要",
    "是否",
    "如果你",
    "告诉我",
];

/// Words of praise, and of being done, that tell nothing by themselves.
const PRAISE: &[&str] = &[
    "successfully",
    "ready for",
    "all done",
    "production-ready",
    "production ready",
    "everything is",
    "everything works",
    "looks good",
    "looks great",
    "great",
    "perfect",
    "excellent",
    "awesome",
    "absolutely right",
    "excited",
    "you're right",
    "you are right",
    "good catch",
    "good point",
    "well done",
    "should now work",
    "should work now",
    "is complete",
    "are complete",
    "is now complete",
    "all set",
    "working correctly",
    "works correctly",
    "as expected",
    "nice",
    "fully functional",
    "comprehensive",
    "robust",
    "best practices",
    "complian",
    "all quality",
    "quality checks",
    "conflicts resolved",
    "cleanly",
    "clean compilation",
    "太好了",
    "完美",
    "一切就绪",
    "全部完成",
    "大功告成",
    "很好",
    "没问题",
    "已经完成",
    "圆满",
];

/// What a prompt says near its beginning that denies what the model has just claimed.
const DENIALS: &[&str] = &[
    "doesn't work",
    "does not work",
    "not working",
    "didn't work",
    "still not",
    "still broken",
    "still fail",
    "still get",
    "you broke",
    "something broke",
    "is broken",
    "that's wrong",
    "that is wrong",
    "not fixed",
    "exits immediately",
    "没有用",
    "不起作用",
    "还是不行",
    "仍然报错",
    "还是报错",
    "没有修好",
    "又坏了",
];

/// What the first prompt says when the task is not in it.
const CONTINUES: &[&str] = &[
    "continue",
    "left off",
    "go on",
    "resume",
    "carry on",
    "pick up where",
    "keep going",
    "hello",
    "hi ",
    "hey",
    "are you there",
    "继续",
    "接着",
    "你好",
    "在吗",
    "上次",
];

fn has(text: &str, words: &[&str]) -> bool {
    let lower = text.to_ascii_lowercase();
    words.iter().any(|word| lower.contains(word))
}

/// Whether a user's text sounds like a rule.
pub(super) fn is_rule(text: &str) -> bool {
    has(text, RULES)
}

/// Whether a text takes something back.
pub(super) fn is_reversal(text: &str) -> bool {
    has(text, REVERSALS)
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
    has(text, RESULTS)
}

/// Whether a sentence gives a cause, a reason or a limit.
pub(super) fn is_cause(text: &str) -> bool {
    has(text, CAUSES)
}

/// Whether a sentence only says what its speaker does next.
pub(super) fn is_announcement(text: &str) -> bool {
    let lower = text.trim_start().to_lowercase();
    ANNOUNCED.iter().any(|words| lower.starts_with(words))
}

/// Whether a sentence offers something, or asks.
pub(super) fn is_offer(text: &str) -> bool {
    has(text, OFFERS)
}

/// Whether a sentence praises, or says no more than that all is done.
pub(super) fn is_praise(text: &str) -> bool {
    has(text, PRAISE)
}

/// Whether a prompt denies what was said before it.
pub(super) fn is_denial(text: &str) -> bool {
    has(text.get(..super::prompts::floor(text, 200)).unwrap_or(text), DENIALS)
}

/// Whether a prompt only asks to go on: what with is said elsewhere.
pub(super) fn is_continuation(text: &str) -> bool {
    text.len() < 80 && (text.trim().len() < 6 || has(text, CONTINUES))
}

/// Whether a prompt asks something.
pub(super) fn is_question(text: &str) -> bool {
    const FIRST: &[&str] = &[
        "does", "do", "is", "are", "can", "could", "have", "has", "did", "what", "why", "how", "which",
        "where", "who", "am", "will", "would",
    ];
    let text = text.trim();
    let first = text.split(|c: char| !c.is_alphanumeric()).next().unwrap_or("").to_lowercase();
    text.ends_with(['?', '？', '吗']) || (FIRST.contains(&first.as_str()) && text.len() < 120)
}

/// Whether a sentence is a line of a program.
pub(super) fn is_code(text: &str) -> bool {
    let ends = text.ends_with([';', '{', '}', ')', ',']) || text.contains(" = ") || text.contains(" from '");
    let first = text.split([' ', '(']).next().unwrap_or("");
    const WORDS: &[&str] = &[
        "import", "from", "use", "#include", "const", "let", "var", "fn", "function", "export", "return",
        "def", "class", "pub", "async", "package", "struct",
    ];
    (ends && WORDS.contains(&first)) || (first == "from" && text.contains(" import "))
}

/// Whether a character is written without spaces between words: Chinese, Japanese, Korean.
pub(super) fn is_wide(c: char) -> bool {
    matches!(u32::from(c), 0x2e80..=0x9fff | 0xac00..=0xd7ff | 0xf900..=0xfaff | 0xff00..=0xffef | 0x20000..=0x3ffff)
}
