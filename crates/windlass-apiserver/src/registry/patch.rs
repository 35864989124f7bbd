//! PATCH in its forms.

use http::{Response, StatusCode, header};
use json_patch::{AddOperation, PatchOperation};
use serde_json::Value;
use windlass_schema::{FieldError, Schema};

use super::options::{FieldValidation, WriteOptions};
use super::update::expect_name;
use super::{Call, write};
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
    Json(Operations),
    Merge(Document),
    Strategic(Document),
}

/// A patch that looks like the object.
pub(super) struct Document {
    value: Value,
    /// Fields that it has twice.
    duplicates: Vec<String>,
}

/// The operations of a JSON patch.
pub(super) struct Operations {
    /// None where one of them is no operation: then the patch applies to nothing.
    list: Option<json_patch::Patch>,
    /// Members that operations do not have: `[0].odd`.
    unknown: Vec<String>,
}

pub(super) async fn patch(call: &mut Call<'_>) -> Result<Response<Body>, ApiError> {
    let patch = read(call)?;
    let options = WriteOptions::parse(&call.query, "PatchOptions")?;
    let stored = write::update(call, options, |call, old| {
        let mut new = apply(&patch, call.resource.schema.get(), old)?;
        let shown = patch.shown(&new);
        expect_same(call, &new, &shown)?;
        let unknown = call.admit_fields(&mut new);
        complain(call, options, &patch, &unknown, shown)?;
        if meta::resource_version(&new).is_empty() {
            // A patch that says nothing of the version is applied to whatever is there.
            meta::copy(&mut new, old, "resourceVersion");
        }
        Ok(new)
    })
    .await?;
    call.object(StatusCode::OK, &stored).await
}

pub(super) fn read(call: &Call<'_>) -> Result<Patch, ApiError> {
    let media_type = MediaType::parse(call.header(header::CONTENT_TYPE).unwrap_or_default());
    let supported: &[&str] =
        if call.resource.is_custom() { &[JSON, MERGE, APPLY] } else { &[JSON, MERGE, STRATEGIC, APPLY] };
    let essence = media_type.essence.as_str();
    if ![JSON, MERGE, STRATEGIC, APPLY].contains(&essence) {
        return Err(ApiError::no_media_type());
    }
    if essence == APPLY {
        // Until it is there, apply is refused as by a server that never heard of it.
        return Err(ApiError::unsupported_media_type(&supported[..supported.len() - 1]));
    }
    if !supported.contains(&essence) {
        return Err(ApiError::unsupported_media_type(supported));
    }
    let head = if essence == STRATEGIC { "" } else { "error decoding patch: " };
    let broken = |why: &str| ApiError::bad_request(format!("{head}{why}"));
    let (value, duplicates) = wire::from_json_with_duplicates(call.body).map_err(|why| broken(&why))?;
    let mistyped = |go_type: &str| {
        let found = super::decode::json_type(&value);
        broken(&format!("json: cannot unmarshal {found} into Go value of type {go_type}"))
    };
    if essence == JSON {
        let Value::Array(operations) = &value else { return Err(mistyped("[]handlers.jsonPatchOp")) };
        if operations.len() > MAX_OPERATIONS {
            return Err(ApiError::too_large(format!(
                "The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {}",
                operations.len()
            )));
        }
        return Ok(Patch::Json(Operations::of(operations)));
    }
    if !value.is_object() {
        return Err(mistyped("map[string]interface {}"));
    }
    let document = Document { value, duplicates };
    Ok(if essence == MERGE { Patch::Merge(document) } else { Patch::Strategic(document) })
}

impl Operations {
    fn of(operations: &[Value]) -> Self {
        const MEMBERS: [&str; 4] = ["op", "path", "from", "value"];
        let mut unknown = Vec::new();
        for (index, operation) in operations.iter().enumerate() {
            let members = operation.as_object().into_iter().flat_map(|members| members.keys());
            let odd = members.filter(|member| !MEMBERS.contains(&member.as_str()));
            unknown.extend(odd.map(|member| format!("[{index}].{member}")));
        }
        Self { list: serde_json::from_value(Value::Array(operations.to_vec())).ok(), unknown }
    }

