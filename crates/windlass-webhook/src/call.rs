//! The common parts of all webhooks: the time limit of a call, and panics.

use std::{any::Any, time::Duration};

use bytes::Bytes;
use tokio::time::Instant;

/// The longest time that the API server waits for a webhook.
const LONGEST: Duration = Duration::from_secs(30);

/// The time that remains for the reply to travel.
const MARGIN: Duration = Duration::from_millis(500);

/// The time by which a call must have ended: the body has arrived, and the handler has returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Deadline {
    limit: Duration,
    at: Instant,
}

impl Deadline {
    /// Parses the parameter `timeout`, the time that the API server waits. The default, also for a value
    /// outside of 1 ms to 30 s, is 30 s. A tenth of the time, at most 500 ms, is left for the reply. The
    /// time begins now.
    pub(crate) fn from_query(query: Option<&str>) -> Self {
        let pairs = form_urlencoded::parse(query.unwrap_or_default().as_bytes());
        let timeout = pairs.into_iter().find(|(key, _)| key == "timeout").and_then(|(_, text)| {
            let timeout: Duration = text.parse::<jiff::SignedDuration>().ok()?.try_into().ok()?;
            (timeout >= Duration::from_millis(1)).then_some(timeout.min(LONGEST))
        });
        let timeout = timeout.unwrap_or(LONGEST);
        let limit = timeout.saturating_sub(MARGIN.min(timeout / 10));
        Self { limit, at: Instant::now() + limit }
    }

    /// Returns the time between the start and the deadline.
    pub(crate) fn limit(self) -> Duration {
        self.limit
    }

    /// Returns the output of a future, or `None` if it does not complete in time.
    pub(crate) async fn run<F: Future>(self, future: F) -> Option<F::Output> {
        tokio::time::timeout_at(self.at, future).await.ok()
    }
}

/// The size from which JSON is decoded on a separate thread, because the decoding would block other requests.
const LARGE: usize = 256 << 10;

/// Runs a function on `body`. With a large body, the function may take long.
pub(crate) async fn on_body<T: Send + 'static>(
    body: Bytes,
    function: impl FnOnce(&[u8]) -> Result<T, String> + Send + 'static,
) -> Result<T, String> {
    if body.len() < LARGE {
        return function(&body);
    }
    let result = tokio::task::spawn_blocking(move || function(&body)).await;
    result.unwrap_or_else(|_| Err("the request was not decoded".to_owned()))
}

/// Returns the message of a panic.
pub(crate) fn panic_message(payload: &(dyn Any + Send)) -> &str {
    payload
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| payload.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("a panic without a message")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_api_server_says_how_long_it_waits() {
        let millis = |query: &str| Deadline::from_query(Some(query)).limit().as_millis();
        assert_eq!(millis("timeout=10s"), 9500);
        assert_eq!(millis("a=b&timeout=1s"), 900);
        assert_eq!(millis("timeout=1m0s"), 29_500);
        assert_eq!(millis("timeout=-1s"), 29_500);
        assert_eq!(millis("timeout=0s"), 29_500);
        assert_eq!(millis("timeout=soon"), 29_500);
        assert_eq!(Deadline::from_query(None).limit().as_millis(), 29_500);
    }

    #[tokio::test(start_paused = true)]
    async fn the_parts_of_a_call_share_one_deadline() {
        let deadline = Deadline::from_query(Some("timeout=10s"));
        let slow = |seconds| tokio::time::sleep(Duration::from_secs(seconds));
        assert_eq!(deadline.run(slow(6)).await, Some(()), "the body");
        assert_eq!(deadline.run(slow(6)).await, None, "the handler");
    }
}
