//! The patches that expressions of mutating policies compute.

use serde_json::{Map, Value};
use windlass_cel::{Encoder, Library, Message, NameCheck, Numbers, Value as Computed};
use windlass_schema::fields::{Duplicates, GoValue, atomic_paths, merge, validate_typed};
use windlass_schema::{Catalog, Schema, go_quote};

use crate::admission::{Attributes, failure, mutate};
use crate::object_size::fits;
use crate::resource::Resource;
use crate::wire::ApiError;
use crate::wire::patch::{JsonPatch, JsonPatchError, Limits, Mismatch};
use windlass_kinds::kind_names::SCALE;

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
    /// The schema of an object that has another kind than the resource. `None` also for kinds without a description in
    /// OpenAPI, such as the options of a connection.
    of_subresource: Option<Schema>,
}

impl<'a> Target<'a> {
    /// Returns the kind of the object of a request.
    pub(super) fn of(request: &'a Attributes<'a>, shown: &'a Resource) -> Self {
        let kind = request.group_version_kind();
        // The OpenAPI document of the group has no scales.
        let is_described = !request.is_of_resource() && kind.name != SCALE;
        let schema = || Catalog::builtin().schema(kind.group, kind.version, kind.name);
        Self { request, shown, of_subresource: is_described.then(schema).flatten() }
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
        let text = |object: &Value, field: &str| object[field].as_str().unwrap_or_default().to_owned();
        let is_other = |field: &str| ![String::new(), text(object, field)].contains(&text(&changed, field));
        if !self.shown.is_custom() && ["apiVersion", "kind"].into_iter().any(is_other) {
            let (version, kind) = (text(&changed, "apiVersion"), text(&changed, "kind"));
            return Err(internal(format!(
                "no kind {} is registered for version {} in scheme \"pkg/runtime/scheme.go:111\"",
                go_quote(&kind),
                go_quote(&version)
            )));
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
        let mut encoder = Encoder::new(Numbers::Exact).with(go_value);
        let mut patch = encoder.message(configuration).map_err(failed)?;
        for field in ["apiVersion", "kind"] {
            patch[field] = object[field].clone();
        }
        let mut changed =
            self.merge(object, &patch).map_err(|why| failed(format!("error applying patch: {why}")))?;
        if self.request.is_of_resource() && !self.shown.is_custom() {
            let kind = &self.shown.kind;
            self.shown.check_fields(&changed).map_err(|why| {
                let (version, why) = (self.shown.api_version(), not_converted(&why));
                failed(format!("unable to convert unstructured object to {version}, Kind={kind}: {why}"))
            })?;
        }
        self.settle(object, &mut changed)?;
        Ok(changed)
    }

    fn merge(&self, object: &Value, patch: &Value) -> Result<Value, String> {
        let own = self.request.is_of_resource().then(|| self.shown.schema.get());
        let Some(schema) = own.or(self.of_subresource.as_ref()) else {
            let kind = self.request.group_version_kind();
            let (group, version, name) = (kind.group, kind.version, kind.name);
            return Err(format!(
                "failed to convert patch object to typed object: no corresponding type for {group}/{version}, Kind={name}"
            ));
        };
        let schema = schema.root();
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
        if fits(changed, MAX_OBJECT) {
            Ok(())
        } else {
            Err(PatchError::Refused(ApiError::storage_too_large()))
        }
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

/// Returns the values that kube-apiserver does not turn into JSON before the types of an apply configuration are checked.
fn go_value(value: &Computed<'_>) -> Option<Value> {
    let (printed, syntax, kind) = match value {
        Computed::Null => ("NULL_VALUE".to_owned(), "0".to_owned(), "structpb.NullValue"),
        Computed::Uint(number) => (number.to_string(), format!("{number:#x}"), "uint64"),
        Computed::Duration(nanos) => (value.to_string(), nanos.to_string(), "time.Duration"),
        Computed::Timestamp(time) => {
            let printed = time.to_string().replace('T', " ").replace('Z', " +0000 UTC");
            (printed.clone(), printed, "time.Time")
        }
        Computed::Bytes(bytes) => {
            let list =
                |each: fn(&u8) -> String, joint: &str| bytes.iter().map(each).collect::<Vec<_>>().join(joint);
            let printed = format!("[{}]", list(ToString::to_string, " "));
            (printed, format!("[]uint8{{{}}}", list(|byte| format!("{byte:#x}"), ", ")), "[]uint8")
        }
        _ => return None,
    };
    Some(GoValue { printed, syntax, kind: kind.to_owned() }.into_json())
}

/// Returns the words of Go's converter for an error of the decoder.
fn not_converted(why: &str) -> String {
    let number = why.strip_prefix("json: cannot unmarshal number ").and_then(|rest| rest.split_once(' '));
    match (number, why.rsplit_once(" of type ")) {
        (Some((number, _)), Some((_, kind))) if number.contains('.') => {
            format!("cannot convert float64 to {kind}")
        }
        _ => why.to_owned(),
    }
}
