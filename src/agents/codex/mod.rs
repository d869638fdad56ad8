//! Codex CLI.
//!
#![doc = include_str!("README.md")]

mod locate;
mod read;
mod register;
mod restore;
mod speech;
mod write;

pub use read::restore;

use super::{Agent, Detected, ReadOptions, Speech, Store, Window, WriteOptions, Writer, Written};
use crate::calls::{Shape, Tool};
use crate::record::Result;
use crate::stream::{Native, Sink, World};
use crate::tokens::Family;

/// Names and fields as seen in sessions of 0.20.0 to 0.171.0.
static TOOLS: &[Tool] = &[
    Tool::written("exec_command", Shape::Shell("cmd")),
    Tool::read("shell_command", Shape::Shell("command")),
    Tool::read("shell", Shape::Words("command")),
    Tool::read("local_shell", Shape::Words("command")),
    Tool::read("apply_patch", Shape::Patch("input")),
    Tool::written("update_plan", Shape::Plan { list: "plan", text: "step", active: None }),
];

/// The agent.
#[derive(Debug)]
pub struct Codex;

impl Agent for Codex {
    fn name(&self) -> &'static str {
        "codex"
    }

    fn title(&self) -> &'static str {
        "Codex CLI"
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
        if options.restore { restore::writer(options, world) } else { write::writer(options, world) }
    }

    fn register(&self, written: &Written, options: &WriteOptions, world: &World) -> Result<()> {
        let home = write::CODEX.told_home(options, world)?;
        register::register(written, home.as_deref())
    }

    fn speech(&self) -> Speech {
        speech::SPEECH
    }

    fn tools(&self) -> &'static [Tool] {
        TOOLS
    }

    fn family(&self) -> Family {
        Family::OpenAi
    }

    fn family_of(&self, model: &str) -> Option<Family> {
        let reasoning =
            model.strip_prefix('o').is_some_and(|rest| rest.starts_with(|next: char| next.is_ascii_digit()));
        let named = ["gpt-", "codex", "chatgpt"].iter().any(|head| model.starts_with(head));
        (named || reasoning).then_some(Family::OpenAi)
    }

    fn window(&self) -> Window {
        Window { tokens: 272_000, reserved: 80_000 }
    }
}
