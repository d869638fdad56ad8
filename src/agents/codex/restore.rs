//! `--restore`: where the original rollout stood. How a line is put together again is the reader's part.

use super::read;
use super::write::CODEX;
use crate::agents::restore::{self, Original};
use crate::agents::{WriteOptions, Writer, paths};
use crate::record::{Error, Result, Session};
use crate::stream::World;
use std::path::{Path, PathBuf};

/// Begins to restore a session.
pub(super) fn writer<'w>(options: &'w WriteOptions, world: &'w World) -> Result<Box<dyn Writer + 'w>> {
    restore::writer(Original { to: CODEX, line: read::restore, place, id }, options, world)
}

/// The client goes by the thread in the name of the file, which may have that of a segment behind it; a name
/// without one is no session to it.
fn id(session: &Session, file: &Path) -> String {
    read::id_of_name(file).unwrap_or_else(|| session.session_id.clone())
}

/// `sessions/YYYY/MM/DD/<the name it had>`, by the date in its name; a rollout that came without such a name
/// gets one from its id and its first date.
fn place(session: &Session, options: &WriteOptions, world: &World) -> Result<(PathBuf, Option<PathBuf>)> {
    let source = session.source_path.as_deref().map(Path::new);
    let had = source.and_then(Path::file_name).and_then(|n| n.to_str());
    let had = had.map(|n| n.strip_suffix(".zst").unwrap_or(n)).filter(|n| date(n).is_some());
    let name = match had {
        Some(name) => name.to_owned(),
        None => {
            let id = session.session_id.as_str();
            if id.is_empty()
                || id.len() > 200
                || !id.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
            {
                return Err(Error::failed(format!("{id:?} is no id that can name a rollout")));
            }
            let begun =
                session.created_at.as_deref().and_then(|t| t.parse().ok()).unwrap_or_else(|| world.now());
            let local = begun.to_zoned_datetime(world.zone());
            format!("rollout-{}-{id}.jsonl", local.strftime("%Y-%m-%dT%H-%M-%S"))
        }
    };
    let Some((year, month, day)) = date(&name) else {
        return Err(Error::failed(format!("{name:?} is no name of a rollout")));
    };
    let file = CODEX.home(options, world)?.join("sessions").join(year).join(month).join(day).join(&name);
    Ok((file, paths::project(session, options, world).ok()))
}

/// Year, month and day of `rollout-YYYY-MM-DDThh-mm-ss-<uuid>.jsonl`, when the name is of that form and safe.
fn date(name: &str) -> Option<(&str, &str, &str)> {
    let time = name.strip_prefix("rollout-")?.get(..19)?;
    let shape = time.bytes().enumerate().all(|(n, b)| match n {
        4 | 7 | 13 | 16 => b == b'-',
        10 => b == b'T',
        _ => b.is_ascii_digit(),
    });
    let rest = name.get(27..)?.strip_prefix('-')?.strip_suffix(".jsonl")?;
    let plain = rest.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_');
    (shape && plain && !rest.is_empty()).then(|| Some((time.get(..4)?, time.get(5..7)?, time.get(8..10)?)))?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_that_codex_gives_are_kept() {
        let id = "019b7ca9-8c88-715c-8289-ec2d0a9167ec";
        let name = format!("rollout-2026-01-02T03-04-05-{id}.jsonl");
        assert_eq!(date(&name), Some(("2026", "01", "02")));
        assert!(date(&format!("rollout-2026-01-02T03-04-05-{id}_{id}.jsonl")).is_some());
        for bad in
            ["0171-text.jsonl", "rollout-2026-01-02T03-04-05-.jsonl", "rollout-2026-01-02T03-04-05-a/b.jsonl"]
        {
            assert_eq!(date(bad), None, "{bad}");
        }
    }
}
