//! Where agents, formats and filters meet: what each command does, callable in process.

pub mod write;
