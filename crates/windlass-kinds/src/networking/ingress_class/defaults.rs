//! Defaults.

use serde_json::Value;

use super::IngressClasses;
use crate::json::{default, entry_mut, spec_mut};
use crate::kind::Defaults;

impl Defaults for IngressClasses {
    fn default(&self, object: &mut Value) {
        if let Some(parameters) = entry_mut(spec_mut(object), "parameters") {
            default(parameters, "scope", "Cluster");
        }
    }
}
