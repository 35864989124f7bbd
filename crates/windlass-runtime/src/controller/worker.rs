//! One key, one worker, one outcome.

use std::{hash::BuildHasher, panic::AssertUnwindSafe, sync::Arc, time::Duration};

use futures::FutureExt;
use prometheus_client::metrics::gauge::Gauge;
use tokio::{
    task::JoinSet,
    time::{Instant, timeout},
};
use tracing::Instrument;
use windlass_workqueue::{AddOptions, Item, WorkQueue};

use super::{Outcome, Running, current::Identity, reconcile_right::ReconcileRight};
use crate::{
    client::path::GroupResource,
    error::{Error, Result, is_undecodable},
    handler::QueueKey,
    observer::Reconciled,
    read_your_writes::{Session, Transition, WriteRef},
    shutdown::Shutdown,
    supervisor::Recovery,
};

impl<Q: QueueKey> Running<Q> {
    /// Reconciles until `shutdown`. Reconciles that are under way then complete; the manager bounds how long.
    ///
    /// # Errors
    /// A source panicked, or all workers ended without a request to.
    pub(super) async fn work(self: Arc<Self>, shutdown: Shutdown) -> Result<()> {
        let workers = self.settings.max_concurrent_reconciles;
        self.metrics.max_concurrent.set(workers as i64);
        tracing::info!(controller = self.name, workers, "starting workers");
        let mut running = JoinSet::new();
        for _ in 0..workers {
            let (this, stopping) = (self.clone(), shutdown.clone());
            let task = format!("worker of controller {}", self.name);
            let worker = move |recovery| this.clone().worker(stopping.clone(), recovery);
            let worker = self.supervisor().supervise(task, shutdown.token().clone(), worker);
            running.spawn(shutdown.track(worker));
        }
        let ended = async { while running.join_next().await.is_some() {} };
        let result = tokio::select! {
            biased;
            () = ended => Ok(()),
            error = self.source_failed() => Err(error),
            () = self.sweep_writes() => Ok(()),
        };
        self.stop_sources();
        if result.is_ok() && !shutdown.is_requested() {
            return Err(Error::setup(format!("all workers of controller {:?} ended", self.name)));
        }
        tracing::info!(controller = self.name, "all workers finished");
        result
    }

    async fn worker(self: Arc<Self>, shutdown: Shutdown, recovery: Recovery) {
        // Each worker has a separate handle: workers do not contend for a reference count.
        let queue = self.queue.clone();
        let identity = self.identity.of_worker();
        loop {
            if shutdown.is_requested() {
                return;
            }
            let Some(item) = next(&queue, &shutdown, &recovery).await else { return };
            if let Some((item, right)) = self.admit(InWork::new(item)) {
                let busy = Busy::new(&self.metrics.active);
                self.reconcile_one(item, right, &identity).await;
                drop(busy);
            }
            recovery.complete();
            // A reconcile that only reads memory never waits: without this, ready keys would starve all other tasks.
            tokio::task::consume_budget().await;
        }
    }

    /// Returns the item if this replica may reconcile the key now. The key of another replica is forgotten
    /// here. A panic, for example of a user's `sharded_by`, requeues the key.
    fn admit(self: &Arc<Self>, in_work: InWork<Q>) -> Option<(InWork<Q>, ReconcileRight)> {
        let shard = match self.shard().map(|shard| self.enter(shard, in_work.item.key())) {
            None => None,
            Some(Some(right)) => Some(right),
            Some(None) => {
                in_work.item.forget();
                in_work.settle();
                return None;
            }
        };
        if self.pass(&in_work.item) {
            return Some((in_work, ReconcileRight::new(self.leader.clone(), shard)));
        }
        in_work.settle();
        None
    }

