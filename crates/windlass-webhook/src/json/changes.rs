//! Changes between two states of an object, applied to a third state.

use std::collections::HashMap;

use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Map, Value};

/// The fields that identify elements of a list after a change, in order of preference.
const IDENTITIES: &[&str] =
    &["name", "key", "id", "type", "containerPort", "port", "mountPath", "ip", "topologyKey"];

/// The longest search for the counterparts of changed elements, in comparisons. Longer lists are compared by index.
const MAX_COMPARISONS: usize = 1_000_000;

/// Applies the changes between `before` and `after` to `original`.
///
/// `before` is the part of `original` that a Rust type kept. Unchanged parts of `original` that the type did
/// not keep stay. `keeps_order` returns whether the type [keeps the order](keeps_order) of all lists.
pub(crate) fn apply_changes(
    original: &Value,
    before: &Value,
    after: &Value,
    keeps_order: &dyn Fn() -> bool,
) -> Value {
    if before == after {
        return original.clone();
    }
    match (original, before, after) {
        (Value::Object(original), Value::Object(before), Value::Object(after)) => {
            Value::Object(apply_to_object(original, before, after, keeps_order))
        }
        (Value::Array(original), Value::Array(before), Value::Array(list)) => {
            match aligned(original, before, keeps_order) {
                Some(original) => Value::Array(apply_to_array(&original, before, list, keeps_order)),
                None => after.clone(),
            }
        }
        _ => after.clone(),
    }
}

/// Returns whether the Rust type `K` keeps the order of all lists of `original`: of an object with reversed lists, the type keeps
/// `before` with reversed lists. A type with a sorted set does not keep the order.
pub(crate) fn keeps_order<K: DeserializeOwned + Serialize>(original: &Value, before: &Value) -> bool {
    let kept = K::deserialize(reversed(original)).ok().and_then(|object| serde_json::to_value(object).ok());
    kept == Some(reversed(before))
}

/// Returns a value with the elements of all lists in the reverse order.
fn reversed(value: &Value) -> Value {
    match value {
        Value::Array(elements) => Value::Array(elements.iter().rev().map(reversed).collect()),
        Value::Object(fields) => {
            Value::Object(fields.iter().map(|(name, value)| (name.clone(), reversed(value))).collect())
        }
        value => value.clone(),
    }
}

fn apply_to_object(
    original: &Map<String, Value>,
    before: &Map<String, Value>,
    after: &Map<String, Value>,
    keeps_order: &dyn Fn() -> bool,
) -> Map<String, Value> {
    let mut result = original.clone();
    for (field, new) in after {
        match (original.get(field), before.get(field)) {
            (Some(original), Some(before)) => {
                result.insert(field.clone(), apply_changes(original, before, new, keeps_order));
            }
            // A default of the type that the object does not spell out.
            (None, Some(before)) if before == new => {}
            _ => {
                result.insert(field.clone(), new.clone());
            }
        }
    }
    for field in before.keys().filter(|field| !after.contains_key(*field)) {
        result.remove(field);
    }
    result
}

/// Returns the elements of `original` in the order of `before`, or `None` if the counterparts are not known.
///
/// A Rust type may reorder a list, such as a `BTreeSet`, and may write values in another form, such as times.
fn aligned<'a>(
    original: &'a [Value],
    before: &[Value],
    keeps_order: &dyn Fn() -> bool,
) -> Option<Vec<&'a Value>> {
    if original.len() != before.len() {
        return None;
    }
    by_identity(original, before).or_else(|| {
        let is_in_order = original.iter().zip(before).all(|(original, before)| agrees(original, before));
        (is_in_order || keeps_order()).then(|| original.iter().collect())
    })
}

/// Returns the elements of `original` in the order of `before`, if each element has a distinct identity.
fn by_identity<'a>(original: &'a [Value], before: &[Value]) -> Option<Vec<&'a Value>> {
    let mut elements = HashMap::with_capacity(original.len());
    for element in original {
        if elements.insert(identity(element)?, element).is_some() {
            return None;
        }
    }
    before.iter().map(|element| elements.remove(&identity(element)?)).collect()
}

/// Returns whether `before` may be the part of `original` that a Rust type kept. Objects are compared by the common fields.
fn agrees(original: &Value, before: &Value) -> bool {
    match (original, before) {
        (Value::Object(original), Value::Object(before)) => before
            .iter()
            .all(|(field, before)| original.get(field).is_none_or(|original| agrees(original, before))),
        (Value::Array(original), Value::Array(before)) => {
            original.len() == before.len()
                && original.iter().zip(before).all(|(original, before)| agrees(original, before))
        }
        (Value::Number(original), Value::Number(before)) => {
            original == before || original.as_f64() == before.as_f64()
        }
        (Value::Null, _) => true,
        _ => original == before,
    }
}

fn apply_to_array(
    original: &[&Value],
    before: &[Value],
    after: &[Value],
    keeps_order: &dyn Fn() -> bool,
) -> Vec<Value> {
    let shorter = before.len().min(after.len());
    let prefix = before.iter().zip(after).take_while(|(old, new)| old == new).count();
    let ends = before.iter().rev().zip(after.iter().rev());
    let suffix = ends.take_while(|(old, new)| old == new).count().min(shorter - prefix);
    let (old, new) = (prefix..before.len() - suffix, prefix..after.len() - suffix);
    let counterparts = counterparts(&before[old.clone()], &after[new.clone()]);
    let keep = |elements: &[&Value]| elements.iter().copied().cloned().collect::<Vec<_>>();
    let mut result = keep(&original[..prefix]);
    for (element, counterpart) in after[new].iter().zip(counterparts) {
        result.push(match counterpart {
            Some(at) => {
                apply_changes(original[old.start + at], &before[old.start + at], element, keeps_order)
            }
            None => element.clone(),
        });
    }
    result.extend(keep(&original[old.end..]));
    result
}

/// Returns the index of the old element that each new element was made from.
fn counterparts(old: &[Value], new: &[Value]) -> Vec<Option<usize>> {
    let mut free = vec![true; old.len()];
    let mut found = vec![None; new.len()];
    if old.len().saturating_mul(new.len()) <= MAX_COMPARISONS {
        let relations: [fn(&Value, &Value) -> bool; 2] = [|old, new| old == new, same_element];
        for is_same in relations {
            for (new, found) in new.iter().zip(&mut found).filter(|(_, found)| found.is_none()) {
                *found = (0..old.len()).find(|at| free[*at] && is_same(&old[*at], new));
                if let Some(at) = *found {
                    free[at] = false;
                }
            }
        }
    }
    if old.len() == new.len() {
        for (at, found) in found.iter_mut().enumerate() {
            let anonymous = identity(&old[at]).is_none() && identity(&new[at]).is_none();
            if found.is_none() && free[at] && anonymous {
                *found = Some(at);
            }
        }
    }
    found
}

/// Returns whether two elements of a list have the same identity, such as the same `name`.
pub(crate) fn same_element(one: &Value, other: &Value) -> bool {
    identity(one).is_some_and(|identity| Some(identity) == self::identity(other))
}

fn identity(element: &Value) -> Option<(&'static str, &Value)> {
    let element = element.as_object()?;
    IDENTITIES.iter().find_map(|field| {
        let value = element.get(*field)?;
        (value.is_string() || value.is_number()).then_some((*field, value))
    })
}
