//! Validation and warnings.

use serde_json::Value;
use windlass_schema::FieldError;

use super::ControllerRevisions;
use crate::checks::immutable;
use crate::json::int_at;
use crate::kind::{Validate, WriteContext};

impl Validate for ControllerRevisions {
    fn validate(&self, object: &Value) -> Vec<FieldError> {
        let revision = int_at(object, "/revision").unwrap_or_default();
        let detail = "must be greater than or equal to 0";
        let error = (revision < 0).then(|| FieldError::invalid("revision", revision, detail));
        error.into_iter().collect()
    }

    fn validate_create(&self, _cx: &WriteContext<'_>, object: &Value) -> Vec<FieldError> {
        let mut errors = self.validate(object);
        match object.get("data") {
            Some(Value::Object(_)) => {}
            None | Some(Value::Null) => errors.push(FieldError::required("data", "data is mandatory")),
            Some(_) => errors.push(FieldError::required("data", "data must be a valid JSON object")),
        }
        errors
    }

    fn validate_change(&self, object: &Value, old: &Value) -> Vec<FieldError> {
        immutable(object, old, "/data")
    }
}
