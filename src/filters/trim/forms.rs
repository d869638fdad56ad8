//! The shorter forms of a record, each a record of its own that stands for it.

use super::cost::{INPUT, image_data};
use crate::filters::ends::tail;
use crate::filters::redact::detect::{cut_after, cut_before, secret_at};
use crate::filters::typed::Lines;
use crate::json::{Kind, Tape, Text, Value, write_escaped, write_string};
use crate::record::{By, Draft, Error, Head, Origin, Result, Role, Status, number};
use crate::tokens::image;
use memchr::memmem;
use std::borrow::Cow;
use std::ops::Range;

/// What becomes of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Form {
    /// It stays as it is.
    Whole,
    /// Its images are named, and its text stays.
    Plain,
    /// Head, tail and lines that tell of errors, about so many bytes in all.
    Condensed(u64),
    /// Of a prompt what the user typed and what other prompts do not hold, about so many bytes.
    Typed(u64),
    /// The lines of a result that tell most, and how much it was.
    Told,
    /// One line: how much it was and whether it worked.
    Masked,
    /// One line: what it told is told again later.
    Superseded,
    /// The long texts of a call's input are cut.
    Short,
    /// Of a call's input only its size is told.
    Bare,
    /// It is out of the budget.
    Gone,
}

/// Most of an escaped text that is decoded whole, in bytes; of a longer one only the ends are looked at.
const DECODED: usize = 2 << 20;

/// Longest line of an error that is kept, in bytes.
const ERROR_LINE: usize = 200;

/// Most of the line that says why a call failed, in bytes.
const WHY: usize = 100;

/// Most error lines that are looked for, of each word.
const ERROR_LINES: usize = 50;

/// Of a template, what is kept beside the words of the user, in bytes.
const TEMPLATE: usize = 1_200;

/// A result up to this length is never masked, in bytes.
const BRIEF: usize = 250;

/// Lines of a successful run that are told, and most of one of them, in bytes.
const TOLD: usize = 3;
const TOLD_LINE: usize = 120;

/// What is kept of a text of a call's input that is longer than [`INPUT`], in bytes.
const INPUT_HEAD: usize = 120;

/// What is looked at behind that, in bytes.
const LOOKED_AT: usize = 2_000;

/// Keys under which an edit holds the old text and the new one.
const EDITS: [(&str, &str); 3] =
    [("old_string", "new_string"), ("old_str", "new_str"), ("oldText", "newText")];

/// What is kept of the lines that an edit or a patch changes, in bytes, and where they are looked for.
const CHANGED: usize = 600;
const COMPARED: usize = 64 << 10;

/// Depth from which on a call's input is not looked into.
const DEPTH: usize = 24;

/// Most of a call's input in its short form, in bytes.
const SHORT: usize = 2_000;

/// Words of lines that tell of errors, without their first letter where that may be a capital.
const ERROR_WORDS: [&str; 9] =
    ["rror", "RROR", "ailed", "ailure", "FAIL", "anicked", "xception", "raceback", "atal:"];

/// The record that stands for `line` in this form.
///
/// # Errors
/// The line is no record.
pub(super) fn twin(line: &[u8], form: Form, lines: &Lines, tape: &mut Tape) -> Result<Vec<u8>> {
    let value = tape.parse(line).map_err(|e| Error::shape(e.to_string()))?;
    let head = Head::scanned(value)?;
    let mut out = Vec::with_capacity(1024);
    begin(&mut out, value, &head);
    if head.role == Some(Role::ToolCall) {
        out.extend_from_slice(b",\"input\":");
        match value.get("input") {
            Some(input) if form == Form::Bare => bare_input(&mut out, input),
            Some(input) => short_input(&mut out, input),
            None => out.extend_from_slice(b"null"),
        }
        out.push(b'}');
        return Ok(out);
    }
    out.extend_from_slice(b",\"content\":");
    let content = value.get("content");
    match form {
        Form::Plain => plain(&mut out, content),
        Form::Masked | Form::Told | Form::Superseded => write_string(&mut out, &mask(&head, value, form)),
        Form::Typed(bytes) => {
            let text = content.map(body).unwrap_or_default();
            let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
            write_string(&mut out, &typed(&text, lines, bytes));
        }
        Form::Condensed(bytes) => {
            let text = content.map(body).unwrap_or_default();
            let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
            let result = head.role == Some(Role::ToolResult);
            let shown = if result { plain_text(&text.shown) } else { Cow::Borrowed(&*text.shown) };
            let length = if shown.len() < text.shown.len() { shown.len() } else { text.length };
            write_string(&mut out, &condense(&shown, length, bytes, result));
        }
        Form::Whole | Form::Short | Form::Bare | Form::Gone => match content {
            Some(content) => out.extend_from_slice(content.raw()),
            None => out.extend_from_slice(b"null"),
        },
    }
    out.push(b'}');
    Ok(out)
}

