//! Counts events that are not written.

use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family},
    registry::Registry,
};

/// Why an event was not written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DropCause {
    /// Too many events waited to be written.
    QueueFull,
    /// The object had too many events of this component.
    RateLimited,
    /// The API server rejected the event.
    Rejected,
    /// The API server did not answer any attempt.
    Unreachable,
}

impl DropCause {
    const ALL: [Self; 4] = [Self::QueueFull, Self::RateLimited, Self::Rejected, Self::Unreachable];

    const fn label(self) -> CauseLabel {
        let cause = match self {
            Self::QueueFull => "queue_full",
            Self::RateLimited => "rate_limited",
            Self::Rejected => "rejected",
            Self::Unreachable => "unreachable",
        };
        CauseLabel { cause }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CauseLabel {
    cause: &'static str,
}

/// Counts events that are not written, by cause. Cheap to clone.
#[derive(Clone, Default)]
pub(super) struct DroppedEvents {
    by_cause: Family<CauseLabel, Counter>,
}

impl DroppedEvents {
    pub(super) fn count(&self, cause: DropCause) {
        self.by_cause.get_or_create(&cause.label()).inc();
    }

    #[cfg(test)]
    pub(super) fn of(&self, cause: DropCause) -> u64 {
        self.by_cause.get_or_create(&cause.label()).get()
    }

    pub(super) fn register(&self, registry: &mut Registry) {
        for cause in DropCause::ALL {
            // The series exist from the start: a rate over the series has no gap.
            drop(self.by_cause.get_or_create(&cause.label()));
        }
        registry.register(
            "windlass_events_dropped",
            "Number of events that were not written, by cause.",
            self.by_cause.clone(),
        );
    }
}
