//! Fields of pods that belong to features that are off by default. kube-apiserver drops them.

use serde_json::{Map, Value};

use crate::json::{entry_mut, items_mut};

/// Removes the fields from the spec of a pod.
pub(crate) fn drop_disabled(spec: &mut Map<String, Value>) {
    spec.remove("schedulingGroup");
    spec.remove("evictionResponders");
    for list in ["containers", "initContainers", "ephemeralContainers"] {
        items_mut(spec, list).for_each(drop_of_container);
    }
    items_mut(spec, "volumes").for_each(drop_of_volume);
}

fn drop_of_container(container: &mut Map<String, Value>) {
    for mount in items_mut(container, "volumeMounts") {
        mount.remove("bindMountOptions");
    }
    for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
        let Some(probe) = entry_mut(container, probe) else { continue };
        drop_protocol(probe);
        if let Some(grpc) = entry_mut(probe, "grpc") {
            grpc.remove("mode");
        }
    }
    let Some(lifecycle) = entry_mut(container, "lifecycle") else { return };
    for handler in ["postStart", "preStop"] {
        if let Some(handler) = entry_mut(lifecycle, handler) {
            drop_protocol(handler);
        }
    }
    if lifecycle.remove("stopSignal").is_some() && lifecycle.is_empty() {
        container.remove("lifecycle");
    }
}

fn drop_protocol(handler: &mut Map<String, Value>) {
    if let Some(get) = entry_mut(handler, "httpGet") {
        get.remove("protocol");
    }
}

/// Removes the modes of empty directories, and the owners of files.
fn drop_of_volume(volume: &mut Map<String, Value>) {
    if let Some(directory) = entry_mut(volume, "emptyDir") {
        directory.remove("mode");
    }
    for source in ["secret", "configMap", "downwardAPI"] {
        if let Some(source) = entry_mut(volume, source) {
            drop_users(source);
        }
    }
    let Some(projected) = entry_mut(volume, "projected") else { return };
    drop_users(projected);
    for source in items_mut(projected, "sources") {
        for kind in ["secret", "configMap", "downwardAPI"] {
            if let Some(source) = entry_mut(source, kind) {
                drop_users(source);
            }
        }
        for kind in ["serviceAccountToken", "clusterTrustBundle", "podCertificate"] {
            if let Some(source) = entry_mut(source, kind) {
                source.remove("user");
            }
        }
    }
}

fn drop_users(source: &mut Map<String, Value>) {
    source.remove("defaultUser");
    for item in items_mut(source, "items") {
        item.remove("user");
    }
}
