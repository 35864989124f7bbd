//! Wall clock and randomness are passed in, so that two runs with the same seed produce the same trace.

use std::{fmt, sync::Arc};

use jiff::Timestamp;
use parking_lot::Mutex;

/// The source of wall-clock time and randomness for the runtime.
///
/// Durations are measured with tokio's clock, which tests can pause; the wall clock is only written into objects. Clones
/// share one sequence of random numbers.
#[derive(Clone)]
pub struct Env {
    clock: Arc<dyn Fn() -> Timestamp + Send + Sync>,
    random: Arc<Mutex<fastrand::Rng>>,
}

impl Env {
    /// Uses the system clock and a seed from the operating system.
    pub fn system() -> Self {
        Self { clock: Arc::new(Timestamp::now), random: Arc::new(Mutex::new(fastrand::Rng::new())) }
    }

    /// Uses `clock` and a fixed seed.
    pub fn new(seed: u64, clock: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        Self { clock: Arc::new(clock), random: Arc::new(Mutex::new(fastrand::Rng::with_seed(seed))) }
    }

    /// Returns the current wall-clock time.
    pub fn now(&self) -> Timestamp {
        (self.clock)()
    }

    /// Returns the next random number.
    pub fn random(&self) -> u64 {
        self.random.lock().u64(..)
    }

    /// Returns a random number in `0.0..1.0`.
    pub fn fraction(&self) -> f64 {
        self.random.lock().f64()
    }

    /// Returns a random version 4 UUID, for identities and reconcile IDs.
    pub fn uuid(&self) -> String {
        let bits = self.random.lock().u128(..);
        let (high, low) = ((bits >> 64) as u64, bits as u64);
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

/// Returns the name of this host: in a pod, the pod's name.
pub(crate) fn host_name() -> String {
    let name = std::env::var("HOSTNAME").ok().or_else(|| std::fs::read_to_string("/etc/hostname").ok());
    name.map(|name| name.trim().to_owned())
        .filter(|name| !name.is_empty())
        .unwrap_or_else(|| "localhost".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_sequence() {
        let draw = |seed| {
            let env = Env::new(seed, || Timestamp::UNIX_EPOCH);
            (env.random(), env.fraction().to_bits(), env.uuid())
        };
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
        let uuid = draw(1).2;
        assert_eq!((uuid.len(), &uuid[14..15]), (36, "4"), "{uuid}");
        assert!(matches!(&uuid[19..20], "8" | "9" | "a" | "b"), "{uuid}");
    }
}
