//! What a command has begun and must not leave behind when INT, TERM or HUP ends it: files on their way, temporary
//! folders, commands that it runs.
//!
//! The signal still ends the command, as whoever sent it expects; only before that, all this is taken away. A signal
//! that the command was started to ignore (`nohup`, `&` in a script) stays ignored. Nothing helps against KILL.

use crate::record::{Error, Result};
use rustix::process::{Pid, Signal, kill_process_group};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// One thing to take away.
#[derive(Debug)]
pub enum Leftover {
    /// A file.
    File(PathBuf),
    /// A folder, if it is empty.
    Folder(PathBuf),
    /// A folder with all that is in it.
    Tree(PathBuf),
    /// The processes of the group that this one leads.
    Group(Pid),
}

impl Leftover {
    /// Takes it away. What is gone already, or cannot be removed, is nobody's to hear of: the command ends.
    fn remove(&self) {
        match self {
            Leftover::File(path) => drop(std::fs::remove_file(path)),
            Leftover::Folder(path) => drop(std::fs::remove_dir(path)),
            Leftover::Tree(path) => drop(std::fs::remove_dir_all(path)),
            Leftover::Group(leader) => drop(kill_process_group(*leader, Signal::KILL)),
        }
    }
}

/// All there is at the moment, in the order in which it was begun.
#[derive(Debug, Default)]
struct Held {
    things: BTreeMap<u64, Vec<Leftover>>,
    next: u64,
    listening: bool,
}

static HELD: Mutex<Held> = Mutex::new(Held { things: BTreeMap::new(), next: 0, listening: false });

fn held() -> MutexGuard<'static, Held> {
    HELD.lock().unwrap_or_else(PoisonError::into_inner)
}

/// As long as it lives, the things are taken away when a signal comes. Dropping it waits for a signal that is just
/// being answered, so that nothing is told of what that took away.
#[derive(Debug)]
pub struct Guard(u64);

impl Drop for Guard {
    fn drop(&mut self) {
        held().things.remove(&self.0);
    }
}

/// Makes something that leaves things behind. No signal can come between the making and the noting.
///
/// # Errors
/// What `make` says, or that signals cannot be listened to.
pub fn guarded<T>(make: impl FnOnce() -> Result<(T, Vec<Leftover>)>) -> Result<(T, Guard)> {
    let mut held = held();
    if !held.listening {
        listen().map_err(Error::io("signals"))?;
        held.listening = true;
    }
    let (made, things) = make()?;
    let number = held.next;
    held.next += 1;
    held.things.insert(number, things);
    Ok((made, Guard(number)))
}

/// Waits for a signal on a thread of its own.
fn listen() -> std::io::Result<()> {
    let ignored = ignored();
    let heard: Vec<i32> =
        [SIGINT, SIGTERM, SIGHUP].into_iter().filter(|n| ignored & (1 << (n - 1)) == 0).collect();
    let mut signals = Signals::new(heard)?;
    std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
        for signal in signals.forever() {
            // never let go: what was begun is over, and nothing new begins
            let held = held();
            for thing in held.things.values().rev().flatten() {
                thing.remove();
            }
            if signal_hook::low_level::emulate_default_handler(signal).is_err() {
                std::process::exit(128 + signal);
            }
        }
    })?;
    Ok(())
}

/// The signals that this process ignores, a bit each. Only Linux tells; elsewhere all count as not ignored.
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}
