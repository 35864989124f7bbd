//! Conversion between the core group and `events.k8s.io`.

use serde_json::{Value, json};

use crate::json::text;

/// The fields with different names in `v1` and `events.k8s.io`.
pub(super) const RENAMED: [(&str, &str); 7] = [
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
    ("reportingComponent", "reportingController"),
];

/// Converts an event to the version of the other group.
pub(super) fn convert(object: &mut Value, _version: &str) {
    let to_new = text(object, "apiVersion") == "v1";
    let Some(fields) = object.as_object_mut() else { return };
    for (core, new) in RENAMED {
        let (from, to) = if to_new { (core, new) } else { (new, core) };
        if let Some(value) = fields.remove(from) {
            fields.insert(to.to_owned(), value);
        }
    }
    // `v1` always writes these fields, `events.k8s.io` only non-empty fields.
    if to_new {
        for field in ["reportingController", "reportingInstance"] {
            if fields.get(field).is_some_and(|value| value == "") {
                fields.remove(field);
            }
        }
        return;
    }
    for (field, empty) in [
        ("involvedObject", json!({})),
        ("source", json!({})),
        ("firstTimestamp", Value::Null),
        ("lastTimestamp", Value::Null),
        ("reportingComponent", json!("")),
        ("reportingInstance", json!("")),
    ] {
        fields.entry(field).or_insert(empty);
    }
}
