//! The columns of `kubectl get`.

use crate::table::Table;
use crate::table::column::{AGE, Column};
use crate::table::row::{Row, scalar};

/// The columns of resourceclaimtemplates.
pub(super) static RESOURCECLAIMTEMPLATES: Table =
    Table::new(&[Column::name(), AGE], |row| vec![row.name(), row.age()]);

/// The columns of resourceclaims.
pub(super) static RESOURCECLAIMS: Table = Table::new(&[Column::name(), Column::text("State"), AGE], |row| {
    vec![row.name(), claim_state(row).into(), row.age()]
});

fn claim_state(row: &Row<'_>) -> String {
    let mut states = Vec::new();
    if row.is_deleted() {
        states.push("deleted");
    }
    if row.value("/status/allocation").is_some_and(|allocation| !scalar(allocation).is_empty()) {
        states.push("allocated");
        if !row.list("/status/reservedFor").is_empty() {
            states.push("reserved");
        }
    } else if !row.is_deleted() {
        states.push("pending");
    }
    states.join(",")
}
