//! The path elements of list elements.

use serde_json::Value;

use super::atom::ListAtom;
use super::path_element::PathElement;
use crate::go::go_quote;

/// Returns the path element of an element of an associative list.
pub(super) fn list_key(list: ListAtom<'_>, item: &Value) -> Result<PathElement, String> {
    if !list.associative {
        return Err("invalid indexing of non-associative list".to_owned());
    }
    if list.keys().next().is_some() { keyed(list, item) } else { in_set(item) }
}

/// Returns the key of an object: its key fields, or their defaults. A key field that has neither is left out.
fn keyed(list: ListAtom<'_>, item: &Value) -> Result<PathElement, String> {
    let members = match item {
        Value::Object(members) => members,
        Value::Null => return Err("associative list with keys may not have a null element".to_owned()),
        _ => return Err("associative list with keys may not have non-map elements".to_owned()),
    };
    let mut key: Vec<(Box<str>, Value)> = Vec::with_capacity(2);
    for name in list.keys() {
        let value = match members.get(name) {
            Some(value) => Some(value),
            None => match list.element().atom().map {
                Some(map) => map.default_of(name),
                None => {
                    let problem = "associative list may not have non-map types";
                    return Err(format!("couldn't find default value for {name}: {problem}"));
                }
            },
        };
        key.extend(value.map(|value| (name.into(), value.clone())));
    }
    if key.is_empty() {
        let names: Vec<String> = list.keys().map(go_quote).collect();
        return Err(format!(
            "associative list with keys has an element that omits all key fields [{}] (and doesn't have default \
             values for any key fields)",
            names.join(" ")
        ));
    }
    key.sort_by(|(left, _), (right, _)| left.cmp(right));
    Ok(PathElement::Key(key.into()))
}

fn in_set(item: &Value) -> Result<PathElement, String> {
    let problem = match item {
        Value::Object(_) => "associative list without keys has an element that's a map type",
        Value::Array(_) => "not supported: associative list with lists as elements",
        Value::Null => "associative list without keys has an element that's an explicit null",
        scalar => return Ok(PathElement::value(scalar.clone())),
    };
    Err(problem.to_owned())
}

/// The elements of a list with their path elements.
pub(super) struct Keyed<'v> {
    /// The elements in the order of the list. Elements without a path element are left out.
    pub(super) items: Vec<(PathElement, &'v Value)>,
    /// The positions in `items`, sorted by path element, then position.
    sorted: Vec<usize>,
}

impl<'v> Keyed<'v> {
    /// Finds the path elements; calls `problem` with the index of each element that has none.
    pub(super) fn new(
        list: ListAtom<'_>,
        values: &'v [Value],
        mut problem: impl FnMut(usize, String),
    ) -> Self {
        let mut items = Vec::with_capacity(values.len());
        for (index, value) in values.iter().enumerate() {
            match list_key(list, value) {
                Ok(element) => items.push((element, value)),
                Err(message) => problem(index, message),
            }
        }
        let mut sorted: Vec<usize> = (0..items.len()).collect();
        sorted.sort_by(|&left, &right| items[left].0.cmp(&items[right].0));
        Self { items, sorted }
    }

    /// Returns the elements by key: the positions of all elements with one key are one group. Sorted by key.
    pub(super) fn groups(&self) -> impl Iterator<Item = &[usize]> {
        self.sorted.chunk_by(|&left, &right| self.items[left].0 == self.items[right].0)
    }

    pub(super) fn key(&self, group: &[usize]) -> &PathElement {
        &self.items[group[0]].0
    }
}
