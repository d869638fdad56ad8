#![doc = include_str!("TOOLS.md")]

use super::AGENTS;
use crate::calls::{self, Counterpart, Tool};
use crate::json::Value;

/// The tools of an agent; none of one that relay does not know.
fn tools(agent: &str) -> &'static [Tool] {
    AGENTS.iter().find(|a| a.name() == agent).map_or(&[], |a| a.tools())
}

/// Whose tool a name of another session was, where nothing else tells: the first agent of the table, but `other`,
/// that has it.
fn first_with(name: &str, other: &str) -> Option<&'static str> {
    let mut agents = AGENTS.iter().filter(|a| a.name() != other);
    agents.find(|a| a.tools().iter().any(|tool| tool.name == name)).map(|a| a.name())
}

/// The counterpart that `target` has for a call in a session of `source`.
pub(in crate::agents) fn counterpart(
    source: &str,
    target: &str,
    name: &str,
    input: Value<'_>,
) -> Option<Counterpart> {
    let mut found = calls::counterpart(tools(source), tools(target), name, input)?;
    // the way back knows the first name only
    found.exact &= first_with(name, target) == Some(source);
    Some(found)
}

/// The input that a call of `agent` had under its first name, in another agent's session; see
/// [`calls::original`].
pub(in crate::agents) fn original(agent: &str, name: &str, input: Value<'_>, first: &str) -> Option<Vec<u8>> {
    calls::original(tools(agent), tools(first_with(first, agent)?), name, input, first)
}
