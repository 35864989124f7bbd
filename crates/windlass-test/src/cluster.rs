//! A control plane that belongs to one test.

mod builder;

use std::panic::Location;
use std::path::PathBuf;
use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube_client::{Client, Config};
use kube_core::{CustomResourceExt, ObjectMeta, Resource};
use serde::de::DeserializeOwned;
use tokio::sync::OnceCell;
use windlass_apiserver::{Identity, Listen, RunningListener, Server, ServerBuilder};
use windlass_controllers::{Controllers, can_run_pods};
use windlass_runtime::client::{ClientBuilder, ConfigSource};
use windlass_runtime::permission::Permissions;
use windlass_runtime::{Error, Manager};

use crate::operators::Operators;
use crate::ownership::AppliedObjects;
use crate::rights::{Account, Login, RestrictedAccount, RestrictedManager};
use crate::running::RunningManager;
use crate::wait::Wait;
use crate::{TestClock, eventually, install, operator_log};

pub use self::builder::TestClusterBuilder;

/// The default limit of a wait.
const WAIT_LIMIT: Duration = Duration::from_secs(30);

/// The environment variable with the kubeconfig of a cluster for tests.
const KUBECONFIG: &str = "WINDLASS_TEST_KUBECONFIG";

/// An API server in this process, with or without the controllers of a cluster.
///
/// A cluster needs a tokio runtime, and stops when dropped. All methods panic on failure, with the reason,
/// because a cluster is for tests.
///
/// With the environment variable `RUST_LOG`, such as `RUST_LOG=info`, the first cluster of a process installs
/// a `tracing` subscriber that writes to the output of the test, unless the test has already installed a
/// subscriber.
///
/// ```
/// use k8s_openapi::api::core::v1::{ConfigMap, Pod};
/// use kube_client::api::{Api, PostParams};
/// use kube_core::ObjectMeta;
/// use windlass_runtime::{Action, Context, Controller, Manager, ObjectKey, Result};
/// use windlass_test::TestCluster;
///
/// async fn reconcile(key: ObjectKey, cx: Context<ConfigMap>) -> Result<Action> {
///     if let Some(config) = cx.get(&key)?
///         && config.data.is_none()
///     {
///         let mut filled = (*config).clone();
///         filled.data = Some([("color".to_owned(), "blue".to_owned())].into());
///         cx.update(&filled).await?;
///     }
///     Ok(Action::done())
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let cluster = TestCluster::start().await;
/// let manager = Manager::new(cluster.client()).controller(Controller::of::<ConfigMap>(reconcile));
/// let operator = cluster.run(manager);
///
/// let mut config = ConfigMap::default();
/// config.metadata.name = Some("a".to_owned());
/// let configs: Api<ConfigMap> = Api::default_namespaced(cluster.client());
/// configs.create(&PostParams::default(), &config).await.expect("created");
///
/// let filled = cluster.wait_for::<ConfigMap>("default/a", |config| config.data.is_some()).await;
/// assert_eq!(filled.data.unwrap()["color"], "blue");
/// operator.stop().await.expect("a graceful stop");
/// # }
/// ```
pub struct TestCluster {
    /// `None`: the server is not in this process.
    server: Option<Server>,
    /// The configuration of a client of a server that is not in this process.
    config: Option<Config>,
    client: Client,
    listening: OnceCell<RunningListener>,
    operators: Operators,
    wait_limit: Duration,
    /// Stops the built-in controllers when dropped.
    controllers: Option<RunningManager>,
}

impl TestCluster {
    /// Starts only the API server. No built-in controller reacts to writes: pods are not scheduled and
    /// garbage is not collected.
    #[expect(clippy::unused_async, reason = "it needs a runtime, and may have to wait for something later")]
    pub async fn start() -> Self {
        Self::new()
    }

    /// Starts the API server and the built-in controllers: owned objects are garbage-collected, namespaces are finalized,
    /// and pods run on a simulated node. [`builder`](Self::builder) has options, such as more nodes.
    ///
    /// Pods wait for missing ConfigMaps and Secrets, and for the delays of probes: see [`TestClusterBuilder::strict`]. Returns when the
    /// node is ready and the namespace `default` has a service account.
    pub async fn with_controllers() -> Self {
        Self::builder().start().await
    }

    /// Returns the options of a cluster with controllers.
    pub fn builder() -> TestClusterBuilder {
        TestClusterBuilder::default()
    }

    /// Starts a cluster with the controllers that `options` says.
    pub(crate) async fn with_options(options: TestClusterBuilder) -> Self {
        Self::new().with_manager(options, |manager| manager).await
    }

