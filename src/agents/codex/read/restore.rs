//! From the records of one line back to the line.

use super::compact::{compact, literal};
use super::line::{self, field};
use super::pieces::slots;
use crate::json::{Kind, Tape, Value};
use crate::record::{Error, Result, splice};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::borrow::Cow;

/// Puts a source line together again from all of its records, in any order. `None` when they hold nothing
/// of the line: made records, or records that were read without `extra`.
///
/// A line with a `native` record is that record's; else the first part's `extra` is the line, with `null` at
/// each place whose text stands in the records (the rule is in the README).
///
/// # Errors
/// Records that do not fit together: a part is missing, or `extra` is not of this form.
pub fn restore(records: &[&[u8]]) -> Result<Option<Vec<u8>>> {
    let mut tapes = records.iter().map(|_| Tape::new()).collect::<Vec<_>>();
    let mut values = Vec::with_capacity(records.len());
    for (record, tape) in records.iter().zip(&mut tapes) {
        values.push(tape.parse(record).map_err(|e| Error::shape(e.to_string()))?);
    }
    let word = |v: &Value<'_>, key: &str| v.get(key).and_then(|t| t.text()).map(|t| t.decode().into_owned());
    if let Some(native) = values.iter().find(|v| word(v, "type").as_deref() == Some("native")) {
        return of_native(*native).map(Some);
    }
    values.retain(|v| {
        word(v, "type").as_deref() == Some("message")
            && v.get("synthetic").and_then(|s| s.bool()) != Some(true)
    });
    values.sort_by_key(|v| v.get("part").and_then(|p| p.u64()).unwrap_or(0));
    let Some(extra) = values.first().and_then(|v| v.get("extra")).filter(Value::is_object) else {
        return Ok(None);
    };
    if let Some(bytes) = spelled_out(extra)? {
        return Ok(Some(bytes));
    }
    fill(extra, &values).map(Some)
}

fn of_native(native: Value<'_>) -> Result<Vec<u8>> {
    if let Some(bytes) = spelled_out(native)? {
        return Ok(bytes);
    }
    let value = native.get("value").ok_or_else(|| Error::shape("a native record needs `value` or `raw`"))?;
    Ok(value.raw().to_vec())
}

/// A line that is carried as its bytes.
fn spelled_out(holder: Value<'_>) -> Result<Option<Vec<u8>>> {
    if let Some(raw) = holder.get("raw").and_then(|r| r.text()) {
        return Ok(Some(raw.decode().into_owned().into_bytes()));
    }
    let Some(raw) = holder.get("raw_base64").and_then(|r| r.text()) else { return Ok(None) };
    STANDARD.decode(raw.raw()).map(Some).map_err(|_| Error::shape("`raw_base64` is not base64"))
}

fn fill(extra: Value<'_>, records: &[Value<'_>]) -> Result<Vec<u8>> {
    let misfit = || Error::shape("the records of this line do not fit its `extra`");
    let bare = field(extra, "payload").is_none();
    let sorted = line::sort_skeleton(extra, bare).ok_or_else(misfit)?;
    let mut blocks = Vec::new();
    for record in records {
        match (record.get("input"), record.get("content")) {
            (Some(input), _) => blocks.push(input),
            (None, Some(content)) if content.kind() == Kind::Array => blocks.extend(content.items()),
            (None, Some(content)) => blocks.push(content),
            (None, None) => return Err(misfit()),
        }
    }
    let mut blocks = blocks.into_iter();
    let mut edits = Vec::new();
    // places are counted from the start of the record; the line begins at `extra`
    let base = extra.span().start;
    if sorted.what == line::What::ImageGeneration {
        // the call's input is made of another place of the line; the picture is the model's message behind it
        let picture = records.iter().filter_map(|r| r.get("content")).flat_map(|c| c.items()).next();
        let data = picture.and_then(|p| p.get("source")?.get("data"));
        let holes = slots(sorted.payload, sorted.what).into_iter().filter(Value::is_null);
        for (slot, data) in holes.zip(data) {
            let span = slot.span();
            edits.push((span.start - base..span.end - base, Cow::Borrowed(data.raw())));
        }
        return Ok(splice(extra.raw(), edits));
    }
    let output = field(sorted.payload, "output").map(|o| o.span());
    for slot in slots(sorted.payload, sorted.what) {
        let is_call = matches!(sorted.what, line::What::FunctionCall | line::What::CustomCall);
        let new = match slot.text() {
            None if slot.is_null() && is_call => argument(blocks.next().ok_or_else(misfit)?),
            None if slot.is_null() => block(blocks.next().ok_or_else(misfit)?).ok_or_else(misfit)?,
            Some(shell) if output.as_ref() == Some(&slot.span()) => {
                // the wrapper of 2025 around its output
                let shell = shell.decode();
                let rest = shell.strip_prefix("{\"output\":null").ok_or_else(misfit)?;
                let words = blocks.next().and_then(|b| text_of(b)).ok_or_else(misfit)?;
                Cow::Owned(literal(&format!("{{\"output\":{}{rest}", literal(&words))).into_bytes())
            }
            _ => continue,
        };
        let span = slot.span();
        edits.push((span.start - base..span.end - base, new));
    }
    Ok(splice(extra.raw(), edits))
}

fn text_of(block: Value<'_>) -> Option<String> {
    let text = block.text().or_else(|| block.get("text").and_then(|t| t.text()))?;
    Some(text.decode().into_owned())
}

/// The string that holds a call's arguments: free text as it is, a value as its compact JSON.
fn argument(input: Value<'_>) -> Cow<'_, [u8]> {
    if input.kind() == Kind::String {
        return Cow::Borrowed(input.raw());
    }
    Cow::Owned(literal(&compact(&String::from_utf8_lossy(input.raw()))).into_bytes())
}

/// What stands in the line for a block of the record.
fn block(block: Value<'_>) -> Option<Cow<'_, [u8]>> {
    if block.kind() == Kind::String {
        return Some(Cow::Borrowed(block.raw()));
    }
    let kind = block.get("type").and_then(|t| t.text());
    match kind.map(|t| t.decode()).as_deref() {
        Some("text") => Some(Cow::Borrowed(block.get("text")?.raw())),
        Some("image") => {
            let source = block.get("source")?;
            if let Some(url) = source.get("url") {
                return Some(Cow::Borrowed(url.raw()));
            }
            let media_type = source.get("media_type")?.text()?.raw();
            let data = source.get("data")?.text()?.raw();
            Some(Cow::Owned([b"\"data:", media_type, b";base64,", data, b"\""].concat()))
        }
        _ => Some(Cow::Borrowed(block.raw())),
    }
}