/// Begins the record: everything that routes and pairs it, and the facts that are no text.
fn begin(out: &mut Vec<u8>, value: Value<'_>, head: &Head<'_>) {
    let time = head.timestamp.map(|t| t.decode());
    let mut draft = Draft::new(head.role.unwrap_or(Role::User));
    draft.by = match (head.origin, head.harness) {
        (Some(Origin::Harness), Some(kind)) => By::Harness(kind),
        (Some(Origin::Relay), _) => By::Relay,
        _ => By::Conversation,
    };
    draft.seq = head.seq;
    draft.turn = head.turn;
    draft.group = head.group.map(|g| g.raw());
    draft.tool_call_id = head.tool_call_id.map(|t| t.raw());
    draft.tool_name = head.tool_name.map(|t| t.raw());
    draft.status = head.status;
    draft.timestamp = time.as_deref();
    draft.synthetic = true;
    draft.begin(out);
    if let Some(seq) = head.seq {
        out.extend_from_slice(b",\"replaces\":");
        number(out, seq);
    }
    for key in ["raw_tool_call_id", "exit_code", "metadata"] {
        if let Some(fact) = value.get(key) {
            out.extend_from_slice(b",\"");
            out.extend_from_slice(key.as_bytes());
            out.extend_from_slice(b"\":");
            out.extend_from_slice(fact.raw());
        }
    }
}

/// Content in which images are named.
fn plain(out: &mut Vec<u8>, content: Option<Value<'_>>) {
    let Some(content) = content else {
        out.extend_from_slice(b"null");
        return;
    };
    if content.kind() != Kind::Array {
        out.extend_from_slice(content.raw());
        return;
    }
    out.push(b'[');
    for (n, block) in content.items().enumerate() {
        if n > 0 {
            out.push(b',');
        }
        if is_image(block) {
            out.extend_from_slice(b"{\"type\":\"text\",\"text\":");
            write_string(out, &image_words(block));
            out.push(b'}');
        } else {
            out.extend_from_slice(block.raw());
        }
    }
    out.push(b']');
}

/// Whether a block is an image.
pub(super) fn is_image(block: Value<'_>) -> bool {
    block.get("type").and_then(|t| t.text()).is_some_and(|t| t == "image")
}

fn image_words(block: Value<'_>) -> String {
    let media = block.get("source").and_then(|s| s.get("media_type")).and_then(|m| m.text());
    let media = media.map_or_else(|| "of unknown type".to_owned(), |m| m.head(40).into_owned());
    let data = image_data(block).map(|t| t.raw()).unwrap_or_default();
    let size = image::size(data).map(|s| format!(", {} x {}", s.width, s.height)).unwrap_or_default();
    format!("[image omitted: {media}{size}, {} bytes]", grouped(data.len() as u64 / 4 * 3))
}

/// A content as one text; of a very long one its two ends.
#[derive(Debug, Default)]
struct Shown<'a> {
    shown: Cow<'a, str>,
    /// Bytes of the whole.
    length: usize,
}

