//! The log lines of a watch.

use parking_lot::Mutex;
use windlass_cache::Notice;

/// Writes notices to the log. A failure that repeats is a warning once, and later at debug level.
#[derive(Debug, Default)]
pub(super) struct WatchLog {
    last: Mutex<Option<String>>,
}

impl WatchLog {
    /// The last failure, until the watch has recovered.
    pub(super) fn last_failure(&self) -> Option<String> {
        self.last.lock().clone()
    }

    pub(super) fn write(&self, resource: &str, notice: &Notice) {
        match notice {
            Notice::Failed { error, retry_in } => {
                let text = error.to_string();
                let repeated = self.last.lock().replace(text.clone()).is_some_and(|last| last == text);
                if repeated {
                    tracing::debug!(resource, ?retry_in, "{text}");
                } else if error.is_unknown_kind() {
                    tracing::info!(resource, ?retry_in, "{text}");
                } else {
                    tracing::warn!(resource, ?retry_in, "{text}");
                }
            }
            Notice::Recovered => {
                *self.last.lock() = None;
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
