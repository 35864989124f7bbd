//! Defaults.

use serde_json::Value;

use super::Definitions;
use super::prepare::default;
use crate::kind::Defaults;

impl Defaults for Definitions {
    fn default(&self, object: &mut Value) {
        default(object);
    }
}
