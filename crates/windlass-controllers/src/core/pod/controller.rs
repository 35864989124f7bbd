//! A pass over all pods every 20 seconds.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use k8s_openapi::api::core::v1::{Node, Pod, PodCondition};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube_client::api::{Api, DeleteParams, Patch};
use kube_core::ResourceExt;
use serde_json::json;
use windlass_runtime::source::Timer;
use windlass_runtime::{Action, Context, Controller, Error, ObjectKey, Reconciler, Result};

use super::plan::{Missing, node_of, plan};
use crate::component::{self, KUBE_CONTROLLER_MANAGER};
use crate::{conditions, pods};

const PERIOD: Duration = Duration::from_secs(20);

#[derive(Default)]
struct PodCollector {
    missing: Mutex<Missing>,
}

/// Returns the controller. A single key stands for all pods.
pub(crate) fn controller() -> Controller {
    Controller::keyed::<Pod>("pod-garbage-collector-controller", PodCollector::default())
        .reads::<Pod>()
        .reads::<Node>()
        .source(Timer::every(PERIOD, |_| Ok(vec![ObjectKey::cluster("pods")])))
}

impl Reconciler<Pod> for PodCollector {
    type Error = Error;

    async fn reconcile(&self, _key: ObjectKey, cx: Context<Pod>) -> Result<Action> {
        let pods: Vec<Arc<Pod>> = cx.lister::<Pod>()?.all()?.complete()?.into_iter().collect();
        let nodes: Vec<Arc<Node>> = cx.lister::<Node>()?.all()?.complete()?.into_iter().collect();
        let plan = {
            let mut missing = self.missing.lock().unwrap_or_else(PoisonError::into_inner);
            plan(&pods, &nodes, &mut missing, cx.now())
        };
        for pod in &plan.delete {
            delete(pod, None, &cx).await?;
        }
        let mut exists = BTreeMap::new();
        for pod in &plan.orphans {
            let node = node_of(pod);
            if !exists.contains_key(node) {
                let nodes: Api<Node> = Api::all(cx.client().clone());
                let found = nodes.get_metadata_opt(node).await.map_err(Error::from)?;
                exists.insert(node, found.is_some());
            }
            if exists.get(node) == Some(&false) {
                delete(pod, Some(orphaned(pod)), &cx).await?;
            }
        }
        Ok(Action::done())
    }
}

fn orphaned(pod: &Pod) -> PodCondition {
    PodCondition {
        type_: "DisruptionTarget".to_owned(),
        status: "True".to_owned(),
        reason: Some("DeletionByPodGC".to_owned()),
        message: Some("PodGC: node no longer exists".to_owned()),
        observed_generation: pod.metadata.generation,
        ..PodCondition::default()
    }
}

/// Deletes a pod at once. A pod that has not ended is first marked as failed, because no kubelet reports the
/// end.
async fn delete(pod: &Pod, condition: Option<PodCondition>, cx: &Context<Pod>) -> Result<()> {
    let pods: Api<Pod> = Api::namespaced(cx.client().clone(), &pod.namespace().unwrap_or_default());
    let name = pod.name_any();
    if !pods::has_finished(pod) {
        let mut all = pod.status.as_ref().and_then(|status| status.conditions.clone()).unwrap_or_default();
        let mut status = json!({"phase": "Failed", "observedGeneration": pod.metadata.generation});
        if let Some(condition) = condition {
            conditions::set(&mut all, condition, &Time(cx.now()));
            status["conditions"] = json!(all);
        }
        let failed = Patch::Strategic(json!({"metadata": {"uid": pod.uid()}, "status": status}));
        let patched = pods.patch_status(&name, &component::patch(KUBE_CONTROLLER_MANAGER), &failed).await;
        match patched.map_err(Error::from) {
            Err(error) if error.is_not_found() || error.is_conflict() => return Ok(()),
            other => drop(other?),
        }
    }
    let at_once = DeleteParams { grace_period_seconds: Some(0), ..DeleteParams::default() };
    match pods.delete(&name, &at_once).await.map_err(Error::from) {
        Err(error) if !error.is_not_found() => Err(error),
        _ => Ok(()),
    }
}
