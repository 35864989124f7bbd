//! Paths, sets and filters in requests and replies.

use serde_json::{Value, json};
use windlass_schema::fields::{FieldFilter, FieldPath, FieldPattern, FieldSet, PathElement, PatternElement};

/// The reply to a request, or an error message.
pub(crate) type Reply = Result<Value, String>;

/// Reads an element: the type (`f`, `k`, `v`, `i`) and the content.
pub(crate) fn element_of(wire: &Value) -> Result<PathElement, String> {
    let content = &wire[1];
    Ok(match wire[0].as_str().unwrap_or_default() {
        "f" => PathElement::field(content.as_str().ok_or("no name")?),
        "k" => {
            let fields = content.as_array().ok_or("no key")?.iter();
            PathElement::key(fields.map(|field| (field[0].as_str().unwrap_or_default(), field[1].clone())))
        }
        "v" => PathElement::value(content.clone()),
        "i" => PathElement::Index(content.as_i64().ok_or("no index")?),
        other => return Err(format!("unknown element {other:?}")),
    })
}

pub(crate) fn element_to(element: &PathElement) -> Value {
    match element {
        PathElement::Field(name) => json!(["f", **name]),
        PathElement::Key(fields) => {
            let fields = fields.iter().map(|(name, value)| json!([name, value]));
            json!(["k", fields.collect::<Value>()])
        }
        PathElement::Value(value) => json!(["v", **value]),
        PathElement::Index(index) => json!(["i", index]),
    }
}

pub(crate) fn path_of(wire: &Value) -> Result<FieldPath, String> {
    wire.as_array().ok_or("no path")?.iter().map(element_of).collect()
}

/// Reads a set: a list of paths.
pub(crate) fn fields_of(wire: &Value) -> Result<FieldSet, String> {
    wire.as_array().ok_or("no fields")?.iter().map(path_of).collect()
}

pub(crate) fn fields_to(fields: &FieldSet) -> Value {
    fields.iter().map(|path| path.iter().map(element_to).collect::<Value>()).collect()
}

/// Reads a filter: `exclude` with a set, or `include` with a pattern.
pub(crate) fn filter_of(wire: &Value) -> Result<FieldFilter, String> {
    match wire.get("exclude") {
        Some(excluded) => fields_of(excluded).map(FieldFilter::Exclude),
        None => pattern_of(&wire["include"]).map(FieldFilter::Include),
    }
}

/// Reads a pattern: `true`, or pairs of an element (`null` for any) and the pattern of the rest. The pairs are merged
/// one by one.
fn pattern_of(wire: &Value) -> Result<FieldPattern, String> {
    let Value::Array(members) = wire else { return Ok(FieldPattern::All) };
    let mut pattern = FieldPattern::Members(Vec::new());
    for member in members {
        let element = match &member[0] {
            Value::Null => PatternElement::Any,
            element => PatternElement::Is(element_of(element)?),
        };
        pattern = pattern.or(FieldPattern::Members(vec![(element, pattern_of(&member[1])?)]));
    }
    Ok(pattern)
}
