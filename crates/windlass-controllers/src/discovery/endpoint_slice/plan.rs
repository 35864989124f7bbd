//! The EndpointSlices to write for a Service.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{Node, Pod, Service, ServicePort};
use k8s_openapi::api::discovery::v1::{
    Endpoint, EndpointConditions, EndpointHints, EndpointPort, EndpointSlice, ForNode, ForZone,
};
use kube_core::{ObjectMeta, ResourceExt};

use crate::core::endpoints::member::{self, publishes_not_ready};
use crate::{adoption, pods};

/// The label with the name of the Service.
pub(super) const SERVICE_NAME: &str = "kubernetes.io/service-name";
/// The label with the controller that writes the slice.
pub(super) const MANAGED_BY: &str = "endpointslice.kubernetes.io/managed-by";
pub(super) const MANAGER: &str = "endpointslice-controller.k8s.io";
const ZONE: &str = "topology.kubernetes.io/zone";
/// The annotations for topology-aware routing, the deprecated annotation first.
const TOPOLOGY_MODES: [&str; 2] =
    ["service.kubernetes.io/topology-aware-hints", "service.kubernetes.io/topology-mode"];
/// The largest number of endpoints of a slice, as in Kubernetes.
const MAX_ENDPOINTS: usize = 100;

/// The changes to make.
#[derive(Debug, Default, PartialEq)]
pub(super) struct SlicePlan {
    pub create: Vec<EndpointSlice>,
    pub update: Vec<EndpointSlice>,
    pub delete: Vec<Arc<EndpointSlice>>,
}

/// Plans the slices of a Service. `existing` are the Service's slices from this controller, and `found` are
/// the selected pods.
pub(super) fn plan(
    service: &Service,
    found: &[Arc<Pod>],
    nodes: &BTreeMap<String, Arc<Node>>,
    existing: &[Arc<EndpointSlice>],
) -> SlicePlan {
    let mut plan = SlicePlan::default();
    let families = families(service);
    let wrong = |slice: &&Arc<EndpointSlice>| !families.contains(&slice.address_type.as_str());
    plan.delete.extend(existing.iter().filter(wrong).cloned());
    for family in families {
        let mine = existing.iter().filter(|slice| slice.address_type == family).cloned().collect();
        let desired = desired(service, found, nodes, family);
        Family { service, address_type: family, existing: mine, plan: &mut plan }.plan(desired);
    }
    plan
}

/// Endpoints with equal ports.
type Group = (Vec<EndpointPort>, Vec<Endpoint>);

/// The slices of an address family.
struct Family<'a> {
    service: &'a Service,
    address_type: &'static str,
    /// The slices without a decision.
    existing: Vec<Arc<EndpointSlice>>,
    plan: &'a mut SlicePlan,
}