fn body(content: Value<'_>) -> Shown<'_> {
    if let Some(text) = content.text() {
        return shown(text);
    }
    if content.kind() != Kind::Array {
        let raw = String::from_utf8_lossy(content.raw());
        return Shown { length: raw.len(), shown: raw };
    }
    let mut all = Shown::default();
    for block in content.items() {
        let text = block.text().or_else(|| block.get("text").and_then(|t| t.text()));
        let next = match text {
            Some(text) => shown(text),
            None if is_image(block) => {
                let words = image_words(block);
                Shown { length: words.len(), shown: words.into() }
            }
            None => {
                let raw = String::from_utf8_lossy(block.raw());
                Shown { length: raw.len(), shown: raw }
            }
        };
        if all.length > 0 {
            all.shown.to_mut().push('\n');
            all.length += 1;
        }
        all.length += next.length;
        all.shown.to_mut().push_str(&next.shown);
    }
    all
}

fn shown(text: Text<'_>) -> Shown<'_> {
    let raw = text.raw();
    if raw.len() <= DECODED {
        let decoded = text.decode();
        return Shown { length: decoded.len(), shown: decoded };
    }
    let mut both = text.head(DECODED / 2).into_owned();
    both.truncate(cut_before(None, &both, both.len().saturating_sub(1)));
    both.push_str("\n[…]\n");
    both.push_str(&tail(raw, DECODED / 2));
    Shown { shown: both.into(), length: raw.len() }
}

/// Head, tail and lines that tell of errors, in about so many bytes, and how much is missing.
///
/// `length` is that of the whole text, of which `text` may show the ends alone.
fn condense(text: &str, length: usize, bytes: usize, errors: bool) -> String {
    if text.len() <= bytes {
        return text.to_owned();
    }
    let share = |part: usize| bytes / 10 * part;
    let (head, tail) = if errors { (share(3), share(5)) } else { (share(6), share(4)) };
    let head = whole_lines_before(text, head);
    let tail = whole_lines_after(text, text.len().saturating_sub(tail)).max(head);
    let mut kept: Vec<Range<usize>> = std::iter::once(0..head).collect();
    if errors {
        let mut room = share(2);
        for line in error_lines(text, head..tail) {
            let end = if line.len() > ERROR_LINE { line.start + ERROR_LINE } else { line.end };
            let line = line.start..cut_before(None, text, end);
            if line.is_empty() || secret_at(None, text, line.start).is_some() {
                continue;
            }
            if line.len() > room {
                break;
            }
            room -= line.len();
            kept.push(line);
        }
    }
    kept.push(tail..text.len());
    let mut out = String::with_capacity(bytes + 200);
    let missing = length.saturating_sub(kept.iter().map(|k| k.len()).sum());
    let mut at = 0;
    let mut told = false;
    for piece in kept {
        if piece.start > at {
            if !out.is_empty() && !out.ends_with('\n') {
                out.push('\n');
            }
            if told {
                out.push_str("[…]\n");
            } else {
                out.push_str(&format!(
                    "[… {} of {} bytes left out …]\n",
                    grouped(missing as u64),
                    grouped(length as u64)
                ));
                told = true;
            }
        }
        out.push_str(text.get(piece.clone()).unwrap_or_default());
        at = piece.end.max(at);
    }
    out
}

/// The end of the last line that ends in the first `bytes`; of the last word when that line is very short.
fn whole_lines_before(text: &str, bytes: usize) -> usize {
    let most = bytes.min(text.len());
    let line = text.as_bytes().get(..most).and_then(|t| memchr::memrchr(b'\n', t));
    match line {
        Some(line) if line + 1 >= most / 2 => cut_before(None, text, line + 1),
        _ => cut_before(None, text, most),
    }
}

/// The start of the first line that starts at `at` or behind; of the first word when that is far away.
fn whole_lines_after(text: &str, at: usize) -> usize {
    let line = text.as_bytes().get(at..).and_then(|t| memchr::memchr(b'\n', t));
    match line {
        Some(line) if line < (text.len() - at) / 2 => cut_after(None, text, at + line + 1),
        _ => cut_after(None, text, at),
    }
}

/// The lines inside `range` that tell of errors, in order.
fn error_lines(text: &str, range: Range<usize>) -> Vec<Range<usize>> {
    let inside = text.as_bytes().get(range.clone()).unwrap_or_default();
    let mut lines = Vec::new();
    for word in ERROR_WORDS {
        let mut last = 0;
        let mut found = 0;
        for at in memmem::find_iter(inside, word.as_bytes()) {
            if at < last {
                continue;
            }
            let start = memchr::memrchr(b'\n', inside.get(..at).unwrap_or_default()).map_or(0, |n| n + 1);
            let end = memchr::memchr(b'\n', inside.get(at..).unwrap_or_default());
            let end = end.map_or(inside.len(), |n| at + n + 1);
            last = end;
            lines.push((range.start + start, range.start + end));
            found += 1;
            if found == ERROR_LINES {
                break;
            }
        }
    }
    lines.sort_unstable();
    lines.dedup();
    lines.into_iter().map(|(start, end)| start..end).collect()
}

/// A prompt in about so many bytes: the words of the user first.
fn typed(text: &Shown<'_>, lines: &Lines, bytes: usize) -> String {
    let typed = lines.apart(&text.shown, 2);
    if typed.words.len() + 200 > bytes || typed.rest.is_empty() {
        let words = if typed.words.is_empty() { &typed.rest } else { &typed.words };
        return condense(words, words.len(), bytes, false);
    }
    // of what is not the user's, enough to know the template
    let room =
        if typed.template { (bytes - typed.words.len()).min(TEMPLATE) } else { bytes - typed.words.len() };
    let rest = condense(&typed.rest, typed.rest.len(), room, false);
    if typed.words.is_empty() { rest } else { format!("{}\n\n{rest}", typed.words) }
}

/// The text of a content; of a very long one its two ends.
pub(super) fn text(content: Value<'_>) -> String {
    body(content).shown.into_owned()
}

/// A result without colours and without what a terminal writes over: of a line with carriage returns, the last part.
fn plain_text(text: &str) -> Cow<'_, str> {
    if memchr::memchr2(0x1b, b'\r', text.as_bytes()).is_none() {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let shown = line.trim_end_matches(['\r', '\n']);
        let shown = shown.rsplit('\r').next().unwrap_or(shown);
        let mut chars = shown.chars();
        while let Some(c) = chars.next() {
            match c {
                '\u{1b}' => escape(&mut chars),
                c => out.push(c),
            }
        }
        if line.ends_with('\n') {
            out.push('\n');
        }
    }
    Cow::Owned(out)
}

/// Skips what follows the escape character of a terminal's control sequence.
fn escape(chars: &mut std::str::Chars<'_>) {
    match chars.clone().next() {
        Some('[') => {
            chars.next();
            chars.by_ref().find(|c| ('\u{40}'..='\u{7e}').contains(c));
        }
        // a title, ended by a bell or by ESC \
        Some(']') => {
            let mut last = ' ';
            chars.by_ref().find(|c| {
                let end = *c == '\u{7}' || (last == '\u{1b}' && *c == '\\');
                last = *c;
                end
            });
        }
        _ => {
            chars.next();
        }
    }
}

/// One line for a result: how much it was, whether it worked, and if not, why.
fn mask(head: &Head<'_>, value: Value<'_>, form: Form) -> String {
    let text = value.get("content").map(body).unwrap_or_default();
    if text.length <= BRIEF {
        // it is hardly longer than what would stand for it
        return plain_text(&text.shown).into_owned();
    }
    let size = grouped(text.length as u64);
    if form == Form::Superseded {
        return format!("[tool result omitted: {size} bytes; the file is read or written again later]");
    }
    let code = value.get("exit_code").and_then(|c| c.u64());
    let failed = head.status == Some(Status::Error) || code.is_some_and(|c| c != 0);
    let how = match (code, head.status) {
        (Some(code), _) if failed => format!(", exit code {code}"),
        (_, Some(Status::Error)) => ", failed".to_owned(),
        (_, Some(Status::Ok)) => ", ok".to_owned(),
        _ => String::new(),
    };
    let plain = plain_text(&text.shown);
    if form == Form::Told && !failed {
        // what a run says last is how it went
        let mut last: Vec<String> = lines_of(&plain)
            .rev()
            .filter(|line| secret_at(None, &plain, line.start).is_none())
            .take(TOLD)
            .map(|line| beginning(&plain, line, TOLD_LINE))
            .collect();
        last.reverse();
        return format!("[tool result omitted: {size} bytes{how}; its last lines:]\n{}", last.join("\n"));
    }
    let most = if form == Form::Told { ERROR_LINE } else { WHY };
    let why = if failed { format!(": {}", why(&plain, most)) } else { String::new() };
    format!("[tool result omitted: {size} bytes{how}{why}]")
}

/// The lines of a text that hold something.
fn lines_of(text: &str) -> impl DoubleEndedIterator<Item = Range<usize>> {
    let start = text.as_ptr() as usize;
    text.lines().filter(|l| !l.trim().is_empty()).map(move |l| {
        let at = l.as_ptr() as usize - start;
        at..at + l.len()
    })
}

/// The beginning of the first line that tells of an error, else of the first line.
fn why(text: &str, most: usize) -> String {
    let whole = |line: &Range<usize>| secret_at(None, text, line.start).is_none();
    let first = 0..memchr::memchr(b'\n', text.as_bytes()).unwrap_or(text.len());
    let line = error_lines(text, 0..text.len()).into_iter().find(whole).unwrap_or(first);
    beginning(text, line, most)
}

/// A line, or so much of its beginning as there is room for; never a part of a secret.
fn beginning(text: &str, line: Range<usize>, most: usize) -> String {
    let blank = text.get(line.clone()).unwrap_or_default();
    let start = line.start + (blank.len() - blank.trim_start().len());
    let end = line.start + blank.trim_end().len();
    let to = cut_before(None, text, end.min(start + most));
    let cut = if to < end { "[…]" } else { "" };
    format!("{}{cut}", text.get(start..to).unwrap_or_default())
}

/// A call's input with its long texts cut.
fn short_input(out: &mut Vec<u8>, input: Value<'_>) {
    let start = out.len();
    shorten(out, None, input, 0);
    if out.len() - start > SHORT {
        out.truncate(start);
        bare_input(out, input);
    }
}

fn bare_input(out: &mut Vec<u8>, input: Value<'_>) {
    out.extend_from_slice(b"{\"omitted\":");
    write_string(out, &format!("[{} bytes of input left out]", grouped(input.raw().len() as u64)));
    out.push(b'}');
}

fn shorten(out: &mut Vec<u8>, name: Option<&[u8]>, value: Value<'_>, depth: usize) {
    if depth == DEPTH {
        write_string(out, &format!("[… {} bytes …]", grouped(value.raw().len() as u64)));
        return;
    }
    match value.kind() {
        Kind::String => {
            let raw = value.raw();
            match value.text() {
                Some(text) if raw.len() > INPUT && text.head(PATCH.len()) == PATCH => patch(out, text),
                Some(text) if raw.len() > INPUT => {
                    out.push(b'"');
                    // more than is kept, so that a secret at its end shows
                    let head = text.head(INPUT_HEAD + LOOKED_AT);
                    let head = head.get(..cut_before(name, &head, INPUT_HEAD)).unwrap_or_default();
                    write_escaped(out, head);
                    let left = raw.len().saturating_sub(head.len() + 2);
                    write_escaped(out, &format!("[… {} bytes left out …]", grouped(left as u64)));
                    out.push(b'"');
                }
                _ => out.extend_from_slice(raw),
            }
        }
        Kind::Object => {
            let edit = EDITS.iter().find_map(|(old, new)| {
                let (old, new) = ((*old, value.get(old)?.text()?), (*new, value.get(new)?.text()?));
                (old.1.raw().len().max(new.1.raw().len()) > INPUT).then(|| difference(old, new))
            });
            out.push(b'{');
            for (n, (key, value)) in value.entries().enumerate() {
                out.extend_from_slice(if n == 0 { b"\"" } else { b",\"" });
                out.extend_from_slice(key.raw());
                out.extend_from_slice(b"\":");
                match edit.iter().flatten().find(|(name, _)| key == *name) {
                    Some((_, changed)) => write_string(out, changed),
                    None => shorten(out, Some(key.raw()), value, depth + 1),
                }
            }
            out.push(b'}');
        }
        Kind::Array => {
            out.push(b'[');
            for (n, item) in value.items().enumerate() {
                if n > 0 {
                    out.push(b',');
                }
                shorten(out, name, item, depth + 1);
            }
            out.push(b']');
        }
        Kind::Number | Kind::True | Kind::False | Kind::Null => out.extend_from_slice(value.raw()),
    }
}

/// What an edit takes out and puts in, without the lines that both texts begin and end with.
fn difference<'a>(old: (&'a str, Text<'_>), new: (&'a str, Text<'_>)) -> [(&'a str, String); 2] {
    let texts = [old.1.head(COMPARED), new.1.head(COMPARED)];
    let [before, after] = &texts;
    let common = |one: &mut dyn Iterator<Item = &str>, other: &mut dyn Iterator<Item = &str>| -> usize {
        one.zip(other).take_while(|(one, other)| one == other).map(|(line, _)| line.len()).sum()
    };
    let head = common(&mut before.split_inclusive('\n'), &mut after.split_inclusive('\n'));
    let (old_rest, new_rest) =
        (before.get(head..).unwrap_or_default(), after.get(head..).unwrap_or_default());
    let tail = common(&mut old_rest.split_inclusive('\n').rev(), &mut new_rest.split_inclusive('\n').rev());
    [(old.0, before), (new.0, after)]
        .map(|(name, text)| (name, stretch(name.as_bytes(), text, head..text.len() - tail)))
}

