//! Defaults.

use serde_json::Value;

use super::Claims;
use crate::json::spec_mut;
use crate::kind::Defaults;

impl Defaults for Claims {
    fn default(&self, object: &mut Value) {
        for field in ["dataSource", "dataSourceRef"] {
            if let Some(source) = spec_mut(object).get_mut(field).filter(|source| source.is_object()) {
                with_group(source);
            }
        }
    }
}

/// Writes the group of a source even if it is absent: the field has no `omitempty`.
fn with_group(source: &mut Value) {
    if let Some(fields) = source.as_object_mut() {
        fields.entry("apiGroup").or_insert(Value::Null);
    }
}
