//! Tests of field ownership: features that `cargo xtask smd` does not test, and the rules in short.

mod ownership;
mod properties;
mod sets;
mod values;

use std::collections::BTreeMap;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use serde_json::{Value, json};

use super::{Convert, ConvertError};
use crate::graph::{NodeRef, Schema};

/// A schema with each kind of list and map.
fn schema() -> Schema {
    let strings = json!({"type": "array", "items": {"type": "string"}});
    let with = |base: &Value, name: &str, value: Value| {
        let mut out = base.clone();
        out[name] = value;
        out
    };
    let port = json!({"type": "object", "properties": {
        "port": {"type": "integer"},
        "protocol": {"type": "string", "default": "TCP"},
        "name": {"type": "string"},
    }});
    let ports = json!({
        "type": "array",
        "items": port,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["port", "protocol"],
    });
    Schema::compile(&json!({"type": "object", "properties": {
        "n": {"type": "integer"},
        "text": {"type": "string"},
        "list": strings,
        "set": with(&strings, "x-kubernetes-list-type", json!("set")),
        "ports": ports,
        "map": {"type": "object", "additionalProperties": {"type": "string"}},
        "atomic": {"type": "object", "additionalProperties": {"type": "string"}, "x-kubernetes-map-type": "atomic"},
        "nested": {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}},
        "any": {"x-kubernetes-preserve-unknown-fields": true},
    }}))
}

/// The versions of a kind by name. A conversion keeps the object unchanged.
struct Versions(BTreeMap<&'static str, Schema>);

impl Versions {
    fn one() -> Self {
        Self(BTreeMap::from([("v1", schema())]))
    }
}

impl Convert for Versions {
    fn schema(&self, api_version: &str) -> Option<NodeRef<'_>> {
        self.0.get(api_version).map(Schema::root)
    }

    async fn convert(&self, object: &Value, _: &str, to: &str) -> Result<Value, ConvertError> {
        match self.0.get(to) {
            Some(_) => Ok(object.clone()),
            None => Err(ConvertError::MissingVersion(to.to_owned())),
        }
    }
}

/// Runs a future that never waits.
fn ready<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("the future waits"),
    }
}
