//! Makes the informers of a program. All users of a kind share an informer.

use std::{collections::BTreeMap, fmt, sync::Arc, time::Duration};

use kube_client::Client;
use kube_core::{ApiResource, DynamicObject, GroupVersionResource, Resource};
use parking_lot::Mutex;
use serde::de::DeserializeOwned;
use windlass_runtime::{
    Error, Result,
    informer::{SharedInformerFactory, WatchOptions},
};

use crate::{
    informer::{Kept, SharedIndexInformer},
    scheme::Scheme,
};

/// Makes the informers of a program. All users of a kind share an informer. Cheap to clone.
///
/// A generated `SharedInformerFactory` is an `InformerFactory` with a method for each group. Informers that
/// were requested before [`start`](Self::start) begin at `start`, later informers at once. Informers live as
/// long as the factory.
#[derive(Clone)]
pub struct InformerFactory {
    inner: Arc<Inner>,
}

struct Inner {
    watches: SharedInformerFactory,
    /// True if the factory may end the watches. The watches of a manager end with the manager.
    owns_watches: bool,
    resync: Duration,
    resync_of: BTreeMap<Resources, Duration>,
    options: WatchOptions,
    kept: Mutex<BTreeMap<Resources, Arc<Kept>>>,
}

/// The API version and the plural name of a kind.
type Resources = (String, String);

/// Builds an [`InformerFactory`].
pub struct InformerFactoryBuilder {
    watches: SharedInformerFactory,
    owns_watches: bool,
    resync: Duration,
    resync_of: BTreeMap<Resources, Duration>,
    options: WatchOptions,
}

impl InformerFactory {
    /// Makes a factory for all namespaces. Handlers get every object again in each resync period; zero means
    /// never.
    pub fn new(client: Client, resync: Duration) -> Self {
        Self::builder(client).resync(resync).build()
    }

    /// Begins a factory with options.
    pub fn builder(client: Client) -> InformerFactoryBuilder {
        InformerFactoryBuilder::new(SharedInformerFactory::new(client), true)
    }

    /// Begins a factory that uses the watches of another factory, such as the factory of a manager
    /// ([`RunContext::informers`](windlass_runtime::RunContext::informers)): both factories share the watch
    /// of a kind.
    pub fn sharing(watches: &SharedInformerFactory) -> InformerFactoryBuilder {
        InformerFactoryBuilder::new(watches.clone(), false)
    }

    /// Returns the informer of a kind. The first call makes the informer.
    ///
    /// # Errors
    /// The factory has been shut down, or another user of the same watch set an option differently.
    pub fn informer_for<K>(&self) -> Result<SharedIndexInformer<K>>
    where
        K: Resource<DynamicType = ()> + DeserializeOwned + Send + Sync + 'static,
    {
        self.typed(&ApiResource::erase::<K>(&()))
    }

    /// Returns the informer of a resource with a type that is known only at run time.
    ///
    /// # Errors
    /// As [`informer_for`](Self::informer_for).
    pub fn informer_for_resource(
        &self,
        resource: &ApiResource,
    ) -> Result<SharedIndexInformer<DynamicObject>> {
        self.typed(resource)
    }

    /// Returns the informer of a resource that a scheme knows.
    ///
    /// # Errors
    /// The scheme does not know the resource, or an error of [`informer_for`](Self::informer_for).
    pub fn for_resource(
        &self,
        scheme: &Scheme,
        resource: &GroupVersionResource,
    ) -> Result<SharedIndexInformer<DynamicObject>> {
        let found = scheme.known_types().find(|known| known.group_version_resource() == *resource);
        let Some(known) = found else {
            let (group, version, name) = (&resource.group, &resource.version, &resource.resource);
            return Err(Error::other(format!("no informer found for {group}/{version}, Resource={name}")));
        };
        self.informer_for_resource(&known.api_resource())
    }

    fn typed<K>(&self, resource: &ApiResource) -> Result<SharedIndexInformer<K>>
    where
        K: DeserializeOwned + Send + Sync + 'static,
    {
        let key = (resource.api_version.clone(), resource.plural.clone());
        let resync = self.inner.resync_of.get(&key).copied().unwrap_or(self.inner.resync);
        let mut kept = self.inner.kept.lock();
        if let Some(kept) = kept.get(&key) {
            return Ok(SharedIndexInformer::new(kept.clone(), resync));
        }
        let informer = self.inner.watches.informer(resource, self.inner.options.clone());
        let made = Kept::new(informer.map_err(Error::other)?);
        kept.insert(key, made.clone());
        Ok(SharedIndexInformer::new(made, resync))
    }

    /// Starts the watches of all informers that were asked for. Returns at once.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn start(&self) {
        self.inner.watches.start();
    }

    /// Waits until the first lists of all informers that were asked for have ended.
    ///
    /// # Errors
    /// Some informers did not end the first list in time. The error names the informers, with the last
    /// failure of each watch. The watches continue.
    pub async fn wait_for_cache_sync(&self, limit: Duration) -> Result<()> {
        self.inner.watches.wait_for_cache_sync(limit).await.map_err(Error::other)
    }

    /// Removes all event handlers and ends the watches, if this factory has started the watches. The caches
    /// keep the objects.
    pub async fn shutdown(&self) {
        let kept: Vec<_> = self.inner.kept.lock().values().cloned().collect();
        kept.iter().for_each(|kept| kept.remove_handlers());
        if self.inner.owns_watches {
            self.inner.watches.shutdown().await;
        }
    }
}

impl InformerFactoryBuilder {
    fn new(watches: SharedInformerFactory, owns_watches: bool) -> Self {
        Self {
            watches,
            owns_watches,
            resync: Duration::ZERO,
            resync_of: BTreeMap::new(),
            options: WatchOptions::new(),
        }
    }

    /// Sets the resync period of all handlers. Default: zero (never).
    pub fn resync(mut self, period: Duration) -> Self {
        self.resync = period;
        self
    }

    /// Sets the resync period of the handlers of a kind: Go's `WithCustomResyncConfig`.
    pub fn resync_of<K: Resource<DynamicType = ()>>(mut self, period: Duration) -> Self {
        let resource = ApiResource::erase::<K>(&());
        self.resync_of.insert((resource.api_version, resource.plural), period);
        self
    }

    /// Watches a single namespace: Go's `WithNamespace`.
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.options = self.options.namespaces([namespace]);
        self
    }

    /// Changes the lists and watches of all kinds: selectors, a transform and other options. Go's
    /// `WithTweakListOptions` and `WithTransform`.
    pub fn tweak_list_options(mut self, tweak: impl FnOnce(WatchOptions) -> WatchOptions) -> Self {
        self.options = tweak(self.options);
        self
    }

    /// Makes the factory.
    pub fn build(self) -> InformerFactory {
        let Self { watches, owns_watches, resync, resync_of, options } = self;
        let kept = Mutex::default();
        InformerFactory { inner: Arc::new(Inner { watches, owns_watches, resync, resync_of, options, kept }) }
    }
}

impl fmt::Debug for InformerFactory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InformerFactory").field("resync", &self.inner.resync).finish_non_exhaustive()
    }
}

impl fmt::Debug for InformerFactoryBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InformerFactoryBuilder").field("resync", &self.resync).finish_non_exhaustive()
    }
}
