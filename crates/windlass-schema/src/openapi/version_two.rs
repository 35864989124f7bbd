//! OpenAPI v2: a document of all group-versions, made from the v3 documents.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::extension::ExtensionDocument;
use super::pieces::Pieces;

const V3_REFERENCE: &str = "#/components/schemas/";
pub(super) const V2_REFERENCE: &str = "#/definitions/";
pub(super) const PARAMETER_REFERENCE: &str = "#/parameters/";
/// Keywords that v2 does not know, or that kube-apiserver leaves out in v2.
const UNKNOWN: [&str; 6] = ["allOf", "anyOf", "default", "not", "nullable", "oneOf"];
/// Keywords about the values of a schema with a type.
const OF_TYPES: [&str; 4] = ["type", "items", "properties", "additionalProperties"];
const PRESERVES: &str = "x-kubernetes-preserve-unknown-fields";
pub(super) const KINDS: &str = "x-kubernetes-group-version-kind";

/// Writes the OpenAPI v2 document with the content of v3 documents, as far as v2 allows, and with the parts of extension servers, in JSON. `version` is the server's version, such
/// as `1.36`. The document comes in pieces: the document of thousands of kinds has tens of megabytes.
///
/// Schemas lose features that only v3 has, like the schemas of kube-apiserver: a value that may be null or
/// have unknown fields has any type, and `oneOf`, `anyOf`, `not` and defaults are left out.
///
/// ```
/// use windlass_schema::{Catalog, openapi_v2, openapi_v3};
///
/// let catalog = Catalog::builtin();
/// let apps = openapi_v3(&catalog, catalog.group_version("apps", "v1").unwrap(), &[]);
/// let document: serde_json::Value = serde_json::from_slice(&openapi_v2([apps], [], "1.36").concat()).unwrap();
/// assert_eq!(document["swagger"], "2.0");
/// assert!(document["definitions"]["io.k8s.api.apps.v1.Deployment"].is_object());
/// ```
pub fn openapi_v2(
    documents: impl IntoIterator<Item = Value>,
    extensions: impl IntoIterator<Item = ExtensionDocument>,
    version: &str,
) -> Vec<Vec<u8>> {
    let Parts { paths, definitions, parameters } = Parts::new(documents, extensions, encoded);
    let mut out = Pieces::default();
    out.add(b"{\"definitions\":{");
    add_members(&mut out, definitions);
    out.add(format!("}},\"info\":{}", info(version)).as_bytes());
    if !parameters.is_empty() {
        out.add(b",\"parameters\":{");
        add_members(&mut out, parameters);
        out.add(b"}");
    }
    out.add(b",\"paths\":{");
    add_members(&mut out, paths);
    let (security, token) = (security(), security_definitions());
    let end = format!("}},\"security\":{security},\"securityDefinitions\":{token},\"swagger\":\"2.0\"}}");
    out.add(end.as_bytes());
    out.finish()
}

/// Appends the members of an object. Each member is dropped once the document has the member.
fn add_members(out: &mut Pieces, members: BTreeMap<String, Vec<u8>>) {
    for (index, (name, value)) in members.into_iter().enumerate() {
        let comma = if index == 0 { "" } else { "," };
        out.add(format!("{comma}{}:", Value::from(name)).as_bytes());
        out.add(&value);
    }
}

pub(super) fn encoded(value: &Value) -> Vec<u8> {
    value.to_string().into_bytes()
}

pub(super) fn info(version: &str) -> Value {
    json!({"title": "Kubernetes", "version": version})
}

pub(super) fn security() -> Value {
    json!([{"BearerToken": []}])
}

pub(super) fn security_definitions() -> Value {
    json!({"BearerToken": {
        "description": "Bearer Token authentication",
        "type": "apiKey",
        "name": "authorization",
        "in": "header",
    }})
}

/// The parts of a document that depend on the kinds, encoded: as values, the parts for thousands of kinds take hundreds of megabytes.
#[derive(Default)]
pub(super) struct Parts {
    /// The operations by path, encoded by the caller.
    pub(super) paths: BTreeMap<String, Vec<u8>>,
    /// The definitions by name, in JSON.
    pub(super) definitions: BTreeMap<String, Vec<u8>>,
    /// The shared parameters of extension servers by name, in JSON.
    pub(super) parameters: BTreeMap<String, Vec<u8>>,
}

impl Parts {
    /// Converts v3 documents, and adds the parts of extension servers. `encode` encodes the operations of a path.
    pub(super) fn new(
        documents: impl IntoIterator<Item = Value>,
        extensions: impl IntoIterator<Item = ExtensionDocument>,
        encode: impl Fn(&Value) -> Vec<u8>,
    ) -> Self {
        let mut parts = Self::default();
        for mut document in documents {
            for (path, item) in take_members(&mut document["paths"]) {
                parts.paths.insert(path, encode(&path_item(item)));
            }
            for (name, schema) in take_members(&mut document["components"]["schemas"]) {
                define(&mut parts.definitions, name, schema);
            }
        }
        extensions.into_iter().for_each(|extension| parts.add(extension, &encode));
        parts
    }
}

fn take_members(value: &mut Value) -> Map<String, Value> {
    match value.take() {
        Value::Object(members) => members,
        _ => Map::new(),
    }
}

