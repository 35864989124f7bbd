//! Wall clock and randomness, handed in rather than reached for, so that two runs with one seed are one trace.

use std::{
    fmt,
    hash::{BuildHasher, Hasher},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use jiff::Timestamp;

/// Where the runtime gets the time of day and its randomness from.
///
/// Durations are measured with tokio's clock, which tests pause; the wall clock here is what is written into objects.
/// Cloning is cheap, clones share the sequence of random numbers.
#[derive(Clone)]
pub struct Env {
    clock: Arc<dyn Fn() -> Timestamp + Send + Sync>,
    /// A counter that splitmix64 turns into random numbers: no lock, and one seed gives one sequence.
    random: Arc<AtomicU64>,
}

impl Env {
    /// The system's clock and a seed from the operating system.
    pub fn system() -> Self {
        let seed = std::collections::hash_map::RandomState::new().build_hasher().finish();
        Self { clock: Arc::new(Timestamp::now), random: Arc::new(AtomicU64::new(seed)) }
    }

    /// A clock of one's own and a fixed seed.
    pub fn new(seed: u64, clock: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        Self { clock: Arc::new(clock), random: Arc::new(AtomicU64::new(seed)) }
    }

    /// The time of day.
    pub fn now(&self) -> Timestamp {
        (self.clock)()
    }

    /// The next random number.
    pub fn random(&self) -> u64 {
        let mut x = self
            .random
            .fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::Relaxed)
            .wrapping_add(0x9e37_79b9_7f4a_7c15);
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }

    /// A random number from 0 up to, not including, 1.
    pub fn fraction(&self) -> f64 {
        (self.random() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// A random id in the form of a version 4 UUID, for identities and reconcile ids.
    pub fn uuid(&self) -> String {
        let (high, low) = (self.random(), self.random());
        format!(
            "{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}",
            high >> 32,
            (high >> 16) & 0xffff,
            high & 0xfff,
            (low >> 48) & 0x3fff | 0x8000,
            low & 0xffff_ffff_ffff
        )
    }
}

impl Default for Env {
    fn default() -> Self {
        Self::system()
    }
}

impl fmt::Debug for Env {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Env").finish_non_exhaustive()
    }
}
