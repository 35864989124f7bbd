//! Feeds the graph with the events of all watches.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use windlass_runtime::{
    BoxError, ControllerHandle, Delta, Enqueuer, EventHandler, HandlerContext, RawObject,
};

use super::decision::{FOREGROUND, ORPHAN};
use super::graph::{Affected, Deletion, Graph, Node, OwnerRef, Uid, group_of};
use crate::resources::Resource;

/// The time that an owner waits for the first list of a resource, because the list may have dependents of the
/// owner. The value is kube-controller-manager's.
const FIRST_LIST_TIMEOUT: Duration = Duration::from_secs(30);

/// The group and the plural of a resource.
pub(super) type ResourceKey = (String, String);

/// The graph, the known resources, and the queue of the collector.
#[derive(Default)]
pub(super) struct GraphBuilder {
    graph: Mutex<Graph>,
    kinds: Mutex<BTreeMap<(String, String), Arc<Resource>>>,
    /// The resources with an unfinished first list, and the start of each list. `None` before the first
    /// discovery.
    unlisted: Mutex<Option<BTreeMap<ResourceKey, Instant>>>,
    handle: OnceLock<ControllerHandle<Uid>>,
}

impl GraphBuilder {
    pub(super) fn connect(&self, handle: ControllerHandle<Uid>) {
        let _ = self.handle.set(handle);
    }

    pub(super) fn handle(&self) -> Option<&ControllerHandle<Uid>> {
        self.handle.get()
    }

    pub(super) fn graph(&self) -> MutexGuard<'_, Graph> {
        // Each change of the graph completes under the lock, so a poisoned graph is consistent.
        self.graph.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Enqueues the objects that a change affects.
    pub(super) fn enqueue(&self, affected: Affected) {
        let Some(handle) = self.handle.get() else { return };
        for uid in affected {
            handle.enqueue(uid);
        }
    }

    /// Replaces the known resources. Objects with owners of newly known kinds are checked again.
    pub(super) fn set_kinds(&self, resources: &[Arc<Resource>]) {
        let by_kind = |resource: &Arc<Resource>| {
            ((resource.api.group.clone(), resource.api.kind.clone()), resource.clone())
        };
        let known: BTreeMap<_, _> = resources.iter().map(by_kind).collect();
        let before =
            std::mem::replace(&mut *self.kinds.lock().unwrap_or_else(PoisonError::into_inner), known.clone());
        let is_new = |owner: &OwnerRef| {
            let kind = (group_of(&owner.api_version).to_owned(), owner.kind.clone());
            known.contains_key(&kind) && !before.contains_key(&kind)
        };
        let affected = self.graph().with_virtual_owner(is_new);
        self.enqueue(affected);
    }

    /// Records the resources whose first list begins now.
    pub(super) fn begin_lists(&self, resources: impl Iterator<Item = ResourceKey>, now: Instant) {
        let mut unlisted = self.unlisted.lock().unwrap_or_else(PoisonError::into_inner);
        unlisted.get_or_insert_default().extend(resources.map(|resource| (resource, now)));
    }

    /// Records that the first list of a resource has ended, or that the watch was closed.
    pub(super) fn end_list(&self, resource: &ResourceKey) {
        let mut unlisted = self.unlisted.lock().unwrap_or_else(PoisonError::into_inner);
        unlisted.get_or_insert_default().remove(resource);
    }

    /// Returns whether the graph knows the dependents of every owner: each resource was listed, or the list
    /// takes too long to wait.
    pub(super) fn knows_dependents(&self, now: Instant) -> bool {
        let unlisted = self.unlisted.lock().unwrap_or_else(PoisonError::into_inner);
        let late = |since: &Instant| now.duration_since(*since) >= FIRST_LIST_TIMEOUT;
        unlisted.as_ref().is_some_and(|unlisted| unlisted.values().all(late))
    }

    /// Returns the resource of an owner reference, in any served version.
    pub(super) fn resource_of(&self, owner: &OwnerRef) -> Option<Arc<Resource>> {
        let key = (group_of(&owner.api_version).to_owned(), owner.kind.clone());
        self.kinds.lock().unwrap_or_else(PoisonError::into_inner).get(&key).cloned()
    }
}

/// The event handler of a resource's watch.
pub(super) struct UpdateGraph {
    pub graph_builder: Arc<GraphBuilder>,
    pub resource: Arc<Resource>,
}

impl EventHandler<Uid> for UpdateGraph {
    fn handle(&self, delta: &Delta, _: &HandlerContext, keys: &mut Enqueuer<Uid>) -> Result<(), BoxError> {
        let affected = match delta {
            Delta::Deleted { last, .. } => self.graph_builder.graph().remove(&last.uid().into()),
            Delta::Added { object, .. } | Delta::Updated { new: object, .. } => {
                self.graph_builder.graph().observe(node(&self.resource, object))
            }
        };
        for uid in affected {
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
