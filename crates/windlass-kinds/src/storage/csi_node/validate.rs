//! Validation.

use std::collections::BTreeSet;

use serde_json::Value;
use windlass_schema::FieldError;
use windlass_wire::names;

use super::Nodes;
use crate::field::{self, Errors, Field};
use crate::kind::Validate;
use crate::volume::source::driver_name;

/// The longest identifier of a node, in bytes.
const LONGEST_ID: usize = 256;

impl Validate for Nodes {
    fn validate(&self, object: &Value) -> Vec<FieldError> {
        field::validate("spec", &object["spec"], |spec, errors| {
            let mut names = BTreeSet::new();
            for driver in spec.at("drivers").items() {
                validate_driver(&driver, errors);
                let name = driver.at("name");
                if !names.insert(name.text()) {
                    errors.push(name.duplicate());
                }
                topology_keys(&driver, errors);
            }
        })
    }

    /// A driver that is there does not change, except for the number of volumes.
    fn validate_change(&self, object: &Value, old: &Value) -> Vec<FieldError> {
        field::validate("spec", &object["spec"], |spec, errors| {
            let (drivers, before) = (spec.at("drivers"), spec.with(&old["spec"]).at("drivers"));
            for old in before.items() {
                for driver in
                    drivers.items().filter(|driver| driver.at("name").text() == old.at("name").text())
                {
                    let rest = without_limit(driver.value());
                    if rest != without_limit(old.value()) {
                        errors.push(drivers.invalid_as(rest, "field is immutable"));
                    }
                }
            }
        })
    }
}

fn without_limit(driver: &Value) -> Value {
    let mut driver = driver.clone();
    if let Some(fields) = driver.as_object_mut() {
        fields.remove("allocatable");
    }
    driver
}

fn validate_driver(driver: &Field<'_>, errors: &mut Errors) {
    driver_name(&driver.at("name"), errors);
    let id = driver.at("nodeID");
    id.require(errors);
    if id.text().len() > LONGEST_ID {
        errors.push(id.invalid(format!("must be {LONGEST_ID} characters or less")));
    }
    driver.at_path("allocatable/count").not_negative(errors);
}

fn topology_keys(driver: &Field<'_>, errors: &mut Errors) {
    let mut keys = BTreeSet::new();
    for key in driver.at("topologyKeys").items() {
        let text = key.text();
        if text.is_empty() {
            errors.push(driver.required(""));
        }
        if !keys.insert(text) {
            errors.push(driver.duplicate_as(text));
        }
        errors.extend(names::label_key(text).into_iter().map(|problem| driver.invalid_as(text, problem)));
    }
}
