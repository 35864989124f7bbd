//! The manager starts the parts of an operator in order and stops the parts in the reverse order.

mod cluster;
mod declarations;
mod grace;
mod handle;
mod http;
mod listen;
mod metrics_access;
mod names;
mod permissions;
mod readiness;
mod run;
mod run_context;
mod runnable;
mod secure_metrics;
mod signals;
mod stop;
mod terms;

use std::{net::SocketAddr, time::Duration};

use futures::future::BoxFuture;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube_client::Client;
use kube_core::ApiResource;
use tokio::sync::mpsc;
use windlass_webhook::ServerDefaults;

pub use self::{
    cluster::Cluster,
    declarations::{ElectionDeclaration, MetricsDeclaration},
    handle::ManagerHandle,
    run_context::{QueueMetricsGuard, RunContext},
    runnable::{Group, Runnable},
    secure_metrics::SecureMetrics,
};
use self::{handle::Change, names::Selection, run::RunningManager};
use crate::{
    client::{ClientBuilder, ConfigSource},
    controller::{AnyController, Controller},
    env::Env,
    error::Result,
    events::EventsApi,
    handler::QueueKey,
    health::{Check, Health},
    leader_election::LeaderElection,
    metrics::Metrics,
    observer::Observer,
    permission::Permission,
    sharding::Sharding,
};
pub use crate::{observer::Reconciled, shutdown::Shutdown, webhook_declaration::WebhookServerDeclaration};

/// Runs controllers and the other parts of an operator.
///
/// ```no_run
/// # use k8s_openapi::api::core::v1::ConfigMap;
/// use windlass_runtime::{
///     Action, Context, Controller, Manager, ObjectKey, Result, client::ConfigSource,
/// };
///
/// async fn reconcile(key: ObjectKey, cx: Context<ConfigMap>) -> Result<Action> {
///     tracing::info!(%key, exists = cx.get(&key)?.is_some());
///     Ok(Action::done())
/// }
///
/// #[tokio::main]
/// async fn main() -> Result<()> {
///     Manager::from_config(ConfigSource::default())
///         .controller(Controller::of::<ConfigMap>(reconcile))
///         .run()
///         .await
/// }
/// ```
///
/// Most operators take flags from the command line instead, with `Manager::from_args` of the crate `windlass`.
///
/// The parts start in this order: metrics and health endpoints, webhooks, caches, runnables of every replica, warm-up; then,
/// when this replica leads if a leader is elected, the controllers. The parts stop in the reverse order, within 30 s in all.
pub struct Manager {
    target: Target,
    env: Env,
    metrics: Metrics,
    health: Health,
    namespaces: Vec<String>,
    clusters: Vec<Cluster>,
    metrics_address: Option<SocketAddr>,
    secure_metrics: Option<SecureMetrics>,
    health_address: Option<SocketAddr>,
    grace: Option<Duration>,
    stale_after: Option<Duration>,
    leader_election: Option<LeaderElection>,
    sharding: Option<Sharding>,
    events_api: EventsApi,
    logs_warnings: bool,
    observer: Option<Observer>,
    controllers: Vec<Box<dyn AnyController>>,
    selection: Selection,
    needs: Vec<Permission>,
    runnables: Vec<Runnable>,
    crds: Vec<CustomResourceDefinition>,
    /// `(program, flag)`: true if the CRDs are applied at the start. The flag overrides the program.
    applies_crds: (bool, Option<bool>),
    samples: Vec<String>,
    pub(crate) webhook_servers: Vec<WebhookServerDeclaration>,
    run_hook: Option<RunHook>,
    pub(crate) webhook_defaults: ServerDefaults,
    changes: (mpsc::UnboundedSender<Change>, mpsc::UnboundedReceiver<Change>),
}

enum Target {
    Client(Client),
    Config(ConfigSource),
}

type RunHook = Box<dyn FnOnce(Manager) -> BoxFuture<'static, Result<()>> + Send>;

/// The declaration of a controller of a manager. See [`Manager::controllers`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ControllerDeclaration {
    /// The controller's name.
    pub name: String,
    /// The watched kinds, in the order of declaration.
    pub watches: Vec<ApiResource>,
}

