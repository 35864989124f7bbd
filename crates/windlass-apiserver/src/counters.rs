//! Counters and histograms by labels, for metrics that are not about requests to resources.

use std::collections::BTreeMap;
use std::time::Duration;

use parking_lot::Mutex;

/// The number of label sets at which a family takes no new label sets.
const MAX_SERIES: usize = 10_000;

/// Counters by labels, in the text format of Prometheus.
#[derive(Debug, Default)]
pub(crate) struct Counters(Mutex<BTreeMap<String, u64>>);

impl Counters {
    pub(crate) fn add(&self, labels: String) {
        let mut counters = self.0.lock();
        if counters.len() < MAX_SERIES || counters.contains_key(&labels) {
            *counters.entry(labels).or_default() += 1;
        }
    }

    /// Returns all counters, sorted by labels.
    pub(crate) fn all(&self) -> Vec<(String, u64)> {
        self.0.lock().iter().map(|(labels, count)| (labels.clone(), *count)).collect()
    }
}

/// The durations of a label set.
#[derive(Clone, Debug)]
pub(crate) struct Durations<const N: usize> {
    /// The number of durations up to each bound, not added up.
    pub(crate) buckets: [u64; N],
    pub(crate) count: u64,
    pub(crate) seconds: f64,
}

/// Histograms of durations by labels. `N` is the number of bounds.
#[derive(Debug)]
pub(crate) struct Histograms<const N: usize> {
    /// The upper bounds of the buckets, in seconds.
    pub(crate) bounds: [f64; N],
    by_labels: Mutex<BTreeMap<String, Durations<N>>>,
}

impl<const N: usize> Histograms<N> {
    pub(crate) fn new(bounds: [f64; N]) -> Self {
        Self { bounds, by_labels: Mutex::default() }
    }

    pub(crate) fn observe(&self, labels: String, took: Duration) {
        let mut by_labels = self.by_labels.lock();
        if by_labels.len() >= MAX_SERIES && !by_labels.contains_key(&labels) {
            return;
        }
        let none = || Durations { buckets: [0; N], count: 0, seconds: 0.0 };
        let durations = by_labels.entry(labels).or_insert_with(none);
        let seconds = took.as_secs_f64();
        durations.count += 1;
        durations.seconds += seconds;
        if let Some(bucket) = self.bounds.iter().position(|bound| seconds <= *bound) {
            durations.buckets[bucket] += 1;
        }
    }

    /// Returns all histograms, sorted by labels.
    pub(crate) fn all(&self) -> Vec<(String, Durations<N>)> {
        self.by_labels.lock().iter().map(|(labels, durations)| (labels.clone(), durations.clone())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_fall_into_buckets_by_labels() {
        let histograms = Histograms::new([0.1, 1.0]);
        for (labels, millis) in [("a", 50), ("a", 500), ("a", 5_000), ("b", 1)] {
            histograms.observe(labels.to_owned(), Duration::from_millis(millis));
        }
        let all = histograms.all();
        assert_eq!((all[0].1.buckets, all[0].1.count, all[1].1.count), ([1, 1], 3, 1));
    }

    #[test]
    fn labels_without_end_are_not_kept() {
        let counters = Counters::default();
        (0..MAX_SERIES + 10).for_each(|number| counters.add(number.to_string()));
        counters.add("1".to_owned());
        assert_eq!(counters.all().len(), MAX_SERIES);
        assert_eq!(counters.all()[1], ("1".to_owned(), 2));
    }
}
