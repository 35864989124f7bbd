//! The size of CustomResourceDefinitions, limited by kubectl.

use serde_json::Value;

/// The size from which `kubectl apply` without `--server-side` refuses an object: the object is copied into an annotation.
const LIMIT: usize = 256 * 1024;
/// The smallest size of a definition with a warning.
const NEAR: usize = LIMIT / 4 * 3;
/// How many of the heaviest fields are named.
const NAMED: usize = 3;

/// A field, and the size of the field's schema in bytes.
type Weight = (String, usize);

/// Returns a warning for each definition near the limit, with the largest fields of the definition.
pub(crate) fn size_warnings(definitions: &[&Value]) -> Vec<String> {
    definitions.iter().filter_map(|definition| warning(definition)).collect()
}

fn warning(definition: &Value) -> Option<String> {
    let size = bytes(definition);
    if size < NEAR {
        return None;
    }
    let versions = definition["spec"]["versions"].as_array().into_iter().flatten();
    let weights = versions.map(|version| {
        let name = version["name"].as_str().unwrap_or_default();
        (format!("{name}:"), &version["schema"]["openAPIV3Schema"])
    });
    let heaviest: Vec<String> = heaviest(weights.collect())
        .into_iter()
        .map(|(path, weight)| format!("{path} {}", kibibytes(weight)))
        .collect();
    let name = definition["metadata"]["name"].as_str().unwrap_or_default();
    let consequence = if size < LIMIT { "will refuse" } else { "refuses" };
    Some(format!(
        "warning: {name} has {}: from {} on, `kubectl apply` without --server-side {consequence} the CRD. Heaviest: {}. \
         crd:maxDescLen=0 leaves descriptions out",
        kibibytes(size),
        kibibytes(LIMIT),
        heaviest.join(", ")
    ))
}

/// Returns the heaviest of some schemas. A schema with a field that makes a third of the schema is replaced by the fields.
fn heaviest(mut schemas: Vec<(String, &Value)>) -> Vec<Weight> {
    loop {
        schemas.sort_by_key(|(_, schema)| std::cmp::Reverse(bytes(schema)));
        let Some((path, first)) = schemas.first() else { return Vec::new() };
        let fields = fields(path, first);
        let most = fields.iter().map(|(_, field)| bytes(field)).max().unwrap_or(0);
        if most * 3 < bytes(first) {
            break;
        }
        schemas.splice(..1, fields);
    }
    schemas.truncate(NAMED);
    schemas.into_iter().map(|(path, schema)| (path, bytes(schema))).collect()
}

/// Returns the fields of an object, and the items of a list or map.
fn fields<'a>(path: &str, schema: &'a Value) -> Vec<(String, &'a Value)> {
    let properties = schema["properties"].as_object().into_iter().flatten();
    let separator = if path.ends_with(':') { " " } else { "." };
    let named = properties.map(|(name, field)| (format!("{path}{separator}{name}"), field));
    let items =
        [&schema["items"], &schema["additionalProperties"]].into_iter().filter(|item| item.is_object());
    named.chain(items.map(|item| (format!("{path}[]"), item))).collect()
}

fn bytes(value: &Value) -> usize {
    value.to_string().len()
}

fn kibibytes(bytes: usize) -> String {
    format!("{} KiB", bytes.div_ceil(1024))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn definition(description: usize) -> Value {
        let text = "x".repeat(description);
        let template = json!({"properties": {"spec": {"items": {"properties": {
            "image": {"description": text}, "name": {"description": text},
        }}}}});
        json!({
            "metadata": {"name": "bars.example.com"},
            "spec": {"versions": [
                {"name": "v1", "schema": {"openAPIV3Schema": {"properties": {
                    "spec": {"properties": {"template": template, "small": {"type": "string"}}},
                }}}},
            ]},
        })
    }

    #[test]
    fn a_definition_that_nears_the_limit_is_named_with_its_heaviest_fields() {
        let small = definition(100);
        let near = definition(100 * 1024);
        let over = definition(200 * 1024);
        assert_eq!(size_warnings(&[&small]), Vec::<String>::new());
        let warnings = size_warnings(&[&near, &over]);
        let fields =
            "Heaviest: v1: spec.template.spec[].image 101 KiB, v1: spec.template.spec[].name 101 KiB";
        assert!(warnings[0].starts_with("warning: bars.example.com has 201 KiB"), "{warnings:?}");
        assert!(warnings[0].contains(fields) && warnings[0].contains("will refuse"), "{warnings:?}");
        assert!(warnings[1].contains("refuses"), "{warnings:?}");
    }

    #[test]
    fn a_definition_without_a_schema_has_no_fields() {
        assert_eq!(heaviest(Vec::new()), Vec::new());
        let bare = json!({"metadata": {"name": "x".repeat(NEAR)}});
        assert_eq!(size_warnings(&[&bare]).len(), 1);
    }
}
