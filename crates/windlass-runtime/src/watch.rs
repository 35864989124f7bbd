//! A controller's watches.

use std::{sync::Arc, time::Duration};

use serde::de::DeserializeOwned;
use windlass_cache::{ObjectKey, RawObject};

use crate::{
    error::Result,
    handler::{
        EnqueueMapped, EnqueueNothing, EnqueueObject, EnqueueOwner, EventHandler, HandlerContext, QueueKey,
    },
    informer::CacheOptions,
    kind::Kind,
    kind_ref::IntoKind,
    predicate::Predicate,
};

/// A watch of a controller: a kind, the changes that matter, and the keys that a change concerns.
///
/// [`Controller::owns`](crate::Controller::owns), [`watches`](crate::Controller::watches) and [`reads`](crate::Controller::reads) declare
/// the usual watches; [`Controller::watch`](crate::Controller::watch) takes a `Watch`, which has all options. Each constructor takes a
/// [kind](crate::KindRef): `kind::<Pod>()`, or `&resource` for a kind that is known only at run time.
///
/// ```
/// use k8s_openapi::api::core::v1::Pod;
/// use windlass_runtime::{ObjectKey, Predicate, Watch, kind};
///
/// let pods: Watch<ObjectKey> = Watch::owned(kind::<Pod>()).predicate(Predicate::generation_changed());
/// # let _ = pods;
/// ```
pub struct Watch<Q: QueueKey = ObjectKey> {
    pub(crate) kind: Kind,
    pub(crate) options: CacheOptions,
    pub(crate) target: WatchTarget<Q>,
    pub(crate) predicates: Vec<Predicate>,
    /// The name by which reads choose the cache of the watch.
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
        kind: Option<Kind>,
        every_owner: bool,
        make: fn(EnqueueOwner) -> Arc<dyn EventHandler<Q>>,
    },
}

impl<Q: QueueKey> Watch<Q> {
    fn new(kind: impl IntoKind, target: WatchTarget<Q>) -> Self {
        let kind = kind.into_kind();
        Self {
            options: CacheOptions { metadata_only: kind.metadata_only, ..CacheOptions::default() },
            kind: kind.kind,
            target,
            predicates: Vec::new(),
            name: kind.name,
            readable: true,
            resync: None,
            cluster: None,
        }
    }

    /// Watches a kind with a handler that maps changes to keys.
    pub fn with_handler(kind: impl IntoKind, handler: impl EventHandler<Q>) -> Self {
        Self::new(kind, WatchTarget::Handler(Arc::new(handler)))
    }

    /// Watches a kind and enqueues the keys that `mapper` returns. Of an update, both states are mapped.
    ///
    /// If `mapper` returns an error, the object is mapped again with back-off. An object that does not decode is logged, counted and
    /// recorded as an Event, and is mapped to no key.
    ///
    /// ```
    /// use k8s_openapi::api::core::v1::Secret;
    /// use kube_core::{Resource as _, metadata::PartialObjectMeta};
    /// use windlass_runtime::{Watch, kind};
    ///
    /// // Keys are namespaces. The data of the Secrets is neither received nor kept.
    /// let secrets: Watch<String> = Watch::mapped(kind::<PartialObjectMeta<Secret>>(), |secret, _| {
    ///     Ok(secret.meta().namespace.clone().into_iter().collect())
    /// });
    /// # let _ = secrets;
    /// ```
    pub fn mapped<I, M>(kind: I, mapper: M) -> Self
    where
        I: IntoKind<Object: DeserializeOwned>,
        M: Fn(&I::Object, &HandlerContext) -> Result<Vec<Q>> + Send + Sync + 'static,
    {
        let kind = kind.into_kind();
        let resource = kind.resource().clone();
        let mapper = move |object: &RawObject, cx: &HandlerContext| match object.decode::<I::Object>() {
            Ok(typed) => mapper(&typed, cx),
            Err(error) => {
                cx.caches.report_undecodable(&resource, object, &error);
                Ok(Vec::new())
            }
        };
        Self::mapped_raw(kind, mapper)
    }

    /// Works like [`mapped`](Self::mapped), without decoding the objects. A [`RawObject`] has the name,
    /// labels and owners at hand, and the JSON.
    pub fn mapped_raw(
        kind: impl IntoKind,
        mapper: impl Fn(&RawObject, &HandlerContext) -> Result<Vec<Q>> + Send + Sync + 'static,
    ) -> Self {
        Self::with_handler(kind, EnqueueMapped(mapper))
    }

