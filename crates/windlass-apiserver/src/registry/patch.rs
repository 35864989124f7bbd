//! PATCH in its forms.

use http::{Response, StatusCode, header};
use serde_json::Value;
use windlass_schema::{FieldError, Schema};

use super::options::{FieldValidation, WriteOptions};
use super::update::replace;
use crate::api::Call;
use crate::meta;
use crate::serve::Body;
use crate::wire::{self, ApiError, MediaType};

/// The most operations in one JSON patch.
const MAX_OPERATIONS: usize = 10_000;

const JSON: &str = "application/json-patch+json";
const MERGE: &str = "application/merge-patch+json";
const STRATEGIC: &str = "application/strategic-merge-patch+json";

/// A patch that was read.
pub(super) enum Patch {
    Json(json_patch::Patch),
    Merge(Value),
    Strategic(Value),
}

pub(super) fn patch(call: &mut Call<'_>) -> Result<Response<Body>, ApiError> {
    let options = WriteOptions::parse(&call.query, "PatchOptions")?;
    let patch = read(call)?;
    let stored = replace(call, options, |call, old| {
        let mut new = apply(&patch, call.resource.schema.get(), old)?;
        expect_same(call, &new)?;
        let unknown = call.admit_fields(&mut new);
        complain(call, options, &unknown)?;
        if meta::resource_version(&new).is_empty() {
            // A patch that says nothing of the version is applied to whatever is there.
            meta::copy(&mut new, old, "resourceVersion");
        }
        Ok(new)
    })?;
    call.object(StatusCode::OK, &stored)
}

pub(super) fn read(call: &Call<'_>) -> Result<Patch, ApiError> {
    let media_type = MediaType::parse(call.header(header::CONTENT_TYPE).unwrap_or_default());
    let supported: &[&str] =
        if call.resource.is_custom() { &[JSON, MERGE] } else { &[JSON, MERGE, STRATEGIC] };
    let essence = media_type.essence.as_str();
    if !supported.contains(&essence) {
        return Err(ApiError::unsupported_media_type(supported));
    }
    let value = wire::from_json(call.body)?;
    if essence == JSON {
        let operations = value.as_array().map_or(0, Vec::len);
        if operations > MAX_OPERATIONS {
            return Err(ApiError::too_large(format!(
                "The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {operations}"
            )));
        }
        let patch = serde_json::from_value(value)
            .map_err(|error| ApiError::bad_request(format!("error decoding patch: {error}")))?;
        return Ok(Patch::Json(patch));
    }
    if !value.is_object() {
        return Err(ApiError::bad_request(
            "error decoding patch: json: cannot unmarshal into Go value of type map[string]interface {}",
        ));
    }
    Ok(if essence == MERGE { Patch::Merge(value) } else { Patch::Strategic(value) })
}

pub(super) fn apply(patch: &Patch, schema: &Schema, old: &Value) -> Result<Value, ApiError> {
    let mut new = old.clone();
    match patch {
        Patch::Json(patch) => json_patch::patch(&mut new, patch).map_err(|error| {
            ApiError::unprocessable(format!(
                "the server rejected our request due to an error in our request: {error}"
            ))
        })?,
        Patch::Merge(patch) => json_patch::merge(&mut new, patch),
        Patch::Strategic(patch) => {
            new = crate::strategic::merge(schema, &new, patch)?;
        }
    }
    if new.is_object() { Ok(new) } else { Err(ApiError::bad_request("the patch does not leave an object")) }
}

/// A patch may not make an object another one.
fn expect_same(call: &Call<'_>, new: &Value) -> Result<(), ApiError> {
    call.expect_metadata(new)?;
    if meta::name(new) != call.route.name {
        return Err(ApiError::bad_request(format!(
            "the name of the object ({}) does not match the name on the URL ({})",
            meta::name(new),
            call.route.name
        )));
    }
    let text = |field: &str| new.get(field).and_then(Value::as_str).unwrap_or_default();
    let resource = &call.resource;
    if text("kind") != resource.kind || text("apiVersion") != resource.api_version() {
        return Err(ApiError::bad_request(format!(
            "the API version or kind in the patch ({}, {}) does not match the object's ({}, {})",
            text("apiVersion"),
            text("kind"),
            resource.api_version(),
            resource.kind
        )));
    }
    Ok(())
}

fn complain(call: &mut Call<'_>, options: WriteOptions, unknown: &[String]) -> Result<(), ApiError> {
    let complaints: Vec<String> =
        unknown.iter().map(|path| format!("unknown field {}", windlass_schema::go_quote(path))).collect();
    match options.field_validation {
        FieldValidation::Ignore => {}
        FieldValidation::Warn => call.warnings.extend(complaints),
        FieldValidation::Strict if complaints.is_empty() => {}
        FieldValidation::Strict => {
            let text = String::from_utf8_lossy(call.body).into_owned();
            let error = FieldError::invalid(
                "patch",
                text,
                format!("strict decoding error: {}", complaints.join(", ")),
            );
            return Err(ApiError::invalid("", "", "", std::slice::from_ref(&error)));
        }
    }
    Ok(())
}
