//! The metadata of an object on the way to the store: fields that the server sets, and preconditions.

use serde_json::Value;
use windlass_schema::FieldError;

use super::{Call, options};
use crate::meta;
use crate::verb::Verb;
use crate::wire::ApiError;

/// Fills in a missing namespace from the request. The namespaces of the object and the request must agree.
pub(super) fn settle_namespace(call: &Call<'_>, object: &mut Value) -> Result<(), ApiError> {
    let wanted = &call.route.namespace;
    let found = meta::namespace(object);
    if !call.resource.namespaced {
        meta::set(object, "namespace", None);
        return Ok(());
    }
    if found.is_empty() {
        meta::set(object, "namespace", Some(wanted.clone().into()));
    } else if found != wanted {
        return Err(ApiError::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        ));
    }
    Ok(())
}

/// Removes the metadata of a new object that only the server writes.
pub(super) fn wipe_system_metadata(object: &mut Value) {
    wipe_identity(object);
    for field in ["deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"] {
        meta::set(object, field, None);
    }
}

/// Works like [`wipe_system_metadata`], but keeps the marks of a deletion: the manager of an update that creates an
/// object owns the marks, although the object does not get the marks.
pub(super) fn wipe_identity(object: &mut Value) {
    for field in ["uid", "creationTimestamp"] {
        meta::set(object, field, None);
    }
}

/// Sets the metadata of a new object that the server determines.
pub(super) fn fill_system_fields(call: &Call<'_>, object: &mut Value) {
    let env = &call.state.env;
    wipe_system_metadata(object);
    meta::set(object, "resourceVersion", None);
    meta::set(object, "uid", Some(env.uid().into()));
    meta::set(object, "creationTimestamp", Some(env.now_rfc3339().into()));
    if call.resource.strategy.config.has_generation() || call.resource.is_custom() {
        meta::set(object, "generation", Some(1.into()));
    }
    meta::drop_empty(object);
    if call.resource.is_custom() && call.resource.has_status() {
        meta::fields_mut(object).remove("status");
        // The real server sets the status defaults when reading the stored object: the status has defaults
        // from the start. Null from an apply stays null, and may be invalid.
        windlass_schema::default_missing(call.resource.schema.get(), object);
    }
}

/// Checks the uid of an object, a precondition of the update.
pub(super) fn check_uid(call: &Call<'_>, new: &Value, old: &Value) -> Result<(), ApiError> {
    let (wanted, found) = (meta::uid(new), meta::uid(old));
    // The uid of a patch is not a precondition, but a field that does not change.
    let is_other = call.route.verb == Verb::Update && !wanted.is_empty() && wanted != found;
    if is_other { Err(other_uid(call, wanted, found)) } else { Ok(()) }
}

/// Checks the resource version of an object, a precondition of the update.
pub(super) fn check_version(call: &Call<'_>, new: &Value, old: &Value) -> Result<(), ApiError> {
    let resource = &call.resource;
    let (wanted, found) = (meta::resource_version(new), meta::resource_version(old));
    let names = resource.group_resource();
    let version = if wanted.is_empty() { 0 } else { version_number(wanted)? };
    if version == 0 {
        if resource.strategy.config.unconditional_update && !resource.is_custom() {
            return Ok(());
        }
        let error = FieldError::invalid("metadata.resourceVersion", 0, "must be specified for an update");
        let error = FieldError { bad_value: Some(Value::from(0)), ..error };
        // The real server names the resource here where a kind belongs.
        return Err(ApiError::invalid(
            &resource.group,
            &resource.plural,
            &call.route.name,
            std::slice::from_ref(&error),
        ));
    }
    if version_number(found)? == version { Ok(()) } else { Err(ApiError::modified(&names, &call.route.name)) }
}

/// Reads a resource version, with the errors of Go.
pub(super) fn version_number(version: &str) -> Result<u64, ApiError> {
    options::parse_unsigned(version).map_err(ApiError::unexplained)
}

/// Returns 409 for an update of an object that does not have the uid `wanted`; `found` is empty if there is
/// no object.
pub(super) fn other_uid(call: &Call<'_>, wanted: &str, found: &str) -> ApiError {
    let key = call.resource.registry_key(&call.key());
    // A dry run does not reach the storage, and only the storage knows the prefix.
    let key = if call.is_dry_run() { key.trim_start_matches("/registry") } else { &key };
    let why = format!(
        "StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: {wanted}, UID in object meta: {found}"
    );
    ApiError::conflict(&call.resource.group_resource(), &call.route.name, why)
}
