//! Validation.

use serde_json::Value;
use windlass_schema::FieldError;
use windlass_wire::names;

use super::Addresses;
use crate::checks::declared_immutable;
use crate::field;
use crate::kind::Validate;

const PARENT: &str = "/spec/parentRef";

impl Validate for Addresses {
    fn validate(&self, object: &Value) -> Vec<FieldError> {
        field::validate("spec", &object["spec"], |spec, errors| {
            let parent = spec.at("parentRef");
            if !parent.is_set() {
                errors.push(parent.required(""));
                return;
            }
            parent.at("group").check_if_any(names::dns_1123_subdomain, errors);
            let segment = |name: &str| names::path_segment_name(name, false);
            parent.at("resource").require_check(segment, errors);
            parent.at("name").require_check(segment, errors);
            parent.at("namespace").check_if_any(segment, errors);
        })
    }

    fn validate_change(&self, object: &Value, old: &Value) -> Vec<FieldError> {
        declared_immutable(object, old, PARENT)
    }
}
