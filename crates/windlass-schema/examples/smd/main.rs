//! Serves the operations of `windlass_schema::fields` over standard input and output, for `cargo xtask smd`:
//! the tests of structured-merge-diff run with the operations of this crate.
//!
//! A request is a JSON object on a line with the name of the operation in `op`; the reply is a JSON object on a line.

mod apply;
mod sets;
mod wire;

use std::collections::BTreeMap;
use std::io::{self, BufRead, Write};

use serde_json::{Value, json};
use windlass_schema::fields::{
    Duplicates, FieldSet, TypedErrors, compare, extract, merge, remove, validate_typed,
};
use windlass_schema::{Definitions, Schema, strategic_merge};

use wire::{Reply, fields_of, fields_to};

fn main() -> io::Result<()> {
    let mut server = Server { definitions: BTreeMap::new() };
    let mut line = String::new();
    while io::stdin().lock().read_line(&mut line)? > 0 {
        let reply = serde_json::from_str(&line)
            .map_err(|error| error.to_string())
            .and_then(|request: Value| server.reply(&request));
        let reply = reply.unwrap_or_else(|error| json!({"error": error}));
        let mut out = io::stdout().lock();
        writeln!(out, "{reply}")?;
        out.flush()?;
        line.clear();
    }
    Ok(())
}

/// The state of a connection.
struct Server {
    /// The schemas that the tests use, by numbers that the tests choose.
    definitions: BTreeMap<u64, Definitions>,
}

impl Server {
    fn reply(&mut self, request: &Value) -> Reply {
        match request["op"].as_str().unwrap_or_default() {
            "schema" => {
                let id = request["id"].as_u64().ok_or("no id")?;
                let schemas = request["definitions"].as_object().ok_or("no definitions")?;
                self.definitions.insert(id, Definitions::compile(schemas));
                Ok(json!({}))
            }
            "validate" | "fields" | "merge" | "compare" | "remove" | "extract" | "reconcile" | "named" => {
                self.typed(request)
            }
            "update" | "apply" => apply::reply(self, request),
            "strategic" => strategic(request),
            _ => sets::reply(request),
        }
    }

    /// Returns the schema that a request names.
    fn schema(&self, named: &Value) -> Result<Schema, String> {
        let id = named["schema"].as_u64().ok_or("no schema")?;
        let name = named["type"].as_str().ok_or("no type")?;
        let definitions = self.definitions.get(&id).ok_or("unknown schema")?;
        definitions.schema(name).ok_or_else(|| format!("schema error: no type found matching: {name}"))
    }

    /// Answers an operation on values of a type.
    fn typed(&self, request: &Value) -> Reply {
        let schema = self.schema(request)?;
        let (root, value) = (schema.root(), &request["value"]);
        Ok(match request["op"].as_str().unwrap_or_default() {
            "validate" => {
                let allowed = request["duplicates"] == true;
                let duplicates = if allowed { Duplicates::Allow } else { Duplicates::Forbid };
                checked(validate_typed(root, value, duplicates), |()| json!({}))
            }
            "fields" => checked(FieldSet::of(root, value), |fields| json!({"fields": fields_to(&fields)})),
            "merge" => checked(merge(root, value, &request["other"]), |merged| json!({"value": merged})),
            "compare" => checked(compare(root, value, &request["other"]), |changed| {
                json!({
                    "added": fields_to(&changed.added),
                    "modified": fields_to(&changed.modified),
                    "removed": fields_to(&changed.removed),
                })
            }),
            "remove" => json!({"value": remove(root, value, &fields_of(&request["fields"])?)}),
            "extract" => {
                let with_keys = request["keys"] == true;
                json!({"value": extract(root, value, &fields_of(&request["fields"])?, with_keys)})
            }
            "reconcile" => {
                let before = fields_of(&request["fields"])?;
                let after = before.reconciled(root);
                json!({"changed": before != after, "fields": fields_to(&after)})
            }
            _ => json!({"fields": fields_to(&fields_of(&request["fields"])?.with_named_fields(root))}),
        })
    }
}

/// Applies a strategic merge patch to an object of a type that the request defines.
fn strategic(request: &Value) -> Reply {
    let definitions = json!({"root": request["definition"]});
    let definitions = Definitions::compile(definitions.as_object().ok_or("no definition")?);
    let schema = definitions.schema("root").ok_or("no definition")?;
    let patched = strategic_merge(&schema, request["original"].clone(), request["patch"].clone());
    patched.map(|value| json!({"value": value})).map_err(|error| error.to_string())
}

fn checked<T>(result: Result<T, TypedErrors>, reply: impl FnOnce(T) -> Value) -> Value {
    match result {
        Ok(value) => reply(value),
        Err(errors) => {
            let errors = errors.0.iter().map(|error| json!({"path": error.path, "message": error.message}));
            json!({"errors": errors.collect::<Value>()})
        }
    }
}
