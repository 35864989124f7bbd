//! A disk in memory.

use std::collections::BTreeMap;

use windlass_scaffold::{Action, Disk, Result, Writes};

/// Files by path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Memory {
    pub(crate) files: BTreeMap<String, String>,
    pub(crate) committed: bool,
}

impl Memory {
    pub(crate) fn text(&self, path: &str) -> String {
        self.files.get(path).cloned().unwrap_or_else(|| panic!("no file {path}"))
    }

    pub(crate) fn edit(&mut self, path: &str, from: &str, to: &str) {
        let text = self.text(path);
        assert!(text.contains(from), "{path} has no {from:?}:\n{text}");
        self.files.insert(path.to_owned(), text.replacen(from, to, 1));
    }

    pub(crate) fn apply(&mut self, writes: &Writes) {
        for path in writes.paths() {
            match writes.text(path) {
                Some(text) => self.files.insert(path.to_owned(), text.to_owned()),
                None => self.files.remove(path),
            };
        }
    }

    /// The files that a person sees.
    pub(crate) fn tree(&self) -> Vec<&str> {
        self.files.keys().map(String::as_str).filter(|path| !path.starts_with(".windlass/")).collect()
    }
}

impl Disk for Memory {
    fn read(&self, path: &str) -> Result<Option<String>> {
        Ok(self.files.get(path).cloned())
    }

    fn list(&self, folder: &str) -> Result<Vec<String>> {
        let inside = format!("{folder}/");
        Ok(self.files.keys().filter(|path| path.starts_with(&inside)).cloned().collect())
    }

    fn is_committed(&self, _: &str) -> bool {
        self.committed
    }
}

/// Returns the change of each file, a line each.
pub(crate) fn shown(writes: &Writes) -> Vec<String> {
    writes.actions().map(|(action, path): (Action, &str)| format!("{} {path}", action.done())).collect()
}
