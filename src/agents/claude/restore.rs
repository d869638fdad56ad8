//! From the records of one line back to the line.
//!
//! The first part's `extra` is the source line with `null` in each place that its records hold: the whole
//! `content` where it is one string; else, block by block, the `text`, `thinking`, `input` or `content` of a
//! block or the block itself. A `native` record holds its line alone.

use super::locate::folder_name;
use super::read::attached;
use super::write::CLAUDE;
use crate::agents::restore::{self, Original};
use crate::agents::{WriteOptions, Writer, paths};
use crate::json::{Kind, Tape, Value};
use crate::record::{Error, Result, Session, path, splice};
use crate::stream::World;
use base64::Engine as _;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Begins to restore a session.
pub(super) fn writer<'w>(options: &'w WriteOptions, world: &'w World) -> Result<Box<dyn Writer + 'w>> {
    restore::writer(Original { to: CLAUDE, line, place, id }, options, world)
}

/// The client goes by the name of the file.
fn id(session: &Session, file: &Path) -> String {
    file.file_stem().and_then(|s| s.to_str()).unwrap_or(&session.session_id).to_owned()
}

/// `projects/<folder>/<id>.jsonl`: the folder from which the session was read, else that of the directory in
/// which it goes on.
fn place(session: &Session, options: &WriteOptions, world: &World) -> Result<(PathBuf, Option<PathBuf>)> {
    let plain = |id: &&str| {
        let good = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        !id.is_empty() && id.len() <= 200 && id.chars().all(good)
    };
    // what cannot name a file was no file's name either
    let source = session.source_path.as_deref().map(Path::new);
    let stem = source.and_then(Path::file_stem).and_then(|s| s.to_str());
    let Some(id) = [Some(session.session_id.as_str()), stem].into_iter().flatten().find(plain) else {
        return Err(Error::failed(format!("{:?} is no id that can name a file", session.session_id)));
    };
    let directory = paths::project(session, options, world);
    let stood = source
        .and_then(Path::parent)
        .filter(|folder| folder.parent().and_then(Path::file_name) == Some("projects".as_ref()))
        .and_then(Path::file_name);
    let folder = match (&options.project, &directory, stood, session.working_directory.as_deref()) {
        (None, _, Some(stood), _) => PathBuf::from(stood),
        (_, Ok(directory), ..) => PathBuf::from(folder_name(directory)),
        // the directory need not be here for its file to be put back
        (None, _, None, Some(own)) if path::is_absolute(own) => {
            PathBuf::from(folder_name(&paths::mapped(own, &options.map_path)))
        }
        _ => return directory.map(|directory| (directory, None)),
    };
    let file = CLAUDE.home(options, world)?.join("projects").join(&folder).join(format!("{id}.jsonl"));
    // the client looks in the folder of the directory in which it is started
    let resumed = directory.ok().filter(|d| Path::new(&folder_name(d)) == folder);
    Ok((file, resumed.filter(|_| uuid::Uuid::try_parse(id).is_ok())))
}

/// Puts a source line together again from all of its records, in any order. `None` when they hold nothing
/// of the line: made records, or records that were read without `extra`.
///
/// # Errors
/// Records that do not fit together: one is missing, or `extra` is not of the form above.
pub fn line(records: &[&[u8]]) -> Result<Option<Vec<u8>>> {
    let mut tapes: Vec<Tape> = records.iter().map(|_| Tape::new()).collect();
    let mut values = Vec::with_capacity(records.len());
    for (record, tape) in records.iter().zip(&mut tapes) {
        values.push(tape.parse(record).map_err(|e| Error::shape(e.to_string()))?);
    }
    let is = |v: &Value<'_>, kind: &str| v.get("type").and_then(|t| t.text()).is_some_and(|t| t == kind);
    if let Some(native) = values.iter().find(|v| is(v, "native")) {
        return of_native(*native).map(Some);
    }
    values.retain(|v| is(v, "message") && v.get("synthetic").and_then(|s| s.bool()) != Some(true));
    values.sort_by_key(|v| v.get("part").and_then(|p| p.u64()).unwrap_or(0));
    let Some(extra) = values.first().and_then(|v| v.get("extra")).filter(Value::is_object) else {
        return Ok(None);
    };
    let mut filling = Filling { records: values.iter(), open: None, edits: Vec::new(), misfit: false };
    filling.line(extra);
    if filling.misfit
        || filling.open.is_some_and(|mut rest| rest.next().is_some())
        || filling.records.next().is_some()
    {
        return Err(Error::shape("the records of this line do not fit its `extra`"));
    }
    let base = extra.span().start;
    let edits = filling.edits.into_iter().map(|(at, new)| (at.start - base..at.end - base, new)).collect();
    Ok(Some(splice(extra.raw(), edits)))
}

