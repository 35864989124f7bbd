//! Checks that an object can be decoded to the Go type, with the error messages of Go's JSON decoder.

pub(crate) mod scalar;

use serde_json::Value;

use crate::go::json_type;
use crate::graph::{Edge, NodeRef, Schema, Target, Type};

/// Returns the first error that Go reports for an object of a built-in kind: fields of a wrong type, numbers
/// out of range, malformed times, quantities and base64. `kind` is the kind of the object.
///
/// ```
/// let schema = windlass_schema::Catalog::builtin().schema("apps", "v1", "Deployment").unwrap();
/// let object = serde_json::json!({"spec": {"replicas": "three"}});
/// assert_eq!(
///     windlass_schema::decode_error(&schema, "Deployment", &object).unwrap(),
///     "json: cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32",
/// );
/// ```
pub fn decode_error(schema: &Schema, kind: &str, object: &Value) -> Option<String> {
    let Value::Object(_) = object else {
        return Some(format!("json: cannot unmarshal {} into Go value of type v1.{kind}", json_type(object)));
    };
    fields(schema.root(), object, FieldPath { owner: kind, step: None }).map(|wrong| wrong.text)
}

/// Returns the first error that Go reports for the `metadata` of an object.
///
/// ```
/// assert_eq!(
///     windlass_schema::metadata_error(&serde_json::json!({"labels": "x"})).unwrap(),
///     "json: cannot unmarshal string into Go struct field ObjectMeta.labels of type map[string]string",
/// );
/// ```
pub fn metadata_error(metadata: &Value) -> Option<String> {
    decode_error(&crate::catalog::object_meta(), "ObjectMeta", metadata)
}

/// An error. Go stops at errors of types with custom decoding, and reports other errors only without such an
/// error.
struct Wrong {
    text: String,
    ends: bool,
}

impl Wrong {
    fn saved(text: String) -> Self {
        Self { text, ends: false }
    }

    fn last(text: String) -> Self {
        Self { text, ends: true }
    }
}

/// Returns the error that Go reports among the errors of some values, in order.
fn reported(errors: impl Iterator<Item = Option<Wrong>>) -> Option<Wrong> {
    let mut first = None;
    for wrong in errors.flatten() {
        if wrong.ends {
            return Some(wrong);
        }
        first.get_or_insert(wrong);
    }
    first
}

/// A field in the words of Go's decoder: the enclosing struct, and the path from the root.
#[derive(Clone, Copy)]
struct FieldPath<'p> {
    owner: &'p str,
    /// The last step of the path, or `None` at the root.
    step: Option<&'p Step<'p>>,
}

/// A step from a struct to a field.
struct Step<'p> {
    parent: Option<&'p Step<'p>>,
    /// The embedded struct that contains the field, if JSON inlines it.
    inlined: Option<&'p str>,
    name: &'p str,
}

impl FieldPath<'_> {
    fn unmarshal_error(self, value: &str, kind: &str) -> String {
        let mut names = Vec::new();
        let mut step = self.step;
        while let Some(Step { parent, inlined, name }) = step {
            names.push(*name);
            names.extend(*inlined);
            step = *parent;
        }
        names.reverse();
        let path = names.join(".");
        format!("json: cannot unmarshal {value} into Go struct field {}.{path} of type {kind}", self.owner)
    }
}

/// Checks the fields of a struct.
fn fields(node: NodeRef<'_>, object: &Value, at: FieldPath<'_>) -> Option<Wrong> {
    reported(object.as_object()?.iter().map(|(name, value)| {
        let edge = node.node.properties.get(name.as_str())?;
        let inlined = edge.go.as_deref().and_then(|go| go.inlined.as_deref());
        let step = Step { parent: at.step, inlined, name };
        check(node.follow(edge), edge, value, FieldPath { owner: at.owner, step: Some(&step) })
    }))
}

