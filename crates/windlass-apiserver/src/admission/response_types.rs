//! The types of the fields of a webhook's answer.

use serde_json::Value;
use windlass_schema::json_type;

/// Returns whether a value has the type of a field, and the name of that type in Go.
type Field = (&'static str, fn(&Value) -> bool, &'static str);

const FIELDS: [Field; 5] = [
    ("uid", Value::is_string, "types.UID"),
    ("allowed", Value::is_boolean, "bool"),
    ("status", Value::is_object, "v1.Status"),
    ("patch", Value::is_string, "[]uint8"),
    ("patchType", Value::is_string, "v1.PatchType"),
];

/// Checks the types in the `response` of an AdmissionReview. The error is in the words of Go's JSON decoder.
pub(super) fn check(response: &Value) -> Result<(), String> {
    if response.is_null() {
        return Ok(());
    }
    if !response.is_object() {
        return Err(wrong(response, "AdmissionReview.response", "v1.AdmissionResponse"));
    }
    for (name, is_right, go_type) in FIELDS {
        expect(&response[name], name, is_right, go_type)?;
    }
    expect(&response["warnings"], "warnings", Value::is_array, "[]string")?;
    expect(&response["auditAnnotations"], "auditAnnotations", Value::is_object, "map[string]string")?;
    let warnings = response["warnings"].as_array().into_iter().flatten().map(|text| ("warnings", text));
    let annotations = response["auditAnnotations"].as_object().into_iter().flatten();
    let annotations = annotations.map(|(_, text)| ("auditAnnotations", text));
    warnings.chain(annotations).try_for_each(|(name, text)| expect(text, name, Value::is_string, "string"))
}

fn expect(value: &Value, name: &str, is_right: fn(&Value) -> bool, go_type: &str) -> Result<(), String> {
    if value.is_null() || is_right(value) {
        return Ok(());
    }
    Err(wrong(value, &format!("AdmissionResponse.response.{name}"), go_type))
}

fn wrong(value: &Value, field: &str, go_type: &str) -> String {
    format!("json: cannot unmarshal {} into Go struct field {field} of type {go_type}", json_type(value))
}
