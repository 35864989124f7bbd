//! The sizes of several active ReplicaSets when `spec.replicas` of their Deployment changes, in a rollout or a pause.

use std::cmp::Reverse;

/// An active ReplicaSet of a Deployment that is scaled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ActiveSet {
    /// `spec.replicas`, at least 1.
    pub wanted: i32,
    /// The largest number of pods of the Deployment when the ReplicaSet was last scaled: the annotation
    /// `deployment.kubernetes.io/max-replicas`, or `status.replicas` of the Deployment.
    pub maximum: i32,
}

/// Distributes `maximum` pods over `sets`, which are sorted by age with the oldest first, in proportion to the sizes of the sets.
///
/// Returns a size for each set. The largest set takes the rest that rounding leaves; among sets of one size, the newest grows first
/// and the oldest shrinks first.
pub(super) fn proportional(sets: &[ActiveSet], maximum: i32) -> Vec<i32> {
    let mut sizes: Vec<i32> = sets.iter().map(|set| set.wanted).collect();
    let missing = i64::from(maximum) - sizes.iter().map(|size| i64::from(*size)).sum::<i64>();
    if missing == 0 {
        return sizes;
    }
    let mut order: Vec<usize> = (0..sets.len()).collect();
    if missing > 0 {
        order.sort_by_key(|index| (Reverse(sets[*index].wanted), Reverse(*index)));
    } else {
        order.sort_by_key(|index| (Reverse(sets[*index].wanted), *index));
    }
    let mut rest = missing;
    for index in &order {
        let change = share(sets[*index], maximum);
        let change = if missing > 0 { change.min(rest) } else { change.max(rest) };
        sizes[*index] = bounded(i64::from(sizes[*index]) + change);
        rest -= change;
    }
    if let Some(largest) = order.first() {
        sizes[*largest] = bounded(i64::from(sizes[*largest]) + rest);
    }
    sizes
}

/// Returns the change of a set that keeps the set's part of the Deployment.
fn share(set: ActiveSet, maximum: i32) -> i64 {
    let (wanted, before) = (i64::from(set.wanted), i64::from(set.maximum));
    if maximum == 0 {
        return -wanted;
    }
    if before <= 0 {
        return 0;
    }
    // Halves are rounded up: all numbers are positive.
    (2 * wanted * i64::from(maximum) + before) / (2 * before) - wanted
}

fn bounded(size: i64) -> i32 {
    i32::try_from(size.max(0)).unwrap_or(i32::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sets(sizes: &[i32], maximum: i32) -> Vec<ActiveSet> {
        sizes.iter().map(|wanted| ActiveSet { wanted: *wanted, maximum }).collect()
    }

    #[test]
    fn sets_keep_their_part_of_the_deployment() {
        assert_eq!(proportional(&sets(&[6, 7], 13), 18), [8, 10], "14 replicas and a surge of 4");
        assert_eq!(proportional(&sets(&[6, 7], 13), 5), [2, 3]);
        assert_eq!(proportional(&sets(&[5, 5], 10), 15), [7, 8], "the newest of two equal sets grows first");
        assert_eq!(proportional(&sets(&[5, 5], 10), 5), [2, 3], "the oldest of two equal sets shrinks first");
    }

    #[test]
    fn a_deployment_that_is_scaled_to_nothing_has_no_pods() {
        assert_eq!(proportional(&sets(&[6, 7], 13), 0), [0, 0]);
    }

    #[test]
    fn the_largest_set_takes_all_if_no_set_knows_the_size_before() {
        assert_eq!(proportional(&sets(&[3, 2], 0), 8), [6, 2]);
    }

    proptest! {
        #[test]
        fn all_sets_together_have_the_maximum(
            sizes in prop::collection::vec(1..200, 1..6),
            before in 0..400,
            maximum in 0..500,
        ) {
            let scaled = proportional(&sets(&sizes, before), maximum);
            prop_assert!(scaled.iter().all(|size| *size >= 0));
            let sum: i32 = scaled.iter().sum();
            // A set smaller than its share of a cut stays at 0, and then the sum is larger than the maximum.
            prop_assert!(sum >= maximum);
            if sizes.iter().sum::<i32>() <= maximum { prop_assert_eq!(sum, maximum); }
        }
    }
}
