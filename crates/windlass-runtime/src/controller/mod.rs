//! Controllers: watches that fill a queue of keys, and workers that reconcile them.

mod any_controller;
mod current;
mod handle;
mod hot_loop;
mod outcome;
mod permit;
mod remembered_keys;
mod rights;
mod running;
mod shard;
mod work;
mod worker;
mod write_barrier;

use std::{sync::Arc, time::Duration};

use futures::{Stream, future::BoxFuture};
use kube_core::{ApiResource, DynamicObject, Resource};
use windlass_cache::{ObjectKey, RawObject};
use windlass_workqueue::RateLimiter;

pub use self::handle::{ControllerHandle, WatchId};
pub(crate) use self::{
    any_controller::AnyController, current::reconciles, outcome::Outcome, running::Running,
};
use self::{
    shard::{ShardHash, StoredKeys},
    work::Work,
};
use crate::{
    context::{Context, ControllerContext},
    error::{BoxError, Result},
    handler::{MapContext, QueueKey},
    informer::WatchOptions,
    kind::{Kind, Object},
    permission::Permission,
    predicate::Predicate,
    reconcile::{Action, Reconciler},
    source::Source,
    watch::Watch,
};

/// A reconciler, the watches that tell it when to run, and how it is run.
///
/// ```
/// use k8s_openapi::api::{apps::v1::Deployment, core::v1::{ConfigMap, Pod}};
/// use windlass_runtime::{Action, Context, Controller, ObjectKey, Result};
///
/// async fn reconcile(key: ObjectKey, cx: Context<ConfigMap>) -> Result<Action> {
///     let Some(config) = cx.get(&key)? else { return Ok(Action::done()) };
///     let pods = cx.owned_by::<Pod>(&config)?;
///     tracing::info!(pods = pods.len());
///     Ok(Action::done())
/// }
///
/// let controller = Controller::of::<ConfigMap>(reconcile)
///     .owns::<Pod>()
///     .watches::<Deployment>(|deployment, _| {
///         let name = deployment.metadata.labels.as_ref().and_then(|labels| labels.get("config"));
///         let namespace = deployment.metadata.namespace.as_deref();
///         Ok(name.map(|name| ObjectKey::new(namespace, name)).into_iter().collect())
///     })
///     .concurrency(4);
/// # let _ = controller;
/// ```
///
/// Its reconciler may read the kinds that are watched here, and no others.
pub struct Controller<Q: QueueKey = ObjectKey> {
    name: String,
    primary: Option<Kind>,
    primary_watch: Option<Watch<Q>>,
    reconcile: ErasedReconcile<Q>,
    watches: Vec<Watch<Q>>,
    sources: Vec<Source<Q>>,
    predicates: Vec<Predicate>,
    settings: Settings,
    needs: Vec<Permission>,
    /// How keys are assigned to replicas, if they are split.
    shard_hash: Option<ShardHash<Q>>,
    /// How keys are found in the caches of the controller's own kind.
    stored_keys: Option<StoredKeys<Q>>,
    handle: ControllerHandle<Q>,
    /// A method that needs a primary kind, which the controller does not have: an error at the start.
    misused: Option<&'static str>,
    /// Set by [`prepare`](AnyController::prepare).
    work: Option<Arc<Work<Q>>>,
}

/// A reconciler with its types erased: everything that calls it is compiled once.
pub(crate) type ErasedReconcile<Q> =
    Arc<dyn Fn(Q, Arc<ControllerContext>) -> BoxFuture<'static, Result<Action, BoxError>> + Send + Sync>;

#[derive(Clone)]
pub(crate) struct Settings {
    pub(crate) concurrency: usize,
    pub(crate) reconcile_timeout: Option<Duration>,
    pub(crate) cache_sync_timeout: Option<Duration>,
    pub(crate) write_wait: Duration,
    pub(crate) rate_limiter: Option<RateLimiter>,
    pub(crate) needs_leader: bool,
    pub(crate) warm_up: bool,
    pub(crate) slow_hot_loops: bool,
    /// The field manager of writes, if it is not the controller's name.
    pub(crate) field_manager: Option<String>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            concurrency: 1,
            reconcile_timeout: None,
            cache_sync_timeout: None,
            write_wait: Duration::from_secs(2),
            rate_limiter: None,
            needs_leader: true,
            warm_up: false,
            slow_hot_loops: true,
            field_manager: None,
        }
    }
}

