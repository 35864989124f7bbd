//! The delays of keys that failed.

use crate::sync::Mutex;
use crate::timestamp::Timestamp;
use std::hash::{BuildHasher, Hash};
use std::sync::Arc;
use std::time::Duration;

const DEFAULT_BASE: Duration = Duration::from_millis(5);
const DEFAULT_MAX: Duration = Duration::from_secs(1000);
const DEFAULT_JITTER: f64 = 0.1;
const MIN_DEFAULT_FORGET_AFTER: Duration = Duration::from_mins(1);

/// Computes the delay of rate-limited adds.
///
/// By default, the delay after the n-th consecutive failure of a key, counted from 0, is 5 ms × 2ⁿ, at most
/// 1000 s. A random jitter shortens the delay by up to 10 %, so that keys that failed together do not come
/// back together. The jitter depends only on the queue's seed, the key and n: the same run has the same
/// delays.
///
/// The failures of a key are reset by `forget`, and expire when the key stays idle; see
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
    /// Creates a limiter with a delay of `base` × 2ⁿ after n earlier consecutive failures, at most `max`. The
    /// jitter is 10 %.
    pub fn exponential(base: Duration, max: Duration) -> Self {
        let forget_after = max.saturating_mul(2).max(MIN_DEFAULT_FORGET_AFTER);
        Self { delay: Delay::Exponential { base, max }, forget_after, jitter: DEFAULT_JITTER, bucket: None }
    }

    /// Creates a limiter from a function of the number of earlier consecutive failures. There is no jitter.
    pub fn from_fn(delay: impl Fn(u32) -> Duration + Send + Sync + 'static) -> Self {
        let forget_after = 2 * DEFAULT_MAX;
        Self { delay: Delay::Custom(Arc::new(delay)), forget_after, jitter: 0.0, bucket: None }
    }

    /// Creates client-go's default limiter: the exponential delay without jitter, and a token bucket of 10 per second with
    /// bursts of 100.
    pub fn client_go() -> Self {
        Self::default().jitter(0.0).token_bucket(10.0, 100)
    }

    /// Sets the time after which the failures of an idle key expire, from the end of the last delay. A key is
    /// idle while the key is neither queued, delayed nor in flight. A key that fails and never comes back
    /// therefore does not occupy memory for ever.
    ///
    /// The default is twice the longest exponential delay, at least a minute; for [`from_fn`](Self::from_fn)
    /// 2000 s.
    #[must_use]
    pub fn forget_after(mut self, idle: Duration) -> Self {
        self.forget_after = idle;
        self
    }

    /// Shortens each delay by a random part of up to `fraction`, from 0 to 1.
    #[must_use]
    pub fn jitter(mut self, fraction: f64) -> Self {
        self.jitter = fraction.clamp(0.0, 1.0);
        self
    }

    /// Limits the failures of all keys together to `qps` per second with bursts of `burst`. A key waits for
    /// the longer of the bucket's delay and the key's own delay.
    #[must_use]
    pub fn token_bucket(mut self, qps: f64, burst: u32) -> Self {
        self.bucket = Some((qps, burst));
        self
    }
}

impl Default for RateLimiter {
    fn default() -> Self {
        Self::exponential(DEFAULT_BASE, DEFAULT_MAX)
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

/// A rate limiter in use by one queue.
pub(crate) struct Limiter {
    config: RateLimiter,
    seed: u64,
    bucket: Option<Mutex<TokenBucket>>,
}

impl Limiter {
    pub(crate) fn new(config: &RateLimiter, seed: u64) -> Self {
        let bucket = config.bucket.map(|(qps, burst)| Mutex::new(TokenBucket::new(qps, burst)));
        Self { config: config.clone(), seed, bucket }
    }

    pub(crate) fn forget_after(&self) -> Duration {
        self.config.forget_after
    }

    /// Returns the delay of `key` after `failures` earlier consecutive failures, `at_least` or longer.
    pub(crate) fn delay<K: Hash>(
        &self,
        key: &K,
        failures: u32,
        at_least: Duration,
        now: Timestamp,
    ) -> Duration {
        let RateLimiter { delay, jitter, .. } = &self.config;
        let full = match delay {
            Delay::Exponential { base, max } => exponential(*base, *max, failures),
            Delay::Custom(delay) => delay(failures),
        };
        let part = if *jitter > 0.0 { jitter * self.random(key, failures) } else { 0.0 };
        let own = if part > 0.0 { full.mul_f64(1.0 - part) } else { full };
        // A random part of the longest delay may be too long.
        let at_least =
            at_least.saturating_add(if part > 0.0 { at_least.mul_f64(part) } else { Duration::ZERO });
        let shared = self.bucket.as_ref().map(|bucket| bucket.lock().reserve(now));
        own.max(shared.unwrap_or_default()).max(at_least)
    }

    /// Returns a number in 0..1 that depends only on the seed, the key and the failures.
    fn random<K: Hash>(&self, key: &K, failures: u32) -> f64 {
        let bits = foldhash::quality::FixedState::with_seed(self.seed).hash_one((key, failures));
        (bits >> 11) as f64 / (1_u64 << 53) as f64
    }
}

fn exponential(base: Duration, max: Duration, failures: u32) -> Duration {
    // From 2^63 on, any base but zero exceeds any sensible maximum.
    let factor = 1_u64 << failures.min(63);
    let nanos = base.as_nanos().saturating_mul(u128::from(factor));
    u64::try_from(nanos).map_or(max, |nanos| Duration::from_nanos(nanos).min(max))
}

/// A token bucket with reservations, as in golang.org/x/time/rate: `burst` tokens at once, then `qps` per
/// second. A further reservation takes a future token, and waits until the token's time.
#[derive(Debug)]
struct TokenBucket {
    qps: f64,
    burst: f64,
    /// Negative while tokens of the future are reserved.
    tokens: f64,
    updated: Timestamp,
}

impl TokenBucket {
    fn new(qps: f64, burst: u32) -> Self {
        let burst = f64::from(burst);
        Self { qps: qps.max(f64::MIN_POSITIVE), burst, tokens: burst, updated: Timestamp::ZERO }
    }

    /// Takes a token and returns the time until the token is available.
    fn reserve(&mut self, now: Timestamp) -> Duration {
        let elapsed = now.since(self.updated).as_secs_f64();
        self.updated = self.updated.max(now);
        self.tokens = (self.tokens + elapsed * self.qps).min(self.burst) - 1.0;
        if self.tokens >= 0.0 {
            return Duration::ZERO;
        }
        Duration::try_from_secs_f64(-self.tokens / self.qps).unwrap_or(Duration::MAX)
    }
}
