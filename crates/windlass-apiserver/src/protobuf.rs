//! Kubernetes' protobuf, as clients send it.

use serde_json::Value;

use crate::api::Api;

impl Api {
    /// Reads an object behind the `k8s\0` prefix.
    pub(crate) fn decode_protobuf(&self, bytes: &[u8]) -> Result<Value, String> {
        windlass_schema::decode_protobuf(&self.catalog, bytes).map_err(|error| error.to_string())
    }
}
