//! Defaults.

use serde_json::Value;

use super::PodTemplates;
use crate::kind::Defaults;
use crate::pod_template::defaults::default_spec;

impl Defaults for PodTemplates {
    fn default(&self, object: &mut Value) {
        if let Some(spec) = object.pointer_mut("/template/spec").and_then(Value::as_object_mut) {
            default_spec(spec);
        }
    }
}
