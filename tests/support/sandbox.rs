//! A folder of its own for one test, and the only way tests start commands: with an environment built from nothing,
//! a HOME inside that folder, and a fixed clock and ids. No test can read or write the developer's own sessions.
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// The clock every command sees (`RELAY_NOW`).
pub(crate) const NOW: &str = "2026-01-02T03:04:05Z";
/// What ids are drawn from (`RELAY_SEED`).
pub(crate) const SEED: &str = "1";

/// How long a command may take unless a test says otherwise. Generous: it ends hangs, it measures nothing.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(120);
/// How long output may stay open after the command itself has ended, held by a process it left behind.
const LINGER: Duration = Duration::from_secs(3);

/// The path of a command of this package, built beside the test binary.
///
/// Panics when there is none: the name is wrong, or Cargo.toml has no such `[[bin]]`.
pub(crate) fn bin(name: &str) -> PathBuf {
    let path = bin_dir().join(name);
    assert!(path.is_file(), "no command {} was built beside the tests", path.display());
    path
}

/// The folder of the built commands: test binaries lie in its `deps` folder.
fn bin_dir() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    test.parent().and_then(Path::parent).unwrap().to_path_buf()
}

/// A temporary folder laid out like a user's machine; removed when dropped.
pub(crate) struct Sandbox {
    /// Held for its drop only.
    _folder: tempfile::TempDir,
    root: PathBuf,
}

impl Sandbox {
    pub(crate) fn new() -> Self {
        let folder = tempfile::Builder::new().prefix("relay-test-").tempdir().unwrap();
        // Clients resolve links before they name a folder after a path.
        let root = folder.path().canonicalize().unwrap();
        // Clients look for instruction files in every parent of the project.
        if let Some(real) = real_home() {
            assert!(
                !root.starts_with(&real),
                "{} lies in the real home: set TMPDIR to a place outside",
                root.display()
            );
        }
        let sandbox = Sandbox { _folder: folder, root };
        for made in [
            sandbox.home(),
            sandbox.project(),
            sandbox.codex_home(),
            sandbox.claude_home(),
            sandbox.path("tmp"),
        ] {
            std::fs::create_dir_all(made).unwrap();
        }
        sandbox
    }

    /// The folder everything lies in.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// HOME of every command.
    pub(crate) fn home(&self) -> PathBuf {
        self.root.join("home")
    }

    /// The working folder of every command unless the test sets another.
    pub(crate) fn project(&self) -> PathBuf {
        self.root.join("project")
    }

    /// CODEX_HOME. It is also where Codex looks without that variable.
    pub(crate) fn codex_home(&self) -> PathBuf {
        self.home().join(".codex")
    }

    /// CLAUDE_CONFIG_DIR. It is also where Claude Code looks without that variable.
    pub(crate) fn claude_home(&self) -> PathBuf {
        self.home().join(".claude")
    }

    /// A path below the root.
    pub(crate) fn path(&self, below: impl AsRef<Path>) -> PathBuf {
        self.root.join(below)
    }

    /// Writes a file below the root, its folders too, and returns its path.
    pub(crate) fn write(&self, below: impl AsRef<Path>, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(below);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, content).unwrap();
        path
    }

    /// One of this package's commands, by name.
    pub(crate) fn relay<A: AsRef<OsStr>>(&self, name: &str, arguments: &[A]) -> Run {
        self.command(bin(name)).args(arguments)
    }

    /// A line of shell, as a user would type it; the package's commands are on its PATH. It fails when any part of a
    /// pipeline fails.
    pub(crate) fn shell(&self, line: &str) -> Run {
        self.command("/usr/bin/env").args(&["bash", "-o", "pipefail", "-c", line])
    }

    /// Any program.
    pub(crate) fn command(&self, program: impl Into<OsString>) -> Run {
        let mut path = bin_dir().into_os_string();
        path.push(":/usr/local/bin:/usr/bin:/bin");
        let environment: [(&str, OsString); 9] = [
            ("HOME", self.home().into()),
            ("CODEX_HOME", self.codex_home().into()),
            ("CLAUDE_CONFIG_DIR", self.claude_home().into()),
            ("TMPDIR", self.path("tmp").into()),
            ("PATH", path),
            ("LANG", "C.UTF-8".into()),
            ("TZ", "UTC".into()),
            ("RELAY_NOW", NOW.into()),
            ("RELAY_SEED", SEED.into()),
        ];
        Run {
            root: self.root.clone(),
            program: program.into(),
            arguments: Vec::new(),
            environment: environment.into_iter().map(|(name, value)| (name.into(), value)).collect(),
            folder: self.project(),
            input: Vec::new(),
            timeout: DEFAULT_TIMEOUT,
        }
    }
}

