//! Endpoint slices.

use std::collections::BTreeSet;
use std::net::IpAddr;

use serde_json::Value;
use windlass_schema::FieldError;

use super::addresses::{address, address_warning, endpoint_address};
use super::checks::immutable;
use super::fields::{list_at, text};
use super::place::{self, Errors, Place};
use super::{Facts, FactsOnly, Generation, Strategy, StrategyContext};
use crate::wire::{ApiError, names};

pub(super) fn of(resource: &str) -> &'static dyn Strategy {
    match resource {
        "endpointslices" => &EndpointSlices,
        _ => &FactsOnly(&Facts::SPEC),
    }
}

const SLICES: Facts = Facts { generation: Generation::All, ..Facts::SPEC };

struct EndpointSlices;

/// Removes the topology of endpoints, because clients cannot write the topology any more. A node name in
/// `old`'s topology moves to the node name field.
fn drop_topology(object: &mut Value, old: &Value) {
    const HOST: &str = "/deprecatedTopology/kubernetes.io~1hostname";
    let known: Vec<&Value> =
        list_at(old, "/endpoints").iter().filter_map(|endpoint| endpoint.pointer(HOST)).collect();
    let endpoints = object.get_mut("endpoints").and_then(Value::as_array_mut).into_iter().flatten();
    for endpoint in endpoints {
        let host = endpoint.pointer(HOST).filter(|host| known.contains(host)).cloned();
        let Some(fields) = endpoint.as_object_mut() else { continue };
        fields.remove("deprecatedTopology");
        if let Some(host) = host {
            fields.entry("nodeName").or_insert(host);
        }
    }
}

impl Strategy for EndpointSlices {
    fn facts(&self) -> &'static Facts {
        &SLICES
    }

    fn generation_changes(&self, object: &Value, old: &Value) -> bool {
        let labels = |object: &Value| object.pointer("/metadata/labels").cloned();
        SLICES.generation.changes(object, old) || labels(object) != labels(old)
    }

    fn prepare_create(&self, _cx: &StrategyContext<'_>, object: &mut Value) -> Result<(), ApiError> {
        drop_topology(object, &Value::Null);
        Ok(())
    }

    fn prepare_update(
        &self,
        _cx: &StrategyContext<'_>,
        object: &mut Value,
        old: &Value,
    ) -> Result<(), ApiError> {
        if object.get("endpoints") != old.get("endpoints") {
            drop_topology(object, old);
        }
        Ok(())
    }

    fn validate(&self, object: &Value) -> Vec<FieldError> {
        place::validate("", object, |slice, errors| {
            slice.at("addressType").require_one_of(&["FQDN", "IPv4", "IPv6"], errors);
            validate_ports(&slice.at("ports"), errors);
            validate_endpoints(&slice.at("endpoints"), slice.at("addressType").text(), errors);
        })
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

    fn warnings(&self, _cx: &StrategyContext<'_>, object: &Value, old: Option<&Value>) -> Vec<String> {
        let mut warnings = Vec::new();
        if old.is_none() && text(object, "addressType") == "FQDN" {
            warnings.push("spec.addressType: FQDN endpoints are deprecated".to_owned());
        }
        if text(object, "addressType") != "FQDN" {
            for (endpoint, addresses) in list_at(object, "/endpoints").iter().enumerate() {
                for (index, address) in list_at(addresses, "/addresses").iter().enumerate() {
                    let field = format!("endpoints[{endpoint}].addresses[{index}]");
                    warnings.extend(address_warning(&field, address.as_str().unwrap_or_default()));
                }
            }
        }
        warnings
    }
}

