//! How long a key that failed has to wait.

use crate::bucket::TokenBucket;
use crate::sync::Mutex;
use crate::tick::Tick;
use std::hash::{BuildHasher, Hash};
use std::sync::Arc;
use std::time::Duration;

const BASE: Duration = Duration::from_millis(5);
const MAX: Duration = Duration::from_secs(1000);
const JITTER: f64 = 0.1;
const LEAST_MEMORY: Duration = Duration::from_mins(1);

/// The delay of rate-limited adds.
///
/// By default 5 ms × 2ⁿ after the n-th failure of a key in a row, never more than 1000 s, each up to 10 % shorter by
/// chance so that keys that failed together do not come back together. The chance is drawn from the queue's seed, the
/// key and n: the same run gives the same delays.
///
/// The failures of a key count until it is forgotten, or until it has been idle for too long; see
/// [`forget_after`](Self::forget_after).
#[derive(Clone)]
pub struct RateLimiter {
    delay: Delay,
    forget_after: Duration,
    jitter: f64,
    bucket: Option<(f64, u32)>,
}

#[derive(Clone)]
enum Delay {
    Exponential { base: Duration, max: Duration },
    Custom(Arc<dyn Fn(u32) -> Duration + Send + Sync>),
}

impl RateLimiter {
    /// `base` × 2ⁿ for the n-th failure in a row, counted from 0, at most `max`.
    pub fn exponential(base: Duration, max: Duration) -> Self {
        let forget_after = max.saturating_mul(2).max(LEAST_MEMORY);
        Self { delay: Delay::Exponential { base, max }, forget_after, jitter: JITTER, bucket: None }
    }

    /// Any function of the number of failures in a row before this one. No jitter.
    pub fn from_fn(delay: impl Fn(u32) -> Duration + Send + Sync + 'static) -> Self {
        Self { delay: Delay::Custom(Arc::new(delay)), forget_after: 2 * MAX, jitter: 0.0, bucket: None }
    }

    /// client-go's default: the exponential delay without jitter, and 10 a second with bursts of 100 for all keys
    /// together.
    pub fn client_go() -> Self {
        Self::default().jitter(0.0).token_bucket(10.0, 100)
    }

    /// Forgets the failures of a key that is idle (neither queued, delayed nor in flight) once `time` has passed since
    /// the end of its last delay. So a key that failed for good and never comes back does not take memory for ever.
    ///
    /// The default is twice the longest exponential delay, but at least a minute, and 2000 s for
    /// [`from_fn`](Self::from_fn).
    pub fn forget_after(mut self, time: Duration) -> Self {
        self.forget_after = time;
        self
    }

    /// Shortens each delay by chance, by up to `fraction` of it (0 to 1).
    pub fn jitter(mut self, fraction: f64) -> Self {
        self.jitter = fraction.clamp(0.0, 1.0);
        self
    }

    /// Lets all keys together fail `qps` times a second, `burst` times at once. A key waits for the longer of this
    /// and its own delay.
    pub fn token_bucket(mut self, qps: f64, burst: u32) -> Self {
        self.bucket = Some((qps, burst));
        self
    }
}

impl Default for RateLimiter {
    fn default() -> Self {
        Self::exponential(BASE, MAX)
    }
}

impl std::fmt::Debug for RateLimiter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut out = f.debug_struct("RateLimiter");
        match &self.delay {
            Delay::Exponential { base, max } => out.field("base", base).field("max", max),
            Delay::Custom(_) => out.field("delay", &"custom"),
        };
        out.field("forget_after", &self.forget_after);
        out.field("jitter", &self.jitter).field("bucket", &self.bucket).finish()
    }
}

/// A limiter at work in one queue.
pub(crate) struct Limiter {
    delay: Delay,
    pub(crate) forget_after: Duration,
    jitter: f64,
    seed: u64,
    bucket: Option<Mutex<TokenBucket>>,
}

impl Limiter {
    pub(crate) fn new(config: &RateLimiter, seed: u64) -> Self {
        let bucket = config.bucket.map(|(qps, burst)| Mutex::new(TokenBucket::new(qps, burst)));
        let RateLimiter { ref delay, forget_after, jitter, .. } = *config;
        Self { delay: delay.clone(), forget_after, jitter, seed, bucket }
    }

    /// How long `key` has to wait after `failures` earlier ones in a row.
    pub(crate) fn delay<K: Hash>(&self, key: &K, failures: u32, now: Tick) -> Duration {
        let full = match &self.delay {
            Delay::Exponential { base, max } => exponential(*base, *max, failures),
            Delay::Custom(delay) => delay(failures),
        };
        let own = if self.jitter > 0.0 {
            full.mul_f64(1.0 - self.jitter * self.chance(key, failures))
        } else {
            full
        };
        let shared = self.bucket.as_ref().map(|bucket| bucket.lock().reserve(now));
        own.max(shared.unwrap_or_default())
    }

    /// A number from 0 up to 1 that only the seed, the key and the failures decide: not threads, not time.
    fn chance<K: Hash>(&self, key: &K, failures: u32) -> f64 {
        let bits = foldhash::quality::FixedState::with_seed(self.seed).hash_one((key, failures));
        (bits >> 11) as f64 / (1_u64 << 53) as f64
    }
}

fn exponential(base: Duration, max: Duration, failures: u32) -> Duration {
    // Past 2^63 any base but zero is over any maximum that makes sense.
    let factor = 1_u64 << failures.min(63);
    let nanos = base.as_nanos().saturating_mul(u128::from(factor));
    u64::try_from(nanos).map_or(max, |nanos| Duration::from_nanos(nanos).min(max))
}
