//! `autoscaling/v1` has a field for CPU utilization only; annotations have the other fields of an autoscaler.

use serde_json::{Map, Value, json};
use windlass_store::object_meta as meta;

use crate::json::{default, object_mut, text, text_at};

const METRICS: &str = "autoscaling.alpha.kubernetes.io/metrics";
const CURRENT_METRICS: &str = "autoscaling.alpha.kubernetes.io/current-metrics";
const CONDITIONS: &str = "autoscaling.alpha.kubernetes.io/conditions";
const BEHAVIOR: &str = "autoscaling.alpha.kubernetes.io/behavior";
/// The annotations that hold what version 1 has no fields for.
pub(super) const ANNOTATIONS: [&str; 4] = [METRICS, CURRENT_METRICS, CONDITIONS, BEHAVIOR];

/// A field of `v1`, the field of `v2`, and true if the field is written even when unset.
type Field = (&'static str, &'static str, bool);

const TARGET: Field = ("target", "/describedObject", true);
const NAME: Field = ("name", "/name", true);
const METRIC: Field = ("metricName", "/metric/name", true);
const SELECTOR: Field = ("selector", "/metric/selector", false);
const METRIC_SELECTOR: Field = ("metricSelector", "/metric/selector", false);
const CONTAINER: Field = ("container", "/container", true);

/// The fields of each type of metric, in the order of Go.
const SPECS: [(&str, &str, &[Field]); 5] = [
    (
        "Object",
        "object",
        &[
            TARGET,
            METRIC,
            ("targetValue", "/target/value", true),
            SELECTOR,
            ("averageValue", "/target/averageValue", false),
        ],
    ),
    ("Pods", "pods", &[METRIC, ("targetAverageValue", "/target/averageValue", true), SELECTOR]),
    (
        "Resource",
        "resource",
        &[
            NAME,
            ("targetAverageUtilization", "/target/averageUtilization", false),
            ("targetAverageValue", "/target/averageValue", false),
        ],
    ),
    (
        "ContainerResource",
        "containerResource",
        &[
            NAME,
            ("targetAverageUtilization", "/target/averageUtilization", false),
            ("targetAverageValue", "/target/averageValue", false),
            CONTAINER,
        ],
    ),
    (
        "External",
        "external",
        &[
            METRIC,
            METRIC_SELECTOR,
            ("targetValue", "/target/value", false),
            ("targetAverageValue", "/target/averageValue", false),
        ],
    ),
];

const STATUSES: [(&str, &str, &[Field]); 5] = [
    (
        "Object",
        "object",
        &[
            TARGET,
            METRIC,
            ("currentValue", "/current/value", true),
            SELECTOR,
            ("averageValue", "/current/averageValue", false),
        ],
    ),
    ("Pods", "pods", &[METRIC, ("currentAverageValue", "/current/averageValue", true), SELECTOR]),
    (
        "Resource",
        "resource",
        &[
            NAME,
            ("currentAverageUtilization", "/current/averageUtilization", false),
            ("currentAverageValue", "/current/averageValue", true),
        ],
    ),
    (
        "ContainerResource",
        "containerResource",
        &[
            NAME,
            ("currentAverageUtilization", "/current/averageUtilization", false),
            ("currentAverageValue", "/current/averageValue", true),
            CONTAINER,
        ],
    ),
    (
        "External",
        "external",
        &[
            METRIC,
            METRIC_SELECTOR,
            ("currentValue", "/current/value", true),
            ("currentAverageValue", "/current/averageValue", false),
        ],
    ),
];

fn is_cpu_utilization(metric: &Value) -> bool {
    text_at(metric, "/resource/name") == "cpu"
        && metric.pointer("/resource/target/averageUtilization").is_some_and(Value::is_number)
}

/// Converts an autoscaler of version 2 to `version`, or to version 2.
pub(super) fn convert(object: &mut Value, version: &str) {
    match version {
        "v1" => from_v2(object),
        _ => to_v2(object),
    }
}

