//! Which lines a summary of a given size holds.

use super::terms;
use super::words::{Language, Section};
use crate::tokens::Counter;
use std::cmp::Ordering;
use std::collections::{BinaryHeap, HashSet};

/// One line that could stand in the summary.
#[derive(Debug, Clone)]
pub(super) struct Line {
    pub(super) section: Section,
    /// The text without its references: one line, or a quotation of several.
    pub(super) text: String,
    /// Whether it is such a quotation.
    pub(super) quote: bool,
    /// The records that say so.
    pub(super) seqs: Vec<u64>,
    /// What it is worth whatever it names.
    pub(super) worth: f64,
    /// What of the worth of the names in it counts.
    pub(super) naming: f64,
    /// Names that may follow the text, each with its record.
    pub(super) more: Vec<(String, u64)>,
}

impl Line {
    pub(super) fn new(section: Section, text: String, seq: u64, worth: f64) -> Line {
        Line { section, text, quote: false, seqs: vec![seq], worth, naming: NAMING, more: Vec::new() }
    }

    /// A quotation of several lines, each of which begins with `>`.
    pub(super) fn quote(section: Section, text: String, seq: u64, worth: f64) -> Line {
        Line { quote: true, ..Line::new(section, text, seq, worth) }
    }

    /// Adds records that say a part of it.
    pub(super) fn refer(&mut self, seqs: impl IntoIterator<Item = u64>) {
        self.seqs.extend(seqs);
        self.seqs.sort_unstable();
        self.seqs.dedup();
    }

    /// As it is printed, without line feed; with `cite`, the records that say so behind it.
    pub(super) fn print(&self, cite: bool) -> String {
        let mark = if self.quote { "" } else { "- " };
        if !cite {
            return format!("{mark}{}", self.text);
        }
        let refs: Vec<String> = self.seqs.iter().map(|seq| format!("#{seq}")).collect();
        let gap = if self.quote { "\n> " } else { " " };
        format!("{mark}{}{gap}({})", self.text, refs.join(", "))
    }
}

/// What of the worth of the names in a line counts, beside its own.
const NAMING: f64 = 0.6;

/// What a line must be worth by itself to be told at all.
const WORTH: f64 = 0.25;

/// What a text costs: its tokens, and never less than one for each wide character and one for four others, since
/// not every model's vocabulary knows Chinese as well as o200k.
pub(super) fn cost(counter: &dyn Counter, text: &str) -> u64 {
    let (mut wide, mut narrow) = (0u64, 0u64);
    for c in text.chars() {
        if u32::from(c) > 0x2e80 { wide += 1 } else { narrow += 1 }
    }
    counter.count(text).max(wide + narrow.div_ceil(4))
}

/// Hundredths of the summary that lists of names may take.
const LISTS: u64 = 15;

/// Something to be chosen next: the greatest worth for each token first, then what stands first.
#[derive(Debug)]
struct Offer {
    rate: f64,
    index: usize,
}

