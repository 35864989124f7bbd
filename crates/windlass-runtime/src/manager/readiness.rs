//! The readiness checks that every manager has.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use futures::future::AbortHandle;

use super::run::RunningManager;

impl RunningManager {
    /// Adds the readiness checks that every manager has.
    ///
    /// A manager that `converts` kinds is ready without filled caches: a list or a watch may need the manager's own conversion, and the
    /// API server reaches only ready replicas.
    pub(super) fn add_checks(&self, converts: bool) {
        if !converts {
            self.add_cache_checks();
        }
        let supervisor = self.state.supervisor.clone();
        self.health.add_ready("tasks", move || {
            let down = supervisor.down();
            std::future::ready(if down.is_empty() {
                Ok(())
            } else {
                Err(format!("down after a panic: {}", down.join(", ")))
            })
        });
    }

    /// Adds the readiness checks of the caches.
    fn add_cache_checks(&self) {
        let (state, started, asking) = (self.state.clone(), self.started.clone(), self.asking.clone());
        // Readiness reports if the caches were ever filled: a filled cache stays ready.
        let synced = Arc::new(AtomicBool::new(false));
        self.health.add_ready("informer-sync", move || {
            let result = if synced.load(Ordering::Acquire) {
                Ok(())
            } else if started.load(Ordering::Acquire) {
                caches_filled(&asking.lock(), &state.unsynced())
                    .inspect(|()| synced.store(true, Ordering::Release))
            } else {
                Err("the caches are not started".to_owned())
            };
            std::future::ready(result)
        });
        if let Some(limit) = self.stale_after {
            let state = self.state.clone();
            self.health.add_ready("watches", move || {
                let stale = state.stale(limit);
                std::future::ready(if stale.is_empty() {
                    Ok(())
                } else {
                    Err(format!("failing: {}", stale.join(", ")))
                })
            });
        }
    }
}

/// Fails with the resources with an unfinished first list, and with the controllers that discover kinds.
fn caches_filled(asking: &BTreeMap<String, AbortHandle>, unsynced: &[String]) -> Result<(), String> {
    let mut reasons = Vec::new();
    if !unsynced.is_empty() {
        reasons.push(format!("the first list has not ended: {}", unsynced.join(", ")));
    }
    if !asking.is_empty() {
        let names: Vec<&str> = asking.keys().map(String::as_str).collect();
        reasons.push(format!(
            "the server has not said which kinds these controllers watch: {}",
            names.join(", ")
        ));
    }
    if reasons.is_empty() { Ok(()) } else { Err(reasons.join("; ")) }
}
