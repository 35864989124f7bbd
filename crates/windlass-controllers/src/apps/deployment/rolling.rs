//! The arithmetic of a rolling update: how far each ReplicaSet may be scaled within `maxSurge` and `maxUnavailable`.

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use crate::percent;

/// `maxSurge` and `maxUnavailable` as numbers of pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bounds {
    pub surge: i32,
    pub unavailable: i32,
}

impl Bounds {
    /// Resolves percentages of `replicas`. The surge is rounded up, the unavailable pods are rounded down,
    /// and at least one number is 1 or more.
    pub(super) fn resolve(
        surge: Option<&IntOrString>,
        unavailable: Option<&IntOrString>,
        replicas: i32,
    ) -> Self {
        let surge = share(surge, replicas, true);
        let unavailable = share(unavailable, replicas, false);
        Self { surge, unavailable: if surge == 0 && unavailable == 0 { 1 } else { unavailable } }
    }
}

fn share(value: Option<&IntOrString>, of: i32, round_up: bool) -> i32 {
    let default = IntOrString::String("25%".to_owned());
    percent::scaled(value.unwrap_or(&default), of, round_up)
}

/// The replica counts of a ReplicaSet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ReplicaCounts {
    /// `spec.replicas`.
    pub wanted: i32,
    /// `status.availableReplicas`, which is stale after a change of the size.
    pub available: i32,
}

impl ReplicaCounts {
    /// Returns the number of available pods that stay: a status that is older than the size may count more pods than the set will have.
    fn serving(self) -> i32 {
        self.available.clamp(0, self.wanted)
    }
}

/// Returns the next size of the new ReplicaSet, as large as the surge allows.
pub(super) fn scale_up(new: ReplicaCounts, old: &[ReplicaCounts], replicas: i32, bounds: Bounds) -> i32 {
    if new.wanted >= replicas {
        return replicas;
    }
    let total = new.wanted + old.iter().map(|set| set.wanted).sum::<i32>();
    let room = replicas.saturating_add(bounds.surge) - total;
    new.wanted + room.clamp(0, replicas - new.wanted)
}

