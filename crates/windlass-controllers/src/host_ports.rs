//! The ports of a node that pods take for themselves (`hostPort`).

use k8s_openapi::api::core::v1::{Container, Pod};

/// Says that ports are taken, in the words of kube-scheduler and of the kubelet.
pub(crate) const TAKEN: &str = "node(s) didn't have free ports for the requested pod ports";

/// The address that stands for all of a node.
const ANY: &str = "0.0.0.0";

/// A port of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HostPort {
    address: String,
    protocol: String,
    port: i32,
}

impl HostPort {
    fn conflicts(&self, other: &Self) -> bool {
        let same_address = self.address == other.address || self.address == ANY || other.address == ANY;
        self.port == other.port && self.protocol == other.protocol && same_address
    }
}

/// Returns the ports that the containers and sidecars of a pod take.
pub(crate) fn host_ports(pod: &Pod) -> Vec<HostPort> {
    let Some(spec) = &pod.spec else { return Vec::new() };
    let is_sidecar = |container: &&Container| container.restart_policy.as_deref() == Some("Always");
    let sidecars = spec.init_containers.iter().flatten().filter(is_sidecar);
    let ports = spec.containers.iter().chain(sidecars).flat_map(|container| container.ports.iter().flatten());
    let taken = ports.filter_map(|port| {
        let set = |text: &Option<String>, default: &str| {
            text.clone().filter(|text| !text.is_empty()).unwrap_or_else(|| default.to_owned())
        };
        Some(HostPort {
            address: set(&port.host_ip, ANY),
            protocol: set(&port.protocol, "TCP"),
            port: port.host_port.filter(|port| *port > 0)?,
        })
    });
    taken.collect()
}

/// Returns whether a wanted port is among the taken ports.
pub(crate) fn conflict(wanted: &[HostPort], taken: &[HostPort]) -> bool {
    wanted.iter().any(|wanted| taken.iter().any(|taken| wanted.conflicts(taken)))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn ports(ports: Value) -> Vec<HostPort> {
        let pod = json!({"metadata": {}, "spec": {"containers": [{"name": "c", "ports": ports}]}});
        host_ports(&serde_json::from_value(pod).expect("a pod"))
    }

    #[test]
    fn a_port_is_taken_at_an_address_for_a_protocol() {
        let everywhere = ports(json!([{"containerPort": 80, "hostPort": 8080}]));
        let local = ports(json!([{"containerPort": 80, "hostPort": 8080, "hostIP": "127.0.0.1"}]));
        let other = ports(json!([{"containerPort": 80, "hostPort": 8080, "hostIP": "127.0.0.2"}]));
        let udp = ports(json!([{"containerPort": 80, "hostPort": 8080, "protocol": "UDP"}]));
        let none = ports(json!([{"containerPort": 8080}]));
        assert!(conflict(&everywhere, &local) && conflict(&local, &everywhere) && conflict(&local, &local));
        assert!(!conflict(&local, &other) && !conflict(&everywhere, &udp));
        assert!(none.is_empty());
    }
}
