//! Which files a session touched, from its tool calls alone. Today's disk is never looked at.
//!
//! A call counts when its result says that it worked. What a shell command does is told by [`shell`].

use crate::record::path::key;
use crate::record::shell::{self, Effect};
use crate::record::{FileChange, FileStatus};
use std::collections::HashMap;

/// Calls that wait for their result; more than this many are never open in one turn of a real session.
const OPEN: usize = 10_000;

/// The files of one session.
#[derive(Debug, Default)]
pub struct Ledger {
    open: HashMap<u64, Vec<(String, Effect)>>,
    /// By what they are known, however they are spelled.
    files: HashMap<String, Known>,
    clock: u64,
}

#[derive(Debug)]
struct Known {
    /// As the session spells it.
    path: String,
    status: FileStatus,
    modified_at: Option<String>,
    order: u64,
}

impl Ledger {
    /// A call that writes a whole file.
    pub fn write(&mut self, call: u64, path: Option<String>) {
        self.expect(call, path, Effect::Write);
    }

    /// A call that changes a file.
    pub fn edit(&mut self, call: u64, path: Option<String>) {
        self.expect(call, path, Effect::Edit);
    }

    /// A call that reads a file.
    pub fn read(&mut self, call: u64, path: Option<String>) {
        self.expect(call, path, Effect::Read);
    }

    /// A shell command that ran in `directory`.
    pub fn shell(&mut self, call: u64, command: &str, directory: Option<&str>) {
        for (path, effect) in shell::effects(command, directory) {
            self.expect(call, Some(path), effect);
        }
    }

    /// A call that does something to a path when it works.
    pub fn expect(&mut self, call: u64, path: Option<String>, effect: Effect) {
        let Some(path) = path.filter(|p| !p.is_empty()) else { return };
        if self.open.len() >= OPEN && !self.open.contains_key(&call) {
            // calls that were never answered; what they did is unknown anyway
            self.open.clear();
        }
        self.open.entry(call).or_default().push((path, effect));
    }

    /// Whether the result of this call would tell anything.
    pub fn is_open(&self, call: u64) -> bool {
        self.open.contains_key(&call)
    }

    /// The result of a call. `created` is what the client itself says of a write, `when` is RFC 3339.
    pub fn settle(&mut self, call: u64, worked: bool, created: Option<bool>, when: Option<String>) {
        let Some(effects) = self.open.remove(&call) else { return };
        if worked {
            for (path, effect) in effects {
                self.record(path, effect, created, when.clone());
            }
        }
    }

    /// A file that was put before the model without a call.
    pub fn shown(&mut self, path: String) {
        self.record(path, Effect::Read, None, None);
    }

    fn record(&mut self, path: String, effect: Effect, created: Option<bool>, when: Option<String>) {
        self.clock += 1;
        let key = key(&path).into_owned();
        let before = self.files.get(&key).map(|k| k.status);
        let status = match (effect, before) {
            (Effect::Read, Some(_)) => return,
            (Effect::Read, None) => FileStatus::Read,
            (Effect::Delete | Effect::Move, _) => FileStatus::Deleted,
            (_, Some(FileStatus::Created)) => FileStatus::Created,
            (Effect::Create, _) => FileStatus::Created,
            (Effect::Edit, _) => FileStatus::Modified,
            (Effect::Write, before) => match (created, before) {
                (Some(true), _) | (None, None | Some(FileStatus::Deleted)) => FileStatus::Created,
                _ => FileStatus::Modified,
            },
        };
        let modified_at = if status == FileStatus::Read { None } else { when };
        self.files.insert(key, Known { path, status, modified_at, order: self.clock });
    }

    /// The files, the one changed last at the end.
    pub fn snapshot(self) -> Vec<FileChange> {
        let mut files: Vec<_> = self.files.into_values().collect();
        files.sort_by_key(|known| known.order);
        files
            .into_iter()
            .map(|k| FileChange { path: k.path, status: k.status, modified_at: k.modified_at })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_failed_did_not_happen_and_states_add_up() {
        let mut l = Ledger::default();
        l.write(1, Some("a".into()));
        l.settle(1, false, None, None);
        l.write(2, Some("b".into()));
        l.settle(2, true, Some(true), Some("t2".into()));
        l.edit(3, Some("b".into()));
        l.settle(3, true, None, Some("t3".into()));
        l.read(4, Some("c".into()));
        l.settle(4, true, None, Some("t4".into()));
        l.edit(5, Some("c".into()));
        l.settle(5, true, None, Some("t5".into()));
        l.shell(6, "rm d", None);
        l.settle(6, true, None, Some("t6".into()));
        let got: Vec<_> =
            l.snapshot().into_iter().map(|f| (f.path, f.status, f.modified_at.unwrap_or_default())).collect();
        assert_eq!(
            got,
            vec![
                ("b".into(), FileStatus::Created, "t3".to_owned()),
                ("c".into(), FileStatus::Modified, "t5".to_owned()),
                ("d".into(), FileStatus::Deleted, "t6".to_owned()),
            ]
        );
    }
}
