//! The fields of points in time and lengths of time.

use super::{as_text, mismatch};
use crate::declare::Row;
use crate::error::Error;
use crate::value::{Timestamp, Value, zone_offset};

/// A field of a point in time, or a whole number of units in a length of time.
#[derive(Clone, Copy)]
enum Field {
    Year,
    Month,
    DayOfYear,
    /// From 0.
    DayOfMonth,
    /// From 1.
    Date,
    Weekday,
    Hours,
    Minutes,
    Seconds,
    Milliseconds,
}

#[rustfmt::skip]
pub(super) const FUNCTIONS: &[Row] = &[
    Row("getFullYear", "timestamp_to_year", ".timestamp", "int", |_, v| get(v, Field::Year)),
    Row("getFullYear", "timestamp_to_year_with_tz", ".timestamp string", "int", |_, v| get(v, Field::Year)),
    Row("getMonth", "timestamp_to_month", ".timestamp", "int", |_, v| get(v, Field::Month)),
    Row("getMonth", "timestamp_to_month_with_tz", ".timestamp string", "int", |_, v| get(v, Field::Month)),
    Row("getDayOfYear", "timestamp_to_day_of_year", ".timestamp", "int", |_, v| get(v, Field::DayOfYear)),
    Row("getDayOfYear", "timestamp_to_day_of_year_with_tz", ".timestamp string", "int", |_, v| get(v, Field::DayOfYear)),
    Row("getDayOfMonth", "timestamp_to_day_of_month", ".timestamp", "int", |_, v| get(v, Field::DayOfMonth)),
    Row("getDayOfMonth", "timestamp_to_day_of_month_with_tz", ".timestamp string", "int", |_, v| get(v, Field::DayOfMonth)),
    Row("getDate", "timestamp_to_day_of_month_1_based", ".timestamp", "int", |_, v| get(v, Field::Date)),
    Row("getDate", "timestamp_to_day_of_month_1_based_with_tz", ".timestamp string", "int", |_, v| get(v, Field::Date)),
    Row("getDayOfWeek", "timestamp_to_day_of_week", ".timestamp", "int", |_, v| get(v, Field::Weekday)),
    Row("getDayOfWeek", "timestamp_to_day_of_week_with_tz", ".timestamp string", "int", |_, v| get(v, Field::Weekday)),
    Row("getHours", "timestamp_to_hours", ".timestamp", "int", |_, v| get(v, Field::Hours)),
    Row("getHours", "timestamp_to_hours_with_tz", ".timestamp string", "int", |_, v| get(v, Field::Hours)),
    Row("getHours", "duration_to_hours", ".duration", "int", |_, v| get(v, Field::Hours)),
    Row("getMinutes", "timestamp_to_minutes", ".timestamp", "int", |_, v| get(v, Field::Minutes)),
    Row("getMinutes", "timestamp_to_minutes_with_tz", ".timestamp string", "int", |_, v| get(v, Field::Minutes)),
    Row("getMinutes", "duration_to_minutes", ".duration", "int", |_, v| get(v, Field::Minutes)),
    Row("getSeconds", "timestamp_to_seconds", ".timestamp", "int", |_, v| get(v, Field::Seconds)),
    Row("getSeconds", "timestamp_to_seconds_tz", ".timestamp string", "int", |_, v| get(v, Field::Seconds)),
    Row("getSeconds", "duration_to_seconds", ".duration", "int", |_, v| get(v, Field::Seconds)),
    Row("getMilliseconds", "timestamp_to_milliseconds", ".timestamp", "int", |_, v| get(v, Field::Milliseconds)),
    Row("getMilliseconds", "timestamp_to_milliseconds_with_tz", ".timestamp string", "int", |_, v| get(v, Field::Milliseconds)),
    Row("getMilliseconds", "duration_to_milliseconds", ".duration", "int", |_, v| get(v, Field::Milliseconds)),
];

fn get<'a>(arguments: &[Value<'a>], field: Field) -> Result<Value<'a>, Error> {
    match arguments {
        [Value::Timestamp(at)] => Ok(Value::Int(field_of(at, 0, field))),
        [Value::Timestamp(at), zone] => {
            let offset = zone_offset(as_text(zone)?, at)?;
            Ok(Value::Int(field_of(at, offset, field)))
        }
        [Value::Duration(nanos)] => units_of(*nanos, field),
        _ => mismatch(),
    }
}

fn field_of(at: &Timestamp, offset: i32, field: Field) -> i64 {
    let fields = at.fields(offset);
    match field {
        Field::Year => fields.year,
        Field::Month => i64::from(fields.month) - 1,
        Field::DayOfYear => fields.day_of_year,
        Field::DayOfMonth => i64::from(fields.day) - 1,
        Field::Date => i64::from(fields.day),
        Field::Weekday => fields.weekday,
        Field::Hours => fields.hour,
        Field::Minutes => fields.minute,
        Field::Seconds => fields.second,
        Field::Milliseconds => i64::from(at.nanos() / 1_000_000),
    }
}

fn units_of<'a>(nanos: i64, field: Field) -> Result<Value<'a>, Error> {
    const SECOND: i64 = 1_000_000_000;
    let unit = match field {
        Field::Hours => 3600 * SECOND,
        Field::Minutes => 60 * SECOND,
        Field::Seconds => SECOND,
        Field::Milliseconds => SECOND / 1000,
        _ => return mismatch(),
    };
    Ok(Value::Int(nanos / unit))
}
