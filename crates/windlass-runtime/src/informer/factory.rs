//! Makes informers. Users with equal options share an informer.

use std::{
    collections::BTreeMap,
    sync::{Arc, OnceLock, Weak},
    time::Duration,
};

use kube_client::Client;
use kube_core::ApiResource;
use parking_lot::{Mutex, RwLock};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use windlass_cache::{InformerCore, InformerMetrics, ReflectorId, Selector};

use super::{
    CacheOptions, SharedInformerFactoryBuilder,
    defaults::{InformerDefaults, InformerKey, key_of},
    driver::WatchSource,
    log::WatchLog,
    request::Collection,
    shared::{Listener, SharedInformer, SharedWatch},
    undecodable::UndecodableObjects,
};
use crate::{
    client::{ApiClient, InvalidName, path::GroupResource},
    error::Error,
    kind_ref::{IntoKind, KindRef},
    supervisor::Supervisor,
};

/// Makes informers: one watch for each kind and selector, however many users ask for an informer. Cheap to clone.
///
/// Watches begin with [`start`](Self::start); the watch of an informer that is made later begins at once.
///
/// There are two ways to ask for an informer. [`informer_for`](Self::informer_for) returns the informer with the options of the factory,
/// which lives as long as the factory, as in client-go. [`informer`](Self::informer) takes options, and the watch ends with the last user.
#[derive(Clone)]
pub struct SharedInformerFactory {
    inner: Arc<Inner>,
    kept: Arc<Kept>,
}

/// The informers that a factory keeps, and their options.
struct Kept {
    /// True if the factory may end the watches. The watches of a manager end with the manager.
    owns_watches: bool,
    /// Limits the watches of namespaced kinds whose options name no namespace, if not empty.
    namespaces: Vec<String>,
    defaults: InformerDefaults,
    informers: Mutex<BTreeMap<InformerKey, SharedInformer>>,
}

/// The watches of one client, which several factories may share.
#[derive(Clone)]
pub(super) struct Watches(Arc<Inner>);

struct Inner {
    client: ApiClient,
    seed: u64,
    supervisor: Supervisor,
    state: Mutex<State>,
    tasks: TaskTracker,
    cancelled: CancellationToken,
    ended: Mutex<BTreeMap<GroupResource, InformerMetrics>>,
}

#[derive(Default)]
struct State {
    started: bool,
    watches: BTreeMap<WatchKey, Weak<SharedWatch>>,
    made: u64,
}

/// The key of a shared watch. Users with equal keys share a watch.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct WatchKey {
    api_version: String,
    plural: String,
    namespaces: Vec<String>,
    label_selector: Selector,
    field_selector: Option<String>,
    metadata_only: bool,
}

/// Removes a watch that has no users left.
pub(super) struct Release {
    factory: Weak<Inner>,
    key: WatchKey,
}

impl Release {
    /// Keeps the counts of an ended watch: the counters of the resource never fall.
    pub(super) fn keep_counts(&self, resource: &ApiResource, counted: &InformerMetrics) {
        let Some(factory) = self.factory.upgrade() else { return };
        let mut ended = factory.ended.lock();
        let sum = ended.entry(GroupResource::of(resource)).or_default();
        sum.added += counted.added;
        sum.updated += counted.updated;
        sum.deleted += counted.deleted;
        sum.lists += counted.lists;
        sum.relists += counted.relists;
        sum.failures += counted.failures;
        sum.unreadable += counted.unreadable;
        sum.index_panics += counted.index_panics;
        sum.coalesced += counted.coalesced;
    }
}

impl Drop for Release {
    fn drop(&mut self) {
        let Some(factory) = self.factory.upgrade() else { return };
        let mut state = factory.state.lock();
        // A new watch may have the same key already.
        if state.watches.get(&self.key).is_some_and(|watch| watch.strong_count() == 0) {
            state.watches.remove(&self.key);
        }
    }
}