impl Family<'_> {
    fn plan(mut self, desired: Vec<Group>) {
        let mut new = Vec::new();
        let mut gone = Vec::new();
        let mut kept = 0;
        for (ports, endpoints) in desired {
            let same = |slice: &Arc<EndpointSlice>| slice.ports.as_deref().unwrap_or_default() == ports;
            let (mine, others): (Vec<_>, Vec<_>) = self.existing.drain(..).partition(same);
            self.existing = others;
            kept += self.fill(&ports, endpoints, mine, &mut new, &mut gone);
        }
        gone.append(&mut self.existing);
        if new.is_empty() && kept == 0 {
            // Without endpoints, there is a single slice with neither ports nor endpoints.
            let empty = self.slice(Vec::new(), Vec::new());
            let is_empty = |slice: &Arc<EndpointSlice>| {
                let ports = slice.ports.as_ref().is_none_or(Vec::is_empty);
                ports
                    && slice.endpoints.as_ref().is_none_or(Vec::is_empty)
                    && slice.metadata.labels == empty.metadata.labels
            };
            match gone.iter().position(is_empty) {
                Some(at) => drop(gone.remove(at)),
                None => new.push(empty),
            }
        }
        // Reuse a surplus slice instead of deleting the slice and creating a new slice.
        for next in new {
            match gone.pop() {
                Some(old) => self.plan.update.push(named_as(&old, next)),
                None => self.plan.create.push(next),
            }
        }
        self.plan.delete.append(&mut gone);
    }

    /// Distributes endpoints over the slices with the same ports. As few slices as possible change. Returns
    /// the number of unchanged slices.
    fn fill(
        &mut self,
        ports: &[EndpointPort],
        mut left: Vec<Endpoint>,
        mine: Vec<Arc<EndpointSlice>>,
        new: &mut Vec<EndpointSlice>,
        gone: &mut Vec<Arc<EndpointSlice>>,
    ) -> usize {
        let mut slices: Vec<(Arc<EndpointSlice>, Vec<Endpoint>)> = Vec::new();
        for slice in mine {
            let still = slice.endpoints.iter().flatten().filter_map(|old| {
                left.iter().position(|endpoint| is_same(endpoint, old)).map(|at| left.remove(at))
            });
            let still: Vec<Endpoint> = still.collect();
            slices.push((slice, still));
        }
        for (_, endpoints) in slices.iter_mut().filter(|(_, endpoints)| !endpoints.is_empty()) {
            let room = MAX_ENDPOINTS.saturating_sub(endpoints.len()).min(left.len());
            endpoints.extend(left.drain(..room));
        }
        while !left.is_empty() {
            let rest = left.split_off(left.len().min(MAX_ENDPOINTS));
            new.push(self.slice(ports.to_vec(), std::mem::replace(&mut left, rest)));
        }
        let mut kept = 0;
        for (old, endpoints) in slices {
            if endpoints.is_empty() {
                gone.push(old);
                continue;
            }
            kept += 1;
            let next = self.slice(ports.to_vec(), endpoints);
            if next.endpoints != old.endpoints || next.metadata.labels != old.metadata.labels {
                self.plan.update.push(named_as(&old, next));
            }
        }
        kept
    }

    fn slice(&self, ports: Vec<EndpointPort>, endpoints: Vec<Endpoint>) -> EndpointSlice {
        let name = self.service.name_any();
        let mut labels = self.service.metadata.labels.clone().unwrap_or_default();
        labels.remove(member::HEADLESS);
        if member::is_headless(self.service) {
            labels.insert(member::HEADLESS.to_owned(), String::new());
        }
        labels.insert(SERVICE_NAME.to_owned(), name.clone());
        labels.insert(MANAGED_BY.to_owned(), MANAGER.to_owned());
        EndpointSlice {
            metadata: ObjectMeta {
                generate_name: Some(format!("{name}-")),
                namespace: self.service.namespace(),
                labels: Some(labels),
                owner_references: adoption::controller_reference(self.service).map(|owner| vec![owner]),
                ..ObjectMeta::default()
            },
            address_type: self.address_type.to_owned(),
            endpoints: Some(endpoints),
            ports: Some(ports),
        }
    }
}

/// Returns whether two endpoints are of the same pod.
fn is_same(a: &Endpoint, b: &Endpoint) -> bool {
    let uid = |endpoint: &Endpoint| endpoint.target_ref.as_ref().and_then(|target| target.uid.clone());
    uid(a) == uid(b) && a.addresses == b.addresses
}

fn named_as(old: &EndpointSlice, mut next: EndpointSlice) -> EndpointSlice {
    next.metadata.name.clone_from(&old.metadata.name);
    next.metadata.generate_name.clone_from(&old.metadata.generate_name);
    next.metadata.uid.clone_from(&old.metadata.uid);
    next.metadata.resource_version.clone_from(&old.metadata.resource_version);
    next
}

/// Returns the address types of the slices of a Service.
fn families(service: &Service) -> Vec<&'static str> {
    let families = service.spec.as_ref().and_then(|spec| spec.ip_families.as_deref()).unwrap_or_default();
    let found = ["IPv4", "IPv6"].into_iter().filter(|family| families.iter().any(|other| other == family));
    let found: Vec<&'static str> = found.collect();
    if found.is_empty() { vec!["IPv4"] } else { found }
}

