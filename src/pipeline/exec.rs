//! Runs the commands that users give to filters.

use crate::agents::OWN_FOLDER;
use crate::record::{Error, Result};
use crate::stream::{Leftover, Runner, counted, guarded};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use std::fs::Permissions;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// Most bytes that are read of what a command prints.
const PRINTED: u64 = 1 << 20;

/// Runs `sh -c COMMAND` in an empty temporary folder, as a process group of its own, and ends all of it when the
/// time is over, and when a signal ends relay. An agent that the command starts keeps its session under that folder's name, which begins with
/// [`OWN_FOLDER`]: `relay-read` never chooses such a session by itself.
#[derive(Debug, Clone)]
pub struct Shell {
    /// How long a command may take.
    pub timeout: Duration,
}

impl Runner for Shell {
    fn run(&mut self, command: &str, input: &[u8]) -> Result<Vec<u8>> {
        let (folder, _folder_guard) = guarded(|| {
            let folder = tempfile::Builder::new()
                .prefix(OWN_FOLDER)
                .permissions(Permissions::from_mode(0o700))
                .tempdir()
                .map_err(|e| Error::failed(format!("no temporary folder: {e}")))?;
            let path = folder.path().to_owned();
            Ok((folder, vec![Leftover::Tree(path)]))
        })?;
        let until = Instant::now() + self.timeout;
        let (mut child, group_guard) = guarded(|| {
            let child = Command::new("sh")
                .arg("-c")
                .arg(command)
                .current_dir(folder.path())
                .process_group(0)
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .map_err(|e| Error::failed(format!("sh could not be started: {e}")))?;
            let leader = Pid::from_child(&child);
            Ok((child, vec![Leftover::Group(leader)]))
        })?;
        let outcome = self.attend(&mut child, input.to_vec(), until);
        drop(group_guard);
        outcome
    }
}

impl Shell {
    fn attend(&self, child: &mut Child, input: Vec<u8>, until: Instant) -> Result<Vec<u8>> {
        if let Some(mut stdin) = child.stdin.take() {
            // a command need not read what it is given
            std::thread::spawn(move || stdin.write_all(&input));
        }
        let printed = gathered(child.stdout.take());
        let said = gathered(child.stderr.take());
        let ended = self.ended(child, until);
        // what it has left behind in its group ends with it; the leader has not been taken note of yet, so that no
        // other group can have its number
        let _ = kill_process_group(Pid::from_child(child), Signal::KILL);
        let status = child.wait().map_err(|e| Error::failed(format!("it cannot be waited for: {e}")))?;
        ended?;
        let left = || until.saturating_duration_since(Instant::now()).max(Duration::from_millis(100));
        if !status.success() {
            let said = said.recv_timeout(Duration::from_millis(500)).unwrap_or_default();
            let said = String::from_utf8_lossy(&said);
            let last = said.lines().map(str::trim).rfind(|line| !line.is_empty()).unwrap_or("");
            let colon = if last.is_empty() { "" } else { ": " };
            return Err(Error::failed(format!("{status}{colon}{last}")));
        }
        printed.recv_timeout(left()).map_err(|_| self.late())
    }

    /// Waits until the command has ended or the time is over, without taking note of how it ended.
    fn ended(&self, child: &Child, until: Instant) -> Result<()> {
        let (give, take) = channel();
        let leader = Pid::from_child(child);
        std::thread::spawn(move || {
            let ended = loop {
                match waitid(WaitId::Pid(leader), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT) {
                    Err(rustix::io::Errno::INTR) => {}
                    other => break other,
                }
            };
            let _ = give.send(ended.map(|_| ()));
        });
        match take.recv_timeout(until.saturating_duration_since(Instant::now())) {
            Ok(Ok(())) => Ok(()),
            Ok(Err(e)) => Err(Error::failed(format!("it cannot be waited for: {e}"))),
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => Err(self.late()),
        }
    }

    fn late(&self) -> Error {
        Error::failed(format!("not done within {}", counted(self.timeout.as_secs(), "second")))
    }
}

/// Reads a pipe to its end, beside everything else.
fn gathered(pipe: Option<impl Read + Send + 'static>) -> Receiver<Vec<u8>> {
    let (give, take) = channel();
    if let Some(mut pipe) = pipe {
        std::thread::spawn(move || {
            let mut all = Vec::new();
            let read = pipe.by_ref().take(PRINTED).read_to_end(&mut all);
            // the rest is read, so that the command is not stopped by a full pipe
            let _ = std::io::copy(&mut pipe, &mut std::io::sink());
            if read.is_ok() {
                let _ = give.send(all);
            }
        });
    }
    take
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(command: &str, input: &[u8], millis: u64) -> std::result::Result<String, String> {
        let mut shell = Shell { timeout: Duration::from_millis(millis) };
        shell.run(command, input).map(|b| String::from_utf8(b).unwrap()).map_err(|e| e.to_string())
    }

    #[test]
    fn a_command_gets_its_input_in_an_empty_folder_of_relays_own() {
        assert_eq!(run("cat; ls -A", b"hello\n", 20_000).unwrap(), "hello\n");
        let folder = run("basename \"$PWD\"", b"", 20_000).unwrap();
        assert!(folder.starts_with(OWN_FOLDER), "{folder}");
        // one that reads nothing is no failure, however much it is given
        assert_eq!(run("echo x", &vec![b'a'; 1 << 20], 20_000).unwrap(), "x\n");
    }

    #[test]
    fn failures_say_what_the_command_said() {
        let error = run("echo no quota >&2; exit 3", b"", 20_000).unwrap_err();
        assert!(error.contains('3') && error.ends_with("no quota"), "{error}");
    }

    #[test]
    fn what_takes_too_long_is_ended_with_all_it_started() {
        let marker = tempfile::tempdir().unwrap();
        let file = marker.path().join("late");
        let command = format!("(sleep 2; touch '{}') & sleep 30", file.display());
        assert!(run(&command, b"", 300).unwrap_err().contains("not done within"));
        std::thread::sleep(Duration::from_millis(2_500));
        assert!(!file.exists());
    }
}
