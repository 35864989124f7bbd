//! Creates, updates and deletes the pods and claims of StatefulSets.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::apps::v1::{ControllerRevision, StatefulSet};
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use kube_core::ResourceExt;
use windlass_runtime::{Action, Context, Controller, Error, HandlerContext, ObjectKey, Reconciler, Result};

use super::history::History;
use super::identity;
use super::plan::{Input, Task, plan};
use crate::component::ServerVersion;
use crate::pod_control::message_of;
use crate::{adoption, labels, wake};

/// Returns the controller.
pub(crate) fn controller() -> Controller {
    Controller::of::<StatefulSet>(StatefulSets::default())
        .named("statefulset-controller")
        .owns::<Pod>()
        .watches::<Pod>(adopters)
        .watches::<ControllerRevision>(|_, _| Ok(Vec::new()))
        .watches::<PersistentVolumeClaim>(|_, _| Ok(Vec::new()))
        .max_concurrent_reconciles(4)
}

/// Returns the StatefulSets that may adopt a pod which has no controller.
fn adopters(pod: &Pod, cx: &HandlerContext) -> Result<Vec<ObjectKey>> {
    let selects = |set: &StatefulSet| {
        set.spec.as_ref().is_some_and(|spec| labels::selects(&spec.selector, pod.metadata.labels.as_ref()))
    };
    adoption::adopters(pod, cx, selects)
}

/// The controller. The version of the server decides how many pods a rolling update deletes.
#[derive(Default)]
struct StatefulSets {
    version: ServerVersion,
}

impl Reconciler<StatefulSet> for StatefulSets {
    type Error = Error;

    async fn reconcile(&self, key: ObjectKey, cx: Context<StatefulSet>) -> Result<Action> {
        let Some(set) = cx.get(&key)? else { return Ok(Action::done()) };
        let history = History::load(&set, &cx).await?;
        let pods = owned_pods(&set, &cx).await?;
        let claims = cx.lister::<PersistentVolumeClaim>()?;
        let claims = claims.namespace(&set.namespace().unwrap_or_default()).all()?.complete()?;
        let claims: BTreeMap<String, Arc<PersistentVolumeClaim>> =
            claims.into_iter().map(|claim| (claim.name_any(), claim)).collect();
        let plan = plan(Input {
            set: &set,
            pods: &pods,
            claims: &claims,
            current: &history.current,
            update: &history.update,
            collisions: history.collisions,
            counts_unavailable: self.version.minor(cx.client()).await? >= 37,
            now: cx.now(),
        });
        let outcome = run_all(&plan.tasks, &set, &cx).await;
        cx.update_status(&*set, plan.status).await?;
        history.truncate(&set, &pods, &cx).await?;
        outcome?;
        Ok(wake::at(plan.wake_at, cx.now()))
    }
}

/// Returns the pods of the set, after adoption. Only pods with a name of the set can be pods of the set.
async fn owned_pods(set: &StatefulSet, cx: &Context<StatefulSet>) -> Result<Vec<Arc<Pod>>> {
    let (Some(spec), Some(uid)) = (&set.spec, &set.metadata.uid) else { return Ok(Vec::new()) };
    let pods = cx.lister::<Pod>()?.namespace(&set.namespace().unwrap_or_default()).all()?.complete()?;
    let name = set.name_any();
    let named_after = |pod: &Arc<Pod>| {
        let pod_name = pod.name_any();
        identity::parent_and_ordinal(&pod_name).is_some_and(|(parent, _)| parent == name)
    };
    let pods = pods.into_iter().filter(named_after);
    adoption::classify(pods, &spec.selector, uid).adopt_and_release(set, cx).await
}

/// Carries out the tasks. Stops at the first error if pods are managed in order, and returns the first error.
async fn run_all(tasks: &[Task], set: &StatefulSet, cx: &Context<StatefulSet>) -> Result<()> {
    let policy = set.spec.as_ref().and_then(|spec| spec.pod_management_policy.as_deref());
    let mut outcome = Ok(());
    for task in tasks {
        let done = run(task, set, cx).await;
        if done.is_err() && policy != Some("Parallel") {
            return done;
        }
        outcome = outcome.and(done);
    }
    outcome
}

async fn run(task: &Task, set: &StatefulSet, cx: &Context<StatefulSet>) -> Result<()> {
    let report = Report { set, cx };
    match task {
        Task::CreateClaim { claim, pod } => match cx.create((**claim).clone()).await {
            Err(error) if error.is_already_exists() => Ok(()),
            created => report.claim(&claim.name_any(), pod, created.map(drop)),
        },
        Task::SetClaimOwners { claim, owners, .. } => {
            let mut next = (**claim).clone();
            next.metadata.owner_references = Some(owners.clone());
            match cx.update(&next).await {
                Err(error) if !error.is_not_found() => Err(error),
                _ => Ok(()),
            }
        }
        Task::ReportConflict { claim } => {
            let message = format!(
                "PersistentVolumeClaim {claim} has a conflicting OwnerReference that acts as a manging \
                 controller, the retention policy is ignored for this claim"
            );
            cx.recorder().warning(set, "ConflictingController", message);
            Ok(())
        }
        Task::Create(pod) => match cx.create((**pod).clone()).await {
            Err(error) if error.is_already_exists() => Err(error),
            created => report.pod("Create", &pod.name_any(), created.map(drop)),
        },
        Task::Update(pod) => report.pod("Update", &pod.name_any(), cx.update(&**pod).await.map(drop)),
        Task::Delete(pod) => report.pod("Delete", &pod.name_any(), cx.delete(&**pod).await),
        Task::Fail { pod, message } => report.pod("Create", pod, Err(Error::other(message.clone()))),
    }
}

/// Records the result of a change.
struct Report<'a> {
    set: &'a StatefulSet,
    cx: &'a Context<StatefulSet>,
}

impl Report<'_> {
    fn pod(&self, verb: &str, pod: &str, outcome: Result<()>) -> Result<()> {
        let name = self.set.name_any();
        match &outcome {
            Ok(()) => {
                let message = format!("{verb} Pod {pod} in StatefulSet {name} successful");
                self.cx.recorder().normal(self.set, &format!("Successful{verb}"), message);
            }
            Err(error) => self.failure(verb, &format!("Pod {pod}"), error),
        }
        outcome
    }

    fn claim(&self, claim: &str, pod: &str, outcome: Result<()>) -> Result<()> {
        match &outcome {
            Ok(()) => {
                let name = self.set.name_any();
                let message = format!("Create Claim {claim} Pod {pod} in StatefulSet {name} success");
                self.cx.recorder().normal(self.set, "SuccessfulCreate", message);
            }
            Err(error) => self.failure("Create", &format!("Claim {claim} for Pod {pod}"), error),
        }
        outcome
    }

    fn failure(&self, verb: &str, what: &str, error: &Error) {
        let text = message_of(error);
        let message = format!("{verb} {what} in StatefulSet {} failed error: {text}", self.set.name_any());
        self.cx.recorder().warning(self.set, &format!("Failed{verb}"), message);
    }
}
