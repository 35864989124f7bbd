//! Claims for devices.

use serde_json::{Map, Value};

use super::fields::{default, entry_mut, items_mut, spec_mut};
use super::{Facts, FactsOnly, Generation, Strategy, Writes};

pub(super) fn of(resource: &str) -> &'static dyn Strategy {
    match resource {
        "resourceclaims" => &Claims { template: false },
        "resourceclaimtemplates" => &Claims { template: true },
        "resourceslices" => &FactsOnly(&SLICES),
        _ => &FactsOnly(&CLASSES),
    }
}

const CLASSES: Facts = Facts {
    returns_deleted_object: true,
    unenforced: Some("no devices are given to pods, because the scheduler does not allocate devices"),
    ..Facts::SPEC
};
const CLAIMS: Facts = Facts { generation: Generation::None, writes: Writes::STATUS_ONLY, ..CLASSES };
const SLICES: Facts =
    Facts { selectable: &[("spec.nodeName", "/spec/nodeName"), ("spec.driver", "/spec/driver")], ..CLASSES };

struct Claims {
    template: bool,
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
    default(request, "allocationMode", "ExactCount");
    if request["allocationMode"] == "ExactCount" {
        default(request, "count", 1);
    }
}

impl Strategy for Claims {
    fn facts(&self) -> &'static Facts {
        &CLAIMS
    }

    fn default(&self, object: &mut Value) {
        let spec = spec_mut(object);
        if !self.template {
            default_claim(spec);
        } else if let Some(spec) = entry_mut(spec, "spec") {
            default_claim(spec);
        }
    }
}
