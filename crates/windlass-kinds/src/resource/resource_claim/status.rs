//! Validation of the status of a claim: the allocated devices and the users of the claim.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use windlass_schema::FieldError;
use windlass_store::object_meta as meta;
use windlass_wire::names;

use super::request_names::{MOST_REQUESTS, RequestNames};
use crate::addresses::interface_address;
use crate::checks::conditions;
use crate::field::{self, Errors, Field};
use crate::json::list_at;
use crate::pod_template::scheduling::validate_node_selector;
use crate::resource::configuration::{MOST_CONFIGURATIONS, configuration, data};
use crate::resource::limits::{distinct, distinct_texts, is_beyond, is_too_long};
use crate::resource::names::{declared_driver, declared_pool, pool, share_id};
use crate::resource::taints::{binding_conditions, tolerations};
use crate::volume::source::driver_name;

/// The largest number of users of a claim.
const MOST_USERS: usize = 256;
/// The largest number of conditions of a device.
const MOST_CONDITIONS: usize = 8;
/// The largest number of addresses of a network device.
const MOST_ADDRESSES: usize = 16;
/// The longest name of a network interface, in bytes.
const LONGEST_INTERFACE: usize = 256;
/// The longest hardware address, in bytes.
const LONGEST_HARDWARE_ADDRESS: usize = 128;

/// The identity of an allocated device: the driver, the pool, the device and the share.
pub(super) type DeviceId<'a> = [&'a str; 4];

/// Returns the identity of a device in the results of an allocation, or in the status of the devices.
pub(super) fn device_id(device: &Value) -> DeviceId<'_> {
    ["driver", "pool", "device", "shareID"].map(|name| device[name].as_str().unwrap_or_default())
}

/// Returns the identities of the devices that are allocated to a claim.
pub(super) fn allocated(claim: &Value) -> BTreeSet<DeviceId<'_>> {
    list_at(claim, "/status/allocation/devices/results").iter().map(device_id).collect()
}

/// Validates the status of a claim.
pub(super) fn errors(claim: &Value, old: &Value) -> Vec<FieldError> {
    let allocated = allocated(claim);
    field::validate("", claim, |claim, errors| {
        let status = claim.at("status");
        let (users, allocation) = (status.at("reservedFor"), status.at("allocation"));
        if !is_beyond(&users, MOST_USERS, errors) {
            distinct(&users, &["uid"], errors);
            users.items().for_each(|user| check_user(&user, errors));
        }
        check_devices(&status.at("devices"), &allocated, errors);
        if !users.is_empty() && !allocation.is_set() {
            errors.push(users.forbidden("may not be specified when `allocated` is not set"));
        } else if meta::is_deleting(claim.value()) && has_new_users(&users, old) {
            let detail =
                "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set";
            errors.push(users.forbidden(detail));
        }
        match old.pointer("/status/allocation").filter(|old| !old.is_null()) {
            Some(old) if allocation.is_set() && allocation.value() != old => {
                let error = allocation.invalid_as(Value::Null, "field cannot be modified once set");
                errors.declared(|errors| errors.push(error));
            }
            Some(_) => {}
            None => check_allocation(&allocation, &RequestNames::of(&claim.at_path("spec/devices")), errors),
        }
    })
}

fn check_user(user: &Field<'_>, errors: &mut Errors) {
    for name in ["resource", "name", "uid"] {
        user.at(name).require(errors);
    }
}

fn has_new_users(users: &Field<'_>, old: &Value) -> bool {
    let old = list_at(old, "/status/reservedFor");
    users.items().any(|user| !old.contains(user.value()))
}

fn check_devices(list: &Field<'_>, allocated: &BTreeSet<DeviceId<'_>>, errors: &mut Errors) {
    distinct(list, &["driver", "pool", "device", "shareID"], errors);
    for device in list.items() {
        driver_name(&device.at("driver"), errors);
        pool(&device.at("pool"), errors);
        device.at("device").check(names::dns_1123_label, errors);
        errors.declared(|errors| share_id(&device.at("shareID"), errors));
        let id = device_id(device.value());
        if !allocated.contains(&id) {
            let [driver, pool, device_name, share] = id.map(|part| json!(part));
            let shown = format!(
                "{{\"Driver\":{driver},\"Pool\":{pool},\"Device\":{device_name},\"ShareID\":{share}}}"
            );
            errors.push(device.invalid("must be an allocated device in the claim").showing(shown));
        }
        let list = device.at("conditions");
        is_too_long(&list, MOST_CONDITIONS, errors);
        conditions(&list, errors);
        if device.at("data").is_set() {
            data(&device.at("data"), false, errors);
        }
        check_network(&device.at("networkData"), errors);
    }
}

fn check_network(network: &Field<'_>, errors: &mut Errors) {
    let (addresses, interface) = (network.at("ips"), network.at("interfaceName"));
    errors.declared(|errors| check_length(&interface, LONGEST_INTERFACE, errors));
    if !is_beyond(&addresses, MOST_ADDRESSES, errors) {
        errors.declared(|errors| distinct_texts(&addresses, errors));
        addresses.items().for_each(|address| interface_address(&address, errors));
    }
    let address = network.at("hardwareAddress");
    errors.declared(|errors| check_length(&address, LONGEST_HARDWARE_ADDRESS, errors));
}

fn check_length(text: &Field<'_>, most: usize, errors: &mut Errors) {
    if text.text().len() > most {
        errors.push(text.too_long(most));
    }
}

fn check_allocation(allocation: &Field<'_>, names: &RequestNames<'_>, errors: &mut Errors) {
    let (results, config) = (allocation.at_path("devices/results"), allocation.at_path("devices/config"));
    if !is_beyond(&results, MOST_REQUESTS, errors) {
        results.items().for_each(|result| check_result(&result, names, errors));
    }
    // Configurations of the class and of the claim.
    if !is_beyond(&config, 2 * MOST_CONFIGURATIONS, errors) {
        for item in config.items() {
            let source = item.at("source");
            errors.declared(|errors| source.require_one_of(&["FromClaim", "FromClass"], errors));
            names.check_all(&item.at("requests"), errors);
            configuration(&item, false, errors);
        }
    }
    let selector = allocation.at("nodeSelector");
    if selector.is_set() {
        validate_node_selector(&selector, errors);
    }
}

fn check_result(result: &Field<'_>, names: &RequestNames<'_>, errors: &mut Errors) {
    names.check(&result.at("request"), errors);
    errors.declared(|errors| {
        declared_driver(&result.at("driver"), errors);
        declared_pool(&result.at("pool"), errors);
    });
    result.at("device").check(names::dns_1123_label, errors);
    binding_conditions(result, errors);
    tolerations(&result.at("tolerations"), errors);
    errors.declared(|errors| share_id(&result.at("shareID"), errors));
}
