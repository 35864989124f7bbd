//! The scale subresource: reads and writes the replicas, at the path of the kind.

use std::sync::Arc;

use http::{Response, StatusCode};
use serde_json::{Value, json};
use windlass_schema::fields::FieldPath;

use super::apply::Configuration;
use super::get::not_older;
use super::options::{self, WriteOptions};
use super::patch::{self, Patch};
use super::update::expect_name;
use super::write::{self, Change};
use super::{Call, metadata, undecodable};
use crate::body::Body;
use crate::managed_fields::{self, FieldManager, ReplicasPaths};
use crate::meta;
use crate::resource::ScalePaths;
use crate::wire::{ApiError, GroupResource, LabelSelector};
use windlass_kinds::kind_names::SCALE;

/// The replicas of a custom resource without replicas, before a change of the scale.
const NO_REPLICAS: i64 = i32::MIN as i64;

/// Returns the paths of built-in kinds. The selector of these kinds is an object.
fn builtin_paths() -> ScalePaths {
    ScalePaths {
        spec_replicas: ".spec.replicas".to_owned(),
        status_replicas: ".status.replicas".to_owned(),
        label_selector: None,
    }
}

pub(super) async fn get(call: &Call<'_>) -> Result<Response<Body>, ApiError> {
    call.negotiate()?;
    let revision = options::revision(call.query.text("resourceVersion")).map_err(ApiError::unexplained)?;
    let view = not_older(call.state, revision).await?;
    let stored = view.get(&call.resource.storage, &call.key()).ok_or_else(|| call.not_found())?;
    let object = call.resource.present_one(stored).await;
    let object = object.map_err(|error| undecodable::at_read(call, stored, &error))?.value();
    call.value(StatusCode::OK, &scale_of(call, &object)?).await
}

pub(super) async fn update(call: &mut Call<'_>) -> Result<Response<Body>, ApiError> {
    call.negotiate()?;
    let options = WriteOptions::parse(&call.query, "UpdateOptions")?;
    let is_custom = call.resource.is_custom();
    let scale = as_scale(call, |call| call.decode(options)).map_err(|error| match error.code() {
        // The real server loses the cause here.
        400 if is_custom => ApiError::bad_request(
            "no kind is registered for the type v1.Scale in scheme \"pkg/runtime/scheme.go:111\"",
        ),
        _ => error,
    })?;
    expect_name(call, &scale)?;
    write_scale(call, options, ScaleChange::Replace(scale)).await
}

/// Does work as if the scale were the resource of the request.
fn as_scale<T>(call: &mut Call<'_>, work: impl FnOnce(&mut Call<'_>) -> T) -> T {
    let scales = Arc::clone(&call.state.scales);
    let resource = std::mem::replace(&mut call.resource, scales);
    let done = work(call);
    call.resource = resource;
    done
}

pub(super) async fn patch(call: &mut Call<'_>) -> Result<Response<Body>, ApiError> {
    let media_type = patch::media_type(call)?;
    call.negotiate()?;
    if media_type == patch::APPLY {
        let options = WriteOptions::parse_apply(&call.query)?;
        let configuration = Configuration::read(call.body)?;
        return write_scale(call, options, ScaleChange::Apply(configuration, options)).await;
    }
    let options = WriteOptions::parse(&call.query, "PatchOptions")?;
    let patch = patch::read(call, media_type, options.field_validation)?;
    write_scale(call, options, ScaleChange::Patch(patch, options)).await
}

/// A change of the scale of an object.
enum ScaleChange {
    Replace(Value),
    /// A patch, or the error that a scale gets that is there.
    Patch(Result<Patch, ApiError>, WriteOptions),
    /// A configuration, or the error that a scale gets that is there.
    Apply(Result<Configuration, ApiError>, WriteOptions),
}

