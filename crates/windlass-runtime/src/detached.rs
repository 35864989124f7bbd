//! Contexts without a manager, for the fake cluster of `windlass-test`. Not covered by semantic versioning.

use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response};
use kube_client::{Client, client::Body};
use kube_core::ApiResource;
use windlass_cache::RawObject;
use windlass_webhook::Webhooks;

use crate::{
    client::{self, ApiClient},
    context::{
        Caches, Clusters, Context, ControllerContext, KnownKinds, UndeclaredCaches, field_manager_parameter,
    },
    controller::{AnyController, Controller},
    env::Env,
    error::{BoxError, Error, Result},
    events::Broadcaster,
    handler::QueueKey,
    informer::{CacheOptions, SharedInformer},
    metrics::Metrics,
    read_your_writes::{Admission, WriteJournal},
    reader::Reader,
    reconcile::Action,
    undecodable::UndecodableReporter,
    webhooks::{WebhookCluster, reads_of},
};
pub use crate::{
    context::without_nulls,
    events::RecordedEvent,
    resource_path::{GroupResource, ResourcePath, query_flag},
};

/// Makes the caches of the contexts. Every cache shows its objects from the beginning.
pub trait CacheSource: Send + Sync {
    /// Makes the cache of a kind.
    ///
    /// # Errors
    /// Two caches of the kind contradict each other.
    fn informer(&self, resource: &ApiResource, options: CacheOptions) -> Result<SharedInformer>;

    /// Returns the resource with this API version and kind.
    fn resource_of_kind(&self, api_version: &str, kind: &str) -> ApiResource;
}

/// Makes contexts that read caches which no watch fills, and send their requests to a service in this process.
pub struct DetachedContexts {
    source: Arc<dyn CacheSource>,
    env: Env,
    client: Client,
    api: ApiClient,
    journal: WriteJournal,
    broadcaster: Broadcaster,
    metrics: Metrics,
}

impl DetachedContexts {
    /// Sends the requests of the contexts to `service`.
    ///
    /// # Errors
    /// The client cannot be built.
    pub fn new<S, B>(service: S, env: Env, source: Arc<dyn CacheSource>) -> Result<Self>
    where
        S: tower::Service<Request<Body>, Response = Response<B>> + Send + 'static,
        S::Future: Send + 'static,
        S::Error: Into<BoxError>,
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let (client, api, state) = client::in_process_without_retries(service)?;
        Ok(Self {
            source,
            env,
            client,
            api,
            journal: state.journal.clone(),
            broadcaster: Broadcaster::new(),
            metrics: Metrics::new(),
        })
    }

    /// Calls a function with each event that a context records.
    pub fn watch_events(&self, watcher: impl Fn(&RecordedEvent) + Send + Sync + 'static) {
        self.broadcaster.start_watching(watcher);
    }

    /// Returns the client of the contexts.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Returns a context of the controller `name`, which may read every kind.
    pub fn context<K>(&self, name: String, primary: Option<ApiResource>) -> Context<K> {
        let caches = self.caches(Reader::Controller(name.clone()));
        let caches = caches.with_undeclared(Arc::new(Undeclared(self.source.clone())));
        Context::new(self.shared(name, primary, caches))
    }

    /// Returns a context with the caches that a controller declares.
    ///
    /// # Errors
    /// The controller's watches contradict each other.
    pub fn context_of<K, Q: QueueKey>(&self, controller: &Controller<Q>) -> Result<Context<K>> {
        Ok(Context::new(self.shared_of(controller)?))
    }

    /// Reconciles a key once, with the caches that the controller declares.
    ///
    /// # Errors
    /// The reconcile failed, or the controller's watches contradict each other.
    pub async fn reconcile<Q: QueueKey>(&self, controller: &Controller<Q>, key: Q) -> Result<Action> {
        controller.reconcile_once(key, self.shared_of(controller)?).await.map_err(Error::other)
    }

    /// Connects webhooks with the caches that they declare, and with the client.
    ///
    /// # Errors
    /// Two webhooks declare different caches of a kind.
    pub fn webhooks(&self, webhooks: Webhooks) -> Result<Webhooks> {
        let caches = self.caches(Reader::Runnable("webhooks".to_owned()));
        for cache in reads_of(&webhooks) {
            caches.declare(
                cache.name.as_deref(),
                &self.source.informer(&cache.kind.resource, cache.options)?,
            )?;
        }
        Ok(webhooks.extension(WebhookCluster { client: self.client.clone(), caches: Arc::new(caches) }))
    }

    fn shared_of<Q: QueueKey>(&self, controller: &Controller<Q>) -> Result<Arc<ControllerContext>> {
        let name = AnyController::name(controller).to_owned();
        let caches = self.caches(Reader::Controller(name.clone()));
        for watch in controller.declared_watches() {
            let informer = self.source.informer(&watch.kind.resource, watch.options.clone())?;
            if watch.readable {
                caches.declare(watch.name.as_deref(), &informer)?;
            }
        }
        let primary = controller.primary().map(|kind| kind.resource.clone());
        Ok(self.shared(name, primary, caches))
    }

    fn caches(&self, reader: Reader) -> Caches {
        let name = reader.name();
        let reporter = UndecodableReporter::new(
            self.broadcaster.recorder(name),
            self.metrics.reconcile.undecodable_of(name),
        );
        Caches::new(reader, self.journal.clone(), Arc::new(reporter))
    }

    fn shared(
        &self,
        controller: String,
        primary: Option<ApiResource>,
        caches: Caches,
    ) -> Arc<ControllerContext> {
        Arc::new(ControllerContext {
            clusters: Clusters::default(),
            recorder: self.broadcaster.recorder(controller.as_str()),
            field_manager: field_manager_parameter(&controller),
            kinds: KnownKinds::default(),
            controller,
            primary,
            client: self.client.clone(),
            api: self.api.clone(),
            caches: Arc::new(caches),
            metrics: self.metrics.clone(),
            env: self.env.clone(),
        })
    }
}

impl std::fmt::Debug for DetachedContexts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DetachedContexts").finish_non_exhaustive()
    }
}

struct Undeclared(Arc<dyn CacheSource>);

impl UndeclaredCaches for Undeclared {
    fn informer(&self, resource: &ApiResource) -> Result<SharedInformer> {
        self.0.informer(resource, CacheOptions::default())
    }

    fn resource_of_kind(&self, api_version: &str, kind: &str) -> ApiResource {
        self.0.resource_of_kind(api_version, kind)
    }
}

/// Returns whether a cache with these options holds an object; `None` if the field selector decides.
pub fn admits(options: &CacheOptions, object: &RawObject) -> Option<bool> {
    match options.admits(object) {
        Admission::Held => Some(true),
        Admission::NotHeld => Some(false),
        Admission::Unknown => None,
    }
}

/// Returns the field selector of a cache.
pub fn field_selector(options: &CacheOptions) -> Option<&str> {
    options.field_selector.as_deref()
}
