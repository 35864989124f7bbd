//! Claims for devices.

use serde_json::{Map, Value};

use super::fields::{default, entry_mut, items_mut, spec_mut};
use super::{Facts, FactsOnly, Generation, Strategy, StrategyContext};

pub(super) fn of(resource: &str) -> &'static dyn Strategy {
    match resource {
        "resourceclaims" => &Claims { template: false },
        "resourceclaimtemplates" => &Claims { template: true },
        "resourceslices" => &FactsOnly(&SLICES),
        _ => &FactsOnly(&CLASSES),
    }
}

const CLASSES: Facts = Facts { returns_deleted_object: true, ..Facts::SPEC };
const CLAIMS: Facts = Facts { generation: Generation::None, ..CLASSES };
const SLICES: Facts =
    Facts { selectable: &[("spec.nodeName", "/spec/nodeName"), ("spec.driver", "/spec/driver")], ..CLASSES };

struct Claims {
    template: bool,
}

/// A request is for one device, unless it says how many.
fn complete_claim(spec: &mut Map<String, Value>) {
    let Some(devices) = entry_mut(spec, "devices") else { return };
    for request in items_mut(devices, "requests") {
        if let Some(exactly) = entry_mut(request, "exactly") {
            complete_request(exactly);
        }
        items_mut(request, "firstAvailable").for_each(complete_request);
    }
}

fn complete_request(request: &mut Map<String, Value>) {
    default(request, "allocationMode", "ExactCount");
    if request["allocationMode"] == "ExactCount" {
        default(request, "count", 1);
    }
}

impl Strategy for Claims {
    fn facts(&self) -> &'static Facts {
        &CLAIMS
    }

    fn complete(&self, _cx: &StrategyContext<'_>, object: &mut Value) {
        let spec = spec_mut(object);
        if !self.template {
            complete_claim(spec);
        } else if let Some(spec) = entry_mut(spec, "spec") {
            complete_claim(spec);
        }
    }
}
