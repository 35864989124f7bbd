//! Defaults.

use serde_json::{Map, Value};
use windlass_store::object_meta as meta;

use super::{Jobs, UID_LABELS};
use crate::json::{default, map_at, spec_mut};
use crate::kind::Defaults;
use crate::workload::template::default_template;

impl Defaults for Jobs {
    fn default(&self, object: &mut Value) {
        default_job(spec_mut(object));
        // The labels of the pods are the default of the job's labels. In a new job, they are added later.
        if map_at(object, "/metadata/labels").is_none_or(Map::is_empty)
            && let Some(labels) = map_at(object, "/spec/template/metadata/labels")
            && labels.contains_key(UID_LABELS[1])
        {
            let labels = Value::Object(labels.clone());
            meta::set(object, "labels", Some(labels));
        }
    }
}

fn default_job(spec: &mut Map<String, Value>) {
    // A feature that is off by default.
    spec.remove("scheduling");
    if spec.get("completions").is_none_or(Value::is_null)
        && spec.get("parallelism").is_none_or(Value::is_null)
    {
        spec.insert("completions".to_owned(), 1.into());
    }
    default(spec, "parallelism", 1);
    let per_index = spec.contains_key("backoffLimitPerIndex");
    default(spec, "backoffLimit", if per_index { i64::from(i32::MAX) } else { 6 });
    default(spec, "completionMode", "NonIndexed");
    default(spec, "suspend", false);
    default(spec, "manualSelector", false);
    let failures = spec.contains_key("podFailurePolicy");
    default(spec, "podReplacementPolicy", if failures { "Failed" } else { "TerminatingOrFailed" });
    default_template(spec);
}
