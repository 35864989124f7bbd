//! Validation and warnings.

use serde_json::Value;
use windlass_schema::FieldError;

use super::PodTemplates;
use crate::field;
use crate::kind::{Validate, WriteContext};
use crate::pod_template::validate::validate_template;
use crate::pod_template::warnings::pod_template_warnings;

impl Validate for PodTemplates {
    fn validate_create(&self, _cx: &WriteContext<'_>, object: &Value) -> Vec<FieldError> {
        field::validate("template", &object["template"], validate_template)
    }

    fn validate_update(&self, _cx: &WriteContext<'_>, object: &Value, _old: &Value) -> Vec<FieldError> {
        field::validate("template", &object["template"], validate_template)
    }

    fn warnings(&self, _cx: &WriteContext<'_>, object: &Value, old: Option<&Value>) -> Vec<String> {
        if old.is_some_and(|old| old["template"] == object["template"]) {
            return Vec::new();
        }
        pod_template_warnings("template.", &object["template"])
    }
}
