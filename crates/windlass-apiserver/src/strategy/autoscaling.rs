//! Horizontal pod autoscalers.

use serde_json::{Map, Value, json};
use windlass_schema::FieldError;

use super::fields::{default, entry_mut, int_at, list_at, spec_mut, text, text_at};
use super::{Facts, FactsOnly, Strategy, StrategyContext};
use crate::wire::ApiError;

pub(super) fn of(resource: &str) -> &'static dyn Strategy {
    match resource {
        "horizontalpodautoscalers" => &Autoscalers,
        _ => &FactsOnly(&Facts::SPEC),
    }
}

const FACTS: Facts = Facts {
    unenforced: Some("nothing is scaled, because there is no autoscaling controller"),
    ..Facts::DATA
};

struct Autoscalers;

/// Sets the metric that an autoscaler without metrics looks at.
fn default_metric(spec: &mut Map<String, Value>, version: &str) {
    if version == "autoscaling/v1" {
        default(spec, "targetCPUUtilizationPercentage", 80);
    } else if spec.get("metrics").and_then(Value::as_array).is_none_or(Vec::is_empty) {
        spec.insert(
            "metrics".to_owned(),
            json!([{"type": "Resource", "resource": {
                "name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}}]),
        );
    }
}

/// Sets the rules of an autoscaler that has rules for one direction at least.
fn default_behavior(behavior: &mut Map<String, Value>) {
    let percent = json!({"type": "Percent", "value": 100, "periodSeconds": 15});
    let pods = json!({"type": "Pods", "value": 4, "periodSeconds": 15});
    for (direction, policies) in [("scaleUp", json!([pods, percent])), ("scaleDown", json!([percent]))] {
        default(behavior, direction, json!({}));
        let Some(rules) = entry_mut(behavior, direction) else { continue };
        default(rules, "selectPolicy", "Max");
        default(rules, "policies", policies);
        if direction == "scaleUp" {
            default(rules, "stabilizationWindowSeconds", 0);
        }
    }
}

/// Annotations for the fields that `autoscaling/v1` does not have.
const METRICS: &str = "autoscaling.alpha.kubernetes.io/metrics";
const CURRENT_METRICS: &str = "autoscaling.alpha.kubernetes.io/current-metrics";
const CONDITIONS: &str = "autoscaling.alpha.kubernetes.io/conditions";
const BEHAVIOR: &str = "autoscaling.alpha.kubernetes.io/behavior";

fn is_cpu_utilization(metric: &Value) -> bool {
    text_at(metric, "/resource/name") == "cpu"
        && metric.pointer("/resource/target/averageUtilization").is_some()
}

/// Converts to `autoscaling/v1`, which has a field for CPU utilization only. Other metrics become annotations with the
/// JSON of `v2`.
fn autoscaler_to_v1(object: &mut Value) {
    let mut kept = Vec::new();
    if let Some(spec) = super::fields::object_mut(object, "spec") {
        let metrics =
            spec.remove("metrics").and_then(|metrics| metrics.as_array().cloned()).unwrap_or_default();
        let (cpu, others): (Vec<_>, Vec<_>) = metrics.into_iter().partition(is_cpu_utilization);
        if let Some(percent) =
            cpu.first().and_then(|metric| metric.pointer("/resource/target/averageUtilization"))
        {
            spec.insert("targetCPUUtilizationPercentage".to_owned(), percent.clone());
        }
        if !others.is_empty() {
            kept.push((METRICS, Value::Array(others)));
        }
        kept.extend(spec.remove("behavior").map(|behavior| (BEHAVIOR, behavior)));
    }
    if let Some(status) = super::fields::object_mut(object, "status") {
        if let Some(current) = status.remove("currentMetrics").filter(|current| !current.is_null()) {
            let percent = |metric: &&Value| text_at(metric, "/resource/name") == "cpu";
            let cpu = current.as_array().into_iter().flatten().find(percent);
            if let Some(percent) =
                cpu.and_then(|metric| metric.pointer("/resource/current/averageUtilization"))
            {
                status.insert("currentCPUUtilizationPercentage".to_owned(), percent.clone());
            }
            kept.push((CURRENT_METRICS, current));
        }
        kept.extend(status.remove("conditions").map(|conditions| (CONDITIONS, conditions)));
        default(status, "currentReplicas", 0);
    }
    let metadata = crate::meta::metadata_mut(object);
    for (annotation, value) in kept {
        let annotations = metadata.entry("annotations").or_insert_with(|| json!({}));
        if let Some(annotations) = annotations.as_object_mut() {
            annotations.insert(annotation.to_owned(), value.to_string().into());
        }
    }
}

/// Converts from `autoscaling/v1`.
fn autoscaler_to_v2(object: &mut Value) {
    let mut take = |annotation: &str| {
        let annotations = object.pointer_mut("/metadata/annotations")?.as_object_mut()?;
        let text = annotations.remove(annotation)?;
        serde_json::from_str::<Value>(text.as_str()?).ok()
    };
    let (metrics, current) = (take(METRICS), take(CURRENT_METRICS));
    let (conditions, behavior) = (take(CONDITIONS), take(BEHAVIOR));
    if let Some(spec) = super::fields::object_mut(object, "spec") {
        let mut all = metrics.and_then(|metrics| metrics.as_array().cloned()).unwrap_or_default();
        if let Some(percent) = spec.remove("targetCPUUtilizationPercentage") {
            let target = json!({"type": "Utilization", "averageUtilization": percent});
            all.push(json!({"type": "Resource", "resource": {"name": "cpu", "target": target}}));
        }
        spec.insert("metrics".to_owned(), all.into());
        if let Some(behavior) = behavior {
            spec.insert("behavior".to_owned(), behavior);
        }
    }
    if let Some(status) = super::fields::object_mut(object, "status") {
        let percent = status.remove("currentCPUUtilizationPercentage");
        let current = current.or_else(|| {
            let shown = json!({"averageUtilization": percent?, "averageValue": "0"});
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

impl Strategy for Autoscalers {
    fn facts(&self) -> &'static Facts {
        &FACTS
    }

    fn convert(&self, object: &mut Value, version: &str) {
        match version {
            "v1" => autoscaler_to_v1(object),
            _ => autoscaler_to_v2(object),
        }
    }

    fn validate(&self, object: &Value) -> Vec<FieldError> {
        let spec = &object["spec"];
        let mut errors = Vec::new();
        let least = int_at(spec, "/minReplicas").unwrap_or(1);
        let most = int_at(spec, "/maxReplicas").unwrap_or_default();
        if least < 1 {
            let detail = "must be greater than or equal to 1";
            errors.push(FieldError::invalid("spec.minReplicas", least, detail));
        }
        if most == 0 {
            errors.push(FieldError::required("spec.maxReplicas", "must be set and greater than 0"));
        } else if most < 0 {
            let detail = "must be greater than or equal to 1";
            errors.push(FieldError::invalid("spec.maxReplicas", most, detail));
        }
        if most < least && spec.get("minReplicas").is_some_and(Value::is_i64) {
            let detail = "must be greater than or equal to `minReplicas`";
            errors.push(FieldError::invalid("spec.maxReplicas", most, detail));
        }
        for field in ["kind", "name"] {
            if text_at(spec, &format!("/scaleTargetRef/{field}")).is_empty() {
                errors.push(FieldError::required(format!("spec.scaleTargetRef.{field}"), ""));
            }
        }
        let version = text_at(spec, "/scaleTargetRef/apiVersion");
        if version.is_empty() {
            let detail = "apiVersion must specify API group";
            errors.push(FieldError::invalid("spec.scaleTargetRef.apiVersion", version, detail));
        }
        let scales_to_zero = |metric: &Value| matches!(text(metric, "type"), "Object" | "External");
        if least == 0 && !list_at(spec, "/metrics").iter().any(scales_to_zero) {
            let detail =
                "must specify at least one Object or External metric to support scaling to zero replicas";
            errors.push(FieldError::forbidden("spec.metrics", detail));
        }
        errors
    }

    fn default(&self, object: &mut Value) {
        let version = text(object, "apiVersion").to_owned();
        let spec = spec_mut(object);
        default_metric(spec, &version);
        if let Some(behavior) = entry_mut(spec, "behavior") {
            default_behavior(behavior);
        }
    }

    fn prepare_create(&self, cx: &StrategyContext<'_>, object: &mut Value) -> Result<(), ApiError> {
        object["status"] = match cx.version {
            "v1" => json!({"desiredReplicas": 0, "currentReplicas": 0}),
            _ => json!({"desiredReplicas": 0, "currentMetrics": null}),
        };
        Ok(())
    }
}
