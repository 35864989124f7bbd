//! Limit ranges.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};
use windlass_schema::FieldError;

use super::quantity;
use crate::strategy::fields::{items_mut, list_at, map_at, spec_mut, text};
use crate::strategy::{Facts, Strategy};

const FACTS: Facts = Facts { create_on_update: true, ..Facts::DATA };

pub(super) struct LimitRanges;

impl Strategy for LimitRanges {
    fn facts(&self) -> &'static Facts {
        &FACTS
    }

    fn validate(&self, object: &Value) -> Vec<FieldError> {
        let mut errors = Vec::new();
        let mut types = BTreeSet::new();
        for (index, limit) in list_at(object, "/spec/limits").iter().enumerate() {
            let kind = text(limit, "type");
            if !types.insert(kind) {
                errors.push(FieldError::duplicate(format!("spec.limits[{index}].type"), kind));
            }
            validate_limit(limit, &format!("spec.limits[{index}]"), &mut errors);
        }
        errors
    }

    fn default(&self, object: &mut Value) {
        default_limits(spec_mut(object));
    }
}

/// Sets the default limits of containers to their maxima, and their default requests to the default limits or else to
/// the minima.
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

/// A rule that one amount is not above another: the field of the error, the field whose value it shows, and both
/// fields with their names in the message.
type Order = (&'static str, &'static str, (&'static str, &'static str), (&'static str, &'static str));

const ORDERS: [Order; 6] = [
    ("min", "min", ("min", "min"), ("max", "max")),
    ("defaultRequest", "defaultRequest", ("min", "min"), ("defaultRequest", "default request")),
    ("defaultRequest", "defaultRequest", ("defaultRequest", "default request"), ("max", "max")),
    ("defaultRequest", "defaultRequest", ("defaultRequest", "default request"), ("default", "default limit")),
    ("default", "min", ("min", "min"), ("default", "default")),
    ("default", "default", ("default", "default"), ("max", "max")),
];

/// Validates the order of the amounts of each resource.
fn validate_limit(limit: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let mut resources = BTreeSet::new();
    for map in ["min", "max", "default", "defaultRequest"] {
        resources.extend(map_at(limit, &format!("/{map}")).into_iter().flat_map(Map::keys));
    }
    for resource in resources {
        let amount =
            |map: &str| map_at(limit, &format!("/{map}")).and_then(|found| quantity(found.get(resource)?));
        for (field, shown, low, high) in ORDERS {
            let (Some(least), Some(most)) = (amount(low.0), amount(high.0)) else { continue };
            if least > most {
                let value = amount(shown).map(|value| value.to_string()).unwrap_or_default();
                let detail = format!("{} value {least} is greater than {} value {most}", low.1, high.1);
                errors.push(FieldError::invalid(format!("{path}.{field}[{resource}]"), value, detail));
            }
        }
    }
}
