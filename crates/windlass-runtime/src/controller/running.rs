//! A running controller: queue, watches and caches.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use futures::FutureExt;
use kube_core::ApiResource;
use parking_lot::Mutex;
use tokio::{
    sync::watch,
    time::{Instant, timeout},
};
use tokio_util::sync::CancellationToken;
use windlass_cache::Store;
use windlass_workqueue::WorkQueue;

use super::{
    ErasedReconcile, Settings, WatchId,
    active_watch::{ActiveWatch, Declaration, Prepared, QueuedWatch},
    current::Identity,
    shard::Shard,
};
use crate::{
    cluster_state::ClusterState,
    context::{self, Caches, KnownKinds, field_manager_parameter},
    discovery,
    error::{BoxError, Error, Result, chain},
    handler::{HandlerContext, QueueKey},
    informer::{HandlerOptions, InformerError},
    kind::Kind,
    leader_deadline::LeaderDeadline,
    metrics::OneController,
    observer::Observer,
    permission::{Forbidden, Permissions},
    predicate::Predicate,
    read_your_writes::{KeyJournal, KeyJournalOptions},
    reader::Reader,
    shared_state::SharedState,
    source::{Source, SourceContext},
    supervisor::{Supervisor, panic_message},
    undecodable::UndecodableReporter,
    watch::Watch,
};

/// The interval at which the log names the first lists that a controller waits for.
const SYNC_REPORT: Duration = Duration::from_secs(30);

pub(crate) struct Running<Q: QueueKey> {
    pub(super) name: String,
    pub(super) primary: Option<Kind>,
    pub(super) reconcile: ErasedReconcile<Q>,
    pub(super) settings: Settings,
    pub(crate) queue: WorkQueue<Q>,
    pub(super) context: Arc<context::ControllerContext>,
    /// The writes of each key.
    pub(super) journal: Arc<KeyJournal<Q>>,
    pub(super) metrics: OneController,
    pub(super) identity: Arc<Identity>,
    /// The leader's right to reconcile, if the controller runs on the leader only.
    pub(super) leader: Option<LeaderDeadline>,
    /// The keys of this replica, for a sharded controller.
    shard: OnceLock<Shard<Q>>,
    predicates: Arc<Vec<Predicate>>,
    /// The declared rights, to explain a denied request.
    declared: Permissions,
    manager: Arc<SharedState>,
    /// The contexts in the further clusters of the manager.
    further: BTreeMap<String, Arc<context::ControllerContext>>,
    /// The caches in all clusters.
    pub(super) caches: Vec<Arc<Caches>>,
    /// Watches without a handler yet: the queue fills only when the controller works, or warms up.
    waiting: Mutex<Vec<(WatchId, Prepared<Q>)>>,
    /// Watches with first lists that the start waits for.
    starting: Mutex<Vec<WatchId>>,
    active: Mutex<BTreeMap<WatchId, ActiveWatch>>,
    next_watch: AtomicU64,
    /// Cancelled to end the sources.
    sources_stop: CancellationToken,
    /// The panic of a source that cannot be restarted.
    source_panic: watch::Sender<Option<String>>,
}

/// Removes an added watch on drop, unless the watch is kept.
struct AddedWatch<'a, Q: QueueKey> {
    running: &'a Running<Q>,
    id: WatchId,
    kept: bool,
}

impl<Q: QueueKey> Drop for AddedWatch<'_, Q> {
    fn drop(&mut self) {
        if !self.kept {
            self.running.remove_watch(self.id);
        }
    }
}

