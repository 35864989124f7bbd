//! When a request is sent again: on the server's word only, and never when it may have been carried out.

use std::time::Duration;

use http::{HeaderMap, Method, StatusCode, header};

/// How often, and for how long in all, a request is sent again.
#[derive(Clone, Copy, Debug)]
pub struct RetryPolicy {
    /// How many times a request is sent again at most. 0 turns retries off.
    pub retries: u32,
    /// The longest wait before one of them; a server that asks for more gets its answer handed on instead.
    pub longest_wait: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self { retries: 4, longest_wait: Duration::from_secs(10) }
    }
}

/// What matters of a request: whether carrying it out twice differs from once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Repeatable {
    /// Reading, replacing, deleting, merging: twice is once.
    Yes,
    /// Creating, JSON patch: only if the server has not looked at it.
    OnlyIfRefused,
    /// Evictions, whose 429 means "not now", and streams: the caller decides.
    Never,
}

impl Repeatable {
    pub(crate) fn of(method: &Method, headers: &HeaderMap, subresource: Option<&str>) -> Self {
        let content_type = headers.get(header::CONTENT_TYPE).map_or(&b""[..], header::HeaderValue::as_bytes);
        match *method {
            Method::POST if subresource == Some("eviction") => Self::Never,
            Method::POST => Self::OnlyIfRefused,
            Method::PATCH if content_type.starts_with(b"application/json-patch+json") => Self::OnlyIfRefused,
            _ => Self::Yes,
        }
    }
}

impl RetryPolicy {
    /// How long to wait before sending it again, or `None` to hand the answer on.
    ///
    /// `retry` counts from 0; `fraction` is a random number below 1, which spreads clients that were refused together.
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
            // Refused by priority and fairness, or by a limit, before anything was done.
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

/// `Retry-After` in seconds; the API server never sends the form with a date.
pub(crate) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds: u64 = headers.get(header::RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds))
}
