//! Which files a session touched, as its calls tell: patches in Codex's own format, and clear shell commands.

use super::line::{Item, What, field, id_hash, text};
use super::pieces::outcome_of;
use crate::agents::ledger::Ledger;
use crate::json::{Tape, Value};
use crate::record::{
    FileChange, Status,
    path::{is_absolute, joined},
    shell::Effect,
};

/// Longer arguments without a patch in them are not looked into: a shell command of that length writes files
/// whose contents it holds, and is not a clear one.
const LONGEST: usize = 64 << 10;

/// The files, gathered while the session is indexed.
#[derive(Debug, Default)]
pub(super) struct Files(Ledger);

impl Files {
    /// Looks at an item. `when` is its time, `directory` where the session runs at this point.
    pub(super) fn item(&mut self, item: &Item<'_>, when: Option<&str>, directory: Option<&str>) {
        let Some(call) = text(item.payload, "call_id").map(id_hash) else { return };
        match item.what {
            What::CustomCall => {
                if let Some(input) = text(item.payload, "input").filter(|i| holds_patch(i.raw())) {
                    self.patch(call, &input.decode(), directory);
                }
            }
            What::LocalShell => {
                if let Some(action) = field(item.payload, "action") {
                    self.arguments(call, action, directory);
                }
            }
            What::FunctionCall => {
                let Some(arguments) = text(item.payload, "arguments") else { return };
                if arguments.raw().len() <= LONGEST || holds_patch(arguments.raw()) {
                    let decoded = arguments.decode();
                    if let Ok(value) = Tape::new().parse(decoded.as_bytes()) {
                        self.arguments(call, value, directory);
                    }
                }
            }
            What::FunctionOutput | What::CustomOutput if self.0.is_open(call) => {
                let output = field(item.payload, "output");
                let words =
                    output.and_then(|o| o.text().or_else(|| o.items().find_map(|part| text(part, "text"))));
                let failed = words.is_some_and(|w| outcome_of(w).status == Status::Error);
                self.0.settle(call, !failed, None, when.map(str::to_owned));
            }
            _ => {}
        }
    }

    /// `{"input": patch}`, `{"command": [..]}`, `{"command": ".."}`, `{"cmd": ".."}`.
    fn arguments(&mut self, call: u64, arguments: Value<'_>, directory: Option<&str>) {
        let own =
            text(arguments, "workdir").or_else(|| text(arguments, "working_directory")).map(|d| d.decode());
        let own = own.map(|own| joined(directory, &own)).filter(|d| is_absolute(d));
        let directory = own.as_deref().or(directory);
        if let Some(input) = text(arguments, "input").filter(|i| holds_patch(i.raw())) {
            return self.patch(call, &input.decode(), directory);
        }
        let Some(command) = field(arguments, "command").or_else(|| field(arguments, "cmd")) else { return };
        if let Some(line) = command.text() {
            return self.shell(call, &line.decode(), directory);
        }
        let words = command.items().filter_map(|w| w.text()).map(|t| t.decode()).collect::<Vec<_>>();
        match words.as_slice() {
            [shell, option, line] if shell.ends_with("sh") && option.starts_with('-') => {
                self.shell(call, line, directory);
            }
            [name, input] if name == "apply_patch" => self.patch(call, input, directory),
            // words that the shell would not split or expand again
            _ if words
                .iter()
                .all(|w| w.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-./,:=+@%".contains(&b))) =>
            {
                self.shell(call, &words.join(" "), directory);
            }
            _ => {}
        }
    }

    fn shell(&mut self, call: u64, line: &str, directory: Option<&str>) {
        if line.contains("*** Begin Patch") {
            if line.contains("apply_patch") {
                self.patch(call, line, directory);
            }
            return;
        }
        self.0.shell(call, line, directory);
    }

    /// The files that a patch in Codex's own format names.
    fn patch(&mut self, call: u64, patch: &str, directory: Option<&str>) {
        let mut updated: Option<String> = None;
        for line in patch.lines() {
            let Some((what, path)) = line.strip_prefix("*** ").and_then(|l| l.split_once(": ")) else {
                continue;
            };
            let path = joined(directory, path.trim());
            let effect = match what {
                "Add File" => Effect::Create,
                "Update File" => {
                    updated = Some(path.clone());
                    Effect::Edit
                }
                "Delete File" => Effect::Delete,
                "Move to" => {
                    self.0.expect(call, updated.take(), Effect::Delete);
                    Effect::Create
                }
                _ => continue,
            };
            self.0.expect(call, Some(path), effect);
        }
    }

    /// The files, newest change last.
    pub(super) fn into_snapshot(self) -> Option<Vec<FileChange>> {
        let files = self.0.snapshot();
        (!files.is_empty()).then_some(files)
    }
}

fn holds_patch(raw: &[u8]) -> bool {
    memchr::memmem::find(raw, b"*** Begin Patch").is_some()
}
