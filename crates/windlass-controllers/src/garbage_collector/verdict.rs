//! What becomes of an object, given the state of its owners.

use super::graph::Uid;

pub(super) const FOREGROUND: &str = "foregroundDeletion";
pub(super) const ORPHAN: &str = "orphan";

/// What a look at an owner found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OwnerState {
    /// There, and not waiting for its dependents.
    Solid,
    /// Being deleted in the foreground: it waits for its dependents to go.
    Waiting,
    /// Not there; a live read said so.
    Absent,
}

/// How an object is to be deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Propagation {
    Background,
    Foreground,
    Orphan,
}

/// The decision.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It has an owner that stays, or never had one.
    Keep,
    /// It has an owner that stays, and others that do not: drop those references.
    DropOwners(Vec<Uid>),
    /// Nobody owns it any more.
    Delete(Propagation),
}

/// Decides about an object from its finalizers, its owners, and whether others depend on it.
pub(super) fn judge(finalizers: &[String], owners: &[(Uid, OwnerState)], has_dependents: bool) -> Verdict {
    let stays = owners.iter().any(|(_, state)| *state == OwnerState::Solid);
    if owners.is_empty() || (stays && owners.iter().all(|(_, state)| *state == OwnerState::Solid)) {
        return Verdict::Keep;
    }
    if stays {
        let leaving = owners.iter().filter(|(_, state)| *state != OwnerState::Solid);
        return Verdict::DropOwners(leaving.map(|(uid, _)| uid.clone()).collect());
    }
    let waited_for = owners.iter().any(|(_, state)| *state == OwnerState::Waiting);
    let has = |name: &str| finalizers.iter().any(|finalizer| finalizer == name);
    Verdict::Delete(match () {
        () if waited_for && has_dependents => Propagation::Foreground,
        () if has(ORPHAN) => Propagation::Orphan,
        () if has(FOREGROUND) => Propagation::Foreground,
        () => Propagation::Background,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(finalizers: &[&str], owners: &[OwnerState], has_dependents: bool) -> Verdict {
        let finalizers: Vec<String> = finalizers.iter().map(ToString::to_string).collect();
        let owners: Vec<(Uid, OwnerState)> =
            owners.iter().enumerate().map(|(n, state)| (n.to_string().into(), *state)).collect();
        judge(&finalizers, &owners, has_dependents)
    }

    #[test]
    fn an_object_without_owners_stays() {
        assert_eq!(judged(&[], &[], true), Verdict::Keep);
    }

    #[test]
    fn one_owner_is_enough_and_the_dead_references_go() {
        use OwnerState::{Absent, Solid, Waiting};
        assert_eq!(judged(&[], &[Solid, Solid], false), Verdict::Keep);
        assert_eq!(
            judged(&[], &[Solid, Absent, Waiting], false),
            Verdict::DropOwners(vec!["1".into(), "2".into()])
        );
    }

    #[test]
    fn without_owners_left_it_is_deleted_as_its_finalizers_ask() {
        use OwnerState::Absent;
        assert_eq!(judged(&[], &[Absent], true), Verdict::Delete(Propagation::Background));
        assert_eq!(judged(&[ORPHAN], &[Absent], true), Verdict::Delete(Propagation::Orphan));
        assert_eq!(judged(&[FOREGROUND], &[Absent], true), Verdict::Delete(Propagation::Foreground));
    }

    #[test]
    fn foreground_deletion_reaches_the_dependents_of_dependents() {
        use OwnerState::Waiting;
        assert_eq!(judged(&[], &[Waiting], true), Verdict::Delete(Propagation::Foreground));
        assert_eq!(judged(&[], &[Waiting], false), Verdict::Delete(Propagation::Background));
    }
}
