//! Who owns whom, by uid: a state machine fed with what the watches see, which answers whom to look at again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::resources::Resource;

/// The uid of an object: the key of the graph and of the collector's queue.
pub(super) type Uid = Arc<str>;

/// One owner as an object's metadata names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct OwnerRef {
    pub api_version: String,
    pub kind: String,
    pub name: String,
    pub uid: Uid,
    /// `blockOwnerDeletion`: a foreground deletion of the owner waits for this dependent.
    pub blocks: bool,
}

/// How far the deletion of an object has come, and who has the next move.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Deletion {
    /// Not being deleted.
    #[default]
    No,
    /// Being deleted; somebody else's finalizer or a grace period holds it.
    Pending,
    /// Waits for its dependents (finalizer `foregroundDeletion`): the collector's move.
    Foreground,
    /// Waits for its dependents to be set free (finalizer `orphan`): the collector's move.
    Orphaning,
}

/// What the collector knows of one object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Node {
    pub resource: Arc<Resource>,
    pub namespace: Option<String>,
    pub name: String,
    pub uid: Uid,
    pub owners: Vec<OwnerRef>,
    pub deletion: Deletion,
}

impl Node {
    /// Whether `owner` could mean this node: same group, kind and name, and a namespace that `dependent` may refer to.
    pub(super) fn is_meant_by(&self, owner: &OwnerRef, dependent: &Node) -> bool {
        owner.uid == self.uid
            && owner.name == self.name
            && owner.kind == self.resource.api.kind
            && group_of(&owner.api_version) == self.resource.api.group
            && (self.namespace.is_none() || self.namespace == dependent.namespace)
    }
}

/// The group in an `apiVersion`: empty for `v1`, `apps` for `apps/v1`.
pub(super) fn group_of(api_version: &str) -> &str {
    api_version.split_once('/').map_or("", |(group, _)| group)
}

/// The objects that the last change concerns: to be looked at again.
pub(super) type Dirty = BTreeSet<Uid>;

/// The graph of owners and dependents.
///
/// Edges are kept by uid even where the owner itself was never seen: such a *virtual* owner gets its dependents
/// looked at until it is seen, or a live read says that it is not there.
#[derive(Debug, Default)]
pub(super) struct Graph {
    nodes: BTreeMap<Uid, Node>,
    dependents: BTreeMap<Uid, BTreeSet<Uid>>,
}

impl Graph {
    pub(super) fn node(&self, uid: &Uid) -> Option<&Node> {
        self.nodes.get(uid)
    }

    /// The dependents of `uid`, in the order of their uids.
    pub(super) fn dependents(&self, uid: &Uid) -> impl Iterator<Item = &Node> {
        self.dependents.get(uid).into_iter().flatten().filter_map(|dependent| self.nodes.get(dependent))
    }

    /// The dependents that hold up the foreground deletion of `uid`.
    pub(super) fn blockers(&self, uid: &Uid) -> impl Iterator<Item = &Node> {
        self.dependents(uid)
            .filter(move |node| node.owners.iter().any(|owner| owner.uid == *uid && owner.blocks))
    }

    /// Records the state of an object, new or changed.
    pub(super) fn observe(&mut self, node: Node) -> Dirty {
        let before = self.nodes.get(&node.uid).cloned();
        let mut dirty = Dirty::new();
        let old_owners: &[OwnerRef] = before.as_ref().map_or(&[], |old| &old.owners);
        let old_deletion = before.as_ref().map_or(Deletion::No, |old| old.deletion);

        self.relink(&node, old_owners);
        for gone in old_owners.iter().filter(|old| released(old, &node.owners)) {
            self.mark_if_waiting(&gone.uid, &mut dirty);
        }
        let fresh = node.owners.iter().filter(|owner| !old_owners.contains(owner));
        if fresh.into_iter().any(|owner| !self.is_settled(owner, &node)) {
            dirty.insert(node.uid.clone());
        }
        if node.deletion != old_deletion {
            self.mark_deletion(&node, &mut dirty);
        }
        self.nodes.insert(node.uid.clone(), node);
        dirty
    }

    /// Forgets an object that is gone.
    pub(super) fn remove(&mut self, uid: &Uid) -> Dirty {
        let mut dirty: Dirty = self.dependents.get(uid).cloned().unwrap_or_default();
        let Some(node) = self.nodes.remove(uid) else { return dirty };
        for owner in &node.owners {
            self.unlink(&owner.uid, uid);
            self.mark_if_waiting(&owner.uid, &mut dirty);
        }
        dirty
    }

    /// Forgets every object of a resource that is served no more.
    pub(super) fn remove_resource(&mut self, gone: &Resource) -> Dirty {
        let of_resource = |node: &&Node| {
            node.resource.api.group == gone.api.group && node.resource.api.plural == gone.api.plural
        };
        let gone: Vec<Uid> = self.nodes.values().filter(of_resource).map(|node| node.uid.clone()).collect();
        gone.iter().flat_map(|uid| self.remove(uid)).collect()
    }

    /// Whether the owner is known, is what the dependent says it is, and asks nothing of its dependents.
    fn is_settled(&self, owner: &OwnerRef, dependent: &Node) -> bool {
        self.nodes
            .get(&owner.uid)
            .is_some_and(|node| node.is_meant_by(owner, dependent) && node.deletion == Deletion::No)
    }

    fn mark_deletion(&self, node: &Node, dirty: &mut Dirty) {
        match node.deletion {
            Deletion::Foreground => {
                dirty.insert(node.uid.clone());
                dirty.extend(self.dependents.get(&node.uid).into_iter().flatten().cloned());
            }
            Deletion::Orphaning => {
                dirty.insert(node.uid.clone());
            }
            Deletion::No | Deletion::Pending => {}
        }
    }

    fn mark_if_waiting(&self, owner: &Uid, dirty: &mut Dirty) {
        if self.nodes.get(owner).is_some_and(|node| node.deletion == Deletion::Foreground) {
            dirty.insert(owner.clone());
        }
    }

    fn relink(&mut self, node: &Node, old_owners: &[OwnerRef]) {
        for old in old_owners {
            if !node.owners.iter().any(|owner| owner.uid == old.uid) {
                self.unlink(&old.uid, &node.uid);
            }
        }
        for owner in &node.owners {
            self.dependents.entry(owner.uid.clone()).or_default().insert(node.uid.clone());
        }
    }

    fn unlink(&mut self, owner: &Uid, dependent: &Uid) {
        if let Some(set) = self.dependents.get_mut(owner) {
            set.remove(dependent);
            if set.is_empty() {
                self.dependents.remove(owner);
            }
        }
    }
}

/// Whether a dependent that named `old` no longer holds up that owner's deletion.
fn released(old: &OwnerRef, now: &[OwnerRef]) -> bool {
    old.blocks && !now.iter().any(|owner| owner.uid == old.uid && owner.blocks)
}

#[cfg(test)]
mod tests;
