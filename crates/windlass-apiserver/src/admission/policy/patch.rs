//! The patches that expressions of mutating policies compute.

use std::io;

use serde_json::{Map, Value};
use windlass_cel::{Encoder, Library, Message, NameCheck, Numbers, Value as Computed};
use windlass_schema::fields::{Duplicates, atomic_paths, merge, validate_typed};
use windlass_schema::{Catalog, Schema, go_quote};

use crate::admission::{Attributes, failure, mutate};
use crate::resource::Resource;
use crate::wire::ApiError;
use crate::wire::patch::{JsonPatch, JsonPatchError, Limits, Mismatch};

/// The size of the largest object after a mutation, in bytes: that of the body of a request.
const MAX_OBJECT: usize = 3 << 20;

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
        let in_patch = |why: String| failed(format!("JSON Patch: {why}"));
        let patch = JsonPatch::read(Operations::read(computed)?, false).map_err(in_patch)?;
        let mut changed = match patch.apply(object.clone(), &Limits::default()) {
            Ok(changed) => changed,
            Err(JsonPatchError::DoesNotApply { why: Mismatch::Value, .. }) => return Ok(None),
            Err(error) => return Err(in_patch(failure::not_applied(&error, &Operations::read(computed)?))),
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
        check_names(&mut NameCheck::default(), configuration)?;
        let mut patch = configuration.to_json(Numbers::Exact).map_err(failed)?;
        for field in ["apiVersion", "kind"] {
            patch[field] = object[field].clone();
        }
        let mut changed =
            self.merge(object, &patch).map_err(|why| failed(format!("error applying patch: {why}")))?;
        if self.request.is_of_resource() && !self.shown.is_custom() {
            let kind = &self.shown.kind;
            self.shown.check_fields(&changed).map_err(|why| {
                let version = self.shown.api_version();
                failed(format!("unable to convert unstructured object to {version}, Kind={kind}: {why}"))
            })?;
        }
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
        mutate::settle(self.request, self.shown, object, changed).map_err(PatchError::Refused)?;
        // Each mutation can add to the object.
        serde_json::to_writer(Room(MAX_OBJECT), changed)
            .map_err(|_| PatchError::Refused(ApiError::storage_too_large()))
    }
}

/// The bytes that an object may still have.
struct Room(usize);

impl io::Write for Room {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 = self.0.checked_sub(bytes.len()).ok_or(io::ErrorKind::StorageFull)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The operations of a patch, which share their limits.
struct Operations {
    encoder: Encoder,
    names: NameCheck,
}

impl Operations {
    /// Returns the operations that an expression computed, as a JSON patch.
    fn read(computed: &Computed<'_>) -> Result<Value, PatchError> {
        let Computed::List(list) = computed else {
            return Err(failed("type mismatch: JSONPatchType.expression should evaluate to array"));
        };
        if list.len() > Limits::OPERATIONS {
            return Err(failed(format!(
                "the allowed maximum operations in a JSON patch is {}, got {}",
                Limits::OPERATIONS,
                list.len()
            )));
        }
        let mut shared = Self { encoder: Encoder::new(Numbers::Safe), names: NameCheck::default() };
        let mut operations = Vec::with_capacity(list.len());
        for element in list.iter() {
            match element.map_err(failed)? {
                Computed::Library(Library::Message(message)) => operations.push(shared.operation(&message)?),
                other => {
                    let found = other.type_name();
                    return Err(failed(format!(
                        "type mismatch: JSONPatchType.expression should evaluate to array of JSONPatch, got element of {found}"
                    )));
                }
            }
        }
        Ok(Value::Array(operations))
    }

    fn operation(&mut self, message: &Message<'_>) -> Result<Value, PatchError> {
        let mut operation = Map::new();
        for field in ["op", "path", "from"] {
            let text = match message.field(field) {
                Some(text) => self.encoder.value(text).map_err(failed)?,
                None => "".into(),
            };
            if field != "from" || text != "" {
                operation.insert(field.to_owned(), text);
            }
        }
        if let Some(value) = message.field("value") {
            if let Computed::Library(Library::Message(inner)) = value {
                check_names(&mut self.names, inner)?;
            }
            let json = self.encoder.value(value).map_err(|why| {
                failed(format!(
                    "JSONPath valueExpression evaluated to a type that could not marshal to JSON: {why}"
                ))
            })?;
            operation.insert("value".to_owned(), json);
        }
        Ok(Value::Object(operation))
    }
}

fn check_names(names: &mut NameCheck, message: &Message<'_>) -> Result<(), PatchError> {
    names.check(message).map_err(|why| failed(format!("type mismatch: {why}")))
}
