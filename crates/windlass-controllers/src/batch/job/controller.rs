//! Creates and deletes the pods of Jobs, and counts finished pods.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube_core::{Resource, ResourceExt};
use windlass_runtime::{Action, Context, Controller, Error, HandlerContext, ObjectKey, Reconciler, Result};

use super::back_off::BackOff;
use super::conditions::finished;
use super::plan::{JobEvent, Plan, plan};
use super::pod::TRACKING;
use super::{orphans, tracking};
use crate::{adoption, labels, pod_control, wake};

/// Returns the controller.
pub(crate) fn controller() -> Controller {
    Controller::of::<Job>(Jobs::default())
        .named("job-controller")
        .owns::<Pod>()
        .watches::<Pod>(adopters)
        .max_concurrent_reconciles(4)
}

/// Returns the Jobs that may adopt a pod which has no controller.
fn adopters(found: &Pod, cx: &HandlerContext) -> Result<Vec<ObjectKey>> {
    let selects = |job: &Job| {
        let selector = job.spec.as_ref().and_then(|spec| spec.selector.as_ref());
        selector.is_some_and(|selector| labels::selects(selector, found.metadata.labels.as_ref()))
    };
    adoption::adopters(found, cx, selects)
}

/// The controller, with the back-off of each Job by uid.
#[derive(Default)]
struct Jobs {
    back_offs: Mutex<BTreeMap<ObjectKey, (String, BackOff)>>,
}

impl Reconciler<Job> for Jobs {
    type Error = Error;

    async fn reconcile(&self, key: ObjectKey, cx: Context<Job>) -> Result<Action> {
        let ongoing =
            cx.get(&key)?.filter(|job| finished(job).is_none() && !orphans::is_managed_elsewhere(job));
        let Some(job) = ongoing else {
            self.back_offs().remove(&key);
            return Ok(Action::done());
        };
        let uid = job.uid().unwrap_or_default();
        let pods = owned_pods(&job, &cx).await?;
        let plan = plan(&job, &pods, self.back_off(&key, &uid), cx.now());
        let next = carry_out(&job, &plan, &cx).await;
        self.back_offs().insert(key, (uid, plan.back_off));
        next?;
        Ok(wake::at(plan.wake_at, cx.now()))
    }
}

impl Jobs {
    fn back_offs(&self) -> MutexGuard<'_, BTreeMap<ObjectKey, (String, BackOff)>> {
        self.back_offs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn back_off(&self, key: &ObjectKey, uid: &str) -> BackOff {
        let back_offs = self.back_offs();
        back_offs
            .get(key)
            .filter(|(known, _)| known == uid)
            .map(|(_, back_off)| *back_off)
            .unwrap_or_default()
    }
}

async fn owned_pods(job: &Job, cx: &Context<Job>) -> Result<Vec<Arc<Pod>>> {
    let selector = job.spec.as_ref().and_then(|spec| spec.selector.as_ref());
    let (Some(selector), Some(uid)) = (selector, &job.metadata.uid) else { return Ok(Vec::new()) };
    let pods = cx.lister::<Pod>()?.namespace(&job.namespace().unwrap_or_default()).all()?.complete()?;
    let classified = adoption::classify(pods, selector, uid).with_finalizer(TRACKING);
    classified.adopt_and_release(job, cx).await
}

async fn carry_out(job: &Job, plan: &Plan, cx: &Context<Job>) -> Result<()> {
    for found in &plan.discard {
        tracking::release(cx, found).await?;
        pod_control::delete(cx, job, found).await?;
    }
    for found in &plan.kill {
        pod_control::delete(cx, job, found).await?;
    }
    let (mut before, mut after) = (plan.before.clone(), plan.after.clone());
    let mut failure = None;
    for (made, new) in plan.create.iter().enumerate() {
        let created = pod_control::create(cx, job, new.clone()).await;
        if !matches!(created, Ok(Some(_))) {
            let missing = i32::try_from(plan.create.len() - made).unwrap_or(i32::MAX);
            for status in [&mut before, &mut after] {
                status.active = status.active.map(|active| active - missing).filter(|active| *active > 0);
            }
            failure = created.err();
            break;
        }
    }
    record(job, &plan.events, cx);
    if !plan.release.is_empty() || before.conditions != after.conditions {
        cx.update_status(job, before).await?;
    }
    for found in &plan.release {
        tracking::release(cx, found).await?;
    }
    cx.update_status(job, after).await?;
    record(job, &plan.end, cx);
    failure.map_or(Ok(()), Err)
}

fn record(job: &Job, events: &[JobEvent], cx: &Context<Job>) {
    for event in events {
        cx.recorder().event(event.kind, job.object_ref(&()), &event.reason, event.message.as_str());
    }
}
