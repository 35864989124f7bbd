//! Maps the JSON fields of a type to the fields of its protobuf message.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::Result;

/// The protobuf field of a JSON field: number and type, and the path of field numbers to the message
/// (`through`). The path is empty except for fields of embedded Go structs.
#[derive(Clone, Debug)]
pub(super) struct ProtoField {
    pub(super) through: Vec<u32>,
    pub(super) number: u32,
    pub(super) kind: String,
    pub(super) repeated: bool,
}

/// Returns the protobuf fields of a definition, by JSON name.
pub(super) fn proto_fields(
    messages: &Map<String, Value>,
    definition: &str,
    properties: &Map<String, Value>,
) -> Result<BTreeMap<String, ProtoField>> {
    let mut proto_fields = BTreeMap::new();
    walk(messages, definition, properties, &[], &mut proto_fields)?;
    Ok(proto_fields)
}

fn walk(
    messages: &Map<String, Value>,
    message: &str,
    properties: &Map<String, Value>,
    through: &[u32],
    proto_fields: &mut BTreeMap<String, ProtoField>,
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
            let field = ProtoField { through: through.to_vec(), number, kind: kind.to_owned(), repeated };
            proto_fields.insert((*name).clone(), field);
        } else if messages.contains_key(kind) && !repeated {
            let mut deeper = through.to_vec();
            deeper.push(number);
            walk(messages, kind, properties, &deeper, proto_fields)?;
        }
    }
    Ok(())
}

/// Normalises a name: the spellings in JSON and protobuf (`$ref` and `ref`, `uid` and `uID`) become equal.
fn letters(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
}
