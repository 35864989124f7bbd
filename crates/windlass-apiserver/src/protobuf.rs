//! Kubernetes' protobuf, as clients send it.

use serde_json::{Value, json};

use crate::api::Api;

impl Api {
    /// Reads an object behind the `k8s\0` prefix; of a kind that is not built in, only what it is: nobody takes it.
    pub(crate) fn decode_protobuf(&self, bytes: &[u8]) -> Result<Value, String> {
        windlass_schema::decode_protobuf(&self.catalog, bytes).or_else(|error| match error.unknown_kind() {
            Some((version, kind)) => Ok(json!({"apiVersion": version, "kind": kind})),
            None => Err(error.to_string()),
        })
    }
}
