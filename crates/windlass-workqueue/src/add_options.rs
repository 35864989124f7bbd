//! How a key is added.

use std::time::Duration;

/// Priority, delay and rate limiting of an add.
///
/// ```
/// use std::time::Duration;
/// use windlass_workqueue::{AddOptions, LOW_PRIORITY};
///
/// let resync = AddOptions::new().priority(LOW_PRIORITY);
/// let retry = AddOptions::new().rate_limited();
/// let poll = AddOptions::new().after(Duration::from_secs(30));
/// # let _ = (resync, retry, poll);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AddOptions {
    pub(crate) priority: i32,
    pub(crate) after: Option<Duration>,
    pub(crate) rate_limited: bool,
    pub(crate) at_least: Duration,
}

impl AddOptions {
    /// Creates options with priority 0, without a delay or a rate limit.
    pub const fn new() -> Self {
        Self { priority: 0, after: None, rate_limited: false, at_least: Duration::ZERO }
    }

    /// Sets the priority. The default is 0; higher priorities are handed out first. When a key is added with
    /// two priorities, the higher priority wins. Use [`LOW_PRIORITY`](crate::LOW_PRIORITY) for initial lists
    /// and resyncs.
    #[must_use]
    pub const fn priority(mut self, priority: i32) -> Self {
        self.priority = priority;
        self
    }

    /// Delays the key by `delay`. When a key is added with two delays, the shorter delay wins.
    #[must_use]
    pub const fn after(mut self, delay: Duration) -> Self {
        self.after = Some(delay);
        self
    }

    /// Counts the add as a failure of the key and delays the key as the queue's
    /// [`RateLimiter`](crate::RateLimiter) says, or by [`after`](Self::after) if that is shorter.
    #[must_use]
    pub const fn rate_limited(mut self) -> Self {
        self.rate_limited = true;
        self
    }

    /// Lengthens the delay of a [rate-limited](Self::rate_limited) add to `delay`, and a random part more, up to the jitter of the
    /// [`RateLimiter`](crate::RateLimiter). A server that refuses many keys at once names such a delay. Another add without a delay, or with
    /// a shorter delay, brings the key forward.
    #[must_use]
    pub const fn at_least(mut self, delay: Duration) -> Self {
        self.at_least = delay;
        self
    }
}
