//! Controllers: watches that fill a queue of keys, and workers that reconcile them.

mod gate;
mod handle;
mod outcome;
mod running;
mod worker;

use std::{sync::Arc, time::Duration};

use futures::{
    Stream,
    future::BoxFuture,
    stream::{BoxStream, StreamExt},
};
use kube_core::{ApiResource, Resource};
use serde::de::DeserializeOwned;
use windlass_cache::{ObjectKey, RawObject};
use windlass_workqueue::RateLimiter;

pub use self::handle::{ControllerHandle, WatchId};
pub(crate) use self::{outcome::Outcome, running::Running};
use crate::{
    context::{self, Context},
    error::{BoxError, Result},
    handler::{MapContext, QueueKey},
    manager::{Shared, Shutdown},
    predicate::Predicate,
    reconcile::{Action, Reconciler},
    source::Watch,
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
///         name.map(|name| ObjectKey::new(namespace, name)).into_iter().collect()
///     })
///     .concurrency(4);
/// # let _ = controller;
/// ```
///
/// Its caches, and so what it may read, are those of the kinds named here.
pub struct Controller<Q: QueueKey = ObjectKey> {
    name: String,
    primary: Option<ApiResource>,
    owner: Option<OwnerKind>,
    reconcile: ErasedReconcile<Q>,
    watches: Vec<Watch<Q>>,
    externals: Vec<BoxStream<'static, Q>>,
    predicates: Vec<Predicate>,
    settings: Settings,
    handle: ControllerHandle<Q>,
    running: Option<Arc<Running<Q>>>,
}

/// A reconciler whose types are forgotten: everything behind this is compiled once.
pub(crate) type ErasedReconcile<Q> =
    Arc<dyn Fn(Q, Arc<context::Shared>) -> BoxFuture<'static, Result<Action, BoxError>> + Send + Sync>;

/// The primary kind as owner references name it.
struct OwnerKind {
    group: String,
    kind: String,
    namespaced: bool,
}

#[derive(Clone)]
pub(crate) struct Settings {
    pub(crate) concurrency: usize,
    pub(crate) reconcile_timeout: Option<Duration>,
    pub(crate) cache_sync_timeout: Duration,
    pub(crate) write_wait: Duration,
    pub(crate) rate_limiter: Option<RateLimiter>,
    pub(crate) needs_leader: bool,
    pub(crate) warm_up: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            concurrency: 1,
            reconcile_timeout: None,
            cache_sync_timeout: Duration::from_mins(2),
            write_wait: Duration::from_secs(2),
            rate_limiter: None,
            needs_leader: true,
            warm_up: false,
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
        K: Resource<DynamicType = ()> + DeserializeOwned + Send + Sync + 'static,
    {
        let mut controller = Self::keyed(K::kind(&()).to_lowercase(), reconciler);
        controller.primary = Some(ApiResource::erase::<K>(&()));
        controller.owner = Some(OwnerKind {
            group: K::group(&()).into_owned(),
            kind: K::kind(&()).into_owned(),
            namespaced: crate::source::is_namespaced::<K>(),
        });
        controller.watch(Watch::primary::<K>())
    }

    /// Watches objects of kind `C` that the controller's own kind controls: a change of one concerns its owner.
    ///
    /// # Panics
    ///
    /// On a controller that was not made by [`Controller::of`], which has no kind that could own anything.
    pub fn owns<C>(self) -> Self
    where
        C: Resource<DynamicType = ()> + DeserializeOwned + Send + Sync + 'static,
    {
        let owner = self.owner.as_ref().expect("`owns` needs a controller made by `Controller::of::<K>`");
        let handler = crate::handler::EnqueueOwner {
            group: owner.group.clone(),
            kind: owner.kind.clone(),
            namespaced: owner.namespaced,
            every_owner: false,
        };
        let mut watch = Watch::with_handler(ApiResource::erase::<C>(&()), handler);
        watch.namespaced = Some(crate::source::is_namespaced::<C>());
        self.watch(watch)
    }
}

impl<Q: QueueKey> Controller<Q> {
    /// A controller whose keys are not those of one kind: a uid, a namespace, whatever is small.
    pub fn keyed<K: 'static>(name: impl Into<String>, reconciler: impl Reconciler<K, Q>) -> Self {
        Self {
            name: name.into(),
            primary: None,
            owner: None,
            reconcile: erase(reconciler),
            watches: Vec::new(),
            externals: Vec::new(),
            predicates: Vec::new(),
            settings: Settings::default(),
            handle: ControllerHandle::new(),
            running: None,
        }
    }

    /// Names the controller, in logs and metrics and as field manager of its writes. Names are unique in a manager.
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Watches a kind, and asks `mapper` which keys a change concerns. Of an update both states are asked about.
    pub fn watches<W>(self, mapper: impl Fn(&W, &MapContext) -> Vec<Q> + Send + Sync + 'static) -> Self
    where
        W: Resource<DynamicType = ()> + DeserializeOwned + Send + Sync + 'static,
    {
        self.watch(Watch::mapped::<W>(mapper))
    }

    /// Watches the metadata of a kind that need not be known when this is compiled.
    pub fn watches_metadata(
        self,
        resource: ApiResource,
        mapper: impl Fn(&RawObject, &MapContext) -> Vec<Q> + Send + Sync + 'static,
    ) -> Self {
        self.watch(Watch::metadata(resource, mapper))
    }

    /// Adds a watch that was put together by hand.
    pub fn watch(mut self, watch: Watch<Q>) -> Self {
        self.watches.push(watch);
        self
    }

    /// Keys from elsewhere: a channel, a timer, another system.
    pub fn external(mut self, keys: impl Stream<Item = Q> + Send + 'static) -> Self {
        self.externals.push(keys.boxed());
        self
    }

    /// Lets only those events through that this counts, of all watches. A watch may have more predicates of its own.
    pub fn with_predicate(mut self, predicate: Predicate) -> Self {
        self.predicates.push(predicate);
        self
    }

    /// How many keys are reconciled at once. Default: 1. One key never is.
    pub fn concurrency(mut self, workers: usize) -> Self {
        self.settings.concurrency = workers.max(1);
        self
    }

    /// Ends a reconcile that takes longer, as a failure. Default: none.
    pub fn reconcile_timeout(mut self, limit: Duration) -> Self {
        self.settings.reconcile_timeout = Some(limit);
        self
    }

    /// How long the first lists may take before the controller gives up, and the manager with it. Default: 2 minutes.
    pub fn cache_sync_timeout(mut self, limit: Duration) -> Self {
        self.settings.cache_sync_timeout = limit;
        self
    }

    /// How long a key waits, at most, for the caches to see what its last reconcile wrote. Default: 2 s. Zero turns the wait off.
    pub fn read_your_writes_timeout(mut self, limit: Duration) -> Self {
        self.settings.write_wait = limit;
        self
    }

    /// The back-off of failing keys. Default: 5 ms · 2ⁿ up to 1000 s, per key, as client-go's.
    pub fn rate_limiter(mut self, limiter: RateLimiter) -> Self {
        self.settings.rate_limiter = Some(limiter);
        self
    }

    /// Runs on every replica, not on the leader alone. Default: on the leader alone, when leaders are elected.
    pub fn without_leader_election(mut self) -> Self {
        self.settings.needs_leader = false;
        self
    }

    /// Fills the queue on stand-by replicas too, so that the work begins at once when one of them comes to lead.
    pub fn warm_up(mut self) -> Self {
        self.settings.warm_up = true;
        self
    }

    /// A handle that outlives this value: it queues keys, and adds and removes watches while the controller runs.
    pub fn handle(&self) -> ControllerHandle<Q> {
        self.handle.clone()
    }

    /// The kinds that are watched, in the order they were named: what the caches hold and RBAC must allow.
    pub fn watched(&self) -> impl Iterator<Item = &ApiResource> {
        self.watches.iter().map(|watch| &watch.resource)
    }
}

/// A controller whose key type is forgotten, as the manager holds it.
pub(crate) trait AnyController: Send {
    fn name(&self) -> &str;
    fn needs_leader(&self) -> bool;
    fn warms_up(&self) -> bool;
    /// Asks for the caches, before they are started.
    fn prepare(&mut self, shared: &Arc<Shared>) -> Result<()>;
    /// Starts to fill the queue, and waits until the first lists are through. Does nothing a second time.
    fn start_sources(&mut self) -> BoxFuture<'_, Result<()>>;
    /// Reconciles until `shutdown`, then finishes what is under way.
    fn run(self: Box<Self>, shutdown: Shutdown) -> BoxFuture<'static, Result<()>>;
}

impl<Q: QueueKey> AnyController for Controller<Q> {
    fn name(&self) -> &str {
        &self.name
    }

    fn needs_leader(&self) -> bool {
        self.settings.needs_leader
    }

    fn warms_up(&self) -> bool {
        self.settings.warm_up
    }

    fn prepare(&mut self, shared: &Arc<Shared>) -> Result<()> {
        let running = Running::new(
            &self.name,
            self.primary.clone(),
            self.reconcile.clone(),
            std::mem::take(&mut self.predicates),
            self.settings.clone(),
            shared,
        );
        for watch in self.watches.drain(..) {
            running.declare(watch)?;
        }
        self.handle.connect(running.clone());
        self.running = Some(running);
        Ok(())
    }

    fn start_sources(&mut self) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move {
            let Some(running) = &self.running else { return Ok(()) };
            for keys in self.externals.drain(..) {
                running.follow(keys);
            }
            running.start_sources().await
        })
    }

    fn run(mut self: Box<Self>, shutdown: Shutdown) -> BoxFuture<'static, Result<()>> {
        Box::pin(async move {
            let started = async {
                tokio::select! {
                    biased;
                    () = shutdown.requested() => Ok(()),
                    started = self.start_sources() => started,
                }
            };
            started.await?;
            if let Some(running) = self.running.take() {
                running.work(shutdown).await;
            }
            Ok(())
        })
    }
}
