//! The real agent clients as judges: they resume a session file against a [`Mock`], and the test sees what they send.
//!
//! Clients come from `scripts/real-clients`, into `target/clients` or `RELAY_CLIENTS`. A missing client fails the
//! test, unless `RELAY_SKIP_CLIENTS=1` says that this is meant.
use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use super::mock::{Mock, Request};
use super::sandbox::{Output, Run, Sandbox};

/// What the resumed session is asked. Nothing else in a test says this.
pub(crate) const PROBE: &str = "relay-probe-7c1e: answer in one word";
/// What the model answers.
const REPLY: &str = "carried";
/// Real clients start slowly on a loaded machine; this only ends hangs.
const TIMEOUT: Duration = Duration::from_secs(180);

/// How to start an installed client.
#[derive(Debug)]
pub(crate) struct Client {
    program: OsString,
    /// What comes before its own arguments: the script, for a client that needs Node.js.
    first: Vec<OsString>,
}

impl Client {
    /// An installed client by `NAME-VERSION` ("codex-0.171.0"). `None` only when `RELAY_SKIP_CLIENTS=1` is set and it
    /// is not there; the caller then returns, and the skip has been told.
    pub(crate) fn find(name: &str) -> Option<Self> {
        let root = std::env::var_os("RELAY_CLIENTS")
            .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("target/clients"), PathBuf::from);
        let skip = std::env::var_os("RELAY_SKIP_CLIENTS").is_some_and(|value| value == "1");
        let found = Self::find_in(&root, name, skip);
        if found.is_none() {
            // Not eprintln!: the test harness keeps that to itself when a test passes.
            let note = format!("skipped: no {name}, and RELAY_SKIP_CLIENTS=1 is set\n");
            std::io::stderr().write_all(note.as_bytes()).unwrap();
        }
        found
    }

    fn find_in(root: &Path, name: &str, skip: bool) -> Option<Self> {
        let folder = root.join(name);
        let found = folder.join(".done").is_file().then(|| Self::launcher(&folder)).flatten();
        assert!(skip || found.is_some(), "no {name} in {}: run scripts/real-clients {name}", root.display());
        found
    }

    /// The program inside an npm installation. Newer packages bring a native program for each platform in a package
    /// of its own; Claude Code up to 2.0 is a script for Node.js.
    fn launcher(folder: &Path) -> Option<Self> {
        let modules = folder.join("node_modules");
        let native = |program: PathBuf| Some(Client { program: program.into(), first: Vec::new() });
        for platform in entries(&modules.join("@openai")) {
            for target in entries(&platform.join("vendor")) {
                // "codex/" up to 0.118, "bin/" since.
                let program = ["bin/codex", "codex/codex"].map(|below| target.join(below));
                if let Some(program) = program.into_iter().find(|program| program.is_file()) {
                    return native(program);
                }
            }
        }
        for platform in entries(&modules.join("@anthropic-ai")) {
            let program = platform.join("claude");
            if program.is_file() {
                return native(program);
            }
        }
        let script = modules.join("@anthropic-ai/claude-code/cli.js");
        script
            .is_file()
            .then(|| Client { program: "/usr/bin/env".into(), first: vec!["node".into(), script.into()] })
    }

    /// The client itself, for a link on a PATH.
    pub(crate) fn program(&self) -> &Path {
        Path::new(&self.program)
    }

    /// A run of this client that can reach nothing but the mock.
    fn run(&self, sandbox: &Sandbox, mock: &Mock) -> Run {
        self.sealed(sandbox.command(&self.program), mock)
    }

    /// The same in a terminal; it ends well as soon as the screen shows `word`, which has no space in it.
    fn run_on_screen(&self, sandbox: &Sandbox, mock: &Mock, word: &str) -> Run {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support/terminal.py");
        let screen = sandbox.command("/usr/bin/env").args(&["python3".as_ref(), script.as_os_str()]);
        self.sealed(screen.args(&[word, "60", "", "--"]).args(&[&self.program]), mock)
    }

    fn sealed(&self, run: Run, mock: &Mock) -> Run {
        run.args(&self.first)
            .env("TERM", "xterm-256color")
            .env("MOCK_TOKEN", "none")
            .env("ANTHROPIC_BASE_URL", mock.url())
            .env("ANTHROPIC_API_KEY", "none")
            .env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1")
            .env("DISABLE_TELEMETRY", "1")
            .env("DISABLE_AUTOUPDATER", "1")
            // Refuses every tunnel, and keeps the try.
            .env("HTTPS_PROXY", mock.url())
            .env("NO_PROXY", "127.0.0.1,localhost")
            .timeout(TIMEOUT)
    }
}