impl<Q: QueueKey> Running<Q> {
    pub(super) fn new(
        name: &str,
        primary: Option<Kind>,
        reconcile: ErasedReconcile<Q>,
        predicates: Vec<Predicate>,
        settings: Settings,
        declared: Permissions,
        manager: &Arc<SharedState>,
    ) -> Arc<Self> {
        let mut queue = WorkQueue::builder(name).seed(manager.env.random());
        if let Some(limiter) = settings.rate_limiter.clone() {
            queue = queue.rate_limiter(limiter);
        }
        let queue = queue.build();
        manager.queues.add(name, {
            let queue = queue.clone();
            move || queue.metrics()
        });
        let metrics = manager.metrics.reconcile.of(name);
        let clusters = context::Clusters::default();
        let reader = Reader::Controller(name.to_owned());
        let context_in = |cluster: &ClusterState| {
            let recorder = cluster.recorder.named(name);
            let reporter = UndecodableReporter::new(recorder.clone(), metrics.undecodable.clone());
            Arc::new(context::ControllerContext {
                controller: name.to_owned(),
                field_manager: field_manager_parameter(settings.field_manager.as_deref().unwrap_or(name)),
                kinds: KnownKinds::default(),
                primary: primary.as_ref().map(|primary| primary.resource.clone()),
                client: cluster.client.clone(),
                api: cluster.api.clone(),
                clusters: clusters.clone(),
                caches: Arc::new(Caches::new(reader.clone(), cluster.journal.clone(), Arc::new(reporter))),
                recorder,
                metrics: manager.metrics.clone(),
                env: manager.env.clone(),
            })
        };
        let context = context_in(&manager.own);
        let further: BTreeMap<_, _> =
            manager.further().map(|(name, cluster)| (name.to_owned(), context_in(cluster))).collect();
        let named = further.iter().map(|(name, context)| (Some(name.as_str()), context));
        clusters.connect(std::iter::once((None, &context)).chain(named));
        let caches = std::iter::once(&context).chain(further.values()).map(|context| context.caches.clone());
        let caches = caches.collect();
        Arc::new(Self {
            name: name.to_owned(),
            primary,
            reconcile,
            journal: Arc::new(KeyJournal::new(KeyJournalOptions {
                longest_wait: settings.write_barrier_timeout,
                slows_hot_loops: settings.slow_hot_loops,
                skips_own_writes: settings.skip_own_writes.then(|| metrics.own_writes_skipped.clone()),
            })),
            identity: Identity::new(name, &manager.metrics),
            leader: settings.needs_leader.then(|| manager.leader.clone()),
            shard: OnceLock::new(),
            settings,
            queue,
            context,
            further,
            metrics,
            predicates: Arc::new(predicates),
            declared,
            manager: manager.clone(),
            caches,
            waiting: Mutex::default(),
            starting: Mutex::default(),
            active: Mutex::default(),
            next_watch: AtomicU64::new(0),
            sources_stop: CancellationToken::new(),
            source_panic: watch::channel(None).0,
        })
    }

    /// Splits the keys among replicas. Called at most once, before the controller starts.
    pub(super) fn set_shard(&self, shard: Shard<Q>) {
        let _ = self.shard.set(shard);
    }

    pub(super) fn shard(&self) -> Option<&Shard<Q>> {
        self.shard.get()
    }

    pub(super) fn supervisor(&self) -> Supervisor {
        self.manager.supervisor.clone()
    }

    /// Returns a token that is cancelled when the controller ends.
    pub(super) fn stopping(&self) -> CancellationToken {
        self.sources_stop.clone()
    }

    pub(super) fn observer(&self) -> Option<&Observer> {
        self.manager.observer.as_ref()
    }

    /// Requests the cache of a watch. [`start_watches`](Self::start_watches) adds the handler.
    pub(super) async fn declare(&self, watch: Watch<Q>) -> Result<WatchId> {
        let id = WatchId(self.next_watch.fetch_add(1, Ordering::Relaxed));
        let prepared = self.prepare(watch).await?;
        self.waiting.lock().push((id, prepared));
        Ok(id)
    }

    async fn prepare(&self, watch: Watch<Q>) -> Result<Prepared<Q>> {
        let (place, caches) =
            (self.manager.cluster(watch.cluster.as_deref())?, self.caches_in(watch.cluster.as_deref())?);
        let owner = match watch.owner(self.primary.as_ref()) {
            Some(owner) => Some(self.with_scope(owner, place).await?),
            None => None,
        };
        let handler = watch.handler(owner.as_ref()).ok_or_else(|| {
            Error::setup(format!(
                "controller {:?} watches owned {}, but has no kind that could own objects; make it with `Controller::of`, or name \
                 the owner with `Watch::owned(..).owner_kind(..)`",
                self.name, watch.kind.resource.kind
            ))
        })?;
        let Watch { kind, mut options, predicates, name, readable, resync, .. } = watch;
        let namespaces = &place.namespaces;
        if options.namespaces.is_empty() && !namespaces.is_empty() && self.is_namespaced(&kind, place).await?
        {
            options.namespaces.clone_from(namespaces);
        }
        let informer = place.informers.share(&kind.resource, options).map_err(|e| match e {
            InformerError::ShutDown => Error::stopped(),
            e => Error::setup(format!("controller {:?}: watching {}: {e}", self.name, kind.resource.kind)),
        })?;
        let declared = readable.then(|| Declaration::new(caches, name, &informer)).transpose()?;
        let enqueuer = Arc::new(QueuedWatch {
            queue: self.queue.clone(),
            handler,
            common: self.predicates.clone(),
            own: predicates,
            journal: self.journal.clone(),
            cx: HandlerContext { caches: caches.clone() },
        });
        Ok(Prepared { informer, enqueuer, options: HandlerOptions { resync }, declared })
    }

