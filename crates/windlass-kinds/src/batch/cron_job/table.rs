//! The columns of `kubectl get`.

use serde_json::Value;

use crate::table::Table;
use crate::table::age::since;
use crate::table::column::{AGE, Column};
use crate::table::row::Row;

/// The columns of cronjobs.
pub(super) static TABLE: Table = Table::new(
    &[
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
    cron_job,
);

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
