//! All controllers of a cluster.

use kube_client::Client;
use windlass_runtime::{Controller, Manager, Result};

use crate::{
    deployment, garbage_collector, kubelet, namespace, node_lifecycle, replica_set, resource_quota, root_ca,
    scheduler, service_account,
};

/// The controllers of kube-controller-manager, kube-scheduler and a kubelet that a development cluster needs.
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
    /// Creates the controllers. `client` needs the rights of an administrator.
    pub fn new(client: Client) -> Self {
        Self { client, root_ca: None }
    }

    /// Sets the certificate (PEM) for the ConfigMap `kube-root-ca.crt` of each namespace. Without it, there is no such ConfigMap.
    pub fn root_ca(mut self, pem: impl Into<String>) -> Self {
        self.root_ca = Some(pem.into());
        self
    }

    /// Returns a manager that runs all controllers, to add more to it.
    pub fn manager(self) -> Manager {
        let manager = Manager::new(self.client).runnable("node", kubelet::keep_node);
        let root_ca = self.root_ca.map(root_ca::controller);
        // They write to a key as often as their cluster changes. Slowing them down would slow down rollouts.
        [
            namespace::controller(),
            service_account::controller(),
            resource_quota::controller(),
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

    /// Runs the controllers until `stop` completes, then stops them gracefully.
    ///
    /// # Errors
    /// A request is forbidden, or the first lists do not arrive in time.
    pub async fn run_until(self, stop: impl Future<Output = ()> + Send + 'static) -> Result<()> {
        self.manager().run_until(stop).await
    }
}
