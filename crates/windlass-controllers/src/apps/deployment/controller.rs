//! Creates, scales and deletes the ReplicaSets of Deployments.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::apps::v1::{Deployment, DeploymentStatus, ReplicaSet, ReplicaSetSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, Time};
use kube_client::api::{Api, Patch};
use kube_core::{ObjectMeta, ResourceExt};
use serde_json::{Value, json};
use windlass_runtime::{Action, Context, Controller, Error, HandlerContext, ObjectKey, Result};

use super::annotations::{self, DESIRED, MAXIMUM, REVISION, REVISION_HISTORY};
use super::conditions::{self, SET_NOT_CREATED};
use super::plan::{HASH_LABEL, Task, has_template_of, plan};
use crate::component::{self, KUBE_CONTROLLER_MANAGER};
use crate::pod_control::message_of;
use crate::{adoption, labels};

/// Returns the controller.
pub(crate) fn controller() -> Controller {
    Controller::of::<Deployment>(reconcile)
        .named("deployment-controller")
        .owns::<ReplicaSet>()
        .watches::<ReplicaSet>(adopters)
        .max_concurrent_reconciles(4)
}

/// Returns the Deployments that may adopt a ReplicaSet which has no controller.
fn adopters(set: &ReplicaSet, cx: &HandlerContext) -> Result<Vec<ObjectKey>> {
    let selects = |deployment: &Deployment| {
        let spec = deployment.spec.as_ref();
        spec.is_some_and(|spec| labels::selects(&spec.selector, set.metadata.labels.as_ref()))
    };
    adoption::adopters(set, cx, selects)
}

async fn reconcile(key: ObjectKey, cx: Context<Deployment>) -> Result<Action> {
    let Some(deployment) = cx.get(&key)? else { return Ok(Action::done()) };
    let (Some(spec), Some(uid)) = (&deployment.spec, &deployment.metadata.uid) else {
        return Ok(Action::done());
    };
    if deployment.metadata.deletion_timestamp.is_some() {
        return Ok(Action::done());
    }
    let namespace = deployment.namespace().unwrap_or_default();
    let sets = cx.lister::<ReplicaSet>()?.namespace(&namespace).all()?.complete()?;
    let sets = adoption::classify(sets, &spec.selector, uid).adopt_and_release(&*deployment, &cx).await?;
    let plan = plan(&deployment, &sets, cx.now());
    let mut status = plan.status;
    for task in &plan.tasks {
        if let TaskResult::NameCollision = run_task(task, &deployment, &sets, &cx).await? {
            *status.collision_count.get_or_insert_default() += 1;
        }
    }
    write_status(&deployment, plan.revision, status, &cx).await?;
    let wait =
        plan.wake_at.map(|wake_at| Duration::try_from(wake_at.duration_since(cx.now())).unwrap_or_default());
    Ok(wait.map_or_else(Action::done, Action::requeue_after))
}

enum TaskResult {
    Done,
    /// A ReplicaSet of another owner, or with another template, has the name. The next attempt uses another name.
    NameCollision,
}

async fn run_task(
    task: &Task,
    deployment: &Deployment,
    sets: &[Arc<ReplicaSet>],
    cx: &Context<Deployment>,
) -> Result<TaskResult> {
    let find = |name: &str| sets.iter().find(|set| set.metadata.name.as_deref() == Some(name));
    match task {
        Task::Create { hash, replicas, revision } => {
            let set = set_of(deployment, hash, *replicas, *revision);
            let name = set.name_any();
            match cx.create(set).await {
                Ok(_) if *replicas > 0 => record_scaling(deployment, &name, 0, *replicas, cx),
                Ok(_) => {}
                Err(error) if error.is_already_exists() => return collision(deployment, &name, cx).await,
                Err(error) => {
                    report_failure(deployment, &name, &error, cx).await;
                    return Err(error);
                }
            }
        }
        Task::Scale { name, from, to } => {
            let annotations = sizes(deployment);
            let patch = json!({ "metadata": { "annotations": annotations }, "spec": { "replicas": to } });
            patch_set(deployment, name, patch, cx).await?;
            if from != to {
                record_scaling(deployment, name, *from, *to, cx);
            }
        }
        Task::SetRevision { name, revision } => {
            let mut annotations = json!({ REVISION: revision.to_string() });
            if let Some(history) = find(name).and_then(|set| annotations::history(set)) {
                annotations[REVISION_HISTORY] = history.into();
            }
            patch_set(deployment, name, json!({ "metadata": { "annotations": annotations } }), cx).await?;
        }
        Task::CopyFields { name, annotations, min_ready_seconds } => {
            let spec = json!({ "minReadySeconds": min_ready_seconds });
            let patch = json!({ "metadata": { "annotations": annotations }, "spec": spec });
            patch_set(deployment, name, patch, cx).await?;
        }
        Task::DeleteOld { name } => {
            if let Some(set) = find(name) {
                cx.delete(&**set).await?;
            }
        }
    }
    Ok(TaskResult::Done)
}

/// Handles an existing name: of our own ReplicaSet that the cache has not seen yet, or of a ReplicaSet of another owner or with another
/// template.
async fn collision(deployment: &Deployment, name: &str, cx: &Context<Deployment>) -> Result<TaskResult> {
    let there = api(deployment, cx).get_opt(name).await.map_err(Error::from)?;
    let is_ours = there.is_some_and(|set| {
        let owner = adoption::controller_of(&set).map(|owner| &owner.uid);
        owner == deployment.metadata.uid.as_ref() && has_template_of(&set, deployment)
    });
    Ok(if is_ours { TaskResult::Done } else { TaskResult::NameCollision })
}

