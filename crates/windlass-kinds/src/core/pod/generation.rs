//! The generations that the kubelet has observed.

use std::collections::{HashMap, VecDeque};

use serde_json::{Map, Value};

use crate::json::{default_number, int_at, items_mut, list_at, text};

const FIELD: &str = "observedGeneration";

/// Keeps the observed generations that a write of the status leaves out. A condition has the generation of the old condition
/// with the same type; of several conditions with one type, in the same order.
pub(super) fn keep_observed(status: &mut Map<String, Value>, old: &Value) {
    let keep = |fields: &mut Map<String, Value>, generation: i64| {
        if generation != 0 {
            default_number(fields, FIELD, generation);
        }
    };
    keep(status, int_at(old, "/status/observedGeneration").unwrap_or_default());
    let mut known: HashMap<&str, VecDeque<i64>> = HashMap::new();
    for condition in list_at(old, "/status/conditions") {
        let generation = condition.get(FIELD).and_then(Value::as_i64).unwrap_or_default();
        known.entry(text(condition, "type")).or_default().push_back(generation);
    }
    for condition in items_mut(status, "conditions") {
        let kind = condition.get("type").and_then(Value::as_str).unwrap_or_default();
        let generation = known.get_mut(kind).and_then(VecDeque::pop_front).unwrap_or_default();
        keep(condition, generation);
    }
}