/// Converts to `autoscaling/v1`.
fn from_v2(object: &mut Value) {
    let mut kept = Vec::new();
    if let Some(spec) = object_mut(object, "spec") {
        let metrics =
            spec.remove("metrics").and_then(|metrics| metrics.as_array().cloned()).unwrap_or_default();
        let (cpu, others): (Vec<_>, Vec<_>) = metrics.into_iter().partition(is_cpu_utilization);
        if let Some(percent) =
            cpu.first().and_then(|metric| metric.pointer("/resource/target/averageUtilization"))
        {
            spec.insert("targetCPUUtilizationPercentage".to_owned(), percent.clone());
        }
        if !others.is_empty() {
            kept.push((METRICS, metrics_text(&others, &SPECS)));
        }
        kept.extend(spec.remove("behavior").map(|behavior| (BEHAVIOR, behavior_text(&behavior))));
    }
    if let Some(status) = object_mut(object, "status") {
        let current = status.remove("currentMetrics");
        if let Some(current) = current.as_ref().and_then(Value::as_array).filter(|list| !list.is_empty()) {
            let cpu = current.iter().find(|metric| text_at(metric, "/resource/name") == "cpu");
            if let Some(percent) =
                cpu.and_then(|metric| metric.pointer("/resource/current/averageUtilization"))
            {
                status.insert("currentCPUUtilizationPercentage".to_owned(), percent.clone());
            }
            kept.push((CURRENT_METRICS, metrics_text(current, &STATUSES)));
        }
        let conditions = status.remove("conditions");
        if let Some(list) = conditions.as_ref().and_then(Value::as_array).filter(|list| !list.is_empty()) {
            kept.push((CONDITIONS, conditions_text(list)));
        }
        default(status, "currentReplicas", 0);
    }
    let metadata = meta::metadata_mut(object);
    for (annotation, text) in kept {
        let annotations = metadata.entry("annotations").or_insert_with(|| json!({}));
        if let Some(annotations) = annotations.as_object_mut() {
            annotations.insert(annotation.to_owned(), text.into());
        }
    }
}

