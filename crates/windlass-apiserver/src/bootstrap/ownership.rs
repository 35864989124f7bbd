//! The managers of the fields of the server's own objects, as in kube-apiserver.

use futures::FutureExt;
use jiff::Timestamp;
use serde_json::{Value, json};
use windlass_kinds::Subresource;

use crate::managed_fields::{FieldManager, SERVER};
use crate::meta;
use crate::resource::Resource;
use crate::state::State;

/// The writer of the priority-and-fairness objects, and the writer of the status of these objects.
pub(super) const FLOW_CONTROL: (&str, &str) =
    ("api-priority-and-fairness-config-producer-v1", "api-priority-and-fairness-config-consumer-v1");
/// The writer of the status of ranges of service addresses.
const RANGES: &str = "kubernetes-service-cidr-controller";

/// Records who manages the fields of a new object of the server.
pub(super) fn record(state: &State, resource: &Resource, object: &mut Value, now: Timestamp) {
    let group = resource.group.as_str();
    let writer = if group == "flowcontrol.apiserver.k8s.io" { FLOW_CONTROL.0 } else { SERVER };
    let mut written = written(object);
    let served = state.served.load_full();
    let manager = |name, subresource| FieldManager { resource, served: &served, subresource, name, now };
    // The versions of built-in kinds are converted at once: these futures never wait.
    let _ = manager(writer, &Subresource::None).track(None, &mut written).now_or_never();
    let applier = match (group, resource.plural.as_str()) {
        ("flowcontrol.apiserver.k8s.io", "flowschemas") => Some(FLOW_CONTROL.1),
        ("networking.k8s.io", "servicecidrs") => Some(RANGES),
        _ => None,
    };
    if let Some(applier) = applier {
        let config = json!({
            "kind": object["kind"],
            "apiVersion": object["apiVersion"],
            "metadata": {"name": object["metadata"]["name"]},
            "status": applied(&object["status"]),
        });
        let applied =
            manager(applier, &Subresource::Status).apply(Some(&written), &config, true).now_or_never();
        if let Some(Ok(applied)) = applied {
            written = applied;
        }
    }
    meta::set(object, "managedFields", written.pointer("/metadata/managedFields").cloned());
}

/// Returns the status that a controller applies: conditions without an empty reason.
fn applied(status: &Value) -> Value {
    let mut status = status.clone();
    for condition in status["conditions"].as_array_mut().into_iter().flatten() {
        if condition["reason"] == ""
            && let Some(fields) = condition.as_object_mut()
        {
            fields.remove("reason");
        }
    }
    status
}

/// Returns the fields of an object that the writer sets. The server adds the other fields, which have no
/// manager.
fn written(object: &Value) -> Value {
    let mut written = object.clone();
    let added: &[&[&str]] = match object["kind"].as_str() {
        Some("Namespace") => &[&["spec"]],
        Some("Service") => &[&["spec", "clusterIPs"], &["spec", "ipFamilies"]],
        Some("ClusterRole") if object["aggregationRule"].is_object() => &[&["rules"]],
        _ => &[],
    };
    for path in added.iter().chain(&[&["status"][..]]) {
        let Some((last, parents)) = path.split_last() else { continue };
        let parent = parents.iter().try_fold(&mut written, |value, field| value.get_mut(*field));
        if let Some(fields) = parent.and_then(Value::as_object_mut) {
            fields.remove(*last);
        }
    }
    written
}
