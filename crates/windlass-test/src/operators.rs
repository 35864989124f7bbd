//! The managers that a test runs on a cluster.

use std::fmt::Write;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use crate::rights::RequestLog;
use crate::running::{RunningManager, State};

/// The managers of a cluster whose guards still exist, and the requests of restricted accounts.
#[derive(Default)]
pub(crate) struct Operators {
    managers: Mutex<Vec<Weak<State>>>,
    request_logs: Mutex<Vec<Weak<RequestLog>>>,
}

impl Operators {
    pub(crate) fn add(&self, manager: &RunningManager) {
        let mut managers = self.managers.lock();
        managers.retain(|manager| manager.strong_count() > 0);
        managers.push(Arc::downgrade(manager.state()));
    }

    /// Adds the requests of a restricted account.
    pub(crate) fn add_requests(&self, log: &Arc<RequestLog>) {
        self.request_logs.lock().push(Arc::downgrade(log));
    }

    /// Returns the error of the first manager that failed.
    pub(crate) fn failure(&self) -> Option<String> {
        self.managers.lock().iter().find_map(|manager| manager.upgrade()?.failure.get().cloned())
    }

    /// Describes why a wait may have failed: the requests that were denied, and the last error of each key whose last reconcile failed. Empty
    /// without such requests and keys.
    pub(crate) fn reasons(&self) -> String {
        let logs: Vec<_> = self.request_logs.lock().iter().filter_map(Weak::upgrade).collect();
        let denied: Vec<String> = logs.iter().flat_map(|log| log.missing()).collect();
        let managers: Vec<_> = self.managers.lock().iter().filter_map(Weak::upgrade).collect();
        let failing: Vec<String> =
            managers.iter().flat_map(|manager| manager.reconcile_errors.lines()).collect();
        let mut out = String::new();
        for (title, lines) in [("denied requests", denied), ("failed reconciles", failing)] {
            if !lines.is_empty() {
                let _ = write!(out, "\n{title}:\n  {}", lines.join("\n  "));
            }
        }
        out
    }
}
