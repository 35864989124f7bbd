//! The keys that a replica may work on.

use super::rendezvous::Member;

/// The right of a replica to work on a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ownership {
    /// It may.
    Own,
    /// The key belongs to this replica, but the last owner has not confirmed the hand-over.
    Waiting,
    /// The key belongs to another replica, or this replica is not a member.
    Foreign,
}

/// The keys that a replica may work on while the replica's Lease is valid. The value is immutable.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct OwnedKeys {
    /// `None` for a replica that is not a member. Such a replica owns no key.
    own: Option<Member>,
    peers: Vec<PeerLimits>,
}

/// The limits that another replica sets for this replica.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PeerLimits {
    pub(super) member: Member,
    /// The members to which the peer certainly yields, if the peer may not know this replica yet. `None` if
    /// the peer yields to this replica.
    pub(super) yields_only_to: Option<Vec<Member>>,
}

impl OwnedKeys {
    pub(super) fn new(own: Member, peers: Vec<PeerLimits>) -> Self {
        Self { own: Some(own), peers }
    }

    pub(crate) fn is_member(&self) -> bool {
        self.own.is_some()
    }

    pub(crate) fn members(&self) -> usize {
        usize::from(self.is_member()) + self.peers.len()
    }

    pub(crate) fn ownership(&self, key: u64) -> Ownership {
        let Some(own) = &self.own else { return Ownership::Foreign };
        if self.peers.iter().any(|peer| peer.member.outranks(own, key)) {
            Ownership::Foreign
        } else if self.peers.iter().any(|peer| peer.may_work_on(key)) {
            Ownership::Waiting
        } else {
            Ownership::Own
        }
    }
}

impl PeerLimits {
    /// Returns whether the peer, which this replica outranks, may work on the key: the peer may not know this
    /// replica, and no member that the peer knows outranks the peer.
    fn may_work_on(&self, key: u64) -> bool {
        let Some(known) = &self.yields_only_to else { return false };
        !known.iter().any(|other| other.outranks(&self.member, key))
    }
}