/// Returns the next sizes of the old ReplicaSets, oldest first. Unavailable pods are removed first; available
/// pods as far as availability allows.
pub(super) fn scale_down(
    new: ReplicaCounts,
    old: &[ReplicaCounts],
    replicas: i32,
    bounds: Bounds,
) -> Vec<i32> {
    let mut sizes: Vec<i32> = old.iter().map(|set| set.wanted).collect();
    let total = new.wanted + sizes.iter().sum::<i32>();
    let must_serve = replicas - bounds.unavailable;
    let mut spare = (total - must_serve - (new.wanted - new.serving())).max(0);
    for (size, set) in sizes.iter_mut().zip(old) {
        let idle = (*size - set.serving()).min(spare);
        *size -= idle;
        spare -= idle;
    }
    for size in &mut sizes {
        let cut = (*size).min(spare);
        *size -= cut;
        spare -= cut;
    }
    sizes
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn bounds(surge: &str, unavailable: &str, replicas: i32) -> Bounds {
        let value =
            |text: &str| text.parse().map_or_else(|_| IntOrString::String(text.to_owned()), IntOrString::Int);
        Bounds::resolve(Some(&value(surge)), Some(&value(unavailable)), replicas)
    }

    fn serving(n: i32) -> ReplicaCounts {
        ReplicaCounts { wanted: n, available: n }
    }

    #[test]
    fn percentages_round_up_for_surge_and_down_for_unavailable() {
        assert_eq!(bounds("25%", "25%", 10), Bounds { surge: 3, unavailable: 2 });
        assert_eq!(bounds("1", "0", 10), Bounds { surge: 1, unavailable: 0 });
        assert_eq!(bounds("0", "10%", 5), Bounds { surge: 0, unavailable: 1 }, "not both zero");
        assert_eq!(Bounds::resolve(None, None, 4), Bounds { surge: 1, unavailable: 1 });
    }

    #[test]
    fn a_first_rollout_takes_all_at_once() {
        assert_eq!(scale_up(ReplicaCounts::default(), &[], 3, bounds("25%", "25%", 3)), 3);
    }

    #[test]
    fn a_set_larger_than_wanted_is_cut_back() {
        assert_eq!(scale_up(serving(5), &[], 3, bounds("25%", "25%", 3)), 3);
    }

    #[test]
    fn old_pods_that_do_not_serve_go_first() {
        let broken = ReplicaCounts { wanted: 3, available: 0 };
        assert_eq!(
            scale_down(ReplicaCounts { wanted: 1, available: 0 }, &[broken], 3, bounds("1", "1", 3)),
            [2]
        );
    }

    /// Simulates rollouts: each new pod becomes available a round later.
    #[test]
    fn every_rollout_keeps_its_bounds_and_ends() {
        for replicas in 0..=7 {
            for (surge, unavailable) in [("1", "0"), ("0", "1"), ("25%", "25%"), ("100%", "0"), ("2", "50%")]
            {
                let bounds = bounds(surge, unavailable, replicas);
                let (mut new, mut old) = (ReplicaCounts::default(), vec![serving(replicas)]);
                for round in 0.. {
                    assert!(round < 50, "{replicas} {surge} {unavailable}: {new:?} {old:?}");
                    new.wanted = scale_up(new, &old, replicas, bounds);
                    assert!(new.wanted + old[0].wanted <= replicas + bounds.surge);
                    let sizes = scale_down(new, &old, replicas, bounds);
                    old[0] = serving(sizes[0]);
                    assert!(new.available + old[0].available >= replicas - bounds.unavailable);
                    if new == serving(replicas) && old[0].wanted == 0 {
                        break;
                    }
                    new.available = new.wanted;
                }
            }
        }
    }

    #[test]
    fn a_stale_status_of_an_old_set_cuts_no_more_pods() {
        // 10 pods were cut to 8, and the status still counts 10. None of the 5 new pods is available.
        let old = ReplicaCounts { wanted: 8, available: 10 };
        let new = ReplicaCounts { wanted: 5, available: 0 };
        assert_eq!(scale_down(new, &[old], 10, bounds("25%", "25%", 10)), [8]);
    }

    /// A ReplicaSet of a simulated rollout: the pods that serve, and the last status that the Deployment controller has seen.
    #[derive(Clone, Copy, Debug, Default)]
    struct Simulated {
        wanted: i32,
        serving: i32,
        status: i32,
    }

    impl Simulated {
        fn seen(self) -> ReplicaCounts {
            ReplicaCounts { wanted: self.wanted, available: self.status }
        }

        fn resize(&mut self, wanted: i32) {
            self.wanted = wanted;
            self.serving = self.serving.min(wanted);
        }
    }

    /// An event of a rollout: the set's next pod becomes available, the set's status is written, or the controller runs.
    #[derive(Clone, Copy, Debug)]
    enum Happens {
        PodServes(usize),
        StatusIsWritten(usize),
        Reconcile,
    }

    fn happens() -> impl Strategy<Value = Happens> {
        prop_oneof![
            (0..3_usize).prop_map(Happens::PodServes),
            (0..3_usize).prop_map(Happens::StatusIsWritten),
            Just(Happens::Reconcile),
        ]
    }

    proptest! {
        #[test]
        fn a_status_that_lags_never_breaks_the_bounds(
            replicas in 1..12_i32,
            surge in 0..4_i32,
            unavailable in 0..4_i32,
            first in 0..12_i32,
            events in prop::collection::vec(happens(), 0..120),
        ) {
            let bounds = Bounds::resolve(Some(&IntOrString::Int(surge)), Some(&IntOrString::Int(unavailable)), replicas);
            let must_serve = replicas - bounds.unavailable;
            // Two old sets, then the new set.
            let first = first.min(replicas);
            let full = |n| Simulated { wanted: n, serving: n, status: n };
            let mut sets = [full(first), full(replicas - first), Simulated::default()];
            for event in events {
                match event {
                    Happens::PodServes(i) => sets[i].serving = (sets[i].serving + 1).min(sets[i].wanted),
                    Happens::StatusIsWritten(i) => sets[i].status = sets[i].serving,
                    Happens::Reconcile => {
                        let (new, old) = (sets[2].seen(), [sets[0].seen(), sets[1].seen()]);
                        let size = scale_up(new, &old, replicas, bounds);
                        if size == new.wanted {
                            let sizes = scale_down(new, &old, replicas, bounds);
                            sets[0].resize(sizes[0]);
                            sets[1].resize(sizes[1]);
                        } else {
                            sets[2].resize(size);
                        }
                    }
                }
                prop_assert!(sets.iter().map(|set| set.wanted).sum::<i32>() <= replicas + bounds.surge, "{:?}", sets);
                prop_assert!(sets.iter().map(|set| set.serving).sum::<i32>() >= must_serve, "{:?}", sets);
            }
        }
    }
}
