//! Writes the EndpointSlices of Services.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::api::core::v1::{Node, Pod, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube_core::ResourceExt;
use windlass_runtime::{
    Action, Context, Controller, Delta, HandlerContext, ObjectKey, Predicate, Result, Watch, kind,
};

use super::plan::{MANAGED_BY, MANAGER, SERVICE_NAME, plan};
use crate::core::endpoints::member;

/// Returns the controller.
pub(crate) fn controller() -> Controller {
    Controller::of::<Service>(reconcile)
        .named("endpoint-slice-controller")
        .watches::<Pod>(member::services_of)
        .watches::<EndpointSlice>(service_of)
        .watch(Watch::mapped(kind::<Node>(), services_on).predicate(Predicate::new(is_added)))
        .max_concurrent_reconciles(4)
}

/// Returns whether a node has appeared. Endpoints need the node of the pod.
fn is_added(delta: &Delta) -> bool {
    matches!(delta, Delta::Added { initial: false, .. })
}

/// Returns the Services that select pods on a node.
fn services_on(node: &Node, cx: &HandlerContext) -> Result<Vec<ObjectKey>> {
    let is_here = |pod: &Pod| {
        let name = pod.spec.as_ref().and_then(|spec| spec.node_name.as_ref());
        name.is_some() && name == node.metadata.name.as_ref()
    };
    let mut services = BTreeSet::new();
    for pod in cx.lister::<Pod>()?.all()?.iter().filter(|pod| is_here(pod)) {
        services.extend(member::services_of(pod, cx)?);
    }
    Ok(services.into_iter().collect())
}

/// Returns the Service that a slice was written for.
#[expect(clippy::unnecessary_wraps, reason = "the form of a mapper")]
fn service_of(slice: &EndpointSlice, _cx: &HandlerContext) -> Result<Vec<ObjectKey>> {
    let namespace = slice.namespace().unwrap_or_default();
    let name = slice.labels().get(SERVICE_NAME).filter(|_| is_ours(slice));
    Ok(name.map(|name| ObjectKey::namespaced(&namespace, name)).into_iter().collect())
}

fn is_ours(slice: &EndpointSlice) -> bool {
    slice.labels().get(MANAGED_BY).is_some_and(|manager| manager == MANAGER)
}

async fn reconcile(key: ObjectKey, cx: Context<Service>) -> Result<Action> {
    let Some(service) = cx.get(&key)?.filter(|service| member::has_endpoints(service)) else {
        // The slices of a deleted Service are deleted with the Service, and the slices of a Service without a
        // selector belong to the user.
        return Ok(Action::done());
    };
    if service.metadata.deletion_timestamp.is_some() {
        return Ok(Action::done());
    }
    let namespace = service.namespace().unwrap_or_default();
    let pods: Vec<Arc<Pod>> =
        cx.lister::<Pod>()?.namespace(&namespace).all()?.complete()?.into_iter().collect();
    let pods: Vec<Arc<Pod>> = pods.into_iter().filter(|pod| member::selects(&service, pod)).collect();
    let nodes = cx.lister::<Node>()?.all()?.complete()?;
    let nodes: BTreeMap<String, Arc<Node>> = nodes.into_iter().map(|node| (node.name_any(), node)).collect();
    let slices = cx.lister::<EndpointSlice>()?.namespace(&namespace).all()?.complete()?;
    let of_service = |slice: &Arc<EndpointSlice>| {
        is_ours(slice) && slice.labels().get(SERVICE_NAME).is_some_and(|name| *name == service.name_any())
    };
    let existing: Vec<Arc<EndpointSlice>> = slices.into_iter().filter(of_service).collect();
    let plan = plan(&service, &pods, &nodes, &existing);
    for slice in plan.create {
        match cx.create(slice).await {
            Err(error) if !error.is_namespace_terminating() => return Err(error),
            _ => {}
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
