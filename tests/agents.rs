//! What holds for every agent of the table.

use relay::agents::{AGENTS, family_of};
use relay::tokens::Family;
use std::collections::HashSet;
use std::mem::discriminant;

#[test]
fn an_agent_writes_each_kind_of_tool_one_way() {
    for agent in AGENTS {
        let mut seen = HashSet::new();
        for tool in agent.tools().iter().filter(|tool| tool.written) {
            assert!(seen.insert(discriminant(&tool.shape)), "{} {}", agent.name(), tool.name);
        }
        let names: HashSet<&str> = agent.tools().iter().map(|tool| tool.name).collect();
        assert_eq!(names.len(), agent.tools().len(), "{}: a name stands twice", agent.name());
    }
}

#[test]
fn models_find_their_family() {
    for name in ["claude-opus-4-8", "anthropic/claude-sonnet-5", "us.anthropic.claude-haiku-4-5", "opus"] {
        assert_eq!(family_of(name), Family::Anthropic, "{name}");
    }
    for name in ["gpt-5.2-codex", "openai/gpt-4o", "o3-mini", "codex-mini-latest", "GPT-5"] {
        assert_eq!(family_of(name), Family::OpenAi, "{name}");
    }
    for name in ["gemini-3-pro", "opal", "", "llama"] {
        assert_eq!(family_of(name), Family::Unknown, "{name}");
    }
}
