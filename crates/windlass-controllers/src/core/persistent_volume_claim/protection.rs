//! Keeps a terminating claim while a pod on a node uses the claim.

use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use kube_core::ResourceExt;
use windlass_runtime::{Action, Context, Controller, HandlerContext, ObjectKey, Result};

use crate::finalizer::{done_unless_failed, is_held, without};
use crate::{adoption, pods};

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
    Ok(pods::claims(pod).map(|(name, _)| ObjectKey::namespaced(&namespace, &name)).collect())
}

async fn reconcile(key: ObjectKey, cx: Context<PersistentVolumeClaim>) -> Result<Action> {
    let Some(claim) = cx.get(&key)? else { return Ok(Action::done()) };
    if !is_held(&*claim, FINALIZER) {
        return Ok(Action::done());
    }
    let pods = cx.lister::<Pod>()?.namespace(&claim.namespace().unwrap_or_default()).all()?.complete()?;
    if pods.iter().any(|pod| uses(pod, &claim)) {
        return Ok(Action::done());
    }
    let released = cx.update(&without(&*claim, FINALIZER)).await;
    done_unless_failed(released)
}

/// Returns whether a pod that is on a node mounts the claim.
fn uses(pod: &Pod, claim: &PersistentVolumeClaim) -> bool {
    let placed =
        pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()).is_some_and(|node| !node.is_empty());
    // A pod without containers may wait for the deletion of the pod's own claims.
    let has_ended = pod.metadata.deletion_grace_period_seconds == Some(0);
    let is_own =
        || adoption::controller_of(claim).is_some_and(|owner| Some(&owner.uid) == pod.metadata.uid.as_ref());
    let mut names = pods::claims(pod);
    placed
        && names.any(|(name, is_ephemeral)| {
            claim.metadata.name.as_ref() == Some(&name) && (!is_ephemeral || (!has_ended && is_own()))
        })
}
