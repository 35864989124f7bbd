//! The server and the server's builder.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Weak};
use std::time::Duration;

use arc_swap::ArcSwap;
use futures::future::join;
use parking_lot::Mutex;
use windlass_schema::{Catalog, KubernetesVersion};

use crate::admission::trace::{PolicyObserver, PolicyStep};
use crate::admission::{Policies, Webhooks};
use crate::aggregate::{self, Aggregator};
use crate::apart::Apart;
use crate::api::Api;
use crate::auth::{
    Authorizer, ISSUER, Identity, Impersonation, Issuer, LegacyClaims, ListenerTokens, TokenKeys,
};
use crate::discovery::{Health, HealthCheck};
use crate::flow_control::{Changes, FlowControl};
use crate::intercept::RequestInterceptor;
use crate::listeners::Listeners;
use crate::network::PodNetwork;
use crate::nodes::Nodes;
use crate::openapi::Documents;
use crate::reply_memory::ReplyMemory;
use crate::resource::{Definitions, builtin};
use crate::serve::{
    self, CertificateAuthority, CertificateError, InProcess, Listen, ListenError, RunningListener,
};
use crate::state::{State, UsedTokens};
use crate::store::{Clock, Env, SystemClock};
use crate::store::{Retention, Store, View};
use crate::webhook::Clients;
use crate::work_memory::WorkMemory;
use crate::{bootstrap, definitions};
use windlass_kinds::{AdmissionPlugin, AdmissionPlugins, Lookups, ServiceClusterIpRange};

/// The default limit of requests in flight.
const REQUESTS_IN_FLIGHT: u32 = 6_000;

/// A Kubernetes API server in this process.
///
/// All objects are in memory. A clone is another handle to the same server; the server lives as long as a
/// handle, a service or a listener. Only listeners have tasks.
///
/// Resource versions begin at the microseconds since 1970 on the server's clock at the start. Clients of an
/// earlier server at the same address therefore ask for missing history, get 410 `Expired`, and list again.
#[derive(Clone)]
pub struct Server {
    api: Arc<Api>,
}

/// The state of a whole server at a moment. A snapshot, and a server from a snapshot, are cheap.
#[derive(Clone)]
pub struct Snapshot {
    view: Arc<View>,
}

/// Settings of a [`Server`].
#[derive(Default)]
pub struct ServerBuilder {
    version: KubernetesVersion,
    clock: Option<Arc<dyn Clock>>,
    seed: Option<u64>,
    snapshot: Option<Snapshot>,
    intercept: Option<Arc<dyn RequestInterceptor>>,
    request_timeout: Option<Duration>,
    requests_in_flight: Option<u32>,
    token_keys: Option<TokenKeys>,
    plugins: AdmissionPlugins,
    always_allow: bool,
    keeps_roles: bool,
    service_range: ServiceClusterIpRange,
    forbids_privileged: bool,
    advertise_address: Option<IpAddr>,
    health_checks: Vec<Box<dyn HealthCheck>>,
    flags: BTreeMap<String, String>,
    nodes: Option<Arc<dyn Nodes>>,
    policy_observer: Option<PolicyObserver>,
}

/// Why a server was not built.
#[derive(Debug, thiserror::Error)]
#[error("the server's own objects could not be created: {0}")]
pub struct BuildError(crate::wire::ApiError);

impl ServerBuilder {
    /// Serves the groups, kinds and fields of this version of Kubernetes. Default: the newest version. Defaults and checks that are
    /// not part of a schema are those of the newest version.
    ///
    /// ```
    /// use windlass_apiserver::{KubernetesVersion, Server};
    ///
    /// let server = Server::builder().kubernetes_version(KubernetesVersion::V1_36).build()?;
    /// # Ok::<(), windlass_apiserver::BuildError>(())
    /// ```
    pub fn kubernetes_version(mut self, version: KubernetesVersion) -> Self {
        self.version = version;
        self
    }

    /// Reads the time from `clock`; without this, from the machine.
    pub fn clock(mut self, clock: impl Clock + 'static) -> Self {
        self.clock = Some(Arc::new(clock));
        self
    }

