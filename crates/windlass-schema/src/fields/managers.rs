//! The field managers of an object.

use std::collections::BTreeMap;

use super::field_set::FieldSet;

/// The fields that a manager owns: one entry of `metadata.managedFields`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Managed {
    /// The fields.
    pub fields: FieldSet,
    /// The API version in which `fields` are named.
    pub api_version: String,
    /// Whether the manager owns the fields by apply, not by update.
    pub applied: bool,
}

/// The field managers of an object by their identifiers. An identifier is any text that is unique to the manager, its
/// operation, its API version and its subresource.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Managers(pub BTreeMap<String, Managed>);