/// Records that a ReplicaSet cannot be created, as an Event, and as a condition of a Deployment with a deadline. A terminating namespace is
/// no failure of the rollout.
async fn report_failure(deployment: &Deployment, name: &str, error: &Error, cx: &Context<Deployment>) {
    if error.is_namespace_terminating() {
        return;
    }
    let message = format!("Failed to create new replica set {name:?}: {}", message_of(error));
    cx.recorder().warning(deployment, SET_NOT_CREATED, message.as_str());
    if !has_deadline(deployment) {
        return;
    }
    let now = Time(cx.now());
    let mut condition = conditions::new("Progressing", "False", SET_NOT_CREATED, message);
    condition.last_update_time = Some(now.clone());
    condition.last_transition_time = Some(now);
    let mut status = deployment.status.clone().unwrap_or_default();
    conditions::set_or_remove(status.conditions.get_or_insert_default(), "Progressing", Some(condition));
    // The caller has the error of the creation to report: a status that cannot be written matters less.
    if let Err(error) = write_status(deployment, 0, status, cx).await {
        tracing::debug!(%error, "the condition ReplicaSetCreateError is not written");
    }
}

/// Returns whether the rollout of a Deployment may be late. Kubernetes takes the largest number for no deadline.
fn has_deadline(deployment: &Deployment) -> bool {
    let deadline = deployment.spec.as_ref().and_then(|spec| spec.progress_deadline_seconds);
    deadline.is_some_and(|deadline| deadline != i32::MAX)
}

fn set_of(deployment: &Deployment, hash: &str, replicas: i32, revision: u64) -> ReplicaSet {
    let spec = deployment.spec.clone().unwrap_or_default();
    let label = |labels: Option<BTreeMap<String, String>>| {
        let mut labels = labels.unwrap_or_default();
        labels.insert(HASH_LABEL.to_owned(), hash.to_owned());
        labels
    };
    let mut template = spec.template;
    let metadata = template.metadata.get_or_insert_default();
    metadata.labels = Some(label(metadata.labels.take()));
    let labels = metadata.labels.clone();
    let mut annotations = annotations::copied(deployment);
    annotations.insert(REVISION.to_owned(), revision.to_string());
    annotations.extend(sizes(deployment));
    ReplicaSet {
        metadata: ObjectMeta {
            name: Some(format!("{}-{hash}", deployment.name_any())),
            namespace: deployment.namespace(),
            labels,
            annotations: Some(annotations),
            owner_references: adoption::controller_reference(deployment).map(|owner| vec![owner]),
            ..ObjectMeta::default()
        },
        spec: Some(ReplicaSetSpec {
            min_ready_seconds: spec.min_ready_seconds,
            replicas: Some(replicas),
            selector: LabelSelector {
                match_labels: Some(label(spec.selector.match_labels)),
                ..spec.selector
            },
            template: Some(template),
        }),
        status: None,
    }
}

/// Returns the annotations of a ReplicaSet with the sizes of the Deployment.
fn sizes(deployment: &Deployment) -> BTreeMap<String, String> {
    let (desired, maximum) = super::plan::sizes(deployment);
    BTreeMap::from([(DESIRED.to_owned(), desired.to_string()), (MAXIMUM.to_owned(), maximum.to_string())])
}

fn record_scaling(deployment: &Deployment, name: &str, from: i32, to: i32, cx: &Context<Deployment>) {
    let direction = if to > from { "up" } else { "down" };
    let message = format!("Scaled {direction} replica set {name} from {from} to {to}");
    cx.recorder().normal(deployment, "ScalingReplicaSet", message);
}

/// Writes the status and the revision annotation in one request to the status subresource, which keeps the generation.
async fn write_status(
    deployment: &Deployment,
    revision: u64,
    status: DeploymentStatus,
    cx: &Context<Deployment>,
) -> Result<()> {
    let mut next = Deployment { status: Some(status), ..deployment.clone() };
    if revision > 0 {
        next.annotations_mut().insert(REVISION.to_owned(), revision.to_string());
    }
    if serde_json::to_value(&next).map_err(Error::other)?
        == serde_json::to_value(deployment).map_err(Error::other)?
    {
        return Ok(());
    }
    let deployments: Api<Deployment> =
        Api::namespaced(cx.client().clone(), &deployment.namespace().unwrap_or_default());
    let written = deployments
        .replace_status(&deployment.name_any(), &component::post(KUBE_CONTROLLER_MANAGER), &next)
        .await;
    ignore_gone(written.map(drop).map_err(Error::from))
}

async fn patch_set(
    deployment: &Deployment,
    name: &str,
    patch: Value,
    cx: &Context<Deployment>,
) -> Result<()> {
    let patched = api(deployment, cx)
        .patch(name, &component::patch(KUBE_CONTROLLER_MANAGER), &Patch::Merge(patch))
        .await;
    ignore_gone(patched.map(drop).map_err(Error::from))
}

fn ignore_gone(outcome: Result<()>) -> Result<()> {
    match outcome {
        Err(error) if error.is_not_found() => Ok(()),
        other => other,
    }
}

fn api(deployment: &Deployment, cx: &Context<Deployment>) -> Api<ReplicaSet> {
    Api::namespaced(cx.client().clone(), &deployment.namespace().unwrap_or_default())
}
