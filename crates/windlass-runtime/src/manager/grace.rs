//! The time that the parts of a manager have to stop.

use std::time::Duration;

use tokio::time::Instant;

use super::runnable::Group;

/// A part of a stop. The stages of a stop follow each other in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    Group(Group),
    /// The release of the leader's Lease.
    Lease,
    /// The release of the Lease of a sharding group.
    Membership,
    /// Events that are not written yet.
    Events,
    /// The end of the watches.
    Caches,
}

/// The least time for a stage that sends requests to the API server.
const SHORTEST: Duration = Duration::from_millis(500);

/// Shares the time of a graceful stop among the stages.
///
/// A stage may use the time that earlier stages left, but never the time of later stages: a reconcile that hangs leaves time for runnables,
/// for the release of the Lease, for requests to webhooks, and for the last scrape of the metrics.
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

    /// Returns the time for all stages together.
    pub(super) fn limit(&self) -> Option<Duration> {
        self.limit
    }

    /// Returns the time at which a stage is ended by force; `None` means never.
    pub(super) fn deadline(&self, stage: Stage) -> Option<Instant> {
        let percent = match stage {
            Stage::Group(Group::LeaderElected) => 60,
            Stage::Lease => 66,
            Stage::Group(Group::Others) => 80,
            Stage::Membership => 84,
            Stage::Events => 88,
            Stage::Caches => 90,
            Stage::Group(Group::Webhooks) => 96,
            Stage::Group(Group::Http) => 100,
        };
        // Such a late instant may be out of range.
        self.begun.checked_add(self.limit? / 100 * percent)
    }

    /// Returns the time from `now` on for a stage of requests: at most `most`, and at least [`SHORTEST`], so that a short limit does not keep
    /// a Lease from the next leader.
    pub(super) fn requests(&self, stage: Stage, now: Instant, most: Duration) -> Duration {
        let left =
            self.deadline(stage).map_or(Duration::MAX, |deadline| deadline.saturating_duration_since(now));
        left.max(SHORTEST).min(most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAGES: [Stage; 8] = [
        Stage::Group(Group::LeaderElected),
        Stage::Lease,
        Stage::Group(Group::Others),
        Stage::Membership,
        Stage::Events,
        Stage::Caches,
        Stage::Group(Group::Webhooks),
        Stage::Group(Group::Http),
    ];

    #[test]
    fn each_stage_leaves_time_for_the_stages_behind() {
        let now = Instant::now();
        let after = |limit, stage| {
            let deadline = Grace::new(now, limit).deadline(stage);
            deadline.map(|deadline| deadline.duration_since(now))
        };
        let half_minute = Some(Duration::from_secs(30));
        let deadlines: Vec<_> = STAGES.into_iter().filter_map(|stage| after(half_minute, stage)).collect();
        let expected = [18_000, 19_800, 24_000, 25_200, 26_400, 27_000, 28_800, 30_000];
        assert_eq!(deadlines, expected.map(Duration::from_millis));
        assert_eq!(after(None, Stage::Lease), None);
        assert_eq!(after(Some(Duration::MAX), Stage::Caches), None, "later than any instant");
        assert_eq!(after(Some(Duration::ZERO), Stage::Events), Some(Duration::ZERO));
    }

    #[test]
    fn requests_have_some_time_however_short_the_limit_is() {
        let (now, most) = (Instant::now(), Duration::from_secs(2));
        let of = |limit, after| Grace::new(now, limit).requests(Stage::Lease, now + after, most);
        assert_eq!(of(None, Duration::ZERO), most);
        assert_eq!(of(Some(Duration::ZERO), Duration::ZERO), SHORTEST);
        let (half_minute, hung) = (Some(Duration::from_secs(30)), Duration::from_secs(18));
        assert_eq!(of(half_minute, hung), Duration::from_millis(1800));
        assert_eq!(of(half_minute, Duration::ZERO), most);
    }
}
