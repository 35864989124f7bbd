//! Validation and warnings.

use serde_json::Value;
use windlass_schema::FieldError;
use windlass_wire::names;

use super::Endpoints;
use crate::addresses::{address, endpoint_address};
use crate::field::{self, Errors, Field};
use crate::kind::{Validate, WriteContext};

impl Validate for Endpoints {
    fn validate_create(&self, _cx: &WriteContext<'_>, object: &Value) -> Vec<FieldError> {
        field::validate("", object, |object, errors| {
            for subset in object.at("subsets").items() {
                validate_subset(&subset, errors);
            }
        })
    }

    fn validate_update(&self, cx: &WriteContext<'_>, object: &Value, old: &Value) -> Vec<FieldError> {
        // Subsets that older rules let in may stay.
        if object.get("subsets") == old.get("subsets") {
            Vec::new()
        } else {
            self.validate_create(cx, object)
        }
    }
}

fn validate_subset(subset: &Field<'_>, errors: &mut Errors) {
    let lists = ["addresses", "notReadyAddresses"].map(|list| subset.at(list));
    if lists.iter().all(Field::is_empty) {
        errors.push(subset.required("must specify `addresses` or `notReadyAddresses`"));
    }
    for entry in lists.iter().flat_map(Field::items) {
        let ip = entry.at("ip");
        address(&ip, errors);
        entry.at("hostname").check_if_any(names::dns_1123_label, errors);
        let node = entry.at("nodeName");
        if node.is_set() {
            node.check(names::dns_1123_subdomain, errors);
        }
        endpoint_address(&ip, errors);
    }
    let ports = subset.at("ports");
    for port in ports.items() {
        let name = port.at("name");
        if !name.text().is_empty() {
            name.check(names::dns_1123_label, errors);
        } else if ports.len() > 1 {
            errors.push(name.required(""));
        }
        let number = port.at("port");
        let problems = names::port_number(number.int()).into_iter();
        errors.extend(problems.map(|problem| number.invalid_as(number.int(), problem)));
        port.at("protocol").require_one_of(&["SCTP", "TCP", "UDP"], errors);
        let protocol = port.at("appProtocol");
        if protocol.is_set() {
            protocol.check(names::label_key, errors);
        }
    }
}
