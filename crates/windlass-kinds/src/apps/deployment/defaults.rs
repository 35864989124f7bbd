//! Defaults.

use serde_json::Value;

use super::Deployments;
use crate::json::spec_mut;
use crate::kind::Defaults;
use crate::workload::rollout::default_rolling_update;
use crate::workload::template::{complete_zero_scale, default_template};

impl Defaults for Deployments {
    fn complete_zero(&self, object: &mut Value) {
        complete_zero_scale(object);
    }

    fn default(&self, object: &mut Value) {
        let spec = spec_mut(object);
        default_rolling_update(
            spec,
            "strategy",
            &[("maxUnavailable", "25%".into()), ("maxSurge", "25%".into())],
        );
        default_template(spec);
    }
}
