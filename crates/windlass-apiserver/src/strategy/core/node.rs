//! Nodes.

use serde_json::{Map, Value, json};
use windlass_schema::FieldError;

use crate::strategy::checks::enumerated;
use crate::strategy::fields::{list_at, object_mut, spec_mut, text, text_at};
use crate::strategy::{Facts, Strategy, StrategyContext};
use crate::wire::{ApiError, names};

const NODES: Facts = Facts { selectable: &[("spec.unschedulable", "/spec/unschedulable")], ..Facts::DATA };

pub(super) struct Nodes;

const NOT_READY: &str = "node.kubernetes.io/not-ready";

/// Sets the allocatable resources to the capacity.
fn default_allocatable(object: &mut Value) {
    if let Some(status) = object_mut(object, "status")
        && !status.contains_key("allocatable")
        && let Some(capacity) = status.get("capacity").cloned()
    {
        status.insert("allocatable".to_owned(), capacity);
    }
}

/// Returns whether a text is a CIDR.
fn is_range(text: &str) -> bool {
    let Some((address, bits)) = text.split_once('/') else { return false };
    let most = match address.parse::<std::net::IpAddr>() {
        Ok(address) if address.is_ipv4() => 32,
        Ok(_) => 128,
        Err(_) => return false,
    };
    bits.parse::<u8>().is_ok_and(|bits| bits <= most)
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

impl Strategy for Nodes {
    fn facts(&self) -> &'static Facts {
        &NODES
    }

    fn default(&self, object: &mut Value) {
        mirror_range(spec_mut(object));
        default_allocatable(object);
    }

    fn admit(
        &self,
        _cx: &StrategyContext<'_>,
        object: &mut Value,
        old: Option<&Value>,
    ) -> Result<(), ApiError> {
        if old.is_some() {
            return Ok(());
        }
        let taints = spec_mut(object).entry("taints").or_insert_with(|| json!([]));
        if let Some(taints) = taints.as_array_mut()
            && !taints.iter().any(|taint| text(taint, "key") == NOT_READY)
        {
            // No pod is scheduled to a node before the node is ready.
            taints.push(json!({"key": NOT_READY, "effect": "NoSchedule"}));
        }
        Ok(())
    }

    fn prepare_create(&self, _cx: &StrategyContext<'_>, object: &mut Value) -> Result<(), ApiError> {
        spec_mut(object).remove("configSource");
        Ok(())
    }

    fn prepare_update(
        &self,
        _cx: &StrategyContext<'_>,
        object: &mut Value,
        _old: &Value,
    ) -> Result<(), ApiError> {
        spec_mut(object).remove("configSource");
        Ok(())
    }

    fn validate_change(&self, object: &Value, old: &Value) -> Vec<FieldError> {
        let mut errors = Vec::new();
        let (new, before) = (list_at(object, "/spec/podCIDRs"), list_at(old, "/spec/podCIDRs"));
        if !before.is_empty() && new != before {
            let detail = "node updates may not change podCIDR except from \"\" to valid";
            errors.push(FieldError::forbidden("spec.podCIDRs", detail));
        }
        let (new, before) = (text_at(object, "/spec/providerID"), text_at(old, "/spec/providerID"));
        if !before.is_empty() && new != before {
            let detail = "node updates may not change providerID except from \"\" to valid";
            errors.push(FieldError::forbidden("spec.providerID", detail));
        }
        errors
    }

    fn validate(&self, object: &Value) -> Vec<FieldError> {
        let mut errors = Vec::new();
        for (index, taint) in list_at(object, "/spec/taints").iter().enumerate() {
            let path = format!("metadata.taints[{index}]");
            let key = text(taint, "key");
            let problems = names::label_key(key);
            errors.extend(
                problems.into_iter().map(|text| FieldError::invalid(format!("{path}.key"), key, text)),
            );
            let known = ["NoSchedule", "PreferNoSchedule", "NoExecute"];
            errors.extend(enumerated(&format!("{path}.effect"), text(taint, "effect"), &known));
        }
        for (index, range) in list_at(object, "/spec/podCIDRs").iter().filter_map(Value::as_str).enumerate() {
            if !is_range(range) {
                let detail = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)";
                errors.push(FieldError::invalid(format!("spec.podCIDRs[{index}]"), range, detail));
            }
        }
        errors
    }

    fn selectable_value(&self, object: &Value, field: &str) -> String {
        let value = NODES.selectable_value(object, field);
        if field == "spec.unschedulable" && value.is_empty() { "false".to_owned() } else { value }
    }
}
