//! Field paths and path elements.

use std::cmp::Ordering;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use serde_json::Value;

use super::value;

/// A step of a field path: selects a member of an object or an element of a list.
///
/// Elements are ordered as in `fieldsV1`: fields, then keys, values and indexes. Numbers with the same value
/// are equal: `1` equals `1.0`.
///
/// ```
/// use windlass_schema::fields::PathElement;
///
/// assert_eq!(PathElement::field("spec").to_string(), ".spec");
/// let port = PathElement::key([("protocol", "TCP".into()), ("containerPort", 80.into())]);
/// assert_eq!(port.to_string(), r#"[containerPort=80,protocol="TCP"]"#);
/// assert_eq!(PathElement::value("a".into()).to_string(), r#"[="a"]"#);
/// assert_eq!(PathElement::Index(3).to_string(), "[3]");
/// ```
#[derive(Clone, Debug)]
pub enum PathElement {
    /// A member of an object.
    Field(Arc<str>),
    /// The element of an associative list with these key fields, sorted by name.
    Key(Arc<[(Box<str>, Value)]>),
    /// The element of a set with this value.
    Value(Arc<Value>),
    /// The element of a list with this index.
    Index(i64),
}

impl PathElement {
    /// Selects a member of an object.
    pub fn field(name: &str) -> Self {
        Self::Field(name.into())
    }

    /// Selects the element of an associative list with these key fields.
    pub fn key<'k>(fields: impl IntoIterator<Item = (&'k str, Value)>) -> Self {
        let mut fields: Vec<(Box<str>, Value)> =
            fields.into_iter().map(|(name, value)| (name.into(), value)).collect();
        fields.sort_by(|(left, _), (right, _)| left.cmp(right));
        Self::Key(fields.into())
    }

    /// Selects the element of a set with this value.
    pub fn value(value: Value) -> Self {
        Self::Value(value.into())
    }

    fn rank(&self) -> u8 {
        match self {
            Self::Field(_) => 0,
            Self::Key(_) => 1,
            Self::Value(_) => 2,
            Self::Index(_) => 3,
        }
    }
}

impl Ord for PathElement {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Field(left), Self::Field(right)) => left.cmp(right),
            (Self::Key(left), Self::Key(right)) => compare_keys(left, right),
            (Self::Value(left), Self::Value(right)) => value::compare(left, right),
            (Self::Index(left), Self::Index(right)) => left.cmp(right),
            _ => self.rank().cmp(&other.rank()),
        }
    }
}

fn compare_keys(left: &[(Box<str>, Value)], right: &[(Box<str>, Value)]) -> Ordering {
    for ((name, value), (other_name, other)) in left.iter().zip(right) {
        let order = name.cmp(other_name).then_with(|| value::compare(value, other));
        if order.is_ne() {
            return order;
        }
    }
    left.len().cmp(&right.len())
}

impl PartialOrd for PathElement {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for PathElement {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for PathElement {}

impl fmt::Display for PathElement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field(name) => write!(f, ".{name}"),
            Self::Key(fields) => {
                for (index, (name, value)) in fields.iter().enumerate() {
                    write!(f, "{}{name}=", if index == 0 { '[' } else { ',' })?;
                    value::write(value, f)?;
                }
                f.write_str(if fields.is_empty() { "[]" } else { "]" })
            }
            Self::Value(value) => {
                f.write_str("[=")?;
                value::write(value, f)?;
                f.write_str("]")
            }
            Self::Index(index) => write!(f, "[{index}]"),
        }
    }
}

/// A field path: the elements that lead from an object to a field.
///
/// ```
/// use windlass_schema::fields::{FieldPath, PathElement};
///
/// let container = PathElement::key([("name", "app".into())]);
/// let path = FieldPath::from_iter([
///     PathElement::field("spec"),
///     PathElement::field("containers"),
///     container,
///     PathElement::field("image"),
/// ]);
/// assert_eq!(path.to_string(), r#".spec.containers[name="app"].image"#);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct FieldPath(Vec<PathElement>);

impl FieldPath {
    /// Creates a path of members of objects, such as `["metadata", "labels"]`.
    pub fn of_fields<'n>(names: impl IntoIterator<Item = &'n str>) -> Self {
        names.into_iter().map(PathElement::field).collect()
    }
}

impl FromIterator<PathElement> for FieldPath {
    fn from_iter<T: IntoIterator<Item = PathElement>>(elements: T) -> Self {
        Self(elements.into_iter().collect())
    }
}

impl Deref for FieldPath {
    type Target = [PathElement];

    fn deref(&self) -> &[PathElement] {
        &self.0
    }
}

impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|element| element.fmt(f))
    }
}
