//! Controllers: watches that fill a queue of keys, and workers that reconcile the keys.

mod active_watch;
mod any_controller;
mod current;
mod handle;
mod outcome;
mod reconcile_right;
mod remembered_keys;
mod rights;
mod running;
mod shard;
mod work;
mod worker;
mod write_barrier;

use std::{sync::Arc, time::Duration};

use futures::future::BoxFuture;
use kube_core::{ApiResource, Resource};
use windlass_cache::ObjectKey;
use windlass_workqueue::RateLimiter;

pub use self::handle::{ControllerHandle, WatchId};
pub(crate) use self::{
    any_controller::AnyController, current::reconciles, outcome::Outcome, running::Running,
};
use self::{
    handle::OwnHandle,
    shard::{ShardHash, StoredKeys},
    work::Work,
};
use crate::{
    context::{Context, ControllerContext},
    error::{BoxError, Result},
    handler::{HandlerContext, QueueKey},
    informer::CacheOptions,
    kind::{Kind, Object},
    kind_ref::{IntoKind, KindRef, kind},
    permission::Permission,
    predicate::Predicate,
    reconcile::{Action, Reconciler},
    source::Source,
    watch::Watch,
};

/// A reconciler, the watches that enqueue keys for the reconciler, and the options of both.
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
///     .max_concurrent_reconciles(4);
/// # let _ = controller;
/// ```
///
/// The reconciler may read only the kinds that the controller watches.
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
    /// The assignment of keys to replicas, if the replicas split the keys.
    shard_hash: Option<ShardHash<Q>>,
    /// How keys are found in the caches of the controller's own kind.
    stored_keys: Option<StoredKeys<Q>>,
    handle: OwnHandle<Q>,
    /// A called method that needs a primary kind, while the controller has none: an error at the start.
    misused: Option<&'static str>,
    /// Set by [`prepare`](AnyController::prepare).
    work: Option<Arc<Work<Q>>>,
}

/// A reconciler with erased types: callers of the reconciler are compiled once.
pub(crate) type ErasedReconcile<Q> =
    Arc<dyn Fn(Q, Arc<ControllerContext>) -> BoxFuture<'static, Result<Action, BoxError>> + Send + Sync>;

#[derive(Clone)]
pub(crate) struct Settings {
    pub(crate) max_concurrent_reconciles: usize,
    pub(crate) reconcile_timeout: Option<Duration>,
    pub(crate) cache_sync_timeout: Option<Duration>,
    pub(crate) write_barrier_timeout: Duration,
    pub(crate) rate_limiter: Option<RateLimiter>,
    pub(crate) needs_leader: bool,
    pub(crate) warm_up: bool,
    pub(crate) slow_hot_loops: bool,
    pub(crate) skip_own_writes: bool,
    /// The field manager of writes. `None`: the controller's name.
    pub(crate) field_manager: Option<String>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            max_concurrent_reconciles: 1,
            reconcile_timeout: None,
            cache_sync_timeout: None,
            write_barrier_timeout: Duration::from_secs(2),
            rate_limiter: None,
            needs_leader: true,
            warm_up: false,
            slow_hot_loops: true,
            skip_own_writes: false,
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
    /// Makes a controller that watches and reconciles the kind `K`. The name of the controller is the kind in lower case; see
    /// [`named`](Self::named).
    pub fn of<K>(reconciler: impl Reconciler<K>) -> Self
    where
        K: Object + Resource<DynamicType = ()>,
    {
        Self::with_primary(kind::<K>(), erase(reconciler))
    }

    /// Works like [`of`](Self::of), for any [kind](crate::KindRef): a kind that is known only at run time, or
    /// a watch of only the metadata.
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
    /// let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("zhhnzw.mock.com", "v1", "CustomPod"));
    /// let controller = Controller::of_kind(&resource, reconcile);
    /// # let _ = controller;
    /// ```
    pub fn of_kind<I>(kind: I, reconciler: impl Reconciler<I::Object>) -> Self
    where
        I: IntoKind<Object: 'static>,
    {
        Self::with_primary(kind.into_kind(), erase(reconciler))
    }

    fn with_primary<K>(kind: KindRef<K>, reconcile: ErasedReconcile<ObjectKey>) -> Self {
        let mut controller = Self::with_reconcile(kind.kind.resource.kind.to_lowercase(), reconcile);
        controller.primary = Some(kind.kind.clone());
        controller.primary_watch = Some(Watch::primary(kind));
        controller.stored_keys = Some(shard::OBJECT_KEYS);
        controller
    }

