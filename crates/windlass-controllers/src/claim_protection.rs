//! Keeps a terminating claim while a pod on a node uses the claim.

use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use kube_core::{Resource, ResourceExt};
use windlass_runtime::{Action, Context, Controller, HandlerContext, ObjectKey, Result};

const FINALIZER: &str = "kubernetes.io/pvc-protection";

/// Returns the controller.
pub(crate) fn controller() -> Controller {
    Controller::of::<PersistentVolumeClaim>(reconcile)
        .named("pvc-protection-controller")
        .watches::<Pod>(claims)
}

/// Returns the claims that a pod names.
#[expect(clippy::unnecessary_wraps, reason = "the form of a mapper")]
fn claims(pod: &Pod, _cx: &HandlerContext) -> Result<Vec<ObjectKey>> {
    let namespace = pod.namespace().unwrap_or_default();
    Ok(claim_names(pod).map(|name| ObjectKey::namespaced(&namespace, name)).collect())
}

async fn reconcile(key: ObjectKey, cx: Context<PersistentVolumeClaim>) -> Result<Action> {
    let Some(claim) = cx.get(&key)? else { return Ok(Action::done()) };
    let held = claim.finalizers().iter().any(|finalizer| finalizer == FINALIZER);
    if !held || claim.meta().deletion_timestamp.is_none() {
        return Ok(Action::done());
    }
    let pods = cx.lister::<Pod>()?.namespace(&claim.namespace().unwrap_or_default()).all()?.complete()?;
    if pods.iter().any(|pod| uses(pod, key.name())) {
        return Ok(Action::done());
    }
    let mut next = (*claim).clone();
    next.finalizers_mut().retain(|finalizer| finalizer != FINALIZER);
    match cx.update(&next).await {
        Err(error) if !error.is_not_found() => Err(error),
        _ => Ok(Action::done()),
    }
}

/// Returns whether a pod that is on a node mounts the claim.
fn uses(pod: &Pod, claim: &str) -> bool {
    let placed =
        pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()).is_some_and(|node| !node.is_empty());
    placed && claim_names(pod).any(|name| name == claim)
}

fn claim_names(pod: &Pod) -> impl Iterator<Item = &str> {
    let volumes = pod.spec.iter().flat_map(|spec| spec.volumes.iter().flatten());
    volumes
        .filter_map(|volume| volume.persistent_volume_claim.as_ref())
        .map(|claim| claim.claim_name.as_str())
}
