//! PUT, and what every write over an existing object has in common.

use std::sync::Arc;

use http::{Response, StatusCode};
use serde_json::Value;
use windlass_schema::FieldError;

use super::create::{self, settle_namespace, to_storage};
use super::options::WriteOptions;
use super::{custom, validate, written};
use crate::api::Call;
use crate::meta;
use crate::serve::Body;
use crate::store::{Raced, Stored};
use crate::wire::ApiError;

/// Metadata that only the server writes, and that a client may leave out.
const SERVER_OWNED: [&str; 4] =
    ["creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "uid"];

pub(super) fn update(call: &mut Call<'_>) -> Result<Response<Body>, ApiError> {
    let options = WriteOptions::parse(&call.query, "UpdateOptions")?;
    let object = call.decode(options)?;
    expect_name(call, &object)?;
    let view = call.api.store.view();
    let may_create = call.route.subresource.is_empty() && call.resource.strategy.create_on_update();
    if may_create && view.get(&call.resource.storage, &call.key()).is_none() {
        let mut object = object;
        settle_namespace(call, &mut object)?;
        meta::set(&mut object, "name", Some(call.route.name.clone().into()));
        let stored = create::store(call, object, options)?;
        return call.object(written(true), &stored);
    }
    let stored = replace(call, options, |_, _| Ok(object.clone()))?;
    call.object(StatusCode::OK, &stored)
}

/// The object must have the name that the path has.
pub(super) fn expect_name(call: &Call<'_>, object: &Value) -> Result<(), ApiError> {
    let name = meta::name(object);
    if name.is_empty() {
        return Err(ApiError::bad_request(format!(
            "the name of the object ({} based on URL) was undeterminable: name must be provided",
            call.route.name
        )));
    }
    if name != call.route.name {
        return Err(ApiError::bad_request(format!(
            "the name of the object ({name}) does not match the name on the URL ({})",
            call.route.name
        )));
    }
    Ok(())
}

/// Writes over the object that the request names, as often as it takes if others write too.
///
/// `change` makes the new object of the present one, both in the version of the request.
pub(crate) fn replace(
    call: &mut Call<'_>,
    options: WriteOptions,
    mut change: impl FnMut(&mut Call<'_>, &Value) -> Result<Value, ApiError>,
) -> Result<Arc<Stored>, ApiError> {
    let key = call.key();
    let resource = Arc::clone(&call.resource);
    loop {
        let view = call.api.store.view();
        let current = view.get(&resource.storage, &key).ok_or_else(|| call.not_found())?;
        let old = resource.show_value(&current);
        let before = call.warnings.len();
        let mut new = change(call, &old)?;
        settle_namespace(call, &mut new)?;
        check_version(call, &new, &old, options)?;
        if call.route.subresource.is_empty() {
            resource.strategy.admit(&call.context(&view), &mut new, Some(&old))?;
        }
        prepare(call, &mut new, &old)?;
        let warnings = resource.strategy.warnings(&call.context(&view), &new, Some(&old));
        call.warnings.extend(warnings);
        if new == old {
            return Ok(current);
        }
        let goes = meta::is_deleting(&old)
            && meta::finalizers(&new).next().is_none()
            && meta::integer(&new, "deletionGracePeriodSeconds").unwrap_or(0) == 0
            && resource.strategy.may_go(&new);
        to_storage(call, &mut new);
        if options.dry_run {
            return Ok(Arc::new(Stored::unversioned(new)));
        }
        let write = if goes { None } else { Some(new.clone()) };
        match call.api.store.commit(&resource.storage, &key, Some(current.rv), write) {
            Ok(stored) => {
                call.api.committed(&resource, &stored.value);
                if goes {
                    return Ok(Arc::new(Stored::new(new, current.rv)));
                }
                return Ok(stored);
            }
            Err(Raced) => call.warnings.truncate(before),
        }
    }
}

/// A resourceVersion in the new object is a condition.
fn check_version(call: &Call<'_>, new: &Value, old: &Value, _options: WriteOptions) -> Result<(), ApiError> {
    let resource = &call.resource;
    let (wanted, found) = (meta::resource_version(new), meta::resource_version(old));
    let names = resource.group_resource();
    let (wanted_uid, found_uid) = (meta::uid(new), meta::uid(old));
    // A patch has no uid as precondition; there it is a field that does not change.
    if call.route.verb == "update" && !wanted_uid.is_empty() && wanted_uid != found_uid {
        return Err(ApiError::conflict(
            &names,
            &call.route.name,
            format!(
                "StorageError: invalid object, Code: 4, Key: {}, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: {wanted_uid}, UID in object meta: {found_uid}",
                resource.registry_key(&call.key())
            ),
        ));
    }
    if wanted.is_empty() {
        if resource.strategy.unconditional_update() && !resource.is_custom() {
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
    if wanted == found { Ok(()) } else { Err(ApiError::modified(&names, &call.route.name)) }
}

/// Makes `new` an object that may stand where `old` stands.
fn prepare(call: &mut Call<'_>, new: &mut Value, old: &Value) -> Result<(), ApiError> {
    let resource = Arc::clone(&call.resource);
    let view = call.api.store.view();
    restrict_to_subresource(call, new, old);
    for field in SERVER_OWNED {
        if meta::text(new, field).is_empty() && meta::integer(new, field).is_none() {
            meta::copy(new, old, field);
        }
    }
    for field in ["resourceVersion", "generation", "creationTimestamp"] {
        meta::copy(new, old, field);
    }
    meta::set(new, "selfLink", None);
    meta::set(new, "managedFields", None);
    meta::drop_empty(new);
    resource.strategy.prepare_update(&call.context(&view), new, old)?;
    resource.strategy.allocate(&call.context(&view), new, Some(old))?;
    let mut errors = validate::metadata(&resource, new);
    errors.extend(validate::metadata_update(new, old));
    errors.extend(custom::validate(call, new, Some(old)));
    errors.extend(resource.strategy.validate_update(&call.context(&view), new, old));
    if !errors.is_empty() {
        let name = meta::name(old);
        let kind = new.get("kind").and_then(Value::as_str).unwrap_or(&resource.kind);
        return Err(ApiError::invalid(&resource.storage.group, kind, name, &errors));
    }
    if call.route.subresource != "status" && counts(call, new, old) {
        let generation = meta::integer(old, "generation").unwrap_or(0) + 1;
        meta::set(new, "generation", Some(generation.into()));
    }
    Ok(())
}

/// Whether the change is one that `metadata.generation` counts.
fn counts(call: &Call<'_>, new: &Value, old: &Value) -> bool {
    let resource = &call.resource;
    if !resource.is_custom() {
        return resource.strategy.has_generation() && resource.strategy.generation_changes(new, old);
    }
    let has_status = resource.has_status();
    let counted = |object: &Value| {
        let mut fields = object.as_object().cloned().unwrap_or_default();
        fields.remove("metadata");
        if has_status {
            fields.remove("status");
        }
        fields
    };
    counted(new) != counted(old)
}

/// `/status` writes nothing but the status; everything else never the status.
fn restrict_to_subresource(call: &Call<'_>, new: &mut Value, old: &Value) {
    let resource = &call.resource;
    if call.route.subresource == "status" {
        let status = new.get("status").cloned();
        let version = new.pointer("/metadata/resourceVersion").cloned();
        let metadata = new.get("metadata").cloned();
        *new = old.clone();
        match status {
            Some(status) => meta::fields_mut(new).insert("status".into(), status),
            None => meta::fields_mut(new).remove("status"),
        };
        meta::set(new, "resourceVersion", version);
        if resource.strategy.status_writes_metadata()
            && let Some(metadata) = metadata
        {
            let from = serde_json::json!({"metadata": metadata});
            for field in ["labels", "annotations", "finalizers"] {
                meta::copy(new, &from, field);
            }
        }
    } else if call.route.subresource == "finalize" {
        // Of a namespace, this writes the finalizers of its spec and nothing else.
        let finalizers = new.pointer("/spec/finalizers").cloned();
        let version = new.pointer("/metadata/resourceVersion").cloned();
        *new = old.clone();
        let spec = meta::entry_object(new, "spec");
        match finalizers.filter(|finalizers| finalizers.as_array().is_some_and(|list| !list.is_empty())) {
            Some(finalizers) => spec.insert("finalizers".into(), finalizers),
            None => spec.remove("finalizers"),
        };
        meta::set(new, "resourceVersion", version);
    } else if resource.has_status() && call.route.subresource.is_empty() {
        meta::copy_field(new, old, "status");
    }
}
