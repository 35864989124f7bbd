//! One store, fed by one watch or several, and any number of handlers that are told of its changes.

mod backlog;
mod metrics;
mod subscription;

pub use self::{
    metrics::InformerMetrics,
    subscription::{Subscription, SubscriptionGuard},
};

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use parking_lot::Mutex;
use tokio::sync::watch;

use self::subscription::Mailbox;
use crate::{
    Delta, IndexFn, ObjectKey, ObjectRef, RawObject, SourceId, Store, StoreOptions, Transaction, Writer,
    reflector::{Notice, Sink},
    scan::{ScanError, Scanned},
};

/// Is told what a person may want to know.
pub type NoticeHandler = Arc<dyn Fn(&Notice) + Send + Sync>;

/// What a shared informer is to do.
#[derive(Clone, Debug)]
pub struct InformerOptions {
    /// How its store keeps objects.
    pub store: StoreOptions,
    /// How many watches feed it: one for each namespace, or one for all.
    pub sources: u16,
    /// Bytes beyond which a warning is given, once.
    pub memory_limit: Option<usize>,
}

impl Default for InformerOptions {
    fn default() -> Self {
        Self { store: StoreOptions::default(), sources: 1, memory_limit: None }
    }
}

/// One store, fed by one watch or several, and any number of handlers. Cheap to clone.
#[derive(Clone, Debug)]
pub struct InformerCore {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    store: Store,
    core: Mutex<Core>,
    /// Per watch, the resource version up to which everything has been seen.
    marks: Box<[AtomicU64]>,
    /// Ticks whenever a mark changes.
    progress: watch::Sender<u64>,
    synced: watch::Sender<bool>,
}

struct Core {
    writer: Writer,
    sources: Vec<Source>,
    handlers: BTreeMap<u64, Arc<Mailbox>>,
    next_handler: u64,
    notices: Option<NoticeHandler>,
    metrics: InformerMetrics,
    /// Of handlers that have gone.
    coalesced: u64,
    warned: bool,
}

impl std::fmt::Debug for Core {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Core").field("sources", &self.sources).finish_non_exhaustive()
    }
}

/// One watch.
#[derive(Clone, Copy, Debug, Default)]
struct Source {
    synced: bool,
    /// An object of the current list could not be told from others.
    anonymous: bool,
    seen: u64,
    lists: u32,
    /// Bytes that its objects share.
    shapes_memory: usize,
}

impl InformerCore {
    /// An informer that waits to be fed.
    pub fn new(options: InformerOptions) -> Self {
        let (store, writer) = Store::new(options.store);
        let sources = usize::from(options.sources.max(1));
        let core = Core {
            writer,
            sources: vec![Source::default(); sources],
            handlers: BTreeMap::new(),
            next_handler: 0,
            notices: None,
            metrics: InformerMetrics { memory_limit: options.memory_limit, ..InformerMetrics::default() },
            coalesced: 0,
            warned: false,
        };
        let (progress, synced) = (watch::Sender::new(0), watch::Sender::new(false));
        let marks = (0..sources).map(|_| AtomicU64::new(0)).collect();
        Self { inner: Arc::new(Inner { store, core: Mutex::new(core), marks, progress, synced }) }
    }

    /// The objects.
    pub fn store(&self) -> &Store {
        &self.inner.store
    }

    /// Whether the first list is through.
    pub fn has_synced(&self) -> bool {
        *self.inner.synced.borrow()
    }

    /// Waits until the first list is through.
    pub async fn synced(&self) {
        // The sender lives as long as `self`.
        let _ = self.inner.synced.subscribe().wait_for(|synced| *synced).await;
    }

    /// The resource version up to which every watch has seen everything. Zero before the first lists have ended.
    ///
    /// Events, bookmarks and lists advance it. It goes back only when the server's resource versions do.
    pub fn high_water_mark(&self) -> u64 {
        self.inner.marks.iter().map(|mark| mark.load(Ordering::Acquire)).min().unwrap_or_default()
    }

    /// The resource version up to which one watch has seen everything. Zero before its first list has ended.
    pub fn high_water_mark_of(&self, source: SourceId) -> u64 {
        self.inner.marks.get(usize::from(source.0)).map_or(0, |mark| mark.load(Ordering::Acquire))
    }

    /// A receiver that changes whenever a high-water mark does. The store is at least as new as the marks say.
    pub fn progress(&self) -> watch::Receiver<u64> {
        self.inner.progress.subscribe()
    }

