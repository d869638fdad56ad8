//! Arguments of relay-redact.

use clap::Args;
use std::path::PathBuf;

/// What is redacted, and what is told of it.
#[derive(Debug, Clone, Args)]
pub struct Redaction {
    /// For a session that leaves this machine: also the names of home folders, and mail addresses
    #[arg(long)]
    pub share: bool,
    /// Also personal data of these classes: home, email, ip, host, phone, card, mac, or all
    #[arg(long, value_name = "CLASSES", value_delimiter = ',')]
    pub pii: Vec<String>,
    /// More rules, in TOML as gitleaks reads it
    #[arg(long, value_name = "FILE")]
    pub rules: Option<PathBuf>,
    /// Nothing but these rules or classes
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub only: Vec<String>,
    /// Not these rules or classes
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub skip: Vec<String>,
    /// How sure a rule must be
    #[arg(long, default_value = "medium", value_parser = ["high", "medium", "low"])]
    pub confidence: String,
    /// More endings of names of private machines, such as .example.lan (with --pii host)
    #[arg(long, value_name = "ENDINGS", value_delimiter = ',')]
    pub host_suffix: Vec<String>,
    /// Values to leave as they are, one a line, or `prefix:TEXT`, `regex:PATTERN`, `hmac:FINGERPRINT`
    #[arg(long, value_name = "FILE")]
    pub allow: Option<PathBuf>,
    /// Note which placeholder stands for which value, for later runs and for --restore. The file is made, or goes on
    /// when it is there; nobody else may be able to read it
    #[arg(long, value_name = "FILE", conflicts_with = "salt")]
    pub map: Option<PathBuf>,
    /// Number the placeholders by this key, so that many runs agree without a map. The file is made when it is not
    /// there; nobody else may be able to read it
    #[arg(long, value_name = "FILE")]
    pub salt: Option<PathBuf>,
    /// Put the values back instead, out of this map [default: that of --map]
    #[arg(long, value_name = "FILE", num_args = 0..=1, conflicts_with_all = ["salt", "two_pass", "report", "check", "share", "pii", "only", "skip", "rules", "allow"])]
    pub restore: Option<Option<PathBuf>>,
    /// Read everything before anything is written, so that a value is found also before the place that tells it to
    /// be a secret
    #[arg(long)]
    pub two_pass: bool,
    /// Write here what was found, a JSON object a line: rule, record, place, length, fingerprint; never a value
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// Print what was found instead of the stream; exit 1 if anything
    #[arg(long)]
    pub check: bool,
    /// Print all rules instead: id, class, a made-up example of the shape, where the form is written down
    #[arg(long)]
    pub list_rules: bool,
}
