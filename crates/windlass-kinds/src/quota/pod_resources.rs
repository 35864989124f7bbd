//! The resources that a pod requests, or is limited to, as a whole.

use serde_json::Value;

use super::resource_list::{ResourceList, add, amounts, raise};

/// Returns the containers of a pod, and then the init containers.
pub fn containers(pod: &Value) -> impl Iterator<Item = &Value> {
    ["containers", "initContainers"].into_iter().flat_map(|list| listed(pod, list))
}

fn listed<'a>(pod: &'a Value, list: &str) -> impl Iterator<Item = &'a Value> + use<'a> {
    pod["spec"][list].as_array().into_iter().flatten()
}

/// Returns the `requests` or `limits` (`field`) of a pod's spec: the sum over all containers, or more if an
/// init container needs more.
pub fn total(pod: &Value, field: &str) -> ResourceList {
    total_by(pod, field, |container| amounts(&container["resources"][field]))
}

/// Works like [`total`], for quotas: each container counts with the largest of the wanted, allocated and
/// actuated amounts, and the overhead of the pod is added.
pub(crate) fn effective(pod: &Value, field: &str) -> ResourceList {
    let mut total = total_by(pod, field, |container| effective_of(pod, container, field));
    let overhead = amounts(&pod["spec"]["overhead"]);
    for (name, amount) in &overhead {
        let present = total.get(name).copied();
        if field == "requests" || present.is_some_and(|present| present.signum() != 0) {
            total.insert(name.clone(), present.map_or(*amount, |present| present + *amount));
        }
    }
    total
}

fn effective_of(pod: &Value, container: &Value, field: &str) -> ResourceList {
    let wanted = amounts(&container["resources"][field]);
    let statuses = ["containerStatuses", "initContainerStatuses"].into_iter();
    let mut statuses = statuses.flat_map(|list| pod["status"][list].as_array().into_iter().flatten());
    let Some(status) = statuses.find(|status| status["name"] == container["name"]) else { return wanted };
    if !status["resources"].is_object() {
        return wanted;
    }
    let mut most = amounts(&status["resources"][field]);
    if field == "requests" {
        raise(&mut most, &amounts(&status["allocatedResources"]));
    }
    if !is_resize_infeasible(pod) {
        raise(&mut most, &wanted);
    }
    most
}

fn is_resize_infeasible(pod: &Value) -> bool {
    let conditions = pod["status"]["conditions"].as_array().into_iter().flatten();
    let mut pending = conditions.filter(|condition| condition["type"] == "PodResizePending");
    pending.next().is_some_and(|condition| condition["reason"] == "Infeasible")
}

fn total_by(pod: &Value, field: &str, of: impl Fn(&Value) -> ResourceList) -> ResourceList {
    let mut total = ResourceList::new();
    listed(pod, "containers").for_each(|container| add(&mut total, &of(container)));
    let (mut sidecars, mut most) = (ResourceList::new(), ResourceList::new());
    for container in listed(pod, "initContainers") {
        if container["restartPolicy"] == "Always" {
            let own = of(container);
            add(&mut total, &own);
            add(&mut sidecars, &own);
            raise(&mut most, &sidecars);
        } else {
            let mut together = amounts(&container["resources"][field]);
            add(&mut together, &sidecars);
            raise(&mut most, &together);
        }
    }
    raise(&mut total, &most);
    for (resource, amount) in amounts(&pod["spec"]["resources"][field]) {
        if is_pod_level(&resource) {
            total.insert(resource, amount);
        }
    }
    total
}

/// Returns whether a pod may set the resource as a whole.
pub(crate) fn is_pod_level(resource: &str) -> bool {
    matches!(resource, "cpu" | "memory") || resource.starts_with("hugepages-")
}
