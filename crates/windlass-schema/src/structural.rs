//! The checks of `openAPIV3Schema` that kube-apiserver makes when a CustomResourceDefinition is created or updated,
//! with the same messages.

mod complete;
mod defaults;
mod invariants;
mod rules;

use serde_json::{Map, Value};

use crate::FieldError;
use crate::compile::MAX_DEPTH;
use crate::error_list::ErrorList;
use crate::path::Path;

/// Checks the `openAPIV3Schema` at `path` (`spec.validation.openAPIV3Schema` if all versions have the same schema,
/// otherwise `spec.versions[0].schema.openAPIV3Schema`).
///
/// The fields of CEL rules (`x-kubernetes-validations`) are checked, but the expressions are not compiled.
///
/// ```
/// let schema = serde_json::json!({"type": "object", "properties": {"spec": {}}});
/// let errors = windlass_schema::check_structural(&schema, "spec.validation.openAPIV3Schema");
/// assert_eq!(
///     errors[0].to_string(),
///     "spec.validation.openAPIV3Schema.properties[spec].type: Required value: \
///      must not be empty for specified object fields",
/// );
/// ```
pub fn check_structural(open_api_v3_schema: &Value, path: &str) -> Vec<FieldError> {
    let schema = Props::of(open_api_v3_schema);
    let path = Path::Root(path);
    if schema.depth() > MAX_DEPTH {
        return vec![FieldError::invalid(
            path,
            "",
            format!("must not be nested deeper than {MAX_DEPTH} schemas"),
        )];
    }
    let mut errors = ErrorList::new();
    let unsupported = schema.unsupported();
    if unsupported.is_none() {
        invariants::check(schema, path, &mut errors);
        complete::check(schema, path, &mut errors);
        errors.sort();
        if errors.is_empty() {
            defaults::check(open_api_v3_schema, path, &mut errors);
        }
    }
    rules::check(schema, path, &mut errors);
    if let Some(text) = unsupported.filter(|_| errors.is_empty()) {
        errors.push(FieldError::invalid(path, "", text));
    }
    errors.into_vec()
}

/// The user's schema (`JSONSchemaProps`). Members with the zero value of the Go type count as absent.
#[derive(Clone, Copy)]
struct Props<'s>(Option<&'s Map<String, Value>>);

impl<'s> Props<'s> {
    fn of(schema: &'s Value) -> Self {
        Self(schema.as_object())
    }

    fn get(self, name: &str) -> Option<&'s Value> {
        self.0?.get(name).filter(|value| !is_zero(value))
    }

    /// Returns a text that is a pointer in Go: an empty text counts as present.
    fn optional_text(self, name: &str) -> Option<&'s str> {
        self.0?.get(name)?.as_str()
    }

    fn has(self, name: &str) -> bool {
        self.get(name).is_some()
    }

    fn flag(self, name: &str) -> bool {
        self.get(name) == Some(&Value::Bool(true))
    }

    fn text(self, name: &str) -> &'s str {
        self.get(name).and_then(Value::as_str).unwrap_or_default()
    }

    fn kind(self) -> &'s str {
        self.text("type")
    }

    /// Returns the schema in a member.
    fn schema(self, name: &str) -> Option<Self> {
        self.0?.get(name).filter(|value| value.is_object()).map(Self::of)
    }

    /// Returns the schemas of a list in a member.
    fn schemas(self, name: &str) -> impl Iterator<Item = Self> {
        self.0
            .and_then(|members| members.get(name))
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .map(Self::of)
    }

    /// Returns the schemas of a map in a member.
    fn named(self, name: &str) -> impl Iterator<Item = (&'s str, Self)> {
        let map = self.0.and_then(|members| members.get(name)).and_then(Value::as_object);
        map.into_iter().flatten().map(|(name, schema)| (name.as_str(), Self::of(schema)))
    }

    fn property(self, name: &str) -> Option<Self> {
        self.schema("properties")?.schema(name)
    }

    fn strings(self, name: &str) -> Vec<&'s str> {
        self.get(name).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect()
    }

    /// Returns every directly nested schema.
    fn below(self) -> Vec<Self> {
        let mut out: Vec<Self> = ["items", "additionalProperties", "not"]
            .into_iter()
            .filter_map(|name| self.schema(name))
            .collect();
        out.extend(self.named("properties").map(|(_, schema)| schema));
        out.extend(["allOf", "anyOf", "oneOf"].into_iter().flat_map(|name| self.schemas(name)));
        out
    }

    fn depth(self) -> usize {
        1 + self.below().into_iter().map(Self::depth).max().unwrap_or(0)
    }

    /// Returns an error for the first keyword, at any depth, that a structural schema cannot have.
    fn unsupported(self) -> Option<String> {
        const NEVER: [&str; 7] =
            ["id", "schema", "$ref", "patternProperties", "dependencies", "additionalItems", "definitions"];
        let here = NEVER.into_iter().find(|name| self.has(if *name == "schema" { "$schema" } else { name }));
        if let Some(name) = here {
            return Some(format!("OpenAPIV3Schema '{name}' is not supported"));
        }
        if self.get("items").is_some_and(Value::is_array) {
            return Some("OpenAPIV3Schema 'items' must be a schema, but is an array".to_owned());
        }
        if self.0.is_some_and(|members| {
            members.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(false))
        }) {
            let text = "internal error: 'x-kubernetes-preserve-unknown-fields' must be true or undefined";
            return Some(text.to_owned());
        }
        self.below().into_iter().find_map(Self::unsupported)
    }
}

/// Returns whether the value is the zero value of the Go type.
fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        _ => false,
    }
}

#[cfg(test)]
mod tests;
