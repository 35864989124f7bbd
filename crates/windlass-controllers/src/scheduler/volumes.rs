//! The claims of a pod, and the nodes where the claims' volumes can be used.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{Node, PersistentVolume, PersistentVolumeClaim, Pod};
use k8s_openapi::api::storage::v1::StorageClass;
use kube_core::ResourceExt;
use windlass_runtime::{Context, ObjectKey, Result};

use super::cluster::{NodeFacts, PodFacts};
use super::rejection::{Check, Rejection};
use crate::core::persistent_volume::{
    SELECTED_NODE, best_match, class_of, fits_node, is_bound, is_candidate,
};
use crate::pods::claims;
use crate::storage::storage_class::{can_provision, waits_for_consumer};

const OTHER_NODE: &str = "node(s) didn't match PersistentVolume's node affinity";
const NOTHING_TO_BIND: &str = "node(s) didn't find available persistent volumes to bind";
const NO_VOLUME: &str = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)";
const UNBOUND: &str = "pod has unbound immediate PersistentVolumeClaims";

/// The volumes of a pod.
#[derive(Debug, Default)]
pub(super) struct PodVolumes {
    /// The volumes of bound claims. `None` is a volume that does not exist.
    bound: Vec<Option<Arc<PersistentVolume>>>,
    /// The claims that are bound after the choice of a node.
    delayed: Vec<DelayedClaim>,
    /// The claims that only one pod may use.
    exclusive: Vec<String>,
}

/// A claim that is bound after the choice of a node.
#[derive(Debug)]
struct DelayedClaim {
    claim: Arc<PersistentVolumeClaim>,
    class: Arc<StorageClass>,
    /// The existing node that is selected for a pod of the claim.
    selected_node: Option<String>,
    /// The volumes that fit the claim on some node.
    candidates: Vec<Arc<PersistentVolume>>,
}

impl DelayedClaim {
    fn of(claim: Arc<PersistentVolumeClaim>, class: Arc<StorageClass>, cx: &Context<Pod>) -> Result<Self> {
        let selected_node = match claim.annotations().get(SELECTED_NODE) {
            // The pod needs another node if the node is gone.
            Some(node) => cx.lister::<Node>()?.get(&ObjectKey::cluster(node))?.map(|node| node.name_any()),
            None => None,
        };
        let volumes = cx.lister::<PersistentVolume>()?.all()?.into_iter();
        let candidates = volumes.filter(|volume| is_candidate(volume, &claim)).collect();
        Ok(Self { claim, class, selected_node, candidates })
    }
}

impl PodVolumes {
    /// Reads the claims of a pod. The inner error is the reason why the pod cannot be scheduled on any node.
    pub(super) fn of(pod: &Pod, cx: &Context<Pod>) -> Result<std::result::Result<Self, String>> {
        let mut found = Self::default();
        let namespace = pod.namespace().unwrap_or_default();
        let mut has_unbound = false;
        for (name, is_ephemeral) in claims(pod) {
            let key = ObjectKey::namespaced(&namespace, &name);
            let Some(claim) = cx.lister::<PersistentVolumeClaim>()?.get(&key)? else {
                return Ok(Err(missing(&name, is_ephemeral)));
            };
            if let Some(obstacle) = obstacle(pod, &claim, is_ephemeral) {
                return Ok(Err(obstacle));
            }
            if is_exclusive(&claim) {
                found.exclusive.push(name);
            }
            if is_bound(&claim) {
                let volume =
                    claim.spec.as_ref().and_then(|spec| spec.volume_name.clone()).unwrap_or_default();
                found.bound.push(cx.lister::<PersistentVolume>()?.get(&ObjectKey::cluster(&volume))?);
                continue;
            }
            match cx.lister::<StorageClass>()?.get(&ObjectKey::cluster(class_of(&claim)))? {
                Some(class) if waits_for_consumer(&class) => {
                    found.delayed.push(DelayedClaim::of(claim, class, cx)?);
                }
                _ => has_unbound = true,
            }
        }
        if has_unbound {
            return Ok(Err(UNBOUND.to_owned()));
        }
        Ok(Ok(found))
    }

