//! Makes informers. Users with equal options share one.

use std::{
    collections::BTreeMap,
    sync::{Arc, OnceLock, Weak},
    time::Duration,
};

use kube_client::Client;
use kube_core::ApiResource;
use parking_lot::{Mutex, RwLock};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use windlass_cache::{InformerCore, InformerMetrics, Selector, SourceId};

use super::{
    WatchOptions,
    driver::WatchSource,
    log::WatchLog,
    request::Collection,
    shared::{Listener, SharedInformer, SharedWatch},
    undecodable::UndecodableObjects,
};
use crate::{client::path::GroupResource, supervisor::Supervisor};

/// Makes informers: one watch for each kind and selector, however many users ask for it. Cheap to clone.
///
/// Watches begin with [`Self::start`]; those of informers that are made later begin at once.
#[derive(Clone)]
pub struct SharedInformerFactory {
    inner: Arc<Inner>,
}

struct Inner {
    client: Client,
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

/// Users with the same key share one watch.
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
    /// Keeps the counts of a watch that ends, so that the counters of its resource never fall.
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
    /// The factory has been shut down.
    #[error("the informer factory has been shut down")]
    ShutDown,
    /// Some caches were not filled in time.
    #[error("not synced within {limit:?}: {}", waiting.join(", "))]
    NotSynced {
        /// How long the call waited.
        limit: Duration,
        /// The resources whose caches are not filled, with the last failure of their watches.
        waiting: Vec<String>,
    },
}

impl SharedInformerFactory {
    /// Makes a factory whose informers use this client.
    pub fn new(client: Client) -> Self {
        use std::hash::{BuildHasher, Hasher};
        // A random seed: processes that lose the same server must not reconnect in step.
        Self::with_seed(client, foldhash::fast::RandomState::default().build_hasher().finish())
    }

    /// As [`new`](Self::new), with jitter that is the same in every run with the same seed.
    pub fn with_seed(client: Client, seed: u64) -> Self {
        Self::supervised(client, seed, Supervisor::default())
    }

    /// As [`with_seed`](Self::with_seed), with the supervisor that restarts the watches and handlers.
    pub(crate) fn supervised(client: Client, seed: u64, supervisor: Supervisor) -> Self {
        Self {
            inner: Arc::new(Inner {
                client,
                seed,
                supervisor,
                state: Mutex::default(),
                tasks: TaskTracker::new(),
                cancelled: CancellationToken::new(),
                ended: Mutex::default(),
            }),
        }
    }

    /// Returns the informer of a kind: the existing one with equal options, or a new one.
    ///
    /// # Errors
    /// Another user of the same watch set an option differently, or the factory has been shut down.
    pub fn informer(
        &self,
        resource: &ApiResource,
        options: WatchOptions,
    ) -> Result<SharedInformer, InformerError> {
        let options = options.normalized();
        let key = WatchKey::new(resource, &options);
        let mut state = self.inner.state.lock();
        if self.inner.cancelled.is_cancelled() {
            return Err(InformerError::ShutDown);
        }
        if let Some(watch) = state.watches.get(&key).and_then(Weak::upgrade) {
            drop(state);
            return share(SharedInformer { watch }, &options);
        }
        state.made += 1;
        let seed = self.inner.seed.wrapping_add(state.made);
        let watch = Arc::new(self.inner.make_watch(resource, options, seed));
        let release = Release { factory: Arc::downgrade(&self.inner), key: key.clone() };
        // The watch is new, so its release is not set yet.
        let _ = watch.release.set(release);
        state.watches.insert(key, Arc::downgrade(&watch));
        if state.started {
            self.inner.start(&watch);
        }
        Ok(SharedInformer { watch })
    }

    /// Starts the watches of all informers, and from now on those of new ones. Returns at once.
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
    /// Some did not end in time. They go on; waiting again is possible.
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

    /// The resources whose first list has not ended, each with the last failure of its watch.
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

    /// Ends all watches and waits until they have ended. The caches keep their objects.
    pub async fn shutdown(&self) {
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
        watches.into_iter().map(|watch| SharedInformer { watch }).collect()
    }
}

/// Names the resource of an informer whose first list has not ended, with the reason if it is known.
fn describe_unsynced(informer: &SharedInformer) -> String {
    let plural = &informer.resource().plural;
    informer.last_failure().map_or_else(|| plural.clone(), |failure| format!("{plural} ({failure})"))
}

impl Inner {
    fn make_watch(&self, resource: &ApiResource, options: WatchOptions, seed: u64) -> SharedWatch {
        let core = InformerCore::new(options.informer_options());
        let (log, listeners) = (Arc::new(WatchLog::default()), Arc::<RwLock<Vec<Listener>>>::default());
        core.set_notice_handler({
            let (log, listeners, supervisor) = (log.clone(), listeners.clone(), self.supervisor.clone());
            let plural = resource.plural.clone();
            let task = format!("notice listener of {plural}");
            Arc::new(move |source, notice| {
                log.write(&plural, source, notice);
                // Cloned: a listener may add another one.
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
        let sources = namespaces.into_iter().zip(0..).map(|(namespace, number)| WatchSource {
            client: self.client.clone(),
            collection: Collection::new(resource, namespace, &options),
            config: options.reflector_config(resource, seed.wrapping_add(u64::from(number) << 32)),
            scan: options.scan_options(resource),
            informer: core.clone(),
            source: SourceId(number),
            undecodable: undecodable[usize::from(number)].clone(),
        });
        let sources = Mutex::new(sources.collect());
        SharedWatch {
            core,
            resource: resource.clone(),
            indexes: Mutex::new(options.indexes.iter().cloned().collect()),
            options,
            sources,
            undecodable,
            cancelled: self.cancelled.child_token(),
            listeners,
            log,
            supervisor: self.supervisor.clone(),
            release: OnceLock::new(),
        }
    }

    /// Starts the watches, unless they have been started.
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
fn share(informer: SharedInformer, options: &WatchOptions) -> Result<SharedInformer, InformerError> {
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
    fn new(resource: &ApiResource, options: &WatchOptions) -> Self {
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
