//! Preparation of an object: the server and the kind set, keep or clear fields.

use serde_json::Value;
use windlass_kinds::Subresource;

use crate::managed_fields;
use crate::meta;
use crate::registry::{Call, metadata};
use crate::resource::Resource;
use crate::store::View;
use crate::wire::ApiError;

/// Metadata that only the server writes, and that a client may leave out.
const SERVER_OWNED: [&str; 4] =
    ["creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "uid"];

/// Prepares a new object. Values that are unique in the cluster are allocated later, by [`Kind::allocate`].
///
/// [`Kind::allocate`]: windlass_kinds::Kind::allocate
pub(super) fn prepare_create(call: &Call<'_>, object: &mut Value) -> Result<(), ApiError> {
    metadata::fill_system_fields(call, object);
    let view = call.state.store.view();
    call.resource.strategy.prepare.prepare_create(&call.context(&view), object)
}

/// Prepares `new` as a replacement of `old`.
pub(super) fn prepare_update(
    call: &Call<'_>,
    view: &View,
    new: &mut Value,
    old: &Value,
) -> Result<(), ApiError> {
    let resource = &call.resource;
    restrict_to_subresource(call, new, old);
    for field in SERVER_OWNED {
        if meta::text(new, field).is_empty() && meta::integer(new, field).is_none() {
            meta::copy(new, old, field);
        }
    }
    for field in ["resourceVersion", "generation", "creationTimestamp"] {
        meta::copy(new, old, field);
    }
    if meta::is_deleting(old) {
        meta::copy(new, old, "deletionTimestamp");
    }
    meta::drop_empty(new);
    resource.strategy.prepare.prepare_update(&call.context(view), new, old)?;
    resource.strategy.allocate(&call.context(view), new, Some(old))?;
    if !matches!(call.route.subresource, Subresource::Status | Subresource::Binding)
        && counts(resource, new, old)
    {
        let generation = meta::integer(old, "generation").unwrap_or(0) + 1;
        meta::set(new, "generation", Some(generation.into()));
    }
    managed_fields::restore_times(new, old);
    Ok(())
}

/// Copies the parts that a write to the subresource, or to the main resource, may not change from `old`.
fn restrict_to_subresource(call: &Call<'_>, new: &mut Value, old: &Value) {
    let (resource, subresource) = (&call.resource, &call.route.subresource);
    if subresource.is_empty() && !resource.has_status() {
        return;
    }
    resource.strategy.restrict(subresource, new, old);
}

/// Returns whether `metadata.generation` counts the change.
fn counts(resource: &Resource, new: &Value, old: &Value) -> bool {
    if !resource.is_custom() {
        return resource.strategy.config.has_generation()
            && resource.strategy.config.generation.changes(new, old);
    }
    let has_status = resource.has_status();
    let is_counted = |field: &str| field != "metadata" && !(has_status && field == "status");
    let counted = |object: &'_ Value| -> Vec<(String, Value)> {
        let fields = object.as_object().into_iter().flatten().filter(|(field, _)| is_counted(field));
        fields.map(|(field, value)| (field.clone(), value.clone())).collect()
    };
    counted(new) != counted(old)
}
