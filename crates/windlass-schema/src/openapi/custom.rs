//! The components of custom kinds: schemas, completed with `apiVersion`, `kind` and `metadata`.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::metadata::{API_VERSION, KIND, METADATA, OBJECT_META};
use super::{CustomKind, custom_definition};

const LIST_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta";

/// Returns the definitions of a kind and of the list kind.
pub(super) fn definitions(
    wanted: &mut BTreeSet<String>,
    group: &str,
    version: &str,
    kind: &CustomKind<'_>,
) -> (Value, Value) {
    wanted.extend([OBJECT_META.to_owned(), LIST_META.to_owned()]);
    let mut object = match kind.schema {
        Some(schema) => complete(schema),
        None => json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}),
    };
    if let Some(members) = object.as_object_mut() {
        with_metadata(members);
    }
    let mut list = json!({
        "type": "object",
        "description": format!("{} is a list of {}", kind.list_kind, kind.kind),
        "required": ["items"],
        "properties": {
            "apiVersion": {"type": "string", "description": API_VERSION},
            "kind": {"type": "string", "description": KIND},
            "metadata": {"allOf": [{"$ref": format!("#/components/schemas/{LIST_META}")}]},
            "items": {
                "type": "array",
                "description": format!("The {} of the list.", kind.plural),
                "items": {"$ref": format!("#/components/schemas/{}", custom_definition(group, version, kind.kind))},
            },
        },
    });
    for (value, name) in [(&mut object, kind.kind), (&mut list, kind.list_kind)] {
        value["x-kubernetes-group-version-kind"] =
            json!([{"group": group, "version": version, "kind": name}]);
        if !kind.selectable_fields.is_empty() {
            let fields: Value =
                kind.selectable_fields.iter().map(|field| json!({"fieldPath": field})).collect();
            value["x-kubernetes-selectable-fields"] = fields;
        }
    }
    (object, list)
}

/// Adds `apiVersion`, `kind` and `metadata`.
fn with_metadata(members: &mut Map<String, Value>) {
    let properties = members.entry("properties").or_insert_with(|| json!({}));
    properties["apiVersion"] = json!({"type": "string", "description": API_VERSION});
    properties["kind"] = json!({"type": "string", "description": KIND});
    properties["metadata"] = json!({
        "description": METADATA,
        "allOf": [{"$ref": format!("#/components/schemas/{OBJECT_META}")}],
    });
}

/// Adds missing types of an integer or string.
fn name_types(members: &mut Map<String, Value>) {
    let types = json!([{"type": "integer"}, {"type": "string"}]);
    let is_first = members.get("allOf").is_some_and(|all| all[0].get("anyOf") == Some(&types));
    if is_first || members.get("anyOf") == Some(&types) {
        return;
    }
    if !members.contains_key("anyOf") {
        members.insert("anyOf".to_owned(), types);
        return;
    }
    let all = members.entry("allOf").or_insert_with(|| json!([]));
    if let Some(all) = all.as_array_mut() {
        all.insert(0, json!({"anyOf": types}));
    }
}

/// Returns the schema with all embedded resources completed.
fn complete(schema: &Value) -> Value {
    let Value::Object(members) = schema else { return schema.clone() };
    let mut out = Map::new();
    for (name, value) in members {
        let value = match name.as_str() {
            "properties" => {
                let properties = value.as_object().into_iter().flatten();
                let properties: Map<_, _> =
                    properties.map(|(name, schema)| (name.clone(), complete(schema))).collect();
                properties.into()
            }
            "items" | "additionalProperties" => complete(value),
            _ => value.clone(),
        };
        out.insert(name.clone(), value);
    }
    if members.get("x-kubernetes-int-or-string") == Some(&Value::Bool(true)) {
        name_types(&mut out);
    }
    if members.get("x-kubernetes-embedded-resource") == Some(&Value::Bool(true)) {
        with_metadata(&mut out);
        let required = out.entry("required").or_insert_with(|| json!([]));
        for name in ["kind", "apiVersion"] {
            if let Some(names) = required.as_array_mut()
                && !names.iter().any(|known| known == name)
            {
                names.push(name.into());
            }
        }
    }
    out.into()
}
