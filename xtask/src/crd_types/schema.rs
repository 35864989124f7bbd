//! Compares the schema of generated types with the original schema.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::{Map, Value};

/// Keywords for people, without an effect on a type.
const WORDS: &[&str] = &["description", "title", "example", "externalDocs"];

/// Members without a meaningful order.
const SETS: &[&str] = &["required", "enum"];

/// The rules of a schema beside the type.
const RULES: &[&str] = &[
    "default",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "format",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "multipleOf",
    "pattern",
    "x-kubernetes-embedded-resource",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-list-type",
    "x-kubernetes-map-type",
    "x-kubernetes-preserve-unknown-fields",
];

/// The differences of a project, by reason.
#[derive(Default)]
pub(super) struct Differences {
    by_reason: BTreeMap<&'static str, usize>,
    unexplained: Vec<String>,
}

impl Differences {
    /// Compares the schemas of a kind: the original schema and the schema of the generated types.
    pub(super) fn add(&mut self, kind: &str, original: &Value, ours: &Value) {
        for part in ["spec", "status"] {
            let (original, ours) = (&original["properties"][part], &ours["properties"][part]);
            self.compare(original, ours, &format!("{kind}.{part}"));
        }
    }

    /// Returns whether each difference has a reason.
    pub(super) fn are_explained(&self) -> bool {
        self.unexplained.is_empty()
    }

    /// Returns a line for each reason, and for the first differences without a known reason.
    pub(super) fn report(&self) -> String {
        let mut text = String::new();
        for (reason, count) in &self.by_reason {
            let _ = writeln!(text, "{count:>8}  {reason}");
        }
        for line in self.unexplained.iter().take(20) {
            let _ = writeln!(text, "          unexplained: {line}");
        }
        if self.unexplained.len() > 20 {
            let _ = writeln!(text, "          … {} in all", self.unexplained.len());
        }
        text
    }

    fn compare(&mut self, original: &Value, ours: &Value, path: &str) {
        let nothing = Map::new();
        let (original, ours) =
            (original.as_object().unwrap_or(&nothing), ours.as_object().unwrap_or(&nothing));
        let names = original.keys().chain(ours.keys().filter(|name| !original.contains_key(*name)));
        for name in names.filter(|name| !WORDS.contains(&name.as_str())) {
            let absent = Value::Null;
            let (was, is) = (original.get(name).unwrap_or(&absent), ours.get(name).unwrap_or(&absent));
            match name.as_str() {
                "properties" => self.compare_properties(was, is, path),
                "items" | "additionalProperties" if was.is_object() && is.is_object() => {
                    self.compare(was, is, &format!("{path}[]"));
                }
                _ if is_same(name, was, is) => {}
                _ => self.note(path, name, was, is, original),
            }
        }
    }

    fn compare_properties(&mut self, original: &Value, ours: &Value, path: &str) {
        let nothing = Map::new();
        let (original, ours) =
            (original.as_object().unwrap_or(&nothing), ours.as_object().unwrap_or(&nothing));
        for (name, was) in original {
            match ours.get(name) {
                Some(is) => self.compare(was, is, &format!("{path}.{name}")),
                None => self.note(path, name, was, &Value::Null, original),
            }
        }
        for name in ours.keys().filter(|name| !original.contains_key(*name)) {
            self.unexplained.push(format!("{path}.{name}: a field that the CRD does not have"));
        }
    }

    fn note(&mut self, path: &str, name: &str, was: &Value, is: &Value, original: &Map<String, Value>) {
        // `[]` ends the path of the elements of a list or map.
        let is_element = path.ends_with("[]") && RULES.contains(&name) && is.is_null();
        let of_element =
            is_element.then_some("rules of elements are left out: an attribute belongs to a field");
        let is_condition = path.contains("conditions[].") && is.is_null();
        let of_condition =
            is_condition.then_some("a condition is the type of k8s-openapi, which has no limits");
        match of_element.or(of_condition).or_else(|| reason(name, was, is, original)) {
            Some(reason) => *self.by_reason.entry(reason).or_default() += 1,
            None => self.unexplained.push(format!("{path} {name}: was {was}, is {is}")),
        }
    }
}

/// Returns whether an enum has the values of another enum, and null.
fn accepts_null(was: &Value, is: &Value) -> bool {
    let mut with_null = set(was);
    with_null.push("null".to_owned());
    with_null.sort();
    with_null == set(is)
}

fn is_same(name: &str, was: &Value, is: &Value) -> bool {
    if SETS.contains(&name) {
        return set(was) == set(is);
    }
    was == is || was.as_f64().is_some_and(|number| is.as_f64() == Some(number))
}

fn set(value: &Value) -> Vec<String> {
    let mut members: Vec<String> = value.as_array().into_iter().flatten().map(Value::to_string).collect();
    members.sort();
    members
}

/// Returns the known reason for a difference in a member.
fn reason(name: &str, was: &Value, is: &Value, original: &Map<String, Value>) -> Option<&'static str> {
    match name {
        "nullable" if was.is_null() => Some("an optional field accepts null, as Option does"),
        "enum" if accepts_null(was, is) => Some("an optional field accepts null, as Option does"),
        "x-kubernetes-validations" if is.is_null() => Some("CEL rules are left out"),
        "default" if is.is_null() && (was.is_object() || was.is_array()) => {
            Some("a default that is an object or a list of objects is left out")
        }
        "x-kubernetes-preserve-unknown-fields" if was.is_null() => Some("what has no type is kept as JSON"),
        "format" if was.is_null() && (is == "int64" || is == "double") => {
            Some("a number without a format has that of its Rust type, which limits nothing")
        }
        "additionalProperties" if was.is_null() && *is == true => {
            Some("an object without known fields is a map of JSON")
        }
        "oneOf" | "anyOf" | "allOf" | "not" if is.is_null() => {
            Some("anyOf, oneOf, allOf and not are left out: they limit values, and make no types")
        }
        "required" if original.get("properties").is_none_or(Value::is_null) => {
            Some("required names a field that the schema does not have")
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn differences(original: Value, ours: Value) -> Differences {
        let of = |schema| json!({ "properties": { "spec": schema } });
        let mut found = Differences::default();
        found.add("Foo", &of(original), &of(ours));
        found
    }

    #[test]
    fn a_difference_has_a_reason_or_is_named() {
        let original = json!({ "required": ["b", "a"], "description": "x", "properties": {
            "a": { "type": "string", "maxLength": 5 }, "b": { "type": "integer", "x-kubernetes-validations": [{}] } } });
        let ours = json!({ "required": ["a", "b"], "properties": {
            "a": { "type": "string", "nullable": true }, "b": { "type": "integer" }, "c": {} } });
        let found = differences(original, ours);
        assert_eq!(found.by_reason.values().sum::<usize>(), 2);
        assert_eq!(
            found.unexplained,
            ["Foo.spec.a maxLength: was 5, is null", "Foo.spec.c: a field that the CRD does not have"]
        );
    }
}
