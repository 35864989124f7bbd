//! Validation and warnings.

use serde_json::Value;
use windlass_schema::FieldError;

use super::Deployments;
use crate::checks::{immutable, validate_not_negative};
use crate::json::int_at;
use crate::kind::{Validate, WriteContext};
use crate::workload::counters::Counters;
use crate::workload::rollout::validate_rollout;
use crate::workload::template::{template_warnings, validate_selector, validate_template};

impl Validate for Deployments {
    fn validate(&self, object: &Value) -> Vec<FieldError> {
        let spec = &object["spec"];
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

    fn warnings(&self, cx: &WriteContext<'_>, object: &Value, old: Option<&Value>) -> Vec<String> {
        if cx.subresource.is_empty() { template_warnings(object, old, true) } else { Vec::new() }
    }

    fn validate_status(&self, object: &Value, old: &Value) -> Vec<FieldError> {
        COUNTERS.validate(object, old)
    }

    fn validate_change(&self, object: &Value, old: &Value) -> Vec<FieldError> {
        immutable(object, old, "/spec/selector")
    }
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
