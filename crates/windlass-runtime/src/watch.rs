//! A controller's watches.

use std::{sync::Arc, time::Duration};

use kube_core::{ApiResource, Resource};
use windlass_cache::{ObjectKey, RawObject};

use crate::{
    error::Result,
    handler::{
        EnqueueMapped, EnqueueNothing, EnqueueObject, EnqueueOwner, EventHandler, MapContext, QueueKey,
    },
    informer::WatchOptions,
    kind::{Kind, Object},
    predicate::Predicate,
};

/// One watch of a controller: a kind, the changes of it that matter, and the keys that they concern.
///
/// [`Controller::owns`](crate::Controller::owns), [`watches`](crate::Controller::watches) and their like declare the usual watches; a
/// `Watch` has all options.
///
/// ```
/// use k8s_openapi::api::core::v1::Pod;
/// use windlass_runtime::{ObjectKey, Predicate, Watch};
///
/// let pods: Watch<ObjectKey> = Watch::owned::<Pod>().predicate(Predicate::generation_changed());
/// # let _ = pods;
/// ```
pub struct Watch<Q: QueueKey = ObjectKey> {
    pub(crate) kind: Kind,
    pub(crate) options: WatchOptions,
    pub(crate) target: WatchTarget<Q>,
    pub(crate) predicates: Vec<Predicate>,
    pub(crate) name: Option<String>,
    pub(crate) readable: bool,
    pub(crate) resync: Option<Duration>,
    pub(crate) cluster: Option<String>,
}

/// The keys that a change concerns.
pub(crate) enum WatchTarget<Q: QueueKey> {
    Handler(Arc<dyn EventHandler<Q>>),
    /// The object's owner of the controller's own kind.
    Owner {
        /// The owner's kind, if not the controller's.
        by: Option<Kind>,
        every_owner: bool,
        make: fn(EnqueueOwner) -> Arc<dyn EventHandler<Q>>,
    },
}

impl<Q: QueueKey> Watch<Q> {
    fn of_kind(kind: Kind, target: WatchTarget<Q>) -> Self {
        Self {
            kind,
            options: WatchOptions::default(),
            target,
            predicates: Vec::new(),
            name: None,
            readable: true,
            resync: None,
            cluster: None,
        }
    }

    /// Watches a kind with a handler that maps changes to keys.
    pub fn with_handler(resource: ApiResource, handler: impl EventHandler<Q>) -> Self {
        Self::of_kind(Kind::dynamic(resource), WatchTarget::Handler(Arc::new(handler)))
    }

