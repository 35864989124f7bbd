//! The log lines of a watch.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;
use windlass_cache::Notice;

/// Writes notices to the log. A failure that repeats is a warning once, and later at debug level.
#[derive(Debug, Default)]
pub(super) struct WatchLog {
    failing: Mutex<Option<Failing>>,
}

/// The failures of a watch since the watch worked last.
#[derive(Clone, Debug)]
pub(crate) struct Failing {
    /// When the first of the failures was reported.
    since: Instant,
    /// The last failure.
    pub(crate) last: String,
    /// Whether the server does not have the kind: the cache is not stale, because there are no objects.
    pub(crate) kind_is_missing: bool,
}

impl Failing {
    /// Returns for how long the watch has been failing.
    pub(crate) fn duration(&self) -> Duration {
        self.since.elapsed()
    }
}

impl WatchLog {
    /// Returns the failures, until the watch has recovered.
    pub(super) fn failing(&self) -> Option<Failing> {
        self.failing.lock().clone()
    }

    /// Remembers a failure, and returns whether the failure before was the same.
    fn remember(&self, text: &str, kind_is_missing: bool) -> bool {
        let mut failing = self.failing.lock();
        let (since, repeated) = failing
            .as_ref()
            .map_or_else(|| (Instant::now(), false), |known| (known.since, known.last == text));
        *failing = Some(Failing { since, last: text.to_owned(), kind_is_missing });
        repeated
    }

    pub(super) fn write(&self, resource: &str, notice: &Notice) {
        match notice {
            Notice::Failed { error, retry_in } => {
                let text = error.to_string();
                if self.remember(&text, error.is_unknown_kind()) {
                    tracing::debug!(resource, ?retry_in, "{text}");
                } else if error.is_unknown_kind() {
                    tracing::info!(resource, ?retry_in, "{text}");
                } else {
                    tracing::warn!(resource, ?retry_in, "{text}");
                }
            }
            Notice::Recovered => {
                *self.failing.lock() = None;
                tracing::info!(resource, "watching again");
            }
            Notice::Unreadable(error) => tracing::warn!(resource, "{error}"),
            Notice::IndexPanicked { index, object } => {
                tracing::error!(resource, index, %object, "index function panicked; the object has no value in this index");
            }
            Notice::WatchListUnsupported => {
                tracing::debug!(resource, "the server cannot list by watch; listing in pages");
            }
            Notice::Relisting { reason } => tracing::info!(resource, reason, "listing again"),
        }
    }
}
