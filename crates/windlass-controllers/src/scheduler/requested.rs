//! The resources and ports that the pods of each node request.

use std::collections::BTreeMap;

use windlass_runtime::ObjectKey;

use super::fit::{Requests, ResourceList, add};
use super::quantity::Milli;

/// The requested resources, by pod and by node.
#[derive(Debug, Default)]
pub(super) struct RequestedResources {
    pods: BTreeMap<ObjectKey, (String, Requests)>,
    nodes: BTreeMap<String, Requests>,
}

impl RequestedResources {
    /// Adds a pod to a node. Replaces an earlier entry of the same pod.
    pub(super) fn add(&mut self, pod: &ObjectKey, node: &str, wanted: Requests) {
        self.remove(pod);
        let requested = self.nodes.entry(node.to_owned()).or_default();
        add(&mut requested.amounts, &wanted.amounts);
        requested.ports.extend(wanted.ports.iter().cloned());
        self.pods.insert(pod.clone(), (node.to_owned(), wanted));
    }

    /// Removes a pod.
    pub(super) fn remove(&mut self, pod: &ObjectKey) {
        let Some((node, given)) = self.pods.remove(pod) else { return };
        let Some(requested) = self.nodes.get_mut(&node) else { return };
        let less: ResourceList =
            given.amounts.into_iter().map(|(name, amount)| (name, Milli(-amount.0))).collect();
        add(&mut requested.amounts, &less);
        for port in given.ports {
            if let Some(at) = requested.ports.iter().position(|taken| *taken == port) {
                requested.ports.swap_remove(at);
            }
        }
    }

    /// Returns the requests of a node's pods.
    pub(super) fn on_node(&self, node: &str) -> Requests {
        self.nodes.get(node).cloned().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_pod_takes_is_counted_once_and_given_back() {
        let mut requested = RequestedResources::default();
        let pod = ObjectKey::namespaced("default", "a");
        let half = || Requests {
            amounts: ResourceList::from([("cpu".to_owned(), Milli(500))]),
            ..Requests::default()
        };
        requested.add(&pod, "n", half());
        requested.add(&pod, "n", half());
        requested.add(&ObjectKey::namespaced("default", "b"), "n", half());
        assert_eq!(requested.on_node("n").amounts["cpu"], Milli(1000));
        requested.remove(&pod);
        requested.remove(&pod);
        assert_eq!(requested.on_node("n").amounts["cpu"], Milli(500));
        assert!(requested.on_node("other").amounts.is_empty());
    }
}
