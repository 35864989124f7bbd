//! When a request is sent again: only if the server asks for a retry, and never if the request may have been
//! carried out.

use std::time::Duration;

use http::{HeaderMap, Method, StatusCode, header};

use crate::error::MAX_RETRY_AFTER;

/// The number of retries of a request, and the waits.
#[derive(Clone, Copy, Debug)]
pub struct RetryPolicy {
    /// The number of times that a request is sent again at most. 0 turns retries off. Default: 4.
    pub retries: u32,
    /// The longest wait before a retry. If the server asks for a longer wait, the caller gets the response.
    /// Default: 10 s.
    pub longest_wait: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self { retries: 4, longest_wait: Duration::from_secs(10) }
    }
}

/// The effect of carrying a request out twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Repeatable {
    /// The same as once: reads, replacements, deletions, merge patches.
    Yes,
    /// A second effect: creations, JSON patches. Repeatable only if the server refused the request.
    OnlyIfRefused,
    /// The caller decides: evictions, because a 429 means "not now", and streams.
    Never,
}

impl Repeatable {
    pub(crate) fn of(method: &Method, content_type: &[u8], subresource: Option<&str>) -> Self {
        match *method {
            Method::POST if subresource == Some("eviction") => Self::Never,
            Method::POST => Self::OnlyIfRefused,
            Method::PATCH if content_type.starts_with(b"application/json-patch+json") => Self::OnlyIfRefused,
            _ => Self::Yes,
        }
    }
}

impl RetryPolicy {
    /// Returns the wait before the request is sent again, or `None` to return the response to the caller.
    ///
    /// `retry` counts from 0; `fraction` is a random number in `0.0..1.0`, to spread clients that were
    /// refused at the same time.
    pub(crate) fn wait(
        &self,
        repeatable: Repeatable,
        status: StatusCode,
        asked: Option<Duration>,
        retry: u32,
        fraction: f64,
    ) -> Option<Duration> {
        if retry >= self.retries {
            return None;
        }
        let allowed = match (repeatable, status) {
            (Repeatable::Never, _) => false,
            // Refused by API Priority and Fairness or another limit, before any effect.
            (_, StatusCode::TOO_MANY_REQUESTS) => asked.is_some() || repeatable == Repeatable::Yes,
            (Repeatable::Yes, StatusCode::SERVICE_UNAVAILABLE | StatusCode::GATEWAY_TIMEOUT) => true,
            _ => false,
        };
        if !allowed {
            return None;
        }
        let base = asked.unwrap_or(Duration::from_millis(100) * 2u32.saturating_pow(retry));
        let wait = base + base.mul_f64(fraction * 0.2);
        (base <= self.longest_wait).then_some(wait)
    }
}

/// Returns `Retry-After`, at most [`MAX_RETRY_AFTER`]. The API server never sends the form with a date.
pub(crate) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds: u64 = headers.get(header::RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds).min(MAX_RETRY_AFTER))
}
