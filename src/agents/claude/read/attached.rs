//! What a human puts beside a prompt: files, folders and pictures named with `@`, which the client reads for them.
//!
//! The line holds what was read, and in `rendered` the texts that the client sends. Without `rendered` the client
//! makes them at the time of sending, and so does this (2.1.332, texts as it sends them); the picture of an image is
//! always made so.

use crate::json::{Value, write_string};

/// The path that an attachment puts before the model, if it is one.
pub(in crate::agents::claude) fn path<'a>(attachment: Value<'a>) -> Option<Value<'a>> {
    let kind = attachment.get("type")?.text()?;
    let key = match &*kind.decode() {
        "file" | "already_read_file" => "filename",
        "directory" => "path",
        _ => return None,
    };
    attachment.get(key).filter(|path| path.text().is_some_and(|text| !text.is_empty()))
}

/// The picture of an attachment, as the JSON of a content block.
pub(super) fn picture(attachment: Value<'_>) -> Option<Vec<u8>> {
    path(attachment)?;
    let shown = attachment.get("content")?;
    shown.get("type").and_then(|kind| kind.text()).filter(|kind| *kind == "image")?;
    let file = shown.get("file")?;
    let (media, base64) = (file.get("type")?, file.get("base64")?);
    let mut block = b"{\"type\":\"image\",\"source\":{\"type\":\"base64\",\"media_type\":".to_vec();
    block.extend_from_slice(media.raw());
    block.extend_from_slice(b",\"data\":");
    block.extend_from_slice(base64.raw());
    block.extend_from_slice(b"}}");
    Some(block)
}

/// What is sent of an attachment that a human named, as the JSON of a message's content; `None` for one of another
/// kind or shape. `pictured`: its picture, too.
pub(super) fn content(attachment: Value<'_>, rendered: Option<Value<'_>>, pictured: bool) -> Option<Vec<u8>> {
    let path = path(attachment)?;
    let mut blocks = Blocks(vec![b'[']);
    let texts = rendered.map(|r| r.items().filter_map(|one| one.get("content")));
    for text in texts.into_iter().flatten().filter_map(|content| content.text()) {
        blocks.text(&text.decode());
    }
    let made = blocks.is_empty();
    let named = path.text()?.decode();
    let shown = attachment.get("content")?;
    if let Some(listed) = shown.text() {
        if made {
            blocks.reminder(&format!(
                "Called the Bash tool with the following input: {{\"command\":{},\"description\":{}}}",
                quoted(&format!("ls {named}")),
                quoted(&format!("Lists files in {named}"))
            ));
            blocks.reminder(&format!("Result of calling the Bash tool:\n{}", listed.decode()));
        }
        return blocks.end();
    }
    let file = shown.get("file")?;
    if made {
        blocks.reminder(&format!(
            "Called the Read tool with the following input: {{\"file_path\":{}}}",
            quoted(&named)
        ));
    }
    match &*shown.get("type")?.text()?.decode() {
        "text" if made => {
            let first = file.get("startLine").and_then(|n| n.u64()).unwrap_or(1);
            let text = file.get("content")?.text()?.decode();
            let lines: Vec<String> =
                text.split('\n').zip(first..).map(|(line, n)| format!("{n}\t{line}")).collect();
            blocks.reminder(&format!("Result of calling the Read tool:\n{}", lines.join("\n")));
        }
        "image" => {
            let picture = picture(attachment)?;
            if pictured {
                blocks.block(&picture);
            }
        }
        "pdf" if made => {
            let size = file.get("originalSize").and_then(|n| n.u64()).unwrap_or_default();
            blocks.reminder(&format!(
                "Result of calling the Read tool:\nPDF file read: {named} ({size} bytes)"
            ));
        }
        // a notebook: its cells, as they stand
        _ if made => {
            let raw = String::from_utf8_lossy(file.raw());
            blocks.reminder(&format!("Result of calling the Read tool:\n{raw}"));
        }
        _ => {}
    }
    blocks.end()
}

