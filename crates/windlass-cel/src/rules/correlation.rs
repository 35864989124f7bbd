//! Values before and after an update that belong together.

use std::collections::HashMap;

use serde_json::Value as Json;

use crate::schema::{Form, ListKind, Schema};

/// The position of a value in an update: its old value, or that of the nearest level that has one.
#[derive(Clone, Copy, Default)]
pub(super) struct Correlation<'a> {
    /// The value after and before the update.
    current: Option<(&'a Json, &'a Json)>,
    parent: Option<(&'a Json, &'a Json)>,
}

impl<'a> Correlation<'a> {
    pub(super) fn root(value: &'a Json, old: Option<&'a Json>) -> Self {
        Self { current: old.map(|old| (value, old)), parent: None }
    }

    /// Returns the position for the parts of `allOf`, which have no old values.
    pub(super) fn without_current(self) -> Self {
        Self { current: None, ..self }
    }

    /// Returns the position of a member of an object.
    pub(super) fn member(self, name: &str, value: &'a Json) -> Self {
        let Some((_, old)) = self.current else { return self };
        if self.parent.is_none() && matches!(name, "apiVersion" | "kind") {
            return Self::default();
        }
        Self { current: old.get(name).map(|old| (value, old)), parent: self.current }
    }

    /// Returns the position of an element of a list.
    pub(super) fn item(self, item: &'a Json, schema: &Schema) -> Self {
        let Some((_, old)) = self.current else { return self };
        let current = by_keys(schema, Some(old)).get(item).map(|old| (item, old));
        Self { current, parent: self.current }
    }

    /// Returns whether the update leaves the value, or the nearest level with an old value, unchanged.
    pub(super) fn is_unchanged(self) -> bool {
        self.current.or(self.parent).is_some_and(|(new, old)| new == old)
    }
}

/// The elements of a list before an update, by their keys.
#[derive(Default)]
pub(super) struct OldItems<'s, 'a> {
    keys: &'s [Box<str>],
    items: HashMap<String, &'a Json>,
}

/// Returns the elements of a list whose elements have keys. Other lists have none.
pub(super) fn by_keys<'s, 'a>(schema: &'s Schema, old: Option<&'a Json>) -> OldItems<'s, 'a> {
    let (Form::List { kind: ListKind::Map(keys), .. }, Some(Json::Array(old))) = (&schema.form, old) else {
        return OldItems::default();
    };
    let mut items = HashMap::new();
    for item in old {
        if let Some(key) = key_of(keys, item) {
            items.entry(key).or_insert(item);
        }
    }
    OldItems { keys, items }
}

impl<'a> OldItems<'_, 'a> {
    pub(super) fn get(&self, item: &Json) -> Option<&'a Json> {
        if self.items.is_empty() {
            return None;
        }
        self.items.get(&key_of(self.keys, item)?).copied()
    }
}

fn key_of(keys: &[Box<str>], item: &Json) -> Option<String> {
    let item = item.as_object()?;
    let mut text = String::new();
    for key in keys {
        text.push_str(&item.get(&**key).unwrap_or(&Json::Null).to_string());
        text.push(',');
    }
    Some(text)
}
