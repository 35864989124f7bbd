//! The options of a cluster with controllers.

use windlass_controllers::Controllers;

use super::TestCluster;

/// The options of a [`TestCluster`] with controllers.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let cluster = windlass_test::TestCluster::builder().strict(false).start().await;
/// # drop(cluster);
/// # }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct TestClusterBuilder {
    strict: bool,
}

impl Default for TestClusterBuilder {
    fn default() -> Self {
        Self { strict: true }
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

    /// Starts the API server and the controllers, as [`TestCluster::with_controllers`] does.
    pub async fn start(self) -> TestCluster {
        TestCluster::with_options(self).await
    }

    pub(crate) fn configure(self, controllers: Controllers) -> Controllers {
        controllers.strict(self.strict)
    }
}
