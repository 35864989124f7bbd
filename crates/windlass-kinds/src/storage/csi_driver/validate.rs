//! Validation and warnings.

use std::collections::BTreeSet;

use serde_json::Value;
use windlass_schema::FieldError;

use super::Drivers;
use crate::field::{self, Errors, Field};
use crate::kind::{Validate, WriteContext};

impl Validate for Drivers {
    fn validate(&self, object: &Value) -> Vec<FieldError> {
        field::validate("spec", &object["spec"], validate_driver)
    }

    fn validate_change(&self, object: &Value, old: &Value) -> Vec<FieldError> {
        let mut errors = Vec::new();
        for (field, shown) in
            [("attachRequired", "attachedRequired"), ("volumeLifecycleModes", "volumeLifecycleModes")]
        {
            let (new, old) = (&object["spec"][field], &old["spec"][field]);
            if new != old {
                errors.push(FieldError::invalid(format!("spec.{shown}"), new.clone(), "field is immutable"));
            }
        }
        errors
    }

    fn warnings(&self, _cx: &WriteContext<'_>, object: &Value, old: Option<&Value>) -> Vec<String> {
        let requests =
            |object: &Value| object["spec"]["tokenRequests"].as_array().cloned().unwrap_or_default();
        let wanted = requests(object);
        let is_news = !wanted.is_empty() && old.is_none_or(|old| requests(old) != wanted);
        if !is_news || !object["spec"]["serviceAccountTokenInSecrets"].is_null() {
            return Vec::new();
        }
        vec![
            "spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, set to true to prevent possible logging of tokens in volume attributes"
                .to_owned(),
        ]
    }
}

fn validate_driver(spec: &Field<'_>, errors: &mut Errors) {
    for (field, shown) in [
        ("attachRequired", "attachedRequired"),
        ("podInfoOnMount", "podInfoOnMount"),
        ("storageCapacity", "storageCapacity"),
    ] {
        if !spec.at(field).is_set() {
            errors.push(spec.at(shown).required(""));
        }
    }
    spec.at("fsGroupPolicy").one_of(&["File", "None", "ReadWriteOnceWithFSType"], errors);
    let mut audiences = BTreeSet::new();
    for request in spec.at("tokenRequests").items() {
        let (audience, seconds) = (request.at("audience"), request.at("expirationSeconds"));
        if !audiences.insert(audience.text()) {
            errors.push(audience.duplicate_as(audience.text()));
            continue;
        }
        if seconds.is_set() && seconds.int() < 600 {
            errors.push(seconds.invalid("may not specify a duration less than 10 minutes"));
        }
        if seconds.int() > 1 << 32 {
            errors.push(seconds.invalid("may not specify a duration larger than 2^32 seconds"));
        }
    }
    let modes = spec.at("volumeLifecycleModes");
    for mode in modes.items() {
        if !["Ephemeral", "Persistent"].contains(&mode.text()) {
            errors.push(modes.unsupported_as(mode.text(), &["Persistent", "Ephemeral"]));
        }
    }
    if !spec.at("seLinuxMount").is_set() {
        errors.push(spec.at("seLinuxMount").required(""));
    }
    let period = spec.at("nodeAllocatableUpdatePeriodSeconds");
    if period.is_set() && period.int() < 10 {
        errors.push(period.invalid("must be greater than or equal to 10 seconds"));
    }
    let in_secrets = spec.at("serviceAccountTokenInSecrets");
    if in_secrets.is_set() && spec.at("tokenRequests").is_empty() {
        errors.push(
            in_secrets.invalid("serviceAccountTokenInSecrets is set but no tokenRequests are specified"),
        );
    }
}
