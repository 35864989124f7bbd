//! Times as texts.

/// The first second of year 1, counted from 1970: an absent time in Go.
pub(crate) const YEAR_1: i64 = -62_135_596_800;

/// The last second of year 9999, counted from 1970.
pub(crate) const LAST_SECOND: i64 = 253_402_300_799;

/// Returns the text that kube-apiserver stores for a time: in UTC, in seconds or microseconds. Returns `None` for
/// the first second of year 1, which Go takes for an absent time.
///
/// # Errors
///
/// The text is not a time, or the time in UTC is outside of the years 1 to 9999.
pub(crate) fn canonical(text: &str, micros: bool) -> Result<Option<String>, ()> {
    let (seconds, nanos) = seconds_and_nanos(text).ok_or(())?;
    if (seconds, nanos) == (YEAR_1, 0) {
        return Ok(None);
    }
    if !(YEAR_1..=LAST_SECOND).contains(&seconds) {
        return Err(());
    }
    let fraction = i64::try_from(nanos / 1000).map_err(|_| ())?;
    Ok(Some(rfc3339(seconds, micros.then_some(fraction))))
}

/// Formats seconds since 1970 as `2006-01-02T15:04:05Z`, optionally with microseconds.
pub(crate) fn rfc3339(seconds: i64, micros: Option<i64>) -> String {
    let (days, of_day) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let (year, month, day) = date(days);
    let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
    let clock = format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}");
    match micros {
        Some(micros) => format!("{clock}.{micros:06}Z"),
        None => format!("{clock}Z"),
    }
}

/// Returns the Gregorian date of a day number, counted from 1970-01-01. The calculation starts years in
/// March: a leap day is then the last day of a year.
fn date(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day)
}

/// Returns the seconds since 1970 and the nanoseconds of a time such as `2006-01-02T15:04:05.999Z`.
pub(crate) fn seconds_and_nanos(text: &str) -> Option<(i64, u64)> {
    let (day, rest) = text.split_once('T')?;
    let (year, month, day) = three_numbers(day, '-')?;
    let (clock, offset) = rest.split_at(rest.find(['Z', '+', '-'])?);
    let (clock, fraction) = clock.split_once(['.', ',']).unwrap_or((clock, ""));
    let (hour, minute, second) = three_numbers(clock, ':')?;
    let offset = offset_seconds(offset)?;
    let nanos = if fraction.is_empty() { 0 } else { format!("{fraction:0<9.9}").parse().ok()? };
    let seconds = day_number(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second;
    Some((seconds - offset, nanos))
}

/// Returns the seconds of an offset such as `Z` or `+02:30`.
fn offset_seconds(text: &str) -> Option<i64> {
    if text == "Z" {
        return Some(0);
    }
    let (sign, rest) = text.strip_prefix('-').map_or((1, text.strip_prefix('+')), |rest| (-1, Some(rest)));
    let (hours, minutes) = rest?.split_once(':')?;
    let number = |text: &str| text.parse::<u8>().ok().map(i64::from);
    Some(sign * (number(hours)? * 3600 + number(minutes)? * 60))
}

fn three_numbers(text: &str, separator: char) -> Option<(i64, i64, i64)> {
    let mut parts = text.split(separator).map(|part| part.parse::<u32>().ok().map(i64::from));
    let numbers = (parts.next()??, parts.next()??, parts.next()??);
    parts.next().is_none().then_some(numbers)
}

/// Returns the number of a Gregorian date, counted from 1970-01-01. The inverse of [`date`].
fn day_number(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let month_from_march = (month + 9) % 12;
    let day_of_year = (153 * month_from_march + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

#[cfg(test)]
mod tests {
    use super::{canonical, rfc3339, seconds_and_nanos};

    #[test]
    fn times_read_as_go_writes_them() {
        assert_eq!(rfc3339(0, None), "1970-01-01T00:00:00Z");
        assert_eq!(rfc3339(951_782_400, None), "2000-02-29T00:00:00Z");
        assert_eq!(rfc3339(1_795_262_400, Some(7)), "2026-11-21T12:00:00.000007Z");
        assert_eq!(rfc3339(-1, None), "1969-12-31T23:59:59Z");
    }

    #[test]
    fn days_of_all_years_are_read_as_written() {
        for day in (-719_162..2_932_896).step_by(37) {
            let text = rfc3339(day * 86_400 + 3_723, None);
            assert_eq!(seconds_and_nanos(&text), Some((day * 86_400 + 3_723, 0)), "{text}");
        }
        assert_eq!(seconds_and_nanos("2026-11-21T12:00:00.000007Z"), Some((1_795_262_400, 7000)));
        assert_eq!(seconds_and_nanos("2026-11-21T12:00:00,000007Z"), Some((1_795_262_400, 7000)));
        assert_eq!(seconds_and_nanos("2026-11-21T14:30:00.5+02:30"), Some((1_795_262_400, 500_000_000)));
        assert_eq!(seconds_and_nanos("0001-01-01T00:00:00Z"), Some((super::YEAR_1, 0)));
        for text in ["", "T", "2026-11-21", "2026-11-21T12:00Z", "2026-11-21T12:00:00", "a-b-cT1:2:3Z"] {
            assert_eq!(seconds_and_nanos(text), None, "{text}");
        }
    }

    #[test]
    fn a_time_is_stored_in_utc_without_a_fraction_that_the_type_lacks() {
        let seconds = |text| canonical(text, false);
        assert_eq!(seconds("2020-01-01T01:00:00+02:00"), Ok(Some("2019-12-31T23:00:00Z".to_owned())));
        assert_eq!(seconds("2020-01-01T00:00:00.999Z"), Ok(Some("2020-01-01T00:00:00Z".to_owned())));
        assert_eq!(
            canonical("2020-01-01T00:00:00.1234567Z", true),
            Ok(Some("2020-01-01T00:00:00.123456Z".to_owned()))
        );
        assert_eq!(seconds("0001-01-01T00:00:00Z"), Ok(None));
        assert_eq!(seconds("0001-01-01T00:00:00+01:00"), Err(()));
        assert_eq!(seconds("tomorrow"), Err(()));
        assert_eq!(seconds("2020-01-01T00:00:00+9223372036854775807:00"), Err(()));
    }
}
