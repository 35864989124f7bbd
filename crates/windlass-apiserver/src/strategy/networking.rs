//! Ingresses, network policies, and the addresses of services.

use serde_json::{Value, json};
use windlass_schema::FieldError;

use super::checks::{enumerated, immutable, named};
use super::fields::{default, entry_mut, items_mut, list_at, spec_mut, text};
use super::{Facts, FactsOnly, Strategy, StrategyContext};
use crate::wire::names;

pub(super) fn of(resource: &str) -> &'static dyn Strategy {
    match resource {
        "ingresses" => &Ingresses,
        "ingressclasses" => &IngressClasses,
        "networkpolicies" => &NetworkPolicies,
        "ipaddresses" | "servicecidrs" => &FactsOnly(&Facts::DATA),
        _ => &FactsOnly(&Facts::SPEC),
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
