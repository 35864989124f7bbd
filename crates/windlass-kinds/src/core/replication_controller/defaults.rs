//! Defaults.

use serde_json::Value;
use windlass_store::object_meta as meta;

use super::ReplicationControllers;
use crate::json::{default, map_at, spec_mut};
use crate::kind::Defaults;
use crate::workload::template::default_template;

impl Defaults for ReplicationControllers {
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
}
