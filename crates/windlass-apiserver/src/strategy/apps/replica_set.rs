//! Replica sets.

use serde_json::{Map, Value, json};
use windlass_schema::FieldError;

use super::template::{default_template, validate_selector, validate_template};
use crate::strategy::checks::{immutable, validate_not_negative};
use crate::strategy::fields::spec_mut;
use crate::strategy::{Facts, Strategy, StrategyContext};
use crate::wire::ApiError;

pub(super) struct ReplicaSets;

impl Strategy for ReplicaSets {
    fn facts(&self) -> &'static Facts {
        &Facts::SPEC
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
        validate_selector(spec, "", &mut errors);
        if spec.get("selector").and_then(Value::as_object).is_some_and(Map::is_empty) {
            errors.push(FieldError::invalid(
                "spec.selector",
                json!({}),
                "empty selector is invalid for deployment",
            ));
        }
        validate_template(spec, &mut errors);
        errors
    }

    fn validate_change(&self, object: &Value, old: &Value) -> Vec<FieldError> {
        immutable(object, old, "/spec/selector")
    }
}