    /// Starts the server and the controllers for reproducible runs: two runs with one seed, and with paused
    /// time, are the same.
    pub(crate) async fn seeded(clock: TestClock, seed: u64) -> Self {
        let env = clock.env(seed);
        Self::of(Server::builder().clock(clock).seed(seed))
            .with_manager(TestClusterBuilder::default(), |manager| manager.env(env))
            .await
    }

    /// Uses the cluster of the kubeconfig in the environment variable `WINDLASS_TEST_KUBECONFIG`. The
    /// kubeconfig must have the rights of an administrator. Without the variable, starts a cluster [with
    /// controllers](Self::with_controllers).
    ///
    /// A cluster of `WINDLASS_TEST_KUBECONFIG` keeps the objects of the test. The program chooses a TLS
    /// library by a feature of `kube`.
    pub async fn from_env() -> Self {
        match std::env::var_os(KUBECONFIG).filter(|path| !path.is_empty()) {
            Some(path) => Self::external(path.into())
                .await
                .unwrap_or_else(|error| panic!("the cluster of {KUBECONFIG}: {error}")),
            None => Self::with_controllers().await,
        }
    }

    async fn external(kubeconfig: PathBuf) -> Result<Self, Error> {
        operator_log::show();
        let source = ConfigSource { kubeconfig: Some(kubeconfig), ..ConfigSource::default() };
        let mut config = source.load().await?;
        "default".clone_into(&mut config.default_namespace);
        let client = ClientBuilder::new(config.clone()).build()?;
        Ok(Self {
            server: None,
            config: Some(config),
            client,
            listening: OnceCell::new(),
            operators: Operators::default(),
            wait_limit: WAIT_LIMIT,
            controllers: None,
        })
    }

    async fn with_manager(
        mut self,
        options: TestClusterBuilder,
        configure: impl FnOnce(Manager) -> Manager,
    ) -> Self {
        let nodes = options.node_count();
        let mut controllers = options.configure(Controllers::new(self.client()));
        if let Some(server) = self.server.clone() {
            controllers = controllers.sign_legacy_tokens(move |account, secret| {
                let ObjectMeta { namespace, name, uid, .. } = &account.metadata;
                server.legacy_token(namespace.as_deref()?, name.as_deref()?, uid.as_deref()?, secret)
            });
        }
        self.controllers = Some(self.run(configure(controllers.manager())));
        eventually(WAIT_LIMIT, || can_run_pods(&self.client, nodes)).await;
        self
    }

    fn new() -> Self {
        Self::of(Server::builder())
    }

    fn of(server: ServerBuilder) -> Self {
        operator_log::show();
        let server = server.build().unwrap_or_else(|error| panic!("the API server does not start: {error}"));
        let client = Client::new(server.service(Identity::admin()), "default");
        Self {
            server: Some(server),
            config: None,
            client,
            listening: OnceCell::new(),
            operators: Operators::default(),
            wait_limit: WAIT_LIMIT,
            controllers: None,
        }
    }

    /// Sets how long [`wait_for`](Self::wait_for) and [`gone`](Self::gone) wait on an idle machine. Default: 30 s. The limit is
    /// [stretched](crate::stretched) by `WINDLASS_TEST_PATIENCE` and by the load of the machine.
    pub fn wait_limit(mut self, limit: Duration) -> Self {
        self.wait_limit = limit;
        self
    }

    /// Returns a client with the rights of an administrator. The client's default namespace is `default`.
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// Returns a client that is authenticated as `identity`.
    pub fn client_of(&self, identity: Identity) -> Client {
        Client::new(self.server().service(identity), "default")
    }

    /// Returns the API server.
    ///
    /// # Panics
    /// The server is not in this process: see [`from_env`](Self::from_env).
    pub fn server(&self) -> &Server {
        self.server.as_ref().unwrap_or_else(|| panic!("the cluster of {KUBECONFIG} is not in this process"))
    }

    /// Returns the TLS listener. The first call opens the listener at a free port of the loopback address.
    pub async fn listening(&self) -> &RunningListener {
        self.listening
            .get_or_init(|| async {
                let listening = self.server().listen(Listen::default()).await;
                listening.unwrap_or_else(|error| panic!("the API server does not listen: {error}"))
            })
            .await
    }

    /// Returns a kubeconfig for clients in other processes, such as kubectl. Opens the TLS listener.
    pub async fn kubeconfig(&self) -> String {
        self.listening().await.kubeconfig().to_owned()
    }

    /// Applies a CRD and waits until the resources of the CRD are served.
    #[track_caller]
    pub fn install(&self, definition: &CustomResourceDefinition) -> impl Future<Output = ()> {
        self.install_all([definition])
    }

