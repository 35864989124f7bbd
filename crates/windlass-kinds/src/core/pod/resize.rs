//! Writes of `resize`: requests and limits of CPU and memory, and nothing else.

use serde_json::{Map, Value, json};
use windlass_schema::FieldError;

use crate::field;
use crate::json::{list_at, map_at, text, text_at};
use crate::pod_template::defaults::qos_class;
use crate::pod_template::validate::validate_pod;

const LISTS: [&str; 2] = ["containers", "initContainers"];
const OTHER_RESOURCES: &str = "only cpu and memory resources are mutable";

/// Returns whether both pods have the same containers in the same order.
pub(super) fn same_containers(object: &Value, old: &Value) -> bool {
    let names = |pod: &Value, list: &str| -> Vec<String> {
        list_at(pod, &format!("/spec/{list}"))
            .iter()
            .map(|container| text(container, "name").to_owned())
            .collect()
    };
    LISTS.iter().all(|list| names(object, list) == names(old, list))
}

/// Validates a write of `resize`, in the order of kube-apiserver.
pub(super) fn validate_resize(object: &Value, old: &Value) -> Vec<FieldError> {
    if map_at(old, "/metadata/annotations").is_some_and(|map| map.contains_key("kubernetes.io/config.mirror"))
    {
        return vec![FieldError::forbidden("", "static pods cannot be resized")];
    }
    if text_at(old, "/spec/os/name") == "windows" {
        return vec![FieldError::forbidden("", "windows pods cannot be resized")];
    }
    let mut errors = field::validate("", object, validate_pod);
    let class = match text_at(old, "/status/qosClass") {
        "" => qos_class(&old["spec"]),
        class => class,
    };
    if class != qos_class(&object["spec"]) {
        let detail = "Pod QOS Class may not change as a result of resizing";
        errors.push(FieldError::invalid("spec", text_at(object, "/status/qosClass"), detail));
    }
    if !node_resizes(old) {
        errors.push(FieldError::forbidden("spec", "Pod running on node without support for resize"));
    }
    validate_pod_level(object, old, &mut errors);
    let order = validate_order(object, old);
    if !order.is_empty() {
        errors.extend(order);
        return errors;
    }
    for list in ["initContainers", "containers"] {
        for (index, (container, before)) in pairs(object, old, list).enumerate() {
            let path = format!("spec.{list}[{index}].resources");
            for (kind, word) in [("requests", "requests"), ("limits", "limits")] {
                if is_removed(container, before, &format!("/resources/{kind}")) {
                    let detail = format!("resource {word} cannot be removed");
                    errors.push(FieldError::forbidden(format!("{path}.{kind}"), detail));
                }
            }
        }
    }
    for (container, before) in pairs(object, old, "containers") {
        if !differs_in_cpu_and_memory_only(container, before) {
            errors.push(FieldError::forbidden("spec", OTHER_RESOURCES));
        }
    }
    for (index, (container, before)) in pairs(object, old, "initContainers").enumerate() {
        let path = format!("spec.initContainers[{index}]");
        if !differs_in_cpu_and_memory_only(container, before) {
            let detail = "only cpu and memory resources for init or sidecar containers are mutable";
            errors.push(FieldError::forbidden(path.as_str(), detail));
        }
        let restarts = |policy: &&Value| text(policy, "restartPolicy") == "RestartContainer";
        if container != before && text(container, "restartPolicy") != "Always" {
            let detail =
                "non-sidecar init containers with a resize policy of RestartContainer cannot be resized";
            let refused = list_at(container, "/resizePolicy").iter().filter(restarts);
            errors.extend(refused.map(|_| FieldError::forbidden(path.as_str(), detail)));
        }
    }
    errors
}

fn pairs<'a>(object: &'a Value, old: &'a Value, list: &str) -> impl Iterator<Item = (&'a Value, &'a Value)> {
    let pointer = format!("/spec/{list}");
    list_at(object, &pointer).iter().zip(list_at(old, &pointer))
}

/// Returns whether the kubelet of the pod's node reports resources, like every kubelet that can resize.
fn node_resizes(pod: &Value) -> bool {
    let running = |status: &&Value| status.pointer("/state/running").is_some_and(Value::is_object);
    let statuses = list_at(pod, "/status/containerStatuses");
    statuses.iter().find(running).is_none_or(|status| status.get("resources").is_some_and(Value::is_object))
}

fn validate_pod_level(object: &Value, old: &Value, errors: &mut Vec<FieldError>) {
    let (new, before) = (object.pointer("/spec/resources"), old.pointer("/spec/resources"));
    if new == before {
        return;
    }
    if new.is_none() {
        errors.push(FieldError::forbidden("spec.resources", "pod-level resources cannot be removed"));
        return;
    }
    for kind in ["requests", "limits"] {
        if is_removed(object, old, &format!("/spec/resources/{kind}")) {
            let detail = format!("pod-level resource {kind} cannot be removed");
            errors.push(FieldError::forbidden(format!("spec.resources.{kind}"), detail));
        }
    }
    let fixed = |resources: Option<&Value>| without_cpu_and_memory(resources.unwrap_or(&json!({})));
    if fixed(new) != fixed(before) {
        errors.push(FieldError::forbidden("spec", "only cpu and memory resources are mutable at pod-level"));
    }
}

fn validate_order(object: &Value, old: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for list in LISTS {
        let pointer = format!("/spec/{list}");
        let path = format!("spec.{list}");
        if list_at(object, &pointer).len() != list_at(old, &pointer).len() {
            let detail = format!("{list} may not be added or removed on resize");
            errors.push(FieldError::forbidden(path, detail));
            continue;
        }
        for (index, (container, before)) in pairs(object, old, list).enumerate() {
            if text(container, "name") != text(before, "name") {
                let detail = format!("{list} may not be renamed or reordered on resize");
                errors.push(FieldError::forbidden(format!("{path}[{index}].name"), detail));
            }
        }
    }
    errors
}

/// Returns whether a resource of the old map is not in the new one.
fn is_removed(object: &Value, old: &Value, pointer: &str) -> bool {
    let new = map_at(object, pointer);
    map_at(old, pointer)
        .into_iter()
        .flat_map(Map::keys)
        .any(|name| new.is_none_or(|new| !new.contains_key(name)))
}

fn differs_in_cpu_and_memory_only(container: &Value, before: &Value) -> bool {
    let fixed = |container: &Value| {
        let mut container = container.clone();
        let resources = without_cpu_and_memory(container.get("resources").unwrap_or(&json!({})));
        container["resources"] = resources;
        container
    };
    fixed(container) == fixed(before)
}

/// Returns resource requirements without CPU and memory, and without maps that are empty.
fn without_cpu_and_memory(resources: &Value) -> Value {
    let mut resources = resources.as_object().cloned().unwrap_or_default();
    for kind in ["limits", "requests"] {
        if let Some(map) = resources.get_mut(kind).and_then(Value::as_object_mut) {
            map.remove("cpu");
            map.remove("memory");
            if map.is_empty() {
                resources.remove(kind);
            }
        }
    }
    Value::Object(resources)
}
