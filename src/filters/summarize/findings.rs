//! What the model said: its findings, sentence by sentence, and its last messages.

use super::prompts::{clipped, floor};
use super::terms;
use super::words::{is_announcement, is_cause, is_code, is_offer, is_praise, is_result, is_wide};
use super::work::{At, one_line};
use std::collections::{HashSet, VecDeque};

/// Of one message, so many bytes are looked at.
const LOOKED: usize = 32 << 10;

/// Longest sentence that is told whole, in bytes.
const SHOWN: usize = 360;

/// Of a last message so many bytes are kept at its beginning and at its end.
const HEAD: usize = 5_000;
const TAIL: usize = 3_000;

/// Last messages of turns that are kept whole.
const CLOSINGS: usize = 3;

/// One sentence of the model.
#[derive(Debug)]
pub(super) struct Finding {
    pub(super) text: String,
    pub(super) at: At,
    /// Whether it stands in the last message before the next prompt: there results are told.
    pub(super) closing: bool,
    /// Whether it is its whole message.
    pub(super) whole: bool,
    /// Place in its message, from 0.
    pub(super) place: u32,
    /// What the user said next, where that denies what it claims.
    pub(super) refuted: Option<String>,
    /// The same for the same words.
    key: u64,
}

/// A message that stands for how far the work was.
#[derive(Debug, Clone)]
pub(super) struct Message {
    pub(super) text: String,
    pub(super) at: At,
}

/// What the model said, bounded in bytes.
#[derive(Debug, Default)]
pub(super) struct Findings {
    list: Vec<Finding>,
    bytes: usize,
    limit: usize,
    /// Keys of what is in the list: the same is told once, where it was said last.
    known: HashSet<u64>,
    /// The last message.
    last: Option<Message>,
    /// Whether a prompt came since.
    closed: bool,
    /// The last messages of the turns before, oldest first.
    closings: VecDeque<Message>,
    asks: bool,
}

impl Findings {
    /// Keeps at most about `limit` bytes.
    pub(super) fn new(limit: usize) -> Findings {
        Findings { limit, ..Findings::default() }
    }

    /// Takes a message of the model.
    pub(super) fn push(&mut self, text: &str, at: At) {
        let text = text.trim();
        if text.is_empty() {
            return;
        }
        self.last = Some(Message { text: clipped(text, HEAD, TAIL), at });
        self.closed = false;
        self.asks = text.ends_with(['?', '？']);
        let position = at.position;
        let mut place = 0;
        sentences(text.get(..floor(text, LOOKED)).unwrap_or(text), |sentence| {
            let whole = sentence.len() * 10 >= text.len() * 8;
            self.add(clipped(&one_line(sentence), SHOWN, 0), at, whole, place);
            place += 1;
        });
        let added = self.list.iter().rev().take_while(|f| f.at.position == position).count();
        if added > 60 {
            // a very long message: its beginning and its end
            let from = self.list.len() - added;
            let gone = self.list.drain(from + 30..from + added - 30);
            self.bytes -= gone.map(|f| f.text.len()).sum::<usize>();
        }
        if self.bytes > self.limit {
            self.forget();
        }
    }

    fn add(&mut self, text: String, at: At, whole: bool, place: u32) {
        let key = same(&text);
        if !self.known.insert(key)
            && let Some(index) = self.list.iter().rposition(|f| f.key == key)
        {
            // it is no news, but as sure as when it was said last
            self.bytes -= self.list.remove(index).text.len();
        }
        self.bytes += text.len();
        self.list.push(Finding { text, at, closing: false, whole, place, refuted: None, key });
    }

    /// The turn is over: what was said last was its result. `denial`: the user's words that it is not so.
    pub(super) fn close(&mut self, denial: Option<&str>) {
        self.asks = false;
        let Some(last) = self.last.as_ref().filter(|_| !self.closed) else { return };
        for finding in self.list.iter_mut().rev().take_while(|f| f.at.position == last.at.position) {
            finding.closing = true;
            let claims = is_result(&finding.text) && !is_cause(&finding.text);
            finding.refuted = denial.filter(|_| claims).map(|words| clipped(&one_line(words), 100, 0));
        }
        self.closings.push_back(last.clone());
        if self.closings.len() > CLOSINGS {
            self.closings.pop_front();
        }
        self.closed = true;
    }

    /// Whether the last message asks something.
    pub(super) fn asks(&self) -> bool {
        self.asks
    }