    /// Watches a kind and maps its objects to keys; an update is mapped before and after.
    ///
    /// If `mapper` returns an error, the object is mapped again with back-off.
    /// An object that does not decode is logged, counted and recorded as an Event, and is mapped to no key.
    pub fn mapped<W>(mapper: impl Fn(&W, &MapContext) -> Result<Vec<Q>> + Send + Sync + 'static) -> Self
    where
        W: Object + Resource<DynamicType = ()>,
    {
        let resource = ApiResource::erase::<W>(&());
        let mapper = move |object: &RawObject, cx: &MapContext| match object.decode::<W>() {
            Ok(typed) => mapper(&typed, cx),
            Err(error) => {
                cx.caches.report_undecodable(&resource, object, &error);
                Ok(Vec::new())
            }
        };
        Self::of_kind(Kind::of::<W>(), WatchTarget::Handler(Arc::new(EnqueueMapped(mapper))))
    }

    /// Watches a kind for its cache only: its changes enqueue nothing.
    pub fn cache<W: Object + Resource<DynamicType = ()>>() -> Self {
        Self::of_kind(Kind::of::<W>(), WatchTarget::Handler(Arc::new(EnqueueNothing)))
    }

    /// Watches the metadata of a kind, which may be known only at run time, and maps its objects to keys.
    pub fn metadata(
        resource: ApiResource,
        mapper: impl Fn(&RawObject, &MapContext) -> Result<Vec<Q>> + Send + Sync + 'static,
    ) -> Self {
        let mut watch = Self::dynamic(resource, mapper);
        watch.options.metadata_only = true;
        watch
    }

    /// Watches a kind that may be known only at run time, and maps its objects to keys.
    pub fn dynamic(
        resource: ApiResource,
        mapper: impl Fn(&RawObject, &MapContext) -> Result<Vec<Q>> + Send + Sync + 'static,
    ) -> Self {
        Self::with_handler(resource, EnqueueMapped(mapper))
    }

    /// Drops the changes that do not match. Several predicates must all match.
    pub fn predicate(mut self, predicate: Predicate) -> Self {
        self.predicates.push(predicate);
        self
    }

    /// Sets what is watched and how it is kept: selectors, namespaces, indexes, transform, memory.
    pub fn options(mut self, options: WatchOptions) -> Self {
        let metadata_only = self.options.metadata_only || options.metadata_only;
        self.options = options;
        self.options.metadata_only = metadata_only;
        self
    }

    /// Maps every object again this often, as an update that changes nothing. Default: never.
    pub fn resync(mut self, period: Duration) -> Self {
        self.resync = Some(period);
        self
    }

    /// Names the watch, so that its cache is read by [`Context::lister_named`](crate::Context::lister_named) instead of
    /// [`Context::lister`](crate::Context::lister).
    ///
    /// A controller that watches one kind with different selectors names all of these watches but one.
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Watches a further [`Cluster`](crate::manager::Cluster) of the manager instead of its own. Its cache is read by
    /// [`Context::in_cluster`](crate::Context::in_cluster).
    ///
    /// The keys do not say from which cluster they come. A controller for which that matters maps the objects to keys that do.
    pub fn in_cluster(mut self, name: impl Into<String>) -> Self {
        self.cluster = Some(name.into());
        self
    }

    /// Uses the watch for its changes only: its cache is not read.
    pub fn events_only(mut self) -> Self {
        self.readable = false;
        self
    }

    /// Says that objects of a kind that is known only at run time are in no namespace. Without it, the server is asked when the
    /// controller starts and is limited to namespaces.
    pub fn cluster_scoped(mut self) -> Self {
        self.kind.namespaced = Some(false);
        self
    }

    /// Whether changes concern an owner of the controller's kind.
    pub(crate) fn maps_to_owner(&self) -> bool {
        matches!(self.target, WatchTarget::Owner { by: None, .. })
    }

    /// The handler, once the kind of the controller is known.
    pub(crate) fn handler(&self, owner: Option<&Kind>) -> Option<Arc<dyn EventHandler<Q>>> {
        match &self.target {
            WatchTarget::Handler(handler) => Some(handler.clone()),
            WatchTarget::Owner { by, every_owner, make } => {
                let owner = by.as_ref().or(owner)?;
                Some(make(EnqueueOwner {
                    group: owner.resource.group.clone(),
                    kind: owner.resource.kind.clone(),
                    namespaced: owner.namespaced.unwrap_or(true),
                    every_owner: *every_owner,
                }))
            }
        }
    }
}

impl Watch<ObjectKey> {
    /// Watches a kind and enqueues the changed object itself.
    pub fn primary<K: Object + Resource<DynamicType = ()>>() -> Self {
        Self::primary_of(Kind::of::<K>())
    }

    /// As [`primary`](Self::primary), of a kind that is known only at run time.
    pub fn primary_dynamic(resource: ApiResource) -> Self {
        Self::primary_of(Kind::dynamic(resource))
    }

    pub(crate) fn primary_of(kind: Kind) -> Self {
        Self::of_kind(kind, WatchTarget::Handler(Arc::new(EnqueueObject)))
    }

    /// Watches objects that objects of the controller's kind own, and enqueues their owner.
    pub fn owned<C: Object + Resource<DynamicType = ()>>() -> Self {
        Self::owned_of(Kind::of::<C>())
    }

    /// As [`owned`](Self::owned), of a kind that is known only at run time.
    pub fn owned_dynamic(resource: ApiResource) -> Self {
        Self::owned_of(Kind::dynamic(resource))
    }

    fn owned_of(kind: Kind) -> Self {
        Self::of_kind(
            kind,
            WatchTarget::Owner { by: None, every_owner: false, make: |handler| Arc::new(handler) },
        )
    }

    /// Enqueues every owner of the controller's kind, not only the one that is the object's controller.
    ///
    /// Only for a watch of owned objects; without effect on others.
    pub fn every_owner(mut self) -> Self {
        if let WatchTarget::Owner { every_owner, .. } = &mut self.target {
            *every_owner = true;
        }
        self
    }

    /// Enqueues owners of kind `K` instead of the controller's kind.
    ///
    /// Only for a watch of owned objects; without effect on others.
    pub fn by<K: Object + Resource<DynamicType = ()>>(mut self) -> Self {
        if let WatchTarget::Owner { by, .. } = &mut self.target {
            *by = Some(Kind::of::<K>());
        }
        self
    }
}
