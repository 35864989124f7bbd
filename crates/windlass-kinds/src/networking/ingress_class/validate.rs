//! Validation and warnings.

use serde_json::Value;
use windlass_schema::FieldError;

use super::IngressClasses;
use crate::checks::immutable;
use crate::field;
use crate::kind::Validate;
use crate::networking::ingress::validate::validate_class;

impl Validate for IngressClasses {
    fn validate(&self, object: &Value) -> Vec<FieldError> {
        field::validate("spec", &object["spec"], validate_class)
    }

    fn validate_change(&self, object: &Value, old: &Value) -> Vec<FieldError> {
        immutable(object, old, "/spec/controller")
    }
}
