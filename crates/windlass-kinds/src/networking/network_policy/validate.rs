//! Validation of network policies.

use std::collections::BTreeSet;

use serde_json::Value;
use windlass_schema::FieldError;
use windlass_wire::names;

use super::NetworkPolicies;
use crate::addresses::{address_range, is_strict_subset, parse_range};
use crate::field::{self, Errors, Field};
use crate::kind::{Validate, WriteContext};
use crate::selector::label_selector;

impl Validate for NetworkPolicies {
    fn validate_create(&self, _cx: &WriteContext<'_>, object: &Value) -> Vec<FieldError> {
        validate(object, &Value::Null)
    }

    fn validate_update(&self, _cx: &WriteContext<'_>, object: &Value, old: &Value) -> Vec<FieldError> {
        validate(object, old)
    }
}

const SIDES: [(&str, &str); 2] = [("ingress", "from"), ("egress", "to")];

/// Validates a network policy. Ranges that the stored one has are not validated again.
pub(super) fn validate(object: &Value, old: &Value) -> Vec<FieldError> {
    field::validate("spec", &object["spec"], |spec, errors| {
        let known = ranges(&spec.with(old.get("spec").unwrap_or(&Value::Null)));
        label_selector(&spec.at("podSelector"), errors);
        for (side, peers) in SIDES {
            for rule in spec.at(side).items() {
                for port in rule.at("ports").items() {
                    validate_port(&port, errors);
                }
                for peer in rule.at(peers).items() {
                    validate_peer(&peer, &known, errors);
                }
            }
        }
        let types = spec.at("policyTypes");
        if types.len() > 2 {
            errors.push(types.invalid("may not specify more than two policyTypes"));
            return;
        }
        for kind in types.items() {
            kind.one_of(&["Ingress", "Egress"], errors);
        }
    })
}

/// Returns the ranges in a spec.
fn ranges<'a>(spec: &Field<'a>) -> BTreeSet<&'a str> {
    let mut found = BTreeSet::new();
    for (side, peers) in SIDES {
        for peer in spec.at(side).items().flat_map(|rule| rule.at(peers).items()) {
            let block = peer.at("ipBlock");
            found.insert(block.at("cidr").text());
            found.extend(block.at("except").items().map(|range| range.text()));
        }
    }
    found
}

fn validate_port(entry: &Field<'_>, errors: &mut Errors) {
    let (port, end) = (entry.at("port"), entry.at("endPort"));
    entry.at("protocol").one_of(&["TCP", "UDP", "SCTP"], errors);
    match port.value() {
        Value::Null => {
            if end.is_set() {
                errors.push(end.invalid("may not be specified when `port` is not specified"));
            }
        }
        Value::String(_) => {
            if end.is_set() {
                errors.push(end.invalid("may not be specified when `port` is non-numeric"));
            }
            port.check(names::port_name, errors);
        }
        _ => {
            port.within(1, 65535, errors);
            if end.is_set() && end.int() < port.int() {
                errors.push(end.invalid("must be greater than or equal to `port`"));
            }
            end.within(1, 65535, errors);
        }
    }
}

/// Validates one side of the traffic.
fn validate_peer(peer: &Field<'_>, known: &BTreeSet<&str>, errors: &mut Errors) {
    let selectors = ["podSelector", "namespaceSelector"].map(|selector| peer.at(selector));
    let block = peer.at("ipBlock");
    for selector in &selectors {
        label_selector(selector, errors);
    }
    if block.is_set() {
        validate_block(&block, known, errors);
    }
    let selects = selectors.iter().any(Field::is_set);
    if !selects && !block.is_set() {
        errors.push(peer.required("must specify a peer"));
    } else if selects && block.is_set() {
        errors.push(peer.forbidden("may not specify both ipBlock and another peer"));
    }
}

fn validate_block(block: &Field<'_>, known: &BTreeSet<&str>, errors: &mut Errors) {
    let range = block.at("cidr");
    if range.require(errors) {
        return;
    }
    address_range(&range, known, errors);
    let Some(outer) = parse_range(range.text()) else { return };
    for except in block.at("except").items() {
        address_range(&except, known, errors);
        let inner = parse_range(except.text());
        if inner.is_some_and(|inner| !is_strict_subset(inner, outer)) {
            errors.push(except.invalid("must be a strict subset of `cidr`"));
        }
    }
}
