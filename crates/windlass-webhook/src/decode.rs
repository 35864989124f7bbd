//! Objects as Rust types. Errors have the path of the field.

use serde::de::DeserializeOwned;
use serde_json::Value;
use windlass_cache::describe_decode_error;

/// The new object of a request, in messages.
pub(crate) const NEW: &str = "the object";

/// The stored object of a request, in messages.
pub(crate) const OLD: &str = "the stored object";

/// Decodes an object. The error begins with `what`, has the path of the field, and has no value of the object, because
/// a value may be secret.
pub(crate) fn decode<K: DeserializeOwned>(what: &str, object: &Value) -> Result<K, String> {
    K::deserialize(object).map_err(|_| format!("{what} does not decode: {}", reason::<K>(object)))
}

/// Describes why an object does not decode. The object is decoded as text, because only an error in a text has a
/// position.
fn reason<K: DeserializeOwned>(object: &Value) -> String {
    let text = object.to_string();
    match serde_json::from_str::<K>(&text) {
        Err(error) => describe_decode_error(text.as_bytes(), &error),
        Ok(_) => "the type does not accept the value".to_owned(),
    }
}
