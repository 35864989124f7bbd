//! Validation of an object: the metadata, the schema of a custom resource, and the rules of the kind.

use std::collections::HashSet;

use serde_json::Value;
use windlass_kinds::Subresource;
use windlass_schema::FieldError;

use super::object_meta;
use crate::meta;
use crate::registry::{Call, custom, privileged};
use crate::resource::Resource;
use crate::store::View;
use crate::wire::ApiError;

/// Validates a new object, and adds the warnings.
pub(super) fn validate_create(call: &mut Call<'_>, view: &View, new: &Value) -> Result<(), ApiError> {
    let resource = &call.resource;
    let errors = object_meta::create(resource, new, || {
        let mut errors = custom::validate(resource, &call.route.subresource, new, None, &mut Vec::new());
        errors.extend(object_meta::embedded(resource, new));
        errors.extend(resource.strategy.validate.validate_create(&call.context(view), new));
        if !call.state.allows_privileged {
            errors.extend(privileged::errors(resource, new));
        }
        errors
    });
    refuse_invalid(resource, new, errors)?;
    warn(call, view, new, None);
    Ok(())
}

/// Validates `new` as a replacement of `old`, and adds the warnings.
pub(super) fn validate_update(
    call: &mut Call<'_>,
    view: &View,
    new: &Value,
    old: &Value,
) -> Result<(), ApiError> {
    let (resource, subresource) = (&call.resource, &call.route.subresource);
    let mut errors = object_meta::update(resource, subresource, new, old);
    let mut warnings = Vec::new();
    errors.extend(custom::validate(resource, subresource, new, Some(old), &mut warnings));
    errors.extend(object_meta::embedded(resource, new));
    errors.extend(resource.strategy.validate.validate_update(&call.context(view), new, old));
    if !call.state.allows_privileged && *subresource != Subresource::Status {
        errors.extend(privileged::errors(resource, new));
    }
    call.warnings.extend(warnings);
    refuse_invalid(&call.resource, new, errors)?;
    warn(call, view, new, Some(old));
    Ok(())
}

fn warn(call: &mut Call<'_>, view: &View, new: &Value, old: Option<&Value>) {
    let mut warnings = custom::warnings(&call.resource, new, old);
    warnings.extend(call.resource.strategy.warnings(&call.context(view), new, old));
    call.warnings.extend(warnings);
}

fn refuse_invalid(resource: &Resource, object: &Value, mut errors: Vec<FieldError>) -> Result<(), ApiError> {
    if errors.is_empty() {
        return Ok(());
    }
    if !object_meta::repeats_errors(resource) {
        let mut seen = HashSet::new();
        errors.retain(|error| seen.insert(error.to_string()));
    }
    let kind = object.get("kind").and_then(Value::as_str).unwrap_or(&resource.kind);
    // The group of a custom resource is the group in the object.
    let version = object.get("apiVersion").and_then(Value::as_str).unwrap_or_default();
    let group = match version.split_once('/') {
        Some((group, _)) if resource.is_custom() => group,
        None if resource.is_custom() => "",
        _ => &*resource.storage.group,
    };
    Err(ApiError::invalid(group, kind, meta::name(object), &errors))
}
