//! Values before and after an update that belong together.

use std::collections::HashMap;

use serde_json::Value as Json;

use crate::schema::{Form, ListKind, Schema};

/// A value after and before an update.
#[derive(Clone, Copy)]
struct Pair<'a> {
    new: &'a Json,
    old: &'a Json,
    schema: &'a Schema,
}

impl<'a> Pair<'a> {
    fn of(new: &'a Json, old: Option<&'a Json>, schema: &'a Schema) -> Option<Self> {
        old.map(|old| Self { new, old, schema })
    }

    /// Returns whether the values are equal. Elements of a list with keys are compared with the old elements of the same
    /// keys, in any order. An object with a field that the schema does not know equals no object.
    fn is_equal(self) -> bool {
        match (self.new, self.old) {
            (Json::Null, Json::Null) => true,
            (Json::Null, _) | (_, Json::Null) => false,
            (Json::Array(new), Json::Array(old)) => self.has_equal_items(new, old),
            (Json::Object(new), Json::Object(old)) => {
                let is_equal = |(name, new): (&String, &'a Json)| {
                    let pair = self
                        .schema
                        .schema_of_member(name)
                        .and_then(|schema| Self::of(new, old.get(name), schema));
                    pair.is_some_and(Self::is_equal)
                };
                new.len() == old.len() && new.iter().all(is_equal)
            }
            (new, old) => new == old,
        }
    }

    fn has_equal_items(self, new: &'a [Json], old: &'a [Json]) -> bool {
        let Form::List { items, kind: ListKind::Map(_) } = &self.schema.form else { return new == old };
        let known = by_keys(self.schema, Some(self.old));
        let is_equal = |item| Self::of(item, known.get(item), items).is_some_and(Self::is_equal);
        new.len() == old.len() && new.iter().all(is_equal)
    }
}

/// The position of a value in an update: its old value, or that of the nearest level that has one.
#[derive(Clone, Copy, Default)]
pub(super) struct Correlation<'a> {
    current: Option<Pair<'a>>,
    parent: Option<Pair<'a>>,
}

impl<'a> Correlation<'a> {
    pub(super) fn root(value: &'a Json, old: Option<&'a Json>, schema: &'a Schema) -> Self {
        Self { current: Pair::of(value, old, schema), parent: None }
    }

    /// Returns the position for the parts of `allOf`, which have no old values.
    pub(super) fn without_current(self) -> Self {
        Self { current: None, ..self }
    }

    /// Returns the position of a member of an object.
    pub(super) fn member(self, name: &str, value: &'a Json, schema: &'a Schema) -> Self {
        let Some(Pair { old, .. }) = self.current else { return self };
        if self.parent.is_none() && matches!(name, "apiVersion" | "kind") {
            return Self::default();
        }
        Self { current: Pair::of(value, old.get(name), schema), parent: self.current }
    }

    /// Returns the old elements of a list, for [`Self::item`].
    pub(super) fn old_items<'s>(self, schema: &'s Schema) -> OldItems<'s, 'a> {
        by_keys(schema, self.current.map(|pair| pair.old))
    }

    /// Returns the position of an element of a list.
    pub(super) fn item(self, item: &'a Json, old: &OldItems<'_, 'a>, schema: &'a Schema) -> Self {
        if self.current.is_none() {
            return self;
        }
        Self { current: Pair::of(item, old.get(item), schema), parent: self.current }
    }

    /// Returns whether the update leaves the value, or the nearest level with an old value, unchanged.
    pub(super) fn is_unchanged(self, last: &mut LastComparison<'a>) -> bool {
        self.current.or(self.parent).is_some_and(|pair| last.is_equal(pair))
    }
}

/// The last comparison of a value with its old value: many violations can have the same nearest level.
#[derive(Default)]
pub(super) struct LastComparison<'a>(Option<(Pair<'a>, bool)>);

impl<'a> LastComparison<'a> {
    fn is_equal(&mut self, pair: Pair<'a>) -> bool {
        if let Some((last, equal)) = self.0
            && std::ptr::eq(last.new, pair.new)
            && std::ptr::eq(last.old, pair.old)
        {
            return equal;
        }
        let equal = pair.is_equal();
        self.0 = Some((pair, equal));
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
