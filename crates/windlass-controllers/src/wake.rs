//! The time at which a key is reconciled again without a change.

use std::time::Duration;

use k8s_openapi::jiff::Timestamp;
use windlass_runtime::Action;

/// Returns the action that requeues the key at this time, or never.
pub(crate) fn at(time: Option<Timestamp>, now: Timestamp) -> Action {
    let wait = time.map(|time| Duration::try_from(time.duration_since(now)).unwrap_or_default());
    wait.map_or_else(Action::done, Action::requeue_after)
}
