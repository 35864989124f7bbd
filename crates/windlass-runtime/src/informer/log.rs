//! The log lines of a watch.

use std::{collections::BTreeMap, time::Duration};

use parking_lot::Mutex;
use tokio::time::Instant;
use windlass_cache::{ReflectorEvent, ReflectorId};

/// Writes notices to the log. A failure that repeats is a warning once, and later at debug level.
#[derive(Debug, Default)]
pub(super) struct WatchLog {
    /// The failing watches of the informer: a watch for each namespace, or a single watch.
    failing: Mutex<BTreeMap<Option<ReflectorId>, Failing>>,
}

/// The failures of a watch since the watch worked last.
#[derive(Clone, Debug)]
pub(crate) struct Failing {
    /// When the first of the failures was reported.
    since: Instant,
    /// The last failure.
    pub(crate) last: String,
    /// True if the server does not have the kind: the cache is not stale, because there are no objects.
    pub(crate) kind_is_missing: bool,
}

impl Failing {
    /// Returns for how long the watch has been failing.
    pub(crate) fn duration(&self) -> Duration {
        self.since.elapsed()
    }
}

impl WatchLog {
    /// Returns the failures of the watch that has been failing for the longest time; `None` if all watches work.
    pub(super) fn failing(&self) -> Option<Failing> {
        self.failing.lock().values().min_by_key(|failing| failing.since).cloned()
    }

    /// Returns the failures of a watch; `None` if the watch works.
    pub(super) fn failing_of(&self, source: ReflectorId) -> Option<Failing> {
        self.failing.lock().get(&Some(source)).cloned()
    }

    /// Notes that a run of a watch has ended the first list. A run after a panic does not know the failures of the run before, and reports
    /// no recovery.
    pub(super) fn listed(&self, source: ReflectorId) {
        self.failing.lock().remove(&Some(source));
    }

    /// Remembers a failure, and returns whether the failure before was the same.
    fn remember(&self, source: Option<ReflectorId>, text: &str, kind_is_missing: bool) -> bool {
        let mut failing = self.failing.lock();
        let known = failing.get(&source);
        let (since, repeated) =
            known.map_or_else(|| (Instant::now(), false), |known| (known.since, known.last == text));
        failing.insert(source, Failing { since, last: text.to_owned(), kind_is_missing });
        repeated
    }

    /// Writes a notice of a watch of the informer.
    pub(super) fn write(&self, resource: &str, source: Option<ReflectorId>, notice: &ReflectorEvent) {
        match notice {
            ReflectorEvent::Failed { error, retry_in } => {
                let text = error.to_string();
                if self.remember(source, &text, error.is_unknown_kind()) {
                    tracing::debug!(resource, ?retry_in, "{text}");
                } else if error.is_unknown_kind() {
                    tracing::info!(resource, ?retry_in, "{text}");
                } else {
                    tracing::warn!(resource, ?retry_in, "{text}");
                }
            }
            ReflectorEvent::Recovered => {
                self.failing.lock().remove(&source);
                tracing::info!(resource, "watching again");
            }
            ReflectorEvent::Unreadable(error) => tracing::warn!(resource, "{error}"),
            ReflectorEvent::IndexPanicked { index, object } => {
                tracing::error!(resource, index, %object, "index function panicked; the object has no value in this index");
            }
            ReflectorEvent::WatchListUnsupported => {
                tracing::debug!(resource, "the server cannot list by watch; listing in pages");
            }
            ReflectorEvent::Relisting { reason } => tracing::info!(resource, reason, "listing again"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The recovery of another namespace's watch does not affect a failing watch.
    #[tokio::test(start_paused = true)]
    async fn the_watch_of_each_namespace_fails_and_recovers_alone() {
        let log = WatchLog::default();
        let [a, b] = [0, 1].map(|number| Some(ReflectorId(number)));
        log.remember(a, "403", false);
        tokio::time::advance(Duration::from_secs(60)).await;
        log.remember(b, "500", false);
        log.write("secrets", b, &ReflectorEvent::Recovered);
        assert!(log.remember(a, "403", false), "as before");
        let duration = || log.failing().map(|failing| failing.duration().as_secs());
        assert_eq!(duration(), Some(60));
        log.write("secrets", a, &ReflectorEvent::Recovered);
        assert_eq!(duration(), None);
    }
}
