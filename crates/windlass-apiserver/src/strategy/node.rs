//! Runtime classes.

use serde_json::Value;
use windlass_schema::FieldError;

use super::checks::immutable;
use super::{Facts, FactsOnly, Strategy, StrategyContext};
use crate::wire::names;

pub(super) fn of(resource: &str) -> &'static dyn Strategy {
    match resource {
        "runtimeclasses" => &RuntimeClasses,
        _ => &FactsOnly(&Facts::SPEC),
    }
}

const FACTS: Facts = Facts { create_on_update: true, unconditional_update: false, ..Facts::DATA };

struct RuntimeClasses;

impl Strategy for RuntimeClasses {
    fn facts(&self) -> &'static Facts {
        &FACTS
    }

    fn validate_create(&self, _cx: &StrategyContext<'_>, object: &Value) -> Vec<FieldError> {
        let handler = object.get("handler").and_then(Value::as_str).unwrap_or_default();
        if handler.is_empty() {
            return vec![FieldError::required("handler", "")];
        }
        let problems = names::dns_1123_label(handler).into_iter();
        problems.map(|problem| FieldError::invalid("handler", handler, problem)).collect()
    }

    fn validate_update(&self, _cx: &StrategyContext<'_>, object: &Value, old: &Value) -> Vec<FieldError> {
        immutable(object, old, "/handler").into_iter().collect()
    }
}
