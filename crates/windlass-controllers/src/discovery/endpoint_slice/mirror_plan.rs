//! The EndpointSlices that mirror an Endpoints object.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{EndpointAddress, EndpointPort as Port, EndpointSubset, Endpoints};
use k8s_openapi::api::discovery::v1::{Endpoint, EndpointConditions, EndpointPort, EndpointSlice};
use kube_core::{ObjectMeta, ResourceExt};

use super::plan::{MANAGED_BY, SERVICE_NAME, SlicePlan};
use crate::adoption;
use crate::core::endpoints::{Addresses, order, with_equal_addresses};

/// The manager of the slices.
pub(super) const MANAGER: &str = "endpointslicemirroring-controller.k8s.io";
/// The largest number of addresses of a subset that are mirrored.
pub(super) const MAX_ADDRESSES: usize = 1000;

/// The annotations of Endpoints that are not copied to mirrors.
const NOT_MIRRORED: [&str; 2] =
    ["endpoints.kubernetes.io/last-change-trigger-time", "kubectl.kubernetes.io/last-applied-configuration"];

/// The number of addresses that are not mirrored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Skipped {
    pub(super) all: usize,
    /// Because the addresses are not IP addresses.
    pub(super) invalid: usize,
}

/// The slices of one address type with the same ports.
struct Mirror {
    address_type: &'static str,
    ports: Vec<EndpointPort>,
    endpoints: BTreeMap<EndpointId, Endpoint>,
}

/// Plans the mirrors of an Endpoints object. `existing` are the mirrors of this object.
pub(super) fn plan(endpoints: &Endpoints, existing: &[Arc<EndpointSlice>]) -> (SlicePlan, Skipped) {
    let (mirrors, skipped) = mirrors(endpoints);
    let mut plan = SlicePlan::default();
    let mut unused: Vec<Arc<EndpointSlice>> = existing.to_vec();
    let mut unwritten = Vec::new();
    for mirror in mirrors {
        let next = slice(endpoints, mirror);
        let has_its_ports = |slice: &Arc<EndpointSlice>| {
            slice.address_type == next.address_type
                && Some(sorted(slice.ports.clone().unwrap_or_default())) == next.ports
        };
        match unused.iter().position(has_its_ports) {
            Some(place) => {
                let old = unused.remove(place);
                if !is_same(&old, &next) {
                    let mut next = named_as(&old, next);
                    next.metadata.generate_name = None;
                    plan.update.push(next);
                }
            }
            None => unwritten.push(next),
        }
    }
    for next in unwritten {
        // Reuse a surplus slice instead of deleting the slice and creating a new slice.
        match unused.iter().position(|slice| slice.address_type == next.address_type) {
            Some(place) => plan.update.push(named_as(&unused.remove(place), next)),
            None => plan.create.push(next),
        }
    }
    plan.delete = unused;
    (plan, skipped)
}

/// Returns the mirrors of all subsets, without empty mirrors.
fn mirrors(endpoints: &Endpoints) -> (Vec<Mirror>, Skipped) {
    let mut mirrors: Vec<Mirror> = Vec::new();
    let mut skipped = Skipped::default();
    for (ports, addresses) in repacked(endpoints.subsets.as_deref().unwrap_or_default()) {
        let ports = sorted(ports.into_iter().map(port).collect());
        let all = addresses.len();
        let mut added = 0;
        let (ready, others): (Addresses, Addresses) = addresses.into_iter().partition(|(_, ready)| *ready);
        for (address, ready) in ready.into_iter().chain(others) {
            if added >= MAX_ADDRESSES {
                break;
            }
            let Ok(ip) = address.ip.parse::<IpAddr>() else {
                skipped.invalid += 1;
                continue;
            };
            added += 1;
            let address_type = if ip.is_ipv6() { "IPv6" } else { "IPv4" };
            let endpoint = endpoint(ip, address, ready);
            let known =
                mirrors.iter_mut().find(|known| known.address_type == address_type && known.ports == ports);
            match known {
                Some(mirror) => drop(mirror.endpoints.insert(id(&endpoint), endpoint)),
                None => mirrors.push(Mirror {
                    address_type,
                    ports: ports.clone(),
                    endpoints: BTreeMap::from([(id(&endpoint), endpoint)]),
                }),
            }
        }
        skipped.all += all - added;
    }
    (mirrors, skipped)
}

