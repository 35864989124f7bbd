//! Cron schedules in Kubernetes' syntax: five fields, or a descriptor such as `@daily` or `@every 90m`.

use k8s_openapi::jiff::civil::Date;
use k8s_openapi::jiff::tz::TimeZone;
use k8s_openapi::jiff::{SignedDuration, Timestamp, Zoned};

use windlass_kinds::cron::{DAYS, Field, HOURS, MINUTES, MONTHS, WEEKDAYS, interval};

/// How far ahead a schedule is searched. `0 0 30 2 *` never comes.
const HORIZON: SignedDuration = SignedDuration::from_hours(24 * 366 * 5);

/// A schedule and the time zone.
#[derive(Clone, Debug)]
pub(super) enum Schedule {
    Fields(Box<Fields>),
    /// At this distance from the time before, in whole seconds.
    Every(SignedDuration),
}

#[derive(Clone, Debug)]
pub(super) struct Fields {
    minute: Field,
    hour: Field,
    day: Field,
    month: Field,
    weekday: Field,
    zone: TimeZone,
}

impl Schedule {
    /// Parses a schedule. The time zone is UTC, unless the text begins with `TZ=` or `CRON_TZ=`, or `zone` is
    /// given.
    ///
    /// # Errors
    /// The error in the text.
    pub(super) fn parse(text: &str, zone: Option<&str>) -> Result<Self, String> {
        let prefixed = text.strip_prefix("TZ=").or_else(|| text.strip_prefix("CRON_TZ="));
        let (zone, text) = match prefixed {
            Some(rest) => {
                let (zone, rest) = rest.split_once(' ').unwrap_or((rest, ""));
                (Some(zone), rest.trim())
            }
            None => (zone, text),
        };
        let zone = zone.map_or(Ok(TimeZone::UTC), |name| {
            time_zone(name).ok_or_else(|| format!("provided bad location {name}: unknown time zone {name}"))
        })?;
        if let Some(every) = text.strip_prefix("@every ") {
            let wait = interval(every).map_err(|why| format!("failed to parse duration {text}: {why}"))?;
            let wait = SignedDuration::try_from(wait).map_err(|error| error.to_string())?;
            return Ok(Self::Every(wait));
        }
        let text = match text {
            "@yearly" | "@annually" => "0 0 1 1 *",
            "@monthly" => "0 0 1 * *",
            "@weekly" => "0 0 * * 0",
            "@daily" | "@midnight" => "0 0 * * *",
            "@hourly" => "0 * * * *",
            other if other.starts_with('@') => return Err(format!("unrecognized descriptor: {other}")),
            other => other,
        };
        let fields: Vec<&str> = text.split_whitespace().collect();
        let [minute, hour, day, month, weekday] = fields[..] else {
            return Err(format!("expected exactly 5 fields, found {}: [{}]", fields.len(), fields.join(" ")));
        };
        Ok(Self::Fields(Box::new(Fields {
            minute: Field::parse(minute, &MINUTES)?,
            hour: Field::parse(hour, &HOURS)?,
            day: Field::parse(day, &DAYS)?,
            month: Field::parse(month, &MONTHS)?,
            weekday: Field::parse(weekday, &WEEKDAYS)?,
            zone,
        })))
    }

    /// Returns the first time of the schedule after `time`, or `None` if there is none in five years.
    pub(super) fn next(&self, time: Timestamp) -> Option<Timestamp> {
        let second = Timestamp::from_second(time.as_second()).ok()?;
        match self {
            Self::Every(wait) => second.checked_add(*wait).ok(),
            Self::Fields(fields) => fields.next(second),
        }
    }
}

impl Fields {
    fn next(&self, after: Timestamp) -> Option<Timestamp> {
        if self.is_never() {
            return None;
        }
        let limit = after.checked_add(HORIZON).ok()?;
        let mut time = after.checked_add(SignedDuration::from_secs(1)).ok()?;
        while time <= limit {
            let local = time.to_zoned(self.zone.clone());
            match self.skip(&local) {
                Ok(()) => return Some(time),
                Err(later) => time = later?,
            }
        }
        None
    }

    /// Returns whether an empty field excludes all times. The search would go through each minute.
    fn is_never(&self) -> bool {
        let (day, weekday) = (self.day.is_empty(), self.weekday.is_empty());
        let no_day = if self.day.any || self.weekday.any { day || weekday } else { day && weekday };
        self.minute.is_empty() || self.hour.is_empty() || self.month.is_empty() || no_day
    }

    /// Returns `Ok` if the time matches, or else the next time worth a look.
    fn skip(&self, local: &Zoned) -> Result<(), Option<Timestamp>> {
        let minutes = SignedDuration::from_mins(local.minute().into());
        let seconds = SignedDuration::from_secs(local.second().into());
        let date = local.date();
        let start_of = |date: Date| date.to_zoned(self.zone.clone()).ok().map(|day| day.timestamp());
        if !self.month.has(number(local.month())) {
            let next = date.last_of_month().tomorrow().ok();
            return Err(next.and_then(start_of));
        }
        if !self.matches_day(local) {
            return Err(date.tomorrow().ok().and_then(start_of));
        }
        let wait = if !self.hour.has(number(local.hour())) {
            SignedDuration::from_hours(1) - minutes - seconds
        } else if !self.minute.has(number(local.minute())) || local.second() != 0 {
            SignedDuration::from_mins(1) - seconds
        } else {
            return Ok(());
        };
        Err(local.timestamp().checked_add(wait).ok())
    }