/// The lines in `range`, or so much of their beginning as there is room for, with marks where others stand.
fn stretch(name: &[u8], text: &str, range: Range<usize>) -> String {
    let start = if range.start == 0 { 0 } else { cut_after(Some(name), text, range.start) };
    let most = range.end.min(start + CHANGED).max(start);
    let end = if most < text.len() { cut_before(Some(name), text, most).max(start) } else { most };
    let mut out = String::from(if start > 0 { "[…]\n" } else { "" });
    out.push_str(text.get(start..end).unwrap_or_default());
    if end < text.len() {
        let gap = if out.is_empty() || out.ends_with('\n') { "" } else { "\n" };
        out.push_str(gap);
        out.push_str("[…]");
    }
    out
}

/// How a patch of Codex begins.
const PATCH: &str = "*** Begin Patch";

/// A patch without the lines that it leaves as they are.
fn patch(out: &mut Vec<u8>, text: Text<'_>) {
    let all = text.head(COMPARED);
    let mut shown = String::new();
    let mut at = 0;
    let mut full = false;
    for line in all.split_inclusive('\n') {
        let told = line.starts_with(['+', '-', '*', '@']);
        // a secret of many lines is all there or not at all
        full |= told && shown.len() + line.len() > CHANGED;
        if told
            && !full
            && secret_at(None, &all, at).is_none()
            && secret_at(None, &all, at + line.len()).is_none()
        {
            shown.push_str(line);
        }
        at += line.len();
    }
    out.push(b'"');
    write_escaped(out, &shown);
    let left = text.raw().len().saturating_sub(shown.len());
    write_escaped(out, &format!("[… {} bytes left out …]", grouped(left as u64)));
    out.push(b'"');
}

