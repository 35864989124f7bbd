//! All controllers together.

use kube_client::Client;
use windlass_runtime::{Controller, Manager, Result};

use crate::{
    deployment, garbage_collector, kubelet, namespace, node_lifecycle, replica_set, root_ca, scheduler,
    service_account,
};

/// The controllers that make an API server a cluster, ready to run.
///
/// ```no_run
/// # async fn example(client: kube_client::Client) -> windlass_runtime::Result<()> {
/// windlass_controllers::Controllers::new(client)
///     .run_until(async { tokio::signal::ctrl_c().await.unwrap_or(()) })
///     .await
/// # }
/// ```
pub struct Controllers {
    client: Client,
    root_ca: Option<String>,
}

impl Controllers {
    /// The controllers, working through `client`, which must be allowed everything.
    pub fn new(client: Client) -> Self {
        Self { client, root_ca: None }
    }

    /// The certificate (PEM) that ConfigMaps `kube-root-ca.crt` are to show. Without it there are none.
    pub fn root_ca(mut self, pem: impl Into<String>) -> Self {
        self.root_ca = Some(pem.into());
        self
    }

    /// A manager that holds all of them, for those who want to add to it.
    pub fn manager(self) -> Manager {
        let manager = Manager::new(self.client).runnable("node", kubelet::keep_node);
        let root_ca = self.root_ca.map(root_ca::controller);
        // They write as fast as their cluster changes, which is no loop: a slow rollout would look like a broken one.
        [
            namespace::controller(),
            service_account::controller(),
            scheduler::controller(),
            kubelet::controller(),
            node_lifecycle::controller(),
            replica_set::controller(),
            deployment::controller(),
        ]
        .into_iter()
        .chain(root_ca)
        .map(Controller::allow_hot_loops)
        .fold(garbage_collector::add_to(manager), Manager::controller)
    }

    /// Runs them until `stop` is done, then stops them in order.
    ///
    /// # Errors
    /// When one of them cannot run at all: the client is refused, or the first lists do not come.
    pub async fn run_until(self, stop: impl Future<Output = ()> + Send + 'static) -> Result<()> {
        self.manager().run_until(stop).await
    }
}
