//! Defaults.

use serde_json::{Map, Value, json};

use super::Autoscalers;
use crate::json::{default, entry_mut, spec_mut, text};
use crate::kind::Defaults;

impl Defaults for Autoscalers {
    fn default(&self, object: &mut Value) {
        let version = text(object, "apiVersion").to_owned();
        let spec = spec_mut(object);
        default_metric(spec, &version);
        if let Some(behavior) = entry_mut(spec, "behavior") {
            default_behavior(behavior);
        }
    }
}

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
