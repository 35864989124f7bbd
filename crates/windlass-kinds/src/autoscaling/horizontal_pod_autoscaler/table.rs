//! The columns of `kubectl get`.

use serde_json::Value;

use crate::table::Table;
use crate::table::column::{AGE, Column};
use crate::table::row::{Row, scalar, text, with_more};

/// The columns of horizontalpodautoscalers.
pub(super) static TABLE: Table = Table::new(HPA_COLUMNS, autoscaler);

const HPA_COLUMNS: &[Column] = &[
    Column::name(),
    Column::text("Reference"),
    Column::text("Targets"),
    Column::text("MinPods"),
    Column::text("MaxPods"),
    Column::text("Replicas"),
    AGE,
];

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
