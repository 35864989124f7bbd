//! The columns of `kubectl get`.

use serde_json::Value;

use crate::table::Table;
use crate::table::column::{AGE, Column};
use crate::table::row::join;

/// The columns of servicecidrs.
pub(super) static TABLE: Table = Table::new(&[Column::name(), Column::text("CIDRs"), AGE], |row| {
    vec![row.name(), strings(row.list("/spec/cidrs")).into(), row.age()]
});

fn strings(values: &[Value]) -> String {
    join(values.iter().filter_map(Value::as_str))
}
