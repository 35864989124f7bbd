//! Defaults.

use serde_json::{Map, Value, json};

use super::Nodes;
use crate::json::{object_mut, spec_mut};
use crate::kind::Defaults;

impl Defaults for Nodes {
    fn default(&self, object: &mut Value) {
        let spec = spec_mut(object);
        // A feature that is off by default.
        spec.remove("podPreemptionPolicy");
        mirror_range(spec);
        default_allocatable(object);
    }
}

/// Sets the allocatable resources to the capacity.
fn default_allocatable(object: &mut Value) {
    if let Some(status) = object_mut(object, "status")
        && !status.contains_key("allocatable")
        && let Some(capacity) = status.get("capacity").cloned()
    {
        status.insert("allocatable".to_owned(), capacity);
    }
}

/// Makes `podCIDR` the first of `podCIDRs`. Where the two differ, `podCIDR` wins.
fn mirror_range(spec: &mut Map<String, Value>) {
    let single = spec.get("podCIDR").and_then(Value::as_str).filter(|range| !range.is_empty());
    if let Some(single) = single.map(str::to_owned) {
        if spec.get("podCIDRs").and_then(|list| list.get(0)).is_none_or(|first| *first != *single) {
            spec.insert("podCIDRs".to_owned(), json!([single]));
        }
    } else if let Some(first) = spec.get("podCIDRs").and_then(|list| list.get(0)).cloned() {
        spec.insert("podCIDR".to_owned(), first);
    }
}
