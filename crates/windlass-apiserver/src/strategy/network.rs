//! What leads to pods besides services: endpoints, slices, ingresses, policies.

use std::net::IpAddr;

use serde_json::{Value, json};
use windlass_schema::FieldError;

use super::checks::{enumerated, immutable, named};
use super::fields::{default, default_text, entry_mut, int_at, items_mut, list_at, spec_mut, text};
use super::{Facts, Generation, Plain, Strategy, StrategyContext};
use crate::wire::names;

pub(super) fn of(resource: &str) -> &'static dyn Strategy {
    match resource {
        "endpoints" => &Endpoints,
        "endpointslices" => &EndpointSlices,
        "ingresses" => &Ingresses,
        "ingressclasses" => &IngressClasses,
        "networkpolicies" => &NetworkPolicies,
        "ipaddresses" | "servicecidrs" => &Plain(&Facts::DATA),
        _ => &Plain(&Facts::SPEC),
    }
}

const ENDPOINTS: Facts = Facts { create_on_update: true, ..Facts::DATA };
const SLICES: Facts = Facts { generation: Generation::All, ..Facts::SPEC };

const BAD_ADDRESS: &str = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";

struct Endpoints;

fn complete_endpoints(object: &mut Value) {
    if let Some(fields) = object.as_object_mut() {
        for subset in items_mut(fields, "subsets") {
            for port in items_mut(subset, "ports") {
                default_text(port, "protocol", "TCP");
            }
        }
    }
}

impl Strategy for Endpoints {
    fn facts(&self) -> &'static Facts {
        &ENDPOINTS
    }

    fn validate(&self, object: &Value) -> Vec<FieldError> {
        let mut errors = Vec::new();
        for (index, subset) in list_at(object, "/subsets").iter().enumerate() {
            let path = format!("subsets[{index}]");
            if list_at(subset, "/addresses").is_empty() && list_at(subset, "/notReadyAddresses").is_empty() {
                let detail = "must specify `addresses` or `notReadyAddresses`";
                errors.push(FieldError::required(path.as_str(), detail));
            }
            for list in ["addresses", "notReadyAddresses"] {
                for (index, address) in list_at(subset, &format!("/{list}")).iter().enumerate() {
                    validate_address(text(address, "ip"), &format!("{path}.{list}[{index}].ip"), &mut errors);
                }
            }
            let ports = list_at(subset, "/ports");
            for (index, port) in ports.iter().enumerate() {
                let path = format!("{path}.ports[{index}]");
                let name = text(port, "name");
                if name.is_empty() && ports.len() > 1 {
                    errors.push(FieldError::required(format!("{path}.name"), ""));
                } else if !name.is_empty() {
                    errors.extend(named(&format!("{path}.name"), name, names::dns_1123_label(name)));
                }
                let number = int_at(port, "/port").unwrap_or_default();
                let complaints = names::port_number(number);
                errors.extend(
                    complaints
                        .into_iter()
                        .map(|text| FieldError::invalid(format!("{path}.port"), number, text)),
                );
                errors.extend(enumerated(
                    &format!("{path}.protocol"),
                    text(port, "protocol"),
                    &["SCTP", "TCP", "UDP"],
                ));
            }
        }
        errors
    }

    fn warnings(&self, _cx: &StrategyContext<'_>, _object: &Value, _old: Option<&Value>) -> Vec<String> {
        vec!["v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice".to_owned()]
    }

    fn complete(&self, _cx: &StrategyContext<'_>, object: &mut Value) {
        complete_endpoints(object);
    }
}

fn validate_address(address: &str, field: &str, errors: &mut Vec<FieldError>) {
    match address.parse::<IpAddr>() {
        Err(_) => {
            errors.push(FieldError::invalid(field, address, BAD_ADDRESS));
            errors.push(FieldError::invalid(field, address, "must be a valid IP address"));
        }
        Ok(parsed) => {
            let why = if parsed.is_unspecified() {
                format!("may not be unspecified ({})", if parsed.is_ipv4() { "0.0.0.0" } else { "::" })
            } else if parsed.is_loopback() {
                "may not be in the loopback range (127.0.0.0/8, ::1/128)".to_owned()
            } else if parsed.is_multicast() {
                "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)".to_owned()
            } else {
                return;
            };
            errors.push(FieldError::invalid(field, address, why));
        }
    }
}

struct EndpointSlices;

fn complete_slice(object: &mut Value) {
    if let Some(fields) = object.as_object_mut() {
        for port in items_mut(fields, "ports") {
            default(port, "name", "");
            default(port, "protocol", "TCP");
        }
        for endpoint in items_mut(fields, "endpoints") {
            default(endpoint, "conditions", json!({}));
        }
    }
}