fn erase<K, Q, R>(reconciler: R) -> ErasedReconcile<Q>
where
    K: 'static,
    Q: QueueKey,
    R: Reconciler<K, Q>,
{
    let reconciler = Arc::new(reconciler);
    Arc::new(move |key, shared| {
        let reconciler = reconciler.clone();
        Box::pin(async move { reconciler.reconcile(key, Context::new(shared)).await.map_err(Into::into) })
    })
}

impl Controller<ObjectKey> {
    /// A controller of the kind `K`, which it watches. Its name is the kind in lower case; see [`named`](Self::named).
    pub fn of<K>(reconciler: impl Reconciler<K>) -> Self
    where
        K: Object + Resource<DynamicType = ()>,
    {
        Self::of_kind(Kind::of::<K>(), erase(reconciler))
    }

    /// A controller of a kind that is known only at run time.
    ///
    /// ```
    /// use kube_core::{ApiResource, DynamicObject, GroupVersionKind};
    /// use windlass_runtime::{Action, Context, Controller, ObjectKey, Result};
    ///
    /// async fn reconcile(key: ObjectKey, cx: Context<DynamicObject>) -> Result<Action> {
    ///     let Some(object) = cx.get(&key)? else { return Ok(Action::done()) };
    ///     tracing::info!(replicas = object.data["spec"]["replicas"].as_u64());
    ///     Ok(Action::done())
    /// }
    ///
    /// let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("zhhnzw.mock.com", "v1", "CustomPod"));
    /// let controller = Controller::of_dynamic(kind, reconcile);
    /// # let _ = controller;
    /// ```
    pub fn of_dynamic(resource: ApiResource, reconciler: impl Reconciler<DynamicObject>) -> Self {
        Self::of_kind(Kind::dynamic(resource), erase(reconciler))
    }

    fn of_kind(kind: Kind, reconcile: ErasedReconcile<ObjectKey>) -> Self {
        let mut controller = Self::with_reconcile(kind.resource.kind.to_lowercase(), reconcile);
        controller.primary_watch = Some(Watch::primary_of(kind.clone()));
        controller.primary = Some(kind);
        controller.stored_keys = Some(shard::OBJECT_KEYS);
        controller
    }

    /// Watches objects of kind `C` whose controller is an object of this controller's kind: a change of one concerns its owner.
    pub fn owns<C>(self) -> Self
    where
        C: Object + Resource<DynamicType = ()>,
    {
        self.owns_with::<C>(|watch| watch)
    }

    /// As [`owns`](Self::owns), with options of the watch.
    ///
    /// ```
    /// # use k8s_openapi::api::{apps::v1::Deployment, core::v1::ConfigMap};
    /// # use windlass_runtime::{Action, Context, Controller, ObjectKey, Predicate, Result};
    /// # async fn reconcile(_: ObjectKey, _: Context<ConfigMap>) -> Result<Action> { Ok(Action::done()) }
    /// let controller = Controller::of::<ConfigMap>(reconcile)
    ///     .owns_with::<Deployment>(|watch| watch.predicate(Predicate::generation_changed()));
    /// # let _ = controller;
    /// ```
    pub fn owns_with<C>(self, configure: impl FnOnce(Watch) -> Watch) -> Self
    where
        C: Object + Resource<DynamicType = ()>,
    {
        self.watch(configure(Watch::owned::<C>()))
    }
}

