//! The nodes whose kubelets run in this process.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use k8s_openapi::api::core::v1::{Node, Pod};
use kube_core::ResourceExt;
use windlass_runtime::{ControllerHandle, ObjectKey};

use super::node::{HOST_IP, NODE_NAME, NodeState};

/// The first two bytes of the addresses of the nodes.
const NETWORK: [u8; 2] = [10, 250];
/// The first host number for nodes other than the first node.
const FIRST_HOST: u16 = 3;

/// A node, as the kubelet sees the node.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Registered {
    uid: Option<String>,
    host: u16,
    state: NodeState,
}

/// The host numbers of the nodes' addresses.
#[derive(Debug)]
struct Hosts {
    /// Numbers below `next` that are free again.
    released: BTreeSet<u16>,
    /// The first number that no node ever had.
    next: u16,
}

impl Default for Hosts {
    fn default() -> Self {
        Self { released: BTreeSet::new(), next: FIRST_HOST }
    }
}

impl Hosts {
    /// Takes the lowest free number. After the last number, nodes share the number `u16::MAX`.
    fn take(&mut self, name: &str) -> u16 {
        if name == NODE_NAME {
            return FIRST_HOST - 1;
        }
        self.released.pop_first().unwrap_or_else(|| {
            let host = self.next;
            self.next = self.next.saturating_add(1);
            host
        })
    }

    fn release(&mut self, host: u16) {
        if (FIRST_HOST..u16::MAX).contains(&host) {
            self.released.insert(host);
        }
    }
}

#[derive(Default)]
struct Nodes {
    by_name: BTreeMap<String, Registered>,
    hosts: Hosts,
}

/// The simulated nodes, by name.
#[derive(Default)]
pub(crate) struct NodeRegistry {
    nodes: Mutex<Nodes>,
    kubelet: OnceLock<ControllerHandle>,
}

impl NodeRegistry {
    /// Sets the queue of the kubelet.
    pub(super) fn connect(&self, kubelet: ControllerHandle) {
        let _ = self.kubelet.set(kubelet);
    }

    fn lock(&self) -> MutexGuard<'_, Nodes> {
        self.nodes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds or updates a node. Returns whether the kubelet must look at the node's pods again.
    pub(super) fn set(&self, node: &Node) -> bool {
        let name = node.name_any();
        let mut nodes = self.lock();
        let known = nodes.by_name.get(&name).cloned();
        let host = known.as_ref().map_or_else(|| nodes.hosts.take(&name), |known| known.host);
        let next = Registered { uid: node.metadata.uid.clone(), host, state: NodeState::of(node) };
        let starts = known.is_none_or(|known| known.state == NodeState::Stopped);
        let runs = next.state != NodeState::Stopped;
        nodes.by_name.insert(name, next);
        starts && runs
    }

    /// Removes a node. Returns whether the node was simulated.
    pub(super) fn remove(&self, name: &str) -> bool {
        let mut nodes = self.lock();
        let removed = nodes.by_name.remove(name);
        if let Some(node) = &removed {
            nodes.hosts.release(node.host);
        }
        removed.is_some()
    }

    /// Queues pods of the kubelet.
    pub(super) fn wake(&self, pods: impl IntoIterator<Item = ObjectKey>) {
        if let Some(kubelet) = self.kubelet.get() {
            pods.into_iter().for_each(|pod| kubelet.enqueue(pod));
        }
    }

    /// Returns whether the pod is on a simulated node.
    pub(super) fn has(&self, pod: &Pod) -> bool {
        let name = node_of(pod);
        name == NODE_NAME || self.lock().by_name.contains_key(name)
    }

    /// Returns whether the kubelet of the pod's node is stopped.
    pub(super) fn is_stopped(&self, pod: &Pod) -> bool {
        self.lock().by_name.get(node_of(pod)).is_some_and(|node| node.state == NodeState::Stopped)
    }

    /// Returns the address of a node.
    pub(super) fn address(&self, node: &str) -> String {
        let host = self.lock().by_name.get(node).map(|node| node.host);
        match host.filter(|_| node != NODE_NAME) {
            Some(host) => {
                let [high, low] = host.to_be_bytes();
                Ipv4Addr::new(NETWORK[0], NETWORK[1], high, low).to_string()
            }
            None => HOST_IP.to_owned(),
        }
    }
}

/// Returns the name of the pod's node; empty without a node.
pub(super) fn node_of(pod: &Pod) -> &str {
    pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn node(name: &str, state: &str) -> Node {
        let annotations = json!({"kubelet.windlass.dev/node-state": state});
        serde_json::from_value(json!({"metadata": {"name": name, "annotations": annotations}})).unwrap()
    }

    #[test]
    fn each_node_has_an_address_that_is_free() {
        let registry = NodeRegistry::default();
        for name in [NODE_NAME, "a", "b"] {
            assert!(registry.set(&node(name, "")));
        }
        assert_eq!(
            [NODE_NAME, "a", "b"].map(|name| registry.address(name)),
            ["10.250.0.2", "10.250.0.3", "10.250.0.4"]
        );
        assert!(registry.remove("a"));
        registry.set(&node("c", ""));
        assert_eq!(registry.address("c"), "10.250.0.3");
    }

    #[test]
    fn the_pods_of_a_node_continue_when_the_kubelet_starts_again() {
        let registry = NodeRegistry::default();
        let pod: Pod =
            serde_json::from_value(json!({"metadata": {}, "spec": {"nodeName": "a", "containers": []}}))
                .unwrap();
        assert!(!registry.has(&pod));
        assert!(registry.set(&node("a", "")));
        assert!(!registry.set(&node("a", "stopped")));
        assert!(registry.has(&pod) && registry.is_stopped(&pod));
        assert!(registry.set(&node("a", "not-ready")) && !registry.is_stopped(&pod));
    }
}
