//! The flags of simulated nodes.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use k8s_openapi::api::core::v1::Node;
use windlass_controllers::NodePool;
use windlass_dev::read_manifests;
use windlass_runtime::Error;

use crate::error::{Advice, Result};

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
        let pool = NodePool::new(self.nodes.into()).zones(&self.zones);
        let labels = self.node_label.iter();
        let mut nodes = labels.fold(pool, |pool, (key, value)| pool.label(key, value)).nodes();
        for path in &self.node_file {
            nodes.extend(read(path)?);
        }
        Ok(nodes)
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

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        nodes: SimulatedNodeArgs,
    }

    fn nodes(flags: &[&str]) -> Result<Vec<Node>> {
        Command::parse_from([&["windlass"], flags].concat()).nodes.nodes()
    }

    fn name(node: &Node) -> &str {
        node.metadata.name.as_deref().unwrap_or_default()
    }

    #[test]
    fn nodes_are_put_into_zones_in_turn() {
        let nodes = nodes(&["--nodes", "3", "--zones", "a,b", "--node-label", "pool=x"]).unwrap();
        let shown: Vec<String> = nodes
            .iter()
            .map(|node| {
                let labels = node.metadata.labels.as_ref().unwrap();
                format!("{} {} {}", name(node), labels["topology.kubernetes.io/zone"], labels["pool"])
            })
            .collect();
        assert_eq!(shown, ["windlass a x", "windlass-2 b x", "windlass-3 a x"]);
    }

    #[test]
    fn a_file_has_nodes_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("nodes.yaml");
        let flags = ["--node-file", path.to_str().unwrap()];
        let gpu = "kind: Node\nmetadata: {name: gpu, labels: {gpu: yes}}\nstatus: {capacity: {cpu: 8}}\n";
        std::fs::write(&path, gpu.replace("yes", "'yes'").replace("cpu: 8", "cpu: '8'")).unwrap();
        let read = nodes(&flags).unwrap();
        assert_eq!((read.len(), name(&read[1])), (2, "gpu"));
        assert_eq!(read[1].status.as_ref().unwrap().capacity.as_ref().unwrap()["cpu"].0, "8");
        std::fs::write(&path, "kind: Pod\nmetadata: {name: p}\n").unwrap();
        let error = nodes(&flags).unwrap_err().to_string();
        assert!(error.contains("not a Node with a name. Write one Node per document"), "{error}");
    }
}
