//! The schemas of types, from the OpenAPI v3 documents.

use serde_json::{Map, Value};

use super::ApiServer;
use crate::Result;

/// Returns definition → schema without descriptions. A reference inside an `allOf` of a single schema becomes
/// a plain `$ref` beside the other keywords, without the path that all references share.
pub(super) fn collect(server: &ApiServer) -> Result<Map<String, Value>> {
    let index = server.get("/openapi/v3")?;
    let mut out = Map::new();
    for path in index["paths"].as_object().into_iter().flat_map(Map::keys) {
        if path.starts_with('.') || path.starts_with("openid") {
            continue;
        }
        let document = server.get(&format!("/openapi/v3/{path}"))?;
        let schemas = document["components"]["schemas"].as_object();
        for (name, schema) in schemas.into_iter().flatten().filter(|(name, _)| name.starts_with("io.k8s.")) {
            let schema = simplify(schema);
            let known = out.entry(name.clone()).or_insert_with(|| schema.clone());
            join_kinds(known, &schema);
        }
    }
    Ok(out)
}

/// Merges the kinds of a type: each document lists only the document's kinds for `DeleteOptions` and similar
/// types.
fn join_kinds(known: &mut Value, other: &Value) {
    const KINDS: &str = "x-kubernetes-group-version-kind";
    let more = other[KINDS].as_array().into_iter().flatten();
    let Some(kinds) = known.get_mut(KINDS).and_then(Value::as_array_mut) else { return };
    for kind in more {
        if !kinds.contains(kind) {
            kinds.push(kind.clone());
        }
    }
    kinds.sort_by_key(Value::to_string);
}

fn simplify(schema: &Value) -> Value {
    match schema {
        Value::Object(members) => {
            let mut out = Map::new();
            for (name, value) in members {
                match (name.as_str(), value) {
                    ("description", Value::String(_)) => {}
                    ("$ref", Value::String(target)) => {
                        let target = target.trim_start_matches("#/components/schemas/");
                        out.insert(name.clone(), target.into());
                    }
                    ("allOf", Value::Array(branches)) if branches.len() == 1 => {
                        if let Value::Object(branch) = simplify(&branches[0]) {
                            out.extend(branch);
                        }
                    }
                    ("properties", Value::Object(properties)) => {
                        let properties: Map<_, _> = properties
                            .iter()
                            .map(|(name, schema)| (name.clone(), simplify(schema)))
                            .collect();
                        out.insert(name.clone(), properties.into());
                    }
                    _ => {
                        out.insert(name.clone(), simplify(value));
                    }
                }
            }
            out.into()
        }
        Value::Array(items) => items.iter().map(simplify).collect(),
        other => other.clone(),
    }
}
