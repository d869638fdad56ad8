//! Where agents, formats and filters meet: what each command does, callable in process.

pub mod exec;
pub mod filter;
pub mod hand;
pub mod list;
pub mod read;
pub mod redact;
pub mod select;
pub mod summarize;
pub mod table;
pub mod trim;
pub mod via;
pub mod write;
