//! The columns of `kubectl get`.

use serde_json::Value;

use crate::networking::ingress::table::balancer_addresses;
use crate::table::Table;
use crate::table::column::{AGE, Column};
use crate::table::row::{Row, join, text};

/// The columns of services.
pub(super) static TABLE: Table = Table::new(
    &[
        Column::name(),
        Column::text("Type"),
        Column::text("Cluster-IP"),
        Column::text("External-IP"),
        Column::text("Port(s)"),
        AGE,
        Column::wide("Selector"),
    ],
    |row| {
        vec![
            row.name(),
            row.text("/spec/type"),
            row.text_or("/spec/clusterIPs/0", "<none>"),
            external_address(row).into(),
            service_ports(row).into(),
            row.age(),
            row.labels("/spec/selector"),
        ]
    },
);

fn strings(values: &[Value]) -> String {
    join(values.iter().filter_map(Value::as_str))
}

fn external_address(row: &Row<'_>) -> String {
    let external = strings(row.list("/spec/externalIPs"));
    match row.str("/spec/type") {
        "ClusterIP" | "NodePort" if external.is_empty() => "<none>".to_owned(),
        "ClusterIP" | "NodePort" => external,
        "LoadBalancer" => {
            let parts = [balancer_addresses(row), external];
            let all = join(parts.iter().map(String::as_str).filter(|part| !part.is_empty()));
            if all.is_empty() { "<pending>".to_owned() } else { all }
        }
        "ExternalName" => row.str("/spec/externalName").to_owned(),
        _ => "<unknown>".to_owned(),
    }
}

fn service_ports(row: &Row<'_>) -> String {
    let ports: Vec<String> = row
        .list("/spec/ports")
        .iter()
        .map(|port| {
            let number = |field: &str| port.get(field).and_then(Value::as_i64).unwrap_or_default();
            let protocol = text(port, "protocol");
            match number("nodePort") {
                0 => format!("{}/{protocol}", number("port")),
                node => format!("{}:{node}/{protocol}", number("port")),
            }
        })
        .collect();
    if ports.is_empty() { "<none>".to_owned() } else { ports.join(",") }
}
