//! The resources that the pods of each node request.

use std::collections::BTreeMap;

use windlass_runtime::ObjectKey;

use super::fit::{ResourceList, add};
use super::quantity::Milli;

/// The requested resources by pod and by node.
#[derive(Debug, Default)]
pub(super) struct RequestedResources {
    pods: BTreeMap<ObjectKey, (String, ResourceList)>,
    nodes: BTreeMap<String, ResourceList>,
}

impl RequestedResources {
    /// Adds a pod to a node. Replaces an earlier entry of the same pod.
    pub(super) fn add(&mut self, pod: &ObjectKey, node: &str, amounts: ResourceList) {
        self.remove(pod);
        add(self.nodes.entry(node.to_owned()).or_default(), &amounts);
        self.pods.insert(pod.clone(), (node.to_owned(), amounts));
    }

    /// Removes a pod.
    pub(super) fn remove(&mut self, pod: &ObjectKey) {
        let Some((node, amounts)) = self.pods.remove(pod) else { return };
        let less: ResourceList = amounts.into_iter().map(|(name, amount)| (name, Milli(-amount.0))).collect();
        if let Some(requested) = self.nodes.get_mut(&node) {
            add(requested, &less);
        }
    }

    /// Returns the resources that the pods of a node request.
    pub(super) fn on_node(&self, node: &str) -> ResourceList {
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
        let half = || ResourceList::from([("cpu".to_owned(), Milli(500))]);
        requested.add(&pod, "n", half());
        requested.add(&pod, "n", half());
        requested.add(&ObjectKey::namespaced("default", "b"), "n", half());
        assert_eq!(requested.on_node("n")["cpu"], Milli(1000));
        requested.remove(&pod);
        requested.remove(&pod);
        assert_eq!(requested.on_node("n")["cpu"], Milli(500));
        assert!(requested.on_node("other").is_empty());
    }
}
