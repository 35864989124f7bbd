//! Validation of containers.

use std::collections::BTreeSet;

use serde_json::Value;
use windlass_schema::FieldError;

use crate::strategy::checks::{enumerated, invalid_names};
use crate::strategy::fields::{int_at, list_at, map_at, text};
use crate::wire::{Quantity, names};

/// The resources of every cluster. Others have a domain before their names.
const STANDARD_RESOURCES: [&str; 3] = ["cpu", "memory", "ephemeral-storage"];

/// Validates the containers of a pod. There must be one at least.
pub(super) fn validate_containers(
    spec: &Value,
    path: &str,
    volumes: &BTreeSet<&str>,
    errors: &mut Vec<FieldError>,
) {
    let path = format!("{path}.containers");
    let containers = list_at(spec, "/containers");
    if containers.is_empty() {
        errors.push(FieldError::required(path, ""));
        return;
    }
    let mut seen = BTreeSet::new();
    for (index, container) in containers.iter().enumerate() {
        let path = format!("{path}[{index}]");
        validate_common(container, &path, volumes, errors);
        let name = text(container, "name");
        if !name.is_empty() && !seen.insert(name) {
            errors.push(FieldError::duplicate(format!("{path}.name"), name));
        }
        if let Some(lifecycle) = container.get("lifecycle") {
            for hook in ["postStart", "preStop"] {
                if let Some(handler) = lifecycle.get(hook) {
                    validate_handler(handler, &format!("{path}.lifecycle.{hook}"), errors);
                }
            }
        }
        for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
            validate_probe(container, probe, &path, errors);
        }
    }
    for (index, container) in containers.iter().enumerate() {
        let image = text(container, "image");
        if image != image.trim() {
            let detail = "must not have leading or trailing whitespace";
            errors.push(FieldError::invalid(format!("{path}[{index}].image"), image, detail));
        }
    }
}

/// Validates the init containers of a pod, sidecars among them.
pub(super) fn validate_init_containers(
    spec: &Value,
    path: &str,
    volumes: &BTreeSet<&str>,
    errors: &mut Vec<FieldError>,
) {
    let path = format!("{path}.initContainers");
    let mut seen: BTreeSet<&str> =
        list_at(spec, "/containers").iter().map(|container| text(container, "name")).collect();
    for (index, container) in list_at(spec, "/initContainers").iter().enumerate() {
        let path = format!("{path}[{index}]");
        validate_common(container, &path, volumes, errors);
        let name = text(container, "name");
        if !name.is_empty() && !seen.insert(name) {
            errors.push(FieldError::duplicate(format!("{path}.name"), name));
        }
        let sidecar = text(container, "restartPolicy") == "Always";
        for part in ["lifecycle", "livenessProbe", "readinessProbe", "startupProbe"] {
            if container.get(part).is_some() && !sidecar {
                let detail = "may not be set for init containers without restartPolicy=Always";
                errors.push(FieldError::forbidden(format!("{path}.{part}"), detail));
            }
        }
    }
}

fn validate_common(container: &Value, path: &str, volumes: &BTreeSet<&str>, errors: &mut Vec<FieldError>) {
    let field = |name: &str| format!("{path}.{name}");
    let name = text(container, "name");
    if name.is_empty() {
        errors.push(FieldError::required(field("name"), ""));
    } else {
        errors.extend(invalid_names(&field("name"), name, names::dns_1123_label(name)));
    }
    if text(container, "image").is_empty() {
        errors.push(FieldError::required(field("image"), ""));
    }
    let known = ["File", "FallbackToLogsOnError"];
    errors.extend(enumerated(
        &field("terminationMessagePolicy"),
        text(container, "terminationMessagePolicy"),
        &known,
    ));
    validate_ports(container, &field("ports"), errors);
    validate_env(container, path, errors);
    validate_mounts(container, &field("volumeMounts"), volumes, errors);
    let known = ["Always", "IfNotPresent", "Never"];
    errors.extend(enumerated(&field("imagePullPolicy"), text(container, "imagePullPolicy"), &known));
    validate_resources(container, &field("resources"), errors);
}

