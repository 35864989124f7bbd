//! The columns of `kubectl get`.

use std::collections::BTreeSet;

use crate::table::Table;
use crate::table::column::{AGE, Column};
use crate::table::row::{Row, join, text};

/// The columns of ingresses.
pub(super) static TABLE: Table = Table::new(
    &[
        Column::name(),
        Column::text("Class"),
        Column::text("Hosts"),
        Column::text("Address"),
        Column::text("Ports"),
        AGE,
    ],
    |row| {
        vec![
            row.name(),
            row.text_or("/spec/ingressClassName", "<none>"),
            hosts(row).into(),
            balancer_addresses(row).into(),
            if row.list("/spec/tls").is_empty() { "80" } else { "80, 443" }.into(),
            row.age(),
        ]
    },
);

pub(crate) fn balancer_addresses(row: &Row<'_>) -> String {
    let addresses: BTreeSet<&str> = row
        .list("/status/loadBalancer/ingress")
        .iter()
        .map(
            |ingress| {
                if text(ingress, "ip").is_empty() { text(ingress, "hostname") } else { text(ingress, "ip") }
            },
        )
        .filter(|address| !address.is_empty())
        .collect();
    join(addresses.into_iter())
}

fn hosts(row: &Row<'_>) -> String {
    let rules = row.list("/spec/rules");
    let mut hosts = rules.iter().map(|rule| text(rule, "host")).filter(|host| !host.is_empty());
    let shown: Vec<&str> = hosts.by_ref().take(3).collect();
    if shown.is_empty() {
        return "*".to_owned();
    }
    let all = shown.join(",");
    if shown.len() == 3 && rules.len() > 3 { format!("{all} + {} more...", rules.len() - 3) } else { all }
}
