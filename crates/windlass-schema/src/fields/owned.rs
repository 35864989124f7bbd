//! The fields that a value sets.

use serde_json::Value;

use super::atom::{Form, TypeRef};
use super::error::TypedErrors;
use super::field_set::{Entry, FieldSet};
use super::list_key::Keyed;
use super::path_element::PathElement;
use super::problem::{Problems, Walk};
use crate::graph::NodeRef;

impl FieldSet {
    /// Returns the fields that a value sets: its leaves, which include atomic lists and maps, the elements of
    /// associative lists, and the entries of maps. An apply of the value owns these fields.
    ///
    /// ```
    /// use serde_json::json;
    /// use windlass_schema::fields::FieldSet;
    ///
    /// let schema = windlass_schema::Catalog::builtin().schema("", "v1", "Pod").unwrap();
    /// let pod = json!({"spec": {"containers": [{"name": "app", "command": ["sleep", "9"]}]}});
    /// let fields = FieldSet::of(schema.root(), &pod).unwrap();
    /// assert_eq!(fields.to_string(), r#".spec.containers[name="app"]
    /// .spec.containers[name="app"].command
    /// .spec.containers[name="app"].name"#);
    /// ```
    ///
    /// # Errors
    /// If a field is not declared in the schema.
    pub fn of(schema: NodeRef<'_>, value: &Value) -> Result<Self, TypedErrors> {
        let mut problems = Problems::default();
        let (_, set) = visit(TypeRef::root(schema), value, &Walk::ROOT, &mut problems);
        problems.into_result(set)
    }
}

/// Returns whether the value as a whole is a field, and the fields inside.
fn visit(kind: TypeRef<'_>, value: &Value, walk: &Walk<'_>, problems: &mut Problems) -> (bool, FieldSet) {
    if problems.too_deep(walk) {
        return (false, FieldSet::default());
    }
    match (kind.atom().narrow(value).form(), value) {
        (Form::Scalar(_), _) => (true, FieldSet::default()),
        (Form::List(list), _) if !list.associative => (true, FieldSet::default()),
        (Form::Map(map), _) if map.atomic => (true, FieldSet::default()),
        (Form::List(list), Value::Array(items)) => {
            let keyed = Keyed::new(list, items, |_, _| {});
            let entries = keyed.groups().map(|group| {
                // Duplicates are owned as a whole, not field by field.
                let below = match group {
                    &[only] => visit(list.element(), keyed.items[only].1, &walk.index(only), problems).1,
                    _ => FieldSet::default(),
                };
                Entry { element: keyed.key(group).to_element(), member: true, below }
            });
            (false, FieldSet::of_sorted(entries.collect()))
        }
        (Form::Map(map), Value::Object(members)) => {
            let entries = members.iter().filter_map(|(name, value)| {
                let (kind, declared) = map.member(name);
                let (whole, below) = visit(kind, value, &walk.field(name), problems);
                let empty = value.is_null() || value.as_object().is_some_and(serde_json::Map::is_empty);
                let member = whole || empty || !declared;
                (member || !below.is_empty()).then(|| Entry {
                    element: PathElement::field(name),
                    member,
                    below,
                })
            });
            (false, FieldSet::of_entries(entries.collect()))
        }
        (Form::List(_) | Form::Map(_), _) => (false, FieldSet::default()),
        (Form::None, _) => {
            problems.add(&Walk::ROOT, || "schema error: invalid atom: inlined".to_owned());
            (false, FieldSet::default())
        }
    }
}
