//! The CEL rules of CustomResourceDefinitions: the embedded API server stores CEL rules and does not evaluate
//! CEL rules.

use std::fmt;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::Value;

/// The keyword of CEL rules in a schema.
const KEYWORD: &str = "x-kubernetes-validations";

/// The longest text of a rule in a message, in characters.
const SHOWN: usize = 80;

/// A CEL rule (`x-kubernetes-validations`) of a CustomResourceDefinition. The embedded API server does not
/// evaluate CEL rules; the [`Display`](fmt::Display) form is a warning about the rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CelRule {
    crd: String,
    version: String,
    field: String,
    rule: String,
}

impl fmt::Display for CelRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { crd, version, field, rule } = self;
        let mut words = rule.split_whitespace().collect::<Vec<_>>().join(" ");
        if words.chars().count() > SHOWN {
            words = words.chars().take(SHOWN).chain("...".chars()).collect();
        }
        write!(
            f,
            "{crd}, version {version}, {field}: the CEL rule `{words}` is not evaluated by the embedded API server"
        )
    }
}

/// Returns the CEL rules in the schemas of CRDs, in the order of the CRDs and versions; equal rules of a field once.
///
/// ```
/// use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
///
/// let crd: CustomResourceDefinition = serde_json::from_value(serde_json::json!({
///     "metadata": { "name": "bars.example.com" },
///     "spec": {
///         "group": "example.com", "scope": "Namespaced", "names": { "kind": "Bar", "plural": "bars" },
///         "versions": [{ "name": "v1", "served": true, "storage": true, "schema": { "openAPIV3Schema": {
///             "type": "object",
///             "properties": { "spec": {
///                 "type": "object", "x-kubernetes-validations": [{ "rule": "self.min <= self.max" }]
///             } },
///         } } }],
///     },
/// })).unwrap();
/// assert_eq!(
///     windlass_dev::cel_rules([&crd])[0].to_string(),
///     "bars.example.com, version v1, spec: the CEL rule `self.min <= self.max` is not evaluated by the embedded API server",
/// );
/// ```
pub fn cel_rules<'a>(crds: impl IntoIterator<Item = &'a CustomResourceDefinition>) -> Vec<CelRule> {
    let mut found = Vec::new();
    for crd in crds {
        let crd_name = crd.metadata.name.as_deref().unwrap_or_default();
        for version in &crd.spec.versions {
            let schema = version.schema.as_ref().and_then(|schema| schema.open_api_v3_schema.as_ref());
            // A schema that is no JSON cannot be sent to a server, either.
            let Some(Ok(schema)) = schema.map(serde_json::to_value) else { continue };
            let mut add = |field: &str, rule: &str| {
                let rule = CelRule {
                    crd: crd_name.to_owned(),
                    version: version.name.clone(),
                    field: if field.is_empty() { "the object".to_owned() } else { field.to_owned() },
                    rule: rule.to_owned(),
                };
                if !found.contains(&rule) {
                    found.push(rule);
                }
            };
            visit(&schema, "", &mut add);
        }
    }
    found
}

/// Calls `add` with the path of each field that has a rule, and with the rule. CEL rules are in the structural part of a schema only.
fn visit(schema: &Value, field: &str, add: &mut impl FnMut(&str, &str)) {
    let rules = schema[KEYWORD].as_array().into_iter().flatten();
    rules.filter_map(|rule| rule["rule"].as_str()).for_each(|rule| add(field, rule));
    for (name, inner) in schema["properties"].as_object().into_iter().flatten() {
        let path = if field.is_empty() { name.clone() } else { format!("{field}.{name}") };
        visit(inner, &path, add);
    }
    for (keyword, suffix) in [("items", "[]"), ("additionalProperties", ".*")] {
        if schema[keyword].is_object() {
            visit(&schema[keyword], &format!("{field}{suffix}"), add);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn rules_are_found_in_fields_items_and_maps_and_a_long_rule_is_cut() {
        let rule = |text: &str| json!([{ "rule": text }]);
        let long = format!("self == '{}'", "x".repeat(100));
        let schema = json!({
            "type": "object",
            KEYWORD: rule("self.metadata.name != 'a'"),
            "properties": { "spec": { "type": "object", "properties": {
                "list": { "type": "array", "items": { "type": "string", KEYWORD: rule("self !=\n  ''") } },
                "map": { "type": "object", "additionalProperties": { "type": "string", KEYWORD: rule(&long) } },
                KEYWORD: { "type": "string" },
            } } },
        });
        let crd: CustomResourceDefinition = serde_json::from_value(json!({
            "metadata": { "name": "bars.example.com" },
            "spec": {
                "group": "example.com", "scope": "Namespaced", "names": { "kind": "Bar", "plural": "bars" },
                "versions": [{ "name": "v1", "served": true, "storage": true, "schema": { "openAPIV3Schema": schema } }],
            },
        }))
        .unwrap();
        let found: Vec<String> = cel_rules([&crd, &crd]).iter().map(ToString::to_string).collect();
        let cut = format!("`self == '{}...`", "x".repeat(71));
        assert_eq!(found.len(), 3, "{found:?}");
        for (said, parts) in found.iter().zip([
            ["the object:", "`self.metadata.name != 'a'`"],
            ["spec.list[]:", "`self != ''`"],
            ["spec.map.*:", &cut],
        ]) {
            assert!(parts.iter().all(|part| said.contains(part)), "{said}");
        }
    }
}
