//! Creates, scales and deletes the ReplicaSets of Deployments.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::apps::v1::{Deployment, DeploymentStatus, ReplicaSet, ReplicaSetSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube_client::api::{Api, Patch};
use kube_core::{ObjectMeta, ResourceExt};
use serde_json::{Value, json};
use windlass_runtime::{Action, Context, Controller, Error, ObjectKey, Result};

use super::plan::{DESIRED, HASH_LABEL, MAXIMUM, REVISION, Task, plan};
use crate::adoption;
use crate::component::{self, KUBE_CONTROLLER_MANAGER};

const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";
/// The earlier revisions of a ReplicaSet that a rollback made current again.
const REVISION_HISTORY: &str = "deployment.kubernetes.io/revision-history";
/// The greatest length of that annotation.
const MAX_HISTORY: usize = 2000;

/// Returns the controller.
pub(crate) fn controller() -> Controller {
    Controller::of::<Deployment>(reconcile)
        .named("deployment-controller")
        .owns::<ReplicaSet>()
        .max_concurrent_reconciles(4)
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
    /// A ReplicaSet of another owner has the name. The next attempt uses another name.
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
                Err(error) => return Err(error),
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
            if let Some(history) = find(name).and_then(|set| history(set)) {
                annotations[REVISION_HISTORY] = history.into();
            }
            patch_set(deployment, name, json!({ "metadata": { "annotations": annotations } }), cx).await?;
        }
        Task::DeleteOld { name } => {
            if let Some(set) = find(name) {
                cx.delete(&**set).await?;
            }
        }
    }
    Ok(TaskResult::Done)
}

/// Returns the earlier revisions of a ReplicaSet, with the present revision: the history when the ReplicaSet
/// gets a new revision.
fn history(set: &ReplicaSet) -> Option<String> {
    let present = set.annotations().get(REVISION)?.clone();
    let before = set.annotations().get(REVISION_HISTORY).filter(|before| !before.is_empty());
    let Some(before) = before else { return Some(present) };
    let mut history = format!("{before},{present}");
    while history.len() > MAX_HISTORY {
        let (_, newer) = history.split_once(',')?;
        history = newer.to_owned();
    }
    Some(history)
}

/// Handles an existing name: of our own ReplicaSet that the cache has not seen yet, or of another owner's
/// ReplicaSet.
async fn collision(deployment: &Deployment, name: &str, cx: &Context<Deployment>) -> Result<TaskResult> {
    let there = api(deployment, cx).get_opt(name).await.map_err(Error::from)?;
    let ours = there.as_ref().and_then(adoption::controller_of).map(|owner| &owner.uid)
        == deployment.metadata.uid.as_ref();
    Ok(if ours { TaskResult::Done } else { TaskResult::NameCollision })
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
    let mut annotations = deployment.metadata.annotations.clone().unwrap_or_default();
    annotations.remove(LAST_APPLIED);
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
