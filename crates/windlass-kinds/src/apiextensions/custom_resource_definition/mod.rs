//! CustomResourceDefinitions: validation, names and conditions.
//!
//! All functions take definitions as JSON; no function reads or stores objects.

mod approval;
mod ca_bundle;
mod conditions;
mod defaults;
mod names;
mod prepare;
mod table;
mod validate;
mod warnings;

pub use conditions::{condition_is_true, set_condition};
pub use names::{Names, accept};
use serde_json::Value;
use windlass_store::object_meta as meta;
use windlass_wire::ApiError;

use crate::kind::{Delete, Generation, Kind, KindConfig, Prepare, WriteContext};

pub(crate) static KIND: Kind = Kind {
    defaults: &Definitions,
    prepare: &Definitions,
    validate: &Definitions,
    delete: &Definitions,
    table: &table::TABLE,
    ..Kind::new(CONFIG)
};

const CONFIG: KindConfig = KindConfig {
    stored_in_version: Some("v1beta1"),
    has_status_table: false,
    unconditional_update: false,
    generation: Generation::All,
    ..KindConfig::SPEC
};

struct Definitions;

impl Prepare for Definitions {
    fn prepare_create(&self, _cx: &WriteContext<'_>, object: &mut Value) -> Result<(), ApiError> {
        prepare::prepare_create(object);
        Ok(())
    }

    fn prepare_update(&self, cx: &WriteContext<'_>, object: &mut Value, old: &Value) -> Result<(), ApiError> {
        if cx.subresource.is_empty() {
            prepare::prepare_update(object, old);
        }
        Ok(())
    }
}

impl Delete for Definitions {
    fn prepare_delete(&self, cx: &WriteContext<'_>, object: &mut Value) -> Result<bool, ApiError> {
        if !meta::is_deleting(object) {
            let mut finalizers: Vec<String> = meta::finalizers(object).map(str::to_owned).collect();
            if !finalizers.iter().any(|finalizer| finalizer == CLEANUP_FINALIZER) {
                finalizers.push(CLEANUP_FINALIZER.to_owned());
            }
            meta::set_finalizers(object, &finalizers);
            let message =
                "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon";
            set_condition(
                object,
                "Terminating",
                true,
                "InstanceDeletionPending",
                message,
                &cx.env.now_rfc3339(),
            );
        }
        Ok(true)
    }
}

/// The finalizer that holds a definition until all instances are gone. The finalizer is set when the deletion
/// begins.
pub const CLEANUP_FINALIZER: &str = "customresourcecleanup.apiextensions.k8s.io";

/// Returns the text at a path of field names; the empty string for a missing text.
pub fn text<'a>(value: &'a Value, path: &[&str]) -> &'a str {
    path.iter().try_fold(value, |value, field| value.get(field)).and_then(Value::as_str).unwrap_or_default()
}

/// Returns the elements of the list in a field.
pub fn list<'a>(value: &'a Value, field: &str) -> &'a [Value] {
    value.get(field).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// Returns the texts of the list in a field.
pub fn texts<'a>(value: &'a Value, field: &str) -> Vec<&'a str> {
    list(value, field).iter().filter_map(Value::as_str).collect()
}

/// Returns the name of the storage version.
pub fn storage_version(definition: &Value) -> Option<&str> {
    let versions = list(&definition["spec"], "versions");
    versions.iter().find(|version| version["storage"] == true).map(|version| text(version, &["name"]))
}

/// Returns whether objects of the definition are served. An established definition stays established.
pub fn is_established(definition: &Value) -> bool {
    condition_is_true(definition, "Established")
}

#[cfg(test)]
mod tests;