    /// Makes uids and name suffixes a function of `seed`: two runs give the same uids and suffixes.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Starts from the state of another server instead of an empty state.
    pub fn snapshot(mut self, snapshot: &Snapshot) -> Self {
        self.snapshot = Some(snapshot.clone());
        self
    }

    /// Lets `intercept` see, and answer, every authorised request before the server does.
    pub fn intercept(mut self, intercept: impl RequestInterceptor + 'static) -> Self {
        self.intercept = Some(Arc::new(intercept));
        self
    }

    /// Sets the time limit of a request, from the headers to the reply; watches have no limit. Default: 60 s.
    ///
    /// A request that takes longer gets 504 `Timeout`. A client may ask for less with the query parameter `timeout`.
    pub fn request_timeout(mut self, timeout: Duration) -> Self {
        self.request_timeout = Some(timeout);
        self
    }

    /// Sets the number of requests that may run at the same time. Default: 6,000, ten times the default of kube-apiserver.
    ///
    /// The priority levels (PriorityLevelConfigurations) share the number by their `nominalConcurrencyShares`. A request that finds its
    /// level full waits for its turn, or gets 429. Requests of `system:masters` have no limit; a watch counts at the start only.
    pub fn requests_in_flight(mut self, limit: u32) -> Self {
        self.requests_in_flight = Some(limit);
        self
    }

    /// Signs and verifies service account tokens with these keys. By default, every server has a new key.
    pub fn token_keys(mut self, keys: TokenKeys) -> Self {
        self.token_keys = Some(keys);
        self
    }

    /// Switches an admission plugin on or off. Default: all plugins except `ServiceAccount` are on, because a
    /// server without controllers creates no service accounts.
    ///
    /// ```
    /// use windlass_apiserver::{AdmissionPlugin, Server};
    ///
    /// // For a server whose controllers create the service accounts of namespaces.
    /// Server::builder().admission_plugin(AdmissionPlugin::ServiceAccount, true).build()?;
    /// # Ok::<(), windlass_apiserver::BuildError>(())
    /// ```
    pub fn admission_plugin(mut self, plugin: AdmissionPlugin, enabled: bool) -> Self {
        self.plugins = self.plugins.with(plugin, enabled);
        self
    }

    /// Authorises every request of every user, as kube-apiserver does with `--authorization-mode=AlwaysAllow`. By
    /// default, roles and bindings are enforced.
    pub fn always_allow(mut self) -> Self {
        self.always_allow = true;
        self
    }

    /// Sets whether cluster roles with an `aggregationRule` get the rules of the selected roles. Default:
    /// true, although kube-controller-manager aggregates roles in a cluster. With false, the roles keep the
    /// rules that clients write.
    pub fn aggregate_cluster_roles(mut self, enabled: bool) -> Self {
        self.keeps_roles = !enabled;
        self
    }

    /// Sets the range that the cluster addresses of services are allocated from. Default: `10.0.0.0/24`.
    ///
    /// The Service `kubernetes` has the first address, and the ServiceCIDR `kubernetes` names the range. A server that starts from a
    /// snapshot keeps the objects of the snapshot.
    pub fn service_range(mut self, range: ServiceClusterIpRange) -> Self {
        self.service_range = range;
        self
    }

    /// Refuses pods with privileged containers, and templates of such pods, like kube-apiserver without
    /// `--allow-privileged`. By default, they are allowed.
    pub fn forbid_privileged(mut self) -> Self {
        self.forbids_privileged = true;
        self
    }

    /// Sets the address of the server in the Endpoints and the EndpointSlice of the Service `kubernetes`. Default: the address of
    /// the listener.
    pub fn advertise_address(mut self, address: IpAddr) -> Self {
        self.advertise_address = Some(address);
        self
    }

    /// Adds a check to `/healthz`, `/livez` and `/readyz`. The endpoints fail with 500 while the check fails.
    pub fn health_check(mut self, check: impl HealthCheck) -> Self {
        self.health_checks.push(Box::new(check));
        self
    }

    /// Shows a flag of the program, without the dashes, in `/flagz`. Without flags, the page is empty.
    pub fn flag(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.flags.insert(name.into(), value.into());
        self
    }

