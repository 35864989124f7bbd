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

    /// Returns the old elements of a list, for [`Self::item`].
    pub(super) fn old_items<'s>(self, schema: &'s Schema) -> OldItems<'s, 'a> {
        by_keys(schema, self.current.map(|(_, old)| old))
    }

    /// Returns the position of an element of a list.
    pub(super) fn item(self, item: &'a Json, old: &OldItems<'_, 'a>) -> Self {
        if self.current.is_none() {
            return self;
        }
        Self { current: old.get(item).map(|old| (item, old)), parent: self.current }
    }

    /// Returns whether the update leaves the value, or the nearest level with an old value, unchanged.
    pub(super) fn is_unchanged(self, last: &mut LastComparison<'a>) -> bool {
        self.current.or(self.parent).is_some_and(|(new, old)| last.are_equal(new, old))
    }
}

/// The last comparison of a value with its old value: many violations can have the same nearest level.
#[derive(Default)]
pub(super) struct LastComparison<'a>(Option<(&'a Json, &'a Json, bool)>);

impl<'a> LastComparison<'a> {
    fn are_equal(&mut self, new: &'a Json, old: &'a Json) -> bool {
        if let Some((last_new, last_old, equal)) = self.0
            && std::ptr::eq(last_new, new)
            && std::ptr::eq(last_old, old)
        {
            return equal;
        }
        let equal = new == old;
        self.0 = Some((new, old, equal));
        equal
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
