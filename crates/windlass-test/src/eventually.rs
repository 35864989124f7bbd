//! Retrying until a deadline.

use std::fmt::Display;
use std::panic::Location;
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout_at};

const FIRST_PAUSE: Duration = Duration::from_millis(2);
const LONGEST_PAUSE: Duration = Duration::from_millis(100);

/// Calls `attempt` until it succeeds, and returns its value.
///
/// The first attempt starts at once; the pauses between attempts grow from 2 to 100 ms. An attempt that is still running
/// at the deadline is cancelled. For one typed object, [`TestCluster::wait_for`](crate::TestCluster::wait_for) is shorter.
///
/// # Panics
/// When the deadline passes. The message has the line of the caller and the error of the last attempt, so an attempt's
/// error should say what is missing.
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
pub fn eventually<T, E, F, Fut>(deadline: Duration, attempt: F) -> impl Future<Output = T>
where
    E: Display,
    F: FnMut() -> Fut,
    Fut: Future<Output = Result<T, E>>,
{
    keep_trying(deadline, attempt, Location::caller())
}

pub(crate) async fn keep_trying<T, E, F, Fut>(deadline: Duration, mut attempt: F, caller: &Location<'_>) -> T
where
    E: Display,
    F: FnMut() -> Fut,
    Fut: Future<Output = Result<T, E>>,
{
    let end = Instant::now() + deadline;
    let mut pause = FIRST_PAUSE;
    let mut last = "no attempt finished".to_owned();
    loop {
        match timeout_at(end, attempt()).await {
            Ok(Ok(value)) => return value,
            Ok(Err(error)) => last = error.to_string(),
            Err(_) => {}
        }
        assert!(Instant::now() + pause < end, "{caller}: not within {deadline:?}; last: {last}");
        sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    #[should_panic(expected = "not within 1s; last: still 2")]
    async fn the_panic_has_the_last_error() {
        let _: () = eventually(Duration::from_secs(1), || async { Err("still 2") }).await;
    }

    #[tokio::test(start_paused = true)]
    #[should_panic(expected = "no attempt finished")]
    async fn an_attempt_that_hangs_is_cancelled() {
        let _: () = eventually(Duration::from_secs(1), std::future::pending::<Result<(), String>>).await;
    }
}
