//! Changes of a running manager.

use tokio::sync::{mpsc, oneshot};

use super::runnable::Runnable;
use crate::{
    controller::{self, AnyController, Controller},
    error::{Error, Result},
    handler::QueueKey,
    health::{Check, Health},
    metrics::Metrics,
};

/// A change of a running manager.
pub(super) enum Change {
    AddRunnable(Runnable),
    AddController(Box<dyn AnyController>, oneshot::Sender<Result<()>>),
    Stop { name: String, stopped: oneshot::Sender<Result<()>> },
}

/// Adds and stops controllers, runnables and health checks while the manager runs. Cheap to clone.
///
/// ```
/// # use k8s_openapi::api::core::v1::ConfigMap;
/// # use windlass_runtime::{Action, Context, Controller, Manager, ObjectKey, Result};
/// # async fn reconcile(_: ObjectKey, _: Context<ConfigMap>) -> Result<Action> { Ok(Action::done()) }
/// async fn restart(manager: windlass_runtime::manager::ManagerHandle) -> Result<()> {
///     manager.stop("configmap").await?;
///     manager.add_controller(Controller::of::<ConfigMap>(reconcile).max_concurrent_reconciles(8)).await
/// }
/// ```
#[derive(Clone)]
pub struct ManagerHandle {
    pub(super) changes: mpsc::UnboundedSender<Change>,
    /// Distinguishes the manager from other managers in the process.
    pub(super) metrics: Metrics,
    pub(super) health: Health,
}

impl ManagerHandle {
    /// Adds a check to `/healthz`, also while the manager runs. A check replaces an earlier check of the same name.
    pub fn add_healthz_check(&self, name: impl Into<String>, check: impl Check) {
        self.health.add_live(name, check);
    }

    /// Adds a check to `/readyz`, also while the manager runs. A check replaces an earlier check of the same name.
    ///
    /// ```
    /// # use windlass_runtime::{Manager, manager::ManagerHandle};
    /// fn wait_for_store(manager: &ManagerHandle) {
    ///     manager.add_readyz_check("store", || async { std::fs::metadata("/var/lib/backups").map(drop) });
    /// }
    /// # let _ = wait_for_store;
    /// ```
    pub fn add_readyz_check(&self, name: impl Into<String>, check: impl Check) {
        self.health.add_ready(name, check);
    }

    /// Removes the check of this name from `/healthz`. Returns whether there was a check.
    pub fn remove_healthz_check(&self, name: &str) -> bool {
        self.health.remove_live(name)
    }

    /// Removes the check of this name from `/readyz`. Returns whether there was a check.
    pub fn remove_readyz_check(&self, name: &str) -> bool {
        self.health.remove_ready(name)
    }

    /// Starts a runnable, at once or when the group of the runnable starts.
    ///
    /// # Errors
    ///
    /// The manager has ended.
    pub fn add_runnable(&self, runnable: Runnable) -> Result<()> {
        self.send(Change::AddRunnable(runnable))
    }

    /// Adds a controller, and returns when the manager has accepted the controller. The controller starts when the caches are filled and, unless
    /// the controller runs [on every replica](Controller::without_leader_election), when this replica leads.
    ///
    /// # Errors
    ///
    /// The controller's name is taken or invalid, a watch contradicts a watch of an earlier controller, or the manager has ended.
    /// If the server has to be asked for the scope of a kind, a later failure ends the manager, as for a controller of the start.
    pub async fn add_controller<Q: QueueKey>(&self, controller: Controller<Q>) -> Result<()> {
        let (added, accepted) = oneshot::channel();
        self.send(Change::AddController(Box::new(controller), added))?;
        accepted.await.map_err(|_| Error::stopped())?
    }

    /// Stops the controller or the runnables of this name, and returns at the end of the stop. A reconcile under way is completed first;
    /// after the [graceful shutdown timeout](super::Manager::graceful_shutdown_timeout) the reconcile is aborted. Caches without further users are
    /// dropped.
    ///
    /// A call from a reconcile of the same controller does not wait: the call returns at once, and the
    /// controller ends after the reconcile.
    ///
    /// # Errors
    ///
    /// The manager has no part of this name, or the manager stops or has ended.
    pub async fn stop(&self, name: impl Into<String>) -> Result<()> {
        let (name, (stopped, ended)) = (name.into(), oneshot::channel());
        let is_own = controller::reconciles(&name, &self.metrics);
        self.send(Change::Stop { name, stopped })?;
        if is_own {
            return Ok(());
        }
        ended.await.map_err(|_| Error::stopped())?
    }

    fn send(&self, change: Change) -> Result<()> {
        self.changes.send(change).map_err(|_| Error::stopped())
    }
}
