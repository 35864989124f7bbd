//! Validation.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use windlass_schema::{FieldError, go_quote};

use super::Slices;
use super::device::{counters, device};
use super::nodes::NodeRules;
use crate::field::{self, Errors, Field};
use crate::json::{list_at, text_at};
use crate::kind::{Validate, WriteContext};
use crate::resource::limits::{distinct, is_beyond, is_too_long};
use crate::resource::names::pool;
use crate::volume::source::driver_name;

/// The largest number of devices.
const MOST_DEVICES: usize = 128;
/// The largest number of devices, if a device has taints or consumes counters.
const MOST_ADVANCED_DEVICES: usize = 64;
/// The largest number of sets of counters.
const MOST_SETS: usize = 8;

/// The nodes that have access to the devices of a slice.
const NODES: NodeRules = NodeRules {
    empty_name: "must be either unset or set to a non-empty string",
    has_single_term: true,
    flags: &[("allNodes", "`allNodes`"), ("perDeviceNodeSelection", "`perDeviceNodeSelection`")],
    required: "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required",
    several: "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required, but multiple fields are set",
};

impl Validate for Slices {
    fn validate_create(&self, _: &WriteContext<'_>, object: &Value) -> Vec<FieldError> {
        spec_errors(object, None)
    }

    fn validate_update(&self, _: &WriteContext<'_>, object: &Value, old: &Value) -> Vec<FieldError> {
        spec_errors(object, Some(old))
    }

    fn warnings(&self, _: &WriteContext<'_>, object: &Value, _: Option<&Value>) -> Vec<String> {
        let driver = text_at(object, "/spec/driver");
        let warning = || {
            let quoted = go_quote(driver);
            format!("spec.driver: driver names should be lowercase; {quoted} contains uppercase characters")
        };
        (driver != driver.to_lowercase()).then(warning).into_iter().collect()
    }
}

fn spec_errors(object: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let devices = old.map(|old| list_at(old, "/spec/devices")).unwrap_or_default();
    let devices: BTreeMap<&str, &Value> =
        devices.iter().rev().map(|device| (text_at(device, "/name"), device)).collect();
    field::validate("spec", &object["spec"], |spec, errors| {
        driver_name(&spec.at("driver"), errors);
        check_pool(&spec.at("pool"), errors);
        if let Some(old) = old {
            for path in ["pool/name", "driver", "nodeName"] {
                let place = spec.at_path(path);
                if old.pointer(&format!("/spec/{path}")).unwrap_or(&Value::Null) != place.value() {
                    errors.push(place.invalid("field is immutable"));
                }
            }
        }
        NODES.check(spec, errors);
        check_devices(spec, &devices, errors);
    })
}

fn check_pool(place: &Field<'_>, errors: &mut Errors) {
    pool(&place.at("name"), errors);
    place.at("resourceSliceCount").positive(errors);
    let generation = place.at("generation");
    if generation.int() < 0 {
        errors.push(generation.invalid("must be greater than or equal to zero"));
    }
}

fn check_devices(spec: &Field<'_>, old: &BTreeMap<&str, &Value>, errors: &mut Errors) {
    let (devices, sets) = (spec.at("devices"), spec.at("sharedCounters"));
    if sets.is_set() && devices.is_set() {
        errors.push(spec.invalid_as("", "only one of `sharedCounters` or `devices` is allowed"));
    }
    let is_advanced = |device: &Value| {
        !list_at(device, "/taints").is_empty() || !list_at(device, "/consumesCounters").is_empty()
    };
    let has_advanced = list_at(spec.value(), "/devices").iter().any(is_advanced);
    let most = if has_advanced { MOST_ADVANCED_DEVICES } else { MOST_DEVICES };
    if !is_too_long(&devices, most, errors) {
        let selects_nodes = spec.at("perDeviceNodeSelection").flag();
        for item in devices.items() {
            device(&item, old.get(item.at("name").text()).copied(), selects_nodes, errors);
        }
        let mut seen = BTreeSet::new();
        for item in devices.items().filter(|item| !seen.insert(item.at("name").text())) {
            errors.push(item.duplicate_as(item.at("name").text()));
        }
    }
    if !is_beyond(&sets, MOST_SETS, errors) {
        distinct(&sets, &["name"], errors);
        sets.items().for_each(|item| counters(&item, "name", errors));
    }
}
