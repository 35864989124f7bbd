//! The resources of a pod as a whole (`spec.resources`): defaults from the resources of the containers.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use crate::json::{list_at, map_at};
use crate::quota::{self, ResourceList, amounts};

/// Fills in the requests and limits of a pod that sets some requests or limits of the whole pod. Webhooks may have added containers: the
/// defaults are set after admission.
pub(super) fn set_defaults(pod: &mut Value) {
    let given = |kind: &str| amounts(&pod["spec"]["resources"][kind]);
    let (mut requests, mut limits) = (given("requests"), given("limits"));
    let is_given =
        |kind: &str| map_at(pod, &format!("/spec/resources/{kind}")).is_some_and(|map| !map.is_empty());
    if !is_given("requests") && !is_given("limits") {
        return;
    }
    let (had_requests, had_limits) = (requests.clone(), limits.clone());
    let containers = json!({"spec": {
        "containers": pod["spec"]["containers"], "initContainers": pod["spec"]["initContainers"],
    }});
    let of_containers = quota::total(&containers, "limits");
    for (name, limit) in &of_containers {
        if is_huge_page(name) && !requests.contains_key(name) {
            limits.entry(name.clone()).or_insert(*limit);
        }
    }
    for (name, request) in quota::total(&containers, "requests") {
        if matches!(name.as_str(), "cpu" | "memory") {
            requests.entry(name).or_insert(request);
        }
    }
    for (name, limit) in &limits {
        if quota::is_pod_level(name) {
            requests.entry(name.clone()).or_insert(*limit);
        }
    }
    for (name, request) in &requests {
        if !limits.contains_key(name) && quota::is_pod_level(name) && all_limit(pod, name) {
            let limit = of_containers.get(name).map_or(*request, |limit| *limit.max(request));
            limits.insert(name.clone(), limit);
        }
    }
    let resources = &mut pod["spec"]["resources"];
    insert_new(resources, "requests", &requests, &had_requests);
    insert_new(resources, "limits", &limits, &had_limits);
}

/// Keeps the resources of the whole pod in a write that lacks the field: the client may not know the field.
pub(super) fn keep(pod: &mut Value, old: &Value) {
    if pod["spec"]["resources"].is_null() && old["spec"]["resources"].is_object() {
        pod["spec"]["resources"] = old["spec"]["resources"].clone();
    }
}

/// Returns whether all containers have a limit for a resource.
fn all_limit(pod: &Value, resource: &str) -> bool {
    let mut containers =
        ["/spec/initContainers", "/spec/containers"].into_iter().flat_map(|list| list_at(pod, list));
    containers.all(|container| !container["resources"]["limits"][resource].is_null())
}

/// Adds the amounts that were not there before.
fn insert_new(resources: &mut Value, kind: &str, amounts: &ResourceList, before: &ResourceList) {
    let known: BTreeSet<&String> = before.keys().collect();
    let new = amounts.iter().filter(|(name, _)| !known.contains(name));
    let new: Map<String, Value> =
        new.map(|(name, amount)| (name.clone(), amount.to_string().into())).collect();
    if new.is_empty() {
        return;
    }
    if !resources[kind].is_object() {
        resources[kind] = json!({});
    }
    if let Some(map) = resources[kind].as_object_mut() {
        map.extend(new);
    }
}

fn is_huge_page(resource: &str) -> bool {
    resource.starts_with("hugepages-")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resources(whole: Value, containers: &[Value]) -> Value {
        let containers: Vec<Value> =
            containers.iter().map(|resources| json!({"name": "c", "resources": resources})).collect();
        let mut pod = json!({"spec": {"resources": whole, "containers": containers}});
        set_defaults(&mut pod);
        pod["spec"]["resources"].clone()
    }

    #[test]
    fn requests_come_from_the_containers_and_then_from_the_limits() {
        let one = json!({"requests": {"cpu": "100m"}});
        let limits = json!({"cpu": "1", "memory": "1Gi"});
        assert_eq!(
            resources(json!({"limits": limits}), &[one.clone(), one]),
            json!({"requests": {"cpu": "200m", "memory": "1Gi"}, "limits": limits})
        );
        assert_eq!(resources(json!({}), &[json!({"limits": {"cpu": "1"}})]), json!({}));
    }

    #[test]
    fn limits_come_from_containers_that_all_have_a_limit() {
        let one = json!({"requests": {"cpu": "1", "hugepages-2Mi": "4Mi"}, "limits": {"cpu": "1", "hugepages-2Mi": "4Mi"}});
        assert_eq!(
            resources(json!({"requests": {"cpu": "3"}}), &[one.clone(), one.clone()]),
            json!({
                "requests": {"cpu": "3", "hugepages-2Mi": "8Mi"}, "limits": {"cpu": "3", "hugepages-2Mi": "8Mi"},
            })
        );
        assert_eq!(
            resources(json!({"requests": {"cpu": "3"}}), &[one, json!({})]),
            json!({"requests": {"cpu": "3", "hugepages-2Mi": "4Mi"}, "limits": {"hugepages-2Mi": "4Mi"}})
        );
    }
}
