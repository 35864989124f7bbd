//! Filters of field sets: the fields that a request ignores or resets.

use super::field_set::{Entry, FieldSet};
use super::path_element::PathElement;

/// Selects the fields that are tracked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FieldFilter {
    /// All fields except these fields and the fields below.
    Exclude(FieldSet),
    /// Only the fields that match.
    Include(FieldPattern),
}

impl FieldFilter {
    /// Returns the fields of a set that the filter selects.
    pub fn apply(&self, fields: &FieldSet) -> FieldSet {
        match self {
            Self::Exclude(excluded) => fields.recursive_difference(excluded),
            Self::Include(pattern) => pattern.select(fields),
        }
    }
}

/// A pattern of field paths. An element of a pattern may match any path element.
///
/// ```
/// use windlass_schema::fields::{FieldPath, FieldPattern, FieldSet, PathElement, PatternElement};
///
/// let pattern = FieldPattern::prefix([
///     PatternElement::Any,
///     PatternElement::Is(PathElement::field("image")),
/// ]);
/// let set: FieldSet =
///     [["a", "image"], ["a", "name"]].into_iter().map(FieldPath::of_fields).collect();
/// assert_eq!(pattern.select(&set).to_string(), ".a.image");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum FieldPattern {
    /// Matches every path.
    #[default]
    All,
    /// Matches a path if a first element and the rest match. The first matching element decides; sorted.
    Members(Vec<(PatternElement, FieldPattern)>),
}

/// An element of a [`FieldPattern`]. [`Any`](Self::Any) is before all other elements.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PatternElement {
    /// Matches every element.
    Any,
    /// Matches this element.
    Is(PathElement),
}

impl PatternElement {
    fn matches(&self, element: &PathElement) -> bool {
        match self {
            Self::Any => true,
            Self::Is(expected) => expected == element,
        }
    }
}

impl FieldPattern {
    /// Returns a pattern that matches every path that starts with these elements.
    pub fn prefix<I>(elements: I) -> Self
    where
        I: IntoIterator<Item = PatternElement, IntoIter: DoubleEndedIterator>,
    {
        let wrap = |rest, element| Self::Members(vec![(element, rest)]);
        elements.into_iter().rev().fold(Self::All, wrap)
    }

    /// Returns a pattern that matches the paths that either pattern matches.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        let (Self::Members(mut members), Self::Members(others)) = (self, other) else { return Self::All };
        for (element, rest) in others {
            match members.binary_search_by(|(known, _)| known.cmp(&element)) {
                Ok(index) => {
                    let known = std::mem::replace(&mut members[index].1, Self::All);
                    members[index].1 = known.or(rest);
                }
                Err(index) => members.insert(index, (element, rest)),
            }
        }
        Self::Members(members)
    }

    /// Returns the fields of a set that match. A field above a match matches too.
    pub fn select(&self, fields: &FieldSet) -> FieldSet {
        let Self::Members(members) = self else { return fields.clone() };
        let entries = fields.entries().iter().filter_map(|entry| {
            let (_, rest) = members.iter().find(|(element, _)| element.matches(&entry.element))?;
            let below = rest.select(&entry.below);
            let element = || entry.element.clone();
            (entry.member || !below.is_empty()).then(|| Entry {
                element: element(),
                member: entry.member,
                below,
            })
        });
        FieldSet::of_sorted(entries.collect())
    }
}
