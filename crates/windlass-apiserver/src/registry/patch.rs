//! `PATCH`: JSON, merge and strategic merge patches; [`apply`] has the fourth type.

use http::{Response, StatusCode, header};
use serde_json::{Map, Value};
use windlass_schema::{FieldError, Schema, json_type};

use super::decode::wrong_type_meta;
use super::options::{FieldValidation, WriteOptions};
use super::update::{expect_name, undeterminable_name};
use super::write::{self, Change};
use super::{Call, apply};
use crate::body::Body;
use crate::verb::Verb;
use crate::wire::patch::{JsonPatch, Limits, merge_patch};
use crate::wire::{self, ApiError};

const JSON: &str = "application/json-patch+json";
const MERGE: &str = "application/merge-patch+json";
const STRATEGIC: &str = "application/strategic-merge-patch+json";
pub(super) const APPLY: &str = "application/apply-patch+yaml";

/// The patch of a request.
pub(super) enum Patch {
    /// The operations, and members that the patch has twice.
    Json(JsonPatch, Vec<String>),
    Merge(Document),
    Strategic(Document),
}

/// A patch in the form of an object.
pub(super) struct Document {
    value: Value,
    /// Fields that the patch has twice.
    duplicates: Vec<String>,
}

pub(super) async fn patch(call: &mut Call<'_>) -> Result<Response<Body>, ApiError> {
    let media_type = media_type(call)?;
    if media_type == APPLY {
        return apply::apply(call).await;
    }
    call.negotiate()?;
    let options = WriteOptions::parse(&call.query, "PatchOptions")?;
    let patch = read(call, media_type, options.field_validation)?;
    let change = Patching { options, patch };
    let stored = write::update(call, options, change).await?;
    call.object(StatusCode::OK, &stored).await
}

/// A patch of the present object.
struct Patching {
    options: WriteOptions,
    /// The patch, or the error that an object gets that is there.
    patch: Result<Patch, ApiError>,
}

impl Change for Patching {
    async fn make(&mut self, call: &mut Call<'_>, old: &Value) -> Result<Value, ApiError> {
        let patch = self.patch.as_ref().map_err(Clone::clone)?;
        let mut new = patched(patch, call.resource.schema.get(), old)?;
        if !matches!(patch, Patch::Strategic(_)) && is_without_version(call, &new) {
            return Err(refuse_versionless(call, self.options, patch, &new));
        }
        expect_same(call, patch, &mut new)?;
        let unknown = call.admit_fields(&mut new)?;
        apply_field_validation(call, self.options, patch, &unknown, old)?;
        call.track(Some(old), &mut new).await;
        Ok(new)
    }
}

