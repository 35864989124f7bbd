//! The graph of owners and dependents: a state machine that takes observed objects and returns the uids to check.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::resources::Resource;

/// The uid of an object: the key of the graph and of the collector's queue.
pub(super) type Uid = Arc<str>;

/// An owner reference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct OwnerRef {
    pub api_version: String,
    pub kind: String,
    pub name: String,
    pub uid: Uid,
    /// `blockOwnerDeletion`: a foreground deletion of the owner waits for this dependent.
    pub blocks: bool,
}

/// The progress of an object's deletion.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Deletion {
    /// Not terminating.
    #[default]
    No,
    /// Terminating; a finalizer of another controller, or the grace period, holds the object.
    Pending,
    /// Terminating with the finalizer `foregroundDeletion`: the collector deletes the dependents first.
    Foreground,
    /// Terminating with the finalizer `orphan`: the collector removes the object from all dependents first.
    Orphaning,
}

/// The metadata of an object that the collector needs.
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
    /// Returns whether `owner` refers to this node: same uid, group, kind and name, in a namespace that `dependent` may refer to.
    pub(super) fn is_referenced_by(&self, owner: &OwnerRef, dependent: &Node) -> bool {
        owner.uid == self.uid
            && owner.name == self.name
            && owner.kind == self.resource.api.kind
            && group_of(&owner.api_version) == self.resource.api.group
            && (self.namespace.is_none() || self.namespace == dependent.namespace)
    }
}

/// Returns the group of an `apiVersion`: empty for `v1`, `apps` for `apps/v1`.
pub(super) fn group_of(api_version: &str) -> &str {
    api_version.split_once('/').map_or("", |(group, _)| group)
}

/// The objects to check after a change.
pub(super) type Affected = BTreeSet<Uid>;

/// The graph of owners and dependents.
///
/// Edges exist even if the owner itself was never observed. The dependents of such a *virtual* owner are checked until the owner is
/// observed, or until a live read proves it absent.
///
/// The graph keeps a deleted object as *absent* while the object has dependents. The kind of the owner may be gone before the dependents are
/// checked, and a live read cannot prove the absence of an object whose kind is not served.
#[derive(Debug, Default)]
pub(super) struct Graph {
    nodes: BTreeMap<Uid, Node>,
    /// The deleted owners that still have dependents.
    absent: BTreeMap<Uid, Node>,
    dependents: BTreeMap<Uid, BTreeSet<Uid>>,
}

impl Graph {
    pub(super) fn node(&self, uid: &Uid) -> Option<&Node> {
        self.nodes.get(uid)
    }

    /// Returns the dependents of `uid`, sorted by uid.
    pub(super) fn dependents(&self, uid: &Uid) -> impl Iterator<Item = &Node> {
        self.dependents.get(uid).into_iter().flatten().filter_map(|dependent| self.nodes.get(dependent))
    }

    /// Returns the dependents that block the foreground deletion of `uid`.
    pub(super) fn blockers(&self, uid: &Uid) -> impl Iterator<Item = &Node> {
        self.dependents(uid)
            .filter(move |node| node.owners.iter().any(|owner| owner.uid == *uid && owner.blocks))
    }

    /// Inserts or updates an object.
    pub(super) fn observe(&mut self, node: Node) -> Affected {
        let before = self.nodes.get(&node.uid).cloned();
        let mut affected = Affected::new();
        let old_owners: &[OwnerRef] = before.as_ref().map_or(&[], |old| &old.owners);
        let old_deletion = before.as_ref().map_or(Deletion::No, |old| old.deletion);

        self.relink(&node, old_owners);
        for gone in old_owners.iter().filter(|old| released(old, &node.owners)) {
            self.add_if_waiting(&gone.uid, &mut affected);
        }
        let fresh = node.owners.iter().filter(|owner| !old_owners.contains(owner));
        if fresh.into_iter().any(|owner| !self.is_settled(owner, &node)) {
            affected.insert(node.uid.clone());
        }
        if node.deletion != old_deletion {
            self.add_deletion(&node, &mut affected);
        }
        self.absent.remove(&node.uid);
        self.nodes.insert(node.uid.clone(), node);
        affected
    }

