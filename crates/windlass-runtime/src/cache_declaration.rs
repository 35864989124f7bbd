//! The cache that a runnable or a webhook declares.

use kube_core::Resource;

use crate::{
    error::{Error, Result},
    informer::{InformerError, SharedInformer, SharedInformerFactory, WatchOptions},
    kind::{Kind, Object},
    permission::Permission,
};

/// The cache of a kind that a runnable or a webhook reads.
#[derive(Clone, Debug)]
pub(crate) struct CacheDeclaration {
    pub(crate) kind: Kind,
    pub(crate) options: WatchOptions,
}

impl CacheDeclaration {
    pub(crate) fn of<K: Object + Resource<DynamicType = ()>>(options: WatchOptions) -> Self {
        Self { kind: Kind::of::<K>(), options }
    }

    /// Returns the rights to fill the cache.
    pub(crate) fn permissions(&self) -> [Permission; 2] {
        Permission::of_watch(&self.kind, &self.options)
    }

    /// Returns the informer of the cache. `namespaces` limit a namespaced kind whose options name no namespace.
    pub(crate) fn informer(
        &self,
        informers: &SharedInformerFactory,
        namespaces: &[String],
    ) -> Result<SharedInformer> {
        let mut options = self.options.clone();
        if options.namespaces.is_empty() && self.kind.namespaced == Some(true) {
            options.namespaces = namespaces.to_vec();
        }
        informers.informer(&self.kind.resource, options).map_err(|error| match error {
            InformerError::ShutDown => Error::stopped(),
            error => Error::setup(format!("watching {}: {error}", self.kind.resource.kind)),
        })
    }
}