    /// The last message.
    pub(super) fn last(&self) -> Option<&Message> {
        self.last.as_ref()
    }

    /// The last messages of the newest turns, oldest first.
    pub(super) fn closings(&self) -> impl DoubleEndedIterator<Item = &Message> {
        self.closings.iter()
    }

    /// Lets go of old sentences in the middle of turns, then of old ones.
    fn forget(&mut self) {
        let newest = self.list.last().map_or(0, |f| f.at.position);
        let goal = self.limit / 2;
        for whole in [false, true] {
            let mut over = self.bytes.saturating_sub(goal);
            self.list.retain(|f| {
                let tells = f.closing && (f.place < 3 || is_cause(&f.text));
                if over == 0 || f.at.position == newest || (!whole && tells) {
                    return true;
                }
                over = over.saturating_sub(f.text.len());
                self.bytes -= f.text.len();
                self.known.remove(&f.key);
                false
            });
        }
    }

    pub(super) fn all(&self) -> &[Finding] {
        &self.list
    }
}

/// A key that is the same for sentences that differ in case, marks and numbers of steps.
pub(super) fn same(text: &str) -> u64 {
    terms::key(&letters(text))
}

/// A text without case and marks.
pub(super) fn letters(text: &str) -> String {
    text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// Calls `found` with each sentence that could tell something: what ends in a full stop, question or exclamation
/// mark of any script, or in a line's end; short points of a list together, behind the line that leads to them. Left
/// out are code between fences, headings, tables, questions, offers, announcements and praise.
pub(super) fn sentences(text: &str, mut found: impl FnMut(&str)) {
    let mut code = false;
    let mut list = List::default();
    let mut lines = text.lines().map(str::trim).peekable();
    while let Some(line) = lines.next() {
        while lines.peek().is_some_and(|next| next.is_empty()) {
            lines.next();
        }
        if line.starts_with("```") || line.starts_with("~~~") {
            code = !code;
            continue;
        }
        if code || line.is_empty() || line.starts_with(['|', '<']) {
            continue;
        }
        let point = is_point(line);
        let plain = plain(line.trim_start_matches('#'));
        // a line without an end in front of a list is its heading
        let leads = !point
            && plain.len() <= BULLET
            && !plain.ends_with(['.', '!', '?', '。', '！', '？'])
            && lines.peek().is_some_and(|next| is_point(next));
        if leads || is_heading(line) || plain.ends_with([':', '：']) {
            list.lead(&plain, &mut found);
            continue;
        }
        if point && plain.len() <= BULLET && list.has_lead() {
            let empty = is_announcement(&plain) || is_offer(&plain) || is_praise(&plain);
            if !empty || (is_cause(&plain) && !is_offer(&plain)) {
                list.add(&plain, &mut found);
            }
            continue;
        }
        list.flush(&mut found);
        if !point {
            list = List::default();
        }
        for sentence in split(&plain) {
            let sentence = self::plain(sentence);
            if tells(&sentence) {
                found(&sentence);
            }
        }
    }
    list.flush(&mut found);
}

/// Whether a line is a point of a list.
fn is_point(line: &str) -> bool {
    line.starts_with(['-', '*', '•', '✅']) && !line.starts_with("**")
}

/// Words that lead to a list and say nothing of it.
const BARE_LEADS: [&str; 22] = [
    "steps",
    "options",
    "option",
    "highlights",
    "summary",
    "details",
    "notes",
    "note",
    "pros",
    "cons",
    "status",
    "output",
    "input",
    "how",
    "why",
    "changes",
    "result",
    "results",
    "what changed",
    "what i changed",
    "步骤",
    "说明",
];

/// Longest point that is told together with others, and longest line of them, in bytes.
const BULLET: usize = 110;
const GROUP: usize = 330;

/// Points of a list that are told in one line.
#[derive(Debug, Default)]
struct List {
    lead: String,
    /// Whether there is a list whose lead says nothing.
    bare: bool,
    points: Vec<String>,
    bytes: usize,
}

impl List {
    fn has_lead(&self) -> bool {
        self.bare || !self.lead.is_empty()
    }

    /// A new list begins behind this line.
    fn lead(&mut self, line: &str, found: &mut impl FnMut(&str)) {
        self.flush(found);
        let line = line.trim_end_matches([':', '：', ' ']);
        let line = if BARE_LEADS.contains(&line.to_lowercase().as_str()) { "" } else { line };
        self.bare = line.is_empty();
        self.lead = if line.len() <= BULLET && !is_offer(line) { line.to_owned() } else { String::new() };
    }

    fn add(&mut self, point: &str, found: &mut impl FnMut(&str)) {
        if self.bytes + point.len() > GROUP {
            self.flush(found);
        }
        self.bytes += point.len() + 2;
        self.points.push(point.trim_end_matches(['.', '。', ';', ',']).to_owned());
    }

    fn flush(&mut self, found: &mut impl FnMut(&str)) {
        let points = std::mem::take(&mut self.points);
        self.bytes = 0;
        let text = points.join("; ");
        // one alone is a sentence or nothing
        let told = if points.len() > 1 {
            is_exact(&text) || is_cause(&text) || text.len() > 60
        } else {
            tells(&text)
        };
        if told {
            let colon = if self.bare { "" } else { ": " };
            found(&format!("{}{colon}{text}", self.lead));
        }
    }
}

/// The sentences of a line.
pub(super) fn split(line: &str) -> Vec<&str> {
    let mut all = Vec::new();
    let mut start = 0;
    let mut quoted = false;
    let mut chars = line.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let next = chars.peek().map(|(_, c)| *c);
        quoted ^= c == '`';
        let ends = match c {
            _ if quoted => false,
            '.' | '!' | '?' => {
                next.is_none_or(char::is_whitespace) && !abbreviated(line.get(..at).unwrap_or(""))
            }
            '。' | '！' | '？' | '；' => true,
            _ => false,
        };
        if ends {
            let end = at + c.len_utf8();
            all.extend(line.get(start..end));
            start = end;
        }
    }
    all.extend(line.get(start..).filter(|rest| !rest.trim().is_empty()));
    all
}