    /// Applies them as a whole. Replacing a member that is not there adds it, as in the real server.
    fn apply(&self, object: &mut Value) -> Result<(), ApiError> {
        let rejected =
            || ApiError::unprocessable("the server rejected our request due to an error in our request");
        for operation in &self.list.as_ref().ok_or_else(rejected)?.0 {
            let operation = match operation {
                PatchOperation::Replace(replace) if object.pointer(replace.path.as_str()).is_none() => {
                    let (path, value) = (replace.path.clone(), replace.value.clone());
                    PatchOperation::Add(AddOperation { path, value })
                }
                other => other.clone(),
            };
            json_patch::patch(object, std::slice::from_ref(&operation)).map_err(|_| rejected())?;
        }
        Ok(())
    }
}

impl Patch {
    /// What an error about the result quotes: the patched object, or the strategic patch as Go prints it.
    fn shown(&self, patched: &Value) -> String {
        match self {
            Patch::Strategic(patch) => super::custom::shown(&patch.value),
            Patch::Json(_) | Patch::Merge(_) => patched.to_string(),
        }
    }
}

pub(super) fn apply(patch: &Patch, schema: &Schema, old: &Value) -> Result<Value, ApiError> {
    let mut new = old.clone();
    match patch {
        Patch::Json(operations) => operations.apply(&mut new)?,
        Patch::Merge(patch) => json_patch::merge(&mut new, &patch.value),
        Patch::Strategic(patch) => {
            new = windlass_schema::strategic_merge(schema, new, patch.value.clone()).map_err(|error| {
                let text = error.to_string();
                if error.is_malformed() { ApiError::bad_request(text) } else { ApiError::unexplained(text) }
            })?;
        }
    }
    if new.is_object() { Ok(new) } else { Err(ApiError::bad_request("the patch does not leave an object")) }
}

/// A patch may not make an object another one.
fn expect_same(call: &Call<'_>, new: &Value, shown: &str) -> Result<(), ApiError> {
    call.expect_fields(new).map_err(|why| not_an_object_of_the_kind(shown, why))?;
    let resource = &call.resource;
    let text = |field: &str| new.get(field).and_then(Value::as_str).unwrap_or_default();
    let (version, kind) = (text("apiVersion"), text("kind"));
    if kind != resource.kind || version != resource.api_version() {
        let why = call.not_the_kind(version, kind);
        return Err(not_an_object_of_the_kind(shown, why));
    }
    expect_name(call, new)
}

/// 422 for a patch whose result, which is shown as text, cannot be read as an object of the kind.
fn not_an_object_of_the_kind(shown: &str, why: String) -> ApiError {
    let error = FieldError::invalid("patch", shown, why);
    ApiError::invalid("", "", "", std::slice::from_ref(&error))
}

fn complain(
    call: &mut Call<'_>,
    options: WriteOptions,
    patch: &Patch,
    unknown: &[String],
    shown: String,
) -> Result<(), ApiError> {
    let quote = windlass_schema::go_quote;
    let (what, of_patch) = match patch {
        Patch::Json(operations) => ("json patch unknown", &operations.unknown),
        Patch::Merge(document) | Patch::Strategic(document) => ("duplicate", &document.duplicates),
    };
    let of_patch = of_patch.iter().map(|path| format!("{what} field {}", quote(path)));
    let of_object = unknown.iter().map(|path| format!("unknown field {}", quote(path)));
    let complaints: Vec<String> = of_patch.chain(of_object).collect();
    match options.field_validation {
        FieldValidation::Ignore => {}
        FieldValidation::Warn => call.warnings.extend(complaints),
        FieldValidation::Strict if complaints.is_empty() => {}
        FieldValidation::Strict => {
            let why = format!("strict decoding error: {}", complaints.join(", "));
            return Err(not_an_object_of_the_kind(&shown, why));
        }
    }
    Ok(())
}
