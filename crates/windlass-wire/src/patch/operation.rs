//! Reading the operations of a JSON patch.

use serde_json::{Map, Value};
use windlass_schema::json_type;

use super::JsonPatch;

/// One operation. Members that are missing, or have the wrong type, are `None`.
#[derive(Clone, Debug, Default)]
pub(super) struct Operation {
    pub(super) kind: Kind,
    pub(super) path: Option<String>,
    pub(super) from: Option<String>,
    pub(super) value: Option<Value>,
}

/// The kind of an operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Kind {
    Add,
    Remove,
    Replace,
    Move,
    Copy,
    Test,
    /// No operation that exists.
    #[default]
    Unknown,
}

pub(super) fn read(patch: Value, typed: bool) -> Result<JsonPatch, String> {
    let of_list = if typed { "[]handlers.jsonPatchOp" } else { "jsonpatch.Patch" };
    let of_item = if typed { "handlers.jsonPatchOp" } else { "jsonpatch.Operation" };
    let wrong = |found: &Value, go_type: &str| {
        format!("json: cannot unmarshal {} into Go value of type {go_type}", json_type(found))
    };
    let items = match patch {
        Value::Null => Vec::new(),
        Value::Array(items) => items,
        other => return Err(wrong(&other, of_list)),
    };
    let mut read = JsonPatch { operations: Vec::with_capacity(items.len()), unknown: Vec::new() };
    for (index, item) in items.into_iter().enumerate() {
        let members = match item {
            Value::Null => {
                read.operations.push(Operation::default());
                continue;
            }
            Value::Object(members) => members,
            other => return Err(wrong(&other, of_item)),
        };
        if typed {
            check_types(&members)?;
        }
        let odd = members.keys().filter(|name| !["op", "path", "from", "value"].contains(&name.as_str()));
        read.unknown.extend(odd.map(|name| format!("[{index}].{name}")));
        read.operations.push(Operation::of(members));
    }
    Ok(read)
}

/// Checks the members that are strings.
fn check_types(members: &Map<String, Value>) -> Result<(), String> {
    for name in ["op", "path", "from"] {
        match members.get(name) {
            None | Some(Value::Null | Value::String(_)) => {}
            Some(other) => {
                let found = json_type(other);
                return Err(format!(
                    "json: cannot unmarshal {found} into Go struct field jsonPatchOp.{name} of type string"
                ));
            }
        }
    }
    Ok(())
}

impl Operation {
    fn of(mut members: Map<String, Value>) -> Self {
        let mut text = |name: &str| match members.remove(name) {
            Some(Value::String(text)) => Some(text),
            _ => None,
        };
        let kind = match text("op").as_deref() {
            Some("add") => Kind::Add,
            Some("remove") => Kind::Remove,
            Some("replace") => Kind::Replace,
            Some("move") => Kind::Move,
            Some("copy") => Kind::Copy,
            Some("test") => Kind::Test,
            _ => Kind::Unknown,
        };
        Self { kind, path: text("path"), from: text("from"), value: members.remove("value") }
    }
}
