//! The core of an informer: a store, the watches that feed the store, and subscriptions to changes.

mod backlog;
mod batch;
mod metrics;
mod subscription;

pub use self::{
    batch::{BatchApplier, ChangeBatch},
    metrics::InformerMetrics,
    subscription::{Subscription, SubscriptionGuard},
};

use std::{
    cell::Cell,
    collections::BTreeMap,
    ops::{Deref, DerefMut},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::watch;

use self::subscription::SubscriptionQueue;
use crate::{
    Delta, IndexFn, ObjectKey, ObjectRef, RawObject, ReflectorId, Store, StoreOptions, StoreTransaction,
    StoreWriter,
    reflector::{ReflectorEvent, ReflectorStore},
    scan::ScanError,
    scanner::Scanned,
};

/// Receives the notices of an informer's watches. The notice of an index has no watch.
pub type ReflectorEventHandler = Arc<dyn Fn(Option<ReflectorId>, &ReflectorEvent) + Send + Sync>;

/// The options of an informer.
#[derive(Clone, Debug)]
pub struct InformerOptions {
    /// The options of the store.
    pub store: StoreOptions,
    /// The number of watches that feed the store: a watch for each namespace, or a single watch for all
    /// namespaces. Default: 1.
    pub sources: u16,
    /// The bytes of memory beyond which [`InformerCore::memory_warning`] warns. Default: no limit.
    pub memory_limit: Option<usize>,
}

impl Default for InformerOptions {
    fn default() -> Self {
        Self { store: StoreOptions::default(), sources: 1, memory_limit: None }
    }
}

/// A store, the watches that feed the store, and subscriptions to changes. Cheap to clone.
#[derive(Clone, Debug)]
pub struct InformerCore {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    store: Store,
    /// Locked by [`Inner::lock`] only.
    state: Mutex<InformerState>,
    /// The high-water mark of each watch.
    marks: Box<[AtomicU64]>,
    /// Counts the changes of the marks.
    progress: watch::Sender<u64>,
    synced: watch::Sender<bool>,
}

thread_local! {
    /// The address of the informer that this thread has locked.
    static LOCKED: Cell<*const Inner> = const { Cell::new(std::ptr::null()) };
}

impl Inner {
    /// Locks the state.
    ///
    /// # Panics
    /// This thread holds the lock already: an index function calls the informer of the index.
    fn lock(&self) -> Locked<'_> {
        let outer = LOCKED.get();
        assert!(
            !std::ptr::eq(outer, self),
            "an index function must not call the informer of its index; it may read the store"
        );
        let state = self.state.lock();
        LOCKED.set(self);
        Locked { state, outer }
    }
}

/// The locked state of an informer.
struct Locked<'a> {
    state: MutexGuard<'a, InformerState>,
    outer: *const Inner,
}

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        LOCKED.set(self.outer);
    }
}

impl Deref for Locked<'_> {
    type Target = InformerState;

    fn deref(&self) -> &InformerState {
        &self.state
    }
}

impl DerefMut for Locked<'_> {
    fn deref_mut(&mut self) -> &mut InformerState {
        &mut self.state
    }
}

struct InformerState {
    writer: StoreWriter,
    sources: Vec<SourceState>,
    handlers: BTreeMap<u64, Arc<SubscriptionQueue>>,
    next_handler: u64,
    notices: Option<ReflectorEventHandler>,
    metrics: InformerMetrics,
    /// The coalesced changes of subscriptions that have ended.
    coalesced: u64,
    /// True if the store exceeds the memory limit and a warning was given.
    warned: bool,
}

impl std::fmt::Debug for InformerState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("InformerState").field("sources", &self.sources).finish_non_exhaustive()
    }
}

/// The state of a watch.
#[derive(Clone, Copy, Debug, Default)]
struct SourceState {
    synced: bool,
    /// The key of an object of the current list could not be read.
    anonymous: bool,
    /// The resource version up to which everything has been seen.
    seen: u64,
    lists: u32,
    /// Bytes of the text that the objects of the watch share.
    shared_memory: usize,
}

