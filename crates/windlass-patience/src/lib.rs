//! How long a wait in a test may take on this machine.
//!
//! A test says how long a wait takes at most on an idle machine. [`stretched`] multiplies this limit by two factors:
//!
//! - the number in the environment variable `WINDLASS_TEST_PATIENCE`, for machines that are slow;
//! - the load of the machine: the number of tasks that run or want to run (on Linux, the load average of the last minute), divided by the
//!   cores that this process may use. The highest load since the start of the process counts, and never less than 1.
//!
//! ```
//! use std::time::Duration;
//!
//! let limit = Duration::from_secs(30);
//! assert!(windlass_patience::stretched(limit) >= limit);
//! ```
#![forbid(unsafe_code)]

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use std::{env, fs, thread};

/// The environment variable that stretches all waits.
pub const PATIENCE: &str = "WINDLASS_TEST_PATIENCE";

/// The file in which Linux reports the load average.
const LOAD_AVERAGE: &str = "/proc/loadavg";

/// The largest factor by which the load stretches a limit: a wait for an event that never comes must end.
const MOST_LOAD: f64 = 16.0;

/// The highest load per core that this process has seen, in hundredths.
static HIGHEST_LOAD: AtomicU32 = AtomicU32::new(100);

/// Returns `limit`, stretched by `WINDLASS_TEST_PATIENCE` and by the load of the machine. Never shorter than `limit`.
///
/// A loop calls this function each time it compares the time that has passed: the load may grow while the loop waits.
///
/// # Panics
/// The value of `WINDLASS_TEST_PATIENCE` is not a number of at least 1.
pub fn stretched(limit: Duration) -> Duration {
    let variable = env::var(PATIENCE).unwrap_or_default();
    let patience = patience(&variable)
        .unwrap_or_else(|| panic!("{PATIENCE} is {variable:?}; set it to a number of at least 1, such as 4"));
    let seen = hundredths(load().unwrap_or(1.0).min(MOST_LOAD));
    let highest = HIGHEST_LOAD.fetch_max(seen, Ordering::Relaxed).max(seen);
    let patient = limit.saturating_mul(hundredths(patience)) / 100;
    (patient.saturating_mul(highest) / 100).max(limit)
}

/// Reads the value of the variable. An empty value is 1.
fn patience(value: &str) -> Option<f64> {
    if value.is_empty() {
        return Some(1.0);
    }
    value.parse().ok().filter(|factor| (1.0..=1000.0).contains(factor))
}

/// Returns the load of the machine, or `None` where the load is not known.
fn load() -> Option<f64> {
    // Miri has no files.
    let text = (!cfg!(miri)).then(|| fs::read_to_string(LOAD_AVERAGE).ok()).flatten()?;
    per_core(&text, thread::available_parallelism().map_or(1, usize::from))
}

/// Returns the load average of the last minute per core.
fn per_core(load_average: &str, cores: usize) -> Option<f64> {
    let minute: f64 = load_average.split_whitespace().next()?.parse().ok()?;
    Some(minute / f64::from(u32::try_from(cores).ok()?.max(1)))
}

/// Converts a factor between 1 and 1000 to hundredths.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped before")]
fn hundredths(factor: f64) -> u32 {
    (factor.clamp(1.0, 1000.0) * 100.0) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variable_is_a_factor_of_at_least_one() {
        assert_eq!(patience(""), Some(1.0));
        assert_eq!(patience("4"), Some(4.0));
        assert_eq!(patience("2.5"), Some(2.5));
        for wrong in ["0", "-1", "x", "inf", "NaN"] {
            assert_eq!(patience(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_load_of_eight_on_two_cores_is_four_per_core() {
        assert_eq!(per_core("8.00 3.10 1.00 9/512 4711\n", 2), Some(4.0));
        assert_eq!(per_core("no number", 2), None);
    }

    #[test]
    fn an_idle_machine_does_not_shorten_a_limit() {
        assert_eq!(hundredths(0.25), 100);
        assert_eq!(hundredths(4.0), 400);
        assert!(stretched(Duration::from_secs(30)) >= Duration::from_secs(30));
    }
}
