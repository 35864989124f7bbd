//! The time for which a pod has kept other pods waiting.

use k8s_openapi::{
    apimachinery::pkg::apis::meta::v1::Time,
    jiff::{SignedDuration, Timestamp},
};

use crate::{
    Waiting,
    pods::{Member, State},
};

/// The changes since the last reconcile of a set.
#[derive(Debug)]
pub(crate) struct Progress<'a> {
    /// The number of pods of the set.
    pub(crate) replicas: u32,
    /// The pod that keeps other pods waiting.
    pub(crate) waits_for: Option<u32>,
    /// The pods that have ended and are being replaced.
    pub(crate) ended: &'a [u32],
    /// The pods that there are.
    pub(crate) members: &'a [Member],
}

impl Waiting {
    /// Returns the pods that keep other pods waiting, sorted by index. A pod that has ended stays in the list
    /// until the pod has been ready for `patience`.
    pub(crate) fn next(
        before: &[Self],
        progress: &Progress<'_>,
        patience: SignedDuration,
        now: Timestamp,
    ) -> Vec<Self> {
        let mut next: Vec<Self> = before.to_vec();
        let concerned = progress.ended.iter().copied().chain(progress.waits_for);
        for index in concerned {
            if next.iter().all(|known| known.index != index) {
                next.push(Self { index, since: Time(now), replacements: 0 });
            }
        }
        next.sort_by_key(|waiting| waiting.index);
        for waiting in &mut next {
            let ended = progress.ended.iter().filter(|index| **index == waiting.index).count() as u32;
            waiting.replacements = waiting.replacements.saturating_add(ended);
        }
        next.retain(|waiting| {
            let is_steady = waiting.steady_at(progress.members, patience).is_some_and(|at| at <= now);
            progress.waits_for == Some(waiting.index)
                || (waiting.replacements > 0 && waiting.index < progress.replicas && !is_steady)
        });
        next
    }

    /// Returns the time at which the pod will have been ready for `patience`, or `None` for a pod that is not
    /// ready.
    pub(crate) fn steady_at(&self, members: &[Member], patience: SignedDuration) -> Option<Timestamp> {
        let member = members.iter().find(|member| member.index == self.index)?;
        member.since.filter(|_| member.state == State::Ready)?.checked_add(patience).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: SignedDuration = SignedDuration::from_secs(60);

    fn at(second: i64) -> Timestamp {
        Timestamp::UNIX_EPOCH + SignedDuration::from_secs(second)
    }

    fn ready(index: u32, since: i64) -> Member {
        Member { index, revision: String::new(), state: State::Ready, since: Some(at(since)) }
    }

    /// The pods of a set of three that keep other pods waiting, as index, second and replacements.
    struct Set(Vec<Waiting>);

    impl Set {
        fn next(&mut self, now: i64, waits_for: Option<u32>, ended: &[u32], members: &[Member]) -> String {
            let progress = Progress { replicas: 3, waits_for, ended, members };
            self.0 = Waiting::next(&self.0, &progress, PATIENCE, at(now));
            let shown = |waiting: &Waiting| {
                format!("{}:{}:{}", waiting.index, waiting.since.0.as_second(), waiting.replacements)
            };
            self.0.iter().map(shown).collect::<Vec<_>>().join(" ")
        }
    }

    #[test]
    fn pods_that_become_ready_are_forgotten() {
        let mut set = Set(Vec::new());
        assert_eq!(set.next(1, Some(0), &[], &[]), "0:1:0");
        assert_eq!(set.next(5, Some(0), &[], &[]), "0:1:0");
        assert_eq!(set.next(7, Some(1), &[], &[ready(0, 6)]), "1:7:0");
        assert_eq!(set.next(8, None, &[], &[ready(0, 6), ready(1, 8)]), "");
    }

    #[test]
    fn pods_that_end_are_remembered_until_they_have_been_ready_for_long() {
        let mut set = Set(Vec::new());
        assert_eq!(set.next(1, Some(0), &[0], &[]), "0:1:1");
        assert_eq!(set.next(2, None, &[], &[ready(0, 2)]), "0:1:1", "ready for a moment");
        assert_eq!(set.next(3, Some(1), &[1], &[ready(0, 2)]), "0:1:1 1:3:1");
        assert_eq!(set.next(4, Some(0), &[0], &[]), "0:1:2 1:3:1");
        assert_eq!(set.next(64, None, &[], &[ready(0, 5), ready(1, 4)]), "0:1:2");
        assert_eq!(set.next(65, None, &[], &[ready(0, 5), ready(1, 4)]), "");
        assert_eq!(set.next(70, Some(3), &[3], &[]), "3:70:1");
        assert_eq!(set.next(71, None, &[], &[]), "", "a pod that is not wanted any more");
    }

    #[test]
    fn a_status_that_a_user_has_changed_does_no_harm() {
        let changed = |since| Waiting { index: 0, since: Time(since), replacements: u32::MAX };
        for since in [Timestamp::MIN, Timestamp::MAX] {
            let mut set = Set(vec![changed(since)]);
            assert!(set.next(1, Some(0), &[0], &[]).ends_with(":4294967295"));
            assert_eq!(set.next(61, None, &[], &[ready(0, 1)]), "");
        }
    }
}
