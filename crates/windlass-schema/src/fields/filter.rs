//! Filters of field sets: the fields that a request ignores or resets.

use super::field_set::FieldSet;
use super::path_element::PathElement;

/// Selects the fields that a request may own.
#[derive(Clone, Debug)]
pub enum FieldFilter {
    /// All but these fields and the fields below them.
    Exclude(FieldSet),
    /// Only the fields that match.
    Include(FieldPattern),
}

impl FieldFilter {
    /// Returns the fields of a set that the filter selects.
    pub fn apply(&self, fields: &FieldSet) -> FieldSet {
        fields.clone()
    }
}

/// A pattern of field paths.
#[derive(Clone, Debug, Default)]
pub struct FieldPattern {}

/// An element of a [`FieldPattern`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PatternElement {
    /// Any element.
    Any,
    /// This element.
    Is(PathElement),
}

#[expect(unused_variables, reason = "the body follows")]
impl FieldPattern {
    /// Matches every path that starts with these elements.
    pub fn prefix(elements: impl IntoIterator<Item = PatternElement>) -> Self {
        Self::default()
    }

    /// Matches the paths that either pattern matches.
    pub fn or(self, other: Self) -> Self {
        self
    }
}
