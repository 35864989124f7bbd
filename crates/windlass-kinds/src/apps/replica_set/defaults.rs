//! Defaults.

use serde_json::Value;

use super::ReplicaSets;
use crate::json::spec_mut;
use crate::kind::Defaults;
use crate::workload::template::{complete_zero_scale, default_template};

impl Defaults for ReplicaSets {
    fn complete_zero(&self, object: &mut Value) {
        complete_zero_scale(object);
    }

    fn default(&self, object: &mut Value) {
        default_template(spec_mut(object));
    }
}
