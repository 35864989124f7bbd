//! Compiles the `openAPIV3Schema` of a CustomResourceDefinition to a [`Schema`].

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use windlass_text::Pattern;

use crate::default::whole_numbers;
use crate::graph::{
    Additional, Edge, Enumeration, ListType, Node, PatchMeta, RareRules, Rules, Schema, Target, Type,
};

/// The maximum nesting of schemas; anything deeper is not checked.
pub(crate) const MAX_DEPTH: usize = 120;

impl Schema {
    /// Compiles the `openAPIV3Schema` of a custom resource.
    ///
    /// Compilation never fails: keywords that are unknown or malformed place no constraint on the object. To find out
    /// whether a server accepts the schema, call [`check_structural`](crate::check_structural).
    ///
    /// ```
    /// use windlass_schema::Schema;
    ///
    /// let schema = Schema::compile(&serde_json::json!({
    ///     "type": "object",
    ///     "properties": {"spec": {"type": "object", "properties": {"replicas": {"type": "integer", "default": 1}}}},
    /// }));
    /// let mut object = serde_json::json!({"spec": {"bogus": true}});
    /// windlass_schema::default(&schema, &mut object);
    /// assert_eq!(windlass_schema::prune(&schema, &mut object), ["spec.bogus"]);
    /// assert_eq!(object, serde_json::json!({"spec": {"replicas": 1}}));
    /// ```
    pub fn compile(open_api_v3_schema: &Value) -> Self {
        let mut root = node(open_api_v3_schema, 0, &Names::new());
        root.embedded = true;
        Self::single(root)
    }

    /// Returns a schema without constraints, which keeps every field.
    pub fn unconstrained() -> Self {
        let mut root = Node::new(Type::Object);
        root.preserve_unknown = true;
        root.embedded = true;
        Self::single(root)
    }
}

/// The indexes of named definitions, to which `$ref` refers.
pub(crate) type Names<'n> = BTreeMap<&'n str, u32>;

pub(crate) fn node(schema: &Value, depth: usize, names: &Names<'_>) -> Node {
    let empty = Map::new();
    let schema = schema.as_object().unwrap_or(&empty);
    let flag = |name: &str| schema.get(name).and_then(Value::as_bool).unwrap_or(false);
    let mut out = Node::new(kind(schema));
    out.nullable = flag("nullable");
    out.preserve_unknown = flag("x-kubernetes-preserve-unknown-fields");
    out.embedded = flag("x-kubernetes-embedded-resource");
    out.int_or_string = flag("x-kubernetes-int-or-string");
    out.map_atomic = schema.get("x-kubernetes-map-type").is_some_and(|value| value == "atomic");
    out.list_type = match schema.get("x-kubernetes-list-type").and_then(Value::as_str) {
        Some("atomic") => Some(ListType::Atomic),
        Some("set") => Some(ListType::Set),
        Some("map") => Some(ListType::Map),
        _ => None,
    };
    out.map_keys = strings(schema, "x-kubernetes-list-map-keys");
    if depth >= MAX_DEPTH {
        out.preserve_unknown = true;
        return out;
    }
    if let Some(properties) = schema.get("properties").and_then(Value::as_object) {
        out.properties = properties
            .iter()
            .map(|(name, value)| (name.as_str().into(), edge(value, depth, names)))
            .collect();
    }
    out.additional = match schema.get("additionalProperties") {
        Some(Value::Bool(true)) => Some(Additional::Any),
        Some(Value::Bool(false)) => Some(Additional::Forbidden),
        Some(value @ Value::Object(_)) => Some(Additional::Schema(edge(value, depth, names))),
        _ => None,
    };
    out.items = schema.get("items").filter(|items| items.is_object()).map(|items| edge(items, depth, names));
    out.rules = rules(schema, out.kind, depth, names);
    out
}

fn edge(schema: &Value, depth: usize, names: &Names<'_>) -> Edge {
    let mut edge = match referenced(schema).and_then(|name| names.get(name)) {
        Some(index) => {
            let map_type = schema.get("x-kubernetes-map-type");
            let mut edge = Edge::new(Target::Named(*index));
            edge.granular = map_type.is_some_and(|map_type| map_type == "granular");
            edge.atomic = map_type.is_some_and(|map_type| map_type == "atomic");
            edge
        }
        None => Edge::new(Target::Inline(Box::new(node(schema, depth + 1, names)))),
    };
    if !names.is_empty() {
        edge.patch = patch_meta(schema);
    }
    edge.default = schema.get("default").filter(|value| !value.is_null()).cloned();
    if let Some(default) = &mut edge.default {
        whole_numbers(default);
    }
    edge
}

