//! relay hands a coding-agent session from one CLI agent to another.
pub mod agents;
pub mod cli;
pub mod filters;
pub mod formats;
pub mod pipeline;
pub mod record;
pub mod stream;
pub mod tokens;
