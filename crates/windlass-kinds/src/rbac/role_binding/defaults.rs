//! Defaults.

use serde_json::Value;

use super::Bindings;
use crate::json::{default_text, items_mut};
use crate::kind::Defaults;
use crate::rbac::GROUP;

impl Defaults for Bindings {
    fn default(&self, object: &mut Value) {
        let Some(fields) = object.as_object_mut() else { return };
        for subject in items_mut(fields, "subjects") {
            if matches!(subject.get("kind").and_then(Value::as_str), Some("User" | "Group")) {
                default_text(subject, "apiGroup", GROUP);
            }
        }
    }
}
