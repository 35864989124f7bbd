//! Writes the EndpointSlices of Endpoints that have no selector to follow.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{Endpoints, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube_core::ResourceExt;
use windlass_runtime::{Action, Context, Controller, HandlerContext, ObjectKey, Result};

use super::mirror_plan::{MANAGER, MAX_ADDRESSES, Skipped, plan};
use super::plan::{MANAGED_BY, SERVICE_NAME};
use crate::core::endpoints::member;

/// Users set the label to `true` on Endpoints that must not be mirrored.
const SKIP: &str = "endpointslice.kubernetes.io/skip-mirror";
/// The annotation of Endpoints that are the lock of a leader election.
const LOCK: &str = "control-plane.alpha.kubernetes.io/leader";

/// Returns the controller.
pub(crate) fn controller() -> Controller {
    Controller::of::<Endpoints>(reconcile)
        .named("endpoint-slice-mirroring-controller")
        .watches::<Service>(of_same_name)
        .watches::<EndpointSlice>(endpoints_of)
        .max_concurrent_reconciles(4)
}

#[expect(clippy::unnecessary_wraps, reason = "the form of a mapper")]
fn of_same_name(service: &Service, _cx: &HandlerContext) -> Result<Vec<ObjectKey>> {
    Ok(vec![ObjectKey::namespaced(&service.namespace().unwrap_or_default(), &service.name_any())])
}

#[expect(clippy::unnecessary_wraps, reason = "the form of a mapper")]
fn endpoints_of(slice: &EndpointSlice, _cx: &HandlerContext) -> Result<Vec<ObjectKey>> {
    let namespace = slice.namespace().unwrap_or_default();
    let name = slice.labels().get(SERVICE_NAME).filter(|_| is_mirror(slice));
    Ok(name.map(|name| ObjectKey::namespaced(&namespace, name)).into_iter().collect())
}

fn is_mirror(slice: &EndpointSlice) -> bool {
    slice.labels().get(MANAGED_BY).is_some_and(|manager| manager == MANAGER)
}

async fn reconcile(key: ObjectKey, cx: Context<Endpoints>) -> Result<Action> {
    let slices = cx.lister::<EndpointSlice>()?.namespace(key.namespace().unwrap_or_default()).all()?;
    let of_key = |slice: &Arc<EndpointSlice>| {
        is_mirror(slice) && slice.labels().get(SERVICE_NAME).is_some_and(|name| name == key.name())
    };
    let existing: Vec<Arc<EndpointSlice>> = slices.complete()?.into_iter().filter(of_key).collect();
    let has_selector = cx.lister::<Service>()?.get(&key)?.map(|service| member::selects_pods(&service));
    let endpoints = cx.get(&key)?.filter(|endpoints| has_selector == Some(false) && is_mirrored(endpoints));
    let Some(endpoints) = endpoints else {
        for slice in &existing {
            cx.delete(&**slice).await?;
        }
        return Ok(Action::done());
    };
    let (plan, skipped) = plan(&endpoints, &existing);
    report(&endpoints, skipped, &cx);
    if endpoints.metadata.deletion_timestamp.is_none() {
        for slice in plan.create {
            match cx.create(slice).await {
                Err(error) if error.is_namespace_terminating() => return Ok(Action::done()),
                other => drop(other?),
            }
        }
    }
    for slice in &plan.update {
        cx.update(slice).await?;
    }
    for slice in &plan.delete {
        cx.delete(&**slice).await?;
    }
    Ok(Action::done())
}

fn is_mirrored(endpoints: &Endpoints) -> bool {
    let skips = endpoints.labels().get(SKIP).is_some_and(|skip| skip == "true");
    !skips && !endpoints.annotations().contains_key(LOCK)
}

fn report(endpoints: &Endpoints, skipped: Skipped, cx: &Context<Endpoints>) {
    if skipped.invalid > 0 {
        let message =
            format!("Skipped {} invalid IP addresses when mirroring to EndpointSlices", skipped.invalid);
        cx.recorder().warning(endpoints, "InvalidIPAddress", message);
    }
    if skipped.all > skipped.invalid {
        let message = format!(
            "A max of {MAX_ADDRESSES} addresses can be mirrored to EndpointSlices per Endpoints subset. {} addresses were skipped",
            skipped.all
        );
        cx.recorder().warning(endpoints, "TooManyAddressesToMirror", message);
    }
}
