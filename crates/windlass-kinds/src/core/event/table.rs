//! The columns of `kubectl get`.

use serde_json::Value;

use crate::table::column::Column;
use crate::table::row::Row;
use crate::table::{Table, age};

/// The columns of events.
pub(super) static TABLE: Table = Table::new(COLUMNS, cells);

const COLUMNS: &[Column] = &[
    Column::text("Last Seen"),
    Column::text("Type"),
    Column::text("Reason"),
    Column::text("Object"),
    Column::wide("Subobject"),
    Column::wide("Source"),
    Column::text("Message"),
    Column::wide("First Seen"),
    Column::wide("Count"),
    Column::wide("Name").named(),
];

/// Returns a field of an event. The two groups name the same fields differently.
fn either<'a>(row: &Row<'a>, core: &str, events: &str) -> &'a str {
    let text = row.str(core);
    if text.is_empty() { row.str(events) } else { text }
}

fn cells(row: &Row<'_>) -> Vec<Value> {
    let seen = |pointers: &[&str]| {
        let time = pointers.iter().find_map(|pointer| row.value(pointer).filter(|time| !time.is_null()));
        age::since(time, row.now)
    };
    let first_times = ["/firstTimestamp", "/deprecatedFirstTimestamp", "/eventTime"];
    let first = seen(&first_times);
    let mut last_times = vec!["/series/lastObservedTime", "/lastTimestamp", "/deprecatedLastTimestamp"];
    last_times.extend(first_times);
    let last = seen(&last_times);
    let count = ["/series/count", "/count", "/deprecatedCount"]
        .iter()
        .map(|pointer| row.int(pointer))
        .find(|count| *count != 0)
        .unwrap_or(1);
    let kind = either(row, "/involvedObject/kind", "/regarding/kind").to_lowercase();
    let name = either(row, "/involvedObject/name", "/regarding/name");
    let object = if name.is_empty() { kind } else { format!("{kind}/{name}") };
    let component = either(row, "/source/component", "/deprecatedSource/component");
    let component = if component.is_empty() {
        either(row, "/reportingComponent", "/reportingController")
    } else {
        component
    };
    let host = either(row, "/source/host", "/deprecatedSource/host");
    let host = if host.is_empty() { row.str("/reportingInstance") } else { host };
    let source = if host.is_empty() { component.to_owned() } else { format!("{component}, {host}") };
    vec![
        last.into(),
        row.text("/type"),
        row.text("/reason"),
        object.into(),
        either(row, "/involvedObject/fieldPath", "/regarding/fieldPath").into(),
        source.into(),
        either(row, "/message", "/note").trim().into(),
        first.into(),
        count.into(),
        row.name(),
    ]
}
