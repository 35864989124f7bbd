//! The field managers of an object.

use std::collections::BTreeMap;

use super::field_set::FieldSet;

/// The fields that a manager owns: one entry of `metadata.managedFields`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Managed {
    /// The fields.
    pub fields: FieldSet,
    /// The API version of the field names in `fields`.
    pub api_version: String,
    /// True if the manager owns the fields by apply, not by update.
    pub applied: bool,
}

/// The field managers of an object by identifier. An identifier is any text that is unique for a manager,
/// operation, API version and subresource.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Managers(pub BTreeMap<String, Managed>);