impl ScaleChange {
    /// Makes the new scale of `old`, and records the managers of the scale's fields.
    async fn make(&self, call: &mut Call<'_>, old: &Value) -> Result<Value, ApiError> {
        let scales = Arc::clone(&call.state.scales);
        if let Self::Apply(configuration, options) = self {
            let configuration = configuration.as_ref().map_err(Clone::clone)?;
            let (served, manager) = (call.state.served.load_full(), call.manager());
            let fields = FieldManager { resource: &scales, ..call.field_manager(&served, &manager) };
            let new = Box::pin(fields.apply(Some(old), &configuration.value, options.force)).await?;
            configuration.apply_field_validation(call, options.field_validation)?;
            return Ok(new);
        }
        let mut new = match self {
            Self::Replace(scale) => scale.clone(),
            Self::Patch(patch, options) => {
                let patch = patch.as_ref().map_err(Clone::clone)?;
                let new = as_scale(call, |call| patched(call, patch, *options, old))?;
                expect_name(call, &new)?;
                new
            }
            Self::Apply(..) => unreachable!("returned above"),
        };
        metadata::settle_namespace(call, &mut new)?;
        self.check_uid(call, &new, old)?;
        let mut old = old.clone();
        // Go omits a zero: no manager gets or loses the field.
        for scale in [&mut new, &mut old] {
            if let Some(Value::Object(spec)) = scale.get_mut("spec") {
                spec.retain(|field, value| field != "replicas" || *value != 0);
            }
        }
        let (served, manager) = (call.state.served.load_full(), call.manager());
        let fields = FieldManager { resource: &scales, ..call.field_manager(&served, &manager) };
        fields.track(Some(&old), &mut new).await;
        Ok(new)
    }
}

impl ScaleChange {
    /// Checks the uid of a scale, a precondition of the change. A patch of the scale of a custom resource has no such precondition.
    fn check_uid(&self, call: &Call<'_>, new: &Value, old: &Value) -> Result<(), ApiError> {
        let (wanted, found) = (meta::uid(new), meta::uid(old));
        match self {
            _ if wanted.is_empty() || wanted == found => Ok(()),
            Self::Replace(_) => Err(metadata::other_uid(call, wanted, found)),
            _ if call.resource.is_custom() => Ok(()),
            _ => {
                let scales = format!("{}/scale", call.resource.plural);
                let scales = GroupResource::new(&*call.resource.group, scales);
                Err(ApiError::uid_precondition(&scales, &call.route.name, wanted, found))
            }
        }
    }
}

fn patched(
    call: &mut Call<'_>,
    patch: &Patch,
    options: WriteOptions,
    scale: &Value,
) -> Result<Value, ApiError> {
    let mut new = patch::patched(patch, call.resource.schema.get(), scale)?;
    if let Some(why) = windlass_schema::decode_error(call.resource.schema.get(), SCALE, &new) {
        return Err(patch::not_an_object_of_the_kind(&patch.shown(&new), why));
    }
    let unknown = call.admit_fields(&mut new)?;
    patch::apply_field_validation(call, options, patch, &unknown, scale)?;
    Ok(new)
}

/// A change of an object by a change of the scale.
struct Scaling {
    paths: ScalePaths,
    change: ScaleChange,
}

impl Change for Scaling {
    async fn make(&mut self, call: &mut Call<'_>, old: &Value) -> Result<Value, ApiError> {
        let mut old_scale = scale_or_zero(call, old)?;
        let replicas_paths = replicas_paths(call);
        managed_fields::to_scale(old, &mut old_scale, &replicas_paths);
        let mut scale = Box::pin(self.change.make(call, &old_scale)).await?;
        Box::pin(write::admit::mutate(call, &mut scale, Some(&old_scale))).await?;
        let replicas = scale.pointer("/spec/replicas").and_then(Value::as_i64).unwrap_or(0);
        if replicas == NO_REPLICAS && call.resource.is_custom() {
            return Err(ApiError::bad_request(format!(
                "the spec replicas field {} cannot be empty",
                windlass_schema::go_quote(&self.paths.spec_replicas)
            )));
        }
        // The rule for custom resources is checked with the other rules.
        if replicas < 0 && !call.resource.is_custom() {
            let why = "must be greater than or equal to 0";
            let error = windlass_schema::FieldError::invalid("spec.replicas", replicas, why);
            let errors = std::slice::from_ref(&error);
            return Err(ApiError::invalid("autoscaling", SCALE, &call.route.name, errors));
        }
        let mut new = old.clone();
        let version = meta::resource_version(&scale);
        if !version.is_empty() {
            meta::set(&mut new, "resourceVersion", Some(version.into()));
        }
        set_at(&mut new, &self.paths.spec_replicas, replicas.into());
        managed_fields::to_parent(&scale, &mut new, call.resource.api_version(), &replicas_paths);
        Ok(new)
    }

