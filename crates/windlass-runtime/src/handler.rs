//! From a change of an object to the keys that must be reconciled.

use std::{hash::Hash, sync::Arc};

use kube_core::Resource;
use serde::de::DeserializeOwned;
use windlass_cache::{ObjectKey, RawObject};

use crate::{
    context::{Caches, Lister},
    error::Result,
};

/// A small key that a controller's queue holds: `namespace/name`, or what the controller chooses.
pub trait QueueKey: Clone + Eq + Ord + Hash + std::fmt::Display + Send + Sync + 'static {}

impl<T: Clone + Eq + Ord + Hash + std::fmt::Display + Send + Sync + 'static> QueueKey for T {}

/// A change, as a watch tells of it.
#[derive(Clone, Copy, Debug)]
pub enum Event<'a> {
    /// An object that was not there; `initial` if it comes from the first list.
    Create {
        /// The object.
        object: &'a RawObject,
        /// Whether it comes from the first list.
        initial: bool,
    },
    /// A changed object; a resync hands out the same twice.
    Update {
        /// As it was.
        old: &'a RawObject,
        /// As it is.
        new: &'a RawObject,
    },
    /// An object that is gone.
    Delete {
        /// Its last known state.
        last: &'a RawObject,
        /// Whether that may not have been its very last one: a new list did not have it any more.
        final_state_unknown: bool,
    },
}

impl<'a> Event<'a> {
    /// The object as it is now, or was last.
    pub fn object(&self) -> &'a RawObject {
        match self {
            Self::Create { object, .. } => object,
            Self::Update { new, .. } => new,
            Self::Delete { last, .. } => last,
        }
    }

    /// The states to look at: the new one, and the old one of an update.
    fn states(&self) -> impl Iterator<Item = &'a RawObject> + use<'a> {
        let old = match self {
            Self::Update { old, .. } => Some(*old),
            _ => None,
        };
        old.into_iter().chain(std::iter::once(self.object()))
    }

    /// Whether nothing happened: the first list, or a resync. Such keys go behind those of which something changed.
    pub(crate) fn is_unchanged(&self) -> bool {
        match self {
            Self::Create { initial, .. } => *initial,
            Self::Update { old, new } => old.resource_version() == new.resource_version(),
            Self::Delete { .. } => false,
        }
    }
}

/// The keys of one event, each once.
#[derive(Debug)]
pub struct Keys<Q>(Vec<Q>);

impl<Q: Eq> Keys<Q> {
    pub(crate) fn new() -> Self {
        Self(Vec::new())
    }

    /// Adds a key unless it is there.
    pub fn add(&mut self, key: Q) {
        // An event has one key or two; a mapper may have hundreds, which is still cheaper than hashing.
        if !self.0.contains(&key) {
            self.0.push(key);
        }
    }

    pub(crate) fn into_vec(self) -> Vec<Q> {
        self.0
    }
}

/// Maps events to keys. It runs on the watch's path, so it must be quick and must not block.
pub trait EventHandler<Q>: Send + Sync + 'static {
    /// Adds the keys that `event` concerns.
    fn handle(&self, event: &Event<'_>, cx: &MapContext, keys: &mut Keys<Q>);
}

/// What a mapper may read: the caches of its controller.
#[derive(Clone)]
pub struct MapContext {
    pub(crate) caches: Arc<Caches>,
}

impl MapContext {
    /// Reads the cache of a kind that the controller declared.
    pub fn lister<C>(&self) -> Result<Lister<C>>
    where
        C: Resource<DynamicType = ()> + DeserializeOwned + Send + Sync + 'static,
    {
        self.caches.lister::<C>()
    }
}

/// The object itself.
pub(crate) struct EnqueueObject;

impl EventHandler<ObjectKey> for EnqueueObject {
    fn handle(&self, event: &Event<'_>, _: &MapContext, keys: &mut Keys<ObjectKey>) {
        keys.add(event.object().key());
    }
}

/// The owners of one kind that the object names, before and after: an object that changes hands concerns both.
pub(crate) struct EnqueueOwner {
    /// Compared with the reference's group and kind; its version says nothing about identity.
    pub(crate) group: String,
    pub(crate) kind: String,
    pub(crate) namespaced: bool,
    pub(crate) every_owner: bool,
}

impl EventHandler<ObjectKey> for EnqueueOwner {
    fn handle(&self, event: &Event<'_>, _: &MapContext, keys: &mut Keys<ObjectKey>) {
        for object in event.states() {
            for owner in object.owner_references() {
                let same_kind = owner.group() == self.group && owner.kind == self.kind;
                if !same_kind || !(self.every_owner || owner.controller) {
                    continue;
                }
                keys.add(match object.namespace().filter(|_| self.namespaced) {
                    Some(namespace) => ObjectKey::namespaced(namespace, owner.name),
                    None => ObjectKey::cluster(owner.name),
                });
            }
        }
    }
}

/// A function of the bytes and their index, before and after.
pub(crate) struct EnqueueMapped<F>(pub(crate) F);

impl<Q, F> EventHandler<Q> for EnqueueMapped<F>
where
    Q: QueueKey,
    F: Fn(&RawObject, &MapContext) -> Vec<Q> + Send + Sync + 'static,
{
    fn handle(&self, event: &Event<'_>, cx: &MapContext, keys: &mut Keys<Q>) {
        for object in event.states() {
            for key in (self.0)(object, cx) {
                keys.add(key);
            }
        }
    }
}