    /// Passes `exec`, `attach`, `port-forward`, `log` and `proxy` on to `nodes`. Without nodes, the server answers the first three
    /// with 500 and simulates logs.
    pub fn nodes(mut self, nodes: impl Nodes) -> Self {
        self.nodes = Some(Arc::new(nodes));
        self
    }

    /// Tells `observer` the result and the cost of each expression of the admission policies, for each request.
    pub fn policy_observer(mut self, observer: impl Fn(&PolicyStep) + Send + Sync + 'static) -> Self {
        self.policy_observer = Some(Arc::new(observer));
        self
    }

    /// Makes the server. Takes a few milliseconds.
    pub fn build(self) -> Result<Server, BuildError> {
        let clock = self.clock.unwrap_or_else(|| Arc::new(SystemClock));
        // A server that replaces another server continues above that server's revisions: a watch of the old
        // history gets 410, not silence.
        let started = clock.now();
        let start = u64::try_from(started.as_microsecond()).unwrap_or(0);
        let store = match &self.snapshot {
            Some(snapshot) => Store::fork(&snapshot.view, start, Retention::default()),
            None => Store::new(start, Retention::default()),
        };
        let store = Arc::new(store);
        let network = PodNetwork::new(self.nodes);
        let clients = Arc::new(Clients::new(Arc::clone(&store), network.clone()));
        let aggregator = Arc::new(Aggregator::new(Arc::clone(&store), network.clone()));
        // A fork must not repeat the uids that the original server made with the same seed.
        let origin = self.snapshot.as_ref().map_or(0, |snapshot| snapshot.view.revision());
        let catalog = Catalog::of(self.version);
        let builtin = builtin::served(&catalog);
        let no_key = || crate::wire::ApiError::internal("the operating system has no randomness for a key");
        let generated = || TokenKeys::generate(ISSUER).ok_or_else(|| BuildError(no_key()));
        let issuer = Issuer::new(self.token_keys.map_or_else(generated, Ok)?);
        let state = Arc::new(State {
            store,
            env: Env::new(clock, self.seed.map(|seed| seed.wrapping_add(origin.rotate_left(32)))),
            served: ArcSwap::from_pointee(builtin.clone()),
            builtin,
            definitions: tokio::sync::Mutex::new(Definitions::new(Arc::clone(&clients))),
            scales: Arc::new(builtin::scales(&catalog)),
            token_requests: Arc::new(builtin::token_requests(&catalog)),
            aggregated_roles: (!self.keeps_roles).then(Default::default),
            unsettled_definitions: AtomicBool::new(false),
            plugins: self.plugins,
            service_range: self.service_range,
            allows_privileged: !self.forbids_privileged,
            advertise_address: self.advertise_address,
            listeners: Listeners::default(),
            network,
            apart: Apart::new(),
            reply_memory: ReplyMemory::default(),
            flow_control: FlowControl::new(self.requests_in_flight.unwrap_or(REQUESTS_IN_FLIGHT)),
            webhooks: Webhooks::new(clients),
            lookups: Lookups::default(),
            policies: Policies::new(self.policy_observer),
            catalog,
            tokens: ListenerTokens::default(),
            used_tokens: UsedTokens::default(),
            issuer,
            authorizer: Arc::new(Authorizer::new(self.always_allow)),
            impersonation: Impersonation::default(),
        });
        definitions::load(&state);
        if self.snapshot.is_none() {
            bootstrap::create(&state).map_err(BuildError)?;
        }
        state.flow_control.restored(Changes::of(&state.store.view()));
        let api = Arc::new(Api {
            state,
            documents: Documents::default(),
            aggregator,
            front_proxy: Mutex::default(),
            metrics: Arc::default(),
            intercept: self.intercept,
            health: Health::new(self.health_checks),
            flags: self.flags,
            started,
            request_timeout: self.request_timeout.unwrap_or(serve::REQUEST_TIMEOUT),
            body_memory: Arc::default(),
            work_memory: WorkMemory::new(),
        });
        Ok(Server { api })
    }
}

impl Server {
    /// Settings for a new server.
    ///
    /// ```
    /// let server = windlass_apiserver::Server::builder().seed(7).build()?;
    /// let _service = server.service(windlass_apiserver::Identity::admin());
    /// # Ok::<(), windlass_apiserver::BuildError>(())
    /// ```
    pub fn builder() -> ServerBuilder {
        ServerBuilder::default()
    }

