//! From a change of an object to the keys that must be reconciled.

mod keys;

use std::{hash::Hash, sync::Arc};

use kube_core::ApiResource;
use windlass_cache::{Delta, ObjectKey, RawObject};

pub use self::keys::Keys;
use crate::{
    context::Caches,
    error::{BoxError, Result},
    kind::Object,
    lister::Lister,
    namespaced_name::NamespacedName,
};

/// A key that a controller's queue holds: `namespace/name`, or another small value.
pub trait QueueKey: Clone + Eq + Ord + Hash + std::fmt::Display + Send + Sync + 'static {}

impl<T: Clone + Eq + Ord + Hash + std::fmt::Display + Send + Sync + 'static> QueueKey for T {}

/// Maps changes to the keys that they concern.
///
/// It runs in the watch's handler task, so it must be quick and must not block. An error is logged and counted, and the change is
/// mapped again with back-off.
pub trait EventHandler<Q: QueueKey>: Send + Sync + 'static {
    /// Adds the keys that `delta` concerns.
    ///
    /// # Errors
    /// The keys could not be determined; the change is handled again later. Keys that were added are queued all the same.
    fn handle(&self, delta: &Delta, cx: &MapContext, keys: &mut Keys<'_, Q>) -> Result<(), BoxError>;
}

/// What a mapper may read: the caches of its controller. Cheap to clone.
#[derive(Clone)]
pub struct MapContext {
    pub(crate) caches: Arc<Caches>,
}

impl MapContext {
    /// Returns a lister of a kind that the controller declares.
    ///
    /// # Errors
    /// The controller does not declare the kind.
    pub fn lister<C: Object>(&self) -> Result<Lister<C>> {
        self.caches.lister::<C>()
    }

    /// Returns a lister of a kind that is known only at run time, or of a typed kind in another version.
    ///
    /// # Errors
    /// The controller does not declare the kind.
    pub fn lister_dynamic<C: Object>(&self, resource: &ApiResource) -> Result<Lister<C>> {
        self.caches.lister_dynamic::<C>(resource)
    }
}

/// Enqueues the object itself.
pub(crate) struct EnqueueObject;

impl EventHandler<ObjectKey> for EnqueueObject {
    fn handle(&self, delta: &Delta, _: &MapContext, keys: &mut Keys<'_, ObjectKey>) -> Result<(), BoxError> {
        let object = delta.object();
        keys.add_ref(&NamespacedName::new(object.namespace(), object.name()));
        Ok(())
    }
}

/// Enqueues nothing: the watch is there for its cache.
pub(crate) struct EnqueueNothing;

impl<Q: QueueKey> EventHandler<Q> for EnqueueNothing {
    fn handle(&self, _: &Delta, _: &MapContext, _: &mut Keys<'_, Q>) -> Result<(), BoxError> {
        Ok(())
    }
}

/// Enqueues the owners of one kind that the object names, before and after a change: an object that changes its owner concerns both.
pub(crate) struct EnqueueOwner {
    /// The owner's group and kind. Its version does not matter for identity.
    pub(crate) group: String,
    pub(crate) kind: String,
    pub(crate) namespaced: bool,
    pub(crate) every_owner: bool,
}

impl EventHandler<ObjectKey> for EnqueueOwner {
    fn handle(&self, delta: &Delta, _: &MapContext, keys: &mut Keys<'_, ObjectKey>) -> Result<(), BoxError> {
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

/// Enqueues what a function of the raw object returns, before and after a change.
pub(crate) struct EnqueueMapped<F>(pub(crate) F);

impl<Q, F> EventHandler<Q> for EnqueueMapped<F>
where
    Q: QueueKey,
    F: Fn(&RawObject, &MapContext) -> Result<Vec<Q>> + Send + Sync + 'static,
{
    fn handle(&self, delta: &Delta, cx: &MapContext, keys: &mut Keys<'_, Q>) -> Result<(), BoxError> {
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
