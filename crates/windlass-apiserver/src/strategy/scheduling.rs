//! Priority classes.

use serde_json::Value;
use windlass_schema::FieldError;

use super::checks::enumerated;
use super::fields::{int_at, text, text_at};
use super::{AdmissionPlugin, Facts, FactsOnly, Generation, Strategy, StrategyContext};
use crate::meta;
use crate::wire::{ApiError, GroupResource};

const LARGEST_USER_PRIORITY: i64 = 1_000_000_000;

pub(super) fn of(resource: &str) -> &'static dyn Strategy {
    match resource {
        "priorityclasses" => &PriorityClasses,
        _ => &FactsOnly(&Facts::SPEC),
    }
}

const CLASSES: Facts = Facts { generation: Generation::Constant, ..Facts::SPEC };

struct PriorityClasses;

/// The classes that the server creates when it starts.
const SYSTEM_CLASSES: [(&str, i64); 2] =
    [("system-cluster-critical", 2_000_000_000), ("system-node-critical", 2_000_001_000)];

/// Returns whether pods without a class are of this one.
pub(super) fn is_default(class: &Value) -> bool {
    class.get("globalDefault").and_then(Value::as_bool) == Some(true)
}

impl Strategy for PriorityClasses {
    fn facts(&self) -> &'static Facts {
        &CLASSES
    }

    fn admit(
        &self,
        cx: &StrategyContext<'_>,
        object: &mut Value,
        old: Option<&Value>,
    ) -> Result<(), ApiError> {
        if !cx.plugins.has(AdmissionPlugin::Priority) || !is_default(object) {
            return Ok(());
        }
        let name = text_at(object, "/metadata/name");
        let classes = cx.lookups.priority_classes.get(cx.view);
        let mut defaults = classes.values().filter(|class| is_default(class)).map(meta::name);
        match defaults.next() {
            Some(default) if old.is_none() || default != name => {
                let why = format!(
                    "PriorityClass {default} is already marked as default. Only one default can exist"
                );
                Err(ApiError::forbidden(
                    &GroupResource::new("scheduling.k8s.io", "priorityclasses"),
                    name,
                    why,
                ))
            }
            _ => Ok(()),
        }
    }

    fn validate_create(&self, _cx: &StrategyContext<'_>, object: &Value) -> Vec<FieldError> {
        let mut errors = Vec::new();
        let name = text_at(object, "/metadata/name");
        let value = int_at(object, "/value").unwrap_or_default();
        if name.starts_with("system-") {
            if !SYSTEM_CLASSES.contains(&(name, value)) {
                let detail = format!(
                    "priority class names with 'system-' prefix are reserved for system use only. error: {name} is not a known system priority class"
                );
                errors.push(FieldError::forbidden("metadata.name", detail));
            }
        } else if value > LARGEST_USER_PRIORITY {
            let detail =
                format!("maximum allowed value of a user defined priority is {LARGEST_USER_PRIORITY}");
            errors.push(FieldError::forbidden("value", detail));
        }
        let known = ["PreemptLowerPriority", "Never"];
        errors.extend(enumerated("preemptionPolicy", text(object, "preemptionPolicy"), &known));
        errors
    }

    fn validate_update(&self, _cx: &StrategyContext<'_>, object: &Value, old: &Value) -> Vec<FieldError> {
        let mut errors = Vec::new();
        let value = |object: &Value| int_at(object, "/value").unwrap_or_default();
        if value(object) != value(old) {
            errors.push(FieldError::forbidden("value", "may not be changed in an update."));
        }
        if object.get("preemptionPolicy") != old.get("preemptionPolicy") {
            let shown = object.get("preemptionPolicy").cloned().unwrap_or(Value::Null);
            errors.push(FieldError::invalid("preemptionPolicy", shown, "field is immutable"));
        }
        errors
    }
}
