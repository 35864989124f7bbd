//! Validation of services.

use std::collections::BTreeSet;
use std::net::IpAddr;

use serde_json::Value;
use windlass_schema::FieldError;

use super::has_cluster_address;
use crate::strategy::checks::validate_labels;
use crate::strategy::checks::{enumerated, invalid_names};
use crate::strategy::fields::{int_at, list_at, map_at, text};
use crate::wire::names;

const BAD_ADDRESS: &str = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";

/// Validates a service, in the order of kube-apiserver.
pub(super) fn validate(object: &Value) -> Vec<FieldError> {
    let spec = &object["spec"];
    let mut errors = Vec::new();
    let kind = text(spec, "type");
    let headless = text(spec, "clusterIP") == "None";
    let ports = list_at(spec, "/ports");
    if ports.is_empty() && !headless && kind != "ExternalName" {
        errors.push(FieldError::required("spec.ports", ""));
    }
    if kind == "LoadBalancer" && headless {
        errors.push(FieldError::invalid(
            "spec.clusterIPs[0]",
            "None",
            "may not be set to 'None' for LoadBalancer services",
        ));
    }
    if kind == "NodePort" && headless {
        errors.push(FieldError::invalid(
            "spec.clusterIPs[0]",
            "None",
            "may not be set to 'None' for NodePort services",
        ));
    }
    if kind == "ExternalName" {
        let name = text(spec, "externalName");
        if name.is_empty() {
            errors.push(FieldError::required("spec.externalName", ""));
        } else {
            let name = name.strip_suffix('.').unwrap_or(name);
            errors.extend(invalid_names("spec.externalName", name, names::dns_1123_subdomain(name)));
        }
        if !list_at(spec, "/clusterIPs").is_empty() {
            errors.push(FieldError::forbidden(
                "spec.clusterIPs",
                "may not be set when `type` is 'ExternalName'",
            ));
        }
    }
    validate_ports(spec, headless, &mut errors);
    if let Some(selector) = map_at(spec, "/selector") {
        errors.extend(validate_labels(selector, "spec.selector"));
    }
    errors.extend(enumerated("spec.sessionAffinity", text(spec, "sessionAffinity"), &["ClientIP", "None"]));
    for (index, address) in list_at(spec, "/externalIPs").iter().filter_map(Value::as_str).enumerate() {
        if address.parse::<IpAddr>().is_err() {
            errors.push(FieldError::invalid(format!("spec.externalIPs[{index}]"), address, BAD_ADDRESS));
        }
    }
    let known = ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];
    errors.extend(enumerated("spec.type", kind, &known));
    validate_node_ports(ports, kind, &mut errors);
    validate_unique(ports, &mut errors);
    for field in ["externalTrafficPolicy", "internalTrafficPolicy"] {
        errors.extend(enumerated(&format!("spec.{field}"), text(spec, field), &["Cluster", "Local"]));
    }
    errors
}

/// Validates the cluster addresses of a service. Runs before allocation.
pub(super) fn validate_addresses(spec: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if text(spec, "type") == "ExternalName" {
        return errors;
    }
    errors.extend(validate_first_address(spec));
    let addresses = list_at(spec, "/clusterIPs");
    let mut parsed = Vec::new();
    for (index, address) in addresses.iter().filter_map(Value::as_str).enumerate() {
        match address.parse::<IpAddr>() {
            Ok(address) => parsed.push(address),
            Err(_) if index == 0 && address == "None" => {
                if addresses.len() > 1 {
                    let detail = "'None' must be the first and only value";
                    errors.push(FieldError::invalid("spec.clusterIPs", addresses.to_vec(), detail));
                }
            }
            Err(_) => {
                errors.push(FieldError::invalid(format!("spec.clusterIPs[{index}]"), address, BAD_ADDRESS));
            }
        }
    }
    if addresses.len() > 2 {
        let detail = "may only hold up to 2 values";
        errors.push(FieldError::invalid("spec.clusterIPs", addresses.to_vec(), detail));
    }
    if let [first, .., last] = parsed.as_slice()
        && errors.is_empty()
        && first.is_ipv4() == last.is_ipv4()
    {
        let detail = "may specify no more than one IP for each IP family";
        errors.push(FieldError::invalid("spec.clusterIPs", addresses.to_vec(), detail));
    }
    errors
}

/// Checks that `clusterIP` is the first of `clusterIPs`.
fn validate_first_address(spec: &Value) -> Option<FieldError> {
    let (address, addresses) = (text(spec, "clusterIP"), list_at(spec, "/clusterIPs"));
    let field = "spec.clusterIPs";
    match addresses.first().and_then(Value::as_str) {
        None if !address.is_empty() => Some(FieldError::required(field, "")),
        Some(_) if address.is_empty() => {
            let detail = "must be empty when `clusterIP` is not specified";
            Some(FieldError::invalid(field, addresses.to_vec(), detail))
        }
        Some(first) if first != address => {
            Some(FieldError::invalid(field, addresses.to_vec(), "first value must match `clusterIP`"))
        }
        _ => None,
    }
}

