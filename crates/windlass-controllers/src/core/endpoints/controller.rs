//! Writes the Endpoints of Services.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{Endpoints, Pod, Service};
use kube_core::{Resource, ResourceExt};
use windlass_runtime::{
    Action, Context, Controller, Delta, HandlerContext, ObjectKey, Predicate, Result, Watch, kind,
};

use super::member;
use super::plan::plan;
use crate::pod_control::message_of;

/// Returns the controller.
pub(crate) fn controller() -> Controller {
    Controller::of::<Service>(reconcile)
        .named("endpoint-controller")
        .watches::<Pod>(member::services_of)
        .watch(Watch::mapped(kind::<Endpoints>(), service_of).predicate(Predicate::new(is_missing_or_left)))
        .max_concurrent_reconciles(4)
}

/// Returns whether to reconcile the Service of Endpoints. Deleted Endpoints are written again. Endpoints that
/// exist at the start may have lost the Service. New Endpoints may be older than the Service.
fn is_missing_or_left(delta: &Delta) -> bool {
    matches!(delta, Delta::Deleted { .. } | Delta::Added { initial: true, .. })
}

/// Returns the Service with the name of the Endpoints.
#[expect(clippy::unnecessary_wraps, reason = "the form of a mapper")]
fn service_of(endpoints: &Endpoints, _cx: &HandlerContext) -> Result<Vec<ObjectKey>> {
    let namespace = endpoints.namespace().unwrap_or_default();
    Ok(vec![ObjectKey::namespaced(&namespace, &endpoints.name_any())])
}

async fn reconcile(key: ObjectKey, cx: Context<Service>) -> Result<Action> {
    let old = cx.lister::<Endpoints>()?.get(&key)?;
    let Some(service) = cx.get(&key)? else {
        // Endpoints without a Service of the same name were left behind, or are a lock for a leader election.
        let lock =
            |old: &Endpoints| old.annotations().contains_key("control-plane.alpha.kubernetes.io/leader");
        if let Some(old) = old.filter(|old| !lock(old)) {
            cx.delete(&*old).await?;
        }
        return Ok(Action::done());
    };
    if !member::has_endpoints(&service) || service.metadata.deletion_timestamp.is_some() {
        return Ok(Action::done());
    }
    let pods = cx.lister::<Pod>()?.namespace(&service.namespace().unwrap_or_default()).all()?.complete()?;
    let pods: Vec<Arc<Pod>> = pods.into_iter().filter(|pod| member::selects(&service, pod)).collect();
    let Some(next) = plan(&service, &pods, old.as_deref()) else { return Ok(Action::done()) };
    let name = format!("{}/{}", service.namespace().unwrap_or_default(), service.name_any());
    let (written, reason, verb) = if old.is_some() {
        (cx.update(&next).await, "FailedToUpdateEndpoint", "update endpoint")
    } else {
        (cx.create(next.clone()).await, "FailedToCreateEndpoint", "create endpoint for service")
    };
    match written {
        Err(error) if error.is_namespace_terminating() => Ok(Action::done()),
        Err(error) => {
            let message = format!("Failed to {verb} {name}: {}", message_of(&error));
            let regarding = next.object_ref(&());
            cx.recorder().about_reference(regarding).warning(reason, message);
            Err(error)
        }
        Ok(_) => Ok(Action::done()),
    }
}
