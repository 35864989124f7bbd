//! The DNS records of one Service.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::discovery::v1::{Endpoint, EndpointSlice};
use windlass_runtime::ObjectKey;

use super::DOMAIN;
use super::zone::normal;
use crate::kubelet::services::Protocol;

/// The records of a Service.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::kubelet) struct ServiceRecords {
    /// The target of an ExternalName.
    pub(super) external: Option<String>,
    /// The cluster addresses, or the ready endpoints of a headless Service.
    pub(super) addresses: Vec<IpAddr>,
    /// The ready endpoints of a headless Service, by their host names.
    pub(super) hosts: BTreeMap<String, Vec<IpAddr>>,
    /// The ports with a name.
    pub(super) ports: Vec<PortRecord>,
}

/// A port with a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PortRecord {
    pub(super) name: String,
    pub(super) protocol: Protocol,
    pub(super) port: u16,
    /// The host name of an endpoint. `None` is the Service itself.
    pub(super) host: Option<String>,
}

impl ServiceRecords {
    /// Returns the domain name of a Service.
    pub(super) fn full_name(key: &ObjectKey) -> String {
        format!("{}.{}.svc.{DOMAIN}", key.name(), key.namespace().unwrap_or_default())
    }

    /// Returns the domain name of an address: of an endpoint, or of the Service.
    pub(super) fn name_of(&self, key: &ObjectKey, address: IpAddr) -> Option<String> {
        let service = Self::full_name(key);
        let host = self.hosts.iter().find(|(_, addresses)| addresses.contains(&address));
        match host {
            Some((host, _)) => Some(format!("{host}.{service}")),
            None => self.addresses.contains(&address).then_some(service),
        }
    }

    fn add_endpoint(&mut self, slice: &EndpointSlice, endpoint: &Endpoint) {
        for address in endpoint.addresses.iter().filter_map(|text| text.parse::<IpAddr>().ok()) {
            let dashed = || address.to_string().replace(['.', ':'], "-");
            let host = endpoint.hostname.clone().filter(|host| !host.is_empty()).unwrap_or_else(dashed);
            self.addresses.push(address);
            self.hosts.entry(host.clone()).or_default().push(address);
            for port in slice.ports.iter().flatten() {
                let number = port.port.and_then(|number| u16::try_from(number).ok());
                let host = Some(host.clone());
                self.add_port(port.name.as_deref(), port.protocol.as_deref(), number, host);
            }
        }
    }

    fn add_port(
        &mut self,
        name: Option<&str>,
        protocol: Option<&str>,
        port: Option<u16>,
        host: Option<String>,
    ) {
        let name = name.filter(|name| !name.is_empty());
        if let (Some(name), Some(protocol), Some(port)) = (name, Protocol::parse(protocol), port) {
            self.ports.push(PortRecord { name: name.to_ascii_lowercase(), protocol, port, host });
        }
    }
}

/// Returns the records of a Service and its EndpointSlices. `None` if the Service has no names.
pub(in crate::kubelet) fn records_of(
    service: &Service,
    slices: &[Arc<EndpointSlice>],
) -> Option<ServiceRecords> {
    let spec = service.spec.as_ref()?;
    let mut records = ServiceRecords::default();
    if spec.type_.as_deref() == Some("ExternalName") {
        records.external = spec.external_name.as_deref().map(normal).filter(|name| !name.is_empty());
        return records.external.is_some().then_some(records);
    }
    if spec.cluster_ip.as_deref() != Some("None") {
        records.addresses = spec.cluster_ips.iter().flatten().filter_map(|ip| ip.parse().ok()).collect();
        for port in spec.ports.iter().flatten() {
            let number = u16::try_from(port.port).ok();
            records.add_port(port.name.as_deref(), port.protocol.as_deref(), number, None);
        }
        return Some(records);
    }
    for slice in slices {
        let ready = slice.endpoints.iter().flatten().filter(|endpoint| {
            endpoint.conditions.as_ref().and_then(|conditions| conditions.ready).unwrap_or(true)
        });
        ready.for_each(|endpoint| records.add_endpoint(slice, endpoint));
    }
    Some(records)
}
