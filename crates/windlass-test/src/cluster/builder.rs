//! The options of a cluster with controllers.

use windlass_controllers::{Controllers, NodePool};

use super::TestCluster;

/// The options of a [`TestCluster`] with controllers.
///
/// ```
/// use k8s_openapi::api::core::v1::Node;
/// use kube_client::api::{Api, ListParams};
/// use windlass_test::TestCluster;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), kube_client::Error> {
/// let cluster = TestCluster::builder().nodes(3).zones(["a", "b"]).start().await;
///
/// let nodes: Api<Node> = Api::all(cluster.client());
/// let in_zone_a = ListParams::default().labels("topology.kubernetes.io/zone=a");
/// assert_eq!(nodes.list(&in_zone_a).await?.items.len(), 2);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct TestClusterBuilder {
    strict: bool,
    nodes: usize,
    zones: Vec<String>,
}

impl Default for TestClusterBuilder {
    fn default() -> Self {
        Self { strict: true, nodes: 1, zones: Vec::new() }
    }
}

impl TestClusterBuilder {
    /// Sets whether simulated pods wait as on a real node: for missing ConfigMaps and Secrets, and for the delays of probes. The default is
    /// true. With `false`, every simulated pod starts and becomes ready at once.
    ///
    /// The annotation `kubelet.windlass.dev/strict: "false"` does the same for a pod or a namespace.
    pub fn strict(mut self, strict: bool) -> Self {
        self.strict = strict;
        self
    }

    /// Sets the number of simulated nodes: `windlass`, `windlass-2`, `windlass-3` and so on. Default: 1.
    ///
    /// The node `windlass` always exists, and has room for 60,000 pods; the other nodes have room for 110 pods.
    pub fn nodes(mut self, count: usize) -> Self {
        self.nodes = count;
        self
    }

    /// Puts the nodes into these zones in turn, by the label `topology.kubernetes.io/zone`. Default: no zone.
    pub fn zones(mut self, zones: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.zones = zones.into_iter().map(Into::into).collect();
        self
    }

    /// Starts the API server and the controllers, as [`TestCluster::with_controllers`] does. Returns when all nodes are ready.
    pub async fn start(self) -> TestCluster {
        TestCluster::with_options(self).await
    }

    /// Returns the number of nodes of the cluster.
    pub(crate) fn node_count(&self) -> usize {
        self.nodes.max(1)
    }

    pub(crate) fn configure(self, controllers: Controllers) -> Controllers {
        let pool = NodePool::new(self.nodes).zones(self.zones);
        controllers.strict(self.strict).simulated_nodes(pool.nodes())
    }
}
