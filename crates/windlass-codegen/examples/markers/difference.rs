//! Differences between two definitions, and the reasons that are known.

use serde_json::{Value, json};

/// A difference, with the reason if the reason is known.
pub(crate) struct Difference {
    pub(crate) path: String,
    pub(crate) ours: Value,
    pub(crate) theirs: Value,
    pub(crate) reason: Option<&'static str>,
}

/// Compares two definitions.
pub(crate) fn differences(ours: &Value, theirs: &Value) -> Vec<Difference> {
    let mut found = Vec::new();
    compare(ours, theirs, "", &mut found);
    for difference in &mut found {
        difference.reason = reason(difference);
    }
    found
}

fn compare(ours: &Value, theirs: &Value, path: &str, found: &mut Vec<Difference>) {
    match (ours, theirs) {
        (Value::Object(own), Value::Object(their)) => {
            let names = own.keys().chain(their.keys().filter(|name| !own.contains_key(*name)));
            for name in names {
                let get =
                    |members: &serde_json::Map<String, Value>| members.get(name).cloned().unwrap_or_default();
                compare(&get(own), &get(their), &format!("{path}/{name}"), found);
            }
        }
        (Value::Array(own), Value::Array(their)) if own.len() == their.len() => {
            let (own, their) = (in_order(own, path), in_order(their, path));
            for (index, (own, their)) in own.iter().zip(&their).enumerate() {
                compare(own, their, &format!("{path}/{index}"), found);
            }
        }
        _ if same(ours, theirs) => {}
        _ => {
            let (path, ours, theirs) = (path.to_owned(), ours.clone(), theirs.clone());
            found.push(Difference { path, ours, theirs, reason: None });
        }
    }
}

/// Rules in CEL have no order.
fn in_order(items: &[Value], path: &str) -> Vec<Value> {
    let mut items = items.to_vec();
    if path.ends_with("x-kubernetes-validations") {
        items.sort_by_key(|rule| rule["rule"].to_string());
    }
    items
}

/// Returns whether two values mean the same.
fn same(ours: &Value, theirs: &Value) -> bool {
    let (own, their) = (ours.as_f64(), theirs.as_f64());
    ours == theirs || own.is_some() && own == their
}

/// Returns the reason that docs/markers.md gives for a difference.
fn reason(difference: &Difference) -> Option<&'static str> {
    let Difference { path, ours, theirs, .. } = difference;
    let ends = |end: &str| path.ends_with(end);
    let is_number_format = theirs.is_null() && (ours == "int32" || ours == "int64");
    if ends("openAPIV3Schema/properties/apiVersion")
        || ends("openAPIV3Schema/properties/kind")
        || ends("openAPIV3Schema/properties/metadata")
    {
        Some("the API server adds it")
    } else if ends("annotations")
        || ends("/annotations/controller-gen.kubebuilder.io~1version")
        || ends("controller-gen.kubebuilder.io/version")
    {
        Some("another program wrote it")
    } else if ends("/nullable") {
        Some("an Option reads null")
    } else if ends("/anyOf")
        && ours.is_null()
        && *theirs == json!([{ "type": "integer" }, { "type": "string" }])
    {
        Some("x-kubernetes-int-or-string says it")
    } else if ends("/size/pattern") && ours.is_null() {
        Some("the type is that of k8s-openapi")
    } else if (ends("/size/description") || ends("/targetPort/description")) && theirs.is_null() {
        Some("k8s-openapi documents its types")
    } else if ends("/format") && is_number_format {
        Some("Go's int has no size")
    } else {
        None
    }
}