impl InformerCore {
    /// Creates an informer with an empty store.
    pub fn new(options: InformerOptions) -> Self {
        let (store, writer) = Store::new(options.store);
        let sources = usize::from(options.sources.max(1));
        let state = InformerState {
            writer,
            sources: vec![SourceState::default(); sources],
            handlers: BTreeMap::new(),
            next_handler: 0,
            notices: None,
            metrics: InformerMetrics { memory_limit: options.memory_limit, ..InformerMetrics::default() },
            coalesced: 0,
            warned: false,
        };
        let (progress, synced) = (watch::Sender::new(0), watch::Sender::new(false));
        let marks = (0..sources).map(|_| AtomicU64::new(0)).collect();
        Self { inner: Arc::new(Inner { store, state: Mutex::new(state), marks, progress, synced }) }
    }

    /// Returns the store.
    pub fn store(&self) -> &Store {
        &self.inner.store
    }

    /// Returns whether the first list of every watch has ended.
    pub fn has_synced(&self) -> bool {
        *self.inner.synced.borrow()
    }

    /// Waits until the first list of every watch has ended.
    pub async fn synced(&self) {
        // The sender lives as long as `self`.
        let _ = self.inner.synced.subscribe().wait_for(|synced| *synced).await;
    }

    /// Returns the resource version up to which every watch has seen everything. Zero before the first lists have ended.
    ///
    /// Events, bookmarks and lists raise the mark. The mark goes back only when the server's resource
    /// versions do.
    pub fn high_water_mark(&self) -> u64 {
        self.inner.marks.iter().map(|mark| mark.load(Ordering::Acquire)).min().unwrap_or_default()
    }

    /// Returns the resource version up to which a watch has seen everything. Zero before the first list of
    /// the watch has ended.
    pub fn high_water_mark_of(&self, source: ReflectorId) -> u64 {
        self.inner.marks.get(usize::from(source.0)).map_or(0, |mark| mark.load(Ordering::Acquire))
    }

    /// Returns a receiver that changes whenever a high-water mark does. The store is at least as new as the marks say.
    pub fn progress(&self) -> watch::Receiver<u64> {
        self.inner.progress.subscribe()
    }

    /// Waits until every watch has seen everything up to a resource version.
    pub async fn seen(&self, resource_version: u64) {
        let _ = self.progress().wait_for(|_| self.high_water_mark() >= resource_version).await;
    }

    /// Adds a named index over all objects. Returns `false`, and changes nothing, if an index has that name already.
    pub fn add_index(&self, name: &str, function: IndexFn) -> bool {
        let mut state = self.inner.lock();
        let added = state.writer.add_index(name, function);
        let (handler, notices) = (state.notices.clone(), index_notices(&mut state.writer));
        drop(state);
        report(handler, None, &notices);
        added
    }

    /// Sets the handler of the notices of the watches.
    pub fn set_reflector_event_handler(&self, handler: ReflectorEventHandler) {
        self.inner.lock().notices = Some(handler);
    }

    /// Subscribes to changes: first every object of the store as an initial [`Delta::Added`], then every change. The
    /// subscription ends when the guard is dropped.
    pub fn subscribe(&self) -> (SubscriptionGuard, Subscription) {
        let mut state = self.inner.lock();
        let queue = Arc::new(SubscriptionQueue::new(self.inner.store.list()));
        if self.has_synced() {
            queue.push_synced();
        }
        let number = state.next_handler;
        state.next_handler += 1;
        state.handlers.insert(number, queue.clone());
        let guard = SubscriptionGuard::new(self.clone(), number, queue.clone());
        (guard, Subscription::new(queue))
    }

    fn unsubscribe(&self, number: u64) {
        let mut state = self.inner.lock();
        if let Some(queue) = state.handlers.remove(&number) {
            state.coalesced += queue.merged();
            queue.close();
        }
    }

    /// Returns the number of subscriptions.
    pub fn handlers(&self) -> usize {
        self.inner.lock().handlers.len()
    }

