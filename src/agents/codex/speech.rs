//! What Codex, its editors and its app put into the user's place (up to 0.171; openai/codex#11409).

use crate::agents::speech::Speech;
use crate::record::Harness;

pub(super) const SPEECH: Speech = Speech {
    blocks: &[("subagent_notification", Harness::Notice)],
    behind: &[],
    whole: &[],
    before: &[
        ("# Context from my IDE setup:", Some("## Active selection of the file:")),
        ("# Files mentioned by the user:", None),
    ],
    request: &["## My request for Codex:"],
    local: &[],
};
