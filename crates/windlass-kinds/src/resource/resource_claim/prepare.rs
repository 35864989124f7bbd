//! The fields that a client may not set.

use serde_json::{Map, Value, json};
use windlass_wire::ApiError;

use super::Claims;
use super::status::{allocated, device_id};
use crate::json::{entry_mut, items_mut, list_at, object_mut};
use crate::kind::{Prepare, WriteContext};
use crate::subresource::Subresource;

impl Prepare for Claims {
    fn prepare_create(&self, _: &WriteContext<'_>, object: &mut Value) -> Result<(), ApiError> {
        if !self.template {
            object["status"] = json!({});
        }
        self.drop_disabled(object);
        Ok(())
    }

    fn prepare_update(&self, cx: &WriteContext<'_>, object: &mut Value, old: &Value) -> Result<(), ApiError> {
        if *cx.subresource == Subresource::Status {
            drop_operations(object);
            drop_deallocated(object, old);
        } else {
            self.drop_disabled(object);
        }
        Ok(())
    }
}

impl Claims {
    /// Drops the fields of features that are off by default.
    fn drop_disabled(&self, object: &mut Value) {
        let spec = object.pointer_mut(self.spec()).and_then(Value::as_object_mut);
        let Some(devices) = spec.and_then(|spec| entry_mut(spec, "devices")) else { return };
        for request in items_mut(devices, "requests") {
            if let Some(exactly) = entry_mut(request, "exactly") {
                exactly.remove("derivedAttributes");
            }
            for alternative in items_mut(request, "firstAvailable") {
                alternative.remove("derivedAttributes");
            }
        }
    }
}

/// Drops the operations that nodes leave out, because this feature is off by default.
fn drop_operations(object: &mut Value) {
    let devices = object.pointer_mut("/status/allocation/devices").and_then(Value::as_object_mut);
    for result in devices.into_iter().flat_map(|devices| items_mut(devices, "results")) {
        result.remove("skipNodeOperations");
    }
}

/// Drops the status of devices that are no longer allocated.
fn drop_deallocated(object: &mut Value, old: &Value) {
    let (now, before) = (allocated(object), allocated(old));
    let is_kept = |device: &Value| {
        let id = device_id(device);
        now.contains(&id) || !before.contains(&id)
    };
    let kept: Vec<bool> = list_at(object, "/status/devices").iter().map(is_kept).collect();
    if kept.iter().all(|is_kept| *is_kept) {
        return;
    }
    let Some(status) = object_mut(object, "status") else { return };
    keep(status, &kept);
}

fn keep(status: &mut Map<String, Value>, kept: &[bool]) {
    let mut kept = kept.iter();
    if let Some(devices) = status.get_mut("devices").and_then(Value::as_array_mut) {
        devices.retain(|_| kept.next().copied().unwrap_or_default());
        if devices.is_empty() {
            status.remove("devices");
        }
    }
}
