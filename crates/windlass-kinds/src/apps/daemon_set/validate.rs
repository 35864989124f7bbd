//! Validation and warnings.

use serde_json::Value;
use windlass_schema::FieldError;

use crate::checks::validate_not_negative;
use crate::json::text_at;
use crate::workload::counters::Counters;
use crate::workload::rollout::{show_strategy, validate_daemon_rollout};
use crate::workload::template::{validate_selector, validate_template};
use crate::workload::validate::WorkloadValidation;

pub(super) static VALIDATION: WorkloadValidation =
    WorkloadValidation { spec: validate, counters: COUNTERS, has_fixed_selector: true, names_pods: false };

fn validate(spec: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    validate_selector(spec, "daemonset", &mut errors);
    validate_template(spec, "DaemonSet", &mut errors);
    validate_not_negative(spec, &["minReadySeconds"], &mut errors);
    let kind = text_at(spec, "/updateStrategy/type");
    let known = ["RollingUpdate", "OnDelete"];
    if !known.contains(&kind) {
        let error = FieldError::not_supported("spec.updateStrategy", kind, &known);
        errors.push(error.showing(show_strategy(kind)));
    }
    if kind == "RollingUpdate" {
        errors.extend(validate_daemon_rollout(spec));
    }
    validate_not_negative(spec, &["revisionHistoryLimit"], &mut errors);
    errors
}

const COUNTERS: Counters = Counters {
    fields: &[
        "currentNumberScheduled",
        "numberMisscheduled",
        "desiredNumberScheduled",
        "numberReady",
        "observedGeneration",
        "updatedNumberScheduled",
        "numberAvailable",
        "numberUnavailable",
        "collisionCount",
    ],
    below_total: &[],
    ready: "",
    collisions: true,
};
