//! The columns of `kubectl get`.

use serde_json::Value;

use crate::table::Table;
use crate::table::column::{AGE, Column};
use crate::table::row::{Row, text, with_more};

/// The columns of endpoints.
pub(super) static TABLE: Table = Table::new(&[Column::name(), Column::text("Endpoints"), AGE], |row| {
    vec![row.name(), endpoints(row).into(), row.age()]
});

fn endpoints(row: &Row<'_>) -> String {
    let subsets = row.list("/subsets");
    if subsets.is_empty() {
        return "<none>".to_owned();
    }
    let mut all = Vec::new();
    for subset in subsets {
        let of = |field: &str| subset.get(field).and_then(Value::as_array).map_or(&[] as &[_], Vec::as_slice);
        let addresses = || of("addresses").iter().map(|address| text(address, "ip"));
        if of("ports").is_empty() {
            all.extend(addresses().map(str::to_owned));
        }
        for port in of("ports") {
            let port = port.get("port").and_then(Value::as_i64).unwrap_or_default();
            all.extend(
                addresses().map(|ip| {
                    if ip.contains(':') { format!("[{ip}]:{port}") } else { format!("{ip}:{port}") }
                }),
            );
        }
    }
    with_more(all, 3, ",")
}
