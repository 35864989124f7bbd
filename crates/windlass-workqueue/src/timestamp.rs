//! The queue's clock reading.

use std::time::Duration;

/// A point in time, in nanoseconds since the queue was created. The caller of [`Queue`](crate::core::Queue)
/// supplies the timestamp; a simulator may invent timestamps. The range is 584 years.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(u64);

impl Timestamp {
    /// The creation of the queue.
    pub const ZERO: Self = Self(0);

    /// The latest timestamp.
    pub const MAX: Self = Self(u64::MAX);

    /// Returns the timestamp `nanos` nanoseconds after the creation of the queue.
    #[inline]
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Returns the nanoseconds since the creation of the queue.
    #[inline]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Returns the time from `earlier` to `self`, or zero if `earlier` is later.
    #[inline]
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl From<Duration> for Timestamp {
    #[inline]
    fn from(since_creation: Duration) -> Self {
        let seconds = since_creation.as_secs().saturating_mul(1_000_000_000);
        Self(seconds.saturating_add(u64::from(since_creation.subsec_nanos())))
    }
}

impl From<Timestamp> for Duration {
    #[inline]
    fn from(timestamp: Timestamp) -> Self {
        Self::from_nanos(timestamp.0)
    }
}

impl std::ops::Add<Duration> for Timestamp {
    type Output = Self;

    /// Saturates at [`Timestamp::MAX`].
    #[inline]
    fn add(self, delay: Duration) -> Self {
        Self(self.0.saturating_add(Self::from(delay).0))
    }
}