/// Why an informer is not available.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InformerError {
    /// The kind is known only at run time, and the factory is limited to namespaces.
    #[error(
        "{plural}: the manager is limited to namespaces, and the scope of the kind is unknown: mark the kind with \
         `KindRef::namespaced` or `KindRef::cluster_scoped`, or set the namespaces of the informer"
    )]
    UnknownScope {
        /// The resource.
        plural: String,
    },
    /// Another user of the same watch set an option differently.
    #[error(
        "{plural} is watched already with another `{option}`: users of one watch must agree on it, or differ in \
         namespaces or selectors"
    )]
    Conflict {
        /// The resource.
        plural: String,
        /// The option.
        option: &'static str,
    },
    /// A namespace has an invalid name.
    #[error("watching {plural}: {invalid}")]
    Namespace {
        /// The resource.
        plural: String,
        /// The name.
        invalid: InvalidName,
    },
    /// The factory has been shut down.
    #[error("the informer factory has been shut down")]
    ShutDown,
    /// Some caches were not filled in time.
    #[error("not synced within {limit:?}: {}", waiting.join(", "))]
    NotSynced {
        /// How long the call waited.
        limit: Duration,
        /// The resources with caches that are not filled, with the last failure of each watch.
        waiting: Vec<String>,
    },
}

impl From<InformerError> for Error {
    fn from(error: InformerError) -> Self {
        match error {
            InformerError::ShutDown => Self::stopped(),
            error => Self::other(error),
        }
    }
}

impl Watches {
    pub(super) fn new(client: ApiClient, seed: u64, supervisor: Supervisor) -> Self {
        Self(Arc::new(Inner {
            client,
            seed,
            supervisor,
            state: Mutex::default(),
            tasks: TaskTracker::new(),
            cancelled: CancellationToken::new(),
            ended: Mutex::default(),
        }))
    }
}

impl SharedInformerFactory {
    /// Makes a factory for all namespaces: client-go's `NewSharedInformerFactory`. A handler gets every object again once in each resync
    /// period; zero means never.
    pub fn new(client: Client, resync: Duration) -> Self {
        Self::builder(client).resync(resync).build()
    }

    /// Begins a factory with options.
    pub fn builder(client: Client) -> SharedInformerFactoryBuilder {
        SharedInformerFactoryBuilder::new(client)
    }

    /// Begins a factory that uses the watches of an existing factory, such as the factory of a manager
    /// ([`RunContext::informers`](crate::RunContext::informers)): a kind that both watch is watched once. The namespaces of the manager
    /// limit the new factory, too.
    pub fn sharing(factory: &Self) -> SharedInformerFactoryBuilder {
        SharedInformerFactoryBuilder::sharing(factory.clone())
    }

    pub(super) fn with(
        watches: Watches,
        owns_watches: bool,
        namespaces: Vec<String>,
        defaults: InformerDefaults,
    ) -> Self {
        let kept = Kept { owns_watches, namespaces, defaults, informers: Mutex::default() };
        Self { inner: watches.0, kept: Arc::new(kept) }
    }

    pub(super) fn watches(&self) -> Watches {
        Watches(self.inner.clone())
    }

    pub(super) fn namespaces(&self) -> &[String] {
        &self.kept.namespaces
    }

    /// Makes a factory with the supervisor that restarts the watches and handlers.
    pub(crate) fn supervised(client: ApiClient, seed: u64, supervisor: Supervisor) -> Self {
        Self::with(Watches::new(client, seed, supervisor), true, Vec::new(), InformerDefaults::default())
    }

    /// Returns the informer of a [kind](crate::KindRef) with the options of the factory: client-go's `InformerFor`. The first call makes the
    /// informer; the factory keeps the informer, and its event handlers, until the [shutdown](Self::shutdown).
    ///
    /// # Errors
    /// The factory has been shut down, another user of the same watch set an option differently, a namespace has an invalid name, or the
    /// factory is limited to namespaces and the scope of the kind is unknown.
    pub fn informer_for<I: IntoKind>(&self, kind: I) -> Result<SharedInformer<I::Object>, InformerError> {
        let kind = kind.into_kind();
        let key = key_of(&kind);
        let mut informers = self.kept.informers.lock();
        if let Some(informer) = informers.get(&key) {
            return Ok(informer.read_as());
        }
        let Kept { defaults, .. } = &*self.kept;
        let options = self.options_of(&kind, defaults.options.clone())?;
        let informer = self.share(&kind.kind.resource, options)?.with_handlers(defaults.handlers_of(&key));
        informers.insert(key, informer.clone());
        Ok(informer.read_as())
    }

    /// Returns an informer of a [kind](crate::KindRef) with these options. Users with equal options share a watch, which ends with the last
    /// user.
    ///
    /// # Errors
    /// As [`informer_for`](Self::informer_for).
    pub fn informer<I: IntoKind>(
        &self,
        kind: I,
        options: CacheOptions,
    ) -> Result<SharedInformer<I::Object>, InformerError> {
        let kind = kind.into_kind();
        let options = self.options_of(&kind, options)?;
        Ok(self.share(&kind.kind.resource, options)?.read_as())
    }

