//! The words of a text that name something: paths, identifiers, flags, codes. They are told by their shape
//! alone, so they are the same in every language.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher};

/// Shortest name that counts, in bytes: what is shorter is found everywhere.
const SHORTEST: usize = 5;

/// Longest name that counts, in bytes; beyond are blobs.
const LONGEST: usize = 160;

/// Names of which something is known; beyond, those are forgotten that were met once, long ago.
const KNOWN: usize = 1 << 16;

/// Calls `found` with every name in `text`.
pub(super) fn each<'a>(text: &'a str, mut found: impl FnMut(&'a str)) {
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(skipped) = bytes.get(at..).and_then(|rest| rest.iter().position(|b| class(*b) != 0)) {
        let start = at + skipped;
        let mut found_in = 0;
        let rest = bytes.get(start..).unwrap_or_default().iter();
        let len = rest.map(|b| class(*b)).take_while(|class| *class != 0).fold(0, |len, class| {
            found_in |= class;
            len + 1
        });
        at = start + len;
        // most words are letters alone, and no names
        if found_in & TELLING == 0 {
            continue;
        }
        let Some(run) = text.get(start..at).filter(|run| (SHORTEST..=LONGEST).contains(&run.len())) else {
            continue;
        };
        if run.contains('/') || !run.contains('.') || is_file(run.trim_end_matches('.')) {
            name(run).into_iter().for_each(&mut found);
        } else {
            // `value.method`: the parts are what comes again
            run.split('.').filter_map(name).for_each(&mut found);
        }
    }
}

/// What bytes of a name can be; every other byte is 0.
const LETTER: u8 = 1;
/// Without any of these a run is no name.
const TELLING: u8 = 2;

const CLASSES: [u8; 256] = {
    let mut classes = [0; 256];
    let mut b = 0;
    while b < 256 {
        let byte = b as u8;
        classes[b] = match byte {
            b'a'..=b'z' => LETTER,
            b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'.' | b'/' | b'@' | b'-' => TELLING,
            _ => 0,
        };
        b += 1;
    }
    classes
};

fn class(b: u8) -> u8 {
    CLASSES.get(usize::from(b)).copied().unwrap_or(0)
}

/// The name in a run of such bytes, if it is one.
fn name(run: &str) -> Option<&str> {
    let run = run.trim_end_matches(['.', '-', '/']);
    if let Some(flag) = run.strip_prefix("--") {
        let letters = flag.bytes().take_while(|b| b.is_ascii_alphanumeric() || *b == b'-').count();
        return (letters == flag.len() && letters >= 4).then_some(run);
    }
    if PLACES.iter().any(|place| run.starts_with(place)) {
        return None;
    }
    let run = run.trim_start_matches(['.', '-', '/']);
    if run.len() < SHORTEST {
        return None;
    }
    let (mut slash, mut under, mut digit, mut lower, mut upper, mut hump) =
        (false, false, false, false, false, false);
    let mut before = 0u8;
    for b in run.bytes() {
        match b {
            b'/' => slash = true,
            b'_' => under = true,
            b'0'..=b'9' => digit = true,
            b'a'..=b'z' => lower = true,
            b'A'..=b'Z' => {
                upper = true;
                hump |= before.is_ascii_lowercase();
            }
            _ => {}
        }
        before = b;
    }
    if !lower && !upper {
        return None;
    }
    let code = digit && lower && !run.contains('-') && run.starts_with(|c: char| c.is_ascii_alphabetic());
    let named = slash || under || hump || code || is_file(run);
    named.then_some(run)
}

/// What every machine has there tells nothing of a session.
const PLACES: [&str; 3] = ["/dev/", "/bin/", "/usr/bin/"];

/// Endings by which a word without folders is taken for a file, not for a member of something.
const ENDINGS: [&str; 56] = [
    "rs", "py", "ts", "tsx", "js", "jsx", "mjs", "cjs", "go", "c", "h", "cc", "cpp", "hpp", "cs", "java",
    "kt", "rb", "php", "swift", "scala", "sh", "bash", "zsh", "ps1", "sql", "md", "mdx", "txt", "rst",
    "json", "jsonl", "toml", "yaml", "yml", "xml", "html", "css", "scss", "vue", "svelte", "ini", "cfg",
    "conf", "env", "lock", "csv", "log", "proto", "graphql", "ipynb", "pdf", "png", "svg", "zip", "gz",
];

