//! Stateful sets.

use serde_json::{Value, json};
use windlass_schema::FieldError;

use super::rollout::show_strategy;
use super::template::{default_template, validate_selector, validate_template};
use crate::strategy::checks::validate_not_negative;
use crate::strategy::fields::{default, default_text, entry_mut, spec_mut, text, text_at};
use crate::strategy::{Facts, Strategy, StrategyContext};
use crate::wire::ApiError;

const FORBIDDEN: &str = "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden";

const FACTS: Facts = Facts {
    unenforced: Some("no pods are made, because there is no stateful set controller"),
    ..Facts::SPEC
};

pub(super) struct StatefulSets;

impl Strategy for StatefulSets {
    fn facts(&self) -> &'static Facts {
        &FACTS
    }

    fn default(&self, object: &mut Value) {
        let spec = spec_mut(object);
        if let Some(update) = entry_mut(spec, "updateStrategy") {
            // Only the default strategy gets parameters that the client leaves out.
            if update.get("type").is_none_or(|kind| kind == "") {
                default_text(update, "type", "RollingUpdate");
                default(update, "rollingUpdate", json!({}));
            }
            if update["type"] == "RollingUpdate"
                && let Some(rolling) = entry_mut(update, "rollingUpdate")
            {
                default(rolling, "partition", 0);
            }
        }
        default_template(spec);
    }

    fn prepare_create(&self, _cx: &StrategyContext<'_>, object: &mut Value) -> Result<(), ApiError> {
        object["status"] = json!({"replicas": 0, "availableReplicas": 0});
        Ok(())
    }

    fn validate(&self, object: &Value) -> Vec<FieldError> {
        let spec = &object["spec"];
        let mut errors = Vec::new();
        let management = text(spec, "podManagementPolicy");
        if !["OrderedReady", "Parallel"].contains(&management) {
            let detail = "must be 'OrderedReady' or 'Parallel'";
            errors.push(FieldError::invalid("spec.podManagementPolicy", management, detail));
        }
        let update = text_at(spec, "/updateStrategy/type");
        if !["RollingUpdate", "OnDelete"].contains(&update) {
            let detail = "must be 'RollingUpdate' or 'OnDelete'";
            let error = FieldError::invalid("spec.updateStrategy", update, detail);
            errors.push(error.showing(show_strategy(update)));
        }
        validate_not_negative(spec, &["replicas", "minReadySeconds"], &mut errors);
        validate_selector(spec, "statefulset", &mut errors);
        validate_template(spec, &mut errors);
        errors
    }

    fn validate_change(&self, object: &Value, old: &Value) -> Vec<FieldError> {
        let fixed = |object: &Value| {
            let mut spec = object["spec"].as_object().cloned().unwrap_or_default();
            for field in [
                "replicas",
                "ordinals",
                "template",
                "updateStrategy",
                "revisionHistoryLimit",
                "persistentVolumeClaimRetentionPolicy",
                "minReadySeconds",
            ] {
                spec.remove(field);
            }
            spec
        };
        if fixed(object) == fixed(old) {
            return Vec::new();
        }
        vec![FieldError::forbidden("spec", FORBIDDEN)]
    }
}
