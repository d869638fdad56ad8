//! `--restore`: the original file from a full stream, line by line.
//!
//! Records come in the order of the conversation, lines are wanted in that of the file: the records wait in
//! a queue, and only where they stand is kept, 32 bytes a record.

use super::body::{Body, Target};
use super::handover::{Begun, Handover, Step, To};
use super::{WriteOptions, Writer, Written};
use crate::record::{Error, Kind, Record, Result, Session};
use crate::stream::{Held, Queue, World, look, refuse_existing};
use std::path::{Path, PathBuf};

/// Puts a source line together again from all of its records, in any order; `None` when they hold nothing of
/// it.
pub(in crate::agents) type Line = fn(&[&[u8]]) -> Result<Option<Vec<u8>>>;

/// What the agent knows of its files.
pub(in crate::agents) struct Original {
    /// Whose file it is.
    pub(in crate::agents) to: To,
    /// From records to line.
    pub(in crate::agents) line: Line,
    /// Where the file of a session stood, and the directory in which it is resumed, if there is one here.
    #[expect(clippy::type_complexity, reason = "said once")]
    pub(in crate::agents) place: fn(&Session, &WriteOptions, &World) -> Result<(PathBuf, Option<PathBuf>)>,
    /// The id by which the client resumes the file that stands there.
    pub(in crate::agents) id: fn(&Session, &Path) -> String,
}

/// Begins to restore a session.
pub(in crate::agents) fn writer<'w>(
    original: Original,
    options: &'w WriteOptions,
    world: &'w World,
) -> Result<Box<dyn Writer + 'w>> {
    Ok(Box::new(Restoring {
        hand: Handover::new(original.to, options, world),
        original,
        queue: Queue::default(),
        places: Vec::new(),
        begun: None,
    }))
}

struct Restoring<'w> {
    hand: Handover<'w>,
    original: Original,
    queue: Queue,
    /// 1-based line of the source, part, and where the record waits.
    places: Vec<(u64, u64, Held)>,
    begun: Option<Begun>,
}

impl Writer for Restoring<'_> {
    fn record(&mut self, record: &Record<'_>) -> Result<()> {
        let head = record.head();
        match head.kind {
            Kind::Session => {
                let session: Session = record.decode()?;
                self.begin(session)
            }
            Kind::End => self.hand.step(record).map(|_: Step| ()),
            Kind::Message | Kind::Native if !head.synthetic => {
                let Some((line, part)) = place_of(record) else { return Ok(()) };
                self.hand.messages += u64::from(head.kind == Kind::Message);
                let held = self.queue.push(&[record.line()])?;
                self.places.push((line, part, held));
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn finish(mut self: Box<Self>) -> Result<Written> {
        let Some(begun) = self.begun.take() else {
            return Err(Error::input("stream", "the session is not whole"));
        };
        self.places.sort_by_key(|(line, part, _)| (*line, *part));
        let mut body = Body::new(self.hand.options.dry_run)?;
        let mut rest = self.places.as_slice();
        let mut number = 0;
        while let Some((line, ..)) = rest.first() {
            number += 1;
            let (records, more) = rest.split_at(rest.partition_point(|(other, ..)| other == line));
            rest = more;
            if *line != number {
                return Err(partial(number));
            }
            body.put(&self.line(records, number)?)?;
            body.put(b"\n")?;
        }
        if number == 0 {
            return Err(Error::input(format!("session {}", begun.session.session_id), "nothing to restore"));
        }
        if let Some(file) = body.finish()? {
            begun.target.place(b"", file)?;
        }
        Ok(self.hand.written(begun))
    }
}

impl Restoring<'_> {
    fn begin(&mut self, session: Session) -> Result<()> {
        let (options, world) = (self.hand.options, self.hand.world);
        let to = self.original.to;
        if session.source_agent != to.agent {
            return Err(Error::Failed {
                what: format!(
                    "session {} is one of {}: it cannot be restored as {}'s",
                    session.session_id, session.source_agent, to.agent
                ),
                hint: Some("without --restore it becomes a new session".to_owned()),
            });
        }
        let target = match &options.output {
            Some(to) if to.as_os_str() == "-" => (Target::Stdout, None),
            Some(to) => (Target::File(world.resolve(to)), None),
            None => {
                let (file, directory) = (self.original.place)(&session, options, world)?;
                (Target::Store(file), directory)
            }
        };
        let (target, directory) = target;
        if let Target::Store(file) | Target::File(file) = &target {
            if options.dry_run { look(file)? } else { refuse_existing(file)? }
        }
        let id = (self.original.id)(&session, target.path());
        self.begun = Some(self.hand.again(session, id, target, directory)?);
        Ok(())
    }

    fn line(&self, places: &[(u64, u64, Held)], number: u64) -> Result<Vec<u8>> {
        let mut rooms = vec![Vec::new(); places.len()];
        let held = places.iter().zip(&mut rooms);
        let records =
            held.map(|((_, _, held), room)| self.queue.line(*held, room)).collect::<Result<Vec<_>>>()?;
        let misfit = |e: Error| Error::shape(format!("line {number} of the source: {e}"));
        (self.original.line)(&records).map_err(misfit)?.ok_or_else(|| partial(number))
    }
}

/// The line of the source that a record came from, and which part of it.
fn place_of(record: &Record<'_>) -> Option<(u64, u64)> {
    let head = record.head();
    head.line.map(|line| (line, head.part.unwrap_or(0)))
}

fn partial(line: u64) -> Error {
    Error::Failed {
        what: format!("line {line} of the source is not in the stream"),
        hint: Some(
            "only a full stream can be restored: relay-read without --lean, no filter that drops records"
                .to_owned(),
        ),
    }
}
