//! Formats that are written, never resumed.

pub mod jsonl;
