//! Tables of jobs.

use jiff::Timestamp;
use serde_json::Value;

use super::BuiltIn;
use super::age::{human_duration, seconds_between, since};
use super::column::{AGE, Column};
use super::row::{Row, is_true};

pub(super) const KINDS: &[BuiltIn] = &[
    BuiltIn {
        group: "batch",
        resource: "jobs",
        columns: &[
            Column::name(),
            Column::text("Status"),
            Column::text("Completions"),
            Column::text("Duration"),
            AGE,
            Column::wide("Containers"),
            Column::wide("Images"),
            Column::wide("Selector"),
        ],
        cells: |row| {
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
    },
    BuiltIn {
        group: "batch",
        resource: "cronjobs",
        columns: &[
            Column::name(),
            Column::text("Schedule"),
            Column::text("Timezone"),
            Column::boolean("Suspend"),
            Column::integer("Active"),
            Column::text("Last Schedule"),
            AGE,
            Column::wide("Containers"),
            Column::wide("Images"),
            Column::wide("Selector"),
        ],
        cells: cron_job,
    },
];

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

fn cron_job(row: &Row<'_>) -> Vec<Value> {
    let [names, images] = row.containers("/spec/jobTemplate/spec/template/spec/containers");
    let last = row.value("/status/lastScheduleTime").filter(|time| !time.is_null());
    let suspend = match row.value("/spec/suspend").and_then(Value::as_bool) {
        Some(true) => "True",
        Some(false) => "False",
        None => "<unset>",
    };
    vec![
        row.name(),
        row.text("/spec/schedule"),
        row.text_or("/spec/timeZone", "<none>"),
        suspend.into(),
        row.list("/status/active").len().into(),
        last.map_or_else(|| "<none>".to_owned(), |time| since(Some(time), row.now)).into(),
        row.age(),
        names,
        images,
        row.selector("/spec/jobTemplate/spec/selector", "<none>"),
    ]
}
