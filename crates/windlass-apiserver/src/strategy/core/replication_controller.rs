//! Replication controllers.

use serde_json::{Value, json};
use windlass_schema::FieldError;

use crate::meta;
use crate::strategy::apps::{
    REPLICA_COUNTERS, default_template, template_warnings, validate_restarts, validate_template_of,
};
use crate::strategy::checks::validate_not_negative;
use crate::strategy::fields::{default, map_at, spec_mut};
use crate::strategy::{Facts, Strategy, StrategyContext};
use crate::wire::{ApiError, LabelSelector};

const FACTS: Facts =
    Facts { orphans_by_default: true, selectable: &[("status.replicas", "/status/replicas")], ..Facts::SPEC };

pub(super) struct ReplicationControllers;

impl Strategy for ReplicationControllers {
    fn facts(&self) -> &'static Facts {
        &FACTS
    }

    fn default(&self, object: &mut Value) {
        // Selector and labels are those of the template.
        let labels = map_at(object, "/spec/template/metadata/labels").cloned();
        if let Some(labels) = labels {
            default(spec_mut(object), "selector", Value::Object(labels.clone()));
            default(meta::metadata_mut(object), "labels", Value::Object(labels));
        }
        let spec = spec_mut(object);
        default_template(spec);
    }

    fn prepare_create(&self, _cx: &StrategyContext<'_>, object: &mut Value) -> Result<(), ApiError> {
        object["status"] = json!({"replicas": 0});
        Ok(())
    }

    fn validate(&self, object: &Value) -> Vec<FieldError> {
        let spec = &object["spec"];
        let mut errors = Vec::new();
        validate_not_negative(spec, &["minReadySeconds", "replicas"], &mut errors);
        match map_at(spec, "/selector").filter(|selector| !selector.is_empty()) {
            None => errors.push(FieldError::required("spec.selector", "")),
            Some(selector) if spec.get("template").is_some() => {
                let labels = map_at(spec, "/template/metadata/labels");
                if !LabelSelector::from_map(selector).matches(labels) {
                    let value = labels.map_or(Value::Null, |labels| Value::Object(labels.clone()));
                    let detail = "`selector` does not match template `labels`";
                    errors.push(FieldError::invalid("spec.template.metadata.labels", value, detail));
                }
            }
            Some(_) => {}
        }
        if spec.get("template").is_none() {
            errors.push(FieldError::required("spec.template", ""));
        } else {
            errors.extend(validate_template_of(spec, "spec.template"));
            validate_restarts(&spec["template"], "ReplicationController", &mut errors);
        }
        errors
    }

    fn warnings(&self, cx: &StrategyContext<'_>, object: &Value, old: Option<&Value>) -> Vec<String> {
        if !cx.subresource.is_empty() {
            return Vec::new();
        }
        let mut warnings: Vec<String> = FACTS.unenforced_warning().into_iter().collect();
        warnings.extend(template_warnings(object, old, true));
        warnings
    }

    fn validate_status(&self, object: &Value, old: &Value) -> Vec<FieldError> {
        REPLICA_COUNTERS.validate(object, old)
    }
}
