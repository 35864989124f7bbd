//! The configuration of a reflector.

use std::time::Duration;

/// The configuration of a reflector. Defaults follow client-go where client-go has an equivalent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReflectorConfig {
    /// The resource, for messages: `pods`, `databases.db.example.com`.
    pub resource: String,
    /// True to begin with a watch that sends the objects (`sendInitialEvents`). On a server without support,
    /// the reflector falls back to a list. Default: true.
    pub watch_list: bool,
    /// How long lists are used after a server that was silent at the beginning of such a watch. A server that refuses such
    /// watches is not asked again. Default: 10 minutes.
    pub watch_list_retry: Duration,
    /// The page size of lists; zero disables paging. Default: 500.
    pub page_size: u32,
    /// The server is asked to end each watch after this time plus up to a tenth. Default: 5 minutes.
    pub watch_timeout: Duration,
    /// A request without a response is cancelled after this time. Default: 1 minute.
    pub response_timeout: Duration,
    /// A list whose body is silent for this long is cancelled. If the beginning of a watch is silent for this long, the
    /// reflector falls back to a list. Default: 10 s.
    pub quiet_timeout: Duration,
    /// A watch that has sent bookmarks and then is silent for this long is cancelled. A watch without
    /// bookmarks is cancelled after the [`Self::watch_timeout`]. Default: 150 s.
    pub idle_timeout: Duration,
    /// Delays between failed attempts.
    pub backoff: BackoffConfig,
    /// The seed of the jitter: equal seeds give equal delays.
    pub seed: u64,
}

impl ReflectorConfig {
    /// Returns the default configuration for a resource.
    pub fn new(resource: impl Into<String>) -> Self {
        Self {
            resource: resource.into(),
            watch_list: true,
            watch_list_retry: Duration::from_mins(10),
            page_size: 500,
            watch_timeout: Duration::from_mins(5),
            response_timeout: Duration::from_mins(1),
            quiet_timeout: Duration::from_secs(10),
            idle_timeout: Duration::from_secs(150),
            backoff: BackoffConfig::default(),
            seed: 0,
        }
    }
}

/// The upper limit of each duration: the sum of a duration and an `Instant` cannot overflow.
const MAX_TIME: Duration = Duration::from_hours(24 * 365);

impl ReflectorConfig {
    /// Limits each duration to a year.
    pub(super) fn bounded(mut self) -> Self {
        let times = [
            &mut self.watch_list_retry,
            &mut self.watch_timeout,
            &mut self.response_timeout,
            &mut self.quiet_timeout,
            &mut self.idle_timeout,
            &mut self.backoff.initial,
            &mut self.backoff.max,
            &mut self.backoff.max_unknown_kind,
        ];
        for time in times {
            *time = (*time).min(MAX_TIME);
        }
        self
    }
}

/// An exponential back-off. Each delay is lengthened by a random part of the delay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackoffConfig {
    /// The first delay. Default: 800 ms.
    pub initial: Duration,
    /// The maximum delay. Default: 30 s.
    pub max: Duration,
    /// The maximum delay while the server does not have the kind: the CRD may be installed at any moment.
    /// Default: 2 s.
    pub max_unknown_kind: Duration,
}

impl Default for BackoffConfig {
    fn default() -> Self {
        Self {
            initial: Duration::from_millis(800),
            max: Duration::from_secs(30),
            max_unknown_kind: Duration::from_secs(2),
        }
    }
}
