//! A clock that a test moves.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;
use windlass_runtime::env::Env;

/// A wall clock that follows tokio's clock. Tests can pause tokio's clock, and [`jump`](Self::jump) moves the
/// wall clock forward or back. Cheap to clone.
///
/// ```
/// use jiff::{SignedDuration, Timestamp};
/// use windlass_test::TestClock;
///
/// let clock = TestClock::starting_at(Timestamp::UNIX_EPOCH);
/// clock.jump(SignedDuration::from_secs(3600));
/// assert!(clock.now() >= Timestamp::from_second(3600).expect("in range"));
/// ```
#[derive(Clone, Debug)]
pub struct TestClock(Arc<State>);

#[derive(Debug)]
struct State {
    base: Timestamp,
    started: Instant,
    /// The sum of all jumps, in milliseconds.
    offset: AtomicI64,
}

impl TestClock {
    /// Creates a clock that shows `base` now.
    pub fn starting_at(base: Timestamp) -> Self {
        Self(Arc::new(State { base, started: Instant::now(), offset: AtomicI64::new(0) }))
    }

    /// Returns the time that the clock shows.
    pub fn now(&self) -> Timestamp {
        let elapsed = SignedDuration::try_from(self.0.started.elapsed()).unwrap_or(SignedDuration::MAX);
        let offset = SignedDuration::from_millis(self.0.offset.load(Ordering::Relaxed));
        self.0.base.saturating_add(elapsed.saturating_add(offset)).unwrap_or(self.0.base)
    }

    /// Sets the clock forward, or back if `by` is negative. Tokio's clock does not change.
    pub fn jump(&self, by: SignedDuration) {
        let by = i64::try_from(by.as_millis()).unwrap_or_default();
        self.0.offset.fetch_add(by, Ordering::Relaxed);
    }

    /// Returns the environment of a manager that reads this clock, with random numbers of a seed.
    pub fn env(&self, seed: u64) -> Env {
        let clock = self.clone();
        Env::new(seed, move || clock.now())
    }
}

impl windlass_apiserver::Clock for TestClock {
    fn now(&self) -> Timestamp {
        Self::now(self)
    }
}
