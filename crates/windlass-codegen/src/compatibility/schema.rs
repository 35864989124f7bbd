//! Schemas: values that the newer schema refuses or drops, and the older schema accepted.

use serde_json::Value;

use super::{Found, items, text};
use crate::schema::default_without_nulls;

/// Compares the schemas of a field.
pub(super) fn compare(before: &Value, after: &Value, path: &str, found: &mut Found<'_>) {
    if before.is_null() || after.is_null() {
        return;
    }
    let shown = if path.is_empty() { "." } else { path };
    type_changed(before, after, shown, found);
    bounds(before, after, shown, found);
    fixed_keywords(before, after, shown, found);
    enumeration(before, after, shown, found);
    flags(before, after, shown, found);
    rules(before, after, shown, found);
    lists(before, after, shown, found);
    alternatives(before, after, shown, found);
    required(before, after, path, found);
    members(before, after, path, found);
}

fn type_changed(before: &Value, after: &Value, path: &str, found: &mut Found<'_>) {
    let (old, new) = (&before["type"], &after["type"]);
    let is_wider = old == "integer" && new == "number" || is_set(after, "x-kubernetes-int-or-string");
    let takes_any = new.is_null() && is_set(after, PRESERVE);
    if old != new && !old.is_null() && !is_wider && !takes_any {
        found.add(path, format!("the type was {} and is {}", word(old), word(new)));
    }
}

const PRESERVE: &str = "x-kubernetes-preserve-unknown-fields";

fn is_set(schema: &Value, keyword: &str) -> bool {
    schema[keyword] == true
}