    /// Returns why the volumes cannot be used on a node.
    pub(super) fn rejection(&self, node: &NodeFacts) -> Option<Rejection> {
        let rejected = |reason| Some(Rejection::unresolvable(Check::Volumes, reason));
        for volume in &self.bound {
            match volume {
                None => return rejected(NO_VOLUME),
                Some(volume) if !fits_node(volume, &node.name, &node.labels) => return rejected(OTHER_NODE),
                Some(_) => {}
            }
        }
        let mut taken: Vec<&str> = Vec::new();
        for DelayedClaim { claim, class, selected_node, candidates } in &self.delayed {
            if selected_node.as_ref().is_some_and(|selected| *selected != node.name) {
                return rejected(NOTHING_TO_BIND);
            }
            let free = candidates
                .iter()
                .map(|volume| &**volume)
                .filter(|volume| volume.metadata.name.as_deref().is_none_or(|name| !taken.contains(&name)));
            match best_match(claim, free, Some((&node.name, &node.labels)), false) {
                Some(volume) => taken.push(volume.metadata.name.as_deref().unwrap_or_default()),
                None if can_provision(class) && allows(class, node) => {}
                None => return rejected(NOTHING_TO_BIND),
            }
        }
        None
    }

    /// Returns whether another pod must not use a claim that this pod uses.
    pub(super) fn conflict(&self, namespace: &str, other: &PodFacts) -> bool {
        other.class.namespace == namespace && other.claims.iter().any(|claim| self.exclusive.contains(claim))
    }

    /// Returns whether a claim excludes other pods.
    pub(super) fn are_exclusive(&self) -> bool {
        !self.exclusive.is_empty()
    }

    /// Returns whether every claim is bound.
    pub(super) fn are_bound(&self) -> bool {
        self.delayed.is_empty()
    }

    /// Returns the claims that must be bound for a node.
    pub(super) fn delayed(&self) -> impl Iterator<Item = &PersistentVolumeClaim> {
        self.delayed.iter().map(|delayed| &*delayed.claim)
    }

    /// Returns whether each delayed claim waits for a volume on the node.
    pub(super) fn wait_for(&self, node: &str) -> bool {
        self.delayed().all(|claim| claim.annotations().get(SELECTED_NODE).is_some_and(|on| on == node))
    }
}

fn missing(name: &str, is_ephemeral: bool) -> String {
    if is_ephemeral {
        format!("waiting for ephemeral volume controller to create the persistentvolumeclaim {name:?}")
    } else {
        format!("persistentvolumeclaim {name:?} not found")
    }
}

fn is_exclusive(claim: &PersistentVolumeClaim) -> bool {
    let mut modes = claim.spec.iter().flat_map(|spec| spec.access_modes.iter().flatten());
    modes.any(|mode| mode == "ReadWriteOncePod")
}

/// Returns why a claim that exists cannot be used.
fn obstacle(pod: &Pod, claim: &PersistentVolumeClaim, is_ephemeral: bool) -> Option<String> {
    let name = claim.name_any();
    if claim.status.as_ref().is_some_and(|status| status.phase.as_deref() == Some("Lost")) {
        let volume = claim.spec.as_ref().and_then(|spec| spec.volume_name.clone()).unwrap_or_default();
        return Some(format!(
            "persistentvolumeclaim {name:?} bound to non-existent persistentvolume {volume:?}"
        ));
    }
    if claim.metadata.deletion_timestamp.is_some() {
        return Some(format!("persistentvolumeclaim {name:?} is being deleted"));
    }
    let mut owners = claim.owner_references().iter();
    let is_owned =
        owners.any(|owner| owner.controller == Some(true) && Some(&owner.uid) == pod.metadata.uid.as_ref());
    (is_ephemeral && !is_owned).then(|| {
        let namespace = claim.namespace().unwrap_or_default();
        format!(
            "PVC {namespace}/{name} was not created for pod {namespace}/{} (pod is not owner)",
            pod.name_any()
        )
    })
}

/// Returns whether volumes of the class can be provisioned for a node.
fn allows(class: &StorageClass, node: &NodeFacts) -> bool {
    let Some(terms) = class.allowed_topologies.as_ref().filter(|terms| !terms.is_empty()) else {
        return true;
    };
    terms.iter().any(|term| {
        term.match_label_expressions.iter().flatten().all(|requirement| {
            node.label(&requirement.key).is_some_and(|value| requirement.values.iter().any(|v| v == value))
        })
    })
}
