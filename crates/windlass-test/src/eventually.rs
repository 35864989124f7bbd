//! Waiting for something to become true, with a deadline instead of luck.

use std::fmt::Display;
use std::panic::Location;
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout_at};

const FIRST_PAUSE: Duration = Duration::from_millis(2);
const LONGEST_PAUSE: Duration = Duration::from_millis(100);

/// Tries until it succeeds, and gives what it gave.
///
/// The first try is at once; the pauses between tries grow from 2 to 100 ms.
///
/// # Panics
/// When the deadline passes: with the line that called, and the last error, which is why each try says what is missing.
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
    let caller = Location::caller();
    keep_trying(deadline, attempt, caller)
}

async fn keep_trying<T, E, F, Fut>(deadline: Duration, mut attempt: F, caller: &Location<'_>) -> T
where
    E: Display,
    F: FnMut() -> Fut,
    Fut: Future<Output = Result<T, E>>,
{
    let end = Instant::now() + deadline;
    let mut pause = FIRST_PAUSE;
    let mut last = "no attempt came to an end".to_owned();
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
    async fn the_deadline_tells_the_last_error() {
        let _: () = eventually(Duration::from_secs(1), || async { Err("still 2") }).await;
    }

    #[tokio::test(start_paused = true)]
    #[should_panic(expected = "no attempt came to an end")]
    async fn an_attempt_that_hangs_is_cut() {
        let _: () = eventually(Duration::from_secs(1), std::future::pending::<Result<(), String>>).await;
    }
}
