//! What the watches tell, brought into the graph.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use windlass_runtime::{BoxError, ControllerHandle, Delta, EventHandler, Keys, MapContext, RawObject};

use super::graph::{Deletion, Dirty, Graph, Node, OwnerRef, Uid, group_of};
use super::verdict::{FOREGROUND, ORPHAN};
use crate::resources::Resource;

/// The graph, the resources it is about, and the queue of the collector.
#[derive(Default)]
pub(super) struct Observer {
    graph: Mutex<Graph>,
    kinds: Mutex<BTreeMap<(String, String), Arc<Resource>>>,
    handle: OnceLock<ControllerHandle<Uid>>,
}

impl Observer {
    pub(super) fn connect(&self, handle: ControllerHandle<Uid>) {
        let _ = self.handle.set(handle);
    }

    pub(super) fn handle(&self) -> Option<&ControllerHandle<Uid>> {
        self.handle.get()
    }

    pub(super) fn graph(&self) -> MutexGuard<'_, Graph> {
        // Every change of the graph is whole, so a panic elsewhere cannot have left it half-done.
        self.graph.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues what a change concerns.
    pub(super) fn enqueue(&self, dirty: Dirty) {
        let Some(handle) = self.handle.get() else { return };
        for uid in dirty {
            handle.enqueue(uid);
        }
    }

    /// Replaces what is known of the server's resources.
    pub(super) fn set_kinds(&self, resources: &[Arc<Resource>]) {
        let by_kind = |resource: &Arc<Resource>| {
            ((resource.api.group.clone(), resource.api.kind.clone()), resource.clone())
        };
        *self.kinds.lock().unwrap_or_else(PoisonError::into_inner) = resources.iter().map(by_kind).collect();
    }

    /// The resource that an owner reference means, in whichever version it is served.
    pub(super) fn resource_of(&self, owner: &OwnerRef) -> Option<Arc<Resource>> {
        let key = (group_of(&owner.api_version).to_owned(), owner.kind.clone());
        self.kinds.lock().unwrap_or_else(PoisonError::into_inner).get(&key).cloned()
    }
}

/// The handler of one resource's watch.
pub(super) struct Observe {
    pub observer: Arc<Observer>,
    pub resource: Arc<Resource>,
}

impl EventHandler<Uid> for Observe {
    fn handle(&self, delta: &Delta, _: &MapContext, keys: &mut Keys<Uid>) -> Result<(), BoxError> {
        let dirty = match delta {
            Delta::Deleted { last, .. } => self.observer.graph().remove(&last.uid().into()),
            Delta::Added { object, .. } | Delta::Updated { new: object, .. } => {
                self.observer.graph().observe(node(&self.resource, object))
            }
        };
        for uid in dirty {
            keys.add(uid);
        }
        Ok(())
    }
}

fn node(resource: &Arc<Resource>, object: &RawObject) -> Node {
    let has = |name: &str| object.finalizers().any(|finalizer| finalizer == name);
    let deletion = match object.deletion_timestamp() {
        None => Deletion::No,
        Some(_) if has(FOREGROUND) => Deletion::Foreground,
        Some(_) if has(ORPHAN) => Deletion::Orphaning,
        Some(_) => Deletion::Pending,
    };
    let owners = object.owner_references().map(|owner| OwnerRef {
        api_version: owner.api_version.to_owned(),
        kind: owner.kind.to_owned(),
        name: owner.name.to_owned(),
        uid: owner.uid.into(),
        blocks: owner.block_owner_deletion,
    });
    Node {
        resource: resource.clone(),
        namespace: object.namespace().map(str::to_owned),
        name: object.name().to_owned(),
        uid: object.uid().into(),
        owners: owners.collect(),
        deletion,
    }
}
