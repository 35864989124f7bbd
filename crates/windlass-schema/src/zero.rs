//! The zero values of Go types.

use serde_json::{Map, Value};

use crate::graph::{EmptyPolicy, NodeRef, Schema, Type};

/// Structs of built-in kinds nest less deep.
const MAX_DEPTH: usize = 32;

/// Returns an object of the schema without any field set, in Go's encoding: `{"spec": {"containers": null},
/// …}` for a pod. The object has no defaults. For a custom resource, the object is `{}`.
pub fn zero(schema: &Schema) -> Value {
    zero_struct(schema.root(), 0)
}

fn zero_struct(schema: NodeRef<'_>, depth: usize) -> Value {
    let mut members = Map::new();
    if depth < MAX_DEPTH {
        for (name, property) in schema.properties() {
            if let Some(value) = zero_field(property, depth) {
                members.insert(name.to_owned(), value);
            }
        }
    }
    Value::Object(members)
}

/// Returns the value of an unset field; `None` if Go omits the field.
fn zero_field(schema: NodeRef<'_>, depth: usize) -> Option<Value> {
    let is_struct = schema.is_struct();
    match schema.empty_policy() {
        EmptyPolicy::Keep | EmptyPolicy::OmitZero => None,
        EmptyPolicy::Omit if !is_struct => None,
        EmptyPolicy::Omit | EmptyPolicy::Always => Some(match schema.format() {
            Some("date-time" | "micro-time" | "raw") => Value::Null,
            Some("quantity") => "0".into(),
            Some("int-or-string") => 0.into(),
            _ if is_struct => zero_struct(schema, depth + 1),
            _ => match schema.kind() {
                Type::String => "".into(),
                Type::Integer | Type::Number => 0.into(),
                Type::Boolean => false.into(),
                Type::Any | Type::Array | Type::Object => Value::Null,
            },
        }),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::Catalog;

    fn zero_of(group: &str, version: &str, kind: &str) -> Value {
        zero(&Catalog::builtin().schema(group, version, kind).unwrap())
    }

    #[test]
    fn structs_are_there_and_pointers_are_not() {
        let pod = zero_of("", "v1", "Pod");
        assert_eq!(pod["spec"], json!({"containers": null}));
        let deployment = zero_of("apps", "v1", "Deployment");
        assert_eq!(
            deployment["spec"],
            json!({"strategy": {}, "template": {"metadata": {}, "spec": {"containers": null}}})
        );
        assert_eq!(zero_of("", "v1", "ConfigMap")["data"], Value::Null);
    }

    #[test]
    fn a_custom_resource_has_no_fields() {
        let schema = Schema::compile(&json!({
            "type": "object",
            "properties": {"spec": {"type": "object", "properties": {"a": {"type": "string", "default": "x"}}}},
        }));
        assert_eq!(zero(&schema), json!({}));
    }
}