    async fn reconcile_one(&self, in_work: InWork<Q>, mut right: ReconcileRight, identity: &Arc<Identity>) {
        let key = in_work.item.key().clone();
        let span = self.span(&key);
        async {
            let writes = Session::new(self.reconcile_number(&key));
            let _right = RightToWrite(&writes);
            let mut own_writes = OwnEvents::begin(self, &key);
            let began = Instant::now();
            let outcome = tokio::select! {
                biased;
                () = revoke(&mut right, &writes) => Outcome::Revoked,
                outcome = writes.run(self.attempt(key.clone(), identity)) => outcome,
            };
            self.metrics.time.observe(began.elapsed().as_secs_f64());
            let revoked = matches!(outcome, Outcome::Revoked);
            // Tasks continue the dropped writes of the reconcile, within the limits of the client.
            if !writes.is_settled() {
                tokio::select! {
                    biased;
                    () = revoke(&mut right, &writes), if !revoked => {}
                    () = writes.settled() => {}
                }
            }
            let written = writes.take();
            let has_seen = |write: &WriteRef| self.has_seen(write);
            self.journal.note(&key, writes.has_written(), written, Instant::now, has_seen);
            self.report(&key, &outcome);
            own_writes.transitions = matches!(outcome, Outcome::Done).then(|| writes.take_transitions());
            outcome.settle(&in_work.item, &self.metrics);
            drop(right);
            match self.shard() {
                Some(shard) if revoked => shard.put_back(key, &self.queue),
                // A leader that becomes a follower continues with the key in the next term.
                None if revoked => self.queue.add_with(key, AddOptions::new().after(AFTER_ABORT)),
                _ => {}
            }
            in_work.settle();
        }
        .instrument(span)
        .await;
    }

    /// Hands the outcome to the observer of the manager.
    fn report(&self, key: &Q, outcome: &Outcome) {
        if let Some(observer) = self.observer() {
            let error = outcome.error();
            observer(&Reconciled { controller: &self.name, key, error: error.as_deref() });
        }
    }

    async fn attempt(&self, key: Q, identity: &Arc<Identity>) -> Outcome {
        let reconcile = identity.run((self.reconcile)(key.clone(), self.context.clone()));
        let reconcile = AssertUnwindSafe(reconcile).catch_unwind();
        let finished = match self.settings.reconcile_timeout {
            Some(limit) => match timeout(limit, reconcile).await {
                Ok(finished) => finished,
                Err(_) => return Outcome::TimedOut(limit),
            },
            None => reconcile.await,
        };
        match finished {
            Ok(Err(error)) if self.is_undecodable(&key, error.as_ref()) => Outcome::Undecodable(error),
            Ok(result) => Outcome::from(result.map_err(|error| self.advised(error))),
            Err(payload) => Outcome::of_panic(payload.as_ref()),
        }
    }

    /// Returns whether an error says that the object of this key does not decode. A retry reads the same object. An update of the
    /// object, or of the content that the server serves, enqueues the key.
    fn is_undecodable(&self, key: &Q, error: &(dyn std::error::Error + 'static)) -> bool {
        self.primary.as_ref().is_some_and(|primary| {
            is_undecodable(error, &GroupResource::of(&primary.resource), &key.to_string())
        })
    }

    /// Returns a number that identifies the reconciles of a key by this controller.
    fn reconcile_number(&self, key: &Q) -> u64 {
        foldhash::fast::FixedState::default().hash_one((&self.name, key))
    }

    /// Forgets, from time to time, the writes that the caches have seen and the keys that are in no hot loop.
    pub(super) async fn sweep_writes(&self) {
        loop {
            tokio::time::sleep(SWEEP_PERIOD).await;
            let unseen: usize = self.caches.iter().map(|caches| caches.sweep()).sum();
            let keys = self.journal.sweep(Instant::now(), |write| self.has_seen(write));
            self.metrics.remembered_writes.set((unseen + keys) as i64);
        }
    }

    /// A span with the log keys of controller-runtime. The fields are computed only if the span is enabled.
    pub(super) fn span(&self, key: &Q) -> tracing::Span {
        tracing::info_span!(
            "reconcile",
            controller = self.name,
            controllerGroup = self.primary.as_ref().map(|primary| primary.resource.group.as_str()),
            controllerKind = self.primary.as_ref().map(|primary| primary.resource.kind.as_str()),
            namespace = split(key).0,
            name = split(key).1,
            reconcileID = self.context.env.uuid(),
        )
    }
}

/// Splits the text of a key into namespace and name.
fn split(key: &impl std::fmt::Display) -> (String, String) {
    let key = key.to_string();
    match key.split_once('/') {
        Some((namespace, name)) => (namespace.to_owned(), name.to_owned()),
        None => (String::new(), key),
    }
}

/// How often remembered writes are swept.
const SWEEP_PERIOD: Duration = Duration::from_secs(10);

/// Revokes the right to write when dropped. A manager that gives up waiting for a worker drops the worker, and hands the Lease on.
struct RightToWrite<'a>(&'a Session);

