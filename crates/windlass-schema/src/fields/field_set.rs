//! Sets of field paths.

use std::fmt;
use std::sync::Arc;

use super::path_element::{FieldPath, PathElement};

mod algebra;
mod paths;

/// A set of field paths: the content of `fieldsV1` of a field manager.
///
/// A path is in the set by itself: `.spec` does not imply `.spec.replicas`, and `.spec.replicas` does not
/// imply `.spec`. Clones and results of set operations share contents.
///
/// ```
/// use windlass_schema::fields::{FieldPath, FieldSet};
///
/// let mut set = FieldSet::default();
/// set.insert(&FieldPath::of_fields(["spec", "replicas"]));
/// assert!(set.contains(&FieldPath::of_fields(["spec", "replicas"])));
/// assert!(!set.contains(&FieldPath::of_fields(["spec"])));
/// assert_eq!(set.to_v1(), serde_json::json!({"f:spec": {"f:replicas": {}}}));
/// ```
#[derive(Clone, Default, PartialEq, Eq)]
pub struct FieldSet {
    /// The first elements of the paths, sorted; `None` for an empty set.
    entries: Option<Arc<Vec<Entry>>>,
}

/// The first element of paths in a set.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) element: PathElement,
    /// True if the element alone is a path of the set. If not, `below` is not empty.
    pub(super) member: bool,
    /// The rest of the longer paths.
    pub(super) below: FieldSet,
}

impl Entry {
    fn is_empty(&self) -> bool {
        !self.member && self.below.is_empty()
    }
}

impl FieldSet {
    /// Creates a set of sorted entries. No entry may be empty.
    pub(super) fn of_sorted(entries: Vec<Entry>) -> Self {
        debug_assert!(entries.is_sorted_by(|left, right| left.element < right.element));
        debug_assert!(entries.iter().all(|entry| !entry.is_empty()));
        Self { entries: (!entries.is_empty()).then(|| Arc::new(entries)) }
    }

    /// Creates a set of entries in any order.
    pub(super) fn of_entries(mut entries: Vec<Entry>) -> Self {
        let ordered = |left: &Entry, right: &Entry| left.element < right.element;
        if !entries.is_sorted_by(ordered) {
            entries.sort_by(|left, right| left.element.cmp(&right.element));
            entries.dedup_by(|next, kept| {
                let same = next.element == kept.element;
                if same {
                    kept.member |= next.member;
                    kept.below = kept.below.union(&next.below);
                }
                same
            });
        }
        Self::of_sorted(entries)
    }

    pub(super) fn entries(&self) -> &[Entry] {
        self.entries.as_deref().map_or(&[], Vec::as_slice)
    }

    /// Returns the entries, or the set if another set shares the entries.
    pub(super) fn into_entries(self) -> Result<Vec<Entry>, Self> {
        let Some(entries) = self.entries else { return Ok(Vec::new()) };
        Arc::try_unwrap(entries).map_err(|shared| Self { entries: Some(shared) })
    }

    pub(super) fn find(&self, element: &PathElement) -> Option<&Entry> {
        let entries = self.entries();
        entries.binary_search_by(|entry| entry.element.cmp(element)).ok().map(|index| &entries[index])
    }

    /// Returns whether an element alone is a path of the set.
    pub(super) fn has_member(&self, element: &PathElement) -> bool {
        self.find(element).is_some_and(|entry| entry.member)
    }

    /// Returns the rest of the paths that start with an element and are longer.
    pub(super) fn below(&self, element: &PathElement) -> Option<&Self> {
        self.find(element).map(|entry| &entry.below).filter(|below| !below.is_empty())
    }

    /// Returns the entry of a member of an object.
    pub(super) fn field(&self, name: &str) -> Option<&Entry> {
        let entries = self.entries();
        let found = entries.binary_search_by(|entry| match &entry.element {
            PathElement::Field(field) => (**field).cmp(name),
            _ => std::cmp::Ordering::Greater,
        });
        found.ok().map(|index| &entries[index])
    }

    /// Returns whether the set has no paths.
    pub fn is_empty(&self) -> bool {
        self.entries.is_none()
    }

    /// Returns the number of paths.
    pub fn len(&self) -> usize {
        self.entries().iter().map(|entry| usize::from(entry.member) + entry.below.len()).sum()
    }

    /// Returns whether a path is in the set.
    pub fn contains(&self, path: &[PathElement]) -> bool {
        let Some((last, parents)) = path.split_last() else { return false };
        let mut set = self;
        for element in parents {
            let Some(below) = set.below(element) else { return false };
            set = below;
        }
        set.has_member(last)
    }

    /// Inserts a path. The empty path is ignored: an object as a whole has no owner.
    pub fn insert(&mut self, path: &[PathElement]) {
        let mut set = self;
        for (depth, element) in path.iter().enumerate() {
            let entries = Arc::make_mut(set.entries.get_or_insert_default());
            let index =
                entries.binary_search_by(|entry| entry.element.cmp(element)).unwrap_or_else(|index| {
                    let entry = Entry { element: element.clone(), member: false, below: Self::default() };
                    entries.insert(index, entry);
                    index
                });
            entries[index].member |= depth + 1 == path.len();
            set = &mut entries[index].below;
        }
    }

    /// Returns the paths: of each object or list, first the members, then the paths below the members.
    pub fn iter(&self) -> impl Iterator<Item = FieldPath> {
        paths::Paths::new(self)
    }
}

impl<'p> FromIterator<&'p [PathElement]> for FieldSet {
    fn from_iter<T: IntoIterator<Item = &'p [PathElement]>>(paths: T) -> Self {
        let mut set = Self::default();
        paths.into_iter().for_each(|path| set.insert(path));
        set
    }
}

impl FromIterator<FieldPath> for FieldSet {
    fn from_iter<T: IntoIterator<Item = FieldPath>>(paths: T) -> Self {
        let mut set = Self::default();
        paths.into_iter().for_each(|path| set.insert(&path));
        set
    }
}

impl fmt::Display for FieldSet {
    /// Writes the paths, one a line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, path) in self.iter().enumerate() {
            write!(f, "{}{path}", if index == 0 { "" } else { "\n" })?;
        }
        Ok(())
    }
}

impl fmt::Debug for FieldSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::new();
        self.write_v1(&mut text);
        f.write_str(&text)
    }
}
