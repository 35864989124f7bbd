//! A controller at work: its queue, its watches, its caches.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use futures::{StreamExt, stream::BoxStream};
use kube_core::ApiResource;
use parking_lot::Mutex;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use windlass_cache::RawObject;
use windlass_workqueue::{AddOptions, LOW_PRIORITY, WorkQueue};

use super::{ErasedReconcile, Settings, WatchId, gate::Gate};
use crate::{
    client::path::GroupResource,
    context::{self, Caches, KindCache},
    error::{Error, Result},
    handler::{Event, EventHandler, Keys, MapContext, QueueKey},
    informer::{Handler, HandlerOptions, HandlerRegistration, InformerError, SharedInformer},
    manager::Shared,
    metrics::OneController,
    predicate::Predicate,
    source::Watch,
};

pub(crate) struct Running<Q: QueueKey> {
    pub(super) name: String,
    pub(super) primary: Option<ApiResource>,
    pub(super) reconcile: ErasedReconcile<Q>,
    pub(super) settings: Settings,
    pub(crate) queue: WorkQueue<Q>,
    pub(super) context: Arc<context::Shared>,
    pub(super) gate: Gate<Q>,
    pub(super) metrics: OneController,
    predicates: Arc<Vec<Predicate>>,
    manager: Arc<Shared>,
    caches: Arc<Caches>,
    /// Watches whose handler is not added yet: the queue fills only when the controller is to work, or to warm up.
    waiting: Mutex<Vec<(WatchId, Prepared<Q>)>>,
    active: Mutex<BTreeMap<WatchId, ActiveWatch>>,
    next_watch: AtomicU64,
    /// Ends what feeds the queue from outside.
    feeding: CancellationToken,
}

struct Prepared<Q: QueueKey> {
    informer: SharedInformer,
    enqueuer: Enqueuer<Q>,
}

/// Kept as long as the watch: dropping it removes the handler, and the last user's drop ends the watch.
struct ActiveWatch {
    resource: ApiResource,
    registration: HandlerRegistration,
    _informer: SharedInformer,
}

impl<Q: QueueKey> Running<Q> {
    pub(super) fn new(
        name: &str,
        primary: Option<ApiResource>,
        reconcile: ErasedReconcile<Q>,
        predicates: Vec<Predicate>,
        settings: Settings,
        manager: &Arc<Shared>,
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
        let caches = Arc::new(Caches::new(name));
        let context = context::Shared {
            controller: name.to_owned(),
            client: manager.client.clone(),
            caches: caches.clone(),
            recorder: manager.recorder.named(name),
            env: manager.env.clone(),
        };
        Arc::new(Self {
            name: name.to_owned(),
            primary,
            reconcile,
            gate: Gate::new(settings.write_wait),
            settings,
            queue,
            context: Arc::new(context),
            metrics: manager.metrics.reconcile.of(name),
            predicates: Arc::new(predicates),
            manager: manager.clone(),
            caches,
            waiting: Mutex::default(),
            active: Mutex::default(),
            next_watch: AtomicU64::new(0),
            feeding: CancellationToken::new(),
        })
    }

    /// Asks for the cache of a watch; its handler comes with [`start_sources`](Self::start_sources).
    pub(super) fn declare(&self, watch: Watch<Q>) -> Result<WatchId> {
        let id = WatchId(self.next_watch.fetch_add(1, Ordering::Relaxed));
        let prepared = self.prepare(watch)?;
        self.waiting.lock().push((id, prepared));
        Ok(id)
    }

    fn prepare(&self, watch: Watch<Q>) -> Result<Prepared<Q>> {
        let Watch { resource, namespaced, mut options, handler, predicates } = watch;
        if options.namespaces.is_empty() && namespaced != Some(false) {
            options.namespaces.clone_from(&self.manager.namespaces);
        }
        let metadata_only = options.metadata_only;
        let informer = self.manager.informers.informer(&resource, options).map_err(|e| match e {
            InformerError::ShutDown => Error::stopped(),
            e => Error::setup(format!("controller {}: watching {}: {e}", self.name, resource.kind)),
        })?;
        let cache = KindCache {
            kind: resource.kind.clone(),
            informer: informer.clone(),
            writes: self.manager.writes.follow(GroupResource::of(&resource), informer.clone()),
            metadata_only,
        };
        self.caches.add(&resource, Arc::new(cache));
        let enqueuer = Enqueuer {
            queue: self.queue.clone(),
            handler,
            common: self.predicates.clone(),
            own: predicates,
            cx: MapContext { caches: self.caches.clone() },
        };
        Ok(Prepared { informer, enqueuer })
    }

