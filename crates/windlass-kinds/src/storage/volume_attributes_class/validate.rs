//! Validation.

use serde_json::Value;
use windlass_schema::FieldError;

use super::AttributesClasses;
use crate::field;
use crate::kind::Validate;
use crate::storage::storage_class::{validate_parameters, validate_provisioner};

impl Validate for AttributesClasses {
    fn validate(&self, object: &Value) -> Vec<FieldError> {
        field::validate("", object, |class, errors| {
            validate_provisioner(&class.at("driverName"), errors);
            validate_parameters(&class.at("parameters"), false, errors);
        })
    }

    fn validate_change(&self, object: &Value, old: &Value) -> Vec<FieldError> {
        let changed = ["driverName", "parameters"].into_iter().filter(|name| object[*name] != old[*name]);
        changed.map(|name| FieldError::forbidden(name, format!("updates to {name} are forbidden."))).collect()
    }
}
