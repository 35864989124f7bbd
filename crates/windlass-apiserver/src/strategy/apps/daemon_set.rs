//! Daemon sets.

use serde_json::{Value, json};
use windlass_schema::FieldError;

use super::counters::Counters;
use super::rollout::{default_rolling_update, show_strategy, validate_daemon_rollout};
use super::template::{default_template, template_warnings, validate_selector, validate_template};
use crate::meta;
use crate::strategy::checks::{immutable, validate_not_negative};
use crate::strategy::fields::{spec_mut, text_at};
use crate::strategy::{Facts, Strategy, StrategyContext};
use crate::wire::ApiError;

/// The annotation that counts changes of the template.
const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";

fn annotate(object: &mut Value, generation: i64) {
    let metadata = meta::metadata_mut(object);
    let annotations = metadata.entry("annotations").or_insert_with(|| json!({}));
    if let Some(annotations) = annotations.as_object_mut() {
        annotations.insert(TEMPLATE_GENERATION.to_owned(), generation.to_string().into());
    }
}

const FACTS: Facts = Facts { encoding_annotations: &[TEMPLATE_GENERATION], ..Facts::SPEC };

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

pub(super) struct DaemonSets;

impl Strategy for DaemonSets {
    fn facts(&self) -> &'static Facts {
        &FACTS
    }

    fn complete_zero(&self, object: &mut Value) {
        spec_mut(object).insert("selector".to_owned(), Value::Null);
        annotate(object, 0);
    }

    fn default(&self, object: &mut Value) {
        let spec = spec_mut(object);
        let parameters = [("maxUnavailable", 1.into()), ("maxSurge", 0.into())];
        default_rolling_update(spec, "updateStrategy", &parameters);
        let rollout = spec.get_mut("updateStrategy").and_then(|strategy| strategy.get_mut("rollingUpdate"));
        if let Some(rollout) = rollout.and_then(Value::as_object_mut) {
            // To Go's internal type, they are never absent.
            for field in ["maxUnavailable", "maxSurge"] {
                rollout.entry(field).or_insert_with(|| 0.into());
            }
        }
        default_template(spec);
        // The annotation is how this version shows a number that objects always have.
        if object.pointer(&format!("/metadata/annotations/{TEMPLATE_GENERATION}")).is_none() {
            annotate(object, 0);
        }
    }

    fn prepare_create(&self, _cx: &StrategyContext<'_>, object: &mut Value) -> Result<(), ApiError> {
        annotate(object, 1);
        object["status"] = json!({
            "currentNumberScheduled": 0, "desiredNumberScheduled": 0, "numberMisscheduled": 0, "numberReady": 0,
        });
        Ok(())
    }

    fn prepare_update(
        &self,
        cx: &StrategyContext<'_>,
        object: &mut Value,
        old: &Value,
    ) -> Result<(), ApiError> {
        // The annotation stands for a field of the spec: a write of the status keeps it.
        let pointer = format!("/metadata/annotations/{TEMPLATE_GENERATION}");
        let before = text_at(old, &pointer).parse::<i64>().unwrap_or(1);
        let is_changed =
            cx.subresource.is_empty() && object.pointer("/spec/template") != old.pointer("/spec/template");
        annotate(object, before + i64::from(is_changed));
        Ok(())
    }

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

    fn warnings(&self, cx: &StrategyContext<'_>, object: &Value, old: Option<&Value>) -> Vec<String> {
        if !cx.subresource.is_empty() {
            return Vec::new();
        }
        let mut warnings: Vec<String> = FACTS.unenforced_warning().into_iter().collect();
        warnings.extend(template_warnings(object, old, false));
        warnings
    }

    fn validate_status(&self, object: &Value, old: &Value) -> Vec<FieldError> {
        COUNTERS.validate(object, old)
    }

    fn validate_change(&self, object: &Value, old: &Value) -> Vec<FieldError> {
        immutable(object, old, "/spec/selector")
    }
}