/// Returns the endpoints of the pods, by ports.
fn desired(
    service: &Service,
    found: &[Arc<Pod>],
    nodes: &BTreeMap<String, Arc<Node>>,
    family: &str,
) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for pod in found.iter().filter(|pod| member::has_endpoint(pod, true)) {
        let node_name = pod.spec.as_ref().and_then(|spec| spec.node_name.clone());
        let node = node_name.as_ref().and_then(|name| nodes.get(name));
        if node.is_none() && !publishes_not_ready(service) {
            continue;
        }
        let addresses = addresses(pod, family);
        let ports = ports(service, pod);
        let at = groups.iter().position(|(known, _)| *known == ports).unwrap_or_else(|| {
            groups.push((ports, Vec::new()));
            groups.len() - 1
        });
        if !addresses.is_empty() {
            groups[at].1.push(endpoint(service, pod, node.map(AsRef::as_ref), addresses));
        }
    }
    groups
}

fn endpoint(service: &Service, pod: &Pod, node: Option<&Node>, addresses: Vec<String>) -> Endpoint {
    let (serving, terminating) = (pods::is_ready(pod), pods::is_terminating(pod));
    let zone = node.and_then(|node| node.metadata.labels.as_ref()?.get(ZONE).cloned());
    let zone = zone.filter(|zone| !zone.is_empty());
    let node_name = pod.spec.as_ref().and_then(|spec| spec.node_name.clone());
    let is_ready = publishes_not_ready(service) || serving && !terminating;
    Endpoint {
        addresses,
        conditions: Some(EndpointConditions {
            ready: Some(is_ready),
            serving: Some(serving),
            terminating: Some(terminating),
        }),
        hints: is_ready.then(|| hints(service, zone.as_ref(), node_name.as_ref())).flatten(),
        hostname: member::hostname(service, pod),
        node_name,
        target_ref: Some(member::reference(pod)),
        zone,
        ..Endpoint::default()
    }
}

/// Returns the zone and the node whose traffic a ready endpoint should get, if the Service has a traffic distribution. The annotation
/// for topology-aware routing comes before the traffic distribution.
fn hints(service: &Service, zone: Option<&String>, node: Option<&String>) -> Option<EndpointHints> {
    let annotations = service.metadata.annotations.as_ref();
    let mode = annotations.and_then(|all| TOPOLOGY_MODES.iter().find_map(|key| all.get(*key)));
    if mode.is_some_and(|mode| matches!(mode.as_str(), "auto" | "Auto")) {
        return None;
    }
    let distribution = service.spec.as_ref()?.traffic_distribution.as_deref()?;
    if !matches!(distribution, "PreferClose" | "PreferSameZone" | "PreferSameNode") {
        return None;
    }
    let node = node.filter(|_| distribution == "PreferSameNode");
    let for_zones = zone.map(|zone| vec![ForZone { name: zone.clone() }]);
    let for_nodes = node.map(|node| vec![ForNode { name: node.clone() }]);
    (for_zones.is_some() || for_nodes.is_some()).then_some(EndpointHints { for_nodes, for_zones })
}

fn addresses(pod: &Pod, family: &str) -> Vec<String> {
    let all = pod.status.iter().flat_map(|status| status.pod_ips.iter().flatten());
    let parsed = all.filter_map(|address| address.ip.parse::<IpAddr>().ok());
    parsed.filter(|ip| ip.is_ipv6() == (family == "IPv6")).map(|ip| ip.to_string()).collect()
}

fn ports(service: &Service, pod: &Pod) -> Vec<EndpointPort> {
    let all = service.spec.iter().flat_map(|spec| spec.ports.iter().flatten());
    let port = |port: &ServicePort| {
        Some(EndpointPort {
            name: Some(port.name.clone().unwrap_or_default()),
            port: Some(member::port_number(pod, port)?),
            protocol: Some(port.protocol.clone().unwrap_or_else(|| "TCP".to_owned())),
            app_protocol: port.app_protocol.clone(),
        })
    };
    all.filter_map(port).collect()
}

#[cfg(test)]
mod tests;
