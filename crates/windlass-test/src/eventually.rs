//! Retrying until a deadline.

use std::fmt::{self, Display};
use std::panic::Location;
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};
use windlass_patience::stretched;

const FIRST_PAUSE: Duration = Duration::from_millis(2);
const LONGEST_PAUSE: Duration = Duration::from_millis(100);

/// Calls `attempt` until success, and returns the value.
///
/// The first attempt starts at once; the pauses between attempts grow from 2 to 100 ms. `limit` is for an
/// idle machine, and is [stretched](crate::stretched) by `WINDLASS_TEST_PATIENCE` and by the load of the
/// machine. A pause counts with the requested length, even if the machine ends the pause late. An attempt
/// that is still running at the end is cancelled. For one typed object,
/// [`TestCluster::wait_for`](crate::TestCluster::wait_for) is shorter.
///
/// # Panics
/// When the limit passes. The message has the line of the caller and the error of the last attempt. The error
/// of an attempt should name the missing object or field.
///
/// ```
/// # use std::time::Duration;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let mut tries = 0;
/// let answer = windlass_test::eventually(Duration::from_secs(1), || {
///     tries += 1;
///     let tries = tries;
///     async move { if tries < 3 { Err(format!("only {tries} tries")) } else { Ok(42) } }
/// });
/// assert_eq!(answer.await, 42);
/// # }
/// ```
#[track_caller]
pub fn eventually<T, E, F, Fut>(limit: Duration, attempt: F) -> impl Future<Output = T>
where
    E: Display,
    F: FnMut() -> Fut,
    Fut: Future<Output = Result<T, E>>,
{
    keep_trying(limit, attempt, String::new, Location::caller())
}

/// Works like [`eventually`]. The panic's message ends with the result of `reasons`.
pub(crate) async fn keep_trying<T, E, F, Fut>(
    limit: Duration,
    mut attempt: F,
    reasons: impl Fn() -> String,
    caller: &Location<'_>,
) -> T
where
    E: Display,
    F: FnMut() -> Fut,
    Fut: Future<Output = Result<T, E>>,
{
    let mut spent = Duration::ZERO;
    let mut pause = FIRST_PAUSE;
    let mut last = "no attempt finished".to_owned();
    loop {
        let started = Instant::now();
        match timeout(stretched(limit).saturating_sub(spent), attempt()).await {
            Ok(Ok(value)) => return value,
            Ok(Err(error)) => last = error.to_string(),
            Err(_) => {}
        }
        spent += started.elapsed() + pause;
        let allowed = stretched(limit);
        assert!(
            spent < allowed,
            "{caller}: not within {}; last: {last}{}",
            Allowed { limit, allowed },
            reasons()
        );
        sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// A limit in the message of a panic.
struct Allowed {
    limit: Duration,
    /// The stretched limit.
    allowed: Duration,
}

impl Display for Allowed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { limit, allowed } = self;
        if limit == allowed {
            write!(f, "{limit:?}")
        } else {
            write!(f, "{limit:?} (stretched to {allowed:.0?} on this machine)")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    #[should_panic(expected = "; last: still 2")]
    async fn the_panic_has_the_last_error() {
        let _: () = eventually(Duration::from_secs(1), || async { Err("still 2") }).await;
    }

    #[tokio::test(start_paused = true)]
    #[should_panic(expected = "no attempt finished")]
    async fn an_attempt_that_hangs_is_cancelled() {
        let _: () = eventually(Duration::from_secs(1), std::future::pending::<Result<(), String>>).await;
    }

    #[test]
    fn a_stretched_limit_says_so() {
        let seconds = Duration::from_secs;
        assert_eq!(Allowed { limit: seconds(30), allowed: seconds(30) }.to_string(), "30s");
        let stretched = Allowed { limit: seconds(30), allowed: seconds(120) }.to_string();
        assert_eq!(stretched, "30s (stretched to 120s on this machine)");
    }

    #[tokio::test]
    async fn a_pause_that_ends_late_does_not_count() {
        let limit = Duration::from_millis(50);
        let mut attempts = 0;
        let last = eventually(limit, || {
            attempts += 1;
            let attempt = attempts;
            // While this task pauses, another task keeps the thread for longer than the limit.
            tokio::spawn(async move { std::thread::sleep(stretched(limit)) });
            async move { if attempt == 4 { Ok(attempt) } else { Err("not yet") } }
        });
        assert_eq!(last.await, 4);
    }
}
