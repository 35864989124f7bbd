//! Defaults.

use serde_json::Value;

use super::{DaemonSets, TEMPLATE_GENERATION, annotate};
use crate::json::spec_mut;
use crate::kind::Defaults;
use crate::workload::rollout::default_rolling_update;
use crate::workload::template::default_template;

impl Defaults for DaemonSets {
    fn complete_zero(&self, object: &mut Value) {
        spec_mut(object).insert("selector".to_owned(), Value::Null);
        annotate(object, 0);
    }

    fn default(&self, object: &mut Value) {
        let spec = spec_mut(object);
        let parameters = [("maxUnavailable", 1.into()), ("maxSurge", 0.into())];
        default_rolling_update(spec, "updateStrategy", &parameters);
        let rollout = spec.get_mut("updateStrategy").and_then(|strategy| strategy.get_mut("rollingUpdate"));
        if let Some(rollout) = rollout.and_then(Value::as_object_mut) {
            // To Go's internal type, they are never absent.
            for field in ["maxUnavailable", "maxSurge"] {
                rollout.entry(field).or_insert_with(|| 0.into());
            }
        }
        default_template(spec);
        // The annotation is how this version shows a number that objects always have.
        if object.pointer(&format!("/metadata/annotations/{TEMPLATE_GENERATION}")).is_none() {
            annotate(object, 0);
        }
    }
}