    /// Watches objects of kind `C` whose controller is an object of this controller's kind: a change enqueues the owner.
    ///
    /// With options: `.watch(Watch::owned(kind::<C>())..)`.
    ///
    /// ```
    /// # use k8s_openapi::api::{apps::v1::Deployment, core::v1::{ConfigMap, Pod}};
    /// # use windlass_runtime::{Action, Context, Controller, ObjectKey, Predicate, Result, Watch, kind};
    /// # async fn reconcile(_: ObjectKey, _: Context<ConfigMap>) -> Result<Action> { Ok(Action::done()) }
    /// let controller = Controller::of::<ConfigMap>(reconcile)
    ///     .owns::<Pod>()
    ///     .watch(Watch::owned(kind::<Deployment>()).predicate(Predicate::generation_changed()));
    /// # let _ = controller;
    /// ```
    pub fn owns<C>(self) -> Self
    where
        C: Object + Resource<DynamicType = ()>,
    {
        self.watch(Watch::owned(kind::<C>()))
    }
}

impl<Q: QueueKey> Controller<Q> {
    /// Makes a controller whose keys are any small values, such as uids or namespaces, instead of the keys of a kind.
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
            handle: OwnHandle::new(),
            misused: None,
            work: None,
        }
    }

    /// Names the controller, in logs and metrics and as field manager of the writes. Names are unique in a manager.
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Sets the field manager of the controller's writes. Default: the name of the controller.
    ///
    /// Useful when several controllers of a program own fields together, or when fields must stay with an earlier manager.
    pub fn field_manager(mut self, name: impl Into<String>) -> Self {
        self.settings.field_manager = Some(name.into());
        self
    }

    /// Drops changes of the controller's own kind that do not match. Other watches have their own predicates:
    /// [`Watch::predicate`].
    ///
    /// A controller of [`keyed`](Self::keyed) has no own kind, and does not start with a resync.
    pub fn predicate(self, predicate: Predicate) -> Self {
        self.configure_primary("predicate", |watch| watch.predicate(predicate))
    }

    /// Sets the options of the cache of the controller's own kind.
    ///
    /// A controller of [`keyed`](Self::keyed) has no own kind, and does not start with a resync.
    pub fn options(self, options: CacheOptions) -> Self {
        self.configure_primary("options", |watch| watch.options(options))
    }

    /// Reconciles every object of the controller's own kind at this interval, even without a change. Default:
    /// never.
    ///
    /// A resync is an update without a change: predicates such as `generation_changed` drop the update, as in controller-runtime.
    ///
    /// A controller of [`keyed`](Self::keyed) has no own kind, and does not start with a resync.
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
    pub fn with_event_filter(mut self, predicate: Predicate) -> Self {
        self.predicates.push(predicate);
        self
    }

    /// Watches a kind and enqueues the keys that `mapper` returns. Of an update, both states are mapped.
    ///
    /// If `mapper` returns an error, the object is mapped again with back-off. With options:
    /// [`.watch(Watch::mapped(kind::<W>(), mapper)..)`](Watch::mapped).
    pub fn watches<W>(
        self,
        mapper: impl Fn(&W, &HandlerContext) -> Result<Vec<Q>> + Send + Sync + 'static,
    ) -> Self
    where
        W: Object + Resource<DynamicType = ()>,
    {
        self.watch(Watch::mapped(kind::<W>(), mapper))
    }

    /// Watches a kind to read the kind from its cache. A change enqueues no key. With options: `.watch(Watch::reads_only(kind::<W>())..)`.
    pub fn reads<W>(self) -> Self
    where
        W: Object + Resource<DynamicType = ()>,
    {
        self.watch(Watch::reads_only(kind::<W>()))
    }

    /// Adds a watch, with every option.
    pub fn watch(mut self, watch: Watch<Q>) -> Self {
        self.watches.push(watch);
        self
    }

    /// Adds a source of keys other than a watch: a [stream of keys](Source::keys), an [`EventStream`](crate::source::EventStream), a
    /// [`Poller`](crate::source::Poller) or a [`Timer`](crate::source::Timer).
    ///
    /// The source begins with the watches: at the start of the controller, or earlier with [`enable_warmup`](Self::enable_warmup).
    pub fn source(mut self, source: impl Into<Source<Q>>) -> Self {
        self.sources.push(source.into());
        self
    }

    /// Sets how many keys are reconciled at once. Default: 1. A key is never reconciled twice at once.
    pub fn max_concurrent_reconciles(mut self, workers: usize) -> Self {
        self.settings.max_concurrent_reconciles = workers.max(1);
        self
    }

    /// Cancels a reconcile that takes longer, and counts the reconcile as failed. Default: no limit.
    pub fn reconcile_timeout(mut self, limit: Duration) -> Self {
        self.settings.reconcile_timeout = Some(limit);
        self
    }

    /// Sets how long the first lists may take before the controller and the manager end with an error.
    ///
    /// Default: no limit. A kind that cannot be listed, because the CRD or a permission is missing, stops this controller only; readiness
    /// and the log name the kind, and the controller starts when the list succeeds. controller-runtime's default is 2 minutes.
    pub fn cache_sync_timeout(mut self, limit: Duration) -> Self {
        self.settings.cache_sync_timeout = Some(limit);
        self
    }

    /// Sets how long a key waits, at most, for the caches to see the writes of the last reconcile of the key. Default: 2 s. Zero turns the wait off.
    pub fn write_barrier_timeout(mut self, limit: Duration) -> Self {
        self.settings.write_barrier_timeout = limit;
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

    /// Splits the keys among the replicas instead of running the controller on the leader: each replica reconciles a part of the keys, and a key
    /// is never reconciled by two at once. The manager needs [`Manager::sharding`](crate::Manager::sharding).
    ///
    /// The caches hold all objects on every replica.
    pub fn sharded(mut self) -> Self {
        self.shard_hash = Some(shard::hash_of_text());
        self.without_leader_election()
    }

    /// Works like [`sharded`](Self::sharded), for keys that belong together: keys for which `shard_key`
    /// returns the same text are on the same replica, such as all keys of a namespace, for instance.
    ///
    /// All replicas must use the same function. When the function changes, stop the old replicas before the new ones start (the strategy `Recreate`
    /// of a Deployment), or change the name of the [`Sharding`](crate::sharding::Sharding).
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

    /// Fills the queue on stand-by replicas too: a new leader begins to work at once.
    pub fn enable_warmup(mut self) -> Self {
        self.settings.warm_up = true;
        self
    }

    /// Allows keys to be reconciled in quick succession with a write each time.
    ///
    /// By default, a key that was reconciled 20 times within 10 s, each time with a write, is reconciled at most twice a second until
    /// the key writes less often. The key is logged, and counted in `windlass_hot_loops_total`.
    pub fn allow_hot_loops(mut self) -> Self {
        self.settings.slow_hot_loops = false;
        self
    }

    /// Does not reconcile a key again for the event of a write that the last reconcile of the key made.
    ///
    /// Use the option if a reconcile always goes through to the end: the reconcile takes every step that its own writes make possible, or
    /// asks to be repeated ([`Action::requeue_after`]). A reconciler that creates an object, returns, and relies on the event of the new
    /// object to go on, needs the events of its own writes, which are on by default.
    ///
    /// Only an event that shows nothing but the write is left out: a create, an update, or a patch with a resource version, by a reconcile
    /// that returned [`Action::done`]. Writes of other clients, deletions, resyncs and other keys reconcile as ever. The metric
    /// `windlass_controller_own_writes_skipped_total` counts the events.
    pub fn skip_own_writes(mut self) -> Self {
        self.settings.skip_own_writes = true;
        self
    }

    /// Returns a handle that queues keys, and adds and removes watches while the controller runs. The handle outlives this value.
    pub fn handle(&self) -> ControllerHandle<Q> {
        self.handle.clone()
    }

    /// Returns the watched kinds in the order of declaration.
    pub fn watched(&self) -> impl Iterator<Item = &ApiResource> {
        self.declared_watches().map(|watch| &watch.kind.resource)
    }

    /// Returns the watches, before [`prepare`](AnyController::prepare) takes the watches.
    pub(crate) fn declared_watches(&self) -> impl Iterator<Item = &Watch<Q>> {
        self.primary_watch.iter().chain(&self.watches)
    }

    /// Returns the controller's own kind.
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
