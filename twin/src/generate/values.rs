//! Values that a schema allows, and values that are wrong.

use fastrand::Rng;
use serde_json::{Map, Value, json};
use windlass_schema::{NodeRef, Type};

use super::pick;

/// Returns a value of the type that a schema requires. Other rules may be violated.
pub(super) fn typed(random: &mut Rng, node: NodeRef<'_>, depth: usize) -> Value {
    if node.is_int_or_string() {
        return pick(random, &[json!(1), json!("50%"), json!(80), json!("x"), json!(0)]).clone();
    }
    let definition = node.definition().unwrap_or_default();
    if definition.ends_with(".Quantity") {
        return pick(
            random,
            &[
                json!("1"),
                json!("500m"),
                json!("1Gi"),
                json!("1024Mi"),
                json!("1e3"),
                json!(2),
                json!("0.5"),
                json!("1.500"),
                json!("20u"),
                json!("1.5e4"),
                json!("+2"),
                json!("1e30"),
            ],
        )
        .clone();
    }
    match node.kind() {
        Type::Boolean => random.bool().into(),
        Type::Integer => (*pick(random, &[0, 1, 1, 2, 5, 80, 443, 3600, -1, 65536, 100])).into(),
        Type::Number => pick(random, &[json!(1), json!(1.5), json!(0), json!(-2)]).clone(),
        Type::String => string(random, node, definition).into(),
        Type::Array => match node.items() {
            Some(items) if depth > 0 => {
                (0..random.usize(..3)).map(|_| typed(random, items, depth - 1)).collect()
            }
            _ => json!([]),
        },
        Type::Object => object(random, node, depth),
        Type::Any => pick(random, &[json!("any"), json!(1), json!({"a": 1})]).clone(),
    }
}

fn string(random: &mut Rng, node: NodeRef<'_>, definition: &str) -> &'static str {
    if definition.ends_with(".MicroTime") {
        return "2001-01-01T00:00:00.000000Z";
    }
    if definition.ends_with(".Time") || node.format() == Some("date-time") {
        return "2001-01-01T00:00:00Z";
    }
    if node.format() == Some("byte") {
        return "aGk=";
    }
    const WORDS: [&str; 14] = [
        "a",
        "b",
        "x",
        "a.example.com",
        "example.com/a",
        "v1",
        "TCP",
        "1.2.3.4",
        "/a",
        "Always",
        "True",
        "",
        "Mixed Case",
        "red",
    ];
    WORDS[random.usize(..WORDS.len())]
}

fn object(random: &mut Rng, node: NodeRef<'_>, depth: usize) -> Value {
    let mut fields = Map::new();
    if depth == 0 {
        return fields.into();
    }
    let properties: Vec<_> = node.properties().collect();
    let required: Vec<&str> = node.required().collect();
    for (name, property) in &properties {
        let wanted = if required.contains(name) {
            random.u32(..20) > 0
        } else {
            random.usize(..properties.len() + 2) < 2
        };
        if wanted {
            fields.insert((*name).to_owned(), typed(random, *property, depth - 1));
        }
    }
    if let Some(additional) = node.additional() {
        for name in ["k", "a.example.com/b"].iter().take(random.usize(..3)) {
            fields.insert((*name).to_owned(), typed(random, additional, depth - 1));
        }
    }
    fields.into()
}

/// Adds a field of the schema, with a value of the right type, at a random place of an object.
pub(super) fn add_field(random: &mut Rng, object: &mut Value, node: NodeRef<'_>) {
    let Value::Object(fields) = object else { return };
    let properties: Vec<_> = node.properties().collect();
    let inner: Vec<String> = fields.keys().filter(|name| !is_identity(name)).cloned().collect();
    // Descend most of the time, because most fields are deep.
    if !inner.is_empty() && random.u32(..10) < 7 {
        let name = pick(random, &inner).clone();
        let child = node.property(&name).or_else(|| node.additional());
        let Some(child) = child else { return };
        match &mut fields[&name] {
            Value::Array(items) if !items.is_empty() => {
                let index = random.usize(..items.len());
                if let Some(node) = child.items() {
                    return add_field(random, &mut items[index], node);
                }
            }
            value @ Value::Object(_) => return add_field(random, value, child),
            _ => {}
        }
    }
    let absent: Vec<_> =
        properties.into_iter().filter(|(name, _)| !is_identity(name) && *name != "status").collect();
    if absent.is_empty() {
        return;
    }
    let (name, property) = pick(random, &absent);
    fields.insert((*name).to_owned(), typed(random, *property, 4));
}

fn is_identity(name: &str) -> bool {
    ["apiVersion", "kind", "metadata"].contains(&name)
}

/// Makes a random place of a value wrong.
pub(super) fn spoil(random: &mut Rng, value: &mut Value) {
    let mut places = Vec::new();
    collect(value, String::new(), &mut places);
    if places.is_empty() {
        return;
    }
    let place = pick(random, &places).clone();
    let Some(target) = value.pointer_mut(&place) else { return };
    match random.u32(..10) {
        0 | 1 => {
            if let Value::Object(fields) = target {
                fields.insert("unknownField".to_owned(), json!(1));
                return;
            }
            *target = Value::Null;
        }
        2 => {
            if let Value::Object(fields) = target
                && let Some(name) = fields.keys().next().cloned()
                && let Some(moved) = fields.remove(&name)
            {
                let mut letters = name.chars();
                let first = letters.next().map(|letter| letter.to_ascii_uppercase().to_string());
                fields.insert(first.unwrap_or_default() + letters.as_str(), moved);
            }
        }
        _ => *target = odd(random),
    }
}

/// Returns a value that is wrong for most fields.
pub(super) fn odd(random: &mut Rng) -> Value {
    let long = "x".repeat(300);
    let values = [
        json!(null),
        json!(""),
        json!("a b"),
        json!("UPPER"),
        json!("a/b"),
        json!("-x"),
        json!("10x"),
        json!("1e3"),
        json!(long),
        json!(-1),
        json!(0),
        json!(1),
        json!(70000),
        json!(1.5),
        json!(i64::MAX),
        json!(1e30),
        json!(true),
        json!([]),
        json!({}),
        json!([null]),
        json!([""]),
        json!({"a": null}),
        json!({"a": {"b": 1}}),
        json!("ü"),
        json!(3_000_000_000_i64),
    ];
    pick(random, &values).clone()
}

fn collect(value: &Value, place: String, places: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                let name = name.replace('~', "~0").replace('/', "~1");
                collect(value, format!("{place}/{name}"), places);
            }
        }
        Value::Array(items) => {
            for (index, value) in items.iter().enumerate() {
                collect(value, format!("{place}/{index}"), places);
            }
        }
        _ => {}
    }
    // Without a name, an object would be rejected before any other check.
    if !place.is_empty() && place != "/metadata" && place != "/metadata/name" {
        places.push(place);
    }
}

/// Returns the JSON pointers of a value.
pub(super) fn pointers(value: &Value) -> Vec<String> {
    let mut places = Vec::new();
    collect(value, String::new(), &mut places);
    places
}
