//! The fields that a client may not set.

use serde_json::{Map, Value};
use windlass_wire::ApiError;

use super::Slices;
use crate::json::{entry_mut, items_mut, object_mut};
use crate::kind::{Prepare, WriteContext};

impl Prepare for Slices {
    fn prepare_create(&self, cx: &WriteContext<'_>, object: &mut Value) -> Result<(), ApiError> {
        prepare(cx, object);
        Ok(())
    }

    fn prepare_update(&self, cx: &WriteContext<'_>, object: &mut Value, _: &Value) -> Result<(), ApiError> {
        prepare(cx, object);
        Ok(())
    }
}

/// Drops the fields of features that are off by default, and sets the time of taints without a time.
fn prepare(cx: &WriteContext<'_>, object: &mut Value) {
    let Some(spec) = object_mut(object, "spec") else { return };
    spec.remove("partitionTypeAttribute");
    spec.remove("skipNodeOperations");
    for device in items_mut(spec, "devices") {
        drop_disabled(device);
        for taint in items_mut(device, "taints") {
            if taint.get("timeAdded").is_none_or(Value::is_null) {
                taint.insert("timeAdded".to_owned(), windlass_store::rfc3339(cx.env.now()).into());
            }
        }
    }
}

fn drop_disabled(device: &mut Map<String, Value>) {
    device.remove("nodeAllocatableResources");
    for consumption in items_mut(device, "consumesCounters") {
        consumption.remove("compatibilityGroups");
    }
    let Some(attributes) = entry_mut(device, "attributes") else { return };
    for attribute in attributes.values_mut().filter_map(Value::as_object_mut) {
        for list in ["ints", "bools", "strings", "versions"] {
            attribute.remove(list);
        }
    }
}
