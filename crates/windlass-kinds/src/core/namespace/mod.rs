//! Namespaces.

mod defaults;
mod pod_security;
mod table;
mod validate;

use serde_json::{Value, json};
use windlass_store::object_meta as meta;
use windlass_wire::{ApiError, GroupResource, names};

use crate::json::{list_at, spec_mut};
use crate::kind::{Delete, Kind, KindConfig, Prepare, WriteContext, Writes};
use crate::subresource::Subresource;

pub(crate) static KIND: Kind = Kind {
    defaults: &Namespaces,
    prepare: &Namespaces,
    validate: &Namespaces,
    delete: &Namespaces,
    table: &table::TABLE,
    ..Kind::new(CONFIG)
};

const NAME_LABEL: &str = "kubernetes.io/metadata.name";

/// Namespaces that cannot be deleted.
const IMMORTAL: [&str; 3] = ["default", "kube-system", "kube-public"];

pub(super) struct Namespaces;

const CONFIG: KindConfig = KindConfig {
    name: names::label_name,
    returns_deleted_object: true,
    selectable: &[("status.phase", "/status/phase")],
    writes: &[
        (Subresource::None, Writes::AllBut(&["spec", "status"])),
        (Subresource::Status, Writes::AllBut(&["spec"])),
        (Subresource::Finalize, Writes::AllBut(&["status"])),
    ],
    // The spec is kept, and the writer nevertheless owns the spec.
    reset_fields: &[(Subresource::None, &["status"])],
    ..KindConfig::DATA
};

fn label_with_name(object: &mut Value) {
    let name = meta::name(object).to_owned();
    if name.is_empty() {
        return;
    }
    let labels = meta::metadata_mut(object).entry("labels").or_insert_with(|| json!({}));
    if let Some(labels) = labels.as_object_mut() {
        labels.insert(NAME_LABEL.to_owned(), name.into());
    }
}

impl Prepare for Namespaces {
    fn prepare_create(&self, _cx: &WriteContext<'_>, object: &mut Value) -> Result<(), ApiError> {
        label_with_name(object);
        let finalizers = list_at(object, "/spec/finalizers").to_vec();
        let spec = spec_mut(object);
        if !finalizers.iter().any(|finalizer| finalizer == "kubernetes") {
            let mut finalizers = finalizers;
            finalizers.push("kubernetes".into());
            spec.insert("finalizers".to_owned(), finalizers.into());
        }
        object["status"] = json!({"phase": "Active"});
        Ok(())
    }

    fn prepare_update(
        &self,
        _cx: &WriteContext<'_>,
        object: &mut Value,
        _old: &Value,
    ) -> Result<(), ApiError> {
        label_with_name(object);
        Ok(())
    }
}

impl Delete for Namespaces {
    fn may_be_removed(&self, object: &Value) -> bool {
        list_at(object, "/spec/finalizers").is_empty()
    }

    fn prepare_delete(&self, _cx: &WriteContext<'_>, object: &mut Value) -> Result<bool, ApiError> {
        let name = meta::name(object);
        if IMMORTAL.contains(&name) {
            let why = "this namespace may not be deleted";
            return Err(ApiError::forbidden(&GroupResource::new("", "namespaces"), name, why));
        }
        // The first deletion only marks the namespace, even without finalizers.
        let is_first = !meta::is_deleting(object);
        if is_first {
            object["status"]["phase"] = "Terminating".into();
        }
        Ok(is_first || !list_at(object, "/spec/finalizers").is_empty())
    }
}
