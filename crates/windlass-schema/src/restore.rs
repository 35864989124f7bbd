//! Reads an object as apimachinery's `FromUnstructured` does: the way of strategic merge patches.

use serde_json::{Number, Value};

use crate::graph::{Edge, NodeRef, Schema, Type};
use crate::typecheck::{scalar, type_name, union_error};

/// Makes the fields of an object of a built-in kind fit the Go types: integers that are too large wrap, and
/// `2.0` is an integer.
///
/// # Errors
///
/// The first field that does not fit, in the words of apimachinery.
///
/// ```
/// let schema = windlass_schema::Catalog::builtin().schema("apps", "v1", "Deployment").unwrap();
/// let mut object = serde_json::json!({"spec": {"replicas": "three"}});
/// assert_eq!(windlass_schema::restore(&schema, &mut object).unwrap_err(), "unrecognized type: int32");
/// ```
pub fn restore(schema: &Schema, object: &mut Value) -> Result<(), String> {
    for field in ["kind", "apiVersion"] {
        match object.get(field) {
            None | Some(Value::Null | Value::String(_)) => {}
            Some(Value::Number(number)) if !number.is_f64() => {
                return Err("cannot convert int64 to string".to_owned());
            }
            Some(_) => return Err("unrecognized type: string".to_owned()),
        }
    }
    fields(schema.root(), object)
}

/// Restores the fields of a struct.
fn fields(node: NodeRef<'_>, object: &mut Value) -> Result<(), String> {
    let found = reflected(object);
    let Value::Object(members) = object else { return Err(format!("cannot restore struct from: {found}")) };
    for (name, value) in members {
        if let Some(edge) = node.node.properties.get(name.as_str()) {
            let go = edge.go.as_deref().and_then(|go| go.kind.as_deref());
            one(node.follow(edge), edge, go, value)?;
        }
    }
    Ok(())
}

/// Restores a value; `go` is the name of a named type.
fn one(node: NodeRef<'_>, edge: &Edge, go: Option<&str>, value: &mut Value) -> Result<(), String> {
    if value.is_null() {
        return Ok(());
    }
    match node.format() {
        Some("quantity") => return scalar::quantity(value).map_or(Ok(()), Err),
        Some("raw" | "json" | "fields-v1") => return Ok(()),
        Some("json-or") => return union_error(node, value).map_or(Ok(()), Err),
        Some("int-or-string") => return int_or_string(value),
        Some(format @ ("date-time" | "micro-time")) => {
            let Value::String(text) = value else {
                let found = crate::go::json_type(value);
                return Err(format!("json: cannot unmarshal {found} into Go value of type string"));
            };
            return scalar::time(text, format == "micro-time").map_or(Ok(()), Err);
        }
        _ => {}
    }
    let found = reflected(value);
    match (node.kind(), node.format()) {
        (Type::Any, _) => Ok(()),
        (Type::Object, _) => match node.additional() {
            None => fields(node, value),
            Some(inner) => {
                let Value::Object(members) = value else {
                    return Err(format!("cannot restore map from {found}"));
                };
                let Some(edge) = inner.edge else { return Ok(()) };
                members.values_mut().try_for_each(|value| one(inner, edge, go, value))
            }
        },
        (Type::String, Some("byte")) => match value {
            Value::String(text) => {
                scalar::base64(text).map_or(Ok(()), |why| Err(format!("error decoding from json: {why}")))
            }
            Value::Array(items) => items.iter().try_for_each(|item| match item {
                Value::Null => Ok(()),
                Value::Number(number) if !number.is_f64() => Ok(()),
                Value::Number(_) => Err("cannot convert float64 to uint8".to_owned()),
                _ => Err("unrecognized type: uint8".to_owned()),
            }),
            _ => Err(format!("cannot restore slice from {found}")),
        },
        (Type::Array, _) => {
            let Value::Array(items) = value else { return Err(format!("cannot restore slice from {found}")) };
            let Some((inner, edge)) = node.items().and_then(|inner| Some((inner, inner.edge?))) else {
                return Ok(());
            };
            items.iter_mut().try_for_each(|item| one(inner, edge, go, item))
        }
        (kind, _) => {
            let shown = || go.map_or_else(|| type_name(node, edge), str::to_owned);
            basic(kind, node.format(), value, found, shown)
        }
    }
}

