//! Removes the tracking finalizer of pods that no Job counts: pods without a controller, and pods of Jobs that are gone or have
//! finished.

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube_core::{Resource, ResourceExt};
use windlass_runtime::{
    Action, Context, Controller, Delta, HandlerContext, ObjectKey, ObjectKeyExt, Predicate, Result,
};

use super::conditions::finished;
use super::pod::{TRACKING, is_tracked};
use super::tracking;
use crate::adoption;

/// The name that `spec.managedBy` has for this controller.
const MANAGER: &str = "kubernetes.io/job-controller";

/// Returns the controller of the pods.
pub(crate) fn controller() -> Controller {
    Controller::of::<Pod>(reconcile)
        .named("job-orphan-pods")
        .predicate(Predicate::new(has_finalizer))
        .watches::<Job>(tracked_pods)
}

fn has_finalizer(delta: &Delta) -> bool {
    delta.object().finalizers().any(|finalizer| finalizer == TRACKING)
}

/// Returns the pods that a Job no longer counts, because the Job is gone or has finished.
fn tracked_pods(job: &Job, cx: &HandlerContext) -> Result<Vec<ObjectKey>> {
    let stored = cx.lister::<Job>()?.get(&ObjectKey::of(job))?;
    let is_gone = stored.is_none_or(|stored| stored.metadata.uid != job.metadata.uid);
    if !is_gone && finished(job).is_none() {
        return Ok(Vec::new());
    }
    let pods = cx.lister::<Pod>()?.namespace(&job.namespace().unwrap_or_default()).all()?;
    let is_of_job = |found: &Pod| {
        let owner = adoption::controller_of(found);
        is_tracked(found) && owner.is_some_and(|owner| Some(&owner.uid) == job.metadata.uid.as_ref())
    };
    Ok(pods.iter().filter(|found| is_of_job(found)).map(ObjectKey::of).collect())
}

async fn reconcile(key: ObjectKey, cx: Context<Pod>) -> Result<Action> {
    let Some(found) = cx.get(&key)?.filter(|found| is_tracked(found)) else { return Ok(Action::done()) };
    let owner = adoption::controller_of(&*found);
    let job = match (owner, key.namespace()) {
        (Some(owner), Some(namespace)) => {
            cx.lister::<Job>()?.get(&ObjectKey::namespaced(namespace, &owner.name))?
        }
        _ => None,
    };
    if is_left(&found, job.as_deref()) {
        tracking::release_unchanged(&cx, &found).await?;
    }
    Ok(Action::done())
}

/// Returns whether no Job counts the pod. `job` is the Job with the name of the controller of the pod.
fn is_left(found: &Pod, job: Option<&Job>) -> bool {
    let Some(owner) = adoption::controller_of(found) else { return true };
    if owner.kind != Job::kind(&()) || owner.api_version != Job::api_version(&()) {
        return false;
    }
    let job = job.filter(|job| job.metadata.uid.as_ref() == Some(&owner.uid));
    job.is_none_or(|job| finished(job).is_some() && !is_managed_elsewhere(job))
}

/// Returns whether another controller manages the Job.
pub(super) fn is_managed_elsewhere(job: &Job) -> bool {
    let manager = job.spec.as_ref().and_then(|spec| spec.managed_by.as_deref());
    manager.is_some_and(|manager| manager != MANAGER)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn pod_of(owners: Value) -> Pod {
        serde_json::from_value(json!({"metadata": {"name": "p", "ownerReferences": owners}})).unwrap()
    }

    fn job(spec: Value, condition: &str) -> Job {
        let conditions = json!([{"type": condition, "status": "True"}]);
        let metadata = json!({"name": "work", "uid": "new"});
        serde_json::from_value(
            json!({"metadata": metadata, "spec": spec, "status": {"conditions": conditions}}),
        )
        .unwrap()
    }

    #[test]
    fn a_pod_is_left_when_no_job_counts_it() {
        let owner = |uid: &str| json!([{"apiVersion": "batch/v1", "kind": "Job", "name": "work", "uid": uid, "controller": true}]);
        let template = json!({"template": {}});
        let running = job(template.clone(), "Suspended");
        let complete = job(template, "Complete");
        let elsewhere = job(json!({"template": {}, "managedBy": "example.com/other"}), "Complete");
        assert!(is_left(&pod_of(json!([])), None), "no controller");
        assert!(is_left(&pod_of(owner("new")), None), "the Job is gone");
        assert!(is_left(&pod_of(owner("old")), Some(&running)), "another Job has the name");
        assert!(is_left(&pod_of(owner("new")), Some(&complete)), "the Job has finished");
        assert!(!is_left(&pod_of(owner("new")), Some(&running)), "the Job counts the pod");
        assert!(!is_left(&pod_of(owner("new")), Some(&elsewhere)), "another controller counts the pod");
        let set = json!([{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "s", "uid": "s", "controller": true}]);
        assert!(!is_left(&pod_of(set), None), "no pod of a Job");
    }
}
