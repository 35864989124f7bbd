//! Validation and warnings.

use serde_json::Value;
use windlass_schema::FieldError;

use super::ReplicaSets;
use crate::checks::{immutable, validate_not_negative};
use crate::kind::{Validate, WriteContext};
use crate::workload::counters::REPLICAS;
use crate::workload::template::{template_warnings, validate_selector, validate_template};

impl Validate for ReplicaSets {
    fn validate(&self, object: &Value) -> Vec<FieldError> {
        let spec = &object["spec"];
        let mut errors = Vec::new();
        validate_not_negative(spec, &["replicas", "minReadySeconds"], &mut errors);
        validate_selector(spec, "deployment", &mut errors);
        validate_template(spec, "ReplicaSet", &mut errors);
        errors
    }

    fn warnings(&self, cx: &WriteContext<'_>, object: &Value, old: Option<&Value>) -> Vec<String> {
        if cx.subresource.is_empty() { template_warnings(object, old, true) } else { Vec::new() }
    }

    fn validate_status(&self, object: &Value, old: &Value) -> Vec<FieldError> {
        REPLICAS.validate(object, old)
    }

    fn validate_change(&self, object: &Value, old: &Value) -> Vec<FieldError> {
        immutable(object, old, "/spec/selector")
    }
}
