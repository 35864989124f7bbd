//! Validation of the devices of a slice.

use serde_json::Value;
use windlass_schema::FieldError;
use windlass_wire::names;

use super::attributes::attribute;
use super::capacity::capacity;
use super::nodes::{self, NodeRules};
use crate::field::{self, Errors, Field};
use crate::resource::limits::{distinct, is_beyond, is_too_long};
use crate::resource::names::{declared_label, qualified};
use crate::resource::taints::{binding_conditions, taint};

/// The largest number of attributes and capacities of a device.
const MOST_ATTRIBUTES: usize = 32;
/// The largest number of values of attributes of a device.
const MOST_VALUES: usize = 48;
/// The largest number of taints of a device.
const MOST_TAINTS: usize = 16;
/// The largest number of sets of counters that a device consumes.
const MOST_CONSUMPTIONS: usize = 2;
/// The largest number of counters in a set.
const MOST_COUNTERS: usize = 32;

const PER_DEVICE: &str = "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when `perDeviceNodeSelection` is set to true in the ResourceSlice spec";

/// The nodes of a device, if each device names nodes.
const NODES: NodeRules = NodeRules {
    empty_name: "must not be empty",
    has_single_term: false,
    flags: &[("allNodes", "`allNodes`")],
    required: PER_DEVICE,
    several: PER_DEVICE,
};

/// Validates a device. The capacities and taints that `old` has too are not checked.
pub(super) fn device(device: &Field<'_>, old: Option<&Value>, selects_nodes: bool, errors: &mut Errors) {
    let keeps = |name: &str| old.is_some_and(|old| old.get(name) == device.value().get(name));
    device.at("name").check(names::dns_1123_label, errors);
    let (attributes, capacities) = (device.at("attributes"), device.at("capacity"));
    check_counts(device, &attributes, &capacities, errors);
    for (name, value) in attributes.entries() {
        check_name(&attributes, name, errors);
        attribute(&value, errors);
    }
    if !keeps("capacity") {
        let is_shared = device.at("allowMultipleAllocations").flag();
        for (name, value) in capacities.entries() {
            check_name(&capacities, name, errors);
            capacity(&value, is_shared, errors);
        }
    }
    let taints = device.at("taints");
    if !keeps("taints") && !is_too_long(&taints, MOST_TAINTS, errors) {
        taints.items().for_each(|item| taint(&item, false, errors));
    }
    let consumptions = device.at("consumesCounters");
    if !is_beyond(&consumptions, MOST_CONSUMPTIONS, errors) {
        distinct(&consumptions, &["counterSet"], errors);
        consumptions.items().for_each(|item| counters(&item, "counterSet", errors));
    }
    if selects_nodes {
        NODES.check(device, errors);
    } else {
        nodes::refuse(device, errors);
    }
    binding_conditions(device, errors);
}

/// Validates the name of an attribute or a capacity. The error has the path of the map.
fn check_name(map: &Field<'_>, name: &str, errors: &mut Errors) {
    let name = Value::from(name);
    errors.extend(field::validate(map.path(), &name, qualified));
}

fn check_counts(device: &Field<'_>, attributes: &Field<'_>, capacities: &Field<'_>, errors: &mut Errors) {
    let count = |map: &Field<'_>| map.map().map_or(0, serde_json::Map::len);
    let (values, all) = (count(attributes), count(attributes) + count(capacities));
    if all > MOST_ATTRIBUTES {
        let detail =
            format!("the total number of attributes and capacities must not exceed {MOST_ATTRIBUTES}");
        errors.push(device.invalid_as(all, detail));
    }
    if values > MOST_VALUES {
        let detail = format!("the total number of attribute values must not exceed {MOST_VALUES}");
        errors.push(device.invalid_as(values, detail));
    }
}

/// Validates a set of counters, or the consumption of a set. `name` is the field with the name of the set.
pub(super) fn counters(set: &Field<'_>, name: &str, errors: &mut Errors) {
    errors.declared(|errors| set.at(name).require_check(declared_label, errors));
    let list = set.at("counters");
    let count = list.map().map_or(0, serde_json::Map::len);
    if count > MOST_COUNTERS {
        errors.push(FieldError::too_many(list.path(), count, MOST_COUNTERS));
    }
    errors.declared(|errors| {
        if count == 0 {
            errors.push(list.required(""));
        }
        for (name, _) in list.entries() {
            errors.extend(declared_label(name).into_iter().map(|why| list.invalid_as(name, why)));
        }
    });
}
