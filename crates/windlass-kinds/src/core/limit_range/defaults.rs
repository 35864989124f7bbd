//! Defaults.

use serde_json::{Map, Value, json};

use super::LimitRanges;
use crate::json::{items_mut, spec_mut};
use crate::kind::Defaults;

impl Defaults for LimitRanges {
    fn default(&self, object: &mut Value) {
        default_limits(spec_mut(object));
    }
}

/// Sets the default limits of containers to the maxima, and the default requests to the default limits or
/// else to the minima.
fn default_limits(spec: &mut Map<String, Value>) {
    for limit in items_mut(spec, "limits") {
        if limit.get("type").and_then(Value::as_str) != Some("Container") {
            continue;
        }
        for (map, from) in [("default", "max"), ("defaultRequest", "default"), ("defaultRequest", "min")] {
            let Some(source) = limit.get(from).and_then(Value::as_object).cloned() else { continue };
            let target = limit.entry(map).or_insert_with(|| json!({}));
            if let Some(target) = target.as_object_mut() {
                for (resource, quantity) in source {
                    target.entry(resource).or_insert(quantity);
                }
            }
        }
    }
}
