//! Deployments.

use serde_json::{Value, json};
use windlass_schema::FieldError;

use super::rollout::validate_rollout;
use super::template::{default_template, validate_selector, validate_template};
use crate::strategy::checks::{immutable, validate_not_negative};
use crate::strategy::fields::{default, default_text, entry_mut, int_at, spec_mut};
use crate::strategy::{Facts, Strategy, StrategyContext};
use crate::wire::ApiError;

pub(super) struct Deployments;

impl Strategy for Deployments {
    fn facts(&self) -> &'static Facts {
        &Facts::SPEC
    }

    fn complete(&self, _cx: &StrategyContext<'_>, object: &mut Value) {
        let spec = spec_mut(object);
        default(spec, "replicas", 1);
        default(spec, "revisionHistoryLimit", 10);
        default(spec, "progressDeadlineSeconds", 600);
        default(spec, "strategy", json!({}));
        if let Some(strategy) = entry_mut(spec, "strategy") {
            default_text(strategy, "type", "RollingUpdate");
            if strategy["type"] == "RollingUpdate" {
                default(strategy, "rollingUpdate", json!({}));
                if let Some(rolling) = entry_mut(strategy, "rollingUpdate") {
                    default(rolling, "maxUnavailable", "25%");
                    default(rolling, "maxSurge", "25%");
                }
            }
        }
        default_template(spec);
    }

    /// With the status its controller writes the number of the rollout, an annotation. Labels stay as they are.
    fn status_writes_metadata(&self) -> bool {
        true
    }

    fn prepare_update(
        &self,
        cx: &StrategyContext<'_>,
        object: &mut Value,
        old: &Value,
    ) -> Result<(), ApiError> {
        if cx.subresource == "status" {
            crate::meta::copy(object, old, "labels");
        }
        self.complete(cx, object);
        Ok(())
    }

    fn new_status(&self, _cx: &StrategyContext<'_>) -> Option<Value> {
        Some(json!({}))
    }

    fn generation_changes(&self, object: &Value, old: &Value) -> bool {
        // Annotations count too: they are copied to replica sets.
        object.get("spec") != old.get("spec")
            || object.pointer("/metadata/annotations") != old.pointer("/metadata/annotations")
    }

    fn validate(&self, object: &Value) -> Vec<FieldError> {
        let spec = &object["spec"];
        let mut errors = Vec::new();
        validate_not_negative(spec, &["replicas"], &mut errors);
        validate_selector(spec, "deployment", &mut errors);
        validate_template(spec, &mut errors);
        validate_rollout(spec, &mut errors);
        validate_not_negative(spec, &["minReadySeconds", "revisionHistoryLimit"], &mut errors);
        let deadline = int_at(spec, "/progressDeadlineSeconds");
        if let Some(deadline) = deadline.filter(|deadline| *deadline < 0) {
            let detail = "must be greater than or equal to 0";
            errors.push(FieldError::invalid("spec.progressDeadlineSeconds", deadline, detail));
        }
        let ready = int_at(spec, "/minReadySeconds").unwrap_or_default();
        if let Some(deadline) = deadline.filter(|deadline| ready >= 0 && *deadline <= ready) {
            let detail = "must be greater than minReadySeconds";
            errors.push(FieldError::invalid("spec.progressDeadlineSeconds", deadline, detail));
        }
        errors
    }

    fn validate_change(&self, object: &Value, old: &Value) -> Vec<FieldError> {
        immutable(object, old, "/spec/selector")
    }
}
