//! The sessions of relay-list as lines for people.

use super::list::Row;
use crate::record::is_hidden;
use jiff::Timestamp;
use std::path::Path;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// The least room for what a session is about.
const ABOUT: usize = 20;

/// The heads of the columns.
const HEADS: [&str; 8] = ["AGENT", "ID", "AGE", "TURNS", "SIZE", "TOKENS", "PROJECT", "ABOUT"];

/// A line a session, below a line of heads; cut to `width` columns. Without a width: no heads, and tabs between uncut
/// columns.
pub fn lines(rows: &[Row], now: Timestamp, home: Option<&Path>, width: Option<usize>) -> Vec<String> {
    let cells: Vec<[String; 8]> = rows.iter().map(|row| cells(row, now, home)).collect();
    let Some(width) = width else { return cells.iter().map(|row| row.join("\t")).collect() };
    // what is the same in all, or known of none, need not be told to people
    let told = |n: usize| match n {
        3 | 5 => cells.iter().any(|row| row.get(n).is_some_and(|cell| cell != "-")),
        0 | 6 => cells.iter().any(|row| row.get(n) != cells.first().and_then(|first| first.get(n))),
        _ => true,
    };
    let columns: Vec<usize> = (0..HEADS.len()).filter(|&n| told(n)).collect();
    let heads = HEADS.map(str::to_owned);
    let all: Vec<&[String; 8]> = std::iter::once(&heads).chain(&cells).collect();
    let widest = |n: usize| all.iter().filter_map(|row| Some(row.get(n)?.width())).max().unwrap_or(0);
    let fixed: usize = columns.iter().filter(|&&n| n < 6).map(|&n| widest(n) + 2).sum();
    let project =
        if columns.contains(&6) { widest(6).min(width.saturating_sub(fixed + ABOUT + 2)) } else { 0 };
    let mut lines = Vec::with_capacity(all.len());
    for &row in &all {
        let mut line = String::new();
        for (&n, cell) in columns.iter().filter_map(|n| Some((n, row.get(*n)?))) {
            let room = match n {
                7 => width.saturating_sub(line.width()),
                6 => project,
                n => widest(n),
            };
            let shown = cut(cell, room, n == 6);
            let space = " ".repeat(room.saturating_sub(shown.width()));
            match n {
                7 => line.push_str(&shown),
                6 if room == 0 => {}
                // numbers stand at the right
                2..=5 => line.push_str(&format!("{space}{shown}  ")),
                _ => line.push_str(&format!("{shown}{space}  ")),
            }
        }
        lines.push(cut(line.trim_end(), width, false));
    }
    lines
}

fn cells(row: &Row, now: Timestamp, home: Option<&Path>) -> [String; 8] {
    let number = |n: Option<u64>| n.map_or_else(|| "-".to_owned(), short);
    let project = row.project.as_deref().map_or_else(|| "-".to_owned(), |path| below_home(path, home));
    let about = row.title.as_ref().or(row.prompt.as_ref()).map_or("-", String::as_str);
    let marks: String = row.marks.iter().map(|mark| format!("[{mark}] ")).collect();
    [
        row.agent.to_owned(),
        row.id.chars().take(8).collect(),
        age(now.as_second() - row.updated_at.as_second()),
        number(row.turns),
        short(row.bytes),
        number(row.tokens),
        project,
        one_line(&format!("{marks}{about}")),
    ]
    .map(|cell| one_line(&cell))
}

fn one_line(text: &str) -> String {
    text.chars().map(|c| if is_hidden(c) { ' ' } else { c }).collect()
}

fn below_home(path: &Path, home: Option<&Path>) -> String {
    match home.and_then(|home| path.strip_prefix(home).ok()) {
        Some(below) if below.as_os_str().is_empty() => "~".to_owned(),
        Some(below) => format!("~/{}", below.display()),
        None => path.display().to_string(),
    }
}