/// Returns the subsets in the canonical form: all sets of addresses are different, and no address occurs
/// twice in a set. An address that is both ready and not ready for a port is not ready.
fn repacked(subsets: &[EndpointSubset]) -> Vec<(Vec<Port>, Addresses)> {
    let mut by_port: Vec<(Option<Port>, Addresses)> = Vec::new();
    for subset in subsets {
        let ports: Vec<Option<Port>> = match subset.ports.as_deref().unwrap_or_default() {
            [] => vec![None],
            ports => ports.iter().cloned().map(Some).collect(),
        };
        let ready = subset.addresses.iter().flatten().map(|address| (address, true));
        let others = subset.not_ready_addresses.iter().flatten().map(|address| (address, false));
        let addresses: Vec<(&EndpointAddress, bool)> = ready.chain(others).collect();
        for port in ports {
            let place = by_port.iter().position(|(known, _)| *known == port).unwrap_or_else(|| {
                by_port.push((port, Addresses::new()));
                by_port.len() - 1
            });
            by_port[place].1.extend(addresses.iter().map(|(address, ready)| ((*address).clone(), *ready)));
        }
    }
    for (_, addresses) in &mut by_port {
        addresses.sort_by_cached_key(|(address, ready)| (order(address), address.ip.clone(), *ready));
        addresses.dedup_by_key(|(address, _)| (order(address), address.ip.clone()));
    }
    with_equal_addresses(by_port)
}

fn port(port: Port) -> EndpointPort {
    EndpointPort {
        name: Some(port.name.unwrap_or_default()),
        port: Some(port.port),
        protocol: Some(port.protocol.unwrap_or_else(|| "TCP".to_owned())),
        app_protocol: port.app_protocol,
    }
}

fn sorted(mut ports: Vec<EndpointPort>) -> Vec<EndpointPort> {
    ports.sort_by_cached_key(|port| {
        (port.name.clone(), port.port, port.protocol.clone(), port.app_protocol.clone())
    });
    ports
}

fn endpoint(ip: IpAddr, address: EndpointAddress, ready: bool) -> Endpoint {
    Endpoint {
        addresses: vec![ip.to_string()],
        conditions: Some(EndpointConditions { ready: Some(ready), ..EndpointConditions::default() }),
        hostname: address.hostname.filter(|hostname| !hostname.is_empty()),
        node_name: address.node_name,
        target_ref: address.target_ref,
        ..Endpoint::default()
    }
}

/// The identity of an endpoint: the address, the host name, and the name of the target.
type EndpointId = (Vec<String>, Option<String>, Option<(Option<String>, Option<String>)>);

fn id(endpoint: &Endpoint) -> EndpointId {
    let target = endpoint.target_ref.as_ref().map(|target| (target.namespace.clone(), target.name.clone()));
    (endpoint.addresses.clone(), endpoint.hostname.clone(), target)
}

fn slice(endpoints: &Endpoints, mirror: Mirror) -> EndpointSlice {
    let name = endpoints.name_any();
    let mut labels = endpoints.labels().clone();
    labels.insert(SERVICE_NAME.to_owned(), name.clone());
    labels.insert(MANAGED_BY.to_owned(), MANAGER.to_owned());
    let mut annotations = endpoints.annotations().clone();
    annotations.retain(|key, _| !NOT_MIRRORED.contains(&&**key));
    EndpointSlice {
        metadata: ObjectMeta {
            generate_name: Some(format!("{name}-")),
            namespace: endpoints.namespace(),
            labels: Some(labels),
            annotations: Some(annotations).filter(|annotations| !annotations.is_empty()),
            owner_references: adoption::controller_reference(endpoints).map(|owner| vec![owner]),
            ..ObjectMeta::default()
        },
        address_type: mirror.address_type.to_owned(),
        endpoints: Some(mirror.endpoints.into_values().collect()),
        ports: Some(mirror.ports),
    }
}

fn named_as(old: &EndpointSlice, mut next: EndpointSlice) -> EndpointSlice {
    next.metadata.name.clone_from(&old.metadata.name);
    next.metadata.uid.clone_from(&old.metadata.uid);
    next.metadata.resource_version.clone_from(&old.metadata.resource_version);
    next
}

