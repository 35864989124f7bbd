//! Tables of services, endpoints, ingresses and network policies.

use std::collections::BTreeSet;

use serde_json::Value;

use super::BuiltIn;
use super::column::{AGE, Column};
use super::row::{Row, join, text, with_more};

pub(super) const KINDS: &[BuiltIn] = &[
    BuiltIn {
        group: "",
        resource: "services",
        columns: &[
            Column::name(),
            Column::text("Type"),
            Column::text("Cluster-IP"),
            Column::text("External-IP"),
            Column::text("Port(s)"),
            AGE,
            Column::wide("Selector"),
        ],
        cells: |row| {
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
    },
    BuiltIn {
        group: "",
        resource: "endpoints",
        columns: &[Column::name(), Column::text("Endpoints"), AGE],
        cells: |row| vec![row.name(), endpoints(row).into(), row.age()],
    },
    BuiltIn {
        group: "discovery.k8s.io",
        resource: "endpointslices",
        columns: &[
            Column::name(),
            Column::text("AddressType"),
            Column::text("Ports"),
            Column::text("Endpoints"),
            AGE,
        ],
        cells: endpoint_slice,
    },
    BuiltIn {
        group: "networking.k8s.io",
        resource: "ingresses",
        columns: &[
            Column::name(),
            Column::text("Class"),
            Column::text("Hosts"),
            Column::text("Address"),
            Column::text("Ports"),
            AGE,
        ],
        cells: |row| {
            vec![
                row.name(),
                row.text_or("/spec/ingressClassName", "<none>"),
                hosts(row).into(),
                balancer_addresses(row).into(),
                if row.list("/spec/tls").is_empty() { "80" } else { "80, 443" }.into(),
                row.age(),
            ]
        },
    },
    BuiltIn {
        group: "networking.k8s.io",
        resource: "ingressclasses",
        columns: &[Column::name(), Column::text("Controller"), Column::text("Parameters"), AGE],
        cells: ingress_class,
    },
    BuiltIn {
        group: "networking.k8s.io",
        resource: "networkpolicies",
        columns: &[Column::name(), Column::text("Pod-Selector"), AGE],
        cells: |row| vec![row.name(), row.selector("/spec/podSelector", "<none>"), row.age()],
    },
    BuiltIn {
        group: "networking.k8s.io",
        resource: "servicecidrs",
        columns: &[Column::name(), Column::text("CIDRs"), AGE],
        cells: |row| vec![row.name(), strings(row.list("/spec/cidrs")).into(), row.age()],
    },
    BuiltIn {
        group: "networking.k8s.io",
        resource: "ipaddresses",
        columns: &[Column::name(), Column::text("ParentRef")],
        // The real server also writes the age here, without a column for the age.
        cells: |row| vec![row.name(), parent(row).into(), row.age()],
    },
];

fn strings(values: &[Value]) -> String {
    join(values.iter().filter_map(Value::as_str))
}

fn balancer_addresses(row: &Row<'_>) -> String {
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

fn ingress_class(row: &Row<'_>) -> Vec<Value> {
    let mut name = row.str("/metadata/name").to_owned();
    if row.str("/metadata/annotations/ingressclass.kubernetes.io~1is-default-class") == "true" {
        name += " (default)";
    }
    let parameters = row.value("/spec/parameters").map_or_else(
        || "<none>".to_owned(),
        |parameters| {
            let group = text(parameters, "apiGroup");
            let dot = if group.is_empty() { "" } else { "." };
            format!("{}{dot}{group}/{}", text(parameters, "kind"), text(parameters, "name"))
        },
    );
    vec![name.into(), row.text("/spec/controller"), parameters.into(), row.age()]
}

fn parent(row: &Row<'_>) -> String {
    let Some(parent) = row.value("/spec/parentRef") else { return "<none>".to_owned() };
    let (group, namespace) = (text(parent, "group"), text(parent, "namespace"));
    let mut out = text(parent, "resource").to_lowercase();
    if !group.is_empty() {
        out = format!("{out}.{}", group.to_lowercase());
    }
    if !namespace.is_empty() {
        out = format!("{out}/{namespace}");
    }
    format!("{out}/{}", text(parent, "name"))
}