    /// Applies CRDs and waits until all resources are served. Merges the CRDs of the versions of a kind.
    #[track_caller]
    pub fn install_all<'a>(
        &self,
        definitions: impl IntoIterator<Item = &'a CustomResourceDefinition>,
    ) -> impl Future<Output = ()> {
        let definitions: Vec<_> = definitions.into_iter().cloned().collect();
        self.install_definitions(definitions, Location::caller())
    }

    /// Applies the CRD of `K` and waits until the resources of the CRD are served.
    #[track_caller]
    pub fn install_crd<K: CustomResourceExt>(&self) -> impl Future<Output = ()> {
        self.install_definitions(vec![K::crd()], Location::caller())
    }

    fn install_definitions(
        &self,
        definitions: Vec<CustomResourceDefinition>,
        caller: &'static Location<'static>,
    ) -> impl Future<Output = ()> + use<> {
        install::install(self.client(), definitions, self.wait_limit, caller)
    }

    /// Runs a manager in the background until the returned guard is stopped or dropped.
    ///
    /// Give the manager this cluster's [`client`](Self::client). If the manager fails, the waits of this
    /// cluster panic with the manager's error at once, and the guard panics when dropped.
    pub fn run(&self, manager: Manager) -> RunningManager {
        let running = RunningManager::start(manager);
        self.operators.add(&running);
        running
    }

    /// Runs a manager as [`run`](Self::run) does, but as a service account with exactly the [rights that the manager
    /// declares](Manager::permissions). The server denies everything else.
    ///
    /// The manager's client is replaced. The manager gets a new namespace with a service account.
    ///
    /// ```
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use windlass_runtime::{Action, Context, Controller, Manager, ObjectKey, Permission, Result, Verb};
    /// # use windlass_test::TestCluster;
    /// # async fn reconcile(_: ObjectKey, _: Context<ConfigMap>) -> Result<Action> { Ok(Action::done()) }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let cluster = TestCluster::start().await;
    /// let controller = Controller::of::<ConfigMap>(reconcile).needs(Permission::to::<ConfigMap>([Verb::Delete]));
    /// let operator = cluster.run_restricted(Manager::new(cluster.client()).controller(controller)).await;
    /// assert!(operator.rights().unused.contains(&"delete configmaps: declared by configmap".to_owned()));
    /// operator.stop().await.expect("a graceful stop");
    /// # }
    /// ```
    #[track_caller]
    pub fn run_restricted(&self, manager: Manager) -> impl Future<Output = RestrictedManager> {
        let account = Box::pin(self.restricted_account(&manager));
        async move {
            let restricted = RestrictedManager::start(manager, account.await);
            self.operators.add(restricted.running());
            restricted
        }
    }

    /// Makes a service account with exactly the [rights that a manager declares](Manager::permissions), in a
    /// new namespace. Replicas of that manager run with the [client](RestrictedAccount::client) of the
    /// account; for a single replica, [`run_restricted`](Self::run_restricted) is shorter.
    ///
    /// ```
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use windlass_runtime::{Action, Context, Controller, Manager, ObjectKey, Result, leader_election::LeaderElection};
    /// # use windlass_test::TestCluster;
    /// # async fn reconcile(_: ObjectKey, _: Context<ConfigMap>) -> Result<Action> { Ok(Action::done()) }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let cluster = TestCluster::start().await;
    /// let replica = |client| {
    ///     let election = LeaderElection::new("my-operator");
    ///     Manager::new(client).controller(Controller::of::<ConfigMap>(reconcile)).leader_election(election)
    /// };
    /// let account = cluster.restricted_account(&replica(cluster.client())).await;
    /// let (one, other) = (cluster.run(replica(account.client())), cluster.run(replica(account.client())));
    /// # one.stop().await.expect("a graceful stop");
    /// # other.stop().await.expect("a graceful stop");
    /// # assert!(account.rights().missing.is_empty());
    /// # }
    /// ```
    #[track_caller]
    pub fn restricted_account(&self, manager: &Manager) -> impl Future<Output = RestrictedAccount> + use<'_> {
        self.account_with(manager.permissions())
    }

    /// Makes a service account with these rights, in a new namespace: for a further cluster of a manager. The
    /// manager's rights on that cluster are [`Manager::permissions_in`].
    ///
    /// ```
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use windlass_runtime::{Action, Context, Controller, Manager, ObjectKey, Result, Watch, kind, manager::Cluster};
    /// # use windlass_test::TestCluster;
    /// # async fn reconcile(_: ObjectKey, _: Context<ConfigMap>) -> Result<Action> { Ok(Action::done()) }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let (own, edge) = (TestCluster::start().await, TestCluster::start().await);
    /// let manager = |own, edge| {
    ///     let controller = Controller::of::<ConfigMap>(reconcile).watch(Watch::primary(kind::<ConfigMap>()).in_cluster("edge"));
    ///     Manager::new(own).cluster(Cluster::new("edge", edge)).controller(controller)
    /// };
    /// let declared = manager(own.client(), edge.client());
    /// let here = own.restricted_account(&declared).await;
    /// let there = edge.account_with(declared.permissions_in("edge")).await;
    /// let operator = own.run(manager(here.client(), there.client()));
    /// # operator.stop().await.expect("a graceful stop");
    /// # assert!(here.rights().missing.is_empty() && there.rights().missing.is_empty());
    /// # }
    /// ```
    #[track_caller]
    pub fn account_with(
        &self,
        permissions: Permissions,
    ) -> impl Future<Output = RestrictedAccount> + use<'_> {
        let caller = Location::caller();
        async move {
            let login = match (&self.server, &self.config) {
                (_, Some(config)) => Login::Token(config),
                _ => Login::InProcess(self.server()),
            };
            let account = Account::create(self.client(), login, &permissions, caller).await;
            let account = RestrictedAccount::new(permissions, account);
            self.operators.add_requests(account.request_log());
            account
        }
    }

    /// Waits until the object exists and satisfies `condition`, and returns it.
    ///
    /// The key is `namespace/name`, or a name: of a cluster-scoped object, or of an object in the namespace
    /// `default`. The wait polls the object, and may miss a state that lasts only a few milliseconds.
    ///
    /// # Panics
    /// When the limit of [`wait_limit`](Self::wait_limit) passes: the message has the object's version,
    /// finalizers and conditions, but no content of the object; the requests that
    /// [restricted](Self::run_restricted) managers were denied; and the last error of each key with a failed
    /// last reconcile. When a manager of this cluster fails: with the manager's error.
    #[track_caller]
    pub fn wait_for<K>(&self, key: impl ToString, condition: impl Fn(&K) -> bool) -> impl Future<Output = K>
    where
        K: Resource<DynamicType = ()> + DeserializeOwned + 'static,
    {
        self.wait(Location::caller()).for_object(key.to_string(), condition)
    }

    /// Waits until the object does not exist any more. An object that is terminating still exists.
    ///
    /// # Panics
    /// As [`wait_for`](Self::wait_for).
    #[track_caller]
    pub fn gone<K>(&self, key: impl ToString) -> impl Future<Output = ()>
    where
        K: Resource<DynamicType = ()> + 'static,
    {
        self.wait(Location::caller()).until_gone::<K>(key.to_string())
    }

    /// Checks that an operator takes no field from its user. The user applies `objects`, the documents of a YAML text, with the field manager
    /// `helm` and a finalizer; the operator runs with its [declared rights](Self::run_restricted) until its objects change no more.
    ///
    /// Then the user must own all fields of `spec` and the finalizer, and alone; the user's next apply must not conflict; and an apply
    /// without the finalizer must remove this finalizer and no other. Install the CRDs of the objects before.
    ///
    /// ```
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use windlass_runtime::{Action, Context, Controller, Manager, ObjectKey, Result};
    /// # use windlass_test::TestCluster;
    /// # async fn reconcile(_: ObjectKey, _: Context<ConfigMap>) -> Result<Action> { Ok(Action::done()) }
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() {
    /// let cluster = TestCluster::start().await;
    /// let manager = Manager::new(cluster.client()).controller(Controller::of::<ConfigMap>(reconcile));
    /// let sample = "{ apiVersion: v1, kind: ConfigMap, metadata: { name: sample } }";
    /// cluster.check_ownership(manager, sample).await;
    /// # }
    /// ```
    ///
    /// # Panics
    /// The user has lost a field: the message names the field and its owners. Or the operator did not do its work within 20 s: the objects
    /// still change, a request was denied, or the last reconcile of a key failed. Or the operator failed.
    #[track_caller]
    pub fn check_ownership(&self, manager: Manager, objects: &str) -> impl Future<Output = ()> {
        let caller = Location::caller();
        async move {
            let applied = AppliedObjects::apply(self.client(), objects, caller).await;
            let operator = self.run_restricted(manager).await;
            applied.wait_until_quiet(&self.operators).await;
            let mut losses = applied.losses().await;
            losses.extend(applied.release().await);
            operator.stop().await.unwrap_or_else(|error| panic!("{caller}: the operator failed: {error}"));
            applied.assert_none(&losses);
        }
    }

    fn wait(&self, caller: &'static Location<'static>) -> Wait<'_> {
        Wait { client: self.client(), operators: &self.operators, limit: self.wait_limit, caller }
    }
}
