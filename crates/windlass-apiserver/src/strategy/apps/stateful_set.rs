//! Stateful sets.

use serde_json::{Value, json};
use windlass_schema::FieldError;

use super::rollout::show_strategy;
use super::template::{default_template, validate_selector, validate_template};
use crate::strategy::checks::validate_not_negative;
use crate::strategy::core::default_claim_spec;
use crate::strategy::fields::{default, default_text, entry_mut, items_mut, spec_mut, text, text_at};
use crate::strategy::{Facts, Strategy, StrategyContext};

const FORBIDDEN: &str = "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden";

pub(super) struct StatefulSets;

impl Strategy for StatefulSets {
    fn facts(&self) -> &'static Facts {
        &Facts::SPEC
    }

    fn complete(&self, _cx: &StrategyContext<'_>, object: &mut Value) {
        let spec = spec_mut(object);
        default(spec, "replicas", 1);
        default(spec, "revisionHistoryLimit", 10);
        default_text(spec, "podManagementPolicy", "OrderedReady");
        default(spec, "updateStrategy", json!({}));
        if let Some(strategy) = entry_mut(spec, "updateStrategy") {
            default_text(strategy, "type", "RollingUpdate");
            if strategy["type"] == "RollingUpdate" {
                default(strategy, "rollingUpdate", json!({}));
                if let Some(rolling) = entry_mut(strategy, "rollingUpdate") {
                    default(rolling, "partition", 0);
                }
            }
        }
        default(spec, "persistentVolumeClaimRetentionPolicy", json!({}));
        if let Some(policy) = entry_mut(spec, "persistentVolumeClaimRetentionPolicy") {
            default_text(policy, "whenDeleted", "Retain");
            default_text(policy, "whenScaled", "Retain");
        }
        for claim in items_mut(spec, "volumeClaimTemplates") {
            claim.insert("apiVersion".to_owned(), "v1".into());
            claim.insert("kind".to_owned(), "PersistentVolumeClaim".into());
            if let Some(spec) = entry_mut(claim, "spec") {
                default_claim_spec(spec);
            }
            claim.insert("status".to_owned(), json!({"phase": "Pending"}));
        }
        default_template(spec);
    }

    fn new_status(&self, _cx: &StrategyContext<'_>) -> Option<Value> {
        Some(json!({"replicas": 0, "availableReplicas": 0}))
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
