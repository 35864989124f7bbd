//! Tables of RBAC, disruption budgets, autoscalers and priority classes.

use serde_json::Value;

use super::BuiltIn;
use super::column::{AGE, Column};
use super::row::{Row, scalar, text, with_more};

const BINDING_COLUMNS: &[Column] = &[
    Column::name(),
    Column::text("Role"),
    AGE,
    Column::wide("Users"),
    Column::wide("Groups"),
    Column::wide("ServiceAccounts"),
];

const HPA_COLUMNS: &[Column] = &[
    Column::name(),
    Column::text("Reference"),
    Column::text("Targets"),
    Column::text("MinPods"),
    Column::text("MaxPods"),
    Column::text("Replicas"),
    AGE,
];

pub(super) const KINDS: &[BuiltIn] = &[
    BuiltIn {
        group: "rbac.authorization.k8s.io",
        resource: "rolebindings",
        columns: BINDING_COLUMNS,
        cells: binding,
    },
    BuiltIn {
        group: "rbac.authorization.k8s.io",
        resource: "clusterrolebindings",
        columns: BINDING_COLUMNS,
        cells: binding,
    },
    BuiltIn {
        group: "policy",
        resource: "poddisruptionbudgets",
        columns: &[
            Column::name(),
            Column::text("Min Available"),
            Column::text("Max Unavailable"),
            Column::integer("Allowed Disruptions"),
            AGE,
        ],
        cells: |row| {
            vec![
                row.name(),
                row.scalar_or("/spec/minAvailable", "N/A"),
                row.scalar_or("/spec/maxUnavailable", "N/A"),
                row.number("/status/disruptionsAllowed"),
                row.age(),
            ]
        },
    },
    BuiltIn {
        group: "autoscaling",
        resource: "horizontalpodautoscalers",
        columns: HPA_COLUMNS,
        cells: autoscaler,
    },
    BuiltIn {
        group: "autoscaling",
        resource: "scales",
        columns: &[Column::text("Name"), Column::integer("Desired"), Column::integer("Available"), AGE],
        cells: |row| {
            vec![row.name(), row.number("/spec/replicas"), row.number("/status/replicas"), row.age()]
        },
    },
];

fn binding(row: &Row<'_>) -> Vec<Value> {
    let subjects = |kind: &str| {
        let names =
            row.list("/subjects").iter().filter(|subject| text(subject, "kind") == kind).map(|subject| {
                match text(subject, "namespace") {
                    _ if kind != "ServiceAccount" => text(subject, "name").to_owned(),
                    namespace => format!("{namespace}/{}", text(subject, "name")),
                }
            });
        Value::from(names.collect::<Vec<_>>().join(", "))
    };
    vec![
        row.name(),
        format!("{}/{}", row.str("/roleRef/kind"), row.str("/roleRef/name")).into(),
        row.age(),
        subjects("User"),
        subjects("Group"),
        subjects("ServiceAccount"),
    ]
}

fn autoscaler(row: &Row<'_>) -> Vec<Value> {
    let target = row.value("/spec/scaleTargetRef").unwrap_or(&Value::Null);
    vec![
        row.name(),
        format!("{}/{}", text(target, "kind"), text(target, "name")).into(),
        targets(row).into(),
        row.scalar_or("/spec/minReplicas", "<unset>"),
        row.number("/spec/maxReplicas"),
        row.number("/status/currentReplicas"),
        row.age(),
    ]
}

fn targets(row: &Row<'_>) -> String {
    // autoscaling/v1 has separate fields for the only metric of that version.
    if let Some(percent) = row.value("/spec/targetCPUUtilizationPercentage").and_then(Value::as_i64) {
        let current = row.value("/status/currentCPUUtilizationPercentage").and_then(Value::as_i64);
        let current = current.map_or_else(|| "<unknown>".to_owned(), |percent| format!("{percent}%"));
        return format!("cpu: {current}/{percent}%");
    }
    let metrics = row.list("/spec/metrics");
    if metrics.is_empty() {
        return "<none>".to_owned();
    }
    let statuses = row.list("/status/currentMetrics");
    let texts = metrics.iter().enumerate().map(|(index, metric)| target(metric, statuses.get(index)));
    with_more(texts.collect(), 2, ", ")
}

fn target(metric: &Value, status: Option<&Value>) -> String {
    let (section, named) = match text(metric, "type") {
        "External" => ("external", false),
        "Pods" => ("pods", false),
        "Object" => ("object", false),
        "Resource" => ("resource", true),
        "ContainerResource" => ("containerResource", true),
        _ => return "<unknown type>".to_owned(),
    };
    let wanted = |field: &str| metric.pointer(&format!("/{section}/target/{field}"));
    let current = |field: &str| {
        status
            .and_then(|status| status.pointer(&format!("/{section}/current/{field}")))
            .map_or_else(|| "<unknown>".to_owned(), scalar)
    };
    let percent = |text: String| if text.starts_with('<') { text } else { format!("{text}%") };
    let name = metric.pointer(&format!("/{section}/name")).and_then(Value::as_str).unwrap_or_default();
    match (wanted("averageValue"), named) {
        (Some(value), true) => format!("{name}: {}/{}", current("averageValue"), scalar(value)),
        (Some(value), false) if section == "pods" => format!("{}/{}", current("averageValue"), scalar(value)),
        (Some(value), false) => format!("{}/{} (avg)", current("averageValue"), scalar(value)),
        (None, true) => {
            let wanted = wanted("averageUtilization")
                .map_or_else(|| "<auto>".to_owned(), |value| percent(scalar(value)));
            format!("{name}: {}/{wanted}", percent(current("averageUtilization")))
        }
        (None, false) => {
            format!("{}/{}", current("value"), wanted("value").map(scalar).unwrap_or_default())
        }
    }
}