/// Restores a string, a number or a truth value. `shown` names the type.
fn basic(
    kind: Type,
    format: Option<&str>,
    value: &mut Value,
    found: &str,
    shown: impl Fn() -> String,
) -> Result<(), String> {
    let reflected_kind = match kind {
        Type::String => "string",
        Type::Boolean => "bool",
        Type::Number => "float64",
        _ => format.unwrap_or("int64"),
    };
    match (kind, &*value) {
        (Type::String, Value::String(_))
        | (Type::Boolean, Value::Bool(_))
        | (Type::Number, Value::Number(_)) => Ok(()),
        (Type::Integer, Value::Number(number)) => {
            let fraction = || number.as_f64().filter(|float| float.fract() == 0.0);
            let whole = number.as_i64().or_else(|| fraction().map(go_integer));
            let Some(whole) = whole else { return Err(format!("cannot convert {found} to {}", shown())) };
            #[expect(clippy::cast_possible_truncation, reason = "integers that are too large wrap")]
            let whole = if format == Some("int32") { i64::from(whole as i32) } else { whole };
            *value = Value::Number(Number::from(whole));
            Ok(())
        }
        // Go can convert an integer to a string; JSON cannot.
        (Type::String, Value::Number(number)) if !number.is_f64() => {
            Err(format!("cannot convert {found} to {}", shown()))
        }
        _ => Err(format!("unrecognized type: {reflected_kind}")),
    }
}

fn int_or_string(value: &Value) -> Result<(), String> {
    let found = match value {
        Value::String(_) => return Ok(()),
        Value::Number(number) if number.as_i64().is_some_and(|number| i32::try_from(number).is_ok()) => {
            return Ok(());
        }
        Value::Number(number) => format!("number {}", crate::go::go_number(number)),
        _ => crate::go::json_type(value).to_owned(),
    };
    Err(format!("json: cannot unmarshal {found} into Go value of type int32"))
}

/// Returns the kind of a value to Go's reflection.
fn reflected(value: &Value) -> &'static str {
    match value {
        Value::Null => "invalid",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "slice",
        Value::Object(_) => "map",
    }
}

/// Converts a number like Go on amd64: a number that is too large becomes the smallest integer.
fn go_integer(float: f64) -> i64 {
    #[expect(clippy::cast_possible_truncation, reason = "the range is checked")]
    let whole = float as i64;
    if whole == i64::MAX { i64::MIN } else { whole }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::Catalog;

    /// The errors of kube-apiserver 1.36.
    #[test]
    fn errors_are_those_of_apimachinery() {
        let schema = Catalog::builtin().schema("", "v1", "ConfigMap").unwrap();
        for (mut object, why) in [
            (json!({"metadata": "x"}), "cannot restore struct from: string"),
            (json!({"metadata": ["x"]}), "cannot restore struct from: slice"),
            (json!({"data": "x"}), "cannot restore map from string"),
            (json!({"data": {"x": 5}}), "cannot convert int64 to string"),
            (json!({"data": {"x": true}}), "unrecognized type: string"),
            (
                json!({"binaryData": {"x": "?"}}),
                "error decoding from json: illegal base64 data at input byte 0",
            ),
            (json!({"binaryData": {"x": 5}}), "cannot restore slice from int64"),
            (json!({"immutable": "x"}), "unrecognized type: bool"),
            (json!({"metadata": {"generation": 1.5}}), "cannot convert float64 to int64"),
            (json!({"metadata": {"finalizers": {"a": "b"}}}), "cannot restore slice from map"),
            (json!({"metadata": {"finalizers": [1]}}), "cannot convert int64 to string"),
            (json!({"kind": ["a"]}), "unrecognized type: string"),
            (
                json!({"metadata": {"deletionTimestamp": 5}}),
                "json: cannot unmarshal number into Go value of type string",
            ),
        ] {
            assert_eq!(restore(&schema, &mut object).unwrap_err(), why, "{object}");
        }
    }

    #[test]
    fn integers_wrap() {
        let schema = Catalog::builtin().schema("apps", "v1", "Deployment").unwrap();
        let mut object = json!({"spec": {"replicas": 4_294_967_297_u64, "minReadySeconds": 2.0}});
        restore(&schema, &mut object).unwrap();
        assert_eq!(object, json!({"spec": {"replicas": 1, "minReadySeconds": 2}}));
    }
}