    /// Adds the handlers of all declared watches and waits until each has been told the first list.
    pub(super) async fn start_sources(&self) -> Result<()> {
        let waiting: Vec<_> = std::mem::take(&mut *self.waiting.lock());
        let mut ids = Vec::new();
        for (id, prepared) in waiting {
            self.activate(id, prepared);
            ids.push(id);
        }
        for id in ids {
            self.wait_synced(id).await?;
        }
        Ok(())
    }

    pub(super) async fn add_watch(&self, watch: Watch<Q>) -> Result<WatchId> {
        let id = WatchId(self.next_watch.fetch_add(1, Ordering::Relaxed));
        let prepared = self.prepare(watch)?;
        self.activate(id, prepared);
        match self.wait_synced(id).await {
            Ok(()) => Ok(id),
            Err(error) => {
                self.remove_watch(id);
                Err(error)
            }
        }
    }

    pub(super) fn remove_watch(&self, id: WatchId) {
        let mut active = self.active.lock();
        let Some(removed) = active.remove(&id) else { return };
        if !active
            .values()
            .any(|other| GroupResource::of(&other.resource) == GroupResource::of(&removed.resource))
        {
            self.caches.remove(&removed.resource);
        }
        drop(active);
    }

    fn activate(&self, id: WatchId, prepared: Prepared<Q>) {
        let Prepared { informer, enqueuer } = prepared;
        let resource = informer.resource().clone();
        let registration = informer.add_handler(enqueuer, HandlerOptions::default());
        let watch = ActiveWatch { resource, registration, _informer: informer };
        self.active.lock().insert(id, watch);
    }

    async fn wait_synced(&self, id: WatchId) -> Result<()> {
        let (synced, kind) = {
            let active = self.active.lock();
            let Some(watch) = active.get(&id) else { return Ok(()) };
            (watch.registration.synced(), watch.resource.kind.clone())
        };
        let limit = self.settings.cache_sync_timeout;
        timeout(limit, synced).await.map_err(|_| {
            Error::setup(format!(
                "controller {}: the first list of {kind} did not come within {limit:?}; \
                 is its CRD installed, and may this program list and watch it?",
                self.name
            ))
        })?;
        Ok(())
    }

    /// Queues the keys of a stream until it or the controller ends.
    pub(super) fn follow(&self, mut keys: BoxStream<'static, Q>) {
        let (queue, feeding) = (self.queue.clone(), self.feeding.clone());
        tokio::spawn(async move {
            loop {
                let key = tokio::select! {
                    biased;
                    () = feeding.cancelled() => break,
                    key = keys.next() => key,
                };
                match key {
                    Some(key) => queue.add(key),
                    None => break,
                }
            }
        });
    }

    /// Ends all watches and the queue.
    pub(super) fn stop_sources(&self) {
        self.feeding.cancel();
        self.waiting.lock().clear();
        self.active.lock().clear();
        self.queue.shut_down();
    }
}

/// From a watch's events to the queue.
struct Enqueuer<Q: QueueKey> {
    queue: WorkQueue<Q>,
    handler: Arc<dyn EventHandler<Q>>,
    common: Arc<Vec<Predicate>>,
    own: Vec<Predicate>,
    cx: MapContext,
}

impl<Q: QueueKey> Enqueuer<Q> {
    fn enqueue(&self, event: &Event<'_>) {
        if !self.common.iter().chain(&self.own).all(|predicate| predicate.counts(event)) {
            return;
        }
        let mut keys = Keys::new(&self.queue);
        self.handler.handle(event, &self.cx, &mut keys);
        let priority = if event.is_unchanged() { LOW_PRIORITY } else { 0 };
        keys.enqueue(AddOptions { priority, ..AddOptions::default() });
    }
}

impl<Q: QueueKey> Handler for Enqueuer<Q> {
    fn on_add(&self, object: &RawObject, initial: bool) {
        self.enqueue(&Event::Create { object, initial });
    }

    fn on_update(&self, old: &RawObject, new: &RawObject) {
        self.enqueue(&Event::Update { old, new });
    }

    fn on_delete(&self, last: &RawObject, final_state_unknown: bool) {
        self.enqueue(&Event::Delete { last, final_state_unknown });
    }
}
