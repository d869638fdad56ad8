//! The top-level fields of a line, found in one pass over its keys.

use crate::json::{Text, Value};

/// Fields that the reader looks at.
#[derive(Default, Clone, Copy)]
pub(super) struct Fields<'a> {
    pub kind: Option<Text<'a>>,
    pub subtype: Option<Text<'a>>,
    pub id: Option<Text<'a>>,
    pub parent: Option<Text<'a>>,
    pub session: Option<Text<'a>>,
    pub agent: Option<Text<'a>>,
    pub timestamp: Option<Text<'a>>,
    pub cwd: Option<Text<'a>>,
    pub version: Option<Text<'a>>,
    pub branch: Option<Text<'a>>,
    pub message: Option<Value<'a>>,
    pub attachment: Option<Value<'a>>,
    /// What the client sends of an attachment.
    pub rendered: Option<Value<'a>>,
    pub content: Option<Value<'a>>,
    pub result: Option<Value<'a>>,
    pub relay: Option<Value<'a>>,
    /// `compactMetadata` of a boundary.
    pub compaction: Option<Value<'a>>,
    pub sidechain: bool,
    pub meta: bool,
    pub api_error: bool,
    pub summary: bool,
    /// What kind of speaker `origin` names.
    pub origin: Option<Text<'a>>,
    pub prompt_source: Option<Text<'a>>,
    pub turn_origin: Option<Text<'a>>,
    /// No one typed it: shown in the transcript alone, or made.
    pub unspoken: bool,
}

impl<'a> Fields<'a> {
    /// Looks at every key of the line once; the last one of a name counts, as for the client.
    pub(super) fn of(line: Value<'a>) -> Fields<'a> {
        let mut f = Fields::default();
        for (key, value) in line.entries() {
            match key.raw() {
                b"type" => f.kind = value.text(),
                b"subtype" => f.subtype = value.text(),
                b"uuid" => f.id = value.text(),
                b"parentUuid" => f.parent = value.text(),
                b"sessionId" => f.session = value.text(),
                b"agentId" => f.agent = value.text(),
                b"timestamp" => f.timestamp = value.text(),
                b"cwd" => f.cwd = value.text(),
                b"version" => f.version = value.text(),
                b"gitBranch" => f.branch = value.text(),
                b"message" => f.message = Some(value),
                b"attachment" => f.attachment = Some(value),
                b"rendered" => f.rendered = Some(value),
                b"content" => f.content = Some(value),
                b"toolUseResult" => f.result = Some(value),
                b"compactMetadata" => f.compaction = Some(value),
                b"relay" => f.relay = Some(value),
                b"isSidechain" => f.sidechain = value.bool() == Some(true),
                b"isMeta" => f.meta = value.bool() == Some(true),
                b"isApiErrorMessage" => f.api_error = value.bool() == Some(true),
                b"origin" => f.origin = value.get("kind").and_then(|kind| kind.text()),
                b"promptSource" => f.prompt_source = value.text(),
                b"turnOrigin" => f.turn_origin = value.text(),
                b"isVisibleInTranscriptOnly" | b"isSynthetic" => f.unspoken |= value.bool() == Some(true),
                b"isCompactSummary" => f.summary = value.bool() == Some(true),
                _ => {}
            }
        }
        f
    }
}

/// Fields of a content block.
#[derive(Default, Clone, Copy)]
pub(super) struct Block<'a> {
    pub kind: Option<Text<'a>>,
    pub id: Option<Text<'a>>,
    pub result_of: Option<Text<'a>>,
    pub name: Option<Text<'a>>,
    pub text: Option<Value<'a>>,
    pub thinking: Option<Value<'a>>,
    pub input: Option<Value<'a>>,
    pub content: Option<Value<'a>>,
    pub is_error: bool,
}

impl<'a> Block<'a> {
    /// Looks at every key of the block once.
    pub(super) fn of(block: Value<'a>) -> Block<'a> {
        let mut b = Block::default();
        for (key, value) in block.entries() {
            match key.raw() {
                b"type" => b.kind = value.text(),
                b"id" => b.id = value.text(),
                b"tool_use_id" => b.result_of = value.text(),
                b"name" => b.name = value.text(),
                b"text" => b.text = Some(value),
                b"thinking" => b.thinking = Some(value),
                b"input" => b.input = Some(value),
                b"content" => b.content = Some(value),
                b"is_error" => b.is_error = value.bool() == Some(true),
                _ => {}
            }
        }
        b
    }
}
