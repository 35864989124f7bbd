//! Makes informers, and sees to it that those with the same wishes are one.

use std::{
    collections::BTreeMap,
    sync::{Arc, OnceLock, Weak},
    time::Duration,
};

use kube_client::Client;
use kube_core::ApiResource;
use parking_lot::Mutex;
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use windlass_cache::{Reflector, Selector, SourceId};

use super::{
    WatchOptions,
    driver::Driver,
    log::WatchLog,
    request::Collection,
    shared::{Lease, Listener, SharedInformer},
};
use crate::supervisor::Supervisor;

/// Makes informers: one watch for each kind and selector, however many ask for it. Cheap to clone.
///
/// Nothing is watched before [`Self::start`]; informers made later start at once.
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
}

#[derive(Default)]
struct State {
    started: bool,
    informers: BTreeMap<WatchKey, Weak<Lease>>,
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

/// Takes a watch whose last user has gone out of the factory's book.
pub(super) struct Release {
    factory: Weak<Inner>,
    key: WatchKey,
}

impl Drop for Release {
    fn drop(&mut self) {
        let Some(factory) = self.factory.upgrade() else { return };
        let mut state = factory.state.lock();
        // A new informer may have taken the place already.
        if state.informers.get(&self.key).is_some_and(|lease| lease.strong_count() == 0) {
            state.informers.remove(&self.key);
        }
    }
}

/// An informer could not be had.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InformerError {
    /// Somebody else watches the same, and wants it kept differently.
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
    /// Some caches have not been filled in time.
    #[error("not synced within {limit:?}: {}", waiting.join(", "))]
    NotSynced {
        /// How long was waited.
        limit: Duration,
        /// The resources whose caches are not filled.
        waiting: Vec<String>,
    },
}

impl SharedInformerFactory {
    /// A factory whose informers use this client.
    pub fn new(client: Client) -> Self {
        use std::hash::{BuildHasher, Hasher};
        // Processes that lose the same server must not come back in step.
        Self::with_seed(client, foldhash::fast::RandomState::default().build_hasher().finish())
    }

    /// The same, with jitter that is the same in every run with the same seed.
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
            }),
        }
    }

    /// The informer of a kind: the one that is there, or a new one.
    ///
    /// # Errors
    /// Another user of the same watch wants it kept differently, or the factory has been shut down.
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
        if let Some(lease) = state.informers.get(&key).and_then(Weak::upgrade) {
            drop(state);
            return share(SharedInformer { lease }, &options);
        }
        state.made += 1;
        let seed = self.inner.seed.wrapping_add(state.made);
        let lease = Arc::new(self.lease(resource, options, seed));
        let release = Release { factory: Arc::downgrade(&self.inner), key: key.clone() };
        // It has just been made: nobody can have set it before.
        let _ = lease.release.set(release);
        state.informers.insert(key, Arc::downgrade(&lease));
        if state.started {
            self.inner.drive(&lease);
        }
        Ok(SharedInformer { lease })
    }

    fn lease(&self, resource: &ApiResource, options: WatchOptions, seed: u64) -> Lease {
        let core = windlass_cache::SharedInformer::new(options.informer());
        let listeners: Arc<Mutex<Vec<Listener>>> = Arc::default();
        let (log, told, plural) = (WatchLog::default(), listeners.clone(), resource.plural.clone());
        core.set_notice_handler(Arc::new(move |notice| {
            log.write(&plural, notice);
            told.lock().iter().for_each(|listener| listener(notice));
        }));
        let namespaces: Vec<_> = match &options.namespaces[..] {
            [] => vec![None],
            some => some.iter().map(|namespace| Some(namespace.as_str())).collect(),
        };
        let now = tokio::time::Instant::now().into_std();
        let drivers = namespaces.into_iter().zip(0..).map(|(namespace, number)| Driver {
            client: self.inner.client.clone(),
            collection: Collection::new(resource, namespace, &options),
            reflector: Reflector::new(
                options.reflector(resource, seed.wrapping_add(u64::from(number) << 32)),
                &options.scan(resource),
                now,
            ),
            informer: core.clone(),
            source: SourceId(number),
        });
        let drivers = Mutex::new(drivers.collect());
        let (resource, ended) = (resource.clone(), self.inner.cancelled.child_token());
        Lease { core, resource, options, drivers, ended, listeners, release: OnceLock::new() }
    }

    /// Starts the watches of all informers, and from now on those of new ones. It returns at once.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn start(&self) {
        let mut state = self.inner.state.lock();
        state.started = true;
        let leases: Vec<_> = state.informers.values().filter_map(Weak::upgrade).collect();
        drop(state);
        leases.iter().for_each(|lease| self.inner.drive(lease));
    }

    /// Waits until the first lists of all informers are through.
    ///
    /// # Errors
    /// Some were not, in time. They go on; waiting again is possible.
    pub async fn wait_for_cache_sync(&self, limit: Duration) -> Result<(), InformerError> {
        let leases: Vec<_> = self.inner.state.lock().informers.values().filter_map(Weak::upgrade).collect();
        let all = async {
            for lease in &leases {
                lease.core.synced().await;
            }
        };
        tokio::time::timeout(limit, all).await.map_err(|_| {
            let waiting = leases.iter().filter(|lease| !lease.core.has_synced());
            InformerError::NotSynced {
                limit,
                waiting: waiting.map(|lease| lease.resource.plural.clone()).collect(),
            }
        })
    }

    /// Ends all watches and waits until they have ended. The caches keep what they have.
    pub async fn shutdown(&self) {
        self.inner.cancelled.cancel();
        self.inner.tasks.close();
        self.inner.tasks.wait().await;
    }

    /// The informers that are in use.
    pub fn informers(&self) -> Vec<SharedInformer> {
        let leases: Vec<_> = self.inner.state.lock().informers.values().filter_map(Weak::upgrade).collect();
        leases.into_iter().map(|lease| SharedInformer { lease }).collect()
    }
}

impl Inner {
    fn drive(&self, lease: &Lease) {
        for driver in std::mem::take(&mut *lease.drivers.lock()) {
            self.tasks.spawn(driver.run(lease.ended.clone()));
        }
    }
}

/// Joins the users of a watch that is there.
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