impl PartialEq for Offer {
    fn eq(&self, other: &Offer) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Offer {}

impl PartialOrd for Offer {
    fn partial_cmp(&self, other: &Offer) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Offer {
    fn cmp(&self, other: &Offer) -> Ordering {
        self.rate.total_cmp(&other.rate).then_with(|| other.index.cmp(&self.index))
    }
}

/// How the chosen lines are printed.
#[derive(Clone, Copy)]
pub(super) struct Print<'a> {
    pub(super) opening: &'a str,
    pub(super) language: Language,
    /// Whether each line names its records, and names stand behind lines of files and commands.
    pub(super) cite: bool,
}

/// Chooses lines of at most `budget` tokens together, headings and opening included. `likely` tells what naming
/// something is worth; only the first line that names it is paid for.
pub(super) fn choose(
    mut lines: Vec<Line>,
    print: Print<'_>,
    budget: u64,
    counter: &dyn Counter,
    likely: &dyn Fn(u64) -> f64,
) -> Vec<Line> {
    let Print { opening, language, cite } = print;
    let costs: Vec<u64> = lines.iter().map(|line| cost(counter, &line.print(cite)) + 1).collect();
    let names: Vec<Vec<u64>> = lines.iter().map(|line| keys(&line.text)).collect();
    let headings = Section::ALL.map(|section| cost(counter, section.heading(language)) + 3);
    // what names alone may take, so that a summary does not become a list of them
    let lists = if cite { budget * LISTS / 100 } else { 0 };
    let mut choice = Choice {
        left: budget.saturating_sub(cost(counter, opening) + 2 + lists),
        chosen: vec![false; lines.len()],
        named: HashSet::new(),
        spent: [0; Section::ALL.len()],
    };
    // the first round keeps to the shares of the sections; the second hands out what is left, the last one what the
    // lists of names leave
    choice.fill(&lines, &costs, &names, &headings, likely, Some(budget));
    choice.fill(&lines, &costs, &names, &headings, likely, None);
    if cite {
        choice.left += choice.lengthen(&mut lines, lists, counter, likely);
        choice.fill(&lines, &costs, &names, &headings, likely, None);
    }
    let mut kept = Vec::new();
    for (line, chosen) in lines.into_iter().zip(choice.chosen) {
        if chosen {
            kept.push(line);
        }
    }
    kept.sort_by(|a, b| (a.section, !a.quote, a.seqs.last()).cmp(&(b.section, !b.quote, b.seqs.last())));
    kept
}

/// What is chosen so far.
struct Choice {
    /// Tokens that are not spent.
    left: u64,
    chosen: Vec<bool>,
    /// What the chosen lines name.
    named: HashSet<u64>,
    /// Tokens of each section.
    spent: [u64; Section::ALL.len()],
}

impl Choice {
    /// Chooses lines, those first that are worth most for their tokens; with `shares`, the size of the summary, no
    /// section takes more than its share of that.
    fn fill(
        &mut self,
        lines: &[Line],
        costs: &[u64],
        names: &[Vec<u64>],
        headings: &[u64],
        likely: &dyn Fn(u64) -> f64,
        shares: Option<u64>,
    ) {
        let rate = |index: usize, named: &HashSet<u64>| -> f64 {
            let (Some(line), Some(cost), Some(names)) =
                (lines.get(index), costs.get(index), names.get(index))
            else {
                return 0.0;
            };
            let news: f64 = names.iter().filter(|n| !named.contains(n)).map(|n| likely(*n)).sum();
            (line.worth + line.naming * news) / (*cost as f64 + 2.0)
        };
        let mut heap: BinaryHeap<Offer> = (0..lines.len())
            .filter(|index| self.chosen.get(*index) == Some(&false))
            .map(|index| Offer { rate: rate(index, &self.named), index })
            .collect();
        while let Some(Offer { rate: offered, index }) = heap.pop() {
            if offered <= 0.0 {
                break;
            }
            if lines.get(index).is_some_and(|line| line.worth < WORTH) {
                // room is no reason to tell it
                continue;
            }
            let now = rate(index, &self.named);
            if heap.peek().is_some_and(|next| now < next.rate) {
                heap.push(Offer { rate: now, index });
                continue;
            }
            let (Some(line), Some(cost)) = (lines.get(index), costs.get(index)) else { continue };
            let section = line.section as usize;
            let (Some(used), Some(heading)) = (self.spent.get_mut(section), headings.get(section)) else {
                continue;
            };
            let price = cost + if *used == 0 { *heading } else { 0 };
            let over =
                shares.is_some_and(|size| *used > 0 && *used + price > size * line.section.share() / 1000);
            if price > self.left || over {
                continue;
            }
            self.left -= price;
            *used += price;
            if let Some(mark) = self.chosen.get_mut(index) {
                *mark = true;
            }
            self.named.extend(names.get(index).into_iter().flatten());
        }
    }

    /// Adds names to chosen lines, the likeliest first, for at most `left` tokens; gives what of them is left.
    fn lengthen(
        &mut self,
        lines: &mut [Line],
        mut left: u64,
        counter: &dyn Counter,
        likely: &dyn Fn(u64) -> f64,
    ) -> u64 {
        let mut offers: Vec<(f64, usize, String, u64)> = Vec::new();
        for (index, line) in lines.iter_mut().enumerate() {
            if self.chosen.get(index) == Some(&true) {
                for (name, seq) in std::mem::take(&mut line.more) {
                    let rate = likely(terms::key(&name)) / (name.len() as f64 / 4.0 + 2.0);
                    if rate > 0.0 {
                        offers.push((rate, index, name, seq));
                    }
                }
            }
        }
        offers.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| (a.1, &a.2).cmp(&(b.1, &b.2))));
        for (_, index, name, seq) in offers {
            let Some(line) = lines.get_mut(index) else { continue };
            if !self.named.insert(terms::key(&name)) || line.text.contains(&name) {
                continue;
            }
            let before = cost(counter, &line.print(true));
            let mut longer = line.clone();
            longer.text.push_str(if longer.seqs.len() == 1 && !longer.text.contains(": ") {
                ": "
            } else {
                ", "
            });
            longer.text.push_str(&name);
            longer.refer([seq]);
            let more = cost(counter, &longer.print(true)).saturating_sub(before);
            if more <= left {
                left -= more;
                *line = longer;
            }
        }
        left
    }
}

/// The keys of the names in a text; of a path also that of its last part.
pub(super) fn keys(text: &str) -> Vec<u64> {
    let mut found = Vec::new();
    terms::each(text, |word| {
        found.push(terms::key(word));
        if let Some((_, last)) = word.rsplit_once('/')
            && last.len() >= 6
        {
            found.push(terms::key(last));
        }
    });
    found.sort_unstable();
    found.dedup();
    found
}

/// The summary as text.
pub(super) fn print(lines: &[Line], print: Print<'_>) -> String {
    let mut out = print.opening.to_owned();
    let mut section = None;
    for line in lines {
        if section != Some(line.section) {
            section = Some(line.section);
            out.push_str("\n\n## ");
            out.push_str(line.section.heading(print.language));
        }
        out.push('\n');
        out.push_str(&line.print(print.cite));
    }
    out
}
