//! Creates and deletes the Jobs of CronJobs.

use std::sync::Arc;

use k8s_openapi::api::batch::v1::{CronJob, CronJobStatus, Job};
use kube_core::ResourceExt;
use windlass_runtime::{Action, Context, Controller, ObjectKey, Result};

use super::plan::{add_active, plan};
use crate::pod_control::message_of;
use crate::{adoption, wake};

/// Returns the controller.
pub(crate) fn controller() -> Controller {
    Controller::of::<CronJob>(reconcile)
        .named("cronjob-controller")
        .owns::<Job>()
        .max_concurrent_reconciles(4)
}

async fn reconcile(key: ObjectKey, cx: Context<CronJob>) -> Result<Action> {
    let Some(cron_job) = cx.get(&key)? else { return Ok(Action::done()) };
    let jobs = cx.lister::<Job>()?.namespace(&cron_job.namespace().unwrap_or_default()).all()?.complete()?;
    let jobs: Vec<Arc<Job>> = jobs.into_iter().collect();
    let plan = plan(&cron_job, &jobs, cx.now());
    let mut status = plan.status;
    for event in plan.events {
        let builder = cx.recorder().about(&*cron_job);
        if event.warning {
            builder.warning(event.reason, event.message);
        } else {
            builder.normal(event.reason, event.message);
        }
    }
    let mut outcome = Ok(());
    for job in &plan.delete {
        outcome = outcome.and(delete(&cron_job, job, &cx).await);
    }
    if outcome.is_ok()
        && let (Some(job), Some(time)) = (plan.create, plan.scheduled)
    {
        match create(&cron_job, job, &status, &cx).await {
            Ok(Some(job)) => add_active(&mut status, &job, time),
            Ok(None) => {}
            Err(error) => outcome = Err(error),
        }
    }
    cx.update_status(&*cron_job, status).await?;
    outcome?;
    Ok(wake::at(plan.wake_at, cx.now()))
}

/// Creates a Job. Returns the Job, or `None` if the Job is known already or belongs to another owner.
async fn create(
    cron_job: &CronJob,
    job: Job,
    status: &CronJobStatus,
    cx: &Context<CronJob>,
) -> Result<Option<Job>> {
    let key = ObjectKey::namespaced(&job.namespace().unwrap_or_default(), &job.name_any());
    match cx.create(job).await {
        Ok(job) => {
            cx.recorder().normal(cron_job, "SuccessfulCreate", format!("Created job {}", job.name_any()));
            Ok(Some(job))
        }
        Err(error) if error.is_already_exists() => {
            let Some(found) = cx.lister::<Job>()?.get(&key)? else { return Err(error) };
            let ours =
                adoption::controller_of(&*found).map(|owner| &owner.uid) == cron_job.metadata.uid.as_ref();
            let known = status.active.iter().flatten().any(|active| active.uid == found.metadata.uid);
            Ok((ours && !known).then(|| (*found).clone()))
        }
        Err(error) => {
            if !error.is_namespace_terminating() {
                let message = format!("Error creating job: {}", message_of(&error));
                cx.recorder().warning(cron_job, "FailedCreate", message);
            }
            Err(error)
        }
    }
}

async fn delete(cron_job: &CronJob, job: &Job, cx: &Context<CronJob>) -> Result<()> {
    let deleted = cx.delete(job).await;
    match &deleted {
        Ok(()) => {
            cx.recorder().normal(cron_job, "SuccessfulDelete", format!("Deleted job {}", job.name_any()));
        }
        Err(error) => {
            let message = format!("Deleted job: {}", message_of(error));
            cx.recorder().warning(cron_job, "FailedDelete", message);
        }
    }
    deleted
}
