//! The time between two runs of `@every`.

use std::time::Duration;

use windlass_schema::go_quote;

const NANOS_PER_SECOND: u64 = 1_000_000_000;
/// The largest magnitude of a duration of Go, in nanoseconds. Only a negative duration is as long.
const LIMIT: u64 = 1 << 63;

/// Parses the duration of `@every`, such as `1h30m`, into whole seconds. A duration below a second, such as `0` or `-5m`, is
/// one second.
///
/// # Errors
/// Why the text is not a duration of Go, in the words of Go.
pub fn interval(text: &str) -> Result<Duration, String> {
    let invalid = || format!("time: invalid duration {}", go_quote(text));
    let is_negative = text.starts_with('-');
    let mut rest = text.strip_prefix(['+', '-']).unwrap_or(text);
    if rest.is_empty() {
        return Err(invalid());
    }
    if rest == "0" {
        return Ok(Duration::from_secs(1));
    }
    let mut total = 0;
    while !rest.is_empty() {
        let (whole, after) = digits(rest);
        let (fraction, after) = after.strip_prefix('.').map_or(("", after), digits);
        let number = if whole.is_empty() { Some(0) } else { whole.parse().ok() };
        let number: u64 = number.filter(|_| !whole.is_empty() || !fraction.is_empty()).ok_or_else(invalid)?;
        let end = after.find(|letter: char| letter == '.' || letter.is_ascii_digit()).unwrap_or(after.len());
        let (unit, next) = after.split_at(end);
        let unit = nanos(unit).ok_or_else(|| match (number, unit) {
            (number, _) if number > LIMIT => invalid(),
            (_, "") => format!("time: missing unit in duration {}", go_quote(text)),
            _ => format!("time: unknown unit {} in duration {}", go_quote(unit), go_quote(text)),
        })?;
        let part = number.checked_mul(unit).and_then(|part| part.checked_add(part_of(unit, fraction)));
        let sum = part.and_then(|part| part.checked_add(total));
        total = sum.filter(|sum| *sum <= LIMIT).ok_or_else(invalid)?;
        rest = next;
    }
    if is_negative {
        return Ok(Duration::from_secs(1));
    }
    if total == LIMIT {
        return Err(invalid());
    }
    Ok(Duration::from_secs((total / NANOS_PER_SECOND).max(1)))
}

/// Splits a text after its leading digits.
fn digits(text: &str) -> (&str, &str) {
    text.split_at(text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len()))
}

/// Returns the nanoseconds of a unit.
fn nanos(unit: &str) -> Option<u64> {
    Some(match unit {
        "ns" => 1,
        // The micro sign, and the Greek letter.
        "us" | "\u{b5}s" | "\u{3bc}s" => 1_000,
        "ms" => 1_000_000,
        "s" => NANOS_PER_SECOND,
        "m" => 60 * NANOS_PER_SECOND,
        "h" => 3600 * NANOS_PER_SECOND,
        _ => return None,
    })
}

/// Returns the nanoseconds of the digits after the point, rounded down.
fn part_of(unit: u64, fraction: &str) -> u64 {
    // The digits that follow are less than a nanosecond.
    let digits = &fraction[..fraction.len().min(18)];
    let places = u32::try_from(digits.len()).unwrap_or_default();
    let part = digits.parse::<u128>().unwrap_or_default() * u128::from(unit) / 10_u128.pow(places);
    u64::try_from(part).unwrap_or(LIMIT)
}

#[cfg(test)]
mod tests {
    use super::interval;

    #[test]
    fn durations_are_whole_seconds_and_at_least_one() {
        for (text, seconds) in [
            ("1h30m", 5400),
            ("1.5h", 5400),
            (".5m", 30),
            ("1.s", 1),
            ("2.9s", 2),
            ("0.9999999h", 3599),
            ("90000ms", 90),
            ("5000000us", 5),
            ("5000000\u{b5}s", 5),
            ("5000000\u{3bc}s", 5),
            ("1ns", 1),
            ("0", 1),
            ("+0", 1),
            ("-0", 1),
            ("0s", 1),
            ("+1h", 3600),
            ("-5m", 1),
            ("2562047h47m16.854775807s", 9_223_372_036),
            ("-2562047h47m16.854775808s", 1),
        ] {
            assert_eq!(interval(text).map(|wait| wait.as_secs()), Ok(seconds), "{text}");
        }
    }

    #[test]
    fn what_is_no_duration_is_refused_in_the_words_of_go() {
        let invalid = ["", "-", "x", "+-1s", ".s", "2562047h47m16.854775808s", "9999999h"];
        for text in invalid.into_iter().chain(["99999999999999999999"]) {
            assert!(interval(text).unwrap_err().starts_with("time: invalid duration \""), "{text}");
        }
        for (text, why) in [
            ("5", r#"time: missing unit in duration "5""#),
            ("00", r#"time: missing unit in duration "00""#),
            ("1s0", r#"time: missing unit in duration "1s0""#),
            ("1..2s", r#"time: missing unit in duration "1..2s""#),
            ("1m-5s", r#"time: unknown unit "m-" in duration "1m-5s""#),
            ("5y", r#"time: unknown unit "y" in duration "5y""#),
        ] {
            assert_eq!(interval(text), Err(why.to_owned()), "{text}");
        }
    }
}
