//! How long a request may take.

use std::time::Duration;

use tokio::time::Instant;
use windlass_kinds::Subresource;
use windlass_schema::go_quote;

use crate::route::{Query, Route};
use crate::verb::Verb;
use crate::wire::ApiError;

/// The time limit of a request; the default of the real server's `--request-timeout`.
pub(crate) const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);

/// The deadline of a request. `None` for watches and other requests without a limit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadline(Option<Instant>);

impl Deadline {
    /// Returns the deadline of a request that has just been received: `timeout`, or the query parameter of that name if
    /// that is shorter.
    ///
    /// # Errors
    /// 400 if the parameter is not a duration.
    pub(crate) fn new(timeout: Duration, route: Option<&Route>, query: &Query) -> Result<Self, ApiError> {
        if route.is_some_and(is_long_running) {
            return Ok(Self(None));
        }
        let timeout = match query.text("timeout") {
            "" => timeout,
            text => match go_duration(text) {
                Ok(wanted) if wanted.is_zero() => timeout,
                Ok(wanted) => wanted.min(timeout),
                Err(why) => {
                    let message = format!("invalid timeout specified in the request URL - {why}");
                    return Err(ApiError::bad_request(message));
                }
            },
        };
        Ok(Self(Some(Instant::now() + timeout)))
    }

    /// Returns until when a request may wait for its turn: for a quarter of the time that the request may take, at most a minute.
    /// A request without a limit counts as a request with the limit `timeout`.
    pub(crate) fn of_wait(self, timeout: Duration) -> Instant {
        const LONGEST: Duration = Duration::from_secs(60);
        let now = Instant::now();
        let left = self.0.map_or(timeout, |end| end.saturating_duration_since(now));
        now + (left / 4).min(LONGEST)
    }

    /// Waits for `work`.
    ///
    /// # Errors
    /// 504 if the deadline passes first. `work` is dropped then.
    pub(crate) async fn within<T>(
        self,
        work: impl Future<Output = Result<T, ApiError>>,
    ) -> Result<T, ApiError> {
        let Some(end) = self.0 else { return work.await };
        tokio::time::timeout_at(end, work).await.unwrap_or_else(|_| {
            Err(ApiError::timeout("request did not complete within the allotted timeout", 0))
        })
    }
}

/// Returns whether requests of a route take as long as the client wants.
pub(crate) fn is_long_running(route: &Route) -> bool {
    route.verb == Verb::Watch || route.subresource == Subresource::Log || route.subresource.is_connection()
}

/// Parses a duration in Go's form (`1m30s`, `1.5h`, `100ms`). Negative durations count as zero.
fn go_duration(text: &str) -> Result<Duration, String> {
    let invalid = || format!("time: invalid duration {}", go_quote(text));
    let mut rest = text.strip_prefix(['-', '+']).unwrap_or(text);
    if rest == "0" {
        return Ok(Duration::ZERO);
    }
    if rest.is_empty() {
        return Err(invalid());
    }
    let mut seconds = 0.0;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| c != '.' && !c.is_ascii_digit()).unwrap_or(rest.len());
        let (number, behind) = rest.split_at(digits);
        let number: f64 = number.parse().map_err(|_| invalid())?;
        let letters = behind.find(|c: char| c == '.' || c.is_ascii_digit()).unwrap_or(behind.len());
        let (unit, behind) = behind.split_at(letters);
        let unit = match unit {
            "" => return Err(format!("time: missing unit in duration {}", go_quote(text))),
            "ns" => 1e-9,
            "us" | "µs" | "μs" => 1e-6,
            "ms" => 1e-3,
            "s" => 1.0,
            "m" => 60.0,
            "h" => 3_600.0,
            _ => {
                let (unit, text) = (go_quote(unit), go_quote(text));
                return Err(format!("time: unknown unit {unit} in duration {text}"));
            }
        };
        seconds += number * unit;
        rest = behind;
    }
    if text.starts_with('-') {
        return Ok(Duration::ZERO);
    }
    Duration::try_from_secs_f64(seconds).map_err(|_| invalid())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_go_reads_them() {
        for (text, millis) in
            [("0", 0), ("32s", 32_000), ("1m30s", 90_000), ("1.5h", 5_400_000), (".5s", 500), ("-3s", 0)]
        {
            assert_eq!(go_duration(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        for (text, why) in [
            ("abc", r#"time: invalid duration "abc""#),
            ("-", r#"time: invalid duration "-""#),
            ("5", r#"time: missing unit in duration "5""#),
            ("5x", r#"time: unknown unit "x" in duration "5x""#),
            ("1..2s", r#"time: invalid duration "1..2s""#),
            ("999999999999999999999999h", r#"time: invalid duration "999999999999999999999999h""#),
        ] {
            assert_eq!(go_duration(text), Err(why.to_owned()));
        }
    }
}