/// A command about to run in a [`Sandbox`].
#[must_use = "nothing runs before run()"]
pub(crate) struct Run {
    root: PathBuf,
    program: OsString,
    arguments: Vec<OsString>,
    environment: BTreeMap<OsString, OsString>,
    folder: PathBuf,
    input: Vec<u8>,
    timeout: Duration,
}

impl Run {
    pub(crate) fn args<A: AsRef<OsStr>>(mut self, arguments: &[A]) -> Self {
        self.arguments.extend(arguments.iter().map(|argument| argument.as_ref().to_owned()));
        self
    }

    pub(crate) fn env(mut self, name: &str, value: impl Into<OsString>) -> Self {
        self.environment.insert(name.into(), value.into());
        self
    }

    pub(crate) fn without_env(mut self, name: &str) -> Self {
        self.environment.remove(OsStr::new(name));
        self
    }

    pub(crate) fn folder(mut self, folder: impl Into<PathBuf>) -> Self {
        self.folder = folder.into();
        self
    }

    /// What the command reads; nothing unless given.
    pub(crate) fn stdin(mut self, input: impl Into<Vec<u8>>) -> Self {
        self.input = input.into();
        self
    }

    pub(crate) fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Runs to the end or to the time-out, whichever comes first; the latter ends the command and all it started.
    pub(crate) fn run(self) -> Output {
        self.guard(real_home().as_deref());
        let mut command = Command::new(&self.program);
        command
            .args(&self.arguments)
            .env_clear()
            .envs(&self.environment)
            .current_dir(&self.folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // A group of its own, so that a time-out reaches every part of a pipeline.
            .process_group(0);
        let mut child = command.spawn().unwrap_or_else(|error| panic!("cannot start {self}: {error}"));
        let mut pipe = child.stdin.take().unwrap();
        let input = self.input.clone();
        let writer = thread::spawn(move || match pipe.write_all(&input) {
            // A command need not read all it is offered: `head` does not.
            Err(error) if error.kind() != ErrorKind::BrokenPipe => panic!("cannot feed a command: {error}"),
            _ => (),
        });
        let stdout = Drain::start(child.stdout.take().unwrap());
        let stderr = Drain::start(child.stderr.take().unwrap());

        let deadline = Instant::now() + self.timeout;
        let (status, timed_out) = loop {
            if let Some(status) = child.try_wait().unwrap() {
                break (status, false);
            }
            if Instant::now() >= deadline {
                end_group(child.id());
                child.kill().unwrap();
                break (child.wait().unwrap(), true);
            }
            thread::sleep(Duration::from_millis(5));
        };
        let mut left_behind = false;
        for drain in [&stdout, &stderr] {
            if !drain.ended_within(LINGER) {
                // Something of the group still holds the pipe, so the group's number is still its own.
                left_behind = true;
                end_group(child.id());
                assert!(drain.ended_within(LINGER), "{self} left a process that cannot be ended");
            }
        }
        writer.join().unwrap();
        Output {
            command: self.to_string(),
            status,
            timed_out,
            left_behind,
            stdout: stdout.into_bytes(),
            stderr: stderr.into_bytes(),
        }
    }

    /// Panics when the command could see the real home: its HOME or working folder lies outside of the sandbox, or
    /// a variable names a place in the real home. (PATH is exempt: a clone in the home has its commands there.)
    fn guard(&self, real: Option<&Path>) {
        let home = self.environment.get(OsStr::new("HOME")).map(Path::new);
        assert!(
            home.is_some_and(|home| home.starts_with(&self.root)),
            "HOME of {self} lies outside of the sandbox"
        );
        assert!(
            self.folder.starts_with(&self.root),
            "the working folder of {self} lies outside of the sandbox"
        );
        let Some(real) = real else { return };
        for (name, value) in &self.environment {
            let inside = Path::new(value).starts_with(real) && !Path::new(value).starts_with(&self.root);
            assert!(name == "PATH" || !inside, "{} of {self} names the real home", name.display());
        }
    }
}

impl std::fmt::Display for Run {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{}", self.program.display())?;
        self.arguments.iter().try_for_each(|argument| write!(out, " {}", argument.display()))
    }
}

