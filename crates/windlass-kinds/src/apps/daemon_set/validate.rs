//! Validation and warnings.

use serde_json::Value;
use windlass_schema::FieldError;

use super::DaemonSets;
use crate::checks::{immutable, validate_not_negative};
use crate::json::text_at;
use crate::kind::{Validate, WriteContext};
use crate::workload::counters::Counters;
use crate::workload::rollout::{show_strategy, validate_daemon_rollout};
use crate::workload::template::{template_warnings, validate_selector, validate_template};

impl Validate for DaemonSets {
    fn validate(&self, object: &Value) -> Vec<FieldError> {
        let spec = &object["spec"];
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

    fn warnings(&self, cx: &WriteContext<'_>, object: &Value, old: Option<&Value>) -> Vec<String> {
        if cx.subresource.is_empty() { template_warnings(object, old, false) } else { Vec::new() }
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
