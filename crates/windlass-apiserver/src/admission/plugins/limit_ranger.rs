//! `LimitRanger`: default resources of containers, and limits of containers, pods and claims.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::Write;
use crate::meta;
use crate::wire::{ApiError, Quantity};
use windlass_kinds::Subresource;
use windlass_kinds::kind_names::{PERSISTENT_VOLUME_CLAIM, POD};
use windlass_kinds::quota::{ResourceList, amounts};
use windlass_kinds::resources::{LIMIT_RANGES, PODS};

const ANNOTATION: &str = "kubernetes.io/limit-ranger";

/// Returns the limits of the namespace, in the order of the LimitRanges.
fn limits(write: &Write<'_>) -> Vec<Vec<Value>> {
    let view = write.store.view();
    let ranges = view.range(&LIMIT_RANGES, Some(write.namespace));
    ranges.map(|(_, range)| range.value()["spec"]["limits"].as_array().cloned().unwrap_or_default()).collect()
}

/// Gives containers the default requests and limits, and records the defaults in an annotation.
pub(super) fn set_defaults(write: &Write<'_>, pod: &mut Value) {
    for limits in limits(write) {
        let defaults = |field: &str| -> Map<String, Value> {
            let of_containers = limits.iter().filter(|limit| limit["type"] == "Container");
            of_containers.filter_map(|limit| limit[field].as_object()).flatten().map(own).collect()
        };
        let (requests, limits) = (defaults("defaultRequest"), defaults("default"));
        let mut notes = Vec::new();
        for (list, kind) in [("containers", "container"), ("initContainers", "init container")] {
            let containers = pod["spec"].get_mut(list).and_then(Value::as_array_mut);
            for container in containers.into_iter().flatten() {
                let name = container["name"].as_str().unwrap_or_default().to_owned();
                let set_limits = fill(container, "limits", &limits);
                let set_requests = fill(container, "requests", &requests);
                for (set, word) in [(set_requests, "request"), (set_limits, "limit")] {
                    if !set.is_empty() {
                        notes.push(format!("{} {word} for {kind} {name}", set.join(", ")));
                    }
                }
            }
        }
        if !notes.is_empty() {
            let note = format!("LimitRanger plugin set: {}", notes.join("; "));
            let annotations = meta::metadata_mut(pod).entry("annotations").or_insert_with(|| json!({}));
            if let Some(annotations) = annotations.as_object_mut() {
                annotations.insert(ANNOTATION.to_owned(), note.into());
            }
        }
    }
}

fn own((name, value): (&String, &Value)) -> (String, Value) {
    (name.clone(), value.clone())
}

/// Sets missing resources, and returns the names of the resources.
fn fill(container: &mut Value, field: &str, defaults: &Map<String, Value>) -> Vec<String> {
    if defaults.is_empty() {
        return Vec::new();
    }
    let resources = meta::entry_object(container, "resources");
    let amounts = resources.entry(field).or_insert_with(|| json!({}));
    let Some(amounts) = amounts.as_object_mut() else { return Vec::new() };
    let absent: Vec<String> = defaults.keys().filter(|name| !amounts.contains_key(*name)).cloned().collect();
    for name in &absent {
        amounts.insert(name.clone(), defaults[name].clone());
    }
    absent
}