    /// Returns the server as a `tower` service of a user, for `kube::Client::new`. No socket is involved.
    pub fn service(&self, identity: Identity) -> InProcess {
        InProcess::new(Arc::clone(&self.api) as Arc<dyn serve::Handle>, identity)
    }

    /// Listens with TLS, by default on loopback only. The objects with the server's address have the address of the oldest listener
    /// that runs.
    ///
    /// # Errors
    ///
    /// If the address cannot be bound, is not loopback without leave, or a certificate cannot be made.
    pub async fn listen(&self, options: Listen) -> Result<RunningListener, ListenError> {
        let state = &self.api.state;
        let service = IpAddr::from(state.service_range.first());
        let options = options.also_at(state.advertise_address.into_iter().chain([service]));
        let listening = serve::listen(Arc::clone(&self.api) as Arc<dyn serve::Handle>, options).await?;
        state.tokens.add(listening.tokens());
        let (address, front_proxy) = (listening.local_addr(), self.front_proxy()?);
        let is_first = state.listeners.add(listening.tokens(), listening.authority().certificate_pem());
        if is_first {
            bootstrap::move_server(state, address).await;
        }
        bootstrap::publish_authorities(state, &front_proxy).await;
        let (of_state, aggregator) = (Arc::downgrade(state), Arc::downgrade(&self.api.aggregator));
        let stopped = (listening.stopped(), listening.stopped());
        let work = move || async move {
            if let Some(state) = of_state.upgrade().filter(|_| !is_first) {
                bootstrap::move_server(&state, address).await;
            }
            let lease = bootstrap::keep_lease(Weak::clone(&of_state), stopped.0);
            join(aggregate::keep_available(of_state, aggregator, stopped.1), lease).await;
        };
        tokio::spawn(state.listeners.in_turn(listening.stopped(), work));
        let state = Arc::downgrade(state);
        let forget = move || {
            if let Some(state) = state.upgrade() {
                state.store.forget_old_events(state.env.now());
            }
        };
        tokio::spawn(serve::keep_returning_memory(listening.stopped(), forget));
        Ok(listening)
    }

    /// Makes the certificate that names the server to the servers of aggregated APIs, once. Returns the certificate of the authority.
    fn front_proxy(&self) -> Result<String, CertificateError> {
        let mut made = self.api.front_proxy.lock();
        if let Some(authority) = &*made {
            return Ok(authority.clone());
        }
        let authority = CertificateAuthority::generate()?;
        let certificate = authority.client(bootstrap::FRONT_PROXY, None)?;
        self.api.aggregator.identify(certificate.certificate_pem(), certificate.key_pem());
        Ok(made.insert(authority.certificate_pem().to_owned()).clone())
    }

    /// Forgets the history of all objects, as a compaction of the real server's store does.
    ///
    /// Watches that resume from an earlier resourceVersion, and lists that continue from an earlier
    /// resourceVersion, get 410 `Expired`. Use this method to test an operator's reaction.
    pub fn compact(&self) {
        self.api.state.store.compact();
    }

    /// Signs the token of a Secret of type `kubernetes.io/service-account-token`, for a service account with
    /// this name and uid. The server accepts the token while the Secret has the token. `None` if the
    /// operating system has no randomness.
    ///
    /// The token controller of `windlass-controllers` fills Secrets with such tokens.
    pub fn legacy_token(&self, namespace: &str, name: &str, uid: &str, secret: &str) -> Option<String> {
        let text = str::to_owned;
        let (namespace, name, uid, secret) = (text(namespace), text(name), text(uid), text(secret));
        self.api.state.issuer.sign_legacy(&LegacyClaims { namespace, name, uid, secret })
    }

    #[cfg(test)]
    pub(crate) fn state(&self) -> &Arc<State> {
        &self.api.state
    }

    /// Returns the present state, to start other servers from.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot { view: self.api.state.store.view() }
    }
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server")
            .field("revision", &self.api.state.store.view().revision())
            .finish_non_exhaustive()
    }
}