impl<Q: QueueKey> Controller<Q> {
    /// A controller whose keys are not the keys of one kind, but any small values: uids, namespaces.
    pub fn keyed<K: 'static>(name: impl Into<String>, reconciler: impl Reconciler<K, Q>) -> Self {
        Self::with_reconcile(name.into(), erase(reconciler))
    }

    fn with_reconcile(name: String, reconcile: ErasedReconcile<Q>) -> Self {
        Self {
            name,
            primary: None,
            primary_watch: None,
            reconcile,
            watches: Vec::new(),
            sources: Vec::new(),
            predicates: Vec::new(),
            settings: Settings::default(),
            needs: Vec::new(),
            shard_hash: None,
            stored_keys: None,
            handle: ControllerHandle::new(),
            misused: None,
            work: None,
        }
    }

    /// Names the controller, in logs and metrics and as field manager of its writes. Names are unique in a manager.
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Sets the field manager of the controller's writes. Default: the name of the controller.
    ///
    /// Set it when several controllers of one program own fields together, or when fields must stay with an earlier manager.
    pub fn field_manager(mut self, name: impl Into<String>) -> Self {
        self.settings.field_manager = Some(name.into());
        self
    }

    /// Drops changes of the controller's own kind that do not match. Other watches have their own predicates:
    /// [`owns_with`](Controller::owns_with), [`watches_with`](Self::watches_with).
    ///
    /// A controller made by [`keyed`](Self::keyed) has no kind of its own, and does not start with this.
    pub fn predicate(self, predicate: Predicate) -> Self {
        self.configure_primary("predicate", |watch| watch.predicate(predicate))
    }

    /// Sets what is watched of the controller's own kind and how it is kept.
    ///
    /// A controller made by [`keyed`](Self::keyed) has no kind of its own, and does not start with this.
    pub fn options(self, options: WatchOptions) -> Self {
        self.configure_primary("options", |watch| watch.options(options))
    }

    /// Reconciles every object of the controller's own kind this often, even if nothing changes. Default: never.
    ///
    /// A resync is an update without a change: predicates such as `generation_changed` drop the update, as in controller-runtime.
    ///
    /// A controller made by [`keyed`](Self::keyed) has no kind of its own, and does not start with this.
    pub fn resync(self, period: Duration) -> Self {
        self.configure_primary("resync", |watch| watch.resync(period))
    }

    fn configure_primary(
        mut self,
        method: &'static str,
        configure: impl FnOnce(Watch<Q>) -> Watch<Q>,
    ) -> Self {
        match self.primary_watch.take() {
            Some(watch) => self.primary_watch = Some(configure(watch)),
            None => self.misused = Some(method),
        }
        self
    }

    /// Drops changes that do not match, of every watch of this controller.
    pub fn predicate_for_all(mut self, predicate: Predicate) -> Self {
        self.predicates.push(predicate);
        self
    }

    /// Watches a kind and enqueues the keys that `mapper` returns. Of an update, both states are mapped.
    ///
    /// If `mapper` returns an error, the object is mapped again with back-off.
    pub fn watches<W>(
        self,
        mapper: impl Fn(&W, &MapContext) -> Result<Vec<Q>> + Send + Sync + 'static,
    ) -> Self
    where
        W: Object + Resource<DynamicType = ()>,
    {
        self.watch(Watch::mapped::<W>(mapper))
    }

    /// As [`watches`](Self::watches), with options of the watch.
    pub fn watches_with<W>(
        self,
        mapper: impl Fn(&W, &MapContext) -> Result<Vec<Q>> + Send + Sync + 'static,
        configure: impl FnOnce(Watch<Q>) -> Watch<Q>,
    ) -> Self
    where
        W: Object + Resource<DynamicType = ()>,
    {
        self.watch(configure(Watch::mapped::<W>(mapper)))
    }

    /// Watches a kind to read it from its cache. Its changes enqueue nothing.
    pub fn reads<W>(self) -> Self
    where
        W: Object + Resource<DynamicType = ()>,
    {
        self.watch(Watch::cache::<W>())
    }

    /// Watches the metadata of a kind, which may be known only at run time.
    pub fn watches_metadata(
        self,
        resource: ApiResource,
        mapper: impl Fn(&RawObject, &MapContext) -> Result<Vec<Q>> + Send + Sync + 'static,
    ) -> Self {
        self.watch(Watch::metadata(resource, mapper))
    }

    /// Adds a watch.
    pub fn watch(mut self, watch: Watch<Q>) -> Self {
        self.watches.push(watch);
        self
    }

    /// Enqueues the keys of a stream. For events that have to be mapped to keys, and for timers, see [`source`](Self::source).
    pub fn external(self, keys: impl Stream<Item = Q> + Send + 'static) -> Self {
        self.source(Source::keys(keys))
    }

    /// Adds a source of keys other than a watch: an [`EventStream`](crate::source::EventStream), a
    /// [`Poller`](crate::source::Poller) or a [`Timer`](crate::source::Timer).
    ///
    /// It begins with the watches: at the start of the controller, or earlier with [`warm_up`](Self::warm_up).
    pub fn source(mut self, source: impl Into<Source<Q>>) -> Self {
        self.sources.push(source.into());
        self
    }

    /// Sets how many keys are reconciled at once. Default: 1. One key is never reconciled twice at once.
    pub fn concurrency(mut self, workers: usize) -> Self {
        self.settings.concurrency = workers.max(1);
        self
    }

    /// Cancels a reconcile that takes longer, and counts it as failed. Default: no limit.
    pub fn reconcile_timeout(mut self, limit: Duration) -> Self {
        self.settings.reconcile_timeout = Some(limit);
        self
    }

    /// Sets how long the first lists may take before the controller, and with it the manager, ends with an error.
    ///
    /// Default: no limit. A kind that cannot be listed, because its CRD or a permission is missing, stops this controller only; readiness
    /// and the log name the kind, and the controller starts when the list succeeds. controller-runtime's default is 2 minutes.
    pub fn cache_sync_timeout(mut self, limit: Duration) -> Self {
        self.settings.cache_sync_timeout = Some(limit);
        self
    }

    /// Sets how long a key waits, at most, for the caches to see the writes of its last reconcile. Default: 2 s. Zero turns the wait off.
    pub fn read_your_writes_timeout(mut self, limit: Duration) -> Self {
        self.settings.write_wait = limit;
        self
    }

    /// Sets the back-off of failing keys. Default: 5 ms · 2ⁿ up to 1000 s, per key, as in client-go.
    pub fn rate_limiter(mut self, limiter: RateLimiter) -> Self {
        self.settings.rate_limiter = Some(limiter);
        self
    }

    /// Runs the controller on every replica. Default: only on the leader, if leaders are elected.
    pub fn without_leader_election(mut self) -> Self {
        self.settings.needs_leader = false;
        self
    }

    /// Splits the keys among the replicas instead of running the controller on the leader: each replica reconciles its own keys, and a key
    /// is never reconciled by two at once. The manager needs [`Manager::sharding`](crate::Manager::sharding).
    ///
    /// The caches hold all objects on every replica.
    pub fn sharded(mut self) -> Self {
        self.shard_hash = Some(shard::hash_of_text());
        self.without_leader_election()
    }

    /// As [`sharded`](Self::sharded), for keys that must be on the same replica if `shard_key` returns the same text for them: all keys of
    /// a namespace, for instance.
    ///
    /// All replicas must use the same function. When it changes, stop the old replicas before the new ones start (the strategy `Recreate`
    /// of a Deployment), or give [`Sharding`](crate::sharding::Sharding) another name.
    ///
    /// ```
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use windlass_runtime::{Action, Context, Controller, ObjectKey, Result};
    /// # async fn reconcile(_: ObjectKey, _: Context<ConfigMap>) -> Result<Action> { Ok(Action::done()) }
    /// let controller = Controller::of::<ConfigMap>(reconcile)
    ///     .sharded_by(|key| key.namespace().unwrap_or_default().to_owned());
    /// # let _ = controller;
    /// ```
    pub fn sharded_by(mut self, shard_key: impl Fn(&Q) -> String + Send + Sync + 'static) -> Self {
        self.shard_hash = Some(Arc::new(move |key| crate::sharding::hash(&shard_key(key))));
        self.without_leader_election()
    }

    /// Fills the queue on stand-by replicas too, so that work begins at once when one of them becomes the leader.
    pub fn warm_up(mut self) -> Self {
        self.settings.warm_up = true;
        self
    }

    /// Lets keys be reconciled in quick succession with a write each time.
    ///
    /// By default, a key that was reconciled 20 times within 10 s, each time with a write, is reconciled at most twice a second until it
    /// writes less often. It is logged, and counted in `windlass_hot_loops_total`.
    pub fn allow_hot_loops(mut self) -> Self {
        self.settings.slow_hot_loops = false;
        self
    }

    /// Returns a handle that outlives this value: it queues keys, and adds and removes watches while the controller runs.
    pub fn handle(&self) -> ControllerHandle<Q> {
        self.handle.clone()
    }

    /// The kinds that are watched, in the order of their declaration: what the caches hold and RBAC must allow.
    pub fn watched(&self) -> impl Iterator<Item = &ApiResource> {
        self.declared_watches().map(|watch| &watch.kind.resource)
    }

    /// The watches, before [`prepare`](AnyController::prepare) takes them.
    pub(crate) fn declared_watches(&self) -> impl Iterator<Item = &Watch<Q>> {
        self.primary_watch.iter().chain(&self.watches)
    }

    /// The controller's own kind, if it has one.
    pub(crate) fn primary(&self) -> Option<&Kind> {
        self.primary.as_ref()
    }

    /// Reconciles a key with a context that was made elsewhere.
    pub(crate) fn reconcile_once(
        &self,
        key: Q,
        context: Arc<ControllerContext>,
    ) -> BoxFuture<'static, Result<Action, BoxError>> {
        (self.reconcile)(key, context)
    }
}
