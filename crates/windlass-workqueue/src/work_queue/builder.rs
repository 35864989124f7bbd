//! The settings of a work queue.

use super::WorkQueue;
use crate::RateLimiter;
use crate::queue::Config;
use std::hash::Hash;
use std::marker::PhantomData;

/// Builds a [`WorkQueue`].
#[derive(Debug)]
#[must_use = "a builder does nothing until `build` is called"]
pub struct Builder<K> {
    name: String,
    config: Config,
    key: PhantomData<fn() -> K>,
}

impl<K: Eq + Hash> Builder<K> {
    pub(super) fn new(name: String) -> Self {
        Self { name, config: Config::default(), key: PhantomData }
    }

    /// Sets the delays of rate-limited adds. The default is 5 ms × 2ⁿ, at most 1000 s, with a jitter of 10 %.
    pub fn rate_limiter(mut self, rate_limiter: RateLimiter) -> Self {
        self.config.rate_limiter = rate_limiter;
        self
    }

    /// Sets the seed of the jitter. The default is 0. The same seed gives the same delays.
    pub fn seed(mut self, seed: u64) -> Self {
        self.config.seed = seed;
        self
    }

    /// Hands out one key in `turns` from a lower priority while a higher priority has keys. Therefore no
    /// priority starves. The default is 16; values are clamped to 2..=1024.
    pub fn ageing(mut self, turns: u32) -> Self {
        self.config.ageing = turns;
        self
    }

    /// Creates the queue.
    pub fn build(self) -> WorkQueue<K> {
        WorkQueue::with_config(self.name, &self.config)
    }
}
