//! `matchLabelKeys` and `mismatchLabelKeys`: keys whose values are those of the pod.

use serde_json::{Map, Value, json};

use crate::json::{entry_mut, items_mut, map_at, spec_mut};

/// The most expressions that are added to the selectors of a pod.
const MOST_EXPRESSIONS: usize = 10_000;
/// The longest value of a label, in bytes. Validation refuses a pod with a longer value.
const MOST_BYTES: usize = 63;

/// Adds an expression for each key to the selectors of the affinity and of the topology spread constraints of a new pod.
pub(super) fn merge(pod: &mut Value) {
    let labels = map_at(pod, "/metadata/labels").cloned().unwrap_or_default();
    let mut merge = Merge { labels: &labels, left: MOST_EXPRESSIONS };
    let spec = spec_mut(pod);
    if let Some(affinity) = entry_mut(spec, "affinity") {
        for kind in ["podAffinity", "podAntiAffinity"] {
            let Some(affinity) = entry_mut(affinity, kind) else { continue };
            for term in items_mut(affinity, "preferredDuringSchedulingIgnoredDuringExecution") {
                entry_mut(term, "podAffinityTerm").into_iter().for_each(|term| merge.add_to_term(term));
            }
            for term in items_mut(affinity, "requiredDuringSchedulingIgnoredDuringExecution") {
                merge.add_to_term(term);
            }
        }
    }
    for constraint in items_mut(spec, "topologySpreadConstraints") {
        merge.add_keys(constraint, "matchLabelKeys", "In");
    }
}

struct Merge<'a> {
    labels: &'a Map<String, Value>,
    /// The expressions that may still be added.
    left: usize,
}

impl Merge<'_> {
    fn add_to_term(&mut self, term: &mut Map<String, Value>) {
        self.add_keys(term, "matchLabelKeys", "In");
        self.add_keys(term, "mismatchLabelKeys", "NotIn");
    }

    /// Adds an expression for each key in a field to the selector of `term`. A term without a selector matches no pod.
    fn add_keys(&mut self, term: &mut Map<String, Value>, field: &str, operator: &str) {
        let keys = term.get(field).and_then(Value::as_array).into_iter().flatten();
        let expressions = keys.filter_map(|key| {
            let key = key.as_str()?;
            let value = self.labels.get(key)?.as_str().filter(|value| value.len() <= MOST_BYTES)?;
            Some(json!({"key": key, "operator": operator, "values": [value]}))
        });
        let expressions: Vec<Value> = expressions.take(self.left).collect();
        let Some(selector) = entry_mut(term, "labelSelector").filter(|_| !expressions.is_empty()) else {
            return;
        };
        self.left -= expressions.len();
        let slot = selector.entry("matchExpressions").or_insert(Value::Null);
        if slot.is_null() {
            *slot = json!([]);
        }
        slot.as_array_mut().into_iter().for_each(|list| list.extend(expressions.iter().cloned()));
    }
}
