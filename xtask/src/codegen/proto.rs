//! Finds, for each JSON field of a type, where it stands in the type's protobuf message.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::Result;

/// Where a field stands: the messages to go through (structs that Go takes in whole), and its number and type.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub(super) through: Vec<u32>,
    pub(super) number: u32,
    pub(super) kind: String,
    pub(super) repeated: bool,
}

/// The places of all fields of a definition.
pub(super) fn places(
    messages: &Map<String, Value>,
    definition: &str,
    properties: &Map<String, Value>,
) -> Result<BTreeMap<String, Place>> {
    let mut places = BTreeMap::new();
    walk(messages, definition, properties, &[], &mut places)?;
    Ok(places)
}

fn walk(
    messages: &Map<String, Value>,
    message: &str,
    properties: &Map<String, Value>,
    through: &[u32],
    places: &mut BTreeMap<String, Place>,
) -> Result {
    if properties.is_empty() || through.len() > 2 {
        return Ok(());
    }
    let Some(fields) = messages.get(message).and_then(Value::as_object) else { return Ok(()) };
    let plain: BTreeMap<String, &String> = properties.keys().map(|name| (letters(name), name)).collect();
    for (field, row) in fields {
        let number = row[0].as_u64().ok_or_else(|| format!("{message}.{field}: no number"))? as u32;
        let kind = row[1].as_str().unwrap_or_default();
        let (repeated, kind) = match kind.strip_prefix("repeated ") {
            Some(kind) => (true, kind),
            None => (false, kind),
        };
        if let Some(name) = plain.get(&letters(field)) {
            let place = Place { through: through.to_vec(), number, kind: kind.to_owned(), repeated };
            places.insert((*name).clone(), place);
        } else if messages.contains_key(kind) && !repeated {
            let mut deeper = through.to_vec();
            deeper.push(number);
            walk(messages, kind, properties, &deeper, places)?;
        }
    }
    Ok(())
}

/// A name by which JSON's and protobuf's spelling are the same (`$ref`, `ref`; `uid`, `uID`).
fn letters(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
}
