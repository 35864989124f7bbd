//! Descriptors: the fields of a kind for OLM's console, from the schema of the CRD.

use serde_json::{Value, json};

/// How many levels of fields have descriptors.
const DEPTH: usize = 3;

/// Returns the descriptors of a part (`spec` or `status`) of a version of a CRD, for fields with a description.
pub(super) fn descriptors(version: &Value, part: &str) -> Vec<Value> {
    let mut found = Vec::new();
    let schema = &version["schema"]["openAPIV3Schema"]["properties"][part];
    collect(schema, "", DEPTH, &mut found);
    found
}

fn collect(schema: &Value, path: &str, depth: usize, found: &mut Vec<Value>) {
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        if let Some(description) = field["description"].as_str() {
            found.push(json!({ "description": description, "displayName": title(name), "path": path }));
        }
        if depth > 1 {
            collect(field, &path, depth - 1, found);
        }
    }
}

/// Returns the words of a field name: `maxReplicas` becomes `Max Replicas`.
pub(super) fn title(name: &str) -> String {
    let mut text = String::new();
    for (index, char) in name.chars().enumerate() {
        let is_start = index == 0;
        if char.is_uppercase() && !is_start && !text.ends_with(|last: char| last.is_uppercase()) {
            text.push(' ');
        }
        if is_start { text.extend(char.to_uppercase()) } else { text.push(char) }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_with_descriptions_have_descriptors() {
        assert_eq!(title("maxReplicas"), "Max Replicas");
        assert_eq!(title("hostURL"), "Host URL");
        let fields = json!({
            "a": { "description": "The a." }, "b": { "properties": { "c": { "description": "The c." } } },
        });
        let version = json!({ "schema": { "openAPIV3Schema": { "properties": { "spec": { "properties": fields } } } } });
        let found = descriptors(&version, "spec");
        let paths: Vec<&str> = found.iter().filter_map(|field| field["path"].as_str()).collect();
        assert_eq!(paths, ["a", "b.c"]);
        assert!(descriptors(&version, "status").is_empty());
    }
}
