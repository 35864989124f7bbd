//! Defaults.

use serde_json::Value;

use super::{Namespaces, label_with_name};
use crate::kind::Defaults;

impl Defaults for Namespaces {
    fn default(&self, object: &mut Value) {
        label_with_name(object);
    }
}
