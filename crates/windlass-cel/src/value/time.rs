//! Points in time and lengths of time, in Go's notation.

use std::cmp::Ordering;
use std::fmt;

use crate::error::Error;

/// The first second of the year 1, since the start of 1970.
const MIN_SECONDS: i64 = -62_135_596_800;

/// The last second of the year 9999, since the start of 1970.
const MAX_SECONDS: i64 = 253_402_300_799;

const BILLION: i128 = 1_000_000_000;

/// A point in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timestamp {
    seconds: i64,
    nanos: u32,
    /// The offset from UTC with which the point was written, in seconds.
    offset: i32,
}

/// The fields of a point in time on a calendar and a clock.
pub(crate) struct Fields {
    pub(crate) year: i64,
    /// From 1.
    pub(crate) month: u32,
    /// From 1.
    pub(crate) day: u32,
    /// From 0.
    pub(crate) day_of_year: i64,
    /// From 0, for Sunday.
    pub(crate) weekday: i64,
    pub(crate) hour: i64,
    pub(crate) minute: i64,
    pub(crate) second: i64,
}

impl Timestamp {
    /// Returns the point that is a number of seconds after the start of 1970, within the years 1 to 9999.
    pub fn from_seconds(seconds: i64) -> Option<Self> {
        (MIN_SECONDS..=MAX_SECONDS).contains(&seconds).then_some(Self { seconds, nanos: 0, offset: 0 })
    }

    /// Returns the seconds since the start of 1970.
    pub fn seconds(&self) -> i64 {
        self.seconds
    }

    /// Returns whether the point is the start of the year 1, the zero value in Go.
    pub(crate) fn is_zero(&self) -> bool {
        self.seconds == MIN_SECONDS && self.nanos == 0
    }

    /// Returns the nanoseconds within the second.
    pub fn nanos(&self) -> u32 {
        self.nanos
    }

    /// Reads a text as RFC 3339 has it, such as `2026-01-02T03:04:05.6Z`.
    pub fn parse(text: &str) -> Option<Self> {
        let (date, rest) = text.split_at_checked(10)?;
        let rest = rest.strip_prefix('T')?;
        let (clock, rest) = rest.split_at_checked(8)?;
        let (fraction, zone) = match rest.strip_prefix('.') {
            Some(rest) => rest.split_at(rest.bytes().take_while(u8::is_ascii_digit).count()),
            None => ("0", rest),
        };
        let offset = if zone == "Z" { 0 } else { parse_offset(zone)? };
        Self::build(date, clock, fraction, offset)
    }

    /// Reads a text as the format `date-time` of schemas accepts it: with small letters too.
    pub(crate) fn parse_lenient(text: &str) -> Option<Self> {
        Self::parse(&text.to_ascii_uppercase())
    }

    fn build(date: &str, clock: &str, fraction: &str, offset: i32) -> Option<Self> {
        let [year, month, day] = numbers(date, '-', [4, 2, 2])?;
        let [hour, minute, second] = numbers(clock, ':', [2, 2, 2])?;
        if !(1..=12).contains(&month) || day < 1 || day > days_of_month(year, month as u32) {
            return None;
        }
        if hour > 23 || minute > 59 || second > 59 || fraction.is_empty() {
            return None;
        }
        let nanos: u32 = format!("{:0<9}", &fraction[..fraction.len().min(9)]).parse().ok()?;
        let days = days_from_civil(year, month, day);
        let seconds = days * 86_400 + hour * 3600 + minute * 60 + second - i64::from(offset);
        (MIN_SECONDS..=MAX_SECONDS).contains(&seconds).then_some(Self { seconds, nanos, offset })
    }

    pub(crate) fn cmp_instant(&self, other: &Self) -> Ordering {
        (self.seconds, self.nanos).cmp(&(other.seconds, other.nanos))
    }

    fn total_nanos(&self) -> i128 {
        i128::from(self.seconds) * BILLION + i128::from(self.nanos)
    }

    /// Returns the point a length of time later.
    pub(crate) fn plus(&self, nanos: i128) -> Result<Self, Error> {
        let total = self.total_nanos() + nanos;
        let seconds = total.div_euclid(BILLION);
        if !(i128::from(MIN_SECONDS)..=i128::from(MAX_SECONDS)).contains(&seconds) {
            return Err(Error::fixed("timestamp overflow"));
        }
        let nanos = total.rem_euclid(BILLION) as u32;
        Ok(Self { seconds: seconds as i64, nanos, offset: self.offset })
    }

