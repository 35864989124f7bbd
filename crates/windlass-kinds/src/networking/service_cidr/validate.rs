//! Validation.

use serde_json::Value;
use windlass_schema::FieldError;

use super::Ranges;
use crate::addresses;
use crate::field::{self, Errors, Field};
use crate::kind::{Validate, WriteContext};

const IMMUTABLE: &str = "field is immutable";

impl Validate for Ranges {
    fn validate_create(&self, _: &WriteContext<'_>, object: &Value) -> Vec<FieldError> {
        field::validate("spec", &object["spec"], |spec, errors| ranges(spec, errors))
    }

    /// A second range may be added. The ranges that are there do not change.
    fn validate_change(&self, object: &Value, old: &Value) -> Vec<FieldError> {
        field::validate("spec", &object["spec"], |spec, errors| {
            let (list, before) = (spec.at("cidrs"), spec.with(&old["spec"]).at("cidrs"));
            match (before.len(), list.len()) {
                (1, 2) => {
                    changes(&list, &before, errors);
                    ranges(spec, errors);
                }
                (had, has) if had == has => changes(&list, &before, errors),
                _ => {
                    let shown = list.value().as_array().cloned().unwrap_or_default();
                    errors.push(list.invalid_as(shown, IMMUTABLE));
                }
            }
        })
    }
}

fn changes(list: &Field<'_>, before: &Field<'_>, errors: &mut Errors) {
    for (range, old) in list.items().zip(before.items()) {
        if range.value() != old.value() {
            errors.push(range.invalid(IMMUTABLE));
        }
    }
}

/// Validates that there is a range, and at most a range for each family of addresses.
fn ranges(spec: &Field<'_>, errors: &mut Errors) {
    const FAMILIES: &str =
        "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64";
    let list = spec.at("cidrs");
    if list.is_empty() {
        errors.push(list.required("at least one CIDR required"));
        return;
    }
    if list.len() > 2 {
        errors.push(list.invalid_as(spec.value().clone(), "may only hold up to 2 values"));
        return;
    }
    list.items().for_each(|range| addresses::canonical_range(&range, errors));
    let families: Vec<_> = list.items().filter_map(|range| addresses::parse_range(range.text())).collect();
    if let [(first, _), (second, _)] = families[..]
        && first.is_ipv4() == second.is_ipv4()
    {
        errors.push(list.invalid(FAMILIES));
    }
}
