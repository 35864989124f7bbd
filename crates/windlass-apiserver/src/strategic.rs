//! Strategic merge patch, by the schema's merge keys.

use serde_json::Value;
use windlass_schema::Schema;

use crate::wire::ApiError;

pub(crate) fn merge(_schema: &Schema, _original: &Value, _patch: &Value) -> Result<Value, ApiError> {
    Err(ApiError::unsupported_media_type(&["application/json-patch+json", "application/merge-patch+json"]))
}
