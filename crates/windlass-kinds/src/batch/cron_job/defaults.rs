//! Defaults.

use serde_json::Value;

use super::CronJobs;
use crate::json::{entry_mut, spec_mut};
use crate::kind::Defaults;
use crate::workload::template::default_template;

impl Defaults for CronJobs {
    fn default(&self, object: &mut Value) {
        if let Some(template) = entry_mut(spec_mut(object), "jobTemplate")
            && let Some(spec) = entry_mut(template, "spec")
        {
            // A feature that is off by default.
            spec.remove("scheduling");
            default_template(spec);
        }
    }
}
