//! The keys of list elements.

use std::cmp::Ordering;

use serde_json::Value;

use super::atom::ListAtom;
use super::path_element::PathElement;
use super::value;
use crate::go::go_quote;

/// The key of a list element, borrowed from the element and the schema. The order is the order of the path
/// elements.
#[derive(Clone, Debug)]
pub(super) enum ListKey<'v> {
    /// A single key field.
    Field(&'v str, &'v Value),
    /// Several key fields, sorted by name.
    Fields(Vec<(&'v str, &'v Value)>),
    /// The element of a set.
    Value(&'v Value),
}

impl<'v> ListKey<'v> {
    /// Returns the key of an element of an associative list.
    pub(super) fn of(list: ListAtom<'v>, item: &'v Value) -> Result<Self, String> {
        if !list.associative {
            return Err("invalid indexing of non-associative list".to_owned());
        }
        let mut names = list.keys();
        let Some(first) = names.next() else { return in_set(item) };
        let first = key_field(list, first, item)?;
        let mut key: Vec<(&str, &Value)> = Vec::new();
        for name in names {
            key.extend(key_field(list, name, item)?);
        }
        match (first, key.is_empty()) {
            (Some((name, value)), true) => Ok(Self::Field(name, value)),
            (None, true) => Err(without_key(list)),
            (first, false) => {
                key.extend(first);
                key.sort_by_key(|(name, _)| *name);
                Ok(Self::Fields(key))
            }
        }
    }

    pub(super) fn to_element(&self) -> PathElement {
        match self {
            Self::Field(name, value) => PathElement::Key([((*name).into(), (*value).clone())].into()),
            Self::Fields(fields) => PathElement::Key(
                fields.iter().map(|(name, value)| ((*name).into(), (*value).clone())).collect(),
            ),
            Self::Value(value) => PathElement::value((*value).clone()),
        }
    }
}

impl Ord for ListKey<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Value(left), Self::Value(right)) => value::compare(left, right),
            (Self::Value(_), _) => Ordering::Greater,
            (_, Self::Value(_)) => Ordering::Less,
            (Self::Field(name, left), Self::Field(other, right)) => {
                compare_fields(&[(name, left)], &[(other, right)])
            }
            (Self::Field(name, left), Self::Fields(right)) => compare_fields(&[(name, left)], right),
            (Self::Fields(left), Self::Field(name, right)) => compare_fields(left, &[(name, right)]),
            (Self::Fields(left), Self::Fields(right)) => compare_fields(left, right),
        }
    }
}

fn compare_fields(left: &[(&str, &Value)], right: &[(&str, &Value)]) -> Ordering {
    for ((name, value), (other_name, other)) in left.iter().zip(right) {
        let order = name.cmp(other_name).then_with(|| value::compare(value, other));
        if order.is_ne() {
            return order;
        }
    }
    left.len().cmp(&right.len())
}

impl PartialOrd for ListKey<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for ListKey<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for ListKey<'_> {}

/// Returns a key field or its default. A key field without a value and without a default is left out.
fn key_field<'v>(
    list: ListAtom<'v>,
    name: &'v str,
    item: &'v Value,
) -> Result<Option<(&'v str, &'v Value)>, String> {
    let members = match item {
        Value::Object(members) => members,
        Value::Null => return Err("associative list with keys may not have a null element".to_owned()),
        _ => return Err("associative list with keys may not have non-map elements".to_owned()),
    };
    if let Some(value) = members.get(name) {
        return Ok(Some((name, value)));
    }
    let Some(map) = list.element().atom().map else {
        let problem = "associative list may not have non-map types";
        return Err(format!("couldn't find default value for {name}: {problem}"));
    };
    Ok(map.default_of(name).map(|value| (name, value)))
}

fn without_key(list: ListAtom<'_>) -> String {
    let names: Vec<String> = list.keys().map(go_quote).collect();
    format!(
        "associative list with keys has an element that omits all key fields [{}] (and doesn't have default values for \
         any key fields)",
        names.join(" ")
    )
}

fn in_set(item: &Value) -> Result<ListKey<'_>, String> {
    let problem = match item {
        Value::Object(_) => "associative list without keys has an element that's a map type",
        Value::Array(_) => "not supported: associative list with lists as elements",
        Value::Null => "associative list without keys has an element that's an explicit null",
        scalar => return Ok(ListKey::Value(scalar)),
    };
    Err(problem.to_owned())
}

/// The elements of a list, with keys.
pub(super) struct Keyed<'v> {
    /// The elements in the order of the list. Elements without a key are left out.
    pub(super) items: Vec<(ListKey<'v>, &'v Value)>,
    /// The positions in `items`, sorted by key, then position.
    sorted: Vec<usize>,
}

impl<'v> Keyed<'v> {
    /// Finds the keys; calls `problem` with the index of each element that has none.
    pub(super) fn new(
        list: ListAtom<'v>,
        values: &'v [Value],
        mut problem: impl FnMut(usize, String),
    ) -> Self {
        let mut items = Vec::with_capacity(values.len());
        for (index, value) in values.iter().enumerate() {
            match ListKey::of(list, value) {
                Ok(key) => items.push((key, value)),
                Err(message) => problem(index, message),
            }
        }
        let mut sorted: Vec<usize> = (0..items.len()).collect();
        sorted.sort_by(|&left, &right| items[left].0.cmp(&items[right].0));
        Self { items, sorted }
    }

    /// Returns the elements by key: a group has the positions of all elements with one key. Sorted by key.
    pub(super) fn groups(&self) -> impl Iterator<Item = &[usize]> {
        self.sorted.chunk_by(|&left, &right| self.items[left].0 == self.items[right].0)
    }

    pub(super) fn key(&self, group: &[usize]) -> &ListKey<'v> {
        &self.items[group[0]].0
    }

    /// Returns whether both lists have the same keys in the same order, each once.
    pub(super) fn is_parallel(&self, other: &Self) -> bool {
        let same = || self.items.iter().zip(&other.items).all(|((left, _), (right, _))| left == right);
        self.items.len() == other.items.len() && same() && self.groups().count() == self.items.len()
    }
}
