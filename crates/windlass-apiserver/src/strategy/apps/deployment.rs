//! Deployments.

use serde_json::{Value, json};
use windlass_schema::FieldError;

use super::counters::Counters;
use super::rollout::{default_rolling_update, validate_rollout};
use super::template::{
    complete_zero_scale, default_template, template_warnings, validate_selector, validate_template,
};
use crate::strategy::checks::{immutable, validate_not_negative};
use crate::strategy::fields::{int_at, spec_mut};
use crate::strategy::{Facts, Strategy, StrategyContext, Writes};
use crate::wire::ApiError;

const FACTS: Facts = Facts {
    encoding_annotations: &["deprecated.deployment.rollback.rollbackTo"],
    // The controller writes the number of the rollout, an annotation, with the status.
    writes: &[("", Writes::AllBut(&["status"])), ("status", Writes::AllBut(&["spec", "metadata.labels"]))],
    ..Facts::SPEC
};

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

pub(super) struct Deployments;

impl Strategy for Deployments {
    fn facts(&self) -> &'static Facts {
        &FACTS
    }

    fn complete_zero(&self, object: &mut Value) {
        complete_zero_scale(object);
    }

    fn default(&self, object: &mut Value) {
        let spec = spec_mut(object);
        default_rolling_update(
            spec,
            "strategy",
            &[("maxUnavailable", "25%".into()), ("maxSurge", "25%".into())],
        );
        default_template(spec);
    }

    fn prepare_create(&self, _cx: &StrategyContext<'_>, object: &mut Value) -> Result<(), ApiError> {
        object["status"] = json!({});
        Ok(())
    }

    fn generation_changes(&self, object: &Value, old: &Value) -> bool {
        // The controller copies annotations to replica sets.
        object.get("spec") != old.get("spec")
            || object.pointer("/metadata/annotations") != old.pointer("/metadata/annotations")
    }

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
