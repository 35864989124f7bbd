//! Where a controller's keys come from: watches, and whatever else.

use std::sync::Arc;

use kube_core::{ApiResource, Resource};
use serde::de::DeserializeOwned;
use windlass_cache::{ObjectKey, RawObject};

use crate::{
    handler::{EnqueueMapped, EnqueueObject, EnqueueOwner, EventHandler, MapContext, QueueKey},
    informer::WatchOptions,
    predicate::Predicate,
};

/// One watch of a controller: a kind, which events of it count, and which keys they concern.
///
/// `.owns::<Pod>()` and its like on a [`Controller`](crate::Controller) are short for the usual ones; for a selector, a predicate or
/// a kind that is only known at run time, build one of these.
///
/// ```
/// use k8s_openapi::api::core::v1::{ConfigMap, Pod};
/// use windlass_runtime::{ObjectKey, Predicate, Watch};
///
/// let pods: Watch<ObjectKey> = Watch::owned::<Pod>().by::<ConfigMap>().predicate(Predicate::generation_changed());
/// # let _ = pods;
/// ```
pub struct Watch<Q: QueueKey = ObjectKey> {
    pub(crate) resource: ApiResource,
    pub(crate) namespaced: Option<bool>,
    pub(crate) options: WatchOptions,
    pub(crate) handler: Arc<dyn EventHandler<Q>>,
    pub(crate) predicates: Vec<Predicate>,
}

impl<Q: QueueKey> Watch<Q> {
    /// Watches a kind, with a handler of one's own.
    pub fn with_handler(resource: ApiResource, handler: impl EventHandler<Q>) -> Self {
        Self {
            resource,
            namespaced: None,
            options: WatchOptions::default(),
            handler: Arc::new(handler),
            predicates: Vec::new(),
        }
    }

    /// Watches a kind and maps its objects to keys; an update is mapped before and after.
    ///
    /// An object that does not decode is logged and concerns no key.
    pub fn mapped<W>(mapper: impl Fn(&W, &MapContext) -> Vec<Q> + Send + Sync + 'static) -> Self
    where
        W: Resource<DynamicType = ()> + DeserializeOwned + Send + Sync + 'static,
    {
        let mapper = move |object: &RawObject, cx: &MapContext| match object.decode::<W>() {
            Ok(typed) => mapper(&typed, cx),
            Err(error) => {
                tracing::error!(kind = %W::kind(&()), object = %object.key(), %error, "an object does not decode");
                Vec::new()
            }
        };
        Self {
            namespaced: Some(is_namespaced::<W>()),
            ..Self::with_handler(ApiResource::erase::<W>(&()), EnqueueMapped(mapper))
        }
    }

    /// Watches a kind that may be known only at run time, its metadata alone.
    pub fn metadata(
        resource: ApiResource,
        mapper: impl Fn(&RawObject, &MapContext) -> Vec<Q> + Send + Sync + 'static,
    ) -> Self {
        let mut watch = Self::with_handler(resource, EnqueueMapped(mapper));
        watch.options.metadata_only = true;
        watch
    }

    /// Watches a kind that may be known only at run time, whole.
    pub fn dynamic(
        resource: ApiResource,
        mapper: impl Fn(&RawObject, &MapContext) -> Vec<Q> + Send + Sync + 'static,
    ) -> Self {
        Self::with_handler(resource, EnqueueMapped(mapper))
    }

    /// Lets only those events through that all predicates count.
    pub fn predicate(mut self, predicate: Predicate) -> Self {
        self.predicates.push(predicate);
        self
    }

    /// What is watched and kept: selectors, namespaces, transform, memory.
    pub fn options(mut self, options: WatchOptions) -> Self {
        self.options = options;
        self
    }
}

impl Watch<ObjectKey> {
    /// Watches the controller's own kind: each event concerns its object.
    pub fn primary<K>() -> Self
    where
        K: Resource<DynamicType = ()> + 'static,
    {
        Self {
            namespaced: Some(is_namespaced::<K>()),
            ..Self::with_handler(ApiResource::erase::<K>(&()), EnqueueObject)
        }
    }

    /// Watches objects that others own; say by whom with [`Owned::by`].
    pub fn owned<C>() -> Owned
    where
        C: Resource<DynamicType = ()> + 'static,
    {
        Owned { resource: ApiResource::erase::<C>(&()), namespaced: is_namespaced::<C>(), every_owner: false }
    }
}

/// A watch of owned objects that lacks its owner's kind.
pub struct Owned {
    resource: ApiResource,
    namespaced: bool,
    every_owner: bool,
}

impl Owned {
    /// Every owner counts, not only the one that controls the object.
    pub fn every_owner(mut self) -> Self {
        self.every_owner = true;
        self
    }

    /// The owner's kind: each event concerns the owner.
    pub fn by<K>(self) -> Watch<ObjectKey>
    where
        K: Resource<DynamicType = ()> + 'static,
    {
        let handler = EnqueueOwner {
            group: K::group(&()).into_owned(),
            kind: K::kind(&()).into_owned(),
            namespaced: is_namespaced::<K>(),
            every_owner: self.every_owner,
        };
        Watch { namespaced: Some(self.namespaced), ..Watch::with_handler(self.resource, handler) }
    }
}

/// Whether objects of a type lie in namespaces.
pub(crate) fn is_namespaced<K: Resource + 'static>() -> bool {
    std::any::TypeId::of::<K::Scope>() == std::any::TypeId::of::<k8s_openapi::NamespaceResourceScope>()
}
