//! The records that frame a session.

use super::Problem;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// First record of a session. Fields with a `null` in the reference are always written.
#[derive(Debug, Clone, Serialize, Deserialize, Default)]
pub struct Session {
    /// Version of the stream, see [`super::VERSION`].
    pub relay: u64,
    /// Id of the session as the source has it.
    pub session_id: String,
    /// Name of the source agent: `claude`, `codex`, …
    pub source_agent: String,
    /// RFC 3339 with zone, from the first dated line.
    #[serde(default)]
    pub created_at: Option<String>,
    /// RFC 3339 with zone, from the last dated line.
    #[serde(default)]
    pub updated_at: Option<String>,
    /// Absolute path, from the lines.
    #[serde(default)]
    pub working_directory: Option<String>,
    /// Title given by the user or the client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Last model of the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Last version of the client that wrote the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_version: Option<String>,
    /// Repository state that the session names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub git: Option<Git>,
    /// Where the session was read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_path: Option<String>,
    /// The session that started this one as a subagent, or from which it was forked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_session_id: Option<String>,
    /// Files that the session touched, newest change last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file_snapshot: Option<Vec<FileChange>>,
    /// What the source agent itself last said of its context.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<Context>,
    /// Earlier relays of this session, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lineage: Vec<Lineage>,
    /// Set by relay-trim, obeyed by relay-summarize and relay-write.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<Budget>,
    /// Set by relay-redact.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redacted: Option<Redacted>,
    /// The filters that touched the stream, first one first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub via: Vec<Via>,
    /// What the source says beyond this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extra: Option<Box<RawValue>>,
}

/// Repository state.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Git {
    /// Branch name.
    #[serde(default)]
    pub branch: Option<String>,
    /// Commit hash.
    #[serde(default)]
    pub commit: Option<String>,
}

/// One file that the session touched.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileChange {
    /// Path as the session names it.
    pub path: String,
    /// What became of it.
    pub status: FileStatus,
    /// When the session changed it (RFC 3339), never a look at today's disk.
    pub modified_at: Option<String>,
}

/// What a session did with a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FileStatus {
    /// The session made it.
    Created,
    /// The session changed it.
    Modified,
    /// The session removed it.
    Deleted,
    /// The session read it.
    Read,
}

/// Size of the source's context, in tokens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Context {
    /// Tokens in use after the last answer.
    #[serde(default)]
    pub used_tokens: Option<u64>,
    /// Size of the window.
    #[serde(default)]
    pub window: Option<u64>,
}

/// One earlier relay.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lineage {
    /// Id of that relay.
    pub relay_id: String,
    /// Source agent.
    pub from: String,
    /// Target agent.
    pub to: String,
    /// When, RFC 3339.
    pub at: String,
    /// What was done to fit: `whole`, `trimmed`, `summarized`, `dialogue`.
    #[serde(default)]
    pub strategy: Option<String>,
}

/// What relay-trim aimed at, in tokens.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Budget {
    /// All that may be written.
    pub tokens: u64,
    /// Of it, set aside for the summary.
    pub summary_reserve: u64,
    /// Of it, set aside for the relay note.
    pub note_reserve: u64,
    /// How it was counted.
    pub tokenizer: String,
    /// Thousandths of such a token for one of o200k.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub factor: Option<u64>,
}

/// What relay-redact looked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Redacted {
    /// [`Redacted::SECRETS`] or [`Redacted::SHARE`].
    pub level: String,
    /// Version of the command.
    pub version: String,
}

impl Redacted {
    /// Secrets.
    pub const SECRETS: &'static str = "secrets";
    /// Secrets, names of home folders, mail addresses.
    pub const SHARE: &'static str = "share";
}

/// One filter that touched the stream. Options only, never content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Via {
    /// Command name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Its options as given.
    #[serde(default)]
    pub options: Vec<String>,
}

/// Last record of a session.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct End {
    /// Id of the session that ends.
    #[serde(default)]
    pub session_id: Option<String>,
    /// Messages of the session, dropped ones too.
    #[serde(default)]
    pub messages: Option<u64>,
    /// Messages of the live conversation.
    #[serde(default)]
    pub live: Option<u64>,
    /// Every oddity, by kind.
    #[serde(default)]
    pub problems: Vec<Problem>,
    /// The budget of the session record with smaller reserves, where what must be kept left no more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<Budget>,
    /// Why the session could not be read; writers skip it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
}

/// Last line of a dying stage.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Abort {
    /// The command that died.
    pub by: String,
    /// Why.
    #[serde(default)]
    pub reason: String,
}

/// Writes a framing record with its `type` first.
fn tagged<T: Serialize>(kind: &str, value: &T) -> Result<Vec<u8>, serde_json::Error> {
    let body = serde_json::to_vec(value)?;
    let mut line = Vec::with_capacity(body.len() + kind.len() + 12);
    line.extend_from_slice(b"{\"type\":\"");
    line.extend_from_slice(kind.as_bytes());
    line.extend_from_slice(b"\"");
    if body.len() > 2 {
        line.push(b',');
    }
    line.extend_from_slice(body.get(1..).unwrap_or_default());
    Ok(line)
}

impl Session {
    /// The record as one line, without its line feed.
    pub fn to_line(&self) -> Result<Vec<u8>, serde_json::Error> {
        tagged("session", self)
    }
}

impl End {
    /// The record as one line, without its line feed.
    pub fn to_line(&self) -> Result<Vec<u8>, serde_json::Error> {
        tagged("end", self)
    }
}

impl Abort {
    /// The record as one line, without its line feed.
    pub fn to_line(&self) -> Result<Vec<u8>, serde_json::Error> {
        tagged("abort", self)
    }
}