/// Whether the word ends as names of files do.
fn is_file(run: &str) -> bool {
    run.rsplit_once('.').is_some_and(|(stem, ending)| !stem.is_empty() && ENDINGS.contains(&ending))
}

/// A 64-bit key for a text; the same in every run.
pub(super) fn key(text: &str) -> u64 {
    let mut hasher = foldhash::fast::FixedState::with_seed(7).build_hasher();
    hasher.write(text.as_bytes());
    hasher.finish()
}

/// Who used a name; the later ones say more of whether it is used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) enum By {
    /// A tool's output.
    #[default]
    Output,
    /// The model, in words.
    Model,
    /// The user, or a call.
    Call,
}

/// What is known of one name.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Name {
    /// Messages that hold it.
    pub(super) count: u32,
    /// Position of the last of them.
    pub(super) last: u32,
    /// Whether a message that stays in the conversation holds it.
    pub(super) kept: bool,
    /// Who has used it, as far as it tells most.
    pub(super) by: By,
}

/// How often and when names were met. About 2 MB when full.
#[derive(Debug, Default)]
pub(super) struct Names {
    known: HashMap<u64, Name>,
}

impl Names {
    /// Notes every name in a text of the message at `position`.
    pub(super) fn note(&mut self, text: &str, position: u32, kept: bool, by: By) {
        self.note_each(text, position, kept, by, |_, _| {});
    }

    /// The same; `noted` gets every name and in how many messages it was met so far.
    pub(super) fn note_each<'t>(
        &mut self,
        text: &'t str,
        position: u32,
        kept: bool,
        by: By,
        mut noted: impl FnMut(&'t str, u32),
    ) {
        each(text, |word| {
            let entry = self.known.entry(key(word)).or_default();
            if entry.count == 0 || entry.last != position {
                entry.count = entry.count.saturating_add(1);
            }
            entry.last = position;
            entry.kept |= kept;
            entry.by = entry.by.max(by);
            noted(word, entry.count);
        });
        if self.known.len() > KNOWN {
            self.forget(position);
        }
    }

    /// Forgets what was met least and longest ago, until half is left.
    fn forget(&mut self, position: u32) {
        let mut ages: Vec<u32> = self.known.values().map(|name| age(name, position)).collect();
        let middle = ages.len() / 2;
        let (_, limit, _) = ages.select_nth_unstable(middle);
        let limit = *limit;
        self.known.retain(|_, name| age(name, position) < limit);
    }

    /// What is known of a name.
    pub(super) fn get(&self, word: u64) -> Name {
        self.known.get(&word).copied().unwrap_or_default()
    }
}

fn age(name: &Name, position: u32) -> u32 {
    position.saturating_sub(name.last) / name.count.clamp(1, 8)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Vec<&str> {
        let mut found = Vec::new();
        each(text, |word| found.push(word));
        found
    }

    #[test]
    fn names_are_told_by_their_shape() {
        assert_eq!(
            names(
                "Call `read_line` of src/io/reader.rs, then LineReader and parseAll --dry-run with zqk4417v."
            ),
            ["read_line", "src/io/reader.rs", "LineReader", "parseAll", "--dry-run", "zqk4417v"]
        );
        assert_eq!(names("请修改 `cache_prefix` 和src/a.rs。"), ["cache_prefix", "src/a.rs"]);
        assert_eq!(
            names("self.read_all(json.loads, LineView.ResizeMode)"),
            ["read_all", "LineView", "ResizeMode"]
        );
        assert!(names("#!/usr/bin/env x 2>/dev/null").is_empty());
        assert!(names("The quick brown fox, e.g. 12345 or 3.14 -- and HTTP ...").is_empty());
    }

    #[test]
    fn names_are_counted_by_message_and_bounded() {
        let mut all = Names::default();
        all.note("old_name old_name", 1, false, By::Call);
        all.note("old_name", 2, true, By::Output);
        let known = all.get(key("old_name"));
        assert_eq!((known.count, known.last, known.kept, known.by), (2, 2, true, By::Call));
        for n in 0..200_000u32 {
            all.note(&format!("name_{n}"), 3 + n, false, By::Model);
        }
        assert!(all.known.len() <= KNOWN + 1);
        assert_eq!(all.get(key("name_199999")).count, 1);
    }
}
