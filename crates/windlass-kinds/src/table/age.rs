//! Durations and ages in the format of kubectl.

use jiff::Timestamp;
use serde_json::Value;

/// Formats a number of seconds in at most two units: `45s`, `3m20s`, `25h`, `2y30d`.
///
/// ```
/// use windlass_kinds::table::human_duration;
///
/// assert_eq!(human_duration(185), "3m5s");
/// ```
pub fn human_duration(seconds: i64) -> String {
    if seconds < -1 {
        return "<invalid>".to_owned();
    }
    let seconds = seconds.max(0);
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    let two = |large: i64, large_unit: &str, small: i64, small_unit: &str| {
        if small == 0 {
            format!("{large}{large_unit}")
        } else {
            format!("{large}{large_unit}{small}{small_unit}")
        }
    };
    if seconds < 120 {
        format!("{seconds}s")
    } else if minutes < 10 {
        two(minutes, "m", seconds % 60, "s")
    } else if minutes < 180 {
        format!("{minutes}m")
    } else if hours < 8 {
        two(hours, "h", minutes % 60, "m")
    } else if hours < 48 {
        format!("{hours}h")
    } else if hours < 192 {
        two(days, "d", hours % 24, "h")
    } else if days < 730 {
        format!("{days}d")
    } else if days < 2920 {
        two(days / 365, "y", days % 365, "d")
    } else {
        format!("{}y", days / 365)
    }
}

/// Formats the age of a time in an object; `<unknown>` for a missing time.
pub(crate) fn since(time: Option<&Value>, now: Timestamp) -> String {
    match time.and_then(Value::as_str).filter(|text| !text.is_empty()) {
        None => "<unknown>".to_owned(),
        Some(text) => match text.parse::<Timestamp>() {
            Ok(time) => human_duration(seconds_between(time, now)),
            Err(_) => "<invalid>".to_owned(),
        },
    }
}

/// Returns the whole seconds between two times.
pub(crate) fn seconds_between(from: Timestamp, to: Timestamp) -> i64 {
    to.duration_since(from).as_secs()
}