/// The entries of a folder, sorted; none when it is not there.
fn entries(folder: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<_> =
        std::fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

/// The bodies of the requests that ask the model the probe.
fn probed<'a>(requests: &'a [Request], path: &'a str) -> impl Iterator<Item = &'a Value> {
    requests
        .iter()
        .filter(move |request| request.path == path && request.body.to_string().contains(PROBE))
        .map(|request| &request.body)
}

/// Everything a client did while it resumed, for messages of failed tests.
fn account(output: &Output, requests: &[Request]) -> String {
    let asked: Vec<_> =
        requests.iter().map(|one| format!("{} {} ({})", one.method, one.path, one.length)).collect();
    format!(
        "{}\nexit code {}\nrequests: {asked:#?}\n{}\n{}",
        output.command,
        output.code(),
        output.text(),
        output.errors()
    )
}

/// Where a client tried to go besides the mock.
fn strays(requests: &[Request]) -> Vec<String> {
    requests
        .iter()
        .filter(|request| request.method == "CONNECT")
        .map(|request| request.path.clone())
        .collect()
}

/// What Codex made of a rollout.
#[derive(Debug)]
pub(crate) struct CodexResume {
    pub(crate) output: Output,
    /// The thread that went on, as the client says.
    pub(crate) thread_id: String,
    /// `input` of the first request that asks the probe: what the model is shown.
    pub(crate) items: Vec<Value>,
    /// How often the model was asked anything; more than once when the client compacts first.
    pub(crate) turns: usize,
    /// Hosts that the client wanted to reach; refused.
    pub(crate) strays: Vec<String>,
}

impl CodexResume {
    /// The items without what the client itself adds: `developer` messages, `<environment_context>`, and the probe.
    pub(crate) fn history(&self) -> Vec<Value> {
        let own = |item: &&Value| {
            let text = item["content"][0]["text"].as_str().unwrap_or_default();
            item["role"] == "developer"
                || (item["role"] == "user" && (text.starts_with("<environment_context>") || text == PROBE))
        };
        self.items.iter().filter(|item| !own(item)).cloned().collect()
    }
}

/// Gives the sandbox's CODEX_HOME a config.toml that knows only the mock.
fn configure_codex(sandbox: &Sandbox, mock: &Mock) {
    let config = format!(
        r#"model = "gpt-5.1-codex"
model_provider = "mock"
approval_policy = "never"
sandbox_mode = "read-only"
check_for_update_on_startup = false

[model_providers.mock]
name = "mock"
base_url = "{}/v1"
wire_api = "responses"
env_key = "MOCK_TOKEN"
request_max_retries = 0
stream_max_retries = 0

[features]
plugins = false
apps = false

[analytics]
enabled = false

[feedback]
enabled = false

[otel]
exporter = "none"

[projects.{}]
trust_level = "trusted"
"#,
        mock.url(),
        Value::from(sandbox.project().to_str().unwrap())
    );
    std::fs::write(sandbox.codex_home().join("config.toml"), config).unwrap();
}

/// `codex exec resume ID PROBE` in a sandbox whose CODEX_HOME holds the thread already: the way from
/// `relay-write codex` to the model. The CODEX_HOME gets a config.toml that knows only the mock.
///
/// Panics unless the client ends well, asks the model the probe, and asks nothing that the API refuses.
pub(crate) fn resume_codex_in(sandbox: &Sandbox, client: &Client, id: &str) -> CodexResume {
    codex(sandbox, client, id, true)
}

/// A session of the client's own may hold what the API refuses; one that relay wrote (`strict`) must not.
fn codex(sandbox: &Sandbox, client: &Client, id: &str, strict: bool) -> CodexResume {
    let mock = Mock::openai(REPLY);
    if strict {
        mock.refuse_what_the_api_refuses();
    }
    configure_codex(sandbox, &mock);
    let output =
        client.run(sandbox, &mock).args(&["exec", "--skip-git-repo-check", "resume", id, PROBE]).run();
    let requests = mock.requests();
    let account = account(&output, &requests);
    assert_eq!(mock.refused(), [""; 0], "the API refuses {id}");
    assert!(!output.timed_out && output.code() == 0, "Codex did not resume {id}: {account}");
    let Some(body) = probed(&requests, "/v1/responses").next() else {
        panic!("Codex never asked the model the probe: {account}");
    };
    let items = body["input"].as_array().unwrap_or_else(|| panic!("no input list: {body}")).clone();
    let said = output.errors() + &output.text();
    let thread_id = said.lines().find_map(|line| line.strip_prefix("session id: "));
    let thread_id = thread_id.unwrap_or_else(|| panic!("Codex named no thread: {account}")).trim().to_owned();
    let turns = requests.iter().filter(|request| request.path.starts_with("/v1/responses")).count();
    CodexResume { thread_id, items, turns, strays: strays(&requests), output }
}

/// Puts a copy of a rollout file into a fresh CODEX_HOME, where its name says, and resumes it there. `None` when the
/// client is skipped.
pub(crate) fn resume_codex(client: &str, rollout: &Path) -> Option<CodexResume> {
    let client = Client::find(client)?;
    let name = rollout.file_name().and_then(|name| name.to_str()).unwrap();
    // rollout-YYYY-MM-DDThh-mm-ss-UUID.jsonl
    let parts: Option<_> = (|| {
        let rest = name.strip_prefix("rollout-")?.strip_suffix(".jsonl")?;
        let (year, month, day) = (rest.get(..4)?, rest.get(5..7)?, rest.get(8..10)?);
        Some((format!(".codex/sessions/{year}/{month}/{day}"), rest.get(20..)?))
    })();
    let (folder, id) = parts.unwrap_or_else(|| panic!("{name} is no rollout's name"));
    let sandbox = Sandbox::new();
    let content = std::fs::read(rollout).unwrap();
    let copy = sandbox.write(Path::new("home").join(folder).join(name), &content);
    let resumed = codex(&sandbox, &client, id, false);
    let after = std::fs::read(copy).unwrap();
    assert!(
        after.starts_with(&content) && after.len() > content.len(),
        "Codex did not append to the thread's file"
    );
    Some(resumed)
}

/// What Claude Code made of a session file.
#[derive(Debug)]
pub(crate) struct ClaudeResume {
    pub(crate) output: Output,
    /// The session that went on, as the client says.
    pub(crate) session_id: String,
    /// `messages` of the first request that asks the probe and offers tools: what the model is shown.
    pub(crate) messages: Vec<Value>,
    /// How often the model was asked with tools; more than once when the client compacts first.
    pub(crate) turns: usize,
    /// Hosts that the client wanted to reach; refused.
    pub(crate) strays: Vec<String>,
}

impl ClaudeResume {
    /// The messages as `(role, blocks)` without what the client itself adds: `system` messages, stand-alone
    /// `<system-reminder>` texts, cache marks, and the probe. A string becomes one text block; a message of which
    /// nothing is left is left out.
    pub(crate) fn history(&self) -> Vec<(String, Vec<Value>)> {
        let mut history = Vec::new();
        for message in self.messages.iter().filter(|message| message["role"] != "system") {
            let mut blocks = match &message["content"] {
                Value::Array(blocks) => blocks.clone(),
                text => vec![serde_json::json!({"type": "text", "text": text})],
            };
            blocks.retain(|block| {
                let text = block["text"].as_str().unwrap_or_default().trim();
                !(text == PROBE
                    || text.starts_with("<system-reminder>") && text.ends_with("</system-reminder>"))
            });
            for block in blocks.iter_mut().filter_map(Value::as_object_mut) {
                block.remove("cache_control");
            }
            if !blocks.is_empty() {
                history.push((message["role"].as_str().unwrap().to_owned(), blocks));
            }
        }
        history
    }
}

/// The folder below `projects/` in which Claude Code looks for the sessions of a working folder: the resolved path
/// with everything but ASCII letters and digits replaced by `-` (observed with 2.1.332; paths over 200 UTF-16 units
/// get another form, which no sandbox has).
pub(crate) fn claude_project(folder: &Path) -> String {
    let path = folder.canonicalize().unwrap().to_str().unwrap().to_owned();
    let name: String = path
        .chars()
        .flat_map(|letter| {
            std::iter::repeat_n(if letter.is_ascii_alphanumeric() { letter } else { '-' }, letter.len_utf16())
        })
        .collect();
    assert!(name.len() <= 200, "{path} is too long for a plain project name");
    name
}

/// `claude -p --resume ID PROBE` in a sandbox whose CLAUDE_CONFIG_DIR holds the session already, in the folder of the
/// sandbox's project.
///
/// Panics unless the client ends well, asks the model the probe, and asks nothing that the API refuses.
pub(crate) fn resume_claude_in(sandbox: &Sandbox, client: &Client, id: &str) -> ClaudeResume {
    claude(sandbox, client, &["--resume", id], true)
}

/// The same for another `way` to name a session of the client's own, such as `--continue`.
pub(crate) fn go_on_in_claude(sandbox: &Sandbox, client: &Client, way: &[&str]) -> ClaudeResume {
    claude(sandbox, client, way, false)
}

fn claude(sandbox: &Sandbox, client: &Client, way: &[&str], strict: bool) -> ClaudeResume {
    let mock = Mock::anthropic(REPLY);
    if strict {
        mock.refuse_what_the_api_refuses();
    }
    let output = client
        .run(sandbox, &mock)
        .args(&["-p", "--output-format", "json"])
        .args(way)
        .args(&["--", PROBE])
        .run();
    let requests = mock.requests();
    let account = account(&output, &requests);
    assert_eq!(mock.refused(), [""; 0], "the API refuses {way:?}");
    assert!(!output.timed_out && output.code() == 0, "Claude Code did not resume {way:?}: {account}");
    // 2.0 also warms up its subagents, with tools but without the probe; titles and the like come without tools.
    let offers_tools = |body: &Value| body["tools"].as_array().is_some_and(|tools| !tools.is_empty());
    let Some(body) = probed(&requests, "/v1/messages").find(|body| offers_tools(body)) else {
        panic!("Claude Code never asked the model the probe: {account}");
    };
    let messages = body["messages"].as_array().unwrap_or_else(|| panic!("no message list: {body}")).clone();
    let said: Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {account}"));
    let session_id =
        said["session_id"].as_str().unwrap_or_else(|| panic!("no session named: {account}")).to_owned();
    let turns = probed(&requests, "/v1/messages").filter(|body| offers_tools(body)).count();
    ClaudeResume { session_id, messages, turns, strays: strays(&requests), output }
}

/// Opens the list of sessions that Codex offers in the sandbox's project and waits for a word in it. The output
/// is what was drawn; its code is not 0 when the word did not come.
pub(crate) fn codex_picker(sandbox: &Sandbox, client: &Client, word: &str) -> Output {
    let mock = Mock::openai(REPLY);
    configure_codex(sandbox, &mock);
    // 0.171 would leave a server behind that outlives the test
    let help = client.run(sandbox, &mock).args(&["--help"]).run().text();
    let alone: &[&str] = if help.contains("--no-daemon") { &["--no-daemon"] } else { &[] };
    client.run_on_screen(sandbox, &mock, word).args(alone).args(&["resume"]).run()
}

/// The same for Claude Code.
pub(crate) fn claude_picker(sandbox: &Sandbox, client: &Client, word: &str) -> Output {
    let mock = Mock::anthropic(REPLY);
    let settled = serde_json::json!({
        "hasCompletedOnboarding": true,
        "theme": "dark",
        "customApiKeyResponses": {"approved": ["none"], "rejected": []},
        "projects": {sandbox.project().to_str().unwrap(): {"hasTrustDialogAccepted": true}},
    });
    std::fs::write(sandbox.claude_home().join(".claude.json"), settled.to_string()).unwrap();
    client.run_on_screen(sandbox, &mock, word).args(&["--resume"]).run()
}

/// Puts a copy of a session file (`ID.jsonl`) where a fresh Claude Code looks for it, and resumes it there. `None`
/// when the client is skipped.
pub(crate) fn resume_claude(client: &str, session: &Path) -> Option<ClaudeResume> {
    let client = Client::find(client)?;
    let name = session.file_name().and_then(|name| name.to_str()).unwrap();
    let id = name.strip_suffix(".jsonl").unwrap_or_else(|| panic!("{name} is no session's name"));
    let sandbox = Sandbox::new();
    let content = std::fs::read(session).unwrap();
    let folder = Path::new("home/.claude/projects").join(claude_project(&sandbox.project()));
    let copy = sandbox.write(folder.join(name), &content);
    let resumed = go_on_in_claude(&sandbox, &client, &["--resume", id]);
    let after = std::fs::read(copy).unwrap();
    assert!(
        after.starts_with(&content) && after.len() > content.len(),
        "Claude Code did not append to the session"
    );
    Some(resumed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[should_panic(expected = "run scripts/real-clients codex-0.0.1")]
    fn a_missing_client_fails_and_names_the_script() {
        let sandbox = Sandbox::new();
        Client::find_in(sandbox.root(), "codex-0.0.1", false);
    }

    #[test]
    fn a_missing_client_is_skipped_only_when_asked() {
        let sandbox = Sandbox::new();
        assert!(Client::find_in(sandbox.root(), "codex-0.0.1", true).is_none());
    }

    #[test]
    #[should_panic(expected = "run scripts/real-clients claude-0.0.1")]
    fn an_unfinished_install_counts_as_missing() {
        let sandbox = Sandbox::new();
        sandbox.write("claude-0.0.1/node_modules/@anthropic-ai/claude-code/cli.js", "");
        Client::find_in(sandbox.root(), "claude-0.0.1", false);
    }
}