/// The home of whoever runs the tests. `/` is the home of nobody in particular, and everything lies in it.
fn real_home() -> Option<PathBuf> {
    let home = std::env::home_dir()?;
    let home = home.canonicalize().unwrap_or(home);
    (home != Path::new("/") && home != Path::new("")).then_some(home)
}

/// Ends a command that we started and everything in its process group. std has no call for the group; bash does.
fn end_group(leader: u32) {
    // It fails when all of them are gone already, and that is what is wanted.
    let _ = Command::new("/usr/bin/env")
        .args(["bash", "-c", &format!("kill -KILL -- -{leader}")])
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .stderr(Stdio::null())
        .status()
        .unwrap();
}

/// Reads a pipe to its end on a thread of its own.
struct Drain {
    bytes: Arc<Mutex<Vec<u8>>>,
    end: Receiver<()>,
}

impl Drain {
    fn start(mut pipe: impl Read + Send + 'static) -> Self {
        let bytes = Arc::new(Mutex::new(Vec::new()));
        let (ending, end) = channel::<()>();
        let shared = Arc::clone(&bytes);
        thread::spawn(move || {
            // Dropped with the thread: that is the sign of the end.
            let _ending = ending;
            let mut chunk = vec![0; 64 * 1024];
            loop {
                match pipe.read(&mut chunk) {
                    Ok(0) => break,
                    Ok(count) => shared.lock().unwrap().extend_from_slice(&chunk[..count]),
                    Err(error) if error.kind() == ErrorKind::Interrupted => (),
                    Err(error) => panic!("cannot read what a command says: {error}"),
                }
            }
        });
        Drain { bytes, end }
    }

    fn ended_within(&self, wait: Duration) -> bool {
        self.end.recv_timeout(wait) != Err(RecvTimeoutError::Timeout)
    }

    fn into_bytes(self) -> Vec<u8> {
        std::mem::take(&mut *self.bytes.lock().unwrap())
    }
}

/// What a command did.
#[derive(Debug)]
pub(crate) struct Output {
    /// The command line, for messages.
    pub(crate) command: String,
    pub(crate) status: ExitStatus,
    /// It was ended by the time-out.
    pub(crate) timed_out: bool,
    /// It ended, but a process that it started held its output open and had to be ended.
    pub(crate) left_behind: bool,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
}

impl Output {
    /// The exit code; 128 plus the signal when one ended it, as a shell counts.
    pub(crate) fn code(&self) -> i32 {
        self.status.code().unwrap_or_else(|| 128 + self.status.signal().unwrap_or(0))
    }

    /// stdout as text; bytes that are no UTF-8 show as U+FFFD.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    /// stderr as text; bytes that are no UTF-8 show as U+FFFD.
    pub(crate) fn errors(&self) -> String {
        String::from_utf8_lossy(&self.stderr).into_owned()
    }

    /// Panics, telling all the command said, unless it ended by itself with this exit code.
    #[track_caller]
    pub(crate) fn expect_code(self, code: i32) -> Self {
        assert!(
            !self.timed_out && self.code() == code,
            "exit code {} instead of {code}{}: {}\nstdout: {}\nstderr: {}",
            self.code(),
            if self.timed_out { " after the time-out" } else { "" },
            self.command,
            self.text(),
            self.errors()
        );
        self
    }