    async fn mutate(&mut self, _: &mut Call<'_>, _: &mut Value, _: &Value) -> Result<(), ApiError> {
        // Webhooks have seen the scale.
        Ok(())
    }

    fn complete(&mut self, call: &Call<'_>, new: &mut Value) {
        let resource = &call.resource;
        if resource.is_custom() {
            // The replicas may be the first field of the `spec`, and the schema may not have replicas.
            windlass_schema::default(resource.schema.get(), new);
            windlass_schema::prune(resource.schema.get(), new);
        }
    }

    async fn validate(&mut self, call: &mut Call<'_>, new: &Value, old: &Value) -> Result<(), ApiError> {
        if !call.is_admitted() {
            return Ok(());
        }
        let (new, old) = (scale_or_zero(call, new)?, scale_or_zero(call, old)?);
        call.validate(&new, Some(&old)).await
    }
}

/// Changes the scale of an object, and writes the object's replicas.
async fn write_scale(
    call: &mut Call<'_>,
    options: WriteOptions,
    change: ScaleChange,
) -> Result<Response<Body>, ApiError> {
    let scaling = Scaling { paths: paths(call)?, change };
    let stored = write::update(call, options, scaling).await?;
    let object = call.resource.present_one(&stored).await?.value();
    let mut scale = scale_or_zero(call, &object)?;
    if scale["spec"]["replicas"] == NO_REPLICAS {
        scale["spec"] = json!({});
    }
    call.value(StatusCode::OK, &scale).await
}

/// Returns the path of the replicas in each version of the resource.
fn replicas_paths(call: &Call<'_>) -> ReplicasPaths {
    let served = call.state.served.load();
    let versions = served.group(&call.resource.group).into_iter().flat_map(|group| &group.versions);
    let of_version = versions.filter_map(|version| version.resources.get(&call.resource.plural));
    of_version
        .map(|resource| {
            let path = match &resource.custom {
                None => builtin_paths().spec_replicas,
                Some(custom) => {
                    custom.scale.as_ref().map(|paths| paths.spec_replicas.clone()).unwrap_or_default()
                }
            };
            (resource.api_version().to_owned(), FieldPath::of_fields(segments(&path)))
        })
        .collect()
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
    if call.resource.is_custom() && at(object, &paths.spec_replicas).is_none() {
        return Err(ApiError::internal(format!(
            "the spec replicas field {} does not exist",
            windlass_schema::go_quote(&paths.spec_replicas)
        )));
    }
    scale_or_zero(call, object)
}

/// Makes the `Scale` of an object. A custom resource without replicas has [`NO_REPLICAS`].
fn scale_or_zero(call: &Call<'_>, object: &Value) -> Result<Value, ApiError> {
    let paths = paths(call)?;
    let spec = match at(object, &paths.spec_replicas) {
        Some(replicas) => replicas.as_i64().unwrap_or(0),
        None if call.resource.is_custom() => NO_REPLICAS,
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
        "kind": SCALE,
        "apiVersion": "autoscaling/v1",
        "metadata": metadata,
        "spec": {},
        "status": status,
    });
    if spec != 0 {
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
