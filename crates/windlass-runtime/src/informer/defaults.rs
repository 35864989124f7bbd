//! The options of an informer factory.

use std::{collections::BTreeMap, time::Duration};

use kube_client::Client;

use super::{CacheOptions, HandlerOptions, SharedInformerFactory, factory::Watches};
use crate::{
    kind_ref::{IntoKind, KindRef},
    supervisor::Supervisor,
};

/// The API version and the plural name of a kind, and whether only the metadata is watched.
pub(super) type InformerKey = (String, String, bool);

/// The options of the informers that [`SharedInformerFactory::informer_for`] returns.
#[derive(Clone, Debug, Default)]
pub(super) struct InformerDefaults {
    resync: Duration,
    resync_of: BTreeMap<InformerKey, Duration>,
    pub(super) options: CacheOptions,
}

impl InformerDefaults {
    /// Returns the options of the handlers of a kind.
    pub(super) fn handlers_of(&self, kind: &InformerKey) -> HandlerOptions {
        HandlerOptions::default().resync(self.resync_of.get(kind).copied().unwrap_or(self.resync))
    }
}

/// Builds a [`SharedInformerFactory`].
pub struct SharedInformerFactoryBuilder {
    origin: Origin,
    namespaces: Vec<String>,
    defaults: InformerDefaults,
}

/// The watches of a new factory.
enum Origin {
    /// The factory makes watches.
    Client { client: Box<Client>, seed: Option<u64> },
    /// The factory shares the watches of an existing factory.
    Shared(SharedInformerFactory),
}

impl SharedInformerFactoryBuilder {
    pub(super) fn new(client: Client) -> Self {
        let origin = Origin::Client { client: Box::new(client), seed: None };
        Self { origin, namespaces: Vec::new(), defaults: InformerDefaults::default() }
    }

    pub(super) fn sharing(factory: SharedInformerFactory) -> Self {
        let namespaces = factory.namespaces().to_vec();
        Self { origin: Origin::Shared(factory), namespaces, defaults: InformerDefaults::default() }
    }

    /// Limits the watches of namespaced kinds, unless the options of an informer name namespaces. Default: the namespaces of the factory
    /// that [shares](SharedInformerFactory::sharing) its watches, or all.
    pub(crate) fn default_namespaces(mut self, namespaces: &[String]) -> Self {
        self.namespaces = namespaces.to_vec();
        self
    }

    /// Sets the resync period of all handlers: every handler gets every object again once in each period. Default: zero, which means
    /// never.
    pub fn resync(mut self, period: Duration) -> Self {
        self.defaults.resync = period;
        self
    }

    /// Sets the resync period of the handlers of a [kind](crate::KindRef): Go's `WithCustomResyncConfig`.
    pub fn resync_of(mut self, kind: impl IntoKind, period: Duration) -> Self {
        self.defaults.resync_of.insert(key_of(&kind.into_kind()), period);
        self
    }

    /// Watches only this namespace: Go's `WithNamespace`.
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.defaults.options = self.defaults.options.namespaces([namespace]);
        self
    }

    /// Changes the options of all caches: selectors, a transform and other options. Go's `WithTweakListOptions` and `WithTransform`.
    pub fn tweak_list_options(mut self, tweak: impl FnOnce(CacheOptions) -> CacheOptions) -> Self {
        self.defaults.options = tweak(self.defaults.options);
        self
    }

    /// Sets the seed of the jitter: every run with the same seed has the same jitter. Default: a random seed. Has no effect on a
    /// factory that [shares](SharedInformerFactory::sharing) watches.
    pub fn seed(mut self, number: u64) -> Self {
        if let Origin::Client { seed, .. } = &mut self.origin {
            *seed = Some(number);
        }
        self
    }

    /// Makes the factory.
    pub fn build(self) -> SharedInformerFactory {
        let Self { origin, namespaces, defaults } = self;
        match origin {
            Origin::Client { client, seed } => {
                let watches =
                    Watches::new((*client).into(), seed.unwrap_or_else(random_seed), Supervisor::default());
                SharedInformerFactory::with(watches, true, namespaces, defaults)
            }
            Origin::Shared(factory) => {
                SharedInformerFactory::with(factory.watches(), false, namespaces, defaults)
            }
        }
    }
}

impl std::fmt::Debug for SharedInformerFactoryBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SharedInformerFactoryBuilder")
            .field("defaults", &self.defaults)
            .finish_non_exhaustive()
    }
}

/// Returns the key of a kind among the informers of a factory.
pub(super) fn key_of<K>(kind: &KindRef<K>) -> InformerKey {
    let resource = kind.resource();
    (resource.api_version.clone(), resource.plural.clone(), kind.metadata_only)
}

/// Returns a random seed: processes that lose the same server must not reconnect in step.
fn random_seed() -> u64 {
    use std::hash::{BuildHasher, Hasher};
    foldhash::fast::RandomState::default().build_hasher().finish()
}