    /// [`expect_code`](Self::expect_code) with 0.
    #[track_caller]
    pub(crate) fn success(self) -> Self {
        self.expect_code(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn environment_is_built_from_nothing() {
        let sandbox = Sandbox::new();
        let output = sandbox.command("/usr/bin/env").run().success();
        let mut names: Vec<_> =
            output.text().lines().map(|line| line.split('=').next().unwrap().to_owned()).collect();
        names.sort();
        let expected = [
            "CLAUDE_CONFIG_DIR",
            "CODEX_HOME",
            "HOME",
            "LANG",
            "PATH",
            "RELAY_NOW",
            "RELAY_SEED",
            "TMPDIR",
            "TZ",
        ];
        assert_eq!(names, expected);
        assert!(output.text().contains(&format!("HOME={}\n", sandbox.home().display())));
        let unset = sandbox.command("/usr/bin/env").without_env("CODEX_HOME").run().success();
        assert!(!unset.text().contains("CODEX_HOME"));
    }

    #[test]
    #[should_panic(expected = "relay-nothing was built beside the tests")]
    fn a_command_that_was_not_built_is_named() {
        let _ = Sandbox::new().relay("relay-nothing", &["--help"]).run();
    }

    #[test]
    #[should_panic(expected = "HOME of /usr/bin/env lies outside of the sandbox")]
    fn real_home_as_home_is_refused() {
        let _ = Sandbox::new().command("/usr/bin/env").env("HOME", real_home().unwrap()).run();
    }

    #[test]
    #[should_panic(expected = "HOME of /usr/bin/env lies outside of the sandbox")]
    fn missing_home_is_refused() {
        // Programs would ask the user database instead.
        let _ = Sandbox::new().command("/usr/bin/env").without_env("HOME").run();
    }

    #[test]
    #[should_panic(expected = "CODEX_HOME of /usr/bin/env names the real home")]
    fn variable_in_the_real_home_is_refused() {
        let run = Sandbox::new().command("/usr/bin/env").env("CODEX_HOME", "/home/someone/.codex");
        run.guard(Some(Path::new("/home/someone")));
    }

    #[test]
    #[should_panic(expected = "the working folder of /usr/bin/env lies outside of the sandbox")]
    fn working_folder_outside_is_refused() {
        let _ = Sandbox::new().command("/usr/bin/env").folder("/").run();
    }

    #[test]
    fn input_output_and_exit_code_pass_through() {
        let sandbox = Sandbox::new();
        let large = vec![b'x'; 3_000_000];
        let output = sandbox
            .shell("tee copy; echo told >&2; pwd >&2; exit 3")
            .stdin(large.clone())
            .run()
            .expect_code(3);
        assert!(output.stdout == large);
        assert!(std::fs::read(sandbox.project().join("copy")).unwrap() == large);
        assert_eq!(output.errors(), format!("told\n{}\n", sandbox.project().display()));
    }

    #[test]
    fn input_that_nobody_reads_is_no_failure() {
        let output = Sandbox::new().shell("true").stdin(vec![b'x'; 3_000_000]).run().success();
        assert!(output.stdout.is_empty() && output.stderr.is_empty());
    }

    #[test]
    fn pipeline_fails_with_its_first_part() {
        let output = Sandbox::new().shell("false | cat").run();
        assert_eq!(output.code(), 1);
    }

    #[test]
    fn a_process_left_behind_is_ended_and_told() {
        let output = Sandbox::new().shell("echo done; sleep 600 &").run().success();
        assert!(output.left_behind);
        assert_eq!(output.text(), "done\n");
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn time_out_ends_every_part_of_a_pipeline() {
        let sandbox = Sandbox::new();
        let line = "echo early; sh -c 'echo $$ > pid; exec sleep 600' | cat";
        let output = sandbox.shell(line).timeout(Duration::from_secs(1)).run();
        assert!(output.timed_out);
        assert_eq!(output.code(), 128 + 9);
        assert_eq!(output.text(), "early\n");
        let pid = std::fs::read_to_string(sandbox.project().join("pid")).unwrap();
        // A killed process may stay listed until its new parent has noticed; it no longer has a command line then.
        let command_line = std::fs::read(format!("/proc/{}/cmdline", pid.trim())).unwrap_or_default();
        assert_eq!(String::from_utf8_lossy(&command_line), "");
    }

    #[test]
    fn a_failed_command_is_told_in_full() {
        let told = std::panic::catch_unwind(|| {
            Sandbox::new().shell("echo said; echo cause >&2; exit 7").run().success()
        });
        let message = *told.unwrap_err().downcast::<String>().unwrap();
        for part in ["exit code 7 instead of 0", "stdout: said", "stderr: cause"] {
            assert!(message.contains(part), "{part} is not in: {message}");
        }
    }
}
