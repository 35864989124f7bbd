//! The columns of `kubectl get`.

use serde_json::Value;

use crate::table::Table;
use crate::table::column::{AGE, Column};
use crate::table::row::{Row, with_more};

/// The columns of endpointslices.
pub(super) static TABLE: Table = Table::new(
    &[Column::name(), Column::text("AddressType"), Column::text("Ports"), Column::text("Endpoints"), AGE],
    endpoint_slice,
);

fn endpoint_slice(row: &Row<'_>) -> Vec<Value> {
    let or_unset = |text: String| if text.is_empty() { "<unset>".to_owned() } else { text };
    let ports = row.list("/ports").iter().map(|port| match port.get("port").and_then(Value::as_i64) {
        Some(number) => number.to_string(),
        None => port.get("name").and_then(Value::as_str).unwrap_or("*").to_owned(),
    });
    let addresses = row
        .list("/endpoints")
        .iter()
        .flat_map(|endpoint| endpoint.get("addresses").and_then(Value::as_array).into_iter().flatten())
        .filter_map(Value::as_str)
        .map(str::to_owned);
    vec![
        row.name(),
        row.text("/addressType"),
        or_unset(with_more(ports.collect(), 3, ",")).into(),
        or_unset(with_more(addresses.collect(), 3, ",")).into(),
        row.age(),
    ]
}