/// Returns the media type of the patch. Returns 415 if the resource does not support the media type.
pub(super) fn media_type(call: &Call<'_>) -> Result<&'static str, ApiError> {
    let header = call.header(header::CONTENT_TYPE).unwrap_or_default();
    let essence = header.split(';').next().unwrap_or_default();
    let supported: &[&str] =
        if call.resource.is_custom() { &[JSON, MERGE, APPLY] } else { &[JSON, MERGE, STRATEGIC, APPLY] };
    let found = supported.iter().find(|known| **known == essence);
    found.copied().ok_or_else(|| ApiError::unsupported_media_type(supported))
}

/// Returns whether the request is an apply.
pub(super) fn is_apply(call: &Call<'_>) -> bool {
    call.route.verb == Verb::Patch && media_type(call).is_ok_and(|media_type| media_type == APPLY)
}

/// Returns whether the router of the real server has a route for patches with this `Content-Type` header.
pub(super) fn has_route(content_type: &str) -> bool {
    let mut essences =
        content_type.split(',').map(|part| part.split(';').next().unwrap_or_default().trim_matches(' '));
    essences.any(|essence| [JSON, MERGE, STRATEGIC, APPLY].contains(&essence))
}

/// Reads the body as a patch of the type `essence`. The outer error is about the syntax of the body, and for every
/// object. The inner error is about JSON that is no patch, and matters if the object is there.
pub(super) fn read(
    call: &Call<'_>,
    essence: &str,
    field_validation: FieldValidation,
) -> Result<Result<Patch, ApiError>, ApiError> {
    let (value, duplicates) = wire::from_json_with_duplicates(call.body)
        .map_err(|_| ApiError::bad_request("invalid JSON patch"))?;
    Ok(classify(value, duplicates, essence, field_validation))
}

fn classify(
    value: Value,
    duplicates: Vec<String>,
    essence: &str,
    field_validation: FieldValidation,
) -> Result<Patch, ApiError> {
    let lenient = field_validation == FieldValidation::Ignore;
    let head = if essence == STRATEGIC || lenient { "" } else { "error decoding patch: " };
    let broken = |why: &str| ApiError::bad_request(format!("{head}{why}"));
    if essence == JSON {
        let patch = JsonPatch::read(value, !lenient).map_err(|why| broken(&why))?;
        if patch.len() > Limits::OPERATIONS {
            return Err(ApiError::too_large(format!(
                "The allowed maximum operations in a JSON patch is {}, got {}",
                Limits::OPERATIONS,
                patch.len()
            )));
        }
        return Ok(Patch::Json(patch, duplicates));
    }
    match value {
        Value::Null if essence == MERGE => Err(ApiError::bad_request("Invalid JSON Patch")),
        // Go decodes null as a map without members.
        Value::Null => Ok(Patch::Strategic(Document { value: Value::Object(Map::new()), duplicates })),
        Value::Array(_) if essence == MERGE && lenient => Ok(Patch::Merge(Document { value, duplicates })),
        Value::Bool(_) | Value::Number(_) | Value::String(_) if essence == MERGE && lenient => {
            Err(ApiError::bad_request("Invalid JSON Patch"))
        }
        Value::Object(_) if essence == MERGE => Ok(Patch::Merge(Document { value, duplicates })),
        Value::Object(_) => Ok(Patch::Strategic(Document { value, duplicates })),
        other => {
            let found = json_type(&other);
            Err(broken(&format!(
                "json: cannot unmarshal {found} into Go value of type map[string]interface {{}}"
            )))
        }
    }
}

impl Patch {
    /// Returns the text for an error about the result: the patched object, or the strategic patch in Go's
    /// printed form.
    pub(super) fn shown(&self, patched: &Value) -> String {
        match self {
            Patch::Strategic(patch) => windlass_schema::go_value(&patch.value),
            Patch::Json(..) | Patch::Merge(_) => patched.to_string(),
        }
    }
}

pub(super) fn patched(patch: &Patch, schema: &Schema, old: &Value) -> Result<Value, ApiError> {
    let mut new = old.clone();
    match patch {
        Patch::Json(patch, _) => new = patch.apply(new, &Limits::default())?,
        Patch::Merge(patch) => merge_patch(&mut new, &patch.value),
        Patch::Strategic(patch) => {
            new = windlass_schema::strategic_merge(schema, new, patch.value.clone()).map_err(|error| {
                let text = error.to_string();
                if error.is_malformed() { ApiError::bad_request(text) } else { ApiError::unexplained(text) }
            })?;
        }
    }
    if new.is_object() {
        return Ok(new);
    }
    let why = format!("couldn't get version/kind; json parse error: {}", wire::not_an_object(&new));
    Err(not_an_object_of_the_kind(&new.to_string(), why))
}

/// Returns whether a patch removed the version of an object of a built-in kind.
fn is_without_version(call: &Call<'_>, new: &Value) -> bool {
    let version = new.get("apiVersion");
    !call.resource.is_custom() && version.is_none_or(|version| version.is_null() || version == "")
}

/// Returns the error of an object without a version: Go decodes the object as the internal type, without any
/// of the fields.
fn refuse_versionless(call: &mut Call<'_>, options: WriteOptions, patch: &Patch, new: &Value) -> ApiError {
    if let Some(why) = wrong_type_meta(new) {
        return not_an_object_of_the_kind(&patch.shown(new), why);
    }
    let kind = new.get("kind").and_then(Value::as_str).unwrap_or_default();
    if !kind.is_empty() && kind != call.resource.kind {
        let (kind, group) =
            (windlass_schema::go_quote(kind), windlass_schema::go_quote(&call.resource.group));
        let why = format!(
            "no kind {kind} is registered for the internal version of group {group} in scheme \"pkg/runtime/scheme.go:111\""
        );
        return not_an_object_of_the_kind(&patch.shown(new), why);
    }
    let fields = new.as_object().into_iter().flatten().map(|(name, _)| name);
    let unknown = fields.filter(|name| !["apiVersion", "kind"].contains(&name.as_str()));
    let complaints = unknown.map(|name| format!("unknown field {}", windlass_schema::go_quote(name)));
    match options.field_validation {
        FieldValidation::Ignore => {}
        FieldValidation::Warn => call.warnings.extend(complaints),
        FieldValidation::Strict => {
            let complaints: Vec<String> = complaints.collect();
            let why = format!("strict decoding error: {}", complaints.join(", "));
            return not_an_object_of_the_kind(&patch.shown(new), why);
        }
    }
    undeterminable_name(call)
}

/// Checks that a patch kept the kind, version and name of an object, and the types of the fields.
fn expect_same(call: &Call<'_>, patch: &Patch, new: &mut Value) -> Result<(), ApiError> {
    let resource = &call.resource;
    let read = match patch {
        Patch::Strategic(_) => windlass_schema::restore(resource.schema.get(), new),
        Patch::Json(..) | Patch::Merge(_) => call.expect_kind_of_patched(new),
    };
    read.map_err(|why| not_an_object_of_the_kind(&patch.shown(new), why))?;
    if resource.is_custom() && new.get("apiVersion").is_none_or(Value::is_null) {
        let why = "Object 'apiVersion' is missing in 'object has no apiVersion field'";
        return Err(ApiError::internal(why));
    }
    if !resource.is_custom() {
        new["apiVersion"] = resource.api_version().into();
        new["kind"] = resource.kind.clone().into();
    }
    expect_name(call, new)
}

/// Returns 422 for a patch with a result that cannot be decoded as an object of the kind. `shown` is the text
/// of the result.
pub(super) fn not_an_object_of_the_kind(shown: &str, why: String) -> ApiError {
    let error = FieldError::invalid("patch", shown, why);
    ApiError::invalid("", "", "", std::slice::from_ref(&error))
}

/// Warns of duplicate fields in a patch and of fields that the schema does not know, or refuses such fields.
pub(super) fn apply_field_validation(
    call: &mut Call<'_>,
    options: WriteOptions,
    patch: &Patch,
    unknown: &[String],
    old: &Value,
) -> Result<(), ApiError> {
    let quote = windlass_schema::go_quote;
    let (head, duplicates, unknown_members) = match patch {
        Patch::Json(patch, duplicates) => ("json patch ", duplicates, patch.unknown_members()),
        Patch::Merge(document) | Patch::Strategic(document) => ("", &document.duplicates, [].as_slice()),
    };
    let duplicates = duplicates.iter().map(|path| format!("{head}duplicate field {}", quote(path)));
    let unknown_members = unknown_members.iter().map(|path| format!("{head}unknown field {}", quote(path)));
    let of_patch = duplicates.chain(unknown_members);
    let is_custom = call.resource.is_custom();
    let of_object = unknown.iter().map(|path| wire::unknown_field(path, is_custom));
    let complaints: Vec<String> = of_patch.chain(of_object).collect();
    match options.field_validation {
        FieldValidation::Ignore => {}
        FieldValidation::Warn => call.warnings.extend(complaints),
        FieldValidation::Strict if complaints.is_empty() => {}
        FieldValidation::Strict => {
            let why = format!("strict decoding error: {}", complaints.join(", "));
            // The error shows the patched object before unknown fields were dropped.
            let new = patched(patch, call.resource.schema.get(), old)?;
            return Err(not_an_object_of_the_kind(&patch.shown(&new), why));
        }
    }
    Ok(())
}
