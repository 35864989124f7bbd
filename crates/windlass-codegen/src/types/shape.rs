//! The values that a schema allows, as a Rust type.

use serde_json::Value;

/// The level of nesting below which a value is kept as JSON.
const DEEPEST: usize = 40;

/// The pattern that controller-gen writes for quantities.
const QUANTITY: &str = r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$";

/// The values that a schema allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape<'s> {
    /// A type that needs no definition.
    Plain(&'static str),
    /// An object with known fields.
    Struct(&'s Value),
    /// A string with some values.
    Enum(&'s Value),
    List(&'s Value),
    Map(&'s Value),
    /// Anything.
    Json,
}

impl<'s> Shape<'s> {
    /// Reads a schema at a depth.
    pub(super) fn of(schema: &'s Value, depth: usize) -> Self {
        if schema["x-kubernetes-int-or-string"] == true {
            return Self::Plain(if schema["pattern"] == QUANTITY { "Quantity" } else { "IntOrString" });
        }
        if depth > DEEPEST || schema["x-kubernetes-embedded-resource"] == true {
            return Self::Json;
        }
        let has_properties = schema["properties"].as_object().is_some_and(|fields| !fields.is_empty());
        match schema["type"].as_str() {
            Some("string") => Self::of_string(schema),
            Some("integer") if schema["format"] == "int32" => Self::Plain("i32"),
            Some("integer") => Self::Plain("i64"),
            Some("number") => Self::Plain("f64"),
            Some("boolean") => Self::Plain("bool"),
            Some("array") if schema["items"].is_object() => Self::List(&schema["items"]),
            Some("array") => Self::Plain("Vec<Value>"),
            Some("object") | None if has_properties => {
                if is_condition(schema) {
                    Self::Plain("Condition")
                } else {
                    Self::Struct(schema)
                }
            }
            Some("object") if schema["additionalProperties"].is_object() => {
                Self::Map(&schema["additionalProperties"])
            }
            Some("object") => Self::Plain("BTreeMap<String, Value>"),
            _ => Self::Json,
        }
    }

    fn of_string(schema: &'s Value) -> Self {
        let values = schema["enum"].as_array();
        if values.is_some_and(|values| values.iter().all(Value::is_string) && !values.is_empty()) {
            return Self::Enum(schema);
        }
        match schema["format"].as_str() {
            Some("date-time") => Self::Plain("Time"),
            _ => Self::Plain("String"),
        }
    }
}

/// Returns whether the schema is that of `metav1.Condition`.
fn is_condition(schema: &Value) -> bool {
    let known = ["lastTransitionTime", "message", "observedGeneration", "reason", "status", "type"];
    let properties = schema["properties"].as_object();
    let has_the_fields = properties.is_some_and(|fields| fields.keys().map(String::as_str).eq(sorted(known)));
    let required: Vec<&str> =
        schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    has_the_fields
        && ["lastTransitionTime", "message", "reason", "status", "type"]
            .iter()
            .all(|name| required.contains(name))
}

/// Sorts names like the keys of a JSON object.
fn sorted(names: [&'static str; 6]) -> impl Iterator<Item = &'static str> {
    let mut names = names;
    names.sort_unstable();
    names.into_iter()
}
