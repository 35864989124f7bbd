//! Persistent volumes.

pub(super) mod table;
mod validate;

pub(crate) use validate::validate_inline;

use serde_json::{Value, json};
use windlass_store::{object_meta as meta, rfc3339};
use windlass_wire::ApiError;

use crate::admission_plugins::AdmissionPlugin;
use crate::json::text_at;
use crate::kind::{Admission, Kind, KindConfig, Prepare, WriteContext};
use crate::subresource::Subresource;

pub(crate) static KIND: Kind = Kind {
    prepare: &Volumes,
    validate: &Volumes,
    admission: &Volumes,
    table: &table::TABLE,
    ..Kind::new(CONFIG)
};

pub(super) const CONFIG: KindConfig = KindConfig { returns_deleted_object: true, ..KindConfig::DATA };

pub(super) struct Volumes;

impl Admission for Volumes {
    fn mutate(&self, cx: &WriteContext<'_>, object: &mut Value, old: Option<&Value>) -> Result<(), ApiError> {
        if old.is_none() && cx.plugins.has(AdmissionPlugin::StorageObjectInUseProtection) {
            meta::add_finalizer(object, "kubernetes.io/pv-protection");
        }
        Ok(())
    }
}

impl Prepare for Volumes {
    fn prepare_create(&self, cx: &WriteContext<'_>, object: &mut Value) -> Result<(), ApiError> {
        let now = cx.env.now_rfc3339();
        object["status"] = json!({"phase": "Pending", "lastPhaseTransitionTime": now});
        Ok(())
    }

    fn prepare_update(&self, cx: &WriteContext<'_>, object: &mut Value, old: &Value) -> Result<(), ApiError> {
        if *cx.subresource == Subresource::Status
            && text_at(object, "/status/phase") != text_at(old, "/status/phase")
        {
            let now = rfc3339(cx.env.now());
            meta::entry_object(object, "status").insert("lastPhaseTransitionTime".to_owned(), now.into());
        } else if let Some(time) = old.pointer("/status/lastPhaseTransitionTime").cloned() {
            meta::entry_object(object, "status").entry("lastPhaseTransitionTime").or_insert(time);
        }
        Ok(())
    }
}
