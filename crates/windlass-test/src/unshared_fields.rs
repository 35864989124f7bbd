//! The fields that two versions of a kind do not share.

use std::collections::BTreeMap;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};

/// Returns the fields that only one of two versions of a kind has, or that differ in type: `spec.size (v1)`.
///
/// A conversion that copies fields by name drops these fields. Each parameter is a definition with one version, such as the value of
/// `CustomResourceExt::crd`.
///
/// ```
/// # use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
/// use windlass_test::unshared_fields;
///
/// # fn example(v1: CustomResourceDefinition, v2: CustomResourceDefinition) {
/// // `v1::Bar::crd()` has `spec.size`, and `v2::Bar::crd()` has `spec.min` and `spec.max`.
/// assert_eq!(unshared_fields(&v1, &v2), ["spec.max (v2)", "spec.min (v2)", "spec.size (v1)"]);
/// # }
/// ```
pub fn unshared_fields(one: &CustomResourceDefinition, other: &CustomResourceDefinition) -> Vec<String> {
    let (one, other) = (Version::of(one), Version::of(other));
    let mut unshared = one.fields_without(&other);
    unshared.extend(other.fields_without(&one));
    unshared.sort_unstable();
    unshared
}

/// The fields of a version, with types.
#[derive(Default)]
struct Version {
    name: String,
    fields: BTreeMap<String, String>,
}

impl Version {
    fn of(definition: &CustomResourceDefinition) -> Self {
        let Some(version) = definition.spec.versions.first() else { return Self::default() };
        let mut made = Self { name: version.name.clone(), fields: BTreeMap::new() };
        if let Some(schema) = version.schema.as_ref().and_then(|schema| schema.open_api_v3_schema.as_ref()) {
            made.add("", schema);
        }
        made
    }

    /// Adds the fields of an object, of the items of a list, or of the values of a map.
    fn add(&mut self, path: &str, schema: &JSONSchemaProps) {
        for (name, field) in schema.properties.iter().flatten() {
            let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
            self.fields.insert(path.clone(), field.type_.clone().unwrap_or_default());
            self.add(&path, field);
        }
        if let Some(JSONSchemaPropsOrArray::Schema(items)) = &schema.items {
            self.add(&format!("{path}[]"), items);
        }
        if let Some(JSONSchemaPropsOrBool::Schema(values)) = &schema.additional_properties {
            self.add(&format!("{path}.*"), values);
        }
    }

    /// Returns the fields that `other` lacks. Fields inside of a returned field are not listed.
    fn fields_without(&self, other: &Self) -> Vec<String> {
        let is_unshared = |path: &str| self.fields.get(path) != other.fields.get(path);
        let is_inside = |path: &str| {
            path.match_indices(['.', '[']).any(|(at, _)| {
                let outer = &path[..at];
                self.fields.contains_key(outer) && is_unshared(outer)
            })
        };
        let unshared = self.fields.keys().filter(|path| is_unshared(path) && !is_inside(path));
        unshared.map(|path| format!("{path} ({})", self.name)).collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn definition(version: &str, spec: &Value) -> CustomResourceDefinition {
        let schema =
            json!({ "type": "object", "properties": { "spec": { "type": "object", "properties": spec } } });
        serde_json::from_value(json!({
            "metadata": {},
            "spec": {
                "group": "example.com",
                "names": { "kind": "Bar", "plural": "bars" },
                "scope": "Namespaced",
                "versions": [{
                    "name": version, "served": true, "storage": true, "schema": { "openAPIV3Schema": schema },
                }],
            },
        }))
        .expect("a definition")
    }

    #[test]
    fn renamed_removed_and_retyped_fields_are_named() {
        let port = |name: &str| json!({ "type": "array", "items": { "type": "object", "properties": { name: { "type": "integer" } } } });
        let v1 = json!({
            "size": { "type": "integer" }, "mode": { "type": "string" }, "same": { "type": "string" },
            "ports": port("number"), "gone": { "type": "object", "properties": { "a": { "type": "string" } } },
        });
        let v2 = json!({
            "max": { "type": "integer" }, "mode": { "type": "boolean" }, "same": { "type": "string" }, "ports": port("port"),
        });
        assert_eq!(
            unshared_fields(&definition("v1", &v1), &definition("v2", &v2)),
            [
                "spec.gone (v1)",
                "spec.max (v2)",
                "spec.mode (v1)",
                "spec.mode (v2)",
                "spec.ports[].number (v1)",
                "spec.ports[].port (v2)",
                "spec.size (v1)"
            ]
        );
        assert_eq!(unshared_fields(&definition("v1", &v1), &definition("v2", &v1)), [""; 0]);
    }
}
