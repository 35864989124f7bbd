//! Counters by the labels of requests.

use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use parking_lot::{Mutex, RwLock};

/// The upper bounds of the buckets of durations, in seconds.
pub(super) const BUCKETS: [f64; 23] = [
    0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 15.0,
    20.0, 30.0, 45.0, 60.0,
];
/// The number of series at which new labels are counted together.
const MAX_SERIES: usize = 20_000;

/// The labels of requests, besides the code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Labels<'a> {
    pub(crate) component: &'a str,
    pub(crate) verb: &'a str,
    pub(crate) group: &'a str,
    pub(crate) version: &'a str,
    pub(crate) resource: &'a str,
    pub(crate) subresource: &'a str,
    /// `resource`, `namespace` or `cluster`.
    pub(crate) scope: &'a str,
    pub(crate) dry_run: &'a str,
}

impl Labels<'_> {
    /// Formats the labels, without braces. `dry_run` and the names of a few metrics differ.
    fn shown(&self) -> LabelText {
        let value = |text: &str| windlass_schema::go_quote(text);
        let before = format!("component={}", value(self.component));
        let after = format!(
            "group={},resource={},scope={},subresource={},verb={},version={}",
            value(self.group),
            value(self.resource),
            value(self.scope),
            value(self.subresource),
            value(self.verb),
            value(self.version)
        );
        LabelText { before, dry_run: format!("dry_run={}", value(self.dry_run)), after }
    }
}

/// Labels as text, in alphabetical order.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct LabelText {
    before: String,
    dry_run: String,
    after: String,
}

impl LabelText {
    /// Returns all labels.
    pub(super) fn all(&self) -> String {
        format!("{},{},{}", self.before, self.dry_run, self.after)
    }

    /// Returns the labels of long-running requests.
    pub(super) fn without_dry_run(&self) -> String {
        format!("{},{}", self.before, self.after)
    }
}

/// The requests with the same labels.
pub(super) struct Series {
    pub(super) shown: LabelText,
    numbers: Mutex<Counts>,
    long_running: AtomicI64,
}

/// The numbers of a series.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Counts {
    /// Requests by code.
    pub(super) codes: Vec<(u16, u64)>,
    /// Requests by the bucket of the duration, not added up.
    pub(super) buckets: [u64; BUCKETS.len()],
    /// Requests with a counted duration.
    pub(super) timed: u64,
    pub(super) seconds: f64,
}

impl Series {
    /// Counts a request. `took` is `None` for a long-running request.
    pub(super) fn observe(&self, code: u16, took: Option<Duration>) {
        let mut numbers = self.numbers.lock();
        match numbers.codes.iter_mut().find(|(known, _)| *known == code) {
            Some((_, count)) => *count += 1,
            None => numbers.codes.push((code, 1)),
        }
        let Some(took) = took else { return };
        let seconds = took.as_secs_f64();
        numbers.timed += 1;
        numbers.seconds += seconds;
        if let Some(bucket) = BUCKETS.iter().position(|bound| seconds <= *bound) {
            numbers.buckets[bucket] += 1;
        }
    }

    pub(super) fn begin(&self) {
        self.long_running.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn end(&self) {
        self.long_running.fetch_sub(1, Ordering::Relaxed);
    }

    pub(super) fn numbers(&self) -> Counts {
        self.numbers.lock().clone()
    }

    pub(super) fn long_running(&self) -> i64 {
        self.long_running.load(Ordering::Relaxed)
    }
}

/// All series of a server.
#[derive(Default)]
pub(super) struct SeriesMap {
    /// Series by the hash of the labels. No client can predict the hash, and 64 bits do not collide.
    by_hash: RwLock<HashMap<u64, Arc<Series>>>,
    hasher: RandomState,
}

impl SeriesMap {
    /// Returns the series with these labels.
    pub(super) fn of(&self, labels: &Labels<'_>) -> Arc<Series> {
        let hash = self.hasher.hash_one(labels);
        if let Some(series) = self.by_hash.read().get(&hash) {
            return Arc::clone(series);
        }
        let mut by_hash = self.by_hash.write();
        if by_hash.len() >= MAX_SERIES {
            let other = Labels { verb: "other", ..Labels::default() };
            return Arc::clone(by_hash.entry(self.hasher.hash_one(other)).or_insert_with(|| new(&other)));
        }
        Arc::clone(by_hash.entry(hash).or_insert_with(|| new(labels)))
    }

    /// Forgets all series.
    pub(super) fn clear(&self) {
        self.by_hash.write().clear();
    }

    /// Returns all series, sorted by labels.
    pub(super) fn sorted(&self) -> Vec<Arc<Series>> {
        let mut all: Vec<Arc<Series>> = self.by_hash.read().values().map(Arc::clone).collect();
        all.sort_by(|a, b| a.shown.cmp(&b.shown));
        all
    }
}

fn new(labels: &Labels<'_>) -> Arc<Series> {
    let numbers = Mutex::default();
    Arc::new(Series { shown: labels.shown(), numbers, long_running: AtomicI64::new(0) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_counted_by_labels_and_code() {
        let all = SeriesMap::default();
        let list = Labels { verb: "LIST", resource: "pods", ..Labels::default() };
        all.of(&list).observe(200, Some(Duration::from_millis(7)));
        all.of(&list).observe(200, Some(Duration::from_secs(100)));
        all.of(&list).observe(410, None);
        all.of(&Labels { verb: "GET", ..list }).observe(404, None);
        let numbers = all.of(&list).numbers();
        assert_eq!(numbers.codes, [(200, 2), (410, 1)]);
        assert_eq!((numbers.timed, numbers.buckets[1], numbers.buckets.iter().sum::<u64>()), (2, 1, 1));
        let shown: Vec<String> = all.sorted().iter().map(|series| series.shown.all()).collect();
        assert_eq!(shown.len(), 2);
        assert_eq!(
            shown[0],
            r#"component="",dry_run="",group="",resource="pods",scope="",subresource="",verb="GET",version="""#
        );
    }

    #[test]
    fn labels_without_end_are_counted_together() {
        let all = SeriesMap::default();
        for number in 0..MAX_SERIES + 10 {
            all.of(&Labels { resource: &number.to_string(), ..Labels::default() }).observe(200, None);
        }
        assert!(all.sorted().len() <= MAX_SERIES + 1);
    }
}
