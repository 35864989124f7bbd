//! What client-go's `workqueue_*` metrics say, counted without locks.

use crate::sync::{Ordering, Padded, PlainU64};
use crate::tick::Tick;
use std::time::Duration;

/// Bucket bounds of both histograms: 10 ns × 10ⁿ, as controller-runtime has them.
const BUCKETS: usize = 12;
const FIRST_BOUND_NANOS: u64 = 10;

/// Counters are spread so that cores do not fight over one line.
pub(crate) const STRIPES: usize = if cfg!(loom) { 1 } else { 16 };

/// A queue's state and history at one moment, to be exported under client-go's names.
#[derive(Clone, Debug, PartialEq)]
pub struct Snapshot {
    /// `workqueue_depth`: keys that are ready, by priority, the highest first. Priority 0 is always there.
    pub depth: Vec<(i32, usize)>,
    /// `workqueue_adds_total`: adds that made a key ready, or due again after the work on it. Adds of keys that
    /// were queued already do not count.
    pub adds: u64,
    /// `workqueue_retries_total`: rate-limited adds.
    pub retries: u64,
    /// `workqueue_queue_duration_seconds`: how long keys were ready before they were handed out.
    pub queue_duration: Histogram,
    /// `workqueue_work_duration_seconds`: how long the work on a key took.
    pub work_duration: Histogram,
    /// `workqueue_unfinished_work_seconds`: the time spent so far on all keys that are being worked on, together.
    pub unfinished_work: Duration,
    /// `workqueue_longest_running_processor_seconds`: the longest of them.
    pub longest_running_processor: Duration,
}

/// A histogram's counts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Histogram {
    /// Each bucket's upper bound in seconds (inclusive), and how many observations were at most that.
    pub buckets: Vec<(f64, u64)>,
    /// All observations, also those above the last bound.
    pub count: u64,
    /// Their sum, in seconds.
    pub sum: f64,
}

/// The counters of a queue.
pub(crate) struct Meters {
    stripes: Box<[Padded<Counters>]>,
}

/// Which of the counters a caller uses. Any will do; callers on different cores do well to take different ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stripe(pub(crate) u8);

struct Counters {
    retries: PlainU64,
    queue: Cells,
    work: Cells,
}

struct Cells {
    /// Not cumulative; the last is for what exceeds every bound.
    buckets: [PlainU64; BUCKETS + 1],
    nanos: PlainU64,
}

impl Meters {
    pub(crate) fn new() -> Self {
        let stripe =
            || Padded(Counters { retries: PlainU64::new(0), queue: Cells::new(), work: Cells::new() });
        Self { stripes: std::iter::repeat_with(stripe).take(STRIPES).collect() }
    }

    #[inline]
    fn stripe(&self, stripe: Stripe) -> &Counters {
        &self.stripes[stripe.0 as usize % STRIPES]
    }

    pub(crate) fn retried(&self, stripe: Stripe) {
        self.stripe(stripe).retries.fetch_add(1, Ordering::Relaxed);
    }

    #[inline]
    pub(crate) fn queued_for(&self, stripe: Stripe, time: Duration) {
        self.stripe(stripe).queue.observe(time);
    }

    #[inline]
    pub(crate) fn worked_for(&self, stripe: Stripe, time: Duration) {
        self.stripe(stripe).work.observe(time);
    }

    pub(crate) fn retries(&self) -> u64 {
        self.stripes.iter().map(|stripe| stripe.retries.load(Ordering::Relaxed)).sum()
    }

    /// How often the work on a key has ended. What led to it is seen by whoever sees its end counted.
    pub(crate) fn finished(&self) -> u64 {
        self.stripes.iter().map(|stripe| stripe.work.count()).sum()
    }

    pub(crate) fn queue_duration(&self) -> Histogram {
        Histogram::sum_of(self.stripes.iter().map(|stripe| &stripe.queue))
    }

    pub(crate) fn work_duration(&self) -> Histogram {
        Histogram::sum_of(self.stripes.iter().map(|stripe| &stripe.work))
    }
}

impl Cells {
    fn new() -> Self {
        Self { buckets: std::array::from_fn(|_| PlainU64::new(0)), nanos: PlainU64::new(0) }
    }

    fn count(&self) -> u64 {
        self.buckets.iter().map(|bucket| bucket.load(Ordering::SeqCst)).sum()
    }

    #[inline]
    fn observe(&self, time: Duration) {
        let nanos = Tick::from(time).as_nanos();
        // A worker counts and then looks for the end of all adds, a drain does it the other way round: one of them sees
        // the other.
        self.buckets[bucket_of(nanos)].fetch_add(1, Ordering::SeqCst);
        self.nanos.fetch_add(nanos, Ordering::Relaxed);
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
    fn sum_of<'a>(cells: impl Iterator<Item = &'a Cells>) -> Self {
        let mut counts = [0; BUCKETS + 1];
        let mut nanos = 0_u64;
        for cell in cells {
            for (count, bucket) in counts.iter_mut().zip(&cell.buckets) {
                *count += bucket.load(Ordering::Relaxed);
            }
            nanos = nanos.wrapping_add(cell.nanos.load(Ordering::Relaxed));
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
