//! Validation and warnings.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use windlass_schema::FieldError;
use windlass_wire::names;

use super::StorageClasses;
use crate::checks::declared_immutable;
use crate::field::{self, Errors, Field};
use crate::kind::{Validate, WriteContext};
use crate::pod_template::warnings::node_label;

impl Validate for StorageClasses {
    fn validate(&self, object: &Value) -> Vec<FieldError> {
        field::validate("", object, |class, errors| {
            validate_provisioner(&class.at("provisioner"), errors);
            validate_parameters(&class.at("parameters"), true, errors);
            let policy = class.at("reclaimPolicy");
            if !policy.text().is_empty() {
                policy.one_of(&["Delete", "Retain"], errors);
            }
            let mode = class.at("volumeBindingMode");
            if mode.is_set() {
                mode.one_of(&["Immediate", "WaitForFirstConsumer"], errors);
            } else {
                errors.push(mode.required(""));
            }
            validate_topologies(&class.at("allowedTopologies"), errors);
        })
    }

    fn warnings(&self, _cx: &WriteContext<'_>, object: &Value, _old: Option<&Value>) -> Vec<String> {
        let warnings: Vec<String> = field::validate("", object, |class, warnings| {
            let topologies = class.at("allowedTopologies");
            let expressions = topologies
                .items()
                .flat_map(|topology| topology.at("matchLabelExpressions").items().collect::<Vec<_>>());
            for key in expressions.map(|expression| expression.at("key")) {
                warnings.extend(node_label(key.text()).map(|text| key.warning(text)));
            }
        });
        warnings
    }

    fn validate_change(&self, object: &Value, old: &Value) -> Vec<FieldError> {
        let pointers = ["/parameters", "/provisioner", "/reclaimPolicy", "/volumeBindingMode"];
        pointers.into_iter().flat_map(|pointer| declared_immutable(object, old, pointer)).collect()
    }
}

const AT_LEAST_ONE: &str = "must contain at least one key/value pair";

/// Validates the name of a driver of volumes.
pub(crate) fn validate_provisioner(name: &Field<'_>, errors: &mut Errors) {
    if !name.require(errors) {
        let lower = name.text().to_lowercase();
        let problems = names::label_key(&lower).into_iter();
        errors.extend(problems.map(|problem| name.invalid_as(lower.as_str(), problem)));
    }
}

/// Validates the parameters of a driver of volumes.
pub(crate) fn validate_parameters(parameters: &Field<'_>, may_be_empty: bool, errors: &mut Errors) {
    let size: usize = parameters.entries().map(|(key, value)| key.len() + value.text().len()).sum();
    let Some(map) = parameters.map() else {
        if !may_be_empty {
            errors.push(parameters.required(AT_LEAST_ONE));
        }
        return;
    };
    if map.len() > 512 {
        errors.push(parameters.too_long(512));
        return;
    }
    if map.contains_key("") {
        errors.push(parameters.invalid_as("", "field can not be empty."));
    }
    if size > 256 * 1024 {
        errors.push(parameters.too_long(256 * 1024));
    }
    if map.is_empty() && !may_be_empty {
        errors.push(parameters.required(AT_LEAST_ONE));
    }
}

fn validate_topologies(topologies: &Field<'_>, errors: &mut Errors) {
    let mut known: Vec<BTreeMap<&str, BTreeSet<&str>>> = vec![BTreeMap::new(); topologies.len()];
    for term in topologies.items() {
        let mut requirements = BTreeMap::new();
        let expressions = term.at("matchLabelExpressions");
        for expression in expressions.items() {
            let (key, values) = (expression.at("key"), expression.at("values"));
            if values.is_empty() {
                errors.push(values.required(""));
            }
            let mut set = BTreeSet::new();
            for value in values.items() {
                if !set.insert(value.text()) {
                    errors.push(value.duplicate());
                }
            }
            key.check(names::label_key, errors);
            if requirements.insert(key.text(), set).is_some() {
                errors.push(key.duplicate_as(key.text()));
            }
        }
        // An empty term equals the places that kube-apiserver reserves for the terms to come.
        let copies = known.iter().filter(|other| **other == requirements).count();
        errors.extend((0..copies).map(|_| expressions.duplicate_as("")));
        known.push(requirements);
    }
}
