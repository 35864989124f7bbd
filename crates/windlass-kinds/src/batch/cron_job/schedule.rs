//! Schedules: five fields, or a descriptor such as `@daily` or `@every 90m`.

use crate::cron::{DAYS, Field, HOURS, MINUTES, MONTHS, WEEKDAYS, interval};

/// Returns why a schedule is invalid.
pub(super) fn problem(schedule: &str) -> Option<String> {
    let zoned = schedule.strip_prefix("TZ=").or_else(|| schedule.strip_prefix("CRON_TZ="));
    let zoned = zoned.and_then(|zoned| zoned.split_once(' '));
    if let Some((zone, _)) = zoned
        && is_unknown_zone(zone)
    {
        return Some(format!("provided bad location {zone}: unknown time zone {zone}"));
    }
    let times = zoned.map_or(schedule, |(_, times)| times.trim());
    if let Some(word) = times.strip_prefix('@') {
        let known = ["yearly", "annually", "monthly", "weekly", "daily", "midnight", "hourly"];
        return match word.strip_prefix("every ") {
            Some(wait) => interval(wait).err().map(|why| format!("failed to parse duration {times}: {why}")),
            None => (!known.contains(&word)).then(|| format!("unrecognized descriptor: {times}")),
        };
    }
    let fields: Vec<&str> = times.split_whitespace().collect();
    if fields.len() != 5 {
        return Some(format!("expected exactly 5 fields, found {}: [{}]", fields.len(), fields.join(" ")));
    }
    let ranges = [&MINUTES, &HOURS, &DAYS, &MONTHS, &WEEKDAYS];
    fields.iter().zip(ranges).find_map(|(field, range)| Field::parse(field, range).err())
}

/// Returns whether no time zone has the name, in upper and lower case as in the database. Without a time zone database, all names
/// are known.
pub(super) fn is_unknown_zone(name: &str) -> bool {
    let database = jiff::tz::db();
    if matches!(name, "" | "Local") || database.is_definitively_empty() {
        return false;
    }
    // The database ignores case.
    database.get(name).map_or(true, |zone| zone.iana_name() != Some(name))
}

#[cfg(test)]
mod tests {
    use super::problem;

    #[test]
    fn problems_have_the_words_of_the_parser_of_kubernetes() {
        for good in [
            "*/15 1-5,10 ? JAN mon-FRI",
            "@every 1h30.5m",
            "@daily",
            "5/10 * * * *",
            "TZ=UTC * * * * *",
            ", * * * *",
        ] {
            assert_eq!(problem(good), None, "{good}");
        }
        let bad = [
            ("* * * *", "expected exactly 5 fields, found 4: [* * * *]"),
            ("*/0 * * * *", "step of range should be a positive number: */0"),
            ("5-1 * * * *", "beginning of range (5) beyond end of range (1): 5-1"),
            ("60 * * * *", "end of range (60) above maximum (59): 60"),
            ("* * 0 * *", "beginning of range (0) below minimum (1): 0"),
            ("1-2-3 * * * *", "too many hyphens: 1-2-3"),
            ("1/2/3 * * * *", "too many slashes: 1/2/3"),
            ("-1 * * * *", r#"failed to parse int from : strconv.Atoi: parsing "": invalid syntax"#),
            ("x * * * *", r#"failed to parse int from x: strconv.Atoi: parsing "x": invalid syntax"#),
            ("TZ=utc * * * * *", "provided bad location utc: unknown time zone utc"),
            ("@often", "unrecognized descriptor: @often"),
            ("@every x", r#"failed to parse duration @every x: time: invalid duration "x""#),
            ("@every 5", r#"failed to parse duration @every 5: time: missing unit in duration "5""#),
            ("@every 5y", r#"failed to parse duration @every 5y: time: unknown unit "y" in duration "5y""#),
        ];
        for (schedule, why) in bad {
            assert_eq!(problem(schedule).as_deref(), Some(why), "{schedule}");
        }
    }
}