/// Members in the given order.
fn ordered(members: impl IntoIterator<Item = (&'static str, String)>) -> String {
    let members: Vec<String> =
        members.into_iter().map(|(name, value)| format!("\"{name}\":{value}")).collect();
    format!("{{{}}}", members.join(","))
}

fn metrics_text(metrics: &[Value], types: &[(&str, &'static str, &'static [Field])]) -> String {
    let one = |metric: &Value| {
        let mut members = vec![("type", json!(text(metric, "type")).to_string())];
        for (_, source, fields) in types {
            let Some(found) = metric.get(*source).filter(|found| found.is_object()) else { continue };
            let fields = fields.iter().filter_map(|&(name, pointer, is_always)| {
                let value = found.pointer(pointer).filter(|value| !value.is_null());
                let shown = match (name, value) {
                    ("target", Some(value)) => in_order(value, &["kind", "name", "apiVersion"]),
                    ("selector" | "metricSelector", Some(value)) => {
                        in_order(value, &["matchLabels", "matchExpressions"])
                    }
                    (_, Some(value)) => value.to_string(),
                    (_, None) if !is_always => return None,
                    (name, None) if name.ends_with("alue") => "\"0\"".to_owned(),
                    (_, None) => "\"\"".to_owned(),
                };
                Some((name, shown))
            });
            members.push((*source, ordered(fields)));
        }
        ordered(members)
    };
    let metrics: Vec<String> = metrics.iter().map(one).collect();
    format!("[{}]", metrics.join(","))
}

/// Returns the fields of an object in the given order.
fn in_order(object: &Value, order: &[&'static str]) -> String {
    let present = |name: &&'static str| Some((*name, object.get(*name)?.to_string()));
    ordered(order.iter().filter_map(present))
}

fn conditions_text(conditions: &[Value]) -> String {
    let one = |condition: &Value| {
        let time = condition.get("lastTransitionTime").cloned().unwrap_or_default();
        let texts = ["type", "status"].map(|name| (name, json!(text(condition, name)).to_string()));
        let others = ["reason", "message"].into_iter().filter_map(|name| {
            let found = text(condition, name);
            (!found.is_empty()).then(|| (name, json!(found).to_string()))
        });
        ordered(texts.into_iter().chain([("lastTransitionTime", time.to_string())]).chain(others))
    };
    let conditions: Vec<String> = conditions.iter().map(one).collect();
    format!("[{}]", conditions.join(","))
}

/// Returns the rules in Go's printed form of the type.
fn behavior_text(behavior: &Value) -> String {
    let field = |object: &Value, name: &str| object.get(name).cloned().unwrap_or_default().to_string();
    let policy = |policy: &Value| {
        ordered([
            ("Type", field(policy, "type")),
            ("Value", field(policy, "value")),
            ("PeriodSeconds", field(policy, "periodSeconds")),
        ])
    };
    let rules = |direction: &str| {
        let Some(rules) = behavior.get(direction).filter(|rules| rules.is_object()) else {
            return "null".to_owned();
        };
        let policies = rules.get("policies").and_then(Value::as_array);
        let policies = policies.map_or_else(
            || "null".to_owned(),
            |policies| format!("[{}]", policies.iter().map(policy).collect::<Vec<_>>().join(",")),
        );
        ordered([
            ("StabilizationWindowSeconds", field(rules, "stabilizationWindowSeconds")),
            ("SelectPolicy", field(rules, "selectPolicy")),
            ("Policies", policies),
            ("Tolerance", field(rules, "tolerance")),
        ])
    };
    ordered([("ScaleUp", rules("scaleUp")), ("ScaleDown", rules("scaleDown"))])
}

/// Converts from `autoscaling/v1`.
pub(super) fn to_v2(object: &mut Value) {
    let mut take = |annotation: &str| {
        let annotations = object.pointer_mut("/metadata/annotations")?.as_object_mut()?;
        let text = annotations.remove(annotation)?;
        let is_last = annotations.is_empty();
        if is_last {
            meta::set(object, "annotations", None);
        }
        serde_json::from_str::<Value>(text.as_str()?).ok()
    };
    let (metrics, current) = (take(METRICS), take(CURRENT_METRICS));
    let (conditions, behavior) = (take(CONDITIONS), take(BEHAVIOR));
    if let Some(spec) = object_mut(object, "spec") {
        let mut all = metrics.as_ref().map(|metrics| metrics_of(metrics, &SPECS)).unwrap_or_default();
        if let Some(percent) = spec.remove("targetCPUUtilizationPercentage") {
            let target = json!({"type": "Utilization", "averageUtilization": percent});
            all.push(json!({"type": "Resource", "resource": {"name": "cpu", "target": target}}));
        }
        spec.insert("metrics".to_owned(), all.into());
        if let Some(behavior) = behavior.filter(Value::is_object) {
            spec.insert("behavior".to_owned(), with_small_names(&behavior));
        }
    }
    if let Some(status) = object_mut(object, "status") {
        let percent = status.remove("currentCPUUtilizationPercentage");
        let current = current.map(|current| Value::from(metrics_of(&current, &STATUSES))).or_else(|| {
            let shown = json!({"averageUtilization": percent?});
            Some(json!([{"type": "Resource", "resource": {"name": "cpu", "current": shown}}]))
        });
        status.insert("currentMetrics".to_owned(), current.unwrap_or(Value::Null));
        // The newer version omits it at zero.
        if status.get("currentReplicas") == Some(&json!(0)) {
            status.remove("currentReplicas");
        }
        if let Some(conditions) = conditions {
            status.insert("conditions".to_owned(), conditions);
        }
    }
}

fn metrics_of(metrics: &Value, types: &[(&str, &str, &[Field])]) -> Vec<Value> {
    let one = |metric: &Value| {
        let mut made = json!({"type": text(metric, "type")});
        for (name, source, fields) in types {
            let Some(found) = metric.get(*source).filter(|found| found.is_object()) else { continue };
            let mut fresh = Map::new();
            for (name, pointer, _) in *fields {
                let Some(value) = found.get(*name).filter(|value| !value.is_null()) else { continue };
                put(&mut fresh, pointer, value.clone());
            }
            if fresh.contains_key("target") || fields.iter().any(|(_, to, _)| to.starts_with("/target/")) {
                settle_target(name, &mut fresh);
            }
            made[*source] = fresh.into();
        }
        made
    };
    metrics.as_array().into_iter().flatten().map(one).collect()
}

/// Puts a value at a pointer of at most two steps.
fn put(object: &mut Map<String, Value>, pointer: &str, value: Value) {
    match pointer.trim_start_matches('/').split_once('/') {
        None => _ = object.insert(pointer.trim_start_matches('/').to_owned(), value),
        Some((outer, inner)) => object.entry(outer).or_insert_with(|| json!({}))[inner] = value,
    }
}

/// Sets the type of the target of a metric, which `v1` does not have.
fn settle_target(metric: &str, source: &mut Map<String, Value>) {
    let target = source.entry("target").or_insert_with(|| json!({}));
    let has = |field: &str| target.get(field).is_some();
    let kind = match metric {
        "Object" if !has("averageValue") => "Value",
        "External" if has("value") => "Value",
        "Resource" | "ContainerResource" if has("averageUtilization") => "Utilization",
        _ => "AverageValue",
    };
    let is_unset = metric == "Object" && has("averageValue") && target["value"] == "0";
    target["type"] = kind.into();
    if is_unset && let Some(target) = target.as_object_mut() {
        target.remove("value");
    }
}

/// Rules with the field names of JSON, without those that are null.
fn with_small_names(value: &Value) -> Value {
    match value {
        Value::Object(members) => members
            .iter()
            .filter(|(_, value)| !value.is_null())
            .map(|(name, value)| {
                let mut letters = name.chars();
                let first = letters.next().map(|letter| letter.to_ascii_lowercase());
                (first.into_iter().chain(letters).collect::<String>(), with_small_names(value))
            })
            .collect(),
        Value::Array(items) => items.iter().map(with_small_names).collect(),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_survive_in_annotations() {
        let newest = json!({
            "spec": {
                "metrics": [{"type": "Pods", "pods": {"metric": {"name": "a"},
                    "target": {"type": "AverageValue", "averageValue": "5"}}}],
                "behavior": {"scaleUp": {"selectPolicy": "Max", "policies": [
                    {"type": "Pods", "value": 4, "periodSeconds": 15}]}},
            },
            "status": {"currentMetrics": [{"type": "Resource", "resource": {"name": "memory",
                "current": {"averageValue": "1"}}}]},
            "metadata": {},
        });
        let mut object = newest.clone();
        from_v2(&mut object);
        let annotations = &object["metadata"]["annotations"];
        assert_eq!(
            annotations[METRICS],
            r#"[{"type":"Pods","pods":{"metricName":"a","targetAverageValue":"5"}}]"#
        );
        assert_eq!(
            annotations[CURRENT_METRICS],
            r#"[{"type":"Resource","resource":{"name":"memory","currentAverageValue":"1"}}]"#
        );
        assert_eq!(
            annotations[BEHAVIOR],
            r#"{"ScaleUp":{"StabilizationWindowSeconds":null,"SelectPolicy":"Max","Policies":[{"Type":"Pods","Value":4,"PeriodSeconds":15}],"Tolerance":null},"ScaleDown":null}"#
        );
        to_v2(&mut object);
        assert_eq!(object, newest);
    }
}
