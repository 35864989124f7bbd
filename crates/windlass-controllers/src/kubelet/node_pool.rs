//! Equal nodes.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Node;
use kube_core::ObjectMeta;

use super::node::NODE_NAME;

const ZONE: &str = "topology.kubernetes.io/zone";

/// Nodes that differ in the name and the zone only, for [`Controllers::simulated_nodes`](crate::Controllers::simulated_nodes).
///
/// The first node is `windlass`, which always exists. The other nodes are `windlass-2`, `windlass-3` and so on.
///
/// ```
/// use windlass_controllers::NodePool;
///
/// let nodes = NodePool::new(3).zones(["a", "b"]).label("pool", "x").nodes();
/// let names: Vec<_> = nodes.iter().filter_map(|node| node.metadata.name.as_deref()).collect();
/// assert_eq!(names, ["windlass", "windlass-2", "windlass-3"]);
/// assert_eq!(nodes[2].metadata.labels.as_ref().unwrap()["topology.kubernetes.io/zone"], "a");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodePool {
    size: usize,
    zones: Vec<String>,
    labels: BTreeMap<String, String>,
}

impl NodePool {
    /// Creates a pool of `size` nodes.
    pub fn new(size: usize) -> Self {
        Self { size, zones: Vec::new(), labels: BTreeMap::new() }
    }

    /// Puts the nodes into these zones in turn, by the label `topology.kubernetes.io/zone`. Default: no zone.
    pub fn zones(mut self, zones: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.zones = zones.into_iter().map(Into::into).collect();
        self
    }

    /// Adds a label to all nodes.
    pub fn label(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.labels.insert(key.into(), value.into());
        self
    }

    /// Returns the nodes.
    pub fn nodes(&self) -> Vec<Node> {
        (0..self.size).map(|index| self.node(index)).collect()
    }

    fn node(&self, index: usize) -> Node {
        let mut labels = self.labels.clone();
        if !self.zones.is_empty() {
            labels.insert(ZONE.to_owned(), self.zones[index % self.zones.len()].clone());
        }
        let name = if index == 0 { NODE_NAME.to_owned() } else { format!("{NODE_NAME}-{}", index + 1) };
        let metadata = ObjectMeta { name: Some(name), labels: Some(labels), ..ObjectMeta::default() };
        Node { metadata, ..Node::default() }
    }
}
