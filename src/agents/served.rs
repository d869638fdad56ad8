//! What a reader can use of the results of server tools, and of other blocks that the target has no place for.
//! A result of a web search is mostly cipher text that only its own server reads; what people and models read in
//! it are titles and addresses.

use super::content::{Part, Takes, part};
use super::handover::Lost;
use crate::json::{Kind, Text, Value};

/// Most of a block of unknown type that is shown as it is, in bytes.
const BLOCK: usize = 2_000;

/// How deep a block is looked into.
const DEPTH: usize = 32;

/// From how many bytes on a word is data and not text.
const WORD: usize = 1_000;

/// Keys whose values say nothing once the block is text.
const SILENT: &[&str] = &["type", "id", "tool_use_id", "tool_call_id", "cache_control", "caller"];

/// Keys that need not stand before what they hold.
const PLAIN: &[&str] = &["text", "content", "source", "data", "stdout", "tool_references", "tool_name"];

/// Adds a block as text, under its kind; the images in it follow.
pub(in crate::agents) fn readable<'a>(
    kind: &str,
    block: Value<'a>,
    takes: Takes<'_>,
    out: &mut Vec<Part<'a>>,
) {
    let raw = block.raw();
    let result = kind.ends_with("_tool_result");
    let short = !result && raw.len() <= BLOCK && memchr::memmem::find(raw, b"encrypted").is_none();
    if short && let Ok(json) = std::str::from_utf8(raw) {
        let word = if kind.contains(' ') { "" } else { " block" };
        return out.push(Part::named(&format!("[{kind}{word} {json}]"), Lost::Blocks));
    }
    let mut reading = Reading {
        text: format!("[{kind}]"),
        lost: if result { None } else { Some(Lost::Blocks) },
        takes,
        others: Vec::new(),
    };
    reading.value("", block, 0);
    if reading.text.len() == kind.len() + 2 && reading.others.is_empty() {
        reading.text = format!("[{kind} of {} bytes: not carried over]", raw.len());
        reading.lost.get_or_insert(Lost::Blocks);
    }
    out.push(Part::named(&reading.text, reading.lost));
    out.append(&mut reading.others);
}

struct Reading<'a, 't> {
    text: String,
    lost: Option<Lost>,
    takes: Takes<'t>,
    /// Images, documents, and what stands for them.
    others: Vec<Part<'a>>,
}

impl<'a> Reading<'a, '_> {
    fn value(&mut self, key: &str, value: Value<'a>, depth: usize) {
        if SILENT.contains(&key) {
            return;
        }
        if depth > DEPTH {
            return self.leave_out(value.raw().len());
        }
        match value.kind() {
            Kind::Null => {}
            Kind::Array => value.items().for_each(|item| self.value(key, item, depth + 1)),
            Kind::Object => self.object(value, depth),
            Kind::String => {
                if let Some(text) = value.text().filter(|t| !t.is_empty()) {
                    self.string(key, text);
                }
            }
            _ => self.line(key, &String::from_utf8_lossy(value.raw())),
        }
    }

    fn object(&mut self, value: Value<'a>, depth: usize) {
        let text = |key: &str| value.get(key).and_then(|t| t.text());
        let source = value.get("source").is_some_and(|s| s.is_object());
        if depth > 0 && source && text("type").is_some_and(|t| t == "image" || t == "document") {
            return part(value, self.takes, &mut self.others);
        }
        let hit = text("title").zip(text("url"));
        if let Some((title, url)) = hit {
            self.line("", &format!("{}: {}", title.decode(), url.decode()));
        }
        for (key, inner) in value.entries() {
            if hit.is_none() || key != "title" && key != "url" {
                self.value(&key.decode(), inner, depth + 1);
            }
        }
    }

    fn string(&mut self, key: &str, text: Text<'_>) {
        if key.starts_with("encrypted") || key == "signature" {
            self.lost = Some(Lost::Ciphers);
            return;
        }
        let text = text.decode();
        if text.len() > WORD && !text.contains(|c: char| c.is_whitespace() || !c.is_ascii()) {
            return self.leave_out(text.len());
        }
        self.line(key, &text);
    }

    fn line(&mut self, key: &str, text: &str) {
        self.text.push('\n');
        if !key.is_empty() && !PLAIN.contains(&key) {
            self.text.push_str(key);
            self.text.push_str(": ");
        }
        self.text.push_str(text);
    }

    fn leave_out(&mut self, bytes: usize) {
        self.line("", &format!("[{bytes} bytes: not carried over]"));
        self.lost.get_or_insert(Lost::Blocks);
    }
}

