//! The manager: starts what an operator is made of, in order, and stops it in the reverse.

mod args;
mod http;
mod listen;
mod run;
mod runnable;
mod shared;
mod signals;

use std::{net::SocketAddr, time::Duration};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube_client::Client;
use tokio::sync::mpsc;

pub use self::{
    args::{LogFormat, ManagerArgs},
    runnable::{Group, Runnable},
    shared::{RunContext, Shutdown},
};
pub(crate) use self::{run::Running, shared::Shared};
use crate::{
    client::{ClientBuilder, ConfigSource},
    controller::{AnyController, Controller},
    env::Env,
    error::{BoxError, Error, Result},
    handler::QueueKey,
    health::{Check, Health},
    leader_election::LeaderElection,
    metrics::Metrics,
};

/// Runs controllers and whatever else an operator is made of.
///
/// ```no_run
/// # use k8s_openapi::api::core::v1::ConfigMap;
/// use windlass_runtime::{Action, Context, Controller, Manager, ObjectKey, Result};
///
/// async fn reconcile(key: ObjectKey, cx: Context<ConfigMap>) -> Result<Action> {
///     tracing::info!(%key, exists = cx.get(&key)?.is_some());
///     Ok(Action::done())
/// }
///
/// #[tokio::main]
/// async fn main() -> Result<()> {
///     Manager::from_args().controller(Controller::of::<ConfigMap>(reconcile)).run().await
/// }
/// ```
///
/// Started in this order: metrics and health, webhooks, caches, everything that runs on every replica, warm-up, and, once this
/// replica leads if leaders are elected, the controllers. Stopped in the reverse, in 30 s at most, all together.
pub struct Manager {
    target: Target,
    env: Env,
    metrics: Metrics,
    health: Health,
    namespaces: Vec<String>,
    metrics_address: Option<SocketAddr>,
    health_address: Option<SocketAddr>,
    grace: Option<Duration>,
    leader_election: Option<LeaderElection>,
    controllers: Vec<Box<dyn AnyController>>,
    runnables: Vec<Runnable>,
    crds: Vec<CustomResourceDefinition>,
    print_crds: bool,
    later: (mpsc::UnboundedSender<Runnable>, mpsc::UnboundedReceiver<Runnable>),
}

enum Target {
    Client(Client),
    Config(ConfigSource),
}

impl Manager {
    /// A manager that works through `client`, without metrics and health endpoints and without leader election.
    ///
    /// A client that [`ClientBuilder`] did not build is wrapped, so that reads see what is written through the wrapped one: the
    /// one that contexts hand out.
    pub fn new(client: Client) -> Self {
        Self::to(Target::Client(client))
    }

    /// A manager as the command line wants it: cluster, endpoints, leader election, logging. `--help` says what there is. The
    /// command `crds` prints those that were added with [`crd`](Self::crd) and ends.
    pub fn from_args() -> Self {
        ManagerArgs::parse_command_line()
    }

    /// A manager as these flags want it. Logging is left to the caller.
    pub fn with_args(args: ManagerArgs) -> Self {
        let mut manager = Self::to(Target::Config(args.config_source()));
        manager.namespaces = args.namespaces();
        manager.metrics_address = args.metrics_bind_address.address();
        manager.health_address = args.health_probe_bind_address.address();
        manager.leader_election = args.leader_election();
        manager
    }

    fn to(target: Target) -> Self {
        Self {
            target,
            env: Env::system(),
            metrics: Metrics::new(),
            health: Health::new(),
            namespaces: Vec::new(),
            metrics_address: None,
            health_address: None,
            grace: Some(Duration::from_secs(30)),
            leader_election: None,
            controllers: Vec::new(),
            runnables: Vec::new(),
            crds: Vec::new(),
            print_crds: false,
            later: mpsc::unbounded_channel(),
        }
    }

    /// Runs a controller.
    pub fn controller<Q: QueueKey>(mut self, controller: Controller<Q>) -> Self {
        self.controllers.push(Box::new(controller));
        self
    }

