//! The lengths of lists, and elements that come twice.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::field::{Errors, Field};

/// The fields of objects in errors, in the order of the fields in Go.
const FIELDS: [&str; 37] = [
    "apiGroup",
    "resource",
    "name",
    "uid",
    "exactly",
    "firstAvailable",
    "deviceClassName",
    "selectors",
    "allocationMode",
    "count",
    "adminAccess",
    "key",
    "operator",
    "value",
    "effect",
    "tolerationSeconds",
    "tolerations",
    "capacity",
    "counterSet",
    "counters",
    "driver",
    "pool",
    "device",
    "shareID",
    "conditions",
    "data",
    "networkData",
    "interfaceName",
    "ips",
    "hardwareAddress",
    "requests",
    "type",
    "status",
    "observedGeneration",
    "lastTransitionTime",
    "reason",
    "message",
];

/// Reports a list that is too long. Returns whether the list is too long.
pub(super) fn is_too_long(list: &Field<'_>, most: usize, errors: &mut Errors) -> bool {
    let is_too_long = list.len() > most;
    if is_too_long {
        errors.push(list.too_many(most));
    }
    is_too_long
}

/// Works like [`is_too_long`], for a limit that kube-apiserver declares in its types.
pub(super) fn is_beyond(list: &Field<'_>, most: usize, errors: &mut Errors) -> bool {
    let mut is_beyond = false;
    errors.declared(|errors| is_beyond = is_too_long(list, most, errors));
    is_beyond
}

/// Reports texts that come twice.
pub(super) fn distinct_texts(list: &Field<'_>, errors: &mut Errors) {
    let mut seen = BTreeSet::new();
    for item in list.items() {
        if !seen.insert(item.text()) {
            errors.push(item.duplicate());
        }
    }
}

/// Reports objects whose `keys` have the values of an earlier object, as kube-apiserver declares in its types.
pub(super) fn distinct(list: &Field<'_>, keys: &[&str], errors: &mut Errors) {
    let mut seen = BTreeSet::new();
    for item in list.items() {
        let key: Vec<&str> = keys.iter().map(|key| item.at(key).text()).collect();
        if !seen.insert(key) {
            errors.declared(|errors| errors.push(item.duplicate().showing(go_object(item.value()))));
        }
    }
}

/// Returns the JSON of a value with the fields in the order of Go.
pub(super) fn go_object(value: &Value) -> String {
    match value {
        Value::Object(fields) => {
            let place = |name: &str| FIELDS.iter().position(|known| *known == name).unwrap_or(FIELDS.len());
            let mut fields: Vec<_> = fields.iter().filter(|(_, value)| !is_empty(value)).collect();
            fields.sort_by_key(|(name, _)| place(name));
            let fields: Vec<String> =
                fields.iter().map(|(name, value)| format!("{name:?}:{}", go_object(value))).collect();
            format!("{{{}}}", fields.join(","))
        }
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(go_object).collect();
            format!("[{}]", items.join(","))
        }
        scalar => scalar.to_string(),
    }
}

/// Returns whether Go leaves a field with the value out.
fn is_empty(value: &Value) -> bool {
    value.as_array().is_some_and(Vec::is_empty) || value.as_object().is_some_and(serde_json::Map::is_empty)
}