    /// Returns the options of an informer of a kind, limited to the namespaces of the factory.
    fn options_of<K>(
        &self,
        kind: &KindRef<K>,
        mut options: CacheOptions,
    ) -> Result<CacheOptions, InformerError> {
        options.metadata_only = kind.metadata_only;
        if options.namespaces.is_empty() && !self.kept.namespaces.is_empty() {
            match kind.kind.namespaced {
                Some(true) => options.namespaces.clone_from(&self.kept.namespaces),
                Some(false) => {}
                None => return Err(InformerError::UnknownScope { plural: kind.resource().plural.clone() }),
            }
        }
        Ok(options)
    }

    /// Returns the informer of a resource: the existing informer with equal options, or a new informer.
    #[doc(hidden)]
    pub fn share(
        &self,
        resource: &ApiResource,
        options: CacheOptions,
    ) -> Result<SharedInformer, InformerError> {
        let options = options.normalized();
        let key = WatchKey::new(resource, &options);
        let mut state = self.inner.state.lock();
        if self.inner.cancelled.is_cancelled() {
            return Err(InformerError::ShutDown);
        }
        if let Some(watch) = state.watches.get(&key).and_then(Weak::upgrade) {
            drop(state);
            return share(SharedInformer::new(watch), &options);
        }
        state.made += 1;
        let seed = self.inner.seed.wrapping_add(state.made);
        let watch = Arc::new(self.inner.make_watch(resource, options, seed)?);
        let release = Release { factory: Arc::downgrade(&self.inner), key: key.clone() };
        // The release of a new watch is not set yet.
        let _ = watch.release.set(release);
        state.watches.insert(key, Arc::downgrade(&watch));
        if state.started {
            self.inner.start(&watch);
        }
        Ok(SharedInformer::new(watch))
    }

    /// Starts the watches of all informers, and from now on the watches of new informers. Returns at once.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn start(&self) {
        let mut state = self.inner.state.lock();
        state.started = true;
        drop(state);
        self.informers().iter().for_each(|informer| self.inner.start(&informer.watch));
    }

    /// Waits until the first lists of all informers have ended.
    ///
    /// # Errors
    /// A list did not end in time. The lists go on; waiting again is possible.
    pub async fn wait_for_cache_sync(&self, limit: Duration) -> Result<(), InformerError> {
        let informers = self.informers();
        let all = async {
            for informer in &informers {
                informer.synced().await;
            }
        };
        let in_time = tokio::time::timeout(limit, all).await;
        in_time.map_err(|_| InformerError::NotSynced { limit, waiting: self.unsynced() })
    }

    /// Returns the resources whose first list has not ended, each with the last failure of the watch.
    pub(crate) fn unsynced(&self) -> Vec<String> {
        self.informers().iter().filter(|informer| !informer.has_synced()).map(describe_unsynced).collect()
    }

    /// Returns the resources with a watch that has been failing for `limit`, each with the last failure.
    ///
    /// A kind that the server does not have is left out.
    pub(crate) fn stale(&self, limit: Duration) -> Vec<String> {
        let stale = |informer: &SharedInformer| {
            let failing = informer.failing()?;
            let is_stale = failing.duration() >= limit && !failing.kind_is_missing;
            let (plural, seconds) = (&informer.resource().plural, failing.duration().as_secs());
            is_stale.then(|| format!("{plural} for {seconds} s ({})", failing.last))
        };
        self.informers().iter().filter_map(stale).collect()
    }

    /// Removes the informers that the factory keeps, with their event handlers. Ends all watches and waits until the watches have ended,
    /// unless the factory [shares](Self::sharing) the watches. The caches keep their objects.
    pub async fn shutdown(&self) {
        let kept = std::mem::take(&mut *self.kept.informers.lock());
        kept.values().for_each(SharedInformer::remove_event_handlers);
        drop(kept);
        if !self.kept.owns_watches {
            return;
        }
        self.inner.cancelled.cancel();
        self.inner.tasks.close();
        self.inner.tasks.wait().await;
    }

    /// Returns the counts of the watches that have ended, by resource. Other metrics of these watches are zero.
    pub(crate) fn ended(&self) -> BTreeMap<GroupResource, InformerMetrics> {
        self.inner.ended.lock().clone()
    }

    /// Returns the informers that are in use.
    pub fn informers(&self) -> Vec<SharedInformer> {
        let watches = self.inner.state.lock().watches.values().filter_map(Weak::upgrade).collect::<Vec<_>>();
        watches.into_iter().map(SharedInformer::new).collect()
    }
}

