//! Validation and warnings.

use serde_json::Value;
use windlass_schema::FieldError;

use super::Leases;
use crate::json::int_at;
use crate::kind::Validate;

impl Validate for Leases {
    fn validate(&self, object: &Value) -> Vec<FieldError> {
        let mut errors = Vec::new();
        if let Some(seconds) = int_at(object, "/spec/leaseDurationSeconds").filter(|seconds| *seconds <= 0) {
            let detail = "must be greater than 0";
            errors.push(FieldError::invalid("spec.leaseDurationSeconds", seconds, detail));
        }
        if let Some(count) = int_at(object, "/spec/leaseTransitions").filter(|count| *count < 0) {
            let detail = "must be greater than or equal to 0";
            errors.push(FieldError::invalid("spec.leaseTransitions", count, detail));
        }
        errors
    }
}