fn validate_ports(container: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let mut seen = BTreeSet::new();
    for (index, port) in list_at(container, "/ports").iter().enumerate() {
        let path = format!("{path}[{index}]");
        let name = text(port, "name");
        if !name.is_empty() {
            let problems = names::port_name(name);
            if problems.is_empty() && !seen.insert(name) {
                errors.push(FieldError::duplicate(format!("{path}.name"), name));
            }
            errors.extend(invalid_names(&format!("{path}.name"), name, problems));
        }
        let number = |field: &str| int_at(port, &format!("/{field}")).unwrap_or_default();
        match number("containerPort") {
            0 => errors.push(FieldError::required(format!("{path}.containerPort"), "")),
            value => errors.extend(port_number(&format!("{path}.containerPort"), value)),
        }
        if number("hostPort") != 0 {
            errors.extend(port_number(&format!("{path}.hostPort"), number("hostPort")));
        }
        let protocol = text(port, "protocol");
        if protocol.is_empty() {
            errors.push(FieldError::required(format!("{path}.protocol"), ""));
        }
        errors.extend(enumerated(&format!("{path}.protocol"), protocol, &["SCTP", "TCP", "UDP"]));
    }
}

fn port_number(field: &str, value: i64) -> impl Iterator<Item = FieldError> {
    names::port_number(value).into_iter().map(move |text| FieldError::invalid(field, value, text))
}

fn validate_env(container: &Value, path: &str, errors: &mut Vec<FieldError>) {
    for (index, variable) in list_at(container, "/env").iter().enumerate() {
        let path = format!("{path}.env[{index}]");
        let name = text(variable, "name");
        if name.is_empty() {
            errors.push(FieldError::required(format!("{path}.name"), ""));
        } else {
            errors.extend(invalid_names(&format!("{path}.name"), name, names::env_var_name(name)));
        }
        if let Some(source) = variable.get("valueFrom") {
            validate_env_source(source, variable, &format!("{path}.valueFrom"), errors);
        }
    }
    for source in list_at(container, "/envFrom") {
        if source.get("configMapRef").is_none() && source.get("secretRef").is_none() {
            let detail = "must specify one of: `configMapRef` or `secretRef`";
            errors.push(FieldError::invalid(format!("{path}.envFrom"), "", detail));
        }
    }
}

const SOURCES: [&str; 5] = ["fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef"];

fn validate_env_source(source: &Value, variable: &Value, path: &str, errors: &mut Vec<FieldError>) {
    if let Some(reference) = source.get("fieldRef") {
        validate_field_path(text(reference, "fieldPath"), &format!("{path}.fieldRef.fieldPath"), errors);
    }
    for kind in ["configMapKeyRef", "secretKeyRef"] {
        let Some(reference) = source.get(kind) else { continue };
        let name = text(reference, "name");
        errors.extend(invalid_names(&format!("{path}.{kind}.name"), name, names::dns_1123_subdomain(name)));
        let key = text(reference, "key");
        if key.is_empty() {
            errors.push(FieldError::required(format!("{path}.{kind}.key"), ""));
        } else {
            errors.extend(invalid_names(&format!("{path}.{kind}.key"), key, names::config_map_key(key)));
        }
    }
    let given = SOURCES.iter().filter(|kind| source.get(**kind).is_some()).count();
    if given == 0 {
        let detail = "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`";
        errors.push(FieldError::invalid(path, "", detail));
    } else if !text(variable, "value").is_empty() {
        errors.push(FieldError::invalid(path, "", "may not be specified when `value` is not empty"));
    } else if given > 1 {
        errors.push(FieldError::invalid(path, "", "may not have more than one field specified at a time"));
    }
}

fn validate_field_path(value: &str, field: &str, errors: &mut Vec<FieldError>) {
    const KNOWN: [&str; 9] = [
        "metadata.name",
        "metadata.namespace",
        "metadata.uid",
        "spec.nodeName",
        "spec.serviceAccountName",
        "status.hostIP",
        "status.hostIPs",
        "status.podIP",
        "status.podIPs",
    ];
    let subscripted = ["metadata.annotations['", "metadata.labels['"];
    let fits = KNOWN.contains(&value)
        || subscripted.iter().any(|start| value.starts_with(start) && value.ends_with("']"));
    if value.is_empty() {
        errors.push(FieldError::required(field, ""));
    } else if !fits {
        let detail = format!("error converting fieldPath: field label not supported: {value}");
        errors.push(FieldError::invalid(field, value, detail));
    }
}

