//! What a tool call does, whoever's tool it is.

mod tools;

pub use tools::{Counterpart, Shape, Tool, counterpart, original};
