//! The scale subresource: reads and writes the replicas, wherever the kind keeps them.

use http::{Response, StatusCode, header};
use serde_json::{Value, json};
use windlass_schema::Schema;

use super::options::WriteOptions;
use super::update::expect_name;
use super::{Call, patch, write};
use crate::body::Body;
use crate::meta;
use crate::resource::ScalePaths;
use crate::wire::{self, ApiError, LabelSelector};

/// Returns the paths of built-in kinds, whose selector is an object.
fn builtin_paths() -> ScalePaths {
    ScalePaths {
        spec_replicas: ".spec.replicas".to_owned(),
        status_replicas: ".status.replicas".to_owned(),
        label_selector: None,
    }
}

pub(super) async fn get(call: &Call<'_>) -> Result<Response<Body>, ApiError> {
    let view = call.state.store.view();
    let stored = view.get(&call.resource.storage, &call.key()).ok_or_else(|| call.not_found())?;
    let object = call.resource.present_one(stored).await?.value();
    call.value(StatusCode::OK, &scale_of(call, &object)?).await
}

pub(super) async fn update(call: &mut Call<'_>) -> Result<Response<Body>, ApiError> {
    call.negotiate()?;
    let options = WriteOptions::parse(&call.query, "UpdateOptions")?;
    let content_type = call.header(header::CONTENT_TYPE);
    let decoded =
        wire::decode_body(content_type, call.body, "Scale", |bytes| call.state.decode_protobuf(bytes))?;
    if let Some(why) = windlass_schema::decode_error(&schema(call), "Scale", &decoded.value) {
        return Err(ApiError::bad_request(format!(
            "Scale in version \"v1\" cannot be handled as a Scale: {why}"
        )));
    }
    expect_name(call, &decoded.value)?;
    write_scale(call, options, |_, _| Ok(decoded.value.clone())).await
}

pub(super) async fn patch(call: &mut Call<'_>) -> Result<Response<Body>, ApiError> {
    let media_type = patch::media_type(call)?;
    call.negotiate()?;
    let options = WriteOptions::parse(&call.query, "PatchOptions")?;
    let schema = schema(call);
    write_scale(call, options, |call, scale| {
        let patch = patch::read(call, media_type, options.field_validation)?;
        let new = patch::apply(&patch, &schema, scale)?;
        match windlass_schema::decode_error(&schema, "Scale", &new) {
            Some(why) => Err(patch::not_an_object_of_the_kind(&patch.shown(&new), why)),
            None => Ok(new),
        }
    })
    .await
}

/// Returns the schema of a `Scale`.
fn schema(call: &Call<'_>) -> Schema {
    call.state.catalog.schema("autoscaling", "v1", "Scale").unwrap_or_else(Schema::unconstrained)
}

/// Changes the scale of an object, and writes its replicas.
async fn write_scale(
    call: &mut Call<'_>,
    options: WriteOptions,
    mut change: impl FnMut(&Call<'_>, &Value) -> Result<Value, ApiError>,
) -> Result<Response<Body>, ApiError> {
    let paths = paths(call)?;
    let stored = write::update(call, options, |call, old| {
        let scale = change(call, &scale_of(call, old)?)?;
        let replicas = scale.pointer("/spec/replicas").and_then(Value::as_i64).unwrap_or(0);
        // Custom resources are held to it with the rest of their rules.
        if replicas < 0 && !call.resource.is_custom() {
            let why = "must be greater than or equal to 0";
            let error = windlass_schema::FieldError::invalid("spec.replicas", replicas, why);
            let errors = std::slice::from_ref(&error);
            return Err(ApiError::invalid("autoscaling", "Scale", &call.route.name, errors));
        }
        let mut new = old.clone();
        let version = meta::resource_version(&scale);
        if !version.is_empty() {
            meta::set(&mut new, "resourceVersion", Some(version.into()));
        }
        set_at(&mut new, &paths.spec_replicas, replicas.into());
        Ok(new)
    })
    .await?;
    let object = call.resource.present_one(&stored).await?.value();
    call.value(StatusCode::OK, &scale_of(call, &object)?).await
}

fn paths(call: &Call<'_>) -> Result<ScalePaths, ApiError> {
    match &call.resource.custom {
        None => Ok(builtin_paths()),
        Some(custom) => custom.scale.clone().ok_or_else(ApiError::no_such_resource),
    }
}

/// Makes the `Scale` of an object.
fn scale_of(call: &Call<'_>, object: &Value) -> Result<Value, ApiError> {
    let paths = paths(call)?;
    let spec = match at(object, &paths.spec_replicas) {
        Some(replicas) => replicas.as_i64().unwrap_or(0),
        None if call.resource.is_custom() => {
            return Err(ApiError::internal(format!(
                "the spec replicas field {} does not exist",
                windlass_schema::go_quote(&paths.spec_replicas)
            )));
        }
        None => 0,
    };
    let mut metadata = json!({});
    for field in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
        let text = meta::text(object, field);
        if !text.is_empty() {
            metadata[field] = text.into();
        }
    }
    let mut status =
        json!({"replicas": at(object, &paths.status_replicas).and_then(Value::as_i64).unwrap_or(0)});
    let selector = match &paths.label_selector {
        Some(path) => at(object, path).and_then(Value::as_str).unwrap_or_default().to_owned(),
        None if call.resource.is_custom() => String::new(),
        None => selector_text(object),
    };
    if !selector.is_empty() {
        status["selector"] = selector.into();
    }
    let mut scale = json!({
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": metadata,
        "spec": {},
        "status": status,
    });
    if spec != 0 || call.resource.is_custom() {
        scale["spec"]["replicas"] = spec.into();
    }
    Ok(scale)
}

/// Formats the selector of a workload.
fn selector_text(object: &Value) -> String {
    let Some(selector) = object.pointer("/spec/selector").and_then(Value::as_object) else {
        return String::new();
    };
    let structured = selector.contains_key("matchLabels") || selector.contains_key("matchExpressions");
    let selector = if structured {
        LabelSelector::from_object(&Value::Object(selector.clone()))
    } else {
        LabelSelector::from_map(selector)
    };
    selector.to_string()
}

fn segments(path: &str) -> impl Iterator<Item = &str> {
    path.split('.').filter(|segment| !segment.is_empty())
}

fn at<'a>(object: &'a Value, path: &str) -> Option<&'a Value> {
    segments(path).try_fold(object, |value, segment| value.get(segment))
}

fn set_at(object: &mut Value, path: &str, value: Value) {
    let mut segments: Vec<&str> = segments(path).collect();
    let Some(last) = segments.pop() else { return };
    let parent = segments.into_iter().fold(object, |value, segment| {
        meta::fields_mut(value).entry(segment.to_owned()).or_insert_with(|| json!({}))
    });
    meta::fields_mut(parent).insert(last.to_owned(), value);
}
