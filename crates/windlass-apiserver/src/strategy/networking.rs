//! Ingresses, network policies, and the addresses of services.

use serde_json::{Value, json};
use windlass_schema::FieldError;

use super::addresses::{is_address, validate_address};
use super::checks::{enumerated, immutable, invalid_names, validate_domain_path};
use super::fields::{int_at, list_at, map_at, spec_mut, text};
use super::{Facts, FactsOnly, Strategy, StrategyContext, Writes};
use crate::wire::{ApiError, names};

pub(super) fn of(resource: &str) -> &'static dyn Strategy {
    match resource {
        "ingresses" => &Ingresses,
        "ingressclasses" => &IngressClasses,
        "networkpolicies" => &NetworkPolicies,
        "ipaddresses" => &FactsOnly(&ADDRESSES),
        "servicecidrs" => &FactsOnly(&RANGES),
        _ => &FactsOnly(&Facts::SPEC),
    }
}

const INGRESSES: Facts =
    Facts { unenforced: Some("no traffic is routed, because there is no ingress controller"), ..Facts::SPEC };
const INGRESS_CLASSES: Facts = Facts {
    unenforced: Some("no ingress uses the class, because there is no ingress controller"),
    ..Facts::SPEC
};
const NETWORK_POLICIES: Facts =
    Facts { unenforced: Some("no traffic is restricted, because pods have no network"), ..Facts::SPEC };
const ADDRESSES: Facts =
    Facts { unenforced: Some("the address is not reserved for a service"), ..Facts::DATA };
const RANGES: Facts = Facts {
    writes: Writes::STATUS_ONLY,
    unenforced: Some("services get no addresses from the range"),
    ..Facts::DATA
};

struct Ingresses;

impl Strategy for Ingresses {
    fn facts(&self) -> &'static Facts {
        &INGRESSES
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
            if is_address(host) {
                let detail = "must be a DNS name, not an IP address";
                errors.push(FieldError::invalid(format!("{path}.host"), host, detail));
            }
            if !host.is_empty() {
                errors.extend(invalid_names(&format!("{path}.host"), host, names::dns_1123_subdomain(plain)));
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

    fn prepare_create(&self, _cx: &StrategyContext<'_>, object: &mut Value) -> Result<(), ApiError> {
        object["status"] = json!({"loadBalancer": {}});
        Ok(())
    }

    fn validate_update(&self, cx: &StrategyContext<'_>, object: &Value, old: &Value) -> Vec<FieldError> {
        if cx.subresource != "status" {
            return self.validate(object);
        }
        let known = list_at(old, "/status/loadBalancer/ingress");
        list_at(object, "/status/loadBalancer/ingress")
            .iter()
            .enumerate()
            .filter(|(_, point)| !known.contains(point))
            .flat_map(|(index, point)| {
                validate_ingress_point(&format!("status.loadBalancer.ingress[{index}]"), point)
            })
            .collect()
    }

    fn warnings(&self, cx: &StrategyContext<'_>, object: &Value, old: Option<&Value>) -> Vec<String> {
        const CLASS: &str = "kubernetes.io/ingress.class";
        if !cx.subresource.is_empty() {
            return Vec::new();
        }
        let mut warnings: Vec<String> = INGRESSES.unenforced_warning().into_iter().collect();
        let is_annotated = map_at(object, "/metadata/annotations").is_some_and(|all| all.contains_key(CLASS));
        if old.is_none() && is_annotated && object.pointer("/spec/ingressClassName").is_none() {
            warnings.push(format!(
                "annotation \"{CLASS}\" is deprecated, please use 'spec.ingressClassName' instead"
            ));
        }
        warnings
    }
}

/// Validates an address or a name under which an ingress is reached.
fn validate_ingress_point(field: &str, point: &Value) -> Vec<FieldError> {
    let (ip, name) = (text(point, "ip"), text(point, "hostname"));
    let mut errors = Vec::new();
    if !ip.is_empty() {
        errors.extend(validate_address(&format!("{field}.ip"), ip));
    }
    if !name.is_empty() {
        let field = format!("{field}.hostname");
        errors.extend(invalid_names(&field, name, names::dns_1123_subdomain(name)));
        if is_address(name) {
            errors.push(FieldError::invalid(field, name, "must be a DNS name, not an IP address"));
        }
    }
    errors
}

struct IngressClasses;

impl Strategy for IngressClasses {
    fn facts(&self) -> &'static Facts {
        &INGRESS_CLASSES
    }

