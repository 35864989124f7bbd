//! The simulated provisioner: creates volumes without storage.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{
    CSIPersistentVolumeSource, Node, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm,
    ObjectReference, PersistentVolume, PersistentVolumeClaim, PersistentVolumeSpec, VolumeNodeAffinity,
};
use k8s_openapi::api::storage::v1::StorageClass;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kube_client::api::Api;
use kube_core::{ObjectMeta, ResourceExt};
use windlass_runtime::{Error, Result, RunContext};

use super::names::{IS_DEFAULT, PROVISIONED_BY};
use crate::component::{self, KUBE_CONTROLLER_MANAGER};

/// The name of the provisioner and of the CSI driver.
pub(super) const PROVISIONER: &str = "windlass.dev/simulated";
/// The CSI driver of the volumes. The name of a driver has no slash.
const DRIVER: &str = "simulated.windlass.dev";
/// The name of the default class, as in kind and minikube.
const DEFAULT_CLASS: &str = "standard";
const ZONE: &str = "topology.kubernetes.io/zone";

/// Returns whether volumes of the class can be provisioned: by the simulated provisioner, or by another program.
pub(crate) fn can_provision(class: &StorageClass) -> bool {
    !class.provisioner.is_empty() && class.provisioner != "kubernetes.io/no-provisioner"
}

/// Creates the default class, unless the class exists.
pub(crate) async fn keep_default_class(cx: RunContext) -> Result<()> {
    let classes: Api<StorageClass> = Api::all(cx.client().clone());
    let class = StorageClass {
        metadata: ObjectMeta {
            name: Some(DEFAULT_CLASS.to_owned()),
            annotations: Some(BTreeMap::from([(IS_DEFAULT.to_owned(), "true".to_owned())])),
            ..ObjectMeta::default()
        },
        provisioner: PROVISIONER.to_owned(),
        reclaim_policy: Some("Delete".to_owned()),
        volume_binding_mode: Some("WaitForFirstConsumer".to_owned()),
        allow_volume_expansion: Some(true),
        ..StorageClass::default()
    };
    let created = classes.create(&component::post(KUBE_CONTROLLER_MANAGER), &class).await;
    match created.map_err(Error::from) {
        Err(error) if !error.is_already_exists() => {
            Err(error.while_doing("creating the default StorageClass"))
        }
        _ => Ok(()),
    }
}

/// Returns a volume for a claim. `node` is the node of the first pod: a volume in a zone is usable in this zone only.
pub(super) fn volume(
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
pub(super) fn volume_name(claim: &PersistentVolumeClaim) -> String {
    format!("pvc-{}", claim.metadata.uid.as_deref().unwrap_or_default())
}

/// Returns the reference of a volume to the volume's claim.
pub(super) fn reference(claim: &PersistentVolumeClaim) -> ObjectReference {
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