fn validate_ports(ports: &Place<'_>, errors: &mut Errors) {
    if ports.len() > 20_000 {
        errors.push(ports.too_many(20_000));
        return;
    }
    let mut seen = BTreeSet::new();
    for port in ports.items() {
        let (name, application) = (port.at("name"), port.at("appProtocol"));
        name.check_if_any(names::dns_1123_label, errors);
        if !seen.insert(name.text()) {
            errors.push(name.duplicate_as(name.text()));
        }
        let protocol = port.at("protocol");
        if protocol.is_set() {
            protocol.one_of(&["SCTP", "TCP", "UDP"], errors);
        } else {
            errors.push(protocol.required(""));
        }
        if application.is_set() {
            application.check(names::label_key, errors);
        }
    }
}

fn validate_endpoints(endpoints: &Place<'_>, kind: &str, errors: &mut Errors) {
    if endpoints.len() > 1000 {
        errors.push(endpoints.too_many(1000));
        return;
    }
    for endpoint in endpoints.items() {
        let addresses = endpoint.at("addresses");
        if addresses.is_empty() {
            errors.push(addresses.required("must contain at least 1 address"));
        } else if addresses.len() > 100 {
            errors.push(addresses.too_many(100));
        }
        for entry in addresses.items() {
            validate_address(&addresses, &entry, kind, errors);
        }
        let (node, host) = (endpoint.at("nodeName"), endpoint.at("hostname"));
        if node.is_set() {
            node.check(names::dns_1123_subdomain, errors);
        }
        let topology = endpoint.at("deprecatedTopology");
        if let Some(labels) = topology.map() {
            if labels.len() > 16 {
                errors.push(topology.too_many(16));
            }
            errors.extend(topology.moved(names::validate_labels(labels, "")));
        }
        if host.is_set() {
            host.check(names::dns_1123_label, errors);
        }
        validate_hints(&endpoint.at("hints"), errors);
    }
}

fn validate_hints(hints: &Place<'_>, errors: &mut Errors) {
    for field in ["forZones", "forNodes"] {
        let check = if field == "forZones" { names::label_value } else { names::dns_1123_subdomain };
        let list = hints.at(field);
        if list.len() > 8 {
            errors.push(list.too_many(8));
            return;
        }
        let mut seen = BTreeSet::new();
        for name in list.items().map(|entry| entry.at("name")) {
            if !seen.insert(name.text()) {
                errors.push(name.duplicate_as(name.text()));
            }
            name.check(check, errors);
        }
    }
}

/// Validates an address of the type `kind`. Errors about the type name the list of addresses.
fn validate_address(list: &Place<'_>, entry: &Place<'_>, kind: &str, errors: &mut Errors) {
    if kind == "FQDN" {
        validate_domain_name(entry, errors);
        return;
    }
    if kind != "IPv4" && kind != "IPv6" {
        return;
    }
    let before = errors.len();
    address(entry, errors);
    let text = entry.text();
    let Ok(found) = text.parse::<IpAddr>() else { return };
    if errors.len() > before {
        return;
    }
    if kind == "IPv6" && found.to_string() != text {
        let quoted = windlass_schema::go_quote(&found.to_string());
        errors.push(entry.invalid(format!("must be in canonical form ({quoted})")));
        return;
    }
    if found.is_ipv4() != (kind == "IPv4") {
        errors.push(list.invalid_as(text, format!("must be an {kind} address")));
    }
    endpoint_address(entry, errors);
}

fn validate_domain_name(place: &Place<'_>, errors: &mut Errors) {
    if place.require(errors) {
        return;
    }
    let name = place.text().strip_suffix('.').unwrap_or(place.text());
    let problems = names::dns_1123_subdomain(name);
    if !problems.is_empty() {
        errors.push(place.invalid_as(name, problems.join(",")));
        return;
    }
    if !name.contains('.') {
        let detail = "should be a domain with at least two segments separated by dots";
        errors.push(place.invalid_as(name, detail));
        return;
    }
    let long = name.split('.').map(|label| (label, names::dns_1123_label(label)));
    if let Some((label, problems)) = long.into_iter().find(|(_, problems)| !problems.is_empty()) {
        errors.push(place.invalid_as(label, problems.join(",")));
    }
}
