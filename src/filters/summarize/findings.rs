//! What the model said, sentence by sentence.

use super::prompts::{clipped, floor};
use super::work::{At, one_line};

/// Of one message, so many bytes are looked at.
const LOOKED: usize = 32 << 10;

/// Longest sentence that is told whole, in bytes.
const SHOWN: usize = 360;

/// A message up to this length is one finding.
const WHOLE: usize = 280;

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
}

/// What the model said, bounded in bytes.
#[derive(Debug, Default)]
pub(super) struct Findings {
    list: Vec<Finding>,
    bytes: usize,
    limit: usize,
    /// Position of the last message.
    last: Option<u32>,
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
        self.last = Some(at.position);
        self.asks = text.ends_with(['?', '？']);
        let from = self.list.len();
        if text.len() <= WHOLE {
            self.add(one_line(text), at, true, 0);
        } else {
            let mut place = 0;
            sentences(text.get(..floor(text, LOOKED)).unwrap_or(text), |sentence| {
                self.add(clipped(&one_line(sentence), SHOWN, 0), at, false, place);
                place += 1;
            });
        }
        let added = self.list.len() - from;
        if added > 60 {
            // a very long message: its beginning and its end
            let gone = self.list.drain(from + 30..from + added - 30);
            self.bytes -= gone.map(|f| f.text.len()).sum::<usize>();
        }
        if self.bytes > self.limit {
            self.forget();
        }
    }

    fn add(&mut self, text: String, at: At, whole: bool, place: u32) {
        self.bytes += text.len();
        self.list.push(Finding { text, at, closing: false, whole, place });
    }

    /// The turn is over: what was said last was its result.
    pub(super) fn close(&mut self) {
        self.asks = false;
        let Some(last) = self.last.take() else { return };
        for finding in self.list.iter_mut().rev().take_while(|f| f.at.position == last) {
            finding.closing = true;
        }
    }

    /// Whether the last message asks something.
    pub(super) fn asks(&self) -> bool {
        self.asks
    }

    /// Lets go of old sentences in the middle of turns, then of old ones.
    fn forget(&mut self) {
        let newest = self.list.last().map_or(0, |f| f.at.position);
        let goal = self.limit / 2;
        for whole in [false, true] {
            let mut over = self.bytes.saturating_sub(goal);
            self.list.retain(|f| {
                if over == 0 || f.at.position == newest || (!whole && f.closing && f.place < 3) {
                    return true;
                }
                over = over.saturating_sub(f.text.len());
                self.bytes -= f.text.len();
                false
            });
        }
    }

    pub(super) fn all(&self) -> &[Finding] {
        &self.list
    }
}

/// Calls `found` with each sentence: what ends in a full stop, question or exclamation mark of any script, or
/// in a line's end. Code between fences is left out.
pub(super) fn sentences<'a>(text: &'a str, mut found: impl FnMut(&'a str)) {
    let mut code = false;
    for line in text.lines() {
        let line = line.trim();
        if line.starts_with("```") || line.starts_with("~~~") {
            code = !code;
            continue;
        }
        if code {
            continue;
        }
        let mut start = 0;
        let mut chars = line.char_indices().peekable();
        while let Some((at, c)) = chars.next() {
            let next = chars.peek().map(|(_, c)| *c);
            let ends = match c {
                '.' | '!' | '?' => next.is_none_or(char::is_whitespace),
                '。' | '！' | '？' | '；' => true,
                _ => false,
            };
            if ends {
                let end = at + c.len_utf8();
                keep(line.get(start..end).unwrap_or(""), &mut found);
                start = end;
            }
        }
        keep(line.get(start..).unwrap_or(""), &mut found);
    }
}

fn keep<'a>(sentence: &'a str, found: &mut impl FnMut(&'a str)) {
    let sentence = sentence.trim().trim_start_matches(['#', '-', '*', '>', '•', ' ']).trim();
    let letters = sentence.chars().filter(|c| c.is_alphanumeric()).count();
    if sentence.len() >= 20 && letters >= 6 && !sentence.ends_with([':', '：']) {
        found(sentence);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_end_in_every_script() {
        let mut all = Vec::new();
        sentences(
            "Root cause: a.b is 1.5 wide. It works again since then!\n- 根因是没有设置缓存。然后重新运行测试\n```\ncode here is long\n```\nok",
            |s| all.push(s),
        );
        assert_eq!(
            all,
            [
                "Root cause: a.b is 1.5 wide.",
                "It works again since then!",
                "根因是没有设置缓存。",
                "然后重新运行测试"
            ]
        );
    }

    #[test]
    fn the_last_message_of_a_turn_closes_it() {
        let mut all = Findings::new(10_000);
        let at = |position| At { position, ..At::default() };
        all.push("I look at it first.", at(1));
        all.push("Should I go on?", at(2));
        assert!(all.asks());
        all.close();
        assert_eq!(all.all().iter().map(|f| f.closing).collect::<Vec<_>>(), [false, true]);
        for n in 3..2_000 {
            all.push("One more sentence that is said on the way to the goal.", at(n));
        }
        assert!(all.bytes <= 10_000 && all.all().iter().any(|f| f.closing));
    }
}
