//! Decides whether an object is kept or deleted, given the state of its owners.

use super::graph::Uid;

pub(super) const FOREGROUND: &str = "foregroundDeletion";
pub(super) const ORPHAN: &str = "orphan";

/// The state of an owner. `Solid` is the term of the garbage collector of Kubernetes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OwnerState {
    /// Present, and not waiting for dependents.
    Solid,
    /// Terminating in the foreground: the owner waits for the deletion of dependents.
    WaitingForDependents,
    /// Absent, confirmed by a live read.
    Absent,
}

/// The propagation policy of a deletion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Propagation {
    Background,
    Foreground,
    Orphan,
}

/// The action for an object.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Decision {
    /// The object has no owners, or all owners are solid.
    Keep,
    /// The object has a solid owner. Drop the references to the other owners.
    DropOwners(Vec<Uid>),
    /// The object has no solid owner.
    Delete(Propagation),
}

/// Decides about an object from the finalizers, the owners, and the presence of dependents.
pub(super) fn decide(finalizers: &[String], owners: &[(Uid, OwnerState)], has_dependents: bool) -> Decision {
    let stays = owners.iter().any(|(_, state)| *state == OwnerState::Solid);
    if owners.is_empty() || (stays && owners.iter().all(|(_, state)| *state == OwnerState::Solid)) {
        return Decision::Keep;
    }
    if stays {
        let leaving = owners.iter().filter(|(_, state)| *state != OwnerState::Solid);
        return Decision::DropOwners(leaving.map(|(uid, _)| uid.clone()).collect());
    }
    let waited_for = owners.iter().any(|(_, state)| *state == OwnerState::WaitingForDependents);
    let has = |name: &str| finalizers.iter().any(|finalizer| finalizer == name);
    Decision::Delete(match () {
        () if waited_for && has_dependents => Propagation::Foreground,
        () if has(ORPHAN) => Propagation::Orphan,
        () if has(FOREGROUND) => Propagation::Foreground,
        () => Propagation::Background,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decided(finalizers: &[&str], owners: &[OwnerState], has_dependents: bool) -> Decision {
        let finalizers: Vec<String> = finalizers.iter().map(ToString::to_string).collect();
        let owners: Vec<(Uid, OwnerState)> =
            owners.iter().enumerate().map(|(n, state)| (n.to_string().into(), *state)).collect();
        decide(&finalizers, &owners, has_dependents)
    }

    #[test]
    fn an_object_without_owners_stays() {
        assert_eq!(decided(&[], &[], true), Decision::Keep);
    }

    #[test]
    fn one_owner_is_enough_and_the_dead_references_go() {
        use OwnerState::{Absent, Solid, WaitingForDependents};
        assert_eq!(decided(&[], &[Solid, Solid], false), Decision::Keep);
        assert_eq!(
            decided(&[], &[Solid, Absent, WaitingForDependents], false),
            Decision::DropOwners(vec!["1".into(), "2".into()])
        );
    }

    #[test]
    fn without_owners_left_it_is_deleted_as_its_finalizers_ask() {
        use OwnerState::Absent;
        assert_eq!(decided(&[], &[Absent], true), Decision::Delete(Propagation::Background));
        assert_eq!(decided(&[ORPHAN], &[Absent], true), Decision::Delete(Propagation::Orphan));
        assert_eq!(decided(&[FOREGROUND], &[Absent], true), Decision::Delete(Propagation::Foreground));
    }

    #[test]
    fn foreground_deletion_reaches_the_dependents_of_dependents() {
        use OwnerState::WaitingForDependents;
        assert_eq!(decided(&[], &[WaitingForDependents], true), Decision::Delete(Propagation::Foreground));
        assert_eq!(decided(&[], &[WaitingForDependents], false), Decision::Delete(Propagation::Background));
    }
}
