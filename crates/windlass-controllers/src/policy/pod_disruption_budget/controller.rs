//! Writes the status of PodDisruptionBudgets.

use std::sync::Arc;

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::core::v1::{Pod, ReplicationController};
use k8s_openapi::api::policy::v1::{PodDisruptionBudget, PodDisruptionBudgetStatus};
use kube_client::api::Api;
use kube_core::{Resource, ResourceExt};
use windlass_runtime::{Action, Context, Controller, Error, HandlerContext, ObjectKey, Result};

use super::plan::{failed, needs_scale, plan};
use super::scale;
use crate::component::{self, KUBE_CONTROLLER_MANAGER};
use crate::{labels, wake};

/// Returns the controller.
pub(crate) fn controller() -> Controller {
    Controller::of::<PodDisruptionBudget>(reconcile)
        .named("controllermanager")
        .watches::<Pod>(budgets_of_pod)
        .watches::<ReplicaSet>(budgets_of_namespace)
        .watches::<StatefulSet>(budgets_of_namespace)
        .watches::<Deployment>(budgets_of_namespace)
        .watches::<ReplicationController>(budgets_of_namespace)
        .max_concurrent_reconciles(2)
}

fn budgets_of_pod(pod: &Pod, cx: &HandlerContext) -> Result<Vec<ObjectKey>> {
    budgets(pod, cx, |budget| selects(budget, pod))
}

/// Returns all budgets of the namespace: the pods of a budget may belong to the controller.
fn budgets_of_namespace<K: Resource>(owner: &K, cx: &HandlerContext) -> Result<Vec<ObjectKey>> {
    budgets(owner, cx, |_| true)
}

fn budgets<K: Resource>(
    object: &K,
    cx: &HandlerContext,
    concerns: impl Fn(&PodDisruptionBudget) -> bool,
) -> Result<Vec<ObjectKey>> {
    let namespace = object.namespace().unwrap_or_default();
    let budgets = cx.lister::<PodDisruptionBudget>()?.namespace(&namespace).all()?;
    let key = |budget: &PodDisruptionBudget| ObjectKey::namespaced(&namespace, &budget.name_any());
    Ok(budgets.iter().filter(|budget| concerns(budget)).map(key).collect())
}

/// Returns whether a budget is for a pod. A budget without a selector is for none.
fn selects(budget: &PodDisruptionBudget, pod: &Pod) -> bool {
    let selector = budget.spec.as_ref().and_then(|spec| spec.selector.as_ref());
    selector.is_some_and(|selector| labels::selects(selector, pod.metadata.labels.as_ref()))
}

async fn reconcile(key: ObjectKey, cx: Context<PodDisruptionBudget>) -> Result<Action> {
    let Some(budget) = cx.get(&key)? else { return Ok(Action::done()) };
    let pods = cx.lister::<Pod>()?.namespace(&budget.namespace().unwrap_or_default()).all()?.complete()?;
    let pods: Vec<Arc<Pod>> = pods.into_iter().filter(|pod| selects(&budget, pod)).collect();
    if pods.is_empty() {
        cx.recorder().normal(&*budget, "NoPods", "No matching pods found");
    }
    let scale = if needs_scale(&budget) {
        match scale::of_owners(&pods, &cx).await {
            Ok(scale) => Some(scale),
            Err(error) => return fail(&budget, &error, &cx).await,
        }
    } else {
        None
    };
    let plan = plan(&budget, &pods, scale, cx.now());
    if plan.unmanaged {
        let message = "Pods selected by this PodDisruptionBudget were found to be unmanaged. As a result, the status of the PDB cannot \
                       be calculated correctly, which may result in undefined behavior. To account for these pods please set \
                       \".spec.minAvailable\" field of the PDB to an integer value.";
        cx.recorder().warning(&*budget, "UnmanagedPods", message);
    }
    for pod in &plan.not_deleted {
        let namespace = budget.namespace().unwrap_or_default();
        let message = format!("Pod was expected by PDB {namespace}/{namespace} to be deleted but it wasn't");
        cx.recorder().warning(&**pod, "NotDeleted", message);
    }
    if budget.status.as_ref() != Some(&plan.status) {
        write(&budget, plan.status, &cx).await?;
    }
    Ok(wake::at(plan.wake_at, cx.now()))
}

/// Records that the status cannot be computed, and allows no disruption.
async fn fail(
    budget: &PodDisruptionBudget,
    error: &Error,
    cx: &Context<PodDisruptionBudget>,
) -> Result<Action> {
    let message = format!("Failed to calculate the number of expected pods: {error}");
    cx.recorder().warning(budget, "CalculateExpectedPodCountFailed", message);
    let status = failed(budget, &error.to_string(), cx.now());
    if budget.status.as_ref() != Some(&status) {
        write(budget, status, cx).await?;
    }
    Ok(Action::done())
}

/// Writes the status, unless an eviction or another write came first: evictions consume the allowance in the
/// status.
async fn write(
    budget: &PodDisruptionBudget,
    status: PodDisruptionBudgetStatus,
    cx: &Context<PodDisruptionBudget>,
) -> Result<()> {
    let budgets: Api<PodDisruptionBudget> =
        Api::namespaced(cx.client().clone(), &budget.namespace().unwrap_or_default());
    let next = PodDisruptionBudget { status: Some(status), ..budget.clone() };
    let written =
        budgets.replace_status(&budget.name_any(), &component::post(KUBE_CONTROLLER_MANAGER), &next).await;
    match written.map_err(Error::from) {
        Err(error) if !error.is_not_found() => Err(error),
        _ => Ok(()),
    }
}