/// Adds a definition. A definition in several documents names the kinds of all documents.
fn define(definitions: &mut BTreeMap<String, Vec<u8>>, name: String, mut schema: Value) {
    let Some(known) = definitions.get_mut(&name) else {
        definitions.insert(name, encoded(&definition(schema)));
        return;
    };
    let Some(Value::Array(kinds)) = schema.get_mut(KINDS).map(Value::take) else { return };
    let Ok(mut merged) = serde_json::from_slice::<Value>(known) else { return };
    if let Some(all) = merged.get_mut(KINDS).and_then(Value::as_array_mut) {
        let new: Vec<Value> = kinds.into_iter().filter(|kind| !all.contains(kind)).collect();
        if !new.is_empty() {
            all.extend(new);
            *known = encoded(&merged);
        }
    }
}

/// Converts the schema of a kind or of another named type.
fn definition(mut value: Value) -> Value {
    let is_kind = value.get(KINDS).is_some();
    if is_kind && value.get(PRESERVES) == Some(&Value::Bool(true)) {
        return json!({"type": "object", KINDS: value[KINDS].take()});
    }
    schema(value)
}

fn schema(value: Value) -> Value {
    let Value::Object(members) = value else { return value };
    let is_set = |name: &str| members.get(name) == Some(&Value::Bool(true));
    let is_any = is_set("nullable") || is_set(PRESERVES);
    let reference = reference_of(&members);
    let is_text_or_number = members.get("oneOf").is_some_and(one_is_text);
    let mut out = Map::new();
    for (name, value) in members {
        let value = match name.as_str() {
            _ if UNKNOWN.contains(&name.as_str()) => continue,
            _ if is_any && OF_TYPES.contains(&name.as_str()) => continue,
            "$ref" => continue,
            "properties" => properties(value),
            "items" | "additionalProperties" => schema(value),
            _ => value,
        };
        out.insert(name, value);
    }
    if let Some(reference) = reference {
        out.insert("$ref".to_owned(), reference.into());
    }
    if is_text_or_number {
        out.insert("type".to_owned(), "string".into());
    }
    out.into()
}

fn properties(value: Value) -> Value {
    let Value::Object(properties) = value else { return value };
    properties.into_iter().map(|(name, value)| (name, schema(value))).collect::<Map<_, _>>().into()
}

/// Returns the target of a reference, or of the only reference in `allOf`, in the form of v2.
fn reference_of(members: &Map<String, Value>) -> Option<String> {
    let wrapped = || members.get("allOf").and_then(|all| all.get(0)).and_then(|first| first.get("$ref"));
    let target = members.get("$ref").or_else(wrapped)?.as_str()?;
    Some(
        target
            .strip_prefix(V3_REFERENCE)
            .map_or_else(|| target.to_owned(), |name| format!("{V2_REFERENCE}{name}")),
    )
}

/// Returns whether a schema is a text: the schemas of quantities, and of integers that may be texts.
fn one_is_text(schemas: &Value) -> bool {
    schemas.as_array().is_some_and(|schemas| schemas.iter().any(|schema| schema["type"] == "string"))
}

fn path_item(value: Value) -> Value {
    let Value::Object(members) = value else { return value };
    let convert = |(name, value): (String, Value)| {
        let value = if name == "parameters" { parameters(value) } else { operation(value) };
        (name, value)
    };
    members.into_iter().map(convert).collect::<Map<_, _>>().into()
}

fn operation(value: Value) -> Value {
    let Value::Object(mut members) = value else { return value };
    let body = members.remove("requestBody");
    let content = body.as_ref().and_then(|body| body["content"].as_object());
    let consumes = content.map_or_else(|| json!(["*/*"]), |content| content.keys().cloned().collect());
    let mut all = match members.remove("parameters").map(parameters) {
        Some(Value::Array(parameters)) => parameters,
        _ => Vec::new(),
    };
    if let Some(described) = content.and_then(|content| content.values().next()) {
        let mut parameter =
            json!({"name": "body", "in": "body", "schema": schema(described["schema"].clone())});
        if body.as_ref().is_some_and(|body| body["required"] == true) {
            parameter["required"] = true.into();
        }
        all.insert(0, parameter);
    }
    if !all.is_empty() {
        members.insert("parameters".to_owned(), all.into());
    }
    let produces = members.get("responses").map(media_types).unwrap_or_default();
    members.insert("consumes".to_owned(), consumes);
    members.insert("produces".to_owned(), produces.into());
    members.insert("schemes".to_owned(), json!(["https"]));
    if let Some(responses) = members.get_mut("responses") {
        *responses = self::responses(responses.take());
    }
    members.into()
}

/// Moves the schema of each parameter into the parameter.
fn parameters(value: Value) -> Value {
    let Value::Array(parameters) = value else { return value };
    let flat = |mut parameter: Value| {
        let schema = take_members(&mut parameter["schema"]);
        if let Value::Object(members) = &mut parameter {
            members.remove("schema");
            members.extend(schema);
        }
        parameter
    };
    parameters.into_iter().map(flat).collect()
}

fn media_types(responses: &Value) -> Vec<Value> {
    let contents = responses.as_object().into_iter().flat_map(|responses| responses.values());
    let first = contents.into_iter().find_map(|response| response["content"].as_object());
    first.into_iter().flat_map(|content| content.keys().cloned().map(Value::from)).collect()
}

fn responses(value: Value) -> Value {
    let Value::Object(responses) = value else { return value };
    let convert = |(code, mut response): (String, Value)| {
        let content = take_members(&mut response["content"]);
        if let Value::Object(members) = &mut response {
            members.remove("content");
            if let Some((_, mut described)) = content.into_iter().next() {
                members.insert("schema".to_owned(), schema(described["schema"].take()));
            }
        }
        (code, response)
    };
    responses.into_iter().map(convert).collect::<Map<_, _>>().into()
}