impl Manager {
    /// Creates a manager that uses `client`, without metrics and health endpoints and without leader election.
    ///
    /// A client that [`ClientBuilder`] did not build is wrapped. Reads see the writes of the wrapped client, which
    /// contexts return.
    pub fn new(client: Client) -> Self {
        Self::to(Target::Client(client))
    }

    /// Works like [`new`](Self::new), with the cluster that `source` names. The configuration is loaded when
    /// the manager runs.
    pub fn from_config(source: ConfigSource) -> Self {
        Self::to(Target::Config(source))
    }

    fn to(target: Target) -> Self {
        Self {
            target,
            env: Env::system(),
            metrics: Metrics::new(),
            health: Health::new(),
            namespaces: Vec::new(),
            clusters: Vec::new(),
            metrics_address: None,
            secure_metrics: None,
            health_address: None,
            grace: Some(Duration::from_secs(30)),
            stale_after: Some(Duration::from_mins(5)),
            leader_election: None,
            sharding: None,
            events_api: EventsApi::default(),
            logs_warnings: true,
            observer: None,
            controllers: Vec::new(),
            selection: Selection::new(["*"]),
            needs: Vec::new(),
            runnables: Vec::new(),
            crds: Vec::new(),
            applies_crds: (false, None),
            samples: Vec::new(),
            webhook_servers: Vec::new(),
            run_hook: None,
            webhook_defaults: ServerDefaults::default(),
            changes: mpsc::unbounded_channel(),
        }
    }

    /// Replaces the client, or the configuration, of the manager.
    pub fn client(mut self, client: Client) -> Self {
        self.target = Target::Client(client);
        self
    }

    /// Adds a controller.
    pub fn controller<Q: QueueKey>(mut self, controller: Controller<Q>) -> Self {
        self.controllers.push(Box::new(controller));
        self
    }

    /// Selects the controllers that run, by name, like kube-controller-manager's flag `--controllers`: `*`
    /// selects all, `foo` selects the controller `foo`, `-foo` deselects the controller. The first pattern
    /// with a controller's name counts. Default: all.
    ///
    /// A name that no controller has fails the start. Controllers that are added later are not selected.
    pub fn select_controllers(mut self, patterns: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.selection = Selection::new(patterns);
        self
    }

    /// Adds a runnable: a function that runs until the shutdown. An error of the function ends the manager.
    pub fn runnable(mut self, runnable: Runnable) -> Self {
        self.runnables.push(runnable);
        self
    }

    /// Adds a CRD of this operator. The command `crds` prints the CRD. The manager installs the CRD only with
    /// [`apply_crds`](Self::apply_crds).
    pub fn crd(mut self, crd: CustomResourceDefinition) -> Self {
        self.crds.push(crd);
        self
    }

    /// Returns the CRDs that were added.
    pub fn crds(&self) -> &[CustomResourceDefinition] {
        &self.crds
    }

    /// Applies the [CRDs](Self::crd) at the start of every replica, before the caches start and before the replica is ready. Default: off.
    ///
    /// A missing CRD is created, and a CRD that lacks a part of this program's CRD is updated: a version, a
    /// field, a column, a looser rule. A CRD that has everything of this program's CRD stays unchanged: an
    /// older replica never undoes the update of a newer replica. A change that would break clients or stored
    /// objects fails the start. A CRD that is being deleted and still served stays unchanged. Labels, annotations and the conversion webhook of the CRD in the cluster
    /// stay. The field manager is the field manager of `kubectl apply --server-side`.
    ///
    /// The manager needs the rights `create`, `get` and `patch` on CRDs, which [`permissions`](Self::permissions) includes.
    pub fn apply_crds(mut self) -> Self {
        self.applies_crds.0 = true;
        self
    }

    /// Turns [`apply_crds`](Self::apply_crds) on or off, even if the program calls `apply_crds` afterwards;
    /// `None` has no effect. The flag `--apply-crds` of an operator calls this method.
    pub fn override_apply_crds(mut self, applies: Option<bool>) -> Self {
        self.applies_crds.1 = applies;
        self
    }