    /// Returns the caches in a further cluster, or in the manager's own.
    fn caches_in(&self, cluster: Option<&str>) -> Result<&Arc<Caches>> {
        let context = match cluster {
            None => Some(&self.context),
            Some(name) => self.further.get(name),
        };
        context.map(|context| &context.caches).ok_or_else(Error::stopped)
    }

    /// Returns a kind with the scope. The keys of owners depend on the scope.
    async fn with_scope(&self, kind: &Kind, cluster: &ClusterState) -> Result<Kind> {
        let namespaced = self.is_namespaced(kind, cluster).await?;
        Ok(Kind { namespaced: Some(namespaced), ..kind.clone() })
    }

    /// Returns whether objects of a kind are in namespaces. Asks the server about a type without a known
    /// scope.
    async fn is_namespaced(&self, kind: &Kind, cluster: &ClusterState) -> Result<bool> {
        if let Some(namespaced) = kind.namespaced {
            return Ok(namespaced);
        }
        let limit = self.settings.cache_sync_timeout;
        discovery::is_namespaced(&cluster.api, &kind.resource, limit).await
    }

    /// Adds the handlers of all declared watches and waits until each handler has got the first list.
    pub(super) async fn start_watches(&self) -> Result<()> {
        let waiting: Vec<_> = std::mem::take(&mut *self.waiting.lock());
        for (id, prepared) in waiting {
            self.activate(id, prepared)?;
            self.starting.lock().push(id);
        }
        let starting = self.starting.lock().clone();
        if starting.is_empty() {
            return Ok(());
        }
        let begun = Instant::now();
        let kinds: Vec<_> =
            self.active.lock().values().map(|watch| watch.informer.resource().kind.clone()).collect();
        tracing::info!(controller = self.name, kinds = kinds.join(", "), "waiting for caches");
        for id in &starting {
            self.wait_synced(*id, begun).await?;
        }
        self.starting.lock().retain(|id| !starting.contains(id));
        Ok(())
    }

    /// Hands every object of all watches to the handlers again, as at the start. [`start_watches`](Self::start_watches) then waits until the
    /// handlers have got all objects.
    pub(super) fn restart_watches(&self) {
        let renewed = self.renew_watches(|_| true);
        self.starting.lock().extend(renewed);
    }

    /// Hands every object of the chosen watches to the handlers again, as at the start. Returns the watches.
    pub(super) fn renew_watches(&self, chosen: impl Fn(&ApiResource) -> bool) -> Vec<WatchId> {
        let mut renewed = Vec::new();
        for (id, watch) in self.active.lock().iter() {
            if chosen(watch.informer.resource()) {
                watch.renew();
                renewed.push(*id);
            }
        }
        renewed
    }

    pub(super) async fn add_watch(&self, watch: Watch<Q>) -> Result<WatchId> {
        let id = WatchId(self.next_watch.fetch_add(1, Ordering::Relaxed));
        // The scope of a kind that the server does not serve is asked for without an end.
        let prepared = self.sources_stop.run_until_cancelled(self.prepare(watch)).await;
        self.activate(id, prepared.ok_or_else(Error::stopped)??)?;
        // Removed as well when the caller stops waiting: no caller would know the id.
        let mut added = AddedWatch { running: self, id, kept: false };
        self.wait_synced(id, Instant::now()).await?;
        if self.sources_stop.is_cancelled() {
            return Err(Error::stopped());
        }
        added.kept = true;
        Ok(id)
    }

    /// Returns the caches of the controller's own kind, in all clusters, after the watch has started.
    pub(super) fn primary_stores(&self) -> Option<Vec<Store>> {
        let primary = self.primary.as_ref()?;
        let active = self.active.lock();
        let of_kind = active.values().filter(|watch| *watch.informer.resource() == primary.resource);
        let stores: Vec<Store> = of_kind.map(|watch| watch.informer.store()).collect();
        (!stores.is_empty()).then_some(stores)
    }