impl Strategy for EndpointSlices {
    fn facts(&self) -> &'static Facts {
        &SLICES
    }

    fn validate(&self, object: &Value) -> Vec<FieldError> {
        let kind = text(object, "addressType");
        let mut errors = Vec::new();
        if kind.is_empty() {
            errors.push(FieldError::required("addressType", ""));
        }
        errors.extend(enumerated("addressType", kind, &["FQDN", "IPv4", "IPv6"]));
        for (index, endpoint) in list_at(object, "/endpoints").iter().enumerate() {
            if list_at(endpoint, "/addresses").is_empty() {
                let field = format!("endpoints[{index}].addresses");
                errors.push(FieldError::required(field, "must contain at least 1 address"));
            }
        }
        errors
    }

    fn complete(&self, _cx: &StrategyContext<'_>, object: &mut Value) {
        complete_slice(object);
    }

    fn validate_change(&self, object: &Value, old: &Value) -> Vec<FieldError> {
        immutable(object, old, "/addressType")
    }
}

struct Ingresses;

impl Strategy for Ingresses {
    fn facts(&self) -> &'static Facts {
        &Facts::SPEC
    }

    fn validate(&self, object: &Value) -> Vec<FieldError> {
        let spec = &object["spec"];
        let mut errors = Vec::new();
        let rules = list_at(spec, "/rules");
        if rules.is_empty() && spec.get("defaultBackend").is_none() {
            let detail = "either `defaultBackend` or `rules` must be specified";
            errors.push(FieldError::invalid("spec", Value::Null, detail));
        }
        for (index, rule) in rules.iter().enumerate() {
            let path = format!("spec.rules[{index}]");
            let host = text(rule, "host");
            let plain = host.strip_prefix("*.").unwrap_or(host);
            if !host.is_empty() {
                errors.extend(named(&format!("{path}.host"), host, names::dns_1123_subdomain(plain)));
            }
            for (index, entry) in list_at(rule, "/http/paths").iter().enumerate() {
                let path = format!("{path}.http.paths[{index}]");
                let kind = text(entry, "pathType");
                if kind.is_empty() {
                    errors
                        .push(FieldError::required(format!("{path}.pathType"), "pathType must be specified"));
                    continue;
                }
                let known = ["Exact", "ImplementationSpecific", "Prefix"];
                errors.extend(enumerated(&format!("{path}.pathType"), kind, &known));
                let place = text(entry, "path");
                if kind != "ImplementationSpecific" && !place.starts_with('/') {
                    errors.push(FieldError::invalid(
                        format!("{path}.path"),
                        place,
                        "must be an absolute path",
                    ));
                }
            }
        }
        errors
    }

    fn complete(&self, _cx: &StrategyContext<'_>, object: &mut Value) {
        spec_mut(object);
    }

    fn new_status(&self, _cx: &StrategyContext<'_>) -> Option<Value> {
        Some(json!({"loadBalancer": {}}))
    }
}

struct IngressClasses;

impl Strategy for IngressClasses {
    fn facts(&self) -> &'static Facts {
        &Facts::SPEC
    }

    fn complete(&self, _cx: &StrategyContext<'_>, object: &mut Value) {
        if let Some(parameters) = entry_mut(spec_mut(object), "parameters") {
            default(parameters, "scope", "Cluster");
        }
    }

    fn validate_change(&self, object: &Value, old: &Value) -> Vec<FieldError> {
        immutable(object, old, "/spec/controller")
    }
}

struct NetworkPolicies;

fn complete_policy(object: &mut Value) {
    let spec = spec_mut(object);
    default(spec, "podSelector", json!({}));
    let egress = spec.get("egress").and_then(Value::as_array).is_some_and(|rules| !rules.is_empty());
    if !spec.contains_key("policyTypes") {
        let types = if egress { json!(["Ingress", "Egress"]) } else { json!(["Ingress"]) };
        spec.insert("policyTypes".to_owned(), types);
    }
    for direction in ["ingress", "egress"] {
        for rule in items_mut(spec, direction) {
            for port in items_mut(rule, "ports") {
                default(port, "protocol", "TCP");
            }
        }
    }
}

impl Strategy for NetworkPolicies {
    fn facts(&self) -> &'static Facts {
        &Facts::SPEC
    }

    fn validate(&self, object: &Value) -> Vec<FieldError> {
        let known = ["Ingress", "Egress"];
        list_at(object, "/spec/policyTypes")
            .iter()
            .filter_map(Value::as_str)
            .enumerate()
            .filter(|(_, kind)| !known.contains(kind))
            .map(|(index, kind)| {
                FieldError::not_supported(format!("spec.policyTypes[{index}]"), kind, &known)
            })
            .collect()
    }

    fn complete(&self, _cx: &StrategyContext<'_>, object: &mut Value) {
        complete_policy(object);
    }
}
