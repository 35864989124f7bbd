//! Long lists in YAML and in indented JSON, written item by item: a client that does not read keeps a piece in memory, and not the list.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::Value;

use super::list::ItemForm;
use super::pieces::{ListText, Pieces};
use crate::reply_memory::ReplyMemory;
use crate::respond::{indent, indent_at};
use crate::store::{Stored, read_value};
use crate::wire::{self, ApiError, Format};

/// Serialises a list in pieces. `empty` is the JSON of the list without items; the items are the last field.
///
/// # Errors
/// 500 if the list has no form in YAML.
pub(super) fn pieces(
    empty: &[u8],
    form: ItemForm,
    items: Vec<Arc<Stored>>,
    format: Format,
    memory: ReplyMemory,
) -> Result<Box<dyn Iterator<Item = Bytes> + Send>, ApiError> {
    if format != Format::Yaml {
        let write = move |item: &Stored, out: &mut Vec<u8>| out.extend(indent_at(&json(&form, item), 2));
        return Ok(Box::new(Pieces::new(around_indented(empty), write, items, memory)));
    }
    let text = around_yaml(empty)?;
    let write = move |item: &Stored, out: &mut Vec<u8>| {
        match yaml_item(&json(&form, item)) {
            Ok(item) => out.extend_from_slice(item.as_bytes()),
            // An object that was stored has a form in YAML.
            Err(error) => tracing::error!(%error, "an object of a list cannot be encoded"),
        }
    };
    Ok(Box::new(Pieces::new(text, write, items, memory)))
}

fn json(form: &ItemForm, item: &Stored) -> Vec<u8> {
    let mut json = Vec::new();
    form.write(item, &mut json);
    json
}

/// Returns an item of a list as a list of one item.
fn yaml_item(json: &[u8]) -> Result<String, ApiError> {
    let value = read_value(json).map_err(ApiError::internal)?;
    wire::to_yaml(&Value::Array(vec![value]))
}

fn around_indented(empty: &[u8]) -> ListText {
    let mut head = indent(empty);
    // The end is `[]`, or `null` in some forms, and the bracket of the list.
    let last = head.iter().rposition(|byte| *byte == b':').map_or(head.len(), |colon| colon + 2);
    head.truncate(last);
    head.extend_from_slice(b"[\n    ");
    ListText { head, separator: b",\n    ", end: b"\n  ]\n}".to_vec() }
}

fn around_yaml(empty: &[u8]) -> Result<ListText, ApiError> {
    let value = read_value(empty).map_err(ApiError::internal)?;
    let text = wire::to_yaml(&value)?;
    let field = ["\nitems: ", "\nrows: "].iter().find_map(|field| Some(text.find(field)? + field.len() - 1));
    let start = field.ok_or_else(|| ApiError::internal("a list has no items"))?;
    let end = text[start..].find('\n').map_or(text.len(), |length| start + length + 1);
    let head = format!("{}\n", &text[..start]).into_bytes();
    Ok(ListText { head, separator: b"", end: text.as_bytes()[end..].to_vec() })
}
