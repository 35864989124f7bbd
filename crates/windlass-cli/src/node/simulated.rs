//! The flags of simulated nodes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use k8s_openapi::api::core::v1::Node;
use windlass_dev::read_manifests;
use windlass_runtime::Error;

use crate::error::{Advice, Result};

/// The name of the first node.
const FIRST: &str = "windlass";
const ZONE: &str = "topology.kubernetes.io/zone";

/// The flags of simulated nodes.
#[derive(Args, Debug)]
#[command(next_help_heading = "Nodes")]
pub(crate) struct SimulatedNodeArgs {
    /// The number of nodes. The nodes after the first are simulated: windlass-2, windlass-3, …
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=5000))]
    nodes: u16,

    /// Put the nodes into these zones in turn, by the label topology.kubernetes.io/zone
    #[arg(long, value_name = "ZONE", value_delimiter = ',')]
    zones: Vec<String>,

    /// A label of all nodes. May be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = label)]
    node_label: Vec<(String, String)>,

    /// Simulate the nodes of a YAML file with Node objects: labels, annotations, taints, and the capacity in the status. May be repeated
    #[arg(long, value_name = "FILE")]
    node_file: Vec<PathBuf>,

    /// The time without a heartbeat after which a node counts as lost, in seconds. Nodes send a heartbeat every 10 s
    #[arg(long, value_name = "SECONDS", default_value_t = 50)]
    node_monitor_grace_period: u64,
}

fn label(text: &str) -> std::result::Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("a label has the form KEY=VALUE")?;
    Ok((key.to_owned(), value.to_owned()))
}

impl SimulatedNodeArgs {
    /// Returns the time without a heartbeat after which a node counts as lost.
    pub(crate) fn grace_period(&self) -> Duration {
        Duration::from_secs(self.node_monitor_grace_period)
    }

    /// Returns the nodes.
    ///
    /// # Errors
    /// A file cannot be read, or has an object that is no Node.
    pub(crate) fn nodes(&self) -> Result<Vec<Node>> {
        let mut nodes: Vec<Node> = (0..usize::from(self.nodes)).map(|index| self.node(index)).collect();
        for path in &self.node_file {
            nodes.extend(read(path)?);
        }
        Ok(nodes)
    }

    fn node(&self, index: usize) -> Node {
        let mut labels: BTreeMap<String, String> = self.node_label.iter().cloned().collect();
        if !self.zones.is_empty() {
            labels.insert(ZONE.to_owned(), self.zones[index % self.zones.len()].clone());
        }
        let mut node = Node::default();
        let name = if index == 0 { FIRST.to_owned() } else { format!("{FIRST}-{}", index + 1) };
        node.metadata.name = Some(name);
        node.metadata.labels = Some(labels);
        node
    }
}

fn read(path: &Path) -> Result<Vec<Node>> {
    let shown = path.display();
    let yaml = std::fs::read_to_string(path)
        .map_err(|error| Error::other(error).while_doing(format_args!("reading {shown}")))?;
    let documents = read_manifests(&yaml)?;
    let node = |document: serde_json::Value| {
        let is_named = document["metadata"]["name"].as_str().is_some_and(|name| !name.is_empty());
        if document["kind"] != "Node" || !is_named {
            return Err(Advice::new(
                format!("{shown} has an object that is not a Node with a name"),
                "write one Node per document, with apiVersion: v1, kind: Node and metadata.name",
            ));
        }
        serde_json::from_value(document)
            .map_err(|error| Error::other(error).while_doing(format_args!("reading {shown}")).into())
    };
    documents.into_iter().map(node).collect()
}
