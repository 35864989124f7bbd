//! Keeps a terminating claim while a pod on a node uses the claim, and notes since when no pod refers to a bound claim.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{
    ContainerStatus, PersistentVolumeClaim, PersistentVolumeClaimCondition, Pod,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;
use kube_core::ResourceExt;
use windlass_runtime::{Action, Context, Controller, Error, HandlerContext, ObjectKey, Reconciler, Result};

use crate::component::ServerVersion;
use crate::finalizer::{done_unless_failed, is_held, without};
use crate::{adoption, pods};

const FINALIZER: &str = "kubernetes.io/pvc-protection";
/// The condition of a claim that no pod refers to.
const UNUSED: &str = "Unused";

/// Returns the controller.
pub(crate) fn controller() -> Controller {
    Controller::of::<PersistentVolumeClaim>(Protection::default())
        .named("pvc-protection-controller")
        .watches::<Pod>(claims)
}

/// Returns the claims that a pod names.
#[expect(clippy::unnecessary_wraps, reason = "the form of a mapper")]
fn claims(pod: &Pod, _cx: &HandlerContext) -> Result<Vec<ObjectKey>> {
    let namespace = pod.namespace().unwrap_or_default();
    Ok(pods::claims(pod).map(|(name, _)| ObjectKey::namespaced(&namespace, &name)).collect())
}

/// The controller. The condition exists since Kubernetes 1.37.
#[derive(Default)]
struct Protection {
    version: ServerVersion,
}

impl Reconciler<PersistentVolumeClaim> for Protection {
    type Error = Error;

    async fn reconcile(&self, key: ObjectKey, cx: Context<PersistentVolumeClaim>) -> Result<Action> {
        let Some(claim) = cx.get(&key)? else { return Ok(Action::done()) };
        let pods = cx.lister::<Pod>()?.namespace(&claim.namespace().unwrap_or_default()).all()?.complete()?;
        let pods: Vec<Arc<Pod>> = pods.into_iter().collect();
        if claim.metadata.deletion_timestamp.is_none() && self.version.minor(cx.client()).await? >= 37 {
            return note_use(&claim, &pods, &cx).await.map(|()| Action::done());
        }
        if !is_held(&*claim, FINALIZER) || pods.iter().any(|pod| uses(pod, &claim)) {
            return Ok(Action::done());
        }
        let released = cx.update(&without(&*claim, FINALIZER)).await;
        done_unless_failed(released)
    }
}

/// Writes the condition `Unused` of a bound claim. The binding writes the status of another claim.
async fn note_use(
    claim: &PersistentVolumeClaim,
    pods: &[Arc<Pod>],
    cx: &Context<PersistentVolumeClaim>,
) -> Result<()> {
    let mut status = claim.status.clone().unwrap_or_default();
    let is_unused = !pods.iter().any(|pod| refers_to(pod, claim));
    let conditions = status.conditions.get_or_insert_default();
    let place = conditions.iter().position(|condition| condition.type_ == UNUSED);
    let is_known = place.is_some_and(|place| (conditions[place].status == "True") == is_unused);
    if status.phase.as_deref() != Some("Bound") || is_known {
        return Ok(());
    }
    let next = unused_condition(is_unused, cx.now());
    match place {
        Some(place) => conditions[place] = next,
        None => conditions.push(next),
    }
    match cx.update_status(claim, status).await {
        Err(error) if !error.is_not_found() => Err(error),
        _ => Ok(()),
    }
}

fn unused_condition(is_unused: bool, now: Timestamp) -> PersistentVolumeClaimCondition {
    let (status, reason, message) = if is_unused {
        ("True", "NoPodsUsingPVC", "No pods are currently referencing this PVC")
    } else {
        ("False", "PodUsingPVC", "A pod is currently referencing this PVC")
    };
    PersistentVolumeClaimCondition {
        type_: UNUSED.to_owned(),
        status: status.to_owned(),
        reason: Some(reason.to_owned()),
        message: Some(message.to_owned()),
        last_transition_time: Some(Time(now)),
        last_probe_time: None,
    }
}

/// Returns whether a pod that has not ended names the claim. The pod may be on no node.
fn refers_to(pod: &Pod, claim: &PersistentVolumeClaim) -> bool {
    let statuses = pod.status.iter().flat_map(|status| status.container_statuses.iter().flatten());
    let runs = |container: &ContainerStatus| {
        let state = container.state.as_ref();
        state.is_none_or(|state| state.terminated.is_none() && state.waiting.is_none())
    };
    let has_ended = pods::has_finished(pod) || (pods::is_terminating(pod) && !statuses.clone().any(runs));
    !has_ended && names(pod, claim, true)
}

/// Returns whether a pod names the claim, as a claim or as an ephemeral volume. `counts_own` says whether claims of the
/// ephemeral volumes of the pod count.
fn names(pod: &Pod, claim: &PersistentVolumeClaim, counts_own: bool) -> bool {
    let is_own =
        || adoption::controller_of(claim).is_some_and(|owner| Some(&owner.uid) == pod.metadata.uid.as_ref());
    pods::claims(pod).any(|(name, is_ephemeral)| {
        claim.metadata.name.as_ref() == Some(&name) && (!is_ephemeral || (counts_own && is_own()))
    })
}

/// Returns whether a pod that is on a node mounts the claim.
fn uses(pod: &Pod, claim: &PersistentVolumeClaim) -> bool {
    let placed =
        pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()).is_some_and(|node| !node.is_empty());
    // A pod without containers may wait for the deletion of the pod's own claims.
    let has_ended = pod.metadata.deletion_grace_period_seconds == Some(0);
    placed && names(pod, claim, !has_ended)
}