/// Returns how a strategic merge patch treats a field. Only built-in kinds have such patches.
fn patch_meta(schema: &Value) -> Option<Box<PatchMeta>> {
    let strategy = schema.get("x-kubernetes-patch-strategy").and_then(Value::as_str).unwrap_or_default();
    let has = |name: &str| strategy.split(',').any(|part| part == name);
    let merge_key = schema.get("x-kubernetes-patch-merge-key").and_then(Value::as_str).map(Into::into);
    let meta =
        PatchMeta { merge: has("merge"), retain_keys: has("retainKeys"), replace: has("replace"), merge_key };
    (meta != PatchMeta::default()).then(|| Box::new(meta))
}

/// Returns the name of the definition that a schema refers to, itself or in an `allOf` of one branch.
fn referenced(schema: &Value) -> Option<&str> {
    let reference = schema.get("$ref").or_else(|| match schema.get("allOf")?.as_array()?.as_slice() {
        [only] => only.get("$ref"),
        _ => None,
    });
    reference?.as_str()?.rsplit('/').next()
}

fn kind(schema: &Map<String, Value>) -> Type {
    match schema.get("type").and_then(Value::as_str) {
        Some("object") => Type::Object,
        Some("array") => Type::Array,
        Some("string") => Type::String,
        Some("integer") => Type::Integer,
        Some("number") => Type::Number,
        Some("boolean") => Type::Boolean,
        _ => Type::Any,
    }
}

fn strings(schema: &Map<String, Value>, name: &str) -> Vec<Box<str>> {
    let list = schema.get(name).and_then(Value::as_array);
    list.into_iter().flatten().filter_map(Value::as_str).map(Into::into).collect()
}

fn rules(schema: &Map<String, Value>, kind: Type, depth: usize, names: &Names<'_>) -> Rules {
    let number = |name: &str| schema.get(name).and_then(Value::as_number).cloned();
    let count = |name: &str| schema.get(name).and_then(Value::as_i64);
    let flag = |name: &str| schema.get(name).and_then(Value::as_bool).unwrap_or(false);
    let list = |name: &str| schema.get(name).and_then(Value::as_array).into_iter().flatten();
    let nodes = |name: &str| list(name).map(|schema| node(schema, depth + 1, names)).collect();
    let more = RareRules {
        maximum: number("maximum"),
        exclusive_maximum: flag("exclusiveMaximum"),
        minimum: number("minimum"),
        exclusive_minimum: flag("exclusiveMinimum"),
        multiple_of: number("multipleOf"),
        max_length: count("maxLength"),
        min_length: count("minLength"),
        pattern: schema
            .get("pattern")
            .and_then(Value::as_str)
            .filter(|source| !source.is_empty())
            .map(Pattern::new),
        max_items: count("maxItems"),
        min_items: count("minItems"),
        unique_items: flag("uniqueItems"),
        max_properties: count("maxProperties"),
        min_properties: count("minProperties"),
        enumeration: Enumeration::new(list("enum").cloned().collect()),
        all_of: nodes("allOf"),
        any_of: nodes("anyOf"),
        one_of: nodes("oneOf"),
        not: schema.get("not").filter(|value| value.is_object()).map(|schema| node(schema, depth + 1, names)),
    };
    Rules {
        format: schema.get("format").and_then(Value::as_str).and_then(|name| format(name, kind)),
        formatted: schema.get("format").and_then(Value::as_str).is_some_and(|name| !name.is_empty()),
        required: strings(schema, "required"),
        more: (!more.is_empty()).then(|| Box::new(more)),
    }
}

/// Returns the format if the server checks it for this type.
fn format(name: &str, kind: Type) -> Option<Box<str>> {
    let kind = match kind {
        Type::Integer => "integer",
        Type::Number => "number",
        Type::String | Type::Any => "string",
        Type::Object | Type::Array | Type::Boolean => return None,
    };
    crate::validate::knows_format(kind, name).then(|| name.into())
}

impl RareRules {
    fn is_empty(&self) -> bool {
        let bounds = self.maximum.is_none() && self.minimum.is_none() && self.multiple_of.is_none();
        let lengths = self.max_length.is_none() && self.min_length.is_none() && self.pattern.is_none();
        let items = self.max_items.is_none() && self.min_items.is_none() && !self.unique_items;
        let members = self.max_properties.is_none() && self.min_properties.is_none();
        let junctors =
            self.all_of.is_empty() && self.any_of.is_empty() && self.one_of.is_empty() && self.not.is_none();
        bounds && lengths && items && members && junctors && self.enumeration.is_empty()
    }
}
