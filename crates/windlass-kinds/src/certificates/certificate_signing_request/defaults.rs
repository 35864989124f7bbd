//! Defaults.

use serde_json::Value;

use super::SigningRequests;
use crate::json::spec_mut;
use crate::kind::Defaults;

impl Defaults for SigningRequests {
    fn complete_zero(&self, object: &mut Value) {
        spec_mut(object).insert("request".to_owned(), Value::Null);
    }
}
