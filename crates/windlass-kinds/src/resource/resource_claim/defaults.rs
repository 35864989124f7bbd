//! Defaults.

use serde_json::{Map, Value};

use super::Claims;
use crate::json::{default_number, default_text, entry_mut, items_mut, spec_mut};
use crate::kind::Defaults;

impl Defaults for Claims {
    fn default(&self, object: &mut Value) {
        let spec = spec_mut(object);
        if !self.template {
            default_claim(spec);
        } else if let Some(spec) = entry_mut(spec, "spec") {
            default_claim(spec);
        }
    }
}

/// Sets the number of devices that each request asks for to one.
fn default_claim(spec: &mut Map<String, Value>) {
    let Some(devices) = entry_mut(spec, "devices") else { return };
    for request in items_mut(devices, "requests") {
        if let Some(exactly) = entry_mut(request, "exactly") {
            default_request(exactly);
        }
        items_mut(request, "firstAvailable").for_each(default_request);
    }
}

fn default_request(request: &mut Map<String, Value>) {
    default_text(request, "allocationMode", "ExactCount");
    if request["allocationMode"] == "ExactCount" {
        default_number(request, "count", 1);
    }
}