    /// Returns the counters and the current sizes.
    pub fn metrics(&self) -> InformerMetrics {
        let state = self.inner.lock();
        let memory = self.inner.store.memory();
        InformerMetrics {
            objects: self.inner.store.len(),
            object_bytes: memory.objects,
            index_bytes: memory.index,
            shared_bytes: memory.shared,
            dictionary_bytes: memory.dictionaries,
            decoded_bytes: memory.decoded,
            backlog_bytes: state.handlers.values().map(|queue| queue.memory()).sum(),
            coalesced: state.coalesced + state.handlers.values().map(|queue| queue.merged()).sum::<u64>(),
            backlog: state.handlers.values().map(|queue| queue.len()).max().unwrap_or_default(),
            ..state.metrics
        }
    }

    /// Feeds the informer through the sink of a watch. The changes become visible in the store together when `feed` returns, and
    /// are then queued for the subscriptions.
    ///
    /// If `feed` panics, no change of `feed` becomes visible. The watch must then begin a new list.
    pub fn feed<R>(&self, source: ReflectorId, feed: impl FnOnce(&mut InformerFeed<'_, '_>) -> R) -> R {
        let mut notices = Vec::new();
        let mut state = self.inner.lock();
        let result = self.apply(&mut state, source, feed, &mut notices);
        let handler = state.notices.clone();
        drop(state);
        report(handler, Some(source), &notices);
        result
    }

    fn apply<R>(
        &self,
        state: &mut InformerState,
        source: ReflectorId,
        feed: impl FnOnce(&mut InformerFeed<'_, '_>) -> R,
        notices: &mut Vec<ReflectorEvent>,
    ) -> R {
        let number = usize::from(source.0);
        let before = state.sources.get(number).copied().unwrap_or_default();
        let mut after = before;
        let (result, deltas, loaded) = state.writer.write(|transaction| {
            let mut sink = InformerFeed { transaction, source, state: &mut after, notices };
            let result = feed(&mut sink);
            (result, transaction.take_deltas(), transaction.take_loaded())
        });
        notices.extend(index_notices(&mut state.writer));
        state.metrics.count(&deltas, notices);
        state.metrics.lists += u64::from(after.lists.wrapping_sub(before.lists));
        let loaded = loaded.unwrap_or_default();
        state.metrics.added += loaded.len() as u64;
        if let Some((last, others)) = state.handlers.values().collect::<Vec<_>>().split_last() {
            for queue in others {
                queue.extend(loaded.clone(), deltas.iter().cloned());
            }
            last.extend(loaded, deltas.into_iter());
        }
        if let Some(state) = state.sources.get_mut(number) {
            *state = after;
        }
        if after.shared_memory != before.shared_memory {
            let shared = state.sources.iter().map(|source| source.shared_memory).sum();
            state.writer.set_shared_memory(shared);
        }
        if after.seen != before.seen || after.synced != before.synced {
            self.advance(state, number);
        }
        result
    }

    /// Publishes the high-water mark of a watch, and whether all watches have synced.
    fn advance(&self, state: &mut InformerState, number: usize) {
        let all_synced = state.sources.iter().all(|source| source.synced);
        if all_synced && !self.has_synced() {
            for queue in state.handlers.values() {
                queue.push_synced();
            }
        }
        let source = state.sources.get(number).filter(|source| source.synced);
        if let Some((source, mark)) = source.zip(self.inner.marks.get(number))
            && mark.swap(source.seen, Ordering::AcqRel) != source.seen
        {
            self.inner.progress.send_modify(|ticks| *ticks = ticks.wrapping_add(1));
        }
        if all_synced {
            self.inner.synced.send_if_modified(|synced| !std::mem::replace(synced, true));
        }
    }

    /// Queues all objects for a subscription, as updates without a change.
    fn resync(&self, queue: &SubscriptionQueue) {
        // No change may be queued between the list and the delivery of the list.
        let _state = self.inner.lock();
        let objects = self.inner.store.list();
        let unchanged = |object: RawObject| Delta::Updated { old: object.clone(), new: object };
        queue.extend(Vec::new(), objects.into_iter().map(unchanged));
    }

    /// Queues all objects for a subscription, as at the begin of the subscription.
    fn renew(&self, queue: &SubscriptionQueue) {
        // No change may be queued between the list and the delivery of the list.
        let _state = self.inner.lock();
        queue.renew(self.inner.store.list(), self.has_synced());
    }