    /// Returns whether a day matches: both day fields match or, if both fields restrict the days, one field
    /// matches.
    fn matches_day(&self, local: &Zoned) -> bool {
        let day = self.day.has(number(local.day()));
        let weekday = self.weekday.has(number(local.weekday().to_sunday_zero_offset()));
        if self.day.any || self.weekday.any { day && weekday } else { day || weekday }
    }
}

/// Returns a time zone of the IANA database.
pub(super) fn time_zone(name: &str) -> Option<TimeZone> {
    match name {
        "" | "UTC" | "Etc/UTC" => Some(TimeZone::UTC),
        name => TimeZone::get(name).ok(),
    }
}

fn number(n: i8) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn next(schedule: &str, zone: Option<&str>, after: &str) -> String {
        let schedule = Schedule::parse(schedule, zone).unwrap();
        schedule.next(after.parse().unwrap()).map_or_else(|| "never".to_owned(), |time| time.to_string())
    }

    #[test]
    fn schedules_give_the_next_time() {
        for (schedule, after, expected) in [
            ("* * * * *", "2026-01-01T00:00:00Z", "2026-01-01T00:01:00Z"),
            ("* * * * *", "2026-01-01T00:00:59.5Z", "2026-01-01T00:01:00Z"),
            ("*/15 * * * *", "2026-01-01T00:46:00Z", "2026-01-01T01:00:00Z"),
            ("5/20 8-9 * * *", "2026-01-01T09:46:00Z", "2026-01-02T08:05:00Z"),
            ("0 0 29 2 *", "2026-01-01T00:00:00Z", "2028-02-29T00:00:00Z"),
            ("0 0 30 2 *", "2026-01-01T00:00:00Z", "never"),
            ("30 4 1,15 * fri", "2026-01-01T05:00:00Z", "2026-01-02T04:30:00Z"),
            ("0 0 * * 1-5", "2026-01-02T00:00:00Z", "2026-01-05T00:00:00Z"),
            ("0 0 ? JAN-mar ?", "2026-03-31T00:00:00Z", "2027-01-01T00:00:00Z"),
            ("@yearly", "2026-06-01T00:00:00Z", "2027-01-01T00:00:00Z"),
            ("@weekly", "2026-01-01T00:00:00Z", "2026-01-04T00:00:00Z"),
            ("@every 1h30m", "2026-01-01T00:00:10.9Z", "2026-01-01T01:30:10Z"),
        ] {
            assert_eq!(next(schedule, None, after), expected, "{schedule}");
        }
    }

    #[test]
    fn a_schedule_without_times_is_known_at_once() {
        for schedule in
            [", * * * *", "* , * * *", "* * , * *", "* * * , *", "* * * * ,", "* * , * ,", "0 0 ,, * */1"]
        {
            // Minute by minute through five years, this would take hours.
            for _ in 0..10_000 {
                assert_eq!(next(schedule, None, "2026-01-01T00:00:00Z"), "never", "{schedule}");
            }
        }
        // Either day field is enough if both restrict the days.
        assert_eq!(next("0 0 , * mon", None, "2026-01-01T00:00:00Z"), "2026-01-05T00:00:00Z");
        assert_eq!(next("0 0 31 * ,", None, "2026-01-01T00:00:00Z"), "2026-01-31T00:00:00Z");
    }

    #[test]
    fn a_wait_is_at_least_a_second() {
        for (wait, expected) in [
            ("-5m", "00:00:11"),
            ("-2562047h47m16.854775808s", "00:00:11"),
            ("0", "00:00:11"),
            ("-0", "00:00:11"),
            ("+1h", "01:00:10"),
            ("7\u{3bc}s", "00:00:11"),
            ("7\u{b5}s", "00:00:11"),
            ("3000000\u{3bc}s", "00:00:13"),
            ("2.9s", "00:00:12"),
            ("1.s.5h", "00:30:11"),
        ] {
            let schedule = format!("@every {wait}");
            let expected = format!("2026-01-01T{expected}Z");
            assert_eq!(next(&schedule, None, "2026-01-01T00:00:10.9Z"), expected, "{schedule}");
        }
    }

    #[test]
    fn a_time_zone_moves_the_schedule() {
        let new_york = Some("America/New_York");
        assert_eq!(next("30 1 * * *", new_york, "2026-01-01T00:00:00Z"), "2026-01-01T06:30:00Z");
        assert_eq!(next("TZ=Asia/Tokyo 0 9 * * *", None, "2026-01-01T00:00:00Z"), "2026-01-02T00:00:00Z");
        // On 8 March, 2:30 does not exist there; on 1 November, 1:30 is there twice.
        assert_eq!(next("30 2 * * *", new_york, "2026-03-08T00:00:00Z"), "2026-03-09T06:30:00Z");
        assert_eq!(next("30 1 * * *", new_york, "2026-11-01T05:30:00Z"), "2026-11-01T06:30:00Z");
    }

    #[test]
    fn what_is_no_schedule_is_refused() {
        for schedule in [
            "",
            "* * * *",
            "60 * * * *",
            "* * 0 * *",
            "* * * 13 *",
            "* * * * 7",
            "*/0 * * * *",
            "5-1 * * * *",
            "a * * * *",
            "-1 * * * *",
            "1/2/3 * * * *",
            "1-2-3 * * * *",
            "@never",
            "@every soon",
            "@every 2562047h47m16.854775808s",
            "TZ=Mars/Base * * * * *",
        ] {
            assert!(Schedule::parse(schedule, None).is_err(), "{schedule}");
        }
    }
}