fn validate_mounts(container: &Value, path: &str, volumes: &BTreeSet<&str>, errors: &mut Vec<FieldError>) {
    let mut places = BTreeSet::new();
    let claims = list_at(container, "/volumeDevices");
    for (index, mount) in list_at(container, "/volumeMounts").iter().enumerate() {
        let path = format!("{path}[{index}]");
        let (name, place) = (text(mount, "name"), text(mount, "mountPath"));
        if name.is_empty() {
            errors.push(FieldError::required(format!("{path}.name"), ""));
        } else if !volumes.contains(name) {
            errors.push(FieldError::not_found(format!("{path}.name"), name));
        }
        if place.is_empty() {
            errors.push(FieldError::required(format!("{path}.mountPath"), ""));
        } else if !places.insert(place) {
            errors.push(FieldError::invalid(format!("{path}.mountPath"), place, "must be unique"));
        }
        if claims.iter().any(|device| text(device, "name") == name) {
            let detail = "must not already exist in volumeDevices";
            errors.push(FieldError::invalid(format!("{path}.name"), name, detail));
        }
        let (below, by) = (text(mount, "subPath"), text(mount, "subPathExpr"));
        if below.starts_with('/') {
            errors.push(FieldError::invalid(format!("{path}.subPath"), below, "must be a relative path"));
        }
        if below.split('/').any(|part| part == "..") {
            errors.push(FieldError::invalid(format!("{path}.subPath"), below, "must not contain '..'"));
        }
        if !below.is_empty() && !by.is_empty() {
            let detail = "subPathExpr and subPath are mutually exclusive";
            errors.push(FieldError::invalid(format!("{path}.subPathExpr"), by, detail));
        }
    }
}

fn validate_resources(container: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let amount = |kind: &str, resource: &str| {
        map_at(container, &format!("/resources/{kind}"))
            .and_then(|map| map.get(resource))
            .and_then(Value::as_str)
            .and_then(|text| text.parse::<Quantity>().ok())
    };
    for kind in ["limits", "requests"] {
        let path = format!("{path}.{kind}");
        for (resource, value) in map_at(container, &format!("/resources/{kind}")).into_iter().flatten() {
            let field = format!("{path}[{resource}]");
            if !resource.contains('/') && !is_standard(resource) {
                let detail = "must be a standard resource type or fully qualified";
                errors.push(FieldError::invalid(field.as_str(), resource.as_str(), detail));
                let detail = "must be a standard resource for containers";
                errors.push(FieldError::invalid(field.as_str(), resource.as_str(), detail));
            }
            let Some(quantity) = amount(kind, resource) else { continue };
            if quantity.signum() < 0 {
                let detail = "must be greater than or equal to 0";
                errors.push(FieldError::invalid(field.as_str(), value.clone(), detail));
            }
            if kind == "limits" {
                continue;
            }
            match amount("limits", resource) {
                Some(limit) if quantity > limit => {
                    let detail = format!("must be less than or equal to {resource} limit of {limit}");
                    errors.push(FieldError::invalid(path.as_str(), value.clone(), detail));
                }
                None if resource.contains('/') => errors.push(FieldError::required(
                    path.replace(".requests", ".limits"),
                    "Limit must be set for non overcommitable resources",
                )),
                _ => {}
            }
        }
    }
}

fn is_standard(resource: &str) -> bool {
    STANDARD_RESOURCES.contains(&resource) || resource.starts_with("hugepages-")
}

fn validate_probe(container: &Value, kind: &str, path: &str, errors: &mut Vec<FieldError>) {
    let Some(probe) = container.get(kind) else { return };
    let path = format!("{path}.{kind}");
    validate_handler(probe, &path, errors);
    for field in
        ["initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"]
    {
        let value = int_at(probe, &format!("/{field}")).unwrap_or_default();
        if value < 0 {
            let detail = "must be greater than or equal to 0";
            errors.push(FieldError::invalid(format!("{path}.{field}"), value, detail));
        }
    }
    let successes = int_at(probe, "/successThreshold").unwrap_or(1);
    if kind != "readinessProbe" && successes != 1 {
        errors.push(FieldError::invalid(format!("{path}.successThreshold"), successes, "must be 1"));
    }
}

const HANDLERS: [&str; 5] = ["exec", "httpGet", "tcpSocket", "grpc", "sleep"];

fn validate_handler(handler: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let mut given = HANDLERS.iter().filter(|kind| handler.get(**kind).is_some());
    let Some(kind) = given.next() else {
        errors.push(FieldError::required(path, "must specify a handler type"));
        return;
    };
    for more in given {
        errors.push(FieldError::forbidden(
            format!("{path}.{more}"),
            "may not specify more than 1 handler type",
        ));
    }
    match *kind {
        "exec" if list_at(handler, "/exec/command").is_empty() => {
            errors.push(FieldError::required(format!("{path}.exec.command"), ""));
        }
        "httpGet" | "tcpSocket" => {
            let field = format!("{path}.{kind}.port");
            match handler.pointer(&format!("/{kind}/port")) {
                Some(Value::String(name)) => {
                    errors.extend(invalid_names(&field, name, names::port_name(name)));
                }
                port => {
                    let port = port.and_then(Value::as_i64).unwrap_or_default();
                    errors.extend(port_number(&field, port));
                }
            }
        }
        _ => {}
    }
}