/// Checks a new pod, a resize of a pod, or a claim.
pub(super) fn validate(write: &Write<'_>, object: &Value, old: Option<&Value>) -> Result<(), ApiError> {
    let is_pod = *write.resource == *PODS;
    let is_checked = match write.subresource {
        Subresource::Resize => is_pod,
        Subresource::None => !is_pod || old.is_none(),
        _ => false,
    };
    if !is_checked || old.is_some_and(meta::is_deleting) {
        return Ok(());
    }
    for limits in limits(write) {
        let mut errors = Vec::new();
        for limit in &limits {
            match (limit["type"].as_str().unwrap_or_default(), is_pod) {
                ("Container", true) => {
                    for container in windlass_kinds::quota::containers(object) {
                        let requests = amounts(&container["resources"]["requests"]);
                        let of_container = amounts(&container["resources"]["limits"]);
                        check(limit, &requests, &of_container, &mut errors);
                    }
                }
                (POD, true) => {
                    let requests = windlass_kinds::quota::total(object, "requests");
                    let of_pod = windlass_kinds::quota::total(object, "limits");
                    check(limit, &requests, &of_pod, &mut errors);
                }
                (PERSISTENT_VOLUME_CLAIM, false) => check_claim(limit, object, &mut errors),
                _ => {}
            }
        }
        let mut seen = std::collections::HashSet::new();
        errors.retain(|error| seen.insert(error.clone()));
        match errors.as_slice() {
            [] => {}
            [one] => return Err(write.forbidden(object, one)),
            many => return Err(write.forbidden(object, format!("[{}]", many.join(", ")))),
        }
    }
    Ok(())
}

fn check(limit: &Value, requests: &ResourceList, limits: &ResourceList, errors: &mut Vec<String>) {
    let of = limit["type"].as_str().unwrap_or_default();
    for (resource, least) in amounts(&limit["min"]) {
        errors.extend(below(of, &resource, least, requests, limits));
    }
    for (resource, most) in amounts(&limit["max"]) {
        let head = format!("maximum {resource} usage per {of} is {most}");
        match (limits.get(&resource), requests.get(&resource)) {
            (None, _) => errors.push(format!("{head}.  No limit is specified")),
            (Some(limit), _) if *limit > most => errors.push(format!("{head}, but limit is {limit}")),
            (_, Some(request)) if *request > most => errors.push(format!("{head}, but request is {request}")),
            _ => {}
        }
    }
    for (resource, most) in amounts(&limit["maxLimitRequestRatio"]) {
        errors.extend(beyond_ratio(of, &resource, most, requests, limits));
    }
}

fn below(
    of: &str,
    resource: &str,
    least: Quantity,
    requests: &ResourceList,
    limits: &ResourceList,
) -> Option<String> {
    let head = format!("minimum {resource} usage per {of} is {least}");
    match (requests.get(resource), limits.get(resource)) {
        (None, _) => Some(format!("{head}.  No request is specified")),
        (Some(request), _) if *request < least => Some(format!("{head}, but request is {request}")),
        (_, Some(limit)) if *limit < least => Some(format!("{head}, but limit is {limit}")),
        _ => None,
    }
}

fn beyond_ratio(
    of: &str,
    resource: &str,
    most: Quantity,
    requests: &ResourceList,
    limits: &ResourceList,
) -> Option<String> {
    let head = format!("{resource} max limit to request ratio per {of} is {most}");
    let some = |amounts: &BTreeMap<String, Quantity>| {
        amounts.get(resource).copied().filter(|amount| amount.signum() != 0)
    };
    let Some(request) = some(requests) else {
        return Some(format!("{head}, but no request is specified or request is 0"));
    };
    let Some(limit) = some(limits) else {
        return Some(format!("{head}, but no limit is specified or limit is 0"));
    };
    let ratio = limit.to_milli() as f64 / request.to_milli() as f64;
    (ratio * 1000.0 > most.to_milli() as f64).then(|| format!("{head}, but provided ratio is {ratio:.6}"))
}

fn check_claim(limit: &Value, claim: &Value, errors: &mut Vec<String>) {
    let of = PERSISTENT_VOLUME_CLAIM;
    let requests = amounts(&claim["spec"]["resources"]["requests"]);
    for (resource, least) in amounts(&limit["min"]) {
        errors.extend(below(of, &resource, least, &requests, &ResourceList::new()));
    }
    for (resource, most) in amounts(&limit["max"]) {
        let head = format!("maximum {resource} usage per {of} is {most}");
        match requests.get(&resource) {
            None => errors.push(format!("{head}.  No request is specified")),
            Some(request) if *request > most => errors.push(format!("{head}, but request is {request}")),
            Some(_) => {}
        }
    }
}
