//! The columns of `kubectl get`.

use jiff::Timestamp;
use serde_json::Value;

use crate::table::Table;
use crate::table::age::{human_duration, seconds_between};
use crate::table::column::{AGE, Column};
use crate::table::row::{Row, is_true};

/// The columns of jobs.
pub(super) static TABLE: Table = Table::new(
    &[
        Column::name(),
        Column::text("Status"),
        Column::text("Completions"),
        Column::text("Duration"),
        AGE,
        Column::wide("Containers"),
        Column::wide("Images"),
        Column::wide("Selector"),
    ],
    |row| {
        let [names, images] = row.containers("/spec/template/spec/containers");
        vec![
            row.name(),
            status(row).into(),
            completions(row).into(),
            duration(row).into(),
            row.age(),
            names,
            images,
            row.selector("/spec/selector", "<none>"),
        ]
    },
);

fn status(row: &Row<'_>) -> &'static str {
    let conditions = row.list("/status/conditions");
    if is_true(conditions, "Complete") {
        return "Complete";
    }
    if is_true(conditions, "Failed") {
        return "Failed";
    }
    if row.is_deleted() {
        return "Terminating";
    }
    ["Suspended", "FailureTarget", "SuccessCriteriaMet"]
        .into_iter()
        .find(|kind| is_true(conditions, kind))
        .unwrap_or("Running")
}

fn completions(row: &Row<'_>) -> String {
    let succeeded = row.int("/status/succeeded");
    match row.value("/spec/completions").and_then(Value::as_i64) {
        Some(wanted) => format!("{succeeded}/{wanted}"),
        None => match row.int("/spec/parallelism") {
            parallelism @ 2.. => format!("{succeeded}/1 of {parallelism}"),
            _ => format!("{succeeded}/1"),
        },
    }
}

fn duration(row: &Row<'_>) -> String {
    let time = |pointer: &str| row.str(pointer).parse::<Timestamp>().ok();
    match time("/status/startTime") {
        None => String::new(),
        Some(start) => {
            human_duration(seconds_between(start, time("/status/completionTime").unwrap_or(row.now)))
        }
    }
}