    /// Waits until every watch has seen everything up to a resource version.
    pub async fn seen(&self, resource_version: u64) {
        let _ = self.progress().wait_for(|_| self.high_water_mark() >= resource_version).await;
    }

    /// Adds a named index over all objects; answers whether there was none of that name.
    pub fn add_index(&self, name: &str, function: IndexFn) -> bool {
        let mut core = self.inner.core.lock();
        let added = core.writer.add_index(name, function);
        let (told, notices) = (core.notices.clone(), index_notices(&mut core.writer));
        drop(core);
        report(told, &notices);
        added
    }

    /// Sets who is told of failures and other events of the watches.
    pub fn set_notice_handler(&self, handler: NoticeHandler) {
        self.inner.core.lock().notices = Some(handler);
    }

    /// Subscribes to changes: first every object of the store as an initial [`Delta::Added`], then every change. The
    /// subscription ends when the guard is dropped.
    pub fn subscribe(&self) -> (SubscriptionGuard, Subscription) {
        let mut core = self.inner.core.lock();
        let mailbox = Arc::new(Mailbox::new(self.told_of(&core)));
        if self.has_synced() {
            mailbox.push_synced();
        }
        let number = core.next_handler;
        core.next_handler += 1;
        core.handlers.insert(number, mailbox.clone());
        let registration = SubscriptionGuard::new(self.clone(), number, mailbox.clone());
        (registration, Subscription::new(mailbox))
    }

    fn unsubscribe(&self, number: u64) {
        let mut core = self.inner.core.lock();
        if let Some(mailbox) = core.handlers.remove(&number) {
            core.coalesced += mailbox.merged();
            mailbox.close();
        }
    }

    /// How many handlers there are.
    pub fn handlers(&self) -> usize {
        self.inner.core.lock().handlers.len()
    }

    /// What has been counted, and how large the store is now.
    pub fn metrics(&self) -> InformerMetrics {
        let core = self.inner.core.lock();
        let memory = self.inner.store.memory();
        InformerMetrics {
            objects: self.inner.store.len(),
            object_bytes: memory.objects,
            index_bytes: memory.index,
            shape_bytes: memory.shapes,
            dictionary_bytes: memory.dictionaries,
            decoded_bytes: memory.decoded,
            backlog_bytes: core.handlers.values().map(|mailbox| mailbox.memory()).sum(),
            coalesced: core.coalesced + core.handlers.values().map(|mailbox| mailbox.merged()).sum::<u64>(),
            backlog: core.handlers.values().map(|mailbox| mailbox.len()).max().unwrap_or_default(),
            ..core.metrics
        }
    }

    /// Feeds the informer: `feed` is given the sink of a watch. What it brings becomes visible in the store at once, and
    /// then goes to the handlers.
    pub fn feed<R>(&self, source: SourceId, feed: impl FnOnce(&mut InformerSink<'_, '_>) -> R) -> R {
        let mut notices = Vec::new();
        let mut core = self.inner.core.lock();
        let answer = self.apply(&mut core, source, feed, &mut notices);
        let told = core.notices.clone();
        drop(core);
        report(told, &notices);
        answer
    }

    fn apply<R>(
        &self,
        core: &mut Core,
        source: SourceId,
        feed: impl FnOnce(&mut InformerSink<'_, '_>) -> R,
        notices: &mut Vec<Notice>,
    ) -> R {
        let place = usize::from(source.0);
        let before = core.sources.get(place).copied().unwrap_or_default();
        let mut after = before;
        let (answer, deltas, loaded) = core.writer.write(|transaction| {
            let mut sink = InformerSink { transaction, source, state: &mut after, notices };
            let answer = feed(&mut sink);
            (answer, transaction.take_deltas(), transaction.take_loaded())
        });
        notices.extend(index_notices(&mut core.writer));
        core.metrics.count(&deltas, notices);
        core.metrics.lists += u64::from(after.lists.wrapping_sub(before.lists));
        if let Some(loaded) = loaded {
            core.metrics.added += loaded.len() as u64;
            core.handlers.values().for_each(|mailbox| mailbox.push_initial(loaded.clone()));
        }
        if let Some((last, others)) = core.handlers.values().collect::<Vec<_>>().split_last() {
            others.iter().for_each(|mailbox| mailbox.extend(deltas.iter().cloned()));
            last.extend(deltas.into_iter());
        }
        if let Some(state) = core.sources.get_mut(place) {
            *state = after;
        }
        if after.shapes_memory != before.shapes_memory {
            let shared = core.sources.iter().map(|source| source.shapes_memory).sum();
            core.writer.set_shapes_memory(shared);
        }
        if after.seen != before.seen || after.synced != before.synced {
            self.advance(core, place);
        }
        answer
    }

