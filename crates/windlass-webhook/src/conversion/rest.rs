//! The values of a version that another version cannot express, kept in an annotation.

use serde_json::{Map, Value, json};

use crate::{denial::BoxError, json::same_element};

/// The prefix of the annotations. The version of the values follows.
const PREFIX: &str = "conversion.windlass.dev/";

/// The largest annotation. All annotations of an object may have 256 KiB.
const MAX_BYTES: usize = 128 << 10;

/// Writes into `converted` the values of `source` that `back`, the object converted there and back again, does not have.
///
/// `normal` is the JSON that the source's Rust type writes, with the type's defaults.
pub(super) fn keep(
    source: &Value,
    normal: &Value,
    back: &Value,
    converted: &mut Value,
    version: &str,
) -> Result<(), BoxError> {
    let wanted = without_metadata(&completed(source, normal));
    let Some((from, to)) = difference(&without_metadata(back), &wanted) else { return Ok(()) };
    let text = json!({ "from": from, "to": to }).to_string();
    if text.len() > MAX_BYTES {
        let size = text.len();
        return Err(format!(
            "{size} bytes cannot be expressed in the other version; an annotation keeps {MAX_BYTES}"
        )
        .into());
    }
    let metadata = converted.pointer_mut("/metadata").and_then(Value::as_object_mut);
    let metadata = metadata.ok_or("the object has no metadata")?;
    let annotations = metadata.entry("annotations").or_insert_with(|| Value::Object(Map::new()));
    let annotations = annotations.as_object_mut().ok_or("the annotations are not an object")?;
    annotations.insert(format!("{PREFIX}{version}"), text.into());
    Ok(())
}

/// Writes the values that an earlier conversion kept for this version back into the object, and removes the
/// annotation. Values at places that have changed since then are dropped.
pub(super) fn restore(object: &mut Value, version: &str) -> Result<(), BoxError> {
    let annotations = object.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut);
    let Some(annotations) = annotations else { return Ok(()) };
    let Some(kept) = annotations.remove(&format!("{PREFIX}{version}")) else { return Ok(()) };
    if annotations.is_empty() {
        let metadata = object.pointer_mut("/metadata").and_then(Value::as_object_mut);
        drop(metadata.map(|metadata| metadata.remove("annotations")));
    }
    let text = kept.as_str().unwrap_or_default();
    if crate::json::is_deeper_than(text.as_bytes(), crate::json::MAX_DEPTH) {
        return Err(format!("the annotation {PREFIX}{version} is nested too deep").into());
    }
    let kept: Value = serde_json::from_str(text)
        .map_err(|_| format!("the annotation {PREFIX}{version} is damaged; remove it"))?;
    if let Value::Object(mut kept) = kept
        && let (Some(from), Some(Value::Object(mut to))) = (kept.remove("from"), kept.remove("to"))
    {
        for field in ["apiVersion", "kind", "metadata"] {
            to.remove(field);
        }
        apply(object, &from, &Value::Object(to));
    }
    Ok(())
}

/// Adds fields that the Rust type does not know to the JSON of the type.
fn completed(source: &Value, normal: &Value) -> Value {
    match (source, normal) {
        (Value::Object(source), Value::Object(normal)) => {
            let mut all = source.clone();
            for (field, normal) in normal {
                let value =
                    source.get(field).map_or_else(|| normal.clone(), |source| completed(source, normal));
                all.insert(field.clone(), value);
            }
            Value::Object(all)
        }
        (Value::Array(source), Value::Array(normal)) if source.len() == normal.len() => {
            source.iter().zip(normal).map(|(source, normal)| completed(source, normal)).collect()
        }
        (_, normal) => normal.clone(),
    }
}

fn without_metadata(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(members) = object.as_object_mut() {
        for field in ["apiVersion", "kind", "metadata"] {
            members.remove(field);
        }
    }
    object
}

/// Returns the parts of two values that differ. `null` stands for a field that is absent.
fn difference(from: &Value, to: &Value) -> Option<(Value, Value)> {
    match (from, to) {
        (Value::Object(old), Value::Object(new)) => {
            let (mut olds, mut news) = (Map::new(), Map::new());
            let fields = new.keys().chain(old.keys().filter(|field| !new.contains_key(*field)));
            for field in fields {
                let (old, new) =
                    (old.get(field).unwrap_or(&Value::Null), new.get(field).unwrap_or(&Value::Null));
                if let Some((old, new)) = difference(old, new) {
                    olds.insert(field.clone(), old);
                    news.insert(field.clone(), new);
                }
            }
            (!news.is_empty()).then_some((Value::Object(olds), Value::Object(news)))
        }
        _ => (from != to).then(|| (from.clone(), to.clone())),
    }
}

/// Replaces the values of `from` in `target` by the values of `to`, where `target` still has the values of
/// `from`.
fn apply(target: &mut Value, from: &Value, to: &Value) {
    match (&mut *target, from, to) {
        (Value::Object(members), Value::Object(from), Value::Object(to)) => {
            for (field, to) in to {
                let from = from.get(field).unwrap_or(&Value::Null);
                let mut value = members.remove(field).unwrap_or(Value::Null);
                apply(&mut value, from, to);
                if !value.is_null() {
                    members.insert(field.clone(), value);
                }
            }
        }
        (target, from, to) if target == from => *target = to.clone(),
        (Value::Array(elements), Value::Array(from), Value::Array(to)) => {
            apply_to_elements(elements, from, to);
        }
        _ => {}
    }
}

/// Restores the elements of a list that has changed. The names of the elements identify the elements.
fn apply_to_elements(elements: &mut [Value], from: &[Value], to: &[Value]) {
    for element in elements {
        let find = |list: &[Value]| list.iter().find(|other| same_element(element, other)).cloned();
        if let (Some(from), Some(to)) = (find(from), find(to))
            && let Some((from, to)) = difference(&from, &to)
        {
            apply(element, &from, &to);
        }
    }
}
