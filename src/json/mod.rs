//! JSON text: what is valid, where its values stand, and how it is written. Uses nothing of ours.
//!
//! | file | what |
//! |---|---|
//! | `scan` | checks a line and notes where its values are; decodes nothing |
//! | `simd` | where a string ends |
//! | `escape` | what the escapes of a string mean |
//! | `write` | strings and objects that are written |

mod escape;
mod scan;
mod simd;
mod write;

pub use escape::{decode, hex4, unicode, without_lone_surrogates};
pub use scan::{Entries, Error, Items, Kind, Tape, Text, Value, field_from, value_end};
pub(crate) use simd::string_end;
pub use write::{write_escaped, write_string};
