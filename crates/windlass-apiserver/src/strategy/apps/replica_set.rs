//! Replica sets.

use serde_json::{Value, json};
use windlass_schema::FieldError;

use super::counters::Counters;
use super::template::{
    complete_zero_scale, default_template, template_warnings, validate_selector, validate_template,
};
use crate::strategy::checks::{immutable, validate_not_negative};
use crate::strategy::fields::spec_mut;
use crate::strategy::{Facts, Strategy, StrategyContext};
use crate::wire::ApiError;

/// The counters of replica sets and replication controllers.
pub(in crate::strategy) const COUNTERS: Counters = Counters {
    fields: &[
        "replicas",
        "fullyLabeledReplicas",
        "readyReplicas",
        "availableReplicas",
        "observedGeneration",
        "terminatingReplicas",
    ],
    below_total: &["fullyLabeledReplicas", "readyReplicas", "availableReplicas"],
    ready: "readyReplicas",
    collisions: false,
};

pub(super) struct ReplicaSets;

impl Strategy for ReplicaSets {
    fn facts(&self) -> &'static Facts {
        &Facts::SPEC
    }

    fn complete_zero(&self, object: &mut Value) {
        complete_zero_scale(object);
    }

    fn default(&self, object: &mut Value) {
        default_template(spec_mut(object));
    }

    fn prepare_create(&self, _cx: &StrategyContext<'_>, object: &mut Value) -> Result<(), ApiError> {
        object["status"] = json!({"replicas": 0});
        Ok(())
    }

    fn validate(&self, object: &Value) -> Vec<FieldError> {
        let spec = &object["spec"];
        let mut errors = Vec::new();
        validate_not_negative(spec, &["replicas", "minReadySeconds"], &mut errors);
        validate_selector(spec, "deployment", &mut errors);
        validate_template(spec, "ReplicaSet", &mut errors);
        errors
    }

    fn warnings(&self, cx: &StrategyContext<'_>, object: &Value, old: Option<&Value>) -> Vec<String> {
        if !cx.subresource.is_empty() {
            return Vec::new();
        }
        let mut warnings: Vec<String> = Vec::new();
        warnings.extend(template_warnings(object, old, true));
        warnings
    }

    fn validate_status(&self, object: &Value, old: &Value) -> Vec<FieldError> {
        COUNTERS.validate(object, old)
    }

    fn validate_change(&self, object: &Value, old: &Value) -> Vec<FieldError> {
        immutable(object, old, "/spec/selector")
    }
}
