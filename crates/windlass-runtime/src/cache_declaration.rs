//! The cache that a runnable or a webhook declares.

use crate::{
    client::ApiClient,
    discovery,
    error::{Error, Result},
    informer::{CacheOptions, InformerError, SharedInformer, SharedInformerFactory},
    kind::Kind,
    kind_ref::IntoKind,
    permission::Permission,
};

/// The cache of a kind that a runnable or a webhook reads.
#[derive(Clone, Debug)]
pub(crate) struct CacheDeclaration {
    pub(crate) kind: Kind,
    /// The name by which reads choose the cache.
    pub(crate) name: Option<String>,
    pub(crate) options: CacheOptions,
}

impl CacheDeclaration {
    pub(crate) fn new(kind: impl IntoKind, options: CacheOptions) -> Self {
        let kind = kind.into_kind();
        let options = CacheOptions { metadata_only: kind.metadata_only, ..options };
        Self { kind: kind.kind, name: kind.name, options }
    }

    /// Returns the rights to fill the cache.
    pub(crate) fn permissions(&self) -> [Permission; 2] {
        Permission::of_watch(&self.kind, &self.options)
    }

    /// Returns whether `namespaces` may limit the cache, and the server must be asked whether the kind is namespaced.
    pub(crate) fn lacks_scope(&self, namespaces: &[String]) -> bool {
        self.kind.namespaced.is_none() && self.options.namespaces.is_empty() && !namespaces.is_empty()
    }

    /// Asks the server whether the kind is namespaced. Waits until the server serves the kind.
    pub(crate) async fn with_scope(mut self, client: &ApiClient) -> Result<Self> {
        self.kind.namespaced = Some(discovery::is_namespaced(client, &self.kind.resource, None).await?);
        Ok(self)
    }

    /// Returns the informer of the cache. `namespaces` limit a namespaced kind if the options name no namespace.
    pub(crate) fn informer(
        &self,
        informers: &SharedInformerFactory,
        namespaces: &[String],
    ) -> Result<SharedInformer> {
        let mut options = self.options.clone();
        if options.namespaces.is_empty() && self.kind.namespaced == Some(true) {
            options.namespaces = namespaces.to_vec();
        }
        informers.share(&self.kind.resource, options).map_err(|error| match error {
            InformerError::ShutDown => Error::stopped(),
            error => Error::setup(format!("watching {}: {error}", self.kind.resource.kind)),
        })
    }
}
