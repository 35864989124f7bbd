//! The queue's idea of time.

use std::time::Duration;

/// A moment, in nanoseconds since the queue began. Whoever drives a [`Queue`](crate::Queue) brings it; a simulator
/// may make it up. It lasts for 584 years.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tick(u64);

impl Tick {
    /// The moment the queue began.
    pub const ZERO: Self = Self(0);

    /// The moment that many nanoseconds after the beginning.
    #[inline]
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds since the beginning.
    #[inline]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// How long after `earlier` this moment is; zero if it is not.
    #[inline]
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl From<Duration> for Tick {
    #[inline]
    fn from(since_the_beginning: Duration) -> Self {
        let seconds = since_the_beginning.as_secs().saturating_mul(1_000_000_000);
        Self(seconds.saturating_add(u64::from(since_the_beginning.subsec_nanos())))
    }
}

impl From<Tick> for Duration {
    #[inline]
    fn from(tick: Tick) -> Self {
        Self::from_nanos(tick.0)
    }
}

impl std::ops::Add<Duration> for Tick {
    type Output = Self;

    /// Later by `delay`; a delay past the end of time is the end of time.
    #[inline]
    fn add(self, delay: Duration) -> Self {
        Self(self.0.saturating_add(Self::from(delay).0))
    }
}