    pub(super) fn remove_watch(&self, id: WatchId) {
        let removed = self.active.lock().remove(&id);
        // Outside of the lock: ending a watch runs code of other parts.
        drop(removed);
    }

    /// Adds the handler of a watch.
    ///
    /// # Errors
    /// The controller has ended, and nothing would remove the watch.
    fn activate(&self, id: WatchId, prepared: Prepared<Q>) -> Result<()> {
        let watch = ActiveWatch::new(prepared);
        let mut active = self.active.lock();
        // `stop_sources` cancels the token before it takes the watches.
        if self.sources_stop.is_cancelled() {
            drop(active);
            return Err(Error::stopped());
        }
        active.insert(id, watch);
        Ok(())
    }

    /// Waits until the first list of a watch has ended, and logs the wait.
    async fn wait_synced(&self, id: WatchId, begun: Instant) -> Result<()> {
        let (synced, informer) = {
            let active = self.active.lock();
            let Some(watch) = active.get(&id) else { return Ok(()) };
            (watch.subscription.synced(), watch.informer.clone())
        };
        let mut synced = std::pin::pin!(synced);
        let kind = &informer.resource().kind;
        let limit = self.settings.cache_sync_timeout;
        loop {
            let wait =
                limit.map_or(SYNC_REPORT, |limit| limit.saturating_sub(begun.elapsed()).min(SYNC_REPORT));
            if timeout(wait, synced.as_mut()).await.is_ok() {
                return Ok(());
            }
            let reason = informer.last_failure().unwrap_or_else(|| "the server did not answer".to_owned());
            let reason = match self.advice(&reason) {
                Some(advice) => format!("{reason}; {advice}"),
                None => reason,
            };
            if let Some(limit) = limit.filter(|limit| begun.elapsed() >= *limit) {
                return Err(Error::setup(format!(
                    "controller {:?}: the first list of {kind} did not end within {limit:?}: {reason}",
                    self.name
                )));
            }
            tracing::warn!(controller = self.name, kind, reason, "waiting for the first list of a kind");
        }
    }

    /// Returns the advice for a text that reports a denied request.
    fn advice(&self, text: &str) -> Option<String> {
        Forbidden::find(text).map(|denial| denial.advice(&self.declared))
    }

    /// Adds advice to an error that reports a denied request.
    pub(super) fn advised(&self, error: BoxError) -> BoxError {
        match self.advice(&chain(error.as_ref())) {
            Some(advice) => Advised { error, advice }.into(),
            None => error,
        }
    }

    /// Queues the keys of a source until the source or the controller ends.
    pub(super) fn follow(self: &Arc<Self>, source: Source<Q>) {
        let this = self.clone();
        let cx = SourceContext {
            controller: self.name.clone(),
            queue: self.queue.clone(),
            map: HandlerContext { caches: self.context.caches.clone() },
            supervisor: self.supervisor(),
            env: self.manager.env.clone(),
            unmapped_events: self.metrics.unmapped_events.clone(),
        };
        tokio::spawn(async move {
            let feed = std::panic::AssertUnwindSafe(source.run(cx)).catch_unwind();
            if let Some(Err(payload)) = this.sources_stop.run_until_cancelled(feed).await {
                this.supervisor().count_panic("source");
                this.source_panic.send_replace(Some(panic_message(payload.as_ref()).to_owned()));
            }
        });
    }

    /// Completes with an error when a stream has panicked. The controller ends, because a stream cannot be
    /// restarted.
    pub(super) async fn source_failed(&self) -> Error {
        let mut panicked = self.source_panic.subscribe();
        // The sender lives as long as `self`: the wait never fails.
        let message = panicked.wait_for(Option::is_some).await.ok().and_then(|message| message.clone());
        let message = message.unwrap_or_default();
        Error::setup(format!("a source of controller {:?} panicked: {message}", self.name))
    }

    /// The end of the controller.
    pub(super) fn ended(&self) -> &CancellationToken {
        &self.sources_stop
    }

    /// Ends all watches and the queue.
    pub(super) fn stop_sources(&self) {
        self.sources_stop.cancel();
        let waiting = std::mem::take(&mut *self.waiting.lock());
        let active = std::mem::take(&mut *self.active.lock());
        drop((waiting, active));
        self.queue.shut_down();
    }
}

/// An error with advice.
#[derive(Debug, thiserror::Error)]
#[error("{}; {advice}", chain(error.as_ref()))]
struct Advised {
    #[source]
    error: BoxError,
    advice: String,
}
