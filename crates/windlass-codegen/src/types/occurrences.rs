//! The occurrences of equal schemas. Equal schemas become one type.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::shape::Shape;
use crate::definition::{Definition, Version};

/// The parts of a schema that make a type. All other parts belong to the field.
const PARTS: [&str; 6] = [
    "type",
    "properties",
    "required",
    "additionalProperties",
    "enum",
    "x-kubernetes-preserve-unknown-fields",
];

/// The parts that two schemas of the same type have in common.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Identity(String);

impl Identity {
    pub(super) fn of(schema: &Value) -> Self {
        Self(PARTS.map(|part| schema[part].to_string()).join("\n"))
    }
}

/// The kinds in which each struct and enum occurs.
#[derive(Default)]
pub(super) struct Occurrences(BTreeMap<Identity, BTreeSet<String>>);

impl Occurrences {
    /// Reads the kinds of a version.
    pub(super) fn of(kinds: &[(&Definition, &Version)]) -> Self {
        let mut found = Self::default();
        for (definition, version) in kinds {
            let schema = version.open_api_schema();
            for part in ["spec", "status"] {
                found.add_fields(&definition.spec.names.kind, &schema["properties"][part], 1);
            }
        }
        found
    }

    /// Returns all schemas.
    pub(super) fn into_identities(self) -> impl Iterator<Item = Identity> {
        self.0.into_keys()
    }

    /// Adds the structs and enums inside of a schema of a kind.
    fn add(&mut self, kind: &str, schema: &Value, depth: usize) {
        match Shape::of(schema, depth) {
            Shape::Plain(_) | Shape::Json => {}
            Shape::List(inner) | Shape::Map(inner) => self.add(kind, inner, depth + 1),
            Shape::Enum(schema) => self.note(kind, schema),
            Shape::Struct(schema) => {
                self.note(kind, schema);
                self.add_fields(kind, schema, depth);
            }
        }
    }

    /// Adds the structs and enums inside of the fields of a schema.
    fn add_fields(&mut self, kind: &str, schema: &Value, depth: usize) {
        let properties = schema["properties"].as_object().into_iter().flatten();
        properties.for_each(|(_, property)| self.add(kind, property, depth + 1));
    }

    /// Returns whether a schema occurs in several kinds.
    pub(super) fn is_shared(&self, identity: &Identity) -> bool {
        self.0.get(identity).is_some_and(|kinds| kinds.len() > 1)
    }

    fn note(&mut self, kind: &str, schema: &Value) {
        self.0.entry(Identity::of(schema)).or_default().insert(kind.to_owned());
    }
}
