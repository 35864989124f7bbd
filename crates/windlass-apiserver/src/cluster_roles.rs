//! Aggregated cluster roles: a role with an `aggregationRule` has the rules of the selected roles.

use serde_json::{Value, json};
use windlass_kinds::resources::CLUSTER_ROLES;

use crate::aggregated_roles::{self, AggregatedRoles, DistinctRules};
use crate::meta;
use crate::resource::Resource;
use crate::state::State;
use crate::store::{ResourceId, Write};

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
    let mut rules = DistinctRules::default();
    for selector in aggregated_roles::selectors(role)? {
        let is_selected =
            |other: &&Value| meta::name(other) != meta::name(role) && selector.matches(meta::labels(other));
        roles.iter().filter(is_selected).try_for_each(|other| rules.add(other.clone())).ok()?;
    }
    Some(rules.into_list())
}

/// Returns whether aggregated roles follow the objects of a resource.
pub(crate) fn follow(state: &State, id: &ResourceId) -> bool {
    state.aggregated_roles.is_some() && *id == *CLUSTER_ROLES
}

/// Writes the rules of the aggregated roles that the last changes concern.
pub(crate) async fn settle(state: &State) {
    let Some(roles) = &state.aggregated_roles else { return };
    let Some(resource) = state.builtin.resource(&CLUSTER_ROLES.group, "v1", &CLUSTER_ROLES.resource) else {
        return;
    };
    // Held to the end: the reply to a write of a role follows the writes of the aggregated roles.
    let mut roles = roles.lock().await;
    for _ in 0..MAX_ROUNDS {
        roles.follow(&state.store);
        let outdated = roles.outdated();
        if outdated.is_empty() {
            return;
        }
        for key in outdated {
            // Yields to other tasks at times: a label may concern many roles.
            tokio::task::consume_budget().await;
            settle_role(state, resource, &roles, &key).await;
            roles.settled(&key);
        }
    }
}

/// Writes the rules of an aggregated role, unless the role has the rules.
async fn settle_role(state: &State, resource: &Resource, roles: &AggregatedRoles, key: &str) {
    let view = state.store.view();
    let Some(stored) = view.get(&CLUSTER_ROLES, key) else { return };
    let Some(selected) = roles.selected(&state.store, &view, key) else { return };
    let mut rules = DistinctRules::default();
    if selected.iter().try_for_each(|other| rules.add(other.value())).is_err() {
        tracing::warn!(
            role = key,
            "the selected roles have more rules than an object can hold: select fewer roles"
        );
        return;
    }
    let (mut role, rules) = (stored.value(), rules.into_list());
    let known = role.get("rules").and_then(Value::as_array).is_some_and(|known| !known.is_empty());
    if role.get("rules") == Some(&rules) || !known && rules == json!([]) {
        return;
    }
    role["rules"] = rules;
    let now = state.env.now();
    let draft = Some(resource.draft(&role, state.store.labels(), now));
    let write = Write { id: &resource.storage, key, expected: Some(stored.rv), draft, now };
    // If another write came first, the next round sees that write.
    let _ = state.store.commit(write, |_| Ok(())).await;
}
