//! The Endpoints object of a Service: the older form of EndpointSlices.

use std::net::IpAddr;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{
    EndpointAddress, EndpointPort, EndpointSubset, Endpoints, Pod, Service, ServicePort,
};
use kube_core::{ObjectMeta, ResourceExt};

use super::member::{self, publishes_not_ready};
use crate::pods;

const MANAGED_BY: &str = "endpoints.kubernetes.io/managed-by";
const MANAGER: &str = "endpoint-controller";
/// Says that there are more endpoints than the object has.
const OVER_CAPACITY: &str = "endpoints.kubernetes.io/over-capacity";
/// The largest number of addresses, as in Kubernetes.
const MAX_ADDRESSES: usize = 1000;

/// Returns the Endpoints to write for a Service, or `None` if `old` is up to date.
pub(super) fn plan(service: &Service, found: &[Arc<Pod>], old: Option<&Endpoints>) -> Option<Endpoints> {
    let mut subsets = subsets(service, found);
    let truncated = truncate(&mut subsets);
    let mut next = old.cloned().unwrap_or_else(|| Endpoints {
        metadata: ObjectMeta {
            name: service.metadata.name.clone(),
            namespace: service.namespace(),
            ..ObjectMeta::default()
        },
        subsets: None,
    });
    let mut labels = service.metadata.labels.clone().unwrap_or_default();
    labels.remove(member::HEADLESS);
    if member::is_headless(service) {
        labels.insert(member::HEADLESS.to_owned(), String::new());
    }
    labels.insert(MANAGED_BY.to_owned(), MANAGER.to_owned());
    next.metadata.labels = Some(labels);
    next.annotations_mut().remove(OVER_CAPACITY);
    if truncated {
        next.annotations_mut().insert(OVER_CAPACITY.to_owned(), "truncated".to_owned());
    }
    if next.annotations().is_empty() {
        next.metadata.annotations = None;
    }
    next.subsets = (!subsets.is_empty()).then_some(subsets);
    (old != Some(&next)).then_some(next)
}

/// Addresses in the order of the object, with true for a ready address.
pub(crate) type Addresses = Vec<(EndpointAddress, bool)>;

/// Returns the addresses of the pods: for each set of addresses, the ports that all addresses of the set
/// have.
fn subsets(service: &Service, found: &[Arc<Pod>]) -> Vec<EndpointSubset> {
    let subsets = with_equal_addresses(addresses_by_port(service, found));
    let subset = |(ports, addresses): (Vec<EndpointPort>, Addresses)| {
        let of = |ready: bool| {
            let some = addresses.iter().filter(|(_, is_ready)| *is_ready == ready);
            Some(some.map(|(address, _)| address.clone()).collect::<Vec<_>>()).filter(|list| !list.is_empty())
        };
        EndpointSubset {
            addresses: of(true),
            not_ready_addresses: of(false),
            ports: (!ports.is_empty()).then_some(ports),
        }
    };
    subsets.into_iter().map(subset).collect()
}

/// Joins the ports that have the same addresses.
pub(crate) fn with_equal_addresses(
    by_port: Vec<(Option<EndpointPort>, Addresses)>,
) -> Vec<(Vec<EndpointPort>, Addresses)> {
    let mut subsets: Vec<(Vec<EndpointPort>, Addresses)> = Vec::new();
    for (port, addresses) in by_port {
        match subsets.iter_mut().find(|(_, known)| *known == addresses) {
            Some((ports, _)) => ports.extend(port),
            None => subsets.push((port.into_iter().collect(), addresses)),
        }
    }
    subsets
}

/// Returns the sorted addresses of each port. A headless service may have no ports: the result then has an
/// entry without a port.
fn addresses_by_port(service: &Service, found: &[Arc<Pod>]) -> Vec<(Option<EndpointPort>, Addresses)> {
    let all = publishes_not_ready(service);
    let portless = service_ports(service).next().is_none() && member::is_headless(service);
    let mut by_port: Vec<(Option<EndpointPort>, Addresses)> = Vec::new();
    for pod in found.iter().filter(|pod| member::has_endpoint(pod, all)) {
        let ports = service_ports(service).filter_map(|port| number(pod, port)).map(Some);
        let ports: Vec<Option<EndpointPort>> = ports.chain(portless.then_some(None)).collect();
        for port in ports {
            let entry = (address(service, pod), all || pods::is_ready(pod));
            match by_port.iter_mut().find(|(known, _)| *known == port) {
                Some((_, addresses)) => addresses.push(entry),
                None => by_port.push((port, vec![entry])),
            }
        }
    }
    for (_, addresses) in &mut by_port {
        addresses.sort_by_cached_key(|(address, _)| order(address));
    }
    by_port
}

