//! Integers of Rust in the schema of a CustomResourceDefinition.

use serde_json::Value;

/// The keywords for a single schema, for a list of schemas, and for a map of schemas.
const ONE: [&str; 3] = ["items", "additionalProperties", "not"];
const LISTS: [&str; 3] = ["allOf", "anyOf", "oneOf"];
const MAPS: [&str; 2] = ["properties", "patternProperties"];

/// The integer formats that schemars writes and an API server does not know.
const UNKNOWN: [&str; 10] =
    ["int", "int8", "int16", "int128", "uint", "uint8", "uint16", "uint32", "uint64", "uint128"];

/// Gives the integers of a CustomResourceDefinition the limits of the Rust types, in a form that an API
/// server enforces.
///
/// An API server knows only the formats `int32` and `int64`. schemars writes formats such as `uint32` for
/// other types; an API server warns of such a format, does not enforce the format, and would store a number
/// that the operator cannot decode. Such a format is replaced by `minimum` and `maximum`. Narrower limits of
/// the type's author stay.
///
/// A definition without a schema stays unchanged.
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
    for_each_schema_of(crd, &mut limit_integer);
}

/// Calls the function for each schema of a CustomResourceDefinition.
pub(crate) fn for_each_schema_of(
    crd: &mut Value,
    visit: &mut impl FnMut(&mut serde_json::Map<String, Value>),
) {
    let versions = crd.pointer_mut("/spec/versions").and_then(Value::as_array_mut);
    for version in versions.into_iter().flatten() {
        if let Some(schema) = version.pointer_mut("/schema/openAPIV3Schema") {
            for_each_schema(schema, visit);
        }
    }
}

/// Calls the function for a schema and for each schema inside.
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
    // schemars already writes the limits of narrower types, and a minimum of 0 for unsigned types. An integer
    // with more than 64 bits has no limit that an API server could hold.
    let maximum = (format == "uint32").then_some(u32::MAX);
    schema.remove("format");
    if let Some(maximum) = maximum {
        schema.entry("maximum").or_insert_with(|| maximum.into());
    }
}