fn of_native(native: Value<'_>) -> Result<Vec<u8>> {
    if let Some(raw) = native.get("raw").and_then(|r| r.text()) {
        return Ok(raw.decode().into_owned().into_bytes());
    }
    if let Some(raw) = native.get("raw_base64").and_then(|r| r.text()) {
        return base64::engine::general_purpose::STANDARD
            .decode(raw.raw())
            .map_err(|_| Error::shape("`raw_base64` is no base64"));
    }
    let value = native.get("value").ok_or_else(|| Error::shape("a native record needs `value` or `raw`"))?;
    Ok(value.raw().to_vec())
}

fn is_text(block: Value<'_>) -> bool {
    block.get("type").and_then(|t| t.text()).is_some_and(|t| t == "text")
}

/// Puts what records hold into the places of a line, both in order.
struct Filling<'a, 'v> {
    records: std::slice::Iter<'v, Value<'a>>,
    /// Blocks of the last record that have not found their place.
    open: Option<crate::json::Items<'a>>,
    edits: Vec<(Range<usize>, &'a [u8])>,
    misfit: bool,
}

impl<'a> Filling<'a, '_> {
    fn line(&mut self, line: Value<'a>) {
        let kind = line.get("type").and_then(|t| t.text()).map(|t| t.decode());
        match kind.as_deref() {
            Some("attachment") => {
                let Some(attachment) = line.get("attachment") else { return };
                if let Some(prompt) = attachment.get("prompt") {
                    self.content(prompt, false);
                }
                let rendered = line.get("rendered").and_then(|r| r.items().next());
                if let Some(content) = rendered.and_then(|r| r.get("content")).filter(Value::is_null) {
                    self.whole(content);
                } else if attached::path(attachment).is_some() {
                    // what was named with `@` has a record that holds nothing of the line
                    self.records.next();
                }
            }
            Some("system") => {
                if let Some(content) = line.get("content").filter(Value::is_null) {
                    self.whole(content);
                }
            }
            kind => {
                if let Some(content) = line.get("message").and_then(|m| m.get("content")) {
                    self.content(content, kind == Some("assistant"));
                }
            }
        }
    }

    fn content(&mut self, content: Value<'a>, assistant: bool) {
        if content.is_null() {
            self.whole(content);
        }
        for block in content.items() {
            self.block(block, assistant);
        }
    }

    fn block(&mut self, block: Value<'a>, assistant: bool) {
        if block.is_null() {
            return self.whole_block(block);
        }
        let kind = block.get("type").and_then(|t| t.text()).map(|t| t.decode());
        let field = match (kind.as_deref(), assistant) {
            (Some("text"), _) => "text",
            (Some("thinking"), true) => "thinking",
            (Some("tool_use" | "server_tool_use" | "mcp_tool_use"), true) => "input",
            (Some("tool_result"), false) => "content",
            // it has a record that holds nothing of the line
            (Some("redacted_thinking"), true) => return self.skip(),
            _ => return,
        };
        match (block.get(field), field) {
            (Some(hole), "text") if hole.is_null() => self.text(hole),
            // an empty text is no record
            (_, "text") => {}
            (Some(hole), _) if hole.is_null() => self.whole(hole),
            // the record holds something else: tool output from a file, an input that relay had mapped
            _ => self.skip(),
        }
    }

    fn next(&mut self) -> Option<Value<'a>> {
        if self.open.take().is_some_and(|mut rest| rest.next().is_some()) {
            self.misfit = true;
        }
        let next = self.records.next().copied();
        self.misfit |= next.is_none();
        next
    }

    fn skip(&mut self) {
        self.next();
    }

    fn put(&mut self, hole: Value<'a>, with: Option<Value<'a>>) {
        match with {
            Some(value) => self.edits.push((hole.span(), value.raw())),
            None => self.misfit = true,
        }
    }

    /// A place that holds what one record holds.
    fn whole(&mut self, hole: Value<'a>) {
        let value = self.next().and_then(|record| record.get("input").or_else(|| record.get("content")));
        self.put(hole, value);
    }

    /// The text of a block; blocks behind it may have joined its record.
    fn text(&mut self, hole: Value<'a>) {
        let Some(content) = self.next().and_then(|record| record.get("content")) else {
            self.misfit = true;
            return;
        };
        if content.kind() != Kind::Array {
            return self.put(hole, Some(content));
        }
        let mut blocks = content.items();
        let text = blocks.next().and_then(|block| block.get("text"));
        self.open = Some(blocks);
        self.put(hole, text);
    }

    /// A block that stands whole in a record.
    fn whole_block(&mut self, hole: Value<'a>) {
        if let Some(joined) = self.open.as_mut().and_then(Iterator::next) {
            return self.put(hole, Some(joined));
        }
        let Some(content) = self.next().and_then(|record| record.get("content")) else {
            self.misfit = true;
            return;
        };
        if content.kind() != Kind::Array {
            // a bare string
            return self.put(hole, Some(content));
        }
        let mut blocks = content.items();
        let block = blocks.next();
        self.open = Some(blocks);
        // a text block never stands whole: this was a bare string that others joined
        let bare = block.and_then(|b| b.get("text")).filter(|text| text.text().is_some());
        self.put(hole, bare.filter(|_| block.is_some_and(is_text)).or(block));
    }
}
