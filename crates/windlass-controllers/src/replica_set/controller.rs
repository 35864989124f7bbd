//! Creates and deletes the pods of ReplicaSets.

use std::time::Duration;

use k8s_openapi::api::apps::v1::{ReplicaSet, ReplicaSetCondition, ReplicaSetStatus};
use k8s_openapi::api::core::v1::{Pod, PodTemplateSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube_core::{ObjectMeta, ResourceExt};
use windlass_runtime::{Action, Context, Controller, MapContext, ObjectKey, Result};

use super::plan::plan;
use crate::{adoption, conditions, labels};

/// Returns the controller.
pub(crate) fn controller() -> Controller {
    Controller::of::<ReplicaSet>(reconcile)
        .named("replicaset-controller")
        .owns::<Pod>()
        .watches::<Pod>(adopters)
        .concurrency(4)
}

/// Returns the ReplicaSets that may adopt a pod which has no controller.
fn adopters(pod: &Pod, cx: &MapContext) -> Result<Vec<ObjectKey>> {
    let Some(namespace) = pod.namespace().filter(|_| adoption::controller_of(pod).is_none()) else {
        return Ok(Vec::new());
    };
    let sets = cx.lister::<ReplicaSet>()?.namespace(&namespace).all()?;
    let selects = |set: &ReplicaSet| {
        set.spec.as_ref().is_some_and(|spec| labels::selects(&spec.selector, pod.metadata.labels.as_ref()))
    };
    let key = |set: &ReplicaSet| ObjectKey::namespaced(&namespace, &set.name_any());
    Ok(sets.iter().filter(|set| selects(set)).map(key).collect())
}

async fn reconcile(key: ObjectKey, cx: Context<ReplicaSet>) -> Result<Action> {
    let Some(set) = cx.get(&key)? else { return Ok(Action::done()) };
    let (Some(spec), Some(uid)) = (&set.spec, &set.metadata.uid) else { return Ok(Action::done()) };
    let pods = cx.lister::<Pod>()?.namespace(&set.namespace().unwrap_or_default()).all()?.complete()?;
    let owned = adoption::classify(pods, &spec.selector, uid).adopt_and_release(&*set, &cx).await?;
    let plan = plan(&set, &owned, cx.now());
    let template = spec.template.clone().unwrap_or_default();
    let mut failure = None;
    for _ in 0..plan.create {
        match cx.create(pod_of(&set, &template)).await {
            Ok(pod) => {
                let message = format!("Created pod: {}", pod.name_any());
                cx.recorder().normal(&*set, "SuccessfulCreate", message);
            }
            Err(error) => {
                cx.recorder().warning(&*set, "FailedCreate", format!("Error creating: {error}"));
                failure = Some(("FailedCreate", error));
                break;
            }
        }
    }
    for pod in &plan.delete {
        cx.delete(&**pod).await?;
        let message = format!("Deleted pod: {}", pod.name_any());
        cx.recorder().normal(&*set, "SuccessfulDelete", message);
    }
    let status =
        with_failure(plan.status, failure.as_ref().map(|(reason, error)| (*reason, error.to_string())), &cx);
    cx.update_status(&*set, status).await?;
    if let Some((_, error)) = failure {
        return Err(error);
    }
    let wait =
        plan.wake_at.map(|wake_at| Duration::try_from(wake_at.duration_since(cx.now())).unwrap_or_default());
    Ok(wait.map_or_else(Action::done, Action::requeue_after))
}

/// Sets the condition `ReplicaFailure` if pods cannot be created or deleted, and removes it otherwise.
fn with_failure(
    mut status: ReplicaSetStatus,
    failure: Option<(&str, String)>,
    cx: &Context<ReplicaSet>,
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
            conditions::set(list, condition, &Time(cx.now()));
        }
    }
    if list.is_empty() {
        status.conditions = None;
    }
    status
}

fn pod_of(set: &ReplicaSet, template: &PodTemplateSpec) -> Pod {
    let template_metadata = template.metadata.clone().unwrap_or_default();
    Pod {
        metadata: ObjectMeta {
            generate_name: Some(format!("{}-", set.name_any())),
            namespace: set.namespace(),
            labels: template_metadata.labels,
            annotations: template_metadata.annotations,
            finalizers: template_metadata.finalizers,
            owner_references: adoption::controller_reference(set).map(|owner| vec![owner]),
            ..ObjectMeta::default()
        },
        spec: template.spec.clone(),
        status: None,
    }
}
