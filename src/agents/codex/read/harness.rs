//! Text that the client puts into the conversation, told by its first words.
//!
//! Two lists, because the client has one notion and the user another (rules 14a and 14b, Codex 0.171): what
//! rollbacks do not count is decided by start and end marker of a part, what is no conversation by its start.

use crate::json::Text;
use crate::record::Harness;

/// Start of a summary that the client wrote for its next context.
pub(super) const SUMMARY_PREFIX: &str =
    "Another language model started to solve this problem and produced a summary of its thinking process.";

/// Start and end marker, compared without case on the trimmed text.
const CONTEXTUAL: [(&str, &str); 13] = [
    ("# agents.md instructions", "</instructions>"),
    ("<environment_context>", "</environment_context>"),
    ("<user_instructions>", "</user_instructions>"),
    ("<skill>", "</skill>"),
    ("<user_shell_command>", "</user_shell_command>"),
    ("<turn_aborted>", "</turn_aborted>"),
    ("<subagent_notification>", "</subagent_notification>"),
    ("<goal_context>", "</goal_context>"),
    ("<hook_prompt", "</hook_prompt>"),
    ("<recommended_plugins>", "</recommended_plugins>"),
    ("warning: apply_patch was requested via", ""),
    ("warning: the maximum number of unified exec", ""),
    ("warning: your account was flagged", ""),
];

const DEVELOPER_CONTEXT: [&str; 12] = [
    "<permissions instructions>",
    "<model_switch>",
    "<collaboration_mode>",
    "<multi_agent_mode>",
    "<environments_instructions>",
    "<plugins_instructions>",
    "<skills_instructions>",
    "<personality_spec>",
    "<token_budget>",
    "<context_window",
    "<rollout_budget>",
    "<realtime_conversation>",
];

/// Parts of user messages that are no conversation, by their first words.
const USER: [(&str, Harness); 23] = [
    ("<environment_context>", Harness::Environment),
    ("# AGENTS.md instructions", Harness::Environment),
    ("<user_instructions>", Harness::Environment),
    ("<INSTRUCTIONS>", Harness::Environment),
    ("<turn_aborted>", Harness::Interrupt),
    ("<recommended_plugins>", Harness::Environment),
    ("<skill>", Harness::Expansion),
    ("<user_action>", Harness::Command),
    ("<user_shell_command>", Harness::Command),
    ("<subagent_notification>", Harness::Notice),
    ("<image name=", Harness::Environment),
    ("<image>", Harness::Environment),
    ("</image>", Harness::Environment),
    ("<hook_prompt", Harness::Notice),
    ("<goal_context>", Harness::Environment),
    ("<codex_internal_context", Harness::Environment),
    ("<agent_message_board", Harness::Notice),
    ("<token_budget>", Harness::Environment),
    ("<rollout_budget>", Harness::Environment),
    ("<context_window", Harness::Environment),
    ("Warning: apply_patch was requested via", Harness::Environment),
    ("Warning: The maximum number of unified exec processes", Harness::Environment),
    ("Warning: Your account was flagged for potentially high-risk", Harness::Environment),
];

/// Parts of developer messages that are no conversation.
const DEVELOPER: [(&str, Harness); 21] = [
    ("<permissions instructions>", Harness::Environment),
    ("<collaboration_mode>", Harness::Environment),
    ("<skills_instructions>", Harness::Environment),
    ("<plugins_instructions>", Harness::Environment),
    ("<apps_instructions>", Harness::Environment),
    ("<multi_agent_mode>", Harness::Environment),
    ("<model_switch>", Harness::Environment),
    ("<personality_spec>", Harness::Environment),
    ("<app-context>", Harness::Environment),
    ("<turn_aborted>", Harness::Interrupt),
    ("<environments_instructions>", Harness::Environment),
    ("<realtime_conversation>", Harness::Environment),
    ("<token_budget>", Harness::Environment),
    ("<rollout_budget>", Harness::Environment),
    ("<context_window", Harness::Environment),
    ("Approved command prefix saved:", Harness::Environment),
    ("You are `/root`, the primary agent in a team of agents", Harness::Environment),
    ("You are an agent in a team of agents", Harness::Environment),
    ("## Memory", Harness::Environment),
    ("You are a coding agent", Harness::Environment),
    ("<tools>", Harness::Environment),
];

/// The first `max` bytes behind white space.
fn start(text: Text<'_>, max: usize) -> String {
    let head = text.head(max + 64);
    let trimmed = head.trim_start();
    // rare: more white space than the head holds
    if trimmed.len() < max && text.raw().len() > max + 64 {
        return text.decode().trim_start().to_owned();
    }
    trimmed.to_owned()
}

fn may_be_harness(text: Text<'_>) -> bool {
    // every marker begins with one of these; most texts are told apart by their first byte
    matches!(text.raw().first(), Some(b'<' | b'#' | b'W' | b'w' | b'A' | b'Y' | b'\\' | 0..=0x20 | 0x80..))
}

/// Whether the client takes a part for its own text.
pub(super) fn is_contextual(text: Text<'_>) -> bool {
    if !may_be_harness(text) {
        return false;
    }
    let head = start(text, 48).to_ascii_lowercase();
    CONTEXTUAL.iter().any(|(s, _)| head.starts_with(s)) && is_contextual_text(&text.decode())
}

/// The same for a text that is at hand.
pub(super) fn is_contextual_text(text: &str) -> bool {
    let text = text.trim();
    let starts = |s: &str| text.get(..s.len()).is_some_and(|t| t.eq_ignore_ascii_case(s));
    let ends = |s: &str| {
        text.len()
            .checked_sub(s.len())
            .and_then(|at| text.get(at..))
            .is_some_and(|t| t.eq_ignore_ascii_case(s))
    };
    CONTEXTUAL.iter().any(|(s, e)| starts(s) && ends(e))
}

/// Whether the client takes a part of a developer message for its own.
pub(super) fn is_developer_context(text: Text<'_>) -> bool {
    let head = start(text, 48).to_ascii_lowercase();
    DEVELOPER_CONTEXT.iter().any(|s| head.starts_with(s))
}

/// Whether a text is a summary that the client wrote.
pub(super) fn is_summary(text: Text<'_>) -> bool {
    text.starts_with(SUMMARY_PREFIX)
}

/// The kind of harness text that a part is; `developer` for any role but the user's and the model's.
pub(super) fn kind(text: Text<'_>, developer: bool) -> Option<Harness> {
    if !may_be_harness(text) {
        return None;
    }
    let head = start(text, 64);
    let list: &[(&str, Harness)] = if developer { &DEVELOPER } else { &USER };
    list.iter().find(|(s, _)| head.starts_with(s)).map(|(_, kind)| *kind)
}
