//! The usage of volume claims and device claims.

use std::collections::BTreeMap;

use serde_json::Value;
use windlass_schema::Quantity;

use super::resource_list::ResourceList;

const COUNT: &str = "persistentvolumeclaims";
const STORAGE: &str = "requests.storage";
const BY_CLASS: &str = ".storageclass.storage.k8s.io/";
const DEVICES_BY_CLASS: &str = ".deviceclass.resource.k8s.io/devices";
const LEGACY_CLASS: &str = "volume.beta.kubernetes.io/storage-class";
/// The count of a request for all devices: the largest number that can be allocated.
const ALL_DEVICES: i64 = 32;

/// Returns whether volume claims use a resource of a quota.
pub(crate) fn volume_claims_use(resource: &str) -> bool {
    let by_class = |name: &str| resource.strip_suffix(name).is_some_and(|rest| rest.ends_with(BY_CLASS));
    matches!(resource, "count/persistentvolumeclaims" | COUNT | STORAGE)
        || by_class(COUNT)
        || by_class(STORAGE)
}

/// Returns the usage of a volume claim.
pub(crate) fn of_volume_claim(claim: &Value) -> ResourceList {
    let mut used = ResourceList::new();
    let class = claim["metadata"]["annotations"][LEGACY_CLASS].as_str();
    let class = class.or_else(|| claim["spec"]["storageClassName"].as_str()).unwrap_or_default();
    let mut count = |name: &str, amount: Quantity| {
        used.insert(name.to_owned(), amount);
        if !class.is_empty() {
            used.insert(format!("{class}{BY_CLASS}{name}"), amount);
        }
    };
    count(COUNT, Quantity::whole(1));
    if let Some(storage) = storage(claim) {
        count(STORAGE, storage);
    }
    used.insert("count/persistentvolumeclaims".to_owned(), Quantity::whole(1));
    used
}

/// Returns the storage of a claim in whole bytes: the requested or the allocated storage, whichever is
/// larger.
fn storage(claim: &Value) -> Option<Quantity> {
    let amount = |value: &Value| value.as_str()?.parse::<Quantity>().ok().map(Quantity::round_up);
    let requested = amount(&claim["spec"]["resources"]["requests"]["storage"])?;
    let allocated = amount(&claim["status"]["allocatedResources"]["storage"]);
    Some(allocated.filter(|allocated| *allocated > requested).unwrap_or(requested))
}

/// Returns whether device claims use a resource of a quota.
pub(crate) fn device_claims_use(resource: &str) -> bool {
    resource == "count/resourceclaims.resource.k8s.io" || resource.ends_with(DEVICES_BY_CLASS)
}

/// Returns the usage of a `ResourceClaim`: devices by class.
pub(crate) fn of_device_claim(claim: &Value) -> ResourceList {
    let mut used =
        ResourceList::from([("count/resourceclaims.resource.k8s.io".to_owned(), Quantity::whole(1))]);
    for request in claim["spec"]["devices"]["requests"].as_array().into_iter().flatten() {
        // Only one alternative is allocated: the alternative with the most devices of a class counts.
        let alternatives = request["firstAvailable"].as_array().filter(|list| !list.is_empty());
        let wanted: Vec<&Value> = match alternatives {
            Some(alternatives) => alternatives.iter().collect(),
            None => vec![&request["exactly"]],
        };
        let mut most = BTreeMap::<&str, i64>::new();
        for wanted in wanted {
            let Some(class) = wanted["deviceClassName"].as_str() else { continue };
            let devices = most.entry(class).or_default();
            *devices = (*devices).max(devices_of(wanted));
        }
        for (class, devices) in most {
            let total = used.entry(format!("{class}{DEVICES_BY_CLASS}")).or_insert(Quantity::ZERO);
            *total = *total + Quantity::whole(devices);
        }
    }
    used
}

fn devices_of(request: &Value) -> i64 {
    match request["allocationMode"].as_str() {
        Some("ExactCount") => request["count"].as_i64().unwrap_or_default(),
        Some("All") => ALL_DEVICES,
        _ => 0,
    }
}
