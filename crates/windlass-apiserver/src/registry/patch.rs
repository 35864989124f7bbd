//! PATCH in its forms.

use http::{Response, StatusCode, header};
use json_patch::{AddOperation, PatchOperation};
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
const APPLY: &str = "application/apply-patch+yaml";

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
        let patched = new.clone();
        expect_same(call, &new)?;
        let unknown = call.admit_fields(&mut new);
        complain(call, options, &unknown, &patched)?;
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
    // Apply is named as the real server names it, and refused until it is there.
    let supported: &[&str] =
        if call.resource.is_custom() { &[JSON, MERGE, APPLY] } else { &[JSON, MERGE, STRATEGIC, APPLY] };
    let essence = media_type.essence.as_str();
    if essence == APPLY || !supported.contains(&essence) {
        return Err(ApiError::unsupported_media_type(supported));
    }
    let value = wire::from_json(call.body)
        .map_err(|error| ApiError::bad_request(format!("error decoding patch: {error}")))?;
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
        return Err(ApiError::bad_request(format!(
            "error decoding patch: json: cannot unmarshal {} into Go value of type map[string]interface {{}}",
            super::decode::json_type(&value)
        )));
    }
    Ok(if essence == MERGE { Patch::Merge(value) } else { Patch::Strategic(value) })
}

pub(super) fn apply(patch: &Patch, schema: &Schema, old: &Value) -> Result<Value, ApiError> {
    let mut new = old.clone();
    match patch {
        Patch::Json(patch) => apply_operations(patch, &mut new)?,
        Patch::Merge(patch) => json_patch::merge(&mut new, patch),
        Patch::Strategic(patch) => {
            new = windlass_schema::strategic_merge(schema, new, patch.clone()).map_err(|error| {
                let text = error.to_string();
                if error.is_malformed() { ApiError::bad_request(text) } else { ApiError::unexplained(text) }
            })?;
        }
    }
    if new.is_object() { Ok(new) } else { Err(ApiError::bad_request("the patch does not leave an object")) }
}

/// Applies a JSON patch as a whole. Replacing a member that is not there adds it, as in the real server.
fn apply_operations(patch: &json_patch::Patch, object: &mut Value) -> Result<(), ApiError> {
    let rejected =
        || ApiError::unprocessable("the server rejected our request due to an error in our request");
    for operation in &patch.0 {
        let operation = match operation {
            PatchOperation::Replace(replace) if object.pointer(replace.path.as_str()).is_none() => {
                PatchOperation::Add(AddOperation { path: replace.path.clone(), value: replace.value.clone() })
            }
            other => other.clone(),
        };
        json_patch::patch(object, std::slice::from_ref(&operation)).map_err(|_| rejected())?;
    }
    Ok(())
}

/// A patch may not make an object another one.
fn expect_same(call: &Call<'_>, new: &Value) -> Result<(), ApiError> {
    call.expect_fields(new).map_err(|why| not_an_object_of_the_kind(new, why))?;
    let resource = &call.resource;
    let text = |field: &str| new.get(field).and_then(Value::as_str).unwrap_or_default();
    let (version, kind) = (text("apiVersion"), text("kind"));
    if kind != resource.kind || version != resource.api_version() {
        let why = format!(
            "no kind {} is registered for version {} in scheme \"pkg/runtime/scheme.go:111\"",
            windlass_schema::go_quote(kind),
            windlass_schema::go_quote(version)
        );
        return Err(not_an_object_of_the_kind(new, why));
    }
    if meta::name(new) != call.route.name {
        return Err(ApiError::bad_request(format!(
            "the name of the object ({}) does not match the name on the URL ({})",
            meta::name(new),
            call.route.name
        )));
    }
    Ok(())
}

/// 422 for a patch whose result, which is shown as text, cannot be read as an object of the kind.
fn not_an_object_of_the_kind(patched: &Value, why: String) -> ApiError {
    let error = FieldError::invalid("patch", patched.to_string(), why);
    ApiError::invalid("", "", "", std::slice::from_ref(&error))
}

fn complain(
    call: &mut Call<'_>,
    options: WriteOptions,
    unknown: &[String],
    patched: &Value,
) -> Result<(), ApiError> {
    let complaints: Vec<String> =
        unknown.iter().map(|path| format!("unknown field {}", windlass_schema::go_quote(path))).collect();
    match options.field_validation {
        FieldValidation::Ignore => {}
        FieldValidation::Warn => call.warnings.extend(complaints),
        FieldValidation::Strict if complaints.is_empty() => {}
        FieldValidation::Strict => {
            let why = format!("strict decoding error: {}", complaints.join(", "));
            return Err(not_an_object_of_the_kind(patched, why));
        }
    }
    Ok(())
}