#[cfg(test)]
mod tests {
    use super::super::content::tests::told;
    use super::*;
    use serde_json::{Value as Json, json};

    fn one(block: Json) -> (String, Option<Lost>) {
        let mut all = told(&json!([block]));
        assert_eq!(all.len(), 1, "{all:?}");
        all.remove(0)
    }

    #[test]
    fn results_of_server_tools_keep_what_can_be_read() {
        let cipher = "QUJD".repeat(1_000);
        let hit = |n: u32| {
            json!({"type":"web_search_result","title":format!("Ducks {n}"),"url":format!("https://a.b/{n}"),
                "encrypted_content":cipher,"page_age":null})
        };
        let search = |hits: Json| json!({"type":"web_search_tool_result","tool_use_id":"s","content":hits});
        assert_eq!(
            one(search(json!([hit(1), hit(2)]))),
            (
                "[web_search_tool_result]\nDucks 1: https://a.b/1\nDucks 2: https://a.b/2".to_owned(),
                Some(Lost::Ciphers)
            )
        );
        let error = json!({"type":"web_search_tool_result_error","error_code":"max_uses_exceeded"});
        assert_eq!(
            one(search(error)),
            ("[web_search_tool_result]\nerror_code: max_uses_exceeded".to_owned(), None)
        );
        let page = "All about ducks. ".repeat(200);
        let fetched = json!({"type":"web_fetch_tool_result","tool_use_id":"s","content":{
            "type":"web_fetch_result","url":"https://a.b/c","content":{"type":"document","title":"Ducks",
            "source":{"type":"text","media_type":"text/plain","data":page}}}});
        let all = told(&json!([fetched]));
        assert_eq!(all[0].0, "[web_fetch_tool_result]\nurl: https://a.b/c");
        assert_eq!(all[1], (format!("[document \"Ducks\"]\n{page}"), None));
        let ran = json!({"type":"bash_code_execution_tool_result","tool_use_id":"s","content":{
            "type":"bash_code_execution_result","stdout":"7\n","stderr":"warned","return_code":0,"content":[]}});
        assert_eq!(one(ran).0, "[bash_code_execution_tool_result]\nreturn_code: 0\nstderr: warned\n7\n");
        let advice = "First the schema. ".repeat(200);
        let advised = json!({"type":"advisor_tool_result","tool_use_id":"s",
            "content":{"type":"advisor_result","text":advice}});
        assert_eq!(one(advised), (format!("[advisor_tool_result]\n{advice}"), None));
        let hidden = json!({"type":"advisor_tool_result","tool_use_id":"s",
            "content":{"type":"advisor_redacted_result","encrypted_content":cipher}});
        let (text, lost) = one(hidden);
        assert!(
            text.starts_with("[advisor_tool_result of 4") && text.ends_with("not carried over]"),
            "{text}"
        );
        assert_eq!(lost, Some(Lost::Ciphers));
    }

    #[test]
    fn other_blocks_are_shown_as_far_as_they_can_be_read() {
        let odd = json!({"n":1,"type":"odd"});
        assert_eq!(one(odd.clone()), (format!("[odd block {odd}]"), Some(Lost::Blocks)));
        let text = "words ".repeat(500);
        let big = json!({"type":"odd","id":"x","note":text,"blob":"A".repeat(1_001)});
        assert_eq!(
            one(big),
            (format!("[odd]\n[1001 bytes: not carried over]\nnote: {text}"), Some(Lost::Blocks))
        );
        let small = json!({"type":"odd","encrypted_x":"A","text":"b"});
        assert_eq!(one(small), ("[odd]\nb".to_owned(), Some(Lost::Ciphers)));
        let mut deep = json!("end");
        for _ in 0..100 {
            deep = json!([deep]);
        }
        let (text, _) = one(json!({"type":"x_tool_result","content":deep}));
        assert!(text.contains("bytes: not carried over"), "{text}");
    }

    #[test]
    fn pictures_in_a_result_follow_it() {
        let picture = super::super::image::tests::encoded(&super::super::image::tests::png(1, 1));
        let source = json!({"type":"base64","media_type":"image/png","data":picture});
        let block = json!({"type":"mcp_tool_result","is_error":false,"content":[
            {"type":"text","text":"see"},{"type":"image","source":source}]});
        let all = told(&json!([block]));
        assert_eq!(all[0].0, "[mcp_tool_result]\nsee\nis_error: false");
        assert_eq!(all[1].0, format!("data:image/png;base64,{picture}"));
    }
}
