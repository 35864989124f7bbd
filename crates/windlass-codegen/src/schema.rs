//! Schemas in the form of controller-gen.

use serde_json::{Map, Number, Value};

use crate::integers::{for_each_schema, for_each_schema_of, limit_integers};

/// The description that kube's derive macro writes if there is none.
const NO_DESCRIPTION: &str = "Auto-generated derived type for ";

/// Prepares the schemas of a CustomResourceDefinition.
///
/// - Integers have the limits of the Rust types.
/// - Enumerations have no null.
/// - The title of an object is removed.
/// - A kind without a description (`#[kube(doc = "…")]`) gets the description of the spec: the doc comment of
///   the struct.
/// - Numbers without a fraction are written as integers.
/// - Empty descriptions are removed, and long descriptions are cut.
/// - Defaults have no nulls for absent fields.
pub(crate) fn prepare(crd: &mut Value, max_description: Option<usize>) {
    limit_integers(crd);
    let versions = crd["spec"]["versions"].as_array_mut();
    for version in versions.into_iter().flatten() {
        let schema = &mut version["schema"]["openAPIV3Schema"];
        if let Some(members) = schema.as_object_mut() {
            // schemars writes the name of the Rust type.
            members.remove("title");
            describe_kind(members);
            for_each_schema(schema, &mut |members| {
                describe(members, max_description);
                remove_nulls_of_default(members);
            });
        }
    }
    whole_numbers(crd);
    for_each_schema_of(crd, &mut remove_null_of_enum);
}

/// Removes null from an enumeration. An API server refuses a null for a schema with `enum`, even if null is one of the values. Without
/// `nullable`, the server drops the null of a field.
fn remove_null_of_enum(schema: &mut Map<String, Value>) {
    let Some(values) = schema.get_mut("enum").and_then(Value::as_array_mut) else { return };
    values.retain(|value| !value.is_null());
    schema.remove("nullable");
}

/// Gives a kind without a description the description of the kind's spec.
fn describe_kind(schema: &mut Map<String, Value>) {
    let text = schema.get("description").and_then(Value::as_str).unwrap_or_default();
    if !text.starts_with(NO_DESCRIPTION) {
        return;
    }
    let of_spec = schema.get("properties").and_then(|properties| properties["spec"].get("description"));
    if let Some(text) = of_spec.cloned() {
        schema.insert("description".to_owned(), text);
    }
}

/// Removes an empty description of a schema, and cuts a long description.
fn describe(schema: &mut Map<String, Value>, max: Option<usize>) {
    match schema.get("description").and_then(Value::as_str).map(|text| description(text, max)) {
        Some(Some(text)) => drop(schema.insert("description".to_owned(), Value::String(text))),
        Some(None) => drop(schema.remove("description")),
        None => {}
    }
}

/// Returns the description to write, if any. Cuts at the end of a sentence, else of a word.
fn description(text: &str, max: Option<usize>) -> Option<String> {
    if text.is_empty() || text.starts_with(NO_DESCRIPTION) || max == Some(0) {
        return None;
    }
    let Some(max) = max.filter(|max| text.len() > *max) else { return Some(text.to_owned()) };
    let start = &text[..text.floor_char_boundary(max)];
    if let Some(end) = start.rfind(['.', '!', '?', '。']).filter(|end| *end > 0) {
        let length = start[end..].chars().next().map_or(1, char::len_utf8);
        return Some(start[..end + length].to_owned());
    }
    let end = start.rfind(char::is_whitespace).filter(|end| *end > 0).unwrap_or(start.len());
    Some(format!("{}...", &start[..end]))
}

/// Removes the nulls that a default has for absent fields: `{"failed": null}` becomes `{}`. An API server would store the nulls.
fn remove_nulls_of_default(schema: &mut Map<String, Value>) {
    if schema.contains_key("default") {
        let default = default_without_nulls(&Value::Object(schema.clone()));
        schema.insert("default".to_owned(), default);
    }
}

/// Returns the default of a schema, without nulls for absent fields.
pub(crate) fn default_without_nulls(schema: &Value) -> Value {
    let mut default = schema["default"].clone();
    remove_nulls(&mut default, schema);
    default
}

