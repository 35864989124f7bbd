//! The fake cluster, for tests.

use std::{convert::Infallible, sync::Arc};

use http::{Request, Response, StatusCode};
use kube_client::{Client, client::Body};
use kube_core::{ApiResource, DynamicObject};
use parking_lot::Mutex;
use serde::Serialize;
use windlass_runtime::webhook::Webhooks;

use super::{
    builder::FakeClusterBuilder,
    event::Event,
    fault,
    server::{Server, State},
    storage::Storage,
    write::Write,
};
use crate::{FaultRule, faults::FaultRules};
use windlass_runtime::{
    Action, Context, Controller, Object, QueueKey, Result,
    detached::{CacheSource, DetachedContexts},
    env::Env,
    informer::{CacheOptions, SharedInformer, SharedInformerFactory},
};

/// An API server in memory, and contexts that read and write. Clones are handles to the same cluster.
///
/// See the [module](super) for an example, and for the limits.
#[derive(Clone)]
pub struct FakeCluster {
    pub(super) server: Arc<Server>,
    contexts: Arc<DetachedContexts>,
    events: Arc<Mutex<Vec<Event>>>,
    controller: Option<String>,
}

impl FakeCluster {
    /// Creates a fake cluster with objects of one kind; [`builder`](Self::builder) takes several kinds, and
    /// options.
    ///
    /// # Panics
    /// Outside of a tokio runtime, or as [`insert`](Self::insert).
    pub fn new<K: Object + Serialize>(objects: impl IntoIterator<Item = K>) -> Self {
        Self::builder().objects(objects).build()
    }

    /// Returns a builder.
    pub fn builder() -> FakeClusterBuilder {
        FakeClusterBuilder::new()
    }

    pub(super) fn build(options: FakeClusterBuilder) -> Self {
        let FakeClusterBuilder { env, controller, collects_garbage, kinds, .. } = options;
        let mut storage = Storage::new(SharedInformerFactory::builder(unused_client()).seed(0).build());
        kinds.iter().for_each(|kind| storage.learn(kind));
        let state = State { storage, rules: FaultRules::default(), writes: Vec::new() };
        let server = Arc::new(Server { env: env.clone(), collects_garbage, state: Mutex::new(state) });
        let contexts = DetachedContexts::new(server.service(), env, server.clone())
            .expect("a client of a service in this process needs no configuration");
        let events = Arc::<Mutex<Vec<Event>>>::default();
        contexts.watch_events({
            let events = events.clone();
            move |event| events.lock().push(event.into())
        });
        Self { server, contexts: Arc::new(contexts), events, controller }
    }

    /// Returns a context for the reconciler of kind `K`. The context may read every kind: a kind without
    /// objects is an empty cache.
    ///
    /// The caches have no selectors and no indexes; [`context_of`](Self::context_of) has a controller's
    /// selectors and indexes.
    ///
    /// # Panics
    /// If `K` is [`DynamicObject`]: use [`context_of_kind`](Self::context_of_kind).
    pub fn context<K: Object>(&self) -> Context<K> {
        let kind = K::static_kind();
        assert!(kind.is_some(), "a `DynamicObject` may be of any kind; use `context_of_kind(&resource)`");
        self.context_with_all_kinds(kind.map(|kind| kind.resource))
    }

    /// Works like [`context`](Self::context), for the reconciler of a kind that is known only at run time.
    pub fn context_of_kind(&self, resource: &ApiResource) -> Context<DynamicObject> {
        self.context_with_all_kinds(Some(resource.clone()))
    }

    fn context_with_all_kinds<K>(&self, primary: Option<ApiResource>) -> Context<K> {
        if let Some(primary) = &primary {
            self.server.state.lock().storage.learn(primary);
        }
        let kind = primary.as_ref().map(|primary| primary.kind.to_lowercase());
        let name = self.controller.clone().or(kind).unwrap_or_default();
        self.contexts.context(name, primary)
    }

    /// Returns a context with the caches that a controller declares, with namespaces, selectors, indexes and
    /// names. A read of another kind is an error, as in a manager.
    ///
    /// `K` is the type of the reconciler's context.
    ///
    /// # Errors
    /// The controller's watches contradict each other.
    pub fn context_of<K, Q: QueueKey>(&self, controller: &Controller<Q>) -> Result<Context<K>> {
        self.contexts.context_of(controller)
    }