/// Names the resource of an informer with an unfinished first list, with the reason if known.
fn describe_unsynced(informer: &SharedInformer) -> String {
    let plural = &informer.resource().plural;
    informer.last_failure().map_or_else(|| plural.clone(), |failure| format!("{plural} ({failure})"))
}

impl Inner {
    fn make_watch(
        &self,
        resource: &ApiResource,
        options: CacheOptions,
        seed: u64,
    ) -> Result<SharedWatch, InformerError> {
        let core = InformerCore::new(options.informer_options());
        let (log, listeners) = (Arc::new(WatchLog::default()), Arc::<RwLock<Vec<Listener>>>::default());
        core.set_reflector_event_handler({
            let (log, listeners, supervisor) = (log.clone(), listeners.clone(), self.supervisor.clone());
            let plural = resource.plural.clone();
            let task = format!("notice listener of {plural}");
            Arc::new(move |source, notice| {
                log.write(&plural, source, notice);
                // Cloned: a listener may add a listener.
                let listeners = listeners.read().clone();
                for listener in listeners {
                    supervisor.call(&task, || listener(notice));
                }
            })
        });
        let namespaces: Vec<_> = match &options.namespaces[..] {
            [] => vec![None],
            some => some.iter().map(|namespace| Some(namespace.as_str())).collect(),
        };
        let undecodable: Vec<_> = namespaces.iter().map(|_| Arc::<UndecodableObjects>::default()).collect();
        let sources = namespaces.into_iter().zip(0..).map(|(namespace, number)| {
            Ok(WatchSource {
                client: self.client.clone(),
                collection: Collection::new(resource, namespace, &options)?,
                config: options.reflector_config(resource, seed.wrapping_add(u64::from(number) << 32)),
                scan: options.scan_options(resource),
                informer: core.clone(),
                log: log.clone(),
                source: ReflectorId(number),
                undecodable: undecodable[usize::from(number)].clone(),
                turn: Arc::default(),
                tasks: self.tasks.clone(),
            })
        });
        let sources = sources.collect::<Result<_, InvalidName>>();
        let sources = sources
            .map_err(|invalid| InformerError::Namespace { plural: resource.plural.clone(), invalid })?;
        Ok(SharedWatch {
            core,
            resource: resource.clone(),
            indexes: Mutex::new(options.indexes.iter().cloned().collect()),
            options,
            sources: Mutex::new(sources),
            undecodable,
            cancelled: self.cancelled.child_token(),
            listeners,
            log,
            supervisor: self.supervisor.clone(),
            release: OnceLock::new(),
        })
    }

    /// Starts the watches, unless the watches have been started.
    fn start(&self, watch: &SharedWatch) {
        for source in std::mem::take(&mut *watch.sources.lock()) {
            let task = format!("watch of {}", watch.resource.plural);
            let cancelled = watch.cancelled.clone();
            let run = move |recovery| source.clone().run(recovery);
            let run = self.supervisor.clone().supervise(task, cancelled.clone(), run);
            self.tasks.spawn(cancelled.run_until_cancelled_owned(run));
        }
    }
}

/// Adds a user to an existing watch.
fn share(informer: SharedInformer, options: &CacheOptions) -> Result<SharedInformer, InformerError> {
    if let Some(option) = informer.options().conflict(options) {
        let plural = informer.resource().plural.clone();
        return Err(InformerError::Conflict { plural, option });
    }
    for (name, function) in &options.indexes {
        informer.add_index(name, function.clone());
    }
    Ok(informer)
}

impl WatchKey {
    fn new(resource: &ApiResource, options: &CacheOptions) -> Self {
        Self {
            api_version: resource.api_version.clone(),
            plural: resource.plural.clone(),
            namespaces: options.namespaces.clone(),
            label_selector: options.label_selector.clone(),
            field_selector: options.field_selector.clone(),
            metadata_only: options.metadata_only,
        }
    }
}

impl std::fmt::Debug for SharedInformerFactory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SharedInformerFactory")
            .field("started", &self.inner.state.lock().started)
            .finish_non_exhaustive()
    }
}
