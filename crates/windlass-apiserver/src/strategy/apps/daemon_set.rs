//! Daemon sets.

use serde_json::{Value, json};
use windlass_schema::FieldError;

use super::rollout::show_strategy;
use super::template::{default_template, validate_selector, validate_template};
use crate::meta;
use crate::strategy::checks::{immutable, validate_not_negative};
use crate::strategy::fields::{default, default_text, entry_mut, spec_mut, text_at};
use crate::strategy::{Facts, Strategy, StrategyContext};
use crate::wire::ApiError;

/// Counts the changes of the template, for controllers of old.
const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";

fn annotate(object: &mut Value, generation: i64) {
    let metadata = meta::metadata_mut(object);
    let annotations = metadata.entry("annotations").or_insert_with(|| json!({}));
    if let Some(annotations) = annotations.as_object_mut() {
        annotations.insert(TEMPLATE_GENERATION.to_owned(), generation.to_string().into());
    }
}

pub(super) struct DaemonSets;

impl Strategy for DaemonSets {
    fn facts(&self) -> &'static Facts {
        &Facts::SPEC
    }

    fn complete(&self, _cx: &StrategyContext<'_>, object: &mut Value) {
        let spec = spec_mut(object);
        default(spec, "revisionHistoryLimit", 10);
        default(spec, "updateStrategy", json!({}));
        if let Some(strategy) = entry_mut(spec, "updateStrategy") {
            default_text(strategy, "type", "RollingUpdate");
            if strategy["type"] == "RollingUpdate" {
                default(strategy, "rollingUpdate", json!({}));
                if let Some(rolling) = entry_mut(strategy, "rollingUpdate") {
                    default(rolling, "maxUnavailable", 1);
                    default(rolling, "maxSurge", 0);
                }
            }
        }
        default_template(spec);
    }

    fn prepare_create(&self, cx: &StrategyContext<'_>, object: &mut Value) -> Result<(), ApiError> {
        self.complete(cx, object);
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
        self.complete(cx, object);
        if cx.subresource.is_empty() {
            let pointer = format!("/metadata/annotations/{TEMPLATE_GENERATION}");
            let before = text_at(old, &pointer).parse::<i64>().unwrap_or(1);
            let changed = object.pointer("/spec/template") != old.pointer("/spec/template");
            annotate(object, before + i64::from(changed));
        }
        Ok(())
    }

    fn validate(&self, object: &Value) -> Vec<FieldError> {
        let spec = &object["spec"];
        let mut errors = Vec::new();
        validate_selector(spec, "daemonset", &mut errors);
        validate_template(spec, &mut errors);
        validate_not_negative(spec, &["minReadySeconds"], &mut errors);
        let kind = text_at(spec, "/updateStrategy/type");
        let known = ["RollingUpdate", "OnDelete"];
        if !known.contains(&kind) {
            let error = FieldError::not_supported("spec.updateStrategy", kind, &known);
            errors.push(error.showing(show_strategy(kind)));
        }
        validate_not_negative(spec, &["revisionHistoryLimit"], &mut errors);
        errors
    }

    fn validate_change(&self, object: &Value, old: &Value) -> Vec<FieldError> {
        immutable(object, old, "/spec/selector")
    }
}
