//! Validation and warnings.

use serde_json::Value;
use windlass_schema::FieldError;

use crate::checks::validate_not_negative;
use crate::workload::counters::REPLICAS;
use crate::workload::template::{validate_selector, validate_template};
use crate::workload::validate::WorkloadValidation;

pub(super) static VALIDATION: WorkloadValidation =
    WorkloadValidation { spec: validate, counters: REPLICAS, has_fixed_selector: true, names_pods: true };

fn validate(spec: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    validate_not_negative(spec, &["replicas", "minReadySeconds"], &mut errors);
    validate_selector(spec, "deployment", &mut errors);
    validate_template(spec, "ReplicaSet", &mut errors);
    errors
}
