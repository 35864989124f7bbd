//! The numbers behind client-go's `workqueue_*` metrics, counted without locks.

use crate::sync::{Ordering, Padded, PlainU64};
use crate::timestamp::Timestamp;
use std::time::Duration;

/// The number of bounds in both histograms: 10 ns × 10ⁿ, as in controller-runtime.
const BUCKETS: usize = 12;
const FIRST_BOUND_NANOS: u64 = 10;

/// The number of counter stripes. Threads that use different stripes do not contend for cache lines.
pub(crate) const STRIPES: usize = if cfg!(loom) { 1 } else { 16 };

/// The metrics of a queue at a moment, for export under client-go's names.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Snapshot {
    /// `workqueue_depth`: the number of ready keys by priority, in descending order of priority. Priority 0 is always
    /// present.
    pub depth: Vec<(i32, usize)>,
    /// `workqueue_adds_total`: adds that made a key ready, at once or when the worker was done. Merged adds
    /// do not count.
    pub adds: u64,
    /// `workqueue_retries_total`: rate-limited adds.
    pub retries: u64,
    /// `workqueue_queue_duration_seconds`: the time that keys were ready before the hand-out.
    pub queue_duration: Histogram,
    /// `workqueue_work_duration_seconds`: how long keys were in flight.
    pub work_duration: Histogram,
    /// `workqueue_unfinished_work_seconds`: the sum of the times that the keys now in flight have been in
    /// flight.
    pub unfinished_work: Duration,
    /// `workqueue_longest_running_processor_seconds`: the longest time that a key now in flight has been in
    /// flight.
    pub longest_running_processor: Duration,
}

/// The counts of a histogram.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Histogram {
    /// The inclusive upper bound of each bucket in seconds, and the number of observations up to that bound.
    pub buckets: Vec<(f64, u64)>,
    /// The number of all observations, including observations above the last bound.
    pub count: u64,
    /// The sum of all observations in seconds.
    pub sum: f64,
}

/// The counters of a queue.
pub(crate) struct Counters {
    stripes: Box<[Padded<Stripe>]>,
}

/// The stripe that a caller counts in. Any stripe is correct; callers on different threads should use
/// different stripes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct StripeIndex(pub(crate) u8);

struct Stripe {
    retries: PlainU64,
    queued: AtomicHistogram,
    worked: AtomicHistogram,
}

struct AtomicHistogram {
    /// Not cumulative. The last bucket is for observations above every bound.
    buckets: [PlainU64; BUCKETS + 1],
    sum_nanos: PlainU64,
}

impl Counters {
    pub(crate) fn new() -> Self {
        let stripe = || {
            Padded(Stripe {
                retries: PlainU64::new(0),
                queued: AtomicHistogram::new(),
                worked: AtomicHistogram::new(),
            })
        };
        Self { stripes: std::iter::repeat_with(stripe).take(STRIPES).collect() }
    }

    #[inline]
    fn stripe(&self, index: StripeIndex) -> &Stripe {
        &self.stripes[index.0 as usize % STRIPES]
    }

    pub(crate) fn count_retry(&self, index: StripeIndex) {
        self.stripe(index).retries.fetch_add(1, Ordering::Relaxed);
    }

    /// Records the time that a key was ready before the hand-out.
    #[inline]
    pub(crate) fn observe_queued(&self, index: StripeIndex, time: Duration) {
        self.stripe(index).queued.observe(time);
    }

    /// Records how long a key was in flight.
    #[inline]
    pub(crate) fn observe_worked(&self, index: StripeIndex, time: Duration) {
        self.stripe(index).worked.observe(time);
    }

    pub(crate) fn total_retries(&self) -> u64 {
        self.stripes.iter().map(|stripe| stripe.retries.load(Ordering::Relaxed)).sum()
    }

    /// Returns how often the work on a key has ended. Everything before a counted end is visible to the caller.
    pub(crate) fn total_worked(&self) -> u64 {
        self.stripes.iter().map(|stripe| stripe.worked.count()).sum()
    }

    pub(crate) fn queue_duration(&self) -> Histogram {
        Histogram::sum_of(self.stripes.iter().map(|stripe| &stripe.queued))
    }

    pub(crate) fn work_duration(&self) -> Histogram {
        Histogram::sum_of(self.stripes.iter().map(|stripe| &stripe.worked))
    }
}

impl AtomicHistogram {
    fn new() -> Self {
        Self { buckets: std::array::from_fn(|_| PlainU64::new(0)), sum_nanos: PlainU64::new(0) }
    }

    fn count(&self) -> u64 {
        self.buckets.iter().map(|bucket| bucket.load(Ordering::SeqCst)).sum()
    }

    #[inline]
    fn observe(&self, time: Duration) {
        let nanos = Timestamp::from(time).as_nanos();
        // A worker counts and then checks for a shut-down; a drain shuts down and then reads the counts. With
        // `SeqCst` on all four accesses, at least one side sees the other side.
        self.buckets[bucket_of(nanos)].fetch_add(1, Ordering::SeqCst);
        self.sum_nanos.fetch_add(nanos, Ordering::Relaxed);
    }
}

#[inline]
fn bucket_of(nanos: u64) -> usize {
    match nanos.checked_sub(1) {
        Some(below) if below >= FIRST_BOUND_NANOS => (below.ilog10() as usize).min(BUCKETS),
        _ => 0,
    }
}

impl Histogram {
    fn sum_of<'a>(histograms: impl Iterator<Item = &'a AtomicHistogram>) -> Self {
        let mut counts = [0; BUCKETS + 1];
        let mut nanos = 0_u64;
        for histogram in histograms {
            for (count, bucket) in counts.iter_mut().zip(&histogram.buckets) {
                *count += bucket.load(Ordering::Relaxed);
            }
            nanos = nanos.wrapping_add(histogram.sum_nanos.load(Ordering::Relaxed));
        }
        let bounds = (0..BUCKETS as u32).map(|n| (FIRST_BOUND_NANOS * 10_u64.pow(n)) as f64 / 1e9);
        let cumulative = counts.iter().scan(0, |sum, count| {
            *sum += count;
            Some(*sum)
        });
        Self {
            buckets: bounds.zip(cumulative).collect(),
            count: counts.iter().sum(),
            sum: Duration::from_nanos(nanos).as_secs_f64(),
        }
    }
}