/// Returns the sort key of an address: the number, then the pod.
pub(crate) fn order(address: &EndpointAddress) -> (Option<IpAddr>, Option<String>) {
    let uid = address.target_ref.as_ref().and_then(|target| target.uid.clone());
    (address.ip.parse().ok(), uid)
}

fn service_ports(service: &Service) -> impl Iterator<Item = &ServicePort> {
    service.spec.iter().flat_map(|spec| spec.ports.iter().flatten())
}

fn number(pod: &Pod, port: &ServicePort) -> Option<EndpointPort> {
    Some(EndpointPort {
        name: port.name.clone(),
        port: member::port_number(pod, port)?,
        protocol: Some(port.protocol.clone().unwrap_or_else(|| "TCP".to_owned())),
        app_protocol: port.app_protocol.clone(),
    })
}

fn address(service: &Service, pod: &Pod) -> EndpointAddress {
    EndpointAddress {
        ip: pod.status.as_ref().and_then(|status| status.pod_ip.clone()).unwrap_or_default(),
        hostname: member::hostname(service, pod),
        node_name: pod.spec.as_ref().and_then(|spec| spec.node_name.clone()),
        target_ref: Some(member::reference(pod)),
    }
}

/// Removes the addresses beyond the limit, first addresses that are not ready. Returns whether an address was
/// removed.
fn truncate(subsets: &mut [EndpointSubset]) -> bool {
    let mut room = MAX_ADDRESSES;
    let mut over = false;
    let mut cut = |list: &mut Option<Vec<EndpointAddress>>| {
        let Some(addresses) = list else { return };
        over |= addresses.len() > room;
        addresses.truncate(room);
        room -= addresses.len();
        if addresses.is_empty() {
            *list = None;
        }
    };
    subsets.iter_mut().for_each(|subset| cut(&mut subset.addresses));
    subsets.iter_mut().for_each(|subset| cut(&mut subset.not_ready_addresses));
    over
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn service() -> Service {
        serde_json::from_value(json!({
            "metadata": {"name": "web", "namespace": "n", "labels": {"l": "v"}},
            "spec": {"selector": {"app": "web"}, "clusterIP": "10.0.0.1", "ports": [{"port": 80, "targetPort": 8080}]},
        }))
        .unwrap()
    }

    fn pod(name: &str, ip: &str, ready: &str) -> Arc<Pod> {
        Arc::new(
            serde_json::from_value(json!({
                "metadata": {"name": name, "namespace": "n", "uid": name},
                "status": {"podIP": ip, "conditions": [{"type": "Ready", "status": ready}]},
            }))
            .unwrap(),
        )
    }

    #[test]
    fn addresses_are_sorted_and_those_that_are_not_ready_are_apart() {
        let pods =
            [pod("a", "10.0.0.10", "True"), pod("b", "10.0.0.9", "True"), pod("c", "10.0.0.8", "False")];
        let endpoints = plan(&service(), &pods, None).unwrap();
        let subset = &endpoints.subsets.as_ref().unwrap()[0];
        let ips = |list: &Option<Vec<EndpointAddress>>| {
            list.iter().flatten().map(|address| address.ip.clone()).collect::<Vec<_>>()
        };
        assert_eq!(ips(&subset.addresses), ["10.0.0.9", "10.0.0.10"]);
        assert_eq!(ips(&subset.not_ready_addresses), ["10.0.0.8"]);
        assert_eq!(plan(&service(), &pods, Some(&endpoints)), None, "nothing has changed");
    }

    #[test]
    fn there_are_at_most_a_thousand_addresses() {
        let pods: Vec<_> = (0..1001)
            .map(|n| pod(&n.to_string(), &format!("10.0.{}.{}", n / 250, n % 250), "True"))
            .collect();
        let endpoints = plan(&service(), &pods, None).unwrap();
        assert_eq!(endpoints.subsets.as_ref().unwrap()[0].addresses.as_ref().unwrap().len(), 1000);
        assert_eq!(endpoints.annotations()[OVER_CAPACITY], "truncated");
    }
}
