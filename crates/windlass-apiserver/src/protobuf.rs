//! Kubernetes' protobuf, as clients send it.

use serde_json::Value;

/// Reads an object behind the `k8s\0` prefix.
pub(crate) fn decode_object(_bytes: &[u8]) -> Result<Value, String> {
    Err("protobuf is not understood yet".to_owned())
}