    /// Returns the length of time since another point.
    pub(crate) fn since(&self, other: &Self) -> Result<i64, Error> {
        i64::try_from(self.total_nanos() - other.total_nanos()).map_err(|_| Error::fixed("duration overflow"))
    }

    /// Returns the fields at an offset from UTC, in seconds.
    pub(crate) fn fields(&self, offset: i32) -> Fields {
        let local = self.seconds + i64::from(offset);
        let days = local.div_euclid(86_400);
        let rest = local.rem_euclid(86_400);
        let (year, month, day) = civil_from_days(days);
        Fields {
            year,
            month,
            day,
            day_of_year: days - days_from_civil(year, 1, 1),
            weekday: (days + 4).rem_euclid(7),
            hour: rest / 3600,
            minute: rest % 3600 / 60,
            second: rest % 60,
        }
    }
}

/// Writes the point in the format of RFC 3339, with the original offset.
impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Fields { year, month, day, hour, minute, second, .. } = self.fields(self.offset);
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}")?;
        if self.nanos > 0 {
            write!(f, ".{}", format!("{:09}", self.nanos).trim_end_matches('0'))?;
        }
        if self.offset == 0 {
            return f.write_str("Z");
        }
        let (sign, minutes) = (if self.offset < 0 { '-' } else { '+' }, self.offset.abs() / 60);
        write!(f, "{sign}{:02}:{:02}", minutes / 60, minutes % 60)
    }
}

/// Reads three numbers that have certain lengths.
fn numbers(text: &str, separator: char, lengths: [usize; 3]) -> Option<[i64; 3]> {
    let mut parts = text.split(separator);
    let mut numbers = [0; 3];
    for (number, length) in numbers.iter_mut().zip(lengths) {
        let part = parts.next()?;
        if part.len() != length || !part.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        *number = part.parse().ok()?;
    }
    parts.next().is_none().then_some(numbers)
}

/// Reads an offset such as `+02:00`. Returns seconds.
fn parse_offset(text: &str) -> Option<i32> {
    let sign = if text.starts_with('-') { -1 } else { 1 };
    let (hours, minutes) = text.strip_prefix(['+', '-'])?.split_once(':')?;
    if hours.len() != 2 || minutes.len() != 2 {
        return None;
    }
    let (hours, minutes): (u8, u8) = (hours.parse().ok()?, minutes.parse().ok()?);
    (hours <= 24 && minutes < 60).then(|| sign * (i32::from(hours) * 3600 + i32::from(minutes) * 60))
}

/// Returns the offset of a time zone from UTC at a point, in seconds. The zone is a name, or an offset such as `-02:30`.
pub(crate) fn zone_offset(zone: &str, at: &Timestamp) -> Result<i32, Error> {
    if let Some((hours, minutes)) = zone.split_once(':') {
        let number = |text: &str| text.parse::<i32>().ok().filter(|number| number.abs() < 1000);
        let (Some(hours), Some(minutes)) = (number(hours), number(minutes)) else {
            return Err(Error::new(format!("strconv.Atoi: parsing \"{zone}\": invalid syntax")));
        };
        let minutes = if zone.starts_with('-') { hours * 60 - minutes } else { hours * 60 + minutes };
        return Ok(minutes * 60);
    }
    if zone.is_empty() || zone == "UTC" {
        return Ok(0);
    }
    let known = jiff::tz::TimeZone::get(zone).map_err(|_| Error::new(format!("unknown time zone {zone}")))?;
    let instant = jiff::Timestamp::from_second(at.seconds).unwrap_or(jiff::Timestamp::MAX);
    Ok(known.to_offset(instant).seconds())
}

fn days_of_month(year: i64, month: u32) -> i64 {
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    match month {
        2 => 28 + i64::from(leap),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Returns the days since the start of 1970, in the Gregorian calendar.
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

/// Returns the year, month and day.
fn civil_from_days(days: i64) -> (i64, u32, u32) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month as u32, day as u32)
}

/// Reads a length of time in Go's notation, such as `1h30m`. Returns nanoseconds.
pub fn duration_from_text(text: &str) -> Option<i64> {
    let negative = text.starts_with('-');
    let mut rest = text.strip_prefix(['+', '-']).unwrap_or(text);
    if rest == "0" {
        return Some(0);
    }
    if rest.is_empty() {
        return None;
    }
    let mut total: i128 = 0;
    while !rest.is_empty() {
        let length = rest.bytes().take_while(|byte| byte.is_ascii_digit() || *byte == b'.').count();
        let (number, after) = rest.split_at(length);
        let end = after.bytes().take_while(|byte| !byte.is_ascii_digit() && *byte != b'.').count();
        let (unit, next) = after.split_at(end);
        total += nanos_of(number, unit)?;
        rest = next;
    }
    let total = if negative { -total } else { total };
    i64::try_from(total).ok()
}

