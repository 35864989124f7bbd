//! Which keys a replica may work on.

use super::rendezvous::Member;

/// Whether a replica may work on a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It may.
    Own,
    /// The key is its own, but its last owner has not confirmed the hand-over.
    Waiting,
    /// The key belongs to another replica, or this replica is not a member.
    Foreign,
}

/// The keys that a replica may work on, as long as its Lease is valid: a value that does not change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rights {
    /// `None` if this replica is not a member: then it owns nothing.
    own: Option<Member>,
    peers: Vec<PeerRights>,
}

/// Another replica, as far as it limits this one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PeerRights {
    pub(super) member: Member,
    /// The members to which it certainly yields, if it may not know this replica yet. `None` if it yields to this replica.
    pub(super) yields_only_to: Option<Vec<Member>>,
}

impl Rights {
    pub(super) fn new(own: Member, peers: Vec<PeerRights>) -> Self {
        Self { own: Some(own), peers }
    }

    pub(crate) fn is_member(&self) -> bool {
        self.own.is_some()
    }

    pub(crate) fn members(&self) -> usize {
        usize::from(self.is_member()) + self.peers.len()
    }

    pub(crate) fn verdict(&self, key: u64) -> Verdict {
        let Some(own) = &self.own else { return Verdict::Foreign };
        if self.peers.iter().any(|peer| peer.member.outranks(own, key)) {
            Verdict::Foreign
        } else if self.peers.iter().any(|peer| peer.may_work_on(key)) {
            Verdict::Waiting
        } else {
            Verdict::Own
        }
    }
}

impl PeerRights {
    /// Whether the peer, which this replica outranks, may work on the key: it may not know this replica, and none of the members that it
    /// does know outranks it.
    fn may_work_on(&self, key: u64) -> bool {
        let Some(known) = &self.yields_only_to else { return false };
        !known.iter().any(|other| other.outranks(&self.member, key))
    }
}
