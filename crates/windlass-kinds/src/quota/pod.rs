//! The usage of a pod.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use windlass_schema::Quantity;

use super::pod_resources::{containers, effective, is_pod_level};
use super::resource_list::{ResourceList, amounts};

/// The resources for which each container must specify an amount, if a quota limits the resource.
const MUST_BE_SET: [&str; 6] =
    ["cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"];
const REQUESTS: &str = "requests.";
const HUGE_PAGES: &str = "hugepages-";
const DEVICE_CLASS: &str = "deviceclass.resource.kubernetes.io/";

/// The resources with fixed names that pods use.
const RESOURCES: [&str; 11] = [
    "count/pods",
    "cpu",
    "memory",
    "ephemeral-storage",
    "requests.cpu",
    "requests.memory",
    "requests.ephemeral-storage",
    "limits.cpu",
    "limits.memory",
    "limits.ephemeral-storage",
    "pods",
];

/// Returns whether pods use a resource of a quota.
pub(crate) fn uses(resource: &str) -> bool {
    RESOURCES.contains(&resource) || resource.starts_with(HUGE_PAGES) || is_prefixed_request(resource)
}

/// Returns whether a resource is `requests.` of huge pages or of an extended resource.
fn is_prefixed_request(resource: &str) -> bool {
    resource.strip_prefix(REQUESTS).is_some_and(|rest| {
        rest.starts_with(HUGE_PAGES) || !is_native(resource) || rest.starts_with(DEVICE_CLASS)
    })
}

fn is_native(resource: &str) -> bool {
    !resource.contains('/') || resource.contains("kubernetes.io/")
}

fn is_extended(resource: &str) -> bool {
    resource.starts_with(DEVICE_CLASS) || (!is_native(resource) && !resource.starts_with(REQUESTS))
}

/// Returns the usage of a pod at `now`. An ended pod counts only as an object.
pub(crate) fn usage(pod: &Value, now: Timestamp) -> ResourceList {
    let mut used = ResourceList::from([("count/pods".to_owned(), Quantity::whole(1))]);
    if is_counted(pod, now) {
        used.extend(by_quota_names(&effective(pod, "requests"), &effective(pod, "limits")));
    }
    used
}

/// Returns whether a pod counts at `now`: the pod has not ended, and the pod's grace period has not expired.
pub fn is_counted(pod: &Value, now: Timestamp) -> bool {
    if matches!(pod["status"]["phase"].as_str(), Some("Failed" | "Succeeded")) {
        return false;
    }
    let metadata = &pod["metadata"];
    let deleted = metadata["deletionTimestamp"].as_str().and_then(|text| text.parse::<Timestamp>().ok());
    let (Some(deleted), Some(grace)) = (deleted, metadata["deletionGracePeriodSeconds"].as_i64()) else {
        return true;
    };
    deleted.saturating_add(SignedDuration::from_secs(grace)).is_ok_and(|gone| now <= gone)
}

/// Returns requests and limits under the names in quotas.
fn by_quota_names(requests: &ResourceList, limits: &ResourceList) -> ResourceList {
    let mut used = ResourceList::from([("pods".to_owned(), Quantity::whole(1))]);
    for (name, amount) in requests {
        let is_computed = matches!(name.as_str(), "cpu" | "memory" | "ephemeral-storage");
        if is_computed || name.starts_with(HUGE_PAGES) {
            used.insert(name.clone(), *amount);
        }
        if is_computed || name.starts_with(HUGE_PAGES) || is_extended(name) {
            used.insert(format!("{REQUESTS}{name}"), *amount);
        }
    }
    for name in ["cpu", "memory", "ephemeral-storage"] {
        if let Some(amount) = limits.get(name) {
            used.insert(format!("limits.{name}"), *amount);
        }
    }
    used
}

/// Checks that each container specifies amounts of the `required` resources.
///
/// # Errors
/// The missing resources, and the containers, in kube-apiserver's words.
pub(crate) fn check_constraints(required: &BTreeSet<&str>, pod: &Value) -> Result<(), String> {
    let whole = &pod["spec"]["resources"];
    let of_pod = ["requests", "limits"].into_iter().filter_map(|field| whole[field].as_object());
    if of_pod.flatten().any(|(name, _)| is_pod_level(name)) {
        return Ok(());
    }
    let mut missing = BTreeMap::<&str, BTreeSet<&str>>::new();
    for container in containers(pod) {
        let resources = &container["resources"];
        let set = by_quota_names(&amounts(&resources["requests"]), &amounts(&resources["limits"]));
        let name = container["name"].as_str().unwrap_or_default();
        for resource in MUST_BE_SET.iter().filter(|resource| required.contains(**resource)) {
            if !set.contains_key(*resource) {
                missing.entry(resource).or_default().insert(name);
            }
        }
    }
    if missing.is_empty() {
        return Ok(());
    }
    let shown: Vec<String> = missing
        .into_iter()
        .map(|(resource, names)| {
            format!("{resource} for: {}", names.into_iter().collect::<Vec<_>>().join(","))
        })
        .collect();
    Err(format!("must specify {}", shown.join("; ")))
}

/// Returns whether a pod has a deadline: the scope `Terminating`.
pub(crate) fn has_deadline(pod: &Value) -> bool {
    pod["spec"]["activeDeadlineSeconds"].as_i64().is_some_and(|seconds| seconds >= 0)
}

/// Returns whether a pod has the quality of service `BestEffort`.
pub(crate) fn is_best_effort(pod: &Value) -> bool {
    if let Some(class) = pod["status"]["qosClass"].as_str().filter(|class| !class.is_empty()) {
        return class == "BestEffort";
    }
    let is_set = |resources: &Value| {
        ["requests", "limits"].into_iter().any(|field| {
            let amounts = amounts(&resources[field]);
            amounts
                .iter()
                .any(|(name, amount)| matches!(name.as_str(), "cpu" | "memory") && amount.signum() > 0)
        })
    };
    !is_set(&pod["spec"]["resources"]) && !containers(pod).any(|container| is_set(&container["resources"]))
}

/// Returns whether a pod has affinity to pods of other namespaces.
pub(crate) fn uses_cross_namespace_affinity(pod: &Value) -> bool {
    let crosses = |term: &Value| {
        term["namespaces"].as_array().is_some_and(|names| !names.is_empty())
            || term["namespaceSelector"].is_object()
    };
    let list = |value: &'_ Value| value.as_array().cloned().unwrap_or_default();
    ["podAffinity", "podAntiAffinity"].into_iter().any(|kind| {
        let affinity = &pod["spec"]["affinity"][kind];
        list(&affinity["requiredDuringSchedulingIgnoredDuringExecution"]).iter().any(crosses)
            || list(&affinity["preferredDuringSchedulingIgnoredDuringExecution"])
                .iter()
                .any(|weighted| crosses(&weighted["podAffinityTerm"]))
    })
}
