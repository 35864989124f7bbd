//! The pods that a Service selects, and the ports of the pods.

use k8s_openapi::api::core::v1::{Container, ContainerPort, ObjectReference, Pod, Service, ServicePort};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube_core::ResourceExt;
use windlass_runtime::{HandlerContext, ObjectKey, Result};

use crate::pods;

/// The label of a headless service's endpoints.
pub(crate) const HEADLESS: &str = "service.kubernetes.io/headless";

/// Returns whether pods of the service get traffic before the pods are ready.
pub(crate) fn publishes_not_ready(service: &Service) -> bool {
    service.spec.as_ref().and_then(|spec| spec.publish_not_ready_addresses) == Some(true)
}

/// Returns whether the controllers write the endpoints of the pods of a Service. A Service with an external name has no endpoints.
pub(crate) fn has_endpoints(service: &Service) -> bool {
    let kind = service.spec.as_ref().and_then(|spec| spec.type_.as_deref());
    selects_pods(service) && kind != Some("ExternalName")
}

/// Returns whether a Service has a selector.
pub(crate) fn selects_pods(service: &Service) -> bool {
    let spec = service.spec.as_ref();
    spec.is_some_and(|spec| spec.selector.as_ref().is_some_and(|selector| !selector.is_empty()))
}

/// Returns whether a Service selects a pod.
pub(crate) fn selects(service: &Service, pod: &Pod) -> bool {
    let selector = service.spec.as_ref().and_then(|spec| spec.selector.as_ref());
    selector.is_some_and(|selector| {
        !selector.is_empty() && selector.iter().all(|(key, value)| pods::label(pod, key) == Some(value))
    })
}

/// Returns the keys of the Services that select a pod.
pub(crate) fn services_of(pod: &Pod, cx: &HandlerContext) -> Result<Vec<ObjectKey>> {
    let namespace = pod.namespace().unwrap_or_default();
    let services = cx.lister::<Service>()?.namespace(&namespace).all()?;
    let key = |service: &Service| ObjectKey::namespaced(&namespace, &service.name_any());
    Ok(services.iter().filter(|service| selects(service, pod)).map(key).collect())
}

/// Returns whether a pod has an address, has not ended, and is not terminating unless that is accepted.
pub(crate) fn has_endpoint(pod: &Pod, terminating_too: bool) -> bool {
    let address = pod.status.as_ref().and_then(|status| status.pod_ip.as_deref()).unwrap_or_default();
    !pods::has_finished(pod) && !address.is_empty() && (terminating_too || !pods::is_terminating(pod))
}

/// Returns the host name that the pod has in the domain of the Service.
pub(crate) fn hostname(service: &Service, pod: &Pod) -> Option<String> {
    let spec = pod.spec.as_ref()?;
    let name = spec.hostname.clone().filter(|name| !name.is_empty())?;
    (spec.subdomain == service.metadata.name).then_some(name)
}

/// Returns a reference to a pod, in the form of an endpoint's target.
pub(crate) fn reference(pod: &Pod) -> ObjectReference {
    ObjectReference {
        kind: Some("Pod".to_owned()),
        namespace: pod.metadata.namespace.clone(),
        name: pod.metadata.name.clone(),
        uid: pod.metadata.uid.clone(),
        ..ObjectReference::default()
    }
}

/// Returns whether a Service has no cluster address.
pub(crate) fn is_headless(service: &Service) -> bool {
    let address = service.spec.as_ref().and_then(|spec| spec.cluster_ip.as_deref()).unwrap_or_default();
    matches!(address, "" | "None")
}

/// Returns the number of a Service's port in the pod. A named port is looked up in the containers.
pub(crate) fn port_number(pod: &Pod, port: &ServicePort) -> Option<i32> {
    let name = match &port.target_port {
        None => return Some(port.port),
        Some(IntOrString::Int(number)) => return Some(if *number == 0 { port.port } else { *number }),
        Some(IntOrString::String(name)) => name,
    };
    let spec = pod.spec.as_ref()?;
    let is_sidecar = |container: &&Container| container.restart_policy.as_deref() == Some("Always");
    let sidecars = spec.init_containers.iter().flatten().filter(is_sidecar);
    let mut ports =
        spec.containers.iter().chain(sidecars).flat_map(|container| container.ports.iter().flatten());
    let protocol = port.protocol.as_deref().unwrap_or("TCP");
    let named = |found: &&ContainerPort| {
        found.name.as_ref() == Some(name) && found.protocol.as_deref().unwrap_or("TCP") == protocol
    };
    ports.find(named).map(|found| found.container_port)
}
