//! POST: a new object.

use std::sync::Arc;

use http::{Response, StatusCode};
use serde_json::Value;

use super::options::WriteOptions;
use super::{custom, validate};
use crate::api::Call;
use crate::meta;
use crate::resource::namespace_terminating;
use crate::serve::Body;
use crate::store::{Raced, Stored};
use crate::wire::ApiError;

/// How often a generated name may be taken before the client hears of it.
const NAME_ATTEMPTS: usize = 8;
/// The longest name that is generated; five characters of it are the suffix.
const MAX_GENERATED_NAME: usize = 63;

pub(super) fn create(call: &mut Call<'_>) -> Result<Response<Body>, ApiError> {
    let options = WriteOptions::parse(&call.query, "CreateOptions")?;
    let object = call.decode(options)?;
    if !meta::resource_version(&object).is_empty() {
        return Err(ApiError::unexplained("resourceVersion should not be set on objects to be created"));
    }
    let stored = store(call, object, options)?;
    call.object(StatusCode::CREATED, &stored)
}

/// Creates an object that was decoded already.
pub(crate) fn store(
    call: &mut Call<'_>,
    mut object: Value,
    options: WriteOptions,
) -> Result<Arc<Stored>, ApiError> {
    settle_namespace(call, &mut object)?;
    let generated = meta::name(&object).is_empty() && !meta::text(&object, "generateName").is_empty();
    let attempts = if generated { NAME_ATTEMPTS } else { 1 };
    for _ in 0..attempts {
        let mut attempt = object.clone();
        if generated {
            let base = meta::text(&attempt, "generateName");
            let base: String = base.chars().take(MAX_GENERATED_NAME - 5).collect();
            let name = format!("{base}{}", call.api.env.suffix());
            meta::set(&mut attempt, "name", Some(name.into()));
        }
        match store_named(call, attempt, options) {
            Err(error) if generated && error.reason() == "AlreadyExists" => {}
            other => return other,
        }
    }
    let resource = call.resource.group_resource();
    Err(ApiError::generate_name_conflict(&resource, meta::text(&object, "generateName")))
}

fn store_named(
    call: &mut Call<'_>,
    mut object: Value,
    options: WriteOptions,
) -> Result<Arc<Stored>, ApiError> {
    let resource = Arc::clone(&call.resource);
    let view = call.api.store.view();
    let name = meta::name(&object).to_owned();
    if resource.custom.as_ref().is_some_and(|custom| custom.terminating) {
        return Err(ApiError::forbidden(
            &resource.group_resource(),
            &name,
            "create not allowed while custom resource definition is terminating",
        ));
    }
    let namespace = meta::namespace(&object).to_owned();
    if resource.namespaced {
        match namespace_terminating(&view, &namespace) {
            Some(false) => {}
            Some(true) => {
                let resource = resource.group_resource();
                return Err(ApiError::namespace_terminating(&resource, &name, &namespace));
            }
            None => {
                let namespaces = crate::wire::GroupResource::new("", "namespaces");
                return Err(ApiError::not_found(&namespaces, &namespace));
            }
        }
    }
    resource.strategy.admit(&call.context(&view), &mut object, None)?;
    begin(call, &mut object);
    resource.strategy.prepare_create(&call.context(&view), &mut object)?;
    resource.strategy.allocate(&call.context(&view), &mut object, None)?;
    let mut errors = validate::metadata(&resource, &object);
    errors.extend(custom::validate(call, &object, None));
    errors.extend(resource.strategy.validate_create(&call.context(&view), &object));
    if !errors.is_empty() {
        let kind = object.get("kind").and_then(Value::as_str).unwrap_or(&resource.kind);
        return Err(ApiError::invalid(&resource.storage.group, kind, &name, &errors));
    }
    let warnings = resource.strategy.warnings(&call.context(&view), &object, None);
    call.warnings.extend(warnings);
    to_storage(call, &mut object);
    let key = resource.key(&namespace, &name);
    let exists = || ApiError::already_exists(&resource.group_resource(), &name);
    if options.dry_run {
        if call.api.store.view().get(&resource.storage, &key).is_some() {
            return Err(exists());
        }
        meta::set(&mut object, "resourceVersion", None);
        return Ok(Arc::new(Stored::unversioned(object)));
    }
    match call.api.store.commit(&resource.storage, &key, None, Some(object)) {
        Ok(stored) => {
            call.api.committed(&resource, &stored.value);
            Ok(stored)
        }
        Err(Raced) => Err(exists()),
    }
}

/// The namespace of the object and that of the request must agree; an absent one is filled in.
pub(super) fn settle_namespace(call: &Call<'_>, object: &mut Value) -> Result<(), ApiError> {
    let wanted = &call.route.namespace;
    let found = meta::namespace(object);
    if !call.resource.namespaced {
        if call.resource.is_custom() {
            meta::set(object, "namespace", None);
        }
        // For built-in kinds one is refused by validation.
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

/// What the server itself says about a new object.
fn begin(call: &Call<'_>, object: &mut Value) {
    let env = &call.api.env;
    for field in
        ["deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "managedFields", "resourceVersion"]
    {
        meta::set(object, field, None);
    }
    meta::set(object, "uid", Some(env.uid().into()));
    meta::set(object, "creationTimestamp", Some(env.now_rfc3339().into()));
    if call.resource.strategy.has_generation() || call.resource.is_custom() {
        meta::set(object, "generation", Some(1.into()));
    }
    meta::drop_empty(object);
    if call.resource.is_custom() && call.resource.has_status() {
        meta::fields_mut(object).remove("status");
    }
}

/// Brings an object from the version of the request to that of the store.
pub(super) fn to_storage(call: &Call<'_>, object: &mut Value) {
    let resource = &call.resource;
    if resource.api_version() != resource.storage_version {
        let version = resource.storage_version.rsplit('/').next().unwrap_or_default();
        resource.strategy.convert(object, version);
        let fields = meta::fields_mut(object);
        fields.insert("apiVersion".into(), resource.storage_version.clone().into());
    }
}