/// Whether a full stop behind this ends no sentence.
fn abbreviated(before: &str) -> bool {
    let word = before.rsplit([' ', '(']).next().unwrap_or("");
    matches!(word, "e.g" | "i.e" | "etc" | "vs" | "cf" | "approx" | "No")
        || (!word.is_empty() && word.len() <= 2 && word.bytes().all(|b| b.is_ascii_digit()))
}

/// Whether a line is a heading: marked as one, or bold from end to end.
pub(super) fn is_heading(line: &str) -> bool {
    let bare = line.trim_start_matches(|c: char| !c.is_alphanumeric() && !matches!(c, '#' | '*' | '_' | '`'));
    let bold = bare.trim_end_matches(|c: char| !c.is_alphanumeric() && !matches!(c, '*' | '_' | '`'));
    bare.starts_with('#')
        || ["**", "__"].iter().any(|mark| {
            bold.len() > 4
                && bold
                    .strip_prefix(mark)
                    .is_some_and(|rest| rest.strip_suffix(mark).is_some_and(|r| !r.contains(mark)))
        })
}

/// A line of Markdown as plain text: without the marks of lists, of boxes and of bold text, and without pictures at
/// its ends.
pub(super) fn plain(line: &str) -> String {
    let mut line = line.trim();
    loop {
        let before = line;
        line = line.trim_start_matches(|c: char| {
            !c.is_alphanumeric()
                && !matches!(c, '`' | '"' | '\'' | '/' | '(' | '[' | '@' | '$' | '~' | '-' | '“' | '「' | '.')
        });
        for mark in ["- ", "* ", "[ ] ", "[x] ", "[X] ", "[~] "] {
            line = line.strip_prefix(mark).unwrap_or(line);
        }
        // a number of a list
        if let Some((number, rest)) = line.split_once(['.', ')'])
            && (1..=2).contains(&number.len())
            && number.bytes().all(|b| b.is_ascii_digit())
            && rest.starts_with(' ')
        {
            line = rest.trim_start();
        }
        if line == before {
            break;
        }
    }
    let line = line.trim_end_matches(|c: char| is_picture(c) || c.is_whitespace());
    if !line.contains("**") && !line.contains("__") {
        return line.to_owned();
    }
    line.replace("**", "")
}

fn is_picture(c: char) -> bool {
    matches!(u32::from(c), 0x2190..=0x21ff | 0x2300..=0x23ff | 0x2500..=0x27bf | 0x2b00..=0x2bff | 0xfe0f | 0x1f000..=0x1faff)
}