    /// Returns whether the manager applies the CRDs at the start.
    pub fn applies_crds(&self) -> bool {
        self.applies_crds.1.unwrap_or(self.applies_crds.0)
    }

    /// Adds sample objects of this operator, as YAML documents. The command `dev` applies the objects; the manager does not.
    pub fn sample(mut self, yaml: impl Into<String>) -> Self {
        self.samples.push(yaml.into());
        self
    }

    /// Returns the samples that were added.
    pub fn samples(&self) -> &[String] {
        &self.samples
    }

    /// Returns the declarations of the controllers.
    pub fn controllers(&self) -> Vec<ControllerDeclaration> {
        self.controllers
            .iter()
            .map(|controller| ControllerDeclaration {
                name: controller.name().to_owned(),
                watches: controller.watched(),
            })
            .collect()
    }

    /// Sets the address and the certificate of [`webhooks`](Self::webhooks) that are added later and set neither.
    pub fn webhook_defaults(mut self, defaults: ServerDefaults) -> Self {
        self.webhook_defaults = defaults;
        self
    }

    /// Limits the caches of namespaced kinds to these namespaces. Default: all namespaces.
    pub fn namespaces(mut self, namespaces: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.namespaces = namespaces.into_iter().map(Into::into).collect();
        self
    }

    /// Adds a further cluster, which controllers watch with [`Watch::in_cluster`](crate::Watch::in_cluster).
    ///
    /// The manager does not start if two clusters have the same name, or if the configuration of a cluster cannot be loaded.
    pub fn cluster(mut self, cluster: Cluster) -> Self {
        self.clusters.push(cluster);
        self
    }

    /// Elects a leader among the replicas, and runs the controllers only there.
    pub fn leader_election(mut self, election: LeaderElection) -> Self {
        self.leader_election = Some(election);
        self
    }

    /// Splits the keys of [sharded](Controller::sharded) controllers among the replicas. Other controllers run on every replica, or on the
    /// leader if [leaders are elected](Self::leader_election).
    pub fn sharding(mut self, sharding: Sharding) -> Self {
        self.sharding = Some(sharding);
        self
    }

    /// Sets the API for writing events. Default: core/v1.
    pub fn events_api(mut self, api: EventsApi) -> Self {
        self.events_api = api;
        self
    }

    /// Sets whether warnings of the API server are logged as warnings, at most ten in a minute. With `false`, warnings are logged at debug
    /// level, for all users of the manager's client. Default: true.
    ///
    /// For a program that watches all kinds, deprecated kinds included, like kube-controller-manager.
    pub fn log_warnings(mut self, log: bool) -> Self {
        self.logs_warnings = log;
        self
    }

