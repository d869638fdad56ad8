//! Where agents, formats and filters meet: what each command does, callable in process.

pub mod filter;
pub mod read;
pub mod select;
pub mod trim;
pub mod via;
pub mod write;
