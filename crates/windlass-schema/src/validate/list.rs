//! Lists of type `set` and `map` contain no duplicates.

use serde_json::{Map, Value};

use crate::FieldError;
use crate::error_list::ErrorList;
use crate::graph::{ListType, NodeRef};
use crate::path::Path;

pub(super) fn check(schema: NodeRef<'_>, object: &Value) -> Vec<FieldError> {
    let mut errors = ErrorList::new();
    visit(schema, object, Path::Root(""), &mut errors);
    errors.into_vec()
}

fn visit(schema: NodeRef<'_>, value: &Value, path: Path<'_>, errors: &mut ErrorList) {
    match value {
        Value::Object(members) => {
            for (name, value) in members {
                if let Some(additional) = schema.additional() {
                    visit(additional, value, path.key(name), errors);
                }
                if let Some(property) = schema.property(name) {
                    visit(property, value, path.child(name), errors);
                }
            }
        }
        Value::Array(items) => {
            match schema.list_type() {
                Some(ListType::Set) => set(items, path, errors),
                Some(ListType::Map) => map(schema, items, path, errors),
                _ => {}
            }
            let Some(inner) = schema.items() else { return };
            for (index, item) in items.iter().enumerate() {
                visit(inner, item, path.index(index), errors);
            }
        }
        _ => {}
    }
}

fn set(items: &[Value], path: Path<'_>, errors: &mut ErrorList) {
    for index in second_occurrences(items) {
        errors.push(FieldError::duplicate(path.index(index), items[index].clone()));
    }
}

fn map(schema: NodeRef<'_>, items: &[Value], path: Path<'_>, errors: &mut ErrorList) {
    if let Some(index) = items.iter().position(|item| !item.is_object() && !item.is_null()) {
        let detail = "must be an object for an array of list-type map";
        errors.push(FieldError::invalid(path.index(index), items[index].clone(), detail));
        return;
    }
    let keys: Vec<Value> = items.iter().map(|item| key(schema, item)).collect();
    for index in second_occurrences(&keys) {
        errors.push(FieldError::duplicate(path.index(index), keys[index].clone()));
    }
}

fn key(schema: NodeRef<'_>, item: &Value) -> Value {
    let given =
        schema.map_keys().filter_map(|key| item.get(key).map(|value| (key.to_owned(), value.clone())));
    Value::Object(given.collect::<Map<_, _>>())
}

/// Returns the indexes where a value occurs for the second time; further occurrences are not reported.
fn second_occurrences(values: &[Value]) -> Vec<usize> {
    let mut order: Vec<(String, usize)> =
        values.iter().enumerate().map(|(index, value)| (value.to_string(), index)).collect();
    order.sort();
    let mut seconds: Vec<usize> =
        order.chunk_by(|a, b| a.0 == b.0).filter_map(|same| same.get(1)).map(|(_, index)| *index).collect();
    seconds.sort_unstable();
    seconds
}