    /// Publishes the mark of one watch, and that all have synced.
    fn advance(&self, core: &mut Core, place: usize) {
        let all_synced = core.sources.iter().all(|source| source.synced);
        if all_synced && !self.has_synced() {
            for mailbox in core.handlers.values() {
                mailbox.push_synced();
            }
        }
        let source = core.sources.get(place).filter(|source| source.synced);
        if let Some((source, mark)) = source.zip(self.inner.marks.get(place))
            && mark.swap(source.seen, Ordering::AcqRel) != source.seen
        {
            self.inner.progress.send_modify(|ticks| *ticks = ticks.wrapping_add(1));
        }
        if all_synced {
            self.inner.synced.send_if_modified(|synced| !std::mem::replace(synced, true));
        }
    }

    /// The objects that handlers have been told of, or are about to be. An index that is added during the first list shows
    /// some of it early, but nobody has been told.
    fn told_of(&self, core: &Core) -> Vec<RawObject> {
        if core.writer.is_loading() { Vec::new() } else { self.inner.store.list() }
    }

    /// Tells one handler of all objects again, as updates that change nothing.
    fn resync(&self, mailbox: &Mailbox) {
        let core = self.inner.core.lock();
        let objects = self.told_of(&core);
        mailbox.extend(objects.into_iter().map(|object| Delta::Updated { old: object.clone(), new: object }));
    }

    /// A warning to give, once, when the store has grown beyond its limit.
    pub fn memory_warning(&self) -> Option<String> {
        let mut core = self.inner.core.lock();
        let limit = core.metrics.memory_limit?;
        let used = self.inner.store.memory().total();
        let over = used > limit;
        let warn = over && !core.warned;
        core.warned = over;
        warn.then(|| {
            format!(
                "the cache holds {} objects in {used} bytes, more than its limit of {limit}; narrow it by \
                 namespace, selector or transform, or compress it",
                self.inner.store.len()
            )
        })
    }
}

/// Applies what a watch brings.
#[derive(Debug)]
pub struct InformerSink<'a, 't> {
    transaction: &'a mut Transaction<'t>,
    source: SourceId,
    state: &'a mut Source,
    notices: &'a mut Vec<Notice>,
}

impl Sink for InformerSink<'_, '_> {
    fn begin_list(&mut self) {
        self.state.anonymous = false;
        self.state.lists = self.state.lists.wrapping_add(1);
        self.transaction.begin_list(self.source);
    }

    fn upsert(&mut self, object: Scanned<'_>) -> Result<(), ScanError> {
        let Some(object_ref) = ObjectRef::of_scanned(self.source, &object) else {
            return object.to_object().map(drop);
        };
        self.transaction.upsert(object_ref, !self.state.synced, || object.to_object())
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
        // Something could not be told from the rest: until a list is readable, nothing is taken for gone.
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

    fn notice(&mut self, notice: Notice) {
        self.notices.push(notice);
    }

    fn shapes_memory(&mut self, bytes: usize) {
        self.state.shapes_memory = bytes;
    }
}

/// The panics of index functions, as notices.
fn index_notices(writer: &mut Writer) -> Vec<Notice> {
    let panics = writer.take_index_panics().into_iter();
    panics.map(|(index, object)| Notice::IndexPanicked { index, object }).collect()
}

fn report(handler: Option<NoticeHandler>, notices: &[Notice]) {
    if let Some(handler) = handler {
        notices.iter().for_each(|notice| handler(notice));
    }
}

impl InformerMetrics {
    fn count(&mut self, deltas: &[Delta], notices: &[Notice]) {
        for delta in deltas {
            match delta {
                Delta::Added { .. } => self.added += 1,
                Delta::Updated { .. } => self.updated += 1,
                Delta::Deleted { .. } => self.deleted += 1,
            }
        }
        for notice in notices {
            match notice {
                Notice::Failed { .. } => self.failures += 1,
                Notice::Unreadable(_) => self.unreadable += 1,
                Notice::Recovered
                | Notice::Relisting { .. }
                | Notice::WatchListUnsupported
                | Notice::IndexPanicked { .. } => {}
            }
        }
    }
}