/// Returns whether a slice is up to date, regardless of the order of endpoints.
fn is_same(old: &EndpointSlice, next: &EndpointSlice) -> bool {
    let by_id = |slice: &EndpointSlice| -> BTreeMap<EndpointId, Endpoint> {
        slice.endpoints.iter().flatten().map(|endpoint| (id(endpoint), endpoint.clone())).collect()
    };
    old.labels() == next.labels()
        && old.annotations() == next.annotations()
        && old.metadata.owner_references == next.metadata.owner_references
        && by_id(old) == by_id(next)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn endpoints(subsets: Value) -> Endpoints {
        let metadata = json!({"name": "db", "namespace": "n", "uid": "u", "labels": {"l": "v"}});
        serde_json::from_value(json!({"metadata": metadata, "subsets": subsets})).unwrap()
    }

    /// Returns the address type, the addresses and the names of the ports of slices.
    fn shown(slices: &[EndpointSlice]) -> Vec<String> {
        let line = |slice: &EndpointSlice| {
            let addresses: Vec<_> =
                slice.endpoints.iter().flatten().flat_map(|e| e.addresses.clone()).collect();
            let ports: Vec<_> = slice.ports.iter().flatten().filter_map(|port| port.name.clone()).collect();
            format!("{} {} {}", slice.address_type, addresses.join(","), ports.join(","))
        };
        slices.iter().map(line).collect()
    }

    fn written(slices: Vec<EndpointSlice>) -> Vec<Arc<EndpointSlice>> {
        let named = |(number, mut slice): (usize, EndpointSlice)| {
            slice.metadata.name = Some(format!("db-{number}"));
            Arc::new(slice)
        };
        slices.into_iter().enumerate().map(named).collect()
    }

    #[test]
    fn a_slice_has_one_address_type_and_one_set_of_ports() {
        let subsets = json!([
            {"addresses": [{"ip": "10.0.0.1"}, {"ip": "fd00::1"}], "ports": [{"name": "a", "port": 1}]},
            {"addresses": [{"ip": "10.0.0.2"}], "notReadyAddresses": [{"ip": "10.0.0.1"}], "ports": [{"name": "b", "port": 2}]},
        ]);
        let (plan, skipped) = plan(&endpoints(subsets), &[]);
        assert_eq!(shown(&plan.create), ["IPv4 10.0.0.1 a", "IPv6 fd00::1 a", "IPv4 10.0.0.1,10.0.0.2 b"]);
        assert_eq!(skipped, Skipped::default());
    }

    #[test]
    fn ports_with_the_same_addresses_share_a_slice() {
        let subset =
            |port: &str| json!({"addresses": [{"ip": "10.0.0.1"}], "ports": [{"name": port, "port": 1}]});
        let (plan, _) = plan(&endpoints(json!([subset("b"), subset("a")])), &[]);
        assert_eq!(shown(&plan.create), ["IPv4 10.0.0.1 a,b"]);
    }

    #[test]
    fn a_slice_is_kept_changed_or_used_for_other_ports() {
        let with = |ip: &str, port: i32| {
            endpoints(json!([{"addresses": [{"ip": ip}], "ports": [{"name": "a", "port": port}]}]))
        };
        let existing = written(plan(&with("10.0.0.1", 1), &[]).0.create);
        assert_eq!(plan(&with("10.0.0.1", 1), &existing).0, SlicePlan::default());
        for changed in [with("10.0.0.2", 1), with("10.0.0.1", 2)] {
            let (plan, _) = plan(&changed, &existing);
            assert_eq!((plan.create.len(), plan.update.len(), plan.delete.len()), (0, 1, 0));
            assert_eq!(plan.update[0].metadata.name.as_deref(), Some("db-0"));
        }
        let (plan, _) = plan(&endpoints(json!(null)), &existing);
        assert_eq!(plan.delete, existing);
    }

    #[test]
    fn a_subset_is_mirrored_up_to_its_thousandth_address() {
        let addresses: Vec<Value> =
            (0..1002).map(|n| json!({"ip": format!("10.0.{}.{}", n / 250, n % 250)})).collect();
        let (plan, skipped) = plan(&endpoints(json!([{"addresses": addresses}])), &[]);
        assert_eq!(plan.create[0].endpoints.as_ref().unwrap().len(), 1000);
        assert_eq!(skipped, Skipped { all: 2, invalid: 0 });
    }
}
