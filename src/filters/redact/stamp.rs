//! What the session says of its redaction: `"redacted":{"level":"secrets","version":"…"}`.
//!
//! It stands there also when nothing was found. Who publishes a stream asks it.

use crate::json::{Tape, Value};
use crate::record::{Error, Redacted, Result, splice, with_fields};

/// The key in a session.
const KEY: &str = "redacted";

/// What a run with a choice of rules may say of a session.
pub(super) fn of(level: &str) -> Redacted {
    Redacted { level: level.to_owned(), version: env!("CARGO_PKG_VERSION").to_owned() }
}

/// How much a level is.
fn rank(level: &str) -> u8 {
    match level {
        Redacted::SHARE => 2,
        Redacted::SECRETS => 1,
        _ => 0,
    }
}

/// The line of a session that says so; `None` when it says it already, or more.
pub(super) fn added(line: &[u8], session: Value<'_>, new: &Redacted) -> Result<Option<Vec<u8>>> {
    let word = |key: &str| {
        let text = session.get(KEY).and_then(|old| old.get(key)?.text());
        text.map(|text| text.decode().into_owned()).unwrap_or_default()
    };
    let old = (rank(&word("level")), word("version"));
    let level = rank(&new.level);
    if old.0 > level || (old.0 == level && old.1 == new.version) {
        return Ok(None);
    }
    let new = serde_json::to_vec(new).map_err(|e| Error::failed(e.to_string()))?;
    Ok(Some(with_fields(line, session, &[(KEY, &new)])))
}

/// The line of a session that says nothing of it; `None` when it does not.
pub(super) fn removed(line: &[u8], tape: &mut Tape) -> Result<Option<Vec<u8>>> {
    let session = tape.parse(line).map_err(|e| Error::shape(e.to_string()))?;
    let mut last = None;
    for (key, value) in session.entries() {
        let end = value.span().end;
        if key == KEY {
            let start = key_start(line, key.raw());
            // with the comma before it; the first entry with that behind it
            let range = match last {
                Some(last) => last..end,
                None => start..session.entries().nth(1).map_or(end, |(next, _)| key_start(line, next.raw())),
            };
            return Ok(Some(splice(line, vec![(range, Vec::new())])));
        }
        last = Some(end);
    }
    Ok(None)
}

/// Where a key begins, its quote included.
fn key_start(line: &[u8], key: &[u8]) -> usize {
    (key.as_ptr() as usize).saturating_sub(line.as_ptr() as usize + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_set_raised_and_taken_off() {
        let mut tape = Tape::new();
        let mut set = |line: &str, level: &str| {
            let value = tape.parse(line.as_bytes()).unwrap();
            added(line.as_bytes(), value, &of(level)).unwrap().map(|line| String::from_utf8(line).unwrap())
        };
        let bare = r#"{"type":"session" , "relay":1}"#;
        let secrets = set(bare, "secrets").unwrap();
        let share = set(bare, "share").unwrap();
        assert_eq!(set(&secrets, "secrets"), None);
        assert_eq!(set(&share, "secrets"), None);
        assert_eq!(set(&secrets, "share").as_deref(), Some(share.as_str()));
        let old = secrets.replace(env!("CARGO_PKG_VERSION"), "0.0.0");
        assert_eq!(set(&old, "secrets").as_deref(), Some(secrets.as_str()));
        let mut tape = Tape::new();
        let mut off = |line: &str| {
            removed(line.as_bytes(), &mut tape).unwrap().map(|line| String::from_utf8(line).unwrap())
        };
        assert_eq!(off(&share).as_deref(), Some(bare));
        assert_eq!(off(bare), None);
        assert_eq!(off(r#"{"redacted":{},"a":1}"#).as_deref(), Some(r#"{"a":1}"#));
        assert_eq!(off(r#"{"redacted":{}}"#).as_deref(), Some("{}"));
    }
}