/// A list of content blocks.
struct Blocks(Vec<u8>);

impl Blocks {
    fn is_empty(&self) -> bool {
        self.0.len() == 1
    }

    fn separate(&mut self) {
        if !self.is_empty() {
            self.0.push(b',');
        }
    }

    fn text(&mut self, text: &str) {
        self.separate();
        self.0.extend_from_slice(b"{\"type\":\"text\",\"text\":");
        write_string(&mut self.0, text);
        self.0.push(b'}');
    }

    fn reminder(&mut self, text: &str) {
        self.text(&format!("<system-reminder>\n{text}\n</system-reminder>"));
    }

    fn block(&mut self, block: &[u8]) {
        self.separate();
        self.0.extend_from_slice(block);
    }

    fn end(mut self) -> Option<Vec<u8>> {
        if self.is_empty() {
            return None;
        }
        self.0.push(b']');
        Some(self.0)
    }
}

fn quoted(text: &str) -> String {
    let mut json = Vec::new();
    write_string(&mut json, text);
    String::from_utf8_lossy(&json).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::Tape;

    fn of(attachment: &str, rendered: Option<&str>) -> Option<String> {
        let (mut one, mut two) = (Tape::new(), Tape::new());
        let rendered = rendered.map(|r| two.parse(r.as_bytes()).unwrap());
        let content = content(one.parse(attachment.as_bytes()).unwrap(), rendered, true)?;
        let blocks: Vec<serde_json::Value> = serde_json::from_slice(&content).unwrap();
        let shown = blocks.iter().map(|block| match block["text"].as_str() {
            Some(text) => text.replace("<system-reminder>\n", "<").replace("\n</system-reminder>", ">"),
            None => format!("({} {})", block["source"]["media_type"], block["source"]["data"]),
        });
        Some(shown.collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn files_are_shown_as_the_client_shows_them() {
        let text = r#"{"type":"file","filename":"/w/a.md","content":{"type":"text","file":{"filePath":"/w/a.md",
            "content":"one\ntwo","numLines":2,"startLine":41}}}"#;
        let read = "<Called the Read tool with the following input: {\"file_path\":\"/w/a.md\"}>";
        assert_eq!(
            of(text, None).unwrap(),
            format!("{read} <Result of calling the Read tool:\n41\tone\n42\ttwo>")
        );
        // what the client has written down is what it sends
        assert_eq!(of(text, Some(r#"[{"content":"A"},{"content":"B"}]"#)).unwrap(), "A B");
        let image = r#"{"type":"file","filename":"/w/a.png","content":{"type":"image",
            "file":{"base64":"iVBO","type":"image/png"}}}"#;
        assert!(of(image, None).unwrap().ends_with("> (\"image/png\" \"iVBO\")"));
        let pdf = r#"{"type":"file","filename":"/w/a.pdf","content":{"type":"pdf",
            "file":{"base64":"JVBE","originalSize":40}}}"#;
        assert!(of(pdf, None).unwrap().ends_with("\nPDF file read: /w/a.pdf (40 bytes)>"));
        let folder = r#"{"type":"directory","path":"/w/src","content":"a.rs\nb.rs"}"#;
        assert!(of(folder, None).unwrap().ends_with("> <Result of calling the Bash tool:\na.rs\nb.rs>"));
    }

    #[test]
    fn other_attachments_are_none_of_the_humans() {
        for other in [
            r#"{"type":"environment","snapshot":{}}"#,
            r#"{"type":"edited_text_file","filename":"/w/a","snippet":"1\tx"}"#,
            r#"{"type":"file"}"#,
            r#"{"type":"file","filename":"","content":{"type":"text","file":{"content":"x"}}}"#,
            r#"{"type":"file","filename":"/w/a","content":7}"#,
        ] {
            assert_eq!(of(other, None), None, "{other}");
        }
    }
}
