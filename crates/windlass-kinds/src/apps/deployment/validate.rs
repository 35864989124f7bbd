//! Validation and warnings.

use serde_json::Value;
use windlass_schema::FieldError;

use crate::checks::validate_not_negative;
use crate::json::int_at;
use crate::workload::counters::Counters;
use crate::workload::rollout::validate_rollout;
use crate::workload::template::{validate_selector, validate_template};
use crate::workload::validate::WorkloadValidation;

pub(super) static VALIDATION: WorkloadValidation =
    WorkloadValidation { spec: validate, counters: COUNTERS, has_fixed_selector: true, names_pods: true };

fn validate(spec: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    validate_not_negative(spec, &["replicas"], &mut errors);
    validate_selector(spec, "deployment", &mut errors);
    validate_template(spec, "ReplicaSet", &mut errors);
    validate_rollout(spec, &mut errors);
    validate_not_negative(spec, &["minReadySeconds", "revisionHistoryLimit"], &mut errors);
    let deadline = int_at(spec, "/progressDeadlineSeconds");
    if let Some(deadline) = deadline.filter(|deadline| *deadline < 0) {
        let detail = "must be greater than or equal to 0";
        errors.push(FieldError::invalid("spec.progressDeadlineSeconds", deadline, detail));
    }
    let ready = int_at(spec, "/minReadySeconds").unwrap_or_default();
    if let Some(deadline) = deadline.filter(|deadline| *deadline <= ready) {
        let detail = "must be greater than minReadySeconds";
        errors.push(FieldError::invalid("spec.progressDeadlineSeconds", deadline, detail));
    }
    errors
}

const COUNTERS: Counters = Counters {
    fields: &[
        "observedGeneration",
        "replicas",
        "updatedReplicas",
        "readyReplicas",
        "availableReplicas",
        "unavailableReplicas",
        "terminatingReplicas",
        "collisionCount",
    ],
    below_total: &["updatedReplicas", "readyReplicas", "availableReplicas"],
    ready: "readyReplicas",
    collisions: true,
};
