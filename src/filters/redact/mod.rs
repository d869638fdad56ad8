//! Replaces secrets in every text of every record.

pub mod detect;
pub mod rules;
