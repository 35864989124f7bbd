//! Fields of pods that belong to features that are off by default. kube-apiserver drops them.

use serde_json::{Map, Value};

use crate::json::{entry_mut, items_mut};

/// Removes the fields from the spec of a pod.
pub(crate) fn drop_disabled(spec: &mut Map<String, Value>) {
    spec.remove("schedulingGroup");
    for list in ["containers", "initContainers", "ephemeralContainers"] {
        for container in items_mut(spec, list) {
            let Some(lifecycle) = entry_mut(container, "lifecycle") else { continue };
            if lifecycle.remove("stopSignal").is_some() && lifecycle.is_empty() {
                container.remove("lifecycle");
            }
        }
    }
    for volume in items_mut(spec, "volumes") {
        let Some(projected) = entry_mut(volume, "projected") else { continue };
        for source in items_mut(projected, "sources") {
            source.remove("clusterTrustBundle");
            source.remove("podCertificate");
        }
    }
}
