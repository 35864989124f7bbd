//! Defaults.

use serde_json::{Value, json};

use super::StatefulSets;
use crate::json::{default, default_text, entry_mut, spec_mut};
use crate::kind::Defaults;
use crate::workload::template::{complete_zero_scale, default_template};

impl Defaults for StatefulSets {
    fn complete_zero(&self, object: &mut Value) {
        complete_zero_scale(object);
    }

    fn default(&self, object: &mut Value) {
        let spec = spec_mut(object);
        if let Some(update) = entry_mut(spec, "updateStrategy") {
            // Only the default strategy gets parameters that the client leaves out.
            if update.get("type").is_none_or(|kind| kind == "") {
                default_text(update, "type", "RollingUpdate");
                default(update, "rollingUpdate", json!({}));
            }
            if update["type"] == "RollingUpdate"
                && let Some(rolling) = entry_mut(update, "rollingUpdate")
            {
                default(rolling, "partition", 0);
                default(rolling, "maxUnavailable", 1);
            }
        }
        default_template(spec);
    }
}
