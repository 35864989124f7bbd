//! Endpoint slices.

use std::net::IpAddr;

use serde_json::Value;
use windlass_schema::FieldError;

use super::addresses::{validate_address, validate_endpoint_address};
use super::checks::{enumerated, immutable};
use super::fields::{list_at, text};
use super::{Facts, FactsOnly, Generation, Strategy, StrategyContext};
use crate::wire::names;

pub(super) fn of(resource: &str) -> &'static dyn Strategy {
    match resource {
        "endpointslices" => &EndpointSlices,
        _ => &FactsOnly(&Facts::SPEC),
    }
}

const SLICES: Facts = Facts { generation: Generation::All, ..Facts::SPEC };

struct EndpointSlices;

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
        errors.extend(validate_endpoints(object, kind));
        errors
    }

    fn validate_update(&self, _cx: &StrategyContext<'_>, object: &Value, old: &Value) -> Vec<FieldError> {
        let mut errors = self.validate(object);
        if object.get("endpoints") == old.get("endpoints") {
            // Endpoints that older rules let in may stay.
            errors.retain(|error| !error.field.starts_with("endpoints"));
        }
        errors.extend(immutable(object, old, "/addressType"));
        errors
    }
}

fn validate_endpoints(slice: &Value, kind: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for (index, endpoint) in list_at(slice, "/endpoints").iter().enumerate() {
        let field = format!("endpoints[{index}].addresses");
        let addresses = list_at(endpoint, "/addresses");
        if addresses.is_empty() {
            errors.push(FieldError::required(&*field, "must contain at least 1 address"));
        }
        for (index, address) in addresses.iter().filter_map(Value::as_str).enumerate() {
            errors.extend(validate_endpoint(&field, &format!("{field}[{index}]"), address, kind));
        }
    }
    errors
}

/// Validates an address of the type `kind`. Errors about the type name the list of addresses.
fn validate_endpoint(list: &str, field: &str, address: &str, kind: &str) -> Vec<FieldError> {
    if kind == "FQDN" {
        return validate_domain_name(field, address).into_iter().collect();
    }
    let is_typed = match (address.parse::<IpAddr>(), kind) {
        (_, other) if other != "IPv4" && other != "IPv6" => return Vec::new(),
        (Err(_), _) => return validate_address(field, address).into_iter().collect(),
        (Ok(found), kind) => found.is_ipv4() == (kind == "IPv4"),
    };
    let typed = (!is_typed).then(|| FieldError::invalid(list, address, format!("must be an {kind} address")));
    typed.into_iter().chain(validate_endpoint_address(field, address)).collect()
}

fn validate_domain_name(field: &str, name: &str) -> Option<FieldError> {
    if name.is_empty() {
        return Some(FieldError::required(field, ""));
    }
    let name = name.strip_suffix('.').unwrap_or(name);
    let problems = names::dns_1123_subdomain(name);
    if !problems.is_empty() {
        return Some(FieldError::invalid(field, name, problems.join(",")));
    }
    let detail = "should be a domain with at least two segments separated by dots";
    (!name.contains('.')).then(|| FieldError::invalid(field, name, detail))
}
