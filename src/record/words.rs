//! The closed vocabularies of the stream: roles, reasons, origins, states.

use serde::{Deserialize, Serialize};

/// Declares a vocabulary: an enum whose variants are spelled on the wire as given.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $text:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        pub enum $name { $($(#[$vdoc])* #[serde(rename = $text)] $variant),+ }

        impl $name {
            /// Every word of the vocabulary, in the order of the reference.
            pub const ALL: &'static [$name] = &[$($name::$variant),+];

            /// The spelling on the wire.
            pub const fn as_str(self) -> &'static str {
                match self { $($name::$variant => $text),+ }
            }

            /// The word with this spelling, or `None`.
            pub fn parse(text: &[u8]) -> Option<$name> {
                $(if text == $text.as_bytes() { return Some($name::$variant); })+
                None
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

words! {
    /// Who speaks in a message.
    Role {
        /// A prompt, or text that stands in the user's place.
        User = "user",
        /// Text of the model.
        Assistant = "assistant",
        /// Instructions that are neither the user's nor the model's.
        System = "system",
        /// A tool call of the model.
        ToolCall = "tool_call",
        /// What the tool answered.
        ToolResult = "tool_result",
        /// The model's thinking. Never written to another agent.
        Reasoning = "reasoning",
        /// A summary that stands for earlier messages.
        Summary = "summary",
    }
}

words! {
    /// Why a message is not part of the live conversation. The first reason wins.
    Reason {
        /// On a branch that the user left (rewind, edit, fork).
        Branch = "branch",
        /// Taken back by a rollback.
        RolledBack = "rolled_back",
        /// Before a compaction, or the summary of one when the history is read whole.
        Compacted = "compacted",
        /// A line of a subagent.
        Sidechain = "sidechain",
        /// Made by the client: error lines, warm-ups, repairs, streamed partials.
        Noise = "noise",
        /// Content that no one but the source's vendor can read.
        Unreadable = "unreadable",
        /// Replaced by relay-pair: the made record follows.
        Orphan = "orphan",
        /// Shortened by relay-trim: the short twin follows.
        Condensed = "condensed",
        /// Out of the budget of relay-trim.
        Trimmed = "trimmed",
        /// Merged into a newer summary.
        Summarized = "summarized",
    }
}

words! {
    /// Where a message comes from when it is not the conversation itself.
    Origin {
        /// Text of the source agent's client.
        Harness = "harness",
        /// Text made by relay.
        Relay = "relay",
    }
}

words! {
    /// The kinds of harness text; what becomes of each when written is a table of the reference.
    Harness {
        /// Environment context, project instructions, reminders, attachments.
        Environment = "environment",
        /// Slash-command wrappers, local command output.
        Command = "command",
        /// Bodies of skills and commands.
        Expansion = "expansion",
        /// The user interrupted a turn.
        Interrupt = "interrupt",
        /// Notices of background tasks.
        Notice = "notice",
    }
}

words! {
    /// How a tool call ended.
    Status {
        /// It worked.
        Ok = "ok",
        /// It failed.
        Error = "error",
        /// The source does not tell.
        Unknown = "unknown",
    }
}

impl Status {
    /// Whether the call is known to have failed.
    pub fn is_error(self) -> bool {
        self == Status::Error
    }
}