/// How long ago, in the largest unit that fits.
fn age(seconds: i64) -> String {
    let seconds = seconds.max(0);
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m", seconds / 60),
        3600..86_400 => format!("{}h", seconds / 3600),
        _ if seconds < 365 * 86_400 => format!("{}d", seconds / 86_400),
        _ => format!("{}y", seconds / (365 * 86_400)),
    }
}

/// A number in at most four letters: 999, 1.5k, 23k, 1.2M.
fn short(n: u64) -> String {
    let mut unit = ["", "k", "M", "G", "T", "P", "E"].into_iter();
    let (mut whole, mut rest) = (n, 0);
    let mut name = unit.next();
    while whole >= 1000 {
        (whole, rest) = (whole / 1000, whole % 1000);
        name = unit.next();
    }
    let name = name.unwrap_or_default();
    if whole < 10 && !name.is_empty() {
        format!("{whole}.{}{name}", rest / 100)
    } else {
        format!("{whole}{name}")
    }
}

/// As much of a text as there is room for; of a path, its end.
fn cut(text: &str, room: usize, end: bool) -> String {
    if text.width() <= room {
        return text.to_owned();
    }
    let fits = |letters: &mut dyn Iterator<Item = char>| {
        let mut used = 1;
        let mut kept = Vec::new();
        for c in letters {
            used += c.width().unwrap_or(0);
            if used > room {
                break;
            }
            kept.push(c);
        }
        kept
    };
    match (room, end) {
        (0, _) => String::new(),
        (_, false) => fits(&mut text.chars()).into_iter().chain(['…']).collect(),
        (_, true) => ['…'].into_iter().chain(fits(&mut text.chars().rev()).into_iter().rev()).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(id: &str, title: &str) -> Row {
        Row {
            agent: "one",
            id: id.to_owned(),
            updated_at: Timestamp::from_second(1_000_000).unwrap(),
            bytes: 12_345,
            project: Some("/home/u/shop".into()),
            title: Some(title.to_owned()),
            prompt: None,
            turns: None,
            tokens: None,
            marks: Vec::new(),
            path: "/x".into(),
        }
    }

    #[test]
    fn lines_fit_the_terminal() {
        let mut rows =
            vec![row("0123456789", "漢字の題名がここにある長い題名"), row("abcdefgh", "short\u{1b}[31m")];
        rows[1].agent = "another";
        rows[1].project = Some("/somewhere/else/with/a/long/name".into());
        let now = Timestamp::from_second(1_000_000 + 7200).unwrap();
        for width in [0, 10, 40, 60, 80, 200] {
            let lines = lines(&rows, now, Some(Path::new("/home/u")), Some(width));
            assert_eq!(lines.len(), 3);
            assert!(lines.iter().all(|line| line.width() <= width), "{width}: {lines:?}");
            assert!(lines.iter().all(|line| !line.contains('\u{1b}')));
        }
        let wide = lines(&rows, now, Some(Path::new("/home/u")), Some(200));
        assert!(wide[0].starts_with("AGENT") && !wide[0].contains("TURNS"), "{wide:?}");
        assert!(
            wide[1].contains("01234567  ") && wide[1].contains("2h") && wide[1].contains("~/shop"),
            "{wide:?}"
        );
    }

    #[test]
    fn without_a_terminal_columns_are_whole() {
        let now = Timestamp::from_second(1_000_060).unwrap();
        let lines = lines(&[row("0123456789", &"long ".repeat(100))], now, None, None);
        let cells: Vec<&str> = lines[0].split('\t').collect();
        assert_eq!(&cells[..7], &["one", "01234567", "1m", "-", "12k", "-", "/home/u/shop"]);
        assert!(cells[7].len() >= 500 && lines.len() == 1);
    }

    #[test]
    fn numbers_and_ages_are_short() {
        assert_eq!([0, 999, 1500, 23_456, 1_250_000].map(short), ["0", "999", "1.5k", "23k", "1.2M"]);
        assert_eq!([-5, 59, 3599, 86_399, 86_400 * 400].map(age), ["0s", "59s", "59m", "23h", "1y"]);
        assert_eq!((cut("abcdef", 4, false), cut("abcdef", 4, true)), ("abc…".into(), "…def".into()));
    }
}
