//! Removes fields from objects, and extracts fields.

use serde_json::{Map, Value};

use super::atom::{Form, ListAtom, MapAtom, TypeRef};
use super::field_set::FieldSet;
use super::list_key::ListKey;
use super::path_element::PathElement;
use super::problem::MAX_DEPTH;
use crate::graph::NodeRef;

/// Returns the value without the given fields and list elements. A list or a map without any remaining
/// element is `null`.
///
/// ```
/// use serde_json::json;
/// use windlass_schema::fields::{FieldPath, FieldSet, remove};
///
/// let schema = windlass_schema::Catalog::builtin().schema("", "v1", "ConfigMap").unwrap();
/// let fields: FieldSet = [FieldPath::of_fields(["data", "a"])].into_iter().collect();
/// let object = json!({"data": {"a": "1", "b": "1"}});
/// assert_eq!(remove(schema.root(), &object, &fields), json!({"data": {"b": "1"}}));
/// ```
pub fn remove(schema: NodeRef<'_>, value: &Value, fields: &FieldSet) -> Value {
    visit(TypeRef::root(schema), value, fields, false, 0)
}

/// Returns only the given fields and list elements of a value. With `with_keys`, the list elements keep their
/// key fields even if `fields` does not name the key fields.
pub fn extract(schema: NodeRef<'_>, value: &Value, fields: &FieldSet, with_keys: bool) -> Value {
    let kind = TypeRef::root(schema);
    if let Some(owned) = with_keys.then(|| FieldSet::of(schema, value)).and_then(Result::ok) {
        let fields = fields.union(&key_fields(&fields.intersection(&owned)));
        return visit(kind, value, &fields, true, 0);
    }
    visit(kind, value, fields, true, 0)
}

/// Returns the paths of the key fields of all list elements that are in a set or on the way to a path of the
/// set.
fn key_fields(fields: &FieldSet) -> FieldSet {
    let mut out = FieldSet::default();
    let mut paths: Vec<PathElement> = Vec::new();
    add_key_fields(fields, &mut paths, &mut out);
    out
}

fn add_key_fields(fields: &FieldSet, path: &mut Vec<PathElement>, out: &mut FieldSet) {
    for entry in fields.entries() {
        path.push(entry.element.clone());
        if let PathElement::Key(key) = &entry.element {
            for (name, _) in &**key {
                path.push(PathElement::field(name));
                out.insert(path);
                path.pop();
            }
        }
        add_key_fields(&entry.below, path, out);
        path.pop();
    }
}

fn visit(kind: TypeRef<'_>, value: &Value, fields: &FieldSet, extract: bool, depth: usize) -> Value {
    if depth > MAX_DEPTH {
        return Value::Null;
    }
    let whole = || if extract { value.clone() } else { Value::Null };
    match (kind.atom().narrow(value).form(), value) {
        (Form::Scalar(_), _) => value.clone(),
        (Form::List(list), Value::Array(items)) if list.associative && !items.is_empty() => {
            visit_list(list, items, fields, extract, depth)
        }
        (Form::Map(map), Value::Object(members)) if !map.atomic && !members.is_empty() => {
            visit_map(map, members, fields, extract, depth)
        }
        (Form::List(_), Value::Array(_)) | (Form::Map(_), Value::Object(_)) => whole(),
        _ => Value::Null,
    }
}

fn visit_list(list: ListAtom<'_>, items: &[Value], fields: &FieldSet, extract: bool, depth: usize) -> Value {
    let kept = items.iter().filter_map(|item| {
        let key = ListKey::of(list, item).ok();
        let entry = key.and_then(|key| fields.find(&key.to_element()));
        let member = entry.is_some_and(|entry| entry.member);
        let below = entry.map(|entry| &entry.below).filter(|below| !below.is_empty());
        match below {
            _ if member && !extract => None,
            Some(below) => Some(visit(list.element(), item, below, extract, depth + 1)),
            None => (member || !extract).then(|| item.clone()),
        }
    });
    let kept: Vec<Value> = kept.collect();
    if kept.is_empty() { Value::Null } else { kept.into() }
}

fn visit_map(
    map: MapAtom<'_>,
    members: &Map<String, Value>,
    fields: &FieldSet,
    extract: bool,
    depth: usize,
) -> Value {
    let kept = members.iter().filter_map(|(name, value)| {
        let entry = fields.field(name);
        let member = entry.is_some_and(|entry| entry.member);
        let below = entry.map(|entry| &entry.below).filter(|below| !below.is_empty());
        let visit = |fields| visit(map.member(name).0, value, fields, extract, depth + 1);
        let value = match below {
            _ if member && !extract => return None,
            // structured-merge-diff extracts a field that is named itself with the fields of its parent.
            _ if member => visit(fields),
            Some(below) => visit(below),
            None if extract => return None,
            None => value.clone(),
        };
        Some((name.clone(), value))
    });
    let kept: Map<String, Value> = kept.collect();
    if kept.is_empty() { Value::Null } else { kept.into() }
}