fn validate_ports(spec: &Value, headless: bool, errors: &mut Vec<FieldError>) {
    let ports = list_at(spec, "/ports");
    let mut seen = BTreeSet::new();
    for (index, port) in ports.iter().enumerate() {
        let path = format!("spec.ports[{index}]");
        let name = text(port, "name");
        if name.is_empty() {
            if ports.len() > 1 {
                errors.push(FieldError::required(format!("{path}.name"), ""));
            }
        } else {
            errors.extend(invalid_names(&format!("{path}.name"), name, names::dns_1123_label(name)));
            if !seen.insert(name) {
                errors.push(FieldError::duplicate(format!("{path}.name"), name));
            }
        }
        let number = int_at(port, "/port").unwrap_or_default();
        let bad_number = |field: &str, number: i64| -> Vec<FieldError> {
            let field = format!("{path}.{field}");
            names::port_number(number)
                .into_iter()
                .map(|text| FieldError::invalid(field.as_str(), number, text))
                .collect()
        };
        errors.extend(bad_number("port", number));
        let protocol = text(port, "protocol");
        if protocol.is_empty() {
            errors.push(FieldError::required(format!("{path}.protocol"), ""));
        }
        errors.extend(enumerated(&format!("{path}.protocol"), protocol, &["SCTP", "TCP", "UDP"]));
        match port.get("targetPort") {
            Some(Value::String(name)) => {
                errors.extend(invalid_names(&format!("{path}.targetPort"), name, names::port_name(name)));
            }
            target => {
                let target = target.and_then(Value::as_i64).unwrap_or_default();
                // Without a port there is no target either: one error is enough.
                if target != 0 || number != 0 || !headless {
                    errors.extend(bad_number("targetPort", target));
                }
            }
        }
    }
}

fn validate_node_ports(ports: &[Value], kind: &str, errors: &mut Vec<FieldError>) {
    let mut seen = BTreeSet::new();
    for (index, port) in ports.iter().enumerate() {
        let Some(number) = int_at(port, "/nodePort").filter(|number| *number != 0) else { continue };
        let field = format!("spec.ports[{index}].nodePort");
        if kind == "ClusterIP" {
            errors.push(FieldError::forbidden(field, "may not be used when `type` is 'ClusterIP'"));
        } else if !seen.insert((text(port, "protocol"), number)) {
            errors.push(FieldError::duplicate(field, number));
        }
    }
}

fn validate_unique(ports: &[Value], errors: &mut Vec<FieldError>) {
    let mut seen = BTreeSet::new();
    for (index, port) in ports.iter().enumerate() {
        let number = int_at(port, "/port").unwrap_or_default();
        if !seen.insert((text(port, "protocol"), number)) {
            let protocol = windlass_schema::go_quote(text(port, "protocol"));
            let shown = format!(
                "{{\"Name\":\"\",\"Protocol\":{protocol},\"AppProtocol\":null,\"Port\":{number},\"TargetPort\":0,\"NodePort\":0}}"
            );
            errors.push(FieldError::duplicate(format!("spec.ports[{index}]"), number).showing(shown));
        }
    }
}

/// Validates the status of a service.
pub(super) fn validate_status(object: &Value) -> Vec<FieldError> {
    let ingress = list_at(object, "/status/loadBalancer/ingress");
    let mut errors = Vec::new();
    if !ingress.is_empty() && text(&object["spec"], "type") != "LoadBalancer" {
        let detail = "may only be used when `spec.type` is 'LoadBalancer'";
        errors.push(FieldError::forbidden("status.loadBalancer.ingress", detail));
    }
    for (index, ingress) in ingress.iter().enumerate() {
        let address = text(ingress, "ip");
        if !address.is_empty() && address.parse::<IpAddr>().is_err() {
            let field = format!("status.loadBalancer.ingress[{index}].ip");
            errors.push(FieldError::invalid(field, address, BAD_ADDRESS));
        }
    }
    errors
}

/// Validates that an update keeps the cluster address.
pub(super) fn validate_update(object: &Value, old: &Value) -> Vec<FieldError> {
    let (kind, before) = (text(&object["spec"], "type"), text(&old["spec"], "type"));
    let mut errors = Vec::new();
    if !has_cluster_address(kind) || !has_cluster_address(before) {
        return errors;
    }
    let (new, old) = (list_at(object, "/spec/clusterIPs"), list_at(old, "/spec/clusterIPs"));
    if let Some(first) = old.first()
        && new.first() != Some(first)
    {
        errors.push(FieldError::invalid("spec.clusterIPs[0]", new.to_vec(), "may not change once set"));
    }
    errors
}