/// Whether a sentence could tell a successor something.
fn tells(sentence: &str) -> bool {
    let letters = sentence.chars().filter(|c| c.is_alphanumeric()).count();
    let wide = sentence.chars().filter(|c| is_wide(*c)).count();
    let words = sentence.split_whitespace().count() + wide / 2;
    if letters < 6 || words < 4 || sentence.len() < 20 || sentence.ends_with([':', '：', '?', '？']) {
        return false;
    }
    if is_announcement(sentence) || is_offer(sentence) || is_code(sentence) {
        return false;
    }
    // what points at something else says nothing by itself
    let first = sentence.split([' ', '\'', '’']).next().unwrap_or("").to_lowercase();
    let points =
        ["this", "that", "it", "these", "those", "they", "here", "each", "both"].contains(&first.as_str());
    if points && !is_exact(sentence) {
        return false;
    }
    !is_praise(sentence) || is_cause(sentence) || is_exact(sentence)
}

/// Whether a sentence names something exact: a number, a path, a name in quotes.
pub(super) fn is_exact(text: &str) -> bool {
    let mut named = text.contains('`') || text.bytes().any(|b| b.is_ascii_digit());
    if !named {
        terms::each(text, |_| named = true);
    }
    named
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(text: &str) -> Vec<String> {
        let mut all = Vec::new();
        sentences(text, |s| all.push(s.to_owned()));
        all
    }

    #[test]
    fn sentences_end_in_every_script() {
        assert_eq!(
            told(
                "Root cause: a.b is 1.5 wide. The parser works again since then!\n- 根因是没有设置缓存。重新运行测试以后全部通过\n```\ncode here is long\n```\nok"
            ),
            [
                "Root cause: a.b is 1.5 wide.",
                "The parser works again since then!",
                "根因是没有设置缓存。",
                "重新运行测试以后全部通过"
            ]
        );
        assert_eq!(
            told(
                "The schema has now:\n- fans (`aux_index`)\n- a chamber\n- lights\n\nIt holds 3 of them in all."
            ),
            ["The schema has now: fans (`aux_index`); a chamber; lights", "It holds 3 of them in all."]
        );
        assert_eq!(told("It fails for e.g. the 2nd page of `a. b` here.").len(), 1);
    }

    #[test]
    fn what_tells_nothing_is_left_out() {
        let empty = [
            "## Final status of the whole work",
            "**✅ Ready for the merge and the review!**",
            "🎯 **PR Ready for Merge**",
            "| file | what it is for | state |",
            "Let me look at the parser of the ducks first.",
            "I'll now run the tests of the parser again.",
            "Should I go on with the other parser now?",
            "If you want, I can add the other ducks, too.",
            "Perfect! Everything is working great now!",
            "import { DuckPond } from './pond/duck';",
            "Here is what was changed in the files:",
            "让我先看看解析器的代码。",
            "要不要我继续做下一步的工作？",
            "太好了，一切就绪，可以合并了！",
            "This is far more interesting and harder to do.",
            "What I changed to handle this smoothly\n- ok",
        ];
        for text in empty {
            assert_eq!(told(text), [""; 0], "{text}");
        }
        assert_eq!(
            told("1. ✅ **Fixed gitignore** - Added `!vendor/` as an exception 🎉"),
            ["Fixed gitignore - Added `!vendor/` as an exception"]
        );
    }

    #[test]
    fn the_same_is_told_once_and_a_denied_claim_is_marked() {
        let mut all = Findings::new(10_000);
        let at = |position| At { position, ..At::default() };
        all.push("The fallback range ends at 1915.\nThe **fallback range** ends at 1915!", at(1));
        all.push("The fallback range ends at 1915. The streaming of tokens is fixed now.", at(2));
        all.close(Some("it is still broken"));
        let texts: Vec<_> = all.all().iter().map(|f| (f.at.position, f.refuted.as_deref())).collect();
        assert_eq!(texts, [(2, None), (2, Some("it is still broken"))]);
    }

    #[test]
    fn the_last_message_of_a_turn_closes_it() {
        let mut all = Findings::new(10_000);
        let at = |position| At { position, ..At::default() };
        all.push("The parser is the slow part of it.", at(1));
        all.push("It took 12 ms. Should I go on?", at(2));
        assert!(all.asks());
        all.close(None);
        assert_eq!(all.closings().count(), 1);
        for n in 3..2_000 {
            all.push(&format!("One more sentence, number {n}, is said on the way to the goal."), at(n));
        }
        assert!(all.bytes <= 10_000 && all.last().is_some_and(|m| m.at.position == 1_999));
    }
}
