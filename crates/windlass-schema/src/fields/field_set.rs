//! Sets of field paths.

use serde_json::Value;

use super::error::{FieldsError, TypedErrors};
use super::path_element::{FieldPath, PathElement};
use crate::graph::NodeRef;

/// A set of field paths. A clone shares its contents.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldSet {}

#[expect(unused_variables, clippy::unused_self, reason = "the bodies follow")]
impl FieldSet {
    /// Reads a set from `fieldsV1`. Elements of an unknown kind are ignored.
    pub fn from_v1(fields: &Value) -> Result<Self, FieldsError> {
        Ok(Self::default())
    }

    /// Returns the set as `fieldsV1`.
    pub fn to_v1(&self) -> Value {
        Value::Null
    }

    /// Writes the set as `fieldsV1`, with the members in the order of [`PathElement`], as Kubernetes writes it.
    pub fn write_v1(&self, out: &mut String) {}

    /// Returns the fields of a value: the leaves, and the elements of lists and maps.
    pub fn of(schema: NodeRef<'_>, value: &Value) -> Result<Self, TypedErrors> {
        Ok(Self::default())
    }

    /// Whether the set has no paths.
    pub fn is_empty(&self) -> bool {
        true
    }

    /// Returns the number of paths.
    pub fn len(&self) -> usize {
        0
    }

    /// Whether a path is in the set.
    pub fn contains(&self, path: &[PathElement]) -> bool {
        false
    }

    /// Inserts a path. The empty path is ignored.
    pub fn insert(&mut self, path: &[PathElement]) {}

    /// Returns the paths: at each level the members first, then the members of children.
    pub fn iter(&self) -> impl Iterator<Item = FieldPath> {
        std::iter::empty()
    }

    /// Returns the paths that are in either set.
    pub fn union(&self, other: &Self) -> Self {
        Self::default()
    }

    /// Returns the paths that are in both sets.
    pub fn intersection(&self, other: &Self) -> Self {
        Self::default()
    }

    /// Returns the paths that are in this set and not in `other`.
    pub fn difference(&self, other: &Self) -> Self {
        Self::default()
    }

    /// Returns the paths of this set that neither are in `other` nor are below a path in `other`.
    pub fn recursive_difference(&self, other: &Self) -> Self {
        Self::default()
    }

    /// Returns the paths that are no prefix of another path in the set.
    pub fn leaves(&self) -> Self {
        Self::default()
    }
}
