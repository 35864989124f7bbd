//! The elements of a list before an update, by map keys.

use std::collections::HashMap;

use serde_json::Value;

use crate::graph::{ListType, NodeRef};

/// The elements of a list of type `map` before an update. Elements of other lists have no keys.
pub(super) struct OldItems<'s, 'o> {
    schema: NodeRef<'s>,
    by_key: HashMap<String, &'o Value>,
}

impl<'s, 'o> OldItems<'s, 'o> {
    /// Returns `None` if the elements have no keys, or the old value is not a list.
    pub(super) fn of(schema: NodeRef<'s>, old: &'o Value) -> Option<Self> {
        if schema.list_type() != Some(ListType::Map) {
            return None;
        }
        let items = old.as_array()?;
        let mut by_key = HashMap::with_capacity(items.len());
        for item in items {
            if let Some(key) = key(schema, item) {
                by_key.entry(key).or_insert(item);
            }
        }
        Some(Self { schema, by_key })
    }

    /// Returns the first old element with the keys of `item`.
    pub(super) fn get(&self, item: &Value) -> Option<&'o Value> {
        self.by_key.get(&key(self.schema, item)?).copied()
    }
}

/// Returns the values of the map keys as JSON, or `None` unless all are there and scalars.
fn key(schema: NodeRef<'_>, item: &Value) -> Option<String> {
    let mut text = String::new();
    for name in schema.map_keys() {
        let value = item.get(name)?;
        if value.is_null() || value.is_array() || value.is_object() {
            return None;
        }
        text.push_str(&value.to_string());
        text.push(',');
    }
    Some(text)
}
