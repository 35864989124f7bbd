//! The patches that expressions of mutating policies compute.

use serde_json::{Map, Value};
use windlass_cel::{Library, Message, Numbers, Value as Computed};
use windlass_schema::fields::{Duplicates, atomic_paths, merge, validate_typed};
use windlass_schema::{Catalog, Schema, go_quote};

use crate::admission::{Attributes, failure, mutate};
use crate::resource::Resource;
use crate::wire::ApiError;
use crate::wire::patch::{JsonPatch, JsonPatchError, Limits, Mismatch};

/// The error of a patch.
pub(super) enum PatchError {
    /// The failure policy decides.
    Failed(String),
    /// The server refuses the request.
    Refused(ApiError),
}

fn failed(why: impl std::fmt::Display) -> PatchError {
    PatchError::Failed(why.to_string())
}

/// The kind of the object that is patched.
pub(super) struct Target<'a> {
    request: &'a Attributes<'a>,
    /// The resource in the version of the object.
    shown: &'a Resource,
    /// The schema of an object that has another kind than the resource.
    of_subresource: Option<Schema>,
}

impl<'a> Target<'a> {
    /// Returns the kind of the object of a request.
    ///
    /// # Errors
    /// The kind has no schema, such as the options of a connection.
    pub(super) fn of(request: &'a Attributes<'a>, shown: &'a Resource) -> Result<Self, PatchError> {
        if request.is_of_resource() {
            return Ok(Self { request, shown, of_subresource: None });
        }
        let kind = request.group_version_kind();
        let schema = Catalog::builtin().schema(kind.group, kind.version, kind.name).ok_or_else(|| {
            let version = format!("{}/{}, Kind={}", kind.group, kind.version, kind.name);
            PatchError::Refused(ApiError::unavailable(format!(
                "Resource kind {version} not found. There can be a delay between when CustomResourceDefinitions are created and when they are available."
            )))
        })?;
        Ok(Self { request, shown, of_subresource: Some(schema) })
    }

    /// Applies a list of operations on JSON. Returns `None` if a `test` says no.
    pub(super) fn apply_operations(
        &self,
        object: &Value,
        computed: &Computed<'_>,
    ) -> Result<Option<Value>, PatchError> {
        let operations = Value::Array(operations(computed)?);
        let in_patch = |why: String| failed(format!("JSON Patch: {why}"));
        let patch = JsonPatch::read(operations.clone(), false).map_err(in_patch)?;
        let mut changed = match patch.apply(object.clone(), &Limits::default()) {
            Ok(changed) => changed,
            Err(JsonPatchError::DoesNotApply { why: Mismatch::Value, .. }) => return Ok(None),
            Err(error) => return Err(in_patch(failure::not_applied(&error, &operations))),
        };
        let internal = |why: String| PatchError::Refused(ApiError::internal(why));
        if !changed.is_object() {
            return Err(internal("the patched object is not an object".to_owned()));
        }
        if self.request.is_of_resource() && !self.shown.is_custom() {
            self.shown.check_fields(&changed).map_err(internal)?;
            let unknown = windlass_schema::prune(self.shown.schema.get(), &mut changed.clone());
            if !unknown.is_empty() {
                let unknown: Vec<String> =
                    unknown.iter().map(|path| format!("unknown field {}", go_quote(path))).collect();
                return Err(internal(format!("strict decoding error: {}", unknown.join(", "))));
            }
        }
        self.settle(object, &mut changed)?;
        Ok(Some(changed))
    }

    /// Merges an apply configuration into the object.
    pub(super) fn apply_configuration(
        &self,
        object: &Value,
        computed: &Computed<'_>,
    ) -> Result<Value, PatchError> {
        let Computed::Library(Library::Message(configuration)) = computed else {
            let found = computed.type_name();
            let why = format!("unsupported return type from ApplyConfiguration expression: {found}");
            return Err(PatchError::Failed(why));
        };
        check_names(configuration)?;
        let mut patch = configuration.to_json(Numbers::Exact).map_err(failed)?;
        for field in ["apiVersion", "kind"] {
            patch[field] = object[field].clone();
        }
        let mut changed =
            self.merge(object, &patch).map_err(|why| failed(format!("error applying patch: {why}")))?;
        self.settle(object, &mut changed)?;
        Ok(changed)
    }

    fn merge(&self, object: &Value, patch: &Value) -> Result<Value, String> {
        let schema = self.of_subresource.as_ref().unwrap_or_else(|| self.shown.schema.get()).root();
        validate_typed(schema, patch, Duplicates::Forbid)
            .map_err(|errors| format!("failed to convert patch object to typed object: {errors}"))?;
        let atomic = atomic_paths(schema, patch);
        if !atomic.is_empty() {
            let paths = atomic.join(", ");
            return Err(format!(
                "invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: {paths}"
            ));
        }
        validate_typed(schema, object, Duplicates::Allow)
            .map_err(|errors| format!("failed to convert original object to typed object: {errors}"))?;
        merge(schema, object, patch).map_err(|errors| format!("failed to merge patch: {errors}"))
    }

    fn settle(&self, object: &Value, changed: &mut Value) -> Result<(), PatchError> {
        mutate::settle(self.request, self.shown, object, changed).map_err(PatchError::Refused)
    }
}

/// Returns the operations of a patch.
fn operations(computed: &Computed<'_>) -> Result<Vec<Value>, PatchError> {
    let Computed::List(list) = computed else {
        return Err(failed("type mismatch: JSONPatchType.expression should evaluate to array"));
    };
    let mut operations = Vec::with_capacity(list.len());
    for element in list.iter() {
        match element.map_err(failed)? {
            Computed::Library(Library::Message(message)) => operations.push(operation(&message)?),
            other => {
                let found = other.type_name();
                return Err(failed(format!(
                    "type mismatch: JSONPatchType.expression should evaluate to array of JSONPatch, got element of {found}"
                )));
            }
        }
    }
    Ok(operations)
}

fn operation(message: &Message<'_>) -> Result<Value, PatchError> {
    let text = |field: &str| message.field(field).and_then(|value| value.as_str()).unwrap_or_default();
    let mut operation = Map::new();
    for field in ["op", "path", "from"] {
        if field != "from" || !text(field).is_empty() {
            operation.insert(field.to_owned(), text(field).into());
        }
    }
    if let Some(value) = message.field("value") {
        if let Computed::Library(Library::Message(inner)) = value {
            check_names(inner)?;
        }
        let json = value.to_json(Numbers::Safe).map_err(|why| {
            failed(format!(
                "JSONPath valueExpression evaluated to a type that could not marshal to JSON: {why}"
            ))
        })?;
        operation.insert("value".to_owned(), json);
    }
    Ok(Value::Object(operation))
}

fn check_names(message: &Message<'_>) -> Result<(), PatchError> {
    message.check_names().map_err(|why| failed(format!("type mismatch: {why}")))
}
