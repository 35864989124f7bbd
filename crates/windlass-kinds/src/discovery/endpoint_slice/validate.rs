//! Validation and warnings.

use std::collections::BTreeSet;
use std::net::IpAddr;

use serde_json::Value;
use windlass_schema::FieldError;
use windlass_wire::names;

use super::EndpointSlices;
use crate::addresses::{address, address_warning, endpoint_address};
use crate::checks::declared_immutable;
use crate::field::{self, Errors, Field};
use crate::json::{list_at, text};
use crate::kind::{Validate, WriteContext};

impl Validate for EndpointSlices {
    fn validate(&self, object: &Value) -> Vec<FieldError> {
        field::validate("", object, |slice, errors| {
            slice.at("addressType").require_one_of(&["FQDN", "IPv4", "IPv6"], errors);
            validate_ports(&slice.at("ports"), errors);
            validate_endpoints(&slice.at("endpoints"), slice.at("addressType").text(), errors);
        })
    }

    fn validate_update(&self, _cx: &WriteContext<'_>, object: &Value, old: &Value) -> Vec<FieldError> {
        let mut errors = self.validate(object);
        if object.get("endpoints") == old.get("endpoints") {
            // Endpoints that older rules let in may stay.
            errors.retain(|error| !error.field.starts_with("endpoints"));
        }
        errors.extend(declared_immutable(object, old, "/addressType"));
        errors
    }

    fn warnings(&self, _cx: &WriteContext<'_>, object: &Value, old: Option<&Value>) -> Vec<String> {
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

fn validate_ports(ports: &Field<'_>, errors: &mut Errors) {
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

fn validate_endpoints(endpoints: &Field<'_>, kind: &str, errors: &mut Errors) {
    if endpoints.len() > 1000 {
        errors.push(endpoints.too_many(1000));
        return;
    }
    for endpoint in endpoints.items() {
        let addresses = endpoint.at("addresses");
        if addresses.is_empty() {
            errors.push(addresses.required(""));
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

fn validate_hints(hints: &Field<'_>, errors: &mut Errors) {
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
fn validate_address(list: &Field<'_>, entry: &Field<'_>, kind: &str, errors: &mut Errors) {
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

fn validate_domain_name(place: &Field<'_>, errors: &mut Errors) {
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