fn word(value: &Value) -> String {
    match value {
        Value::Null => "none".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Keywords with a number: true if a lower number refuses more.
const BOUNDS: [(&str, bool); 8] = [
    ("maximum", true),
    ("maxLength", true),
    ("maxItems", true),
    ("maxProperties", true),
    ("minimum", false),
    ("minLength", false),
    ("minItems", false),
    ("minProperties", false),
];

fn bounds(before: &Value, after: &Value, path: &str, found: &mut Found<'_>) {
    for (keyword, lower_is_tighter) in BOUNDS {
        let (old, new) = (before[keyword].as_f64(), after[keyword].as_f64());
        let is_tighter = match (old, new) {
            (_, None) => false,
            // Lengths and numbers of items are never negative.
            (None, Some(new)) => lower_is_tighter || keyword == "minimum" || new > 0.0,
            (Some(old), Some(new)) if lower_is_tighter => new < old,
            (Some(old), Some(new)) => new > old,
        };
        if is_tighter {
            changed(keyword, before, after, path, found);
        }
    }
    for (keyword, bound) in [("exclusiveMaximum", "maximum"), ("exclusiveMinimum", "minimum")] {
        if is_set(after, keyword) && !is_set(before, keyword) && before[bound] == after[bound] {
            changed(keyword, before, after, path, found);
        }
    }
    let (old, new) = (before["multipleOf"].as_f64(), after["multipleOf"].as_f64());
    let is_multiple = |old: f64, new: f64| new != 0.0 && (old / new).fract() == 0.0;
    if let Some(new) = new
        && old.is_none_or(|old| !is_multiple(old, new))
    {
        changed("multipleOf", before, after, path, found);
    }
}

fn changed(keyword: &str, before: &Value, after: &Value, path: &str, found: &mut Found<'_>) {
    let (old, new) = (&before[keyword], &after[keyword]);
    if old.is_null() {
        found.add(path, format!("{keyword} {} is new", word(new)));
    } else {
        found.add(path, format!("{keyword} was {} and is {}", word(old), word(new)));
    }
}

/// Compares keywords that may refuse more with any other value.
fn fixed_keywords(before: &Value, after: &Value, path: &str, found: &mut Found<'_>) {
    for keyword in ["pattern", "format", "x-kubernetes-map-type"] {
        if !after[keyword].is_null() && before[keyword] != after[keyword] {
            changed(keyword, before, after, path, found);
        }
    }
    // Objects that were written without the field change when the default changes. Earlier definitions have nulls for absent fields.
    if !before["default"].is_null() && default_without_nulls(before) != default_without_nulls(after) {
        changed("default", before, after, path, found);
    }
}

fn enumeration(before: &Value, after: &Value, path: &str, found: &mut Found<'_>) {
    let Some(allowed) = after["enum"].as_array() else { return };
    match before["enum"].as_array() {
        None => changed("enum", before, after, path, found),
        Some(old) => {
            // A server refuses null even if null is one of the values.
            for value in old.iter().filter(|value| !value.is_null() && !allowed.contains(value)) {
                found.add(path, format!("the value {} is not allowed any more", word(value)));
            }
        }
    }
}

fn flags(before: &Value, after: &Value, path: &str, found: &mut Found<'_>) {
    for (keyword, lost) in [
        ("nullable", "null is not allowed any more"),
        (PRESERVE, "unknown fields are dropped"),
        ("x-kubernetes-int-or-string", "integers and strings are not both allowed any more"),
    ] {
        // A server refuses null for a schema with `enum`, also if the schema is nullable.
        let had_effect = keyword != "nullable" || before["enum"].is_null();
        if is_set(before, keyword) && !is_set(after, keyword) && had_effect {
            found.add(path, lost);
        }
    }
    let embedded = "x-kubernetes-embedded-resource";
    if is_set(after, embedded) && !is_set(before, embedded) {
        found.add(path, "the value must be a Kubernetes object now");
    }
}

fn rules(before: &Value, after: &Value, path: &str, found: &mut Found<'_>) {
    let keyword = "x-kubernetes-validations";
    let had = |rule: &Value| items(&before[keyword]).any(|old| old["rule"] == rule["rule"]);
    for rule in items(&after[keyword]).filter(|rule| !had(rule)) {
        found.add(path, format!("the rule `{}` is new", text(&rule["rule"])));
    }
}

fn lists(before: &Value, after: &Value, path: &str, found: &mut Found<'_>) {
    let kind = |schema: &Value| match text(&schema["x-kubernetes-list-type"]) {
        "" => "atomic".to_owned(),
        kind => kind.to_owned(),
    };
    if before["type"] != "array" || after["type"] != "array" {
        return;
    }
    let (old, new) = (kind(before), kind(after));
    if old != new {
        found.add(path, format!("the list type was {old} and is {new}"));
    } else if before["x-kubernetes-list-map-keys"] != after["x-kubernetes-list-map-keys"] {
        changed("x-kubernetes-list-map-keys", before, after, path, found);
    }
}

fn alternatives(before: &Value, after: &Value, path: &str, found: &mut Found<'_>) {
    for keyword in ["allOf", "anyOf", "oneOf", "not"] {
        if !after[keyword].is_null() && before[keyword] != after[keyword] {
            found.add(path, format!("{keyword} changed, which may refuse more"));
        }
    }
}

fn required(before: &Value, after: &Value, path: &str, found: &mut Found<'_>) {
    let was_required = |field: &Value| items(&before["required"]).any(|old| old == field);
    for field in items(&after["required"]).filter(|field| !was_required(field)) {
        let name = text(field);
        if after["properties"][name]["default"].is_null() {
            found.add(&format!("{path}.{name}"), "the field is required now, and has no default");
        }
    }
}

fn members(before: &Value, after: &Value, path: &str, found: &mut Found<'_>) {
    let open = is_set(after, PRESERVE) || !after["additionalProperties"].is_null();
    for (name, old) in before["properties"].as_object().into_iter().flatten() {
        let path = format!("{path}.{name}");
        match after["properties"].get(name) {
            Some(new) => compare(old, new, &path, found),
            None if open => {}
            None => found.add(&path, "the field is gone"),
        }
    }
    compare(&before["items"], &after["items"], &format!("{path}[]"), found);
    let (old, new) = (&before["additionalProperties"], &after["additionalProperties"]);
    let takes_any = |schema: &Value| !schema.is_null() && schema != false;
    if takes_any(old) && !takes_any(new) && !is_set(after, PRESERVE) {
        found.add(if path.is_empty() { "." } else { path }, "other keys are dropped");
    } else {
        compare(old, new, &format!("{path}[*]"), found);
    }
}
