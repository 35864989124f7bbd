//! Deletes finished Jobs after `ttlSecondsAfterFinished`.

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use kube_client::api::{Api, DeleteParams, Preconditions};
use kube_core::ResourceExt;
use windlass_runtime::{Action, Context, Controller, Error, ObjectKey, Result};

use super::conditions::finished;
use crate::wake;

/// Returns the controller.
pub(crate) fn controller() -> Controller {
    Controller::of::<Job>(reconcile).named("ttl-after-finished-controller")
}

async fn reconcile(key: ObjectKey, cx: Context<Job>) -> Result<Action> {
    let Some(job) = cx.get(&key)? else { return Ok(Action::done()) };
    let Some(due) = expires_at(&job) else { return Ok(Action::done()) };
    if due > cx.now() {
        return Ok(wake::at(Some(due), cx.now()));
    }
    let jobs: Api<Job> = Api::namespaced(cx.client().clone(), &job.namespace().unwrap_or_default());
    let options = DeleteParams {
        preconditions: Some(Preconditions { uid: job.uid(), resource_version: None }),
        ..DeleteParams::foreground()
    };
    match jobs.delete(&job.name_any(), &options).await.map_err(Error::from) {
        Err(error) if !(error.is_not_found() || error.is_conflict()) => Err(error),
        _ => Ok(Action::done()),
    }
}

/// Returns when a finished Job is to be deleted, if ever.
fn expires_at(job: &Job) -> Option<Timestamp> {
    let ttl = job.spec.as_ref()?.ttl_seconds_after_finished?;
    let (_, finished) = finished(job).filter(|_| job.metadata.deletion_timestamp.is_none())?;
    finished?.checked_add(SignedDuration::from_secs(ttl.into())).ok()
}
