//! From a change of an object to the keys that must be reconciled.

mod enqueuer;

use std::{hash::Hash, sync::Arc};

use serde::de::DeserializeOwned;
use windlass_cache::{Delta, ObjectKey, RawObject};

pub use self::enqueuer::Enqueuer;
use crate::{
    context::Caches,
    error::{BoxError, Result},
    kind::Object,
    kind_ref::IntoKind,
    lister::Lister,
    namespaced_name::NamespacedName,
};

/// A key in the queue of a controller: `namespace/name`, or any small value.
pub trait QueueKey: Clone + Eq + Ord + Hash + std::fmt::Display + Send + Sync + 'static {}

impl<T: Clone + Eq + Ord + Hash + std::fmt::Display + Send + Sync + 'static> QueueKey for T {}

/// Maps changes to the keys that must be reconciled.
///
/// The handler runs in the watch's handler task, must be quick and must not block. An error is logged and counted, and the change is
/// mapped again with back-off.
pub trait EventHandler<Q: QueueKey>: Send + Sync + 'static {
    /// Adds the keys that `delta` concerns.
    ///
    /// # Errors
    /// The keys could not be determined; the change is handled again later. Keys that were added are queued all the same.
    fn handle(&self, delta: &Delta, cx: &HandlerContext, keys: &mut Enqueuer<'_, Q>) -> Result<(), BoxError>;
}

/// The context of a mapper or an event handler: the caches of the controller. Cheap to clone.
#[derive(Clone)]
pub struct HandlerContext {
    pub(crate) caches: Arc<Caches>,
}

impl HandlerContext {
    /// Returns a lister of a kind that the controller declares.
    ///
    /// # Errors
    /// The controller does not declare the kind.
    pub fn lister<C: Object>(&self) -> Result<Lister<C>> {
        self.caches.lister::<C>()
    }

    /// Works like [`lister`](Self::lister), for any [kind](crate::KindRef): known only at run time, with only
    /// the metadata, or of the watch with a name.
    ///
    /// # Errors
    /// The controller declares no such watch.
    pub fn lister_of<I>(&self, kind: I) -> Result<Lister<I::Object>>
    where
        I: IntoKind<Object: DeserializeOwned + Send + Sync + 'static>,
    {
        self.caches.lister_of(&kind.into_kind())
    }
}

/// Enqueues the changed object.
pub(crate) struct EnqueueObject;

impl EventHandler<ObjectKey> for EnqueueObject {
    fn handle(
        &self,
        delta: &Delta,
        _: &HandlerContext,
        keys: &mut Enqueuer<'_, ObjectKey>,
    ) -> Result<(), BoxError> {
        let object = delta.object();
        keys.add_ref(&NamespacedName::new(object.namespace(), object.name()));
        Ok(())
    }
}

/// Enqueues no key: the watch only fills a cache.
pub(crate) struct EnqueueNothing;

impl<Q: QueueKey> EventHandler<Q> for EnqueueNothing {
    fn handle(&self, _: &Delta, _: &HandlerContext, _: &mut Enqueuer<'_, Q>) -> Result<(), BoxError> {
        Ok(())
    }
}

/// Enqueues the owners of a kind that the object names, before and after a change: a change of the owner concerns both owners.
pub(crate) struct EnqueueOwner {
    /// The owner's group and kind. The version does not matter for identity.
    pub(crate) group: String,
    pub(crate) kind: String,
    pub(crate) namespaced: bool,
    pub(crate) every_owner: bool,
}

impl EventHandler<ObjectKey> for EnqueueOwner {
    fn handle(
        &self,
        delta: &Delta,
        _: &HandlerContext,
        keys: &mut Enqueuer<'_, ObjectKey>,
    ) -> Result<(), BoxError> {
        for object in delta.states() {
            for owner in object.owner_references() {
                let same_kind = owner.group() == self.group && owner.kind == self.kind;
                if !same_kind || !(self.every_owner || owner.controller) {
                    continue;
                }
                let namespace = object.namespace().filter(|_| self.namespaced);
                keys.add_ref(&NamespacedName::new(namespace, owner.name));
            }
        }
        Ok(())
    }
}

/// Enqueues the keys that a function of the raw object returns, before and after a change.
pub(crate) struct EnqueueMapped<F>(pub(crate) F);

impl<Q, F> EventHandler<Q> for EnqueueMapped<F>
where
    Q: QueueKey,
    F: Fn(&RawObject, &HandlerContext) -> Result<Vec<Q>> + Send + Sync + 'static,
{
    fn handle(&self, delta: &Delta, cx: &HandlerContext, keys: &mut Enqueuer<'_, Q>) -> Result<(), BoxError> {
        let mut outcome = Ok(());
        for object in delta.states() {
            match (self.0)(object, cx) {
                Ok(mapped) => mapped.into_iter().for_each(|key| keys.add(key)),
                Err(error) => outcome = Err(error.into()),
            }
        }
        outcome
    }
}