    /// Returns whether the owner that `dependent` names was deleted.
    pub(super) fn is_absent(&self, owner: &OwnerRef, dependent: &Node) -> bool {
        self.absent.get(&owner.uid).is_some_and(|node| node.is_referenced_by(owner, dependent))
    }

    /// Removes a deleted object. The object counts as absent for its dependents.
    pub(super) fn remove(&mut self, uid: &Uid) -> Affected {
        let mut affected = Affected::new();
        if let Some(node) = self.take(uid, &mut affected)
            && self.dependents.contains_key(uid)
        {
            self.absent.insert(uid.clone(), node);
        }
        affected
    }

    /// Removes all objects of a resource whose CustomResourceDefinition was deleted. The objects were deleted with the definition, and count
    /// as absent.
    pub(super) fn remove_deleted_resource(&mut self, gone: &Resource) -> Affected {
        self.of_resource(gone).iter().flat_map(|uid| self.remove(uid)).collect()
    }

    /// Removes all objects of a resource that is not served, although the objects may exist.
    pub(super) fn forget_resource(&mut self, gone: &Resource) -> Affected {
        let mut affected = Affected::new();
        for uid in self.of_resource(gone) {
            self.take(&uid, &mut affected);
        }
        affected
    }

    fn of_resource(&self, resource: &Resource) -> Vec<Uid> {
        let of_resource = |node: &&Node| {
            node.resource.api.group == resource.api.group && node.resource.api.plural == resource.api.plural
        };
        self.nodes.values().filter(of_resource).map(|node| node.uid.clone()).collect()
    }

    /// Takes an object out of the graph. The object's dependents, and the owners that wait for the object,
    /// are affected.
    fn take(&mut self, uid: &Uid, affected: &mut Affected) -> Option<Node> {
        affected.extend(self.dependents.get(uid).into_iter().flatten().cloned());
        let node = self.nodes.remove(uid)?;
        for owner in &node.owners {
            self.unlink(&owner.uid, uid);
            self.add_if_waiting(&owner.uid, affected);
        }
        Some(node)
    }

    /// Returns the objects with an owner that was never observed, if `wanted` is true for the owner.
    pub(super) fn with_virtual_owner(&self, wanted: impl Fn(&OwnerRef) -> bool) -> Affected {
        let waits = |node: &&Node| {
            node.owners.iter().any(|owner| !self.nodes.contains_key(&owner.uid) && wanted(owner))
        };
        self.nodes.values().filter(waits).map(|node| node.uid.clone()).collect()
    }

    /// Returns whether the owner was observed, matches the reference, and is not terminating.
    fn is_settled(&self, owner: &OwnerRef, dependent: &Node) -> bool {
        self.nodes
            .get(&owner.uid)
            .is_some_and(|node| node.is_referenced_by(owner, dependent) && node.deletion == Deletion::No)
    }

    fn add_deletion(&self, node: &Node, affected: &mut Affected) {
        match node.deletion {
            Deletion::Foreground => {
                affected.insert(node.uid.clone());
                affected.extend(self.dependents.get(&node.uid).into_iter().flatten().cloned());
            }
            Deletion::Orphaning => {
                affected.insert(node.uid.clone());
            }
            Deletion::No | Deletion::Pending => {}
        }
    }

    fn add_if_waiting(&self, owner: &Uid, affected: &mut Affected) {
        if self.nodes.get(owner).is_some_and(|node| node.deletion == Deletion::Foreground) {
            affected.insert(owner.clone());
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
                self.absent.remove(owner);
            }
        }
    }
}

/// Returns whether a dependent no longer blocks the deletion of `old`.
fn released(old: &OwnerRef, now: &[OwnerRef]) -> bool {
    old.blocks && !now.iter().any(|owner| owner.uid == old.uid && owner.blocks)
}

#[cfg(test)]
mod tests;