/// Removes the null members of a value that the schema names as properties without a default. In any other member, such as a member of any
/// JSON, a null is a value.
fn remove_nulls(value: &mut Value, schema: &Value) {
    match value {
        Value::Object(members) => members.retain(|name, member| {
            let of_map = &schema["additionalProperties"];
            let property = schema["properties"].get(name);
            remove_nulls(member, property.unwrap_or(of_map));
            !member.is_null() || property.is_none_or(|property| !property["default"].is_null())
        }),
        Value::Array(elements) => {
            elements.iter_mut().for_each(|element| remove_nulls(element, &schema["items"]));
        }
        _ => {}
    }
}

/// Writes `1.0` as `1`. Go reads both alike, and writes the latter.
fn whole_numbers(value: &mut Value) {
    match value {
        Value::Number(number) => {
            if let Some(float) = number.as_f64().filter(|float| number.is_f64() && float.fract() == 0.0)
                && float.abs() < 9_007_199_254_740_992.0
            {
                *number = Number::from(float as i64);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(whole_numbers),
        Value::Object(members) => members.values_mut().for_each(whole_numbers),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{description, prepare};

    #[test]
    fn a_kind_without_a_description_has_that_of_its_spec() {
        let described = |kind: &str| {
            let schema =
                json!({ "description": kind, "properties": { "spec": { "description": "A website." } } });
            let version = json!({ "schema": { "openAPIV3Schema": schema } });
            let mut crd = json!({ "spec": { "versions": [version] } });
            prepare(&mut crd, None);
            crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["description"].clone()
        };
        assert_eq!(
            described("Auto-generated derived type for WebsiteSpec via `CustomResource`"),
            "A website."
        );
        assert_eq!(described("Websites of a shop."), "Websites of a shop.");
    }

    #[test]
    fn a_default_has_no_null_for_an_absent_field() {
        let prepared = |default: Value| {
            let limit = json!({ "type": "integer", "nullable": true });
            let history = json!({ "type": "object", "properties": {
                "failed": limit, "successful": limit,
                "limit": { "type": "integer", "nullable": true, "default": 5 },
                "raw": { "type": "object", "x-kubernetes-preserve-unknown-fields": true },
            } });
            let spec = json!({ "type": "object", "default": default, "properties": {
                "one": history, "several": { "type": "array", "items": history },
                "named": { "type": "object", "additionalProperties": history },
            } });
            let version = json!({ "schema": { "openAPIV3Schema": { "properties": { "spec": spec } } } });
            let mut crd = json!({ "spec": { "versions": [version] } });
            prepare(&mut crd, None);
            crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["default"].clone()
        };
        let history = json!({ "failed": null, "successful": 3 });
        let default = json!({ "one": history, "several": [history], "named": { "a": history } });
        let history = json!({ "successful": 3 });
        assert_eq!(
            prepared(default),
            json!({ "one": history, "several": [history], "named": { "a": history } })
        );
        assert_eq!(prepared(json!(null)), json!(null), "a default that is null");
        let meant = json!({ "one": { "limit": null, "raw": { "a": null } } });
        assert_eq!(
            prepared(meant.clone()),
            meant,
            "a null instead of the default of the field, and in any JSON"
        );
    }

    #[test]
    fn an_enumeration_has_no_null() {
        let of_option = json!({ "type": "string", "enum": ["Fast", "Slow", null], "nullable": true });
        let limited = json!({ "type": "string", "enum": ["Fast", "Slow"], "nullable": true });
        let number = json!({ "type": "integer", "nullable": true });
        let spec =
            json!({ "properties": { "mode": of_option, "modes": { "items": limited }, "number": number } });
        let version = json!({ "schema": { "openAPIV3Schema": spec } });
        let mut crd = json!({ "spec": { "versions": [version] } });
        prepare(&mut crd, None);
        let plain = json!({ "type": "string", "enum": ["Fast", "Slow"] });
        assert_eq!(
            crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"],
            json!({ "mode": plain, "modes": { "items": plain }, "number": number })
        );
    }

    #[test]
    fn a_long_description_is_cut_at_a_sentence_or_a_word() {
        let cut = |text, max| description(text, Some(max)).unwrap_or_default();
        assert_eq!(cut("One. Two three.", 9), "One.");
        assert_eq!(cut("one two three", 9), "one two...");
        assert_eq!(cut("onetwothree", 3), "one...");
        assert_eq!(cut("short", 9), "short");
        assert_eq!(cut("中文。说明", 9), "中文。");
        assert_eq!(description("text", Some(0)), None);
        assert_eq!(description("", None), None);
    }
}
