//! Codex CLI.
//!
#![doc = include_str!("README.md")]

mod locate;
mod read;
mod register;
mod restore;
mod write;

pub use read::restore;

use super::{Agent, Detected, ReadOptions, Store, Window, WriteOptions, Writer, Written};
use crate::record::Result;
use crate::stream::{Native, Sink, World};

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

    fn window(&self) -> Window {
        Window { tokens: 272_000, reserved: 80_000 }
    }
}
