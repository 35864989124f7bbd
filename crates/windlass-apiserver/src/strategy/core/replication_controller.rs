//! Replication controllers.

use serde_json::{Value, json};
use windlass_schema::FieldError;

use crate::meta;
use crate::strategy::apps::{default_template, validate_template_of};
use crate::strategy::checks::validate_not_negative;
use crate::strategy::fields::{default, map_at, spec_mut};
use crate::strategy::{Facts, Strategy, StrategyContext};
use crate::wire::LabelSelector;

const REPLICATION_CONTROLLERS: Facts =
    Facts { selectable: &[("status.replicas", "/status/replicas")], ..Facts::SPEC };

pub(super) struct ReplicationControllers;

impl Strategy for ReplicationControllers {
    fn facts(&self) -> &'static Facts {
        &REPLICATION_CONTROLLERS
    }

    fn complete(&self, _cx: &StrategyContext<'_>, object: &mut Value) {
        // What the pods are labelled with is what is selected, where nothing else is said.
        let labels = map_at(object, "/spec/template/metadata/labels").cloned();
        if let Some(labels) = labels {
            default(spec_mut(object), "selector", Value::Object(labels.clone()));
            default(meta::metadata_mut(object), "labels", Value::Object(labels));
        }
        let spec = spec_mut(object);
        default(spec, "replicas", 1);
        default_template(spec);
    }

    fn new_status(&self, _cx: &StrategyContext<'_>) -> Option<Value> {
        Some(json!({"replicas": 0}))
    }

    fn validate(&self, object: &Value) -> Vec<FieldError> {
        let spec = &object["spec"];
        let mut errors = Vec::new();
        validate_not_negative(spec, &["minReadySeconds", "replicas"], &mut errors);
        match map_at(spec, "/selector").filter(|selector| !selector.is_empty()) {
            None => errors.push(FieldError::required("spec.selector", "")),
            Some(selector) => {
                let labels = map_at(spec, "/template/metadata/labels");
                if !LabelSelector::from_map(selector).matches(labels) {
                    let value = labels.map_or(Value::Null, |labels| Value::Object(labels.clone()));
                    let detail = "`selector` does not match template `labels`";
                    errors.push(FieldError::invalid("spec.template.metadata.labels", value, detail));
                }
            }
        }
        if spec.get("template").is_none() {
            errors.push(FieldError::required("spec.template", ""));
        } else {
            errors.extend(validate_template_of(spec, "spec.template"));
        }
        errors
    }
}