    fn validate(&self, object: &Value) -> Vec<FieldError> {
        validate_domain_path("spec.controller", text(&object["spec"], "controller"))
    }

    fn validate_change(&self, object: &Value, old: &Value) -> Vec<FieldError> {
        immutable(object, old, "/spec/controller")
    }
}

struct NetworkPolicies;

impl Strategy for NetworkPolicies {
    fn facts(&self) -> &'static Facts {
        &NETWORK_POLICIES
    }

    fn validate(&self, object: &Value) -> Vec<FieldError> {
        let known = ["Ingress", "Egress"];
        let mut errors = Vec::new();
        for (direction, peers) in [("ingress", "from"), ("egress", "to")] {
            for (index, rule) in list_at(object, &format!("/spec/{direction}")).iter().enumerate() {
                let path = format!("spec.{direction}[{index}]");
                for (index, port) in list_at(rule, "/ports").iter().enumerate() {
                    errors.extend(validate_policy_port(&format!("{path}.ports[{index}]"), port));
                }
                for (index, peer) in list_at(rule, &format!("/{peers}")).iter().enumerate() {
                    errors.extend(validate_policy_peer(&format!("{path}.{peers}[{index}]"), peer));
                }
            }
        }
        let types = list_at(object, "/spec/policyTypes").iter().filter_map(Value::as_str).enumerate();
        errors.extend(types.filter(|(_, kind)| !known.contains(kind)).map(|(index, kind)| {
            FieldError::not_supported(format!("spec.policyTypes[{index}]"), kind, &known)
        }));
        errors
    }

    fn default(&self, object: &mut Value) {
        let spec = spec_mut(object);
        if !spec.contains_key("policyTypes") {
            let egress = spec.get("egress").and_then(Value::as_array).is_some_and(|rules| !rules.is_empty());
            let types = if egress { json!(["Ingress", "Egress"]) } else { json!(["Ingress"]) };
            spec.insert("policyTypes".to_owned(), types);
        }
    }
}

/// Validates a port, or a range of ports, of a network policy.
fn validate_policy_port(path: &str, entry: &Value) -> Vec<FieldError> {
    let protocol = text(entry, "protocol");
    let mut errors: Vec<FieldError> =
        enumerated(&format!("{path}.protocol"), protocol, &["TCP", "UDP", "SCTP"]).into_iter().collect();
    let (field, end_field) = (format!("{path}.port"), format!("{path}.endPort"));
    let end = int_at(entry, "/endPort");
    match (entry.get("port"), end) {
        (Some(Value::Number(port)), end) => {
            let port = port.as_i64().unwrap_or_default();
            let problems = names::port_number(port);
            errors.extend(problems.into_iter().map(|why| FieldError::invalid(&*field, port, why)));
            let Some(end) = end else { return errors };
            if end < port {
                let detail = "must be greater than or equal to `port`";
                errors.push(FieldError::invalid(&*end_field, port, detail));
            }
            let problems = names::port_number(end);
            errors.extend(problems.into_iter().map(|why| FieldError::invalid(&*end_field, end, why)));
        }
        (Some(Value::String(name)), end) => {
            let detail = "may not be specified when `port` is non-numeric";
            errors.extend(end.map(|end| FieldError::invalid(end_field, end, detail)));
            errors.extend(invalid_names(&field, name, names::port_name(name)));
        }
        (_, end) => {
            let detail = "may not be specified when `port` is not specified";
            errors.extend(end.map(|end| FieldError::invalid(end_field, end, detail)));
        }
    }
    errors
}

/// Validates one side of the traffic of a network policy.
fn validate_policy_peer(path: &str, peer: &Value) -> Option<FieldError> {
    let has = |field: &str| peer.get(field).is_some_and(|value| !value.is_null());
    let selects = has("podSelector") || has("namespaceSelector");
    match (selects, has("ipBlock")) {
        (false, false) => Some(FieldError::required(path, "must specify a peer")),
        (true, true) => Some(FieldError::forbidden(path, "may not specify both ipBlock and another peer")),
        (_, true) if text(&peer["ipBlock"], "cidr").is_empty() => {
            Some(FieldError::required(format!("{path}.ipBlock.cidr"), ""))
        }
        _ => None,
    }
}
