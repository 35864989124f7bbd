//! Managers that run with exactly the declared rights.

mod account;
mod request_log;

use std::fmt;
use std::sync::Arc;

use kube_client::Client;
use windlass_runtime::permission::Permissions;
use windlass_runtime::{Manager, Result};

pub(crate) use self::account::{Account, Login};
pub(crate) use self::request_log::RequestLog;
use crate::running::RunningManager;

/// A service account with exactly [the rights that a manager declares](Manager::permissions), for several replicas of that manager.
///
/// [`TestCluster::restricted_account`](crate::TestCluster::restricted_account) makes an account. The account
/// stays until the cluster ends, or until [`remove`](Self::remove).
pub struct RestrictedAccount {
    permissions: Permissions,
    account: Account,
    log: Arc<RequestLog>,
}

/// A manager that runs as a service account with exactly [the declared rights](Manager::permissions).
///
/// [`TestCluster::run_restricted`](crate::TestCluster::run_restricted) starts the manager. Like
/// [`RunningManager`], a restricted manager stops when dropped.
#[must_use = "the manager stops when this guard is dropped"]
pub struct RestrictedManager {
    running: RunningManager,
    account: RestrictedAccount,
}

/// The use of a manager's rights. `Display` prints a list with the declarations to add and to remove.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RightsReport {
    /// The denied rights, each with the declaration that would grant the right.
    pub missing: Vec<String>,
    /// The rights that no request needed, each with the parts that declare the right.
    pub unused: Vec<String>,
}

impl RestrictedAccount {
    pub(crate) fn new(permissions: Permissions, account: Account) -> Self {
        Self { permissions, account, log: Arc::default() }
    }

    /// Returns a client for the manager. Requests of the client are recorded for the [report](Self::rights).
    pub fn client(&self) -> Client {
        RequestLog::record(&self.log, self.account.client.clone())
    }

    pub(crate) fn request_log(&self) -> &Arc<RequestLog> {
        &self.log
    }

    /// Returns the namespace of the account: the default namespace of the client, and the namespace of the
    /// Leases.
    pub fn namespace(&self) -> &str {
        &self.account.namespace
    }

    /// Returns the missing and the unused rights until now, of all users of the [client](Self::client).
    pub fn rights(&self) -> RightsReport {
        RightsReport::of(&self.permissions, &self.log, &self.account.namespace)
    }

    /// Panics if rights were missing or never used. Rights that are [optional](windlass_runtime::Permission::optional) need not be used.
    #[track_caller]
    pub fn assert_exact(&self) {
        let report = self.rights();
        assert!(report.is_exact(), "the declared rights are not those that are needed\n{report}");
    }

    /// Deletes the account, the roles of the account and the namespace.
    pub async fn remove(self) {
        self.account.remove().await;
    }
}

impl RestrictedManager {
    /// Starts a manager with the rights of an account.
    pub(crate) fn start(manager: Manager, account: RestrictedAccount) -> Self {
        let manager = manager.client(account.client());
        Self { running: RunningManager::start(manager), account }
    }

    pub(crate) fn running(&self) -> &RunningManager {
        &self.running
    }

    /// Returns a client with the rights of the manager. Requests of the client are not part of the
    /// [report](Self::rights).
    pub fn client(&self) -> Client {
        self.account.account.client.clone()
    }

    /// Returns the namespace of the manager, with the service account and the Leases.
    pub fn namespace(&self) -> &str {
        self.account.namespace()
    }

    /// Returns the missing and the unused rights until now.
    pub fn rights(&self) -> RightsReport {
        self.account.rights()
    }

    /// Stops the manager gracefully and returns the manager's result.
    pub async fn stop(self) -> Result<()> {
        let result = self.running.stop().await;
        self.account.remove().await;
        result
    }

    /// Works like [`stop`](Self::stop), and panics if rights were missing or never used. Rights that are
    /// [optional](windlass_runtime::Permission::optional) need not be used.
    ///
    /// # Errors
    /// The manager failed.
    #[track_caller]
    pub fn stop_with_exact_rights(self) -> impl Future<Output = Result<()>> {
        let caller = std::panic::Location::caller();
        async move {
            let Self { running, account } = self;
            let stopped = running.stop().await;
            // The last requests belong to the stop.
            let report = account.rights();
            account.remove().await;
            assert!(
                report.is_exact(),
                "{caller}: the declared rights are not those that are needed\n{report}"
            );
            stopped
        }
    }
}

impl RightsReport {
    /// Compares the rights with the requests. `operator` is the namespace that the manager runs in.
    fn of(permissions: &Permissions, log: &RequestLog, operator: &str) -> Self {
        let unused = permissions.unused(&log.used(), operator);
        let unused =
            unused.into_iter().map(|right| format!("{right}: declared by {}", permissions.needed_by(right)));
        Self { missing: log.missing(), unused: unused.collect() }
    }

    /// Returns whether no right was missing and none was left unused.
    pub fn is_exact(&self) -> bool {
        self.missing.is_empty() && self.unused.is_empty()
    }
}

impl fmt::Display for RightsReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (title, lines) in [("missing", &self.missing), ("never used", &self.unused)] {
            if !lines.is_empty() {
                writeln!(f, "{title}:")?;
            }
            for line in lines {
                writeln!(f, "  {line}")?;
            }
        }
        Ok(())
    }
}
