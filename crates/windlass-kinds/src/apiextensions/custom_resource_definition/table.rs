//! The columns of `kubectl get`.

use serde_json::Value;

use super::{list, text};
use crate::table::Table;
use crate::table::column::Column;
use crate::table::row::{Row, is_true, join};

/// The columns of definitions.
pub(super) static TABLE: Table = Table::new(
    &[
        Column::name(),
        Column::text("Scope"),
        Column::text("Versions"),
        Column::date("Created At"),
        Column::wide("Group"),
        Column::wide("Kind"),
        Column::wide("ShortNames"),
        Column::boolean("Established").only_wide(),
    ],
    definition,
)
.with_null_rows();

fn definition(row: &Row<'_>) -> Vec<Value> {
    let short_names = row.list("/spec/names/shortNames").iter().filter_map(Value::as_str);
    vec![
        row.name(),
        row.text("/spec/scope"),
        served_versions(row.object).into(),
        row.value("/metadata/creationTimestamp").cloned().unwrap_or_default(),
        row.text("/spec/group"),
        row.text("/spec/names/kind"),
        join(short_names).into(),
        is_true(row.list("/status/conditions"), "Established").into(),
    ]
}

/// Returns the served versions in the order of the alphabet, with a mark at the stored version.
fn served_versions(definition: &Value) -> String {
    let served = list(&definition["spec"], "versions").iter().filter(|version| version["served"] == true);
    let mut names: Vec<String> = served
        .map(|version| {
            let mark = if version["storage"] == true { "(storage)" } else { "" };
            format!("{}{mark}", text(version, &["name"]))
        })
        .collect();
    names.sort_unstable();
    names.join(",")
}
