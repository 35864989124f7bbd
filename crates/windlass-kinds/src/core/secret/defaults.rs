//! Defaults.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::Secrets;
use crate::kind::Defaults;

impl Defaults for Secrets {
    fn default(&self, object: &mut Value) {
        merge_string_data(object);
    }
}

/// Moves `stringData` into `data`.
fn merge_string_data(object: &mut Value) {
    let Some(fields) = object.as_object_mut() else { return };
    let texts = fields.remove("stringData");
    if let Some(texts) = texts.as_ref().and_then(Value::as_object).filter(|texts| !texts.is_empty()) {
        let data = fields.entry("data").or_insert_with(|| json!({}));
        if !data.is_object() {
            *data = json!({});
        }
        if let Some(data) = data.as_object_mut() {
            for (key, text) in texts {
                data.insert(key.clone(), STANDARD.encode(text.as_str().unwrap_or_default()).into());
            }
        }
    }
}
