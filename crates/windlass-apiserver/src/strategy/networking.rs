//! Ingresses, network policies, and the addresses of services.

use serde_json::{Value, json};
use windlass_schema::FieldError;

use super::checks::{enumerated, immutable, invalid_names};
use super::fields::{list_at, spec_mut, text};
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
}

struct IngressClasses;

impl Strategy for IngressClasses {
    fn facts(&self) -> &'static Facts {
        &INGRESS_CLASSES
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

    fn default(&self, object: &mut Value) {
        let spec = spec_mut(object);
        if !spec.contains_key("policyTypes") {
            let egress = spec.get("egress").and_then(Value::as_array).is_some_and(|rules| !rules.is_empty());
            let types = if egress { json!(["Ingress", "Egress"]) } else { json!(["Ingress"]) };
            spec.insert("policyTypes".to_owned(), types);
        }
    }
}
