//! `--register`: has Codex list a session that was written behind its back.
//!
//! From 0.150 on the picker and `--last` read the client's own database only, and a new file is not in it until
//! something asks for it. `thread/read` of its app server does, without a request to any model (seen with
//! 0.171.0); older pickers look at the files.

use crate::agents::Written;
use crate::record::{Error, Result};
use crate::stream::{Leftover, guarded};
use rustix::process::Pid;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

/// How long the client may take to answer.
const PATIENCE: Duration = Duration::from_secs(30);

/// Asks `codex app-server` for the session; `home` is its home where that is not the usual one.
pub(super) fn register(written: &Written, home: Option<&Path>) -> Result<()> {
    let failed = |why: String| Error::Failed {
        what: format!("Codex does not list session {} yet: {why}", written.session_id),
        hint: Some(format!("it can be resumed all the same: {}", written.resume)),
    };
    let mut command = Command::new("codex");
    command.arg("app-server").current_dir(&written.directory);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    if let Some(home) = home {
        command.env("CODEX_HOME", home);
    }
    // a group of its own, so that a signal to relay ends it and all that it starts
    command.process_group(0);
    let (mut child, guard) = guarded(|| {
        let child = command.spawn().map_err(|e| failed(Error::io("codex app-server")(e).to_string()))?;
        let leader = Pid::from_child(&child);
        Ok((child, vec![Leftover::Group(leader)]))
    })?;
    let answer = match (child.stdin.take(), child.stdout.take()) {
        (Some(to), Some(from)) => {
            let (send, lines) = mpsc::channel();
            std::thread::spawn(move || {
                for line in BufReader::new(from).lines().map_while(std::result::Result::ok) {
                    if send.send(line).is_err() {
                        break;
                    }
                }
            });
            talk(to, &lines, &written.session_id)
        }
        _ => Err("codex app-server has no pipes".to_owned()),
    };
    // the server would stay for more questions; it is ours to end
    let ended = child.kill().and_then(|()| child.wait());
    drop(guard);
    answer.map_err(failed)?;
    ended.map(|_| ()).map_err(Error::io("codex app-server"))
}

fn talk(mut to: impl Write, lines: &Receiver<String>, id: &str) -> std::result::Result<(), String> {
    let mut send =
        |message: Value| writeln!(to, "{message}").and_then(|()| to.flush()).map_err(|e| e.to_string());
    let until = Instant::now() + PATIENCE;
    let client = json!({"name": "relay", "title": "relay", "version": env!("CARGO_PKG_VERSION")});
    send(json!({"id": 0, "method": "initialize", "params": {"clientInfo": client}}))?;
    answer(lines, 0, until)?;
    send(json!({"method": "initialized"}))?;
    send(json!({"id": 1, "method": "thread/read", "params": {"threadId": id}}))?;
    answer(lines, 1, until)
}

/// Waits for the answer to a request; what the server says unasked passes by.
fn answer(lines: &Receiver<String>, id: u64, until: Instant) -> std::result::Result<(), String> {
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let line = lines.recv_timeout(left).map_err(|_| "codex app-server gave no answer".to_owned())?;
        let Ok(message) = serde_json::from_str::<Value>(&line) else { continue };
        if message["id"] == id {
            return match message.get("error") {
                Some(error) => Err(error["message"].as_str().unwrap_or("it refused").to_owned()),
                None => Ok(()),
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(lines: &[&str]) -> std::result::Result<(), String> {
        let (send, from) = mpsc::channel();
        for line in lines {
            send.send((*line).to_owned()).unwrap();
        }
        drop(send);
        talk(Vec::new(), &from, "x")
    }

    #[test]
    fn an_answer_is_told_from_what_comes_unasked() {
        assert_eq!(
            after(&[r#"{"method":"hello"}"#, r#"{"id":0,"result":{}}"#, "noise", r#"{"id":1,"result":{}}"#]),
            Ok(())
        );
    }

    #[test]
    fn a_refusal_and_silence_are_failures() {
        let refused = after(&[r#"{"id":0,"result":{}}"#, r#"{"id":1,"error":{"message":"no such thread"}}"#]);
        assert_eq!(refused, Err("no such thread".to_owned()));
        assert!(after(&[r#"{"id":0,"result":{}}"#]).unwrap_err().contains("no answer"));
    }
}
