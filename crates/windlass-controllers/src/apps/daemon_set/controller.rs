//! Creates and deletes the pods of DaemonSets.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use k8s_openapi::api::apps::v1::{ControllerRevision, DaemonSet};
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube_core::ResourceExt;
use windlass_runtime::{Action, Context, Controller, Error, HandlerContext, ObjectKey, Reconciler, Result};

use super::failures::Failures;
use super::history::History;
use super::nodes::placement;
use super::plan::{Input, Plan, plan};
use super::template;
use crate::{adoption, labels, pod_control, wake};

/// Returns the controller.
pub(crate) fn controller() -> Controller {
    Controller::of::<DaemonSet>(DaemonSets::default())
        .named("daemonset-controller")
        .owns::<Pod>()
        .watches::<Pod>(adopters)
        .watches::<ControllerRevision>(|_, _| Ok(Vec::new()))
        .watches::<Node>(sets_of_node)
        .max_concurrent_reconciles(2)
}

/// Returns the DaemonSets that may adopt a pod which has no controller.
fn adopters(pod: &Pod, cx: &HandlerContext) -> Result<Vec<ObjectKey>> {
    let selects = |set: &DaemonSet| {
        set.spec.as_ref().is_some_and(|spec| labels::selects(&spec.selector, pod.metadata.labels.as_ref()))
    };
    adoption::adopters(pod, cx, selects)
}

/// Returns the DaemonSets with work on a node that was added or changed. A deleted node concerns no
/// DaemonSet.
fn sets_of_node(node: &Node, cx: &HandlerContext) -> Result<Vec<ObjectKey>> {
    let name = node.name_any();
    if cx.lister::<Node>()?.get(&ObjectKey::cluster(&name))?.is_none() {
        return Ok(Vec::new());
    }
    let sets = cx.lister::<DaemonSet>()?.all()?;
    let pods = cx.lister::<Pod>()?.all()?;
    let there: BTreeSet<&str> = pods
        .iter()
        .filter(|pod| pod.spec.as_ref().and_then(|spec| spec.node_name.as_ref()) == Some(&name))
        .filter_map(|pod| adoption::controller_of(pod).map(|owner| owner.uid.as_str()))
        .collect();
    let concerned = |set: &&DaemonSet| {
        let placement = placement(set, node);
        let scheduled = set.metadata.uid.as_deref().is_some_and(|uid| there.contains(uid));
        let misplaced = set.status.as_ref().is_some_and(|status| status.number_misscheduled > 0);
        if scheduled { !placement.stay || misplaced } else { placement.run }
    };
    let key = |set: &DaemonSet| ObjectKey::namespaced(&set.namespace().unwrap_or_default(), &set.name_any());
    Ok(sets.iter().filter(concerned).map(key).collect())
}

/// The controller, with the failures of each DaemonSet, by uid and generation.
#[derive(Default)]
struct DaemonSets {
    failures: Mutex<BTreeMap<ObjectKey, (Incarnation, Failures)>>,
}

/// The uid and the generation of a set. A new template is tried without a back-off.
type Incarnation = (Option<String>, Option<i64>);

impl Reconciler<DaemonSet> for DaemonSets {
    type Error = Error;

    async fn reconcile(&self, key: ObjectKey, cx: Context<DaemonSet>) -> Result<Action> {
        let Some(set) = cx.get(&key)? else {
            self.failures().remove(&key);
            return Ok(Action::done());
        };
        let Some(spec) = set.spec.as_ref().filter(|_| set.metadata.deletion_timestamp.is_none()) else {
            return Ok(Action::done());
        };
        if spec.selector == LabelSelector::default() {
            let message = "This daemon set is selecting all pods. A non-empty selector is required.";
            cx.recorder().warning(&*set, "SelectingAll", message);
            return Ok(Action::done());
        }
        let history = History::load(&set, &cx).await?;
        let nodes: Vec<Arc<Node>> = cx.lister::<Node>()?.all()?.complete()?.into_iter().collect();
        let pods = owned_pods(&set, &cx).await?;
        let input = Input { set: &set, nodes: &nodes, pods: &pods, hash: &history.hash, now: cx.now() };
        let plan = self.plan(&key, input);
        let outcome = carry_out(&set, &plan, &history.hash, &cx).await;
        cx.update_status(&*set, plan.status).await?;
        outcome?;
        history.truncate(&set, &pods, &cx).await?;
        Ok(wake::at(plan.wake_at, cx.now()))
    }
}

impl DaemonSets {
    fn failures(&self) -> MutexGuard<'_, BTreeMap<ObjectKey, (Incarnation, Failures)>> {
        self.failures.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn plan(&self, key: &ObjectKey, input: Input<'_>) -> Plan {
        let incarnation = (input.set.uid(), input.set.metadata.generation);
        let known = self.failures().remove(key).filter(|(known, _)| *known == incarnation);
        let mut failures = known.map(|(_, failures)| failures).unwrap_or_default();
        let plan = plan(input, &mut failures);
        self.failures().insert(key.clone(), (incarnation, failures));
        plan
    }
}

async fn owned_pods(set: &DaemonSet, cx: &Context<DaemonSet>) -> Result<Vec<Arc<Pod>>> {
    let (Some(spec), Some(uid)) = (&set.spec, &set.metadata.uid) else { return Ok(Vec::new()) };
    let pods = cx.lister::<Pod>()?.namespace(&set.namespace().unwrap_or_default()).all()?.complete()?;
    adoption::classify(pods, &spec.selector, uid).adopt_and_release(set, cx).await
}

async fn carry_out(set: &DaemonSet, plan: &Plan, hash: &str, cx: &Context<DaemonSet>) -> Result<()> {
    for event in &plan.events {
        let builder = cx.recorder().about(set);
        if event.warning {
            builder.warning(event.reason, event.message.as_str());
        } else {
            builder.normal(event.reason, event.message.as_str());
        }
    }
    let mut outcome = Ok(());
    for node in &plan.create {
        let created = pod_control::create(cx, set, template::pod(set, hash, node)).await;
        if !matches!(created, Ok(Some(_))) {
            outcome = created.map(drop);
            break;
        }
    }
    for pod in &plan.delete {
        let deleted = pod_control::delete(cx, set, pod).await;
        outcome = outcome.and(deleted);
    }
    outcome
}
