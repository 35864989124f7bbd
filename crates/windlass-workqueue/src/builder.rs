//! How a work queue is set up.

use crate::queue::Config;
use crate::{RateLimiter, WorkQueue};
use std::hash::Hash;
use std::marker::PhantomData;

/// Sets up a [`WorkQueue`].
#[derive(Debug)]
pub struct Builder<K> {
    name: String,
    config: Config,
    keys: PhantomData<fn() -> K>,
}

impl<K: Eq + Hash> Builder<K> {
    pub(crate) fn new(name: String) -> Self {
        Self { name, config: Config::default(), keys: PhantomData }
    }

    /// How long failing keys wait: by default 5 ms × 2ⁿ, at most 1000 s, with jitter.
    pub fn rate_limiter(mut self, rate_limiter: RateLimiter) -> Self {
        self.config.rate_limiter = rate_limiter;
        self
    }

    /// What the jitter is drawn from, 0 by default. The same seed gives the same delays.
    pub fn seed(mut self, seed: u64) -> Self {
        self.config.seed = seed;
        self
    }

    /// One in `turns` turns goes to a lower priority when a higher one has work too: 16 by default, from 2 to 1024.
    /// So a low priority is slow under load, and never starves.
    pub fn ageing(mut self, turns: u32) -> Self {
        self.config.ageing = turns;
        self
    }

    /// The queue, empty.
    pub fn build(self) -> WorkQueue<K> {
        WorkQueue::with_config(self.name, &self.config)
    }
}
