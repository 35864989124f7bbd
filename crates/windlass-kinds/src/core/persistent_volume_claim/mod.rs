//! Persistent volume claims.

mod defaults;
mod table;
mod validate;

use serde_json::{Value, json};
use windlass_store::object_meta as meta;
use windlass_wire::ApiError;

use super::persistent_volume;
use crate::admission_plugins::AdmissionPlugin;
use crate::json::{object_mut, spec_mut, text_at};
use crate::kind::{Admission, Kind, KindConfig, Prepare, WriteContext};

pub(crate) static KIND: Kind = Kind {
    defaults: &Claims,
    prepare: &Claims,
    validate: &Claims,
    admission: &Claims,
    table: &table::TABLE,
    ..Kind::new(CONFIG)
};

const CLASS: &str = "volume.beta.kubernetes.io/storage-class";

const CONFIG: KindConfig = KindConfig { defaults_on_update: &["/status/phase"], ..persistent_volume::CONFIG };

pub(super) struct Claims;

/// Drops a `dataSourceRef` to another namespace, because this feature is off by default.
fn drop_foreign_source(spec: &mut serde_json::Map<String, Value>) {
    let namespace = spec.get("dataSourceRef").and_then(|reference| reference.get("namespace"));
    if namespace.is_some_and(|namespace| !namespace.is_null() && namespace != "") {
        spec.remove("dataSourceRef");
    }
}

/// Drops a `dataSource` that is neither a claim nor a snapshot, as old clients expect, and fills in `dataSourceRef` from
/// it, or the other way round. `had_source` says whether the claim has had a source before.
fn settle_source(spec: &mut serde_json::Map<String, Value>, had_source: bool) {
    let present = |value: Option<&Value>| value.filter(|value| !value.is_null()).cloned();
    let (source, reference) = (present(spec.get("dataSource")), present(spec.get("dataSourceRef")));
    match (source, reference) {
        (Some(source), None) if !had_source && !is_claim_or_snapshot(&source) => {
            spec.remove("dataSource");
        }
        (Some(source), None) => {
            spec.insert("dataSourceRef".to_owned(), source);
        }
        (None, Some(reference)) if text_at(&reference, "/namespace").is_empty() => {
            let mut source = reference;
            if let Some(fields) = source.as_object_mut() {
                fields.remove("namespace");
            }
            spec.insert("dataSource".to_owned(), source);
        }
        _ => {}
    }
}

fn is_claim_or_snapshot(reference: &Value) -> bool {
    let group = text_at(reference, "/apiGroup");
    match text_at(reference, "/kind") {
        "PersistentVolumeClaim" => group.is_empty(),
        "VolumeSnapshot" => group == "snapshot.storage.k8s.io",
        _ => false,
    }
}

impl Admission for Claims {
    fn mutate(&self, cx: &WriteContext<'_>, object: &mut Value, old: Option<&Value>) -> Result<(), ApiError> {
        if old.is_some() {
            return Ok(());
        }
        if cx.plugins.has(AdmissionPlugin::DefaultStorageClass)
            && !meta::has_annotation(object, CLASS)
            && object["spec"].get("storageClassName").is_none_or(Value::is_null)
            && let Some(class) = &*cx.lookups.default_storage_class.get(cx.view)
        {
            spec_mut(object).insert("storageClassName".to_owned(), class.as_str().into());
        }
        if cx.plugins.has(AdmissionPlugin::StorageObjectInUseProtection) {
            meta::add_finalizer(object, "kubernetes.io/pvc-protection");
        }
        Ok(())
    }
}

impl Prepare for Claims {
    fn prepare_create(&self, _cx: &WriteContext<'_>, object: &mut Value) -> Result<(), ApiError> {
        object["status"] = json!({"phase": "Pending"});
        drop_foreign_source(spec_mut(object));
        settle_source(spec_mut(object), false);
        Ok(())
    }

    fn prepare_update(&self, cx: &WriteContext<'_>, object: &mut Value, old: &Value) -> Result<(), ApiError> {
        if cx.subresource.is_empty() {
            if !old["spec"]["dataSourceRef"].is_object() {
                drop_foreign_source(spec_mut(object));
            }
            let had_source =
                ["dataSource", "dataSourceRef"].iter().any(|field| old["spec"][*field].is_object());
            settle_source(spec_mut(object), had_source);
        } else if let Some(status) = object_mut(object, "status") {
            // The health of volumes is a feature that is off by default.
            status.remove("healthStatus");
        }
        Ok(())
    }
}
