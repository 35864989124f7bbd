//! The time that the parts of a manager have to stop.

use std::time::Duration;

use tokio::time::Instant;

use super::runnable::Group;

/// Shares the time of a graceful stop among the groups, which stop in sequence.
///
/// A group may use the time that earlier groups left, but never the time of later groups: a reconcile that hangs leaves time for runnables,
/// for requests to webhooks, and for the last scrape of the metrics.
#[derive(Clone, Copy, Debug)]
pub(super) struct Grace {
    begun: Instant,
    /// `None` sets no limit.
    limit: Option<Duration>,
}

impl Grace {
    /// Starts the time at `now`.
    pub(super) fn new(now: Instant, limit: Option<Duration>) -> Self {
        Self { begun: now, limit }
    }

    /// Returns the time for all groups together.
    pub(super) fn limit(&self) -> Option<Duration> {
        self.limit
    }

    /// Returns the time at which a group is ended by force; `None` means never.
    pub(super) fn deadline(&self, group: Group) -> Option<Instant> {
        let percent = match group {
            Group::LeaderElected => 70,
            Group::Others => 85,
            Group::Webhooks => 95,
            Group::Http => 100,
        };
        // Such a late instant may be out of range.
        self.begun.checked_add(self.limit? / 100 * percent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_group_leaves_time_for_the_groups_behind() {
        let now = Instant::now();
        let after = |limit, group| {
            let deadline = Grace::new(now, limit).deadline(group);
            deadline.map(|deadline| deadline.duration_since(now))
        };
        let half_minute = Some(Duration::from_secs(30));
        let deadlines: Vec<_> =
            Group::ALL.into_iter().rev().filter_map(|group| after(half_minute, group)).collect();
        assert_eq!(deadlines, [21_000, 25_500, 28_500, 30_000].map(Duration::from_millis));
        assert_eq!(after(None, Group::Http), None);
        assert_eq!(after(Some(Duration::MAX), Group::Others), None, "later than any instant");
        assert_eq!(after(Some(Duration::ZERO), Group::Others), Some(Duration::ZERO));
    }
}