    /// Reconciles a key once, with a context as [`context_of`](Self::context_of) returns. As in a manager, a reconcile does not repeat
    /// the [apply](Context::apply) of an earlier reconcile while the object is unchanged.
    ///
    /// # Errors
    /// The reconcile failed, or the controller's watches contradict each other.
    pub async fn reconcile<Q: QueueKey>(&self, controller: &Controller<Q>, key: Q) -> Result<Action> {
        self.contexts.reconcile(controller, key).await
    }

    /// Connects webhooks with this cluster: with the declared caches, and with [`client`](Self::client). A read of a kind that no
    /// webhook declares is an error, as in a manager.
    ///
    /// ```
    /// # use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
    /// # use windlass_runtime::AdmissionWebhookExt as _;
    /// # use windlass_test::fake::FakeCluster;
    /// # use windlass_runtime::webhook::{Admission, AdmissionChange, AdmissionContext, AdmissionDenial, AdmissionWebhook, Webhooks};
    /// # async fn validate(_: AdmissionChange<ConfigMap>, _: AdmissionContext) -> Result<(), AdmissionDenial> { Ok(()) }
    /// # async fn example(config: ConfigMap, namespace: Namespace) -> windlass_runtime::Result<()> {
    /// let webhook = AdmissionWebhook::validator::<ConfigMap>(validate).reads::<Namespace>();
    /// let webhooks = FakeCluster::new([namespace]).webhooks(Webhooks::new().admission(webhook))?;
    /// assert!(webhooks.admit(Admission::create(&config)).await.is_allowed());
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Two webhooks declare different caches of a kind.
    pub fn webhooks(&self, webhooks: Webhooks) -> Result<Webhooks> {
        self.contexts.webhooks(webhooks)
    }

    /// Returns the client of the contexts. Writes through the client count as the reconciler's.
    pub fn client(&self) -> &Client {
        self.contexts.client()
    }

    /// Returns the clock and randomness.
    pub fn env(&self) -> &Env {
        &self.server.env
    }

    /// Returns the writes that succeeded since the last [`take_writes`](Self::take_writes), dry runs
    /// excluded. Changes by the test are not included.
    pub fn writes(&self) -> Vec<Write> {
        self.server.state.lock().writes.clone()
    }

    /// Returns the writes like [`writes`](Self::writes), and forgets the writes.
    pub fn take_writes(&self) -> Vec<Write> {
        std::mem::take(&mut self.server.state.lock().writes)
    }

    /// Returns the Events that were recorded through [`Context::recorder`].
    pub fn events(&self) -> Vec<Event> {
        self.events.lock().clone()
    }

    /// Adds a fault. If several faults match a request, the fault that was added first strikes. A time-out strikes at once.
    ///
    /// # Panics
    /// The fault is not a fault of a single request: faults of watches, of the clock and of the process need [`Faults`](crate::Faults).
    #[track_caller]
    pub fn inject(&self, rule: FaultRule) {
        fault::check(&rule.fault);
        self.server.state.lock().rules.add(rule);
    }

    /// Lets all requests succeed again.
    pub fn clear_faults(&self) {
        self.server.state.lock().rules.clear();
    }

    /// Panics unless every added fault has struck the wanted number of times, [cleared](Self::clear_faults) faults included, because a
    /// test without the fault proves no behaviour.
    #[track_caller]
    pub fn assert_all_struck(&self) {
        let unfinished = self.server.state.lock().rules.unfinished();
        assert!(unfinished.is_empty(), "these faults did not strike: {unfinished}");
    }
}

impl CacheSource for Server {
    fn informer(&self, resource: &ApiResource, options: CacheOptions) -> Result<SharedInformer> {
        let mut state = self.state.lock();
        state.storage.learn(resource);
        state.storage.informer(resource, options)
    }

    fn resource_of_kind(&self, api_version: &str, kind: &str) -> ApiResource {
        self.state.lock().storage.resource_of(api_version, kind)
    }
}

/// Makes the client of the informers. The watches are never started.
fn unused_client() -> Client {
    let service = |_: Request<Body>| async {
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
        Ok::<_, Infallible>(response)
    };
    Client::new(tower::service_fn(service), "default")
}

impl std::fmt::Debug for FakeCluster {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FakeCluster").field("writes", &self.writes()).finish_non_exhaustive()
    }
}
