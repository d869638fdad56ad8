//! Claude Code.
//!
#![doc = include_str!("README.md")]

mod locate;
mod read;
mod restore;
mod write;

pub use restore::line;

use super::{Agent, Detected, ReadOptions, Store, Window, WriteOptions, Writer};
use crate::record::Result;
use crate::stream::{Native, Sink, World};

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

    fn window(&self) -> Window {
        Window { tokens: 200_000, reserved: 50_000 }
    }
}
