//! Claude Code.
//!
#![doc = include_str!("README.md")]

mod locate;
mod read;
mod restore;
mod speech;
mod write;

pub use restore::line;

use super::{Agent, Detected, ReadOptions, Speech, Store, Window, WriteOptions, Writer};
use crate::calls::{Shape, Tool};
use crate::record::Result;
use crate::stream::{Native, Sink, World};
use crate::tokens::Family;

/// Names and fields as seen in sessions of 1.0.128 to 2.1.332.
static TOOLS: &[Tool] = &[
    Tool::written("Bash", Shape::Shell("command")),
    Tool::written("TodoWrite", Shape::Plan { list: "todos", text: "content", active: Some("activeForm") }),
    Tool::written("Write", Shape::Create { path: "file_path", content: "content" }),
    Tool::written("Edit", Shape::Replace { path: "file_path", old: "old_string", new: "new_string" }),
];

/// The agent.
#[derive(Debug)]
pub struct Claude;

impl Agent for Claude {
    fn name(&self) -> &'static str {
        "claude"
    }

    fn title(&self) -> &'static str {
        "Claude Code"
    }

    fn detect(&self, head: &[u8]) -> Detected {
        read::detect(head)
    }

    fn store(&self) -> &dyn Store {
        &locate::Sessions
    }

    fn read(&self, native: &Native, options: &ReadOptions, out: &mut dyn Sink) -> Result<()> {
        read::read(native, options, out)
    }

    fn writer<'w>(&self, options: &'w WriteOptions, world: &'w World) -> Result<Box<dyn Writer + 'w>> {
        write::writer(options, world)
    }

    fn speech(&self) -> Speech {
        speech::SPEECH
    }

    fn tools(&self) -> &'static [Tool] {
        TOOLS
    }

    fn family(&self) -> Family {
        Family::Anthropic
    }

    fn family_of(&self, model: &str) -> Option<Family> {
        let named = model.contains("claude") || matches!(model, "opus" | "sonnet" | "haiku");
        named.then_some(Family::Anthropic)
    }

    fn window(&self) -> Window {
        Window { tokens: 200_000, reserved: 50_000 }
    }
}
