//! The errors of a manager's reconciles.

use std::collections::BTreeMap;

use parking_lot::Mutex;
use windlass_runtime::manager::Reconciled;

/// The longest list of errors in a message.
const SHOWN: usize = 20;

/// The last errors of the keys with a failed last reconcile.
#[derive(Default)]
pub(crate) struct ReconcileErrors(Mutex<BTreeMap<ReconcileKey, String>>);

/// The name of a controller and a key.
type ReconcileKey = (String, String);

impl ReconcileErrors {
    /// Notes the result of a reconcile. A success clears the error of the key.
    pub(crate) fn observe(&self, reconcile: &Reconciled<'_>) {
        let key = (reconcile.controller.to_owned(), reconcile.key.to_string());
        let mut errors = self.0.lock();
        match reconcile.error {
            Some(error) => drop(errors.insert(key, error.to_owned())),
            None => drop(errors.remove(&key)),
        }
    }

    /// Returns a line for each key that fails.
    pub(crate) fn lines(&self) -> Vec<String> {
        let errors = self.0.lock();
        let line =
            |((controller, key), error): (&ReconcileKey, &String)| format!("{controller} {key}: {error}");
        let mut lines: Vec<String> = errors.iter().take(SHOWN).map(line).collect();
        if errors.len() > SHOWN {
            lines.push(format!("... and {} more", errors.len() - SHOWN));
        }
        lines
    }
}
