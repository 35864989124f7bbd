//! Daemon sets.

mod defaults;
mod table;
mod validate;

use serde_json::{Value, json};
use windlass_store::object_meta as meta;
use windlass_wire::ApiError;

use crate::json::text_at;
use crate::kind::{Kind, KindConfig, Prepare, WriteContext};

pub(crate) static KIND: Kind = Kind {
    defaults: &DaemonSets,
    prepare: &DaemonSets,
    validate: &validate::VALIDATION,
    table: &table::TABLE,
    ..Kind::new(CONFIG)
};

/// The annotation that counts changes of the template.
const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";

/// Returns the generation in the annotation of an object.
fn template_generation(object: &Value) -> Option<i64> {
    text_at(object, &format!("/metadata/annotations/{TEMPLATE_GENERATION}")).parse().ok()
}

fn annotate(object: &mut Value, generation: i64) {
    let metadata = meta::metadata_mut(object);
    let annotations = metadata.entry("annotations").or_insert_with(|| json!({}));
    if let Some(annotations) = annotations.as_object_mut() {
        annotations.insert(TEMPLATE_GENERATION.to_owned(), generation.to_string().into());
    }
}

const CONFIG: KindConfig = KindConfig {
    pod_spec: Some("/spec/template/spec"),
    encoding_annotations: &[TEMPLATE_GENERATION],
    ..KindConfig::SPEC
};

pub(super) struct DaemonSets;

impl Prepare for DaemonSets {
    fn prepare_create(&self, _cx: &WriteContext<'_>, object: &mut Value) -> Result<(), ApiError> {
        let given = template_generation(object).unwrap_or_default();
        annotate(object, given.max(1));
        object["status"] = json!({
            "currentNumberScheduled": 0, "desiredNumberScheduled": 0, "numberMisscheduled": 0, "numberReady": 0,
        });
        Ok(())
    }

    fn prepare_update(&self, cx: &WriteContext<'_>, object: &mut Value, old: &Value) -> Result<(), ApiError> {
        // The annotation stands for a field of the spec: a write of the status keeps it.
        let before = template_generation(old).unwrap_or(1);
        let is_changed =
            cx.subresource.is_empty() && object.pointer("/spec/template") != old.pointer("/spec/template");
        annotate(object, before + i64::from(is_changed));
        Ok(())
    }
}
