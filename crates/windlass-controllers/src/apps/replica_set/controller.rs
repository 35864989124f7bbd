//! Creates and deletes the pods of ReplicaSets and ReplicationControllers.

use std::sync::Arc;

use k8s_openapi::api::apps::v1::{ReplicaSetCondition, ReplicaSetStatus};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, Time};
use k8s_openapi::jiff::Timestamp;
use kube_core::ResourceExt;
use windlass_runtime::{Action, Context, Controller, HandlerContext, ObjectKey, Result};

use super::owner::ReplicaOwner;
use super::plan::plan;
use crate::pod_control::{self, message_of};
use crate::{adoption, conditions, labels, pods, wake};

/// Returns the controller of a kind with equal pods.
pub(crate) fn controller<K: ReplicaOwner>() -> Controller {
    Controller::of::<K>(reconcile::<K>)
        .named(K::CONTROLLER)
        .owns::<Pod>()
        .watches::<Pod>(adopters::<K>)
        .max_concurrent_reconciles(4)
}

/// Returns the owners that may adopt a pod which has no controller.
fn adopters<K: ReplicaOwner>(pod: &Pod, cx: &HandlerContext) -> Result<Vec<ObjectKey>> {
    let selects = |owner: &K| {
        let spec = owner.to_replica_set().spec;
        spec.is_some_and(|spec| labels::selects(&spec.selector, pod.metadata.labels.as_ref()))
    };
    adoption::adopters(pod, cx, selects)
}

async fn reconcile<K: ReplicaOwner>(key: ObjectKey, cx: Context<K>) -> Result<Action> {
    let Some(owner) = cx.get(&key)? else { return Ok(Action::done()) };
    let set = owner.to_replica_set();
    let (Some(spec), Some(uid)) = (&set.spec, &set.metadata.uid) else { return Ok(Action::done()) };
    let pods = cx.lister::<Pod>()?.namespace(&set.namespace().unwrap_or_default()).all()?.complete()?;
    let pods: Vec<Arc<Pod>> = pods.into_iter().collect();
    let owned =
        adoption::classify(pods.iter().cloned(), &spec.selector, uid).adopt_and_release(&*owner, &cx).await?;
    let is_too_large = i32::try_from(owned.len()).is_ok_and(|count| count > spec.replicas.unwrap_or(1));
    let related = if is_too_large { related_pods(&*owner, pods, &cx)? } else { Vec::new() };
    let plan = plan(&set, &owned, &related, cx.now());
    let template = spec.template.clone().unwrap_or_default();
    let mut failure = None;
    for _ in 0..plan.create {
        let pod = pods::from_template(&template, &*owner);
        match pod_control::create(&cx, &*owner, pod).await {
            Ok(Some(_)) => {}
            Ok(None) => break,
            Err(error) => {
                failure = Some(("FailedCreate", error));
                break;
            }
        }
    }
    for pod in &plan.delete {
        if let Err(error) = pod_control::delete(&cx, &*owner, pod).await {
            failure = Some(("FailedDelete", error));
            break;
        }
    }
    let told = failure.as_ref().map(|(reason, error)| (*reason, message_of(error)));
    cx.update_status(&*owner, K::status(with_failure(plan.status, told, cx.now()))).await?;
    match failure {
        Some((_, error)) => Err(error),
        None => Ok(wake::at(plan.wake_at, cx.now())),
    }
}

/// Returns the pods of all sets with the same controller, such as the sets of a Deployment. A set without a controller has no related
/// pods.
fn related_pods<K: ReplicaOwner>(owner: &K, pods: Vec<Arc<Pod>>, cx: &Context<K>) -> Result<Vec<Arc<Pod>>> {
    let Some(parent) = adoption::controller_of(owner) else { return Ok(Vec::new()) };
    let sets = cx.lister::<K>()?.namespace(&owner.namespace().unwrap_or_default()).all()?;
    let is_sibling =
        |set: &K| adoption::controller_of(set).is_some_and(|controller| controller.uid == parent.uid);
    let siblings = sets.iter().filter(|set| is_sibling(set)).filter_map(|set| set.to_replica_set().spec);
    let selectors: Vec<LabelSelector> = siblings.map(|spec| spec.selector).collect();
    let is_related = |pod: &Arc<Pod>| {
        selectors.iter().any(|selector| labels::selects(selector, pod.metadata.labels.as_ref()))
    };
    Ok(pods.into_iter().filter(is_related).collect())
}

/// Sets the condition `ReplicaFailure` if pods cannot be created or deleted, and removes it otherwise.
fn with_failure(
    mut status: ReplicaSetStatus,
    failure: Option<(&str, String)>,
    now: Timestamp,
) -> ReplicaSetStatus {
    let list = status.conditions.get_or_insert_default();
    match failure {
        None => list.retain(|condition| condition.type_ != "ReplicaFailure"),
        Some((reason, message)) => {
            let condition = ReplicaSetCondition {
                type_: "ReplicaFailure".to_owned(),
                status: "True".to_owned(),
                reason: Some(reason.to_owned()),
                message: Some(message),
                last_transition_time: None,
            };
            conditions::set(list, condition, &Time(now));
        }
    }
    if list.is_empty() {
        status.conditions = None;
    }
    status
}