/// Returns the nanoseconds of a number with a unit. The fraction of a nanosecond is dropped.
fn nanos_of(number: &str, unit: &str) -> Option<i128> {
    let unit: i128 = match unit {
        "ns" => 1,
        "us" | "µs" | "μs" => 1000,
        "ms" => 1_000_000,
        "s" => BILLION,
        "m" => 60 * BILLION,
        "h" => 3600 * BILLION,
        _ => return None,
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() && fraction.is_empty() || fraction.contains('.') || whole.len() > 20 {
        return None;
    }
    let whole: i128 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let fraction = &fraction[..fraction.len().min(18)];
    let part: i128 = if fraction.is_empty() { 0 } else { fraction.parse().ok()? };
    Some(whole * unit + part * unit / 10_i128.pow(fraction.len() as u32))
}

/// Reads a length of time in the other notation of the format `duration`, such as `3 days`.
pub(crate) fn worded_duration(text: &str) -> Option<i64> {
    const UNITS: [(&[&str], i128); 8] = [
        (&["ns", "nano"], 1),
        (&["us", "µs", "micro"], 1000),
        (&["ms", "milli"], 1_000_000),
        (&["s", "sec"], BILLION),
        (&["m", "min"], 60 * BILLION),
        (&["h", "hr", "hour"], 3600 * BILLION),
        (&["d", "day"], 86_400 * BILLION),
        (&["w", "wk", "week"], 7 * 86_400 * BILLION),
    ];
    let mut total: i128 = 0;
    let mut found = false;
    let mut rest = text;
    while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
        let after = &rest[start..];
        let digits = after.bytes().take_while(u8::is_ascii_digit).count();
        let number: i128 = after.get(..digits.min(18))?.parse().ok()?;
        let after = after[digits..].trim_start();
        let end = after.find(|c: char| !c.is_ascii_alphabetic() && c != 'µ').unwrap_or(after.len());
        let unit = after[..end].to_lowercase();
        rest = &after[end..];
        let known = UNITS.iter().find(|(names, _)| {
            names.iter().any(|name| *name == unit || name.len() > 2 && unit.starts_with(name))
        });
        if let Some((_, nanos)) = known {
            total += number * nanos;
            found = true;
        }
    }
    if found { i64::try_from(total).ok() } else { None }
}

/// Writes a length of time in seconds, such as `1.5s`.
pub(crate) fn duration_text(nanos: i64) -> String {
    let (whole, rest) = (nanos / 1_000_000_000, nanos % 1_000_000_000);
    format!("{}s", whole as f64 + rest as f64 / 1e9)
}

#[cfg(test)]
mod tests {
    use super::{Timestamp, duration_from_text, duration_text, worded_duration};

    #[test]
    fn timestamps_keep_their_offset() {
        for text in ["2009-02-13T23:31:30Z", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999999999Z"] {
            assert_eq!(Timestamp::parse(text).map(|timestamp| timestamp.to_string()).as_deref(), Some(text));
        }
        let offset = Timestamp::parse("2023-06-01T10:00:00+02:30").map(|timestamp| timestamp.seconds());
        assert_eq!(offset, Timestamp::parse("2023-06-01T07:30:00Z").map(|timestamp| timestamp.seconds()));
        for text in
            ["2023-02-29T00:00:00Z", "2023-01-01T24:00:00Z", "2023-01-01 00:00:00Z", "2023-01-01T00:00:00"]
        {
            assert_eq!(Timestamp::parse(text), None, "{text}");
        }
    }

    #[test]
    fn durations_have_units() {
        assert_eq!(duration_from_text("1h30m"), Some(5_400_000_000_000));
        assert_eq!(duration_from_text("-1.5ms"), Some(-1_500_000));
        assert_eq!(duration_from_text("1"), None);
        assert_eq!(duration_from_text("10000000h"), None);
        assert_eq!(worded_duration("3 days"), Some(259_200_000_000_000));
        assert_eq!(duration_text(1_500_000_000), "1.5s");
        assert_eq!(duration_text(-10), "-0.00000001s");
    }
}
