//! What client-go's `workqueue_*` metrics say, counted without locks.

use crate::sync::{Ordering, Padded, PlainU64};
use std::time::Duration;

/// Bucket bounds of both histograms: 10 ns × 10ⁿ, as controller-runtime has them.
const BUCKETS: usize = 12;
const FIRST_BOUND_NANOS: u64 = 10;

/// Counters are spread by the key's hash so that cores do not fight over one line.
const STRIPES: usize = if cfg!(loom) { 1 } else { 16 };

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
    stripes: Box<[Padded<Stripe>]>,
}

struct Stripe {
    adds: PlainU64,
    retries: PlainU64,
    queue: Padded<Cells>,
    work: Padded<Cells>,
}

struct Cells {
    /// Not cumulative; the last is for what exceeds every bound.
    buckets: [PlainU64; BUCKETS + 1],
    nanos: PlainU64,
}

impl Meters {
    pub(crate) fn new() -> Self {
        let stripe = || {
            Padded(Stripe {
                adds: PlainU64::new(0),
                retries: PlainU64::new(0),
                queue: Padded(Cells::new()),
                work: Padded(Cells::new()),
            })
        };
        Self { stripes: std::iter::repeat_with(stripe).take(STRIPES).collect() }
    }

    fn stripe(&self, hash: u64) -> &Stripe {
        &self.stripes[(hash >> 32) as usize % STRIPES]
    }

    pub(crate) fn added(&self, hash: u64) {
        self.stripe(hash).adds.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn retried(&self, hash: u64) {
        self.stripe(hash).retries.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn queued_for(&self, hash: u64, time: Duration) {
        self.stripe(hash).queue.observe(time);
    }

    pub(crate) fn worked_for(&self, hash: u64, time: Duration) {
        self.stripe(hash).work.observe(time);
    }

    pub(crate) fn adds(&self) -> u64 {
        self.stripes.iter().map(|stripe| stripe.adds.load(Ordering::Relaxed)).sum()
    }

    pub(crate) fn retries(&self) -> u64 {
        self.stripes.iter().map(|stripe| stripe.retries.load(Ordering::Relaxed)).sum()
    }

    pub(crate) fn queue_duration(&self) -> Histogram {
        Histogram::sum_of(self.stripes.iter().map(|stripe| &*stripe.queue))
    }

    pub(crate) fn work_duration(&self) -> Histogram {
        Histogram::sum_of(self.stripes.iter().map(|stripe| &*stripe.work))
    }
}

impl Cells {
    fn new() -> Self {
        Self { buckets: std::array::from_fn(|_| PlainU64::new(0)), nanos: PlainU64::new(0) }
    }

    fn observe(&self, time: Duration) {
        let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.buckets[bucket_of(nanos)].fetch_add(1, Ordering::Relaxed);
        self.nanos.fetch_add(nanos, Ordering::Relaxed);
    }
}

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
