//! relay hands a coding-agent session from one CLI agent to another.
//!
//! | folder | what is in it | may use |
//! |---|---|---|
//! | [`json`] | JSON text: scanned, decoded, written | nothing of ours |
//! | [`record`] | the stream's reference, its vocabulary, records and their heads, errors | json |
//! | [`tokens`] | how many tokens a text is | json, record |
//! | [`calls`] | what a tool call does | json, record |
//! | [`stream`] | records on pipes and files: lines, queues, compression | json, record |
//! | [`agents`] | one folder an agent: locate, read, write, and what they share | json, record, calls, tokens, stream |
//! | [`formats`] | what is written and never resumed | json, record, stream |
//! | [`filters`] | records in, records out | json, record, calls, tokens, stream |
//! | [`pipeline`] | what each command does, callable in process | all but cli |
//! | [`cli`] | arguments, errors, exit codes, configuration | json, record, stream |
//! | `bin/` | a command: its arguments and one call | all |
//!
//! `tests/layers.rs` holds the table. A new agent is a folder of `agents` and a line of [`agents::AGENTS`]; a new
//! filter is a file of `filters` and one of `bin`.
//!
//! A pipeline in one process, from a file to a stream of whole pairs:
//!
//! ```no_run
//! use relay::agents::{ReadOptions, named};
//! use relay::filters::pair::{Options, Pair};
//! use relay::pipeline::filter::Through;
//! use relay::stream::{Native, Output};
//!
//! # fn main() -> relay::record::Result<()> {
//! let session = Native::open("session.jsonl".as_ref())?;
//! let mut out = Output::stdout()?;
//! let mut pair = Pair::new(Options::default());
//! let mut paired = Through::new(&mut pair, &mut out);
//! named("claude")?.read(&session, &ReadOptions::default(), &mut paired)?;
//! paired.end()?;
//! out.finish()?;
//! # Ok(())
//! # }
//! ```

pub mod agents;
pub mod calls;
pub mod cli;
pub mod filters;
pub mod formats;
pub mod json;
pub mod pipeline;
pub mod record;
pub mod stream;
pub mod tokens;
