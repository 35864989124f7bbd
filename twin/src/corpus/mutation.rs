//! Changes of objects.

use serde_json::{Map, Value, json};

use super::generator::{Generator, are_same};
use super::rule::Step;

/// A change of a value.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    /// The value probably stays valid by the schema.
    Valid,
    /// The value may have any form.
    Any,
}

/// Makes the values along the steps exist, and changes a value there or below.
pub(super) fn mutate(
    object: &mut Value,
    schema: &Value,
    steps: &[Step],
    generator: &mut Generator<'_>,
    change: Change,
) {
    let Some((step, rest)) = steps.split_first() else {
        if generator.rng.u8(..3) == 0 {
            change_here(object, schema, generator, change);
        } else {
            wander(object, schema, generator, change);
        }
        return;
    };
    match step {
        Step::Property(name) => {
            let (Value::Object(fields), Some(property)) = (object, schema["properties"].get(name)) else {
                return;
            };
            match fields.get_mut(name) {
                Some(field) if !field.is_null() => mutate(field, property, rest, generator, change),
                _ => {
                    make_room(fields, schema, name);
                    fields.insert(name.clone(), generator.value(property, 6, rest));
                }
            }
        }
        Step::Items => {
            let Value::Array(items) = object else { return };
            let items_schema = &schema["items"];
            match generator.rng.choice(0..items.len()) {
                Some(index) => mutate(&mut items[index], items_schema, rest, generator, change),
                None => items.push(generator.value(items_schema, 6, rest)),
            }
        }
        Step::Values => {
            let Value::Object(fields) = object else { return };
            let values = &schema["additionalProperties"];
            let count = fields.len();
            if let Some(field) =
                generator.rng.choice(0..count).and_then(|index| fields.values_mut().nth(index))
            {
                mutate(field, values, rest, generator, change);
            } else {
                let key = generator.word();
                fields.insert(key, generator.value(values, 6, rest));
            }
        }
    }
}

/// Removes the fields that `oneOf` does not permit beside a new field.
fn make_room(fields: &mut Map<String, Value>, schema: &Value, name: &str) {
    let branches = schema["oneOf"].as_array().into_iter().flatten();
    let names = branches.flat_map(|branch| branch["required"].as_array().into_iter().flatten());
    let names: Vec<&str> = names.filter_map(Value::as_str).collect();
    if names.contains(&name) {
        fields.retain(|field, _| !names.contains(&field.as_str()));
    }
}

/// Changes a random value in a value.
fn wander(value: &mut Value, schema: &Value, generator: &mut Generator<'_>, change: Change) {
    let goes_deeper = generator.rng.u8(..5) < 3;
    match value {
        Value::Object(fields) if goes_deeper => {
            let known: Vec<String> = fields.keys().filter(|name| !is_reserved(name)).cloned().collect();
            let Some(name) = generator.rng.choice(&known) else {
                change_object(fields, schema, generator, change);
                return;
            };
            let of_field = schema["properties"].get(name).unwrap_or(&schema["additionalProperties"]);
            if let Some(field) = fields.get_mut(name) {
                wander(field, of_field, generator, change);
            }
        }
        Value::Array(items) if goes_deeper && !items.is_empty() => {
            let index = generator.rng.usize(..items.len());
            wander(&mut items[index], &schema["items"], generator, change);
        }
        _ => change_here(value, schema, generator, change),
    }
}

/// Changes a value, and not the values within.
fn change_here(value: &mut Value, schema: &Value, generator: &mut Generator<'_>, change: Change) {
    match value {
        _ if change == Change::Any && generator.rng.u8(..3) == 0 => *value = odd(generator),
        Value::Object(fields) => change_object(fields, schema, generator, change),
        Value::Array(items) => change_array(items, schema, generator, change),
        _ => *value = generator.value(schema, 1, &[]),
    }
}

fn is_reserved(name: &str) -> bool {
    matches!(name, "apiVersion" | "kind" | "metadata")
}

fn change_object(
    fields: &mut Map<String, Value>,
    schema: &Value,
    generator: &mut Generator<'_>,
    change: Change,
) {
    if change == Change::Any && generator.rng.u8(..4) == 0 {
        let value = if generator.rng.bool() { odd(generator) } else { json!({"nested": [1]}) };
        let name = if generator.rng.bool() { "unknown".to_owned() } else { generator.word() };
        if !is_reserved(&name) {
            fields.insert(name, value);
        }
        return;
    }
    if generator.rng.u8(..4) == 0 {
        generator.match_union(schema, fields);
        return;
    }
    let properties = schema["properties"].as_object();
    let names: Vec<&String> = properties.into_iter().flatten().map(|(name, _)| name).collect();
    let names: Vec<&String> = names.into_iter().filter(|name| !is_reserved(name)).collect();
    let Some(name) = generator.rng.choice(&names) else {
        if schema["additionalProperties"].is_object() {
            let key = generator.word();
            fields.insert(key, generator.value(&schema["additionalProperties"], 4, &[]));
        }
        return;
    };
    let is_required =
        schema["required"].as_array().is_some_and(|required| required.iter().any(|field| field == *name));
    if fields.contains_key(*name) && (!is_required || change == Change::Any) && generator.rng.bool() {
        fields.remove(*name);
    } else {
        if generator.rng.u8(..4) > 0 {
            make_room(fields, schema, name);
        }
        fields.insert((*name).clone(), generator.value(&schema["properties"][*name], 5, &[]));
    }
}

fn change_array(items: &mut Vec<Value>, schema: &Value, generator: &mut Generator<'_>, change: Change) {
    match generator.rng.u8(..8) {
        0 if !items.is_empty() => {
            let index = generator.rng.usize(..items.len());
            items.remove(index);
        }
        1 | 5 if !items.is_empty() => {
            let index = generator.rng.usize(..items.len());
            let mut copy = items[index].clone();
            if generator.rng.bool() {
                wander(&mut copy, &schema["items"], generator, change);
            }
            if change == Change::Any || !items.iter().any(|known| are_same(schema, known, &copy)) {
                items.push(copy);
            }
        }
        2 => generator.rng.shuffle(items),
        3 if change == Change::Any => {
            let item = generator.value(&schema["items"], 2, &[]);
            let count = schema["maxItems"].as_u64().map_or(20, |most| most.min(70) as usize + 1);
            items.extend(std::iter::repeat_n(item, count));
        }
        4 if change == Change::Any => items.clear(),
        _ => {
            let item = generator.value(&schema["items"], 5, &[]);
            if change == Change::Any || !items.iter().any(|known| are_same(schema, known, &item)) {
                items.push(item);
            }
        }
    }
}

/// Returns a value that few schemas expect.
fn odd(generator: &mut Generator<'_>) -> Value {
    match generator.rng.u8(..16) {
        0 => Value::Null,
        1 => json!(true),
        2 => json!(i64::MAX),
        3 => json!(i64::MIN),
        4 => json!(-1),
        5 => json!(0),
        6 => json!(1.5),
        7 => json!(2_147_483_648_i64),
        8 => json!(""),
        9 => json!("äöü \u{1F600}\u{0301}\n\"quoted\" \\ <&>"),
        10 => json!("a".repeat(70)),
        11 => json!("a".repeat(5000)),
        12 => json!([]),
        13 => json!({}),
        14 => json!(u64::MAX),
        _ => json!("not-a valid/VALUE.."),
    }
}
