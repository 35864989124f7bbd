//! Another replica, from this replica's point of view.

use std::{collections::BTreeSet, time::Duration};

use super::{membership::MemberLease, owned_keys::PeerLimits, rendezvous::Member};

/// Another replica that may be working.
#[derive(Debug)]
pub(super) struct Peer {
    pub(super) member: Member,
    /// The time at which this replica first saw the peer.
    pub(super) known_since: Duration,
    /// True if the peer's Lease existed before ours: the peer may be working on keys that we now own. A later
    /// peer has seen this replica before starting to work.
    earlier: bool,
    /// The members that the peer yields to, and therefore knows.
    yields_to: Vec<Member>,
    yields_to_this: bool,
    /// The time at which the present version of the peer's Lease was first seen.
    pub(super) since: Duration,
    pub(super) lease_duration: Duration,
    /// True if the last list has the peer's Lease.
    pub(super) present: bool,
}

impl Peer {
    pub(super) fn new(name: &str, now: Duration, earlier: bool) -> Self {
        Self {
            member: Member::new(name),
            known_since: now,
            earlier,
            yields_to: Vec::new(),
            yields_to_this: false,
            since: now,
            lease_duration: Duration::ZERO,
            present: true,
        }
    }

    pub(super) fn observe(&mut self, lease: &MemberLease, since: Duration, own: &str) {
        self.since = since;
        self.lease_duration = lease.lease_duration;
        self.yields_to_this |= lease.yields_to.contains(own);
        self.yields_to = lease.yields_to.iter().map(|name| Member::new(name)).collect();
    }

    /// Returns whether the peer joined later than this replica.
    pub(super) fn came_later(&self) -> bool {
        !self.earlier
    }

    /// Returns whether neither replica waits for the other.
    pub(super) fn has_settled(&self, published: &BTreeSet<String>) -> bool {
        self.present && published.contains(self.member.name()) && (!self.earlier || self.yields_to_this)
    }

    /// Returns how this peer limits this replica. A member that is not `present` may have been given up by the peer.
    pub(super) fn limits(&self, present: &impl Fn(&str) -> bool) -> PeerLimits {
        let may_not_know_this = self.earlier && !self.yields_to_this;
        let yields_only_to = may_not_know_this.then(|| {
            let known = self.yields_to.iter().filter(|member| present(member.name()));
            known.cloned().collect()
        });
        PeerLimits { member: self.member.clone(), yields_only_to }
    }
}
