//! Aggregated cluster roles: a role with an `aggregationRule` has the rules of the selected roles.

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::{Value, json};
use windlass_kinds::resources::CLUSTER_ROLES;

use crate::meta;
use crate::resource::Resource;
use crate::state::State;
use crate::store::{ResourceId, Stored, Write};
use crate::wire::LabelSelector;

/// The largest number of rounds of aggregation after a write: roles may aggregate each other.
const MAX_ROUNDS: usize = 16;

/// Fills in the rules of the aggregated roles among `objects`. Each object has a resource.
pub(crate) fn aggregate(objects: &mut [(&'static str, Value)]) {
    for _ in 0..MAX_ROUNDS {
        let roles: Vec<Value> = objects
            .iter()
            .filter(|(resource, _)| **resource == *CLUSTER_ROLES.resource)
            .map(|(_, role)| role.clone())
            .collect();
        let mut changed = false;
        for (_, role) in objects.iter_mut() {
            let Some(rules) = aggregated(role, &roles) else { continue };
            changed |= role["rules"] != rules;
            role["rules"] = rules;
        }
        if !changed {
            return;
        }
    }
}

/// Returns the rules of an aggregated role. Returns `None` for other roles.
fn aggregated(role: &Value, roles: &[Value]) -> Option<Value> {
    let selectors = role.get("aggregationRule")?.get("clusterRoleSelectors");
    let mut rules: Vec<&Value> = Vec::new();
    let mut known: HashSet<&Value> = HashSet::new();
    for selector in selectors.and_then(Value::as_array).into_iter().flatten() {
        let selector = LabelSelector::from_object(selector);
        for other in roles {
            if meta::name(other) == meta::name(role) || !selector.matches(meta::labels(other)) {
                continue;
            }
            for rule in other.get("rules").and_then(Value::as_array).into_iter().flatten() {
                if known.insert(rule) {
                    rules.push(rule);
                }
            }
        }
    }
    Some(json!(rules))
}

/// Returns whether aggregated roles follow the objects of a resource.
pub(crate) fn follow(state: &State, id: &ResourceId) -> bool {
    state.aggregates_roles && *id == *CLUSTER_ROLES
}

/// Writes the rules of all aggregated roles.
pub(crate) async fn settle(state: &State) {
    let Some(resource) = state.builtin.resource(&CLUSTER_ROLES.group, "v1", &CLUSTER_ROLES.resource) else {
        return;
    };
    for _ in 0..MAX_ROUNDS {
        if !settle_once(state, &resource.storage, resource).await {
            return;
        }
    }
}

/// Writes the aggregated roles with outdated rules. Returns whether there were such roles.
async fn settle_once(state: &State, id: &ResourceId, resource: &Resource) -> bool {
    let view = state.store.view();
    let stored: Vec<Arc<Stored>> = view.range(id, None).map(|(_, role)| Arc::clone(role)).collect();
    let roles: Vec<Value> = stored.iter().map(|role| role.value()).collect();
    let mut changed = false;
    for (role, stored) in roles.iter().zip(&stored) {
        let Some(rules) = aggregated(role, &roles) else { continue };
        let known = role.get("rules").and_then(Value::as_array).is_some_and(|known| !known.is_empty());
        if role.get("rules") == Some(&rules) || !known && rules == json!([]) {
            continue;
        }
        let mut role = role.clone();
        role["rules"] = rules;
        let now = state.env.now();
        let draft = Some(resource.draft(&role, state.store.labels(), now));
        let write = Write { id, key: meta::name(&role), expected: Some(stored.rv), draft, now };
        // If another write came first, the next round sees that write.
        let _ = state.store.commit(write, |_| Ok(())).await;
        changed = true;
    }
    changed
}
