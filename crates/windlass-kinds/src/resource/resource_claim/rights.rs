//! The rights to parts of the status of a claim: `resourceclaims/binding` for the allocation and the users, and
//! `resourceclaims/driver` for the devices of a driver. No request has these subresources.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use windlass_schema::FieldError;
use windlass_store::{Attributes, Identity, object_meta as meta};
use windlass_wire::{ApiError, names};

use super::status::device_id;
use crate::json::{list_at, text_at};
use crate::kind::WriteContext;

/// The node of a service account's token.
const NODE_NAME: &str = "authentication.kubernetes.io/node-name";

/// Returns the errors about parts of the status that the user may not change.
pub(super) fn errors(cx: &WriteContext<'_>, claim: &Value, old: &Value) -> Vec<FieldError> {
    let mut errors: Vec<FieldError> = binding(cx, claim, old).into_iter().collect();
    if claim.pointer("/status/allocation").is_some_and(Value::is_object) {
        errors.extend(devices(cx, claim, old));
    }
    errors
}

/// Checks a change of the allocation and of the users.
fn binding(cx: &WriteContext<'_>, claim: &Value, old: &Value) -> Option<FieldError> {
    let is_same = |pointer| claim.pointer(pointer) == old.pointer(pointer);
    if is_same("/status/allocation") && is_same("/status/reservedFor") {
        return None;
    }
    let why = authorize(cx, &Attributes { verb: cx.verb, subresource: "binding", ..CLAIMS }).err()?;
    let detail = format!(
        "changing status.allocation or status.reservedFor requires resource=\"resourceclaims/binding\", verb=\"{}\" permission: {}",
        cx.verb, why
    );
    Some(FieldError::forbidden("status.allocation", detail))
}

/// Checks the changes of devices, for each driver.
fn devices(cx: &WriteContext<'_>, claim: &Value, old: &Value) -> Vec<FieldError> {
    let drivers = changed_drivers(claim, old);
    let mut verbs = vec![format!("arbitrary-node:{}", cx.verb)];
    if is_on_node(cx.identity, node_of(claim)) {
        verbs.insert(0, format!("associated-node:{}", cx.verb));
    }
    let error = |driver: &str| {
        let refusals = verbs.iter().map(|verb| {
            let namespace = meta::namespace(claim);
            authorize(cx, &Attributes { verb, subresource: "driver", namespace, name: driver, ..CLAIMS })
                .err()
        });
        // One of the verbs is enough. The first refusal is reported.
        let why = refusals.collect::<Option<Vec<_>>>()?.into_iter().next()?;
        let detail = format!(
            "changing status.devices requires resource=\"resourceclaims/driver\", verb=\"[{}]\" permission: {}",
            verbs.join(" "),
            why
        );
        Some(FieldError::forbidden("status.devices", detail))
    };
    drivers.into_iter().filter_map(error).collect()
}

const CLAIMS: Attributes<'static> = Attributes {
    verb: "",
    group: "resource.k8s.io",
    resource: "resourceclaims",
    subresource: "",
    namespace: "",
    name: "",
    path: None,
};

fn authorize(cx: &WriteContext<'_>, right: &Attributes<'_>) -> Result<(), ApiError> {
    cx.authorizer.authorize(cx.store, cx.identity, right)
}

/// Returns the drivers with devices that are added, changed or removed.
fn changed_drivers<'a>(claim: &'a Value, old: &'a Value) -> BTreeSet<&'a str> {
    let list = |claim: &'a Value| list_at(claim, "/status/devices");
    let mut before: BTreeMap<_, &Value> =
        list(old).iter().map(|device| (device_id(device), device)).collect();
    let mut drivers = BTreeSet::new();
    for device in list(claim) {
        if before.remove(&device_id(device)) != Some(device) {
            drivers.insert(text_at(device, "/driver"));
        }
    }
    drivers.extend(before.values().map(|device| text_at(device, "/driver")));
    drivers
}

/// Returns the name of the only node that the allocation is for.
fn node_of(claim: &Value) -> Option<&str> {
    let [term] = list_at(claim, "/status/allocation/nodeSelector/nodeSelectorTerms") else { return None };
    let ([], [field]) = (list_at(term, "/matchExpressions"), list_at(term, "/matchFields")) else {
        return None;
    };
    let [value] = list_at(field, "/values") else { return None };
    let is_name = field["key"] == "metadata.name" && field["operator"] == "In";
    value.as_str().filter(|name| is_name && !name.is_empty())
}

/// Returns whether a user is a service account with the token of a pod on the node.
fn is_on_node(user: &Identity, node: Option<&str>) -> bool {
    let mut nodes = user.extra().iter().filter(|(key, _)| *key == NODE_NAME).flat_map(|(_, values)| values);
    let (Some(node), Some(of_user), None) = (node, nodes.next(), nodes.next()) else { return false };
    user.name().starts_with("system:serviceaccount:")
        && user.name().split(':').count() == 4
        && names::dns_1123_subdomain(of_user).is_empty()
        && of_user == node
}