fn check(node: NodeRef<'_>, edge: &Edge, value: &Value, at: FieldPath<'_>) -> Option<Wrong> {
    if value.is_null() {
        return None;
    }
    if let Some(decode) = custom_decoder(node) {
        return decode(node, value, at).map(Wrong::last);
    }
    match (node.kind(), value) {
        (Type::Object, Value::Object(members)) => {
            let Some(inner) = node.additional() else {
                let owner = node.definition().map_or(at.owner, short);
                return fields(node, value, FieldPath { owner, ..at });
            };
            reported(members.values().map(|value| check(inner, inner.edge?, value, at)))
        }
        (Type::Array, Value::Array(items)) => {
            let inner = node.items()?;
            let go = edge.go.as_deref().and_then(|go| go.kind.as_deref());
            reported(items.iter().map(|item| element(inner, item, go, at)))
        }
        (Type::String, Value::Array(items)) if node.format() == Some("byte") => {
            reported(items.iter().map(|item| byte(item, at)))
        }
        (Type::String, Value::String(text)) if node.format() == Some("byte") => {
            scalar::base64(text).map(Wrong::saved)
        }
        (Type::String, Value::String(_)) | (Type::Boolean, Value::Bool(_)) | (Type::Any, _) => None,
        (Type::Number, Value::Number(_)) => None,
        (Type::Integer, Value::Number(number)) => {
            let fits = match node.format() {
                Some("int32") => number.as_i64().is_some_and(|number| i32::try_from(number).is_ok()),
                _ => number.is_i64(),
            };
            let kind = type_name(node, edge);
            (!fits).then(|| {
                let number = format!("number {}", crate::go::go_literal(number));
                Wrong::saved(at.unmarshal_error(&number, &kind))
            })
        }
        _ => Some(Wrong::saved(at.unmarshal_error(json_type(value), &type_name(node, edge)))),
    }
}

/// Checks a byte of a list of bytes. A list of bytes may replace the base64 text.
fn byte(value: &Value, at: FieldPath<'_>) -> Option<Wrong> {
    let found = match value {
        Value::Null => return None,
        Value::Number(number) if number.as_u64().is_some_and(|number| u8::try_from(number).is_ok()) => {
            return None;
        }
        Value::Number(number) => format!("number {}", crate::go::go_literal(number)),
        other => json_type(other).to_owned(),
    };
    Some(Wrong::saved(at.unmarshal_error(&found, "uint8")))
}

/// Checks an element of a list. An error about a scalar prints the named type `go`.
fn element(node: NodeRef<'_>, value: &Value, go: Option<&str>, at: FieldPath<'_>) -> Option<Wrong> {
    let edge = node.edge?;
    let wrong = check(node, edge, value, at)?;
    let scalar = matches!(node.kind(), Type::String | Type::Integer | Type::Boolean | Type::Number);
    match go.filter(|_| scalar && !value.is_number()) {
        Some(go) => Some(Wrong::saved(at.unmarshal_error(json_type(value), go))),
        None => match go.filter(|_| node.kind() == Type::String) {
            Some(go) => Some(Wrong::saved(at.unmarshal_error(json_type(value), go))),
            None => Some(wrong),
        },
    }
}

type Decoder = fn(NodeRef<'_>, &Value, FieldPath<'_>) -> Option<String>;

/// Returns the check of a type that implements `json.Unmarshaler`.
fn custom_decoder(node: NodeRef<'_>) -> Option<Decoder> {
    Some(match node.format()? {
        "quantity" => |_, value, _| scalar::quantity(value),
        "raw" | "json" | "fields-v1" => |_, _, _| None,
        "int-or-string" => int_or_string,
        "date-time" => |_, value, at| time(value, false, at),
        "micro-time" => |_, value, at| time(value, true, at),
        "json-or" => json_schema_or,
        _ => return None,
    })
}

fn int_or_string(_: NodeRef<'_>, value: &Value, at: FieldPath<'_>) -> Option<String> {
    match value {
        Value::String(_) => None,
        Value::Number(number) if number.as_i64().is_some_and(|number| i32::try_from(number).is_ok()) => None,
        Value::Number(number) => {
            Some(at.unmarshal_error(&format!("number {}", crate::go::go_literal(number)), "int32"))
        }
        _ => Some(at.unmarshal_error(json_type(value), "int32")),
    }
}