/// A number with its thousands apart.
pub(super) fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn made(line: &str, form: Form) -> serde_json::Value {
        let twin = twin(line.as_bytes(), form, &Lines::default(), &mut Tape::new()).unwrap();
        serde_json::from_slice(&twin).unwrap_or_else(|e| panic!("{e}: {}", String::from_utf8_lossy(&twin)))
    }

    fn result(content: &str) -> String {
        format!(
            r#"{{"type":"message","role":"tool_result","dropped":null,"origin":null,"seq":7,"turn":2,"line":9,"part":null,"group":null,"tool_call_id":"t","tool_name":"Bash","status":"error","timestamp":"2026-01-02T00:00:00Z","exit_code":101,"metadata":{{"kind":"custom"}},"content":{content},"extra":{{"x":1}}}}"#
        )
    }

    #[test]
    fn a_condensed_result_keeps_what_matters() {
        let lines: Vec<String> = (0..400).map(|n| format!("line {n} of a long log")).collect();
        let text = lines.join("\n").replace("line 200 of", "error[E0308]: mismatched types in");
        let v = made(&result(&serde_json::to_string(&text).unwrap()), Form::Condensed(600));
        let shown = v["content"].as_str().unwrap();
        assert!(shown.len() < 750, "{}", shown.len());
        assert!(shown.starts_with("line 0 of a long log\n") && shown.ends_with("line 399 of a long log"));
        assert!(shown.contains("\nerror[E0308]: mismatched types in a long log\n[…]\n"), "{shown}");
        assert!(shown.contains(&format!("of {} bytes left out …]\n", grouped(text.len() as u64))), "{shown}");
        assert_eq!((&v["replaces"], &v["synthetic"], &v["seq"]), (&7.into(), &true.into(), &7.into()));
        assert_eq!((&v["tool_call_id"], &v["exit_code"]), (&"t".into(), &101.into()));
        assert_eq!(v["metadata"]["kind"], "custom");
        assert!(v.get("extra").is_none());
    }

    #[test]
    fn a_mask_says_whether_it_worked() {
        let text = "checking\nerror: no such file\nmore\n".repeat(400);
        let v = made(&result(&serde_json::to_string(&text).unwrap()), Form::Masked);
        assert_eq!(v["content"], "[tool result omitted: 13,600 bytes, exit code 101: error: no such file]");
        let ok = |text: &str| {
            let line = result(&serde_json::to_string(text).unwrap());
            line.replace("\"error\"", "\"ok\"").replace("\"exit_code\":101,", "")
        };
        let long = "a line of a run\n".repeat(20) + "done in 3 s";
        assert_eq!(made(&ok(&long), Form::Masked)["content"], "[tool result omitted: 331 bytes, ok]");
        let told = "[tool result omitted: 331 bytes, ok; its last lines:]\na line of a run\na line of a run\ndone in 3 s";
        assert_eq!(made(&ok(&long), Form::Told)["content"], told);
        let old = made(&ok(&long), Form::Superseded);
        assert_eq!(
            old["content"],
            "[tool result omitted: 331 bytes; the file is read or written again later]"
        );
        // the mark would be hardly shorter
        assert_eq!(made(&ok("\u{1b}[32mfine\u{1b}[0m"), Form::Masked)["content"], "fine");
    }

    #[test]
    fn images_are_named() {
        let png = "iVBORw0KGgoAAAANSUhEUgAAAAIAAAADCAYAAAC56t6B";
        let content = format!(
            r#"[{{"type":"text","text":"look"}},{{"type":"image","source":{{"type":"base64","media_type":"image/png","data":"{png}"}}}}]"#
        );
        let v = made(&result(&content), Form::Plain);
        assert_eq!(v["content"][0]["text"], "look");
        assert_eq!(v["content"][1]["text"], "[image omitted: image/png, 2 x 3, 33 bytes]");
        let v = made(&result(&content), Form::Condensed(500));
        assert_eq!(v["content"], "look\n[image omitted: image/png, 2 x 3, 33 bytes]");
    }

    #[test]
    fn a_long_input_keeps_its_shape() {
        let call = |input: &str| {
            format!(
                r#"{{"type":"message","role":"tool_call","tool_call_id":"t","tool_name":"Write","input":{input}}}"#
            )
        };
        let long = "é\\n".repeat(300);
        let v = made(
            &call(&format!(r#"{{"file_path":"/a/b","content":"{long}","list":[1,{{"x":"{long}"}}]}}"#)),
            Form::Short,
        );
        assert_eq!(v["input"]["file_path"], "/a/b");
        let cut = v["input"]["content"].as_str().unwrap();
        assert!(cut.starts_with("é\né") && cut.ends_with(" bytes left out …]") && cut.len() < 200, "{cut}");
        assert_eq!(v["input"]["list"][0], 1);
        let many = format!("[{}]", vec!["\"some item\""; 1000].join(","));
        assert_eq!(made(&call(&many), Form::Short)["input"]["omitted"], "[12,001 bytes of input left out]");
        let deep = format!("{}1{}", "[".repeat(100), "]".repeat(100));
        assert!(made(&call(&deep), Form::Short)["input"].to_string().contains("bytes …]"));
    }

    #[test]
    fn an_edit_is_told_as_its_difference() {
        let same = "  // an unchanged line of the function\n".repeat(12);
        let (old, new) = (
            format!("head\n{same}  return ok;\n}}"),
            format!("head\n{same}  if (a) return 7;\n  return ok;\n}}"),
        );
        let call = |input: serde_json::Value| {
            let line = serde_json::json!({"type":"message","role":"tool_call","tool_call_id":"t","tool_name":"Edit","input":input});
            made(&line.to_string(), Form::Short)["input"].clone()
        };
        for (a, b) in EDITS {
            let input = call(serde_json::json!({"path":"/a", a: old, b: new}));
            assert_eq!((&input[a], &input[b]), (&"[…]\n[…]".into(), &"[…]\n  if (a) return 7;\n[…]".into()));
            // several edits of one call, too, and what is short stays
            let input = call(serde_json::json!({"edits":[{a: old, b: new}, {a: "x", b: "y"}]}));
            assert_eq!(
                (&input["edits"][0][b], &input["edits"][1][b]),
                (&"[…]\n  if (a) return 7;\n[…]".into(), &"y".into())
            );
        }
        let context = " an unchanged line of the function\n".repeat(12);
        let patch = format!(
            "*** Begin Patch\n*** Update File: a.rs\n@@\n{context}-old\n+new\n{context}*** End Patch"
        );
        let shown = call(serde_json::json!({"input": patch}))["input"].as_str().unwrap().to_owned();
        assert!(
            shown.starts_with("*** Begin Patch\n*** Update File: a.rs\n@@\n-old\n+new\n*** End Patch[… "),
            "{shown}"
        );
        // a new file is told by its beginning
        let added = format!("*** Begin Patch\n*** Add File: a.rs\n{}", "+a new line\n".repeat(500));
        assert!(call(added.into()).as_str().unwrap().len() < 700);
        // no part of a key is left
        let key = format!(
            "-----BEGIN {} KEY-----\n{}-----END {} KEY-----\n",
            "PRIVATE",
            "MIIabcdefghijklmnopqrstuvwxyz0123456789\n".repeat(20),
            "PRIVATE"
        );
        let input =
            call(serde_json::json!({"path":"/a","old_string":"a\nb","new_string":format!("a\n{key}b")}));
        assert!(!input["new_string"].as_str().unwrap().contains("MIIabc"), "{input}");
    }

    #[test]
    fn the_ends_of_a_huge_text_are_shown() {
        let text = format!("first\\n{}\\nlast", "\\\\n filler\\n".repeat(400_000));
        let v = made(&result(&format!("\"{text}\"")), Form::Condensed(300));
        let shown = v["content"].as_str().unwrap();
        assert!(shown.starts_with("first\n") && shown.ends_with("\nlast") && shown.len() < 400, "{shown}");
    }

    proptest! {
        #[test]
        fn any_text_is_condensed_to_about_its_size(text in "([a-zé漢 ]{0,30}(\n|error|))*{0,60}", bytes in 0usize..400) {
            let short = condense(&text, text.len(), bytes, true);
            prop_assert!(short.len() <= bytes + 120 || short == text, "{} {bytes}", short.len());
            prop_assert_eq!(condense(&short, short.len(), short.len(), true), short.clone());
        }
    }

    #[test]
    fn thousands_stand_apart() {
        assert_eq!([0, 12, 999, 1000, 1_234_567].map(grouped), ["0", "12", "999", "1,000", "1,234,567"]);
    }
}
