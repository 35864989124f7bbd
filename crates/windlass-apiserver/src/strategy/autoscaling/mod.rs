//! Horizontal pod autoscalers.

mod validate;
mod version1;

use std::borrow::Cow;

use serde_json::{Map, Value, json};
use windlass_schema::FieldError;

use super::fields::{default, entry_mut, spec_mut, text};
use super::{Facts, FactsOnly, Strategy, StrategyContext};
use crate::wire::ApiError;

pub(super) fn of(resource: &str) -> &'static dyn Strategy {
    match resource {
        "horizontalpodautoscalers" => &Autoscalers,
        _ => &FactsOnly(&Facts::SPEC),
    }
}

const FACTS: Facts = Facts {
    encoding_annotations: &version1::ANNOTATIONS,
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

/// Returns an autoscaler in the version of the rules.
fn newest(object: &Value) -> Cow<'_, Value> {
    if text(object, "apiVersion") != "autoscaling/v1" {
        return Cow::Borrowed(object);
    }
    let mut object = object.clone();
    version1::to_v2(&mut object);
    Cow::Owned(object)
}

impl Strategy for Autoscalers {
    fn facts(&self) -> &'static Facts {
        &FACTS
    }

    fn convert(&self, object: &mut Value, version: &str) {
        match version {
            "v1" => version1::from_v2(object),
            _ => version1::to_v2(object),
        }
    }

    fn validate_create(&self, _cx: &StrategyContext<'_>, object: &Value) -> Vec<FieldError> {
        validate::spec(&newest(object)["spec"], None)
    }

    fn validate_update(&self, cx: &StrategyContext<'_>, object: &Value, old: &Value) -> Vec<FieldError> {
        if cx.subresource == "status" {
            return validate::status(&object["status"]);
        }
        validate::spec(&newest(object)["spec"], Some(&newest(old)["spec"]))
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
