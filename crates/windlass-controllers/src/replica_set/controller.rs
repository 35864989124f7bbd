//! Creates and deletes the pods of ReplicaSets and ReplicationControllers.

use k8s_openapi::api::apps::v1::{ReplicaSet, ReplicaSetCondition, ReplicaSetStatus};
use k8s_openapi::api::core::v1::{Pod, ReplicationController};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;
use kube_core::ResourceExt;
use windlass_runtime::{Action, Context, Controller, HandlerContext, ObjectKey, Result};

use super::owner::ReplicaOwner;
use super::plan::plan;
use crate::pod_control::{self, message_of};
use crate::{adoption, conditions, labels, pods, wake};

/// Returns the controller of ReplicaSets.
pub(crate) fn replica_sets() -> Controller {
    controller::<ReplicaSet>()
}

/// Returns the controller of ReplicationControllers.
pub(crate) fn replication_controllers() -> Controller {
    controller::<ReplicationController>()
}

fn controller<K: ReplicaOwner>() -> Controller {
    Controller::of::<K>(reconcile::<K>)
        .named(K::CONTROLLER)
        .owns::<Pod>()
        .watches::<Pod>(adopters::<K>)
        .max_concurrent_reconciles(4)
}

/// Returns the owners that may adopt a pod which has no controller.
fn adopters<K: ReplicaOwner>(pod: &Pod, cx: &HandlerContext) -> Result<Vec<ObjectKey>> {
    let Some(namespace) = pod.namespace().filter(|_| adoption::controller_of(pod).is_none()) else {
        return Ok(Vec::new());
    };
    let owners = cx.lister::<K>()?.namespace(&namespace).all()?;
    let selects = |owner: &K| {
        let spec = owner.to_replica_set().spec;
        spec.is_some_and(|spec| labels::selects(&spec.selector, pod.metadata.labels.as_ref()))
    };
    let key = |owner: &K| ObjectKey::namespaced(&namespace, &owner.name_any());
    Ok(owners.iter().filter(|owner| selects(owner)).map(key).collect())
}

async fn reconcile<K: ReplicaOwner>(key: ObjectKey, cx: Context<K>) -> Result<Action> {
    let Some(owner) = cx.get(&key)? else { return Ok(Action::done()) };
    let set = owner.to_replica_set();
    let (Some(spec), Some(uid)) = (&set.spec, &set.metadata.uid) else { return Ok(Action::done()) };
    let pods = cx.lister::<Pod>()?.namespace(&set.namespace().unwrap_or_default()).all()?.complete()?;
    let owned = adoption::classify(pods, &spec.selector, uid).adopt_and_release(&*owner, &cx).await?;
    let plan = plan(&set, &owned, cx.now());
    let template = spec.template.clone().unwrap_or_default();
    let mut failure = None;
    for _ in 0..plan.create {
        let pod = pods::from_template(&template, &*owner);
        if let Err(error) = pod_control::create(&cx, &*owner, pod).await {
            failure = Some(("FailedCreate", error));
            break;
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
