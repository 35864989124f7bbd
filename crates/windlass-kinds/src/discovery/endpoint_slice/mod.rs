//! Endpoint slices.

mod table;
mod validate;

use serde_json::Value;
use windlass_wire::ApiError;

use crate::json::list_at;
use crate::kind::{Generation, Kind, KindConfig, Prepare, WriteContext};

pub(crate) static KIND: Kind =
    Kind { prepare: &EndpointSlices, validate: &EndpointSlices, table: &table::TABLE, ..Kind::new(SLICES) };

const SLICES: KindConfig = KindConfig { generation: Generation::AllAndLabels, ..KindConfig::SPEC };

struct EndpointSlices;

/// Removes the topology of endpoints, because clients cannot write the topology any more. A node name in
/// `old`'s topology moves to the node name field.
fn drop_topology(object: &mut Value, old: &Value) {
    const HOST: &str = "/deprecatedTopology/kubernetes.io~1hostname";
    let known: Vec<&Value> =
        list_at(old, "/endpoints").iter().filter_map(|endpoint| endpoint.pointer(HOST)).collect();
    let endpoints = object.get_mut("endpoints").and_then(Value::as_array_mut).into_iter().flatten();
    for endpoint in endpoints {
        let host = endpoint.pointer(HOST).filter(|host| known.contains(host)).cloned();
        let Some(fields) = endpoint.as_object_mut() else { continue };
        fields.remove("deprecatedTopology");
        if let Some(host) = host {
            fields.entry("nodeName").or_insert(host);
        }
    }
}

impl Prepare for EndpointSlices {
    fn prepare_create(&self, _cx: &WriteContext<'_>, object: &mut Value) -> Result<(), ApiError> {
        drop_topology(object, &Value::Null);
        Ok(())
    }

    fn prepare_update(
        &self,
        _cx: &WriteContext<'_>,
        object: &mut Value,
        old: &Value,
    ) -> Result<(), ApiError> {
        if object.get("endpoints") != old.get("endpoints") {
            drop_topology(object, old);
        }
        Ok(())
    }
}