impl Drop for RightToWrite<'_> {
    fn drop(&mut self) {
        self.0.revoke();
    }
}

/// The events of a key in work, which wait for the end of the reconcile. Dropping the `OwnEvents`, by a panic too, enqueues the key for
/// all events but those of own writes.
struct OwnEvents<'a, Q: QueueKey> {
    running: &'a Running<Q>,
    key: Option<Q>,
    /// The changes that the reconcile made; `None` unless the reconcile succeeded without a request to be repeated.
    transitions: Option<Vec<Transition>>,
}

impl<'a, Q: QueueKey> OwnEvents<'a, Q> {
    fn begin(running: &'a Running<Q>, key: &Q) -> Self {
        running.journal.begin(key);
        let key = running.journal.skips_own_writes().then(|| key.clone());
        Self { running, key, transitions: None }
    }
}

impl<Q: QueueKey> Drop for OwnEvents<'_, Q> {
    fn drop(&mut self) {
        let Some(key) = self.key.take() else { return };
        if let Some(priority) = self.running.journal.end(&key, self.transitions.take(), Instant::now()) {
            self.running.queue.add_with(key, AddOptions::new().priority(priority));
        }
    }
}

/// Waits until the right is revoked. Then the writes of the reconcile end too.
async fn revoke(right: &mut ReconcileRight, writes: &Session) {
    right.revoked().await;
    writes.revoke();
}

/// A worker that was restarted, and has waited this long for a key, works again. Longer than [`AFTER_ABORT`],
/// so that the key of the panic comes first.
const IDLE_IS_WELL: Duration = Duration::from_secs(3);

/// Returns the next key; `None` after the shutdown. A ready key needs no wait for the shutdown, which costs several locks.
async fn next<Q: QueueKey>(
    queue: &WorkQueue<Q>,
    shutdown: &Shutdown,
    recovery: &Recovery,
) -> Option<Item<Q>> {
    if let Some(item) = queue.try_get() {
        return Some(item);
    }
    tokio::select! {
        biased;
        () = shutdown.requested() => None,
        item = wait(queue, recovery) => item,
    }
}

/// Waits for the next key.
async fn wait<Q: QueueKey>(queue: &WorkQueue<Q>, recovery: &Recovery) -> Option<Item<Q>> {
    if !recovery.is_pending() {
        return queue.get().await;
    }
    // A timeout loses no key: a ready key is taken first.
    if let Ok(item) = timeout(IDLE_IS_WELL, queue.get()).await {
        return item;
    }
    recovery.complete();
    queue.get().await
}

/// Counts an active worker until dropped, for example by a panic.
struct Busy<'a>(&'a Gauge);

impl<'a> Busy<'a> {
    fn new(active: &'a Gauge) -> Self {
        active.inc();
        Self(active)
    }
}

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        self.0.dec();
    }
}

/// A key in work. The key is requeued if the worker is dropped before the outcome is settled: by a panic outside of the reconcile (in the
/// key's `Display`, in `sharded_by`, or in a rate limiter), or because this replica becomes a follower.
struct InWork<Q: QueueKey> {
    item: Item<Q>,
    settled: bool,
}

/// The delay after such an end. The rate limiter is not asked: the rate limiter may have panicked.
const AFTER_ABORT: Duration = Duration::from_secs(1);

impl<Q: QueueKey> InWork<Q> {
    fn new(item: Item<Q>) -> Self {
        Self { item, settled: false }
    }

    /// Marks the work on the key as done.
    fn settle(mut self) {
        self.settled = true;
    }
}

impl<Q: QueueKey> Drop for InWork<Q> {
    fn drop(&mut self) {
        if !self.settled {
            self.item.requeue(AddOptions::new().after(AFTER_ABORT));
        }
    }
}