fn time(value: &Value, micros: bool, at: FieldPath<'_>) -> Option<String> {
    match value {
        Value::String(text) => scalar::time(text, micros),
        _ => Some(at.unmarshal_error(json_type(value), "string")),
    }
}

/// Checks `JSONSchemaPropsOrBool` and similar unions.
fn json_schema_or(node: NodeRef<'_>, value: &Value, at: FieldPath<'_>) -> Option<String> {
    const SCHEMA: &str = "JSONSchemaProps";
    let name = node.definition().map_or("", short);
    let at = FieldPath { owner: SCHEMA, ..at };
    let wrong_item = |item: &Value, kind: &str| {
        Some(Wrong::saved(at.unmarshal_error(json_type(item), kind))).filter(|_| !item.is_null())
    };
    match (name, value) {
        (_, Value::Object(_)) => fields(node, value, at).map(|wrong| wrong.text),
        ("JSONSchemaPropsOrBool", Value::Bool(_)) => None,
        ("JSONSchemaPropsOrBool", _) => Some("boolean or JSON schema expected".to_owned()),
        ("JSONSchemaPropsOrArray", Value::Array(items)) => {
            let of_item = |item| match item {
                &Value::Object(_) => fields(node, item, at),
                _ => wrong_item(item, "v1.JSONSchemaProps"),
            };
            reported(items.iter().map(of_item)).map(|wrong| wrong.text)
        }
        ("JSONSchemaPropsOrStringArray", Value::Array(items)) => {
            let of_item = |item: &Value| if item.is_string() { None } else { wrong_item(item, "string") };
            reported(items.iter().map(of_item)).map(|wrong| wrong.text)
        }
        // Go ignores any other value.
        _ => None,
    }
}

/// Returns the error of Go's decoder about a union with a JSON schema. Such a union is decoded separately.
pub(crate) fn union_error(node: NodeRef<'_>, value: &Value) -> Option<String> {
    json_schema_or(node, value, FieldPath { owner: "", step: None })
}

/// Returns the Go type of a field.
pub(crate) fn type_name(node: NodeRef<'_>, edge: &Edge) -> String {
    let named = edge.go.as_deref().and_then(|go| go.kind.as_deref());
    match (node.kind(), named) {
        (Type::Array, named) => match (node.items(), named) {
            (Some(inner), Some(named)) if is_scalar(inner) => format!("[]{named}"),
            (Some(inner), _) => {
                format!("[]{}", inner.edge.map_or(String::new(), |edge| type_name(inner, edge)))
            }
            (None, _) => "[]interface {}".to_owned(),
        },
        (_, Some(named)) => named.to_owned(),
        (Type::Object, None) => match (&edge.target, node.additional()) {
            (_, Some(inner)) => {
                let inner = inner.edge.map_or(String::new(), |edge| type_name(inner, edge));
                format!("map[string]{inner}")
            }
            (Target::Named(_), None) => node.definition().map_or(String::new(), qualified),
            _ => "map[string]interface {}".to_owned(),
        },
        (Type::Any, None) => node.definition().map_or(String::new(), qualified),
        (Type::String, None) if node.format() == Some("byte") => "[]uint8".to_owned(),
        (Type::String, None) => "string".to_owned(),
        (Type::Integer, None) => node.format().unwrap_or("int").to_owned(),
        (Type::Number, None) => "float64".to_owned(),
        (Type::Boolean, None) => "bool".to_owned(),
    }
}

fn is_scalar(node: NodeRef<'_>) -> bool {
    matches!(node.kind(), Type::String | Type::Integer | Type::Number | Type::Boolean)
}

/// Returns `ObjectMeta` for `io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta`.
fn short(definition: &str) -> &str {
    definition.rsplit('.').next().unwrap_or(definition)
}

/// Returns `v1.ObjectMeta` for `io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta`.
fn qualified(definition: &str) -> String {
    let mut parts = definition.rsplit('.');
    let (name, package) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    format!("{package}.{name}")
}

#[cfg(test)]
mod tests;
