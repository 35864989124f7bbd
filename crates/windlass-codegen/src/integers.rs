//! Integers of Rust in the schema of a CustomResourceDefinition.

use serde_json::Value;

/// The keywords with a schema, with a list of them, and with a map of them.
const ONE: [&str; 3] = ["items", "additionalProperties", "not"];
const LISTS: [&str; 3] = ["allOf", "anyOf", "oneOf"];
const MAPS: [&str; 2] = ["properties", "patternProperties"];

/// The integer formats that schemars writes and an API server does not know.
const UNKNOWN: [&str; 10] =
    ["int", "int8", "int16", "int128", "uint", "uint8", "uint16", "uint32", "uint64", "uint128"];

/// Gives the integers of a CustomResourceDefinition the limits of their Rust types, in a form that an API server enforces.
///
/// An API server knows the formats `int32` and `int64`. It warns of those that schemars writes for other types, such as `uint32`,
/// and does not enforce them: it would store a number that the operator then cannot decode. These formats are replaced by
/// `minimum` and `maximum`; narrower limits of the type's author stay.
///
/// A definition without a schema stays as it is.
///
/// ```
/// let mut crd = serde_json::json!({"spec": {"versions": [{"schema": {"openAPIV3Schema": {
///     "properties": {"replicas": {"type": "integer", "format": "uint32", "minimum": 0}}
/// }}}]}});
/// windlass_codegen::limit_integers(&mut crd);
/// let replicas = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["replicas"];
/// assert_eq!(replicas, &serde_json::json!({"type": "integer", "minimum": 0, "maximum": u32::MAX}));
/// ```
pub fn limit_integers(crd: &mut Value) {
    let versions = crd.pointer_mut("/spec/versions").and_then(Value::as_array_mut);
    for version in versions.into_iter().flatten() {
        if let Some(schema) = version.pointer_mut("/schema/openAPIV3Schema") {
            for_each_schema(schema, &mut limit_integer);
        }
    }
}

/// Calls the function for a schema and for each that it contains.
pub(crate) fn for_each_schema(
    schema: &mut Value,
    visit: &mut impl FnMut(&mut serde_json::Map<String, Value>),
) {
    let Some(members) = schema.as_object_mut() else { return };
    visit(members);
    for keyword in ONE {
        if let Some(inner) = members.get_mut(keyword) {
            for_each_schema(inner, visit);
        }
    }
    for keyword in LISTS {
        let inner = members.get_mut(keyword).and_then(Value::as_array_mut);
        inner.into_iter().flatten().for_each(|schema| for_each_schema(schema, visit));
    }
    for keyword in MAPS {
        let inner = members.get_mut(keyword).and_then(Value::as_object_mut);
        inner
            .into_iter()
            .flat_map(serde_json::Map::values_mut)
            .for_each(|schema| for_each_schema(schema, visit));
    }
}

fn limit_integer(schema: &mut serde_json::Map<String, Value>) {
    let format = schema.get("format").and_then(Value::as_str);
    let Some(format) = format.filter(|format| UNKNOWN.contains(format)) else { return };
    // schemars writes the limits of narrower types, and that no unsigned number is below 0. What is wider than 64 bits has
    // no limit that an API server could hold.
    let maximum = (format == "uint32").then_some(u32::MAX);
    schema.remove("format");
    if let Some(maximum) = maximum {
        schema.entry("maximum").or_insert_with(|| maximum.into());
    }
}