    /// Watches a kind for the cache only: a change enqueues no key.
    pub fn reads_only(kind: impl IntoKind) -> Self {
        Self::with_handler(kind, EnqueueNothing)
    }

    /// Drops the changes that do not match. Several predicates must all match.
    pub fn predicate(mut self, predicate: Predicate) -> Self {
        self.predicates.push(predicate);
        self
    }

    /// Sets the watched objects and the form of the cache: selectors, namespaces, indexes, transform, memory.
    pub fn options(mut self, options: CacheOptions) -> Self {
        self.options = CacheOptions { metadata_only: self.options.metadata_only, ..options };
        self
    }

    /// Maps every object again this often, as an update without a change. Default: never.
    pub fn resync(mut self, period: Duration) -> Self {
        self.resync = Some(period);
        self
    }

    /// Watches a further [`Cluster`](crate::manager::Cluster) of the manager instead of the manager's own cluster.
    /// [`Context::in_cluster`](crate::Context::in_cluster) reads the cache.
    ///
    /// The keys do not name the cluster. A controller that must tell the clusters apart maps the objects to keys with the name of the
    /// cluster.
    pub fn in_cluster(mut self, name: impl Into<String>) -> Self {
        self.cluster = Some(name.into());
        self
    }

    /// Uses the watch for changes only: no read uses the cache of the watch.
    pub fn without_reads(mut self) -> Self {
        self.readable = false;
        self
    }

    /// Returns whether changes concern an owner of the controller's kind.
    pub(crate) fn maps_to_owner(&self) -> bool {
        matches!(self.target, WatchTarget::Owner { kind: None, .. })
    }

    /// Returns the kind of the owners that changes concern; `None` if changes concern no owners, or if the kind is the controller's and `own`
    /// is `None`.
    pub(crate) fn owner<'a>(&'a self, own: Option<&'a Kind>) -> Option<&'a Kind> {
        match &self.target {
            WatchTarget::Handler(_) => None,
            WatchTarget::Owner { kind, .. } => kind.as_ref().or(own),
        }
    }

    /// Returns the handler; `None` if the handler needs the [kind of the owners](Self::owner), with a known scope.
    pub(crate) fn handler(&self, owner: Option<&Kind>) -> Option<Arc<dyn EventHandler<Q>>> {
        match &self.target {
            WatchTarget::Handler(handler) => Some(handler.clone()),
            WatchTarget::Owner { every_owner, make, .. } => {
                let owner = owner?;
                Some(make(EnqueueOwner {
                    group: owner.resource.group.clone(),
                    kind: owner.resource.kind.clone(),
                    namespaced: owner.namespaced?,
                    every_owner: *every_owner,
                }))
            }
        }
    }
}

impl Watch<ObjectKey> {
    /// Watches a kind and enqueues the changed object.
    pub fn primary(kind: impl IntoKind) -> Self {
        Self::with_handler(kind, EnqueueObject)
    }

    /// Watches objects that objects of the controller's kind own, and enqueues the owner that is the object's controller.
    pub fn owned(kind: impl IntoKind) -> Self {
        Self::new(
            kind,
            WatchTarget::Owner { kind: None, every_owner: false, make: |handler| Arc::new(handler) },
        )
    }

    /// Enqueues every owner of the controller's kind, not only the owner that is the object's controller.
    ///
    /// Only for a watch of owned objects; without effect on others.
    pub fn match_every_owner(mut self) -> Self {
        if let WatchTarget::Owner { every_owner, .. } = &mut self.target {
            *every_owner = true;
        }
        self
    }

    /// Enqueues owners of this kind instead of the controller's kind. The controller asks the server for the scope of a kind that is known
    /// only at run time, and waits until the server has the kind, unless the [`KindRef`](crate::KindRef::namespaced) names the scope.
    ///
    /// Only for a watch of owned objects; without effect on others.
    pub fn owner_kind(mut self, owner: impl IntoKind) -> Self {
        if let WatchTarget::Owner { kind, .. } = &mut self.target {
            *kind = Some(owner.into_kind().kind);
        }
        self
    }
}
