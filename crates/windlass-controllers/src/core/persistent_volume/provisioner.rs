//! The simulated provisioner: creates volumes without storage.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{
    CSIPersistentVolumeSource, Node, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm,
    ObjectReference, PersistentVolume, PersistentVolumeClaim, PersistentVolumeSpec, VolumeNodeAffinity,
};
use k8s_openapi::api::storage::v1::StorageClass;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kube_core::{ObjectMeta, ResourceExt};

use super::names::PROVISIONED_BY;
use crate::storage::storage_class::PROVISIONER;

/// The CSI driver of the volumes. The name of a driver has no slash.
const DRIVER: &str = "simulated.windlass.dev";
const ZONE: &str = "topology.kubernetes.io/zone";

/// Returns a volume for a claim. `node` is the node of the first pod: a volume in a zone is usable in this zone only.
pub(crate) fn volume(
    claim: &PersistentVolumeClaim,
    class: &StorageClass,
    node: Option<&Node>,
) -> PersistentVolume {
    let spec = claim.spec.clone().unwrap_or_default();
    let size = spec.resources.and_then(|resources| resources.requests?.remove("storage"));
    let name = volume_name(claim);
    let zone = node.and_then(|node| node.labels().get(ZONE)).cloned();
    PersistentVolume {
        metadata: ObjectMeta {
            name: Some(name.clone()),
            annotations: Some(BTreeMap::from([(PROVISIONED_BY.to_owned(), PROVISIONER.to_owned())])),
            ..ObjectMeta::default()
        },
        spec: Some(PersistentVolumeSpec {
            access_modes: spec.access_modes,
            capacity: Some(BTreeMap::from([(
                "storage".to_owned(),
                size.unwrap_or_else(|| Quantity("1Gi".to_owned())),
            )])),
            claim_ref: Some(reference(claim)),
            csi: Some(CSIPersistentVolumeSource {
                driver: DRIVER.to_owned(),
                volume_handle: name,
                ..CSIPersistentVolumeSource::default()
            }),
            mount_options: class.mount_options.clone(),
            node_affinity: zone.map(in_zone),
            persistent_volume_reclaim_policy: class.reclaim_policy.clone().or(Some("Delete".to_owned())),
            storage_class_name: class.metadata.name.clone(),
            volume_attributes_class_name: spec.volume_attributes_class_name,
            volume_mode: spec.volume_mode,
            ..PersistentVolumeSpec::default()
        }),
        status: None,
    }
}

/// Returns the name of the volume that is provisioned for a claim.
pub(crate) fn volume_name(claim: &PersistentVolumeClaim) -> String {
    format!("pvc-{}", claim.metadata.uid.as_deref().unwrap_or_default())
}

/// Returns the reference of a volume to the volume's claim.
pub(crate) fn reference(claim: &PersistentVolumeClaim) -> ObjectReference {
    ObjectReference {
        api_version: Some("v1".to_owned()),
        kind: Some("PersistentVolumeClaim".to_owned()),
        name: claim.metadata.name.clone(),
        namespace: claim.metadata.namespace.clone(),
        uid: claim.metadata.uid.clone(),
        resource_version: claim.metadata.resource_version.clone(),
        ..ObjectReference::default()
    }
}

fn in_zone(zone: String) -> VolumeNodeAffinity {
    let requirement =
        NodeSelectorRequirement { key: ZONE.to_owned(), operator: "In".to_owned(), values: Some(vec![zone]) };
    let term = NodeSelectorTerm { match_expressions: Some(vec![requirement]), ..NodeSelectorTerm::default() };
    VolumeNodeAffinity { required: Some(NodeSelector { node_selector_terms: vec![term] }) }
}
