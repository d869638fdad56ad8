//! What a command takes from its surroundings: environment, current directory, clock, ids.
//!
//! Gathered once, handed down as values, so that tests can seal it: `RELAY_NOW` (RFC 3339) stops the
//! clock, `RELAY_SEED` (an integer) makes ids repeatable.

use crate::record::{Error, Result};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// The surroundings of one run.
#[derive(Debug, Clone)]
pub struct World {
    variables: BTreeMap<OsString, OsString>,
    directory: PathBuf,
    now: Option<Timestamp>,
    seed: Option<Cell<u64>>,
}

impl World {
    /// The surroundings of this process.
    ///
    /// # Errors
    /// The current directory is gone, or `RELAY_NOW` or `RELAY_SEED` cannot be read.
    pub fn of_process() -> Result<World> {
        let directory = std::env::current_dir().map_err(Error::io("current directory"))?;
        World::new(std::env::vars_os().collect(), directory)
    }

    /// Surroundings given as values.
    pub fn new(variables: BTreeMap<OsString, OsString>, directory: PathBuf) -> Result<World> {
        let mut world = World { variables, directory, now: None, seed: None };
        let wrong = |name: &str, kind: &str| Error::Usage {
            what: format!("{name} cannot be read"),
            hint: Some(format!("{name} is for tests: leave it out, or give it {kind}")),
        };
        if let Some(text) = world.text("RELAY_NOW") {
            world.now = Some(text.parse().map_err(|_| wrong("RELAY_NOW", "an RFC 3339 time"))?);
        }
        if let Some(text) = world.text("RELAY_SEED") {
            world.seed = Some(Cell::new(text.parse().map_err(|_| wrong("RELAY_SEED", "an integer"))?));
        }
        Ok(world)
    }

    /// A variable that is set and not empty.
    pub fn variable(&self, name: &str) -> Option<&OsString> {
        self.variables.get(std::ffi::OsStr::new(name)).filter(|v| !v.is_empty())
    }

    fn text(&self, name: &str) -> Option<&str> {
        self.variable(name)?.to_str()
    }

    /// The home directory, from `HOME`.
    pub fn home(&self) -> Option<PathBuf> {
        self.variable("HOME").map(PathBuf::from)
    }

    /// The directory in which the command was started.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// A path as the user means it: `~/` is the home, anything relative stands in the current directory.
    pub fn resolve(&self, path: &Path) -> PathBuf {
        match (path.strip_prefix("~"), self.home()) {
            (Ok(rest), Some(home)) => home.join(rest),
            _ => self.directory.join(path),
        }
    }

    /// Whether a shell finds this program on the `PATH`. Without one the shell has its own, so nothing speaks against it.
    pub fn finds(&self, program: &str) -> bool {
        let Some(path) = self.variable("PATH") else { return true };
        std::env::split_paths(path).any(|folder| {
            let file = self.directory.join(folder).join(program);
            file.metadata().is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
        })
    }

    /// The time now.
    pub fn now(&self) -> Timestamp {
        self.now.unwrap_or_else(Timestamp::now)
    }

    /// The local time zone: `TZ` (a zone's name or a POSIX rule), else the system's.
    pub fn zone(&self) -> TimeZone {
        let named = self.text("TZ").map(|tz| tz.strip_prefix(':').unwrap_or(tz));
        named
            .and_then(|name| TimeZone::get(name).or_else(|_| TimeZone::posix(name)).ok())
            .unwrap_or_else(TimeZone::system)
    }

    /// A fresh UUID of version 7, as Codex gives its threads since 0.40.
    pub fn uuid_v7(&self) -> uuid::Uuid {
        let millis = u64::try_from(self.now().as_millisecond()).unwrap_or(0);
        let mut random = [0u8; 10];
        for chunk in random.chunks_mut(8) {
            let bytes = self.random().to_le_bytes();
            chunk.copy_from_slice(bytes.get(..chunk.len()).unwrap_or_default());
        }
        uuid::Builder::from_unix_timestamp_millis(millis, &random).into_uuid()
    }

    /// A fresh UUID of version 4, as Claude Code gives its sessions and lines.
    pub fn uuid_v4(&self) -> uuid::Uuid {
        let (a, b) = (self.random().to_le_bytes(), self.random().to_le_bytes());
        let mut bytes = [0u8; 16];
        for (to, from) in bytes.iter_mut().zip(a.iter().chain(&b)) {
            *to = *from;
        }
        uuid::Builder::from_random_bytes(bytes).into_uuid()
    }

    /// A fresh random number.
    pub fn random(&self) -> u64 {
        match &self.seed {
            None => {
                uuid::Uuid::new_v4().as_u64_pair().0 ^ uuid::Uuid::new_v4().as_u64_pair().1.rotate_left(32)
            }
            Some(seed) => {
                // splitmix64: every seed gives another sequence, and each number is used once
                let next = seed.get().wrapping_add(0x9e37_79b9_7f4a_7c15);
                seed.set(next);
                let mut z = next;
                z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
                z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
                z ^ (z >> 31)
            }
        }
    }
}
