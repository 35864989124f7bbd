//! From a change of an object to the keys that must be reconciled.

use std::{hash::Hash, sync::Arc};

use kube_core::Resource;
use serde::de::DeserializeOwned;
use windlass_cache::{ObjectKey, RawObject};
use windlass_workqueue::{AddOptions, KeyRef, Slot, WorkQueue};

use crate::{
    context::{Caches, Lister},
    error::Result,
    namespaced_name::NamespacedName,
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

/// The keys of one event, each once: as their places in the controller's queue.
pub struct Keys<'q, Q: QueueKey> {
    queue: &'q WorkQueue<Q>,
    /// An event has one key or two, so that most need no list.
    first: Option<Slot<Q>>,
    more: Vec<Slot<Q>>,
}

impl<'q, Q: QueueKey> Keys<'q, Q> {
    pub(crate) fn new(queue: &'q WorkQueue<Q>) -> Self {
        Self { queue, first: None, more: Vec::new() }
    }

    /// Adds a key unless it is there.
    pub fn add(&mut self, key: Q) {
        self.add_slot(self.queue.intern(key));
    }

    /// Adds a key unless it is there. It is made only if the queue does not know it.
    pub(crate) fn add_ref(&mut self, key: &impl KeyRef<Q>) {
        self.add_slot(self.queue.intern_ref(key));
    }

    fn add_slot(&mut self, slot: Slot<Q>) {
        if self.first.is_none() {
            self.first = Some(slot);
        } else if !self.slots().any(|other| *other == slot) {
            self.more.push(slot);
        }
    }

    fn slots(&self) -> impl Iterator<Item = &Slot<Q>> {
        self.first.iter().chain(&self.more)
    }

    /// Queues them all.
    pub(crate) fn enqueue(&self, options: AddOptions) {
        for slot in self.slots() {
            self.queue.add_slot(slot, options);
        }
    }
}

impl<Q: QueueKey> std::fmt::Debug for Keys<'_, Q> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.slots().map(|slot| slot.key().to_string())).finish()
    }
}

/// Maps events to keys. It runs on the watch's path, so it must be quick and must not block.
pub trait EventHandler<Q: QueueKey>: Send + Sync + 'static {
    /// Adds the keys that `event` concerns.
    fn handle(&self, event: &Event<'_>, cx: &MapContext, keys: &mut Keys<'_, Q>);
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
    fn handle(&self, event: &Event<'_>, _: &MapContext, keys: &mut Keys<'_, ObjectKey>) {
        let object = event.object();
        keys.add_ref(&NamespacedName::new(object.namespace(), object.name()));
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
    fn handle(&self, event: &Event<'_>, _: &MapContext, keys: &mut Keys<'_, ObjectKey>) {
        for object in event.states() {
            for owner in object.owner_references() {
                let same_kind = owner.group() == self.group && owner.kind == self.kind;
                if !same_kind || !(self.every_owner || owner.controller) {
                    continue;
                }
                let namespace = object.namespace().filter(|_| self.namespaced);
                keys.add_ref(&NamespacedName::new(namespace, owner.name));
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
    fn handle(&self, event: &Event<'_>, cx: &MapContext, keys: &mut Keys<'_, Q>) {
        for object in event.states() {
            for key in (self.0)(object, cx) {
                keys.add(key);
            }
        }
    }
}
