//! How a reflector lists and watches.

use std::time::Duration;

/// How a reflector lists and watches. The defaults are those of client-go where it has any.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReflectorConfig {
    /// What is watched, for messages: `pods`, `databases.db.example.com`.
    pub resource: String,
    /// Asks for the objects as the beginning of the watch, before falling back to a list.
    pub watch_list: bool,
    /// How long a server that was silent after the initial events of a watch is asked for lists instead. A server that
    /// refuses such watches is not asked again.
    pub watch_list_retry: Duration,
    /// Objects in one page of a list; zero asks for all at once.
    pub page_size: u32,
    /// The server is asked to end a watch after this time, or up to a tenth later.
    pub watch_timeout: Duration,
    /// A request that has not been answered after this time is given up.
    pub response_timeout: Duration,
    /// A list whose body stands still this long is given up; the beginning of a watch that does so is taken for a
    /// server that cannot list by watch.
    pub quiet_timeout: Duration,
    /// A watch that has shown bookmarks and then stands still this long is cut. One without bookmarks is cut
    /// when it outlives the time it was asked to end after.
    pub idle_timeout: Duration,
    /// Delays between attempts.
    pub backoff: BackoffConfig,
    /// Decides the jitter: the same seed gives the same delays.
    pub seed: u64,
}

impl ReflectorConfig {
    /// The defaults, for a resource.
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

/// No time of a configuration is longer than this, so that adding some of them to an `Instant` cannot overflow.
const MAX_TIME: Duration = Duration::from_hours(24 * 365);

impl ReflectorConfig {
    /// The same configuration with every time limited to a year.
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

/// How delays grow from failure to failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackoffConfig {
    /// The first delay.
    pub initial: Duration,
    /// No delay grows beyond this.
    pub max: Duration,
    /// While the server does not know the kind, no delay grows beyond this: its CRD may be on its way.
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