    /// Runs something else, on every replica, until it is told to stop. See [`add_runnable`](Self::add_runnable) for more.
    pub fn runnable<F, Fut, E>(self, name: impl Into<String>, run: F) -> Self
    where
        F: FnOnce(RunContext) -> Fut + Send + 'static,
        Fut: Future<Output = Result<(), E>> + Send + 'static,
        E: Into<BoxError>,
    {
        self.add_runnable(Runnable::new(name, run))
    }

    /// Runs something else.
    pub fn add_runnable(mut self, runnable: Runnable) -> Self {
        self.runnables.push(runnable);
        self
    }

    /// Names a CRD of this operator, for the command `crds`.
    pub fn crd(mut self, crd: CustomResourceDefinition) -> Self {
        self.crds.push(crd);
        self
    }

    /// Limits the caches of kinds that lie in namespaces to these. Default: all namespaces.
    pub fn namespaces(mut self, namespaces: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.namespaces = namespaces.into_iter().map(Into::into).collect();
        self
    }

    /// Elects a leader among the replicas, and runs the controllers there alone.
    pub fn leader_election(mut self, election: LeaderElection) -> Self {
        self.leader_election = Some(election);
        self
    }

    /// Serves `/metrics` here.
    pub fn metrics_address(mut self, address: SocketAddr) -> Self {
        self.metrics_address = Some(address);
        self
    }

    /// Serves `/healthz` and `/readyz` here.
    pub fn health_address(mut self, address: SocketAddr) -> Self {
        self.health_address = Some(address);
        self
    }

    /// Adds a check to `/healthz`. It fails when the process should be restarted.
    pub fn healthz_check(self, name: impl Into<String>, check: impl Check) -> Self {
        self.health.add_live(name, check);
        self
    }

    /// Adds a check to `/readyz`. It fails while the process should get no traffic.
    ///
    /// Every manager has the checks `informer-sync`, which fails until all caches have been filled once, and `tasks`, which
    /// fails while a background task is down after a panic.
    ///
    /// ```
    /// # use windlass_runtime::Manager;
    /// # async fn example(client: kube_client::Client) {
    /// let manager = Manager::new(client).readyz_check("store", || async {
    ///     std::fs::metadata("/var/lib/backups").map(drop)
    /// });
    /// # drop(manager); }
    /// ```
    pub fn readyz_check(self, name: impl Into<String>, check: impl Check) -> Self {
        self.health.add_ready(name, check);
        self
    }

    /// How long stopping may take in all. Default: 30 s; `None`: as long as it takes.
    pub fn graceful_shutdown_timeout(mut self, limit: Option<Duration>) -> Self {
        self.grace = limit;
        self
    }

    /// Where time of day and randomness come from.
    pub fn env(mut self, env: Env) -> Self {
        self.env = env;
        self
    }

    /// The metrics, to add one's own.
    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// A handle to add runnables while the manager runs.
    pub fn handle(&self) -> ManagerHandle {
        ManagerHandle { later: self.later.0.clone() }
    }

    /// Runs until SIGTERM or Ctrl-C, then stops gracefully; a second signal ends the process with 1.
    ///
    /// Fails when something could not be started, when a runnable failed, and when the leadership was lost.
    pub async fn run(self) -> Result<()> {
        if self.print_crds {
            return args::print_crds(&self.crds);
        }
        let stop = signals::first_signal()?;
        self.run_until(stop).await
    }

    /// Runs until `stop` completes, then stops gracefully.
    pub async fn run_until(self, stop: impl Future<Output = ()> + Send) -> Result<()> {
        Running::start_and_stop(self, stop).await
    }

    async fn client(target: Target, env: &Env) -> Result<Client> {
        match target {
            Target::Client(client) => Ok(client),
            Target::Config(source) => ClientBuilder::new(source.load().await?).env(env.clone()).build(),
        }
    }
}

/// Adds to a manager that runs. Cheap to clone.
#[derive(Clone)]
pub struct ManagerHandle {
    later: mpsc::UnboundedSender<Runnable>,
}

impl ManagerHandle {
    /// Starts a runnable, at once or when its group's turn comes. Fails when the manager has ended.
    pub fn add_runnable(&self, runnable: Runnable) -> Result<()> {
        self.later.send(runnable).map_err(|_| Error::stopped())
    }
}