    /// Returns a warning when the store grows beyond the memory limit.
    pub fn memory_warning(&self) -> Option<String> {
        let mut state = self.inner.lock();
        let limit = state.metrics.memory_limit?;
        let used = self.inner.store.memory().total();
        let over = used > limit;
        let warn = over && !state.warned;
        state.warned = over;
        warn.then(|| {
            format!(
                "the cache holds {} objects in {used} bytes, more than its limit of {limit}; restrict it to \
                 namespaces or by a selector, leave out fields with a transform, or compress it",
                self.inner.store.len()
            )
        })
    }
}

/// Applies the changes of a watch to an informer.
#[derive(Debug)]
pub struct InformerFeed<'a, 't> {
    transaction: &'a mut StoreTransaction<'t>,
    source: ReflectorId,
    state: &'a mut SourceState,
    notices: &'a mut Vec<ReflectorEvent>,
}

impl ReflectorStore for InformerFeed<'_, '_> {
    fn begin_list(&mut self) {
        self.state.anonymous = false;
        self.state.lists = self.state.lists.wrapping_add(1);
        self.transaction.begin_list(self.source);
    }

    fn upsert(&mut self, object: Scanned<'_>) -> Result<(), ScanError> {
        let Some(object_ref) = ObjectRef::of_scanned(self.source, &object) else {
            return object.to_object().map(drop);
        };
        self.transaction.upsert(object_ref, !self.state.synced, |old| object.into_successor(old))
    }

    fn delete(&mut self, object: Scanned<'_>) -> Result<(), ScanError> {
        let (namespace, name) = (object.namespace(), object.name());
        let Some(name) = name else { return object.to_object().map(drop) };
        let last = object.to_object()?;
        self.transaction.remove(self.source, namespace, name, Some(last));
        Ok(())
    }

    fn unreadable(&mut self, key: Option<&ObjectKey>) {
        match key {
            Some(key) => self.transaction.keep(self.source, key.namespace(), key.name()),
            None => self.state.anonymous = true,
        }
    }

    fn end_list(&mut self) {
        // An object without a readable key may be any object: nothing is deleted until a list is readable.
        if self.state.anonymous {
            self.transaction.keep_all(self.source);
        }
        self.transaction.sweep(self.source);
        self.state.synced = true;
    }

    fn progress(&mut self, resource_version: &str) {
        if let Ok(seen) = resource_version.parse() {
            self.state.seen = seen;
        }
    }

    fn notice(&mut self, notice: ReflectorEvent) {
        self.notices.push(notice);
    }

    fn shared_memory(&mut self, bytes: usize) {
        self.state.shared_memory = bytes;
    }
}

/// Returns the panics of index functions as notices.
fn index_notices(writer: &mut StoreWriter) -> Vec<ReflectorEvent> {
    let panics = writer.take_index_panics().into_iter();
    panics.map(|(index, object)| ReflectorEvent::IndexPanicked { index, object }).collect()
}

fn report(handler: Option<ReflectorEventHandler>, source: Option<ReflectorId>, notices: &[ReflectorEvent]) {
    if let Some(handler) = handler {
        notices.iter().for_each(|notice| handler(source, notice));
    }
}

impl InformerMetrics {
    fn count(&mut self, deltas: &[Delta], notices: &[ReflectorEvent]) {
        for delta in deltas {
            match delta {
                Delta::Added { .. } => self.added += 1,
                Delta::Updated { .. } => self.updated += 1,
                Delta::Deleted { .. } => self.deleted += 1,
            }
        }
        for notice in notices {
            match notice {
                ReflectorEvent::Failed { .. } => self.failures += 1,
                ReflectorEvent::Unreadable(_) => self.unreadable += 1,
                ReflectorEvent::Relisting { .. } => self.relists += 1,
                ReflectorEvent::IndexPanicked { .. } => self.index_panics += 1,
                ReflectorEvent::Recovered | ReflectorEvent::WatchListUnsupported => {}
            }
        }
    }
}