    /// Calls `observer` after each reconcile of each controller, with the error if the reconcile failed: to
    /// report errors to a service, or to a test. The worker calls the observer. An observer must not block.
    /// Default: none.
    ///
    /// ```
    /// # use windlass_runtime::Manager;
    /// # fn example(client: kube_client::Client) -> Manager {
    /// Manager::new(client).observe_reconciles(|reconciled| {
    ///     if let Some(error) = reconciled.error {
    ///         eprintln!("{} failed on {}: {error}", reconciled.controller, reconciled.key);
    ///     }
    /// })
    /// # }
    /// ```
    pub fn observe_reconciles(mut self, observer: impl Fn(&Reconciled<'_>) + Send + Sync + 'static) -> Self {
        self.observer = Some(Box::new(observer));
        self
    }

    /// Serves `/metrics` on this address. `[::]` stands for all addresses, of IPv4 too.
    pub fn metrics_address(mut self, address: SocketAddr) -> Self {
        self.metrics_address = Some(address);
        self
    }

    /// Serves `/metrics` over HTTPS, to clients with access.
    pub fn secure_metrics(mut self, metrics: SecureMetrics) -> Self {
        self.secure_metrics = Some(metrics);
        self
    }

    /// Serves `/healthz` and `/readyz` on this address. `[::]` stands for all addresses, of IPv4 too.
    pub fn health_address(mut self, address: SocketAddr) -> Self {
        self.health_address = Some(address);
        self
    }

    /// Adds a check to `/healthz`. The check should fail when the process must be restarted.
    pub fn healthz_check(self, name: impl Into<String>, check: impl Check) -> Self {
        self.health.add_live(name, check);
        self
    }

    /// Adds a check to `/readyz`. The check should fail while the process must get no traffic.
    ///
    /// Every manager has the checks `informer-sync`, which fails until all caches have been filled once, `watches`, which fails while a
    /// watch has been [failing for a while](Self::stale_watches_fail_readiness_after), and `tasks`, which fails while a background task is down
    /// after a panic. A manager with [webhooks](Self::webhooks) that convert kinds has no checks `informer-sync` and `watches`: its caches may
    /// need its conversion, which the API server finds at a ready replica.
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

    /// Sets how long a watch may fail before the readiness check `watches` fails; `None` turns the check off. Default: 5 minutes.
    ///
    /// Meanwhile, the controllers read the objects of the time when the watch last worked. A watch works again with the next event or
    /// bookmark, or when the watch has been open for 10 s. A kind that the server no longer has fails no check. A replica that is not ready gets no
    /// requests of webhooks: turn the check off if the webhooks do not depend on the caches.
    pub fn stale_watches_fail_readiness_after(mut self, limit: Option<Duration>) -> Self {
        self.stale_after = limit;
        self
    }

    /// Sets how long stopping may take in all; `None` sets no limit. Default: 30 s.
    ///
    /// The groups stop in sequence. A group that hangs is ended by force in time for the later groups: the
    /// parts that only the leader runs have 60 % of the time, other controllers and runnables have until 80
    /// %, and webhooks have until 96 %. The time between the groups is for the release of Leases, for events and for the watches. However short
    /// the limit is, the requests of each of these steps have half a second; and a part that blocks a thread delays the stop by a second.
    pub fn graceful_shutdown_timeout(mut self, limit: Option<Duration>) -> Self {
        self.grace = limit;
        self
    }

    /// Sets the source of wall-clock time and randomness.
    pub fn env(mut self, env: Env) -> Self {
        self.env = env;
        self
    }

    /// Returns the metrics, where metrics of your own can be registered.
    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// Returns a handle that adds and stops controllers, runnables and health checks while the manager runs.
    pub fn handle(&self) -> ManagerHandle {
        ManagerHandle {
            changes: self.changes.0.clone(),
            metrics: self.metrics.clone(),
            health: self.health.clone(),
        }
    }

    /// Makes [`run`](Self::run) call `hook` instead of running the manager.
    ///
    /// A command line adds commands with this hook: the hook can print the manager's [`crds`](Self::crds) and
    /// end, or run the manager that the hook gets.
    pub fn before_start<F, Fut>(mut self, hook: F) -> Self
    where
        F: FnOnce(Self) -> Fut + Send + 'static,
        Fut: Future<Output = Result<()>> + Send + 'static,
    {
        self.run_hook = Some(Box::new(move |manager| Box::pin(hook(manager))));
        self
    }

    /// Runs until SIGTERM or Ctrl-C, then stops gracefully; a second signal exits the process with status 1.
    ///
    /// # Errors
    ///
    /// A part could not be started, a runnable or a controller failed, or another replica became the leader.
    pub async fn run(mut self) -> Result<()> {
        if let Some(hook) = self.run_hook.take() {
            return hook(self).await;
        }
        let stop = signals::first_signal()?;
        self.run_until(stop).await
    }

    /// Runs until `stop` completes, then stops gracefully. Ignores [`before_start`](Self::before_start).
    pub async fn run_until(self, stop: impl Future<Output = ()> + Send) -> Result<()> {
        // Boxed: the future is large, and every program holds the future.
        Box::pin(RunningManager::start_and_stop(self, stop)).await
    }

    async fn connect(target: Target, env: &Env) -> Result<Client> {
        match target {
            Target::Client(client) => Ok(client),
            Target::Config(source) => ClientBuilder::new(source.load().await?).env(env.clone()).build(),
        }
    }
}
