//! Who touched a stream is noted in the `session` records that pass.

use crate::json::Tape;
use crate::record::{Error, Record, Result, Session, Via, splice};
use crate::stream::Sink;

/// Hands records on and adds an entry to `via` of every `session` among them.
pub struct Signed<'o> {
    out: &'o mut dyn Sink,
    via: Option<&'o Via>,
    tape: Tape,
}

impl<'o> Signed<'o> {
    /// `via` is the entry; `None` changes nothing.
    pub fn new(out: &'o mut dyn Sink, via: Option<&'o Via>) -> Signed<'o> {
        Signed { out, via, tape: Tape::new() }
    }
}

impl Sink for Signed<'_> {
    fn put(&mut self, line: &[u8]) -> Result<()> {
        let Some(via) = self.via else { return self.out.put(line) };
        // what relay writes has its type first; only lines of other hands must be looked into
        let session = match line.strip_prefix(b"{\"type\":\"") {
            Some(rest) => rest.starts_with(b"session\""),
            None => Record::new(line, &mut self.tape)?.head().kind == crate::record::Kind::Session,
        };
        match session {
            true => self.out.put(&signed(line, via, &mut self.tape)?),
            false => self.out.put(line),
        }
    }

    fn put_all(&mut self, lines: &[u8]) -> Result<()> {
        self.out.put_all(lines)
    }
}

/// A `session` record with one more entry in `via`; all other bytes stay.
fn signed(line: &[u8], via: &Via, tape: &mut Tape) -> Result<Vec<u8>> {
    let session = tape.parse(line).map_err(|e| Error::shape(e.to_string()))?;
    let mut entry = serde_json::to_vec(via).map_err(|e| Error::shape(e.to_string()))?;
    // the last one counts where a key occurs twice
    let last = |key: &str| session.entries().filter(|(k, _)| *k == key).last().map(|(_, v)| v);
    if let Some(old) = last("via") {
        let end = old.span().end.saturating_sub(1);
        if old.raw().first() != Some(&b'[') {
            return Err(Error::shape("`via` of a session is no array"));
        }
        if old.items().next().is_some() {
            entry.insert(0, b',');
        }
        return Ok(splice(line, vec![(end..end, entry)]));
    }
    // in front of `extra`, which stays at the very end
    let before = session.entries().take_while(|(key, _)| *key != "extra").last();
    let Some((_, before)) = before else {
        return Err(Error::shape("a session record begins with its `type`"));
    };
    let mut added = b",\"via\":[".to_vec();
    added.append(&mut entry);
    added.push(b']');
    let at = before.span().end;
    Ok(splice(line, vec![(at..at, added)]))
}

/// The `session` record of a session that could not be read far enough to tell more.
pub(super) fn unread(session_id: &str, agent: &str, path: Option<&std::path::Path>) -> Result<Vec<u8>> {
    let session = Session {
        relay: crate::record::VERSION,
        session_id: session_id.to_owned(),
        source_agent: agent.to_owned(),
        source_path: path.map(|p| p.display().to_string()),
        ..Session::default()
    };
    session.to_line().map_err(|e| Error::shape(e.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sign(line: &str) -> String {
        let via = Via { name: "relay-x".into(), version: "1".into(), options: vec!["--a=1".into()] };
        let mut out = Vec::new();
        Signed::new(&mut out, Some(&via)).put(line.as_bytes()).unwrap();
        String::from_utf8(out.remove(0)).unwrap()
    }

    #[test]
    fn a_session_gains_one_entry_and_nothing_else_changes() {
        let mine = r#"{"name":"relay-x","version":"1","options":["--a=1"]}"#;
        let start = r#"{"type":"session","relay":1,"session_id":"s""#;
        assert_eq!(sign(&format!("{start}}}")), format!(r#"{start},"via":[{mine}]}}"#));
        let with_extra = format!(r#"{start},"extra":{{"via":[]}}}}"#);
        assert_eq!(sign(&with_extra), format!(r#"{start},"via":[{mine}],"extra":{{"via":[]}}}}"#));
        assert_eq!(sign(&format!(r#"{start},"via":[ ]}}"#)), format!(r#"{start},"via":[ {mine}]}}"#));
        let twice = sign(&sign(&format!("{start}}}")));
        assert_eq!(twice, format!(r#"{start},"via":[{mine},{mine}]}}"#));
        let other_order = r#"{"relay":1,"type":"session","session_id":"s"}"#;
        assert_eq!(
            sign(other_order),
            format!(r#"{},"via":[{mine}]}}"#, &other_order[..other_order.len() - 1])
        );
    }

    #[test]
    fn other_records_pass_as_they_are() {
        for line in [
            r#"{"type":"message","role":"user","content":"{\"type\":\"session\""}"#,
            r#"{"role":"user","type":"message","content":"x"}"#,
            r#"{"type":"end"}"#,
            r#"{"type":"session_note","x":1}"#,
        ] {
            assert_eq!(sign(line), line);
        }
    }

    #[test]
    fn without_entry_nothing_is_looked_at() {
        let mut out = Vec::new();
        Signed::new(&mut out, None).put(b"{\"type\":\"session\"").unwrap();
        assert_eq!(out, [b"{\"type\":\"session\"".to_vec()]);
    }
}
